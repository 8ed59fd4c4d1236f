//! The trace that a call belongs to, and what is told of it to the git gate.

use std::collections::HashMap;

use opentelemetry::{Context, global, propagation::Extractor};
use tonic::metadata::MetadataMap;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The caller's trace.
pub(crate) fn parent(metadata: &MetadataMap) -> Context {
    global::get_text_map_propagator(|propagator| propagator.extract(&Headers(metadata)))
}

/// The current span as a header tells of it; absent where nothing is traced.
pub(crate) fn traceparent() -> Option<String> {
    let context = Span::current().context();
    let mut carrier = HashMap::new();
    global::get_text_map_propagator(|propagator| propagator.inject_context(&context, &mut carrier));
    carrier.remove("traceparent")
}

struct Headers<'a>(&'a MetadataMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        let ascii = |key| match key {
            tonic::metadata::KeyRef::Ascii(key) => Some(key.as_str()),
            tonic::metadata::KeyRef::Binary(_) => None,
        };
        self.0.keys().filter_map(ascii).collect()
    }
}
