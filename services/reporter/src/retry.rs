//! Retry policy for reports that fail temporarily.

use std::time::Duration;

use domain::Timestamp;

// Waits between tries, in seconds; the last one repeats.
// The first three waits are below `IN_PLACE`, so that a short disturbance does not cost a handover.
const BACKOFF_S: [u64; 8] = [1, 2, 4, 15, 30, 60, 120, 300];
// Longest wait that keeps a slot. For a longer one, the ticket is handed back and delivered again.
const IN_PLACE: Duration = Duration::from_secs(5);
// Shortest and longest wait of a push whose branch is in a merge queue. A queue takes minutes to hours, and each try
// inspects the change again.
const SHORTEST_QUEUE_WAIT: Duration = Duration::from_secs(5);
const LONGEST_QUEUE_WAIT: Duration = Duration::from_secs(60);
// Time for which a report is tried when the service names no wait.
const PATIENCE: Duration = Duration::from_secs(30 * 60);
// Time for which a report is tried when the service names its waits. It exceeds the window of every rate limit.
const PATIENCE_WHEN_ASKED: Duration = Duration::from_secs(6 * 60 * 60);

/// Action after a try that failed temporarily.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetryAction {
    /// Wait, and keep the ticket.
    Wait(Duration),
    /// Hand the ticket back for this time.
    HandBack(Duration),
    /// Try a last time.
    GiveUp,
}

/// Temporary failure of a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailedTry {
    /// The service failed, or refused and may have named a wait.
    Try { asked: Option<Duration> },
    /// Nothing was sent: the account waits because of other requests. That is no failure of this report, so its
    /// backoff does not grow; otherwise one report's limit would delay all others by minutes.
    Untried { wait: Duration },
    /// Nothing was moved: the branch is in a merge queue. The wait grows with the time in the queue.
    Queued,
}

/// Decides the action after `tries` tries since `since`.
pub(crate) fn decide_retry(tries: u32, since: Timestamp, now: Timestamp, failed: FailedTry) -> RetryAction {
    let (wait, patience) = match failed {
        FailedTry::Try { asked: None } => (backoff_wait(tries), PATIENCE),
        FailedTry::Try { asked: Some(asked) } => (backoff_wait(tries).max(asked), PATIENCE_WHEN_ASKED),
        FailedTry::Untried { wait } => (wait, PATIENCE_WHEN_ASKED),
        FailedTry::Queued => {
            let as_before = now.since(since).clamp(SHORTEST_QUEUE_WAIT, LONGEST_QUEUE_WAIT);
            (as_before, PATIENCE_WHEN_ASKED)
        }
    };
    // The wait counts, too: a try after it would come too late.
    if now.since(since) + wait > patience {
        RetryAction::GiveUp
    } else if wait <= IN_PLACE {
        RetryAction::Wait(wait)
    } else {
        RetryAction::HandBack(wait)
    }
}

fn backoff_wait(tries: u32) -> Duration {
    let step = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    let wait = BACKOFF_S.get(step).or(BACKOFF_S.last()).copied().unwrap_or(1);
    Duration::from_secs(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide_retry_after(tries: u32, seconds: i64, asked: Option<u64>) -> RetryAction {
        let now = Timestamp::from_unix_ms(seconds * 1000);
        let asked = asked.map(Duration::from_secs);
        decide_retry(tries, Timestamp::default(), now, FailedTry::Try { asked })
    }

    #[test]
    fn held_back_report_waits_only_for_account() {
        let held_back = |tries, seconds: i64, wait| {
            let now = Timestamp::from_unix_ms(seconds * 1000);
            let wait = Duration::from_millis(wait);
            decide_retry(tries, Timestamp::default(), now, FailedTry::Untried { wait })
        };
        assert_eq!(
            held_back(7, 900, 300),
            RetryAction::Wait(Duration::from_millis(300))
        );
        assert_eq!(
            held_back(0, 0, 60_000),
            RetryAction::HandBack(Duration::from_secs(60))
        );
        assert_eq!(held_back(0, 6 * 60 * 60, 60_000), RetryAction::GiveUp);
    }

    #[test]
    fn queued_push_waits_as_long_as_before() {
        let queued = |seconds: i64| {
            let now = Timestamp::from_unix_ms(seconds * 1000);
            decide_retry(0, Timestamp::default(), now, FailedTry::Queued)
        };
        assert_eq!(queued(0), RetryAction::Wait(Duration::from_secs(5)));
        for (waited, seconds) in [(10, 10), (40, 40), (3_600, 60)] {
            let expected = RetryAction::HandBack(Duration::from_secs(seconds));
            assert_eq!(queued(waited), expected, "{waited}");
        }
        assert_eq!(queued(6 * 60 * 60), RetryAction::GiveUp);
    }

    #[test]
    fn only_short_waits_keep_the_ticket() {
        let wait = |seconds| RetryAction::Wait(Duration::from_secs(seconds));
        let hand_back = |seconds| RetryAction::HandBack(Duration::from_secs(seconds));
        assert_eq!(decide_retry_after(1, 0, None), wait(1));
        assert_eq!(decide_retry_after(3, 3, None), wait(4));
        assert_eq!(decide_retry_after(4, 7, None), hand_back(15));
        assert_eq!(decide_retry_after(40, 900, None), hand_back(300));
        assert_eq!(decide_retry_after(1, 0, Some(1)), wait(1));
        assert_eq!(decide_retry_after(1, 0, Some(60)), hand_back(60));
        assert_eq!(decide_retry_after(2, 60, Some(3_000)), hand_back(3_000));
    }

    #[test]
    fn patience_ends() {
        assert_eq!(decide_retry_after(12, 30 * 60, None), RetryAction::GiveUp);
        assert_eq!(
            decide_retry_after(12, 30 * 60, Some(60)),
            RetryAction::HandBack(Duration::from_secs(300))
        );
        assert_eq!(decide_retry_after(80, 6 * 60 * 60, Some(60)), RetryAction::GiveUp);
    }
}
