//! Accepts the triage of a new ticket, within the choices of the rules.

use std::collections::BTreeMap;

use domain::{JobRequest, PlannedIssue, ReportRequest, TicketKey, TriageChoices, report::Triaged};
use serde::Deserialize;
use serde_json::Value;

use super::{
    arguments, cut,
    submit_issues::{self, Wanted},
};
use crate::run::machine::{Answer, Argument, Call, RunState, Step, Tool, answer, ask};

const NAME_CHARS: usize = 80;
// One part would be the ticket itself.
const FEWEST_PARTS: usize = 2;

pub(in crate::run) const TOOL: Tool = Tool {
    name: "submit_triage",
    ends_work: false,
    act,
};

/// Choice of the model for a ticket.
pub(in crate::run) struct Choice {
    pub(in crate::run) triaged: Triaged,
    /// Parts of a ticket that is too large.
    pub(in crate::run) parts: Vec<PlannedIssue>,
}

fn act(state: &RunState, request: &JobRequest, call: &Call) -> Step {
    match parse(&call.call.input, state.run.ticket(), request) {
        Err(wrong) => answer(state, call, Answer::Argument(wrong)).into(),
        Ok(choice) => ask(state, ReportRequest::Triaged(choice.triaged), Some(call)).into(),
    }
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Input {
    labels: Option<Vec<String>>,
    #[serde(rename = "type")]
    issue_type: Option<String>,
    priority: Option<String>,
    fields: Vec<FieldValue>,
    duplicate_of: Option<String>,
    parts: Vec<Wanted>,
}

#[derive(Deserialize)]
struct FieldValue {
    field: String,
    value: String,
}

/// Parses a call and validates it against the choices of the rules.
pub(in crate::run) fn parse(
    input: &Value,
    ticket: &TicketKey,
    request: &JobRequest,
) -> Result<Choice, Argument> {
    let input: Input = arguments(input)?;
    let rules = &request.rules.triage;
    let choices = rules.choices(ticket);
    let mut labels = chosen(input.labels.ok_or(Argument::NoLabels)?, &choices.labels)?;
    // Marks the ticket as triaged, so the next event does not triage it again.
    labels.push(rules.done_label.clone());
    let duplicate_of = repeated(input.duplicate_of.as_deref(), request)?;
    let parts = parts(input.parts, duplicate_of.is_some(), &choices)?;
    let triaged = Triaged {
        repository: Some(request.repository.clone()),
        labels,
        duplicate_of,
        issue_type: one_of("type", input.issue_type, &choices.types)?,
        priority: one_of("priority", input.priority, &choices.priorities)?,
        fields: fields(input.fields, &choices)?,
    };
    Ok(Choice { triaged, parts })
}

/// Returns the repeated ticket, which must be one of the shown tickets.
fn repeated(named: Option<&str>, request: &JobRequest) -> Result<Option<String>, Argument> {
    let Some(named) = named.map(str::trim) else {
        return Ok(None);
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

/// Returns the labels if all of them are allowed.
fn chosen(mut wanted: Vec<String>, allowed: &[String]) -> Result<Vec<String>, Argument> {
    for label in &wanted {
        check("labels", label, allowed)?;
    }
    wanted.sort();
    wanted.dedup();
    Ok(wanted)
}

fn one_of(field: &str, wanted: Option<String>, allowed: &[String]) -> Result<Option<String>, Argument> {
    if let Some(value) = &wanted {
        check(field, value, allowed)?;
    }
    Ok(wanted)
}

/// Returns the fields; the last value of a field counts.
fn fields(wanted: Vec<FieldValue>, choices: &TriageChoices) -> Result<BTreeMap<String, String>, Argument> {
    let names: Vec<String> = choices.fields.keys().cloned().collect();
    for FieldValue { field, value } in &wanted {
        check("fields", field, &names)?;
        let allowed = choices.fields.get(field).map_or(&[][..], Vec::as_slice);
        check(field, value, allowed)?;
    }
    let pairs = wanted.into_iter().map(|one| (one.field, one.value));
    Ok(pairs.collect())
}

fn check(field: &str, value: &String, allowed: &[String]) -> Result<(), Argument> {
    if allowed.contains(value) {
        return Ok(());
    }
    Err(Argument::UnknownChoice {
        field: field.to_owned(),
        value: cut(value, NAME_CHARS),
        allowed: allowed.to_vec(),
    })
}

/// Returns the parts. A duplicate has none, because its original is worked on.
fn parts(
    wanted: Vec<Wanted>,
    is_duplicate: bool,
    choices: &TriageChoices,
) -> Result<Vec<PlannedIssue>, Argument> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let most = choices.most_parts;
    let planned = submit_issues::planned(wanted, FEWEST_PARTS..=most);
    planned.filter(|_| !is_duplicate).ok_or(Argument::Parts { most })
}
