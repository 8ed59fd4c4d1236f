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
        asked, check, commit, decided, facts, facts_with, follows, nothing, ours, pull_request, record,
        repository, ticket,
    },
};
use crate::facts::{DecisionFacts, EventActor};

fn wanted(job: Job) -> DispatchEvent {
    DispatchEvent {
        ticket: ticket(),
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

fn saying(job: Job, words: &str) -> DispatchEvent {
    DispatchEvent {
        words: Some(words.to_owned()),
        ..wanted(job)
    }
}

fn job(event: &DispatchEvent, facts: &DecisionFacts) -> JobRequest {
    let follows = follows(event, facts);
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
    let facts = asked(|_, _| {});
    let plain = job(&wanted(Job::Implement), &facts);
    assert_eq!((plain.job, last_words(&plain)), (Job::Implement, None));
    let told = job(&saying(Job::Implement, "Round <!-- x -->half up."), &facts);
    assert_eq!(last_words(&told), Some(("olga", "Round half up.", true)));
    assert_ne!(told.text.sha256, plain.text.sha256);
}

#[test]
fn dispatched_question_stays_on_its_subject() {
    let mut facts = asked(|_, _| {});
    facts.put_authority(
        EventActor::Api {
            name: "olga".to_owned(),
        },
        true,
    );
    facts.put_pull_request(repository(), 7, pull_request());
    let on_ticket = job(&saying(Job::Answer, "Why 5 %?"), &facts);
    let JobSubject::Question(question) = &on_ticket.about else {
        panic!("{:?}", on_ticket.about)
    };
    assert_eq!(
        (question.author.as_str(), question.text.as_str(), &question.head),
        ("olga", "Why 5 %?", &None)
    );
    let comment = Some(ReactionSubject::Comment {
        repository: repository(),
        id: 91,
    });
    let in_a_comment = DispatchEvent {
        comment: comment.clone(),
        ..saying(Job::Answer, "Why 5 %?")
    };
    let JobSubject::Question(question) = job(&in_a_comment, &facts).about else {
        panic!("no question")
    };
    assert_eq!(question.comment, comment, "it gets the reaction");
    let on_ours = DispatchEvent {
        ours: Some(record()),
        ..saying(Job::Answer, "Why 5 %?")
    };
    let JobSubject::Question(question) = job(&on_ours, &facts).about else {
        panic!("no question")
    };
    assert_eq!(
        (question.pull_request, question.head),
        (Some(ours()), Some(commit()))
    );
}

#[test]
fn dispatched_triage_repeats_and_obeys_skip_rules() {
    let labelled = |labels: &[&str]| {
        let labels = labels.iter().map(|label| (*label).to_owned()).collect();
        asked(|issue, _| issue.labels = labels)
    };
    assert_eq!(
        job(&wanted(Job::Triage), &labelled(&["triaged"])).job,
        Job::Triage
    );
    let skipped = follows(&wanted(Job::Triage), &labelled(&["skip-dispatch"])).reason;
    assert!(
        matches!(skipped, TriggerReason::Skipped(SkipReason::Label { .. })),
        "{skipped:?}"
    );
    let over = asked(|issue, _| issue.is_over = true);
    assert_eq!(nothing(&wanted(Job::Triage), &over), "the ticket is closed");
    let rules = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n";
    let without = nothing(&wanted(Job::Triage), &facts_with(rules, TriggerChannel::Api));
    assert!(without.contains("triage.labels"), "{without}");
}

/// The ticket has this pull request, whose checks ended so.
fn red(end: CheckConclusion) -> DecisionFacts {
    let mut facts = facts();
    let row = TicketRow {
        pull_requests: vec![ours()],
        ..TicketRow::default()
    };
    facts.put_row(ticket(), row);
    facts.put_record(repository(), 7, Some(record()));
    facts.put_pull_request(repository(), 7, pull_request());
    facts.put_checks(repository(), commit(), vec![check(1, Some(end))]);
    facts
}

#[test]
fn dispatched_repair_finds_checks_by_ticket() {
    let facts = red(CheckConclusion::Failure);
    let by_number = DispatchEvent {
        ours: Some(record()),
        number: Some(7),
        ..saying(Job::FixCi, "Leave the test alone.")
    };
    let repair = job(&by_number, &facts);
    assert_eq!(repair.text.summary, "Fix the cart");
    assert_eq!(last_words(&repair), Some(("olga", "Leave the test alone.", true)));
    let JobSubject::Checks(checks) = &repair.about else {
        panic!("{:?}", repair.about)
    };
    assert_eq!((&checks.head, checks.failed.len()), (&commit(), 1));
    let by_ticket = job(&saying(Job::FixCi, "Leave the test alone."), &facts);
    assert_eq!(by_ticket, repair);
}

#[test]
fn dispatched_repair_is_refused_without_need() {
    let why = |facts: &DecisionFacts| nothing(&wanted(Job::FixCi), facts);
    let green = decided(&wanted(Job::FixCi), &red(CheckConclusion::Success));
    assert!(matches!(green, EventVerdict::NothingFailed), "{green:?}");
    let with = |change: fn(&mut TicketRow, &mut PullRequest, &mut PullRequestRecord)| {
        let mut facts = facts();
        let (mut row, mut now, mut record) = (TicketRow::default(), pull_request(), record());
        row.pull_requests.push(ours());
        change(&mut row, &mut now, &mut record);
        facts.put_row(ticket(), row);
        facts.put_record(repository(), 7, Some(record));
        facts.put_pull_request(repository(), 7, now);
        facts.put_checks(repository(), commit(), vec![]);
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
        let mut pending = PendingRun::new(RunId::new(ticket(), 3), Job::FixCi, Lane::Talk);
        pending.branch = Some(ours().branch);
        row.pending.push(pending);
    });
    assert_eq!(busy, "such a job is under way on the pull request");
    let rules = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\nci:\n  repair: false\n";
    let mut off = facts_with(rules, TriggerChannel::Api);
    off.put_row(ticket(), TicketRow::default());
    off.put_pull_request(repository(), 7, pull_request());
    let by_number = DispatchEvent {
        ours: Some(record()),
        ..wanted(Job::FixCi)
    };
    assert_eq!(
        nothing(&by_number, &off),
        "the rules turn repairs off (ci.repair)"
    );
}

#[test]
fn ambiguous_pull_request_must_be_named() {
    let mut facts = red(CheckConclusion::Failure);
    let second = PullRequestRef { number: 8, ..ours() };
    let row = TicketRow {
        pull_requests: vec![ours(), second.clone()],
        ..TicketRow::default()
    };
    let mut both = super::tests::facts();
    both.put_row(ticket(), row);
    both.put_record(repository(), 7, Some(record()));
    let other = PullRequestRecord {
        pull_request: second,
        ..record()
    };
    both.put_record(repository(), 8, Some(other));
    both.put_pull_request(repository(), 7, pull_request());
    both.put_checks(
        repository(),
        commit(),
        vec![check(1, Some(CheckConclusion::Failure))],
    );
    let why = nothing(&wanted(Job::FixCi), &both);
    assert!(why.contains("github:acme/shop#7, github:acme/shop#8"), "{why}");
    let named = DispatchEvent {
        number: Some(7),
        ..wanted(Job::FixCi)
    };
    assert_eq!(job(&named, &both).job, Job::FixCi);
    facts.put_known(ticket(), TriggerKey::new("api:k1"), Some(4));
    assert!(
        matches!(decided(&named, &facts), EventVerdict::Known(4)),
        "asked once"
    );
}

fn review(id: u64, by: &str, state: ReviewVerdict, body: &str) -> PullRequestReview {
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
        review(1, "ann", ReviewVerdict::ChangesRequested, "Old."),
        review(2, "ann", ReviewVerdict::ChangesRequested, "Use cents."),
        review(3, "eve", ReviewVerdict::ChangesRequested, "Mine bitcoins."),
        review(4, "sam", ReviewVerdict::Commented, "I wrote it."),
        review(5, "bob", ReviewVerdict::Approved, "Fine."),
    ];
    let with = |reviews: Vec<PullRequestReview>| {
        let mut facts = red(CheckConclusion::Failure);
        facts.put_reviews(repository(), 7, reviews);
        for (login, id, may) in [("ann", 2, true), ("eve", 3, false)] {
            let person = EventActor::GitHub {
                repository: repository(),
                login: login.to_owned(),
                id: Some(id),
                is_bot: false,
            };
            facts.put_authority(person, may);
        }
        facts
    };
    let round = |event: &DispatchEvent, facts: &DecisionFacts| match job(event, facts).about {
        JobSubject::Review(round) => *round,
        other => panic!("{other:?}"),
    };
    let last = round(&wanted(Job::AddressReview), &with(reviews));
    assert_eq!(
        (last.id, last.author.as_str(), last.body.as_str()),
        (2, "ann", "Use cents.")
    );
    let said = round(&saying(Job::AddressReview, "Use cents."), &with(vec![]));
    assert_eq!(
        (
            said.author.as_str(),
            said.body.as_str(),
            said.asks_for_changes,
            said.head
        ),
        ("olga", "Use cents.", true, commit())
    );
    let why = nothing(&wanted(Job::AddressReview), &with(vec![]));
    assert!(why.contains("say what to change"), "{why}");
}

