//! Tickets that match the condition of the rules.

use domain::{Job, TicketRow, Timestamp, TriggerChannel, TriggerKey};
use serde_json::json;

use super::{
    matched::ConditionMatchEvent,
    tests::{ada, facts_with, follows, jira, jira_person, nothing, repository, ticket},
};
use crate::{facts::DecisionFacts, tracker_reader::TrackerIssue};

const RULES: &str = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n  jql: labels = agent\n";

pub(super) fn facts(holds: Result<bool, String>, change: impl FnOnce(&mut TrackerIssue)) -> DecisionFacts {
    let mut facts = facts_with(RULES, TriggerChannel::Webhook);
    let mut issue = TrackerIssue {
        summary: "Fix the cart".to_owned(),
        status: "To Do".to_owned(),
        created: Some(Timestamp::from_unix_ms(5)),
        creator: Some(ada()),
        ..TrackerIssue::default()
    };
    change(&mut issue);
    facts.put_history(ticket(), Vec::new());
    facts.put_row(ticket(), TicketRow::default());
    facts.put_matches(ticket(), "labels = agent".to_owned(), holds);
    facts.put_issue(ticket(), Ok(issue));
    facts.put_open(repository(), ticket(), Vec::new());
    facts
}

pub(super) fn may(mut facts: DecisionFacts, may: bool) -> DecisionFacts {
    facts.put_authority(jira_person(ada()), may);
    facts
}

#[test]
fn matching_ticket_starts_work_once() {
    let facts = may(facts(Ok(true), |_| {}), true);
    let polled = follows(&ConditionMatchEvent::from_poll(ticket()), &facts);
    for event in ["jira:issue_created", "jira:issue_updated"] {
        let payload = json!({"webhookEvent": event, "timestamp": 50, "issue": {"key": "ENG-12"},
            "changelog": {"id": "9", "items": [{"field": "labels", "toString": "agent"}]}});
        let told = jira(&payload);
        let told = told
            .iter()
            .find(|event| format!("{event:?}").starts_with("ConditionMatchEvent"));
        assert_eq!(follows(&**told.expect("told"), &facts), polled);
    }
    assert_eq!(polled.key, TriggerKey::new("matched:jira:ENG-12"));
    assert_eq!(polled.reason.job(), Some(Job::Implement));
    let mut old = facts_with(RULES, TriggerChannel::Poll);
    old.put_history(ticket(), vec![polled.into_trigger(TriggerChannel::Poll)]);
    old.put_row(ticket(), TicketRow::default());
    assert_eq!(
        nothing(&ConditionMatchEvent::from_poll(ticket()), &old),
        "work on the ticket was asked for before"
    );
}

#[test]
fn failed_condition_or_stranger_starts_nothing() {
    let payload = json!({"webhookEvent": "jira:issue_created", "timestamp": 50, "issue": {"key": "ENG-12"}});
    let told = |facts: &DecisionFacts| {
        let events = jira(&payload).into_iter();
        let told = events.filter(|event| format!("{event:?}").starts_with("ConditionMatchEvent"));
        let told: Vec<_> = told.map(|event| nothing(&*event, facts)).collect();
        told.join("")
    };
    let not = "the condition of the rules does not hold";
    assert_eq!(told(&facts(Ok(false), |_| {})), not);
    assert_eq!(told(&facts(Err("no field".to_owned()), |_| {})), not);
    let closed = facts(Ok(true), |issue| issue.is_over = true);
    assert_eq!(told(&closed), "the ticket is closed");
    let stranger = may(facts(Ok(true), |_| {}), false);
    assert_eq!(told(&stranger), "who created the ticket may not ask for work");
    let none = facts_with(
        "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n",
        TriggerChannel::Poll,
    );
    assert_eq!(told(&none), "no rules with a condition for tickets");
}
