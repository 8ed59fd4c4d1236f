//! Verdicts about requests for our review; webhook and poll are equal, because both read the pull
//! request.

use domain::{
    Job, JobSubject, PullRequestFile, TicketKey, Timestamp, TriggerChannel, TriggerKey, TriggerReason,
};
use github::{PullRequest, ReviewRequest};
use serde_json::json;

use super::{
    EventVerdict,
    review_requested::ReviewRequestEvent,
    tests::{
        build_github_user, build_repository_name, decide_event, expect_nothing, expect_trigger, facts_with,
        parse_github_events, pull_request,
    },
};
use crate::facts::{DecisionFacts, EventActor, tracker_reader::convert_user};

const RULES: &str = "repo:\n  owner: acme\n  name: shop\npull_request:\n  reviewer: agent\n";

pub(super) fn build_reviewer_request(id: u64, by: Option<&str>, reviewer: &str) -> ReviewRequest {
    ReviewRequest {
        id,
        by: by.map(build_github_user),
        reviewer: reviewer.to_owned(),
        at: Timestamp::from_unix_ms(50),
    }
}

pub(super) fn build_review_candidate() -> PullRequest {
    PullRequest {
        requested_reviewers: vec!["ann".to_owned(), "Agent".to_owned()],
        ..pull_request()
    }
}

pub(super) fn build_reviewer_facts(now: PullRequest, requests: Vec<ReviewRequest>) -> DecisionFacts {
    let mut facts = facts_with(RULES, TriggerChannel::Webhook);
    facts.put_pull_request(build_repository_name(), 7, now);
    facts.put_record(build_repository_name(), 7, None);
    facts.put_review_requests(build_repository_name(), 7, requests);
    facts.put_reviews(build_repository_name(), 7, Vec::new());
    let patch = |chars: usize| format!("@@ -0,0 +1 @@\n+{}", "x".repeat(chars));
    let file = |path: &str, chars: usize| PullRequestFile {
        path: path.to_owned(),
        patch: patch(chars),
    };
    let files = vec![file("a", 30_000), file("large", 50_000), file("b", 30_000)];
    facts.put_files(build_repository_name(), 7, files);
    for (login, may) in [("rita", true), ("guest", false), ("", false)] {
        let ticket = "github:acme/shop#7".parse().expect("ticket");
        facts.put_authority(
            EventActor::of_account(&ticket, &convert_user(build_github_user(login))),
            may,
        );
    }
    facts
}

/// Pull request with a review request of an authorized user.
pub(super) fn waiting_for_review() -> DecisionFacts {
    build_reviewer_facts(
        build_review_candidate(),
        vec![build_reviewer_request(4, Some("rita"), "agent")],
    )
}

