//! Dead letters, grouped by reason.

use std::collections::BTreeMap;

use api::types::{DeadDetail, DeadView};
use axum::{Form, extract::Path, response::Redirect};
use domain::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;

use crate::{
    layout::{ConsolePage, NavigationEntry},
    moments::render_moment,
    person::SignedInPerson,
    problem::PageProblem,
    words::{make_visible, shorten_text, ticket_path},
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
    let letters = client.dead_letters().list().await?;
    Ok(ConsolePage::new(
        NavigationEntry::Dead,
        "Dead letters",
        render_letters(&letters, bootstrap::read_wall_clock()),
    ))
}

pub(super) async fn show_dead_letter(
    SignedInPerson(client): SignedInPerson,
    Path(sequence): Path<u64>,
) -> Result<ConsolePage, PageProblem> {
    let letter = client.dead_letters().read(sequence).await?;
    Ok(ConsolePage::new(
        NavigationEntry::Dead,
        format!("Dead letter {sequence}"),
        render_letter_detail(&letter, bootstrap::read_wall_clock()),
    ))
}

pub(super) async fn apply_letter_order(
    SignedInPerson(client): SignedInPerson,
    Path(sequence): Path<u64>,
    Form(asked): Form<DeadLetterForm>,
) -> Result<Redirect, PageProblem> {
    match asked.order {
        DeadLetterOrder::Retry => client.dead_letters().retry(sequence).await?,
        DeadLetterOrder::Drop => client.dead_letters().delete(sequence).await?,
    }
    Ok(Redirect::to("/dead"))
}

pub(super) fn render_letters(letters: &[DeadView], now: Timestamp) -> Markup {
    let mut by_reason: BTreeMap<&str, Vec<&DeadView>> = BTreeMap::new();
    for letter in letters {
        by_reason.entry(&letter.reason).or_default().push(letter);
    }
    html! {
        @if letters.is_empty() {
            div.empty {
                strong { "No dead letter." }
                "Events that no service could handle appear here with the reason, and can be retried."
            }
        }
        @for (reason, letters) in by_reason {
            section.card {
                h2 { (shorten_text(reason, 300)) " (" (letters.len()) ")" }
                ul.rows { @for letter in letters { li { (render_letter_line(letter, now)) } } }
            }
        }
    }
}

fn render_letter_line(letter: &DeadView, now: Timestamp) -> Markup {
    html! {
        a.item href={ "/dead/" (letter.sequence) } { (make_visible(&letter.what)) " " (letter.sequence) }
        ", " (render_moment(&letter.at, now))
        @if let Some(ticket) = &letter.ticket { ", " a href=(ticket_path(ticket)) { (make_visible(ticket)) } }
    }
}

pub(super) fn render_letter_detail(found: &DeadDetail, now: Timestamp) -> Markup {
    let letter = &found.letter;
    html! {
        section.card aria-label="Summary" {
            dl.facts {
                dt { "What" } dd { (make_visible(&letter.what)) " " (make_visible(&letter.id)) }
                dt { "Why" } dd { (make_visible(&letter.reason)) }
                dt { "When" } dd { (render_moment(&letter.at, now)) }
                @if let Some(ticket) = &letter.ticket { dt { "Ticket" } dd { a href=(ticket_path(ticket)) { (make_visible(ticket)) } } }
            }
        }
        form.row method="post" action={ "/dead/" (letter.sequence) } {
            button name="order" value="retry" { "Retry it" }
            button name="order" value="drop" { "Delete it" }
        }
        h2 { "Content" }
        pre tabindex="0" { (make_visible(&found.body)) }
    }
}
