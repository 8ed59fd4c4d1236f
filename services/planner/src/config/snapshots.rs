//! `[planner.snapshots]`: limits of snapshots in the object store.

use bootstrap::settings::Error;
use serde::Deserialize;

/// `[planner.snapshots]`: limits of snapshots in the object store.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SnapshotSettings {
    /// Snapshots that one run keeps, in MiB.
    pub run_mib: u64,
    /// Snapshots that all live runs of a ticket keep together, in MiB.
    pub ticket_mib: u64,
}

impl Default for SnapshotSettings {
    fn default() -> Self {
        Self {
            run_mib: 128,
            ticket_mib: 256,
        }
    }
}

impl SnapshotSettings {
    pub(super) fn check(self) -> Result<(), Error> {
        if self.run_mib == 0 {
            return Err(Error::new("planner.snapshots.run_mib", "must be at least 1"));
        }
        if self.ticket_mib < self.run_mib {
            let problem = "must be at least planner.snapshots.run_mib";
            return Err(Error::new("planner.snapshots.ticket_mib", problem));
        }
        Ok(())
    }
}
