//! Health: the API's view of the system, and the switch that stops every planner.

use api::types::{DeadView, RulesView, RunState, RunView, StopAllView};
use axum::{Form, response::Redirect};
use maud::{Markup, html};
use serde::Deserialize;

use crate::{
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::PageProblem,
    words::{format_instant, make_visible},
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
        client.is_stopped(),
        client.runs(None),
        client.dead_letters(),
        client.rules()
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
        render_health(&seen),
    ))
}

pub(super) async fn switch_planners(
    SignedInPerson(client): SignedInPerson,
    Form(switch): Form<StopAllForm>,
) -> Result<Redirect, PageProblem> {
    client.stop_all(switch.stop_all).await?;
    Ok(Redirect::to("/health"))
}

pub(super) fn render_health(seen: &HealthReadings) -> Markup {
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
                @if let Some(by) = &switch.by { ", because " (make_visible(by)) " stopped every planner" }
                @if let Some(at) = &switch.at { " at " (format_instant(at)) }
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
