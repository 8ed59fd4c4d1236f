//! Results of a triage besides labels.

use std::collections::BTreeMap;

use domain::StopReason;
use e2e::{Options, TestWorld};
use serde_json::json;
use testkit::{ScriptStep, fixture, fixture::REPOSITORY, github::PROJECT_TOKEN};

use crate::{end_of, open_issue, start_world_with_rules};

const ON_GITHUB: &str = "triage:\n  labels: [bug]\n  types: [Bug, Feature]\n  priorities: [High, Low]\n  \
    priority_label: 'priority: {priority}'\n  most_sub_issues: 3\n  project:\n    owner: acme\n    number: 3\n    \
    priority_field: Urgency\n    fields:\n      Size: [S, L]\n";

#[tokio::test(flavor = "multi_thread")]
async fn triaged_issue_gets_all_fields_and_parts() {
    let part = |title: &str| json!({"title": title, "text": "Of the cart.", "checklist": ["Test it"]});
    let chosen = json!({
        "labels": ["bug"], "type": "Bug", "priority": "High", "fields": [{"field": "Size", "value": "L"}],
        "parts": [part("Multiply by the quantity"), part("Round at the end")],
    });
    let world = TestWorld::start(Options {
        rules: ON_GITHUB.to_owned(),
        settings: vec![("GITHUB_WRITER__PROJECT_TOKEN", PROJECT_TOKEN.to_owned())],
        script: Some(vec![ScriptStep::call("submit_triage", chosen)]),
        ..Options::default()
    });
    let world = world.await.unwrap();
    let fields: [(&str, &str, &[&str]); 2] = [
        ("Urgency", "SINGLE_SELECT", &["High", "Low"]),
        ("Size", "SINGLE_SELECT", &["S", "L"]),
    ];
    world.github.create_project("acme", 3, &fields);
    let (number, ticket) = open_issue(&world, "ada");
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    let issue = world.github.issue(REPOSITORY, number).unwrap();
    assert_eq!(issue.labels, ["bug", "triaged", "priority: High"]);
    assert_eq!(issue.issue_type.as_deref(), Some("Bug"));
    let values = world
        .github
        .project_values(("acme", 3), REPOSITORY, number)
        .unwrap();
    let wanted =
        [("Size", "L"), ("Urgency", "High")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(values, Some(BTreeMap::from(wanted)));
    let parts = world.github.sub_issues(REPOSITORY, number).unwrap();
    assert_eq!(parts.len(), 2);
    let comments = world.github.comments(REPOSITORY, number);
    assert_eq!(comments.len(), 1, "{comments:#?}");
    assert!(
        comments[0].body.contains("too large for one pull request"),
        "{comments:#?}"
    );
    for part in parts {
        let known = world.github.issue(REPOSITORY, part).unwrap();
        assert!(
            known.body.contains("- [ ] Test it") && known.labels.is_empty(),
            "{known:#?}"
        );
        let ticket = format!("github:{REPOSITORY}#{part}").parse().unwrap();
        assert!(
            world
                .client
                .runs()
                .recent(Some(&ticket))
                .await
                .unwrap()
                .is_empty()
        );
    }
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn triaged_jira_ticket_gets_priority_and_link() {
    let rules = "triage:\n  labels: [bug]\n  types: [Story]\n  priorities: [Highest, High]\n  duplicate_label: twin\n";
    let world = start_world_with_rules(rules).await;
    let sort = |input| {
        let step = ScriptStep::call("submit_triage", input);
        world.model.set_script_of("Sort this ticket", "", vec![step]);
    };
    sort(json!({"labels": ["bug"]}));
    let file = |title: &str| {
        world
            .jira
            .create_issue(fixture::PROJECT, title, "It is wrong.", "Bug", &[])
    };
    let first = file("The total of the cart ignores the quantity");
    assert_eq!(end_of(&world, &first, 0).await, StopReason::Completed);
    assert_eq!(
        world.jira.priority(&first).as_deref(),
        Some("Medium"),
        "nobody chose one"
    );
    sort(json!({"labels": ["bug"], "type": "Story", "priority": "High", "duplicate_of": first}));
    let second = file("The cart's total ignores the quantity");
    assert_eq!(end_of(&world, &second, 0).await, StopReason::Completed);
    assert_eq!(world.jira.labels(&second), ["bug", "triaged", "twin"]);
    assert_eq!(world.jira.priority(&second).as_deref(), Some("High"));
    assert_eq!(world.jira.issue_type(&second).as_deref(), Some("Bug"));
    let link = (second.clone(), "Duplicate".to_owned(), first.clone());
    assert_eq!(world.jira.issue_links(), [link]);
    let comments = world.jira.comments(&second);
    assert_eq!(comments.len(), 1, "{comments:#?}");
    let text = &comments[0].text;
    assert!(
        text.contains(&format!("same as {first}")) && text.contains("type Story"),
        "{text}"
    );
    assert!(world.jira.comments(&first).is_empty());
    assert_eq!(
        world.jira.status(&first).as_deref(),
        Some("To Do"),
        "nothing is closed"
    );
    world.stop().await.unwrap();
}
