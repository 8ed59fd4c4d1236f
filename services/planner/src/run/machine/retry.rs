//! Wait between two attempts of a run.

use domain::{OutboundAction, OutboundId, OutboundOutcome, StopReason, Timestamp, report::WorkOrigin};

use super::transitions::{ApplyResult, require_legal};
use super::work::RepositoryWork;
use super::{PlannerRunState, RunInput};

/// Wait between two attempts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RetryWait {
    pub(crate) attempt: u32,
    pub(crate) most: u32,
    pub(crate) due: Timestamp,
    pub(crate) reason: StopReason,
    /// True if the ticket already has a notice about it.
    pub(crate) told: bool,
}

/// Returns the FNV-1a hash: uniform enough for jitter, and stable over releases.
pub(crate) fn hash_text(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl PlannerRunState {
    pub(super) fn retry_scheduled(
        &mut self,
        (attempt, most): (u32, u32),
        due: Timestamp,
        reason: &StopReason,
    ) -> ApplyResult {
        require_legal(self.retry.is_none(), "a retry is scheduled already")?;
        require_legal(attempt == self.retries + 1, "its count is wrong")?;
        self.retries = attempt;
        self.retry = Some(RetryWait {
            attempt,
            most,
            due,
            reason: reason.clone(),
            told: false,
        });
        Ok(())
    }

    /// Resets the failed parts, so that they are requested again under new ids.
    pub(super) fn retried(&mut self, by: Option<&str>) -> ApplyResult {
        require_legal(self.retry.take().is_some(), "no retry is scheduled")?;
        if let Some(by) = by {
            // A person who retries has probably removed the cause.
            self.retries = 0;
            self.begun = WorkOrigin {
                by: Some(by.to_owned()),
                is_again: true,
                ..WorkOrigin::default()
            };
        }
        // A notice is one report, so the retry requests it under a new id.
        if matches!(self.input, RunInput::Notice(..)) {
            self.reports.clear();
            self.unsent.clear();
        }
        self.works.values_mut().for_each(RepositoryWork::retried);
        if self.last_turn().is_some_and(|turn| turn.failed.is_some()) {
            self.drop_turn();
        }
        self.refused = None;
        for report in &mut self.reports {
            let has_failed = matches!(report.outcome, Some(OutboundOutcome::Failed { .. }));
            // The ticket reports that a user resumed the work.
            let is_said_anew = by.is_some() && matches!(report.request, OutboundAction::WorkStarted(_));
            report.is_void |= has_failed || is_said_anew;
        }
        let void: Vec<OutboundId> = self
            .reports
            .iter()
            .filter(|report| report.is_void)
            .map(|report| report.id.clone())
            .collect();
        if let Some(call) = self.open_call_mut() {
            call.report = call.report.take().filter(|id| !void.contains(id));
        }
        Ok(())
    }
}
