//! Usage and refusals of each run at this replica, in bounded memory.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use domain::RunId;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, time::Instant};

use crate::problem::{EgressRefusal, RefusalReason};

/// Time after a run's last session until the proxy forgets it.
pub(crate) const FORGOTTEN_AFTER: Duration = Duration::from_secs(30 * 60);
/// Number of runs that are remembered. Further runs are refused: forgetting one early would give it a second quota.
const MAX_RUNS: usize = 4096;
/// Distinct refusals that are remembered for a run.
const MAX_REFUSALS: usize = 50;
/// Concurrent sessions of one run.
pub(crate) const MAX_RUN_SESSIONS: usize = 64;
/// Concurrent sessions of the proxy.
pub(crate) const MAX_SESSIONS: usize = 1024;

/// Memory for rewritten texts of one run, in MiB: one text of the largest size.
const RUN_TEXT_MIB: usize = 32;

const MIB: u64 = 1024 * 1024;

/// Limit that prevents a new session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SessionLimit {
    #[error("the run has {MAX_RUN_SESSIONS} connections open, the most that it may")]
    Run,
    #[error("the proxy has as many connections or runs as it can hold")]
    Proxy,
}

/// Table of all remembered runs.
pub(crate) struct RunTable {
    upload_mib: u64,
    download_mib: u64,
    known: Mutex<RunTableState>,
}

#[derive(Default)]
struct RunTableState {
    runs: HashMap<RunId, Arc<RunUsage>>,
    sessions: usize,
}

/// Quotas, memory and refusals of one run.
pub(crate) struct RunUsage {
    sent: ByteQuota,
    received: ByteQuota,
    /// Memory for rewritten texts; one permit is one MiB.
    pub(crate) texts: Arc<Semaphore>,
    state: Mutex<RunUsageState>,
}

struct RunUsageState {
    sessions: usize,
    last_used: Instant,
    refusals: Vec<(EgressRefusal, u64)>,
}

struct ByteQuota {
    mib: u64,
    used: AtomicU64,
}

impl ByteQuota {
    const fn new(mib: u64) -> Self {
        let used = AtomicU64::new(0);
        Self { mib, used }
    }

    /// Counts the bytes. Returns true if the quota covers all of them.
    fn take(&self, bytes: u64) -> bool {
        // The bytes count even if they exceed the quota: after one refusal, smaller requests must not slip through.
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        before.saturating_add(bytes) <= self.mib * MIB
    }
}

impl RunUsage {
    fn new(upload_mib: u64, download_mib: u64) -> Self {
        Self {
            sent: ByteQuota::new(upload_mib),
            received: ByteQuota::new(download_mib),
            texts: Arc::new(Semaphore::new(RUN_TEXT_MIB)),
            state: Mutex::new(RunUsageState {
                sessions: 0,
                last_used: Instant::now(),
                refusals: Vec::new(),
            }),
        }
    }

    /// Counts bytes before the proxy sends them.
    ///
    /// # Errors
    /// [`RefusalReason::SentAll`] when the quota is exhausted.
    pub(crate) fn send(&self, bytes: u64) -> Result<(), RefusalReason> {
        let is_within = self.sent.take(bytes);
        is_within
            .then_some(())
            .ok_or(RefusalReason::SentAll(self.sent.mib))
    }

    /// Counts bytes before the client receives them.
    ///
    /// # Errors
    /// [`RefusalReason::ReceivedAll`] when the quota is exhausted.
    pub(crate) fn receive(&self, bytes: u64) -> Result<(), RefusalReason> {
        let is_within = self.received.take(bytes);
        is_within
            .then_some(())
            .ok_or(RefusalReason::ReceivedAll(self.received.mib))
    }

    /// Records a refusal. Equal refusals share one entry with a count.
    pub(crate) fn note(&self, refusal: &EgressRefusal) {
        let mut state = self.state.lock();
        state.last_used = Instant::now();
        if let Some((_, count)) = state.refusals.iter_mut().find(|(known, _)| known == refusal) {
            *count += 1;
        } else if state.refusals.len() < MAX_REFUSALS {
            state.refusals.push((refusal.clone(), 1));
        }
    }

    fn is_forgotten(&self) -> bool {
        let state = self.state.lock();
        state.sessions == 0 && state.last_used.elapsed() >= FORGOTTEN_AFTER
    }
}

impl RunTable {
    /// Creates an empty table. The quotas apply to each run, in MiB.
    pub(crate) fn new(upload_mib: u64, download_mib: u64) -> Self {
        Self {
            upload_mib,
            download_mib,
            known: Mutex::default(),
        }
    }

