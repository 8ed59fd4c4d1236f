//! Result of handling an event, and its effect on the delivery.

use std::time::Duration;

use domain::{PullRequestEvent, TicketKey, Trigger, TriggerReason, cause::format_error_chain};
use queue::{AppendOutcome, DeliveryDisposition};

use crate::{facts::tracker_reader::ReadError, webhook::payload};

// Longest wait of an event for the record of its pull request, in milliseconds. The webhook may overtake
// the reporter's write.
const EARLY_LIMIT_MS: i64 = 10 * 60 * 1000;
const EARLY_PAUSE: Duration = Duration::from_secs(2);
const RETRY_FIRST_MS: i64 = 5_000;
const RETRY_MOST_MS: i64 = 300_000;

/// Result of handling an event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum EventOutcome {
    /// Appended to the ticket's log, or found there by the same key.
    Appended {
        trigger: Box<Trigger>,
        appended: AppendOutcome,
    },
    /// Known in the ticket's log, at this sequence.
    Known(u64),
    /// No check has reported on the commit yet.
    NoChecks,
    /// Every check passed.
    NothingFailed,
    /// Ignored, for this reason.
    Nothing(String),
}

impl EventOutcome {
    /// Sequence in the ticket's log; absent when nothing was appended.
    pub(crate) const fn sequence(&self) -> Option<u64> {
        match self {
            Self::Appended {
                appended: AppendOutcome::New(sequence) | AppendOutcome::Known(sequence),
                ..
            }
            | Self::Known(sequence) => Some(*sequence),
            Self::NoChecks | Self::NothingFailed | Self::Nothing(_) => None,
        }
    }

    /// True when the checks of a head have ended for good. Rerun jobs will end again.
    pub(crate) fn is_settled(&self) -> bool {
        match self {
            Self::Appended { trigger, .. } => !matches!(
                &trigger.reason,
                TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(checks)) if !checks.rerun.is_empty()
            ),
            Self::Known(_) => true,
            Self::NoChecks | Self::NothingFailed | Self::Nothing(_) => false,
        }
    }

    /// Reason why nothing was appended.
    pub(crate) fn why_nothing(&self) -> &str {
        match self {
            Self::Nothing(why) => why,
            Self::NoChecks => "no check has reported",
            Self::NothingFailed => "no failed checks",
            Self::Appended { .. } | Self::Known(_) => "it is known already",
        }
    }

    /// Logs the outcome for the operator.
    pub(crate) fn log(&self) {
        match self {
            Self::Appended { trigger, appended } => {
                tracing::info!(ticket = %trigger.ticket, key = trigger.key.as_str(), ?appended, "trigger appended");
            }
            Self::Known(sequence) => tracing::debug!(sequence, "known already"),
            Self::NoChecks => tracing::debug!("no check reports yet"),
            Self::NothingFailed => tracing::debug!("no check failed"),
            Self::Nothing(why) => tracing::debug!(why, "nothing follows"),
        }
    }
}

/// Reason why an event has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EventFailure {
    /// Temporary failure that is independent of the event; `after` is the pause that the service asked for.
    #[error("{detail}")]
    Later { detail: String, after: Option<Duration> },
    /// A service refuses a read for the event, and an operator may be able to fix that.
    #[error("{0}")]
    Refused(String),
    /// The record that the event needs is expected soon, or the event does not concern Journeyman.
    #[error("{0}")]
    Early(String),
    /// The state may still change until then.
    #[error("{why}")]
    Unsettled { why: String, after: Duration },
    /// The object does not exist.
    #[error("{0}")]
    Unknown(String),
    /// The issue or pull request is at another place.
    #[error("{0}")]
    Transferred(Box<github::TransferredThread>),
    /// The issue of the ticket is deleted.
    #[error("{0} is deleted")]
    Deleted(Box<TicketKey>),
    /// Permanent failure.
    #[error("{0}")]
    Never(String),
}

impl EventFailure {
    /// True when a service asks for a pause.
    pub(crate) const fn is_limit(&self) -> bool {
        matches!(self, Self::Later { after: Some(_), .. })
    }

    /// True when the failure says nothing about the event: a service or the store cannot be reached, or asks for a pause.
    pub(crate) const fn is_of_outside(&self) -> bool {
        matches!(self, Self::Later { .. })
    }

    /// True when nothing failed but the result is not final yet. There is no limit for it.
    pub(crate) const fn is_unsettled(&self) -> bool {
        matches!(self, Self::Unsettled { .. })
    }

    /// True when a retry may succeed.
    pub(crate) const fn may_pass(&self) -> bool {
        match self {
            Self::Later { .. } | Self::Refused(_) | Self::Early(_) | Self::Unsettled { .. } => true,
            Self::Unknown(_) | Self::Transferred(_) | Self::Deleted(_) | Self::Never(_) => false,
        }
    }
}

