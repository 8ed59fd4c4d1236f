//! The approval gate: the plan or change that a run asks about, and a person's decision.

use api::types::RunDiff;
use axum::{
    Form,
    extract::Path,
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use domain::{ChangePlan, CommitId, DecisionVerdict, Fact, JournalEntry, OutboundAction};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    run::RunWithJournal,
    run_diff::{DiffView, render_diff, render_on_blocking_thread},
};
use crate::{
    layout::{ConsolePage, NavigationEntry},
    markdown::render_markdown,
    person::SignedInPerson,
    problem::PageProblem,
    words::{describe_verdict, make_visible, run_path},
};

// Longest feedback that the API accepts, in characters.
const FEEDBACK: usize = api::types::DecisionBody::FEEDBACK_CHARS;

/// Form fields of a decision.
#[derive(Deserialize)]
pub(super) struct DecisionForm {
    verdict: DecisionVerdict,
    head: String,
    #[serde(default)]
    feedback: String,
}

/// Subject of a decision.
pub(super) enum DecisionSubject {
    Plan(Box<ChangePlan>),
    Change(RunDiff),
}

pub(super) async fn show_approval(
    SignedInPerson(client): SignedInPerson,
    Path(id): Path<String>,
) -> Result<ConsolePage, PageProblem> {
    let known = RunWithJournal::of(&client, id.parse()?).await?;
    let title = format!("Decide about {}", make_visible(&id));
    let overview = known.view.overview.as_ref();
    let asked = overview.and_then(|overview| overview.decides_about.as_deref());
    let body = match asked.map(str::parse::<CommitId>).transpose()? {
        None => render_past_decision(&id, &known.journal, None),
        Some(head) => {
            let about = match find_proposed_plan(&known.journal, &head) {
                Some(plan) => DecisionSubject::Plan(plan),
                None => DecisionSubject::Change(client.runs().diff(&known.id).await?),
            };
            render_on_blocking_thread(move || render_question(&id, &head, &about)).await?
        }
    };
    Ok(ConsolePage::new(NavigationEntry::Overview, title, body))
}

/// Sends a decision to the API. On a conflict, the page shows the earlier decision.
pub(super) async fn submit_decision(
    SignedInPerson(client): SignedInPerson,
    Path(id): Path<String>,
    Form(decided): Form<DecisionForm>,
) -> Result<Response, PageProblem> {
    let run = id.parse()?;
    let feedback = decided.feedback.trim();
    if decided.verdict == DecisionVerdict::Revise && feedback.is_empty() {
        return Err(PageProblem::Form("Write down the requested changes first."));
    }
    let taken = client
        .runs()
        .decide(&run, decided.verdict, &decided.head, feedback)
        .await;
    match taken {
        Ok(()) => Ok(Redirect::to(&run_path(&id)).into_response()),
        Err(api::Error::Refused { status, detail, .. }) if status == StatusCode::CONFLICT => {
            let journal = client.runs().journal(&run).await?;
            let body = render_past_decision(&id, &journal, Some(&detail));
            let page = ConsolePage::new(NavigationEntry::Overview, "Your decision was not taken", body);
            Ok(page.with(StatusCode::CONFLICT))
        }
        Err(refused) => Err(refused.into()),
    }
}

/// Finds the proposed plan with this id. The newest proposal is searched first.
fn find_proposed_plan(journal: &[JournalEntry], asked: &CommitId) -> Option<Box<ChangePlan>> {
    journal.iter().rev().find_map(|entry| {
        let Fact::ReportRequested {
            request: OutboundAction::PlanProposed(proposed),
            ..
        } = &entry.fact
        else {
            return None;
        };
        (proposed.id == *asked).then(|| proposed.plan.clone())
    })
}

pub(super) fn render_question(run: &str, head: &CommitId, about: &DecisionSubject) -> Markup {
    html! {
        p {
            "Run " a href=(run_path(run)) { (make_visible(run)) } " waits for your decision about "
            @match about { DecisionSubject::Plan(_) => "its plan ", DecisionSubject::Change(_) => "its change " }
            code { (head.short()) } "."
        }
        @match about {
            DecisionSubject::Plan(plan) => (render_plan(plan)),
            DecisionSubject::Change(diff) => (render_diff(run, diff, DiffView::Unified)),
        }
        (render_decision_forms(run, head, about))
    }
}

fn render_decision_forms(run: &str, head: &CommitId, about: &DecisionSubject) -> Markup {
    let action = format!("{}/approval", run_path(run));
    let yes = match about {
        DecisionSubject::Plan(_) => "Approve the plan",
        DecisionSubject::Change(_) => "Approve the change",
    };
    html! {
        section.card aria-label="Decision" {
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
}

/// Renders the page of a run that has no open question, with its last decision.
pub(super) fn render_past_decision(run: &str, journal: &[JournalEntry], refused: Option<&str>) -> Markup {
    let last = journal.iter().rev().find_map(|entry| {
        let Fact::Decided { decision, by } = &entry.fact else {
            return None;
        };
        Some((by, decision.verdict, entry.at))
    });
    html! {
        @if let Some(refused) = refused { div.box.problem role="alert" { p { (make_visible(refused)) } } }
        @match last {
            Some((by, verdict, at)) => p { (make_visible(by)) " " (describe_verdict(verdict)) " at " (at) "." },
            None => @if refused.is_none() { p { "This run waits for no decision." } },
        }
        p { a href=(run_path(run)) { "To the run" } }
    }
}

fn render_plan(plan: &ChangePlan) -> Markup {
    let list = |name: &str, items: &[String]| {
        html! {
            @if !items.is_empty() { h3 { (name) } ul { @for item in items { li { (make_visible(item)) } } } }
        }
    };
    html! {
        section.card aria-label="Plan" {
            h2 { "The plan" }
            p { strong { (make_visible(&plan.goal)) } }
            (render_markdown(&plan.approach))
            ol { @for step in &plan.steps { li { (make_visible(&step.what)) @for file in &step.files { " " code { (make_visible(file)) } } } } }
            (list("Tests", &plan.tests))
            (list("Risks", &plan.risks))
            (list("Not part of it", &plan.not_doing))
        }
    }
}
