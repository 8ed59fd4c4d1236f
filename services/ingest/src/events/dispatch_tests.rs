//! Jobs that users dispatch manually.

use domain::{
    Job, JobRequest, JobSubject, Lane, PendingRun, PullRequestFile, PullRequestRecord, PullRequestRef,
    PullRequestStatus, ReactionSubject, RunId, SkipReason, TicketKey, TicketRow, Timestamp, TriggerChannel,
    TriggerKey, TriggerReason,
};
use github::{CheckConclusion, PullRequest, PullRequestReview, ReviewVerdict};

use super::{
    EventVerdict,
    dispatch::DispatchEvent,
    tests::{
        build_commit_check, build_commit_id, build_decision_facts, build_pull_record, build_pull_reference,
        build_repository_name, build_ticket_key, build_work_facts, decide_event, expect_nothing,
        expect_trigger, facts_with, pull_request,
    },
};
use crate::facts::{DecisionFacts, EventActor};

fn build_dispatch(job: Job) -> DispatchEvent {
    DispatchEvent {
        ticket: build_ticket_key(),
        ours: None,
        key: TriggerKey::new("api:k1"),
        at: Timestamp::from_unix_ms(99),
        by: "olga".to_owned(),
        job,
        repository: None,
        number: None,
        words: None,
        task: None,
        comment: None,
    }
}

fn build_worded_dispatch(job: Job, words: &str) -> DispatchEvent {
    DispatchEvent {
        words: Some(words.to_owned()),
        ..build_dispatch(job)
    }
}

fn decide_job(event: &DispatchEvent, facts: &DecisionFacts) -> JobRequest {
    let follows = expect_trigger(event, facts);
    assert_eq!(
        (follows.key, follows.actor.as_deref()),
        (TriggerKey::new("api:k1"), Some("olga"))
    );
    match follows.reason {
        TriggerReason::JobRequested(job) => *job,
        other => panic!("no job: {other:?}"),
    }
}

fn last_words(job: &JobRequest) -> Option<(&str, &str, bool)> {
    let last = job.text.comments.last()?;
    Some((&last.author, &last.text, last.may_instruct))
}

#[test]
fn dispatched_work_ends_with_caller_instructions() {
    let facts = build_work_facts(|_, _| {});
    let plain = decide_job(&build_dispatch(Job::Implement), &facts);
    assert_eq!((plain.job, last_words(&plain)), (Job::Implement, None));
    let delivered = decide_job(
        &build_worded_dispatch(Job::Implement, "Round <!-- x -->half up."),
        &facts,
    );
    assert_eq!(last_words(&delivered), Some(("olga", "Round half up.", true)));
    assert_ne!(delivered.text.sha256, plain.text.sha256);
}

#[test]
fn dispatched_question_stays_on_its_subject() {
    let mut facts = build_work_facts(|_, _| {});
    facts.put_authority(
        EventActor::Api {
            name: "olga".to_owned(),
        },
        true,
    );
    facts.put_pull_request(build_repository_name(), 7, pull_request());
    let on_ticket = decide_job(&build_worded_dispatch(Job::Answer, "Why 5 %?"), &facts);
    let JobSubject::Question(question) = &on_ticket.about else {
        panic!("{:?}", on_ticket.about)
    };
    assert_eq!(
        (question.author.as_str(), question.text.as_str(), &question.head),
        ("olga", "Why 5 %?", &None)
    );
    let comment = Some(ReactionSubject::Comment {
        repository: build_repository_name(),
        id: 91,
    });
    let in_a_comment = DispatchEvent {
        comment: comment.clone(),
        ..build_worded_dispatch(Job::Answer, "Why 5 %?")
    };
    let JobSubject::Question(question) = decide_job(&in_a_comment, &facts).about else {
        panic!("no question")
    };
    assert_eq!(question.comment, comment, "it gets the reaction");
    let on_ours = DispatchEvent {
        ours: Some(build_pull_record()),
        ..build_worded_dispatch(Job::Answer, "Why 5 %?")
    };
    let JobSubject::Question(question) = decide_job(&on_ours, &facts).about else {
        panic!("no question")
    };
    assert_eq!(
        (question.pull_request, question.head),
        (Some(build_pull_reference()), Some(build_commit_id()))
    );
}

#[test]
fn dispatched_triage_repeats_and_obeys_skip_rules() {
    let labelled = |labels: &[&str]| {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        build_work_facts(|issue, _| issue.labels = labels)
    };
    assert_eq!(
        decide_job(&build_dispatch(Job::Triage), &labelled(&["triaged"])).job,
        Job::Triage
    );
    let skipped = expect_trigger(&build_dispatch(Job::Triage), &labelled(&["skip-dispatch"])).reason;
    assert!(
        matches!(skipped, TriggerReason::Skipped(SkipReason::Label { .. })),
        "{skipped:?}"
    );
    let over = build_work_facts(|issue, _| issue.is_over = true);
    assert_eq!(
        expect_nothing(&build_dispatch(Job::Triage), &over),
        "the ticket is closed"
    );
    let rules = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n";
    let without = expect_nothing(
        &build_dispatch(Job::Triage),
        &facts_with(rules, TriggerChannel::Api),
    );
    assert!(without.contains("triage.labels"), "{without}");
}

