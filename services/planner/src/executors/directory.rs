//! Directory of executors with the last status of each, which arrives on one long-lived stream per
//! executor.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::Duration,
};

use domain::{
    ExecutorMake, ExecutorState, ObservedExecutor, RepositoryName, RunId, SandboxLevel, Timestamp,
    text::truncate_text,
};
use parking_lot::{Mutex, MutexGuard};
use proto::executor as wire;
use tokio::sync::watch;

use crate::telemetry::PoolSlots;

// Time that a new executor has for its first status before the planner chooses among the others.
const FIRST_STATUS: Duration = Duration::from_secs(3);
// Limits for text from an executor, which is less trusted: characters of a text, number of programs.
const WORDS: usize = 200;
const PROGRAMS: usize = 50;

/// Workspace that is open at an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenRun {
    pub(super) run: RunId,
    pub(super) repository: RepositoryName,
    pub(super) workspace: String,
}

/// Last status of one executor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LastStatus {
    pub(super) free: u32,
    pub(super) total: u32,
    pub(super) warm: BTreeSet<String>,
    pub(super) draining: bool,
    pub(super) open: Vec<OpenRun>,
    /// Start of the executor, in Unix seconds.
    pub(super) started_at: i64,
    /// Reason that the executor does not accept work; empty: it is ready.
    pub(super) unready: String,
    pub(super) version: String,
    pub(super) system: String,
    pub(super) programs: Vec<String>,
    pub(super) sandbox: Option<SandboxLevel>,
    /// True if the executor keeps its spans until a planner requests them.
    pub(super) keeps_spans: bool,
}

impl LastStatus {
    /// Converts a message. An open run whose id this release cannot parse is omitted.
    pub(super) fn new(message: wire::WatchStatusResponse) -> Self {
        let open = message.open_runs.into_iter().filter_map(|open| {
            Some(OpenRun {
                run: open.run_id.parse().ok()?,
                repository: open.repository.parse().ok()?,
                workspace: open.workspace_id,
            })
        });
        Self {
            free: message.free_slots,
            total: message.total_slots,
            warm: message.warm_repositories.into_iter().collect(),
            draining: message.draining,
            open: open.collect(),
            started_at: message.started_at,
            unready: truncate_text(&message.unready, WORDS),
            version: truncate_text(&message.version, WORDS),
            system: truncate_text(&message.system, WORDS),
            programs: message
                .programs
                .iter()
                .take(PROGRAMS)
                .map(|name| truncate_text(name, WORDS))
                .collect(),
            sandbox: Some(sandbox_level_of(message.sandbox_level)),
            keeps_spans: message.keeps_spans,
        }
    }

    /// Returns the part of the status that outlives its stream.
    fn past(&self) -> LostExecutor {
        LostExecutor {
            make: Some(ExecutorMake {
                version: self.version.clone(),
                sandbox: self.sandbox.unwrap_or(SandboxLevel::L0),
                system: self.system.clone(),
                programs: self.programs.clone(),
            }),
            started_at: (self.started_at > 0)
                .then(|| Timestamp::from_unix_ms(self.started_at.saturating_mul(1000))),
            ..LostExecutor::default()
        }
    }

    fn seen(&self, address: &str) -> ObservedExecutor {
        let (state, why) = if self.draining {
            (ExecutorState::Draining, String::new())
        } else if self.unready.is_empty() {
            (ExecutorState::Ready, String::new())
        } else {
            (ExecutorState::Unready, self.unready.clone())
        };
        let past = self.past();
        ObservedExecutor {
            address: address.to_owned(),
            state,
            why,
            free: self.usable(),
            total: self.total,
            held: u32::try_from(self.open.len()).unwrap_or(u32::MAX),
            make: past.make,
            heard_at: None,
            started_at: past.started_at,
        }
    }

    /// Returns the slots that a new run may take.
    pub(super) fn usable(&self) -> u32 {
        if self.draining { 0 } else { self.free }
    }

    fn holds(&self, run: &RunId) -> bool {
        self.open.iter().any(|open| open.run == *run)
    }
}

/// Last known properties of an executor that does not respond.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LostExecutor {
    make: Option<ExecutorMake>,
    started_at: Option<Timestamp>,
    heard_at: Option<Timestamp>,
    why: String,
}

