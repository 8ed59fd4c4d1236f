//! Reviews of our pull request by programs that the rules name, and by ourselves.

use domain::{Job, ReviewRound, Trigger, TriggerChannel, TriggerReason};
use github::{PullRequest, PullRequestReview, ReviewRequest, ReviewVerdict};
use serde_json::json;

use super::{
    EventKind, EventVerdict,
    review_requested::ReviewRequestEvent,
    reviewed::ReviewEvent,
    tests::{
        asked_before, build_commit_id, build_pull_record, build_repository_name, build_review,
        build_ticket_key, decide_event, expect_nothing, expect_trigger, facts_with, parse_github_events,
        pull_request,
    },
};
use crate::facts::{DecisionFacts, PROGRAM};

const RULES: &str = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n";
const AGENTS: &str = "review:\n  agents: ['lint[bot]']\n  max_rounds: 2\n";
const ITSELF: &str = "pull_request:\n  reviewer: agent\n  self_review: true\n";

fn build_program_review(author: &str, id: u64, lines: &[(u64, Option<u64>)]) -> PullRequestReview {
    PullRequestReview {
        author: author.to_owned(),
        author_id: Some(41),
        by_bot: true,
        commit: Some(build_commit_id()),
        ..build_review(id, ReviewVerdict::Commented, "", lines)
    }
}

fn build_review_facts(rules: &str, review: &PullRequestReview, history: &[Trigger]) -> DecisionFacts {
    let mut facts = facts_with(&format!("{RULES}{rules}"), TriggerChannel::Webhook);
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_pull_request(build_repository_name(), 7, pull_request());
    facts.put_reviews(build_repository_name(), 7, vec![review.clone()]);
    facts.put_history(build_ticket_key(), history.to_vec());
    facts
}

fn build_review_event(review: &PullRequestReview) -> Box<dyn EventKind> {
    let user = json!({"login": review.author, "id": 41, "type": "Bot"});
    parse_github_events(
        "pull_request_review",
        &json!({"action": "submitted", "review": {"id": review.id, "user": user},
        "pull_request": {"number": 7}, "repository": {"full_name": "acme/shop"}}),
    )
    .remove(0)
}

fn extract_review_round(reason: &TriggerReason) -> ReviewRound {
    match reason {
        TriggerReason::JobRequested(request) => request.about.round().expect("a review").clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn named_program_review_starts_work_as_information() {
    let review = build_program_review("lint[bot]", 9, &[(41, None)]);
    assert_eq!(
        expect_nothing(
            &*build_review_event(&review),
            &build_review_facts("", &review, &[])
        ),
        PROGRAM
    );
    let facts = build_review_facts(AGENTS, &review, &[asked_before()]);
    let found = expect_trigger(&*build_review_event(&review), &facts);
    assert_eq!(
        found,
        expect_trigger(&ReviewEvent::from_poll(&build_pull_record(), &review), &facts)
    );
    assert_eq!(found.reason.job(), Some(Job::AddressReview));
    assert!(extract_review_round(&found.reason).by_program);
}

#[test]
fn program_reviews_stop_after_allowed_rounds() {
    let mut history = vec![asked_before()];
    let mut ends = Vec::new();
    for id in 0..4 {
        // Each review has new threads: those of a person would have no limit.
        let review = build_program_review("lint[bot]", id, &[(100 + id, None)]);
        match decide_event(
            &*build_review_event(&review),
            &build_review_facts(AGENTS, &review, &history),
        ) {
            EventVerdict::Follows(follows) => history.push(follows.into_trigger(TriggerChannel::Webhook)),
            EventVerdict::Nothing(why) => ends.push(why),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(history.len(), 3, "the ticket, and two rounds");
    let worn = "the program's reviews were worked on as often as the rules allow";
    assert_eq!(ends, [worn, worn]);
}

#[test]
fn own_review_is_followed_once_per_head() {
    let review = build_program_review("journeyman[bot]", 9, &[(41, None)]);
    let asked = || vec![asked_before()];
    assert_eq!(
        expect_nothing(
            &*build_review_event(&review),
            &build_review_facts("", &review, &asked())
        ),
        "our own account said it"
    );
    let found = expect_trigger(
        &*build_review_event(&review),
        &build_review_facts(ITSELF, &review, &asked()),
    );
    let polled = ReviewEvent::from_poll(&build_pull_record(), &review);
    assert_eq!(
        found,
        expect_trigger(&polled, &build_review_facts(ITSELF, &review, &asked()))
    );
    assert!(extract_review_round(&found.reason).by_program);
    let mut history = asked();
    history.push(found.into_trigger(TriggerChannel::Webhook));
    let second = build_program_review("journeyman[bot]", 10, &[(42, None)]);
    let why = expect_nothing(
        &*build_review_event(&second),
        &build_review_facts(ITSELF, &second, &history),
    );
    assert_eq!(why, "a review of ours of this head was worked on");
    let said = "the author of the pull request said it";
    let reply = build_program_review("journeyman[bot]", 11, &[(43, Some(41))]);
    assert_eq!(
        expect_nothing(
            &*build_review_event(&reply),
            &build_review_facts(ITSELF, &reply, &asked())
        ),
        said,
        "a reply"
    );
    let old = PullRequestReview {
        commit: Some("a".repeat(40).parse().expect("commit")),
        ..review
    };
    assert_eq!(
        expect_nothing(
            &*build_review_event(&old),
            &build_review_facts(ITSELF, &old, &asked())
        ),
        said,
        "of an earlier head"
    );
}

fn build_request_facts(rules: &str, by: &str, now: PullRequest) -> DecisionFacts {
    let mut facts = facts_with(&format!("{RULES}{rules}"), TriggerChannel::Poll);
    let now = PullRequest {
        requested_reviewers: vec!["agent".to_owned()],
        ..now
    };
    facts.put_pull_request(build_repository_name(), 7, now);
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    let by = github::GitHubUser {
        id: Some(40),
        login: by.to_owned(),
        is_bot: true,
    };
    let request = ReviewRequest {
        id: 4,
        by: Some(by),
        reviewer: "agent".to_owned(),
        at: domain::Timestamp::default(),
    };
    facts.put_review_requests(build_repository_name(), 7, vec![request]);
    facts.put_files(build_repository_name(), 7, Vec::new());
    facts.put_reviews(build_repository_name(), 7, Vec::new());
    facts
}

#[test]
fn own_pull_request_reviewed_once_per_head() {
    let event = ReviewRequestEvent::from_poll(build_repository_name(), 7);
    let ready = || PullRequest {
        draft: false,
        ..pull_request()
    };
    let found = expect_trigger(&event, &build_request_facts(ITSELF, "journeyman[bot]", ready()));
    assert_eq!(found.reason.job(), Some(Job::Review));
    assert_eq!(found.key.as_str(), format!("review:own:{}", build_commit_id()));
    let why = |rules, by, now| expect_nothing(&event, &build_request_facts(rules, by, now));
    let off = "pull_request:\n  reviewer: agent\n";
    assert_eq!(
        why(off, "journeyman[bot]", ready()),
        "our own pull request: people review it"
    );
    assert_eq!(
        why(ITSELF, "journeyman[bot]", pull_request()),
        "our own pull request is a draft"
    );
    assert_eq!(
        why(ITSELF, "other[bot]", ready()),
        "the requester of the review is not allowed to request it"
    );
}
