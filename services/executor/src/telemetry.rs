//! Metrics of an executor: gauges of its slots and its disk.

use std::sync::{Arc, LazyLock, Once, Weak};

use git::DiskRoom;
use opentelemetry::{KeyValue, global};
use parking_lot::Mutex;

use crate::service::registry::WorkspaceRegistry;

/// Registries of this process: one, except in tests and programs that run several executors.
static REGISTRIES: LazyLock<Mutex<Vec<Weak<WorkspaceRegistry>>>> = LazyLock::new(Mutex::default);
static OBSERVED: Once = Once::new();

/// Makes the gauges include a registry during its lifetime.
pub(crate) fn follow_registry(registry: &Arc<WorkspaceRegistry>) {
    let mut known = REGISTRIES.lock();
    known.retain(|registry| registry.strong_count() > 0);
    known.push(Arc::downgrade(registry));
    // A second registration would report every gauge twice.
    OBSERVED.call_once(register_gauges);
}

fn register_gauges() {
    global::meter("journeyman.executor")
        .u64_observable_gauge("journeyman.executor.slots")
        .with_unit("{slot}")
        .with_callback(|gauge| {
            let (free, used) = count_slots();
            gauge.observe(free, &[KeyValue::new("journeyman.state", "free")]);
            gauge.observe(used, &[KeyValue::new("journeyman.state", "used")]);
        })
        .build();
    global::meter("journeyman.executor")
        .u64_observable_gauge("journeyman.executor.disk")
        .with_unit("By")
        .with_description("Disk that holds the executor's data folder.")
        .with_callback(|gauge| {
            if let Some(room) = measure_disk() {
                gauge.observe(room.free, &[KeyValue::new("journeyman.state", "free")]);
                gauge.observe(room.used, &[KeyValue::new("journeyman.state", "used")]);
            }
        })
        .build();
}

/// Measures the disk of the first registry; the others of this process are on the same disk.
fn measure_disk() -> Option<DiskRoom> {
    let known = REGISTRIES.lock();
    let registry = known.iter().find_map(Weak::upgrade)?;
    DiskRoom::measure(&registry.workspaces)
}

fn count_slots() -> (u64, u64) {
    let known = REGISTRIES.lock();
    let slots = known
        .iter()
        .filter_map(Weak::upgrade)
        .map(|registry| registry.capacity.slots());
    slots.fold((0, 0), |(free, used), more| {
        let (more_free, total) = (u64::from(more.free), u64::from(more.total));
        (free + more_free, used + total.saturating_sub(more_free))
    })
}
