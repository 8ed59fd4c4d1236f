//! Triage: the model chooses labels for a new ticket; it sees no workspace and no other tool.

use domain::{JobRequest, ReportOutcome, ReportRequest, StopReason, ToolResult, ToolSpec, WaitsFor};
use serde_json::{Value, json};

use super::retry::{await_report, model_failed};
use super::state::{Call, RunState};
use super::step::{Action, answer, ask, close, finish, record_turn};
use super::transcript::{Message, Transcript, turns};
use crate::prompts;

const ADD_LABELS: &str = "add_labels";
const MOST_TURNS: usize = 3;

/// The next step of a triage.
pub(super) fn triage(state: &RunState, request: &JobRequest) -> Action {
    if let Some(by) = &state.stop {
        return close(state, StopReason::Stopped { by: by.clone() });
    }
    let Some(turn) = state.turns.last() else {
        return record_turn(state);
    };
    if let Some(trouble) = &turn.failed {
        return model_failed(state, trouble);
    }
    let Some(reply) = &turn.reply else {
        return Action::AskModel { id: turn.id.clone() };
    };
    if let Some(call) = state.open_call() {
        return step(state, request, call);
    }
    if is_labeled(state) {
        return finish(StopReason::Completed);
    }
    if state.turns.len() >= MOST_TURNS {
        let summary = reply.text().chars().take(500).collect();
        return close(state, StopReason::NoChange { summary });
    }
    record_turn(state)
}

fn is_labeled(state: &RunState) -> bool {
    state.reports.iter().any(|report| {
        matches!(report.request, ReportRequest::AddLabels { .. })
            && matches!(report.outcome, Some(ReportOutcome::Done(_)))
    })
}

fn step(state: &RunState, request: &JobRequest, call: &Call) -> Action {
    if let Some(id) = &call.report {
        return await_report(state, id, WaitsFor::Report);
    }
    if call.call.name != ADD_LABELS {
        return answer(
            state,
            call,
            ToolResult::error("There is only one tool: add_labels."),
        );
    }
    match chosen(&call.call.input, &request.rules.triage.labels) {
        Err(words) => answer(state, call, ToolResult::error(words)),
        Ok(mut labels) => {
            labels.push(request.rules.triage.done_label.clone());
            ask(state, ReportRequest::AddLabels { labels }, Some(call))
        }
    }
}

/// The labels of a call, when all of them are allowed.
fn chosen(input: &Value, allowed: &[String]) -> Result<Vec<String>, String> {
    let wanted: Option<Vec<String>> = input
        .get("labels")
        .and_then(|labels| serde_json::from_value(labels.clone()).ok());
    let mut wanted = wanted.ok_or("labels must be a list of texts")?;
    if let Some(foreign) = wanted.iter().find(|label| !allowed.contains(label)) {
        let foreign: String = foreign.chars().take(80).collect();
        return Err(format!(
            "There is no label {foreign:?}. Choose from: {}.",
            allowed.join(", ")
        ));
    }
    wanted.sort();
    wanted.dedup();
    Ok(wanted)
}

/// What the model is shown.
pub(super) fn transcript(state: &RunState, request: &JobRequest) -> Transcript {
    let allowed = &request.rules.triage.labels;
    let tool = ToolSpec {
        name: ADD_LABELS.to_owned(),
        description: "Puts labels on the ticket. Call it once, with every label that fits; an empty list when none does."
            .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": { "labels": { "type": "array", "items": { "type": "string", "enum": allowed } } },
            "required": ["labels"],
            "additionalProperties": false
        }),
        read_only: false,
    };
    let task = Message::User(prompts::triage_task(state.run.ticket(), request, &state.nonce));
    Transcript {
        system: prompts::TRIAGE.to_owned(),
        tools: vec![tool],
        messages: turns(task, state, prompts::TRIAGE_REMINDER),
    }
}
