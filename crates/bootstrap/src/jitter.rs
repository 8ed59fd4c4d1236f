//! Delays of first rounds, so that processes and tasks that start together do not call the same server in
//! step.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::LazyLock,
    time::Duration,
};

use tokio_util::sync::CancellationToken;

// Drawn once per process.
static PROCESS_SEED: LazyLock<u64> = LazyLock::new(|| fastrand::u64(..));

/// Delay of a task's first round, below `within`.
///
/// It is the same for the same seed and `part`, and uniformly distributed over seeds and parts.
pub fn start_delay(seed: u64, part: &str, within: Duration) -> Duration {
    // Its keys are fixed, unlike those of `RandomState`, so the same seed and part have the same delay.
    let mut hasher = DefaultHasher::new();
    (seed, part).hash(&mut hasher);
    // Scales the hash to the interval by a multiplication, which has no bias of a remainder.
    let nanos = (u128::from(hasher.finish()) * within.as_nanos()) >> u64::BITS;
    u64::try_from(nanos).map_or(within, Duration::from_nanos)
}

/// Calls [`start_delay`] with the seed of this process.
pub fn own_start_delay(part: &str, within: Duration) -> Duration {
    start_delay(*PROCESS_SEED, part, within)
}

/// Waits for [`own_start_delay`] or for the shutdown.
pub async fn delay_start(part: &str, within: Duration, shutdown: &CancellationToken) {
    let delay = tokio::time::sleep(own_start_delay(part, within));
    shutdown.run_until_cancelled(delay).await.unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn start_delay_stays_below_its_bound(seed: u64, part in ".{0,40}", nanos in 0..=u64::MAX / 2) {
            let within = Duration::from_nanos(nanos);
            let delay = start_delay(seed, &part, within);
            prop_assert!(delay < within || within.is_zero() && delay.is_zero());
            prop_assert_eq!(delay, start_delay(seed, &part, within));
        }

        #[test]
        fn start_delay_spreads_parts_and_processes(seed: u64) {
            let within = Duration::from_secs(8);
            let eighths = |delays: Vec<Duration>| {
                delays.into_iter().map(|delay| delay.as_secs()).collect::<BTreeSet<_>>().len()
            };
            let parts = (0..200).map(|part| start_delay(seed, &format!("acme/shop-{part}"), within));
            prop_assert_eq!(eighths(parts.collect()), 8);
            let processes = (0..200).map(|more| start_delay(seed.wrapping_add(more), "poller", within));
            prop_assert_eq!(eighths(processes.collect()), 8);
        }
    }
}
