//! Slots of an executor, and the reasons why it accepts no work.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// Reason: the disk has too little space for new work.
pub(crate) const DISK_LOW: &str = "the disk has less free than executor.disk_reserve_mib";

/// Result of the isolation test. The executor accepts no work before it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkIsolation {
    /// The first test is not finished.
    Untried,
    /// The test failed.
    Unknown,
    /// The settings contain only names, and none of them resolves here.
    Unresolved,
    /// Commands can reach a forbidden address.
    Broken,
    /// No forbidden address is reachable.
    Holds,
}

impl NetworkIsolation {
    pub(crate) const fn holds(self) -> bool {
        matches!(self, Self::Holds)
    }

    /// Returns the reason why the executor accepts no work, for an operator; empty if it does. The log has
    /// the addresses.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Untried => "whether commands reach forbidden addresses is being tried",
            Self::Unknown => "whether commands reach forbidden addresses could not be tried",
            Self::Unresolved => {
                "no name in executor.forbidden_addresses resolves here, so the network was not tried; name addresses"
            }
            Self::Broken => "commands reach addresses that executor.forbidden_addresses names",
            Self::Holds => "",
        }
    }
}

/// Numbers of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotCounts {
    pub(crate) free: u32,
    pub(crate) total: u32,
}

/// Slots of an executor, and its state that decides whether they are given away.
pub(crate) struct WorkCapacity {
    isolation: Mutex<NetworkIsolation>,
    /// True when the disk has too little space for new work.
    disk_low: AtomicBool,
    /// Cancelled when the executor drains and opens no further workspace.
    draining: CancellationToken,
    slots: Arc<Semaphore>,
    total: u32,
    changed: watch::Sender<()>,
}

impl WorkCapacity {
    /// Creates the capacity of an executor whose isolation is not tested yet.
    pub(crate) fn new(slots: u32) -> Self {
        Self {
            isolation: Mutex::new(NetworkIsolation::Untried),
            disk_low: AtomicBool::new(false),
            draining: CancellationToken::new(),
            slots: Arc::new(Semaphore::new(slots as usize)),
            total: slots,
            changed: watch::Sender::new(()),
        }
    }

    /// Takes a free slot.
    pub(crate) fn take_slot(&self) -> Result<OwnedSemaphorePermit, Status> {
        if self.is_draining() {
            return Err(Status::resource_exhausted("the executor is about to stop"));
        }
        if !self.isolation().holds() {
            return Err(Status::resource_exhausted(
                "the executor is not ready: see its log",
            ));
        }
        if self.is_disk_low() {
            return Err(Status::resource_exhausted(DISK_LOW));
        }
        let slot = Arc::clone(&self.slots).try_acquire_owned();
        slot.map_err(|_| Status::resource_exhausted("no free slot"))
    }

    /// Returns the numbers of free slots and of all.
    pub(crate) fn slots(&self) -> SlotCounts {
        SlotCounts {
            free: u32::try_from(self.slots.available_permits()).unwrap_or(u32::MAX),
            total: self.total,
        }
    }

    /// Returns true when workspaces may be opened.
    pub(crate) fn is_ready(&self) -> bool {
        self.unready().is_empty()
    }

    /// Returns the reason why the executor accepts no work; empty if it does.
    pub(crate) fn unready(&self) -> &'static str {
        match self.isolation().words() {
            "" if self.is_disk_low() => DISK_LOW,
            words => words,
        }
    }

    /// Returns true when the disk has too little space for new work.
    pub(crate) fn is_disk_low(&self) -> bool {
        self.disk_low.load(Ordering::Relaxed)
    }

    /// Sets whether the disk has too little space for new work. Returns true when the value changed.
    pub(crate) fn set_disk_low(&self, is_low: bool) -> bool {
        let is_news = self.disk_low.swap(is_low, Ordering::Relaxed) != is_low;
        if is_news {
            self.notify();
        }
        is_news
    }

    fn isolation(&self) -> NetworkIsolation {
        *self.isolation.lock()
    }

    /// Sets the result of the isolation test.
    pub(crate) fn set_isolation(&self, isolation: NetworkIsolation) {
        let before = std::mem::replace(&mut *self.isolation.lock(), isolation);
        if before != isolation {
            self.notify();
        }
    }

    /// Stops opening workspaces.
    pub(crate) fn drain(&self) {
        self.draining.cancel();
        self.notify();
    }

    /// Returns true when no further workspace is opened.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Wakes the receivers of [`WorkCapacity::changes`].
    pub(crate) fn notify(&self) {
        self.changed.send_replace(());
    }

    /// Returns a sender that wakes the receivers, for an owner of a slot.
    pub(crate) fn notifier(&self) -> watch::Sender<()> {
        self.changed.clone()
    }

    /// Returns a receiver that wakes when the status may have changed.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}
