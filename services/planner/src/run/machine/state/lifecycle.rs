//! Course of a run: its beginning, its waits and its end.

use domain::{OutboundAction, StopReason, Timestamp, WaitCondition, report::WorkOrigin};

use super::{ApplyResult, require_legal};

/// Course of a run: its beginning, its waits and its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct LifecycleState {
    /// Requester of the work, or of its continuation.
    begun: WorkOrigin,
    /// Number of foreign pushes to the branch while the run worked towards its own push.
    moves: u32,
    /// Retries since the last success or reset.
    retries: u32,
    /// Current wait for a retry.
    retry: Option<RetryWait>,
    parked: Option<WaitCondition>,
    /// User who requested a stop.
    stop: Option<String>,
    finished: Option<StopReason>,
    /// Stream sequence of the last trigger that ended a wait or moved the head; 0 before.
    last_trigger: u64,
}

/// Wait between two attempts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RetryWait {
    pub(crate) attempt: u32,
    pub(crate) most: u32,
    pub(crate) due: Timestamp,
    pub(crate) reason: StopReason,
    /// True if the ticket already has a notice about it.
    pub(crate) is_reported: bool,
}

/// Returns the FNV-1a hash: uniform enough for jitter, and stable over releases.
pub(crate) fn hash_text(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl LifecycleState {
    pub(super) fn new(begun: WorkOrigin) -> Self {
        Self {
            begun,
            ..Self::default()
        }
    }

    /// Restarts the work after a foreign push. The run stays the same, with its requester, its failures in
    /// a row and its end; a wait is over.
    pub(super) fn reset(&mut self) {
        *self = Self {
            begun: std::mem::take(&mut self.begun),
            moves: self.moves + 1,
            retries: self.retries,
            stop: self.stop.take(),
            finished: self.finished.take(),
            last_trigger: self.last_trigger,
            ..Self::default()
        };
    }

    /// Returns the requester of the work, or of its continuation.
    pub(crate) const fn begun(&self) -> &WorkOrigin {
        &self.begun
    }

    /// Returns the number of restarts after foreign pushes.
    pub(crate) const fn moves(&self) -> u32 {
        self.moves
    }

    /// Returns the number of retries since the last success or reset.
    pub(crate) const fn retries(&self) -> u32 {
        self.retries
    }

    /// Returns the current wait for a retry.
    pub(crate) const fn retry(&self) -> Option<&RetryWait> {
        self.retry.as_ref()
    }

    /// Returns the event that a parked run waits for.
    pub(crate) const fn parked(&self) -> Option<WaitCondition> {
        self.parked
    }

    /// Returns the user who requested a stop.
    pub(crate) fn stop_requester(&self) -> Option<&str> {
        self.stop.as_deref()
    }

    /// Returns the reason of the end, once the run is finished.
    pub(crate) const fn finished(&self) -> Option<&StopReason> {
        self.finished.as_ref()
    }

    /// Returns true if the run has not folded this trigger. A repeated fold passes the facts of earlier
    /// triggers again, which name an earlier wait or an earlier head.
    pub(crate) fn is_new_trigger(&self, sequence: Option<u64>) -> bool {
        sequence.is_none_or(|sequence| sequence > self.last_trigger)
    }

    pub(super) fn trigger_folded(&mut self, sequence: Option<u64>) {
        self.last_trigger = self.last_trigger.max(sequence.unwrap_or_default());
    }

    /// Ends a wait.
    pub(super) const fn resume(&mut self) {
        self.parked = None;
    }

    pub(super) const fn park(&mut self, waits_for: WaitCondition) {
        self.parked = Some(waits_for);
    }

    pub(super) fn report_requested(&mut self, request: &OutboundAction) {
        if let (OutboundAction::RetryScheduled(_), Some(retry)) = (request, &mut self.retry) {
            retry.is_reported = true;
        }
    }

    /// Counts a success: retries are failures in a row.
    pub(super) const fn succeeded(&mut self) {
        self.retries = 0;
    }

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
            is_reported: false,
        });
        Ok(())
    }

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
        Ok(())
    }

    pub(super) fn stop_requested(&mut self, by: &str) {
        self.stop.get_or_insert_with(|| by.to_owned());
    }

    pub(super) fn finish(&mut self, reason: &StopReason) {
        self.finished = Some(reason.clone());
    }
}
