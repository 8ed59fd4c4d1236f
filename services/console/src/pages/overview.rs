//! Overview: work that needs a person, live runs, and the results of the last days. Health appears only when
//! something is wrong.

use api::types::{
    ActivityQuery, ActivityView, CredentialView, DeadView, PoolView, RulesView, RunState, RunView, RunsQuery,
    StopAllView, TicketStanding, TicketSummariesQuery, TicketSummary,
};
use domain::{PoolFreshness, Timestamp, WaitCondition};
use maud::{Markup, html};

use super::overview_results::render_results;
use crate::{
    chips::{ChipTone, render_chip},
    layout::{ConsolePage, NavigationEntry},
    moments::{format_span, render_moment},
    person::SignedInPerson,
    problem::{PageProblem, describe_api_error},
    words::{
        describe_phase, describe_stop, format_overview_cost, format_quantity, make_visible, run_path,
        shorten_text, stop_detail, ticket_path,
    },
};

// Number of items in the lists of the page. Each list links to its whole.
const WAITING: usize = 50;
const LIVE: usize = 20;
const FAILED: usize = 20;
// Longest shown text of a question or of a failure, in characters.
const TEXT: usize = 400;

/// Responses of the API for the page.
#[derive(Default)]
pub(super) struct OverviewReadings {
    /// Runs that wait for a person.
    pub(super) waiting: Vec<RunView>,
    /// Runs that work now.
    pub(super) live: Vec<RunView>,
    /// Tickets whose last run failed.
    pub(super) failed: Vec<TicketSummary>,
    /// Absent: the API is of an earlier release.
    pub(super) activity: Option<ActivityView>,
    pub(super) health: HealthSigns,
}

/// Readings that the page shows only when they are bad.
#[derive(Default)]
pub(super) struct HealthSigns {
    pub(super) stop_all: StopAllView,
    pub(super) letters: Vec<DeadView>,
    pub(super) rules: Option<RulesView>,
    pub(super) credentials: Vec<CredentialView>,
    pub(super) pools: Vec<PoolView>,
    /// Failures of the API's answers about health.
    pub(super) unknown: Vec<String>,
}

pub(super) async fn show_overview(
    SignedInPerson(client): SignedInPerson,
) -> Result<ConsolePage, PageProblem> {
    let of_people = RunsQuery {
        waits_for: Some(RunsQuery::PERSON.to_owned()),
        limit: Some(RunsQuery::MOST),
        ..RunsQuery::default()
    };
    let live = RunsQuery {
        status: Some(RunState::Active),
        limit: Some(LIVE + 1),
        ..RunsQuery::default()
    };
    let failed = TicketSummariesQuery {
        standing: Some(TicketStanding::Failed),
        limit: Some(FAILED + 1),
        ..TicketSummariesQuery::default()
    };
    let period = ActivityQuery::default();
    let (waiting, live, failed, activity, health) = tokio::join!(
        client.runs().list(&of_people),
        client.runs().list(&live),
        client.tickets().summaries(&failed),
        client.installation().activity(&period),
        // Boxed, because five requests at once make a large future.
        Box::pin(HealthSigns::read(&client)),
    );
    let readings = OverviewReadings {
        waiting: waiting?,
        live: live?,
        failed: failed?,
        activity: activity?,
        health,
    };
    Ok(ConsolePage::new(
        NavigationEntry::Overview,
        "Overview",
        render_overview(&readings, bootstrap::read_wall_clock()),
    ))
}

impl HealthSigns {
    /// Reads the signs. A failed answer is a sign itself, so that it does not hide the rest of the page.
    async fn read(client: &api::Client) -> Self {
        let (stop_all, letters, rules, credentials, pools) = tokio::join!(
            client.installation().is_stopped(),
            client.dead_letters().list(),
            client.installation().rules(),
            client.installation().credentials(),
            client.installation().pools()
        );
        let mut unknown = Vec::new();
        Self {
            stop_all: keep_answer("the switch of the planners", stop_all, &mut unknown).unwrap_or_default(),
            letters: keep_answer("dead letters", letters, &mut unknown).unwrap_or_default(),
            rules: keep_answer("rules", rules, &mut unknown),
            credentials: keep_answer("credentials", credentials, &mut unknown).unwrap_or_default(),
            pools: keep_answer("pools", pools, &mut unknown).map_or_else(Vec::new, |view| view.pools),
            unknown,
        }
    }

    fn is_good(&self) -> bool {
        !self.stop_all.on
            && self.letters.is_empty()
            && self.rule_problems() == 0
            && !self.credentials.iter().any(|one| one.is_due)
            && !self.pools.iter().any(is_pool_idle)
            && self.unknown.is_empty()
    }

