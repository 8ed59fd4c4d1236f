//! `GET /metrics`: what this process measured, in the text format of Prometheus.

use std::sync::LazyLock;

use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use domain::cause::chain;
use opentelemetry_prometheus::PrometheusExporter;
use prometheus::{Encoder, Registry, TextEncoder};

/// One registry for the process: services that share a process, as on a laptop, share its instruments too.
static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::new);

/// The reader that collects for [`router`], for the process's one provider of meters.
pub(crate) fn reader() -> Result<PrometheusExporter, String> {
    let exporter = opentelemetry_prometheus::exporter()
        .with_registry(REGISTRY.clone())
        .build();
    exporter.map_err(|error| error.to_string())
}

/// `GET /metrics`. It names no ticket, no run and no repository, so it may be read by whoever reaches the port.
pub fn router() -> Router {
    Router::new().route("/metrics", get(async || scrape()))
}

fn scrape() -> Response {
    let mut text = Vec::new();
    match TextEncoder::new().encode(&REGISTRY.gather(), &mut text) {
        Ok(()) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => {
            tracing::warn!(error = %chain(&error), "metrics could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
