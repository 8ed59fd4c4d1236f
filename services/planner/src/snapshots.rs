//! Packs of snapshots in the object store: limits per run and ticket, the packs that a run needs, and
//! removal of replaced packs.

use std::collections::{HashMap, HashSet};

use domain::{ObjectRef, OutboundOutcome, RunId, cause::format_error_chain};
use parking_lot::{Mutex, MutexGuard};
use queue::{ContentStore, ObjectUpload, StoredObject};

use crate::config::SnapshotSettings;
use crate::run::{PlannerRunState, ReportState};

const MIB: u64 = 1 << 20;
// Runs whose packs this planner remembers; the packs of more runs are left to the collector.
const MAX_RUNS: usize = 10_000;

/// Removes packs that this planner stored and no fact of the run needs. The collector removes packs of
/// other planners, and those that remain after a crash.
pub(crate) struct SnapshotStore {
    objects: ContentStore,
    settings: SnapshotSettings,
    stored: Mutex<HashMap<RunId, Vec<OwnPack>>>,
}

/// Pack that this planner stored.
struct OwnPack {
    stored: StoredObject,
    /// True once the journal names the pack. Before that, nothing may remove it.
    is_recorded: bool,
}

/// Quota for one more pack.
#[derive(Clone)]
pub(crate) struct SnapshotQuota {
    objects: ContentStore,
    max_bytes: u64,
    /// Reason for the model when the pack is too large.
    refusal: String,
}

impl SnapshotQuota {
    /// Starts the upload of a pack.
    pub(crate) fn upload(&self) -> ObjectUpload {
        self.objects.upload()
    }

    /// Returns the reason if a pack of this size does not fit.
    pub(crate) fn refuse(&self, bytes: u64) -> Option<String> {
        (bytes > self.max_bytes).then(|| self.refusal.clone())
    }
}

impl SnapshotStore {
    pub(crate) fn new(objects: ContentStore, settings: SnapshotSettings) -> Self {
        Self {
            objects,
            settings,
            stored: Mutex::default(),
        }
    }

    /// Returns the quota for the run's next snapshot. `kept_elsewhere`: bytes that other runs of the ticket
    /// keep.
    pub(crate) fn quota(&self, state: &PlannerRunState, kept_elsewhere: u64) -> SnapshotQuota {
        let kept = distinct_bytes(&list_packs_beside_snapshot(state));
        let (max_bytes, refusal) = compute_quota(self.settings, kept, kept_elsewhere);
        SnapshotQuota {
            objects: self.objects.clone(),
            max_bytes,
            refusal,
        }
    }

    /// Notes a pack that a run stored.
    pub(crate) fn note(&self, run: &RunId, pack: StoredObject) {
        let mut stored = self.stored();
        if stored.len() >= MAX_RUNS && !stored.contains_key(run) {
            return;
        }
        let packs = stored.entry(run.clone()).or_default();
        // The same content has a new sequence after it is stored again; it still belongs to this run.
        let known = packs
            .iter()
            .position(|known| known.stored.object == pack.object)
            .map(|place| packs.swap_remove(place));
        let mut stored = pack;
        stored.is_new |= known.is_some_and(|known| known.stored.is_new);
        packs.push(OwnPack {
            stored,
            is_recorded: false,
        });
    }

    /// Removes the packs that a run no longer needs, in the background. The caller has appended the run's
    /// last fact.
    pub(crate) fn release(&self, state: &PlannerRunState) {
        if !self.stored().contains_key(&state.run) {
            return;
        }
        let needed: HashSet<String> = list_packs(state).into_iter().map(|pack| pack.sha256).collect();
        let mut stored = self.stored();
        let Some(packs) = stored.get_mut(&state.run) else {
            return;
        };
        let mut gone = Vec::new();
        for mut pack in std::mem::take(packs) {
            let is_needed = needed.contains(&pack.stored.object.sha256);
            // An unrecorded pack may be named by the next entry, so it stays.
            if pack.is_recorded && !is_needed {
                gone.push(pack.stored);
            } else {
                pack.is_recorded |= is_needed;
                packs.push(pack);
            }
        }
        if packs.is_empty() {
            stored.remove(&state.run);
        }
        drop(stored);
        if gone.is_empty() {
            return;
        }
        let (objects, run) = (self.objects.clone(), state.run.clone());
        tokio::spawn(async move {
            for pack in gone {
                match objects.remove_stored(&pack).await {
                    Ok(is_gone) => {
                        tracing::debug!(%run, object = pack.object.sha256, is_gone, "a replaced snapshot")
                    }
                    Err(error) => tracing::debug!(
                        %run,
                        error = %format_error_chain(&error),
                        "a replaced snapshot stays until it is collected"
                    ),
                }
            }
        });
    }

    /// Forgets a finished run: its last snapshot stays as long as its journal.
    pub(crate) fn forget(&self, run: &RunId) {
        self.stored().remove(run);
    }

    fn stored(&self) -> MutexGuard<'_, HashMap<RunId, Vec<OwnPack>>> {
        self.stored.lock()
    }
}

