//! Jobs that a comment with a mention may start, and the answers to unauthorized authors.

use domain::{
    Job, JobRequest, SkipReason, TicketComment, TicketRow, Timestamp, TriggerChannel, TriggerKey,
    TriggerReason,
};

use super::{
    EventKind,
    question::QuestionEvent,
    tests::{
        asked_before, build_ada_account, build_pull_record, build_pull_reference, build_repository_name,
        build_rita_actor, build_ticket_key, build_work_facts, expect_nothing, expect_trigger, jira_person,
        pull_request,
    },
};
use crate::facts::{DecisionFacts, EventActor};

const WORDS: &str = "@journeyman please round half up";

fn build_question(author: EventActor, on: Option<domain::PullRequestRef>) -> QuestionEvent {
    QuestionEvent {
        ticket: build_ticket_key(),
        key: TriggerKey::new("comment:9"),
        at: Timestamp::from_unix_ms(90),
        author,
        text: WORDS.to_owned(),
        comment: None,
        pull_request: on,
    }
}

fn by_ada() -> QuestionEvent {
    build_question(jira_person(build_ada_account()), None)
}

/// Job that the comment may start.
fn read_offered_job(event: &dyn EventKind, facts: &DecisionFacts) -> Option<JobRequest> {
    let TriggerReason::JobRequested(request) = expect_trigger(event, facts).reason else {
        panic!("no question")
    };
    assert_eq!(request.job, Job::Answer);
    request
        .about
        .question()
        .expect("a question")
        .work
        .as_deref()
        .cloned()
}

fn with_row(mut facts: DecisionFacts, row: TicketRow) -> DecisionFacts {
    facts.put_row(build_ticket_key(), row);
    facts
}

/// A row with our open pull request.
fn on_the_way(facts: DecisionFacts) -> DecisionFacts {
    let row = TicketRow {
        pull_requests: vec![build_pull_reference()],
        ..TicketRow::default()
    };
    let mut facts = with_row(facts, row);
    facts.put_record(build_repository_name(), 7, Some(build_pull_record()));
    facts.put_pull_request(build_repository_name(), 7, pull_request());
    facts
}

#[test]
fn question_without_pull_request_offers_ticket_work() {
    let facts = with_row(build_work_facts(|_, _| {}), TicketRow::default());
    let job = read_offered_job(&by_ada(), &facts).expect("work");
    assert_eq!(job.job, Job::Implement);
    let last = job.text.comments.last().expect("the comment");
    let expected = TicketComment {
        author: "Ada".to_owned(),
        at: Timestamp::from_unix_ms(90),
        text: WORDS.to_owned(),
        may_instruct: true,
        is_new: false,
    };
    assert_eq!(last, &expected);
}

#[test]
fn question_on_pull_request_offers_review_work() {
    let on_ticket = read_offered_job(&by_ada(), &on_the_way(build_work_facts(|_, _| {}))).expect("work");
    let mut facts = on_the_way(build_work_facts(|_, _| {}));
    facts.put_authority(build_rita_actor(), true);
    let on_pull = read_offered_job(
        &build_question(build_rita_actor(), Some(build_pull_reference())),
        &facts,
    )
    .expect("work");
    for job in [on_ticket, on_pull] {
        assert_eq!(
            (job.job, job.text.summary.as_str()),
            (Job::AddressReview, "Fix the cart")
        );
        let round = job.about.round().expect("a review");
        assert_eq!(
            (&round.pull_request, round.body.as_str()),
            (&build_pull_reference(), WORDS)
        );
        assert_eq!(round.head, pull_request().head);
    }
}

#[test]
fn question_offers_nothing_when_work_is_impossible() {
    let over = with_row(
        build_work_facts(|issue, _| issue.is_over = true),
        TicketRow::default(),
    );
    assert_eq!(read_offered_job(&by_ada(), &over), None, "the ticket is over");
    let theirs = with_row(
        build_work_facts(|_, open| open.push(pull_request())),
        TicketRow::default(),
    );
    assert_eq!(read_offered_job(&by_ada(), &theirs), None, "somebody works on it");
    let api = build_question(
        EventActor::Api {
            name: "ann".to_owned(),
        },
        None,
    );
    let mut facts = with_row(build_work_facts(|_, _| {}), TicketRow::default());
    facts.put_authority(
        EventActor::Api {
            name: "ann".to_owned(),
        },
        true,
    );
    assert_eq!(read_offered_job(&api, &facts), None, "the API has jobs for it");
}

#[test]
fn unauthorized_question_is_answered_once() {
    let mut facts = super::tests::build_decision_facts();
    facts.put_authority(jira_person(build_ada_account()), false);
    let delivered = expect_trigger(&by_ada(), &facts);
    let expected = SkipReason::MayNotAsk {
        actor: "Ada".to_owned(),
        group: "agents".to_owned(),
        on: None,
    };
    assert_eq!(delivered.reason, TriggerReason::Skipped(expected));
    let mut again = facts.clone();
    again.put_history(
        build_ticket_key(),
        vec![asked_before(), delivered.into_trigger(TriggerChannel::Webhook)],
    );
    assert_eq!(
        expect_nothing(&by_ada(), &again),
        "the author is not allowed to ask for an answer, and was notified"
    );
    let mut facts = build_work_facts(|_, _| {});
    facts.put_authority(build_rita_actor(), false);
    let delivered = expect_trigger(
        &build_question(build_rita_actor(), Some(build_pull_reference())),
        &facts,
    );
    assert!(
        matches!(&delivered.reason, TriggerReason::Skipped(SkipReason::MayNotAsk { group, on: Some(_), .. }) if group.is_empty()),
        "{delivered:?}"
    );
}
