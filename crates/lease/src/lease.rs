//! Lease in hand: renewed by a background task, and lost at the latest at a local deadline.

use std::{sync::Arc, time::Duration};

use domain::cause::format_error_chain;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{connection::RESPONSE_TIMEOUT, server::LeaseClaim};

/// Error: another worker has the lease, or may have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease is lost")]
pub struct LeaseLost;

/// Renewals of a lease within its time to live.
// One lost answer must not cost the lease, so several renewals fit into its time to live.
pub const RENEWALS: u32 = 3;

/// Right to work on one ticket. Dropping it stops the renewals; it then expires after the time to live.
pub struct TicketLease {
    claim: LeaseClaim,
    state: Arc<LeaseState>,
    renewal: AbortOnDropHandle<()>,
}

/// Certainty that the lease is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaseHold {
    /// Until this instant no worker with a lower or equal fence can have it.
    Until(Instant),
    /// Redis does not answer, so fences alone exclude other workers.
    FencedOnly,
}

struct LeaseState {
    hold: Mutex<LeaseHold>,
    lost: CancellationToken,
}

impl LeaseState {
    fn hold(&self) -> LeaseHold {
        *self.hold.lock()
    }

    fn set(&self, hold: LeaseHold) {
        *self.hold.lock() = hold;
    }

    fn is_over(&self) -> bool {
        matches!(self.hold(), LeaseHold::Until(deadline) if Instant::now() >= deadline)
    }
}

impl TicketLease {
    pub(crate) fn hold(claim: LeaseClaim, hold: LeaseHold) -> Self {
        let state = Arc::new(LeaseState {
            hold: Mutex::new(hold),
            lost: CancellationToken::new(),
        });
        let renewal = AbortOnDropHandle::new(tokio::spawn(renew_lease(claim.clone(), state.clone())));
        Self {
            claim,
            state,
            renewal,
        }
    }

    /// Checks before a side effect that the work may continue, without I/O.
    ///
    /// While Redis does not answer, it may: fences protect a worker that took the ticket over meanwhile.
    ///
    /// # Errors
    /// [`LeaseLost`] when another worker took the lease, or when this process was suspended past the deadline.
    pub fn check(&self) -> Result<(), LeaseLost> {
        if self.state.lost.is_cancelled() || self.state.is_over() {
            Err(LeaseLost)
        } else {
            Ok(())
        }
    }

    /// False while Redis does not answer and fences alone exclude other workers.
    pub fn is_held(&self) -> bool {
        self.state.hold() != LeaseHold::FencedOnly
    }

    /// Token that is cancelled when the lease is lost.
    pub fn lost(&self) -> CancellationToken {
        self.state.lost.clone()
    }

    /// Releases the lease if it is still ours. If Redis does not answer, the lease expires.
    pub async fn release(self) {
        // Before the release: a renewal after it would set the missing key again.
        self.renewal.abort();
        if self.is_held()
            && let Err(error) = self.claim.release().await
        {
            tracing::debug!(error = %format_error_chain(&error), "lease not released; it ends by itself");
        }
    }
}

async fn renew_lease(claim: LeaseClaim, state: Arc<LeaseState>) {
    let pause = claim.ttl / RENEWALS;
    let mut next = Instant::now() + pause;
    // True if Redis failed since the last renewal. A deadline that passes without a failed attempt means that
    // this process was suspended, and another worker may have the ticket.
    let mut has_failed = state.hold() == LeaseHold::FencedOnly;
    loop {
        sleep_until(next).await;
        if state.is_over() && !has_failed {
            break;
        }
        let started = Instant::now();
        match claim.renew().await {
            Ok(true) => {
                // From before the request, because the server may have extended the lease at once.
                state.set(LeaseHold::Until(started + claim.ttl));
                has_failed = false;
                next = started + pause;
            }
            Ok(false) => break,
            // Much more than the longest wait for an answer: the process was suspended in between.
            Err(_) if started.elapsed() > 2 * RESPONSE_TIMEOUT + claim.ttl => break,
            Err(_) => {
                has_failed = true;
                // Sooner than a regular renewal, so that several attempts fit into the remaining time.
                next = Instant::now() + (pause / 4).max(Duration::from_millis(50));
                if let LeaseHold::Until(deadline) = state.hold()
                    // The next attempt could end after the deadline, so from here on fences alone exclude
                    // others.
                    && next + RESPONSE_TIMEOUT >= deadline
                {
                    state.set(LeaseHold::FencedOnly);
                }
            }
        }
    }
    state.lost.cancel();
}
