//! Logs on stderr, metrics at `/metrics`, and traces and metrics over OTLP when an endpoint is set.

use std::{io::IsTerminal as _, time::Duration};

use domain::cause::format_error_chain;
use opentelemetry::{global, trace::TracerProvider};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource, metrics::SdkMeterProvider, propagation::TraceContextPropagator, trace::SdkTracerProvider,
};
use serde::Deserialize;
use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{
    health, settings,
    span_buffer::{SpanBuffer, trace_into},
    span_forwarder::identify_process,
};

// Limit of the last export at shutdown. A lost collector must not delay the end of the process.
const FLUSH_LIMIT: Duration = Duration::from_secs(3);

/// Section `[telemetry]` of the settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Format of log lines: `json` or `text`.
    pub log_format: LogFormat,
    /// Filter directives such as `info` or `info,queue=debug`.
    pub log_filter: String,
    /// Endpoint of OTLP over gRPC, e.g. `http://collector:4317`. Without it, traces and metrics are not
    /// exported.
    pub otlp_endpoint: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            log_format: LogFormat::Text,
            log_filter: "info".to_owned(),
            otlp_endpoint: None,
        }
    }
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// One JSON object per line.
    Json,
    /// Plain text for reading in a terminal.
    Text,
}

/// Owner of the exporters; flush them with [`TelemetryExporters::shutdown`].
#[derive(Default)]
pub struct TelemetryExporters {
    traces: Option<SdkTracerProvider>,
    metrics: Option<SdkMeterProvider>,
}

/// Installs logging, meters and, with an endpoint, OTLP export for the whole process.
///
/// Must be called inside a tokio runtime with at least two workers: the exporter's thread waits for that
/// runtime.
///
/// # Errors
/// An invalid filter or endpoint, by key; or telemetry that was installed before.
pub fn install_logging(
    service: &'static str,
    settings: &Settings,
) -> Result<TelemetryExporters, settings::Error> {
    install_telemetry(service, settings, false)
}

/// Installs telemetry like [`install_logging`]. Without an endpoint, the process keeps its spans in its [`SpanBuffer`].
///
/// # Errors
/// Those of [`install_logging`].
pub fn init_with_buffer(
    service: &'static str,
    settings: &Settings,
) -> Result<TelemetryExporters, settings::Error> {
    install_telemetry(service, settings, true)
}

// The SDK of MCP writes parts of bodies and addresses, which may be secret. Its callers log each failure.
const SILENT_LIBRARY: &str = "rmcp=off";

fn build_filter(settings: &Settings) -> Result<EnvFilter, settings::Error> {
    EnvFilter::try_new(&settings.log_filter)
        .and_then(|filter| Ok(filter.add_directive(SILENT_LIBRARY.parse()?)))
        .map_err(|error| settings::Error::new("telemetry.log_filter", error.to_string()))
}

fn install_telemetry(
    service: &'static str,
    settings: &Settings,
    keeps_spans: bool,
) -> Result<TelemetryExporters, settings::Error> {
    let filter = build_filter(settings)?;
    let endpoint = settings.otlp_endpoint.as_deref();
    let mut telemetry = install_meters(service, endpoint)
        .map_err(|problem| settings::Error::new("telemetry.otlp_endpoint", problem))?;
    // With an endpoint, the process exports its spans itself, and no caller needs to take them.
    if keeps_spans && endpoint.is_none() {
        let traces = trace_into(SpanBuffer::install());
        global::set_tracer_provider(traces.clone());
        telemetry.traces = Some(traces);
    }
    // The default propagator does nothing, and every process would begin a separate trace.
    global::set_text_map_propagator(TraceContextPropagator::new());
    let spans = telemetry
        .traces
        .as_ref()
        .map(|provider| tracing_opentelemetry::layer().with_tracer(provider.tracer("journeyman")));
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let lines = match settings.log_format {
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        LogFormat::Text => lines.with_target(false).boxed(),
    };
    tracing_subscriber::registry()
        .with(spans)
        .with(lines)
        .with(filter)
        .try_init()
        .map_err(|error| settings::Error::new("telemetry", error.to_string()))?;
    Ok(telemetry)
}

/// Creates one meter provider with two readers, so that scraped and exported figures are the same.
fn install_meters(service: &'static str, endpoint: Option<&str>) -> Result<TelemetryExporters, String> {
    let resource = describe_process(service);
    let mut metrics = SdkMeterProvider::builder()
        .with_resource(resource.clone())
        .with_reader(health::build_metrics_reader()?);
    let mut traces = None;
    if let Some(endpoint) = endpoint {
        let measurements = MetricExporter::builder()
            .with_tonic()
            .with_endpoint(endpoint)
            .build();
        metrics = metrics.with_periodic_exporter(measurements.map_err(|error| error.to_string())?);
        traces = Some(trace_to(resource, endpoint)?);
    }
    let metrics = metrics.build();
    global::set_meter_provider(metrics.clone());
    Ok(TelemetryExporters {
        traces,
        metrics: Some(metrics),
    })
}

/// Resource attributes of every figure and span.
///
/// The instance distinguishes replicas of a service. Without it, a collector would read two counters as one
/// that jumps.
fn describe_process(service: &'static str) -> Resource {
    Resource::builder()
        .with_service_name(service)
        .with_attributes(identify_process(
            name_process_instance(),
            env!("CARGO_PKG_VERSION").to_owned(),
        ))
        .build()
}

/// Unique name of this process in an installation: host or pod name, and process id.
pub fn name_process_instance() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}.{}", host.trim(), std::process::id())
}

fn trace_to(resource: Resource, endpoint: &str) -> Result<SdkTracerProvider, String> {
    let spans = SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .build();
    let traces = SdkTracerProvider::builder()
        .with_batch_exporter(spans.map_err(|error| error.to_string())?)
        .with_resource(resource)
        .build();
    global::set_tracer_provider(traces.clone());
    Ok(traces)
}

impl TelemetryExporters {
    /// Exports the remaining telemetry within three seconds and stops the exporters.
    pub async fn shutdown(self) {
        // The exporters block until the last export ends, and their export needs a free worker of this
        // runtime.
        let flush = tokio::task::spawn_blocking(move || {
            let traces = self
                .traces
                .map(|traces| traces.shutdown_with_timeout(FLUSH_LIMIT));
            let metrics = self.metrics.map(|metrics| metrics.shutdown());
            for ended in [traces, metrics].into_iter().flatten() {
                if let Err(error) = ended {
                    tracing::debug!(error = %format_error_chain(&error), "telemetry was not flushed");
                }
            }
        });
        let _ = tokio::time::timeout(FLUSH_LIMIT, flush).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_with_foreign_text_stays_silent() {
        for log_filter in ["info", "debug,queue=trace", "rmcp=trace"] {
            let settings = Settings {
                log_filter: log_filter.to_owned(),
                ..Settings::default()
            };
            let filter = build_filter(&settings).unwrap().to_string();
            assert!(
                filter.contains("rmcp=off") && !filter.contains("rmcp=trace"),
                "{filter}"
            );
        }
    }
}
