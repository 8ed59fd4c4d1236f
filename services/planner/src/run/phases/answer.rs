//! Answers a question: the model reads the code, the reporter replies in the place of the question.

use domain::report::QuestionAnswered;
use domain::{
    CitedAnswer, CommentQuestion, JobSubject, ModelRole, OutboundAction, PhaseOutput, RunPhase, StopReason,
};

use super::conversation_loop::await_submission;
use crate::run::machine::{
    DialogSpec, PhaseResult, PhaseSpec, PlannerRunState, RunStep, finish_refused, report_once,
};
use crate::run::tools::{accepted_input, read_attachment, submit_answer};

const MOST_TURNS: usize = 12;

const DIALOG: DialogSpec = DialogSpec::reading(
    RunPhase::Answer,
    ModelRole::Default,
    &[submit_answer::TOOL, read_attachment::TOOL],
);

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec::with_dialog(DIALOG, decide_step);

fn decide_step(state: &PlannerRunState) -> RunStep {
    match state.outputs().answer() {
        PhaseResult::Present(answer) => report_answer(state, answer),
        PhaseResult::Missing => RunStep::Close(StopReason::NoChange {
            summary: String::new(),
        }),
        PhaseResult::Pending => {
            let answered = await_submission(state, &DIALOG, MOST_TURNS, |calls| {
                accepted_input(calls, &submit_answer::TOOL, submit_answer::parse_answer)
            });
            answered.map_or_else(|step| step, finish_phase)
        }
    }
}

fn finish_phase(answer: Option<CitedAnswer>) -> RunStep {
    PhaseOutput::Answer {
        answer: answer.map(Box::new),
    }
    .into()
}

fn report_answer(state: &PlannerRunState, answer: &CitedAnswer) -> RunStep {
    let Some((request, JobSubject::Question(question))) =
        state.request().map(|request| (request, &request.about))
    else {
        return RunStep::Over;
    };
    let is_it = |request: &OutboundAction| matches!(request, OutboundAction::QuestionAnswered(_));
    let answered = || {
        OutboundAction::QuestionAnswered(QuestionAnswered {
            repository: request.repository.clone(),
            // The pinned work stays in the trigger, where the reporter reads it.
            question: CommentQuestion {
                work: None,
                ..(**question).clone()
            },
            answer: CitedAnswer {
                needs_change: answer.needs_change && question.work.is_some(),
                ..answer.clone()
            },
        })
    };
    report_once(state, is_it, answered, finish_refused)
}
