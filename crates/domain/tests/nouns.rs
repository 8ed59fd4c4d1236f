//! The promises of the nouns: one spelling per id, fences that only grow, rows that forget nothing that is pending.

use std::time::Duration;

use domain::{
    CommitId, FenceStamp, Job, ReportFence, RepositoryName, Row, RunFence, RunId, RunStatus, StopReason,
    TicketKey, Timestamp,
};
use proptest::prelude::*;

fn ticket_keys() -> impl Strategy<Value = TicketKey> {
    prop_oneof![
        ("[A-Z][A-Z0-9_]{0,9}", 1..u64::MAX)
            .prop_map(|(project, number)| TicketKey::Jira { project, number }),
        ("[A-Za-z0-9_.-]{1,20}", "[A-Za-z0-9_.-]{1,20}", 1..u64::MAX).prop_filter_map(
            "legal repository",
            |(owner, name, number)| {
                Some(TicketKey::GitHub {
                    repository: RepositoryName::new(&owner, &name).ok()?,
                    number,
                })
            }
        ),
    ]
}

proptest! {
    #[test]
    fn ticket_keys_decode_back_exactly(key in ticket_keys()) {
        prop_assert_eq!(key.to_string().parse::<TicketKey>().unwrap(), key.clone());
        let json = serde_json::to_string(&key).unwrap();
        prop_assert_eq!(serde_json::from_str::<TicketKey>(&json).unwrap(), key);
    }

    #[test]
    fn run_ids_decode_back_exactly(key in ticket_keys(), sequence: u64) {
        let run = RunId::new(key, sequence);
        prop_assert_eq!(run.to_string().parse::<RunId>().unwrap(), run);
    }

    #[test]
    fn any_text_is_parsed_without_a_panic(text: String) {
        let _ = text.parse::<TicketKey>();
        let _ = text.parse::<RunId>();
        let _ = text.parse::<CommitId>();
        let _ = text.parse::<RepositoryName>();
        let _ = Timestamp::parse(&text);
    }

    #[test]
    fn fences_compare_by_epoch_then_sequence_then_delivery(a: (u64, u64, u64), b: (u64, u64, u64)) {
        let fence = |(epoch, sequence, delivered)| RunFence::new(epoch, sequence, delivered);
        prop_assert_eq!(fence(a).cmp(&fence(b)), a.cmp(&b));
    }
}

#[test]
fn a_key_has_one_spelling() {
    for text in [
        "jira:ENG-012",
        "jira:eng-1",
        "jira:ENG-0",
        "ENG-1",
        "jira:-1",
        "github:acme#7",
        "github:a/b#07",
        "jira:ENG-+1",
    ] {
        assert!(text.parse::<TicketKey>().is_err(), "{text}");
    }
    assert_eq!(
        "github:acme/shop#7".parse::<TicketKey>().unwrap().short(),
        "acme/shop#7"
    );
}

#[test]
fn repositories_cannot_climb_out_of_a_folder() {
    for (owner, name) in [
        ("..", "x"),
        ("x", ".."),
        ("a/b", "c"),
        ("", "x"),
        ("x", "a b"),
        ("x", "a\n"),
    ] {
        assert!(RepositoryName::new(owner, name).is_err(), "{owner}/{name}");
    }
}

#[test]
fn jira_timestamps_are_read() {
    let expected = Timestamp::parse("2026-11-21T10:00:00.123Z").unwrap();
    assert_eq!(Timestamp::parse("2026-11-21T12:00:00.123+0200"), Some(expected));
    assert_eq!(expected.to_string(), "2026-11-21T10:00:00.123Z");
}

#[test]
fn an_instant_plus_the_time_since_it_is_the_later_one_and_nothing_overflows() {
    let early = Timestamp::from_unix_ms(-5);
    let late = early.plus(Duration::from_millis(1_500));
    assert_eq!(late, Timestamp::from_unix_ms(1_495));
    assert_eq!(late.since(early), Duration::from_millis(1_500));
    assert_eq!(early.since(late), Duration::ZERO);
    let last = Timestamp::from_unix_ms(i64::MAX);
    assert_eq!(early.plus(Duration::MAX), last.plus_ms(-5));
    assert_eq!(last.plus(Duration::MAX), last);
    assert_eq!(
        last.since(Timestamp::from_unix_ms(i64::MIN)),
        Duration::from_millis(i64::MAX as u64)
    );
}

#[test]
fn run_and_report_fences_keep_their_parts() {
    let stamp = FenceStamp {
        epoch: 1,
        sequence: 2,
        delivered: 3,
    };
    assert_eq!(
        (RunFence::from(stamp).stamp(), ReportFence::from(stamp).stamp()),
        (stamp, stamp)
    );
    assert_eq!(RunFence::new(1, 2, 3).to_string(), "1.2.3");
}

#[test]
fn a_trigger_opens_its_run_once_and_leaves_pending_only_at_the_end() {
    let ticket = TicketKey::jira("ENG-1").unwrap();
    let run = RunId::new(ticket, 7);
    let mut row = Row::default();
    row.open(7, run.clone(), Job::Implement, Timestamp::from_unix_ms(1));
    row.open(7, run.clone(), Job::Implement, Timestamp::from_unix_ms(2));
    assert_eq!((row.pending.len(), row.runs.len()), (1, 1));
    row.finish(&run, StopReason::Completed, Timestamp::from_unix_ms(3));
    assert!(row.pending.is_empty());
    assert!(matches!(
        row.run(&run).unwrap().status,
        RunStatus::Finished {
            reason: StopReason::Completed
        }
    ));
}

#[test]
fn only_the_last_finished_runs_stay_and_live_ones_always() {
    let ticket = TicketKey::jira("ENG-1").unwrap();
    let mut row = Row::default();
    row.open(
        1,
        RunId::new(ticket.clone(), 1),
        Job::Implement,
        Timestamp::default(),
    );
    for sequence in 2..40 {
        let run = RunId::new(ticket.clone(), sequence);
        row.open(sequence, run.clone(), Job::MarkReady, Timestamp::default());
        row.finish(&run, StopReason::Completed, Timestamp::default());
    }
    assert_eq!(row.runs.len(), Row::KEPT_RUNS + 1);
    assert_eq!(row.runs[0].id.sequence(), 1);
    assert_eq!(row.runs.last().unwrap().id.sequence(), 39);
}

#[test]
fn every_job_has_one_name() {
    for job in Job::ALL {
        assert_eq!(serde_json::to_value(job).unwrap(), job.as_str());
    }
}
