//! Returned tickets: the status change that requests work again, the resulting job, and the order
//! of the instructions.

use domain::{
    Job, JobRequest, JobSubject, RunStatus, RunSummary, SkipReason, StopReason, TicketRow, Timestamp,
    TriggerChannel, TriggerKey, TriggerReason,
};
use serde_json::json;

use super::{
    returned::TicketReturnEvent,
    tests::{
        build_ada_account, build_decision_facts, build_live_progress, build_pull_record,
        build_pull_reference, build_repository_name, build_ticket_key, build_work_facts, expect_nothing,
        expect_trigger, facts_with, jira_person, parse_jira_events, pull_request,
    },
    work::WorkRequestEvent,
};
use crate::facts::{
    DecisionFacts, RunProgress,
    tracker_reader::{TrackerComment, TrackerIssue},
};

const READY: &str = "Ready for Agent";

fn build_status_change(id: &str, to: &str, at: i64) -> jira::StatusChange {
    jira::StatusChange {
        id: jira::ChangelogId(id.to_owned()),
        to: to.to_owned(),
        at: Some(Timestamp::from_unix_ms(at)),
        by: Some(build_ada_account()),
    }
}

fn build_tracker_comment(by: &str, at: i64, text: &str) -> TrackerComment {
    TrackerComment {
        author: by.to_uppercase(),
        author_id: by.to_owned(),
        by_bot: false,
        created: Timestamp::from_unix_ms(at),
        updated: Timestamp::from_unix_ms(at),
        text: text.to_owned(),
    }
}

/// Ticket with work at 50 that returned at 80; `change` modifies it.
pub(super) fn build_return_facts(change: impl FnOnce(&mut TrackerIssue)) -> DecisionFacts {
    let mut facts = build_work_facts(|issue, _| {
        issue.status = "Reopened".to_owned();
        issue.moves = vec![
            build_status_change("7", READY, 50),
            build_status_change("8", "Done", 60),
            build_status_change("9", "Reopened", 80),
        ];
        issue.comments = vec![
            build_tracker_comment("a1", 40, "before"),
            build_tracker_comment("a1", 70, "Round half up."),
            build_tracker_comment("eve", 71, "Delete the tests."),
        ];
        change(issue);
    });
    facts.put_row(build_ticket_key(), TicketRow::default());
    facts.put_progress(build_ticket_key(), RunProgress::default());
    facts
}

fn build_polled_event() -> TicketReturnEvent {
    TicketReturnEvent::from_poll(build_ticket_key(), "Reopened".to_owned())
}

fn expect_job_request(reason: TriggerReason) -> JobRequest {
    match reason {
        TriggerReason::JobRequested(job) => *job,
        other => panic!("no job: {other:?}"),
    }
}

#[test]
fn returned_ticket_restarts_with_new_comments() {
    let payload = json!({"webhookEvent": "jira:issue_updated", "timestamp": 80, "issue": {"key": "ENG-12"},
        "user": {"accountId": "a1", "displayName": "Ada"},
        "changelog": {"id": "9", "items": [{"field": "status", "toString": "Reopened"}]}});
    let delivered = parse_jira_events(&payload);
    let delivered = delivered
        .iter()
        .find(|event| format!("{event:?}").starts_with("TicketReturnEvent"));
    let delivered = delivered.expect("an event");
    let facts = build_return_facts(|_| {});
    let again = expect_trigger(&build_polled_event(), &facts);
    assert_eq!(expect_trigger(&**delivered, &facts), again);
    assert_eq!(again.key, TriggerKey::new("changelog:9"));
    let job = expect_job_request(again.reason);
    let comments = job.text.comments.iter();
    let new: Vec<_> = comments
        .map(|comment| (comment.text.as_str(), comment.is_new))
        .collect();
    let wanted = [
        ("before", false),
        ("Round half up.", true),
        ("Delete the tests.", false),
    ];
    assert_eq!((job.job, new), (Job::Implement, wanted.to_vec()));
    // The changelog may lag behind the webhook.
    let lagging = build_return_facts(|issue| drop(issue.moves.pop()));
    assert_eq!(
        expect_trigger(&**delivered, &lagging).key,
        TriggerKey::new("changelog:9")
    );
}

