//! Retries of calls whose failure may be temporary.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};

use crate::effect_error::EffectError;

// Wait before the first retry; it doubles with each one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
// Longest wait. A person waits for the answer, so a longer one is reported as a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The last error, and the number of retries.
#[derive(Debug)]
pub(super) struct GaveUp {
    pub(super) trouble: EffectError,
    pub(super) retries: u32,
}

/// Performs a call with up to `retries` retries. The call has to check the current state before it writes: a try with
/// an unknown outcome may have succeeded.
pub(super) async fn retry_call<T, F>(retries: u32, once: impl FnMut() -> F) -> Result<T, GaveUp>
where
    F: Future<Output = Result<T, EffectError>>,
{
    let mut done = 0;
    let waits = ExponentialBuilder::new()
        .with_min_delay(FIRST_WAIT)
        .without_max_delay()
        .with_max_times(retries as usize);
    let outcome = once
        .retry(waits)
        .adjust(|trouble, wait| choose_wait(trouble, wait?))
        .notify(|_, _| done += 1)
        .await;
    outcome.map_err(|trouble| GaveUp {
        trouble,
        retries: done,
    })
}

/// Returns the wait before the next retry, at least `wait`; `None` if a retry has the same result or would take too
/// long.
fn choose_wait(trouble: &EffectError, wait: Duration) -> Option<Duration> {
    let asked = match trouble {
        EffectError::Later { after, .. } => after.unwrap_or_default(),
        EffectError::HeldBack { wait, .. } => *wait,
        EffectError::Queued(_) => LONGEST_WAIT,
        EffectError::Unknown(_) => Duration::ZERO,
        EffectError::Refused(_)
        | EffectError::DiskFull(_)
        | EffectError::Failed(_)
        | EffectError::Missing(_)
        | EffectError::Credentials { .. }
        | EffectError::Denied { .. }
        | EffectError::Unwritable(_)
        | EffectError::Ledger(_)
        | EffectError::HandBack(_)
        | EffectError::Shutdown => return None,
    };
    let wait = asked.max(wait);
    (wait <= LONGEST_WAIT).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn count_calls(retries: u32, trouble: fn() -> EffectError) -> (u32, u32) {
        let mut calls = 0;
        let gave_up = retry_call(retries, || {
            calls += 1;
            std::future::ready(Err::<(), _>(trouble()))
        });
        let GaveUp { retries, .. } = gave_up.await.unwrap_err();
        (calls, retries)
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_may_pass_is_tried_again() {
        let later = || EffectError::Later {
            detail: String::new(),
            after: None,
        };
        assert_eq!(count_calls(3, later).await, (4, 3));
        assert_eq!(
            count_calls(2, || EffectError::Unknown(String::new())).await,
            (3, 2)
        );
        assert_eq!(
            count_calls(3, || EffectError::Refused(domain::OutboundRefusal::NotInspected)).await,
            (1, 0)
        );
        let long = || EffectError::Later {
            detail: String::new(),
            after: Some(Duration::from_secs(3600)),
        };
        assert_eq!(count_calls(3, long).await, (1, 0));
    }
}
