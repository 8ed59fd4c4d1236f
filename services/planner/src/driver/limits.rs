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

    /// Builds the reservation of a call: its upper bound.
    ///
    /// # Errors
    /// The ticket's budget without room.
    pub(super) fn build_reservation<'a>(
        &self,
        state: &PlannerRunState,
        id: &'a CallId,
        dialog: &DialogSpec,
        transcript: &ModelTranscript,
    ) -> Result<ReservationRequest<'a>, StopReason> {
        // The larger of estimate and the provider's last count, so that the reservation is an upper bound.
        let input = estimate_tokens(transcript.bytes()).max(counted_length(state, dialog));
        let choice = choose_model(state, dialog.phase, dialog.role);
        self.build_reservation_for(state, id, (dialog.phase, &choice), input)
    }

    /// Reserves the upper bound of a summary's call.
    ///
    /// # Errors
    /// The budget without room.
    pub(super) async fn reserve_summary(
        &self,
        state: &PlannerRunState,
        id: &CallId,
        phase: RunPhase,
        transcript: &ModelTranscript,
    ) -> Result<BudgetReservation, StopReason> {
        let input = estimate_tokens(transcript.bytes());
        let choice = choose_summary_model(state);
        let wish = self.build_reservation_for(state, id, (phase, &choice), input)?;
        self.budgets.reserve(state, wish).await
    }

    fn build_reservation_for<'a>(
        &self,
        state: &PlannerRunState,
        id: &'a CallId,
        (phase, choice): (RunPhase, &ModelSelection),
        input: u64,
    ) -> Result<ReservationRequest<'a>, StopReason> {
        let most = self.models.most(choice, input);
        if let Some(reason) = ticket_budget_refusal(state, phase, most) {
            return Err(reason);
        }
        let longest = self.models.longest(choice);
        Ok(ReservationRequest { id, most, longest })
    }
}

/// Reserves the budget of a call and makes the call. A call of an unlimited budget does not wait for the
/// reservation, which nothing can refuse.
///
/// # Errors
/// The refusal of a limited budget; the call is not made.
pub(super) async fn reserve_and_call<R, T>(
    is_limited: bool,
    reserving: impl Future<Output = Result<R, StopReason>>,
    calling: impl Future<Output = T>,
) -> Result<(R, T), StopReason> {
    if is_limited {
        let reservation = reserving.await?;
        return Ok((reservation, calling.await));
    }
    let (reservation, answer) = tokio::join!(reserving, calling);
    Ok((reservation?, answer))
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn unlimited_call_starts_before_reservation_ends() {
        let (started, mut has_started) = oneshot::channel();
        let reserving = async {
            tokio::task::yield_now().await;
            Ok(has_started.try_recv())
        };
        let calling = async { started.send(()) };
        let made = reserve_and_call(false, reserving, calling).await;
        assert_eq!(made, Ok((Ok(()), Ok(()))));
    }

    #[tokio::test]
    async fn limited_call_waits_for_its_reservation() {
        let (reserved, mut is_reserved) = oneshot::channel();
        let reserving = async {
            tokio::task::yield_now().await;
            Ok(reserved.send(()))
        };
        let calling = async { is_reserved.try_recv() };
        let made = reserve_and_call(true, reserving, calling).await;
        assert_eq!(made, Ok((Ok(()), Ok(()))));
    }

    #[tokio::test]
    async fn refused_call_is_not_made() {
        let mut is_made = false;
        let reserving = async { Err::<(), _>(StopReason::JournalLost) };
        let calling = async { is_made = true };
        let made = reserve_and_call(true, reserving, calling).await;
        assert_eq!(made, Err(StopReason::JournalLost));
        assert!(!is_made);
    }
}
