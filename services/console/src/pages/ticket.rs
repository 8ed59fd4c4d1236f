//! A ticket: its text, pull requests, runs, cost and outbound effects.

use api::types::{ChecksView, PullRequestView, RunState, RunView, TicketTextView};
use axum::{Form, extract::Path, response::Redirect};
use domain::{
    Conclusion, Dollars, Entry, Fact, Overview, PullRequestRef, PullRequestStatus, Receipt, ReportOutcome,
    RunId, TicketKey,
};
use maud::{Markup, html};
use serde::Deserialize;

use super::{run::link, runs::table};
use crate::{
    layout::{Page, Place},
    person::Person,
    problem::Problem,
    words::{count, instant, money, run_path, shown, ticket_path},
};

// Number of the newest runs whose journals are read. Cost, pull requests and effects come from these.
const READ: usize = 20;

/// One settled outbound request of a run.
pub(super) struct Effect {
    pub(super) run: String,
    pub(super) entry: Entry,
}

/// Ticket, runs and journals, as the API returned them.
pub(super) struct Known {
    /// Current text of the ticket, or the reason why it is unknown.
    pub(super) text: Option<Result<TicketTextView, String>>,
    /// The newest run is first.
    pub(super) runs: Vec<RunView>,
    pub(super) overviews: Vec<Overview>,
    pub(super) effects: Vec<Effect>,
    /// State of the pull requests, or the reason why it is unknown.
    pub(super) standing: Result<Vec<PullRequestView>, String>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            text: None,
            runs: Vec::new(),
            overviews: Vec::new(),
            effects: Vec::new(),
            standing: Ok(Vec::new()),
        }
    }
}

/// Form field of a comment.
#[derive(Deserialize)]
pub(super) struct Said {
    text: String,
}

pub(super) async fn show(Person(client): Person, Path(key): Path<String>) -> Result<Page, Problem> {
    let ticket: TicketKey = key.parse()?;
    let (runs, text, row) = tokio::join!(
        client.runs(Some(&ticket)),
        client.ticket_text(&ticket),
        client.ticket(&ticket)
    );
    let standing = match row {
        Ok(row) => Ok(row.standing),
        // The ticket has neither run nor trigger yet.
        Err(api::Error::Refused { status, .. }) if status.as_u16() == 404 => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    };
    let mut known = Known {
        runs: runs?,
        standing,
        text: Some(text.map_err(|refused| refused.to_string())),
        ..Known::default()
    };
    // The API lists the oldest run first.
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

/// Comments on a ticket that no tracker has, such as one of a folder.
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
        (standings(&known.standing))
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

/// Renders the pull requests with their checks, as ingest recorded them. The page causes no request to GitHub.
fn standings(standing: &Result<Vec<PullRequestView>, String>) -> Markup {
    let standing = match standing {
        Ok(standing) => standing,
        Err(why) => {
            return html! { div.box { p { "How its pull requests stand is not known: " (shown(why)) } } };
        }
    };
    html! {
        @for one in standing {
            h2 { "Pull request " (shown(&one.pull_request.repository.to_string())) "#" (one.pull_request.number) }
            dl.facts {
                dt { "State" }
                dd {
                    @match one.status {
                        Some(PullRequestStatus::Open) => "open",
                        Some(PullRequestStatus::Merged) => span.good { "merged" },
                        Some(PullRequestStatus::Closed) => "closed without a merge",
                        None => "not known any more",
                    }
                    ", " (link(&one.pull_request.url))
                }
                dt { "Checks" }
                dd { @match &one.checks { Some(checks) => (checked(checks)), None => "none was complete yet, as far as is known" } }
                @if let Some(review) = &one.review {
                    dt { "Last review that asked for something" }
                    dd {
                        (shown(&review.author)) ", " (instant(&review.at))
                        @if review.asks_for_changes { ": " span.warm { "asks for changes" } }
                        ", " (review.threads) " threads"
                    }
                }
                @if let Some(since) = &one.awaits_review_since {
                    dt { "Waits for a review" }
                    dd { "since " (instant(since)) @if !one.awaits_review_of.is_empty() { ", of " (shown(&one.awaits_review_of.join(", "))) } }
                }
            }
            @if let Some(checks) = &one.checks { (failed(checks)) }
        }
    }
}

fn checked(checks: &ChecksView) -> Markup {
    html! {
        @match checks.conclusion {
            Conclusion::Success => span.good { "all passed" },
            Conclusion::Failure => span.bad { (checks.failed.len()) " failed" },
            Conclusion::Absent => span.soft { "none has reported" },
        }
        " for " code { (shown(checks.head.get(..12).unwrap_or(&checks.head))) } ", seen " (instant(&checks.at))
        @if checks.outdated { ". " span.warm { "There is a newer commit, whose checks are not complete." } }
        @match checks.follows.as_str() {
            "repair" => ". A run repairs them.",
            "rerun" => ". The jobs that failed run once more.",
            "left" => { ". Left to people: " (checks.left_because()) "." }
            _ => "",
        }
        @if !checks.page.is_empty() { " " (link(&checks.page)) }
    }
}

fn failed(checks: &ChecksView) -> Markup {
    html! {
        @if !checks.failed.is_empty() {
            ul {
                @for check in &checks.failed {
                    li {
                        span.bad { (shown(&check.name)) }
                        @if !check.class.is_real() { " (" (check.class.as_str().replace('_', " ")) ")" }
                        @if !check.url.is_empty() { ": " (link(&check.url)) }
                    }
                }
            }
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
