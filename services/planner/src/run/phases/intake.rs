//! Triages a ticket before the work: its kind, its size, and whether the work can begin.

use domain::{
    Fact, GiveUp, IntakeDecision, ModelReply, ModelRole, OutboundAction, OutboundOutcome, PhaseOutput,
    RunPhase, StopReason, TicketIntake, TicketQuestion, WaitCondition, report,
};

use super::conversation_loop::{ConversationProgress, advance_conversation, postpone_run};
use crate::run::forms;
use crate::run::machine::{
    ArgumentProblem, DialogSpec, PhaseSpec, PlannerRunState, ReplyForm, RunAction, RunStep, await_report,
    park_run, record_turn, request_report,
};

// Attempts of the model: one reply, and one correction.
const TRIES: usize = 2;

const DIALOG: DialogSpec = DialogSpec {
    output: Some(ReplyForm {
        name: "intake",
        problem: intake_problem,
    }),
    ..DialogSpec::new(RunPhase::Intake, ModelRole::Fast, &[])
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: Some(DIALOG),
    next: decide_step,
};

fn decide_step(state: &PlannerRunState) -> RunStep {
    let is_wanted = state.request().is_some_and(|request| request.rules.agent.intake);
    match state.outputs().intake() {
        Some(Some(intake)) => follow_decision(state, &intake.decision),
        Some(None) => RunStep::Over,
        // A former release began the work without a triage.
        None if !is_wanted || state.conversation().is_at_work() => RunStep::Over,
        None => request_intake(state),
    }
}

fn request_intake(state: &PlannerRunState) -> RunStep {
    match advance_conversation(state, &DIALOG) {
        ConversationProgress::Step(step) => return step,
        ConversationProgress::Refused(reason) => return postpone_run(reason),
        ConversationProgress::Full => return finish_phase(None),
        ConversationProgress::Answered | ConversationProgress::Silent(_) => {}
    }
    let turns = DIALOG.turns(state);
    let reply = turns.last().and_then(|turn| turn.reply.as_ref());
    match reply.map(|reply| read_reply(state, reply)) {
        Some(Ok(intake)) => finish_phase(Some(intake)),
        Some(Err(_)) if turns.len() < TRIES => record_turn(state, &DIALOG).into(),
        Some(Err(_)) | None => finish_phase(None),
    }
}

/// Finishes the phase. After two unusable replies the work begins without a triage.
fn finish_phase(intake: Option<TicketIntake>) -> RunStep {
    let output = PhaseOutput::Intake {
        intake: intake.map(Box::new),
    };
    RunAction::Record(Fact::PhaseFinished { output }).into()
}

fn read_reply(state: &PlannerRunState, reply: &ModelReply) -> Result<TicketIntake, ArgumentProblem> {
    let request = state.request().ok_or(ArgumentProblem::Decline)?;
    forms::intake::read_intake(reply, request)
}

fn intake_problem(state: &PlannerRunState, reply: &ModelReply) -> Option<ArgumentProblem> {
    read_reply(state, reply).err()
}

fn follow_decision(state: &PlannerRunState, decision: &IntakeDecision) -> RunStep {
    match decision {
        IntakeDecision::Go => RunStep::Over,
        IntakeDecision::Ask { questions } => ask_questions(state, questions),
        IntakeDecision::Decline { kind, reason } => decline_ticket(*kind, reason),
    }
}

fn decline_ticket(kind: GiveUp, reason: &str) -> RunStep {
    RunStep::Close(StopReason::GivenUp {
        kind,
        evidence: reason.to_owned(),
    })
}

/// Posts the questions on the ticket and waits for an answer.
fn ask_questions(state: &PlannerRunState, questions: &[TicketQuestion]) -> RunStep {
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::QuestionAsked(_));
    let Some(asked) = state.delivery().last_report(is_it) else {
        let questions = questions.to_vec();
        return request_report(
            state,
            OutboundAction::QuestionAsked(report::QuestionAsked { questions }),
            None,
        )
        .into();
    };
    // Only an answer after the triage's last turn belongs to the questions.
    let looks = DIALOG.turns(state).last().map_or(0, |turn| turn.after + 1);
    match &asked.outcome {
        Some(OutboundOutcome::Done(_)) if state.conversation().news().has_answer_since(looks) => {
            RunStep::Over
        }
        Some(OutboundOutcome::Done(_)) => park_run(state, WaitCondition::Answer).into(),
        // The work continues with the known facts.
        Some(OutboundOutcome::Refused(_)) => RunStep::Over,
        Some(OutboundOutcome::Failed { .. }) | None => await_report(state, &asked.id, WaitCondition::Report),
    }
}