    fn rule_problems(&self) -> usize {
        self.rules.as_ref().map_or(0, |rules| rules.problems.len())
    }
}

fn keep_answer<T>(name: &str, answer: Result<T, api::Error>, unknown: &mut Vec<String>) -> Option<T> {
    answer
        .inspect_err(|refused| unknown.push(format!("{name}: {}", describe_api_error(refused).1)))
        .ok()
}

/// Returns true if the pool takes no work.
fn is_pool_idle(pool: &PoolView) -> bool {
    match pool.news {
        PoolFreshness::Current => pool.ready == 0,
        PoolFreshness::Old | PoolFreshness::Unknown => true,
    }
}

pub(super) fn render_overview(known: &OverviewReadings, now: Timestamp) -> Markup {
    html! {
        (render_health_signs(&known.health))
        div.columns {
            (render_needs_you(known, now))
            (render_live_runs(&known.live, now))
        }
        (render_results(known.activity.as_ref(), find_oldest_wait(&known.waiting), now))
    }
}

/// Time since which the longest waiting run waits.
fn find_oldest_wait(waiting: &[RunView]) -> Option<Timestamp> {
    waiting
        .iter()
        .filter_map(|run| Timestamp::parse(run.waits_since()))
        .min()
}

fn render_health_signs(health: &HealthSigns) -> Markup {
    if health.is_good() {
        return html! {};
    }
    let due = health.credentials.iter().filter(|one| one.is_due);
    let idle = health.pools.iter().filter(|pool| is_pool_idle(pool));
    html! {
        section.box.problem aria-labelledby="health-signs" {
            h2 id="health-signs" { "Something is wrong" }
            ul {
                @if health.stop_all.on {
                    li {
                        "Every planner is stopped"
                        @if let Some(by) = &health.stop_all.by { " by " (make_visible(by)) }
                        ": no ticket is worked on. " a href="/health" { "To the switch" }
                    }
                }
                @for pool in idle {
                    li { "Pool " (make_visible(&pool.name)) " takes no work. " a href="/pools" { "To the pools" } }
                }
                @if !health.letters.is_empty() {
                    li { a href="/dead" { (format_quantity(health.letters.len(), "dead letter")) } ": events that could not be handled." }
                }
                @if health.rule_problems() > 0 {
                    li { a href="/rules" { (format_quantity(health.rule_problems(), "problem")) } " in the files of rules." }
                }
                @for one in due {
                    li {
                        (make_visible(&one.words())) ". Make a new one, put it where the old one is, and set its end in "
                        code { "expires" } "."
                    }
                }
                @for unknown in &health.unknown { li { "Not known: " (unknown) } }
            }
        }
    }
}

fn render_needs_you(known: &OverviewReadings, now: Timestamp) -> Markup {
    // The API lists the newest request first. An early request may have begun to wait a minute ago.
    let mut waiting: Vec<&RunView> = known.waiting.iter().collect();
    waiting.sort_by_key(|run| Timestamp::parse(run.waits_since()));
    let failed = known.failed.iter().take(FAILED);
    let letters = known.health.letters.iter();
    let quarantined: Vec<&DeadView> = letters.filter(|letter| letter.what == "ticket").collect();
    let count = waiting.len() + quarantined.len() + failed.len();
    let has_more_failed = known.failed.len() > FAILED;
    let has_more = has_more_failed || waiting.len() >= RunsQuery::MOST;
    html! {
        section.card aria-labelledby="needs-you" {
            h2 id="needs-you" { "Needs you" @if count > 0 { " (" (count) @if has_more { "+" } ")" } }
            @if count == 0 {
                div.empty {
                    strong { "Nothing needs you." }
                    "Questions of runs, decisions about changes and failed work appear here."
                }
            } @else {
                ul.rows {
                    @for run in waiting.iter().take(WAITING) { li { (render_waiting_run(run, now)) } }
                    @for letter in quarantined { li { (render_quarantined(letter, now)) } }
                    @for ticket in failed { li { (render_failed_ticket(ticket, now)) } }
                }
            }
            @if waiting.len() > WAITING { p { a href="/runs?waits_for=person" { "All runs that wait for a person" } } }
            @if has_more_failed { p { a href="/tickets?standing=failed" { "All failed tickets" } } }
        }
    }
}

