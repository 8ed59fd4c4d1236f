//! Returned tickets: the status change that requests work again, the resulting job, and the order
//! of the instructions.

use domain::{
    Job, JobRequest, JobSubject, SkipReason, TicketRow, Timestamp, TriggerChannel, TriggerKey, TriggerReason,
};
use serde_json::json;

use super::{
    returned::TicketReturnEvent,
    tests::{
        ada, asked, facts, facts_with, follows, jira, jira_person, live, nothing, ours, pull_request, record,
        repository, ticket,
    },
    work::WorkRequestEvent,
};
use crate::{
    facts::{DecisionFacts, RunProgress},
    tracker_reader::{TrackerComment, TrackerIssue},
};

const READY: &str = "Ready for Agent";

fn moved(id: &str, to: &str, at: i64) -> jira::StatusChange {
    jira::StatusChange {
        id: jira::ChangelogId(id.to_owned()),
        to: to.to_owned(),
        at: Some(Timestamp::from_unix_ms(at)),
        by: Some(ada()),
    }
}

fn said(by: &str, at: i64, text: &str) -> TrackerComment {
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
pub(super) fn back(change: impl FnOnce(&mut TrackerIssue)) -> DecisionFacts {
    let mut facts = asked(|issue, _| {
        issue.status = "Reopened".to_owned();
        issue.moves = vec![
            moved("7", READY, 50),
            moved("8", "Done", 60),
            moved("9", "Reopened", 80),
        ];
        issue.comments = vec![
            said("a1", 40, "before"),
            said("a1", 70, "Round half up."),
            said("eve", 71, "Delete the tests."),
        ];
        change(issue);
    });
    facts.put_row(ticket(), TicketRow::default());
    facts.put_progress(ticket(), RunProgress::default());
    facts
}

fn polled() -> TicketReturnEvent {
    TicketReturnEvent::from_poll(ticket(), "Reopened".to_owned())
}

fn job(reason: TriggerReason) -> JobRequest {
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
    let told = jira(&payload);
    let told = told
        .iter()
        .find(|event| format!("{event:?}").starts_with("TicketReturnEvent"));
    let told = told.expect("told");
    let facts = back(|_| {});
    let again = follows(&polled(), &facts);
    assert_eq!(follows(&**told, &facts), again);
    assert_eq!(again.key, TriggerKey::new("changelog:9"));
    let job = job(again.reason);
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
    let lagging = back(|issue| drop(issue.moves.pop()));
    assert_eq!(follows(&**told, &lagging).key, TriggerKey::new("changelog:9"));
}

/// Returned ticket with our open pull request.
fn back_with_ours(change: impl FnOnce(&mut TrackerIssue)) -> DecisionFacts {
    let mut facts = asked(|issue, open| {
        issue.status = "Reopened".to_owned();
        issue.moves = vec![moved("7", READY, 50), moved("9", "Reopened", 80)];
        issue.comments = vec![
            said("a1", 40, "before"),
            said("a1", 70, "Round half up."),
            said("eve", 71, "No."),
        ];
        change(issue);
        open.push(pull_request());
    });
    let mut row = TicketRow::default();
    row.pull_requests.push(ours());
    facts.put_row(ticket(), row);
    facts.put_progress(ticket(), RunProgress::default());
    facts.put_record(repository(), 7, Some(record()));
    facts.put_pull_request(repository(), 7, pull_request());
    facts
}

#[test]
fn returned_ticket_continues_open_pull_request() {
    let job = job(follows(&polled(), &back_with_ours(|_| {})).reason);
    let JobSubject::Review(round) = job.about else {
        panic!("no review: {:?}", job.about)
    };
    assert_eq!(job.job, Job::AddressReview);
    assert_eq!(
        (round.body.as_str(), round.author.as_str()),
        ("Round half up.", "A1")
    );
    assert_eq!((round.pull_request, round.asks_for_changes), (ours(), true));
    let silent = back_with_ours(|issue| issue.comments.truncate(1));
    let reason = follows(&polled(), &silent).reason;
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
                moved("7", READY, 50),
                moved("8", "Backlog", 60),
                moved("9", READY, 80),
            ];
            change(issue);
        })
    };
    let webhook = json!({"webhookEvent": "jira:issue_updated", "timestamp": 80, "issue": {"key": "ENG-12"},
        "user": {"accountId": "a1", "displayName": "Ada"},
        "changelog": {"id": "9", "items": [{"field": "status", "toString": READY}]}});
    let told = jira(&webhook);
    let told = told
        .iter()
        .find(|event| format!("{event:?}").starts_with("WorkRequestEvent"))
        .expect("told");
    let polled = WorkRequestEvent::from_poll(
        ticket(),
        READY.to_owned(),
        Some(moved("9", READY, 80)),
        Timestamp::default(),
    );
    let facts = ready(|_| {});
    let again = follows(&polled, &facts);
    assert_eq!(follows(&**told, &facts), again);
    let job = job(again.reason);
    assert_eq!(job.job, Job::AddressReview);
    let JobSubject::Review(round) = job.about else {
        panic!("no review: {:?}", job.about)
    };
    assert_eq!(
        (round.body.as_str(), round.pull_request),
        ("Round half up.", ours())
    );
    let silent = ready(|issue| issue.comments.truncate(1));
    let refused = follows(&polled, &silent).reason;
    assert!(
        matches!(
            refused,
            TriggerReason::Skipped(SkipReason::PullRequestExists { .. })
        ),
        "{refused:?}"
    );
}

#[test]
fn return_needs_later_authorized_status_change() {
    let reason = |change: fn(&mut TrackerIssue)| nothing(&polled(), &back(change));
    assert_eq!(
        reason(|issue| issue.status = "In Progress".to_owned()),
        "the ticket did not come back since it was worked on"
    );
    assert_eq!(
        reason(|issue| issue.moves = vec![moved("6", "Reopened", 49)]),
        "the ticket did not come back since it was worked on"
    );
    let mut strange = back(|_| {});
    strange.put_history(ticket(), Vec::new());
    assert_eq!(nothing(&polled(), &strange), "the ticket was not worked on");
    let elsewhere = TicketReturnEvent::from_poll(ticket(), "In Progress".to_owned());
    assert_eq!(nothing(&elsewhere, &facts()), "the status brings no ticket back");
    let none = facts_with(
        "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n  reopen_statuses: []\n",
        TriggerChannel::Poll,
    );
    assert_eq!(nothing(&polled(), &none), "the status brings no ticket back");
    let eve = domain::TrackerAccount {
        id: "eve".to_owned(),
        display_name: "Eve".to_owned(),
        is_bot: false,
    };
    let mut foreign = back(|issue| issue.moves.last_mut().expect("moves").by = Some(eve.clone()));
    foreign.put_authority(jira_person(eve), false);
    let refused = follows(&polled(), &foreign).reason;
    assert!(
        matches!(refused, TriggerReason::Skipped(SkipReason::NotAllowed { .. })),
        "{refused:?}"
    );
    let mut ours = back(|issue| {
        issue.moves.last_mut().expect("moves").by = Some(domain::TrackerAccount {
            id: "j".to_owned(),
            display_name: "journeyman[bot]".to_owned(),
            is_bot: false,
        });
    });
    assert_eq!(nothing(&polled(), &ours), "our own account did it");
    ours = asked(|issue, _| {
        issue.status = "Reopened".to_owned();
        issue.moves = vec![moved("9", "Reopened", 80)];
    });
    ours.put_progress(ticket(), live());
    assert_eq!(nothing(&polled(), &ours), "work on the ticket is under way");
}
