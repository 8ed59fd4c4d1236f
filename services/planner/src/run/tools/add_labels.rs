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
    match chosen(&call.call.input, &rules.labels) {
        Err(wrong) => answer(state, call, Answer::Argument(wrong)).into(),
        Ok(mut labels) => {
            labels.push(rules.done_label.clone());
            ask(
                state,
                ReportRequest::AddLabels(report::AddLabels { labels }),
                Some(call),
            )
            .into()
        }
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
