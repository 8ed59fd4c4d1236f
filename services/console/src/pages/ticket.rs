//! A ticket: its pull requests, the story of its runs, their cost, its text, and the writes outside.

use std::collections::BTreeMap;

use api::types::{
    ChecksView, ConversationLockView, HealthView, PullRequestView, RunState, RunView, RunsQuery,
    TicketTextView,
};
use axum::{Form, extract::Path, response::Redirect};
use domain::{
    ChecksConclusion, Dollars, Fact, JournalEntry, OutboundOutcome, OutboundReceipt, TicketKey, Timestamp,
    text::{format_count, group_digits},
};
use maud::{Markup, html};
use serde::Deserialize;

use super::runs::{format_run_cost, format_run_duration};
use crate::{
    chips::{
        describe_evidence_level, render_external_link, render_pull_request_chip, render_pull_request_lines,
        render_run_chip,
    },
    layout::{ConsolePage, NavigationEntry},
    markdown::render_markdown,
    moments::render_moment,
    person::SignedInPerson,
    problem::PageProblem,
    words::{format_money, format_quantity, make_visible, run_path, shorten_text, stop_detail, ticket_path},
};

// Number of the newest runs whose journals are read for the writes outside.
const READ: usize = 20;
// Longest detail of a run's end in the story, in characters.
const DETAIL: usize = 300;

/// One settled outbound request of a run.
pub(super) struct SettledRequest {
    pub(super) run: String,
    pub(super) entry: JournalEntry,
}

/// Ticket, runs and journals, as the API returned them.
pub(super) struct TicketReadings {
    /// Current text of the ticket, or the reason why it is unknown.
    pub(super) text: Option<Result<TicketTextView, String>>,
    /// The oldest run is first.
    pub(super) runs: Vec<RunView>,
    pub(super) effects: Vec<SettledRequest>,
    /// Runs whose journals could not be read, each with the reason.
    pub(super) unread: Vec<String>,
    /// State of the pull requests, or the reason why it is unknown.
    pub(super) standing: Result<Vec<PullRequestView>, String>,
    /// Reason for the quarantine of the ticket.
    pub(super) quarantined: Option<String>,
    /// Lock of the ticket's conversation.
    pub(super) lock: Option<ConversationLockView>,
}

