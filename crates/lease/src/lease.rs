//! A lease in hand: renewed by a task of its own, and lost by a local deadline at the latest.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::cause::chain;
use tokio::time::{Instant, sleep_until};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{connection::RESPONSE_TIMEOUT, server::Claim};

/// The lease is somebody else's, or may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease is lost")]
pub struct Lost;

/// How often a lease is renewed within its time to live.
pub const RENEWALS: u32 = 3;

/// The right to work on one ticket. Dropping it stops the renewal; then it ends by itself after the time to live.
pub struct Lease {
    claim: Claim,
    state: Arc<State>,
    renewal: AbortOnDropHandle<()>,
}

/// How surely the lease is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Until then nobody with a lower or equal fence can have it.
    Until(Instant),
    /// Redis does not answer: fences alone keep others out.
    FencedOnly,
}

struct State {
    hold: Mutex<Hold>,
    lost: CancellationToken,
}

impl State {
    fn hold(&self) -> Hold {
        *self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, hold: Hold) {
        *self.hold.lock().unwrap_or_else(PoisonError::into_inner) = hold;
    }

    fn is_over(&self) -> bool {
        matches!(self.hold(), Hold::Until(deadline) if Instant::now() >= deadline)
    }
}

impl Lease {
    pub(crate) fn hold(claim: Claim, hold: Hold) -> Self {
        let state = Arc::new(State {
            hold: Mutex::new(hold),
            lost: CancellationToken::new(),
        });
        let renewal = AbortOnDropHandle::new(tokio::spawn(renew(claim.clone(), state.clone())));
        Self {
            claim,
            state,
            renewal,
        }
    }

    /// Before every side effect: may we still go on? No I/O. While Redis does not answer the answer is yes: whoever took
    /// the ticket over meanwhile is protected by fences.
    ///
    /// # Errors
    /// [`Lost`] when somebody else took it, or when this process slept past the deadline.
    pub fn check(&self) -> Result<(), Lost> {
        if self.state.lost.is_cancelled() || self.state.is_over() {
            Err(Lost)
        } else {
            Ok(())
        }
    }

    /// False while Redis does not answer and fences alone keep others out.
    pub fn is_held(&self) -> bool {
        self.state.hold() != Hold::FencedOnly
    }

    /// Cancelled when the lease is lost.
    pub fn lost(&self) -> CancellationToken {
        self.state.lost.clone()
    }

    /// Gives the lease back if it is still ours. When Redis cannot be told, it ends by itself.
    pub async fn release(self) {
        self.renewal.abort();
        if self.is_held()
            && let Err(error) = self.claim.release().await
        {
            tracing::debug!(error = %chain(&error), "lease not released; it ends by itself");
        }
    }
}

async fn renew(claim: Claim, state: Arc<State>) {
    let pause = claim.ttl / RENEWALS;
    let mut next = Instant::now() + pause;
    // Whether Redis failed us since the last renewal. A deadline that passes without a failed try means that this process
    // did not run, and then somebody else may have the ticket.
    let mut has_failed = state.hold() == Hold::FencedOnly;
    loop {
        sleep_until(next).await;
        if state.is_over() && !has_failed {
            break;
        }
        let started = Instant::now();
        match claim.renew().await {
            Ok(true) => {
                state.set(Hold::Until(started + claim.ttl));
                has_failed = false;
                next = started + pause;
            }
            Ok(false) => break,
            // Far more than the longest wait for an answer: the process was stopped in between.
            Err(_) if started.elapsed() > 2 * RESPONSE_TIMEOUT + claim.ttl => break,
            Err(_) => {
                has_failed = true;
                next = Instant::now() + (pause / 4).max(Duration::from_millis(50));
                if let Hold::Until(deadline) = state.hold()
                    && next + RESPONSE_TIMEOUT >= deadline
                {
                    state.set(Hold::FencedOnly);
                }
            }
        }
    }
    state.lost.cancel();
}
