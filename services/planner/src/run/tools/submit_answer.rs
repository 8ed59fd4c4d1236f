//! Accepts an answer with the places that support it.

use domain::{Answered, AnsweredQuestion, Citation, JobRequest};
use serde::Deserialize;
use serde_json::Value;

use super::{LINE_CHARS, LINES, arguments, cut, noted, plain};
use crate::run::machine::{Argument, Call, CallResult, CallState, RunState, Step, Tool};

const ANSWER_CHARS: usize = 8_000;
const QUOTE_CHARS: usize = 400;
// Limits of a question and its answer from research.
const QUESTION_CHARS: usize = 300;
const QUESTIONS: usize = 10;
const SHOWN_BY: usize = 5;
const FOUND_CHARS: usize = 3_000;

pub(in crate::run) const TOOL: Tool = Tool {
    name: "submit_answer",
    ends_work: true,
    act,
};

fn act(state: &RunState, _: &JobRequest, call: &Call) -> Step {
    let parsed = parse(&call.call.input).and_then(|answered| shown(state, answered));
    noted(state, call, parsed)
}

#[derive(Deserialize)]
struct Input {
    answer: String,
    #[serde(default)]
    citations: Vec<Citation>,
    #[serde(default)]
    needs_change: bool,
    #[serde(default)]
    questions: Vec<AnsweredQuestion>,
}

/// Parses the answer from a call.
pub(in crate::run) fn parse(input: &Value) -> Result<Answered, Argument> {
    let input: Input = arguments(input)?;
    let answer = cut(&input.answer, ANSWER_CHARS);
    if answer.is_empty() {
        return Err(Argument::Summary);
    }
    let questions = input
        .questions
        .into_iter()
        .take(QUESTIONS)
        .map(|found| AnsweredQuestion {
            question: cut(&found.question, QUESTION_CHARS),
            answer: cut(&found.answer, FOUND_CHARS),
            citations: citations(found.citations, SHOWN_BY),
        });
    let questions: Vec<_> = questions.collect();
    let is_told = |found: &AnsweredQuestion| !found.question.is_empty() && !found.answer.is_empty();
    if !questions.iter().all(is_told) {
        return Err(Argument::Found);
    }
    Ok(Answered {
        answer,
        citations: citations(input.citations, LINES),
        needs_change: input.needs_change,
        questions,
    })
}

fn citations(given: Vec<Citation>, most: usize) -> Vec<Citation> {
    let citations = given.into_iter().take(most).map(|citation| Citation {
        path: cut(&citation.path, LINE_CHARS),
        line: citation.line,
        quote: cut(&citation.quote, QUOTE_CHARS),
    });
    citations.collect()
}

/// Refuses a quotation that no tool result of the run contains.
fn shown(state: &RunState, answered: Answered) -> Result<Answered, Argument> {
    let calls = state.dialogs.iter().flat_map(|dialog| &dialog.turns);
    // White space is collapsed on both sides, because models reformat what they quote.
    let results: Vec<String> = calls
        .flat_map(|turn| &turn.calls)
        .filter_map(plain_result)
        .collect();
    let is_shown = |citation: &&Citation| {
        let quote = plain(&citation.quote);
        !quote.is_empty() && results.iter().any(|result| result.contains(&quote))
    };
    let found = answered.questions.iter().flat_map(|found| &found.citations);
    match answered
        .citations
        .iter()
        .chain(found)
        .find(|citation| !is_shown(citation))
    {
        Some(unseen) => Err(Argument::Unseen(unseen.quote.clone())),
        None => Ok(answered),
    }
}

fn plain_result(call: &Call) -> Option<String> {
    match &call.state {
        CallState::Finished {
            result: CallResult::Ran(result),
            ..
        } => Some(plain(&result.content)),
        CallState::Finished { .. } | CallState::Waiting | CallState::Running { .. } => None,
    }
}
