//! `GET /scale`: number of slots that each executor pool needs, for an autoscaler that reads JSON.
//!
//! Every planner reports all runs, not only its own: open workspaces come from the records of all planners,
//! and a pool has one queue. So all planners return the same answer.

use std::collections::BTreeMap;

use axum::{Json, Router, routing::get};
use serde::Serialize;

use crate::telemetry::{PoolSlots, last_slots};

#[derive(Debug, PartialEq, Eq, Serialize)]
struct ScaleResponse {
    /// Demand by name of the pool; an unknown pool is missing.
    pools: BTreeMap<String, PoolDemand>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct PoolDemand {
    /// Number of open workspaces.
    held: u64,
    /// Runs that wait for a slot.
    waiting: u64,
    /// Sum of both: the slots that are needed.
    demand: u64,
}

pub(crate) fn scale_router() -> Router {
    Router::new().route("/scale", get(async || Json(scale_response(last_slots()))))
}

fn scale_response(seen: Vec<(String, PoolSlots, u64)>) -> ScaleResponse {
    let pools = seen.into_iter().map(|(pool, slots, waiting)| {
        let held = u64::from(slots.held);
        let demand = held + waiting;
        (
            pool,
            PoolDemand {
                held,
                waiting,
                demand,
            },
        )
    });
    ScaleResponse {
        pools: pools.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_demand_sums_open_and_waiting() {
        let slots = PoolSlots {
            free: 0,
            total: 4,
            held: 3,
        };
        let told = serde_json::to_value(scale_response(vec![("default".to_owned(), slots, 2)])).unwrap();
        let wanted = serde_json::json!({"pools": {"default": {"held": 3, "waiting": 2, "demand": 5}}});
        assert_eq!(told, wanted);
    }
}
