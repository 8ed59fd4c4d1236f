//! A person decides before the push.

use domain::{Approval, Fact, Job, ReportRequest, StopReason, Verdict};

use super::play::{Play, change, decided, push, request, tools};
use crate::run::Action;

fn gated() -> Play {
    let mut asked = request(Job::Implement);
    asked.rules.agent.approval = Approval::BeforePush;
    let turns = [
        tools(&change()),
        tools(&[push()]),
        tools(&change()),
        tools(&[push()]),
    ];
    let mut play = Play::implement(asked, turns);
    assert_eq!(play.drive(), Action::Wait);
    assert!(play.is_parked_for("decision"));
    play
}

#[test]
fn an_approved_change_is_pushed() {
    let mut play = gated();
    play.append(decided(Verdict::Approve));
    assert!(
        !play.state.accepts(&decided(Verdict::Approve)),
        "a repeated decision says nothing new"
    );
    assert_eq!(play.drive(), Action::Wait);
    assert!(matches!(play.last_request(), ReportRequest::PushBranch(_)));
}

#[test]
fn a_rejected_change_ends_the_run() {
    let mut play = gated();
    play.append(decided(Verdict::Reject));
    assert_eq!(play.drive(), Action::Rest);
    assert_eq!(play.reason(), &StopReason::Rejected { by: "ada".to_owned() });
}

#[test]
fn a_change_to_revise_goes_back_to_the_model_and_is_asked_about_again() {
    let mut play = gated();
    play.append(decided(Verdict::Revise));
    assert_eq!(play.drive(), Action::Wait);
    assert!(play.entries.iter().any(|entry| matches!(&entry.fact,
        Fact::ToolFinished { result, .. } if result.content.contains("Add a test."))));
    assert!(play.is_parked_for("decision"));
    let gates = play
        .state
        .reports
        .iter()
        .filter(|report| matches!(report.request, ReportRequest::DecisionNeeded { .. }));
    assert_eq!(gates.count(), 2);
}