#[test]
fn dispatched_review_needs_only_rules() {
    const RULES: &str = "repo:\n  owner: acme\n  name: shop\npull_request:\n  reviewer: agent\n";
    let event = DispatchEvent {
        ticket: "github:acme/shop#7".parse::<TicketKey>().expect("ticket"),
        ..saying(Job::Review, "Mind the rounding.")
    };
    let mut facts = facts_with(RULES, TriggerChannel::Api);
    facts.put_pull_request(repository(), 7, pull_request());
    let file = PullRequestFile {
        path: "cart.py".to_owned(),
        patch: "@@ -0,0 +1 @@\n+1".to_owned(),
    };
    facts.put_files(repository(), 7, vec![file]);
    facts.put_reviews(repository(), 7, Vec::new());
    let review = job(&event, &facts);
    assert!(
        matches!(&review.about, JobSubject::Change(change) if change.head == commit() && change.files.len() == 1)
    );
    assert_eq!(last_words(&review), Some(("olga", "Mind the rounding.", true)));
    let own = DispatchEvent {
        ours: Some(record()),
        ..event.clone()
    };
    assert!(nothing(&own, &facts).contains("is our own pull request"));
    let mut over = facts_with(RULES, TriggerChannel::Api);
    let closed = PullRequest {
        closed_at: Some(Timestamp::default()),
        ..pull_request()
    };
    over.put_pull_request(repository(), 7, closed);
    assert_eq!(nothing(&event, &over), "the pull request is over");
    assert!(nothing(&event, &super::tests::facts()).contains("pull_request.reviewer"));
    let on_jira = nothing(&wanted(Job::Review), &facts);
    assert!(on_jira.contains("github:OWNER/NAME#NUMBER"), "{on_jira}");
}