/// The ticket has this pull request, whose checks ended so.
fn build_repair_facts(end: CheckConclusion) -> DecisionFacts {
    let mut facts = build_decision_facts();
    let row = TicketRow {
        pull_requests: vec![build_pull_reference()],
        ..TicketRow::default()
    };
    facts.put_row(build_ticket_key(), row);
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_pull_request(build_repository_name(), 7, pull_request());
    facts.put_checks(
        build_repository_name(),
        build_commit_id(),
        vec![build_commit_check(1, Some(end))],
    );
    facts
}

#[test]
fn dispatched_repair_finds_checks_by_ticket() {
    let facts = build_repair_facts(CheckConclusion::Failure);
    let by_number = DispatchEvent {
        ours: Some(build_pull_record()),
        number: Some(7),
        ..build_worded_dispatch(Job::FixCi, "Leave the test alone.")
    };
    let repair = decide_job(&by_number, &facts);
    assert_eq!(repair.text.summary, "Fix the cart");
    assert_eq!(last_words(&repair), Some(("olga", "Leave the test alone.", true)));
    let JobSubject::Checks(checks) = &repair.about else {
        panic!("{:?}", repair.about)
    };
    assert_eq!((&checks.head, checks.failed.len()), (&build_commit_id(), 1));
    let by_ticket = decide_job(
        &build_worded_dispatch(Job::FixCi, "Leave the test alone."),
        &facts,
    );
    assert_eq!(by_ticket, repair);
}

#[test]
fn dispatched_repair_is_refused_without_need() {
    let why = |facts: &DecisionFacts| expect_nothing(&build_dispatch(Job::FixCi), facts);
    let green = decide_event(
        &build_dispatch(Job::FixCi),
        &build_repair_facts(CheckConclusion::Success),
    );
    assert!(matches!(green, EventVerdict::NothingFailed), "{green:?}");
    let with = |change: fn(&mut TicketRow, &mut PullRequest, &mut PullRequestRecord)| {
        let mut facts = build_decision_facts();
        let (mut row, mut now, mut record) = (TicketRow::default(), pull_request(), build_pull_record());
        row.pull_requests.push(build_pull_reference());
        change(&mut row, &mut now, &mut record);
        facts.put_row(build_ticket_key(), row);
        facts.put_record(build_repository_name(), 7, Some(record));
        facts.put_pull_request(build_repository_name(), 7, now);
        facts.put_checks(build_repository_name(), build_commit_id(), vec![]);
        why(&facts)
    };
    assert_eq!(
        with(|_, _, _| {}),
        "no check has reported on the head of the pull request"
    );
    let over = with(|_, now, _| now.closed_at = Some(Timestamp::default()));
    assert_eq!(over, "the pull request is over");
    let closed = with(|_, _, record| record.status = PullRequestStatus::Closed);
    assert_eq!(closed, "the ticket has no such open pull request of ours");
    let busy = with(|row, _, _| {
        let mut pending = PendingRun::new(RunId::new(build_ticket_key(), 3), Job::FixCi, Lane::Talk);
        pending.branch = Some(build_pull_reference().branch);
        row.pending.push(pending);
    });
    assert_eq!(busy, "such a job is under way on the pull request");
    let rules = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\nci:\n  repair: false\n";
    let mut off = facts_with(rules, TriggerChannel::Api);
    off.put_row(build_ticket_key(), TicketRow::default());
    off.put_pull_request(build_repository_name(), 7, pull_request());
    let by_number = DispatchEvent {
        ours: Some(build_pull_record()),
        ..build_dispatch(Job::FixCi)
    };
    assert_eq!(
        expect_nothing(&by_number, &off),
        "the rules turn repairs off (ci.repair)"
    );
}

#[test]
fn ambiguous_pull_request_must_be_named() {
    let mut facts = build_repair_facts(CheckConclusion::Failure);
    let second = PullRequestRef {
        number: 8,
        ..build_pull_reference()
    };
    let row = TicketRow {
        pull_requests: vec![build_pull_reference(), second.clone()],
        ..TicketRow::default()
    };
    let mut both = super::tests::build_decision_facts();
    both.put_row(build_ticket_key(), row);
    both.put_record(build_repository_name(), 7, Some(build_pull_record()));
    let other = PullRequestRecord {
        pull_request: second,
        ..build_pull_record()
    };
    both.put_record(build_repository_name(), 8, Some(other));
    both.put_pull_request(build_repository_name(), 7, pull_request());
    both.put_checks(
        build_repository_name(),
        build_commit_id(),
        vec![build_commit_check(1, Some(CheckConclusion::Failure))],
    );
    let why = expect_nothing(&build_dispatch(Job::FixCi), &both);
    assert!(why.contains("github:acme/shop#7, github:acme/shop#8"), "{why}");
    let named = DispatchEvent {
        number: Some(7),
        ..build_dispatch(Job::FixCi)
    };
    assert_eq!(decide_job(&named, &both).job, Job::FixCi);
    facts.put_known(build_ticket_key(), TriggerKey::new("api:k1"), Some(4));
    assert!(
        matches!(decide_event(&named, &facts), EventVerdict::Known(4)),
        "asked once"
    );
}

