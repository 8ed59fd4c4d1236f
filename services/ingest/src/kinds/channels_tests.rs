//! Table of channels: a webhook and a poll of the same event have the same key and verdict, or the kind states why it has
//! one channel.

use std::{collections::BTreeSet, path::Path};

use domain::{PullRequestRecord, PullRequestStatus, Timestamp, Trigger, TriggerChannel, TriggerReason};
use github::{CheckConclusion, PullRequest, ReviewVerdict};
use serde_json::{Value, json};

use super::{
    EventKind, EventVerdict, NewTrigger,
    checks::ChecksChanged,
    closed::CloseEvent,
    comment::CommentEvent,
    competing_close_tests, condition_match_tests,
    discussed::DiscussionEvent,
    discussion_tests,
    elsewhere::CompetingMergeEvent,
    given::TicketAssignedEvent,
    issue_tests,
    issue_text::IssueText,
    matched::ConditionMatchEvent,
    pushed::PushEvent,
    reopened::ReopenEvent,
    returned::TicketReturnEvent,
    review_request_tests,
    review_requested::ReviewRequestEvent,
    review_withdrawal_tests,
    tests::{
        ada, asked, check, checked, closing, commit, decided, facts, github, issue, jira, moved, ours,
        pull_request, pushed_by, record, repository, review, reviewed, rita, said, ticket,
    },
    text::TextEditEvent,
    ticket_return_tests,
    work::WorkRequestEvent,
};
use crate::{facts::DecisionFacts, tracker_reader::TrackerEdit};

const READY: &str = "Ready for Agent";
/// Reason why two channels of the same event may name different actors.
const UNNAMED: &str = "a listing does not tell who did it";

