//! Common parts of services: connecting with retries, loops that restart, readiness that follows a
//! connection.

use std::{future::Future, time::Duration};

use anyhow::Context as _;
use domain::cause::format_error_chain;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::health::ServiceHealth;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_secs(2);
/// Time for which a server may be unreachable at the start.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two attempts at work that nothing waits for.
const LONG_PAUSE: Duration = Duration::from_secs(60);
/// Interval of the checks of a server, and limit of its answer.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// Connects to a server, with one attempt about every 2 s for at most 60 s; `None` at shutdown.
///
/// `address` appears in logs and errors, so it must contain no credentials.
///
/// # Errors
/// The error of the last attempt, or the first fatal one.
pub async fn connect_with_retries<T, E, F, Fut>(
    server: &'static str,
    address: &str,
    shutdown: &CancellationToken,
    is_fatal: impl Fn(&E) -> bool,
    attempt: F,
) -> anyhow::Result<Option<T>>
where
    E: std::error::Error + Send + Sync + 'static,
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let give_up = Instant::now() + PATIENCE;
    loop {
        match shutdown.run_until_cancelled(Box::pin(attempt())).await {
            None => return Ok(None),
            Some(Ok(connected)) => return Ok(Some(connected)),
            Some(Err(error)) if is_fatal(&error) || Instant::now() >= give_up => {
                return Err(error).with_context(|| format!("{server} at {address}"));
            }
            Some(Err(error)) => {
                tracing::warn!(address, error = %format_error_chain(&error), "{server} is not reachable, trying again")
            }
        }
        if pause_with_jitter(shutdown).await.is_none() {
            return Ok(None);
        }
    }
}

/// Runs a loop until shutdown; restarts it after 2 s if it ends earlier.
///
/// # Errors
/// The first fatal error.
pub async fn keep_running<E, F, Fut>(
    part: &'static str,
    shutdown: &CancellationToken,
    is_fatal: impl Fn(&E) -> bool,
    run: F,
) -> anyhow::Result<()>
where
    E: Into<anyhow::Error>,
    F: Fn() -> Fut,
    Fut: Future<Output = Result<(), E>>,
{
    while !shutdown.is_cancelled() {
        match Box::pin(run()).await {
            Ok(()) => {}
            Err(error) if is_fatal(&error) => return Err(error.into()).context(part),
            Err(error) => {
                let error = error.into();
                tracing::warn!(part, error = %format_error_chain(error.as_ref()), "starting again");
            }
        }
        if pause_with_jitter(shutdown).await.is_none() {
            break;
        }
    }
    Ok(())
}