fn render_waiting_run(run: &RunView, now: Timestamp) -> Markup {
    let is_decision = run.waits_for.as_deref() == Some(WaitCondition::Decision.as_str());
    let path = if is_decision {
        format!("{}/approval", run_path(&run.id))
    } else {
        ticket_path(&run.ticket)
    };
    let questions = run
        .overview
        .as_ref()
        .map_or(&[][..], |overview| overview.questions.as_slice());
    html! {
        div.line {
            (render_chip(ChipTone::Warm, if is_decision { "Decision" } else { "Question" }))
            a.item href=(path) { (name_run(run)) }
        }
        @for question in questions {
            div.question {
                (shorten_text(&question.text, TEXT))
                @if !question.options.is_empty() {
                    ol { @for option in &question.options { li { (make_visible(option)) } } }
                }
            }
        }
        @if questions.is_empty() && is_decision { div.question { "Approve its change?" } }
        (render_run_meta(run, html! { "began to wait " (render_moment(run.waits_since(), now)) }))
    }
}

fn render_failed_ticket(ticket: &TicketSummary, now: Timestamp) -> Markup {
    let run = &ticket.last_run;
    let ended = run.finished_at.as_deref().unwrap_or(&run.started_at);
    html! {
        div.line {
            (render_chip(ChipTone::Bad, "Failed"))
            a.item href=(run_path(&run.id)) { (name_ticket(ticket)) }
        }
        @if let Some(stop) = &run.stop {
            p {
                (describe_stop(stop))
                @if let Some(detail) = stop_detail(stop) { ": " (shorten_text(&detail, TEXT)) }
            }
        }
        div.meta {
            span { a href=(ticket_path(&ticket.ticket)) { (make_visible(&ticket.ticket)) } }
            @if let Some(repository) = &ticket.repository { span { (make_visible(repository)) } }
            span { (render_moment(ended, now)) }
        }
    }
}

fn render_quarantined(letter: &DeadView, now: Timestamp) -> Markup {
    let key = letter.ticket.as_deref().unwrap_or(&letter.id);
    html! {
        div.line { (render_chip(ChipTone::Bad, "Quarantined")) a.item href=(ticket_path(key)) { (make_visible(key)) } }
        p { (shorten_text(&letter.reason, TEXT)) }
        div.meta {
            span { a href={ "/dead/" (letter.sequence) } { "letter " (letter.sequence) } }
            span { (render_moment(&letter.at, now)) }
        }
    }
}

fn render_live_runs(live: &[RunView], now: Timestamp) -> Markup {
    html! {
        section.card aria-labelledby="live-runs" {
            h2 id="live-runs" { "Running now" @if !live.is_empty() && live.len() <= LIVE { " (" (live.len()) ")" } }
            @if live.is_empty() {
                div.empty {
                    strong { "No run works now." }
                    "Move a ticket to the status that asks for work, or start it with "
                    code { "journeyman process-ticket KEY" } "."
                }
            } @else {
                ul.rows { @for run in live.iter().take(LIVE) { li { (render_live_run(run, now)) } } }
            }
            @if live.len() > LIVE { p { a href="/runs?status=active" { "All runs that work" } } }
        }
    }
}

fn render_live_run(run: &RunView, now: Timestamp) -> Markup {
    let elapsed = Timestamp::parse(&run.started_at).map(|start| now.since(start).as_secs());
    let phase = run
        .overview
        .as_ref()
        .and_then(|overview| overview.phase.as_deref());
    html! {
        div.line {
            (render_chip(ChipTone::Work, &phase.map_or_else(|| "starting".to_owned(), describe_phase)))
            a.item href=(run_path(&run.id)) { (name_run(run)) }
        }
        (render_run_meta(run, html! {
            @match elapsed { Some(seconds) => { "for " (format_span(seconds)) }, None => (make_visible(&run.started_at)) }
        }))
    }
}

/// Title of the run's ticket, or the id of a run without one.
pub(super) fn name_run(run: &RunView) -> String {
    let title = run
        .overview
        .as_ref()
        .map_or("", |overview| overview.title.as_str());
    match title.trim() {
        "" => make_visible(&run.id),
        title => make_visible(title),
    }
}

/// Title of the ticket, or the key of a ticket without one.
pub(super) fn name_ticket(ticket: &TicketSummary) -> String {
    match ticket.title.trim() {
        "" => make_visible(&ticket.ticket),
        title => make_visible(title),
    }
}

fn render_run_meta(run: &RunView, when: Markup) -> Markup {
    let overview = run.overview.as_ref();
    html! {
        div.meta {
            span { a href=(ticket_path(&run.ticket)) { (make_visible(&run.ticket)) } }
            span { (run.job) }
            @if let Some(repository) = overview.and_then(|overview| overview.repository.as_ref()) {
                span { (make_visible(repository)) }
            }
            @if let Some(actor) = overview.and_then(|overview| overview.actor.as_ref()) {
                span { "asked for by " (make_visible(actor)) }
            }
            span { (when) }
            @if let Some(overview) = overview { span { (format_overview_cost(overview)) } }
        }
    }
}