    /// Counts one more session of a run until the returned slot is dropped.
    ///
    /// # Errors
    /// [`SessionLimit`].
    pub(crate) fn enter(self: &Arc<Self>, id: &RunId) -> Result<SessionSlot, SessionLimit> {
        let mut known = self.known.lock();
        // Expiry happens on use, so it needs no task.
        known.runs.retain(|_, run| !run.is_forgotten());
        if known.sessions >= MAX_SESSIONS || (known.runs.len() >= MAX_RUNS && !known.runs.contains_key(id)) {
            return Err(SessionLimit::Proxy);
        }
        let make = || Arc::new(RunUsage::new(self.upload_mib, self.download_mib));
        let run = Arc::clone(known.runs.entry(id.clone()).or_insert_with(make));
        {
            let mut state = run.state.lock();
            if state.sessions >= MAX_RUN_SESSIONS {
                return Err(SessionLimit::Run);
            }
            state.sessions += 1;
            state.last_used = Instant::now();
        }
        known.sessions += 1;
        let runs = Arc::clone(self);
        Ok(SessionSlot { runs, run })
    }

    /// Returns the refusals of a run with their counts.
    pub(crate) fn refusals(&self, id: &RunId) -> Vec<(EgressRefusal, u64)> {
        let mut known = self.known.lock();
        known.runs.retain(|_, run| !run.is_forgotten());
        let run = known.runs.get(id);
        run.map(|run| run.state.lock().refusals.clone())
            .unwrap_or_default()
    }
}

/// Slot of one session. Dropping it frees the slot.
pub(crate) struct SessionSlot {
    runs: Arc<RunTable>,
    pub(crate) run: Arc<RunUsage>,
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        self.runs.known.lock().sessions -= 1;
        // The half hour until the run is forgotten starts when its last session ends.
        let mut state = self.run.state.lock();
        state.sessions -= 1;
        state.last_used = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use domain::TicketKey;

    use super::*;

    fn build_run_id(number: u64) -> RunId {
        RunId::new(TicketKey::jira("ENG-1").unwrap(), number)
    }

    fn build_refusal(host: &str) -> EgressRefusal {
        EgressRefusal::new(host, RefusalReason::NotOpen)
    }

    #[tokio::test(start_paused = true)]
    async fn run_is_forgotten_after_idle_half_hour() {
        let runs = Arc::new(RunTable::new(1, 1));
        let slot = runs.enter(&build_run_id(1)).unwrap();
        slot.run.send(MIB).unwrap();
        slot.run.note(&build_refusal("evil.example:443"));
        tokio::time::advance(FORGOTTEN_AFTER * 2).await;
        assert_eq!(runs.refusals(&build_run_id(1)).len(), 1, "it has a session");
        drop(slot);
        tokio::time::advance(FORGOTTEN_AFTER / 2).await;
        let slot = runs.enter(&build_run_id(1)).unwrap();
        assert_eq!(
            slot.run.send(1),
            Err(RefusalReason::SentAll(1)),
            "it has one quota"
        );
        drop(slot);
        tokio::time::advance(FORGOTTEN_AFTER).await;
        assert!(runs.refusals(&build_run_id(1)).is_empty());
        assert!(runs.known.lock().runs.is_empty());
    }

    #[tokio::test]
    async fn refusals_are_counted_by_run_and_bounded() {
        let runs = Arc::new(RunTable::new(1, 1));
        let slot = runs.enter(&build_run_id(1)).unwrap();
        for number in 0..200 {
            slot.run
                .note(&build_refusal(&format!("host-{number}.example:443")));
            slot.run.note(&build_refusal("host-0.example:443"));
        }
        let noted = runs.refusals(&build_run_id(1));
        assert_eq!(noted.len(), MAX_REFUSALS);
        assert_eq!(noted[0], (build_refusal("host-0.example:443"), 201));
        assert!(runs.refusals(&build_run_id(2)).is_empty());
    }

    #[tokio::test]
    async fn sessions_are_limited_and_slots_are_freed() {
        let runs = Arc::new(RunTable::new(1, 1));
        let mut slots: Vec<SessionSlot> = (0..MAX_RUN_SESSIONS)
            .map(|_| runs.enter(&build_run_id(1)).unwrap())
            .collect();
        assert_eq!(runs.enter(&build_run_id(1)).err(), Some(SessionLimit::Run));
        slots.pop();
        slots.push(runs.enter(&build_run_id(1)).unwrap());
        let others = MAX_SESSIONS - MAX_RUN_SESSIONS;
        slots.extend((0..others as u64).map(|number| runs.enter(&build_run_id(2 + number)).unwrap()));
        assert_eq!(runs.enter(&build_run_id(9999)).err(), Some(SessionLimit::Proxy));
        slots.clear();
        assert!(runs.enter(&build_run_id(9999)).is_ok());
    }

    #[tokio::test]
    async fn bytes_beyond_quota_are_refused_for_good() {
        let runs = Arc::new(RunTable::new(1, 2));
        let slot = runs.enter(&build_run_id(1)).unwrap();
        slot.run.send(MIB - 1).unwrap();
        assert_eq!(slot.run.send(2), Err(RefusalReason::SentAll(1)));
        assert_eq!(slot.run.send(1), Err(RefusalReason::SentAll(1)));
        slot.run.receive(2 * MIB).unwrap();
        assert_eq!(slot.run.receive(1), Err(RefusalReason::ReceivedAll(2)));
    }
}
