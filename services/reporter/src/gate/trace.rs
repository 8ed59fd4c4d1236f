//! Span of a clone, as a child of the executor's span.

use axum::http::HeaderMap;
use bootstrap::trace;
use tracing::Span;

use super::Admitted;

/// Builds the span. Only a request with a grant gets one, so that strangers cannot write into a trace.
pub(super) fn span(admitted: &Admitted, headers: &HeaderMap) -> Span {
    let span = tracing::info_span!(
        "git gate",
        otel.kind = "server",
        run = %admitted.run,
        repository = %admitted.repository,
    );
    trace::join(&span, headers);
    span
}
