//! Slots of executors: the queue of waiting runs, and the removal of workspaces without a run.

use std::{collections::HashSet, sync::Arc, time::Duration};

use domain::{
    ExecutorWorkspace, JobRequest, RunId, RunStatus, SlotQueue, TicketRow, cause::format_error_chain,
};
use queue::{KeyValueBucket, Queue, TableRevision};
use tokio::{sync::Mutex, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::executors::{
    ExecutorFleet, HeldWorkspace, OpenError, OpeningCommit, PlannerSnapshotRestore, RunCaller,
};

// Pause between two checks without a change in the directory.
const CHECK_EVERY: Duration = Duration::from_secs(2);
// Time in which changes share one check.
const GATHER: Duration = Duration::from_millis(20);
// Attempts to change a pool's queue: other planners change it at the same time, and each compare-and-set
// may fail.
const TRIES: u32 = 100;

/// Opens workspaces in order of arrival.
pub(crate) struct SlotAllocator {
    queues: SlotQueues,
    executors: Arc<ExecutorFleet>,
}

impl SlotAllocator {
    pub(crate) fn new(queue: Queue, executors: Arc<ExecutorFleet>) -> Self {
        Self {
            queues: SlotQueues::new(queue),
            executors,
        }
    }

    /// Opens the run's workspace when it is its turn and a slot is free. Otherwise the run joins the pool's
    /// queue, and the slot maintenance wakes its ticket later.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::NoSlot`] when the run has to wait.
    pub(crate) async fn open(
        &self,
        caller: &RunCaller,
        request: &JobRequest,
        base: OpeningCommit<'_>,
        restore: Option<&PlannerSnapshotRestore>,
    ) -> Result<ExecutorWorkspace, OpenError> {
        let (pool, run) = (&request.rules.executor.pool, &caller.run);
        let free = self.executors.free_slots(pool, run).await;
        let (queue, _) = self.queues.read(pool).await?;
        let opened = if queue.is_turn(run, free) {
            self.executors.open(caller, request, base, restore).await
        } else {
            Err(OpenError::NoSlot)
        };
        match &opened {
            // Join before the caller parks the run: a slot that frees in between must find the run in the
            // queue.
            Err(OpenError::NoSlot) => self.join(pool, run).await?,
            _ if queue.has(run) => self.leave(pool, run).await?,
            _ => {}
        }
        opened
    }

    async fn join(&self, pool: &str, run: &RunId) -> Result<(), queue::Error> {
        let now = bootstrap::read_wall_clock();
        if self.queues.change(pool, |queue| queue.join(run, now)).await? {
            tracing::info!(%run, pool, "the run waits for a slot");
        }
        Ok(())
    }

    /// Removes a finished run from the queue.
    ///
    /// # Errors
    /// [`queue::Error`]
    pub(crate) async fn leave(&self, pool: &str, run: &RunId) -> Result<(), queue::Error> {
        self.queues.change(pool, |queue| queue.leave(run)).await.map(drop)
    }
}

/// Durable queues, one for each pool.
struct SlotQueues {
    queue: Queue,
    /// Turn of a change. Changes of this planner follow each other: at the same time, each would fail the
    /// compare-and-set of the others, and a long queue is written for each attempt.
    turn: Mutex<()>,
}

impl SlotQueues {
    fn new(queue: Queue) -> Self {
        Self {
            queue,
            turn: Mutex::default(),
        }
    }

    async fn read(&self, pool: &str) -> Result<(SlotQueue, Option<TableRevision>), queue::Error> {
        let found = self
            .queue
            .table::<SlotQueue>(KeyValueBucket::Slots)
            .get(pool)
            .await?;
        Ok(found.map_or_else(Default::default, |(queue, revision)| (queue, Some(revision))))
    }

    /// Changes a pool's queue; returns false if nothing changed.
    async fn change(
        &self,
        pool: &str,
        change: impl Fn(&mut SlotQueue) -> bool,
    ) -> Result<bool, queue::Error> {
        let table = self.queue.table::<SlotQueue>(KeyValueBucket::Slots);
        let _turn = self.turn.lock().await;
        for _ in 0..TRIES {
            let (mut queue, revision) = self.read(pool).await?;
            if !change(&mut queue) {
                return Ok(false);
            }
            match table.put(pool, &queue, revision).await {
                Err(queue::Error::Conflict) => {
                    // A random pause, because planners that conflict would conflict again in step.
                    tokio::time::sleep(Duration::from_millis(fastrand::u64(1..20))).await;
                }
                put => return put.map(|_| true),
            }
        }
        let doing = format!("queue for the pool {pool:?}");
        Err(queue::Error::unavailable(doing, "it changes too often"))
    }
}

/// Slot maintenance: wakes runs whose turn has come, and closes workspaces without a run.
///
/// Every planner does it. A wake-up that exists and a workspace that is closed already change nothing.
pub(crate) struct SlotKeeper {
    queue: Queue,
    queues: SlotQueues,
    executors: Arc<ExecutorFleet>,
    /// Workspaces that seemed unused at the last check. The row is written after the fact, so one check can
    /// err.
    suspects: HashSet<HeldWorkspace>,
}

impl SlotKeeper {
    pub(crate) fn new(queue: Queue, executors: Arc<ExecutorFleet>) -> Self {
        Self {
            queues: SlotQueues::new(queue.clone()),
            queue,
            executors,
            suspects: HashSet::new(),
        }
    }

    /// Repeats both until shutdown.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut changes = self.executors.changes();
        let mut next_check = Instant::now() + CHECK_EVERY;
        while !shutdown.is_cancelled() {
            if let Err(error) = self.wake_first().await {
                tracing::warn!(error = %format_error_chain(&error), "runs that wait for a slot could not be read");
            }
            if Instant::now() >= next_check {
                if let Err(error) = self.close_leftovers().await {
                    tracing::warn!(error = %format_error_chain(&error), "open workspaces could not be read");
                }
                next_check = Instant::now() + CHECK_EVERY;
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep_until(next_check) => {}
                changed = changes.changed() => match changed {
                    Ok(()) => tokio::time::sleep(GATHER).await,
                    Err(_) => return,
                },
            }
        }
    }

    async fn wake_first(&self) -> Result<(), queue::Error> {
        for (pool, slots) in self.executors.slots() {
            // Every opened workspace changes the directory, and most of them take the last slot of a busy pool.
            if slots.free == 0 {
                continue;
            }
            let queue = self.queues.read(&pool).await?.0;
            let free = usize::try_from(slots.free).unwrap_or(usize::MAX);
            // More tickets than free slots would wake only to wait again.
            for waiter in queue.waiting.iter().take(free) {
                self.offer(&pool, &waiter.run).await?;
            }
        }
        Ok(())
    }

    /// Wakes a run's ticket, or removes a finished run from the queue.
    async fn offer(&self, pool: &str, run: &RunId) -> Result<(), queue::Error> {
        let is_waiting = match self.row(run).await? {
            KnownRow::Row(row) => {
                // No planner drives the runs of a quarantined ticket, so its place would hold up the
                // runs after it.
                row.quarantined.is_none() && row.pending.iter().any(|pending| pending.run == *run)
            }
            KnownRow::Nothing => false,
            // A planner of that release wakes it.
            KnownRow::Newer => return Ok(()),
        };
        if is_waiting {
            self.queue.triggers().wake(run.ticket()).await
        } else {
            self.queues.change(pool, |queue| queue.leave(run)).await.map(drop)
        }
    }

    async fn close_leftovers(&mut self) -> Result<(), queue::Error> {
        let mut suspects = HashSet::new();
        for held in self.executors.held() {
            let row = match self.row(&held.run).await? {
                KnownRow::Row(row) if !needs_workspace(&row, &held.run) => row,
                // Without a readable row, nothing proves that the run needs no workspace.
                KnownRow::Row(_) | KnownRow::Nothing | KnownRow::Newer => continue,
            };
            if self.suspects.contains(&held) {
                tracing::info!(run = %held.run, executor = held.executor, "closes a workspace that was left open");
                let caller = RunCaller {
                    run: held.run.clone(),
                    repository: held.repository.clone(),
                    // If another planner has taken the ticket over since, the executor refuses this fence.
                    fence: row.fence,
                };
                let workspace = self.executors.workspace_at(&caller, &held.executor, &held.id);
                workspace.close().await;
            } else {
                suspects.insert(held);
            }
        }
        self.suspects = suspects;
        Ok(())
    }

    async fn row(&self, run: &RunId) -> Result<KnownRow, queue::Error> {
        let found = self
            .queue
            .table::<TicketRow>(KeyValueBucket::Tickets)
            .get(run.ticket().to_string().as_str())
            .await;
        match found {
            Ok(found) => Ok(found.map_or(KnownRow::Nothing, |(row, _)| KnownRow::Row(Box::new(row)))),
            // The ticket's own planner rebuilds the row.
            Err(queue::Error::Corrupt { .. }) => Ok(KnownRow::Nothing),
            Err(queue::Error::Newer { .. }) => Ok(KnownRow::Newer),
            Err(error) => Err(error),
        }
    }
}

