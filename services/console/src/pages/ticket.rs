//! A ticket: its text, pull requests, runs, cost and outbound effects.

use api::types::{ChecksView, PullRequestView, RunState, RunView, TicketTextView};
use axum::{Form, extract::Path, response::Redirect};
use domain::{
    ChecksConclusion, Fact, JournalEntry, ModelSpend, OutboundOutcome, OutboundReceipt, PullRequestRef,
    PullRequestStatus, RunId, RunOverview, TicketKey,
};
use maud::{Markup, html};
use serde::Deserialize;

use super::{run::render_link, runs::render_run_table};
use crate::{
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::PageProblem,
    words::{format_count, format_instant, format_money, make_visible, run_path, ticket_path},
};

// Number of the newest runs whose journals are read. Cost, pull requests and effects come from these.
const READ: usize = 20;

/// One settled outbound request of a run.
pub(super) struct SettledRequest {
    pub(super) run: String,
    pub(super) entry: JournalEntry,
}

/// Ticket, runs and journals, as the API returned them.
pub(super) struct TicketReadings {
    /// Current text of the ticket, or the reason why it is unknown.
    pub(super) text: Option<Result<TicketTextView, String>>,
    /// The newest run is first.
    pub(super) runs: Vec<RunView>,
    pub(super) overviews: Vec<RunOverview>,
    pub(super) effects: Vec<SettledRequest>,
    /// State of the pull requests, or the reason why it is unknown.
    pub(super) standing: Result<Vec<PullRequestView>, String>,
}

impl Default for TicketReadings {
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
pub(super) struct TicketCommentForm {
    text: String,
}

pub(super) async fn show_ticket(
    SignedInPerson(client): SignedInPerson,
    Path(key): Path<String>,
) -> Result<ConsolePage, PageProblem> {
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
    let mut known = TicketReadings {
        runs: runs?,
        standing,
        text: Some(text.map_err(|refused| refused.to_string())),
        ..TicketReadings::default()
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
        known.overviews.extend(RunOverview::of(&run, &journal));
        let effects = journal.into_iter().filter(|entry| is_effect(&entry.fact));
        known.effects.extend(effects.map(|entry| SettledRequest {
            run: id.clone(),
            entry,
        }));
    }
    Ok(ConsolePage::new(
        NavigationEntry::Runs,
        format!("Ticket {}", make_visible(&key)),
        render_ticket(&key, &known),
    ))
}

const fn is_effect(fact: &Fact) -> bool {
    matches!(fact, Fact::ReportSettled { .. })
}

/// Comments on a ticket that no tracker has, such as one of a folder.
pub(super) async fn submit_comment(
    SignedInPerson(client): SignedInPerson,
    Path(key): Path<String>,
    Form(form): Form<TicketCommentForm>,
) -> Result<Redirect, PageProblem> {
    if form.text.trim().is_empty() {
        return Err(PageProblem::Form("Say something."));
    }
    client.comment(&key.parse()?, form.text.trim()).await?;
    Ok(Redirect::to(&ticket_path(&key)))
}

pub(super) fn render_ticket(key: &str, known: &TicketReadings) -> Markup {
    let path = ticket_path(key);
    let runs: Vec<_> = known.runs.iter().collect();
    let is_live = runs.iter().any(|run| run.status != RunState::Finished);
    html! {
        (render_ticket_facts(known))
        div.actions {
            @if is_live { form.inline method="post" action={ (path) "/stop" } { button { "Stop its runs" } } }
            form.inline method="post" action={ (path) "/retry" } { button { "Try again" } }
        }
        @if key.starts_with("folder:") && is_live { (render_comment_form(&path)) }
        @if let Some(text) = &known.text { (render_ticket_text(text)) }
        (render_pull_requests(&known.standing))
        h2 { "Runs" }
        @if runs.is_empty() { p { "No run is known." } } @else { (render_run_table(&runs, false)) }
        (render_effects(&known.effects))
    }
}

fn render_ticket_facts(known: &TicketReadings) -> Markup {
    let mut spend = ModelSpend::default();
    let mut pulls: Vec<&PullRequestRef> = Vec::new();
    for overview in &known.overviews {
        spend = spend.plus(overview.spend);
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
                (format_money(spend.cost_usd, u64::from(spend.unpriced))) ", " (format_count(spend.tokens)) " tokens in and out"
                @if known.runs.len() > known.overviews.len() { ", of its last " (known.overviews.len()) " runs that have begun" }
            }
            @for pull in pulls { dt { "Pull request" } dd { (render_link(&pull.url)) " from " code { (make_visible(&pull.branch)) } } }
        }
    }
}

