//! Reads or searches a text that is attached to the ticket. The planner reads it from the store; executors never get it.

use domain::{AttachmentContent, JobRequest};
use serde::Deserialize;
use serde_json::Value;

use super::parse_input;
use crate::run::machine::{
    ArgumentProblem, AttachmentPart, AttachmentRead, CallAnswer, PlannerRunState, PlannerTool, RunStep,
    TurnCall, answer_call, list_attachments, read_attachment,
};

// Lines of one answer, and those without a wish of the model.
const MOST_LINES: u64 = 1_000;
const USUAL_LINES: u64 = 400;
const WORDS_CHARS: std::ops::RangeInclusive<usize> = 1..=200;

pub(in crate::run) const TOOL: PlannerTool = PlannerTool {
    name: "read_attachment",
    ends_work: false,
    act: handle_call,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadInput {
    name: String,
    #[serde(default)]
    first_line: Option<u64>,
    #[serde(default)]
    lines: Option<u64>,
    #[serde(default)]
    search: Option<String>,
}

fn handle_call(state: &PlannerRunState, _: &JobRequest, call: &TurnCall) -> RunStep {
    match parse_read(state, &call.call.input) {
        Ok(read) => read_attachment(state, call, read).into(),
        Err(problem) => answer_call(state, call, CallAnswer::Argument(problem)).into(),
    }
}

fn parse_read(state: &PlannerRunState, input: &Value) -> Result<AttachmentRead, ArgumentProblem> {
    let input: ReadInput = parse_input(input)?;
    let wanted = input.name.trim();
    // A later comment may bring a file of the same name; the model asks about the newest.
    let found = list_attachments(state).rev().find(|one| one.name == wanted);
    let Some(attachment) = found else {
        let texts =
            list_attachments(state).filter(|one| matches!(one.content, AttachmentContent::Text { .. }));
        return Err(ArgumentProblem::UnknownAttachment {
            known: texts.map(|one| one.name.clone()).collect(),
        });
    };
    let AttachmentContent::Text { object, .. } = &attachment.content else {
        return Err(ArgumentProblem::NoTextAttachment);
    };
    let first = input.first_line.unwrap_or(1).max(1);
    let words = input.search.map(|words| words.trim().to_owned());
    let part = match words.filter(|words| !words.is_empty()) {
        Some(words) if !WORDS_CHARS.contains(&words.chars().count()) => {
            return Err(ArgumentProblem::Malformed(
                "search has more than 200 characters".to_owned(),
            ));
        }
        Some(words) => AttachmentPart::Matches { words, first },
        None => AttachmentPart::Lines {
            first,
            count: input.lines.unwrap_or(USUAL_LINES).clamp(1, MOST_LINES),
        },
    };
    Ok(AttachmentRead {
        name: attachment.name.clone(),
        object: object.clone(),
        part,
    })
}
