//! Whether Redis answers.

use std::sync::atomic::{AtomicBool, Ordering};

use domain::cause::chain;

/// Told of each answer and each failure; says in the log when one follows the other.
pub(crate) struct Outage {
    lasts: AtomicBool,
    /// What it means for the work.
    means: &'static str,
}

impl Outage {
    pub(crate) const fn new(means: &'static str) -> Self {
        Self {
            lasts: AtomicBool::new(false),
            means,
        }
    }

    pub(crate) fn failed(&self, error: &crate::Error) {
        if !self.lasts.swap(true, Ordering::AcqRel) {
            let means = self.means;
            tracing::warn!(error = %chain(error), "{means}, until redis answers again");
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
