//! Tests of a triage's choices: set once where the current rules permit it, and otherwise reported.

use std::collections::BTreeMap;

use domain::{OutboundAction, OutboundOutcome, OutboundReceipt, OutboundRequest, PlannedIssue, report};
use testkit::ServiceFault;

use crate::{
    read_refusal,
    rig::{Rig, RigOptions},
};

const SHOP: &str = "acme/shop";
const PROJECT: (&str, u64) = ("acme", 3);
const ON_JIRA: &str =
    "triage:\n  labels: [bug]\n  types: [Story]\n  priorities: [High]\n  duplicate_label: twin\n";
const ON_GITHUB: &str = "triage:\n  labels: [bug]\n  types: [Bug, Task]\n  priorities: [High, Low]\n  priority_label: 'priority: {priority}'\n  \
    most_sub_issues: 2\n  project:\n    owner: acme\n    number: 3\n    priority_field: Urgency\n    \
    fields:\n      Size: [S, XXL]\n      Points: [1, 3]\n      Team: [Shop]\n      Nowhere: [x]\n      Due: [today]\n";

async fn start_rig(agent: &'static str, has_project_token: bool) -> Rig {
    let rig = Rig::start_with(RigOptions {
        agent,
        has_project_token,
        ..RigOptions::default()
    })
    .await;
    let fields: [(&str, &str, &[&str]); 5] = [
        ("Urgency", "SINGLE_SELECT", &["High", "Low"]),
        ("Size", "SINGLE_SELECT", &["S", "M"]),
        ("Points", "NUMBER", &[]),
        ("Team", "TEXT", &[]),
        ("Due", "DATE", &[]),
    ];
    rig.github.create_project(PROJECT.0, PROJECT.1, &fields);
    rig
}

fn build_triage_result() -> report::TicketTriaged {
    report::TicketTriaged {
        repository: Some(SHOP.parse().unwrap()),
        labels: vec!["bug".to_owned(), "triaged".to_owned()],
        ..report::TicketTriaged::default()
    }
}

/// Builds the same report about a GitHub issue.
fn on_issue(rig: &Rig, number: u64, position: u64, request: impl Into<OutboundAction>) -> OutboundRequest {
    let ticket: domain::TicketKey = format!("github:{SHOP}#{number}").parse().unwrap();
    let run = domain::RunId::new(ticket.clone(), 1);
    OutboundRequest {
        id: run.call(position).into(),
        ticket,
        run: Some(run),
        ..rig.report(position, request.into())
    }
}

fn read_comments(rig: &Rig, number: u64) -> Vec<String> {
    let comments = rig.github.comments(SHOP, number).into_iter();
    comments.map(|comment| comment.body).collect()
}

