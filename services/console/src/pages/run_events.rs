//! Parts of a run's page, one entry of its journal on a page, and all entries as JSON.

use axum::{
    Json,
    extract::{Path, Query},
};
use domain::JournalEntry;
use maud::{Markup, html};
use serde::Deserialize;

use super::{run_changes::render_changes, run_pages::entry_path, run_summary::render_summary};
use crate::{
    layout::{ConsolePage, NavigationEntry},
    person::SignedInPerson,
    problem::PageProblem,
    words::make_visible,
};

/// Renders the part of a run's page that changes with every entry. It reads the API's record of the run, not its
/// journal.
pub(super) async fn serve_summary(
    SignedInPerson(client): SignedInPerson,
    Path(id): Path<String>,
) -> Result<Markup, PageProblem> {
    let view = client.runs().read(&id.parse()?).await?;
    Ok(render_summary(&view, bootstrap::read_wall_clock()))
}

/// Query of the part that changes with a phase.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ChangesQuery {
    /// Position of the first entry on the page. The page has all entries after it.
    from: usize,
}

/// Renders the part that changes when a phase ends or a write outside is settled.
pub(super) async fn serve_changes(
    SignedInPerson(client): SignedInPerson,
    Path(id): Path<String>,
    Query(asked): Query<ChangesQuery>,
) -> Result<Markup, PageProblem> {
    let journal = client.runs().journal(&id.parse()?).await?;
    let now = bootstrap::read_wall_clock();
    Ok(render_changes(&id, &journal, &(asked.from..journal.len()), now))
}

pub(super) async fn serve_journal(
    SignedInPerson(client): SignedInPerson,
    Path(id): Path<String>,
) -> Result<Json<Vec<JournalEntry>>, PageProblem> {
    Ok(Json(client.runs().journal(&id.parse()?).await?))
}

pub(super) async fn show_entry(
    SignedInPerson(client): SignedInPerson,
    Path((id, position)): Path<(String, u64)>,
) -> Result<ConsolePage, PageProblem> {
    let entry = client.runs().entry(&id.parse()?, position).await?;
    let entry = entry.ok_or(PageProblem::NotFound)?;
    Ok(ConsolePage::new(
        NavigationEntry::Runs,
        format!("Entry {position} of {}", make_visible(&id)),
        render_entry(&id, &entry),
    ))
}

pub(super) fn render_entry(run: &str, entry: &JournalEntry) -> Markup {
    let json = serde_json::to_string_pretty(entry).unwrap_or_default();
    html! {
        p { (entry.fact.name().replace('_', " ")) ", written at " (entry.at) }
        pre tabindex="0" { (make_visible(&json)) }
        p { a href=(entry_path(run, entry.position)) { "To its place in the run" } }
    }
}
