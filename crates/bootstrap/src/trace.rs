//! Traces over several services by the W3C Trace Context in request headers.

use std::collections::HashMap;

use axum::http::{HeaderMap, HeaderName};
use opentelemetry::{
    global,
    propagation::{Extractor, TextMapPropagator as _},
    trace::{TraceContextExt as _, TraceId},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// Makes a span that has just begun a child of the span in the request's headers.
pub fn join_caller_trace(span: &Span, headers: &HeaderMap) {
    let parent =
        global::get_text_map_propagator(|propagator| propagator.extract(&RequestHeaderExtractor(headers)));
    // Without a tracer, `set_parent` fails and no trace exists to join.
    let _ = span.set_parent(parent);
}

/// Id of the trace that the request's caller records; `None` if it records none.
pub fn caller_trace(headers: &HeaderMap) -> Option<TraceId> {
    let caller = TraceContextPropagator::new().extract(&RequestHeaderExtractor(headers));
    let caller = caller.span().span_context().clone();
    caller.is_sampled().then(|| caller.trace_id())
}

/// Current span as a `traceparent` header; `None` without tracing.
pub fn format_traceparent() -> Option<String> {
    let context = Span::current().context();
    let mut carrier = HashMap::new();
    global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut carrier));
    carrier.remove("traceparent")
}

struct RequestHeaderExtractor<'a>(&'a HeaderMap);

impl Extractor for RequestHeaderExtractor<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}
