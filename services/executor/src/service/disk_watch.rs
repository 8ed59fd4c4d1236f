//! Watches the free disk space during the lifetime of the executor. A full disk prevents new work and
//! interrupts no run.

use std::{sync::Arc, time::Duration};

use git::DiskRoom;
use tokio_util::sync::CancellationToken;

use super::{registry::WorkspaceRegistry, server::ReadinessReporter};

const EVERY: Duration = Duration::from_secs(5);
const MIB: u64 = 1 << 20;

/// Low-water mark. The mark for accepting work again is a quarter higher, so that the state does not
/// oscillate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskReserve {
    bytes: u64,
}

impl DiskReserve {
    pub(crate) const fn of_mib(mib: u64) -> Self {
        Self {
            bytes: mib.saturating_mul(MIB),
        }
    }

    /// Returns true when the disk is too full for new work. A disk that cannot be measured counts as not
    /// full.
    fn is_low(self, room: Option<DiskRoom>, was_low: bool) -> bool {
        let mark = if was_low {
            self.bytes.saturating_add(self.bytes / 4)
        } else {
            self.bytes
        };
        room.is_some_and(|room| room.free < mark)
    }
}

/// Checks the disk until `stop`. Stored results are deleted before work is refused.
pub(crate) async fn watch_disk(
    registry: Arc<WorkspaceRegistry>,
    reserve: DiskReserve,
    readiness: ReadinessReporter,
    stop: CancellationToken,
) {
    loop {
        let measured = tokio::task::spawn_blocking({
            let registry = Arc::clone(&registry);
            move || is_low(&registry, reserve)
        });
        // A failed measurement must not stop the executor from working.
        let is_low = measured.await.unwrap_or(false);
        if registry.capacity.set_disk_low(is_low) {
            if is_low {
                tracing::error!(
                    folder = %registry.workspaces.display(),
                    "not ready: the disk has less free than executor.disk_reserve_mib. Free space on it or make it larger; it is \
                     measured every {} s",
                    EVERY.as_secs()
                );
            } else {
                tracing::info!("the disk has room again");
            }
            readiness.set(registry.capacity.is_ready()).await;
        }
        if stop
            .run_until_cancelled(tokio::time::sleep(EVERY))
            .await
            .is_none()
        {
            return;
        }
    }
}

fn is_low(registry: &WorkspaceRegistry, reserve: DiskReserve) -> bool {
    let was_low = registry.capacity.is_disk_low();
    let measure = || DiskRoom::measure(&registry.workspaces);
    if !reserve.is_low(measure(), was_low) {
        return false;
    }
    registry.store.make_room();
    reserve.is_low(measure(), was_low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_disk_recovers_above_higher_mark() {
        let reserve = DiskReserve::of_mib(100);
        let low = |free_mib: u64, was_low| {
            let room = DiskRoom {
                free: free_mib * MIB,
                used: 0,
            };
            reserve.is_low(Some(room), was_low)
        };
        assert!(low(99, false) && !low(100, false));
        assert!(low(124, true) && !low(125, true));
        assert!(!reserve.is_low(None, true), "nothing is known");
    }
}
