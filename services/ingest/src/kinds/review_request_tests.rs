//! Verdicts about requests for our review; webhook and poll are equal, because both read the pull
//! request.

use domain::{
    Job, JobSubject, PullRequestFile, RepositoryName, TicketKey, Timestamp, TriggerChannel, TriggerKey,
    TriggerReason,
};
use github::{PullRequest, ReviewRequest};
use serde_json::json;

use super::{
    EventVerdict,
    review_requested::ReviewRequestEvent,
    tests::{decided, facts_with, follows, github, nothing, pull_request},
};
use crate::{
    facts::{DecisionFacts, EventActor},
    tracker_reader::convert_user,
};

const RULES: &str = "repo:\n  owner: acme\n  name: shop\npull_request:\n  reviewer: agent\n";

fn shop() -> RepositoryName {
    "acme/shop".parse().expect("repository")
}

/// Each login has a separate id; `nobody` has none.
fn user(login: &str) -> github::GitHubUser {
    github::GitHubUser {
        is_bot: false,
        id: (!login.is_empty()).then(|| login.bytes().map(u64::from).sum()),
        login: login.to_owned(),
    }
}

pub(super) fn request(id: u64, by: Option<&str>, reviewer: &str) -> ReviewRequest {
    ReviewRequest {
        id,
        by: by.map(user),
        reviewer: reviewer.to_owned(),
        at: Timestamp::from_unix_ms(50),
    }
}

pub(super) fn waiting() -> PullRequest {
    PullRequest {
        requested_reviewers: vec!["ann".to_owned(), "Agent".to_owned()],
        ..pull_request()
    }
}

pub(super) fn asked(now: PullRequest, requests: Vec<ReviewRequest>) -> DecisionFacts {
    let mut facts = facts_with(RULES, TriggerChannel::Webhook);
    facts.put_pull_request(shop(), 7, now);
    facts.put_record(shop(), 7, None);
    facts.put_review_requests(shop(), 7, requests);
    facts.put_reviews(shop(), 7, Vec::new());
    let patch = |chars: usize| format!("@@ -0,0 +1 @@\n+{}", "x".repeat(chars));
    let file = |path: &str, chars: usize| PullRequestFile {
        path: path.to_owned(),
        patch: patch(chars),
    };
    let files = vec![file("a", 30_000), file("large", 50_000), file("b", 30_000)];
    facts.put_files(shop(), 7, files);
    for (login, may) in [("rita", true), ("guest", false), ("", false)] {
        let ticket = "github:acme/shop#7".parse().expect("ticket");
        facts.put_authority(EventActor::on(&ticket, &convert_user(user(login))), may);
    }
    facts
}

/// Pull request with a review request of an authorized user.
pub(super) fn waiting_for_review() -> DecisionFacts {
    asked(waiting(), vec![request(4, Some("rita"), "agent")])
}

#[test]
fn next_review_contains_changes_since_last() {
    let ticket: TicketKey = "github:acme/shop#7".parse().expect("ticket");
    let request = || vec![request(4, Some("rita"), "agent")];
    let before = PullRequest {
        head: "1".repeat(40).parse().expect("commit"),
        ..waiting()
    };
    let first = follows(&event(), &asked(before.clone(), request()));
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
        facts.put_pull_request(shop(), 7, waiting());
        facts.put_record(shop(), 7, None);
        facts.put_review_requests(shop(), 7, request());
        facts.put_reviews(shop(), 7, reviews);
        facts.put_commits(shop(), 7, commits);
        facts.put_history(
            ticket.clone(),
            vec![first.clone().into_trigger(TriggerChannel::Webhook)],
        );
        let patch = format!("@@ -0,0 +1,2 @@\n+{}\n+new", "x".repeat(30_000));
        let file = PullRequestFile {
            path: "a".to_owned(),
            patch,
        };
        facts.put_files(shop(), 7, vec![file]);
        let rita = EventActor::on(&ticket, &convert_user(user("rita")));
        facts.put_authority(rita, true);
        let TriggerReason::JobRequested(job) = follows(&event(), &facts).reason else {
            panic!("no job")
        };
        job.about.change().expect("a change").since.clone()
    };
    let commits = vec![before.head.clone(), waiting().head];
    let told = since(commits.clone(), vec![reviewed.clone()]).expect("what came since");
    assert_eq!(told.commit, before.head);
    assert_eq!(told.files[0].patch, "@@ +2 @@\n+new\n");
    let pushed_over = vec![waiting().head];
    assert_eq!(since(pushed_over, vec![reviewed.clone()]), None, "no ancestor");
    let by_another = github::PullRequestReview {
        author: "ann".to_owned(),
        ..reviewed
    };
    assert_eq!(since(commits, vec![by_another]), None);
}

