//! Health: the API's view of the system, and the switch that stops every planner.

use api::types::{DeadView, RulesView, RunState, RunView, StopAllView};
use axum::{Form, response::Redirect};
use maud::{Markup, html};
use serde::Deserialize;

use crate::{
    layout::{Page, Place},
    person::Person,
    problem::Problem,
    words::{instant, shown},
};

/// Form field with the wanted position of the switch.
#[derive(Deserialize)]
pub(super) struct Switch {
    stop_all: bool,
}

/// Responses of the API for the page.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) stop_all: StopAllView,
    pub(super) runs: Vec<RunView>,
    pub(super) letters: Vec<DeadView>,
    pub(super) rules: Option<RulesView>,
}

pub(super) async fn show(Person(client): Person) -> Result<Page, Problem> {
    let (stop_all, runs, letters, rules) = tokio::join!(
        client.is_stopped(),
        client.runs(None),
        client.dead_letters(),
        client.rules()
    );
    let seen = Seen {
        stop_all: stop_all?,
        runs: runs?,
        letters: letters?,
        rules: Some(rules?),
    };
    Ok(Page::new(Place::Health, "Health", body(&seen)))
}

pub(super) async fn switch(Person(client): Person, Form(switch): Form<Switch>) -> Result<Redirect, Problem> {
    client.stop_all(switch.stop_all).await?;
    Ok(Redirect::to("/health"))
}

pub(super) fn body(seen: &Seen) -> Markup {
    let (works, problems) = seen
        .rules
        .as_ref()
        .map_or((0, 0), |rules| (rules.repositories.len(), rules.problems.len()));
    let in_state = |wanted| seen.runs.iter().filter(|run| run.status == wanted).count();
    html! {
        dl.facts {
            dt { "API" } dd { span.good { "answers" } }
            dt { "Planners" }
            dd { @if seen.stop_all.on { span.bad { "stopped" } } @else { span.good { "may work" } } }
            @for one in [RunState::Queued, RunState::Active, RunState::Parked] {
                dt { "Runs " (one.as_str()) } dd { (in_state(one)) " of the last " (seen.runs.len()) }
            }
            dt { "Dead letters" } dd { a href="/dead" { (seen.letters.len()) } }
            dt { "Rules" } dd { (works) " repositories, " a href="/rules" { (problems) " problems" } }
        }
        h2 { "Stop everything" }
        (stop_all(&seen.stop_all))
    }
}

fn stop_all(switch: &StopAllView) -> Markup {
    html! {
        @if switch.on {
            p {
                "No ticket is worked on"
                @if let Some(by) = &switch.by { ", because " (shown(by)) " stopped every planner" }
                @if let Some(at) = &switch.at { " at " (instant(at)) }
                "."
            }
        } @else {
            p { "Stops every planner after the step that it is at, until somebody lets them go on. An admin may do this." }
        }
        form method="post" action="/health" {
            input type="hidden" name="stop_all" value=(!switch.on);
            button { @if switch.on { "Let the planners go on" } @else { "Stop every planner" } }
        }
    }
}
