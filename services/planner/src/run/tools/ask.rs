//! Asks users on the ticket. The run waits for their answer without holding resources.

use domain::{JobRequest, OutboundAction, TicketQuestion, report};
use serde::Deserialize;
use serde_json::Value;

use super::parse_input;
use crate::run::machine::{
    ArgumentProblem, CallAnswer, PlannerRunState, PlannerTool, RunStep, TurnCall, answer_call, request_report,
};

const MOST: usize = 3;
const TEXT_CHARS: std::ops::RangeInclusive<usize> = 5..=1_000;

pub(in crate::run) const TOOL: PlannerTool = PlannerTool {
    name: "ask",
    ends_work: true,
    act: handle_call,
};

/// Asks only once per run, so that users are not asked again and again.
fn handle_call(state: &PlannerRunState, _: &JobRequest, call: &TurnCall) -> RunStep {
    if has_asked(state) {
        return answer_call(state, call, CallAnswer::AskedAlready).into();
    }
    match parse_questions(&call.call.input) {
        Ok(questions) => request_report(
            state,
            OutboundAction::QuestionAsked(report::QuestionAsked { questions }),
            Some(call),
        )
        .into(),
        Err(wrong) => answer_call(state, call, CallAnswer::Argument(wrong)).into(),
    }
}

fn has_asked(state: &PlannerRunState) -> bool {
    let mut known = state.delivery().reports().iter().filter(|report| !report.is_void);
    known.any(|report| matches!(report.request, OutboundAction::QuestionAsked(_)))
}

#[derive(Deserialize)]
struct AskInput {
    questions: Vec<TicketQuestion>,
}

fn parse_questions(input: &Value) -> Result<Vec<TicketQuestion>, ArgumentProblem> {
    let AskInput { questions } = parse_input(input)?;
    check_questions(questions)
}

/// Validates questions for users.
pub(in crate::run) fn check_questions(
    questions: Vec<TicketQuestion>,
) -> Result<Vec<TicketQuestion>, ArgumentProblem> {
    let is_fit = |question: &TicketQuestion| {
        let options = question.options.len() <= 6 && question.options.iter().all(|text| text.len() <= 300);
        TEXT_CHARS.contains(&question.text.trim().chars().count()) && options
    };
    match (1..=MOST).contains(&questions.len()) && questions.iter().all(is_fit) {
        true => Ok(questions),
        false => Err(ArgumentProblem::Questions),
    }
}
