//! Limits and spending of a run.

use domain::{
    EffortEstimate, Fact, JournalEntry, ModelReply, ModelSpend, RunLimits, StopReason, TicketLimits,
    Timestamp, TokenUsage,
};

use super::outputs::PhaseResult;
use super::{ApplyResult, require_legal};

/// Limits of a run, and what it spent of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct BudgetState {
    /// Limits of the run, once they are set.
    limits: Option<RunLimits>,
    /// Limits of the ticket, if it has any.
    ticket_limits: Option<TicketLimits>,
    spending: RunSpending,
    /// Effort of similar work; missing without enough history.
    forecast: PhaseResult<EffortEstimate>,
    /// Reason that the last model call was not made.
    refused: Option<StopReason>,
}

/// Spending of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunSpending {
    /// Cost and tokens of the models.
    pub(crate) models: ModelSpend,
    /// Model that replied although its price is unknown.
    pub(crate) unpriced_model: Option<String>,
    /// Milliseconds that the run was at work.
    pub(crate) busy_ms: u64,
}

impl BudgetState {
    /// Restarts the work. Limits and spending are of the run, the forecast is of the ticket.
    pub(super) fn reset(&mut self) {
        *self = Self {
            limits: self.limits.take(),
            ticket_limits: self.ticket_limits.take(),
            spending: std::mem::take(&mut self.spending),
            forecast: self.forecast,
            ..Self::default()
        };
    }

    /// Returns the limits of the run, once they are set.
    pub(crate) const fn limits(&self) -> Option<&RunLimits> {
        self.limits.as_ref()
    }

    /// Returns the limits of the ticket, if it has any.
    pub(crate) const fn ticket_limits(&self) -> Option<TicketLimits> {
        self.ticket_limits
    }

    /// Returns the spending of the run.
    pub(crate) const fn spending(&self) -> &RunSpending {
        &self.spending
    }

    /// Returns the effort of similar work; missing without enough history.
    pub(crate) const fn forecast(&self) -> PhaseResult<EffortEstimate> {
        self.forecast
    }

    /// Returns the reason that the last call was not made, unless the budget's period has ended by now.
    pub(crate) fn refused(&self, now: Timestamp) -> Option<&StopReason> {
        let is_over = |reason: &&StopReason| reason.resets().is_some_and(|resets| resets <= now);
        self.refused.as_ref().filter(|reason| !is_over(reason))
    }

    /// Counts the time since the last entry, unless the run waited for users, a slot or a planner. `is_waiting` is
    /// true if it was parked, or a workspace was requested.
    pub(super) fn count_time(&mut self, entry: &JournalEntry, last: Timestamp, is_waiting: bool) {
        let waited = matches!(
            entry.fact,
            Fact::TakenOver { .. }
                | Fact::WorkspaceOpened { .. }
                | Fact::WorkspaceRestored { .. }
                | Fact::WorkspaceFailed { .. }
                | Fact::WentBack { .. }
        );
        if !is_waiting && !waited {
            let passed = entry.at.unix_ms().saturating_sub(last.unix_ms());
            self.spending.busy_ms += u64::try_from(passed).unwrap_or(0);
        }
    }

    pub(super) fn limits_set(&mut self, limits: &RunLimits, ticket: Option<TicketLimits>) -> ApplyResult {
        require_legal(self.limits.is_none(), "limits are set already")?;
        self.limits = Some(limits.clone());
        self.ticket_limits = ticket;
        Ok(())
    }

    pub(super) fn forecast_read(&mut self, forecast: Option<EffortEstimate>) {
        self.forecast = PhaseResult::finished(forecast);
    }

    pub(super) fn call_refused(&mut self, reason: &StopReason) {
        self.refused = Some(reason.clone());
    }

    /// Forgets the refusal, so that the call is made again.
    pub(super) fn retried(&mut self) {
        self.refused = None;
    }

    /// Counts a reply of a model.
    pub(super) fn replied(&mut self, reply: &ModelReply) {
        let spending = &mut self.spending;
        spending.models.add(reply);
        if reply.cost_micros.is_some() {
            return;
        }
        let model = &reply.model;
        spending.unpriced_model = Some(if reply.usage == TokenUsage::default() {
            format!("{model} (its replies count no tokens)")
        } else {
            model.clone()
        });
    }
}
