//! Endpoints for executors outside of a session: opening one, and listing the refusals of a run.

use std::{fmt::Write, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, Response, StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use bootstrap::trace;
use domain::cause::format_error_chain;
use grant::{Grant, GrantAudience};
use tracing::Instrument as _;

use crate::{
    exchange::SessionCaller,
    problem::{text_response, upgrade_response},
    proxy::EgressProxy,
    runs::SessionLimit,
    session,
};

/// Protocol of a session after its upgrade, as the `Upgrade` header names it.
const PROTOCOL: &str = "journeyman-egress";

/// Builds the router of `GET /session` and `GET /refusals`.
pub(crate) fn build_router(proxy: Arc<EgressProxy>) -> Router {
    Router::new()
        .route("/session", get(open_session))
        .route("/refusals", get(list_refusals))
        .with_state(proxy)
}

async fn open_session(State(proxy): State<Arc<EgressProxy>>, mut request: Request) -> Response<Body> {
    let grant = match verify_grant(&proxy, request.headers()) {
        Ok(grant) => grant,
        Err(words) => return text_response(StatusCode::UNAUTHORIZED, &words),
    };
    if !asks_for_session(request.headers()) {
        return text_response(
            StatusCode::UPGRADE_REQUIRED,
            "a session is asked for with Upgrade: journeyman-egress",
        );
    }
    let slot = match proxy.runs.enter(&grant.run) {
        Ok(slot) => slot,
        Err(full) => {
            tracing::warn!(
                run = %grant.run,
                repository = %grant.repository,
                error = %format_error_chain(&full),
                "no session opened"
            );
            let status = match full {
                SessionLimit::Run => StatusCode::TOO_MANY_REQUESTS,
                SessionLimit::Proxy => StatusCode::SERVICE_UNAVAILABLE,
            };
            return text_response(status, &full.to_string());
        }
    };
    let caller = Arc::new(SessionCaller::new(grant, slot));
    let upgrading = hyper::upgrade::on(&mut request);
    let span = tracing::info_span!(
        "egress session",
        otel.kind = "server",
        run = %caller.grant.run,
        repository = %caller.grant.repository,
    );
    // The trace continues from the executor's request; the session's requests arrive on the upgraded connection.
    trace::join_caller_trace(&span, request.headers());
    let serving = session::serve_session(Arc::clone(&proxy), caller, upgrading);
    proxy.sessions.spawn(serving.instrument(span));
    upgrade_response(PROTOCOL)
}

/// Lists the refusals of the run that the grant names, one line each: target, reason, count.
async fn list_refusals(State(proxy): State<Arc<EgressProxy>>, headers: HeaderMap) -> Response<Body> {
    let grant = match verify_grant(&proxy, &headers) {
        Ok(grant) => grant,
        Err(words) => return text_response(StatusCode::UNAUTHORIZED, &words),
    };
    let mut lines = String::new();
    for (refusal, count) in proxy.runs.refusals(&grant.run) {
        let times = if count == 1 {
            "once".to_owned()
        } else {
            format!("{count} times")
        };
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "{}, {times}", refusal.words(&grant.repository));
    }
    lines.into_response()
}

fn verify_grant(proxy: &EgressProxy, headers: &HeaderMap) -> Result<Grant, String> {
    let token = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .ok_or("a grant is needed: Authorization: Bearer <grant>")?;
    proxy
        .verifier
        .verify(token.trim(), GrantAudience::Egress, bootstrap::read_wall_clock())
        .map_err(|refused| format!("the grant is not valid: {refused}"))
}

fn asks_for_session(headers: &HeaderMap) -> bool {
    let value = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.eq_ignore_ascii_case(PROTOCOL))
}
