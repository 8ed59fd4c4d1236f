//! Verdicts about tickets that are assigned to us, and about the text of GitHub issues; webhook and poll are equal, because both read the
//! issue.

use domain::{Job, SkipReason, TicketKey, Timestamp, TriggerChannel, TriggerKey, TriggerReason};
use serde_json::json;

use super::{
    EventVerdict,
    assignment::TicketAssignedEvent,
    issue_text::IssueText,
    tests::{
        build_behind_progress, build_github_user, build_live_progress, build_repository_name, decide_event,
        expect_nothing, expect_trigger, facts_with, parse_github_events, parse_jira_events,
    },
};
use crate::facts::{
    DecisionFacts, EventActor, RunProgress,
    tracker_reader::{
        AssignmentEvent, AssignmentKind, TrackerComment, TrackerEdit, TrackerIssue, convert_user,
    },
};

pub(super) const RULES: &str =
    "repo:\n  owner: acme\n  name: shop\nissues:\n  assignee: agent\n  labels: [ready]\n";

fn build_timestamp(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(ms)
}

pub(super) fn build_ticket_key() -> TicketKey {
    "github:acme/shop#7".parse().expect("ticket")
}

fn build_assignment(id: &str, ms: i64, by: &str, how: AssignmentKind) -> AssignmentEvent {
    AssignmentEvent {
        id: id.to_owned(),
        at: build_timestamp(ms),
        by: Some(convert_user(build_github_user(by))),
        how,
    }
}

fn build_agent_account() -> domain::TrackerAccount {
    convert_user(build_github_user("Agent"))
}

/// Issue of a guest that Rita assigned to us.
fn build_tracker_issue() -> TrackerIssue {
    TrackerIssue {
        summary: "Fix the cart".to_owned(),
        description: "It rounds".to_owned(),
        status: "open".to_owned(),
        created: Some(build_timestamp(1)),
        creator: Some(convert_user(build_github_user("guest"))),
        assignees: vec![build_agent_account()],
        assignments: vec![build_assignment(
            "E1",
            50,
            "rita",
            AssignmentKind::Assigned(build_agent_account()),
        )],
        ..TrackerIssue::default()
    }
}

/// Rita may request work, guests may not; `change` modifies the issue.
pub(super) fn build_issue_facts(rules: &str, change: impl FnOnce(&mut TrackerIssue)) -> DecisionFacts {
    let mut facts = facts_with(rules, TriggerChannel::Webhook);
    let mut issue = build_tracker_issue();
    change(&mut issue);
    facts.put_issue(build_ticket_key(), Ok(issue));
    facts.put_open(build_repository_name(), build_ticket_key(), Vec::new());
    facts.put_progress(build_ticket_key(), RunProgress::default());
    for (login, may) in [("rita", true), ("guest", false), ("", false)] {
        facts.put_authority(
            EventActor::of_account(&build_ticket_key(), &convert_user(build_github_user(login))),
            may,
        );
    }
    facts
}

fn build_polled_event() -> TicketAssignedEvent {
    TicketAssignedEvent::from_poll(build_ticket_key())
}

#[test]
fn assignment_has_same_event_both_channels() {
    let facts = build_issue_facts(RULES, |_| {});
    let polled = expect_trigger(&build_polled_event(), &facts);
    assert_eq!(polled.key, TriggerKey::new("issue_event:E1"));
    assert_eq!(polled.reason.job(), Some(Job::Implement));
    assert_eq!(polled.actor.as_deref(), Some("rita"));
    for action in ["assigned", "labeled", "opened", "reopened"] {
        let payload = json!({"action": action, "issue": {"number": 7}, "sender": {"login": "x"},
            "repository": {"full_name": "acme/shop"}});
        assert_eq!(
            expect_trigger(&*parse_github_events("issues", &payload)[0], &facts),
            polled,
            "{action}"
        );
    }
    for action in ["unassigned", "unlabeled", "closed", "pinned"] {
        let payload =
            json!({"action": action, "issue": {"number": 7}, "repository": {"full_name": "acme/shop"}});
        assert!(parse_github_events("issues", &payload).is_empty(), "{action}");
    }
}

