//! Trace context in message headers. A hop through the queue is a parent within a ticket's trace, and a link
//! from any other trace.
//!
//! The trace of a ticket is that of the first record in its log. Later records and all work on the ticket
//! join it. So no trace id is stored, and a ticket whose first record has expired begins a new trace.

use async_nats::HeaderMap;
use domain::TicketKey;
use opentelemetry::{
    Context, global,
    propagation::{Extractor, Injector},
    trace::{SpanContext, TraceContextExt as _},
};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::{connection::NatsConnection, names::LogNames};

struct MessageHeaderExtractor<'a>(&'a HeaderMap);
struct MessageHeaderInjector<'a>(&'a mut HeaderMap);

impl Extractor for MessageHeaderExtractor<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(async_nats::HeaderValue::as_str)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_ref()).collect()
    }
}

impl Injector for MessageHeaderInjector<'_> {
    fn set(&mut self, key: &str, value: String) {
        self.0.insert(key, value);
    }
}

/// Context with a span of another process as the remote parent.
fn build_remote_context(origin: &SpanContext) -> Context {
    Context::new().with_remote_span_context(origin.clone())
}

/// Makes `origin` the parent of a span that has not begun. Returns false if tracing is off or `origin` is
/// invalid.
pub(crate) fn set_parent(span: &tracing::Span, origin: &SpanContext) -> bool {
    origin.is_valid() && span.set_parent(build_remote_context(origin)).is_ok()
}

/// True when the span is exported. Without tracing, the first record of a ticket need not be read.
pub(crate) fn is_traced(span: &tracing::Span) -> bool {
    // `set_parent` fails for a disabled span or without an OpenTelemetry layer. The context that it sets is the
    // parent in any case.
    span.set_parent(tracing::Span::current().context()).is_ok()
}

/// Puts a span that has not begun into the trace of `first`, the first record of the ticket. Links it to
/// `origin`, its cause, if that is of another trace.
pub(crate) fn join_ticket_trace(span: &tracing::Span, origin: &SpanContext, first: &SpanContext) {
    if first.is_valid() && first.trace_id() != origin.trace_id() {
        set_parent(span, first);
        span.add_link(origin.clone());
    }
}

/// Context of the current span; invalid without one.
pub(crate) fn read_current_context() -> SpanContext {
    tracing::Span::current().context().span().span_context().clone()
}

/// Adds the context of the current span to the headers of a message.
pub(crate) fn add_trace_context(headers: &mut HeaderMap) {
    let context = tracing::Span::current().context();
    global::get_text_map_propagator(|propagator| {
        propagator.inject_context(&context, &mut MessageHeaderInjector(headers));
    });
}

/// Context of the span that published a message; invalid when its headers have none.
pub(crate) fn read_origin_context(headers: Option<&HeaderMap>) -> SpanContext {
    let Some(headers) = headers else {
        return SpanContext::empty_context();
    };
    global::get_text_map_propagator(|propagator| {
        propagator
            .extract_with_context(&Context::new(), &MessageHeaderExtractor(headers))
            .span()
            .span_context()
            .clone()
    })
}

/// Context of the span that published the first record in a ticket's log; invalid when the log is empty or
/// unreadable.
pub(crate) async fn first_origin(
    connection: &NatsConnection,
    names: &LogNames,
    ticket: &TicketKey,
) -> SpanContext {
    // A read error is ignored: work on a ticket does not wait for its trace.
    let first = connection.first(names.stream, &names.records_of(ticket), 0).await;
    read_origin_context(first.ok().flatten().map(|stored| stored.headers).as_ref())
}

/// Copies the trace context of one message to another.
pub(crate) fn copy_trace_context(from: Option<&HeaderMap>, to: &mut HeaderMap) {
    for name in ["traceparent", "tracestate"] {
        if let Some(value) = from.and_then(|headers| headers.get(name)) {
            to.insert(name, value.clone());
        }
    }
}
