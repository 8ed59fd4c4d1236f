//! Triage of a new ticket.

use std::collections::BTreeMap;

use domain::{
    Job, JobRequest, ModelReply, OutboundAction, OutboundOutcome, OutboundReceipt, OutboundRefusal, RunId,
    SimilarTicket, StopReason, report,
};
use serde_json::{Value, json};

use super::play::{Play, build_end_reply, build_job_request, build_tool_reply, stop_requested};
use crate::run::{PlannerRunState, RunAction};

fn build_triage_reply(input: Value) -> ModelReply {
    build_tool_reply(&[("submit_triage", input)])
}

fn build_triage_request() -> JobRequest {
    let mut asked = build_job_request(Job::Triage);
    asked.rules.triage.labels = vec!["bug".to_owned(), "docs".to_owned()];
    asked
}

fn build_triage_play() -> Play {
    let labels = |labels: Value| build_triage_reply(json!({"labels": labels}));
    Play::implement(
        build_triage_request(),
        [
            labels(json!(["urgent"])),
            labels(json!(["bug", "bug"])),
            build_end_reply("Done."),
        ],
    )
}

/// Plays a GitHub issue under these rules, with this call of the model.
fn build_issue_play(rules: Value, input: Value) -> Play {
    let mut asked = build_triage_request();
    asked.rules.triage = serde_json::from_value(rules).unwrap();
    let mut play = Play::implement(asked, [build_triage_reply(input)]);
    let run = RunId::new("github:acme/shop#7".parse().unwrap(), 57);
    play.state = PlannerRunState::fold(&run, &play.entries).unwrap().unwrap();
    play
}

fn read_triage_result(play: &Play) -> &report::TicketTriaged {
    match play.last_request() {
        OutboundAction::Triaged(triaged) => triaged,
        other => panic!("{other:?}"),
    }
}

fn build_issue_part(title: &str) -> Value {
    json!({"title": title, "text": "Of it.", "checklist": ["Test it"]})
}

#[test]
fn triage_sets_labels_without_workspace() {
    let mut play = build_triage_play();
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(play.last_result().content.contains("Choose from: bug, docs"));
    assert_eq!(
        read_triage_result(&play),
        &report::TicketTriaged {
            repository: Some("acme/shop".parse().unwrap()),
            labels: vec!["bug".to_owned(), "triaged".to_owned()],
            ..report::TicketTriaged::default()
        }
    );
    let shown = play.transcript();
    assert_eq!(shown.tools.len(), 1);
    play.settle(OutboundOutcome::Done(OutboundReceipt::Told));
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::Completed);
}

#[test]
fn failed_triage_posts_nothing() {
    let mut play = build_triage_play();
    play.faults = 6;
    for _ in 0..5 {
        assert_eq!(play.drive(), RunAction::Wait);
        play.retry();
    }
    assert_eq!(play.drive(), RunAction::Rest);
    assert!(
        matches!(play.reason(), StopReason::ModelFailed { .. }) && play.state.delivery().reports().is_empty()
    );
    let mut silent = Play::implement(
        build_job_request(Job::Triage),
        (0..9).map(|_| build_end_reply("Hm.")),
    );
    assert_eq!(silent.drive(), RunAction::Rest);
    assert_eq!(
        (
            silent.state.conversation().turn_count(),
            silent.state.delivery().reports().len()
        ),
        (3, 0)
    );
    let mut stopped = build_triage_play();
    stopped.append(stop_requested());
    assert_eq!(stopped.drive(), RunAction::Rest);
    assert!(
        matches!(stopped.reason(), StopReason::Stopped { .. })
            && stopped.state.delivery().reports().is_empty()
    );
}

#[test]
fn duplicate_must_be_shown_ticket() {
    let mut asked = build_triage_request();
    asked.background.similar = vec![SimilarTicket {
        key: "ENG-5".to_owned(),
        summary: "Totals are wrong".to_owned(),
        status: "To Do".to_owned(),
    }];
    let call = |of: &str| build_triage_reply(json!({"labels": ["bug"], "duplicate_of": of}));
    let mut play = Play::implement(asked, [call("ENG-99"), call("ENG-5")]);
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(play.last_result().content.contains("must be one of: ENG-5"));
    assert_eq!(read_triage_result(&play).duplicate_of.as_deref(), Some("ENG-5"));
    let shown = format!("{:?}", play.transcript());
    assert!(
        shown.contains("similar-ticket") && shown.contains("Totals are wrong"),
        "{shown}"
    );
}

