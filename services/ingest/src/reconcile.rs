//! The third door: GitHub's own log of deliveries tells which webhooks never reached us. And where each look at the
//! outside begins.

use std::collections::BTreeSet;

use domain::{Instance, Origin, RecordKind, Stored, Timestamp, cause::chain};
use queue::{Bucket, Found, Revision, WebhookDelivery};
use serde::{Deserialize, Serialize};

use crate::{memory::Memory, outcome::Failure, router::Router};

/// How far each look goes back behind the last one: attempts appear late in the log.
pub const OVERLAP_MS: i64 = 10 * 60 * 1000;
const FIRST_LOOK_MS: i64 = 60 * 60 * 1000;

/// Up to where something outside has been looked through.
#[derive(Serialize, Deserialize)]
struct Looked {
    to: Timestamp,
}

impl Stored for Looked {
    const KIND: RecordKind = RecordKind::Control;
}

/// One look at something outside.
pub(crate) struct Look {
    key: String,
    /// Where it begins: some minutes before the end of the last one.
    pub(crate) since: Timestamp,
    pub(crate) now: Timestamp,
    revision: Option<Revision>,
}

impl Router {
    /// Begins a look where the last one ended, with an overlap; the first one begins an hour ago.
    pub(crate) async fn look(&self, key: String) -> Result<Look, Failure> {
        self.look_from(key, bootstrap::now().plus_ms(-FIRST_LOOK_MS))
            .await
    }

    /// The same with another beginning of the first one.
    pub(crate) async fn look_from(&self, key: String, first: Timestamp) -> Result<Look, Failure> {
        let now = bootstrap::now();
        let (since, revision) = match self.queue.table::<Looked>(Bucket::Control).find(&key).await? {
            Some(Found::Value(looked, revision)) => (looked.to.plus_ms(-OVERLAP_MS), Some(revision)),
            Some(Found::Unreadable(unreadable)) => (first, Some(unreadable.unless_newer()?.revision())),
            None => (first, None),
        };
        Ok(Look {
            key,
            since,
            now,
            revision,
        })
    }

    /// Keeps how far a look came.
    pub(crate) async fn looked(&self, look: &Look, to: Timestamp) -> Result<(), Failure> {
        if self.seen.is_some() {
            return Ok(());
        }
        let table = self.queue.table::<Looked>(Bucket::Control);
        match table.put(&look.key, &Looked { to }, look.revision).await {
            // Another ingest was faster; the next look starts at its place.
            Ok(_) | Err(queue::Error::Conflict) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Stores the deliveries that GitHub could not deliver, under their own ids, and gives how many were new; absent:
    /// a reader that is no App has no log. One whose content is gone is left out, visibly, and never asked for again.
    pub(crate) async fn reconcile(
        &self,
        instance: Option<&Instance>,
        memory: &mut Memory,
    ) -> Result<Option<u64>, Failure> {
        // Who only looks stores no delivery; comments are listed instead.
        if self.seen.is_some() {
            return Ok(None);
        }
        let origin = Origin::GitHub(instance.cloned());
        let look = self.look(format!("reconciled:{origin}")).await?;
        let Some(log) = self.outside.hook_deliveries(instance, look.since).await? else {
            return Ok(None);
        };
        let (mut recovered, mut waits_from, mut others_were_read) = (0, None::<Timestamp>, false);
        for attempt in undelivered(log) {
            let finding = format!("{origin} delivery {}", attempt.guid);
            if memory.knows(&finding) {
                continue;
            }
            match self.recover(&origin, &attempt, look.now).await {
                Ok(is_new) => {
                    recovered += u64::from(is_new);
                    others_were_read = true;
                    memory.settle(finding);
                }
                Err(limit) if limit.is_limit() => return Err(limit),
                Err(failure) if failure.may_pass() && !memory.is_hopeless(&finding, others_were_read) => {
                    tracing::warn!(
                        finding,
                        error = %chain(&failure),
                        "not recovered; it is tried again in the next round"
                    );
                    let at = attempt.delivered_at;
                    waits_from = Some(waits_from.map_or(at, |earlier| earlier.min(at)));
                }
                Err(failure) => {
                    self.give_up(&finding, None, &failure).await?;
                    memory.settle(finding);
                }
            }
        }
        self.looked(&look, waits_from.map_or(look.now, |waits| waits.min(look.now)))
            .await?;
        Ok(Some(recovered))
    }

    /// Stores what one attempt carried; false when it is known.
    async fn recover(
        &self,
        origin: &Origin,
        attempt: &github::HookDelivery,
        now: Timestamp,
    ) -> Result<bool, Failure> {
        let body = self.outside.hook_payload(origin.instance(), attempt.id).await?;
        let delivery = WebhookDelivery {
            source: origin.clone(),
            id: attempt.guid.clone(),
            event: attempt.event.clone(),
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

/// One attempt of each delivery of which none was answered with 2xx, oldest first.
fn undelivered(newest_first: Vec<github::HookDelivery>) -> Vec<github::HookDelivery> {
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

    fn attempt(id: u64, guid: &str, status_code: u16) -> github::HookDelivery {
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
    fn only_what_no_attempt_delivered_is_recovered_and_once() {
        let log = vec![
            attempt(5, "c", 0),
            attempt(4, "b", 202),
            attempt(3, "b", 502),
            attempt(2, "c", 503),
            attempt(1, "a", 202),
        ];
        let found: Vec<u64> = undelivered(log).into_iter().map(|attempt| attempt.id).collect();
        assert_eq!(found, [2]);
    }
}
