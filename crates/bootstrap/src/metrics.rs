//! Route `GET /metrics` with the measurements of this process in the text format of Prometheus.

use std::sync::LazyLock;

use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use domain::cause::format_error_chain;
use opentelemetry_prometheus::PrometheusExporter;
use prometheus::{Encoder, Registry, TextEncoder};

/// Registry of the process. Services that share a process, as in `journeyman up`, share its instruments too.
static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::new);

/// Reader for the process's one provider of meters; [`build_metrics_router`] collects from it.
pub(crate) fn build_metrics_reader() -> Result<PrometheusExporter, String> {
    let exporter = opentelemetry_prometheus::exporter()
        .with_registry(REGISTRY.clone())
        .build();
    exporter.map_err(|error| error.to_string())
}

/// Router for `GET /metrics`. The metrics name no ticket, run or repository, so the route needs no
/// authentication.
pub fn build_metrics_router() -> Router {
    Router::new().route("/metrics", get(async || render_metrics()))
}

fn render_metrics() -> Response {
    let mut text = Vec::new();
    match TextEncoder::new().encode(&REGISTRY.gather(), &mut text) {
        Ok(()) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => {
            tracing::warn!(error = %format_error_chain(&error), "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
