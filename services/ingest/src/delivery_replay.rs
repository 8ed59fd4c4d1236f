//! Replay of failed deliveries from GitHub's delivery log, and the poll marks of all polls.

use std::collections::BTreeSet;

use domain::{InstanceName, RecordKind, ServiceOrigin, StoredRecord, Timestamp};
use queue::{FoundValue, KeyValueBucket, TableRevision, WebhookDelivery};
use serde::{Deserialize, Serialize};

use crate::{
    memory::PollMemory,
    outcome::EventFailure,
    poll_round::{FailedFinding, PollRound},
    router::EventRouter,
};

/// Overlap of a poll with the previous one, in milliseconds. Attempts appear late in GitHub's delivery log.
pub const OVERLAP_MS: i64 = 10 * 60 * 1000;
const FIRST_LOOK_MS: i64 = 60 * 60 * 1000;

/// Stored poll mark: the time up to which something outside was polled.
#[derive(Serialize, Deserialize)]
struct PollMark {
    to: Timestamp,
}

impl StoredRecord for PollMark {
    const KIND: RecordKind = RecordKind::Control;
}

/// One poll of something outside.
pub(crate) struct PollWindow {
    key: String,
    /// Start of the polled time: some minutes before the end of the previous poll.
    pub(crate) since: Timestamp,
    pub(crate) now: Timestamp,
    revision: Option<TableRevision>,
}

impl EventRouter {
    /// Starts a poll at the previous mark, with an overlap. The first poll starts an hour ago.
    pub(crate) async fn look(&self, key: String) -> Result<PollWindow, EventFailure> {
        self.look_from(key, bootstrap::read_wall_clock().plus_ms(-FIRST_LOOK_MS))
            .await
    }

    /// Variant of [`Self::look`] with another start of the first poll.
    pub(crate) async fn look_from(&self, key: String, first: Timestamp) -> Result<PollWindow, EventFailure> {
        let now = bootstrap::read_wall_clock();
        let (since, revision) = match self
            .queue
            .table::<PollMark>(KeyValueBucket::Control)
            .find(&key)
            .await?
        {
            Some(FoundValue::Value(looked, revision)) => (looked.to.plus_ms(-OVERLAP_MS), Some(revision)),
            // A mark of a newer version must not be overwritten during a rolling upgrade. Any other unreadable mark
            // is replaced.
            Some(FoundValue::Unreadable(unreadable)) => (first, Some(unreadable.unless_newer()?.revision())),
            None => (first, None),
        };
        Ok(PollWindow {
            key,
            since,
            now,
            revision,
        })
    }

    /// Stores the mark of a poll.
    pub(crate) async fn looked(&self, look: &PollWindow, to: Timestamp) -> Result<(), EventFailure> {
        if self.seen.is_some() {
            return Ok(());
        }
        let table = self.queue.table::<PollMark>(KeyValueBucket::Control);
        match table.put(&look.key, &PollMark { to }, look.revision).await {
            // Another ingest process stored its mark first. The next poll starts there.
            Ok(_) | Err(queue::Error::Conflict) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Stores the deliveries that GitHub failed to deliver, under their original ids. Returns the number of new ones,
    /// or `None` for a reader that is not an App and has no delivery log.
    ///
    /// A delivery without content is dead-lettered and never requested again.
    pub(crate) async fn reconcile(
        &self,
        instance: Option<&InstanceName>,
        memory: &mut PollMemory,
    ) -> Result<Option<u64>, EventFailure> {
        // A dry run stores no delivery; the caller lists comments instead.
        if self.seen.is_some() {
            return Ok(None);
        }
        let origin = ServiceOrigin::GitHub(instance.cloned());
        let look = self.look(format!("reconciled:{origin}")).await?;
        let Some(log) = self.outside.hook_deliveries(instance, look.since).await? else {
            return Ok(None);
        };
        let mut round = PollRound::default();
        for attempt in list_undelivered(log) {
            let finding = format!("{origin} delivery {}", attempt.guid);
            if memory.knows(&finding) {
                continue;
            }
            match self.recover(&origin, &attempt, look.now).await {
                Ok(is_new) => {
                    round.add_read(u64::from(is_new));
                    memory.settle(finding);
                }
                // A rate limit applies to all deliveries, so the rest of the round would fail too.
                Err(limit) if limit.is_limit() => {
                    self.settle_round(round, memory).await?;
                    return Err(limit);
                }
                Err(failure) => round.add_failure(FailedFinding {
                    finding,
                    ticket: None,
                    at: attempt.delivered_at,
                    failure,
                }),
            }
        }
        let recovered = round.recovered();
        let waits_from = self.settle_round(round, memory).await?;
        self.looked(&look, waits_from.map_or(look.now, |waits| waits.min(look.now)))
            .await?;
        Ok(Some(recovered))
    }

    /// Stores the delivery of one attempt; false when it is known.
    async fn recover(
        &self,
        origin: &ServiceOrigin,
        attempt: &github::HookDelivery,
        now: Timestamp,
    ) -> Result<bool, EventFailure> {
        let body = self.outside.hook_payload(origin.instance(), attempt.id).await?;
        let delivery = WebhookDelivery {
            source: origin.clone(),
            id: attempt.guid.clone(),
            event: attempt.event.clone(),
            // The age of a delivery decides about its retries and its dead letter. A replayed one starts
            // at zero, because its retries only begin now.
            received_at: now,
            body: body.to_string().into(),
        };
        let is_new = self.queue.deliveries().publish(&delivery).await?;
        if is_new {
            tracing::info!(
                delivery = delivery.id,
                event = delivery.event,
                "found in github's log of deliveries"
            );
        }
        Ok(is_new)
    }
}

/// One attempt of each delivery without a 2xx answer, oldest first.
fn list_undelivered(newest_first: Vec<github::HookDelivery>) -> Vec<github::HookDelivery> {
    let is_good = |attempt: &&github::HookDelivery| (200..300).contains(&attempt.status_code);
    let mut done: BTreeSet<String> = newest_first
        .iter()
        .filter(is_good)
        .map(|attempt| attempt.guid.clone())
        .collect();
    let oldest_first = newest_first.into_iter().rev();
    oldest_first
        .filter(|attempt| done.insert(attempt.guid.clone()))
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
    fn only_undelivered_attempts_recover_once() {
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
