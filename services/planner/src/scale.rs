//! `GET /scale`: how many slots each pool of executors needs, for an autoscaler that reads JSON.
//!
//! Every planner tells of all runs, not only of its own: what is open is in the records of all planners, which people see too,
//! and the queue of a pool is one for all. So the answer of any planner is as good as that of another.

use std::collections::BTreeMap;

use axum::{Json, Router, routing::get};
use serde::Serialize;

use crate::telemetry::{PoolSlots, last_slots};

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Scale {
    /// By the name of the pool; one that nothing is known of yet is not there.
    pools: BTreeMap<String, Wanted>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Wanted {
    /// Open workspaces.
    held: u64,
    /// Runs that wait for a slot.
    waiting: u64,
    /// Both together: the slots that would be enough.
    demand: u64,
}

pub(crate) fn router() -> Router {
    Router::new().route("/scale", get(async || Json(scale(last_slots()))))
}

fn scale(seen: Vec<(String, PoolSlots, u64)>) -> Scale {
    let pools = seen.into_iter().map(|(pool, slots, waiting)| {
        let held = u64::from(slots.held);
        let demand = held + waiting;
        (
            pool,
            Wanted {
                held,
                waiting,
                demand,
            },
        )
    });
    Scale {
        pools: pools.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_needs_a_slot_for_each_open_workspace_and_each_run_that_waits() {
        let slots = PoolSlots {
            free: 0,
            total: 4,
            held: 3,
        };
        let told = serde_json::to_value(scale(vec![("default".to_owned(), slots, 2)])).unwrap();
        let wanted = serde_json::json!({"pools": {"default": {"held": 3, "waiting": 2, "demand": 5}}});
        assert_eq!(told, wanted);
    }
}
