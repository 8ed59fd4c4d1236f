//! The span of a clone, below the one of the executor that asked for it.

use axum::http::HeaderMap;
use bootstrap::trace;
use tracing::Span;

use super::Admitted;

/// Only a request with a grant has a span, so that strangers cannot write into a trace.
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
