//! Header of a run's page: its state in one sentence, its ticket and pull request, evidence, cost and time.

use api::types::{OverviewView, RunState, RunView};
use domain::{
    StopClass, Timestamp, WaitCondition,
    check::EvidenceLevel,
    text::{format_count, format_duration, group_digits},
};
use maud::{Markup, html};

use crate::{
    chips::render_external_link,
    words::{
        describe_phase, describe_run_state, format_elapsed, format_overview_cost, make_visible, run_path,
        stop_detail, ticket_path,
    },
};

/// Renders the part that changes while the run continues.
pub(super) fn render_summary(run: &RunView, now: Timestamp) -> Markup {
    html! {
        p.run-state {
            span class={ "icon " (describe_run_state(run).1) } aria-hidden="true" { (state_icon(run)) } " "
            // The time is outside, because a screen reader announces every change of a status.
            span role="status" { (render_state(run)) }
            (render_state_time(run, now))
        }
        @if let Some(detail) = run.stop.as_ref().and_then(stop_detail) { pre { (detail) } }
        @if let Some(overview) = &run.overview {
            @if overview.decides_about.is_some() {
                div.box.ask {
                    p { a href={ (run_path(&run.id)) "/approval" } { "Decide about what it asks" } }
                }
            }
            (render_run_facts(run, overview))
        } @else {
            dl.facts { (render_ticket_row(run)) }
        }
    }
}

/// Returns the sign of the run's state. The sentence beside it has the same meaning in words.
fn state_icon(run: &RunView) -> &'static str {
    match (run.status, run.stop.as_ref().map(domain::StopReason::class)) {
        (RunState::Queued, _) => "⋯",
        (RunState::Active, _) => "▶",
        (RunState::Parked, _) => "⏸",
        (RunState::Finished, Some(StopClass::Completed)) => "✓",
        (RunState::Finished, Some(StopClass::Settled) | None) => "⏹",
        (RunState::Finished, Some(StopClass::GivenBack | StopClass::ServiceFailure | StopClass::Failure)) => {
            "✗"
        }
    }
}

fn render_ticket_row(run: &RunView) -> Markup {
    html! { dt { "Ticket" } dd { a href=(ticket_path(&run.ticket)) { (make_visible(&run.ticket)) } } }
}

/// Describes the strength of the evidence, whose name in the API is `E0` to `E3`.
fn describe_level(level: &str) -> String {
    let meaning = EvidenceLevel::parse(level).map(|level| level.meaning().to_owned());
    meaning.unwrap_or_else(|| make_visible(level))
}

/// Renders the start of the sentence about the run: its state.
fn render_state(run: &RunView) -> Markup {
    let (state, class) = describe_run_state(run);
    let Some(overview) = &run.overview else {
        return html! { "The run " span class=(class) { (state) } };
    };
    match run.status {
        RunState::Finished | RunState::Parked => html! {
            "The " (run.job) " run " span class=(class) { (state) }
        },
        RunState::Queued | RunState::Active => html! {
            "The " (run.job) " run works"
            @if let Some(phase) = &overview.phase { " (" (describe_phase(phase)) ")" }
        },
    }
}

/// Renders the end of the sentence about the run: its time.
fn render_state_time(run: &RunView, now: Timestamp) -> Markup {
    let Some(overview) = &run.overview else {
        return html! { "." };
    };
    let ended = run.finished_at.as_ref().unwrap_or(&overview.updated_at);
    let at = |text: &str| Timestamp::parse(text).unwrap_or_default();
    let end = match run.status {
        // A run at work may write no entry for minutes.
        RunState::Active => now,
        RunState::Queued | RunState::Parked | RunState::Finished => at(ended),
    };
    let after = format_elapsed(at(&run.started_at), end);
    match (run.status, &run.stop) {
        (RunState::Finished, Some(_)) => html! { " after " (after) "." },
        (RunState::Finished, None) | (RunState::Parked, _) => html! {
            "."
            @if run.waits_for.as_deref() == Some(WaitCondition::Answer.as_str()) {
                " " a href=(ticket_path(&run.ticket)) { "To the ticket" }
            }
        },
        (RunState::Queued | RunState::Active, _) => html! { ", " (after) " so far." },
    }
}

