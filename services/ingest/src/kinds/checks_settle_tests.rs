//! Complete checks count once no further check may start.

use std::time::Duration;

use domain::{Job, Timestamp};
use github::CheckConclusion::{Failure, Success};

use super::{
    EventKind, EventVerdict,
    checks::ChecksChanged,
    tests::{check, check_run, checked, commit, decided, follows, nothing, pull_request, record, repository},
};
use crate::facts::{ChecksPatience, DecisionFacts};

/// The checks of the tables end at second 1.
fn at(second: i64, required: &[&str]) -> DecisionFacts {
    let mut facts = checked(
        pull_request(),
        vec![check(1, Some(Success)), check(2, Some(Failure))],
    );
    facts.now = Timestamp::from_unix_ms(second * 1_000);
    facts.patience = ChecksPatience {
        settle: Duration::from_secs(30),
        required: Duration::from_secs(600),
    };
    let required = required.iter().map(|name| (*name).to_owned()).collect();
    facts.put_required(repository(), "main".to_owned(), required);
    facts
}

fn doors() -> [Box<dyn EventKind>; 2] {
    let told = check_run().remove(0);
    [told, Box::new(ChecksChanged::from_poll(&record(), commit()))]
}

#[test]
fn checks_count_after_settle_time() {
    for event in doors() {
        let wait = |second| match decided(&*event, &at(second, &[])) {
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
fn unstarted_required_check_delays_until_limit() {
    for event in doors() {
        let missing = nothing(&*event, &at(40, &["test 1", "deploy"]));
        assert_eq!(missing, "the required check \"deploy\" has not reported");
        assert!(follows(&*event, &at(40, &["test 2"])).reason.job().is_some());
        assert!(follows(&*event, &at(601, &["deploy"])).reason.job().is_some());
    }
}

#[test]
fn zero_settle_time_reads_nothing() {
    for event in doors() {
        let mut facts = checked(pull_request(), vec![check(1, Some(Success))]);
        facts.now = Timestamp::from_unix_ms(1_000);
        assert_eq!(follows(&*event, &facts).reason.job(), Some(Job::MarkReady));
    }
}