impl LostExecutor {
    fn seen(&self, address: &str) -> ObservedExecutor {
        ObservedExecutor {
            address: address.to_owned(),
            state: ExecutorState::Silent,
            why: self.why.clone(),
            free: 0,
            total: 0,
            held: 0,
            make: self.make.clone(),
            heard_at: self.heard_at,
            started_at: self.started_at,
        }
    }
}

/// Ranks the executors of a pool that may open a run's workspace, best first.
///
/// The order: executors that already hold the workspace (a crashed planner opened it), then those with a
/// free slot; of these the ones with a warm repository, then those with more free slots, then the older ones.
/// An autoscaler removes the youngest pods first, and so finds them idle.
pub(super) fn rank_executors<'a>(
    executors: impl IntoIterator<Item = (&'a str, &'a LastStatus)>,
    repository: &RepositoryName,
    run: &RunId,
) -> Vec<String> {
    let repository = repository.to_string();
    let mut fit: Vec<_> = executors
        .into_iter()
        .filter(|(_, status)| status.holds(run) || status.usable() > 0)
        .collect();
    fit.sort_by_key(|(_, status)| {
        let is_warm = status.warm.contains(&repository);
        let free = std::cmp::Reverse(status.free);
        (!status.holds(run), !is_warm, free, status.started_at)
    });
    fit.into_iter().map(|(address, _)| address.to_owned()).collect()
}

/// Open workspace and the executor that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct HeldWorkspace {
    pub(crate) executor: String,
    pub(crate) run: RunId,
    pub(crate) repository: RepositoryName,
    pub(crate) id: String,
}

#[derive(Default)]
struct DirectoryState {
    /// Addresses of each pool, as last resolved.
    pools: BTreeMap<String, BTreeSet<String>>,
    statuses: HashMap<String, LastStatus>,
    /// Addresses that have responded or failed at least once.
    responded: HashSet<String>,
    /// Executors that do not respond, by address.
    past: HashMap<String, LostExecutor>,
    /// DNS names of pools that currently have no address.
    unresolved: BTreeSet<String>,
}

impl DirectoryState {
    fn of_pool<'a>(&'a self, pool: &str) -> impl Iterator<Item = (&'a str, &'a LastStatus)> {
        let addresses = self.pools.get(pool).into_iter().flatten();
        addresses.filter_map(|address| Some((address.as_str(), self.statuses.get(address)?)))
    }
}

/// Every executor that the planner found, with its last status.
pub(super) struct ExecutorDirectory {
    known: Mutex<DirectoryState>,
    changed: watch::Sender<()>,
}

impl ExecutorDirectory {
    pub(super) fn new() -> Self {
        Self {
            known: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }

    fn known(&self) -> MutexGuard<'_, DirectoryState> {
        self.known.lock()
    }

    /// Wakes when the directory changes after this call.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Replaces the addresses of the pools. Returns all addresses.
    pub(super) fn set_pools(&self, pools: BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
        let all: BTreeSet<String> = pools.values().flatten().cloned().collect();
        let mut known = self.known();
        if known.pools != pools {
            // Addresses of removed pods must not count as slots.
            known.statuses.retain(|address, _| all.contains(address));
            known.responded.retain(|address| all.contains(address));
            known.past.retain(|address, _| all.contains(address));
            known.pools = pools;
            drop(known);
            self.changed.send_replace(());
        }
        all
    }

    /// Records the names of pools that currently have no address.
    pub(super) fn set_unresolved(&self, unresolved: BTreeSet<String>) {
        let mut known = self.known();
        if known.unresolved != unresolved {
            known.unresolved = unresolved;
            drop(known);
            self.changed.send_replace(());
        }
    }

    /// Records the status that an executor sent.
    pub(super) fn receive(&self, address: &str, status: LastStatus) {
        let mut known = self.known();
        known.responded.insert(address.to_owned());
        known.past.remove(address);
        let before = known.statuses.insert(address.to_owned(), status.clone());
        drop(known);
        // An unchanged status wakes nothing: every wake-up reads the queues of all pools.
        if before.as_ref() != Some(&status) {
            self.changed.send_replace(());
        }
    }

    /// Records that an executor does not respond, and the reason.
    pub(super) fn lose(&self, address: &str, why: &str, now: Timestamp) {
        let mut known = self.known();
        known.responded.insert(address.to_owned());
        let lost = known.statuses.remove(address);
        let past = match &lost {
            Some(status) => LostExecutor {
                heard_at: Some(now),
                ..status.past()
            },
            None => known.past.get(address).cloned().unwrap_or_default(),
        };
        let past = LostExecutor {
            why: truncate_text(why, WORDS),
            ..past
        };
        let before = known.past.insert(address.to_owned(), past.clone());
        drop(known);
        if lost.is_some() || before != Some(past) {
            self.changed.send_replace(());
        }
    }