impl Default for TicketReadings {
    fn default() -> Self {
        Self {
            text: None,
            runs: Vec::new(),
            effects: Vec::new(),
            unread: Vec::new(),
            standing: Ok(Vec::new()),
            quarantined: None,
            lock: None,
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
    let all = RunsQuery {
        ticket: Some(ticket.to_string()),
        limit: Some(RunsQuery::MOST),
        ..RunsQuery::default()
    };
    let (runs, text, row) = tokio::join!(
        client.runs().list(&all),
        client.tickets().text(&ticket),
        client.tickets().read(&ticket)
    );
    let mut known = TicketReadings {
        runs: runs?,
        text: Some(text.map_err(|refused| refused.to_string())),
        ..TicketReadings::default()
    };
    match row {
        Ok(row) => {
            known.standing = Ok(row.standing);
            known.quarantined = row.quarantined;
            known.lock = row.conversation_lock;
        }
        // The ticket has neither run nor trigger yet.
        Err(api::Error::Refused { status, .. }) if status.as_u16() == 404 => {}
        Err(error) => known.standing = Err(error.to_string()),
    }
    for run in known.runs.iter().take(READ) {
        let journal = match client.runs().journal(&run.id.parse()?).await {
            Ok(journal) => journal,
            Err(api::Error::UnknownToken) => return Err(PageProblem::Ended),
            // A broken journal must not hide the page, which has the quarantine and the retry.
            Err(error) => {
                known.unread.push(format!("{}: {error}", run.id));
                continue;
            }
        };
        let effects = journal.into_iter().filter(|entry| is_effect(&entry.fact));
        known.effects.extend(effects.map(|entry| SettledRequest {
            run: run.id.clone(),
            entry,
        }));
    }
    // The API lists the newest run first, and a story begins with the oldest.
    known.runs.reverse();
    Ok(ConsolePage::new(
        NavigationEntry::Tickets,
        format!("Ticket {}", make_visible(&key)),
        render_ticket(&key, &known, bootstrap::read_wall_clock()),
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
        return Err(PageProblem::Form("Write a comment first."));
    }
    client.tickets().comment(&key.parse()?, form.text.trim()).await?;
    Ok(Redirect::to(&ticket_path(&key)))
}

pub(super) fn render_ticket(key: &str, known: &TicketReadings, now: Timestamp) -> Markup {
    let path = ticket_path(key);
    let is_live = known.runs.iter().any(|run| run.status != RunState::Finished);
    html! {
        (render_ticket_head(key, known, now))
        div.actions {
            @if is_live { form.inline method="post" action={ (path) "/stop" } { button { "Stop its runs" } } }
            form.inline method="post" action={ (path) "/retry" } { button { "Retry" } }
        }
        @if key.starts_with("folder:") && is_live { (render_comment_form(&path)) }
        (render_pull_requests(&known.standing, now))
        div.columns {
            (render_story(known, now))
            div { (render_costs(&known.runs)) @if let Some(text) = &known.text { (render_ticket_text(text, now)) } }
        }
    }
}

fn render_ticket_head(key: &str, known: &TicketReadings, now: Timestamp) -> Markup {
    let overviews = || known.runs.iter().filter_map(|run| run.overview.as_ref());
    let title = match &known.text {
        Some(Ok(text)) => text.summary.as_str(),
        Some(Err(_)) | None => overviews()
            .map(|overview| overview.title.as_str())
            .rfind(|title| !title.is_empty())
            .unwrap_or_default(),
    };
    let repository = overviews()
        .filter_map(|overview| overview.repository.as_deref())
        .next_back();
    let actor = overviews().find_map(|overview| overview.actor.as_deref());
    let evidence = overviews()
        .filter_map(|overview| overview.evidence.as_deref())
        .next_back();
    html! {
        section.card aria-label="Summary" {
            @if !title.is_empty() { p.figure { (make_visible(title)) } }
            div.actions {
                @if let Some(last) = known.runs.last() { (render_run_chip(last)) }
                @if let Some(Ok(text)) = &known.text {
                    @if !text.url.is_empty() { (render_external_link(&text.url, key)) }
                }
            }
            @if let Some(why) = &known.quarantined {
                div.box.problem { p { "In quarantine: " (make_visible(why)) ". Retry it when the cause is gone." } }
            }
            dl.facts {
                @if let Some(repository) = repository { dt { "Repository" } dd { (make_visible(repository)) } }
                @if let Some(actor) = actor { dt { "Asked for by" } dd { (make_visible(actor)) } }
                @if let Some(first) = known.runs.first() { dt { "First request" } dd { (render_moment(&first.started_at, now)) } }
                @if let Some(level) = evidence { dt { "Evidence" } dd { (describe_evidence_level(level)) } }
                @if let Some(lock) = &known.lock { dt { "Conversation" } dd { (render_lock(lock, now)) } }
                dt { "Cost" } dd { (format_total_cost(&known.runs)) }
            }
        }
    }
}

fn format_total_cost(runs: &[RunView]) -> String {
    let overviews = || runs.iter().filter_map(|run| run.overview.as_ref());
    let cost = overviews().fold(Dollars::default(), |sum, overview| sum.plus(overview.cost_usd));
    let unpriced = overviews()
        .map(|overview| u64::from(overview.unpriced))
        .sum::<u64>();
    let tokens = overviews()
        .map(|overview| overview.tokens)
        .fold(0, u64::saturating_add);
    format!(
        "{}, {} tokens in and out, {}",
        format_money(cost, unpriced),
        group_digits(tokens),
        format_quantity(runs.len(), "run")
    )
}

/// Renders the runs in the order of their requests, each with what it wrote outside.
fn render_story(known: &TicketReadings, now: Timestamp) -> Markup {
    html! {
        section.card aria-labelledby="story" {
            h2 id="story" { "What happened" }
            @if known.runs.is_empty() {
                div.empty { strong { "No run yet." } "Runs on this ticket appear here in their order, with their cost and results." }
            } @else {
                ol.rows { @for run in &known.runs { li { (render_story_run(run, &known.effects, now)) } } }
            }
            @for unread in &known.unread { p.small.bad { "Writes outside are not known for " (make_visible(unread)) } }
            @if known.runs.len() > READ { p.small.soft { "Writes outside are listed for the last " (READ) " runs." } }
        }
    }
}

fn render_story_run(run: &RunView, effects: &[SettledRequest], now: Timestamp) -> Markup {
    let overview = run.overview.as_ref();
    let lines = overview.map_or(&[][..], |overview| overview.pull_request_lines.as_slice());
    let questions = overview.map_or(&[][..], |overview| overview.questions.as_slice());
    let effects: Vec<_> = effects.iter().filter(|effect| effect.run == run.id).collect();
    html! {
        div.line { a.item href=(run_path(&run.id)) { (run.job) } (render_run_chip(run)) }
        div.meta {
            span { (make_visible(&run.id)) }
            span { (render_moment(&run.started_at, now)) }
            span { "took " (format_run_duration(run, now)) }
            span { (format_run_cost(run)) }
            @if let Some(actor) = overview.and_then(|overview| overview.actor.as_ref()) { span { "asked for by " (make_visible(actor)) } }
        }
        @if let Some(detail) = run.stop.as_ref().and_then(stop_detail) { p { (shorten_text(&detail, DETAIL)) } }
        @for question in questions { div.question { (shorten_text(&question.text, DETAIL)) } }
        (render_pull_request_lines(lines))
        @if !effects.is_empty() { ul { @for effect in effects { li { (render_effect(effect)) } } } }
    }
}

/// Renders the cost of the runs by job, the most expensive one first.
fn render_costs(runs: &[RunView]) -> Markup {
    let mut by_job: BTreeMap<&str, (usize, Dollars)> = BTreeMap::new();
    for run in runs {
        let cost = run
            .overview
            .as_ref()
            .map_or(Dollars::default(), |overview| overview.cost_usd);
        let (count, sum) = by_job.entry(run.job.as_str()).or_default();
        *count += 1;
        *sum = sum.plus(cost);
    }
    let mut jobs: Vec<_> = by_job.into_iter().collect();
    jobs.sort_by_key(|(_, (_, cost))| std::cmp::Reverse(cost.micros()));
    html! {
        @if !jobs.is_empty() {
            section.card aria-labelledby="costs" {
                h2 id="costs" { "Costs" }
                table {
                    caption { "Cost of models by kind of work" }
                    thead { tr { th scope="col" { "Job" } th.number scope="col" { "Runs" } th.number scope="col" { "Cost" } } }
                    tbody {
                        @for (job, (count, cost)) in jobs {
                            tr { th scope="row" { (job) } td.number { (count) } td.number { (cost) } }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the pull requests with their checks, as ingest recorded them. The page causes no request to GitHub.
fn render_pull_requests(standing: &Result<Vec<PullRequestView>, String>, now: Timestamp) -> Markup {
    let standing = match standing {
        Ok(standing) => standing,
        Err(why) => {
            return html! { div.box.problem { p { "The state of its pull requests is not known: " (make_visible(why)) } } };
        }
    };
    html! {
        @for one in standing {
            @let name = format!("{}#{}", one.pull_request.repository, one.pull_request.number);
            section.card aria-label={ "Pull request " (make_visible(&name)) } {
                h2 { "Pull request " (render_external_link(&one.pull_request.url, &name)) " " (render_pull_request_chip(one.status)) }
                dl.facts {
                    dt { "Branch" } dd { code { (make_visible(&one.pull_request.branch)) } }
                    @if let Some(health) = &one.health { dt { "Merge" } dd { (render_health(health, now)) } }
                    @if let Some(lock) = &one.conversation_lock { dt { "Conversation" } dd { (render_lock(lock, now)) } }
                    dt { "Checks" }
                    dd { @match &one.checks { Some(checks) => (render_checks(checks, now)), None => "none was complete yet, as far as is known" } }
                    @if let Some(review) = &one.review {
                        dt { "Last review that asked for something" }
                        dd {
                            (make_visible(&review.author)) ", " (render_moment(&review.at, now))
                            @if review.asks_for_changes { ": " span.warm { "asks for changes" } }
                            ", " (format_count(review.threads.into(), "thread"))
                        }
                    }
                    @if let Some(since) = &one.awaits_review_since {
                        dt { "Waits for a review" }
                        dd {
                            "since " (render_moment(since, now))
                            @if !one.awaits_review_of.is_empty() { ", of " (make_visible(&one.awaits_review_of.join(", "))) }
                        }
                    }
                }
                @if let Some(checks) = &one.checks { (render_failed_checks(checks)) }
            }
        }
    }
}

/// Renders a locked conversation.
fn render_lock(lock: &ConversationLockView, now: Timestamp) -> Markup {
    html! {
        span.warm { "conversation locked" }
        ", since " (render_moment(&lock.since, now))
        @if !lock.reason.is_empty() { ", as " (make_visible(&lock.reason)) }
    }
}

/// Renders the state on the way to a merge: what blocks, since when, and who acts.
fn render_health(health: &HealthView, now: Timestamp) -> Markup {
    html! {
        @match health.state.as_str() {
            "ready" => span.good { (make_visible(&health.text)) },
            "blocked" => span.bad { (make_visible(&health.text)) },
            _ => span.warm { (make_visible(&health.text)) },
        }
        @if let Some(since) = &health.since { ", since " (render_moment(since, now)) }
        @if let Some(who) = &health.who { ". Acts: " (make_visible(who)) }
        @if let Some(until) = &health.until { ". A notice follows " (render_moment(until, now)) }
        @if let Some(merge) = &health.auto_merge { ". " (make_visible(&merge.words())) }
        @if !health.ignored_checks.is_empty() {
            ". Ignored checks: " (make_visible(&health.ignored_checks.join(", ")))
        }
        ". Seen " (render_moment(&health.at, now))
    }
}

fn render_checks(checks: &ChecksView, now: Timestamp) -> Markup {
    html! {
        @match checks.conclusion {
            ChecksConclusion::Success => span.good { "all passed" },
            ChecksConclusion::Failure => span.bad { (checks.failed.len()) " failed" },
            ChecksConclusion::Absent => span.soft { "none has reported" },
        }
        " for " code { (make_visible(checks.head.get(..12).unwrap_or(&checks.head))) } ", seen " (render_moment(&checks.at, now))
        @if checks.outdated { ". " span.warm { "There is a newer commit, whose checks are not complete." } }
        @match checks.follows.as_str() {
            "repair" => ". A run repairs them.",
            "rerun" => ". The failed jobs run again.",
            "left" => { ". Left to people: " (checks.left_because()) "." }
            _ => "",
        }
        @if !checks.page.is_empty() { " " (render_external_link(&checks.page, "Checks page")) }
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
                        @if !check.url.is_empty() { " " (render_external_link(&check.url, "Log")) }
                    }
                }
            }
        }
    }
}

fn render_comment_form(path: &str) -> Markup {
    html! {
        form.card method="post" action={ (path) "/comments" } {
            label for="text" { "Comment or answer for the live runs" }
            textarea id="text" name="text" required {}
            div.actions { button.main { "Send" } }
        }
    }
}

fn render_ticket_text(text: &Result<TicketTextView, String>, now: Timestamp) -> Markup {
    let text = match text {
        Ok(text) => text,
        Err(why) => {
            return html! { div.box { p { "The text of the ticket is not known: " (make_visible(why)) } } };
        }
    };
    html! {
        section.card aria-labelledby="ticket-text" {
            h2 id="ticket-text" { "Text of the ticket" }
            p { strong { (make_visible(&text.summary)) } }
            div.meta {
                @for (name, value) in [("status", &text.status), ("kind", &text.kind), ("priority", &text.priority)] {
                    @if !value.is_empty() { span { (name) " " (make_visible(value)) } }
                }
                @if !text.labels.is_empty() { span { "labels " (make_visible(&text.labels.join(", "))) } }
                @if !text.assignees.is_empty() { span { "assigned to " (make_visible(&text.assignees.join(", "))) } }
            }
            @if !text.description.is_empty() { (render_markdown(&text.description)) }
            @for comment in &text.comments {
                details {
                    summary { (make_visible(&comment.author)) ", " (render_moment(&comment.at, now)) }
                    (render_markdown(&comment.text))
                }
            }
        }
    }
}

fn render_effect(effect: &SettledRequest) -> Markup {
    let position = effect.entry.position;
    html! {
        (render_outcome(&effect.entry.fact)) " "
        a.small href={ (run_path(&effect.run)) "/entries/" (position) } { "#" (position) }
    }
}

fn render_outcome(fact: &Fact) -> Markup {
    let Fact::ReportSettled { outcome, .. } = fact else {
        return html! {};
    };
    html! {
        @match outcome {
            OutboundOutcome::Done(OutboundReceipt::Pushed { branch, head, .. }) => { "pushed " code { (make_visible(branch)) } " at " code { (head.short()) } }
            OutboundOutcome::Done(OutboundReceipt::PullRequestOpened(opened)) => { "opened " (render_external_link(&opened.url, &format!("{}#{}", opened.repository, opened.number))) }
            OutboundOutcome::Done(OutboundReceipt::DecisionAsked { .. }) => "asked for a decision",
            OutboundOutcome::Done(OutboundReceipt::Told | OutboundReceipt::Started { .. }) => "notified people",
            OutboundOutcome::Done(OutboundReceipt::Rehearsed { .. }) => "nothing, in a rehearsal",
            OutboundOutcome::Refused(refusal) => span.bad { "refused: " (make_visible(&refusal.words())) },
            OutboundOutcome::Failed { detail } => span.bad { "failed: " (make_visible(detail)) },
        }
    }
}
