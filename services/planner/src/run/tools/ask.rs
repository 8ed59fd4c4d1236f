//! Asks users on the ticket. The run waits for their answer without holding resources.

use domain::{JobRequest, Question, ReportRequest, report};
use serde::Deserialize;
use serde_json::Value;

use super::arguments;
use crate::run::machine::{Answer, Argument, Call, RunState, Step, Tool, answer, ask};

const MOST: usize = 3;
const TEXT_CHARS: std::ops::RangeInclusive<usize> = 5..=1_000;

pub(in crate::run) const TOOL: Tool = Tool {
    name: "ask",
    ends_work: true,
    act,
};

/// Asks only once per run, so that users are not asked again and again.
fn act(state: &RunState, _: &JobRequest, call: &Call) -> Step {
    if was_asked(state) {
        return answer(state, call, Answer::AskedAlready).into();
    }
    match parse(&call.call.input) {
        Ok(questions) => ask(
            state,
            ReportRequest::QuestionAsked(report::QuestionAsked { questions }),
            Some(call),
        )
        .into(),
        Err(wrong) => answer(state, call, Answer::Argument(wrong)).into(),
    }
}

fn was_asked(state: &RunState) -> bool {
    let mut known = state.reports.iter().filter(|report| !report.is_void);
    known.any(|report| matches!(report.request, ReportRequest::QuestionAsked(_)))
}

#[derive(Deserialize)]
struct Input {
    questions: Vec<Question>,
}

fn parse(input: &Value) -> Result<Vec<Question>, Argument> {
    let Input { questions } = arguments(input)?;
    checked(questions)
}

/// Validates questions for users.
pub(in crate::run) fn checked(questions: Vec<Question>) -> Result<Vec<Question>, Argument> {
    let is_fit = |question: &Question| {
        let options = question.options.len() <= 6 && question.options.iter().all(|text| text.len() <= 300);
        TEXT_CHARS.contains(&question.text.trim().chars().count()) && options
    };
    match (1..=MOST).contains(&questions.len()) && questions.iter().all(is_fit) {
        true => Ok(questions),
        false => Err(Argument::Questions),
    }
}
