//! Jobs that a comment with a mention may start, and the answers to unauthorized authors.

use domain::{
    Job, JobRequest, SkipReason, TicketComment, TicketRow, Timestamp, TriggerChannel, TriggerKey,
    TriggerReason,
};

use super::{
    EventKind,
    question::QuestionEvent,
    tests::{
        ada, asked, asked_before, follows, jira_person, nothing, ours, pull_request, record, repository,
        rita, ticket,
    },
};
use crate::facts::{DecisionFacts, EventActor};

const WORDS: &str = "@journeyman please round half up";

fn said(author: EventActor, on: Option<domain::PullRequestRef>) -> QuestionEvent {
    QuestionEvent {
        ticket: ticket(),
        key: TriggerKey::new("comment:9"),
        at: Timestamp::from_unix_ms(90),
        author,
        text: WORDS.to_owned(),
        comment: None,
        pull_request: on,
    }
}

fn by_ada() -> QuestionEvent {
    said(jira_person(ada()), None)
}

/// Job that the comment may start.
fn work(event: &dyn EventKind, facts: &DecisionFacts) -> Option<JobRequest> {
    let TriggerReason::JobRequested(request) = follows(event, facts).reason else {
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
    facts.put_row(ticket(), row);
    facts
}

/// A row with our open pull request.
fn on_the_way(facts: DecisionFacts) -> DecisionFacts {
    let row = TicketRow {
        pull_requests: vec![ours()],
        ..TicketRow::default()
    };
    let mut facts = with_row(facts, row);
    facts.put_record(repository(), 7, Some(record()));
    facts.put_pull_request(repository(), 7, pull_request());
    facts
}

#[test]
fn question_without_pull_request_offers_ticket_work() {
    let facts = with_row(asked(|_, _| {}), TicketRow::default());
    let job = work(&by_ada(), &facts).expect("work");
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
    let on_ticket = work(&by_ada(), &on_the_way(asked(|_, _| {}))).expect("work");
    let mut facts = on_the_way(asked(|_, _| {}));
    facts.put_authority(rita(), true);
    let on_pull = work(&said(rita(), Some(ours())), &facts).expect("work");
    for job in [on_ticket, on_pull] {
        assert_eq!(
            (job.job, job.text.summary.as_str()),
            (Job::AddressReview, "Fix the cart")
        );
        let round = job.about.round().expect("a review");
        assert_eq!((&round.pull_request, round.body.as_str()), (&ours(), WORDS));
        assert_eq!(round.head, pull_request().head);
    }
}

#[test]
fn question_offers_nothing_when_work_is_impossible() {
    let over = with_row(asked(|issue, _| issue.is_over = true), TicketRow::default());
    assert_eq!(work(&by_ada(), &over), None, "the ticket is over");
    let theirs = with_row(asked(|_, open| open.push(pull_request())), TicketRow::default());
    assert_eq!(work(&by_ada(), &theirs), None, "somebody works on it");
    let api = said(
        EventActor::Api {
            name: "ann".to_owned(),
        },
        None,
    );
    let mut facts = with_row(asked(|_, _| {}), TicketRow::default());
    facts.put_authority(
        EventActor::Api {
            name: "ann".to_owned(),
        },
        true,
    );
    assert_eq!(work(&api, &facts), None, "the API has jobs for it");
}

#[test]
fn unauthorized_question_is_answered_once() {
    let mut facts = super::tests::facts();
    facts.put_authority(jira_person(ada()), false);
    let told = follows(&by_ada(), &facts);
    let expected = SkipReason::MayNotAsk {
        actor: "Ada".to_owned(),
        group: "agents".to_owned(),
        on: None,
    };
    assert_eq!(told.reason, TriggerReason::Skipped(expected));
    let mut again = facts.clone();
    again.put_history(
        ticket(),
        vec![asked_before(), told.into_trigger(TriggerChannel::Webhook)],
    );
    assert_eq!(
        nothing(&by_ada(), &again),
        "the author may not ask for an answer, and was told"
    );
    let mut facts = asked(|_, _| {});
    facts.put_authority(rita(), false);
    let told = follows(&said(rita(), Some(ours())), &facts);
    assert!(
        matches!(&told.reason, TriggerReason::Skipped(SkipReason::MayNotAsk { group, on: Some(_), .. }) if group.is_empty()),
        "{told:?}"
    );
}
