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
use domain::cause::chain;
use grant::{Audience, Grant};
use tracing::Instrument as _;

use crate::{answer, exchange::Caller, proxy::Proxy, runs::Full, session};

/// Protocol of a session after its upgrade, as the `Upgrade` header names it.
const PROTOCOL: &str = "journeyman-egress";

/// Builds the router of `GET /session` and `GET /refusals`.
pub(crate) fn router(proxy: Arc<Proxy>) -> Router {
    Router::new()
        .route("/session", get(open))
        .route("/refusals", get(refusals))
        .with_state(proxy)
}

async fn open(State(proxy): State<Arc<Proxy>>, mut request: Request) -> Response<Body> {
    let grant = match admit(&proxy, request.headers()) {
        Ok(grant) => grant,
        Err(words) => return answer::line(StatusCode::UNAUTHORIZED, &words),
    };
    if !asks_for_session(request.headers()) {
        return answer::line(
            StatusCode::UPGRADE_REQUIRED,
            "a session is asked for with Upgrade: journeyman-egress",
        );
    }
    let seat = match proxy.runs.enter(&grant.run) {
        Ok(seat) => seat,
        Err(full) => {
            tracing::warn!(
                run = %grant.run,
                repository = %grant.repository,
                error = %chain(&full),
                "no session opened"
            );
            let status = match full {
                Full::Run => StatusCode::TOO_MANY_REQUESTS,
                Full::Proxy => StatusCode::SERVICE_UNAVAILABLE,
            };
            return answer::line(status, &full.to_string());
        }
    };
    let caller = Arc::new(Caller { grant, seat });
    let upgrading = hyper::upgrade::on(&mut request);
    let span = tracing::info_span!(
        "egress session",
        otel.kind = "server",
        run = %caller.grant.run,
        repository = %caller.grant.repository,
    );
    // The trace continues from the executor's request; the session's requests arrive on the upgraded connection.
    trace::join(&span, request.headers());
    let serving = session::serve(Arc::clone(&proxy), caller, upgrading);
    proxy.sessions.spawn(serving.instrument(span));
    answer::switch(PROTOCOL)
}

/// Lists the refusals of the run that the grant names, one line each: target, reason, count.
async fn refusals(State(proxy): State<Arc<Proxy>>, headers: HeaderMap) -> Response<Body> {
    let grant = match admit(&proxy, &headers) {
        Ok(grant) => grant,
        Err(words) => return answer::line(StatusCode::UNAUTHORIZED, &words),
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

fn admit(proxy: &Proxy, headers: &HeaderMap) -> Result<Grant, String> {
    let token = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "))
        .ok_or("a grant is needed: Authorization: Bearer <grant>")?;
    proxy
        .verifier
        .verify(token.trim(), Audience::Egress, bootstrap::now())
        .map_err(|refused| format!("the grant is not valid: {refused}"))
}

fn asks_for_session(headers: &HeaderMap) -> bool {
    let value = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    value.is_some_and(|value| value.eq_ignore_ascii_case(PROTOCOL))
}
