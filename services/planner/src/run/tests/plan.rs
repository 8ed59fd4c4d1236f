//! Planning of a large change.

use domain::{
    ApprovalRule, DecisionVerdict, Fact, GateDecision, Job, OutboundAction, OutboundOutcome, OutboundReceipt,
    PlanningRule, RunPhase, StopReason, report,
};
use serde_json::json;

use super::play::{
    Play, build_end_reply, build_job_request, build_plan_reply, build_tool_reply, build_work_replies, run_id,
};
use crate::run::machine::PhaseResult;
use crate::run::{RunAction, decide_action};
use crate::transcript::TranscriptMessage;

fn build_plan_play(replies: impl IntoIterator<Item = domain::ModelReply>) -> Play {
    let mut asked = build_job_request(Job::Implement);
    asked.rules.agent.plan = PlanningRule::Always;
    let mut play = Play::implement(asked, build_work_replies());
    play.around.insert(RunPhase::Plan, replies.into_iter().collect());
    play
}

#[test]
fn the_work_begins_with_the_plan() {
    let mut play = build_plan_play([build_plan_reply()]);
    play.drive();
    assert_eq!(play.state.outputs().plan().present().unwrap().steps.len(), 1);
    let TranscriptMessage::User(task) = &play.transcript().messages[0] else {
        panic!("no task")
    };
    assert!(task.contains("1. Multiply by the quantity. (a)"), "{task}");
}

#[test]
fn nothing_is_changed_while_planning() {
    let mut play = build_plan_play([
        build_tool_reply(&[
            ("edit_file", json!({"path": "a"})),
            ("read_file", json!({"path": "a"})),
        ]),
        build_plan_reply(),
    ]);
    play.until(|action| matches!(action, RunAction::CallTool { .. }));
    let RunAction::CallTool { call, .. } = decide_action(&play.state) else {
        panic!("no call")
    };
    assert_eq!(call.name, "read_file", "the edit was answered from here");
    assert!(play.last_result().content.contains("nothing may be changed"));
}

#[test]
fn missing_plan_does_not_block_work() {
    let mut play = build_plan_play((0..20).map(|_| build_end_reply("Hm.")));
    play.drive();
    assert_eq!(play.state.outputs().plan(), PhaseResult::Missing);
    assert!(play.state.outputs().exit().is_some());
    assert_eq!(play.state.conversation().turn_count(), 15 + 2);
}

fn play_to_decision() -> Play {
    let mut asked = build_job_request(Job::Implement);
    asked.rules.agent.approval = ApprovalRule::Plan;
    let mut play = Play::implement(asked, build_work_replies());
    assert_eq!(play.drive(), RunAction::Wait);
    play.settle(OutboundOutcome::Done(OutboundReceipt::Told));
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(play.is_parked_for("decision"));
    play
}

fn build_plan_decision(play: &Play, verdict: DecisionVerdict) -> Fact {
    let OutboundAction::PlanProposed(report::PlanProposed { id, .. }) = play.last_request() else {
        panic!("{:?}", play.last_request())
    };
    let decision = GateDecision {
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
    let mut play = play_to_decision();
    assert_eq!(play.state.conversation().turn_count(), 1);
    play.append(build_plan_decision(&play, DecisionVerdict::Approve));
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(
        matches!(play.last_request(), OutboundAction::PushBranch(_)),
        "the change itself needs no approval"
    );
}

#[test]
fn a_rejected_plan_ends_the_run() {
    let mut play = play_to_decision();
    play.append(build_plan_decision(&play, DecisionVerdict::Reject));
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::Rejected { by: "ada".to_owned() });
}

#[test]
fn plan_is_revised_at_most_three_times() {
    let mut play = play_to_decision();
    for _ in 0..3 {
        let earlier = build_plan_decision(&play, DecisionVerdict::Approve);
        play.append(build_plan_decision(&play, DecisionVerdict::Revise));
        play.until_model_call();
        let transcript = play.transcript();
        let Some(TranscriptMessage::User(words)) = transcript.messages.last() else {
            panic!("no words")
        };
        assert!(words.contains("Mind the taxes."), "{words}");
        play.drive();
        play.settle(OutboundOutcome::Done(OutboundReceipt::Told));
        assert_eq!(play.drive(), RunAction::Wait);
        assert!(!play.state.accepts(&earlier), "an approval is of one plan");
    }
    play.append(build_plan_decision(&play, DecisionVerdict::Revise));
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::RevisionLimit { revisions: 3 });
}

#[test]
fn missing_plan_ends_required_approval() {
    let mut asked = build_job_request(Job::Implement);
    asked.rules.agent.approval = ApprovalRule::Plan;
    let mut play = Play::implement(asked, build_work_replies());
    play.around
        .insert(RunPhase::Plan, (0..20).map(|_| build_end_reply("Hm.")).collect());
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::NoPlan);
}
