//! Words for the API's values. Text of others passes [`make_visible`] before it reaches a page.

use api::types::{OverviewView, RunState, RunView};
use domain::{
    DecisionVerdict, Dollars, StopClass, StopReason, Timestamp, WaitCondition,
    address::percent_encode,
    text::{escape_hidden, format_duration},
};

/// Spells out characters that hide or reorder text. Markup is escaped where it is rendered.
pub(crate) fn make_visible(text: &str) -> String {
    escape_hidden(text)
}

/// Returns the text on one line, truncated to `limit` characters.
pub(crate) fn shorten_text(text: &str, limit: usize) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    make_visible(&domain::text::truncate_text(&flat, limit))
}

pub(crate) fn run_path(run: &str) -> String {
    format!("/runs/{}", percent_encode(run))
}

pub(crate) fn ticket_path(ticket: &str) -> String {
    format!("/tickets/{}", percent_encode(ticket))
}

/// Returns the address if a browser may follow it: `http` and `https` alone, not `javascript:`.
pub(crate) fn web_address(url: &str) -> Option<&str> {
    (url.starts_with("https://") || url.starts_with("http://")).then_some(url)
}

pub(crate) fn format_elapsed(from: Timestamp, to: Timestamp) -> String {
    format_duration(u64::try_from(to.since(from).as_millis()).unwrap_or(u64::MAX))
}

/// Formats RFC 3339 in UTC as `2026-11-25 09:30:12 UTC`.
pub(crate) fn format_instant(text: &str) -> String {
    let text = make_visible(text);
    match (text.get(..10), text.get(11..19)) {
        (Some(day), Some(time)) => format!("{day} {time} UTC"),
        _ => text,
    }
}

/// Formats a number of things: `1 run`, `2 runs`.
pub(crate) fn format_quantity(number: usize, noun: &str) -> String {
    domain::text::format_count(u64::try_from(number).unwrap_or(u64::MAX), noun)
}

/// Formats an amount, and the number of replies whose price is unknown.
pub(crate) fn format_money(cost: Dollars, unpriced: u64) -> String {
    match unpriced {
        0 => cost.to_string(),
        1 => format!("{cost} and 1 reply without a known price"),
        unpriced => format!("{cost} and {unpriced} replies without a known price"),
    }
}

/// Formats the cost of a run.
pub(crate) fn format_overview_cost(overview: &OverviewView) -> String {
    format_money(overview.cost_usd, u64::from(overview.unpriced))
}

pub(crate) const fn describe_verdict(verdict: DecisionVerdict) -> &'static str {
    match verdict {
        DecisionVerdict::Approve => "approved it",
        DecisionVerdict::Reject => "rejected it",
        DecisionVerdict::Revise => "asked for changes",
    }
}

/// Parses the condition that a parked run waits for; `None` for a condition of a later release.
pub(crate) fn parse_wait(waits_for: &str) -> Option<WaitCondition> {
    serde_json::from_value(waits_for.into()).ok()
}

/// Describes the condition that a parked run waits for.
pub(crate) fn describe_wait(waits_for: &str) -> String {
    match parse_wait(waits_for) {
        Some(known) => known.words().to_owned(),
        None => format!("waits for {}", make_visible(waits_for)),
    }
}

/// Describes the phase of a run, whose name in the API has underscores.
pub(crate) fn describe_phase(phase: &str) -> String {
    make_visible(&phase.replace('_', " "))
}

/// Describes the state of a run, with its style class.
pub(crate) fn describe_run_state(run: &RunView) -> (String, &'static str) {
    match (run.status, &run.stop, run.waits_for.as_deref()) {
        (RunState::Queued, ..) => ("waits for earlier runs".to_owned(), "soft"),
        (RunState::Active, ..) => ("works".to_owned(), ""),
        (RunState::Parked, _, waits_for) => (describe_wait(waits_for.unwrap_or("something")), "warm"),
        (RunState::Finished, Some(stop), _) => (describe_stop(stop).to_owned(), stop_tone(stop)),
        (RunState::Finished, None, _) => ("finished".to_owned(), ""),
    }
}

/// Returns the style class of a stop reason.
pub(crate) const fn stop_tone(stop: &StopReason) -> &'static str {
    match stop.class() {
        StopClass::Completed => "good",
        StopClass::Settled => "soft",
        StopClass::GivenBack | StopClass::ServiceFailure | StopClass::Failure => "bad",
    }
}

/// Describes the reason for the end of a run.
pub(crate) const fn describe_stop(stop: &StopReason) -> &'static str {
    match stop {
        StopReason::Completed => "completed",
        StopReason::NoChange { .. } => "ended without a change",
        StopReason::Unfinished { .. } => "ended before the change was complete",
        StopReason::ChecksFail { .. } => "its own checks fail",
        StopReason::TurnLimit { .. } => "reached its limit of turns",
        StopReason::NoPlan => "made no plan",
        StopReason::Stuck(_) => "went in circles",
        StopReason::BudgetSpent { .. } => "spent its budget",
        StopReason::SharedBudgetSpent(_) => "found a shared budget spent",
        StopReason::PriceUnknown { .. } => "stopped: the model has no known price",
        StopReason::Stopped { .. } => "was stopped",
        StopReason::Rejected { .. } => "was rejected",
        StopReason::GivenUp { .. } => "gave up",
        StopReason::ConflictLeft { .. } => "left the conflict to people",
        StopReason::RevisionLimit { .. } => "was sent back too often",
        StopReason::ModelRefused => "stopped: the model refused",
        StopReason::ContextTooLong => "became too long for the model",
        StopReason::ModelFailed { .. } => "failed: the model",
        StopReason::WorkspaceUnavailable { .. } => "failed: no workspace",
        StopReason::SetupFailed { .. } => "failed: the setup commands",
        StopReason::ReportRefused(_) => "stopped: what it had to write was refused",
        StopReason::ReportFailed { .. } => "failed: it could not write outside",
        StopReason::UnsupportedJob => "stopped: this release does not know the job",
        StopReason::JournalUnreadable => "failed: its journal cannot be read",
        StopReason::JournalLost => "failed: its journal is gone",
        StopReason::Superseded => "gave way to a newer request",
        StopReason::Withdrawn { .. } => "was not wanted any more",
        StopReason::TicketLeft(_) => "stopped: its ticket left its place",
    }
}

/// Returns the details of a stop reason as the run recorded them. They may have several lines.
pub(crate) fn stop_detail(stop: &StopReason) -> Option<String> {
    stop.detail().map(|detail| make_visible(&detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_are_short() {
        assert_eq!(
            format_instant("2026-11-25T09:30:12.345Z"),
            "2026-11-25 09:30:12 UTC"
        );
        assert_eq!(format_instant("soon"), "soon");
        assert_eq!(format_quantity(1, "run"), "1 run");
        assert_eq!(format_quantity(1_200, "run"), "1,200 runs");
    }

    #[test]
    fn only_addresses_of_the_web_become_links() {
        assert!(web_address("https://github.com/acme/shop/pull/7").is_some());
        for wrong in ["javascript:alert(1)", "data:text/html,x", " https://x", "//x"] {
            assert_eq!(web_address(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn ticket_key_is_one_path_segment() {
        assert_eq!(
            ticket_path("github:acme/shop#7"),
            "/tickets/github%3Aacme%2Fshop%237"
        );
    }
}
