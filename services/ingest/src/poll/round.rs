//! One round of a poll: whether findings were read, and which of the failed ones are given up.

use domain::{TicketKey, Timestamp};
use queue::AppendOutcome;

use crate::{
    poll::memory::{FailureCause, PollMemory},
    router::outcome::{EventFailure, EventOutcome},
};

// Number of temporary failures, without a single finding that was read, after which the rest waits for the next round:
// the service itself probably fails.
const ENOUGH: usize = 5;

/// Finding that could not be read.
#[derive(Debug)]
pub(crate) struct FailedFinding {
    /// Key of the finding in [`PollMemory`].
    pub(crate) finding: String,
    pub(crate) ticket: Option<TicketKey>,
    pub(crate) at: Timestamp,
    pub(crate) failure: EventFailure,
}

/// Findings of one polling round.
// The round decides whether others were read, because the answer is only known at its end: no caller can replace it by
// a guess.
#[derive(Debug, Default)]
pub(crate) struct PollRound {
    recovered: u64,
    has_read: bool,
    failed: Vec<FailedFinding>,
    /// Time of the oldest finding that waits for the next round unread.
    postponed: Option<Timestamp>,
}

/// Failed findings of a round.
#[derive(Debug, Default)]
pub(crate) struct RoundFailures {
    /// Findings that the next round reads again.
    pub(crate) retried: Vec<FailedFinding>,
    /// Findings that are not read again, because they failed too often or for good.
    pub(crate) given_up: Vec<FailedFinding>,
    /// Time of the oldest finding that the next round has to list again. The poll mark must not pass it.
    pub(crate) waits_from: Option<Timestamp>,
}

impl PollRound {
    /// Counts a finding that was read in this round, with the events whose webhook was missed. A finding that an earlier
    /// round handled is not read and proves nothing about the service.
    pub(crate) const fn add_read(&mut self, recovered: u64) {
        self.recovered += recovered;
        self.has_read = true;
    }

    /// Counts a finding that was handled without a read outside, with the events whose webhook was missed. It proves
    /// nothing about the service.
    pub(crate) const fn add_unread(&mut self, recovered: u64) {
        self.recovered += recovered;
    }

    /// Keeps a finding that could not be read.
    pub(crate) fn add_failure(&mut self, failed: FailedFinding) {
        self.failed.push(failed);
    }

    /// Leaves a finding to the next round.
    pub(crate) fn postpone(&mut self, at: Timestamp) {
        self.postponed = Some(find_earlier(self.postponed, at));
    }

    /// True when the service itself probably fails. A permanent failure is the fault of its finding.
    pub(crate) fn is_outage(&self) -> bool {
        let failing = |failed: &&FailedFinding| {
            matches!(
                failed.failure,
                EventFailure::Later { .. } | EventFailure::Refused(_)
            )
        };
        !self.has_answer() && self.failed.iter().filter(failing).count() >= ENOUGH
    }

    /// True when the service answered for at least one finding. An early finding was read, too.
    fn has_answer(&self) -> bool {
        let is_early = |failed: &FailedFinding| matches!(failed.failure, EventFailure::Early(_));
        self.has_read || self.failed.iter().any(is_early)
    }

    /// Number of events whose webhook was missed.
    pub(crate) const fn recovered(&self) -> u64 {
        self.recovered
    }

    /// Ends the round: counts each failure and divides the failed findings.
    pub(crate) fn settle(self, memory: &mut PollMemory) -> RoundFailures {
        let has_answer = self.has_answer();
        let mut failures = RoundFailures {
            waits_from: self.postponed,
            ..RoundFailures::default()
        };
        for failed in self.failed {
            // An unsettled finding has not failed, so it is retried without a limit and not counted.
            let is_retried = if failed.failure.is_unsettled() {
                true
            } else if failed.failure.may_pass() {
                memory.count_failure(&failed.finding, find_cause(&failed.failure, has_answer));
                !memory.is_hopeless(&failed.finding)
            } else {
                false
            };
            if is_retried {
                failures.waits_from = Some(find_earlier(failures.waits_from, failed.at));
                failures.retried.push(failed);
            } else {
                failures.given_up.push(failed);
            }
        }
        failures
    }
}

