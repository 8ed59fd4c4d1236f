//! Health: the API's view of the system, and the switch that stops every planner.

use api::types::{DeadView, RulesView, RunState, RunView, StopAllView};
use axum::{Form, response::Redirect};
use domain::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use crate::{
    chips::{ChipTone, render_chip},
    layout::{ConsolePage, NavigationEntry},
    moments::render_moment,
    person::SignedInPerson,
    problem::PageProblem,
    words::{format_quantity, make_visible},
};

/// Form field with the wanted position of the switch.
#[derive(Deserialize)]
pub(super) struct StopAllForm {
    stop_all: bool,
}

/// Responses of the API for the page.
#[derive(Default)]
pub(super) struct HealthReadings {
    pub(super) stop_all: StopAllView,
    pub(super) runs: Vec<RunView>,
    pub(super) letters: Vec<DeadView>,
    pub(super) rules: Option<RulesView>,
}

pub(super) async fn show_health(SignedInPerson(client): SignedInPerson) -> Result<ConsolePage, PageProblem> {
    let (stop_all, runs, letters, rules) = tokio::join!(
        client.installation().is_stopped(),
        client.runs().recent(None),
        client.dead_letters().list(),
        client.installation().rules()
    );
    let seen = HealthReadings {
        stop_all: stop_all?,
        runs: runs?,
        letters: letters?,
        rules: Some(rules?),
    };
    Ok(ConsolePage::new(
        NavigationEntry::Health,
        "Health",
        render_health(&seen, bootstrap::read_wall_clock()),
    ))
}

pub(super) async fn switch_planners(
    SignedInPerson(client): SignedInPerson,
    Form(switch): Form<StopAllForm>,
) -> Result<Redirect, PageProblem> {
    client.installation().stop_all(switch.stop_all).await?;
    Ok(Redirect::to("/health"))
}

pub(super) fn render_health(seen: &HealthReadings, now: Timestamp) -> Markup {
    let (works, problems) = seen
        .rules
        .as_ref()
        .map_or((0, 0), |rules| (rules.repositories.len(), rules.problems.len()));
    let in_state = |wanted| seen.runs.iter().filter(|run| run.status == wanted).count();
    html! {
        section.card aria-label="State" {
            dl.facts {
                dt { "API" } dd { (render_chip(ChipTone::Good, "answers")) }
                dt { "Planners" }
                dd { @if seen.stop_all.on { (render_chip(ChipTone::Bad, "stopped")) } @else { (render_chip(ChipTone::Good, "may work")) } }
                @for one in [RunState::Queued, RunState::Active, RunState::Parked] {
                    dt { "Runs " (one.as_str()) } dd { (in_state(one)) " of the last " (seen.runs.len()) }
                }
                dt { "Dead letters" } dd { a href="/dead" { (seen.letters.len()) } }
                dt { "Rules" } dd { (format_repositories(works)) ", " a href="/rules" { (format_quantity(problems, "problem")) } }
            }
        }
        section.card aria-labelledby="stop-all" {
            h2 id="stop-all" { "Stop everything" }
            (render_switch(&seen.stop_all, now))
        }
    }
}

fn format_repositories(count: usize) -> String {
    match count {
        1 => "1 repository".to_owned(),
        count => format!("{count} repositories"),
    }
}

fn render_switch(switch: &StopAllView, now: Timestamp) -> Markup {
    html! {
        @if switch.on {
            p {
                "No ticket is worked on"
                @if let Some(by) = &switch.by { ", because " (make_visible(by)) " stopped every planner" }
                @if let Some(at) = &switch.at { " " (render_moment(at, now)) }
                "."
            }
        } @else {
            p { "Stops every planner after its current step, until an admin lets them continue. Only an admin may do this." }
        }
        form method="post" action="/health" {
            input type="hidden" name="stop_all" value=(!switch.on);
            button { @if switch.on { "Let the planners continue" } @else { "Stop every planner" } }
        }
    }
}
