//! Tickets that match the condition of the rules.

use domain::{Job, TicketRow, Timestamp, TriggerChannel, TriggerKey};
use serde_json::json;

use super::{
    matched::ConditionMatchEvent,
    tests::{
        build_ada_account, build_repository_name, build_ticket_key, expect_nothing, expect_trigger,
        facts_with, jira_person, parse_jira_events,
    },
};
use crate::facts::{DecisionFacts, tracker_reader::TrackerIssue};

const RULES: &str = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n  jql: labels = agent\n";

pub(super) fn build_match_facts(
    holds: Result<bool, String>,
    change: impl FnOnce(&mut TrackerIssue),
) -> DecisionFacts {
    let mut facts = facts_with(RULES, TriggerChannel::Webhook);
    let mut issue = TrackerIssue {
        summary: "Fix the cart".to_owned(),
        status: "To Do".to_owned(),
        created: Some(Timestamp::from_unix_ms(5)),
        creator: Some(build_ada_account()),
        ..TrackerIssue::default()
    };
    change(&mut issue);
    facts.put_history(build_ticket_key(), Vec::new());
    facts.put_row(build_ticket_key(), TicketRow::default());
    facts.put_matches(build_ticket_key(), "labels = agent".to_owned(), holds);
    facts.put_issue(build_ticket_key(), Ok(issue));
    facts.put_open(build_repository_name(), build_ticket_key(), Vec::new());
    facts
}

pub(super) fn set_authority(mut facts: DecisionFacts, may: bool) -> DecisionFacts {
    facts.put_authority(jira_person(build_ada_account()), may);
    facts
}

#[test]
fn matching_ticket_starts_work_once() {
    let facts = set_authority(build_match_facts(Ok(true), |_| {}), true);
    let polled = expect_trigger(&ConditionMatchEvent::from_poll(build_ticket_key()), &facts);
    for event in ["jira:issue_created", "jira:issue_updated"] {
        let payload = json!({"webhookEvent": event, "timestamp": 50, "issue": {"key": "ENG-12"},
            "changelog": {"id": "9", "items": [{"field": "labels", "toString": "agent"}]}});
        let delivered = parse_jira_events(&payload);
        let delivered = delivered
            .iter()
            .find(|event| format!("{event:?}").starts_with("ConditionMatchEvent"));
        assert_eq!(expect_trigger(&**delivered.expect("an event"), &facts), polled);
    }
    assert_eq!(polled.key, TriggerKey::new("matched:jira:ENG-12"));
    assert_eq!(polled.reason.job(), Some(Job::Implement));
    let mut old = facts_with(RULES, TriggerChannel::Poll);
    old.put_history(
        build_ticket_key(),
        vec![polled.into_trigger(TriggerChannel::Poll)],
    );
    old.put_row(build_ticket_key(), TicketRow::default());
    assert_eq!(
        expect_nothing(&ConditionMatchEvent::from_poll(build_ticket_key()), &old),
        "work on the ticket was asked for before"
    );
}

#[test]
fn failed_condition_or_stranger_starts_nothing() {
    let payload = json!({"webhookEvent": "jira:issue_created", "timestamp": 50, "issue": {"key": "ENG-12"}});
    let delivered = |facts: &DecisionFacts| {
        let events = parse_jira_events(&payload).into_iter();
        let delivered = events.filter(|event| format!("{event:?}").starts_with("ConditionMatchEvent"));
        let delivered: Vec<_> = delivered.map(|event| expect_nothing(&*event, facts)).collect();
        delivered.join("")
    };
    let not = "the condition of the rules does not hold";
    assert_eq!(delivered(&build_match_facts(Ok(false), |_| {})), not);
    assert_eq!(
        delivered(&build_match_facts(Err("no field".to_owned()), |_| {})),
        not
    );
    let closed = build_match_facts(Ok(true), |issue| issue.is_over = true);
    assert_eq!(delivered(&closed), "the ticket is closed");
    let stranger = set_authority(build_match_facts(Ok(true), |_| {}), false);
    assert_eq!(
        delivered(&stranger),
        "the creator of the ticket is not allowed to request work"
    );
    let none = facts_with(
        "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n",
        TriggerChannel::Poll,
    );
    assert_eq!(delivered(&none), "no rules with a condition for tickets");
}