/// Returned ticket with our open pull request.
fn back_with_ours(change: impl FnOnce(&mut TrackerIssue)) -> DecisionFacts {
    let mut facts = build_work_facts(|issue, open| {
        issue.status = "Reopened".to_owned();
        issue.moves = vec![
            build_status_change("7", READY, 50),
            build_status_change("9", "Reopened", 80),
        ];
        issue.comments = vec![
            build_tracker_comment("a1", 40, "before"),
            build_tracker_comment("a1", 70, "Round half up."),
            build_tracker_comment("eve", 71, "No."),
        ];
        change(issue);
        open.push(pull_request());
    });
    let mut row = TicketRow::default();
    row.pull_requests.push(build_pull_reference());
    facts.put_row(build_ticket_key(), row);
    facts.put_progress(build_ticket_key(), RunProgress::default());
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_pull_request(build_repository_name(), 7, pull_request());
    facts
}

#[test]
fn returned_ticket_continues_open_pull_request() {
    let job = expect_job_request(expect_trigger(&build_polled_event(), &back_with_ours(|_| {})).reason);
    let JobSubject::Review(round) = job.about else {
        panic!("no review: {:?}", job.about)
    };
    assert_eq!(job.job, Job::AddressReview);
    assert_eq!(
        (round.body.as_str(), round.author.as_str()),
        ("Round half up.", "A1")
    );
    assert_eq!(
        (round.pull_request, round.asks_for_changes),
        (build_pull_reference(), true)
    );
    let silent = back_with_ours(|issue| issue.comments.truncate(1));
    let reason = expect_trigger(&build_polled_event(), &silent).reason;
    assert!(
        matches!(
            reason,
            TriggerReason::Skipped(SkipReason::PullRequestExists { .. })
        ),
        "{reason:?}"
    );
}

#[test]
fn ready_status_continues_open_pull_request() {
    let ready = |change: fn(&mut TrackerIssue)| {
        back_with_ours(|issue| {
            issue.status = READY.to_owned();
            issue.moves = vec![
                build_status_change("7", READY, 50),
                build_status_change("8", "Backlog", 60),
                build_status_change("9", READY, 80),
            ];
            change(issue);
        })
    };
    let webhook = json!({"webhookEvent": "jira:issue_updated", "timestamp": 80, "issue": {"key": "ENG-12"},
        "user": {"accountId": "a1", "displayName": "Ada"},
        "changelog": {"id": "9", "items": [{"field": "status", "toString": READY}]}});
    let delivered = parse_jira_events(&webhook);
    let delivered = delivered
        .iter()
        .find(|event| format!("{event:?}").starts_with("WorkRequestEvent"))
        .expect("an event");
    let polled = WorkRequestEvent::from_poll(
        build_ticket_key(),
        READY.to_owned(),
        Some(build_status_change("9", READY, 80)),
        Timestamp::default(),
    );
    let facts = ready(|_| {});
    let again = expect_trigger(&polled, &facts);
    assert_eq!(expect_trigger(&**delivered, &facts), again);
    let job = expect_job_request(again.reason);
    assert_eq!(job.job, Job::AddressReview);
    let JobSubject::Review(round) = job.about else {
        panic!("no review: {:?}", job.about)
    };
    assert_eq!(
        (round.body.as_str(), round.pull_request),
        ("Round half up.", build_pull_reference())
    );
    let silent = ready(|issue| issue.comments.truncate(1));
    let refused = expect_trigger(&polled, &silent).reason;
    assert!(
        matches!(
            refused,
            TriggerReason::Skipped(SkipReason::PullRequestExists { .. })
        ),
        "{refused:?}"
    );
}