/// Returns the bytes for a run's next snapshot next to the stored ones, and the reason for the model if it
/// is larger.
fn compute_quota(settings: SnapshotSettings, kept: u64, kept_elsewhere: u64) -> (u64, String) {
    // A setting may be any number, and one that means "no limit" must not wrap to a small one.
    let of_run = settings.run_mib.saturating_mul(MIB).saturating_sub(kept);
    let of_ticket = settings
        .ticket_mib
        .saturating_mul(MIB)
        .saturating_sub(kept + kept_elsewhere);
    let limit = if of_run <= of_ticket {
        format!(
            "snapshots of one run take at most {} MiB, and {} MiB are left",
            settings.run_mib,
            of_run / MIB
        )
    } else {
        format!(
            "snapshots of one ticket take at most {} MiB, its other runs keep {} MiB, and {} MiB are left",
            settings.ticket_mib,
            kept_elsewhere / MIB,
            of_ticket / MIB
        )
    };
    let refusal = format!(
        "the change is too large: {limit}. Delete generated files, name their folders in .gitignore, or make the change smaller"
    );
    (of_run.min(of_ticket), refusal)
}

/// Returns the sum of bytes of distinct packs.
pub(crate) fn distinct_bytes(packs: &[ObjectRef]) -> u64 {
    let mut known = HashSet::new();
    let different = packs.iter().filter(|pack| known.insert(&pack.sha256));
    different.map(|pack| pack.size_bytes).sum()
}

/// Returns every pack that a later step may read: last snapshots, the best verified state, and unpushed
/// changes of reports.
pub(crate) fn list_packs(state: &PlannerRunState) -> Vec<ObjectRef> {
    let last = state.source().work().snapshot.as_ref();
    let mut packs = list_packs_beside_snapshot(state);
    packs.extend(last.map(|snapshot| snapshot.pack.clone()));
    packs
}

/// Returns these packs without the last snapshot of the run's own repository, which the next one replaces.
fn list_packs_beside_snapshot(state: &PlannerRunState) -> Vec<ObjectRef> {
    let others = state.source().other_works();
    let others = others.filter_map(|work| work.snapshot.as_ref());
    let snapshots = others.chain(state.verification().best());
    let reports = state.delivery().reports().iter().filter_map(find_unpushed_pack);
    snapshots
        .map(|snapshot| snapshot.pack.clone())
        .chain(reports)
        .collect()
}

/// Returns the pack of a report that may still be performed. A failed one may return from the dead letters.
fn find_unpushed_pack(report: &ReportState) -> Option<ObjectRef> {
    let is_open = !matches!(
        report.outcome,
        Some(OutboundOutcome::Done(_) | OutboundOutcome::Refused(_))
    );
    let push = report.request.push().filter(|_| is_open);
    push.map(|push| push.pack.clone())
}

#[cfg(test)]
mod tests {
    use domain::{OutboundRequest, record_format::decode_stored_record};

    use super::*;

    #[test]
    fn snapshot_quota_respects_run_and_ticket() {
        let settings = SnapshotSettings {
            run_mib: 10,
            ticket_mib: 16,
        };
        let quota = |kept_mib: u64, elsewhere_mib: u64| {
            let (bytes, words) = compute_quota(settings, kept_mib * MIB, elsewhere_mib * MIB);
            (bytes / MIB, words)
        };
        assert_eq!(quota(0, 0).0, 10);
        assert_eq!(quota(4, 0).0, 6);
        assert!(
            quota(4, 0)
                .1
                .contains("of one run take at most 10 MiB, and 6 MiB are left")
        );
        assert_eq!(quota(4, 9).0, 3);
        assert!(
            quota(4, 9)
                .1
                .contains("its other runs keep 9 MiB, and 3 MiB are left")
        );
        assert_eq!(quota(20, 90).0, 0, "never below nothing");
    }

    #[test]
    fn huge_snapshot_settings_mean_no_limit() {
        let settings = SnapshotSettings {
            run_mib: u64::MAX,
            ticket_mib: u64::MAX,
        };
        assert_eq!(compute_quota(settings, MIB, MIB).0, u64::MAX - 2 * MIB);
    }

    #[test]
    fn same_pack_named_twice_counts_once() {
        let pack = |name: &str| ObjectRef {
            sha256: name.to_owned(),
            size_bytes: 5,
        };
        assert_eq!(distinct_bytes(&[pack("a"), pack("b"), pack("a")]), 10);
    }

    #[test]
    fn open_request_keeps_its_pack() {
        let lines = include_str!("../../../crates/domain/tests/stored/v1/report.jsonl").lines();
        for line in lines {
            let OutboundRequest { id, at, request, .. } = decode_stored_record(line.as_bytes()).unwrap();
            let stored = serde_json::to_value(&request).unwrap();
            let report = ReportState {
                id,
                request,
                at,
                outcome: None,
                is_void: false,
            };
            let pack = find_unpushed_pack(&report).map(|pack| serde_json::to_value(pack).unwrap());
            assert_eq!(pack.as_ref(), stored.get("pack"), "{line}");
        }
    }
}