/// Row of a ticket, as far as it is readable.
enum KnownRow {
    Row(Box<TicketRow>),
    Nothing,
    /// A planner of a newer release owns the ticket.
    Newer,
}

/// Returns true if a run needs its workspace. A finished run does not, nor one that waits for a person or
/// for a retry.
fn needs_workspace(row: &TicketRow, run: &RunId) -> bool {
    match row.run(run).map(|run| &run.status) {
        Some(RunStatus::Queued | RunStatus::Active) => true,
        Some(RunStatus::Parked { waits_for }) => waits_for.keeps_workspace(),
        Some(RunStatus::Finished { .. }) => false,
        // The row's list drops old finished runs.
        None => row.pending.iter().any(|pending| pending.run == *run),
    }
}

#[cfg(test)]
mod tests {
    use futures::future::try_join_all;
    use testkit::NatsServer;

    use super::*;

    #[tokio::test]
    async fn simultaneous_changes_keep_every_run() {
        let nats = NatsServer::start().await.unwrap();
        let settings = queue::Settings {
            url: nats.url(),
            ..queue::Settings::default()
        };
        let queue = Queue::connect(&settings, "planner").await.unwrap();
        queue.ensure_topology().await.unwrap();
        let queues = SlotQueues::new(queue);
        let runs: Vec<RunId> = (1..=64)
            .map(|number| format!("jira:ENG-{number}@{number}").parse().unwrap())
            .collect();
        let now = bootstrap::read_wall_clock();
        let joining = runs
            .iter()
            .map(|run| queues.change("default", move |queue| queue.join(run, now)));
        assert_eq!(try_join_all(joining).await.unwrap(), [true; 64]);
        let (queue, revision) = queues.read("default").await.unwrap();
        assert_eq!((queue.waiting.len(), revision), (64, Some(TableRevision(64))));
        let leaving = runs
            .iter()
            .map(|run| queues.change("default", move |queue| queue.leave(run)));
        assert_eq!(try_join_all(leaving).await.unwrap(), [true; 64]);
        assert_eq!(queues.read("default").await.unwrap().0, SlotQueue::default());
    }
}