/// Cause of a failure in a round in which the outside answered for another finding or for none.
const fn find_cause(failure: &EventFailure, has_answer: bool) -> FailureCause {
    match (failure.is_of_outside(), has_answer) {
        (true, false) => FailureCause::Outage,
        (true, true) => FailureCause::PartialOutage,
        (false, false) => FailureCause::Refusal,
        (false, true) => FailureCause::Finding,
    }
}

fn find_earlier(known: Option<Timestamp>, at: Timestamp) -> Timestamp {
    known.map_or(at, |known| known.min(at))
}

/// Number of triggers that are new in their ticket's log. Each is logged.
pub(crate) fn count_new_triggers(outcomes: &[EventOutcome]) -> u64 {
    let new = outcomes.iter().filter_map(|outcome| match outcome {
        EventOutcome::Appended {
            trigger,
            appended: AppendOutcome::New(_),
        } => Some(trigger),
        EventOutcome::Appended { .. }
        | EventOutcome::Known(_)
        | EventOutcome::NoChecks
        | EventOutcome::NothingFailed
        | EventOutcome::Nothing(_) => None,
    });
    new.inspect(
        |trigger| tracing::info!(ticket = %trigger.ticket, key = trigger.key.as_str(), "found by poll"),
    )
    .count() as u64
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn build_outage() -> EventFailure {
        EventFailure::Later {
            detail: "502".to_owned(),
            after: None,
        }
    }

    fn build_refusal() -> EventFailure {
        EventFailure::Refused("422".to_owned())
    }

    fn build_failed(finding: &str, second: i64, failure: EventFailure) -> FailedFinding {
        FailedFinding {
            finding: finding.to_owned(),
            ticket: None,
            at: Timestamp::from_unix_ms(second * 1_000),
            failure,
        }
    }

    /// Number of the round that gives up a finding which fails in each; absent when 3,000 rounds do not.
    fn count_rounds(failure: &EventFailure, others: fn(&mut PollRound)) -> Option<usize> {
        let mut memory = PollMemory::default();
        (1..=3_000).find(|_| {
            let mut round = PollRound::default();
            round.add_failure(build_failed("a", 1, failure.clone()));
            // After the failure: the order of the findings must not matter.
            others(&mut round);
            let failures = round.settle(&mut memory);
            !failures.given_up.is_empty()
        })
    }

    #[test]
    fn refusal_among_read_findings_is_given_up_sooner() {
        assert_eq!(count_rounds(&build_refusal(), |round| round.add_read(1)), Some(5));
        assert_eq!(count_rounds(&build_refusal(), |round| round.add_read(0)), Some(5));
        assert_eq!(count_rounds(&build_refusal(), |_| {}), Some(30));
        let two = |round: &mut PollRound| round.add_failure(build_failed("b", 2, build_refusal()));
        assert_eq!(count_rounds(&build_refusal(), two), Some(30));
    }

    #[test]
    fn outage_of_all_findings_gives_up_none() {
        let limit = EventFailure::Later {
            detail: "429".to_owned(),
            after: Some(Duration::from_secs(60)),
        };
        let store = EventFailure::from(queue::Error::Conflict);
        for failure in [build_outage(), limit, store] {
            assert_eq!(count_rounds(&failure, |_| {}), None, "{failure:?}");
            let two = |round: &mut PollRound| round.add_failure(build_failed("b", 2, build_outage()));
            assert_eq!(count_rounds(&failure, two), None, "{failure:?}");
        }
    }

    #[test]
    fn finding_without_read_proves_no_answer() {
        assert_eq!(count_rounds(&build_outage(), |round| round.add_unread(1)), None);
        assert_eq!(
            count_rounds(&build_refusal(), |round| round.add_unread(0)),
            Some(30)
        );
    }

    #[test]
    fn outage_of_one_finding_is_given_up_late() {
        assert_eq!(
            count_rounds(&build_outage(), |round| round.add_read(0)),
            Some(1_440)
        );
    }

    #[test]
    fn rounds_of_outage_leave_patience_with_finding() {
        let mut memory = PollMemory::default();
        let mut settle = |failure: EventFailure, is_answered: bool| {
            let mut round = PollRound::default();
            if is_answered {
                round.add_read(0);
            }
            round.add_failure(build_failed("a", 1, failure));
            round.settle(&mut memory).given_up.len()
        };
        for _ in 0..100 {
            assert_eq!(settle(build_outage(), false), 0);
        }
        let rounds = (1..).find(|_| settle(build_refusal(), true) > 0);
        assert_eq!(rounds, Some(5));
    }

    #[test]
    fn unsettled_finding_is_never_given_up() {
        let unsettled = EventFailure::Unsettled {
            why: "checks may start".to_owned(),
            after: Duration::from_secs(1),
        };
        assert_eq!(count_rounds(&unsettled, |round| round.add_read(1)), None);
        let mut memory = PollMemory::default();
        for _ in 0..20 {
            let mut round = PollRound::default();
            round.add_read(0);
            round.add_failure(build_failed("a", 1, unsettled.clone()));
            round.settle(&mut memory);
        }
        let mut round = PollRound::default();
        round.add_read(0);
        round.add_failure(build_failed("a", 1, build_refusal()));
        assert!(
            round.settle(&mut memory).given_up.is_empty(),
            "it fails for the first time"
        );
    }

    #[test]
    fn permanent_failure_is_given_up_at_once() {
        let never = EventFailure::Never("too deep".to_owned());
        assert_eq!(count_rounds(&never, |_| {}), Some(1));
    }

    #[test]
    fn poll_mark_waits_for_oldest_unread_finding() {
        let mut memory = PollMemory::default();
        let mut round = PollRound::default();
        for second in [8, 6, 7] {
            round.add_failure(build_failed(&second.to_string(), second, build_outage()));
        }
        round.add_failure(build_failed("gone", 1, EventFailure::Never("gone".to_owned())));
        let failures = round.settle(&mut memory);
        assert_eq!(failures.waits_from, Some(Timestamp::from_unix_ms(6_000)));
        assert_eq!((failures.retried.len(), failures.given_up.len()), (3, 1));

        let mut settle_refusals = || {
            let mut round = PollRound::default();
            for second in 1..=5 {
                round.add_failure(build_failed(
                    &format!("refused {second}"),
                    second,
                    build_refusal(),
                ));
            }
            assert!(round.is_outage());
            round.postpone(Timestamp::from_unix_ms(9_000));
            round.settle(&mut memory)
        };
        for _ in 1..30 {
            assert_eq!(settle_refusals().waits_from, Some(Timestamp::from_unix_ms(1_000)));
        }
        let last = settle_refusals();
        // The failed ones are given up, and the mark still waits for the finding that no round has read.
        assert_eq!(
            (last.given_up.len(), last.waits_from),
            (5, Some(Timestamp::from_unix_ms(9_000)))
        );
    }

    #[test]
    fn outage_needs_temporary_failures_alone() {
        let mut round = PollRound::default();
        for number in 0..9 {
            let never = EventFailure::Never("too deep".to_owned());
            round.add_failure(build_failed(&number.to_string(), 1, never));
        }
        assert!(!round.is_outage(), "each failure is the fault of its finding");
        for number in 10..15 {
            round.add_failure(build_failed(&number.to_string(), 1, build_outage()));
        }
        assert!(round.is_outage());
        round.add_read(0);
        assert!(!round.is_outage(), "the service answers");
    }

    #[test]
    fn early_finding_shows_service_answers() {
        let early = || EventFailure::Early("no record yet".to_owned());
        let mut round = PollRound::default();
        for number in 0..9 {
            round.add_failure(build_failed(&number.to_string(), 1, early()));
        }
        assert!(!round.is_outage());
        assert_eq!(count_rounds(&early(), |_| {}), Some(5));
    }
}