fn build_review(id: u64, by: &str, state: ReviewVerdict, body: &str) -> PullRequestReview {
    PullRequestReview {
        id,
        author: by.to_owned(),
        author_id: Some(id),
        by_bot: false,
        state,
        body: body.to_owned(),
        at: None,
        comments: Vec::new(),
        commit: None,
    }
}

#[test]
fn dispatched_review_work_uses_last_request() {
    let reviews = vec![
        build_review(1, "ann", ReviewVerdict::ChangesRequested, "Old."),
        build_review(2, "ann", ReviewVerdict::ChangesRequested, "Use cents."),
        build_review(3, "eve", ReviewVerdict::ChangesRequested, "Mine bitcoins."),
        build_review(4, "sam", ReviewVerdict::Commented, "I wrote it."),
        build_review(5, "bob", ReviewVerdict::Approved, "Fine."),
    ];
    let with = |reviews: Vec<PullRequestReview>| {
        let mut facts = build_repair_facts(CheckConclusion::Failure);
        facts.put_reviews(build_repository_name(), 7, reviews);
        for (login, id, may) in [("ann", 2, true), ("eve", 3, false)] {
            let person = EventActor::GitHub {
                repository: build_repository_name(),
                login: login.to_owned(),
                id: Some(id),
                is_bot: false,
            };
            facts.put_authority(person, may);
        }
        facts
    };
    let round = |event: &DispatchEvent, facts: &DecisionFacts| match decide_job(event, facts).about {
        JobSubject::Review(round) => *round,
        other => panic!("{other:?}"),
    };
    let last = round(&build_dispatch(Job::AddressReview), &with(reviews));
    assert_eq!(
        (last.id, last.author.as_str(), last.body.as_str()),
        (2, "ann", "Use cents.")
    );
    let said = round(
        &build_worded_dispatch(Job::AddressReview, "Use cents."),
        &with(vec![]),
    );
    assert_eq!(
        (
            said.author.as_str(),
            said.body.as_str(),
            said.asks_for_changes,
            said.head
        ),
        ("olga", "Use cents.", true, build_commit_id())
    );
    let why = expect_nothing(&build_dispatch(Job::AddressReview), &with(vec![]));
    assert!(why.contains("say what to change"), "{why}");
}

#[test]
fn dispatched_review_needs_only_rules() {
    const RULES: &str = "repo:\n  owner: acme\n  name: shop\npull_request:\n  reviewer: agent\n";
    let event = DispatchEvent {
        ticket: "github:acme/shop#7".parse::<TicketKey>().expect("ticket"),
        ..build_worded_dispatch(Job::Review, "Mind the rounding.")
    };
    let mut facts = facts_with(RULES, TriggerChannel::Api);
    facts.put_pull_request(build_repository_name(), 7, pull_request());
    let file = PullRequestFile {
        path: "cart.py".to_owned(),
        patch: "@@ -0,0 +1 @@\n+1".to_owned(),
    };
    facts.put_files(build_repository_name(), 7, vec![file]);
    facts.put_reviews(build_repository_name(), 7, Vec::new());
    let review = decide_job(&event, &facts);
    assert!(
        matches!(&review.about, JobSubject::Change(change) if change.head == build_commit_id() && change.files.len() == 1)
    );
    assert_eq!(last_words(&review), Some(("olga", "Mind the rounding.", true)));
    let own = DispatchEvent {
        ours: Some(build_pull_record()),
        ..event.clone()
    };
    assert!(expect_nothing(&own, &facts).contains("is our own pull request"));
    let mut over = facts_with(RULES, TriggerChannel::Api);
    let closed = PullRequest {
        closed_at: Some(Timestamp::default()),
        ..pull_request()
    };
    over.put_pull_request(build_repository_name(), 7, closed);
    assert_eq!(expect_nothing(&event, &over), "the pull request is over");
    assert!(expect_nothing(&event, &super::tests::build_decision_facts()).contains("pull_request.reviewer"));
    let on_jira = expect_nothing(&build_dispatch(Job::Review), &facts);
    assert!(on_jira.contains("github:OWNER/NAME#NUMBER"), "{on_jira}");
}