fn build_field_choices(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn build_done_outcome() -> OutboundOutcome {
    OutboundOutcome::Done(OutboundReceipt::Told)
}

#[tokio::test(flavor = "multi_thread")]
async fn jira_ticket_gets_priority_and_suggested_type() {
    let mut rig = start_rig(ON_JIRA, false).await;
    let first = rig
        .jira
        .create_issue("ENG", "The totals are wrong", "", "Bug", &[]);
    rig.jira
        .fail_next(ServiceFault::new("/issueLink", 1, 502).on("POST").after_effect());
    let report = rig.report(
        2,
        report::TicketTriaged {
            issue_type: Some("Story".to_owned()),
            priority: Some("High".to_owned()),
            duplicate_of: Some(first.clone()),
            ..build_triage_result()
        }
        .into(),
    );
    assert_eq!(rig.settled(&report).await, build_done_outcome());
    rig.deliver_everything_again(&[&report]).await;
    assert_eq!(rig.jira.labels("ENG-1"), ["bug", "triaged", "twin"]);
    assert_eq!(rig.jira.priority("ENG-1").as_deref(), Some("High"));
    assert_eq!(rig.jira.issue_type("ENG-1").as_deref(), Some("Bug"));
    let link = ("ENG-1".to_owned(), "Duplicate".to_owned(), first);
    assert_eq!(rig.jira.issue_links(), [link]);
    let comments = rig.jira.comments("ENG-1");
    assert_eq!(comments.len(), 1, "{comments:?}");
    let text = &comments[0].text;
    assert!(text.contains("The two are linked."), "{text}");
    assert!(text.contains("looks like a ticket of the type Story"), "{text}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jira_type_changes_only_when_rules_allow() {
    let rules = "triage:\n  types: [Story]\n  change_jira_type: true\n  priorities: [Sometime]\n  \
        duplicate_label: twin\n  link_type: Clones\n";
    let mut rig = start_rig(rules, false).await;
    let first = rig
        .jira
        .create_issue("ENG", "The totals are wrong", "", "Bug", &[]);
    let report = rig.report(
        2,
        report::TicketTriaged {
            issue_type: Some("Story".to_owned()),
            priority: Some("Sometime".to_owned()),
            duplicate_of: Some(first),
            ..build_triage_result()
        }
        .into(),
    );
    assert_eq!(rig.settled(&report).await, build_done_outcome());
    assert_eq!(rig.jira.issue_type("ENG-1").as_deref(), Some("Story"));
    assert_eq!(rig.jira.priority("ENG-1").as_deref(), Some("Medium"));
    assert!(rig.jira.issue_links().is_empty());
    let text = rig.jira.comments("ENG-1")[0].text.clone();
    assert!(text.contains("Jira has no type of link Clones"), "{text}");
    assert!(
        text.contains("The priority Sometime fits and is not set") && text.contains("invalid"),
        "{text}"
    );
    assert!(!text.contains("are linked"), "{text}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_gets_type_priority_and_fields_once() {
    let mut rig = start_rig(ON_GITHUB, true).await;
    let number = rig
        .github
        .open_issue_as(SHOP, "rita", "Totals", "Wrong.")
        .unwrap();
    rig.github
        .label_issue(SHOP, number, "priority: Low", "rita")
        .unwrap();
    rig.github
        .fail_next(ServiceFault::new("/issues", 1, 502).on("PATCH").after_effect());
    let fields = [
        ("Size", "S"),
        ("Points", "3"),
        ("Team", "Shop"),
        ("Nowhere", "x"),
        ("Due", "today"),
        ("Forbidden", "x"),
    ];
    let report = on_issue(
        &rig,
        number,
        2,
        report::TicketTriaged {
            issue_type: Some("Bug".to_owned()),
            priority: Some("High".to_owned()),
            fields: build_field_choices(&fields),
            ..build_triage_result()
        },
    );
    assert_eq!(rig.settled(&report).await, build_done_outcome());
    let issue = rig.github.issue(SHOP, number).unwrap();
    assert_eq!(issue.labels, ["bug", "triaged", "priority: High"]);
    assert_eq!(issue.issue_type.as_deref(), Some("Bug"));
    let values = rig.github.project_values(PROJECT, SHOP, number).unwrap().unwrap();
    assert_eq!(
        values,
        build_field_choices(&[
            ("Points", "3"),
            ("Size", "S"),
            ("Team", "Shop"),
            ("Urgency", "High")
        ])
    );
    let said = read_comments(&rig, number);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("`Nowhere` of the project is not set to `x`: the project has no such field."));
    assert!(
        said[0].contains("`Due` of the project is not set to `today`: the field cannot have this value.")
    );
    assert!(
        !said[0].contains("Forbidden"),
        "what the rules do not name is no wish"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_keeps_type_that_person_gave() {
    let mut rig = start_rig(ON_GITHUB, true).await;
    let number = rig
        .github
        .open_issue_as(SHOP, "rita", "Totals", "Wrong.")
        .unwrap();
    rig.github.set_issue_type(SHOP, number, "rita", "Task").unwrap();
    let typed = |name: &str| report::TicketTriaged {
        issue_type: Some(name.to_owned()),
        ..build_triage_result()
    };
    assert_eq!(
        rig.settled(&on_issue(&rig, number, 2, typed("Task"))).await,
        build_done_outcome()
    );
    assert!(read_comments(&rig, number).is_empty());
    assert_eq!(
        rig.settled(&on_issue(&rig, number, 4, typed("Bug"))).await,
        build_done_outcome()
    );
    let issue = rig.github.issue(SHOP, number).unwrap();
    assert_eq!(issue.issue_type.as_deref(), Some("Task"));
    let said = read_comments(&rig, number);
    assert!(said[0].contains("the issue keeps its type `Task`"), "{said:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_project_token_leaves_only_fields() {
    for (has_token, reason) in [(false, "`project_token`"), (true, "github does not know")] {
        let rules = "triage:\n  labels: [bug]\n  project:\n    owner: nobody\n    number: 3\n";
        let mut rig = start_rig(rules, has_token).await;
        let number = rig
            .github
            .open_issue_as(SHOP, "rita", "Totals", "Wrong.")
            .unwrap();
        assert_eq!(
            rig.settled(&on_issue(&rig, number, 2, build_triage_result()))
                .await,
            build_done_outcome()
        );
        let issue = rig.github.issue(SHOP, number).unwrap();
        assert_eq!(issue.labels, ["bug", "triaged"]);
        let said = read_comments(&rig, number);
        assert!(
            said[0].contains("not in project `nobody/3`") && said[0].contains(reason),
            "{said:?}"
        );
        rig.stop().await;
    }
}

fn build_open_issues(parent: u64, titles: &[&str]) -> report::OpenIssues {
    let planned = |title: &&str| PlannedIssue {
        title: (*title).to_owned(),
        text: format!("What {title} needs."),
        checklist: vec!["Test it".to_owned()],
    };
    report::OpenIssues {
        repository: SHOP.parse().unwrap(),
        parent: Some(parent),
        issues: titles.iter().map(planned).collect(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_parts_open_and_link_only_once() {
    let mut rig = start_rig(ON_GITHUB, false).await;
    let number = rig.github.open_issue_as(SHOP, "rita", "All", "Much.").unwrap();
    let too_many = on_issue(&rig, number, 2, build_open_issues(number, &["a", "b", "c"]));
    let outcome = rig.settled(&too_many).await;
    assert!(read_refusal(&outcome).contains("allow 2"), "{outcome:?}");
    let report = on_issue(
        &rig,
        number,
        4,
        build_open_issues(number, &["Totals", "Rounding"]),
    );
    rig.github
        .fail_next(ServiceFault::new("/issues", 1, 502).on("POST").after_effect());
    assert_eq!(rig.settled(&report).await, build_done_outcome());
    let opened: Vec<u64> = rig
        .github
        .issues(SHOP)
        .iter()
        .skip(1)
        .map(|issue| issue.number)
        .collect();
    assert_eq!(opened.len(), 2);
    assert_eq!(rig.github.sub_issues(SHOP, number).unwrap(), opened);
    let said = read_comments(&rig, number);
    assert!(said[0].contains("too large for one pull request"), "{said:?}");
    let again = on_issue(&rig, number, 6, build_open_issues(number, &["More", "Else"]));
    let outcome = rig.settled(&again).await;
    assert!(
        read_refusal(&outcome).contains("has parts already"),
        "{outcome:?}"
    );
    assert_eq!(rig.github.issues(SHOP).len(), 3);
    rig.stop().await;
}