/// Channels of a kind.
enum Doors {
    /// Webhook and poll, in pairs about one event.
    Both(fn() -> Vec<Pair>),
    /// One channel, with the reason.
    One(&'static str),
}

/// One event through both channels.
struct Pair {
    told: Box<dyn EventKind>,
    polled: Box<dyn EventKind>,
    /// Facts for both channels.
    facts: DecisionFacts,
    /// Reason why the actors may differ; empty: both triggers are equal.
    differs: &'static str,
}

/// One row for each kind, by the name of its file.
const KINDS: [(&str, Doors); 23] = [
    ("work", Doors::Both(works)),
    ("given", Doors::Both(gifts)),
    ("text", Doors::Both(texts)),
    ("issue_text", Doors::Both(issue_texts)),
    ("comment", Doors::Both(comments)),
    ("checks", Doors::Both(checks)),
    ("closed", Doors::Both(closes)),
    ("discussed", Doors::Both(discussions)),
    ("reopened", Doors::Both(reopens)),
    ("returned", Doors::Both(returns)),
    ("matched", Doors::Both(matches)),
    ("elsewhere", Doors::Both(merges)),
    ("pushed", Doors::Both(pushes)),
    ("reviewed", Doors::Both(reviews)),
    ("review_requested", Doors::Both(requests)),
    ("withdrawn", Doors::Both(withdrawals)),
    ("given_up", Doors::Both(given_up)),
    (
        "stop",
        Doors::One("a comment or a caller of the API becomes it, under the key that each of them gives"),
    ),
    (
        "question",
        Doors::One("a comment becomes it, which has both doors"),
    ),
    (
        "decision",
        Doors::One("a comment becomes it, which has both doors"),
    ),
    ("retry", Doors::One("a comment becomes it, which has both doors")),
    (
        "overdue_review",
        Doors::One("time alone tells of it, and nobody sends that"),
    ),
    (
        "dispatch",
        Doors::One("a caller of the API asks for it, and waits for the answer"),
    ),
];

/// Event of this type among those of a webhook.
fn told(name: &str, events: Vec<Box<dyn EventKind>>) -> Box<dyn EventKind> {
    let mut events = events.into_iter();
    let found = events.find(|event| format!("{event:?}").split([' ', '(']).next() == Some(name));
    found.unwrap_or_else(|| panic!("the webhook tells of no {name}"))
}

fn pair(told: Box<dyn EventKind>, polled: impl EventKind + 'static, facts: DecisionFacts) -> Pair {
    Pair {
        told,
        polled: Box::new(polled),
        facts,
        differs: "",
    }
}

fn works() -> Vec<Pair> {
    let status = READY.to_owned();
    let polled = WorkRequestEvent::from_poll(ticket(), status, issue().moves.pop(), Timestamp::default());
    vec![pair(
        told("WorkRequestEvent", jira(&moved())),
        polled,
        asked(|_, _| {}),
    )]
}

fn of_issue(action: &str) -> Value {
    json!({"action": action, "issue": {"number": 7}, "sender": {"login": "x"},
        "repository": {"full_name": "acme/shop"}})
}

fn gifts() -> Vec<Pair> {
    let facts = issue_tests::asked(issue_tests::RULES, |_| {});
    let told = told("TicketAssignedEvent", github("issues", &of_issue("assigned")));
    vec![pair(
        told,
        TicketAssignedEvent::from_poll(issue_tests::ticket()),
        facts,
    )]
}

fn texts() -> Vec<Pair> {
    let body = json!({"webhookEvent": "jira:issue_updated", "timestamp": 60,
        "user": {"accountId": "a1", "displayName": "Ada"}, "issue": {"key": "ENG-12"},
        "changelog": {"id": "9", "items": [{"field": "description"}]}});
    let edit = TrackerEdit {
        id: "9".to_owned(),
        at: Timestamp::from_unix_ms(60),
        by: Some(ada()),
    };
    let changed = jira::ChangedIssue {
        key: ticket(),
        status: "To Do".to_owned(),
        created: Timestamp::default(),
        updated: Timestamp::from_unix_ms(60),
        creator: Some(ada()),
        assignee: None,
    };
    let polled = TextEditEvent::from_poll(&changed, Some(edit.clone()), Timestamp::from_unix_ms(55));
    let facts = asked(|issue, _| issue.edits = vec![edit]);
    vec![pair(
        told("TextEditEvent", jira(&body)),
        polled.expect("edited"),
        facts,
    )]
}

fn issue_texts() -> Vec<Pair> {
    let rules = format!("{}triage:\n  labels: [bug]\n  anyone: true\n", issue_tests::RULES);
    let facts = issue_tests::asked(&rules, |issue| issue.assignees.clear());
    let told = told("IssueText", github("issues", &of_issue("edited")));
    vec![pair(told, IssueText::from_poll(issue_tests::ticket()), facts)]
}

fn comments() -> Vec<Pair> {
    let at = Timestamp::parse("2026-11-21T10:00:00Z");
    let on_github = github::GitHubComment {
        by_bot: false,
        id: github::GitHubCommentId(31),
        author: "rita".to_owned(),
        author_id: Some(8),
        created_at: at,
        body: "/stop".to_owned(),
        updated_at: at,
        by_us: false,
    };
    let polled = CommentEvent::from_github_poll(&repository(), 7, on_github, Timestamp::default());
    let mut facts = facts();
    facts.put_record(repository(), 7, Some(record()));
    facts.put_authority(rita(), true);
    let at_github = pair(told("CommentEvent", said("/stop")), polled, facts);

    let document = json!({"type": "doc", "version": 1, "content": [
        {"type": "paragraph", "content": [{"type": "text", "text": "/stop"}]}]});
    let body = json!({"webhookEvent": "comment_created", "timestamp": 60, "issue": {"key": "ENG-12"},
        "comment": {"id": "31", "author": {"accountId": "a1", "displayName": "Ada"}, "body": document}});
    let created = Timestamp::from_unix_ms(60);
    let on_jira = jira::JiraComment {
        by_bot: false,
        by_customer: false,
        id: jira::JiraCommentId("31".to_owned()),
        author: "Ada".to_owned(),
        author_account_id: "a1".to_owned(),
        created,
        updated: created,
        text: "/stop".to_owned(),
        by_us: false,
        mentioned: Vec::new(),
        marker: String::new(),
    };
    let polled = || CommentEvent::from_jira_poll(&ticket(), &on_jira);
    let at_jira = pair(told("CommentEvent", jira(&body)), polled(), asked(|_, _| {}));
    let told_there = told("CommentEvent", jira(&of_a_data_center("issue_commented")));
    let at_a_data_center = pair(told_there, polled(), asked(|_, _| {}));

    let body = discussion_tests::said("rita", "/summarize");
    let polled = discussion_tests::polled("rita", "/summarize");
    let facts = discussion_tests::facts(discussion_tests::RULES, |_| {});
    let in_discussion = pair(
        told("CommentEvent", github("discussion_comment", &body)),
        polled,
        facts,
    );
    vec![at_github, at_jira, at_a_data_center, in_discussion]
}

/// Payload of a Data Center for a comment with its issue.
fn of_a_data_center(event: &str) -> serde_json::Value {
    let ada = json!({"name": "a1", "key": "JIRAUSER10100", "displayName": "Ada"});
    json!({"webhookEvent": "jira:issue_updated", "issue_event_type_name": event, "timestamp": 60, "user": ada,
        "issue": {"key": "ENG-12"}, "comment": {"id": "31", "author": ada, "body": "{color:red}/stop{color}"}})
}

#[test]
fn edited_data_center_comment_is_not_new() {
    assert!(jira(&of_a_data_center("issue_comment_edited")).is_empty());
    let mut alone = of_a_data_center("");
    alone["webhookEvent"] = json!("comment_created");
    alone.as_object_mut().expect("an object").remove("issue");
    assert!(jira(&alone).is_empty());
}

fn checks() -> Vec<Pair> {
    let (repository, of) = (json!({"full_name": "acme/shop"}), commit());
    let (head, branch) = (of.as_str(), "feat/ENG-12-x");
    let facts = || checked(pull_request(), vec![check(1, Some(CheckConclusion::Failure))]);
    let bodies = [
        (
            "check_run",
            json!({"action": "completed", "repository": repository,
                "check_run": {"head_sha": head, "check_suite": {"head_branch": branch}}}),
        ),
        (
            "check_suite",
            json!({"action": "completed", "repository": repository,
                "check_suite": {"head_sha": head, "head_branch": branch}}),
        ),
        (
            "workflow_run",
            json!({"action": "completed", "repository": repository,
                "workflow_run": {"head_sha": head, "head_branch": branch}}),
        ),
        (
            "status",
            json!({"sha": head, "state": "failure", "branches": [{"name": branch}], "repository": repository}),
        ),
    ];
    let pair = |(event, body): (&str, Value)| {
        let polled = ChecksChanged::from_poll(&record(), commit());
        pair(told("ChecksChanged", github(event, &body)), polled, facts())
    };
    bodies.into_iter().map(pair).collect()
}

fn closes() -> Vec<Pair> {
    let pair_of = |merged: bool| {
        let over = PullRequest {
            merged,
            merged_by: merged.then(|| "mia".to_owned()),
            closed_at: Some(Timestamp::from_unix_ms(1_700_000_000_500)),
            ..pull_request()
        };
        let body = closing(&json!(merged), "acme/shop");
        let told = told("CloseEvent", github("pull_request", &body));
        Pair {
            differs: if merged { "" } else { UNNAMED },
            ..pair(told, CloseEvent::from_poll(&record()), checked(over, vec![]))
        }
    };
    vec![pair_of(true), pair_of(false)]
}

fn discussions() -> Vec<Pair> {
    let told = told(
        "DiscussionEvent",
        github("discussion", &discussion_tests::opened()),
    );
    let facts = discussion_tests::facts(discussion_tests::RULES, |_| {});
    vec![pair(
        told,
        DiscussionEvent::opened(discussion_tests::ticket()),
        facts,
    )]
}

fn reopens() -> Vec<Pair> {
    let body = json!({"action": "reopened", "sender": {"login": "grace"}, "repository": {"full_name": "acme/shop"},
        "pull_request": {"number": 7, "head": {"ref": "feat/ENG-12-x", "repo": {"full_name": "acme/shop"}}}});
    let closed = PullRequestRecord {
        status: PullRequestStatus::Closed,
        ..record()
    };
    let ended: Trigger = NewTrigger {
        ticket: ticket(),
        key: domain::TriggerKey::new("closed"),
        at: Timestamp::default(),
        actor: None,
        reason: TriggerReason::PullRequestClosed {
            pull_request: ours(),
            by: "grace".to_owned(),
        },
    }
    .into_trigger(TriggerChannel::Webhook);
    let mut facts = facts();
    facts.put_record(repository(), 7, Some(closed.clone()));
    facts.put_pull_request(repository(), 7, pull_request());
    facts.put_history(ticket(), vec![ended]);
    let told = told("ReopenEvent", github("pull_request", &body));
    vec![Pair {
        differs: UNNAMED,
        ..pair(told, ReopenEvent::from_poll(&closed), facts)
    }]
}

fn returns() -> Vec<Pair> {
    let body = json!({"webhookEvent": "jira:issue_updated", "timestamp": 80, "issue": {"key": "ENG-12"},
        "user": {"accountId": "a1", "displayName": "Ada"},
        "changelog": {"id": "9", "items": [{"field": "status", "toString": "Reopened"}]}});
    let polled = TicketReturnEvent::from_poll(ticket(), "Reopened".to_owned());
    vec![pair(
        told("TicketReturnEvent", jira(&body)),
        polled,
        ticket_return_tests::back(|_| {}),
    )]
}

fn matches() -> Vec<Pair> {
    let body = json!({"webhookEvent": "jira:issue_created", "timestamp": 50, "issue": {"key": "ENG-12"}});
    let facts = condition_match_tests::may(condition_match_tests::facts(Ok(true), |_| {}), true);
    vec![pair(
        told("ConditionMatchEvent", jira(&body)),
        ConditionMatchEvent::from_poll(ticket()),
        facts,
    )]
}

fn merges() -> Vec<Pair> {
    let merged = PullRequest {
        number: 9,
        title: "ENG-12: Round".to_owned(),
        branch: "x".to_owned(),
        merged: true,
        merged_by: Some("mia".to_owned()),
        closed_at: Some(Timestamp::from_unix_ms(5)),
        ..pull_request()
    };
    let mut body = closing(&json!(true), "acme/shop");
    body["pull_request"]["number"] = json!(9);
    body["pull_request"]["title"] = json!(merged.title);
    body["pull_request"]["head"]["ref"] = json!(merged.branch);
    let polled = CompetingMergeEvent::from_poll(&repository(), &merged);
    let mut facts = facts();
    facts.put_record(repository(), 9, None);
    facts.put_pull_request(repository(), 9, merged);
    let row = domain::TicketRow {
        cursor: 4,
        ..domain::TicketRow::default()
    };
    facts.put_row(ticket(), row);
    vec![pair(
        told("CompetingMergeEvent", github("pull_request", &body)),
        polled,
        facts,
    )]
}

fn pushes() -> Vec<Pair> {
    let theirs: domain::CommitId = "c".repeat(40).parse().expect("commit");
    let now = PullRequest {
        head: theirs.clone(),
        ..pull_request()
    };
    let mut facts = checked(now, vec![]);
    facts.put_record(repository(), 7, Some(record()));
    let told = told("PushEvent", pushed_by("rita", theirs.as_str()));
    vec![Pair {
        differs: UNNAMED,
        ..pair(told, PushEvent::from_poll(&record(), theirs), facts)
    }]
}

fn reviews() -> Vec<Pair> {
    let review = review(9, ReviewVerdict::ChangesRequested, "No.", &[(41, None)]);
    let (events, polled, facts) = reviewed(review);
    vec![pair(told("ReviewEvent", events), polled, facts)]
}

fn requests() -> Vec<Pair> {
    let body = json!({"action": "review_requested", "sender": {"login": "rita"},
        "repository": {"full_name": "acme/shop"},
        "pull_request": {"number": 7, "head": {"ref": "x", "repo": {"full_name": "acme/shop"}}}});
    let asked = vec![review_request_tests::request(4, Some("rita"), "agent")];
    let facts = review_request_tests::asked(review_request_tests::waiting(), asked);
    let told = told("ReviewRequestEvent", github("pull_request", &body));
    vec![pair(told, ReviewRequestEvent::from_poll(repository(), 7), facts)]
}

fn withdrawals() -> Vec<Pair> {
    let body = json!({"action": "closed", "pull_request": {"number": 7, "head": {"ref": "x"},
        "closed_at": "2026-01-01T00:00:00Z"}, "repository": {"full_name": "acme/shop"}, "sender": {"login": "eve"}});
    let told = told("ReviewWithdrawalEvent", github("pull_request", &body));
    vec![Pair {
        differs: UNNAMED,
        ..pair(
            told,
            review_withdrawal_tests::polled(),
            review_withdrawal_tests::merged(),
        )
    }]
}

fn given_up() -> Vec<Pair> {
    let now = competing_close_tests::over("ENG-12: Round", "", false);
    let kept_back = competing_close_tests::kept_back(competing_close_tests::URL);
    let facts = competing_close_tests::facts(&now, vec![kept_back], |_, _| {});
    let [told, polled] = competing_close_tests::doors(&now);
    vec![Pair {
        told,
        polled,
        facts,
        differs: "",
    }]
}

fn follows(kind: &str, event: &dyn EventKind, facts: &DecisionFacts) -> NewTrigger {
    match decided(event, facts) {
        EventVerdict::Follows(follows) => *follows,
        other => panic!("{kind}: {event:?}: {other:?}"),
    }
}

#[test]
fn webhook_and_poll_share_key_and_verdict() {
    for (kind, doors) in &KINDS {
        let Doors::Both(pairs) = doors else { continue };
        for Pair {
            told,
            polled,
            facts,
            differs,
        } in pairs()
        {
            let (told, polled) = (follows(kind, &*told, &facts), follows(kind, &*polled, &facts));
            assert_eq!((&told.key, &told.ticket), (&polled.key, &polled.ticket), "{kind}");
            assert_eq!(told.reason.job(), polled.reason.job(), "{kind}");
            assert_eq!(
                told == polled,
                differs.is_empty(),
                "{kind}: {told:?} and {polled:?}"
            );
        }
    }
}

#[test]
fn known_key_is_recognized_by_both_channels() {
    for (kind, doors) in &KINDS {
        let Doors::Both(pairs) = doors else { continue };
        for Pair {
            told,
            polled,
            mut facts,
            ..
        } in pairs()
        {
            let NewTrigger { ticket, key, .. } = follows(kind, &*told, &facts);
            facts.put_known(ticket, key.clone(), Some(5));
            for event in [told, polled] {
                match decided(&*event, &facts) {
                    EventVerdict::Known(sequence) => assert_eq!(sequence, 5, "{kind}"),
                    EventVerdict::Follows(again) => assert_eq!(again.key, key, "{kind}"),
                    other => panic!("{kind}: {event:?}: {other:?}"),
                }
            }
        }
    }
}

#[test]
fn every_kind_has_a_channel_row() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kinds");
    let files = std::fs::read_dir(folder).expect("the kinds");
    let names = files.map(|file| file.expect("a file").file_name().into_string().expect("a name"));
    let kinds: BTreeSet<String> = names
        .map(|name| name.trim_end_matches(".rs").to_owned())
        .filter(|name| name != "mod" && !name.ends_with("tests"))
        .collect();
    let rows: Vec<String> = KINDS.iter().map(|(kind, _)| (*kind).to_owned()).collect();
    assert_eq!(rows.len(), kinds.len(), "each has one row");
    assert_eq!(BTreeSet::from_iter(rows), kinds);
    for (kind, doors) in &KINDS {
        assert!(!matches!(doors, Doors::One("")), "{kind} says why");
    }
}