#[test]
fn next_review_contains_changes_since_last() {
    let ticket: TicketKey = "github:acme/shop#7".parse().expect("ticket");
    let request = || vec![build_reviewer_request(4, Some("rita"), "agent")];
    let before = PullRequest {
        head: "1".repeat(40).parse().expect("commit"),
        ..build_review_candidate()
    };
    let first = expect_trigger(
        &build_polled_event(),
        &build_reviewer_facts(before.clone(), request()),
    );
    let reviewed = github::PullRequestReview {
        id: 60,
        author: "journeyman[bot]".to_owned(),
        author_id: Some(9),
        by_bot: true,
        state: github::ReviewVerdict::Commented,
        body: String::new(),
        at: None,
        comments: Vec::new(),
        commit: Some(before.head.clone()),
    };
    let since = |commits: Vec<domain::CommitId>, reviews: Vec<github::PullRequestReview>| {
        let mut facts = facts_with(RULES, TriggerChannel::Webhook);
        facts.put_pull_request(build_repository_name(), 7, build_review_candidate());
        facts.put_record(build_repository_name(), 7, None);
        facts.put_review_requests(build_repository_name(), 7, request());
        facts.put_reviews(build_repository_name(), 7, reviews);
        facts.put_commits(build_repository_name(), 7, commits);
        facts.put_history(
            ticket.clone(),
            vec![first.clone().into_trigger(TriggerChannel::Webhook)],
        );
        let patch = format!("@@ -0,0 +1,2 @@\n+{}\n+new", "x".repeat(30_000));
        let file = PullRequestFile {
            path: "a".to_owned(),
            patch,
        };
        facts.put_files(build_repository_name(), 7, vec![file]);
        let rita = EventActor::of_account(&ticket, &convert_user(build_github_user("rita")));
        facts.put_authority(rita, true);
        let TriggerReason::JobRequested(job) = expect_trigger(&build_polled_event(), &facts).reason else {
            panic!("no job")
        };
        job.about.change().expect("a change").since.clone()
    };
    let commits = vec![before.head.clone(), build_review_candidate().head];
    let delivered = since(commits.clone(), vec![reviewed.clone()]).expect("what came since");
    assert_eq!(delivered.commit, before.head);
    assert_eq!(delivered.files[0].patch, "@@ +2 @@\n+new\n");
    let pushed_over = vec![build_review_candidate().head];
    assert_eq!(since(pushed_over, vec![reviewed.clone()]), None, "no ancestor");
    let by_another = github::PullRequestReview {
        author: "ann".to_owned(),
        ..reviewed
    };
    assert_eq!(since(commits, vec![by_another]), None);
}

fn build_polled_event() -> ReviewRequestEvent {
    ReviewRequestEvent::from_poll(build_repository_name(), 7)
}

#[test]
fn last_review_request_counts_both_channels() {
    let requests = vec![
        build_reviewer_request(3, Some("guest"), "agent"),
        build_reviewer_request(4, Some("rita"), "Agent"),
        build_reviewer_request(5, Some("guest"), "ann"),
    ];
    let facts = build_reviewer_facts(build_review_candidate(), requests);
    let polled = expect_trigger(&build_polled_event(), &facts);
    let head = build_review_candidate().head;
    assert_eq!(polled.key, TriggerKey::new(format!("review:4:{}", head.as_str())));
    assert_eq!(
        polled.ticket,
        "github:acme/shop#7".parse::<TicketKey>().expect("ticket")
    );
    for action in ["review_requested", "synchronize", "opened", "reopened"] {
        let payload = json!({"action": action, "pull_request": {"number": 7, "head": {"ref": "x"}},
            "repository": {"full_name": "acme/shop"}, "sender": {"login": "eve"}});
        let delivered = parse_github_events("pull_request", &payload);
        assert!(
            delivered.iter().any(|event| matches!(
                decided_quietly(&**event, &facts),
                Some(EventVerdict::Follows(follows)) if *follows == polled
            )),
            "{action}"
        );
    }
    let TriggerReason::JobRequested(job) = polled.reason else {
        panic!("no job")
    };
    assert_eq!(job.job, Job::Review);
    let JobSubject::Change(change) = job.about else {
        panic!("about something else")
    };
    assert!(change.is_here, "the head is in the repository itself");
    let shown: Vec<_> = change
        .files
        .iter()
        .map(|file| (file.path.as_str(), !file.patch.is_empty()))
        .collect();
    assert_eq!(shown, [("a", true), ("large", false), ("b", true)]);
}

/// Other kinds may need facts that are missing here, so their errors are ignored.
fn decided_quietly(event: &dyn super::EventKind, facts: &DecisionFacts) -> Option<EventVerdict> {
    format!("{event:?}")
        .starts_with("ReviewRequestEvent")
        .then(|| decide_event(event, facts))
}

