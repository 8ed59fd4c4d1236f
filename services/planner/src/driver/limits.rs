//! What a run may spend, and what a call of the model may take before it is made.

use domain::{Amount, CallId, Dollars, Fact, ModelRole, Phase, StopReason, TicketLimits, cause::chain};

use super::{Driver, Outcome, Trouble};
use crate::budgets::{Reservation, Wish};
use crate::run::{DialogSpec, RunState, known_length, no_room, tokens_of};
use crate::transcript::Transcript;

impl Driver {
    pub(super) async fn set_limits(&self, state: &RunState) -> Result<Outcome, Trouble> {
        let Some(request) = state.request() else {
            return Err(self.impossible(state, "a run without a request has no limits"));
        };
        let ticket = match self.allowance.ticket_limits(request) {
            Some(limits) => Some(self.with_spent(state, limits).await?),
            None => None,
        };
        let limits = self.allowance.limits(request);
        Ok(Fact::LimitsSet { limits, ticket }.into())
    }

    /// A ticket's limits with what its other runs took. One whose journal cannot be read counts nothing.
    async fn with_spent(&self, state: &RunState, limits: TicketLimits) -> Result<TicketLimits, Trouble> {
        let journal = self.queue.journal();
        let mut spent = Amount::default();
        for run in journal.runs_of(state.run.ticket()).await? {
            if run == state.run {
                continue;
            }
            let entries = match journal.read(&run).await {
                Err(error @ queue::Error::Corrupt { .. }) => {
                    tracing::warn!(%run, error = %chain(&error), "run not counted in its ticket's budget");
                    continue;
                }
                entries => entries?,
            };
            let amounts = entries.iter().filter_map(|(_, entry)| entry.fact.taken());
            spent = amounts.fold(spent, Amount::plus);
        }
        Ok(TicketLimits {
            spent_usd: Dollars::from_micros(spent.cost_micros),
            spent_tokens: spent.tokens,
            ..limits
        })
    }

    /// Sets aside what a call may take at most.
    ///
    /// # Errors
    /// Which budget has no room.
    pub(super) async fn reserve(
        &self,
        state: &RunState,
        id: &CallId,
        dialog: &DialogSpec,
        transcript: &Transcript,
    ) -> Result<Reservation, StopReason> {
        let input = tokens_of(transcript.bytes()).max(known_length(state, dialog));
        self.reserve_for(state, id, (dialog.phase, dialog.role), input)
            .await
    }

    /// The same for a summary of a conversation, which the model that works makes.
    pub(super) async fn reserve_summary(
        &self,
        state: &RunState,
        id: &CallId,
        phase: Phase,
        transcript: &Transcript,
    ) -> Result<Reservation, StopReason> {
        let input = tokens_of(transcript.bytes());
        self.reserve_for(state, id, (phase, ModelRole::Default), input)
            .await
    }

    async fn reserve_for(
        &self,
        state: &RunState,
        id: &CallId,
        (phase, role): (Phase, ModelRole),
        input: u64,
    ) -> Result<Reservation, StopReason> {
        let choice = role.into();
        let most = self.models.most(&choice, input);
        if let Some(reason) = no_room(state, phase, most) {
            return Err(reason);
        }
        let longest = self.models.longest(&choice);
        self.budgets.reserve(state, Wish { id, most, longest }).await
    }
}
