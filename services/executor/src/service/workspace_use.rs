//! An open workspace, and its use by calls.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use proto::executor::{CheckResult, ToolResult};
use tokio::{
    sync::{OnceCell, OwnedSemaphorePermit, RwLock, RwLockReadGuard, RwLockWriteGuard, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::calls::CallMemory;
use crate::{
    base_results::BaseOrigin, retrieval::CommitIndex, sandbox::CommandSandbox, tools, workspace::Workspace,
};

// A workspace is closed this long after its last call or keepalive. Planners send keepalives while a model
// thinks.
const IDLE_LIMIT: Duration = Duration::from_secs(300);

/// An open workspace with its state.
pub(crate) struct OpenedWorkspace {
    pub(crate) workspace: Arc<Workspace>,
    /// Index of its base commit.
    pub(crate) index: Option<Arc<CommitIndex>>,
    pub(crate) calls: CallMemory<ToolResult>,
    pub(crate) checks: CallMemory<CheckResult>,
    /// Lock that permits several reads, or one other tool, at a time.
    turn: RwLock<()>,
    cancel: Mutex<CancellationToken>,
    last_used: Mutex<Instant>,
    running: AtomicUsize,
    slot: Option<OwnedSemaphorePermit>,
    /// Files of the base with their setup; `None` if setup failed or commands have no namespaces.
    base_origin: Option<BaseOrigin>,
    is_base_on_branch: OnceCell<bool>,
    changed: watch::Sender<()>,
    /// Cancelled when the slot is free again.
    gone: CancellationToken,
}

impl OpenedWorkspace {
    /// Creates the state of a workspace without calls. Its calls are cancelled with `stop`, and its end is
    /// published to `changed`.
    pub(crate) fn new(
        workspace: Arc<Workspace>,
        index: Option<Arc<CommitIndex>>,
        slot: OwnedSemaphorePermit,
        base_origin: Option<BaseOrigin>,
        changed: watch::Sender<()>,
        stop: &CancellationToken,
    ) -> Self {
        Self {
            workspace,
            index,
            calls: CallMemory::default(),
            checks: CallMemory::default(),
            turn: RwLock::default(),
            cancel: Mutex::new(stop.child_token()),
            last_used: Mutex::new(Instant::now()),
            running: AtomicUsize::new(0),
            slot: Some(slot),
            base_origin,
            is_base_on_branch: OnceCell::new(),
            changed,
            gone: CancellationToken::new(),
        }
    }

    /// Begins the use by one call. `stop` is cancelled when the executor stops.
    pub(crate) fn begin_use(self: Arc<Self>, stop: &CancellationToken) -> WorkspaceUse {
        self.running.fetch_add(1, Ordering::Relaxed);
        *self.last_used.lock() = Instant::now();
        let cancel = {
            // One lock for both steps: of simultaneous calls, each would put another token in place of the cancelled
            // one, and a later fence would reach the last of them alone.
            let mut current = self.cancel.lock();
            // After a newer fence, the token is cancelled and a fresh one replaces it. During a stop there is no
            // fresh token.
            if current.is_cancelled() && !stop.is_cancelled() {
                *current = stop.child_token();
            }
            current.clone()
        };
        WorkspaceUse { open: self, cancel }
    }

    /// Takes a turn beside other reads.
    pub(crate) async fn shared_turn(&self) -> RwLockReadGuard<'_, ()> {
        self.workspace.mark_touched();
        self.turn.read().await
    }

    /// Takes a turn alone.
    pub(crate) async fn exclusive_turn(&self) -> RwLockWriteGuard<'_, ()> {
        self.workspace.mark_touched();
        self.turn.write().await
    }

    /// Takes a turn alone. Blocks.
    pub(crate) fn blocking_turn(&self) -> RwLockWriteGuard<'_, ()> {
        self.workspace.mark_touched();
        self.turn.blocking_write()
    }

    /// Prepares a launcher for the next command, unless a tool or check is running.
    pub(crate) async fn prepare_launcher(&self, sandbox: &CommandSandbox) {
        // Without namespaces a check swaps the workspace's folders during its turn. A launcher that is confined
        // in between holds the folders of the check, and the next command would work in deleted ones.
        let Ok(_turn) = self.turn.try_write() else {
            return;
        };
        self.workspace.mark_touched();
        let place = tools::build_command_context(&self.workspace);
        sandbox.prepare(place, &self.workspace.spare).await;
    }

    /// Returns the files of the base with their setup, if only maintainers have written them: results of checks on
    /// them may serve other runs.
    pub(crate) async fn trusted_base(&self) -> Option<&BaseOrigin> {
        let origin = self.base_origin.as_ref()?;
        let workspace = Arc::clone(&self.workspace);
        let look = || async move {
            let looked = tokio::task::spawn_blocking(move || workspace.git.is_base_on_branch());
            // A failure only costs the reuse of results.
            looked.await.unwrap_or(false)
        };
        self.is_base_on_branch.get_or_init(look).await.then_some(origin)
    }

    /// Cancels the calls that use the workspace.
    pub(crate) fn cancel_calls(&self) {
        self.cancel.lock().cancel();
    }

    /// Returns true while calls use the workspace.
    pub(crate) fn is_busy(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// Returns true when no call used the workspace for the time after which it is closed.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_busy() && self.last_used.lock().elapsed() > IDLE_LIMIT
    }

    /// Returns the token that is cancelled when the slot is free again.
    pub(crate) fn gone(&self) -> CancellationToken {
        self.gone.clone()
    }
}

impl Drop for OpenedWorkspace {
    fn drop(&mut self) {
        // Before the notification, so that planners see the slot as free.
        self.slot.take();
        self.changed.send_replace(());
        self.gone.cancel();
    }
}

/// Use of a workspace by one call. It prevents the deletion of the workspace.
pub(crate) struct WorkspaceUse {
    pub(crate) open: Arc<OpenedWorkspace>,
    /// Cancelled when a newer fence arrives, the workspace is closed, or the executor stops.
    pub(crate) cancel: CancellationToken,
}

impl Drop for WorkspaceUse {
    fn drop(&mut self) {
        // Before the count is lowered: the reaper must not see an unused workspace with an old time.
        *self.open.last_used.lock() = Instant::now();
        self.open.running.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Barrier, thread};

    use tokio::sync::Semaphore;

    use super::*;
    use crate::tools::tests::World;

    #[test]
    fn simultaneous_uses_end_at_newer_fence() {
        const CALLS: usize = 4;
        let (world, stop) = (World::new(), CancellationToken::new());
        let slot = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let (workspace, changed) = (Arc::clone(&world.call.workspace), watch::channel(()).0);
        let opened = OpenedWorkspace::new(workspace, None, slot, None, changed, &stop);
        let open = Arc::new(opened);
        for _ in 0..1000 {
            open.cancel_calls();
            let start = Barrier::new(CALLS);
            let begin_use = || {
                start.wait();
                Arc::clone(&open).begin_use(&stop)
            };
            let uses: Vec<WorkspaceUse> = thread::scope(|scope| {
                let begun: Vec<_> = (0..CALLS).map(|_| scope.spawn(begin_use)).collect();
                begun.into_iter().map(|used| used.join().unwrap()).collect()
            });
            assert!(uses.iter().all(|used| !used.cancel.is_cancelled()));
            open.cancel_calls();
            assert!(uses.iter().all(|used| used.cancel.is_cancelled()));
        }
    }
}