    /// Returns true if the last message of the executor was a status.
    pub(super) fn knows(&self, address: &str) -> bool {
        self.known().statuses.contains_key(address)
    }

    /// Returns the version of an executor that keeps its spans for planners; absent: it does not.
    pub(super) fn span_keeper(&self, address: &str) -> Option<String> {
        let known = self.known();
        let status = known.statuses.get(address);
        status
            .filter(|status| status.keeps_spans)
            .map(|status| status.version.clone())
    }

    /// Returns every executor of a pool that has responded or failed, ready ones last, and those of `names`
    /// that have no address.
    pub(super) fn seen(&self, pool: &str, names: &[String]) -> (Vec<ObservedExecutor>, Vec<String>) {
        let known = self.known();
        let addresses = known.pools.get(pool).into_iter().flatten();
        let one = |address: &String| match (known.statuses.get(address), known.past.get(address)) {
            (Some(status), _) => Some(status.seen(address)),
            (None, Some(past)) => Some(past.seen(address)),
            (None, None) => None,
        };
        let mut executors: Vec<_> = addresses.filter_map(one).collect();
        executors.sort_by(|a, b| (a.state, &a.address).cmp(&(b.state, &b.address)));
        let unresolved = names.iter().filter(|name| known.unresolved.contains(*name));
        (executors, unresolved.cloned().collect())
    }

