//! Trace context in message headers: injected on publish, read back as a link (a queue hop is a link, not a parent).

use async_nats::HeaderMap;
use opentelemetry::{
    Context, global,
    propagation::{Extractor, Injector},
    trace::{SpanContext, TraceContextExt as _},
};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

struct Headers<'a>(&'a HeaderMap);
struct HeadersMut<'a>(&'a mut HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(async_nats::HeaderValue::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_ref()).collect()
    }
}

impl Injector for HeadersMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        self.0.insert(key, value);
    }
}

/// Adds the current span's context.
pub(crate) fn inject(headers: &mut HeaderMap) {
    let context = tracing::Span::current().context();
    global::get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut HeadersMut(headers));
    });
}

/// The context of the span that published the message; invalid when it had none.
pub(crate) fn origin(headers: Option<&HeaderMap>) -> SpanContext {
    let Some(headers) = headers else {
        return SpanContext::empty_context();
    };
    global::get_text_map_propagator(|propagator| {
        propagator
            .extract_with_context(&Context::new(), &Headers(headers))
            .span()
            .span_context()
            .clone()
    })
}

/// Carries the trace context of one message over to another.
pub(crate) fn forward(from: Option<&HeaderMap>, to: &mut HeaderMap) {
    for name in ["traceparent", "tracestate"] {
        if let Some(value) = from.and_then(|headers| headers.get(name)) {
            to.insert(name, value.clone());
        }
    }
}
