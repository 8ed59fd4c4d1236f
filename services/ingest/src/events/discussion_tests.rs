//! Verdicts about discussions; webhook and poll are equal, because both read the discussion.

use domain::{
    DiscussionTask, Job, JobSubject, ReactionSubject, SkipReason, TicketKey, Timestamp, TriggerChannel,
    TriggerKey, TriggerReason,
};
use serde_json::{Value, json};

use super::{
    comment::CommentEvent,
    discussed::DiscussionEvent,
    tests::{build_github_user, expect_nothing, expect_trigger, facts_with, parse_github_events},
};
use crate::facts::{
    DecisionFacts, EventActor, RunProgress,
    tracker_reader::{TrackerIssue, convert_user},
};

pub(super) const RULES: &str = "repo:\n  owner: acme\n  name: shop\nissues:\n  most_planned: 3\ndiscussions:\n  enabled: true\n  \
    categories: [ideas]\n";

pub(super) fn build_ticket_key() -> TicketKey {
    "github:acme/shop/discussions/7".parse().expect("ticket")
}

/// Discussion of Rita, who may request work; guests may not. `change` modifies it.
pub(super) fn build_discussion_facts(rules: &str, change: impl FnOnce(&mut TrackerIssue)) -> DecisionFacts {
    let mut facts = facts_with(rules, TriggerChannel::Webhook);
    let mut issue = TrackerIssue {
        summary: "How do we round?".to_owned(),
        kind: "Ideas".to_owned(),
        status: "open".to_owned(),
        created: Some(Timestamp::from_unix_ms(1)),
        creator: Some(convert_user(build_github_user("rita"))),
        ..TrackerIssue::default()
    };
    change(&mut issue);
    facts.put_issue(build_ticket_key(), Ok(issue));
    facts.put_progress(build_ticket_key(), RunProgress::default());
    for (login, may) in [("rita", true), ("guest", false), ("", false)] {
        facts.put_authority(
            EventActor::of_account(&build_ticket_key(), &convert_user(build_github_user(login))),
            may,
        );
    }
    facts
}

pub(super) fn build_opened_payload() -> Value {
    json!({"action": "created", "discussion": {"number": 7}, "repository": {"full_name": "acme/shop"},
        "sender": {"login": "rita"}})
}

pub(super) fn build_comment_payload(by: &str, text: &str) -> Value {
    json!({"action": "created", "discussion": {"number": 7}, "repository": {"full_name": "acme/shop"},
        "sender": {"login": by}, "comment": {"id": 9, "node_id": "DC_9", "body": text,
        "user": {"login": by, "id": build_github_user(by).id}, "created_at": "2026-01-01T00:00:00Z"}})
}

pub(super) fn build_polled_comment(by: &str, text: &str) -> CommentEvent {
    let at = Timestamp::parse("2026-01-01T00:00:00Z").expect("a time");
    let comment = github::DiscussionComment {
        id: github::GitHubCommentId(9),
        node_id: "DC_9".to_owned(),
        thread: "DC_9".to_owned(),
        author: Some(build_github_user(by)),
        body: text.to_owned(),
        created_at: at,
        updated_at: at,
    };
    CommentEvent::from_discussion_poll(&"acme/shop".parse().expect("repository"), 7, comment)
}

fn read_discussion_task(reason: &TriggerReason) -> Option<DiscussionTask> {
    let TriggerReason::JobRequested(request) = reason else {
        panic!("{reason:?}")
    };
    assert_eq!(request.job, Job::Discuss);
    request.about.discussion().map(|wanted| wanted.task)
}

#[test]
fn new_discussion_has_same_research_both_channels() {
    let facts = build_discussion_facts(RULES, |_| {});
    let delivered = expect_trigger(
        &*parse_github_events("discussion", &build_opened_payload())[0],
        &facts,
    );
    assert_eq!(delivered.key, TriggerKey::new("discussion:created"));
    assert_eq!(
        read_discussion_task(&delivered.reason),
        Some(DiscussionTask::Research)
    );
    assert_eq!(delivered.actor.as_deref(), Some("rita"));
    assert_eq!(
        expect_trigger(&DiscussionEvent::opened(build_ticket_key()), &facts),
        delivered
    );
    for action in ["edited", "deleted", "closed", "answered", "labeled"] {
        let mut payload = build_opened_payload();
        payload["action"] = action.into();
        assert!(parse_github_events("discussion", &payload).is_empty(), "{action}");
    }
}

