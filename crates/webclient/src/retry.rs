//! Retries of reads.

use std::{error::Error, time::Duration};

use backon::Retryable as _;
use domain::cause::format_error_chain;

const DELAYS: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(1000)];

/// Sends a read up to three times, as long as the service is unavailable. `service` names it in the log.
///
/// # Errors
/// The error of the last attempt.
pub async fn retry_read<T, E, F>(
    service: &str,
    is_outage: impl Fn(&E) -> bool,
    attempt: impl FnMut() -> F,
) -> Result<T, E>
where
    E: Error + 'static,
    F: Future<Output = Result<T, E>>,
{
    // Only outages are retried: the service would refuse any other request again, and the wait of a rate limit
    // exceeds these delays.
    attempt
        .retry(DELAYS.into_iter().map(add_jitter))
        .when(is_outage)
        .notify(|error, _| {
            tracing::debug!(error = %format_error_chain(error), "{service} read failed, trying again");
        })
        .await
}

/// Prolongs a delay by up to half of it, so that processes do not retry in step.
fn add_jitter(delay: Duration) -> Duration {
    delay.mul_f64(1.0 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use std::{
        cell::{Cell, RefCell},
        collections::VecDeque,
        fmt::{self, Display},
    };

    use super::*;

    #[derive(Debug, PartialEq)]
    enum Trouble {
        Outage,
        Refusal,
    }

    impl Display for Trouble {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{self:?}")
        }
    }

    impl Error for Trouble {}

    async fn count_attempts(results: [Result<u8, Trouble>; 3]) -> (usize, Result<u8, Trouble>) {
        let (count, results) = (Cell::new(0), RefCell::new(VecDeque::from(results)));
        let result = retry_read(
            "github",
            |error: &Trouble| *error == Trouble::Outage,
            || {
                count.set(count.get() + 1);
                let next = results.borrow_mut().pop_front();
                async move { next.unwrap() }
            },
        )
        .await;
        (count.get(), result)
    }

    #[tokio::test(start_paused = true)]
    async fn outages_alone_are_retried_twice() {
        use Trouble::{Outage, Refusal};
        assert_eq!(
            count_attempts([Err(Outage), Err(Outage), Err(Outage)]).await,
            (3, Err(Outage))
        );
        assert_eq!(count_attempts([Err(Outage), Ok(7), Ok(8)]).await, (2, Ok(7)));
        assert_eq!(
            count_attempts([Err(Refusal), Ok(7), Ok(8)]).await,
            (1, Err(Refusal))
        );
    }

    #[test]
    fn jitter_adds_at_most_half() {
        for _ in 0..1_000 {
            let delay = add_jitter(Duration::from_millis(200));
            assert!((200..=300).contains(&delay.as_millis()), "{delay:?}");
        }
    }
}
