//! The model puts labels on the ticket.

use domain::{JobRequest, ReportRequest, report};
use serde_json::Value;

use crate::run::machine::{Answer, Argument, Call, RunState, Step, Tool, answer, ask};

const LABEL_CHARS: usize = 80;

pub(in crate::run) const TOOL: Tool = Tool {
    name: "add_labels",
    ends_work: false,
    act,
};

fn act(state: &RunState, request: &JobRequest, call: &Call) -> Step {
    let rules = &request.rules.triage;
    let input = &call.call.input;
    let parsed = chosen(input, &rules.labels).and_then(|labels| Ok((labels, repeated(input, request)?)));
    match parsed {
        Err(wrong) => answer(state, call, Answer::Argument(wrong)).into(),
        Ok((mut labels, duplicate_of)) => {
            labels.push(rules.done_label.clone());
            let wanted = report::AddLabels { labels, duplicate_of };
            ask(state, ReportRequest::AddLabels(wanted), Some(call)).into()
        }
    }
}

/// The ticket that this one repeats: one that the model was shown.
fn repeated(input: &Value, request: &JobRequest) -> Result<Option<String>, Argument> {
    let named = match input.get("duplicate_of") {
        None | Some(Value::Null) => return Ok(None),
        Some(named) => named.as_str().unwrap_or_default().trim(),
    };
    let shown = || {
        request
            .background
            .similar
            .iter()
            .map(|ticket| ticket.key.as_str())
    };
    match shown().find(|key| key.eq_ignore_ascii_case(named)) {
        Some(key) => Ok(Some(key.to_owned())),
        None => Err(Argument::UnknownTicket(shown().map(str::to_owned).collect())),
    }
}

/// The labels of a call, when all of them are allowed.
fn chosen(input: &Value, allowed: &[String]) -> Result<Vec<String>, Argument> {
    let wanted: Option<Vec<String>> = input
        .get("labels")
        .and_then(|labels| serde_json::from_value(labels.clone()).ok());
    let mut wanted = wanted.ok_or(Argument::NoLabels)?;
    if let Some(foreign) = wanted.iter().find(|label| !allowed.contains(label)) {
        return Err(Argument::UnknownLabel {
            label: foreign.chars().take(LABEL_CHARS).collect(),
            allowed: allowed.to_vec(),
        });
    }
    wanted.sort();
    wanted.dedup();
    Ok(wanted)
}
