//! `/healthz` and `/readyz`.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{Router, http::StatusCode, routing::get};

/// Whether a service wants work. Cheap to clone; starts not ready.
#[derive(Clone, Debug, Default)]
pub struct Health {
    ready: Arc<AtomicBool>,
}

impl Health {
    /// Not ready yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says whether the service wants work.
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// Whether the service wants work.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// `GET /healthz` (200 while the process lives) and `GET /readyz` (200 or 503).
    pub fn router(&self) -> Router {
        let health = self.clone();
        let readiness = move || {
            let ready = health.is_ready();
            async move {
                if ready {
                    (StatusCode::OK, "ready\n")
                } else {
                    (StatusCode::SERVICE_UNAVAILABLE, "not ready\n")
                }
            }
        };
        Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(readiness))
    }
}