#[test]
fn new_discussion_ignored_by_rules_or_author() {
    let why = |rules: &str, change: fn(&mut TrackerIssue)| {
        expect_nothing(
            &DiscussionEvent::opened(build_ticket_key()),
            &build_discussion_facts(rules, change),
        )
    };
    let off = "repo:\n  owner: acme\n  name: shop\n";
    assert_eq!(why(off, |_| {}), "the rules keep us out of discussions");
    let unasked = format!("{RULES}  research: false\n");
    assert_eq!(why(&unasked, |_| {}), "the rules keep us out of discussions");
    let other = why(RULES, |issue| "General".clone_into(&mut issue.kind));
    assert_eq!(other, "the rules keep us out of this category");
    let closed = why(RULES, |issue| issue.is_over = true);
    assert_eq!(closed, "the discussion is closed");
    let guest = why(RULES, |issue| {
        issue.creator = Some(convert_user(build_github_user("guest")))
    });
    assert_eq!(
        guest,
        "the author of the discussion is not allowed to request work"
    );
}

#[test]
fn discussion_command_starts_task_both_channels() {
    let facts = build_discussion_facts(RULES, |_| {});
    for (order, wanted) in [
        ("/summarize", DiscussionTask::Summarize),
        ("/plan", DiscussionTask::Plan),
        ("/complete", DiscussionTask::Complete),
    ] {
        let delivered = expect_trigger(
            &*parse_github_events("discussion_comment", &build_comment_payload("rita", order))[0],
            &facts,
        );
        assert_eq!(read_discussion_task(&delivered.reason), Some(wanted));
        assert_eq!(delivered.key, TriggerKey::new("discussion_comment:9"));
        assert_eq!(
            expect_trigger(&build_polled_comment("rita", order), &facts),
            delivered
        );
        let by_a_guest = parse_github_events("discussion_comment", &build_comment_payload("guest", order));
        assert_eq!(
            expect_nothing(&*by_a_guest[0], &facts),
            "the author is not allowed to give orders"
        );
    }
}

#[test]
fn plan_without_issue_right_is_refused() {
    let rules = RULES.replace("  most_planned: 3\n", "  most_planned: 0\n");
    let delivered = expect_trigger(
        &build_polled_comment("rita", "/plan"),
        &build_discussion_facts(&rules, |_| {}),
    );
    assert_eq!(delivered.reason, TriggerReason::Skipped(SkipReason::NoIssues));
}

#[test]
fn a_closed_discussion_is_not_closed_again() {
    let facts = build_discussion_facts(RULES, |issue| issue.is_over = true);
    assert_eq!(
        expect_nothing(&build_polled_comment("rita", "/complete"), &facts),
        "the discussion is closed already"
    );
}

#[test]
fn discussion_question_is_answered_where_enabled() {
    let mut facts = build_discussion_facts(RULES, |_| {});
    facts.own_accounts = std::sync::Arc::new(["journeyman[bot]".to_owned()].into());
    let delivered = expect_trigger(&build_polled_comment("rita", "@journeyman why half up?"), &facts);
    let TriggerReason::JobRequested(request) = &delivered.reason else {
        panic!("{delivered:?}")
    };
    let JobSubject::Question(question) = &request.about else {
        panic!("{request:?}")
    };
    let comment = ReactionSubject::Discussion {
        repository: "acme/shop".parse().expect("repository"),
        number: 7,
        comment: Some("DC_9".to_owned()),
    };
    assert_eq!(question.comment, Some(comment));
    assert_eq!(
        expect_nothing(&build_polled_comment("rita", "I like half up."), &facts),
        "no run is under way that could read it"
    );
    let mut other = self::build_discussion_facts(RULES, |issue| "General".clone_into(&mut issue.kind));
    other.own_accounts = std::sync::Arc::clone(&facts.own_accounts);
    let why = expect_nothing(&build_polled_comment("rita", "@journeyman why half up?"), &other);
    assert_eq!(why, "the rules keep us out of this discussion");
}
