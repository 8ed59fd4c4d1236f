//! Forwarder of other processes' spans to the collector of this process.

use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{SpanContext, SpanKind, Status, TraceFlags, TraceState},
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks},
};

use crate::{settings, span_buffer::KeptSpan};

/// Identity of the process that made the spans.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpanOrigin {
    /// Value of `service.name`.
    pub service: &'static str,
    /// Value of `service.instance.id`.
    pub instance: String,
    /// Value of `service.version`; empty if unknown.
    pub version: String,
}

/// Exporter of spans that other processes made.
#[derive(Debug)]
pub struct SpanForwarder {
    exporter: SpanExporter,
}

impl SpanForwarder {
    /// Creates an exporter to an OTLP endpoint. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// An invalid endpoint.
    pub fn new(endpoint: &str) -> Result<Self, settings::Error> {
        let exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .build();
        let exporter =
            exporter.map_err(|error| settings::Error::new("telemetry.otlp_endpoint", error.to_string()))?;
        Ok(Self { exporter })
    }

    /// Exports the spans of one process.
    ///
    /// # Errors
    /// When the collector does not accept them; they are lost then.
    pub async fn send(&mut self, origin: SpanOrigin, spans: Vec<KeptSpan>) -> OTelSdkResult {
        self.exporter.set_resource(&describe_origin(origin));
        self.exporter
            .export(spans.into_iter().map(span_data).collect())
            .await
    }
}

/// Resource of the other process, without attributes from this process's environment.
fn describe_origin(origin: SpanOrigin) -> Resource {
    Resource::builder_empty()
        .with_service_name(origin.service)
        .with_attributes(identify_process(origin.instance, origin.version))
        .build()
}

/// Attributes that distinguish a process from others of Journeyman. An unknown version is omitted.
pub(crate) fn identify_process(instance: String, version: String) -> impl Iterator<Item = KeyValue> {
    let attributes = [
        ("service.namespace", "journeyman".to_owned()),
        ("service.version", version),
        ("service.instance.id", instance),
    ];
    let known = attributes.into_iter().filter(|(_, value)| !value.is_empty());
    known.map(|(key, value)| KeyValue::new(key, value))
}

fn span_data(span: KeptSpan) -> SpanData {
    let attributes = span
        .attributes
        .into_iter()
        .map(|(key, value)| KeyValue::new(key, value));
    SpanData {
        span_context: SpanContext::new(
            span.trace,
            span.id,
            // A process keeps spans of sampled traces only, see `trace_into`.
            TraceFlags::SAMPLED,
            false,
            TraceState::default(),
        ),
        parent_span_id: span.parent,
        parent_span_is_remote: span.is_parent_remote,
        span_kind: SpanKind::Internal,
        name: span.name.into(),
        start_time: span.start,
        end_time: span.end,
        attributes: attributes.collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: if span.is_failed {
            Status::error("")
        } else {
            Status::Unset
        },
        instrumentation_scope: InstrumentationScope::builder("journeyman").build(),
    }
}
