//! The third door: GitHub's own log of deliveries tells which webhooks never reached us.

use std::collections::BTreeSet;

use domain::Timestamp;
use queue::{Bucket, WebhookDelivery};
use serde::{Deserialize, Serialize};

use crate::{outcome::Failure, router::Router};

const CURSOR: &str = "reconciled:github";
/// How far each look goes back behind the last one: attempts appear late in the log.
const OVERLAP_MS: i64 = 10 * 60 * 1000;
const FIRST_LOOK_MS: i64 = 60 * 60 * 1000;

/// Up to where the log has been looked through.
#[derive(Serialize, Deserialize)]
struct Looked {
    to: Timestamp,
}

impl Router {
    /// Stores the deliveries that GitHub could not deliver, under their own ids, and gives how many were new. A reader
    /// that is no App has no log.
    pub(crate) async fn reconcile(&self) -> Result<u64, Failure> {
        let table = self.queue.table::<Looked>(Bucket::Control);
        let now = bootstrap::now();
        let (since, revision) = match table.get(CURSOR).await? {
            Some((looked, revision)) => (looked.to.plus_ms(-OVERLAP_MS), Some(revision)),
            None => (now.plus_ms(-FIRST_LOOK_MS), None),
        };
        let mut recovered = 0;
        for attempt in undelivered(self.outside.hook_deliveries(since).await?) {
            let body = self.outside.hook_payload(attempt.id).await?;
            let delivery = WebhookDelivery {
                source: "github".to_owned(),
                id: attempt.guid,
                event: attempt.event,
                received_at: now,
                body: body.to_string().into(),
            };
            if self.queue.deliveries().publish(&delivery).await? {
                tracing::info!(
                    delivery = delivery.id,
                    event = delivery.event,
                    "found in github's log of deliveries"
                );
                recovered += 1;
            }
        }
        match table.put(CURSOR, &Looked { to: now }, revision).await {
            // Another ingest was faster; the next look starts at its place.
            Ok(_) | Err(queue::Error::Conflict) => Ok(recovered),
            Err(error) => Err(error.into()),
        }
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
