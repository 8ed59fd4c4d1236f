//! A ticket: what was asked, its pull requests, every run, what it cost, and what was written outside.

use api::types::{RunState, RunView, TicketTextView};
use axum::{Form, extract::Path, response::Redirect};
use domain::{Dollars, Entry, Fact, Overview, PullRequestRef, Receipt, ReportOutcome, RunId, TicketKey};
use maud::{Markup, html};
use serde::Deserialize;

use super::{run::link, runs::table};
use crate::{
    layout::{Page, Place},
    person::Person,
    problem::Problem,
    words::{count, instant, money, run_path, shown, ticket_path},
};

/// Runs whose journals are read: cost, pull requests and effects are of these.
const READ: usize = 20;

/// What was written outside for a run.
pub(super) struct Effect {
    pub(super) run: String,
    pub(super) entry: Entry,
}

/// A ticket with all that is known of it.
#[derive(Default)]
pub(super) struct Known {
    /// What it says now, or why that is not known.
    pub(super) text: Option<Result<TicketTextView, String>>,
    /// Newest first.
    pub(super) runs: Vec<RunView>,
    pub(super) overviews: Vec<Overview>,
    pub(super) effects: Vec<Effect>,
}

/// What a person says.
#[derive(Deserialize)]
pub(super) struct Said {
    text: String,
}

pub(super) async fn show(Person(client): Person, Path(key): Path<String>) -> Result<Page, Problem> {
    let ticket: TicketKey = key.parse()?;
    let (runs, text) = tokio::join!(client.runs(Some(&ticket)), client.ticket_text(&ticket));
    let mut known = Known {
        runs: runs?,
        text: Some(text.map_err(|refused| refused.to_string())),
        ..Known::default()
    };
    known.runs.reverse();
    for id in known
        .runs
        .iter()
        .take(READ)
        .map(|run| run.id.clone())
        .collect::<Vec<_>>()
    {
        let run: RunId = id.parse()?;
        let journal = client.journal(&run).await?;
        known.overviews.extend(Overview::of(&run, &journal));
        let effects = journal.into_iter().filter(|entry| is_effect(&entry.fact));
        known.effects.extend(effects.map(|entry| Effect {
            run: id.clone(),
            entry,
        }));
    }
    Ok(Page::new(
        Place::Runs,
        format!("Ticket {}", shown(&key)),
        body(&key, &known),
    ))
}

const fn is_effect(fact: &Fact) -> bool {
    matches!(fact, Fact::ReportSettled { .. })
}

/// An answer on a ticket that no tracker has.
pub(super) async fn comment(
    Person(client): Person,
    Path(key): Path<String>,
    Form(said): Form<Said>,
) -> Result<Redirect, Problem> {
    if said.text.trim().is_empty() {
        return Err(Problem::Form("Say something."));
    }
    client.comment(&key.parse()?, said.text.trim()).await?;
    Ok(Redirect::to(&ticket_path(&key)))
}

pub(super) fn body(key: &str, known: &Known) -> Markup {
    let path = ticket_path(key);
    let runs: Vec<_> = known.runs.iter().collect();
    let is_live = runs.iter().any(|run| run.status != RunState::Finished);
    html! {
        (facts(known))
        div.actions {
            @if is_live { form.inline method="post" action={ (path) "/stop" } { button { "Stop its runs" } } }
            form.inline method="post" action={ (path) "/retry" } { button { "Try again" } }
        }
        @if key.starts_with("folder:") && is_live { (say(&path)) }
        @if let Some(text) = &known.text { (asked(text)) }
        h2 { "Runs" }
        @if runs.is_empty() { p { "No run is known." } } @else { (table(&runs, false)) }
        (effects(&known.effects))
    }
}

fn facts(known: &Known) -> Markup {
    let (mut cost, mut tokens, mut unpriced) = (Dollars::from_micros(0), 0_u64, 0_u64);
    let mut pulls: Vec<&PullRequestRef> = Vec::new();
    for overview in &known.overviews {
        cost = cost.plus(overview.spend.cost_usd);
        tokens = tokens.saturating_add(overview.spend.tokens);
        unpriced = unpriced.saturating_add(u64::from(overview.spend.unpriced));
        for pull in &overview.pull_requests {
            if !pulls.contains(&pull) {
                pulls.push(pull);
            }
        }
    }
    html! {
        dl.facts {
            dt { "Cost" }
            dd {
                (money(cost, unpriced)) ", " (count(tokens)) " tokens"
                @if known.runs.len() > known.overviews.len() { ", of its last " (known.overviews.len()) " runs that have begun" }
            }
            @for pull in pulls { dt { "Pull request" } dd { (link(&pull.url)) " from " code { (shown(&pull.branch)) } } }
        }
    }
}

fn say(path: &str) -> Markup {
    html! {
        form method="post" action={ (path) "/comments" } {
            label for="text" { "Answer, or say something" }
            textarea id="text" name="text" required {}
            div.actions { button { "Say it" } }
        }
    }
}

fn asked(text: &Result<TicketTextView, String>) -> Markup {
    let text = match text {
        Ok(text) => text,
        Err(why) => return html! { div.box { p { "What the ticket says is not known: " (shown(why)) } } },
    };
    html! {
        h2 { "What it says" }
        p {
            strong { (shown(&text.summary)) }
            @for (name, value) in [("status", &text.status), ("kind", &text.kind), ("priority", &text.priority)] {
                @if !value.is_empty() { " · " (name) " " (shown(value)) }
            }
            @if !text.labels.is_empty() { " · labels " (shown(&text.labels.join(", "))) }
            @if !text.assignees.is_empty() { " · assigned to " (shown(&text.assignees.join(", "))) }
        }
        @if !text.url.is_empty() { p { (link(&text.url)) } }
        @if !text.description.is_empty() { pre { (shown(&text.description)) } }
        @for comment in &text.comments {
            details {
                summary { (shown(&comment.author)) ", " (instant(&comment.at)) }
                pre { (shown(&comment.text)) }
            }
        }
    }
}

fn effects(effects: &[Effect]) -> Markup {
    html! {
        @if !effects.is_empty() {
            h2 { "Written outside" }
            ul {
                @for effect in effects {
                    li {
                        a href={ (run_path(&effect.run)) "/entries/" (effect.entry.position) } { (shown(&effect.run)) " #" (effect.entry.position) }
                        ": " (written(&effect.entry.fact))
                    }
                }
            }
        }
    }
}

fn written(fact: &Fact) -> Markup {
    let Fact::ReportSettled { outcome, .. } = fact else {
        return html! {};
    };
    html! {
        @match outcome {
            ReportOutcome::Done(Receipt::Pushed { branch, head }) => { "pushed " code { (shown(branch)) } " at " code { (head.short()) } }
            ReportOutcome::Done(Receipt::PullRequestOpened(opened)) => { "opened " (link(&opened.url)) }
            ReportOutcome::Done(Receipt::DecisionAsked { .. }) => "asked for a decision",
            ReportOutcome::Done(Receipt::Told) => "told people",
            ReportOutcome::Done(Receipt::Rehearsed { .. }) => "nothing, in a rehearsal",
            ReportOutcome::Refused(refusal) => span.bad { "refused: " (shown(&format!("{refusal:?}"))) },
            ReportOutcome::Failed { detail } => span.bad { "failed: " (shown(detail)) },
        }
    }
}
