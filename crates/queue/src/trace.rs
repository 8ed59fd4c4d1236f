//! Trace context in message headers. A queue hop is a parent within the trace of a ticket, and a link from any other trace.
//!
//! The trace of a ticket is that of the first record in its log: whoever appends later ones, and whoever works on the ticket,
//! joins it. So nothing has to be stored for it, and a ticket whose first record is forgotten begins a new one.

use async_nats::HeaderMap;
use domain::TicketKey;
use opentelemetry::{
    Context, global,
    propagation::{Extractor, Injector},
    trace::{SpanContext, TraceContextExt as _},
};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::{connection::Connection, names::LogNames};

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

/// The context that a span has as its parent when that is told by a message.
fn remote(origin: &SpanContext) -> Context {
    Context::new().with_remote_span_context(origin.clone())
}

/// Makes `origin` the parent of a span that has not begun; false where nothing is traced, or there is no origin.
pub(crate) fn set_parent(span: &tracing::Span, origin: &SpanContext) -> bool {
    origin.is_valid() && span.set_parent(remote(origin)).is_ok()
}

/// Where nothing is traced, a ticket's first record need not be looked up.
pub(crate) fn is_traced(span: &tracing::Span) -> bool {
    span.set_parent(tracing::Span::current().context()).is_ok()
}

/// Puts a span that has not begun, and that came about by `origin`, into the trace of `first`, the first record of the ticket.
pub(crate) fn join(span: &tracing::Span, origin: &SpanContext, first: &SpanContext) {
    if first.is_valid() && first.trace_id() != origin.trace_id() {
        set_parent(span, first);
        span.add_link(origin.clone());
    }
}

/// The context of the current span; invalid when there is none.
pub(crate) fn current() -> SpanContext {
    tracing::Span::current().context().span().span_context().clone()
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

/// The span that published the first record in a ticket's log; invalid when there is none or the log cannot be read: work
/// does not wait for its trace.
pub(crate) async fn first_origin(
    connection: &Connection,
    names: &LogNames,
    ticket: &TicketKey,
) -> SpanContext {
    let first = connection.first(names.stream, &names.records_of(ticket), 0).await;
    origin(first.ok().flatten().map(|stored| stored.headers).as_ref())
}

/// Carries the trace context of one message over to another.
pub(crate) fn forward(from: Option<&HeaderMap>, to: &mut HeaderMap) {
    for name in ["traceparent", "tracestate"] {
        if let Some(value) = from.and_then(|headers| headers.get(name)) {
            to.insert(name, value.clone());
        }
    }
}
