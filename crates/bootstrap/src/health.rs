//! Routes `/healthz`, `/readyz` and `/metrics`, which operators' tools poll at every service.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    Router,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use domain::cause::format_error_chain;
use opentelemetry_prometheus::PrometheusExporter;
use parking_lot::Mutex;
use prometheus::{Encoder, Registry, TextEncoder};

/// Readiness of a service. Cheap to clone; starts not ready.
#[derive(Clone, Debug, Default)]
pub struct ServiceHealth {
    ready: Arc<AtomicBool>,
    note: Arc<Mutex<Option<String>>>,
}

impl ServiceHealth {
    /// Creates a state that is not ready.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether the service accepts work.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// True when the service accepts work.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Sets a note for `/readyz` about a problem that does not stop the service from accepting work; `None`
    /// clears it.
    pub fn set_note(&self, note: Option<String>) {
        *self.note.lock() = note;
    }

    fn readiness(&self) -> (StatusCode, String) {
        let note = self.note.lock();
        let note = note.as_ref().map_or_else(String::new, |note| format!("{note}\n"));
        if self.is_ready() {
            (StatusCode::OK, format!("ready\n{note}"))
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready\n{note}"))
        }
    }

    /// Router for `GET /healthz` (200 while the process runs), `GET /readyz` (200 or 503) and `GET /metrics`.
    pub fn router(&self) -> Router {
        let health = self.clone();
        let readiness = move || {
            let answer = health.readiness();
            async move { answer }
        };
        Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(readiness))
            .merge(build_metrics_router())
    }
}

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
fn build_metrics_router() -> Router {
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