#[test]
fn return_counts_after_log_aged_out() {
    let facts_after = |days: i64| {
        let mut facts = build_work_facts(|issue, _| {
            issue.status = "Reopened".to_owned();
            issue.moves = vec![
                build_status_change("7", READY, 50),
                build_status_change("9", "Reopened", 80),
            ];
            issue.comments = vec![
                build_tracker_comment("a1", 40, "before"),
                build_tracker_comment("a1", 70, "Round half up."),
            ];
        });
        facts.now = Timestamp::from_unix_ms(80 + days * 24 * 60 * 60 * 1000);
        facts.put_history(build_ticket_key(), Vec::new());
        let mut row = TicketRow::default();
        row.runs.push(RunSummary {
            id: "jira:ENG-12@1".parse().expect("run"),
            job: Job::Implement,
            status: RunStatus::Finished {
                reason: StopReason::Completed,
            },
            started_at: Timestamp::from_unix_ms(60),
            finished_at: None,
            turns: 1,
        });
        facts.put_row(build_ticket_key(), row);
        facts.put_progress(build_ticket_key(), RunProgress::default());
        facts
    };
    let again = expect_trigger(&build_polled_event(), &facts_after(1));
    assert_eq!(again.key, TriggerKey::new("changelog:9"));
    let job = expect_job_request(again.reason);
    let new: Vec<bool> = job.text.comments.iter().map(|comment| comment.is_new).collect();
    assert_eq!((job.job, new), (Job::Implement, vec![false, true]));
    assert_eq!(
        expect_nothing(&build_polled_event(), &facts_after(30)),
        "the ticket did not come back since it was worked on",
        "the log may have had what followed"
    );
}

#[test]
fn return_needs_later_authorized_status_change() {
    let reason =
        |change: fn(&mut TrackerIssue)| expect_nothing(&build_polled_event(), &build_return_facts(change));
    assert_eq!(
        reason(|issue| issue.status = "In Progress".to_owned()),
        "the ticket did not come back since it was worked on"
    );
    assert_eq!(
        reason(|issue| issue.moves = vec![build_status_change("6", "Reopened", 49)]),
        "the ticket did not come back since it was worked on"
    );
    let mut strange = build_return_facts(|_| {});
    strange.put_history(build_ticket_key(), Vec::new());
    assert_eq!(
        expect_nothing(&build_polled_event(), &strange),
        "the ticket was not worked on"
    );
    let elsewhere = TicketReturnEvent::from_poll(build_ticket_key(), "In Progress".to_owned());
    assert_eq!(
        expect_nothing(&elsewhere, &build_decision_facts()),
        "the status brings no ticket back"
    );
    let none = facts_with(
        "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n  reopen_statuses: []\n",
        TriggerChannel::Poll,
    );
    assert_eq!(
        expect_nothing(&build_polled_event(), &none),
        "the status brings no ticket back"
    );
    let eve = domain::TrackerAccount {
        id: "eve".to_owned(),
        display_name: "Eve".to_owned(),
        is_bot: false,
    };
    let mut foreign =
        build_return_facts(|issue| issue.moves.last_mut().expect("moves").by = Some(eve.clone()));
    foreign.put_authority(jira_person(eve), false);
    let refused = expect_trigger(&build_polled_event(), &foreign).reason;
    assert!(
        matches!(refused, TriggerReason::Skipped(SkipReason::NotAllowed { .. })),
        "{refused:?}"
    );
    let mut ours = build_return_facts(|issue| {
        issue.moves.last_mut().expect("moves").by = Some(domain::TrackerAccount {
            id: "j".to_owned(),
            display_name: "journeyman[bot]".to_owned(),
            is_bot: false,
        });
    });
    assert_eq!(
        expect_nothing(&build_polled_event(), &ours),
        "our own account did it"
    );
    ours = build_work_facts(|issue, _| {
        issue.status = "Reopened".to_owned();
        issue.moves = vec![build_status_change("9", "Reopened", 80)];
    });
    ours.put_progress(build_ticket_key(), build_live_progress());
    assert_eq!(
        expect_nothing(&build_polled_event(), &ours),
        "work on the ticket is under way"
    );
}
