//! Dead letters, grouped by reason.

use std::collections::BTreeMap;

use api::types::{DeadDetail, DeadView};
use axum::{Form, extract::Path, response::Redirect};
use maud::{Markup, html};
use serde::Deserialize;

use crate::{
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::PageProblem,
    words::{format_instant, make_visible, shorten_text, ticket_path},
};

/// Action for a dead letter.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum DeadLetterOrder {
    Retry,
    Drop,
}

#[derive(Deserialize)]
pub(super) struct DeadLetterForm {
    order: DeadLetterOrder,
}

pub(super) async fn list_dead_letters(
    SignedInPerson(client): SignedInPerson,
) -> Result<ConsolePage, PageProblem> {
    let letters = client.dead_letters().await?;
    Ok(ConsolePage::new(
        NavigationEntry::Dead,
        "Dead letters",
        render_letters(&letters),
    ))
}

pub(super) async fn show_dead_letter(
    SignedInPerson(client): SignedInPerson,
    Path(sequence): Path<u64>,
) -> Result<ConsolePage, PageProblem> {
    let letter = client.dead_letter(sequence).await?;
    Ok(ConsolePage::new(
        NavigationEntry::Dead,
        format!("Dead letter {sequence}"),
        render_letter_detail(&letter),
    ))
}

pub(super) async fn apply_letter_order(
    SignedInPerson(client): SignedInPerson,
    Path(sequence): Path<u64>,
    Form(asked): Form<DeadLetterForm>,
) -> Result<Redirect, PageProblem> {
    match asked.order {
        DeadLetterOrder::Retry => client.retry_dead_letter(sequence).await?,
        DeadLetterOrder::Drop => client.drop_dead_letter(sequence).await?,
    }
    Ok(Redirect::to("/dead"))
}

pub(super) fn render_letters(letters: &[DeadView]) -> Markup {
    let mut by_reason: BTreeMap<&str, Vec<&DeadView>> = BTreeMap::new();
    for letter in letters {
        by_reason.entry(&letter.reason).or_default().push(letter);
    }
    html! {
        @if letters.is_empty() { p { "There is none." } }
        @for (reason, letters) in by_reason {
            h2 { (shorten_text(reason, 300)) " (" (letters.len()) ")" }
            ul { @for letter in letters { li { (render_letter_line(letter)) } } }
        }
    }
}

fn render_letter_line(letter: &DeadView) -> Markup {
    html! {
        a href={ "/dead/" (letter.sequence) } { (make_visible(&letter.what)) " " (letter.sequence) }
        ", " (format_instant(&letter.at))
        @if let Some(ticket) = &letter.ticket { ", " a href=(ticket_path(ticket)) { (make_visible(ticket)) } }
    }
}

pub(super) fn render_letter_detail(found: &DeadDetail) -> Markup {
    let letter = &found.letter;
    html! {
        dl.facts {
            dt { "What" } dd { (make_visible(&letter.what)) " " (make_visible(&letter.id)) }
            dt { "Why" } dd { (make_visible(&letter.reason)) }
            dt { "When" } dd { (format_instant(&letter.at)) }
            @if let Some(ticket) = &letter.ticket { dt { "Ticket" } dd { a href=(ticket_path(ticket)) { (make_visible(ticket)) } } }
        }
        form.row method="post" action={ "/dead/" (letter.sequence) } {
            button name="order" value="retry" { "Try it once more" }
            button name="order" value="drop" { "Forget it" }
        }
        h2 { "What it is about" }
        pre tabindex="0" { (make_visible(&found.body)) }
    }
}
