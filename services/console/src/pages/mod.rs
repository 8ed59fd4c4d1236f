//! Pages, one per file: requests to the API, and the response as markup.

mod approval;
mod costs;
mod dead_letters;
mod health;
mod list_filter;
mod login;
mod orders;
mod overview;
mod overview_results;
mod pools;
mod provider;
mod reviewers;
mod rules;
mod run;
mod run_changes;
mod run_diff;
mod run_events;
mod run_follow;
mod run_now;
mod run_orders;
mod run_outside;
mod run_pages;
mod run_picture;
mod run_summary;
#[cfg(test)]
mod run_tests;
mod runs;
#[cfg(test)]
mod tests;
mod ticket;
mod tickets;

use axum::{
    Router,
    routing::{get, post},
};

use crate::{oidc, person::ConsoleState};

pub(crate) fn build_page_routes() -> Router<ConsoleState> {
    Router::new()
        .route("/reviewers", get(reviewers::show_reviewers))
        .route("/login", get(login::show_login).post(login::begin_token_login))
        .route("/login/oidc", get(provider::begin_provider_login))
        .route(oidc::BACK, get(provider::finish_provider_login))
        .route("/logout", post(login::end_session))
        .route("/", get(overview::show_overview))
        .route("/runs", get(runs::show_runs).post(orders::of_many))
        .route("/runs/{id}", get(run::show_run))
        .route("/runs/{id}/summary", get(run_events::serve_summary))
        .route("/runs/{id}/changes", get(run_events::serve_changes))
        .route("/runs/{id}/diff", get(run_diff::show_diff))
        .route("/runs/{id}/events", get(run_follow::serve_events))
        .route("/runs/{id}/journal.json", get(run_events::serve_journal))
        .route("/runs/{id}/entries/{position}", get(run_events::show_entry))
        .route("/runs/{id}/confirm", post(run_orders::confirm_order))
        .route("/runs/{id}/order", post(run_orders::give_order))
        .route(
            "/runs/{id}/approval",
            get(approval::show_approval).post(approval::submit_decision),
        )
        .route("/tickets", get(tickets::show_tickets))
        .route("/tickets/{key}", get(ticket::show_ticket))
        .route("/tickets/{key}/stop", post(orders::stop_ticket))
        .route("/tickets/{key}/retry", post(orders::retry_ticket))
        .route("/tickets/{key}/comments", post(ticket::submit_comment))
        .route("/dead", get(dead_letters::list_dead_letters))
        .route(
            "/dead/{sequence}",
            get(dead_letters::show_dead_letter).post(dead_letters::apply_letter_order),
        )
        .route("/pools", get(pools::show_pools))
        .route("/rules", get(rules::show_rules))
        .route("/costs", get(costs::show_costs))
        .route("/health", get(health::show_health).post(health::switch_planners))
}