#[test]
fn triage_fields_follow_rules() {
    let rules = json!({
        "types": ["Bug"], "priorities": ["High"],
        "project": {"owner": "acme", "number": 3, "priority_field": "Priority", "fields": {"Size": ["S", "M"], "Points": [1, 3]}},
    });
    let field = |field: &str, value: &str| json!({"field": field, "value": value});
    let input = json!({
        "labels": [], "type": "Bug", "priority": "High", "fields": [field("Size", "S"), field("Points", "3")],
    });
    let mut play = build_issue_play(rules.clone(), input);
    assert_eq!(play.drive(), RunAction::Wait);
    let chosen = read_triage_result(&play);
    assert_eq!(chosen.labels, ["triaged"]);
    assert_eq!(
        (chosen.issue_type.as_deref(), chosen.priority.as_deref()),
        (Some("Bug"), Some("High"))
    );
    let pairs = [("Points", "3"), ("Size", "S")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(chosen.fields, BTreeMap::from(pairs));
    for (wrong, problem) in [
        (json!({"labels": ["bug"]}), "Nothing can be chosen for \"labels\""),
        (json!({"labels": [], "type": "Epic"}), "Choose from: Bug."),
        (json!({"labels": [], "priority": "Top"}), "Choose from: High."),
        (
            json!({"labels": [], "fields": [field("Status", "Done")]}),
            "Choose from: Points, Size.",
        ),
        (
            json!({"labels": [], "fields": [field("Size", "3")]}),
            "Choose from: S, M.",
        ),
        (
            json!({"labels": [], "parts": [build_issue_part("a"), build_issue_part("b")]}),
            "cannot be split",
        ),
    ] {
        let mut play = build_issue_play(rules.clone(), wrong.clone());
        play.drive();
        let refused_call = play.state.conversation().dialog().unwrap().turns[0].calls[0].clone();
        assert!(
            format!("{refused_call:?}").contains(&problem.replace('"', "\\\"")),
            "{wrong}: {refused_call:?}"
        );
        assert!(play.state.delivery().reports().is_empty(), "{wrong}");
    }
}

#[test]
fn unsupported_triage_fields_are_not_offered() {
    let mut asked = build_triage_request();
    asked.rules.triage = serde_json::from_value(json!({
        "types": ["Bug"], "most_sub_issues": 4, "project": {"owner": "acme", "number": 3, "fields": {"Size": ["S"]}},
    }))
    .unwrap();
    let mut play = Play::implement(asked, [build_triage_reply(json!({"labels": []}))]);
    play.drive();
    let offered = &play.transcript().tools[0].input_schema["properties"];
    assert!(offered["type"].is_object(), "{offered}");
    assert!(
        offered["fields"].is_null() && offered["parts"].is_null() && offered["priority"].is_null(),
        "Jira has neither of these: {offered}"
    );
}

#[test]
fn large_issue_is_split_after_triage() {
    let rules = json!({"labels": ["bug"], "most_sub_issues": 3});
    let input =
        json!({"labels": ["bug"], "parts": [build_issue_part("Totals"), build_issue_part("Rounding")]});
    let mut play = build_issue_play(rules, input);
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(read_triage_result(&play).labels, ["bug", "triaged"]);
    play.settle(OutboundOutcome::Done(OutboundReceipt::Told));
    assert_eq!(play.drive(), RunAction::Wait);
    let OutboundAction::OpenIssues(open) = play.last_request() else {
        panic!("no parts")
    };
    let titles: Vec<&str> = open.issues.iter().map(|issue| issue.title.as_str()).collect();
    assert_eq!((open.parent, titles), (Some(7), vec!["Totals", "Rounding"]));
    play.settle(OutboundOutcome::Done(OutboundReceipt::Told));
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::Completed);
    assert_eq!(
        (
            play.state.conversation().turn_count(),
            play.state.delivery().reports().len()
        ),
        (1, 2)
    );
}

#[test]
fn invalid_ticket_parts_are_refused() {
    let rules = json!({"duplicate_label": "duplicate", "most_sub_issues": 2});
    for (parts, of) in [
        (vec![build_issue_part("a")], None),
        (
            vec![
                build_issue_part("a"),
                build_issue_part("b"),
                build_issue_part("c"),
            ],
            None,
        ),
        (vec![build_issue_part("a"), build_issue_part(" ")], None),
        (
            vec![build_issue_part("a"), build_issue_part("b")],
            Some("acme/shop#5"),
        ),
    ] {
        let input = json!({"labels": [], "parts": parts, "duplicate_of": of});
        let mut play = build_issue_play(rules.clone(), input.clone());
        if let Some(of) = of {
            let shown = SimilarTicket {
                key: of.to_owned(),
                summary: "Totals".to_owned(),
                status: "open".to_owned(),
            };
            play = again_with(play, shown);
        }
        play.drive();
        let refused_call = format!(
            "{:?}",
            play.state.conversation().dialog().unwrap().turns[0].calls[0]
        );
        assert!(refused_call.contains("2 to 2 entries"), "{input}: {refused_call}");
        assert!(play.state.delivery().reports().is_empty(), "{input}");
    }
}

/// Plays the same run with one more similar ticket.
fn again_with(mut play: Play, shown: SimilarTicket) -> Play {
    if let domain::Fact::RunStarted { trigger } = &mut play.entries[0].fact
        && let domain::TriggerReason::JobRequested(request) = &mut trigger.reason
    {
        request.background.similar.push(shown);
    }
    let run = play.state.run.clone();
    play.state = PlannerRunState::fold(&run, &play.entries).unwrap().unwrap();
    play
}

#[test]
fn refused_ticket_parts_end_run() {
    let rules = json!({"most_sub_issues": 3});
    let mut play = build_issue_play(
        rules,
        json!({"labels": [], "parts": [build_issue_part("a"), build_issue_part("b")]}),
    );
    play.drive();
    play.settle(OutboundOutcome::Done(OutboundReceipt::Told));
    play.drive();
    play.settle(OutboundOutcome::Refused(OutboundRefusal::PartedAlready));
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(
        play.reason(),
        &StopReason::ReportRefused(OutboundRefusal::PartedAlready)
    );
}
