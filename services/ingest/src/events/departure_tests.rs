//! Verdicts about issues that leave their place, by webhook and by a read.

use domain::{TicketDeparture, TicketRow, TriggerChannel, TriggerKey, TriggerReason};
use serde_json::{Value, json};

use super::{
    EventVerdict,
    departure::TicketDepartureEvent,
    issue_tests::{RULES, build_ticket_key},
    tests::{
        build_behind_progress, decide_event, expect_nothing, expect_trigger, facts_with, parse_github_events,
    },
};
use crate::facts::{DecisionFacts, RunProgress};

fn build_departure(to: Option<&str>) -> TicketDeparture {
    TicketDeparture::Transferred {
        to: to.map(str::to_owned),
    }
}

/// Facts about a ticket with this row.
fn build_row_facts(row: TicketRow, progress: RunProgress) -> DecisionFacts {
    let mut facts = facts_with(RULES, TriggerChannel::Webhook);
    facts.put_row(build_ticket_key(), row);
    facts.put_progress(build_ticket_key(), progress);
    facts
}

/// Row of a ticket whose work a planner has handled.
fn build_worked_row() -> TicketRow {
    TicketRow {
        cursor: 5,
        ..TicketRow::default()
    }
}

pub(super) fn build_worked_facts() -> DecisionFacts {
    build_row_facts(build_worked_row(), RunProgress::default())
}

pub(super) fn build_payload(action: &str, changes: &Value) -> Value {
    json!({"action": action, "issue": {"number": 7}, "changes": changes,
        "repository": {"full_name": "acme/shop"}, "sender": {"login": "rita"}})
}

/// Departure in a webhook of issues; `None` for a webhook that reports none.
fn parse_departure(payload: &Value) -> Option<(String, TicketDeparture)> {
    let mut facts = build_worked_facts();
    let former = "github:acme/former#3".parse().expect("ticket");
    facts.put_row(former, build_worked_row());
    let events = parse_github_events("issues", payload);
    // The other kinds of events need facts about the issue itself.
    let event = events
        .iter()
        .find(|event| format!("{event:?}").starts_with("TicketDepartureEvent"))?;
    let found = expect_trigger(&**event, &facts);
    assert_eq!(found.key, TriggerKey::new("ticket_left"));
    assert_eq!(found.actor.as_deref(), Some("rita"));
    match found.reason {
        TriggerReason::TicketLeft(departure) => Some((found.ticket.to_string(), departure)),
        reason => panic!("{reason:?}"),
    }
}

#[test]
fn webhook_names_departure_and_place() {
    let new_place = json!({"new_issue": {"number": 220}, "new_repository": {"full_name": "acme/other"}});
    let former_place = json!({"old_issue": {"number": 3}, "old_repository": {"full_name": "acme/former"}});
    let edit = json!({"body": {"from": "It rounds"}});
    let here = |departure| Some(("github:acme/shop#7".to_owned(), departure));
    for (action, changes, expected) in [
        (
            "transferred",
            &new_place,
            here(build_departure(Some("acme/other#220"))),
        ),
        ("transferred", &json!(null), here(build_departure(None))),
        ("deleted", &json!(null), here(TicketDeparture::Deleted)),
        (
            "opened",
            &former_place,
            Some((
                "github:acme/former#3".to_owned(),
                build_departure(Some("acme/shop#7")),
            )),
        ),
        ("opened", &json!(null), None),
        ("opened", &json!({"old_issue": null}), None),
        ("edited", &edit, None),
        ("closed", &json!(null), None),
        ("unlabeled", &json!(null), None),
    ] {
        assert_eq!(
            parse_departure(&build_payload(action, changes)),
            expected,
            "{action} {changes}"
        );
    }
}

#[test]
fn read_has_same_event_as_webhook() {
    let facts = build_worked_facts();
    let found = TicketDepartureEvent::found(build_ticket_key(), build_departure(None));
    let found = expect_trigger(&found, &facts);
    let payload = build_payload("transferred", &json!(null));
    let reported = expect_trigger(&*parse_github_events("issues", &payload)[0], &facts);
    assert_eq!(
        (found.ticket, found.key, found.reason),
        (reported.ticket, reported.key, reported.reason)
    );
}

#[test]
fn departure_counts_once_for_own_tickets() {
    let left = TicketDepartureEvent::found(build_ticket_key(), TicketDeparture::Deleted);
    let unhandled = build_row_facts(TicketRow::default(), build_behind_progress());
    assert!(matches!(
        expect_trigger(&left, &unhandled).reason,
        TriggerReason::TicketLeft(_)
    ));
    let foreign = build_row_facts(TicketRow::default(), RunProgress::default());
    assert_eq!(expect_nothing(&left, &foreign), "no ticket of ours");
    let known = TicketRow {
        left: Some(TicketDeparture::Deleted),
        ..build_worked_row()
    };
    let known = build_row_facts(known, RunProgress::default());
    assert_eq!(
        expect_nothing(&left, &known),
        "the departure of the ticket is known"
    );
    let mut logged = build_worked_facts();
    logged.put_known(build_ticket_key(), TriggerKey::new("ticket_left"), Some(9));
    assert!(matches!(decide_event(&left, &logged), EventVerdict::Known(9)));
}
