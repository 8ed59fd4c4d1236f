//! Triages a ticket before the work: its kind, its size, and whether the work can begin.

use domain::{
    Fact, GiveUp, Intake, IntakeDecision, ModelRole, Phase, PhaseOutput, Question, Reply, ReportOutcome,
    ReportRequest, StopReason, WaitsFor, report,
};

use super::converse::{Progress, converse, postponed};
use crate::run::forms;
use crate::run::machine::{
    Action, Argument, DialogSpec, Output, PhaseSpec, RunState, Step, ask, await_report, park, record_turn,
};

// Attempts of the model: one reply, and one correction.
const TRIES: usize = 2;

const DIALOG: DialogSpec = DialogSpec {
    output: Some(Output {
        name: "intake",
        problem,
    }),
    ..DialogSpec::new(Phase::Intake, ModelRole::Fast, &[])
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: Some(DIALOG),
    next,
};

fn next(state: &RunState) -> Step {
    let is_wanted = state.request().is_some_and(|request| request.rules.agent.intake);
    match state.intake() {
        Some(Some(intake)) => follow(state, &intake.decision),
        Some(None) => Step::Over,
        // A former release began the work without a triage.
        None if !is_wanted || state.is_at_work() => Step::Over,
        None => look(state),
    }
}

fn look(state: &RunState) -> Step {
    match converse(state, &DIALOG) {
        Progress::Step(step) => return step,
        Progress::Refused(reason) => return postponed(reason),
        Progress::Full => return over(None),
        Progress::Answered | Progress::Silent(_) => {}
    }
    let turns = state.turns_of(&DIALOG);
    let reply = turns.last().and_then(|turn| turn.reply.as_ref());
    match reply.map(|reply| read(state, reply)) {
        Some(Ok(intake)) => over(Some(intake)),
        Some(Err(_)) if turns.len() < TRIES => record_turn(state, &DIALOG).into(),
        Some(Err(_)) | None => over(None),
    }
}

/// Finishes the phase. After two unusable replies the work begins without a triage.
fn over(intake: Option<Intake>) -> Step {
    let output = PhaseOutput::Intake {
        intake: intake.map(Box::new),
    };
    Action::Record(Fact::PhaseFinished { output }).into()
}

fn read(state: &RunState, reply: &Reply) -> Result<Intake, Argument> {
    let request = state.request().ok_or(Argument::Decline)?;
    forms::intake::read(reply, request)
}

fn problem(state: &RunState, reply: &Reply) -> Option<Argument> {
    read(state, reply).err()
}

fn follow(state: &RunState, decision: &IntakeDecision) -> Step {
    match decision {
        IntakeDecision::Go => Step::Over,
        IntakeDecision::Ask { questions } => put(state, questions),
        IntakeDecision::Decline { kind, reason } => declined(*kind, reason),
    }
}

fn declined(kind: GiveUp, reason: &str) -> Step {
    Step::Close(StopReason::GivenUp {
        kind,
        evidence: reason.to_owned(),
    })
}

/// Posts the questions on the ticket and waits for an answer.
fn put(state: &RunState, questions: &[Question]) -> Step {
    let is_it = |request: &ReportRequest| matches!(request, ReportRequest::QuestionAsked(_));
    let Some(asked) = state.last_report(is_it) else {
        let questions = questions.to_vec();
        return ask(
            state,
            ReportRequest::QuestionAsked(report::QuestionAsked { questions }),
            None,
        )
        .into();
    };
    // Only an answer after the triage's last turn belongs to the questions.
    let looks = state.turns_of(&DIALOG).last().map_or(0, |turn| turn.after + 1);
    match &asked.outcome {
        Some(ReportOutcome::Done(_)) if state.has_answer_since(looks) => Step::Over,
        Some(ReportOutcome::Done(_)) => park(state, WaitsFor::Answer).into(),
        // The work continues with the known facts.
        Some(ReportOutcome::Refused(_)) => Step::Over,
        Some(ReportOutcome::Failed { .. }) | None => await_report(state, &asked.id, WaitsFor::Report),
    }
}
