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
    tests::{decided, facts_with, follows, github, nothing, pull_request, repository},
    withdrawn::ReviewWithdrawalEvent,
};
use crate::facts::DecisionFacts;

const RULES: &str = "repo:\n  owner: acme\n  name: shop\npull_request:\n  reviewer: agent\n";
const ASKED: &str = "review:4:0123";

fn ticket() -> TicketKey {
    TicketKey::GitHub {
        repository: repository(),
        number: 7,
    }
}

/// Review whose trigger is the fifth of the log, requested under this key.
fn under_way(key: &str, now: PullRequest) -> DecisionFacts {
    let mut facts = facts_with(RULES, TriggerChannel::Webhook);
    let asked = follows(
        &ReviewRequestEvent::from_poll(repository(), 7),
        &waiting_for_review(),
    );
    let asked = Trigger {
        key: TriggerKey::new(key),
        ..asked.into_trigger(TriggerChannel::Webhook)
    };
    facts.put_history(ticket(), vec![asked]);
    facts.put_known(ticket(), TriggerKey::new(key), Some(5));
    facts.put_row(ticket(), row(5, true));
    facts.put_pull_request(repository(), 7, now);
    facts.put_reviews(repository(), 7, Vec::new());
    facts
}

fn row(cursor: u64, is_live: bool) -> TicketRow {
    let pending = PendingRun::new(RunId::new(ticket(), 5), Job::Review, Lane::Review);
    TicketRow {
        cursor,
        pending: is_live.then_some(pending).into_iter().collect(),
        ..TicketRow::default()
    }
}

pub(super) fn polled() -> ReviewWithdrawalEvent {
    ReviewWithdrawalEvent::from_poll(repository(), 7)
}

/// Active review whose pull request was merged.
pub(super) fn merged() -> DecisionFacts {
    under_way(ASKED, wanted(closed(true)))
}

fn closed(merged: bool) -> PullRequest {
    PullRequest {
        closed_at: Some(Timestamp::from_unix_ms(90_000)),
        merged,
        ..pull_request()
    }
}

fn wanted(now: PullRequest) -> PullRequest {
    PullRequest {
        requested_reviewers: vec!["Agent".to_owned()],
        ..now
    }
}

#[test]
fn review_ends_with_pull_request_or_request() {
    for (now, why) in [
        (wanted(closed(true)), WithdrawalReason::Merged),
        (wanted(closed(false)), WithdrawalReason::Closed),
        (pull_request(), WithdrawalReason::Unrequested),
    ] {
        let facts = under_way(ASKED, now);
        let told = follows(&polled(), &facts);
        assert_eq!(told.reason, TriggerReason::ReviewWithdrawn { why });
        assert_eq!(told.ticket, ticket());
        for action in ["closed", "review_request_removed"] {
            let payload = json!({"action": action, "pull_request": {"number": 7, "head": {"ref": "x"},
                "closed_at": "2026-01-01T00:00:00Z"}, "repository": {"full_name": "acme/shop"},
                "sender": {"login": "eve"}});
            let hooks = github("pull_request", &payload);
            let hook = hooks
                .iter()
                .find(|event| format!("{event:?}").starts_with("ReviewWithdrawalEvent"));
            let by_webhook = follows(&**hook.expect("a webhook of this kind"), &facts);
            assert_eq!(
                (by_webhook.key, by_webhook.reason),
                (told.key.clone(), told.reason.clone())
            );
            assert_eq!(by_webhook.actor.as_deref(), Some("eve"));
        }
    }
}

#[test]
fn wanted_or_finished_review_continues() {
    assert_eq!(
        nothing(&polled(), &under_way(ASKED, wanted(pull_request()))),
        "our review is wanted, or given"
    );
    // No user requested the review on the pull request, so there is no request to withdraw. A merge ends it
    // nonetheless.
    let by_hand = under_way("api:ada:1", pull_request());
    assert_eq!(nothing(&polled(), &by_hand), "our review is wanted, or given");
    let merged = under_way("api:ada:1", closed(true));
    assert!(matches!(decided(&polled(), &merged), EventVerdict::Follows(_)));
    // GitHub removes the request once the review is submitted.
    let mut given = facts_with(RULES, TriggerChannel::Webhook);
    given.put_row(ticket(), row(5, true));
    let base = under_way(ASKED, pull_request());
    given.put_history(ticket(), base.history(&ticket()).expect("history").clone());
    given.put_known(ticket(), TriggerKey::new(ASKED), Some(5));
    given.put_pull_request(repository(), 7, pull_request());
    given.put_reviews(repository(), 7, vec![ours()]);
    assert_eq!(nothing(&polled(), &given), "our review is wanted, or given");
}

#[test]
fn run_unknown_to_row_counts_active() {
    for (row, is_over) in [(row(5, false), true), (row(4, false), false)] {
        let base = under_way(ASKED, closed(true));
        let mut facts = facts_with(RULES, TriggerChannel::Webhook);
        facts.put_history(ticket(), base.history(&ticket()).expect("history").clone());
        facts.put_known(ticket(), TriggerKey::new(ASKED), Some(5));
        facts.put_row(ticket(), row);
        facts.put_pull_request(repository(), 7, closed(true));
        let is_nothing = matches!(decided(&polled(), &facts), EventVerdict::Nothing(_));
        assert_eq!(is_nothing, is_over);
    }
}

fn ours() -> PullRequestReview {
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
    assert_eq!(nothing(&polled(), &facts), "no rules that name a reviewer");
}
