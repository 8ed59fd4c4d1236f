//! The routes that a Data Center has and the Cloud has not. What the vendor publishes does not describe them.

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post, put};

use super::desk::Desk;
use super::{hooks, people, search};

/// Within its REST interface.
pub(super) fn rest() -> Router<Arc<Desk>> {
    Router::new()
        .route("/search", post(search::search_from_start))
        .route("/user", get(people::user))
}

/// Since its release 10.
pub(super) fn webhooks() -> Router<Arc<Desk>> {
    Router::new()
        .route(
            "/rest/jira-webhook/1.0/webhooks",
            get(hooks::list).post(hooks::create),
        )
        .route("/rest/jira-webhook/1.0/webhooks/{id}", put(hooks::update))
}
