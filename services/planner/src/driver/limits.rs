//! Limits of a run, and reservations for model calls.

use domain::{Amount, CallId, Dollars, Fact, ModelRole, Phase, StopReason, TicketLimits, cause::chain};

use super::{Driver, Outcome, Trouble};
use crate::budgets::{Reservation, Wish};
use crate::model::Choice;
use crate::run::{DialogSpec, RunState, dialogs, known_length, no_room, tokens_of};
use crate::transcript::Transcript;

/// Returns the model of a conversation: the role's, unless the rules name another for its phase.
pub(super) fn choice(state: &RunState, phase: Phase, role: ModelRole) -> Choice {
    let models = state.request().map(|request| &request.rules.agent.models);
    Choice {
        role,
        model: models.and_then(|models| models.get(&phase)).cloned(),
    }
}

/// Returns the model that summarizes: the one of the work phase, whatever model the conversation uses.
pub(super) fn summing_up(state: &RunState) -> Choice {
    choice(state, Phase::Work, ModelRole::Default)
}

impl Driver {
    pub(super) async fn set_limits(&self, state: &RunState) -> Result<Outcome, Trouble> {
        let Some(request) = state.request() else {
            return Err(self.impossible(state, "a run without a request has no limits"));
        };
        let ticket = match self.allowance.ticket_limits(request) {
            Some(limits) => Some(self.with_spent(state, limits).await?),
            None => None,
        };
        let mut limits = self.allowance.limits(request);
        // A model that the rules name may have a smaller context window than its role's.
        for dialog in dialogs(state) {
            if let Some(limit) = limits.context_by_role.get_mut(&dialog.role) {
                let choice = choice(state, dialog.phase, dialog.role);
                *limit = self.models.conversation_limit(&choice).min(*limit);
            }
        }
        Ok(Fact::LimitsSet { limits, ticket }.into())
    }

    /// Adds the spending of the ticket's other runs to its limits. A run with an unreadable journal counts
    /// as nothing.
    async fn with_spent(&self, state: &RunState, limits: TicketLimits) -> Result<TicketLimits, Trouble> {
        let journal = self.queue.journal();
        let mut spent = Amount::default();
        for run in journal.runs_of(state.run.ticket()).await? {
            if run == state.run {
                continue;
            }
            let entries = match journal.read(&run).await {
                // One unreadable journal must not block the ticket's other runs.
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

    /// Reserves the upper bound of a call.
    ///
    /// # Errors
    /// The budget without room.
    pub(super) async fn reserve(
        &self,
        state: &RunState,
        id: &CallId,
        dialog: &DialogSpec,
        transcript: &Transcript,
    ) -> Result<Reservation, StopReason> {
        // The larger of estimate and the provider's last count, so that the reservation is an upper bound.
        let input = tokens_of(transcript.bytes()).max(known_length(state, dialog));
        let choice = choice(state, dialog.phase, dialog.role);
        self.reserve_for(state, id, (dialog.phase, &choice), input).await
    }

    /// Reserves the upper bound of a summary's call.
    pub(super) async fn reserve_summary(
        &self,
        state: &RunState,
        id: &CallId,
        phase: Phase,
        transcript: &Transcript,
    ) -> Result<Reservation, StopReason> {
        let input = tokens_of(transcript.bytes());
        let choice = summing_up(state);
        self.reserve_for(state, id, (phase, &choice), input).await
    }

    async fn reserve_for(
        &self,
        state: &RunState,
        id: &CallId,
        (phase, choice): (Phase, &Choice),
        input: u64,
    ) -> Result<Reservation, StopReason> {
        let most = self.models.most(choice, input);
        if let Some(reason) = no_room(state, phase, most) {
            return Err(reason);
        }
        let longest = self.models.longest(choice);
        self.budgets.reserve(state, Wish { id, most, longest }).await
    }
}
