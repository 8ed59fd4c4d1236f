//! Table of channels: a webhook and a poll of the same event have the same key and verdict, or the kind states why it has
//! one channel.

use std::{collections::BTreeSet, path::Path};

use domain::{
    PullRequestEnd, PullRequestEvent, PullRequestRecord, PullRequestStatus, TicketDeparture, Timestamp,
    Trigger, TriggerChannel, TriggerReason,
};
use github::{CheckConclusion, PullRequest, ReviewVerdict};
use serde_json::{Value, json};

use super::{
    EventKind, EventVerdict, NewTrigger,
    assignment::TicketAssignedEvent,
    checks::ChecksChanged,
    closed::CloseEvent,
    comment::CommentEvent,
    competing_close::CompetingMergeEvent,
    competing_close_tests, condition_match_tests,
    departure::TicketDepartureEvent,
    departure_tests,
    discussed::DiscussionEvent,
    discussion_tests, issue_tests,
    issue_text::IssueText,
    matched::ConditionMatchEvent,
    pushed::PushEvent,
    reopened::ReopenEvent,
    returned::TicketReturnEvent,
    review_request_tests,
    review_requested::ReviewRequestEvent,
    review_withdrawal_tests,
    tests::{
        build_checked_facts, build_closed_payload, build_comment_events, build_commit_check, build_commit_id,
        build_decision_facts, build_moved_payload, build_polled_stop, build_pull_record,
        build_pull_reference, build_repository_name, build_review, build_rita_actor, build_text_edit,
        build_ticket_key, build_tracker_issue, build_work_facts, decide_event, parse_github_events,
        parse_jira_events, prepare_review, pull_request, pushed_by,
    },
    text::TextEditEvent,
    ticket_return_tests,
    work::WorkRequestEvent,
};
use crate::facts::DecisionFacts;

const READY: &str = "Ready for Agent";
/// Reason why two channels of the same event may name different actors.
const UNNAMED: &str = "a listing does not name the actor";

