//! The stored journal: one entry on a page, or all entries as JSON.

use axum::{Json, extract::Path};
use domain::Entry;
use maud::{Markup, html};

use crate::{
    layout::{Page, Place},
    person::Person,
    problem::Problem,
    words::{run_path, shown},
};

pub(super) async fn journal(
    Person(client): Person,
    Path(id): Path<String>,
) -> Result<Json<Vec<Entry>>, Problem> {
    Ok(Json(client.journal(&id.parse()?).await?))
}

pub(super) async fn show(
    Person(client): Person,
    Path((id, position)): Path<(String, u64)>,
) -> Result<Page, Problem> {
    let entry = client.entry(&id.parse()?, position).await?;
    let entry = entry.ok_or(Problem::NotFound)?;
    Ok(Page::new(
        Place::Runs,
        format!("Entry {position} of {}", shown(&id)),
        body(&id, &entry),
    ))
}

pub(super) fn body(run: &str, entry: &Entry) -> Markup {
    let json = serde_json::to_string_pretty(entry).unwrap_or_default();
    html! {
        p { (entry.fact.name().replace('_', " ")) ", written at " (entry.at) }
        pre tabindex="0" { (shown(&json)) }
        p { a href={ (run_path(run)) "?all=true#entry-" (entry.position) } { "To its place in the run" } }
    }
}
