//! `/v1`: API of the command line and the console. Each handler has its documentation.

mod activity;
mod approval;
mod auth;
mod change_diff;
mod context;
mod control;
mod dead_letters;
mod decisions;
mod events;
mod followed_runs;
mod installation;
mod jobs;
mod journal_reads;
mod known_runs;
mod listing;
mod maintenance;
mod person;
mod pools;
mod problem;
mod pull_requests;
mod runs;
mod scope;
mod search_words;
mod spend;
mod stream_slots;
mod ticket_history;
mod ticket_key;
mod ticket_records;
mod ticket_summaries;
mod tickets;

use std::sync::{Arc, OnceLock};

use axum::{http::header, routing::get};
use domain::cause::format_error_chain;
use tokio_util::sync::CancellationToken;
use utoipa::{
    Modify, OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};
use utoipa_axum::{router::OpenApiRouter, routes};

pub use self::auth::ApiToken;
use self::ticket_history::TicketHistory;
pub(crate) use self::{
    auth::{AdminProof, ApiTokens, InstallationAdminProof, OperatorProof, ViewerProof},
    followed_runs::FollowedRuns,
    journal_reads::JournalReads,
    known_runs::KnownRuns,
    problem::{ApiProblem, ApiQuery},
    stream_slots::StreamSlots,
};
use crate::router::EventRouter;

/// Shared state of the handlers. They answer 503 until the queue is connected.
#[derive(Clone)]
pub(crate) struct ApiState {
    pub(crate) router: Arc<OnceLock<EventRouter>>,
    pub(crate) tokens: Arc<ApiTokens>,
    /// Created for the first list, once the queue is connected.
    pub(crate) known_runs: Arc<OnceLock<KnownRuns>>,
    pub(crate) shutdown: CancellationToken,
    /// Limits of live event streams.
    pub(crate) streams: Arc<StreamSlots>,
    /// Limits of journal reads.
    pub(crate) reads: Arc<JournalReads>,
    /// Runs that clients follow live.
    pub(crate) followed: Arc<FollowedRuns>,
}

impl ApiState {
    fn router(&self) -> Result<&EventRouter, ApiProblem> {
        self.router
            .get()
            .ok_or_else(|| ApiProblem::Unavailable("the queue is not connected yet".to_owned()))
    }

    fn known_runs(&self) -> Result<&KnownRuns, ApiProblem> {
        let router = self.router()?;
        Ok(self.known_runs.get_or_init(|| KnownRuns::new(&router.queue)))
    }

    /// Reads the histories of all tickets on a thread for blocking work, behind the limit of the reads of journals:
    /// the work grows with the number of stored runs.
    async fn read_histories<T: Send + 'static>(
        &self,
        token: &str,
        read: impl FnOnce(&[TicketHistory]) -> T + Send + 'static,
    ) -> Result<T, ApiProblem> {
        let permit = self.reads.begin(token).await?;
        let records = self.known_runs()?.share_records().await?;
        // A canceled request does not end the thread, so the thread keeps the permit.
        let work = move || {
            let _permit = permit;
            read(records.histories())
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| ApiProblem::Internal(format_error_chain(&error)))
    }
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Journeyman", description = "Runs, journals, jobs, decisions and dead letters."),
    modifiers(&BearerScheme)
)]
struct ApiDocument;

struct BearerScheme;

impl Modify for BearerScheme {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        openapi
            .components
            .get_or_insert_default()
            .add_security_scheme("bearer", SecurityScheme::Http(bearer));
    }
}

fn build_documented_router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::with_openapi(ApiDocument::openapi())
        .routes(routes!(installation::show_caller))
        .routes(routes!(activity::show_activity))
        .routes(routes!(runs::list_runs))
        .routes(routes!(runs::show_run))
        .routes(routes!(runs::get_run_journal))
        .routes(routes!(runs::get_run_timeline))
        .routes(routes!(spend::show_spend))
        .routes(routes!(events::stream_run_events))
        .routes(routes!(events::stream_all_events))
        .routes(routes!(approval::decide_at_gate))
        .routes(routes!(change_diff::get_run_diff))
        .routes(routes!(decisions::stop_run))
        .routes(routes!(decisions::stop_ticket))
        .routes(routes!(listing::list_tickets))
        .routes(routes!(ticket_summaries::list_ticket_summaries))
        .routes(routes!(tickets::show_ticket, tickets::purge_ticket))
        .routes(routes!(listing::show_ticket_text))
        .routes(routes!(tickets::comment_ticket))
        .routes(routes!(jobs::dispatch_job))
        .routes(routes!(pull_requests::ask_pull_request))
        .routes(routes!(pull_requests::show_pull_request_call))
        .routes(routes!(decisions::retry_ticket))
        .routes(routes!(
            control::stop_all,
            control::show_stop_all,
            control::resume_planners
        ))
        .routes(routes!(dead_letters::list_dead_letters))
        .routes(routes!(
            dead_letters::show_dead_letter,
            dead_letters::delete_dead_letter
        ))
        .routes(routes!(dead_letters::retry_dead_letter))
        .routes(routes!(installation::show_rules))
        .routes(routes!(installation::list_credentials))
        .routes(routes!(pools::list_pools))
}

/// Routes of `/v1`, and the `OpenAPI` document that describes them.
pub(crate) fn build_api_router(state: ApiState) -> axum::Router {
    let (router, document) = build_documented_router().split_for_parts();
    // The document is serialized once, and a request costs a reference. A document of our own types
    // always serializes.
    let document = document.to_json().map(bytes::Bytes::from).unwrap_or_default();
    let answer = async move || ([(header::CONTENT_TYPE, "application/json")], document);
    router
        .route("/v1/openapi.json", get(answer))
        .fallback(async || ApiProblem::NotFound("no such route; see /v1/openapi.json".to_owned()))
        .with_state(state)
}

#[cfg(test)]
mod tests;