#[test]
fn last_assignment_counts_unless_withdrawn() {
    let label = || build_assignment("E2", 60, "rita", AssignmentKind::Labeled("ready".to_owned()));
    let neither = "the ticket is neither assigned to us nor labeled for work";
    assert_eq!(
        expect_nothing(
            &build_polled_event(),
            &build_issue_facts(RULES, |issue| issue.assignees.clear())
        ),
        neither
    );
    let unlabeled = build_issue_facts(RULES, |issue| {
        issue.assignees.clear();
        issue.assignments.push(label());
    });
    assert_eq!(expect_nothing(&build_polled_event(), &unlabeled), neither);
    let both = build_issue_facts(RULES, |issue| {
        issue.labels.push("ready".to_owned());
        issue.assignments.push(label());
    });
    assert_eq!(
        expect_trigger(&build_polled_event(), &both).key,
        TriggerKey::new("issue_event:E2")
    );
    let closed = build_issue_facts(RULES, |issue| issue.is_over = true);
    assert_eq!(
        expect_nothing(&build_polled_event(), &closed),
        "the ticket is closed"
    );
    let none = build_issue_facts("repo:\n  owner: acme\n  name: shop\n", |_| {});
    assert!(expect_nothing(&build_polled_event(), &none).starts_with("no rules"));
}

#[test]
fn second_request_during_work_starts_nothing() {
    let mut facts = facts_with(RULES, TriggerChannel::Webhook);
    facts.put_issue(build_ticket_key(), Ok(build_tracker_issue()));
    facts.put_progress(build_ticket_key(), build_live_progress());
    assert_eq!(
        expect_nothing(&build_polled_event(), &facts),
        "work on the ticket is under way"
    );
}

#[test]
fn request_before_handled_end_is_retried() {
    let mut facts = facts_with(RULES, TriggerChannel::Webhook);
    facts.put_issue(build_ticket_key(), Ok(build_tracker_issue()));
    facts.put_progress(build_ticket_key(), build_behind_progress());
    let early = decide_event(&build_polled_event(), &facts);
    assert!(matches!(early, EventVerdict::Unsettled { .. }), "{early:?}");
}

#[test]
fn only_writers_request_work_by_assignment() {
    let by = |login: Option<&str>| {
        let login = login.map(build_github_user).map(convert_user);
        build_issue_facts(RULES, |issue| issue.assignments[0].by = login)
    };
    for (login, actor) in [(Some("guest"), "guest"), (None, "somebody")] {
        let actor = actor.to_owned();
        let reason = expect_trigger(&build_polled_event(), &by(login)).reason;
        assert_eq!(
            reason,
            TriggerReason::Skipped(SkipReason::NoWritePermission { actor })
        );
    }
    assert_eq!(
        expect_nothing(&build_polled_event(), &by(Some("journeyman[bot]"))),
        "our own account did it"
    );
}

#[test]
fn text_edited_after_approval_is_skipped() {
    let edited = |ms: i64, by: &str| {
        let by = Some(convert_user(build_github_user(by)));
        build_issue_facts(RULES, |issue| {
            issue.edits.push(TrackerEdit {
                id: String::new(),
                at: build_timestamp(ms),
                by,
            });
        })
    };
    assert_eq!(
        expect_trigger(&build_polled_event(), &edited(49, "guest"))
            .reason
            .job(),
        Some(Job::Implement)
    );
    assert_eq!(
        expect_trigger(&build_polled_event(), &edited(51, "rita"))
            .reason
            .job(),
        Some(Job::Implement)
    );
    let by = "guest".to_owned();
    let changed = TriggerReason::Skipped(SkipReason::TextChanged { by });
    assert_eq!(
        expect_trigger(&build_polled_event(), &edited(50, "guest")).reason,
        changed
    );
}

#[test]
fn earlier_comments_carry_author_authority() {
    let comment = |author: &str, ms: i64| TrackerComment {
        author: author.to_owned(),
        author_id: convert_user(build_github_user(author)).id,
        by_bot: false,
        created: build_timestamp(ms),
        updated: build_timestamp(ms),
        text: "A word".to_owned(),
    };
    let facts = build_issue_facts(RULES, |issue| {
        issue.comments = vec![
            comment("guest", 10),
            comment("journeyman[bot]", 11),
            comment("rita", 12),
            comment("rita", 51),
        ];
    });
    let TriggerReason::JobRequested(job) = expect_trigger(&build_polled_event(), &facts).reason else {
        panic!("no job")
    };
    let said: Vec<_> = job
        .text
        .comments
        .iter()
        .map(|comment| (comment.author.as_str(), comment.may_instruct))
        .collect();
    assert_eq!(said, [("guest", false), ("rita", true)]);
}