fn event() -> ReviewRequestEvent {
    ReviewRequestEvent::from_poll(shop(), 7)
}

#[test]
fn last_review_request_counts_both_channels() {
    let requests = vec![
        request(3, Some("guest"), "agent"),
        request(4, Some("rita"), "Agent"),
        request(5, Some("guest"), "ann"),
    ];
    let facts = asked(waiting(), requests);
    let polled = follows(&event(), &facts);
    let head = waiting().head;
    assert_eq!(polled.key, TriggerKey::new(format!("review:4:{}", head.as_str())));
    assert_eq!(
        polled.ticket,
        "github:acme/shop#7".parse::<TicketKey>().expect("ticket")
    );
    for action in ["review_requested", "synchronize", "opened", "reopened"] {
        let payload = json!({"action": action, "pull_request": {"number": 7, "head": {"ref": "x"}},
            "repository": {"full_name": "acme/shop"}, "sender": {"login": "eve"}});
        let told = github("pull_request", &payload);
        assert!(
            told.iter().any(|event| matches!(
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
        .then(|| decided(event, facts))
}

#[test]
fn only_writers_request_foreign_reviews() {
    let by = |login: Option<&str>| asked(waiting(), vec![request(4, login, "agent")]);
    let may_not = "who asks for the review may not";
    assert_eq!(nothing(&event(), &by(Some("guest"))), may_not);
    assert_eq!(nothing(&event(), &by(None)), may_not);
    assert_eq!(nothing(&event(), &by(Some("journeyman[bot]"))), may_not);
    let nobody = asked(pull_request(), Vec::new());
    assert_eq!(
        nothing(&event(), &nobody),
        "the pull request does not wait for our review"
    );
    let early = decided(&event(), &asked(waiting(), Vec::new()));
    assert!(matches!(early, EventVerdict::Early(_)), "{early:?}");
    let closed = PullRequest {
        closed_at: Some(Timestamp::default()),
        ..waiting()
    };
    let closed = asked(closed, vec![request(4, Some("rita"), "agent")]);
    assert_eq!(
        nothing(&event(), &closed),
        "the pull request does not wait for our review"
    );
}

#[test]
fn fork_head_is_not_checked_out() {
    let fork = PullRequest {
        head_repository: "guest/shop".to_owned(),
        ..waiting()
    };
    let facts = asked(fork, vec![request(4, Some("rita"), "agent")]);
    let TriggerReason::JobRequested(job) = follows(&event(), &facts).reason else {
        panic!("no job")
    };
    assert_eq!(job.about.base(), None);
}

#[test]
fn named_tickets_come_with_review() {
    let now = PullRequest {
        title: "eng-4: Mean price".to_owned(),
        body: "Fixes #5, closes #6 and fixes other/shop#7.".to_owned(),
        ..waiting()
    };
    let rules = format!("{RULES}jira:\n  project_key: ENG\n");
    let mut facts = facts_with(&rules, TriggerChannel::Webhook);
    facts.put_pull_request(shop(), 7, now);
    facts.put_record(shop(), 7, None);
    facts.put_review_requests(shop(), 7, vec![request(4, Some("rita"), "agent")]);
    facts.put_reviews(shop(), 7, Vec::new());
    facts.put_files(shop(), 7, Vec::new());
    let ticket: TicketKey = "github:acme/shop#7".parse().expect("ticket");
    facts.put_authority(EventActor::on(&ticket, &convert_user(user("rita"))), true);
    let issue = |text: &str| crate::tracker_reader::TrackerIssue {
        summary: format!("Summary of {text}"),
        description: format!("## Acceptance criteria\n- {text} works\u{200b}"),
        status: "open".to_owned(),
        ..crate::tracker_reader::TrackerIssue::default()
    };
    facts.put_named(TicketKey::jira("ENG-4").expect("ticket"), Some(issue("four")));
    facts.put_named("github:acme/shop#5".parse().expect("ticket"), None);
    facts.put_named("github:acme/shop#6".parse().expect("ticket"), Some(issue("six")));
    let TriggerReason::JobRequested(job) = follows(&event(), &facts).reason else {
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
    assert!(job.background.says("four  works") && !job.background.says("five works"));
}