/// Does work that nothing waits for: once, and again every minute until it succeeds or the service shuts
/// down.
pub async fn retry_until_ok<E, F, Fut>(part: &'static str, shutdown: &CancellationToken, work: F)
where
    E: std::error::Error + 'static,
    F: Fn() -> Fut,
    Fut: Future<Output = Result<(), E>>,
{
    let trying = async {
        while let Err(error) = work().await {
            tracing::warn!(part, error = %format_error_chain(&error), "trying again in a minute");
            tokio::time::sleep(LONG_PAUSE).await;
        }
    };
    shutdown.run_until_cancelled(trying).await;
}

/// Sets readiness to the result of a check every 5 s, until shutdown.
pub async fn track_readiness<F, Fut>(
    server: &'static str,
    health: &ServiceHealth,
    shutdown: &CancellationToken,
    answers: F,
) where
    F: Fn() -> Fut,
    Fut: Future<Output = bool>,
{
    let asking = async {
        loop {
            // First a pause: the service connected before it calls this, so it is ready at the
            // beginning.
            tokio::time::sleep(PING_INTERVAL).await;
            let ready = tokio::time::timeout(PING_INTERVAL, answers())
                .await
                .unwrap_or(false);
            // A shutdown sets readiness to false; a late answer must not set it to true again.
            if ready != health.is_ready() && !shutdown.is_cancelled() {
                let state = if ready { "answers" } else { "is silent" };
                tracing::warn!(ready, "readiness changed: {server} {state}");
                health.set_ready(ready);
            }
        }
    };
    shutdown.run_until_cancelled(asking).await;
}

/// Waits for 2 s on average; `None` if the shutdown came first. The jitter keeps processes that started
/// together out of step.
async fn pause_with_jitter(shutdown: &CancellationToken) -> Option<()> {
    let jittered = PAUSE.mul_f64(0.75 + fastrand::f64() / 2.0);
    shutdown.run_until_cancelled(tokio::time::sleep(jittered)).await
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::atomic::{AtomicU32, Ordering},
    };

    use super::*;

    fn fail_with_kind(kind: io::ErrorKind) -> Result<(), io::Error> {
        Err(kind.into())
    }

    const fn is_never_fatal(_: &io::Error) -> bool {
        false
    }

    #[tokio::test(start_paused = true)]
    async fn late_server_connects_and_missing_one_fails() {
        let (shutdown, tries) = (CancellationToken::new(), AtomicU32::new(0));
        let late = || async {
            if tries.fetch_add(1, Ordering::Relaxed) < 10 {
                fail_with_kind(io::ErrorKind::ConnectionRefused)
            } else {
                Ok(())
            }
        };
        let connected = connect_with_retries("redis", "here", &shutdown, is_never_fatal, late).await;
        assert_eq!(connected.unwrap(), Some(()));
        let start = Instant::now();
        let absent = || async { fail_with_kind(io::ErrorKind::ConnectionRefused) };
        let error = connect_with_retries("redis", "here", &shutdown, is_never_fatal, absent)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("redis at here"), "{error}");
        assert!((PATIENCE..PATIENCE + 2 * PAUSE).contains(&start.elapsed()));
    }

    #[tokio::test(start_paused = true)]
    async fn fatal_error_and_shutdown_end_connecting() {
        let shutdown = CancellationToken::new();
        let start = Instant::now();
        let refused = || async { fail_with_kind(io::ErrorKind::InvalidInput) };
        let is_fatal = |error: &io::Error| error.kind() == io::ErrorKind::InvalidInput;
        assert!(
            connect_with_retries("nats", "here", &shutdown, is_fatal, refused)
                .await
                .is_err()
        );
        assert!(keep_running("loop", &shutdown, is_fatal, refused).await.is_err());
        assert_eq!(start.elapsed(), Duration::ZERO);
        shutdown.cancel();
        assert!(
            connect_with_retries("nats", "here", &shutdown, is_never_fatal, refused)
                .await
                .unwrap()
                .is_none()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn ended_loop_restarts_until_shutdown() {
        let (shutdown, rounds) = (CancellationToken::new(), AtomicU32::new(0));
        let run = || async {
            if rounds.fetch_add(1, Ordering::Relaxed) == 2 {
                shutdown.cancel();
            }
            fail_with_kind(io::ErrorKind::TimedOut)
        };
        keep_running("loop", &shutdown, is_never_fatal, run)
            .await
            .unwrap();
        assert_eq!(rounds.into_inner(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn background_work_retries_each_minute_until_success() {
        let (shutdown, tries, start) = (CancellationToken::new(), AtomicU32::new(0), Instant::now());
        let work = || async {
            match tries.fetch_add(1, Ordering::Relaxed) {
                2 => Ok(()),
                _ => fail_with_kind(io::ErrorKind::TimedOut),
            }
        };
        retry_until_ok("part", &shutdown, work).await;
        assert_eq!((tries.into_inner(), start.elapsed()), (3, 2 * LONG_PAUSE));
        shutdown.cancel();
        retry_until_ok("part", &shutdown, || async {
            fail_with_kind(io::ErrorKind::TimedOut)
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn readiness_follows_answers_and_timeouts() {
        let (shutdown, health) = (CancellationToken::new(), ServiceHealth::new());
        let round = AtomicU32::new(0);
        let answers = || async {
            match round.fetch_add(1, Ordering::Relaxed) {
                0 => true,
                1 => std::future::pending().await,
                _ => true,
            }
        };
        let seen = async {
            let mut seen = Vec::new();
            for seconds in [6, 10, 5] {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                seen.push(health.is_ready());
            }
            shutdown.cancel();
            seen
        };
        let ((), seen) = tokio::join!(track_readiness("nats", &health, &shutdown, answers), seen);
        assert_eq!(seen, [true, false, true]);
    }
}
