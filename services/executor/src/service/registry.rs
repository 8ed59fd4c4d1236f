//! Registry of open workspaces: fences, and the closing of idle workspaces.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use domain::{RunFence, RunId, SandboxLevel, TicketKey, Timestamp};
use grant::Grant;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::{
    readiness::WorkCapacity,
    ticket_fences::{FenceRefusal, FenceStep, TicketFences},
    workspace_use::{OpenedWorkspace, WorkspaceUse},
};
use crate::{
    base_results::{BaseOrigin, BaseResults},
    config::PeerTls,
    retrieval::CommitIndex,
    sandbox::{CommandSandbox, InstalledToolchain},
    store::DiskStore,
    workspace::{KeepLimits, Workspace},
};

const REAP_EVERY: Duration = Duration::from_secs(10);
/// Name of the folder for running checks, in the data folder.
pub(crate) const CHECKS: &str = "checks";

/// Status by which planners choose an executor.
pub(crate) struct ExecutorStatus {
    pub(crate) free: u32,
    pub(crate) total: u32,
    pub(crate) warm: Vec<String>,
    pub(crate) level: SandboxLevel,
    pub(crate) draining: bool,
    pub(crate) open: Vec<Arc<Workspace>>,
    pub(crate) started_at: Timestamp,
    /// Reason why the executor accepts no work; empty if it does.
    pub(crate) unready: &'static str,
    pub(crate) toolchain: InstalledToolchain,
}

/// All open workspaces, with the shared parts of the executor.
pub(crate) struct WorkspaceRegistry {
    pub(crate) workspaces: PathBuf,
    /// Folder for the files of running checks.
    pub(crate) checks: PathBuf,
    pub(crate) store: Arc<DiskStore>,
    /// Results of checks on base commits, for later runs.
    pub(crate) base_results: BaseResults,
    /// Limits of the stored changes of a workspace.
    pub(crate) keep: KeepLimits,
    pub(crate) sandbox: CommandSandbox,
    pub(crate) trust: PeerTls,
    /// Slots, and the reasons to give none away.
    pub(crate) capacity: WorkCapacity,
    stop: CancellationToken,
    open: Mutex<HashMap<RunId, Arc<OpenedWorkspace>>>,
    opening: Mutex<HashMap<RunId, Arc<AsyncMutex<()>>>>,
    fences: Mutex<TicketFences>,
    started_at: Timestamp,
}

impl WorkspaceRegistry {
    pub(crate) fn new(
        data_dir: &std::path::Path,
        slots: u32,
        sandbox: CommandSandbox,
        (store, keep): (DiskStore, KeepLimits),
        trust: PeerTls,
    ) -> Self {
        Self {
            workspaces: data_dir.join("workspaces"),
            checks: data_dir.join(CHECKS),
            store: Arc::new(store),
            base_results: BaseResults::default(),
            keep,
            sandbox,
            trust,
            capacity: WorkCapacity::new(slots),
            stop: CancellationToken::new(),
            open: Mutex::default(),
            opening: Mutex::default(),
            fences: Mutex::default(),
            started_at: bootstrap::read_wall_clock(),
        }
    }

    /// Refuses a fence that is older than another one of the ticket. A newer fence cancels the calls under
    /// older ones.
    pub(crate) fn check_fence(&self, run: &RunId, fence: RunFence) -> Result<(), Status> {
        self.raise_fence(run, fence)
            .map_err(|refusal| refusal.status(fence))
    }

    fn raise_fence(&self, run: &RunId, fence: RunFence) -> Result<(), FenceRefusal> {
        // The lock is held until the calls are cancelled, so that none of them starts in between.
        let mut fences = self.fences.lock();
        match fences.raise(run.ticket(), fence, || self.tickets_in_use())? {
            FenceStep::Same => {}
            FenceStep::Newer => {
                let open = self.open.lock();
                open.iter()
                    .filter(|(other, _)| other.ticket() == run.ticket())
                    .for_each(|(_, open)| open.cancel_calls());
            }
        }
        Ok(())
    }

    /// Returns the tickets that have a workspace, or whose workspace is being opened.
    fn tickets_in_use(&self) -> Vec<TicketKey> {
        let opening = self.opening.lock();
        let mut tickets: Vec<TicketKey> = opening.keys().map(|run| run.ticket().clone()).collect();
        drop(opening);
        let open = self.open.lock();
        tickets.extend(open.keys().map(|run| run.ticket().clone()));
        tickets
    }

    /// Returns the lock that prevents a run from opening two workspaces at once.
    pub(crate) fn opening(&self, run: &RunId) -> Arc<AsyncMutex<()>> {
        let mut opening = self.opening.lock();
        // Locks without a waiting call are removed, so that the map does not grow.
        opening.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(opening.entry(run.clone()).or_default())
    }

