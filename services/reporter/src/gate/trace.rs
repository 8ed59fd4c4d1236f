//! The span of a clone, below the one of the executor that asked for it.

use axum::http::HeaderMap;
use opentelemetry::{global, propagation::Extractor};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::Admitted;

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}

/// Only a request with a grant has a span, so that strangers cannot write into a trace.
pub(super) fn span(admitted: &Admitted, headers: &HeaderMap) -> Span {
    let span = tracing::info_span!(
        "git gate",
        otel.kind = "server",
        run = %admitted.run,
        repository = %admitted.repository,
    );
    let parent = global::get_text_map_propagator(|propagator| propagator.extract(&Headers(headers)));
    // Without a tracer there is nothing to attach to.
    let _ = span.set_parent(parent);
    span
}
