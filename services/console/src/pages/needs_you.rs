//! Needs you: everything that waits for a person, in one list.

use std::collections::BTreeSet;

use api::types::{CredentialView, DeadView, RulesView, RunState, RunView, RunsQuery, StopAllView};
use domain::StopReason;
use maud::{Markup, html};

use crate::{
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::PageProblem,
    words::{describe_stop, format_instant, make_visible, run_path, shorten_text, stop_detail, ticket_path},
};

/// Candidates for the list, as the API returned them.
#[derive(Default)]
pub(super) struct AttentionItems {
    /// Runs that wait for a person, and the newest of the others.
    pub(super) runs: Vec<RunView>,
    pub(super) letters: Vec<DeadView>,
    pub(super) rules: Option<RulesView>,
    pub(super) stop_all: StopAllView,
    /// All credentials, due or not.
    pub(super) credentials: Vec<CredentialView>,
}

pub(super) async fn show_needs_you(
    SignedInPerson(client): SignedInPerson,
) -> Result<ConsolePage, PageProblem> {
    let of_people = RunsQuery {
        waits_for: Some(RunsQuery::PERSON.to_owned()),
        limit: Some(RunsQuery::MOST),
        ..RunsQuery::default()
    };
    let newest = RunsQuery::default();
    let (waiting, newest, letters, rules, stop_all, credentials) = tokio::join!(
        client.list_runs(&of_people),
        client.list_runs(&newest),
        client.dead_letters(),
        client.rules(),
        client.is_stopped(),
        client.credentials()
    );
    // The longest waiting runs may be older than the newest page, so both lists are read.
    let (mut runs, newest) = (waiting?, newest?);
    runs.extend(newest.into_iter().filter(|run| !waits_for_person(run)));
    let open = AttentionItems {
        runs,
        letters: letters?,
        rules: Some(rules?),
        stop_all: stop_all?,
        credentials: credentials?,
    };
    Ok(ConsolePage::new(
        NavigationEntry::NeedsYou,
        "Needs you",
        render_needs_you(&open),
    ))
}

fn waits_for_person(run: &RunView) -> bool {
    matches!(run.waits_for.as_deref(), Some("decision" | "answer"))
}

impl AttentionItems {
    fn parked(&self, wanted: &str) -> Vec<&RunView> {
        let parked = self.runs.iter().filter(|run| run.status == RunState::Parked);
        parked
            .filter(|run| run.waits_for.as_deref() == Some(wanted))
            .collect()
    }

    /// Returns runs that failed and are the last run of their ticket.
    fn failed(&self) -> Vec<&RunView> {
        // The API lists the newest run first, so the first one of a ticket is its last run.
        let mut seen = BTreeSet::new();
        let last = self.runs.iter().filter(|run| seen.insert(run.ticket.as_str()));
        last.filter(|run| run.stop.as_ref().is_some_and(StopReason::is_failure))
            .collect()
    }
}

pub(super) fn render_needs_you(open: &AttentionItems) -> Markup {
    let (decisions, questions, failed) = (open.parked("decision"), open.parked("answer"), open.failed());
    let (quarantined, dead): (Vec<_>, Vec<_>) =
        open.letters.iter().partition(|letter| letter.what == "ticket");
    let problems = open
        .rules
        .as_ref()
        .map_or(&[][..], |rules| rules.problems.as_slice());
    let credentials: Vec<_> = open.credentials.iter().filter(|end| end.is_due).collect();
    let is_quiet = decisions.is_empty()
        && credentials.is_empty()
        && questions.is_empty()
        && failed.is_empty()
        && open.letters.is_empty()
        && problems.is_empty();
    html! {
        @if open.stop_all.on { (render_stop_notice(&open.stop_all)) }
        @if is_quiet { p { "Nothing waits for you." } }
        (render_section("Decisions", &decisions, |run| html! {
            a href={ (run_path(&run.id)) "/approval" } { (make_visible(&run.id)) }
            " (" (run.job) ") waits for a decision; it began at " (format_instant(&run.started_at))
        }))
        (render_section("Questions", &questions, |run| html! {
            a href=(ticket_path(&run.ticket)) { (make_visible(&run.ticket)) }
            " has a question of " a href=(run_path(&run.id)) { "run " (make_visible(&run.id)) }
        }))
        (render_section("Failed", &failed, |run| html! {
            a href=(run_path(&run.id)) { (make_visible(&run.id)) } " (" (run.job) ") "
            @if let Some(stop) = &run.stop {
                span.bad { (describe_stop(stop)) }
                @if let Some(detail) = stop_detail(stop) { ": " (shorten_text(&detail, 200)) }
            }
        }))
        (render_section("Quarantined", &quarantined, |letter| html! {
            a href=(ticket_path(letter.ticket.as_deref().unwrap_or(&letter.id))) { (make_visible(letter.ticket.as_deref().unwrap_or(&letter.id))) }
            ": " (shorten_text(&letter.reason, 200))
            " (" a href={ "/dead/" (letter.sequence) } { "letter " (letter.sequence) } ")"
        }))
        (render_section("Dead letters", &dead, |letter| html! {
            a href={ "/dead/" (letter.sequence) } { (make_visible(&letter.what)) " " (letter.sequence) }
            ": " (shorten_text(&letter.reason, 200))
        }))
        (render_section("Expiring credentials", &credentials, |end| html! {
            (make_visible(&end.words())) ". Make a new one, put it where the old one is, and set its end in "
            code { "expires" } "."
        }))
        @if !problems.is_empty() {
            h2 { "Rules" }
            p { a href="/rules" { (problems.len()) " problems" } " in the files of rules." }
        }
    }
}

fn render_stop_notice(switch: &StopAllView) -> Markup {
    html! {
        div.box.problem {
            p {
                "Every planner is stopped"
                @if let Some(by) = &switch.by { " by " (make_visible(by)) }
                ". " a href="/health" { "To the switch" }
            }
        }
    }
}

fn render_section<T>(name: &str, all: &[T], line: impl Fn(&T) -> Markup) -> Markup {
    html! {
        @if !all.is_empty() {
            h2 { (name) " (" (all.len()) ")" }
            ul { @for one in all { li { (line(one)) } } }
        }
    }
}
