//! Labels for a new ticket.

use domain::{Job, Receipt, ReportOutcome, ReportRequest, StopReason, report};
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
            labels: vec!["bug".to_owned(), "triaged".to_owned()]
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
