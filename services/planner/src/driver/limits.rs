//! Limits of a run, and reservations for model calls.

use domain::{CallId, Fact, ModelRole, RunPhase, Spend, StopReason, TicketLimits, cause::format_error_chain};

use super::{RunDriver, StepOutcome, TicketError};
use crate::budgets::{BudgetReservation, ReservationRequest};
use crate::model::ModelSelection;
use crate::run::{
    DialogSpec, PlannerRunState, counted_length, estimate_tokens, job_dialogs, ticket_budget_refusal,
};
use crate::transcript::ModelTranscript;

/// Returns the model of a conversation: the role's, unless the rules name another for its phase.
pub(super) fn choose_model(state: &PlannerRunState, phase: RunPhase, role: ModelRole) -> ModelSelection {
    let models = state.request().map(|request| &request.rules.agent.models);
    ModelSelection {
        role,
        model: models.and_then(|models| models.get(&phase)).cloned(),
    }
}

/// Returns the model that summarizes: the one of the work phase, whatever model the conversation uses.
pub(super) fn choose_summary_model(state: &PlannerRunState) -> ModelSelection {
    choose_model(state, RunPhase::Work, ModelRole::Default)
}

impl RunDriver {
    pub(super) async fn set_limits(&self, state: &PlannerRunState) -> Result<StepOutcome, TicketError> {
        let Some(request) = state.request() else {
            return Err(self.impossible(state, "a run without a request has no limits"));
        };
        let ticket = match self.allowance.ticket_limits(request) {
            Some(limits) => Some(self.with_spent(state, limits).await?),
            None => None,
        };
        let mut limits = self.allowance.limits(request);
        // A model that the rules name may have a smaller context window than its role's.
        for dialog in job_dialogs(state) {
            if let Some(limit) = limits.context_by_role.get_mut(&dialog.role) {
                let choice = choose_model(state, dialog.phase, dialog.role);
                *limit = self.models.conversation_limit(&choice).min(*limit);
            }
        }
        Ok(Fact::LimitsSet { limits, ticket }.into())
    }

    /// Adds the spending of the ticket's other runs to its limits. A run with an unreadable journal counts
    /// as nothing.
    async fn with_spent(
        &self,
        state: &PlannerRunState,
        limits: TicketLimits,
    ) -> Result<TicketLimits, TicketError> {
        let journal = self.queue.journal();
        let mut spend = Spend::default();
        for run in journal.runs_of(state.run.ticket()).await? {
            if run == state.run {
                continue;
            }
            let read = journal.read_kept(&run, |entry| Spend::is_affected_by(&entry.fact));
            match read.await {
                // One unreadable journal must not block the ticket's other runs.
                Err(error @ queue::Error::Corrupt { .. }) => {
                    tracing::warn!(%run, error = %format_error_chain(&error), "run not counted in its ticket's budget");
                }
                entries => spend.add_journal(&run, &entries?),
            }
        }
        let spent = spend.total().spend;
        Ok(TicketLimits {
            spent_usd: spent.cost_usd,
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
        state: &PlannerRunState,
        id: &CallId,
        dialog: &DialogSpec,
        transcript: &ModelTranscript,
    ) -> Result<BudgetReservation, StopReason> {
        // The larger of estimate and the provider's last count, so that the reservation is an upper bound.
        let input = estimate_tokens(transcript.bytes()).max(counted_length(state, dialog));
        let choice = choose_model(state, dialog.phase, dialog.role);
        self.reserve_for(state, id, (dialog.phase, &choice), input).await
    }

    /// Reserves the upper bound of a summary's call.
    pub(super) async fn reserve_summary(
        &self,
        state: &PlannerRunState,
        id: &CallId,
        phase: RunPhase,
        transcript: &ModelTranscript,
    ) -> Result<BudgetReservation, StopReason> {
        let input = estimate_tokens(transcript.bytes());
        let choice = choose_summary_model(state);
        self.reserve_for(state, id, (phase, &choice), input).await
    }

    async fn reserve_for(
        &self,
        state: &PlannerRunState,
        id: &CallId,
        (phase, choice): (RunPhase, &ModelSelection),
        input: u64,
    ) -> Result<BudgetReservation, StopReason> {
        let most = self.models.most(choice, input);
        if let Some(reason) = ticket_budget_refusal(state, phase, most) {
            return Err(reason);
        }
        let longest = self.models.longest(choice);
        self.budgets
            .reserve(state, ReservationRequest { id, most, longest })
            .await
    }
}