#[test]
fn only_writers_request_foreign_reviews() {
    let by = |login: Option<&str>| {
        build_reviewer_facts(
            build_review_candidate(),
            vec![build_reviewer_request(4, login, "agent")],
        )
    };
    let may_not = "the requester of the review is not allowed to request it";
    assert_eq!(expect_nothing(&build_polled_event(), &by(Some("guest"))), may_not);
    assert_eq!(expect_nothing(&build_polled_event(), &by(None)), may_not);
    assert_eq!(
        expect_nothing(&build_polled_event(), &by(Some("journeyman[bot]"))),
        may_not
    );
    let nobody = build_reviewer_facts(pull_request(), Vec::new());
    assert_eq!(
        expect_nothing(&build_polled_event(), &nobody),
        "the pull request does not wait for our review"
    );
    let early = decide_event(
        &build_polled_event(),
        &build_reviewer_facts(build_review_candidate(), Vec::new()),
    );
    assert!(matches!(early, EventVerdict::Early(_)), "{early:?}");
    let closed = PullRequest {
        closed_at: Some(Timestamp::default()),
        ..build_review_candidate()
    };
    let closed = build_reviewer_facts(closed, vec![build_reviewer_request(4, Some("rita"), "agent")]);
    assert_eq!(
        expect_nothing(&build_polled_event(), &closed),
        "the pull request does not wait for our review"
    );
}

#[test]
fn fork_head_is_not_checked_out() {
    let fork = PullRequest {
        head_repository: "guest/shop".to_owned(),
        ..build_review_candidate()
    };
    let facts = build_reviewer_facts(fork, vec![build_reviewer_request(4, Some("rita"), "agent")]);
    let TriggerReason::JobRequested(job) = expect_trigger(&build_polled_event(), &facts).reason else {
        panic!("no job")
    };
    assert_eq!(job.about.base(), None);
}

#[test]
fn named_tickets_come_with_review() {
    let now = PullRequest {
        title: "eng-4: Mean price, fixes #5".to_owned(),
        body: "Fixes #5, closes #6 and fixes other/shop#7.".to_owned(),
        ..build_review_candidate()
    };
    let rules = format!("{RULES}jira:\n  project_key: ENG\n");
    let mut facts = facts_with(&rules, TriggerChannel::Webhook);
    facts.put_pull_request(build_repository_name(), 7, now);
    facts.put_record(build_repository_name(), 7, None);
    facts.put_review_requests(
        build_repository_name(),
        7,
        vec![build_reviewer_request(4, Some("rita"), "agent")],
    );
    facts.put_reviews(build_repository_name(), 7, Vec::new());
    facts.put_files(build_repository_name(), 7, Vec::new());
    let ticket: TicketKey = "github:acme/shop#7".parse().expect("ticket");
    facts.put_authority(
        EventActor::of_account(&ticket, &convert_user(build_github_user("rita"))),
        true,
    );
    let issue = |text: &str| crate::facts::tracker_reader::TrackerIssue {
        summary: format!("Summary of {text}"),
        description: format!("## Acceptance criteria\n- {text} works\u{200b}"),
        status: "open".to_owned(),
        ..crate::facts::tracker_reader::TrackerIssue::default()
    };
    facts.put_named(TicketKey::jira("ENG-4").expect("ticket"), Some(issue("four")));
    facts.put_named("github:acme/shop#5".parse().expect("ticket"), None);
    facts.put_named("github:acme/shop#6".parse().expect("ticket"), Some(issue("six")));
    let TriggerReason::JobRequested(job) = expect_trigger(&build_polled_event(), &facts).reason else {
        panic!("no job")
    };
    let linked = &job.background.linked;
    let named: Vec<(&str, &str)> = linked
        .iter()
        .map(|ticket| (ticket.key.as_str(), ticket.summary.as_str()))
        .collect();
    assert_eq!(
        named,
        [("ENG-4", "Summary of four"), ("acme/shop#6", "Summary of six")]
    );
    assert_eq!(job.background.criteria(), ["four works", "six works"]);
    assert!(job.background.contains_quote("four  works") && !job.background.contains_quote("five works"));
}