    /// Returns the run's open workspace.
    pub(crate) fn of_run(&self, run: &RunId) -> Option<WorkspaceUse> {
        let open = self.open.lock().get(run).cloned()?;
        if open.workspace.disk.is_lost() {
            tracing::warn!(%run, "the runner went, and the workspace with it");
            self.close(run);
            return None;
        }
        Some(open.begin_use(&self.stop))
    }

    /// Returns the workspace that a request names, if its grant names it too.
    pub(crate) fn find(&self, grant: &Grant, id: &str, fence: RunFence) -> Result<WorkspaceUse, Status> {
        if grant.workspace.as_deref() != Some(id) {
            return Err(Status::permission_denied("the grant is for another workspace"));
        }
        let gone = || Status::not_found("the workspace is gone");
        let check = || {
            self.raise_fence(&grant.run, fence)
                .map_err(|refusal| match refusal {
                    FenceRefusal::Older(_) => refusal.status(fence),
                    // The fence of an open workspace is never forgotten.
                    FenceRefusal::Forgotten(_) => gone(),
                })
        };
        check()?;
        let used = self.of_run(&grant.run).ok_or_else(gone)?;
        // A second check: a newer fence that arrived between the first check and `of_run` did not cancel this
        // use.
        check()?;
        let workspace = &used.open.workspace;
        if workspace.repository != grant.repository {
            return Err(Status::permission_denied("the grant is for another repository"));
        }
        if workspace.id == id { Ok(used) } else { Err(gone()) }
    }

    /// Registers an open workspace. `base_origin`: the base with its setup, if results on it may serve other runs.
    pub(crate) fn add(
        &self,
        workspace: Arc<Workspace>,
        index: Option<Arc<CommitIndex>>,
        slot: OwnedSemaphorePermit,
        base_origin: Option<BaseOrigin>,
    ) -> WorkspaceUse {
        let run = workspace.run.clone();
        let changed = self.capacity.notifier();
        let open = Arc::new(OpenedWorkspace::new(
            workspace,
            index,
            slot,
            base_origin,
            changed,
            &self.stop,
        ));
        self.open.lock().insert(run, Arc::clone(&open));
        self.capacity.notify();
        open.begin_use(&self.stop)
    }

    /// Closes the run's workspace. The returned token is cancelled when its last use is over and the slot is
    /// free. The files of an untouched workspace are kept for the next run, others are deleted.
    pub(crate) fn close(&self, run: &RunId) -> Option<CancellationToken> {
        let open = self.open.lock().remove(run)?;
        open.cancel_calls();
        let gone = open.gone();
        let store = Arc::clone(&self.store);
        // Dropping deletes the checkout, which blocks.
        tokio::task::spawn_blocking(move || {
            // While a last call uses the workspace, it may still change files, and the end of the call deletes them.
            let workspace = Arc::into_inner(open).map(|open| Arc::clone(&open.workspace));
            if let Some(workspace) = workspace.and_then(Arc::into_inner) {
                store.keep_untouched(workspace);
            }
        });
        Some(gone)
    }

    /// Closes idle workspaces until the executor stops.
    pub(crate) async fn reap(&self) {
        let mut ticks = tokio::time::interval(REAP_EVERY);
        while self.stop.run_until_cancelled(ticks.tick()).await.is_some() {
            // The ids are collected first, because `close` takes the same lock.
            let idle: Vec<RunId> = {
                let open = self.open.lock();
                open.iter()
                    .filter(|(_, open)| open.is_idle())
                    .map(|(run, _)| run.clone())
                    .collect()
            };
            for run in idle {
                tracing::info!(%run, "an idle workspace is closed");
                self.close(&run);
            }
        }
    }

    /// Returns the status for planners.
    pub(crate) fn status(&self) -> ExecutorStatus {
        let slots = self.capacity.slots();
        ExecutorStatus {
            free: if self.capacity.is_ready() { slots.free } else { 0 },
            total: slots.total,
            warm: self
                .store
                .mirrors
                .warm()
                .iter()
                .map(ToString::to_string)
                .collect(),
            level: self.sandbox.level(),
            draining: self.capacity.is_draining(),
            started_at: self.started_at,
            unready: self.capacity.unready(),
            toolchain: self.sandbox.probe().toolchain.clone(),
            open: self
                .open
                .lock()
                .values()
                .map(|open| Arc::clone(&open.workspace))
                .collect(),
        }
    }

    /// Returns true while calls run.
    pub(crate) fn is_busy(&self) -> bool {
        self.open.lock().values().any(|open| open.is_busy())
    }

    /// Cancels every call and closes every workspace.
    pub(crate) async fn stop(&self) {
        self.stop.cancel();
        self.store.indexes.stop();
        let open = std::mem::take(&mut *self.open.lock());
        // The result is ignored: a panic is already logged, and the next start empties the folders.
        let store = Arc::clone(&self.store);
        let _ = tokio::task::spawn_blocking(move || {
            drop(open);
            store.pool.clear();
        })
        .await;
    }
}
