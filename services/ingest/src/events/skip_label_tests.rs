//! A skip label excludes a pull request from all work, ours or a person's.

use domain::{Job, SkipReason, Timestamp, TriggerChannel, TriggerReason};
use github::{CheckConclusion, PullRequest, ReviewRequest, ReviewVerdict};

use super::{
    checks::{ChecksAbsent, ChecksChanged},
    overdue_review::OverdueReviewEvent,
    review_requested::ReviewRequestEvent,
    tests::{
        build_checked_facts, build_commit_check, build_commit_id, build_moved_payload, build_pull_record,
        build_repository_name, build_review, build_ticket_key, build_work_facts, check_run, expect_nothing,
        expect_trigger, facts_with, parse_jira_events, prepare_review, pull_request,
    },
};
use crate::policy::skip::FORBIDDEN;

fn label_pull_request(label: &str) -> PullRequest {
    PullRequest {
        labels: vec!["size/s".to_owned(), label.to_owned()],
        ..pull_request()
    }
}

#[test]
fn labeled_pull_request_checks_start_nothing() {
    for end in [CheckConclusion::Failure, CheckConclusion::Success] {
        let checks = || vec![build_commit_check(1, Some(end))];
        let left = build_checked_facts(label_pull_request("skip-dispatch"), checks());
        assert_eq!(expect_nothing(&*check_run()[0], &left), FORBIDDEN);
        let polled = ChecksChanged::from_poll(&build_pull_record(), build_commit_id());
        assert_eq!(expect_nothing(&polled, &left), FORBIDDEN);
        let again = build_checked_facts(label_pull_request("other"), checks());
        assert!(expect_trigger(&polled, &again).reason.job().is_some(), "{end:?}");
    }
    let silent = ChecksAbsent::from_poll(&build_pull_record(), build_commit_id());
    assert_eq!(
        expect_nothing(
            &silent,
            &build_checked_facts(label_pull_request("skip-dispatch"), vec![])
        ),
        FORBIDDEN
    );
}

#[test]
fn skip_label_counts_in_any_case() {
    let silent = ChecksAbsent::from_poll(&build_pull_record(), build_commit_id());
    let labeled = build_checked_facts(label_pull_request("Skip-Dispatch"), vec![]);
    assert_eq!(expect_nothing(&silent, &labeled), FORBIDDEN);
}

#[test]
fn labeled_pull_request_review_is_ignored() {
    let (delivered, polled, mut facts) =
        prepare_review(build_review(9, ReviewVerdict::ChangesRequested, "No.", &[]));
    assert_eq!(
        expect_trigger(&polled, &facts).reason.job(),
        Some(Job::AddressReview)
    );
    facts = with_pull_request(facts, label_pull_request("skip-dispatch"));
    assert_eq!(expect_nothing(&*delivered[0], &facts), FORBIDDEN);
    assert_eq!(expect_nothing(&polled, &facts), FORBIDDEN);
}

/// The first value of a fact wins, so the facts are built from scratch.
fn with_pull_request(_: crate::facts::DecisionFacts, now: PullRequest) -> crate::facts::DecisionFacts {
    let (_, _, before) = prepare_review(build_review(9, ReviewVerdict::ChangesRequested, "No.", &[]));
    let mut facts = super::tests::build_decision_facts();
    facts.put_pull_request(build_repository_name(), 7, now);
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_authority(super::tests::build_rita_actor(), true);
    let reviews = before
        .reviews(&build_repository_name(), &7)
        .expect("reviews")
        .clone();
    facts.put_reviews(build_repository_name(), 7, reviews);
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
        facts.put_pull_request(build_repository_name(), 7, now);
        facts.put_review_requests(build_repository_name(), 7, Vec::new());
        facts.put_history(build_ticket_key(), Vec::new());
        expect_nothing(&OverdueReviewEvent::from_poll(build_pull_record()), &facts)
    };
    assert_eq!(why(label_pull_request("skip-dispatch")), FORBIDDEN);
    assert_eq!(
        why(label_pull_request("other")),
        "nobody knows since when it waits"
    );
}

#[test]
fn labeled_foreign_pull_request_is_not_read() {
    let rules = "repo:\n  owner: acme\n  name: shop\npull_request:\n  reviewer: agent\n";
    let mut facts = facts_with(rules, TriggerChannel::Webhook);
    let waiting = PullRequest {
        requested_reviewers: vec!["agent".to_owned()],
        ..label_pull_request("skip-dispatch")
    };
    facts.put_pull_request(build_repository_name(), 7, waiting);
    facts.put_record(build_repository_name(), 7, None);
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
    facts.put_review_requests(build_repository_name(), 7, vec![request]);
    facts.put_authority(super::tests::build_rita_actor(), true);
    assert_eq!(
        expect_nothing(&ReviewRequestEvent::from_poll(build_repository_name(), 7), &facts),
        FORBIDDEN
    );
}

#[test]
fn labeled_ticket_is_skipped_by_label() {
    let facts =
        build_work_facts(|issue, _| issue.labels = vec!["bug".to_owned(), "skip-dispatch".to_owned()]);
    let label = "skip-dispatch".to_owned();
    let reason = expect_trigger(&*parse_jira_events(&build_moved_payload())[0], &facts).reason;
    assert_eq!(reason, TriggerReason::Skipped(SkipReason::Label { label }));
}