/// Renders the pull requests with their checks, as ingest recorded them. The page causes no request to GitHub.
fn render_pull_requests(standing: &Result<Vec<PullRequestView>, String>) -> Markup {
    let standing = match standing {
        Ok(standing) => standing,
        Err(why) => {
            return html! { div.box { p { "How its pull requests stand is not known: " (make_visible(why)) } } };
        }
    };
    html! {
        @for one in standing {
            h2 { "Pull request " (make_visible(&one.pull_request.repository.to_string())) "#" (one.pull_request.number) }
            dl.facts {
                dt { "State" }
                dd {
                    @match one.status {
                        Some(PullRequestStatus::Open) => "open",
                        Some(PullRequestStatus::Merged) => span.good { "merged" },
                        Some(PullRequestStatus::Closed) => "closed without a merge",
                        None => "not known any more",
                    }
                    ", " (render_link(&one.pull_request.url))
                }
                dt { "Checks" }
                dd { @match &one.checks { Some(checks) => (render_checks(checks)), None => "none was complete yet, as far as is known" } }
                @if let Some(review) = &one.review {
                    dt { "Last review that asked for something" }
                    dd {
                        (make_visible(&review.author)) ", " (format_instant(&review.at))
                        @if review.asks_for_changes { ": " span.warm { "asks for changes" } }
                        ", " (review.threads) " threads"
                    }
                }
                @if let Some(since) = &one.awaits_review_since {
                    dt { "Waits for a review" }
                    dd { "since " (format_instant(since)) @if !one.awaits_review_of.is_empty() { ", of " (make_visible(&one.awaits_review_of.join(", "))) } }
                }
            }
            @if let Some(checks) = &one.checks { (render_failed_checks(checks)) }
        }
    }
}

fn render_checks(checks: &ChecksView) -> Markup {
    html! {
        @match checks.conclusion {
            ChecksConclusion::Success => span.good { "all passed" },
            ChecksConclusion::Failure => span.bad { (checks.failed.len()) " failed" },
            ChecksConclusion::Absent => span.soft { "none has reported" },
        }
        " for " code { (make_visible(checks.head.get(..12).unwrap_or(&checks.head))) } ", seen " (format_instant(&checks.at))
        @if checks.outdated { ". " span.warm { "There is a newer commit, whose checks are not complete." } }
        @match checks.follows.as_str() {
            "repair" => ". A run repairs them.",
            "rerun" => ". The failed jobs run again.",
            "left" => { ". Left to people: " (checks.left_because()) "." }
            _ => "",
        }
        @if !checks.page.is_empty() { " " (render_link(&checks.page)) }
    }
}

fn render_failed_checks(checks: &ChecksView) -> Markup {
    html! {
        @if !checks.failed.is_empty() {
            ul {
                @for check in &checks.failed {
                    li {
                        span.bad { (make_visible(&check.name)) }
                        @if !check.class.is_real() { " (" (check.class.as_str().replace('_', " ")) ")" }
                        @if !check.url.is_empty() { ": " (render_link(&check.url)) }
                    }
                }
            }
        }
    }
}

fn render_comment_form(path: &str) -> Markup {
    html! {
        form method="post" action={ (path) "/comments" } {
            label for="text" { "Answer, or say something" }
            textarea id="text" name="text" required {}
            div.actions { button { "Say it" } }
        }
    }
}

fn render_ticket_text(text: &Result<TicketTextView, String>) -> Markup {
    let text = match text {
        Ok(text) => text,
        Err(why) => {
            return html! { div.box { p { "What the ticket says is not known: " (make_visible(why)) } } };
        }
    };
    html! {
        h2 { "What it says" }
        p {
            strong { (make_visible(&text.summary)) }
            @for (name, value) in [("status", &text.status), ("kind", &text.kind), ("priority", &text.priority)] {
                @if !value.is_empty() { " · " (name) " " (make_visible(value)) }
            }
            @if !text.labels.is_empty() { " · labels " (make_visible(&text.labels.join(", "))) }
            @if !text.assignees.is_empty() { " · assigned to " (make_visible(&text.assignees.join(", "))) }
        }
        @if !text.url.is_empty() { p { (render_link(&text.url)) } }
        @if !text.description.is_empty() { pre { (make_visible(&text.description)) } }
        @for comment in &text.comments {
            details {
                summary { (make_visible(&comment.author)) ", " (format_instant(&comment.at)) }
                pre { (make_visible(&comment.text)) }
            }
        }
    }
}

fn render_effects(effects: &[SettledRequest]) -> Markup {
    html! {
        @if !effects.is_empty() {
            h2 { "Written outside" }
            ul {
                @for effect in effects {
                    li {
                        a href={ (run_path(&effect.run)) "/entries/" (effect.entry.position) } { (make_visible(&effect.run)) " #" (effect.entry.position) }
                        ": " (render_outcome(&effect.entry.fact))
                    }
                }
            }
        }
    }
}

fn render_outcome(fact: &Fact) -> Markup {
    let Fact::ReportSettled { outcome, .. } = fact else {
        return html! {};
    };
    html! {
        @match outcome {
            OutboundOutcome::Done(OutboundReceipt::Pushed { branch, head, .. }) => { "pushed " code { (make_visible(branch)) } " at " code { (head.short()) } }
            OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(opened)) => { "opened " (render_link(&opened.url)) }
            OutboundOutcome::Done(OutboundReceipt::DecisionAsked { .. }) => "asked for a decision",
            OutboundOutcome::Done(OutboundReceipt::Told) => "notified people",
            OutboundOutcome::Done(OutboundReceipt::Rehearsed { .. }) => "nothing, in a rehearsal",
            OutboundOutcome::Refused(refusal) => span.bad { "refused: " (make_visible(&format!("{refusal:?}"))) },
            OutboundOutcome::Failed { detail } => span.bad { "failed: " (make_visible(detail)) },
        }
    }
}