#[test]
fn issue_is_triaged_once_per_text() {
    let rules = |anyone: bool| format!("{RULES}triage:\n  labels: [bug]\n  anyone: {anyone}\n");
    let text = IssueText::from_poll(build_ticket_key());
    let open = |anyone: bool, edits: Vec<TrackerEdit>| {
        build_issue_facts(&rules(anyone), |issue| {
            issue.assignees.clear();
            issue.edits = edits;
        })
    };
    let edit = |ms: i64, by: &str| TrackerEdit {
        id: String::new(),
        at: build_timestamp(ms),
        by: Some(convert_user(build_github_user(by))),
    };
    let not_asked = "the author of the text is not allowed to request a triage";
    assert_eq!(expect_nothing(&text, &open(false, Vec::new())), not_asked);
    let created = expect_trigger(&text, &open(true, Vec::new()));
    assert_eq!(
        (created.key, created.reason.job()),
        (TriggerKey::new("triage:created"), Some(Job::Triage))
    );
    let edited = expect_trigger(&text, &open(false, vec![edit(5, "guest"), edit(9, "rita")]));
    assert_eq!(
        edited.key,
        TriggerKey::new(format!("triage:{}", build_timestamp(9)))
    );
    assert_eq!(
        expect_nothing(&text, &build_issue_facts(&rules(true), |_| {})),
        "the issue asks for work"
    );
    for label in ["triaged", "Triaged"] {
        let done = build_issue_facts(&rules(true), |issue| {
            issue.assignees.clear();
            issue.labels.push(label.to_owned());
        });
        assert_eq!(expect_nothing(&text, &done), "the ticket is triaged");
    }
}

#[test]
fn jira_assignment_uses_changelog_key() {
    let rules = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n  assignee: Agent\n";
    let ticket: TicketKey = "jira:ENG-12".parse().expect("ticket");
    let ada = domain::TrackerAccount {
        id: "a1".to_owned(),
        display_name: "Ada".to_owned(),
        is_bot: false,
    };
    let us = domain::TrackerAccount {
        id: "712020:agent".to_owned(),
        display_name: "Agent".to_owned(),
        is_bot: false,
    };
    let facts = |to: &domain::TrackerAccount, may: bool| {
        let mut facts = facts_with(rules, TriggerChannel::Webhook);
        let issue = TrackerIssue {
            status: "To Do".to_owned(),
            assignees: vec![to.clone()],
            assignments: vec![AssignmentEvent {
                id: "9".to_owned(),
                at: build_timestamp(50),
                by: Some(ada.clone()),
                how: AssignmentKind::Assigned(to.clone()),
            }],
            ..build_tracker_issue()
        };
        facts.put_issue(ticket.clone(), Ok(issue));
        facts.put_open(build_repository_name(), ticket.clone(), Vec::new());
        facts.put_progress(ticket.clone(), RunProgress::default());
        facts.put_authority(EventActor::of_account(&ticket, &ada), may);
        facts
    };
    let payload = json!({"webhookEvent": "jira:issue_updated", "timestamp": 60, "issue": {"key": "ENG-12"},
        "user": {"accountId": "a1", "displayName": "Ada"},
        "changelog": {"id": "9", "items": [{"field": "assignee", "to": us.id, "toString": "Agent"}]}});
    let polled = expect_trigger(&TicketAssignedEvent::from_poll(ticket.clone()), &facts(&us, true));
    assert_eq!(
        expect_trigger(&*parse_jira_events(&payload)[0], &facts(&us, true)),
        polled
    );
    assert_eq!(polled.key, TriggerKey::new("changelog:9"));
    assert_eq!(polled.reason.job(), Some(Job::Implement));
    let refused = expect_trigger(
        &TicketAssignedEvent::from_poll(ticket.clone()),
        &facts(&us, false),
    )
    .reason;
    assert!(
        matches!(refused, TriggerReason::Skipped(SkipReason::NotAllowed { .. })),
        "{refused:?}"
    );
    let other = expect_nothing(
        &TicketAssignedEvent::from_poll(ticket.clone()),
        &facts(&ada, true),
    );
    assert!(
        other.starts_with("the ticket is neither assigned to us"),
        "{other}"
    );
}
