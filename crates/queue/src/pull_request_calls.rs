//! Pull requests that callers of the API ask for: the calls among the control records, which ingest writes, and the
//! answers in the ledger, which the reporter writes.

use std::{sync::Arc, time::Duration};

use domain::{PullRequestAnswer, PullRequestCall, Timestamp};

use crate::{
    connection::Connection,
    error::Error,
    names::{Bucket, Key},
    table::Table,
    unreadable::Revision,
};

/// A reporter that has not answered for so long is taken for dead. Doing the same a second time changes nothing: every
/// write looks first.
const TAKEN_FOR: Duration = Duration::from_secs(5 * 60);

/// What became of an attempt to take a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is ours; the revision goes with the answer.
    Ours(Revision),
    /// Another reporter has it.
    Theirs,
    /// It has its answer.
    Answered,
}

/// The calls and their answers. Cheap to clone.
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

    /// Keeps a call, unless there is one of this id: then that one is given.
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

    /// A call.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn call(&self, id: &str) -> Result<Option<PullRequestCall>, Error> {
        Ok(self.calls.get(key(id)).await?.map(|(call, _)| call))
    }

    /// How far a call is; absent: nobody has taken it up.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn answer(&self, id: &str) -> Result<Option<PullRequestAnswer>, Error> {
        Ok(self.answers.get(key(id)).await?.map(|(answer, _)| answer))
    }

    /// The calls that came after a revision, oldest first, and the revision to ask with the next time.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn changes_after(&self, after: Revision) -> Result<(Vec<PullRequestCall>, Revision), Error> {
        let filter = Bucket::Control.under(&all());
        self.calls.changes_under(&filter, after).await
    }

    /// Takes a call, so that no other reporter carries it out at the same time.
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

    /// Keeps the answer of a call that was taken at this revision.
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

    /// Forgets the calls that were made before this, with their answers; says how many. Ingest alone may.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; repeating it goes on.
    pub async fn forget_before(&self, before: Timestamp) -> Result<u64, Error> {
        let (calls, _) = self.changes_after(Revision::default()).await?;
        let mut forgotten = 0;
        for call in calls.iter().filter(|call| call.at < before) {
            for bucket in [Bucket::Effects, Bucket::Control] {
                let subject = bucket.subject(&key(&call.id));
                self.connection.purge(&bucket.stream(), &subject).await?;
            }
            forgotten += 1;
        }
        Ok(forgotten)
    }
}

/// What their keys begin with, in both tables.
fn all() -> Key {
    Key::from("pull-request-call").and("id")
}

fn key(id: &str) -> Key {
    all().and(id)
}