/// Channels of a kind.
enum KindChannels {
    /// Webhook and poll, in pairs about one event.
    Both(fn() -> Vec<ChannelPair>),
    /// One channel, with the reason.
    One(&'static str),
}

/// One event through both channels.
struct ChannelPair {
    notified: Box<dyn EventKind>,
    polled: Box<dyn EventKind>,
    /// Facts for both channels.
    facts: DecisionFacts,
    /// Reason why the actors may differ; empty: both triggers are equal.
    differs: &'static str,
}

/// One row for each kind, by the name of its file.
const KINDS: &[(&str, KindChannels)] = &[
    ("departure", KindChannels::Both(pair_departures)),
    ("work", KindChannels::Both(pair_work_requests)),
    ("assignment", KindChannels::Both(pair_assignments)),
    ("text", KindChannels::Both(pair_text_edits)),
    ("issue_text", KindChannels::Both(issue_texts)),
    ("comment", KindChannels::Both(pair_comments)),
    ("checks", KindChannels::Both(pair_checks)),
    ("closed", KindChannels::Both(pair_closes)),
    ("discussed", KindChannels::Both(pair_discussions)),
    ("reopened", KindChannels::Both(pair_reopens)),
    ("returned", KindChannels::Both(pair_ticket_returns)),
    ("matched", KindChannels::Both(pair_matches)),
    ("competing_close", KindChannels::Both(pair_merges)),
    ("pushed", KindChannels::Both(pair_pushes)),
    ("reviewed", KindChannels::Both(pair_reviews)),
    ("review_requested", KindChannels::Both(pair_review_requests)),
    ("withdrawn", KindChannels::Both(pair_withdrawals)),
    ("given_up", KindChannels::Both(given_up)),
    (
        "stop",
        KindChannels::One(
            "a comment or a caller of the API becomes it, under the key that each of them gives",
        ),
    ),
    (
        "question",
        KindChannels::One("a comment becomes it, which has both channels"),
    ),
    (
        "decision",
        KindChannels::One("a comment becomes it, which has both channels"),
    ),
    (
        "retry",
        KindChannels::One("a comment becomes it, which has both channels"),
    ),
    (
        "health",
        KindChannels::One("an assessment becomes it, which webhooks and polls request alike"),
    ),
    (
        "overdue_review",
        KindChannels::One("only time causes it, and no webhook reports it"),
    ),
    (
        "dispatch",
        KindChannels::One("a caller of the API asks for it, and waits for the answer"),
    ),
];

/// Event of this type among those of a webhook.
fn find_event(name: &str, events: Vec<Box<dyn EventKind>>) -> Box<dyn EventKind> {
    let mut events = events.into_iter();
    let found = events.find(|event| format!("{event:?}").split([' ', '(']).next() == Some(name));
    found.unwrap_or_else(|| panic!("the webhook has no {name}"))
}

fn build_channel_pair(
    notified: Box<dyn EventKind>,
    polled: impl EventKind + 'static,
    facts: DecisionFacts,
) -> ChannelPair {
    ChannelPair {
        notified,
        polled: Box::new(polled),
        facts,
        differs: "",
    }
}

fn pair_departures() -> Vec<ChannelPair> {
    let payload = departure_tests::build_payload("deleted", &json!(null));
    let ticket = issue_tests::build_ticket_key();
    vec![ChannelPair {
        differs: UNNAMED,
        ..build_channel_pair(
            find_event("TicketDepartureEvent", parse_github_events("issues", &payload)),
            TicketDepartureEvent::found(ticket, TicketDeparture::Deleted),
            departure_tests::build_worked_facts(),
        )
    }]
}

fn pair_work_requests() -> Vec<ChannelPair> {
    let status = READY.to_owned();
    let polled = WorkRequestEvent::from_poll(
        build_ticket_key(),
        status,
        build_tracker_issue().moves.pop(),
        Timestamp::default(),
    );
    vec![build_channel_pair(
        find_event("WorkRequestEvent", parse_jira_events(&build_moved_payload())),
        polled,
        build_work_facts(|_, _| {}),
    )]
}

fn of_issue(action: &str) -> Value {
    json!({"action": action, "issue": {"number": 7}, "sender": {"login": "x"},
        "repository": {"full_name": "acme/shop"}})
}

fn pair_assignments() -> Vec<ChannelPair> {
    let facts = issue_tests::build_issue_facts(issue_tests::RULES, |_| {});
    let notified = find_event(
        "TicketAssignedEvent",
        parse_github_events("issues", &of_issue("assigned")),
    );
    vec![build_channel_pair(
        notified,
        TicketAssignedEvent::from_poll(issue_tests::build_ticket_key()),
        facts,
    )]
}

fn pair_text_edits() -> Vec<ChannelPair> {
    let (notified, edit, changed) = build_text_edit();
    let polled = TextEditEvent::from_poll(&changed, Some(edit.clone()), Timestamp::from_unix_ms(55));
    let facts = build_work_facts(|issue, _| issue.edits = vec![edit]);
    vec![build_channel_pair(
        find_event("TextEditEvent", notified),
        polled.expect("edited"),
        facts,
    )]
}

fn issue_texts() -> Vec<ChannelPair> {
    let rules = format!("{}triage:\n  labels: [bug]\n  anyone: true\n", issue_tests::RULES);
    let facts = issue_tests::build_issue_facts(&rules, |issue| issue.assignees.clear());
    let notified = find_event("IssueText", parse_github_events("issues", &of_issue("edited")));
    vec![build_channel_pair(
        notified,
        IssueText::from_poll(issue_tests::build_ticket_key()),
        facts,
    )]
}

fn pair_comments() -> Vec<ChannelPair> {
    let mut facts = build_decision_facts();
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_authority(build_rita_actor(), true);
    let at_github = build_channel_pair(
        find_event("CommentEvent", build_comment_events("/stop")),
        build_polled_stop(),
        facts,
    );

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
    let polled = || CommentEvent::from_jira_poll(&build_ticket_key(), &on_jira);
    let at_jira = build_channel_pair(
        find_event("CommentEvent", parse_jira_events(&body)),
        polled(),
        build_work_facts(|_, _| {}),
    );
    let delivered_there = find_event(
        "CommentEvent",
        parse_jira_events(&of_a_data_center("issue_commented")),
    );
    let at_a_data_center = build_channel_pair(delivered_there, polled(), build_work_facts(|_, _| {}));

    let body = discussion_tests::build_comment_payload("rita", "/summarize");
    let polled = discussion_tests::build_polled_comment("rita", "/summarize");
    let facts = discussion_tests::build_discussion_facts(discussion_tests::RULES, |_| {});
    let in_discussion = build_channel_pair(
        find_event("CommentEvent", parse_github_events("discussion_comment", &body)),
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
    assert!(parse_jira_events(&of_a_data_center("issue_comment_edited")).is_empty());
    let mut alone = of_a_data_center("");
    alone["webhookEvent"] = json!("comment_created");
    alone.as_object_mut().expect("an object").remove("issue");
    assert!(parse_jira_events(&alone).is_empty());
}

fn pair_checks() -> Vec<ChannelPair> {
    let (repository, of) = (json!({"full_name": "acme/shop"}), build_commit_id());
    let (head, branch) = (of.as_str(), "feat/ENG-12-x");
    let facts = || {
        build_checked_facts(
            pull_request(),
            vec![build_commit_check(1, Some(CheckConclusion::Failure))],
        )
    };
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
        let polled = ChecksChanged::from_poll(&build_pull_record(), build_commit_id());
        build_channel_pair(
            find_event("ChecksChanged", parse_github_events(event, &body)),
            polled,
            facts(),
        )
    };
    bodies.into_iter().map(pair).collect()
}

fn pair_closes() -> Vec<ChannelPair> {
    let pair_of = |merged: bool| {
        let over = PullRequest {
            merged,
            merged_by: merged.then(|| "mia".to_owned()),
            closed_at: Some(Timestamp::from_unix_ms(1_700_000_000_500)),
            ..pull_request()
        };
        let body = build_closed_payload(&json!(merged), "acme/shop");
        let notified = find_event("CloseEvent", parse_github_events("pull_request", &body));
        ChannelPair {
            differs: if merged { "" } else { UNNAMED },
            ..build_channel_pair(
                notified,
                CloseEvent::from_poll(&build_pull_record()),
                build_checked_facts(over, vec![]),
            )
        }
    };
    vec![pair_of(true), pair_of(false)]
}

fn pair_discussions() -> Vec<ChannelPair> {
    let notified = find_event(
        "DiscussionEvent",
        parse_github_events("discussion", &discussion_tests::build_opened_payload()),
    );
    let facts = discussion_tests::build_discussion_facts(discussion_tests::RULES, |_| {});
    vec![build_channel_pair(
        notified,
        DiscussionEvent::opened(discussion_tests::build_ticket_key()),
        facts,
    )]
}

fn pair_reopens() -> Vec<ChannelPair> {
    let body = json!({"action": "reopened", "sender": {"login": "grace"}, "repository": {"full_name": "acme/shop"},
        "pull_request": {"number": 7, "head": {"ref": "feat/ENG-12-x", "repo": {"full_name": "acme/shop"}}}});
    let closed = PullRequestRecord {
        status: PullRequestStatus::Closed,
        ..build_pull_record()
    };
    let ended: Trigger = NewTrigger {
        ticket: build_ticket_key(),
        key: domain::TriggerKey::new("closed"),
        at: Timestamp::default(),
        actor: None,
        reason: TriggerReason::from(PullRequestEvent::Closed(PullRequestEnd {
            pull_request: build_pull_reference(),
            by: "grace".to_owned(),
            moved_to: None,
        })),
    }
    .into_trigger(TriggerChannel::Webhook);
    let mut facts = build_decision_facts();
    facts.put_record(build_repository_name(), 7, Some(closed.clone()));
    facts.put_pull_request(build_repository_name(), 7, pull_request());
    facts.put_history(build_ticket_key(), vec![ended]);
    let notified = find_event("ReopenEvent", parse_github_events("pull_request", &body));
    vec![ChannelPair {
        differs: UNNAMED,
        ..build_channel_pair(notified, ReopenEvent::from_poll(&closed), facts)
    }]
}

fn pair_ticket_returns() -> Vec<ChannelPair> {
    let body = json!({"webhookEvent": "jira:issue_updated", "timestamp": 80, "issue": {"key": "ENG-12"},
        "user": {"accountId": "a1", "displayName": "Ada"},
        "changelog": {"id": "9", "items": [{"field": "status", "toString": "Reopened"}]}});
    let polled = TicketReturnEvent::from_poll(build_ticket_key(), "Reopened".to_owned());
    vec![build_channel_pair(
        find_event("TicketReturnEvent", parse_jira_events(&body)),
        polled,
        ticket_return_tests::build_return_facts(|_| {}),
    )]
}

fn pair_matches() -> Vec<ChannelPair> {
    let body = json!({"webhookEvent": "jira:issue_created", "timestamp": 50, "issue": {"key": "ENG-12"}});
    let facts = condition_match_tests::set_authority(
        condition_match_tests::build_match_facts(Ok(true), |_| {}),
        true,
    );
    vec![build_channel_pair(
        find_event("ConditionMatchEvent", parse_jira_events(&body)),
        ConditionMatchEvent::from_poll(build_ticket_key()),
        facts,
    )]
}

fn pair_merges() -> Vec<ChannelPair> {
    let merged = PullRequest {
        number: 9,
        title: "ENG-12: Round".to_owned(),
        branch: "x".to_owned(),
        merged: true,
        merged_by: Some("mia".to_owned()),
        closed_at: Some(Timestamp::from_unix_ms(5)),
        ..pull_request()
    };
    let mut body = build_closed_payload(&json!(true), "acme/shop");
    body["pull_request"]["number"] = json!(9);
    body["pull_request"]["title"] = json!(merged.title);
    body["pull_request"]["head"]["ref"] = json!(merged.branch);
    let polled = CompetingMergeEvent::from_poll(&build_repository_name(), &merged);
    let mut facts = build_decision_facts();
    facts.put_record(build_repository_name(), 9, None);
    facts.put_pull_request(build_repository_name(), 9, merged);
    let row = domain::TicketRow {
        cursor: 4,
        ..domain::TicketRow::default()
    };
    facts.put_row(build_ticket_key(), row);
    vec![build_channel_pair(
        find_event("CompetingMergeEvent", parse_github_events("pull_request", &body)),
        polled,
        facts,
    )]
}

fn pair_pushes() -> Vec<ChannelPair> {
    let theirs: domain::CommitId = "c".repeat(40).parse().expect("commit");
    let now = PullRequest {
        head: theirs.clone(),
        ..pull_request()
    };
    let mut facts = build_checked_facts(now, vec![]);
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    let notified = find_event("PushEvent", pushed_by("rita", theirs.as_str()));
    vec![ChannelPair {
        differs: UNNAMED,
        ..build_channel_pair(
            notified,
            PushEvent::from_poll(&build_pull_record(), theirs),
            facts,
        )
    }]
}

fn pair_reviews() -> Vec<ChannelPair> {
    let review = build_review(9, ReviewVerdict::ChangesRequested, "No.", &[(41, None)]);
    let (events, polled, facts) = prepare_review(review);
    vec![build_channel_pair(
        find_event("ReviewEvent", events),
        polled,
        facts,
    )]
}

fn pair_review_requests() -> Vec<ChannelPair> {
    let body = json!({"action": "review_requested", "sender": {"login": "rita"},
        "repository": {"full_name": "acme/shop"},
        "pull_request": {"number": 7, "head": {"ref": "x", "repo": {"full_name": "acme/shop"}}}});
    let asked = vec![review_request_tests::build_reviewer_request(
        4,
        Some("rita"),
        "agent",
    )];
    let facts =
        review_request_tests::build_reviewer_facts(review_request_tests::build_review_candidate(), asked);
    let notified = find_event("ReviewRequestEvent", parse_github_events("pull_request", &body));
    vec![build_channel_pair(
        notified,
        ReviewRequestEvent::from_poll(build_repository_name(), 7),
        facts,
    )]
}

fn pair_withdrawals() -> Vec<ChannelPair> {
    let body = json!({"action": "closed", "pull_request": {"number": 7, "head": {"ref": "x"},
        "closed_at": "2026-01-01T00:00:00Z"}, "repository": {"full_name": "acme/shop"}, "sender": {"login": "eve"}});
    let notified = find_event(
        "ReviewWithdrawalEvent",
        parse_github_events("pull_request", &body),
    );
    vec![ChannelPair {
        differs: UNNAMED,
        ..build_channel_pair(
            notified,
            review_withdrawal_tests::build_polled_event(),
            review_withdrawal_tests::build_merged_facts(),
        )
    }]
}

fn given_up() -> Vec<ChannelPair> {
    let now = competing_close_tests::build_competitor("ENG-12: Round", "", false);
    let kept_back = competing_close_tests::kept_back(competing_close_tests::URL);
    let facts = competing_close_tests::build_competing_facts(&now, vec![kept_back], |_, _| {});
    let [notified, polled] = competing_close_tests::build_channel_events(&now);
    vec![ChannelPair {
        notified,
        polled,
        facts,
        differs: "",
    }]
}

fn expect_trigger(kind: &str, event: &dyn EventKind, facts: &DecisionFacts) -> NewTrigger {
    match decide_event(event, facts) {
        EventVerdict::Follows(follows) => *follows,
        other => panic!("{kind}: {event:?}: {other:?}"),
    }
}

#[test]
fn webhook_and_poll_share_key_and_verdict() {
    for (kind, channels) in KINDS {
        let KindChannels::Both(pairs) = channels else {
            continue;
        };
        for ChannelPair {
            notified,
            polled,
            facts,
            differs,
        } in pairs()
        {
            let (notified, polled) = (
                expect_trigger(kind, &*notified, &facts),
                expect_trigger(kind, &*polled, &facts),
            );
            assert_eq!(
                (&notified.key, &notified.ticket),
                (&polled.key, &polled.ticket),
                "{kind}"
            );
            assert_eq!(notified.reason.job(), polled.reason.job(), "{kind}");
            assert_eq!(
                notified == polled,
                differs.is_empty(),
                "{kind}: {notified:?} and {polled:?}"
            );
        }
    }
}

#[test]
fn known_key_is_recognized_by_both_channels() {
    for (kind, channels) in KINDS {
        let KindChannels::Both(pairs) = channels else {
            continue;
        };
        for ChannelPair {
            notified,
            polled,
            mut facts,
            ..
        } in pairs()
        {
            let NewTrigger { ticket, key, .. } = expect_trigger(kind, &*notified, &facts);
            facts.put_known(ticket, key.clone(), Some(5));
            for event in [notified, polled] {
                match decide_event(&*event, &facts) {
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/events");
    let files = std::fs::read_dir(folder).expect("the kinds");
    let names = files.map(|file| file.expect("a file").file_name().into_string().expect("a name"));
    let kinds: BTreeSet<String> = names
        .map(|name| name.trim_end_matches(".rs").to_owned())
        .filter(|name| name != "mod" && !name.ends_with("tests"))
        .collect();
    let rows: Vec<String> = KINDS.iter().map(|(kind, _)| (*kind).to_owned()).collect();
    assert_eq!(rows.len(), kinds.len(), "each has one row");
    assert_eq!(BTreeSet::from_iter(rows), kinds);
    for (kind, channels) in KINDS {
        assert!(!matches!(channels, KindChannels::One("")), "{kind} says why");
    }
}
