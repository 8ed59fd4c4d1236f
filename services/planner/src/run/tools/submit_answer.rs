//! Accepts an answer with the places that support it.

use domain::{AnsweredQuestion, CitedAnswer, CodeCitation, JobRequest};
use serde::Deserialize;
use serde_json::Value;

use super::{LINE_CHARS, LINES, collapse_space, note_exit, parse_input, truncate_text};
use crate::run::machine::{ArgumentProblem, PlannerRunState, PlannerTool, RunStep, TurnCall};

const ANSWER_CHARS: usize = 8_000;
const QUOTE_CHARS: usize = 400;
// Limits of a question and its answer from research.
const QUESTION_CHARS: usize = 300;
const QUESTIONS: usize = 10;
const SHOWN_BY: usize = 5;
const FOUND_CHARS: usize = 3_000;

pub(in crate::run) const TOOL: PlannerTool = PlannerTool {
    name: "submit_answer",
    ends_work: true,
    act: handle_call,
};

fn handle_call(state: &PlannerRunState, _: &JobRequest, call: &TurnCall) -> RunStep {
    let parsed = parse_answer(&call.call.input).and_then(|answered| check_citations(state, answered));
    note_exit(state, call, parsed)
}

#[derive(Deserialize)]
struct SubmitAnswerInput {
    answer: String,
    #[serde(default)]
    citations: Vec<CodeCitation>,
    #[serde(default)]
    needs_change: bool,
    #[serde(default)]
    questions: Vec<AnsweredQuestion>,
}

/// Parses the answer from a call.
pub(in crate::run) fn parse_answer(input: &Value) -> Result<CitedAnswer, ArgumentProblem> {
    let input: SubmitAnswerInput = parse_input(input)?;
    let answer = truncate_text(&input.answer, ANSWER_CHARS);
    if answer.is_empty() {
        return Err(ArgumentProblem::Summary);
    }
    let questions = input
        .questions
        .into_iter()
        .take(QUESTIONS)
        .map(|found| AnsweredQuestion {
            question: truncate_text(&found.question, QUESTION_CHARS),
            answer: truncate_text(&found.answer, FOUND_CHARS),
            citations: truncate_citations(found.citations, SHOWN_BY),
        });
    let questions: Vec<_> = questions.collect();
    let is_complete = |found: &AnsweredQuestion| !found.question.is_empty() && !found.answer.is_empty();
    if !questions.iter().all(is_complete) {
        return Err(ArgumentProblem::Found);
    }
    Ok(CitedAnswer {
        answer,
        citations: truncate_citations(input.citations, LINES),
        needs_change: input.needs_change,
        questions,
    })
}

fn truncate_citations(given: Vec<CodeCitation>, most: usize) -> Vec<CodeCitation> {
    let citations = given.into_iter().take(most).map(|citation| CodeCitation {
        path: truncate_text(&citation.path, LINE_CHARS),
        line: citation.line,
        quote: truncate_text(&citation.quote, QUOTE_CHARS),
    });
    citations.collect()
}

/// Refuses a quotation that no tool result of the run contains.
fn check_citations(state: &PlannerRunState, answered: CitedAnswer) -> Result<CitedAnswer, ArgumentProblem> {
    let dialogs = state.conversation().dialogs().iter();
    let calls = dialogs.flat_map(|dialog| &dialog.turns);
    // White space is collapsed on both sides, because models reformat what they quote.
    let results: Vec<String> = calls
        .flat_map(|turn| &turn.calls)
        .filter_map(TurnCall::tool_result)
        .map(|result| collapse_space(&result.content))
        .collect();
    let is_shown = |citation: &&CodeCitation| {
        let quote = collapse_space(&citation.quote);
        !quote.is_empty() && results.iter().any(|result| result.contains(&quote))
    };
    let found = answered.questions.iter().flat_map(|found| &found.citations);
    match answered
        .citations
        .iter()
        .chain(found)
        .find(|citation| !is_shown(citation))
    {
        Some(unseen) => Err(ArgumentProblem::Unseen(unseen.quote.clone())),
        None => Ok(answered),
    }
}
