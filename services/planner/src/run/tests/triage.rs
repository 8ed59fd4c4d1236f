//! Labels for a new ticket.

use domain::{Job, Receipt, ReportOutcome, ReportRequest, SimilarTicket, StopReason, report};
use serde_json::{Value, json};

use super::play::{Play, end, request, stop_requested, tools};
use crate::run::Action;

fn triaged() -> Play {
    let mut asked = request(Job::Triage);
    asked.rules.triage.labels = vec!["bug".to_owned(), "docs".to_owned()];
    let labels = |labels: Value| tools(&[("add_labels", json!({"labels": labels}))]);
    Play::implement(
        asked,
        [
            labels(json!(["urgent"])),
            labels(json!(["bug", "bug"])),
            end("Done."),
        ],
    )
}

#[test]
fn a_triage_puts_allowed_labels_on_the_ticket_and_needs_no_workspace() {
    let mut play = triaged();
    assert_eq!(play.drive(), Action::Wait);
    assert!(play.last_result().content.contains("Choose from: bug, docs"));
    assert_eq!(
        play.last_request(),
        &ReportRequest::AddLabels(report::AddLabels {
            labels: vec!["bug".to_owned(), "triaged".to_owned()],
            duplicate_of: None,
        })
    );
    let shown = play.transcript();
    assert_eq!(shown.tools.len(), 1);
    play.settle(ReportOutcome::Done(Receipt::Told));
    assert_eq!(play.drive(), Action::Rest);
    assert_eq!(play.reason(), &StopReason::Completed);
}

#[test]
fn a_triage_that_fails_tells_nobody_and_one_without_labels_ends() {
    let mut play = triaged();
    play.faults = 6;
    for _ in 0..5 {
        assert_eq!(play.drive(), Action::Wait);
        play.retry();
    }
    assert_eq!(play.drive(), Action::Rest);
    assert!(matches!(play.reason(), StopReason::ModelFailed { .. }) && play.state.reports.is_empty());
    let mut silent = Play::implement(request(Job::Triage), (0..9).map(|_| end("Hm.")));
    assert_eq!(silent.drive(), Action::Rest);
    assert_eq!((silent.state.turns(), silent.state.reports.len()), (3, 0));
    let mut stopped = triaged();
    stopped.append(stop_requested());
    assert_eq!(stopped.drive(), Action::Rest);
    assert!(matches!(stopped.reason(), StopReason::Stopped { .. }) && stopped.state.reports.is_empty());
}

#[test]
fn a_duplicate_is_named_among_the_tickets_that_were_shown() {
    let mut asked = request(Job::Triage);
    asked.rules.triage.labels = vec!["bug".to_owned()];
    asked.background.similar = vec![SimilarTicket {
        key: "ENG-5".to_owned(),
        summary: "Totals are wrong".to_owned(),
        status: "To Do".to_owned(),
    }];
    let call = |of: &str| tools(&[("add_labels", json!({"labels": ["bug"], "duplicate_of": of}))]);
    let mut play = Play::implement(asked, [call("ENG-99"), call("ENG-5")]);
    assert_eq!(play.drive(), Action::Wait);
    assert!(play.last_result().content.contains("must be one of: ENG-5"));
    let ReportRequest::AddLabels(report::AddLabels { duplicate_of, .. }) = play.last_request() else {
        panic!("no labels")
    };
    assert_eq!(duplicate_of.as_deref(), Some("ENG-5"));
    let shown = format!("{:?}", play.transcript());
    assert!(
        shown.contains("similar-ticket") && shown.contains("Totals are wrong"),
        "{shown}"
    );
}
