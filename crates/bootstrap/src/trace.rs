//! One trace over several services: what a request tells of its caller's span, by the W3C Trace Context.

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

/// Puts a span that has just begun below the span that the request tells of.
pub fn join(span: &Span, headers: &HeaderMap) {
    let parent = global::get_text_map_propagator(|propagator| propagator.extract(&Headers(headers)));
    // Without a tracer there is nothing to attach to.
    let _ = span.set_parent(parent);
}

/// The trace that the request's caller records; absent where it records none.
pub fn caller_trace(headers: &HeaderMap) -> Option<TraceId> {
    let caller = TraceContextPropagator::new().extract(&Headers(headers));
    let caller = caller.span().span_context().clone();
    caller.is_sampled().then(|| caller.trace_id())
}

/// The current span as the header `traceparent` tells of it; absent where nothing is traced.
pub fn traceparent() -> Option<String> {
    let context = Span::current().context();
    let mut carrier = HashMap::new();
    global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut carrier));
    carrier.remove("traceparent")
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}
