//! Slots of a planner for the tickets that it works on at the same time.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, watch};

/// Slots for tickets. Slots of executors are in [`crate::slots`].
pub(crate) struct TicketSlots {
    free: Arc<Semaphore>,
    /// True while all slots are taken and the next ticket needs one.
    is_requested: watch::Sender<bool>,
}

impl TicketSlots {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(count)),
            is_requested: watch::Sender::new(false),
        }
    }

    /// Waits for a slot. It is free again when the returned permit is dropped.
    ///
    /// # Errors
    /// [`AcquireError`] if the slots are closed.
    pub(crate) async fn take(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        if let Ok(slot) = self.free.clone().try_acquire_owned() {
            return Ok(slot);
        }
        self.is_requested.send_replace(true);
        let slot = self.free.clone().acquire_owned().await;
        self.is_requested.send_replace(false);
        slot
    }

    /// Waits until all slots are taken and the next ticket needs one.
    pub(crate) async fn wait_for_request(&self) {
        let mut requests = self.is_requested.subscribe();
        // The sender is a part of `self`, so it cannot be gone.
        drop(requests.wait_for(|is_requested| *is_requested).await);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn request_lasts_until_slot_frees() {
        let slots = TicketSlots::new(1);
        let slot = slots.take().await.unwrap();
        assert!(
            poll!(pin!(slots.wait_for_request())).is_pending(),
            "no ticket needs one"
        );
        let mut taking = pin!(slots.take());
        assert!(poll!(&mut taking).is_pending());
        slots.wait_for_request().await;
        drop(slot);
        let _slot = taking.await.unwrap();
        assert!(poll!(pin!(slots.wait_for_request())).is_pending());
    }
}
