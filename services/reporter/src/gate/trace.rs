//! Span of a clone, as a child of the executor's span.

use axum::http::HeaderMap;
use bootstrap::trace;
use tracing::Span;

use super::AdmittedRequest;

/// Builds the span. Only a request with a grant gets one, so that strangers cannot write into a trace.
pub(super) fn clone_span(admitted: &AdmittedRequest, headers: &HeaderMap) -> Span {
    let span = tracing::info_span!(
        "git gate",
        otel.kind = "server",
        run = %admitted.run,
        repository = %admitted.repository,
    );
    trace::join_caller_trace(&span, headers);
    span
}
