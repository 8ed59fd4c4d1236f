//! Needs you: everything that waits for a person, in one list.

use std::collections::BTreeSet;

use api::types::{CredentialView, DeadView, RulesView, RunState, RunView, RunsQuery, StopAllView};
use maud::{Markup, html};

use crate::{
    layout::{Page, Place},
    person::Person,
    problem::Problem,
    words::{detail, heading, instant, needs_a_look, run_path, short, shown, ticket_path},
};

/// Candidates for the list, as the API returned them.
#[derive(Default)]
pub(super) struct Open {
    /// Runs that wait for a person, and the newest of the others.
    pub(super) runs: Vec<RunView>,
    pub(super) letters: Vec<DeadView>,
    pub(super) rules: Option<RulesView>,
    pub(super) stop_all: StopAllView,
    /// All credentials, due or not.
    pub(super) credentials: Vec<CredentialView>,
}

pub(super) async fn show(Person(client): Person) -> Result<Page, Problem> {
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
    let open = Open {
        runs,
        letters: letters?,
        rules: Some(rules?),
        stop_all: stop_all?,
        credentials: credentials?,
    };
    Ok(Page::new(Place::NeedsYou, "Needs you", body(&open)))
}

fn waits_for_person(run: &RunView) -> bool {
    matches!(run.waits_for.as_deref(), Some("decision" | "answer"))
}

impl Open {
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
        last.filter(|run| run.stop.as_ref().is_some_and(needs_a_look))
            .collect()
    }
}

pub(super) fn body(open: &Open) -> Markup {
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
        @if open.stop_all.on { (stopped(&open.stop_all)) }
        @if is_quiet { p { "Nothing waits for you." } }
        (section("Decisions", &decisions, |run| html! {
            a href={ (run_path(&run.id)) "/approval" } { (shown(&run.id)) }
            " (" (run.job) ") waits for a decision; it began at " (instant(&run.started_at))
        }))
        (section("Questions", &questions, |run| html! {
            a href=(ticket_path(&run.ticket)) { (shown(&run.ticket)) }
            " has a question of " a href=(run_path(&run.id)) { "run " (shown(&run.id)) }
        }))
        (section("Failed", &failed, |run| html! {
            a href=(run_path(&run.id)) { (shown(&run.id)) } " (" (run.job) ") "
            @if let Some(stop) = &run.stop {
                span.bad { (heading(stop)) }
                @if let Some(detail) = detail(stop) { ": " (short(&detail, 200)) }
            }
        }))
        (section("Quarantined", &quarantined, |letter| html! {
            a href=(ticket_path(letter.ticket.as_deref().unwrap_or(&letter.id))) { (shown(letter.ticket.as_deref().unwrap_or(&letter.id))) }
            ": " (short(&letter.reason, 200))
            " (" a href={ "/dead/" (letter.sequence) } { "letter " (letter.sequence) } ")"
        }))
        (section("Dead letters", &dead, |letter| html! {
            a href={ "/dead/" (letter.sequence) } { (shown(&letter.what)) " " (letter.sequence) }
            ": " (short(&letter.reason, 200))
        }))
        (section("Expiring credentials", &credentials, |end| html! {
            (shown(&end.words())) ". Make a new one, put it where the old one is, and set its end in "
            code { "expires" } "."
        }))
        @if !problems.is_empty() {
            h2 { "Rules" }
            p { a href="/rules" { (problems.len()) " problems" } " in the files of rules." }
        }
    }
}

fn stopped(switch: &StopAllView) -> Markup {
    html! {
        div.box.problem {
            p {
                "Every planner is stopped"
                @if let Some(by) = &switch.by { " by " (shown(by)) }
                ". " a href="/health" { "To the switch" }
            }
        }
    }
}

fn section<T>(name: &str, all: &[T], line: impl Fn(&T) -> Markup) -> Markup {
    html! {
        @if !all.is_empty() {
            h2 { (name) " (" (all.len()) ")" }
            ul { @for one in all { li { (line(one)) } } }
        }
    }
}
