//! Routes that a Data Center has and the Cloud does not. The vendor publishes no description of them.

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post, put};

use super::desk::JiraState;
use super::{hooks, people, projects, search};

/// Builds the routes below the REST interface.
pub(super) fn build_rest_routes() -> Router<Arc<JiraState>> {
    Router::new()
        .route("/search", post(search::search_from_start))
        .route("/project", get(projects::list_projects))
        .route("/user", get(people::get_user))
}

/// Builds the webhook routes of release 10 and later.
pub(super) fn build_webhook_routes() -> Router<Arc<JiraState>> {
    Router::new()
        .route(
            "/rest/jira-webhook/1.0/webhooks",
            get(hooks::list_hooks).post(hooks::create_hook),
        )
        .route("/rest/jira-webhook/1.0/webhooks/{id}", put(hooks::update_hook))
}
