//! Locks of conversations on GitHub, as webhooks and reads show them, for the pages of tickets.

use domain::{RecordKind, StoredRecord, TicketKey, Timestamp};
use queue::{FoundValue, KeyValueBucket, Queue, TableRevision};
use serde::{Deserialize, Serialize};

use crate::webhook::payload::{WebhookPayload, github as wire};

// GitHub's reasons are shorter.
const MAX_REASON: usize = 60;

/// Lock of a conversation: only accounts with write access can comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConversationLock {
    /// Time of the lock, or of the first read that shows it.
    pub(crate) since: Timestamp,
    /// Reason in words, e.g. `too heated`; empty when the lock has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
}

impl StoredRecord for ConversationLock {
    const KIND: RecordKind = RecordKind::Control;
}

/// Change of a lock that a webhook reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockChange {
    ticket: TicketKey,
    /// Reason of the lock; absent after an unlock.
    lock: Option<String>,
}

/// Parses a webhook about a lock; `None` for any other one.
pub(crate) fn parse_change(hook: &WebhookPayload<'_>) -> Option<LockChange> {
    let WebhookPayload::GitHub {
        event: "issues" | "pull_request" | "discussion",
        ..
    } = hook
    else {
        return None;
    };
    // An unreadable payload is an error of the kinds of events.
    let payload: wire::LockPayload = hook.read().ok()?;
    let is_locked = match payload.action.as_str() {
        "locked" => true,
        "unlocked" => false,
        _ => return None,
    };
    let repository = hook.repository(payload.repository);
    let is_discussion = payload.discussion.is_some();
    let thread = payload.issue.or(payload.pull_request).or(payload.discussion)?;
    let number = thread.number;
    let ticket = if is_discussion {
        TicketKey::Discussion { repository, number }
    } else {
        TicketKey::GitHub { repository, number }
    };
    let lock = is_locked.then(|| thread.active_lock_reason.unwrap_or_default());
    Some(LockChange { ticket, lock })
}

/// Stores or removes the lock of a known ticket or of our pull request. Bots lock thousands of old conversations that have
/// no other record.
pub(crate) async fn store_change(
    queue: &Queue,
    change: &LockChange,
    at: Timestamp,
) -> Result<(), queue::Error> {
    let ticket = &change.ticket;
    if change.lock.is_some() && !is_known(queue, ticket).await? {
        return Ok(());
    }
    store_lock(queue, ticket, change.lock.as_deref(), at).await
}

/// Stores the lock of a conversation as a read shows it. A stored one keeps its time.
pub(crate) async fn store_seen(
    queue: &Queue,
    ticket: &TicketKey,
    lock: Option<&github::ConversationLock>,
    now: Timestamp,
) -> Result<(), queue::Error> {
    let (TicketKey::GitHub { .. } | TicketKey::Discussion { .. }) = ticket else {
        return Ok(());
    };
    store_lock(queue, ticket, lock.map(|lock| lock.reason.as_str()), now).await
}

/// Reads the lock of a conversation. An unreadable record counts as none, unless a newer release wrote it.
pub(crate) async fn read_lock(
    queue: &Queue,
    ticket: &TicketKey,
) -> Result<Option<ConversationLock>, queue::Error> {
    Ok(find_lock(queue, ticket).await?.0)
}

async fn store_lock(
    queue: &Queue,
    ticket: &TicketKey,
    reason: Option<&str>,
    at: Timestamp,
) -> Result<(), queue::Error> {
    let locks = queue.table::<ConversationLock>(KeyValueBucket::Control);
    let key = build_key(ticket);
    let stored = match (find_lock(queue, ticket).await?, reason) {
        ((Some(_), _), Some(_)) | ((_, None), None) => return Ok(()),
        ((None, last), Some(reason)) => {
            let lock = ConversationLock {
                since: at,
                reason: reason.chars().take(MAX_REASON).collect(),
            };
            tracing::info!(%ticket, reason = lock.reason, "conversation locked");
            locks.put(&key, &lock, last).await.map(drop)
        }
        ((_, Some(revision)), None) => {
            tracing::info!(%ticket, "conversation unlocked");
            locks.delete_at(&key, revision).await
        }
    };
    match stored {
        // Another process saw the same change.
        Ok(()) | Err(queue::Error::Conflict) => Ok(()),
        Err(error) => Err(error),
    }
}

async fn find_lock(
    queue: &Queue,
    ticket: &TicketKey,
) -> Result<(Option<ConversationLock>, Option<TableRevision>), queue::Error> {
    let locks = queue.table::<ConversationLock>(KeyValueBucket::Control);
    Ok(match locks.find(&build_key(ticket)).await? {
        Some(FoundValue::Value(lock, revision)) => (Some(lock), Some(revision)),
        Some(FoundValue::Unreadable(unreadable)) => (None, Some(unreadable.unless_newer()?.revision())),
        None => (None, None),
    })
}

/// True for a ticket with triggers, and for a pull request of ours.
async fn is_known(queue: &Queue, ticket: &TicketKey) -> Result<bool, queue::Error> {
    if queue.triggers().last_sequence(ticket).await?.is_some() {
        return Ok(true);
    }
    let TicketKey::GitHub { repository, number } = ticket else {
        return Ok(false);
    };
    Ok(queue.pull_requests().get(repository, *number).await?.is_some())
}

fn build_key(ticket: &TicketKey) -> String {
    format!("lock:{ticket}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn parse(event: &str, payload: &Value) -> Option<LockChange> {
        let body = serde_json::to_vec(payload).unwrap();
        parse_change(&WebhookPayload::GitHub {
            instance: None,
            event,
            body: &body,
        })
    }

    #[test]
    fn webhook_of_lock_names_its_conversation() {
        let payload = |kind: &str, action: &str| {
            json!({
                "action": action, "repository": {"full_name": "acme/shop"},
                kind: {"number": 7, "locked": true, "active_lock_reason": "too heated"},
            })
        };
        let found = |event, kind: &str, action: &str| {
            let change = parse(event, &payload(kind, action))?;
            Some((change.ticket.to_string(), change.lock))
        };
        let reason = Some("too heated".to_owned());
        assert_eq!(
            found("issues", "issue", "locked"),
            Some(("github:acme/shop#7".to_owned(), reason.clone()))
        );
        assert_eq!(
            found("pull_request", "pull_request", "unlocked"),
            Some(("github:acme/shop#7".to_owned(), None))
        );
        let discussion = found("discussion", "discussion", "locked").unwrap();
        let expected = TicketKey::Discussion {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
        };
        assert_eq!(discussion, (expected.to_string(), reason));
        assert_eq!(found("issues", "issue", "edited"), None);
        assert_eq!(found("issue_comment", "issue", "locked"), None);
    }
}
