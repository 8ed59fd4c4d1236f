//! Slots of executors: the queue of waiting runs, and the removal of workspaces without a run.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use domain::{
    ExecutorWorkspace, JobRequest, RunId, RunStatus, SlotQueue, TicketRow, Timestamp,
    cause::format_error_chain,
};
use queue::{KeyValueBucket, Queue, TableRevision, TypedTable};
use tokio::{
    sync::{Mutex, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::executors::{
    ExecutorFleet, HeldWorkspace, OpenError, OpeningCommit, PlannerSnapshotRestore, RunCaller,
};

// Pause between two checks without a change in the directory.
const CHECK_EVERY: Duration = Duration::from_secs(2);
// Time in which changes share one check.
const GATHER: Duration = Duration::from_millis(20);
// Time in which the same run is not offered a slot a second time. Its session needs some time until it takes
// the slot, and the directory changes often meanwhile.
const OFFER_AGAIN: Duration = Duration::from_millis(250);
// Attempts to change a pool's queue: other planners change it at the same time, and each compare-and-set
// may fail.
const TRIES: u32 = 100;

/// Opens workspaces in order of arrival.
pub(crate) struct SlotAllocator {
    queues: Arc<SlotQueues>,
    executors: Arc<ExecutorFleet>,
}

impl SlotAllocator {
    pub(crate) fn new(queues: Arc<SlotQueues>, executors: Arc<ExecutorFleet>) -> Self {
        Self { queues, executors }
    }

    /// Opens the run's workspace when it is its turn and a slot is free. Otherwise the run joins the pool's
    /// queue, and the slot maintenance wakes its ticket later.
    ///
    /// A run whose mirrors are not ready leaves the queue, so that other runs use the slot meanwhile. `arrival` keeps
    /// its place for the next call: `None` at the first one.
    ///
    /// # Errors
    /// [`OpenError`]; [`OpenError::NoSlot`] when the run has to wait.
    pub(crate) async fn open(
        &self,
        caller: &RunCaller,
        request: &JobRequest,
        base: OpeningCommit<'_>,
        restore: Option<&PlannerSnapshotRestore>,
        arrival: &mut Option<Timestamp>,
    ) -> Result<ExecutorWorkspace, OpenError> {
        let (pool, run) = (&request.rules.executor.pool, &caller.run);
        let free = self.executors.free_slots(pool, run).await;
        // In a full pool it is no run's turn, whatever the queue is.
        let waits = if free == 0 {
            None
        } else {
            let waits = self.queues.read(pool).await?.map(|copy| copy.queue);
            Some(waits.unwrap_or_default())
        };
        let opened = if waits.as_ref().is_some_and(|queue| queue.is_turn(run, free)) {
            self.executors.open(caller, request, base, restore).await
        } else {
            Err(OpenError::NoSlot)
        };
        if let Err(OpenError::NotReady { .. }) = &opened {
            let waits_since = waits.as_ref().and_then(|queue| queue.waits_since(run));
            arrival.get_or_insert_with(|| waits_since.unwrap_or_else(bootstrap::read_wall_clock));
        }
        match &opened {
            // Join before the caller parks the run: a slot that frees in between must find the run in the
            // queue.
            Err(OpenError::NoSlot) => self.join(pool, run, *arrival).await?,
            _ if waits.as_ref().is_some_and(|queue| queue.has(run)) => self.leave(pool, run).await?,
            _ => {}
        }
        opened
    }

    async fn join(&self, pool: &str, run: &RunId, arrival: Option<Timestamp>) -> Result<(), queue::Error> {
        let joining = match arrival {
            Some(since) => QueueChange::Rejoin(run.clone(), since),
            None => QueueChange::Join(run.clone(), bootstrap::read_wall_clock()),
        };
        if self.queues.change(pool, joining).await? {
            tracing::info!(%run, pool, "the run waits for a slot");
        }
        Ok(())
    }

    /// Removes a finished run from the queue.
    ///
    /// # Errors
    /// [`queue::Error`]
    pub(crate) async fn leave(&self, pool: &str, run: &RunId) -> Result<(), queue::Error> {
        let leaving = QueueChange::Leave(run.clone());
        self.queues.change(pool, leaving).await.map(drop)
    }
}

/// Durable queues, one for each pool, with a copy of each as this planner read or wrote it last.
pub(crate) struct SlotQueues {
    table: TypedTable<SlotQueue>,
    /// Copies by pool. Every write names the revision of its copy, so an outdated copy costs one more read and
    /// changes nothing else.
    copies: parking_lot::Mutex<HashMap<String, QueueCopy>>,
    /// Changes that are not written yet, in the order of their calls. The next write of their pool has all of
    /// them, so the cost of a long queue is shared.
    pending: parking_lot::Mutex<Vec<PendingChange>>,
    /// Turn of a write. Writes of this planner follow each other: at the same time, each would fail the
    /// compare-and-set of the others.
    turn: Mutex<()>,
}

/// Change of a queue.
#[derive(Clone)]
enum QueueChange {
    Join(RunId, Timestamp),
    /// Joins at the place of an earlier arrival.
    Rejoin(RunId, Timestamp),
    Leave(RunId),
}

impl QueueChange {
    /// Returns false if nothing changed.
    fn apply(&self, queue: &mut SlotQueue) -> bool {
        match self {
            Self::Join(run, since) => queue.join(run, *since),
            Self::Rejoin(run, since) => queue.rejoin(run, *since),
            Self::Leave(run) => queue.leave(run),
        }
    }
}

/// Change whose caller waits for its outcome.
struct PendingChange {
    pool: String,
    change: QueueChange,
    /// Receives whether the change changed something.
    outcome: oneshot::Sender<bool>,
}

/// Queue of a pool at a revision.
#[derive(Clone)]
struct QueueCopy {
    queue: Arc<SlotQueue>,
    revision: TableRevision,
}

impl SlotQueues {
    pub(crate) fn new(queue: &Queue) -> Self {
        Self {
            table: queue.table(KeyValueBucket::Slots),
            copies: parking_lot::Mutex::default(),
            pending: parking_lot::Mutex::default(),
            turn: Mutex::default(),
        }
    }

    /// Returns the queue of a pool as the leader has it; `None` before the first run waited for the pool.
    async fn read(&self, pool: &str) -> Result<Option<QueueCopy>, queue::Error> {
        let known = self.find_copy(pool);
        let newer = match &known {
            // A queue of a thousand runs has some 60 kB, and most reads find the copy to be current.
            Some(known) => self.table.get_newer(pool, known.revision).await?,
            None => self.table.get(pool).await?,
        };
        Ok(match newer {
            Some((queue, revision)) => Some(self.keep(pool, queue, revision)),
            None => known,
        })
    }

    fn find_copy(&self, pool: &str) -> Option<QueueCopy> {
        self.copies.lock().get(pool).cloned()
    }

    fn keep(&self, pool: &str, queue: SlotQueue, revision: TableRevision) -> QueueCopy {
        let queue = Arc::new(queue);
        let copy = QueueCopy { queue, revision };
        self.copies.lock().insert(pool.to_owned(), copy.clone());
        copy
    }

    /// Forgets the copies, so that the next reads return whole queues. A record of a restored bucket may have an
    /// older revision than its copy, and never shows as newer.
    fn forget_copies(&self) {
        self.copies.lock().clear();
    }

    /// Changes a pool's queue; returns false if nothing changed. A change whose caller gives up is not written.
    async fn change(&self, pool: &str, change: QueueChange) -> Result<bool, queue::Error> {
        let (sender, mut outcome) = oneshot::channel();
        self.pending.lock().push(PendingChange {
            pool: pool.to_owned(),
            change,
            outcome: sender,
        });
        let _turn = self.turn.lock().await;
        loop {
            // The holder of an earlier turn may have written it. Otherwise it is still pending.
            if let Ok(is_changed) = outcome.try_recv() {
                return Ok(is_changed);
            }
            self.write_pending(pool).await?;
        }
    }

    /// Writes the pending changes of a pool. They stay pending after an error, for the holder of the next turn.
    async fn write_pending(&self, pool: &str) -> Result<(), queue::Error> {
        // The copy comes first, because this planner made most of the last changes itself.
        let mut copy = self.find_copy(pool);
        let mut is_read = false;
        for _ in 0..TRIES {
            if copy.is_none() {
                copy = self.read(pool).await?;
                is_read = true;
            }
            let last = copy.take();
            let mut queue = last
                .as_ref()
                .map(|copy| SlotQueue::clone(&copy.queue))
                .unwrap_or_default();
            let changes = self.list_pending(pool);
            let outcomes: Vec<bool> = changes.iter().map(|change| change.apply(&mut queue)).collect();
            if !outcomes.contains(&true) {
                if is_read {
                    self.settle_pending(pool, outcomes);
                    return Ok(());
                }
                // Another planner may have changed the queue since.
                continue;
            }
            let written = self.table.put(pool, &queue, last.map(|last| last.revision)).await;
            match written {
                Ok(revision) => {
                    self.keep(pool, queue, revision);
                    self.settle_pending(pool, outcomes);
                    return Ok(());
                }
                Err(queue::Error::Conflict) => {
                    self.copies.lock().remove(pool);
                    // A random pause, because planners that conflict would conflict again in step.
                    tokio::time::sleep(Duration::from_millis(fastrand::u64(1..20))).await;
                }
                Err(error) => return Err(error),
            }
        }
        let doing = format!("queue for the pool {pool:?}");
        Err(queue::Error::unavailable(doing, "it changes too often"))
    }

    /// Returns the pending changes of a pool in their order, without those whose callers gave up: such a run may
    /// have another planner by now, which has put it into the queue again.
    fn list_pending(&self, pool: &str) -> Vec<QueueChange> {
        let mut pending = self.pending.lock();
        pending.retain(|pending| !pending.outcome.is_closed());
        let of_pool = pending.iter().filter(|pending| pending.pool == pool);
        of_pool.map(|pending| pending.change.clone()).collect()
    }

    /// Sends the outcomes of the first pending changes of a pool to their callers.
    fn settle_pending(&self, pool: &str, outcomes: Vec<bool>) {
        let mut outcomes = outcomes.into_iter();
        let mut pending = self.pending.lock();
        for change in std::mem::take(&mut *pending) {
            let outcome = if change.pool == pool {
                outcomes.next()
            } else {
                None
            };
            match outcome {
                Some(is_changed) => {
                    // An error means that the caller gave up meanwhile.
                    let _ = change.outcome.send(is_changed);
                }
                None => pending.push(change),
            }
        }
    }
}

/// Slot maintenance: wakes runs whose turn has come, and closes workspaces without a run.
///
/// Every planner does it. A wake-up that exists and a workspace that is closed already change nothing.
pub(crate) struct SlotKeeper {
    queue: Queue,
    queues: Arc<SlotQueues>,
    executors: Arc<ExecutorFleet>,
    /// Workspaces that seemed unused at the last check. The row is written after the fact, so one check can
    /// err.
    suspects: HashSet<HeldWorkspace>,
    offers: RecentOffers,
}

/// Runs that were offered a slot within [`OFFER_AGAIN`].
#[derive(Default)]
struct RecentOffers(HashMap<RunId, Instant>);

/// Time of an offer of a slot to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OfferTime {
    Now,
    /// At this instant, because the run had an offer a moment ago.
    Later(Instant),
}

impl RecentOffers {
    /// Returns the time of the next offer to a run, and notes an offer that is made now.
    ///
    /// An offer is repeated without a change of the directory: a session that ends has its token still, which hides a
    /// wake-up, and then nothing but a repeated offer wakes the run.
    fn schedule(&mut self, run: &RunId) -> OfferTime {
        let now = Instant::now();
        self.0.retain(|_, at| now < *at + OFFER_AGAIN);
        if let Some(at) = self.0.get(run) {
            return OfferTime::Later(*at + OFFER_AGAIN);
        }
        self.0.insert(run.clone(), now);
        OfferTime::Now
    }
}

impl SlotKeeper {
    pub(crate) fn new(queue: Queue, queues: Arc<SlotQueues>, executors: Arc<ExecutorFleet>) -> Self {
        Self {
            queue,
            queues,
            executors,
            suspects: HashSet::new(),
            offers: RecentOffers::default(),
        }
    }

    /// Offers free slots and closes workspaces without a run, until shutdown.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut changes = self.executors.changes();
        let mut next_check = Instant::now() + CHECK_EVERY;
        while !shutdown.is_cancelled() {
            let next_offer = self.wake_first().await.unwrap_or_else(|error| {
                tracing::warn!(error = %format_error_chain(&error), "runs that wait for a slot could not be read");
                None
            });
            if Instant::now() >= next_check {
                if let Err(error) = self.close_leftovers().await {
                    tracing::warn!(error = %format_error_chain(&error), "open workspaces could not be read");
                }
                self.queues.forget_copies();
                next_check = Instant::now() + CHECK_EVERY;
            }
            let wake_at = next_offer.map_or(next_check, |next_offer| next_offer.min(next_check));
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = tokio::time::sleep_until(wake_at) => {}
                changed = changes.changed() => match changed {
                    Ok(()) => tokio::time::sleep(GATHER).await,
                    Err(_) => return,
                },
            }
        }
    }

    /// Offers the free slots of each pool to its first runs. Returns the time of the next offer to a run that had
    /// one a moment ago.
    async fn wake_first(&mut self) -> Result<Option<Instant>, queue::Error> {
        let mut next_offer: Option<Instant> = None;
        for (pool, slots) in self.executors.slots() {
            // Every opened workspace changes the directory, and most of them take the last slot of a busy pool.
            if slots.free == 0 {
                continue;
            }
            let Some(QueueCopy { queue, .. }) = self.queues.read(&pool).await? else {
                continue;
            };
            let free = usize::try_from(slots.free).unwrap_or(usize::MAX);
            // More tickets than free slots would wake only to wait again.
            for waiter in queue.waiting.iter().take(free) {
                match self.offers.schedule(&waiter.run) {
                    OfferTime::Now => self.offer(&pool, &waiter.run).await?,
                    OfferTime::Later(at) => next_offer = next_offer.into_iter().chain([at]).min(),
                }
            }
        }
        Ok(next_offer)
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
            let leaving = QueueChange::Leave(run.clone());
            self.queues.change(pool, leaving).await.map(drop)
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

    #[tokio::test(start_paused = true)]
    async fn repeated_offer_waits_for_first_one() {
        let (runs, mut offers, start) = (build_run_ids(2), RecentOffers::default(), Instant::now());
        assert_eq!(offers.schedule(&runs[0]), OfferTime::Now);
        tokio::time::advance(Duration::from_millis(100)).await;
        assert_eq!(offers.schedule(&runs[0]), OfferTime::Later(start + OFFER_AGAIN));
        assert_eq!(offers.schedule(&runs[1]), OfferTime::Now);
        tokio::time::advance(Duration::from_millis(150)).await;
        assert_eq!(
            offers.schedule(&runs[0]),
            OfferTime::Now,
            "the first offer is old"
        );
        assert_eq!(offers.0.len(), 2);
    }

    fn build_run_ids(count: u64) -> Vec<RunId> {
        (1..=count)
            .map(|number| format!("jira:ENG-{number}@{number}").parse().unwrap())
            .collect()
    }

    async fn connect_queue(nats: &NatsServer) -> Queue {
        let settings = queue::Settings {
            url: nats.url(),
            ..queue::Settings::default()
        };
        let queue = Queue::connect(&settings, "planner").await.unwrap();
        queue.ensure_topology().await.unwrap();
        queue
    }

    async fn list_waiting(queues: &SlotQueues) -> Vec<RunId> {
        let copy = queues.read("default").await.unwrap();
        copy.iter()
            .flat_map(|copy| &copy.queue.waiting)
            .map(|waiter| waiter.run.clone())
            .collect()
    }

    #[tokio::test]
    async fn simultaneous_changes_keep_every_run() {
        let nats = NatsServer::start().await.unwrap();
        let queues = SlotQueues::new(&connect_queue(&nats).await);
        let runs = build_run_ids(64);
        let now = bootstrap::read_wall_clock();
        let joining = runs
            .iter()
            .map(|run| queues.change("default", QueueChange::Join(run.clone(), now)));
        assert_eq!(try_join_all(joining).await.unwrap(), [true; 64]);
        let copy = queues.read("default").await.unwrap().unwrap();
        assert_eq!(copy.queue.waiting.len(), 64);
        assert!(
            copy.revision <= TableRevision(2),
            "changes that wait share a write: {:?}",
            copy.revision
        );
        let leaving = runs
            .iter()
            .map(|run| queues.change("default", QueueChange::Leave(run.clone())));
        assert_eq!(try_join_all(leaving).await.unwrap(), [true; 64]);
        assert_eq!(list_waiting(&queues).await, []);
    }

    #[tokio::test]
    async fn outdated_copies_keep_order_of_arrival() {
        let nats = NatsServer::start().await.unwrap();
        let queue = connect_queue(&nats).await;
        let (one, other) = (SlotQueues::new(&queue), SlotQueues::new(&queue));
        let runs = build_run_ids(3);
        let now = bootstrap::read_wall_clock();
        let join = async |queues: &SlotQueues, run: &RunId| {
            let joining = QueueChange::Join(run.clone(), now);
            queues.change("default", joining).await
        };
        let leave = async |queues: &SlotQueues, run: &RunId| {
            let leaving = QueueChange::Leave(run.clone());
            queues.change("default", leaving).await
        };
        assert!(join(&one, &runs[0]).await.unwrap());
        assert!(join(&other, &runs[1]).await.unwrap());
        assert!(
            join(&one, &runs[2]).await.unwrap(),
            "its copy lacks the second run"
        );
        assert!(
            !join(&other, &runs[2]).await.unwrap(),
            "its copy lacks the third run"
        );
        assert_eq!(list_waiting(&one).await, runs);
        assert_eq!(list_waiting(&other).await, runs);
        assert!(leave(&other, &runs[0]).await.unwrap());
        assert!(
            !leave(&one, &runs[0]).await.unwrap(),
            "its copy still has the first run"
        );
        assert_eq!(list_waiting(&one).await, runs[1..]);
    }

    #[tokio::test]
    async fn abandoned_change_is_never_written() {
        let nats = NatsServer::start().await.unwrap();
        let queues = SlotQueues::new(&connect_queue(&nats).await);
        let runs = build_run_ids(3);
        let now = bootstrap::read_wall_clock();
        let turn = queues.turn.lock().await;
        let mut abandoned = Box::pin(queues.change("default", QueueChange::Join(runs[0].clone(), now)));
        assert!(futures::poll!(&mut abandoned).is_pending());
        let mut kept = Box::pin(queues.change("default", QueueChange::Join(runs[1].clone(), now)));
        assert!(futures::poll!(&mut kept).is_pending());
        drop(abandoned);
        drop(turn);
        let other = queues.change("other", QueueChange::Join(runs[2].clone(), now));
        let (kept, other) = tokio::join!(kept, other);
        assert_eq!((kept.unwrap(), other.unwrap()), (true, true));
        assert_eq!(list_waiting(&queues).await, runs[1..2]);
        assert!(queues.pending.lock().is_empty());
    }

    #[tokio::test]
    async fn restored_queue_replaces_newer_copy() {
        let nats = NatsServer::start().await.unwrap();
        let queue = connect_queue(&nats).await;
        let queues = SlotQueues::new(&queue);
        let runs = build_run_ids(2);
        let now = bootstrap::read_wall_clock();
        let mut stored = SlotQueue::default();
        stored.join(&runs[0], now);
        let table = queue.table::<SlotQueue>(KeyValueBucket::Slots);
        table.put("default", &stored, None).await.unwrap();
        // As if the bucket had been at a later revision before.
        queues.keep("default", SlotQueue::default(), TableRevision(90));
        let joining = QueueChange::Join(runs[1].clone(), now);
        assert!(queues.change("default", joining).await.unwrap());
        assert_eq!(list_waiting(&queues).await, runs);
        queues.keep("default", SlotQueue::default(), TableRevision(90));
        queues.forget_copies();
        assert_eq!(list_waiting(&queues).await, runs);
    }
}
