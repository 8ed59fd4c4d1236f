//! Dead letters, grouped by reason.

use std::collections::BTreeMap;

use api::types::{DeadDetail, DeadView};
use axum::{Form, extract::Path, response::Redirect};
use maud::{Markup, html};
use serde::Deserialize;

use crate::{
    layout::{Page, Place},
    person::Person,
    problem::Problem,
    words::{instant, short, shown, ticket_path},
};

/// Action for a dead letter.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    Retry,
    Drop,
}

#[derive(Deserialize)]
pub(super) struct Asked {
    order: Order,
}

pub(super) async fn list(Person(client): Person) -> Result<Page, Problem> {
    let letters = client.dead_letters().await?;
    Ok(Page::new(Place::Dead, "Dead letters", body(&letters)))
}

pub(super) async fn show(Person(client): Person, Path(sequence): Path<u64>) -> Result<Page, Problem> {
    let letter = client.dead_letter(sequence).await?;
    Ok(Page::new(
        Place::Dead,
        format!("Dead letter {sequence}"),
        detail(&letter),
    ))
}

pub(super) async fn act(
    Person(client): Person,
    Path(sequence): Path<u64>,
    Form(asked): Form<Asked>,
) -> Result<Redirect, Problem> {
    match asked.order {
        Order::Retry => client.retry_dead_letter(sequence).await?,
        Order::Drop => client.drop_dead_letter(sequence).await?,
    }
    Ok(Redirect::to("/dead"))
}

pub(super) fn body(letters: &[DeadView]) -> Markup {
    let mut by_reason: BTreeMap<&str, Vec<&DeadView>> = BTreeMap::new();
    for letter in letters {
        by_reason.entry(&letter.reason).or_default().push(letter);
    }
    html! {
        @if letters.is_empty() { p { "There is none." } }
        @for (reason, letters) in by_reason {
            h2 { (short(reason, 300)) " (" (letters.len()) ")" }
            ul { @for letter in letters { li { (line(letter)) } } }
        }
    }
}

fn line(letter: &DeadView) -> Markup {
    html! {
        a href={ "/dead/" (letter.sequence) } { (shown(&letter.what)) " " (letter.sequence) }
        ", " (instant(&letter.at))
        @if let Some(ticket) = &letter.ticket { ", " a href=(ticket_path(ticket)) { (shown(ticket)) } }
    }
}

pub(super) fn detail(found: &DeadDetail) -> Markup {
    let letter = &found.letter;
    html! {
        dl.facts {
            dt { "What" } dd { (shown(&letter.what)) " " (shown(&letter.id)) }
            dt { "Why" } dd { (shown(&letter.reason)) }
            dt { "When" } dd { (instant(&letter.at)) }
            @if let Some(ticket) = &letter.ticket { dt { "Ticket" } dd { a href=(ticket_path(ticket)) { (shown(ticket)) } } }
        }
        form.row method="post" action={ "/dead/" (letter.sequence) } {
            button name="order" value="retry" { "Try it once more" }
            button name="order" value="drop" { "Forget it" }
        }
        h2 { "What it is about" }
        pre tabindex="0" { (shown(&found.body)) }
    }
}
