//! Replay of failed deliveries from GitHub's delivery log.

use std::collections::{BTreeMap, BTreeSet};

use domain::{InstanceName, ServiceOrigin, Timestamp};
use github::DeliveryCursor;
use queue::WebhookDelivery;

use crate::{
    poll::{
        context::{PollContext, PollWindow},
        round::{FailedFinding, PollRound},
    },
    router::{EventRouter, outcome::EventFailure},
};

/// Unfinished scans of delivery logs by instance. After an outage a log may have more attempts than one round reads.
#[derive(Default)]
pub(crate) struct DeliveryLogScans {
    unfinished: BTreeMap<Option<InstanceName>, DeliveryLogScan>,
}

/// Scan of a delivery log, from the latest attempt back to the previous scan.
struct DeliveryLogScan {
    window: PollWindow,
    /// Place of the part that the next round reads; absent for the first part, and after the last one.
    next: Option<DeliveryCursor>,
    /// Time of the oldest finding that the next scan has to list again.
    waits_from: Option<Timestamp>,
}

impl DeliveryLogScans {
    /// Stores the deliveries that GitHub failed to deliver, under their original ids. Returns the number of new ones,
    /// or `None` for a reader that is not an App and has no delivery log.
    ///
    /// A delivery without content is dead-lettered and never requested again.
    pub(crate) async fn replay(
        &mut self,
        context: &mut PollContext,
        instance: Option<&InstanceName>,
    ) -> Result<Option<u64>, EventFailure> {
        // A dry run stores no delivery; the caller lists comments instead.
        if context.is_dry_run() {
            return Ok(None);
        }
        let origin = ServiceOrigin::GitHub(instance.cloned());
        let key = instance.cloned();
        let mut scan = match self.unfinished.remove(&key) {
            Some(scan) => scan,
            None => DeliveryLogScan {
                window: context.open_window(format!("reconciled:{origin}")).await?,
                next: None,
                waits_from: None,
            },
        };
        let read = Box::pin(scan.read_part(context, &origin)).await;
        let may_continue = match &read {
            Ok(_) => true,
            // The same part is read again. After a refusal, which may be about the cursor, a new scan begins.
            Err(failure) => failure.is_of_outside(),
        };
        if scan.next.is_some() {
            if may_continue {
                self.unfinished.insert(key, scan);
            }
            return read;
        }
        let recovered = read?;
        if recovered.is_some() {
            // The mark moves after the last part alone: attempts since the first part belong to the next scan.
            let window = &scan.window;
            context
                .store_waiting_mark(window, window.now, scan.waits_from)
                .await?;
        }
        Ok(recovered)
    }
}

impl DeliveryLogScan {
    /// Reads a part of the log, and stores its lost deliveries.
    async fn read_part(
        &mut self,
        context: &mut PollContext,
        origin: &ServiceOrigin,
    ) -> Result<Option<u64>, EventFailure> {
        let outside = &context.router.outside;
        let read = outside.hook_deliveries(origin.instance(), self.window.since, self.next.as_ref());
        let Some(part) = read.await? else {
            return Ok(None);
        };
        let mut round = PollRound::default();
        for attempt in list_undelivered(part.attempts) {
            let finding = format!("{origin} delivery {}", attempt.guid);
            if context.memory.has_settled(&finding) {
                continue;
            }
            match recover_delivery(&context.router, origin, &attempt, bootstrap::read_wall_clock()).await {
                Ok(is_new) => {
                    round.add_read(u64::from(is_new));
                    context.memory.settle(finding);
                }
                Err(failure) => {
                    let failed = FailedFinding {
                        finding,
                        ticket: None,
                        at: attempt.delivered_at,
                        failure,
                    };
                    context.add_failure(&mut round, failed).await?;
                }
            }
        }
        let recovered = round.recovered();
        let waits_from = context.settle_round(round).await?;
        self.waits_from = self.waits_from.into_iter().chain(waits_from).min();
        self.next = part.next;
        Ok(Some(recovered))
    }
}

/// Stores the delivery of one attempt; false when it is known.
async fn recover_delivery(
    router: &EventRouter,
    origin: &ServiceOrigin,
    attempt: &github::HookDelivery,
    now: Timestamp,
) -> Result<bool, EventFailure> {
    let body = router.outside.hook_payload(origin.instance(), attempt.id).await?;
    let delivery = WebhookDelivery {
        source: origin.clone(),
        id: attempt.guid.clone(),
        event: attempt.event.clone(),
        // The age of a delivery decides about its retries and its dead letter. A replayed one starts
        // at zero, because its retries only begin now.
        received_at: now,
        body: body.to_string().into(),
    };
    let is_new = router.queue.deliveries().publish(&delivery).await?;
    if is_new {
        tracing::info!(
            delivery = delivery.id,
            event = delivery.event,
            "recovered a delivery from GitHub's delivery log"
        );
    }
    Ok(is_new)
}

/// One attempt of each delivery without a 2xx answer, oldest first.
fn list_undelivered(newest_first: Vec<github::HookDelivery>) -> Vec<github::HookDelivery> {
    let is_delivered = |attempt: &&github::HookDelivery| (200..300).contains(&attempt.status_code);
    let mut known: BTreeSet<String> = newest_first
        .iter()
        .filter(is_delivered)
        .map(|attempt| attempt.guid.clone())
        .collect();
    let oldest_first = newest_first.into_iter().rev();
    oldest_first
        .filter(|attempt| known.insert(attempt.guid.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_hook_delivery(id: u64, guid: &str, status_code: u16) -> github::HookDelivery {
        github::HookDelivery {
            id,
            guid: guid.to_owned(),
            delivered_at: Timestamp::default(),
            event: "check_run".to_owned(),
            action: None,
            status_code,
            redelivery: false,
        }
    }

    #[test]
    fn undelivered_attempts_are_listed_once() {
        let log = vec![
            build_hook_delivery(5, "c", 0),
            build_hook_delivery(4, "b", 202),
            build_hook_delivery(3, "b", 502),
            build_hook_delivery(2, "c", 503),
            build_hook_delivery(1, "a", 202),
        ];
        let found: Vec<u64> = list_undelivered(log)
            .into_iter()
            .map(|attempt| attempt.id)
            .collect();
        assert_eq!(found, [2]);
    }
}
