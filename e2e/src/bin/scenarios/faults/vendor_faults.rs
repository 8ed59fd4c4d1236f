//! Random faults of the external services.

use std::{collections::BTreeMap, time::Duration};

use e2e::TestWorld;
use testkit::{DeliveryFaults, EarlyChecks, WriteFaults};

use crate::faults::schedule::FaultSchedule;

// Hourly rate limit of an installation at GitHub Enterprise. A ticket under strikes causes some 50 calls of the reader.
const AN_HOUR: u64 = 15_000;
/// Share of writes that fail, in thousandths.
const WRITES: u32 = 100;
/// Share of late deliveries, which are therefore out of order, in thousandths.
const LATE: u32 = 200;
const LATEST: Duration = Duration::from_secs(3);
/// Share of deliveries that come ten times, in thousandths.
const REPEATED: u32 = 150;
const COPIES: u32 = 10;
/// Share of pushes that are answered after CI is done, in thousandths.
const EARLY_CHECKS: u32 = 300;
const PUSH_HELD: Duration = Duration::from_millis(1_500);
/// Latency of the model.
const THINKING: Duration = Duration::from_millis(700);

/// Enables the random faults from now on.
pub(crate) fn enable_faults(world: &TestWorld, schedule: &FaultSchedule) {
    let seed = schedule.seed;
    let writes = WriteFaults {
        seed,
        per_thousand: WRITES,
        hold: schedule.silence,
    };
    let deliveries = DeliveryFaults {
        seed,
        late_per_thousand: LATE,
        latest: LATEST,
        repeated_per_thousand: REPEATED,
        copies: COPIES,
    };
    world.github.set_rate_limit(AN_HOUR);
    world.github.set_write_faults(Some(writes.clone()));
    world.github.set_delivery_faults(Some(deliveries.clone()));
    world.github.set_list_lag(schedule.list_lag);
    world.github.set_early_checks(Some(EarlyChecks {
        seed,
        per_thousand: EARLY_CHECKS,
        hold: PUSH_HELD,
    }));
    world.jira.set_write_faults(Some(writes));
    world.jira.set_delivery_faults(Some(deliveries));
    world.jira.set_list_lag(schedule.list_lag);
    world.model.set_latency(THINKING);
    // A model repeats a call whose result reports an interruption.
    world.model.repeat_after("was cut");
}

/// Number of faults met so far, by name.
pub(crate) fn count_faults(world: &TestWorld) -> BTreeMap<String, usize> {
    let mut met = world.github.faults_met();
    for (name, count) in world.jira.faults_met() {
        *met.entry(name).or_default() += count;
    }
    met
}
