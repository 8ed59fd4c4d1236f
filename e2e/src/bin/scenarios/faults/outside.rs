//! What goes wrong by chance in the outside.

use std::{collections::BTreeMap, time::Duration};

use e2e::World;
use testkit::{DeliveryFaults, EarlyChecks, WriteFaults};

use crate::faults::schedule::Schedule;

/// Calls that GitHub takes in an hour, of an enterprise: the stand-in counts both accounts together, and they make more than
/// 20 for a ticket that strikes hit.
const AN_HOUR: u64 = 15_000;
/// How many writes of a thousand go wrong.
const WRITES: u32 = 100;
/// How many deliveries of a thousand come late, and so out of order.
const LATE: u32 = 200;
const LATEST: Duration = Duration::from_secs(3);
/// How many of a thousand come ten times.
const REPEATED: u32 = 150;
const COPIES: u32 = 10;
/// How many pushes of a thousand are answered after CI is done.
const EARLY_CHECKS: u32 = 300;
const PUSH_HELD: Duration = Duration::from_millis(1_500);
/// How long the model thinks.
const THINKING: Duration = Duration::from_millis(700);

/// Lets the outside fail from now on.
pub(crate) fn trouble(world: &World, schedule: &Schedule) {
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
    world.model.repeat_after("was cut");
}

/// How often what went wrong, by name.
pub(crate) fn met(world: &World) -> BTreeMap<String, usize> {
    let mut met = world.github.faults_met();
    for (name, count) in world.jira.faults_met() {
        *met.entry(name).or_default() += count;
    }
    met
}