impl From<ReadError> for EventFailure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NotFound(detail) | ReadError::Deleted(detail) => Self::Unknown(detail),
            ReadError::Unreadable(detail) => Self::Never(detail),
            ReadError::Refused(detail) => Self::Refused(detail),
            ReadError::Transferred(moved) => Self::Transferred(moved),
            ReadError::Later { detail, after } => Self::Later { detail, after },
        }
    }
}

impl From<queue::Error> for EventFailure {
    fn from(error: queue::Error) -> Self {
        match error {
            // All of these pass, some only after an operator has acted. The delivery stays in the queue
            // meanwhile.
            queue::Error::Unavailable { .. }
            | queue::Error::Full { .. }
            | queue::Error::Conflict
            | queue::Error::Newer { .. }
            | queue::Error::Topology { .. } => Self::Later {
                detail: format_error_chain(&error),
                after: None,
            },
            queue::Error::Corrupt { .. } => Self::Never(format_error_chain(&error)),
        }
    }
}

impl From<payload::UnreadablePayload> for EventFailure {
    fn from(error: payload::UnreadablePayload) -> Self {
        Self::Never(error.to_string())
    }
}

/// Effect of a result on its delivery. A retry waits half of the delivery's age, within limits, so that
/// pauses grow without a counter.
pub(crate) fn choose_disposition(result: Result<(), EventFailure>, age_ms: i64) -> DeliveryDisposition {
    match result {
        Ok(()) => DeliveryDisposition::Done,
        Err(
            EventFailure::Later {
                after: Some(after), ..
            }
            | EventFailure::Unsettled { after, .. },
        ) => DeliveryDisposition::Retry { after },
        Err(EventFailure::Later { after: None, .. } | EventFailure::Refused(_)) => {
            let pause = (age_ms / 2).clamp(RETRY_FIRST_MS, RETRY_MOST_MS);
            DeliveryDisposition::Retry {
                after: Duration::from_millis(pause.unsigned_abs()),
            }
        }
        // After the limit no record is expected: a dead letter shows the event to operators.
        Err(EventFailure::Early(_)) if age_ms < EARLY_LIMIT_MS => {
            DeliveryDisposition::Retry { after: EARLY_PAUSE }
        }
        Err(EventFailure::Early(reason) | EventFailure::Unknown(reason) | EventFailure::Never(reason)) => {
            DeliveryDisposition::Reject { reason }
        }
        Err(failure @ (EventFailure::Transferred(_) | EventFailure::Deleted(_))) => {
            DeliveryDisposition::Reject {
                reason: failure.to_string(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose_failure_disposition(result: EventFailure, age_ms: i64) -> DeliveryDisposition {
        choose_disposition(Err(result), age_ms)
    }

    #[test]
    fn outage_or_refusal_retries_with_growing_pauses() {
        let outage = EventFailure::Later {
            detail: "502".to_owned(),
            after: None,
        };
        let retry = |seconds| DeliveryDisposition::Retry {
            after: Duration::from_secs(seconds),
        };
        for failure in [outage, EventFailure::Refused("403".to_owned())] {
            let pauses = [0, 20_000, 86_400_000].map(|age| choose_failure_disposition(failure.clone(), age));
            assert_eq!(pauses, [retry(5), retry(10), retry(300)], "{failure:?}");
        }
    }

    #[test]
    fn early_event_waits_ten_minutes() {
        let early = || EventFailure::Early("no pull request".to_owned());
        assert_eq!(
            choose_failure_disposition(early(), 599_000),
            DeliveryDisposition::Retry { after: EARLY_PAUSE }
        );
        assert_eq!(
            choose_failure_disposition(early(), 600_000),
            DeliveryDisposition::Reject {
                reason: "no pull request".to_owned()
            }
        );
    }

    #[test]
    fn event_of_moved_thread_is_rejected_once() {
        let moved = github::TransferredThread {
            repository: "acme/shop".parse().unwrap(),
            number: 2,
            to: "acme/other#220".to_owned(),
        };
        let failure = EventFailure::from(ReadError::from(github::Error::Transferred(Box::new(moved))));
        assert!(!failure.may_pass());
        assert_eq!(
            choose_failure_disposition(failure, 0),
            DeliveryDisposition::Reject {
                reason: "acme/shop#2 moved to acme/other#220".to_owned()
            }
        );
    }

    #[test]
    fn unknown_or_unreadable_event_is_rejected() {
        for failure in [
            EventFailure::Unknown("gone".to_owned()),
            EventFailure::Never("gone".to_owned()),
        ] {
            assert_eq!(
                choose_failure_disposition(failure, 0),
                DeliveryDisposition::Reject {
                    reason: "gone".to_owned()
                }
            );
        }
    }
}
