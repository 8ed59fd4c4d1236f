//! Way of other processes' spans to the collector of this one.

use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{SpanContext, SpanKind, Status, TraceFlags, TraceState},
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks},
};

use crate::{
    settings,
    span_buffer::KeptSpan,
    telemetry::{Settings, resource_of},
};

/// The process that made spans, as this one knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpanOrigin {
    /// `service.name`.
    pub service: &'static str,
    /// `service.instance.id`.
    pub instance: String,
    /// `service.version`; empty: not known.
    pub version: String,
}

/// Exporter of spans that other processes made.
#[derive(Debug)]
pub struct SpanForwarder {
    exporter: SpanExporter,
}

impl SpanForwarder {
    /// Sends to the endpoint of the settings; absent without one. Call it inside a tokio runtime.
    ///
    /// # Errors
    /// A bad endpoint.
    pub fn new(settings: &Settings) -> Result<Option<Self>, settings::Error> {
        let Some(endpoint) = &settings.otlp_endpoint else {
            return Ok(None);
        };
        let exporter = SpanExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .build();
        let exporter =
            exporter.map_err(|error| settings::Error::new("telemetry.otlp_endpoint", error.to_string()))?;
        Ok(Some(Self { exporter }))
    }

    /// Sends spans of one process.
    ///
    /// # Errors
    /// When the collector does not take them; they are lost then.
    pub async fn send(&mut self, origin: SpanOrigin, spans: Vec<KeptSpan>) -> OTelSdkResult {
        self.exporter.set_resource(&resource_of(origin));
        self.exporter
            .export(spans.into_iter().map(span_data).collect())
            .await
    }
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
