//! The approval gate: the plan or change that a run asks about, and a person's decision.

use axum::{
    Form,
    extract::Path,
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use domain::{CommitId, Entry, Fact, Plan, ReportRequest, Verdict};
use maud::{Markup, html};
use serde::Deserialize;

use super::run::Known;
use crate::{
    layout::{Page, Place},
    person::Person,
    problem::Problem,
    words::{run_path, shown, verdict},
};

// Number of lines of a change that the page shows.
const LINES: usize = 5_000;
// Longest feedback that the API accepts, in characters.
const FEEDBACK: usize = api::types::DecisionBody::FEEDBACK_CHARS;

/// Form fields of a decision.
#[derive(Deserialize)]
pub(super) struct Decided {
    verdict: Verdict,
    head: String,
    #[serde(default)]
    feedback: String,
}

/// Subject of a decision.
pub(super) enum About {
    Plan(Box<Plan>),
    /// A diff in git's format.
    Change(String),
}

pub(super) async fn show(Person(client): Person, Path(id): Path<String>) -> Result<Page, Problem> {
    let known = Known::of(&client, id.parse()?).await?;
    let title = format!("Decide about {}", shown(&id));
    let overview = known.view.overview.as_ref();
    let asked = overview.and_then(|overview| overview.decides_about.as_deref());
    let body = match asked.map(str::parse::<CommitId>).transpose()? {
        None => over(&id, &known.journal, None),
        Some(head) => {
            let about = match plan(&known.journal, &head) {
                Some(plan) => About::Plan(plan),
                None => About::Change(client.diff(&known.id).await?),
            };
            question(&id, &head, &about)
        }
    };
    Ok(Page::new(Place::NeedsYou, title, body))
}

/// Sends a decision to the API. On a conflict, the page shows the earlier decision.
pub(super) async fn decide(
    Person(client): Person,
    Path(id): Path<String>,
    Form(decided): Form<Decided>,
) -> Result<Response, Problem> {
    let run = id.parse()?;
    let feedback = decided.feedback.trim();
    if decided.verdict == Verdict::Revise && feedback.is_empty() {
        return Err(Problem::Form("Say what to change."));
    }
    let taken = client
        .decide(&run, decided.verdict, &decided.head, feedback)
        .await;
    match taken {
        Ok(()) => Ok(Redirect::to(&run_path(&id)).into_response()),
        Err(api::Error::Refused { status, detail, .. }) if status == StatusCode::CONFLICT => {
            let journal = client.journal(&run).await?;
            let body = over(&id, &journal, Some(&detail));
            let page = Page::new(Place::NeedsYou, "Your decision was not taken", body);
            Ok(page.with(StatusCode::CONFLICT))
        }
        Err(refused) => Err(refused.into()),
    }
}

/// Finds the proposed plan with this id. The newest proposal is searched first.
fn plan(journal: &[Entry], asked: &CommitId) -> Option<Box<Plan>> {
    journal.iter().rev().find_map(|entry| match &entry.fact {
        Fact::ReportRequested {
            request: ReportRequest::PlanProposed(proposed),
            ..
        } if proposed.id == *asked => Some(proposed.plan.clone()),
        _ => None,
    })
}

pub(super) fn question(run: &str, head: &CommitId, about: &About) -> Markup {
    html! {
        p {
            "Run " a href=(run_path(run)) { (shown(run)) } " waits for your decision about "
            @match about { About::Plan(_) => "its plan ", About::Change(_) => "its change " }
            code { (head.short()) } "."
        }
        @match about {
            About::Plan(plan) => (of_plan(plan)),
            About::Change(text) => (of_change(text)),
        }
        (forms(run, head, about))
    }
}

fn forms(run: &str, head: &CommitId, about: &About) -> Markup {
    let action = format!("{}/approval", run_path(run));
    let yes = match about {
        About::Plan(_) => "Approve the plan",
        About::Change(_) => "Approve the change",
    };
    html! {
        h2 { "Decide" }
        form method="post" action=(action) {
            input type="hidden" name="head" value=(head.as_str());
            div.actions { button.main name="verdict" value="approve" { (yes) } }
        }
        form method="post" action=(action) {
            input type="hidden" name="head" value=(head.as_str());
            label for="feedback" { "What to change" }
            textarea id="feedback" name="feedback" required maxlength=(FEEDBACK) {}
            div.actions { button name="verdict" value="revise" { "Send it back with this" } }
        }
        form method="post" action=(action) {
            input type="hidden" name="head" value=(head.as_str());
            div.actions { button name="verdict" value="reject" { "Reject it and end the run" } }
        }
    }
}

/// Renders the page of a run that has no open question, with its last decision.
pub(super) fn over(run: &str, journal: &[Entry], refused: Option<&str>) -> Markup {
    let last = journal.iter().rev().find_map(|entry| match &entry.fact {
        Fact::Decided { decision, by } => Some((by, decision.verdict, entry.at)),
        _ => None,
    });
    html! {
        @if let Some(refused) = refused { div.box.problem role="alert" { p { (shown(refused)) } } }
        @match last {
            Some((by, said, at)) => p { (shown(by)) " " (verdict(said)) " at " (at) "." },
            None => @if refused.is_none() { p { "This run waits for no decision." } },
        }
        p { a href=(run_path(run)) { "To the run" } }
    }
}

fn of_plan(plan: &Plan) -> Markup {
    let list = |name: &str, items: &[String]| {
        html! {
            @if !items.is_empty() { h3 { (name) } ul { @for item in items { li { (shown(item)) } } } }
        }
    };
    html! {
        h2 { "The plan" }
        p { strong { (shown(&plan.goal)) } }
        pre { (shown(&plan.approach)) }
        ol { @for step in &plan.steps { li { (shown(&step.what)) @for file in &step.files { " " code { (shown(file)) } } } } }
        (list("Tests", &plan.tests))
        (list("Risks", &plan.risks))
        (list("Not part of it", &plan.not_doing))
    }
}

fn of_change(text: &str) -> Markup {
    let lines: Vec<&str> = text.lines().collect();
    let left_out = lines.len().saturating_sub(LINES);
    html! {
        h2 { "The change" }
        pre.diff tabindex="0" aria-label="Difference" {
            @for line in lines.iter().take(LINES) { span class=(class_of(line)) { (shown(line)) "\n" } }
        }
        @if left_out > 0 { p { (left_out) " more lines are left out: read them with journeyman diff." } }
    }
}

/// Returns the style class of a diff line. The marks at its start carry the meaning without color.
fn class_of(line: &str) -> &'static str {
    let is_header = ["+++", "---", "diff ", "index ", "@@"]
        .iter()
        .any(|start| line.starts_with(start));
    match line.chars().next() {
        _ if is_header => "hunk",
        Some('+') => "add",
        Some('-') => "del",
        _ => "context",
    }
}
