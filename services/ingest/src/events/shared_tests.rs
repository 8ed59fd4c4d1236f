//! Repositories that share a Jira project.

use std::collections::BTreeSet;

use bootstrap::rules::{ConfiguredInstances, RulesBook};
use domain::{SkipReason, TriggerChannel, TriggerReason};
use serde_json::json;

use super::{
    EventKind,
    tests::{
        build_ada_account, build_ticket_key, expect_nothing, expect_trigger, jira_person, parse_jira_events,
    },
};
use crate::facts::{
    DecisionFacts, Need, RunProgress,
    tracker_reader::{AssignmentEvent, AssignmentKind, TrackerIssue},
};

const READY: &str = "Ready for Agent";

const CART: &str =
    "repo: {owner: acme, name: cart}\njira: {project_key: ENG, assignee: a9, components: [Cart]}\n";
const DOCS: &str = "repo: {owner: acme, name: docs}\njira: {project_key: ENG, labels: [manual]}\nagent: {status: Write it}\n";

fn build_shared_facts(components: &[&str], labels: &[&str]) -> DecisionFacts {
    let files = [("cart.yaml", CART), ("docs.yaml", DOCS)];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let book = RulesBook::parse(&files, &ConfiguredInstances::default());
    assert_eq!(book.problems(), []);
    let mut facts = DecisionFacts::new(
        TriggerChannel::Webhook,
        book.into(),
        BTreeSet::new().into(),
        "agents".to_owned(),
    );
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let assignment = AssignmentEvent {
        id: "8".to_owned(),
        at: domain::Timestamp::from_unix_ms(60),
        by: Some(build_ada_account()),
        how: AssignmentKind::Assigned(domain::TrackerAccount {
            id: "a9".to_owned(),
            display_name: "Agent".to_owned(),
            is_bot: false,
        }),
    };
    let issue = TrackerIssue {
        summary: "Round the total".to_owned(),
        status: READY.to_owned(),
        components: owned(components),
        labels: owned(labels),
        assignees: vec![domain::TrackerAccount {
            id: "a9".to_owned(),
            display_name: "Agent".to_owned(),
            is_bot: false,
        }],
        assignments: vec![assignment],
        ..TrackerIssue::default()
    };
    facts.put_issue(build_ticket_key(), Ok(issue));
    facts.put_authority(jira_person(build_ada_account()), true);
    facts.put_progress(build_ticket_key(), RunProgress::default());
    for repository in ["acme/cart", "acme/docs"] {
        facts.put_open(
            repository.parse().expect("repository"),
            build_ticket_key(),
            Vec::new(),
        );
    }
    facts
}

fn build_moved_event(status: &str) -> Box<dyn EventKind> {
    let body = json!({"webhookEvent": "jira:issue_updated", "timestamp": 50,
        "user": {"accountId": "a1", "displayName": "Ada"},
        "issue": {"id": "1", "key": "ENG-12", "fields": {"summary": "Round the total"}},
        "changelog": {"id": "7", "items": [{"field": "status", "fromString": "To Do", "toString": status}]}});
    parse_jira_events(&body).remove(0)
}

fn build_assigned_event() -> Box<dyn EventKind> {
    let body = json!({"webhookEvent": "jira:issue_updated", "timestamp": 60,
        "user": {"accountId": "a1", "displayName": "Ada"},
        "issue": {"id": "1", "key": "ENG-12", "fields": {"summary": "Round the total"}},
        "changelog": {"id": "8", "items": [{"field": "assignee", "from": null, "to": "a9"}]}});
    parse_jira_events(&body).remove(0)
}

fn name_repositories(reason: &TriggerReason) -> String {
    match reason {
        TriggerReason::JobRequested(job) => job.repository.to_string(),
        TriggerReason::Skipped(SkipReason::UnclearRepository { choices }) => {
            let names: Vec<_> = choices.iter().map(|choice| choice.repository.as_str()).collect();
            names.join(" or ")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn component_or_label_selects_repository() {
    for event in [build_moved_event(READY), build_assigned_event()] {
        let delivered = expect_trigger(&*event, &build_shared_facts(&["cart"], &[]));
        assert_eq!(name_repositories(&delivered.reason), "acme/cart");
    }
    // The other rules file has another status and no assignee.
    let writing = build_shared_facts(&[], &["manual"]);
    let asks_nothing = "status \"Ready for Agent\" asks for nothing";
    assert_eq!(expect_nothing(&*build_moved_event(READY), &writing), asks_nothing);
    let gives_nothing = "no rules select tickets by assignment or label";
    assert_eq!(expect_nothing(&*build_assigned_event(), &writing), gives_nothing);
}

#[test]
fn ambiguous_request_explains_repository_marks() {
    for (components, labels) in [(&[][..], &[][..]), (&["Cart"], &["manual"])] {
        for event in [build_moved_event(READY), build_assigned_event()] {
            let delivered = expect_trigger(&*event, &build_shared_facts(components, labels));
            assert_eq!(name_repositories(&delivered.reason), "acme/cart or acme/docs");
        }
    }
}

#[test]
fn only_shared_project_tickets_are_read() {
    let event = build_moved_event(READY);
    let mut shared = DecisionFacts::new(
        TriggerChannel::Webhook,
        build_shared_facts(&[], &[]).book,
        BTreeSet::new().into(),
        String::new(),
    );
    shared.put_known(build_ticket_key(), domain::TriggerKey::new("changelog:7"), None);
    assert_eq!(event.decide(&shared).err(), Some(Need::Issue(build_ticket_key())));
    let other = json!({"webhookEvent": "jira:issue_updated", "timestamp": 50,
        "user": {"accountId": "a1", "displayName": "Ada"},
        "issue": {"id": "1", "key": "OPS-1", "fields": {"summary": "Other"}},
        "changelog": {"id": "7", "items": [{"field": "status", "toString": READY}]}});
    let unruled = parse_jira_events(&other).remove(0);
    let known = |facts: &mut DecisionFacts| {
        let ops = "jira:OPS-1".parse().expect("ticket");
        facts.put_known(ops, domain::TriggerKey::new("changelog:7"), None);
    };
    known(&mut shared);
    assert!(matches!(
        unruled.decide(&shared),
        Ok(super::EventVerdict::Unruled(_))
    ));
}
