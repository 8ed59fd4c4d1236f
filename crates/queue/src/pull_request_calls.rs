//! Calls of the API for pull requests. Ingest writes the calls to the control records, the reporter writes
//! the answers to its ledger.

use std::{sync::Arc, time::Duration};

use domain::{PullRequestAnswer, PullRequestCall, Timestamp};

use crate::{
    connection::Connection,
    error::Error,
    names::{Bucket, Key},
    table::Table,
    unreadable::Revision,
};

// Time without an answer after which a reporter counts as dead. A repetition changes nothing, because every
// write reads the current state first.
const TAKEN_FOR: Duration = Duration::from_secs(5 * 60);

/// Result of an attempt to claim a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// This process claimed it; the revision goes with the answer.
    Ours(Revision),
    /// Another reporter claimed it.
    Theirs,
    /// It already has its answer.
    Answered,
}

/// Calls and their answers. Cheap to clone.
#[derive(Clone)]
pub struct PullRequestCalls {
    connection: Arc<Connection>,
    calls: Table<PullRequestCall>,
    answers: Table<PullRequestAnswer>,
}

impl PullRequestCalls {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self {
            calls: Table::new(connection.clone(), Bucket::Control),
            answers: Table::new(connection.clone(), Bucket::Effects),
            connection,
        }
    }

    /// Stores a call, unless one with this id exists: then returns that one.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn ask(&self, call: &PullRequestCall) -> Result<Option<PullRequestCall>, Error> {
        match self.calls.put(key(&call.id), call, None).await {
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
        Ok(self.calls.get(key(id)).await?.map(|(call, _)| call))
    }

    /// State of a call; `None` until a reporter claims it.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn answer(&self, id: &str) -> Result<Option<PullRequestAnswer>, Error> {
        Ok(self.answers.get(key(id)).await?.map(|(answer, _)| answer))
    }

    /// Calls after a revision, oldest first, and the revision for the next call of this method.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn changes_after(&self, after: Revision) -> Result<(Vec<PullRequestCall>, Revision), Error> {
        let filter = Bucket::Control.under(&all());
        self.calls.changes_under(&filter, after).await
    }

    /// Claims a call, so that no other reporter executes it at the same time.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn take(&self, id: &str, now: Timestamp) -> Result<Taken, Error> {
        let known = self.answers.get(key(id)).await?;
        let last = match known {
            None => None,
            Some((known, _)) if known.answer.is_some() => return Ok(Taken::Answered),
            Some((known, _)) if now < known.taken_at.plus(TAKEN_FOR) => return Ok(Taken::Theirs),
            Some((_, revision)) => Some(revision),
        };
        let ours = PullRequestAnswer {
            taken_at: now,
            answer: None,
        };
        match self.answers.put(key(id), &ours, last).await {
            Ok(revision) => Ok(Taken::Ours(revision)),
            Err(Error::Conflict) => Ok(Taken::Theirs),
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
        taken: Revision,
    ) -> Result<(), Error> {
        self.answers.put(key(id), answer, Some(taken)).await.map(drop)
    }

    /// Deletes the calls that were made before an instant, with their answers, and returns their number. Only
    /// the reporter has the right.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; a repeated call continues.
    pub async fn forget_before(&self, before: Timestamp) -> Result<u64, Error> {
        let (calls, _) = self.changes_after(Revision::default()).await?;
        let mut forgotten = 0;
        for call in calls.iter().filter(|call| call.at < before) {
            // The call goes last: it lists what a repeated deletion has to remove.
            for bucket in [Bucket::Effects, Bucket::Control] {
                let subject = bucket.subject(&key(&call.id));
                self.connection.purge(&bucket.stream(), &subject).await?;
            }
            forgotten += 1;
        }
        Ok(forgotten)
    }
}

/// Common prefix of the keys, in both tables.
fn all() -> Key {
    Key::from("pull-request-call").and("id")
}

fn key(id: &str) -> Key {
    all().and(id)
}
