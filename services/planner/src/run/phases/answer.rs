//! Answers a question: the model reads the code, the reporter replies in the place of the question.

use domain::report::QuestionAnswered;
use domain::{
    About, Answered, CommentQuestion, Fact, ModelRole, Phase, PhaseOutput, ReportOutcome, ReportRequest,
    StopReason, WaitsFor,
};

use super::converse::handed_in;
use crate::run::machine::{Action, DialogSpec, PhaseSpec, RunState, Step, ask, await_report};
use crate::run::tools::{accepted, submit_answer};

const MOST_TURNS: usize = 12;

const DIALOG: DialogSpec = DialogSpec {
    has_workspace: true,
    is_read_only: true,
    ..DialogSpec::new(Phase::Answer, ModelRole::Default, &[submit_answer::TOOL])
};

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec {
    dialog: Some(DIALOG),
    next,
};

fn next(state: &RunState) -> Step {
    match state.answer() {
        Some(Some(answer)) => tell(state, answer),
        Some(None) => Step::Close(StopReason::NoChange {
            summary: String::new(),
        }),
        None => {
            let answered = handed_in(state, &DIALOG, MOST_TURNS, |calls| {
                accepted(calls, &submit_answer::TOOL, submit_answer::parse)
            });
            answered.map_or_else(|step| step, over)
        }
    }
}

fn over(answer: Option<Answered>) -> Step {
    let output = PhaseOutput::Answer {
        answer: answer.map(Box::new),
    };
    Action::Record(Fact::PhaseFinished { output }).into()
}

fn tell(state: &RunState, answer: &Answered) -> Step {
    let Some((request, About::Question(question))) = state.request().map(|request| (request, &request.about))
    else {
        return Step::Over;
    };
    let is_it = |request: &ReportRequest| matches!(request, ReportRequest::QuestionAnswered(_));
    match state.last_report(is_it) {
        None => {
            let told = ReportRequest::QuestionAnswered(QuestionAnswered {
                repository: request.repository.clone(),
                // The pinned work stays in the trigger, where the reporter reads it.
                question: CommentQuestion {
                    work: None,
                    ..(**question).clone()
                },
                answer: Answered {
                    needs_change: answer.needs_change && question.work.is_some(),
                    ..answer.clone()
                },
            });
            ask(state, told, None).into()
        }
        Some(asked) => match &asked.outcome {
            Some(ReportOutcome::Done(_)) => Step::Over,
            Some(ReportOutcome::Refused(refusal)) => Step::Finish(StopReason::ReportRefused(refusal.clone())),
            Some(ReportOutcome::Failed { .. }) | None => await_report(state, &asked.id, WaitsFor::Report),
        },
    }
}
