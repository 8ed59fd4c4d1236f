//! Calls of the API for pull requests. Ingest writes the calls to the control records, the reporter writes
//! the answers to its ledger.

use std::{sync::Arc, time::Duration};

use domain::{PullRequestAnswer, PullRequestCall, Timestamp};

use crate::{
    connection::NatsConnection,
    error::Error,
    names::{KeyValueBucket, RecordKey},
    table::TypedTable,
    unreadable_record::TableRevision,
};

// Time without an answer after which a reporter counts as dead. A repetition changes nothing, because every
// write reads the current state first.
const TAKEN_FOR: Duration = Duration::from_secs(5 * 60);

/// Result of an attempt to claim a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallClaim {
    /// This process claimed it; the revision goes with the answer.
    Ours(TableRevision),
    /// Another reporter claimed it.
    Theirs,
    /// It already has its answer.
    Answered,
}

/// Calls and their answers. Cheap to clone.
#[derive(Clone)]
pub struct PullRequestCalls {
    connection: Arc<NatsConnection>,
    calls: TypedTable<PullRequestCall>,
    answers: TypedTable<PullRequestAnswer>,
}

impl PullRequestCalls {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self {
            calls: TypedTable::new(connection.clone(), KeyValueBucket::Control),
            answers: TypedTable::new(connection.clone(), KeyValueBucket::Effects),
            connection,
        }
    }

    /// Stores a call, unless one with this id exists: then returns that one.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn ask(&self, call: &PullRequestCall) -> Result<Option<PullRequestCall>, Error> {
        match self.calls.put(build_call_key(&call.id), call, None).await {
            Ok(_) => Ok(None),
            Err(Error::Conflict) => self.call(&call.id).await,
            Err(error) => Err(error),
        }
    }

    /// Stored call with this id.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn call(&self, id: &str) -> Result<Option<PullRequestCall>, Error> {
        Ok(self.calls.get(build_call_key(id)).await?.map(|(call, _)| call))
    }

    /// State of a call; `None` until a reporter claims it.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn answer(&self, id: &str) -> Result<Option<PullRequestAnswer>, Error> {
        Ok(self
            .answers
            .get(build_call_key(id))
            .await?
            .map(|(answer, _)| answer))
    }

    /// Calls after a revision, oldest first, and the revision for the next call of this method.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn changes_after(
        &self,
        after: TableRevision,
    ) -> Result<(Vec<PullRequestCall>, TableRevision), Error> {
        let filter = KeyValueBucket::Control.under(&build_call_prefix());
        self.calls.changes_under(&filter, after).await
    }

    /// Claims a call, so that no other reporter executes it at the same time.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn take(&self, id: &str, now: Timestamp) -> Result<CallClaim, Error> {
        let known = self.answers.get(build_call_key(id)).await?;
        let last = match known {
            None => None,
            Some((known, _)) if known.answer.is_some() => return Ok(CallClaim::Answered),
            Some((known, _)) if now < known.taken_at.plus(TAKEN_FOR) => return Ok(CallClaim::Theirs),
            Some((_, revision)) => Some(revision),
        };
        let ours = PullRequestAnswer {
            taken_at: now,
            answer: None,
        };
        match self.answers.put(build_call_key(id), &ours, last).await {
            Ok(revision) => Ok(CallClaim::Ours(revision)),
            Err(Error::Conflict) => Ok(CallClaim::Theirs),
            Err(error) => Err(error),
        }
    }

    /// Stores the answer of a call that was claimed at this revision.
    ///
    /// # Errors
    /// [`Error::Conflict`] when another reporter took it over; [`Error::Unavailable`].
    pub async fn keep_answer(
        &self,
        id: &str,
        answer: &PullRequestAnswer,
        taken: TableRevision,
    ) -> Result<(), Error> {
        self.answers
            .put(build_call_key(id), answer, Some(taken))
            .await
            .map(drop)
    }

    /// Deletes the calls that were made before an instant, with their answers, and returns their number. Only
    /// the reporter has the right.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; a repeated call continues.
    pub async fn forget_before(&self, before: Timestamp) -> Result<u64, Error> {
        let (calls, _) = self.changes_after(TableRevision::default()).await?;
        let mut forgotten = 0;
        for call in calls.iter().filter(|call| call.at < before) {
            // The call goes last: it lists what a repeated deletion has to remove.
            for bucket in [KeyValueBucket::Effects, KeyValueBucket::Control] {
                let subject = bucket.subject(&build_call_key(&call.id));
                self.connection.purge(&bucket.stream(), &subject).await?;
            }
            forgotten += 1;
        }
        Ok(forgotten)
    }
}

/// Common prefix of the keys, in both tables.
fn build_call_prefix() -> RecordKey {
    RecordKey::from("pull-request-call").and("id")
}

fn build_call_key(id: &str) -> RecordKey {
    build_call_prefix().and(id)
}