fn render_run_facts(run: &RunView, overview: &OverviewView) -> Markup {
    html! {
        dl.facts {
            @if !overview.title.is_empty() { dt { "Asked for" } dd { strong { (make_visible(&overview.title)) } } }
            (render_ticket_row(run))
            @for pull in &overview.pull_requests {
                dt { "Pull request" }
                dd { (render_external_link(&pull.url, &pull.url)) }
            }
            @if let Some(level) = &overview.evidence { dt { "Evidence" } dd { (describe_level(level)) } }
            dt { "Cost" }
            dd { (format_overview_cost(overview)) }
            @if let Some(repository) = &overview.repository { dt { "Repository" } dd { (make_visible(repository)) } }
            @if let Some(branch) = &overview.branch { dt { "Branch" } dd { code { (make_visible(branch)) } } }
            @if let Some(actor) = &overview.actor { dt { "Asked by" } dd { (make_visible(actor)) } }
            dt { "Time" }
            dd {
                "model " (format_duration(overview.model_ms)) ", tools " (format_duration(overview.tools_ms))
                ", waiting " (format_duration(overview.waiting_ms))
            }
            dt { "Model" }
            dd {
                (format_count(run.turns.into(), "turn")) ", " (format_count(overview.tool_calls.into(), "tool")) "; "
                (group_digits(overview.input_tokens)) " tokens in, " (group_digits(overview.cached_tokens))
                " of them cached, " (group_digits(overview.output_tokens)) " out"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{Dollars, PullRequestRef, StopReason};

    use super::*;
    use crate::pages::tests::build_run_view;

    fn build_overview() -> OverviewView {
        OverviewView {
            title: "Count every item".to_owned(),
            evidence: Some("E3".to_owned()),
            cost_usd: Dollars::from_micros(230_000),
            updated_at: "2026-11-25T09:30:40Z".to_owned(),
            pull_requests: vec![PullRequestRef {
                repository: "acme/shop".parse().unwrap(),
                number: 7,
                url: "https://github.com/acme/shop/pull/7".to_owned(),
                branch: "fix/ENG-12".to_owned(),
            }],
            ..OverviewView::default()
        }
    }

    #[test]
    fn header_names_ticket_change_and_evidence() {
        let mut run = build_run_view(RunState::Finished, None, Some(StopReason::Completed));
        run.finished_at = Some("2026-11-25T09:30:40.345Z".to_owned());
        run.overview = Some(build_overview());
        let page = render_summary(&run, Timestamp::default()).into_string();
        for part in [
            "aria-hidden=\"true\">✓</span>",
            "completed</span></span> after 28 s.",
            "<dt>Ticket</dt><dd><a href=\"/tickets/jira%3AENG-12\">jira:ENG-12</a></dd>",
            "<a href=\"https://github.com/acme/shop/pull/7\"",
            "<dt>Evidence</dt><dd>a test fails without the change and passes with it</dd>",
            "<dt>Cost</dt><dd>$0.23</dd>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains("E3"), "{page}");
    }

    #[test]
    fn live_run_counts_time_until_now() {
        let mut run = build_run_view(RunState::Active, None, None);
        run.overview = Some(build_overview());
        let now = Timestamp::parse("2026-11-25T09:32:12.345Z").unwrap();
        let page = render_summary(&run, now).into_string();
        assert!(
            page.contains("run works</span>, 2 min 0 s so far") && page.contains(">▶<"),
            "{page}"
        );
    }

    #[test]
    fn run_that_has_not_begun_names_its_ticket() {
        let page = render_summary(
            &build_run_view(RunState::Queued, None, None),
            Timestamp::default(),
        );
        let page = page.into_string();
        assert!(
            page.contains("waits for earlier runs") && page.contains(">jira:ENG-12</a>"),
            "{page}"
        );
    }
}
