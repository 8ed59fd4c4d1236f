//! A skip label excludes a pull request from all work, ours or a person's.

use domain::{Job, SkipReason, Timestamp, TriggerChannel, TriggerReason};
use github::{CheckConclusion, PullRequest, ReviewRequest, ReviewVerdict};

use super::{
    checks::{ChecksAbsent, ChecksChanged},
    overdue_review::OverdueReviewEvent,
    review_requested::ReviewRequestEvent,
    tests::{
        asked, check, check_run, checked, commit, facts_with, follows, jira, moved, nothing, pull_request,
        record, repository, review, reviewed, ticket,
    },
};
use crate::skip::FORBIDDEN;

fn labeled(label: &str) -> PullRequest {
    PullRequest {
        labels: vec!["size/s".to_owned(), label.to_owned()],
        ..pull_request()
    }
}

#[test]
fn labeled_pull_request_checks_start_nothing() {
    for end in [CheckConclusion::Failure, CheckConclusion::Success] {
        let checks = || vec![check(1, Some(end))];
        let left = checked(labeled("skip-dispatch"), checks());
        assert_eq!(nothing(&*check_run()[0], &left), FORBIDDEN);
        let polled = ChecksChanged::from_poll(&record(), commit());
        assert_eq!(nothing(&polled, &left), FORBIDDEN);
        let again = checked(labeled("other"), checks());
        assert!(follows(&polled, &again).reason.job().is_some(), "{end:?}");
    }
    let silent = ChecksAbsent::from_poll(&record(), commit());
    assert_eq!(
        nothing(&silent, &checked(labeled("skip-dispatch"), vec![])),
        FORBIDDEN
    );
}

#[test]
fn labeled_pull_request_review_is_ignored() {
    let (told, polled, mut facts) = reviewed(review(9, ReviewVerdict::ChangesRequested, "No.", &[]));
    assert_eq!(follows(&polled, &facts).reason.job(), Some(Job::AddressReview));
    facts = with_pull_request(facts, labeled("skip-dispatch"));
    assert_eq!(nothing(&*told[0], &facts), FORBIDDEN);
    assert_eq!(nothing(&polled, &facts), FORBIDDEN);
}

/// The first value of a fact wins, so the facts are built from scratch.
fn with_pull_request(_: crate::facts::DecisionFacts, now: PullRequest) -> crate::facts::DecisionFacts {
    let (_, _, before) = reviewed(review(9, ReviewVerdict::ChangesRequested, "No.", &[]));
    let mut facts = super::tests::facts();
    facts.put_pull_request(repository(), 7, now);
    facts.put_record(repository(), 7, Some(record()));
    facts.put_authority(super::tests::rita(), true);
    let reviews = before.reviews(&repository(), &7).expect("reviews").clone();
    facts.put_reviews(repository(), 7, reviews);
    facts
}

#[test]
fn labeled_pull_request_gets_no_reminder() {
    let rules =
        "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\nreview:\n  remind_after_days: 1\n";
    let why = |now: PullRequest| {
        let mut facts = facts_with(rules, TriggerChannel::Poll);
        let now = PullRequest {
            draft: false,
            requested_reviewers: vec!["rita".to_owned()],
            ..now
        };
        facts.put_pull_request(repository(), 7, now);
        facts.put_review_requests(repository(), 7, Vec::new());
        facts.put_history(ticket(), Vec::new());
        nothing(&OverdueReviewEvent::from_poll(record()), &facts)
    };
    assert_eq!(why(labeled("skip-dispatch")), FORBIDDEN);
    assert_eq!(why(labeled("other")), "nobody knows since when it waits");
}

#[test]
fn labeled_foreign_pull_request_is_not_read() {
    let rules = "repo:\n  owner: acme\n  name: shop\npull_request:\n  reviewer: agent\n";
    let mut facts = facts_with(rules, TriggerChannel::Webhook);
    let waiting = PullRequest {
        requested_reviewers: vec!["agent".to_owned()],
        ..labeled("skip-dispatch")
    };
    facts.put_pull_request(repository(), 7, waiting);
    facts.put_record(repository(), 7, None);
    let rita = github::GitHubUser {
        is_bot: false,
        id: Some(8),
        login: "rita".to_owned(),
    };
    let request = ReviewRequest {
        id: 4,
        by: Some(rita),
        reviewer: "agent".to_owned(),
        at: Timestamp::from_unix_ms(50),
    };
    facts.put_review_requests(repository(), 7, vec![request]);
    facts.put_authority(super::tests::rita(), true);
    assert_eq!(
        nothing(&ReviewRequestEvent::from_poll(repository(), 7), &facts),
        FORBIDDEN
    );
}

#[test]
fn labeled_ticket_is_skipped_by_label() {
    let facts = asked(|issue, _| issue.labels = vec!["bug".to_owned(), "skip-dispatch".to_owned()]);
    let label = "skip-dispatch".to_owned();
    let reason = follows(&*jira(&moved())[0], &facts).reason;
    assert_eq!(reason, TriggerReason::Skipped(SkipReason::Label { label }));
}
