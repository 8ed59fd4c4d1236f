//! Accepts the triage of a new ticket, within the choices of the rules.

use std::collections::BTreeMap;

use domain::{JobRequest, OutboundAction, PlannedIssue, TicketKey, TriageChoices, report::TicketTriaged};
use serde::Deserialize;
use serde_json::Value;

use super::{
    parse_input,
    plans::{self, IssueInput},
    truncate_text,
};
use crate::run::machine::{
    ArgumentProblem, CallAnswer, PlannerRunState, PlannerTool, RunStep, TurnCall, answer_call, request_report,
};

const NAME_CHARS: usize = 80;
// One part would be the ticket itself.
const FEWEST_PARTS: usize = 2;

pub(in crate::run) const TOOL: PlannerTool = PlannerTool {
    name: "submit_triage",
    ends_work: false,
    act: handle_call,
};

/// Choice of the model for a ticket.
pub(in crate::run) struct TriageSubmission {
    pub(in crate::run) triaged: TicketTriaged,
    /// Parts of a ticket that is too large.
    pub(in crate::run) parts: Vec<PlannedIssue>,
}

fn handle_call(state: &PlannerRunState, request: &JobRequest, call: &TurnCall) -> RunStep {
    match parse_triage(&call.call.input, state.run.ticket(), request) {
        Err(wrong) => answer_call(state, call, CallAnswer::Argument(wrong)).into(),
        Ok(choice) => request_report(state, OutboundAction::Triaged(choice.triaged), Some(call)).into(),
    }
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct SubmitTriageInput {
    labels: Option<Vec<String>>,
    #[serde(rename = "type")]
    issue_type: Option<String>,
    priority: Option<String>,
    fields: Vec<TriageFieldInput>,
    duplicate_of: Option<String>,
    parts: Vec<IssueInput>,
}

#[derive(Deserialize)]
struct TriageFieldInput {
    field: String,
    value: String,
}

/// Parses a call and validates it against the choices of the rules.
pub(in crate::run) fn parse_triage(
    input: &Value,
    ticket: &TicketKey,
    request: &JobRequest,
) -> Result<TriageSubmission, ArgumentProblem> {
    let input: SubmitTriageInput = parse_input(input)?;
    let rules = &request.rules.triage;
    let choices = rules.choices(ticket);
    let mut labels = check_chosen_labels(input.labels.ok_or(ArgumentProblem::NoLabels)?, &choices.labels)?;
    // Marks the ticket as triaged, so the next event does not triage it again.
    labels.push(rules.done_label.clone());
    let duplicate_of = find_duplicate(input.duplicate_of.as_deref(), request)?;
    let parts = check_parts(input.parts, duplicate_of.is_some(), &choices)?;
    let triaged = TicketTriaged {
        repository: Some(request.repository.clone()),
        labels,
        duplicate_of,
        issue_type: check_option("type", input.issue_type, &choices.types)?,
        priority: check_option("priority", input.priority, &choices.priorities)?,
        fields: check_fields(input.fields, &choices)?,
    };
    Ok(TriageSubmission { triaged, parts })
}

/// Returns the repeated ticket, which must be one of the shown tickets.
fn find_duplicate(named: Option<&str>, request: &JobRequest) -> Result<Option<String>, ArgumentProblem> {
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
        None => Err(ArgumentProblem::UnknownTicket(
            shown().map(str::to_owned).collect(),
        )),
    }
}

/// Returns the labels if all of them are allowed.
fn check_chosen_labels(mut wanted: Vec<String>, allowed: &[String]) -> Result<Vec<String>, ArgumentProblem> {
    for label in &wanted {
        check_choice("labels", label, allowed)?;
    }
    wanted.sort();
    wanted.dedup();
    Ok(wanted)
}

fn check_option(
    field: &str,
    wanted: Option<String>,
    allowed: &[String],
) -> Result<Option<String>, ArgumentProblem> {
    if let Some(value) = &wanted {
        check_choice(field, value, allowed)?;
    }
    Ok(wanted)
}

/// Returns the fields; the last value of a field counts.
fn check_fields(
    wanted: Vec<TriageFieldInput>,
    choices: &TriageChoices,
) -> Result<BTreeMap<String, String>, ArgumentProblem> {
    let names: Vec<String> = choices.fields.keys().cloned().collect();
    for TriageFieldInput { field, value } in &wanted {
        check_choice("fields", field, &names)?;
        let allowed = choices.fields.get(field).map_or(&[][..], Vec::as_slice);
        check_choice(field, value, allowed)?;
    }
    let pairs = wanted.into_iter().map(|one| (one.field, one.value));
    Ok(pairs.collect())
}

fn check_choice(field: &str, value: &String, allowed: &[String]) -> Result<(), ArgumentProblem> {
    if allowed.contains(value) {
        return Ok(());
    }
    Err(ArgumentProblem::UnknownChoice {
        field: field.to_owned(),
        value: truncate_text(value, NAME_CHARS),
        allowed: allowed.to_vec(),
    })
}

/// Returns the parts. A duplicate has none, because its original is worked on.
fn check_parts(
    wanted: Vec<IssueInput>,
    is_duplicate: bool,
    choices: &TriageChoices,
) -> Result<Vec<PlannedIssue>, ArgumentProblem> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let most = choices.most_parts;
    let planned = plans::check_issues(wanted, FEWEST_PARTS..=most);
    planned
        .filter(|_| !is_duplicate)
        .ok_or(ArgumentProblem::Parts { most })
}
