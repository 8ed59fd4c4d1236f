//! `/v1`: API of the command line and the console. Each handler has its documentation.

mod approval;
mod auth;
mod caller;
mod context;
mod control;
mod credentials;
mod dead;
mod decisions;
mod events;
mod followed;
mod jobs;
mod journal_reads;
mod known_runs;
mod listing;
mod maintenance;
mod person;
mod pools;
mod problem;
mod pull_requests;
mod rules;
mod runs;
mod scope;
mod spend;
mod streams;
mod ticket_key;
mod tickets;

use std::sync::{Arc, OnceLock};

use axum::{http::header, routing::get};
use tokio_util::sync::CancellationToken;
use utoipa::{
    Modify, OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};
use utoipa_axum::{router::OpenApiRouter, routes};

pub use self::auth::ApiToken;
pub(crate) use self::{
    auth::{Admin, Everybodys, Operator, Tokens, Viewer},
    followed::FollowedRuns,
    journal_reads::JournalReads,
    known_runs::KnownRuns,
    problem::Problem,
    streams::Streams,
};
use crate::router::Router;

/// Shared state of the handlers. They answer 503 until the queue is connected.
#[derive(Clone)]
pub(crate) struct ApiState {
    pub(crate) router: Arc<OnceLock<Router>>,
    pub(crate) tokens: Arc<Tokens>,
    /// Created for the first list, once the queue is connected.
    pub(crate) known_runs: Arc<OnceLock<KnownRuns>>,
    pub(crate) shutdown: CancellationToken,
    /// Limits of live event streams.
    pub(crate) streams: Arc<Streams>,
    /// Limits of journal reads.
    pub(crate) reads: Arc<JournalReads>,
    /// Runs that clients follow live.
    pub(crate) followed: Arc<FollowedRuns>,
}

impl ApiState {
    fn router(&self) -> Result<&Router, Problem> {
        self.router
            .get()
            .ok_or_else(|| Problem::Unavailable("the queue is not connected yet".to_owned()))
    }

    fn known_runs(&self) -> Result<&KnownRuns, Problem> {
        let router = self.router()?;
        Ok(self.known_runs.get_or_init(|| KnownRuns::new(&router.queue)))
    }
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Journeyman", description = "Runs, journals, jobs, decisions and dead letters."),
    modifiers(&Bearer)
)]
struct Document;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        openapi
            .components
            .get_or_insert_default()
            .add_security_scheme("bearer", SecurityScheme::Http(bearer));
    }
}

fn documented() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(runs::list))
        .routes(routes!(runs::show))
        .routes(routes!(runs::journal))
        .routes(routes!(runs::timeline))
        .routes(routes!(spend::show))
        .routes(routes!(events::of_run))
        .routes(routes!(events::of_all))
        .routes(routes!(approval::decide))
        .routes(routes!(approval::diff))
        .routes(routes!(decisions::stop_run))
        .routes(routes!(decisions::stop_ticket))
        .routes(routes!(listing::list))
        .routes(routes!(tickets::show, tickets::purge))
        .routes(routes!(listing::text))
        .routes(routes!(tickets::comment))
        .routes(routes!(jobs::dispatch))
        .routes(routes!(pull_requests::ask))
        .routes(routes!(pull_requests::show))
        .routes(routes!(decisions::retry_ticket))
        .routes(routes!(control::stop_all, control::show, control::resume))
        .routes(routes!(dead::list))
        .routes(routes!(dead::show, dead::remove))
        .routes(routes!(dead::retry))
        .routes(routes!(rules::show))
        .routes(routes!(credentials::list))
        .routes(routes!(pools::list))
}

/// Routes of `/v1`, and the `OpenAPI` document that describes them.
pub(crate) fn router(state: ApiState) -> axum::Router {
    let (router, document) = documented().split_for_parts();
    // The document is serialized once, and a request costs a reference. A document of our own types
    // always serializes.
    let document = document.to_json().map(bytes::Bytes::from).unwrap_or_default();
    let answer = async move || ([(header::CONTENT_TYPE, "application/json")], document);
    router
        .route("/v1/openapi.json", get(answer))
        .fallback(async || Problem::NotFound("no such route; see /v1/openapi.json".to_owned()))
        .with_state(state)
}

#[cfg(test)]
mod tests;
