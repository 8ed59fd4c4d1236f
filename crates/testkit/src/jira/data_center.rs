//! Routes that a Data Center has and the Cloud does not. The vendor publishes no description of them.

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post, put};

use super::desk::Desk;
use super::{hooks, people, search};

/// Builds the routes below the REST interface.
pub(super) fn rest() -> Router<Arc<Desk>> {
    Router::new()
        .route("/search", post(search::search_from_start))
        .route("/user", get(people::user))
}

/// Builds the webhook routes of release 10 and later.
pub(super) fn webhooks() -> Router<Arc<Desk>> {
    Router::new()
        .route(
            "/rest/jira-webhook/1.0/webhooks",
            get(hooks::list).post(hooks::create),
        )
        .route("/rest/jira-webhook/1.0/webhooks/{id}", put(hooks::update))
}
