//! Retries of calls whose failure may be temporary.

use std::time::Duration;

use crate::trouble::Trouble;

// Wait before the first retry; it doubles with each one.
const FIRST_WAIT: Duration = Duration::from_millis(500);
// Longest wait. A person waits for the answer, so a longer one is reported as a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The last error, and the number of retries.
#[derive(Debug)]
pub(super) struct GaveUp {
    pub(super) trouble: Trouble,
    pub(super) retries: u32,
}

/// Performs a call with up to `retries` retries. The call has to check the current state before it writes: a try with
/// an unknown outcome may have succeeded.
pub(super) async fn tried<T, F>(retries: u32, mut once: impl FnMut() -> F) -> Result<T, GaveUp>
where
    F: Future<Output = Result<T, Trouble>>,
{
    let mut done = 0;
    loop {
        let trouble = match once().await {
            Ok(value) => return Ok(value),
            Err(trouble) => trouble,
        };
        match wait(&trouble, done).filter(|_| done < retries) {
            Some(wait) => tokio::time::sleep(wait).await,
            None => {
                return Err(GaveUp {
                    trouble,
                    retries: done,
                });
            }
        }
        done += 1;
    }
}

/// Returns the wait after this number of retries; `None` if a retry has the same result or would take too long.
fn wait(trouble: &Trouble, done: u32) -> Option<Duration> {
    let asked = match trouble {
        Trouble::Later { after, .. } => after.unwrap_or_default(),
        Trouble::HeldBack { wait, .. } => *wait,
        Trouble::Unknown(_) => Duration::ZERO,
        Trouble::Refused(_)
        | Trouble::DiskFull(_)
        | Trouble::Failed(_)
        | Trouble::Missing(_)
        | Trouble::Credentials { .. }
        | Trouble::Denied { .. }
        | Trouble::Ledger(_)
        | Trouble::HandBack(_)
        | Trouble::Shutdown => return None,
    };
    let wait = asked.max(FIRST_WAIT * 2_u32.saturating_pow(done));
    (wait <= LONGEST_WAIT).then_some(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn calls(retries: u32, trouble: fn() -> Trouble) -> (u32, u32) {
        let mut calls = 0;
        let gave_up = tried(retries, || {
            calls += 1;
            std::future::ready(Err::<(), _>(trouble()))
        });
        let GaveUp { retries, .. } = gave_up.await.unwrap_err();
        (calls, retries)
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_may_pass_is_tried_again() {
        let later = || Trouble::Later {
            detail: String::new(),
            after: None,
        };
        assert_eq!(calls(3, later).await, (4, 3));
        assert_eq!(calls(2, || Trouble::Unknown(String::new())).await, (3, 2));
        assert_eq!(
            calls(3, || Trouble::Refused(domain::Refusal::NotInspected)).await,
            (1, 0)
        );
        let long = || Trouble::Later {
            detail: String::new(),
            after: Some(Duration::from_secs(3600)),
        };
        assert_eq!(calls(3, long).await, (1, 0));
    }
}
