//! Outages of Redis, logged once each.

use std::sync::atomic::{AtomicBool, Ordering};

use domain::cause::format_error_chain;

/// Tracks answers and failures, and logs each transition between them.
pub(crate) struct RedisOutage {
    lasts: AtomicBool,
    /// Consequence of the outage, for the log.
    means: &'static str,
}

impl RedisOutage {
    pub(crate) const fn new(means: &'static str) -> Self {
        Self {
            lasts: AtomicBool::new(false),
            means,
        }
    }

    pub(crate) fn failed(&self, error: &crate::Error) {
        if !self.lasts.swap(true, Ordering::AcqRel) {
            let means = self.means;
            tracing::warn!(error = %format_error_chain(error), "{means}, until redis answers again");
        }
    }

    pub(crate) fn answered(&self) {
        if self.lasts.swap(false, Ordering::AcqRel) {
            tracing::info!("redis answers again");
        }
    }

    pub(crate) fn lasts(&self) -> bool {
        self.lasts.load(Ordering::Acquire)
    }
}
