//! Complete checks count once no further check may start.

use std::time::Duration;

use domain::{Job, Timestamp};
use github::CheckConclusion::{Failure, Success};

use super::{
    EventKind, EventVerdict,
    checks::ChecksChanged,
    tests::{
        build_checked_facts, build_commit_check, build_commit_id, build_pull_record, build_repository_name,
        check_run, decide_event, expect_nothing, expect_trigger, pull_request,
    },
};
use crate::facts::{ChecksPatience, DecisionFacts};

/// The checks of the tables end at second 1.
fn build_settle_facts(second: i64, required: &[&str]) -> DecisionFacts {
    let mut facts = build_checked_facts(
        pull_request(),
        vec![
            build_commit_check(1, Some(Success)),
            build_commit_check(2, Some(Failure)),
        ],
    );
    facts.now = Timestamp::from_unix_ms(second * 1_000);
    facts.patience = ChecksPatience {
        settle: Duration::from_secs(30),
        required: Duration::from_secs(600),
        pending: Duration::from_secs(7_200),
    };
    let required = required.iter().map(|name| (*name).to_owned()).collect();
    facts.put_required(build_repository_name(), "main".to_owned(), required);
    facts
}

fn build_channel_events() -> [Box<dyn EventKind>; 2] {
    let delivered = check_run().remove(0);
    [
        delivered,
        Box::new(ChecksChanged::from_poll(&build_pull_record(), build_commit_id())),
    ]
}

#[test]
fn checks_count_after_settle_time() {
    for event in build_channel_events() {
        let wait = |second| match decide_event(&*event, &build_settle_facts(second, &[])) {
            EventVerdict::Unsettled { after, .. } => Some(after.as_secs()),
            EventVerdict::Follows(follows) => {
                assert_eq!(follows.reason.job(), Some(Job::FixCi));
                None
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(wait(1), Some(30));
        assert_eq!(wait(30), Some(1));
        assert_eq!(wait(31), None);
        assert_eq!(wait(0), Some(30), "a clock that is a little ahead");
        assert_eq!(wait(-60), None, "a clock that is wrong");
    }
}

#[test]
fn wrong_clock_of_one_check_hides_no_other() {
    for event in build_channel_events() {
        let facts_at = |second, required: &[&str]| {
            let mut ahead = build_commit_check(1, Some(Success));
            ahead.completed_at = Some(Timestamp::from_unix_ms(3_600_000));
            let checks = vec![ahead, build_commit_check(2, Some(Failure))];
            let mut facts = build_checked_facts(pull_request(), checks);
            let settled = build_settle_facts(second, &[]);
            (facts.now, facts.patience) = (settled.now, settled.patience);
            let required = required.iter().map(|name| (*name).to_owned()).collect();
            facts.put_required(build_repository_name(), "main".to_owned(), required);
            facts
        };
        let settling = decide_event(&*event, &facts_at(1, &[]));
        assert!(matches!(settling, EventVerdict::Unsettled { .. }), "{settling:?}");
        let late = expect_trigger(&*event, &facts_at(601, &["deploy"]));
        assert_eq!(late.reason.job(), Some(Job::FixCi), "not after the wrong clock");
    }
}

#[test]
fn unstarted_required_check_delays_until_limit() {
    for event in build_channel_events() {
        let missing = expect_nothing(&*event, &build_settle_facts(40, &["test 1", "deploy"]));
        assert_eq!(missing, "the required check \"deploy\" has not reported");
        assert!(
            expect_trigger(&*event, &build_settle_facts(40, &["test 2"]))
                .reason
                .job()
                .is_some()
        );
        let late = build_settle_facts(601, &["deploy"]);
        assert_eq!(
            expect_trigger(&*event, &late).reason.job(),
            Some(Job::FixCi),
            "a failure is repaired without the missing check"
        );
    }
}

#[test]
fn green_without_required_check_never_counts() {
    for event in build_channel_events() {
        for second in [40, 601, 100_000] {
            let settled = build_settle_facts(second, &[]);
            let green = vec![build_commit_check(1, Some(Success))];
            let mut facts = build_checked_facts(pull_request(), green);
            (facts.now, facts.patience) = (settled.now, settled.patience);
            facts.put_required(
                build_repository_name(),
                "main".to_owned(),
                vec!["deploy".to_owned()],
            );
            let missing = expect_nothing(&*event, &facts);
            assert_eq!(missing, "the required check \"deploy\" has not reported");
        }
    }
}

#[test]
fn zero_settle_time_reads_nothing() {
    for event in build_channel_events() {
        let mut facts = build_checked_facts(pull_request(), vec![build_commit_check(1, Some(Success))]);
        facts.now = Timestamp::from_unix_ms(1_000);
        assert_eq!(expect_trigger(&*event, &facts).reason.job(), Some(Job::MarkReady));
    }
}
