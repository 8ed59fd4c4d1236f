//! Verdicts after the end of a review request; webhook and poll are equal, because both read the pull request.

use domain::{
    Job, Lane, PendingRun, RunId, TicketKey, TicketRow, Timestamp, Trigger, TriggerChannel, TriggerKey,
    TriggerReason, WithdrawalReason,
};
use github::{PullRequest, PullRequestReview, ReviewVerdict};
use serde_json::json;

use super::{
    EventVerdict,
    review_request_tests::waiting_for_review,
    review_requested::ReviewRequestEvent,
    tests::{
        build_repository_name, decide_event, expect_nothing, expect_trigger, facts_with, parse_github_events,
        pull_request,
    },
    withdrawn::ReviewWithdrawalEvent,
};
use crate::facts::DecisionFacts;

const RULES: &str = "repo:\n  owner: acme\n  name: shop\npull_request:\n  reviewer: agent\n";
const ASKED: &str = "review:4:0123";

fn build_ticket_key() -> TicketKey {
    TicketKey::GitHub {
        repository: build_repository_name(),
        number: 7,
    }
}

/// Review whose trigger is the fifth of the log, requested under this key.
fn under_way(key: &str, now: PullRequest) -> DecisionFacts {
    let mut facts = facts_with(RULES, TriggerChannel::Webhook);
    let asked = expect_trigger(
        &ReviewRequestEvent::from_poll(build_repository_name(), 7),
        &waiting_for_review(),
    );
    let asked = Trigger {
        key: TriggerKey::new(key),
        ..asked.into_trigger(TriggerChannel::Webhook)
    };
    facts.put_history(build_ticket_key(), vec![asked]);
    facts.put_known(build_ticket_key(), TriggerKey::new(key), Some(5));
    facts.put_row(build_ticket_key(), build_ticket_row(5, true));
    facts.put_pull_request(build_repository_name(), 7, now);
    facts.put_reviews(build_repository_name(), 7, Vec::new());
    facts
}

fn build_ticket_row(cursor: u64, is_live: bool) -> TicketRow {
    let pending = PendingRun::new(RunId::new(build_ticket_key(), 5), Job::Review, Lane::Review);
    TicketRow {
        cursor,
        pending: is_live.then_some(pending).into_iter().collect(),
        ..TicketRow::default()
    }
}

pub(super) fn build_polled_event() -> ReviewWithdrawalEvent {
    ReviewWithdrawalEvent::from_poll(build_repository_name(), 7)
}

/// Active review whose pull request was merged.
pub(super) fn build_merged_facts() -> DecisionFacts {
    under_way(ASKED, request_agent_review(close_pull_request(true)))
}

fn close_pull_request(merged: bool) -> PullRequest {
    PullRequest {
        closed_at: Some(Timestamp::from_unix_ms(90_000)),
        merged,
        ..pull_request()
    }
}

fn request_agent_review(now: PullRequest) -> PullRequest {
    PullRequest {
        requested_reviewers: vec!["Agent".to_owned()],
        ..now
    }
}

#[test]
fn review_ends_with_pull_request_or_request() {
    for (now, why) in [
        (
            request_agent_review(close_pull_request(true)),
            WithdrawalReason::Merged,
        ),
        (
            request_agent_review(close_pull_request(false)),
            WithdrawalReason::Closed,
        ),
        (pull_request(), WithdrawalReason::Unrequested),
    ] {
        let facts = under_way(ASKED, now);
        let delivered = expect_trigger(&build_polled_event(), &facts);
        assert_eq!(delivered.reason, TriggerReason::ReviewWithdrawn { why });
        assert_eq!(delivered.ticket, build_ticket_key());
        for action in ["closed", "review_request_removed"] {
            let payload = json!({"action": action, "pull_request": {"number": 7, "head": {"ref": "x"},
                "closed_at": "2026-01-01T00:00:00Z"}, "repository": {"full_name": "acme/shop"},
                "sender": {"login": "eve"}});
            let hooks = parse_github_events("pull_request", &payload);
            let hook = hooks
                .iter()
                .find(|event| format!("{event:?}").starts_with("ReviewWithdrawalEvent"));
            let by_webhook = expect_trigger(&**hook.expect("a webhook of this kind"), &facts);
            assert_eq!(
                (by_webhook.key, by_webhook.reason),
                (delivered.key.clone(), delivered.reason.clone())
            );
            assert_eq!(by_webhook.actor.as_deref(), Some("eve"));
        }
    }
}

#[test]
fn wanted_or_finished_review_continues() {
    assert_eq!(
        expect_nothing(
            &build_polled_event(),
            &under_way(ASKED, request_agent_review(pull_request()))
        ),
        "our review is still requested, or submitted"
    );
    // No user requested the review on the pull request, so there is no request to withdraw. A merge ends it
    // nonetheless.
    let by_hand = under_way("api:ada:1", pull_request());
    assert_eq!(
        expect_nothing(&build_polled_event(), &by_hand),
        "our review is still requested, or submitted"
    );
    let merged = under_way("api:ada:1", close_pull_request(true));
    assert!(matches!(
        decide_event(&build_polled_event(), &merged),
        EventVerdict::Follows(_)
    ));
    // GitHub removes the request once the review is submitted.
    let mut given = facts_with(RULES, TriggerChannel::Webhook);
    given.put_row(build_ticket_key(), build_ticket_row(5, true));
    let base = under_way(ASKED, pull_request());
    given.put_history(
        build_ticket_key(),
        base.history(&build_ticket_key()).expect("history").clone(),
    );
    given.put_known(build_ticket_key(), TriggerKey::new(ASKED), Some(5));
    given.put_pull_request(build_repository_name(), 7, pull_request());
    given.put_reviews(build_repository_name(), 7, vec![build_own_review()]);
    assert_eq!(
        expect_nothing(&build_polled_event(), &given),
        "our review is still requested, or submitted"
    );
}

#[test]
fn run_unknown_to_row_counts_active() {
    for (row, is_over) in [
        (build_ticket_row(5, false), true),
        (build_ticket_row(4, false), false),
    ] {
        let base = under_way(ASKED, close_pull_request(true));
        let mut facts = facts_with(RULES, TriggerChannel::Webhook);
        facts.put_history(
            build_ticket_key(),
            base.history(&build_ticket_key()).expect("history").clone(),
        );
        facts.put_known(build_ticket_key(), TriggerKey::new(ASKED), Some(5));
        facts.put_row(build_ticket_key(), row);
        facts.put_pull_request(build_repository_name(), 7, close_pull_request(true));
        let is_nothing = matches!(
            decide_event(&build_polled_event(), &facts),
            EventVerdict::Nothing(_)
        );
        assert_eq!(is_nothing, is_over);
    }
}

fn build_own_review() -> PullRequestReview {
    PullRequestReview {
        id: 60,
        author: "journeyman[bot]".to_owned(),
        author_id: Some(9),
        by_bot: true,
        state: ReviewVerdict::Commented,
        body: String::new(),
        at: None,
        comments: Vec::new(),
        commit: Some(pull_request().head),
    }
}

#[test]
fn repository_without_reviewer_withdraws_nothing() {
    let facts = facts_with("repo:\n  owner: acme\n  name: shop\n", TriggerChannel::Webhook);
    assert_eq!(
        expect_nothing(&build_polled_event(), &facts),
        "no rules that name a reviewer"
    );
}
