//! Planning of a large change.

use domain::{
    Approval, Decision, Fact, Job, Phase, Planned, Receipt, ReportOutcome, ReportRequest, StopReason,
    Verdict, report,
};
use serde_json::json;

use super::play::{Play, done, end, plan, request, run_id, tools};
use crate::run::{Action, decide};
use crate::transcript::Message;

fn play(replies: impl IntoIterator<Item = domain::Reply>) -> Play {
    let mut asked = request(Job::Implement);
    asked.rules.agent.plan = Planned::Always;
    let mut play = Play::implement(asked, done());
    play.around.insert(Phase::Plan, replies.into_iter().collect());
    play
}

#[test]
fn the_work_begins_with_the_plan() {
    let mut play = play([plan()]);
    play.drive();
    assert_eq!(play.state.plan().unwrap().unwrap().steps.len(), 1);
    let Message::User(task) = &play.transcript().messages[0] else {
        panic!("no task")
    };
    assert!(task.contains("1. Multiply by the quantity. (a)"), "{task}");
}

#[test]
fn nothing_is_changed_while_planning() {
    let mut play = play([
        tools(&[
            ("edit_file", json!({"path": "a"})),
            ("read_file", json!({"path": "a"})),
        ]),
        plan(),
    ]);
    play.until(|action| matches!(action, Action::CallTool { .. }));
    let Action::CallTool { call, .. } = decide(&play.state) else {
        panic!("no call")
    };
    assert_eq!(call.name, "read_file", "the edit was answered from here");
    assert!(play.last_result().content.contains("nothing may be changed"));
}

#[test]
fn missing_plan_does_not_block_work() {
    let mut play = play((0..20).map(|_| end("Hm.")));
    play.drive();
    assert_eq!(play.state.plan(), Some(None));
    assert!(play.state.exit().is_some());
    assert_eq!(play.state.turns(), 15 + 2);
}

fn gated() -> Play {
    let mut asked = request(Job::Implement);
    asked.rules.agent.approval = Approval::Plan;
    let mut play = Play::implement(asked, done());
    assert_eq!(play.drive(), Action::Wait);
    play.settle(ReportOutcome::Done(Receipt::Told));
    assert_eq!(play.drive(), Action::Wait);
    assert!(play.is_parked_for("decision"));
    play
}

fn decided(play: &Play, verdict: Verdict) -> Fact {
    let ReportRequest::PlanProposed(report::PlanProposed { id, .. }) = play.last_request() else {
        panic!("{:?}", play.last_request())
    };
    let decision = Decision {
        run: run_id(),
        head: id.clone(),
        verdict,
        feedback: "Mind the taxes.".to_owned(),
    };
    Fact::Decided {
        decision,
        by: "ada".to_owned(),
    }
}

#[test]
fn required_plan_approval_precedes_work() {
    let mut play = gated();
    assert_eq!(play.state.turns(), 1);
    play.append(decided(&play, Verdict::Approve));
    assert_eq!(play.drive(), Action::Wait);
    assert!(
        matches!(play.last_request(), ReportRequest::PushBranch(_)),
        "the change itself needs no approval"
    );
}

#[test]
fn a_rejected_plan_ends_the_run() {
    let mut play = gated();
    play.append(decided(&play, Verdict::Reject));
    assert_eq!(play.drive(), Action::Rest);
    assert_eq!(play.reason(), &StopReason::Rejected { by: "ada".to_owned() });
}

#[test]
fn plan_is_revised_at_most_three_times() {
    let mut play = gated();
    for _ in 0..3 {
        let earlier = decided(&play, Verdict::Approve);
        play.append(decided(&play, Verdict::Revise));
        play.until_model_call();
        let transcript = play.transcript();
        let Some(Message::User(words)) = transcript.messages.last() else {
            panic!("no words")
        };
        assert!(words.contains("Mind the taxes."), "{words}");
        play.drive();
        play.settle(ReportOutcome::Done(Receipt::Told));
        assert_eq!(play.drive(), Action::Wait);
        assert!(!play.state.accepts(&earlier), "an approval is of one plan");
    }
    play.append(decided(&play, Verdict::Revise));
    assert_eq!(play.drive(), Action::Rest);
    assert_eq!(play.reason(), &StopReason::RevisionLimit { revisions: 3 });
}

#[test]
fn missing_plan_ends_required_approval() {
    let mut asked = request(Job::Implement);
    asked.rules.agent.approval = Approval::Plan;
    let mut play = Play::implement(asked, done());
    play.around
        .insert(Phase::Plan, (0..20).map(|_| end("Hm.")).collect());
    assert_eq!(play.drive(), Action::Rest);
    assert_eq!(play.reason(), &StopReason::NoPlan);
}
