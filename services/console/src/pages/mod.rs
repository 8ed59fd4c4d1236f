//! Pages, one per file: requests to the API, and the response as markup.

mod approval;
mod costs;
mod dead;
mod entry;
mod health;
mod live;
mod login;
mod needs_you;
mod orders;
mod pools;
mod provider;
mod reviewers;
mod rules;
mod run;
mod runs;
#[cfg(test)]
mod tests;
mod ticket;

use axum::{
    Router,
    routing::{get, post},
};

use crate::{oidc, person::State};

pub(crate) fn routes() -> Router<State> {
    Router::new()
        .route("/reviewers", get(reviewers::show))
        .route("/login", get(login::show).post(login::begin))
        .route("/login/oidc", get(provider::begin))
        .route(oidc::BACK, get(provider::back))
        .route("/logout", post(login::end))
        .route("/", get(needs_you::show))
        .route("/runs", get(runs::show).post(orders::of_many))
        .route("/runs/{id}", get(run::show))
        .route("/runs/{id}/summary", get(live::summary))
        .route("/runs/{id}/changes", get(live::changes))
        .route("/runs/{id}/events", get(live::events))
        .route("/runs/{id}/journal.json", get(entry::journal))
        .route("/runs/{id}/entries/{position}", get(entry::show))
        .route("/runs/{id}/stop", post(orders::stop_run))
        .route("/runs/{id}/approval", get(approval::show).post(approval::decide))
        .route("/tickets/{key}", get(ticket::show))
        .route("/tickets/{key}/stop", post(orders::stop_ticket))
        .route("/tickets/{key}/retry", post(orders::retry_ticket))
        .route("/tickets/{key}/comments", post(ticket::comment))
        .route("/dead", get(dead::list))
        .route("/dead/{sequence}", get(dead::show).post(dead::act))
        .route("/pools", get(pools::show))
        .route("/rules", get(rules::show))
        .route("/costs", get(costs::show))
        .route("/health", get(health::show).post(health::switch))
}
