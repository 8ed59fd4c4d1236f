//! A lease in hand: renewed by a task of its own, and lost by a local deadline at the latest.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::leases::Claim;

/// The lease is somebody else's, or may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease is lost")]
pub struct Lost;

/// The right to work on one ticket. Dropping it stops the renewal; then it ends by itself after the time to live.
pub struct Lease {
    claim: Claim,
    state: Arc<State>,
    renewal: AbortOnDropHandle<()>,
}

struct State {
    deadline: Mutex<Instant>,
    lost: CancellationToken,
}

impl State {
    fn deadline(&self) -> Instant {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn extend(&self, deadline: Instant) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }
}

impl Lease {
    pub(crate) fn hold(claim: Claim, deadline: Instant) -> Self {
        let state = Arc::new(State {
            deadline: Mutex::new(deadline),
            lost: CancellationToken::new(),
        });
        let renewal = AbortOnDropHandle::new(tokio::spawn(renew(claim.clone(), state.clone())));
        Self {
            claim,
            state,
            renewal,
        }
    }

    /// Before every side effect: is the lease still ours for sure? No I/O.
    ///
    /// # Errors
    /// [`Lost`] when somebody else took it, or when it could not be renewed in time.
    pub fn check(&self) -> Result<(), Lost> {
        if self.state.lost.is_cancelled() || Instant::now() >= self.state.deadline() {
            Err(Lost)
        } else {
            Ok(())
        }
    }

    /// Cancelled when the lease is lost.
    pub fn lost(&self) -> CancellationToken {
        self.state.lost.clone()
    }

    /// Gives the lease back if it is still ours. When Redis cannot be told, it ends by itself.
    pub async fn release(self) {
        self.renewal.abort();
        if let Err(error) = self.claim.release().await {
            tracing::warn!(%error, "lease not released; it ends by itself");
        }
    }
}

async fn renew(claim: Claim, state: Arc<State>) {
    let pause = claim.ttl / 3;
    let mut next = Instant::now() + pause;
    loop {
        sleep_until(next).await;
        let started = Instant::now();
        next = started + pause;
        match timeout_at(state.deadline(), claim.renew()).await {
            Ok(Ok(true)) => state.extend(started + claim.ttl),
            Ok(Ok(false)) => break,
            Ok(Err(error)) => {
                tracing::warn!(%error, "lease not renewed; tried again");
                next = (started + pause / 4).max(Instant::now() + pause / 8);
            }
            Err(_) => break,
        }
        if Instant::now() >= state.deadline() {
            break;
        }
        next = next.min(state.deadline());
    }
    state.lost.cancel();
}
