//! Whether Redis answers.

use std::sync::atomic::{AtomicBool, Ordering};

use domain::cause::chain;

/// Told of each answer and each failure; says in the log when one follows the other.
#[derive(Default)]
pub(crate) struct Outage {
    lasts: AtomicBool,
}

impl Outage {
    pub(crate) fn failed(&self, error: &crate::Error) {
        if !self.lasts.swap(true, Ordering::AcqRel) {
            tracing::warn!(
                error = %chain(error),
                "tickets are worked on without leases, and each planner counts budgets for itself, until redis answers again"
            );
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