    /// Waits until each executor of a pool has responded or failed, at most three seconds: right after
    /// start the directory is empty.
    pub(super) async fn wait_for_statuses(&self, pool: &str) {
        let mut changes = self.changes();
        let responded = async {
            while !self.has_responded(pool) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // After the timeout the executors that responded are enough.
        let _ = tokio::time::timeout(FIRST_STATUS, responded).await;
    }

    fn has_responded(&self, pool: &str) -> bool {
        let known = self.known();
        known
            .pools
            .get(pool)
            .is_some_and(|addresses| addresses.iter().all(|address| known.responded.contains(address)))
    }

    /// Ranks the executors of one pool, see [`rank_executors`].
    pub(super) fn ranked(&self, pool: &str, repository: &RepositoryName, run: &RunId) -> Vec<String> {
        rank_executors(self.known().of_pool(pool), repository, run)
    }

    /// Returns true if an executor already holds the run's workspace, so that the run need not wait for a
    /// slot.
    pub(super) fn holds(&self, pool: &str, run: &RunId) -> bool {
        self.known().of_pool(pool).any(|(_, status)| status.holds(run))
    }

    /// Returns the slots of each pool.
    pub(super) fn slots(&self) -> BTreeMap<String, PoolSlots> {
        let known = self.known();
        let slots = known.pools.keys().map(|pool| {
            let sum = known
                .of_pool(pool)
                .fold(PoolSlots::default(), |sum, (_, status)| PoolSlots {
                    free: sum.free + status.usable(),
                    total: sum.total + status.total,
                    held: sum.held + u32::try_from(status.open.len()).unwrap_or(u32::MAX),
                });
            (pool.clone(), sum)
        });
        slots.collect()
    }

    /// Returns every open workspace.
    pub(super) fn held(&self) -> Vec<HeldWorkspace> {
        let known = self.known();
        let each = known.statuses.iter().flat_map(|(address, status)| {
            status.open.iter().map(|open| HeldWorkspace {
                executor: address.clone(),
                run: open.run.clone(),
                repository: open.repository.clone(),
                id: open.workspace.clone(),
            })
        });
        each.collect()
    }
}

/// The level as the executor states it; the lowest when it states none.
pub(super) fn sandbox_level_of(level: i32) -> SandboxLevel {
    match wire::SandboxLevel::try_from(level) {
        Ok(wire::SandboxLevel::L3) => SandboxLevel::L3,
        Ok(wire::SandboxLevel::L2) => SandboxLevel::L2,
        Ok(wire::SandboxLevel::L1) => SandboxLevel::L1,
        Ok(wire::SandboxLevel::L0 | wire::SandboxLevel::Unspecified) | Err(_) => SandboxLevel::L0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_last_status(free: u32, warm: &[&str]) -> LastStatus {
        LastStatus {
            free,
            total: 4,
            warm: warm.iter().map(|&name| name.to_owned()).collect(),
            ..LastStatus::default()
        }
    }

    fn build_run_id() -> RunId {
        "jira:ENG-1@7".parse().unwrap()
    }

    fn build_shop_name() -> RepositoryName {
        "acme/shop".parse().unwrap()
    }

    #[test]
    fn ranking_prefers_holder_then_warm_then_free() {
        let held = OpenRun {
            run: build_run_id(),
            repository: build_shop_name(),
            workspace: "w1".to_owned(),
        };
        let full = build_last_status(0, &["acme/shop"]);
        let holder = LastStatus {
            open: vec![held],
            draining: true,
            ..build_last_status(0, &[])
        };
        let draining = LastStatus {
            draining: true,
            ..build_last_status(4, &["acme/shop"])
        };
        let (roomy, small, warm) = (
            build_last_status(3, &[]),
            build_last_status(1, &[]),
            build_last_status(1, &["acme/shop"]),
        );
        let young = LastStatus {
            started_at: 1_800_000_000,
            ..build_last_status(1, &[])
        };
        let executors = [
            ("full", &full),
            ("young", &young),
            ("small", &small),
            ("roomy", &roomy),
            ("draining", &draining),
            ("warm", &warm),
            ("holder", &holder),
        ];
        assert_eq!(
            rank_executors(executors, &build_shop_name(), &build_run_id()),
            ["holder", "warm", "roomy", "small", "young"]
        );
    }

    #[test]
    fn pool_slots_exclude_silent_and_draining_executors() {
        let directory = ExecutorDirectory::new();
        let addresses = ["a", "b", "c"].map(str::to_owned).into();
        directory.set_pools([("default".to_owned(), addresses)].into());
        let held = OpenRun {
            run: build_run_id(),
            repository: build_shop_name(),
            workspace: "w1".to_owned(),
        };
        directory.receive(
            "a",
            LastStatus {
                open: vec![held],
                ..build_last_status(2, &[])
            },
        );
        directory.receive(
            "b",
            LastStatus {
                draining: true,
                ..build_last_status(3, &[])
            },
        );
        directory.lose("c", "it cannot be reached", Timestamp::default());
        let slots = directory.slots();
        assert_eq!(
            slots["default"],
            PoolSlots {
                free: 2,
                total: 8,
                held: 1
            }
        );
        assert!(directory.has_responded("default"));
    }

    #[test]
    fn silent_executor_keeps_reason_without_slots() {
        let directory = ExecutorDirectory::new();
        let addresses = ["a", "b", "new"].map(str::to_owned).into();
        directory.set_pools([("default".to_owned(), addresses)].into());
        let status = LastStatus {
            version: "1.2.0".to_owned(),
            unready: "the network is open".to_owned(),
            started_at: 7,
            ..build_last_status(0, &[])
        };
        directory.receive("a", status);
        directory.receive("b", build_last_status(2, &[]));
        let (gone, later) = (Timestamp::from_unix_ms(50_000), Timestamp::from_unix_ms(60_000));
        let states = |directory: &ExecutorDirectory| {
            let (seen, _) = directory.seen("default", &[]);
            Vec::from_iter(
                seen.into_iter()
                    .map(|one| (one.address, one.state, one.why, one.heard_at)),
            )
        };
        let ready = || ("b".to_owned(), ExecutorState::Ready, String::new(), None);
        let unready = (
            "a".to_owned(),
            ExecutorState::Unready,
            "the network is open".to_owned(),
            None,
        );
        assert_eq!(states(&directory), [unready, ready()]);
        directory.lose("a", "it ended", gone);
        directory.lose("a", "it cannot be reached", later);
        let silent = (
            "a".to_owned(),
            ExecutorState::Silent,
            "it cannot be reached".to_owned(),
            Some(gone),
        );
        assert_eq!(states(&directory), [silent, ready()]);
        let (seen, _) = directory.seen("default", &[]);
        assert_eq!((seen[0].free, seen[0].total), (0, 0));
        assert_eq!(
            seen[0].make.as_ref().unwrap().version,
            "1.2.0",
            "what it was is known"
        );
        assert_eq!(seen[0].started_at, Some(Timestamp::from_unix_ms(7_000)));
        directory.set_pools([("default".to_owned(), ["b".to_owned()].into())].into());
        assert_eq!(
            states(&directory),
            [ready()],
            "a pod that is gone for good is forgotten"
        );
    }
}
