//! The runs' journals.

use std::sync::Arc;

use async_nats::{
    HeaderMap, jetstream,
    jetstream::consumer::{DeliverPolicy, pull::OrderedConfig},
};
use domain::{Cause, Entry, Fact, RunId, TicketKey, Timestamp};
use futures::{Stream, StreamExt as _, TryStreamExt as _, future, stream, stream::BoxStream};

use crate::{
    body,
    connection::Connection,
    error::Error,
    names::{self, Bucket, JOURNAL, Key},
    objects::Objects,
    wire::{Compared, Target},
};

/// Where to read in all journals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalPlace {
    /// From what was stored at an instant.
    Since(Timestamp),
    /// From a stream sequence.
    At(u64),
}

/// Some entries of all journals.
#[derive(Debug)]
pub struct JournalPage {
    /// Each with its run, in the order of the stream.
    pub entries: Vec<(RunId, Entry)>,
    /// Where the next page begins; absent: this was the end.
    pub next: Option<JournalPlace>,
}

/// The runs' journals. Cheap to clone.
#[derive(Clone)]
pub struct Journal {
    connection: Arc<Connection>,
}

impl Journal {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection }
    }

    fn objects(&self) -> Objects {
        Objects::new(self.connection.clone())
    }

    /// The ticket's runs that have a journal, oldest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn runs_of(&self, ticket: &TicketKey) -> Result<Vec<RunId>, Error> {
        let filter = names::journals_of(ticket);
        let subjects = self.connection.subjects(JOURNAL, &filter).await?;
        let mut runs: Vec<RunId> = subjects
            .iter()
            .filter_map(|subject| names::run_of(subject))
            .collect();
        runs.sort_by_key(RunId::sequence);
        Ok(runs)
    }

    /// Appends after the entry at stream sequence `last` (0: the run's first entry) and returns the new sequence. A lost
    /// acknowledgement is resolved by reading the last entry: our nonce means success.
    ///
    /// # Errors
    /// [`Error::Conflict`] when the last entry is another's; [`Error::Unavailable`], then the same entry may be tried
    /// again.
    pub async fn append(&self, run: &RunId, last: u64, entry: &Entry) -> Result<u64, Error> {
        let subject = names::journal(run);
        let mut headers = HeaderMap::new();
        let payload = body::encode(&subject, entry)?.into();
        let payload = body::pack(&self.objects(), &mut headers, payload).await?;
        let target = Target::own(JOURNAL, &subject);
        let written = self
            .connection
            .compare_and_publish(&target, last, &entry.nonce, headers, payload);
        let outcome = failpoint::around_kind("queue.journal.append", entry.fact.name(), written).await?;
        match outcome {
            Compared::Written(sequence) => Ok(sequence),
            Compared::Lost(_) => Err(Error::Conflict),
        }
    }

    /// Every entry with its stream sequence, oldest first; empty for an unknown run.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Newer`], or [`Error::Corrupt`] when an entry cannot be read.
    pub async fn read(&self, run: &RunId) -> Result<Vec<(u64, Entry)>, Error> {
        let mut entries = Vec::new();
        let subject = names::journal(run);
        let range = self.connection.range(JOURNAL, &subject, 0);
        for stored in failpoint::around("queue.journal.read", range).await? {
            let sequence = stored.sequence;
            entries.push((sequence, body::record(&self.objects(), stored).await?));
        }
        Ok(entries)
    }

    /// The same entries, read page by page as the caller takes them: however long the journal is, one page of it is in memory.
    /// Ends at an error.
    pub fn entries(&self, run: &RunId) -> impl Stream<Item = Result<(u64, Entry), Error>> + Send + use<> {
        let (connection, objects) = (Arc::clone(&self.connection), self.objects());
        let subject = names::journal(run);
        let pages = stream::try_unfold(1, move |next| {
            let (connection, subject) = (Arc::clone(&connection), subject.clone());
            async move {
                let page = connection.small_page(JOURNAL, &subject, next).await?;
                let behind = page.last().map(|last| last.sequence + 1);
                Ok::<_, Error>(behind.map(|behind| (page, behind)))
            }
        });
        let stored = pages
            .map_ok(|page| stream::iter(page.into_iter().map(Ok::<_, Error>)))
            .try_flatten();
        stored.and_then(move |stored| {
            let objects = objects.clone();
            async move {
                let sequence = stored.sequence;
                Ok((sequence, body::record(&objects, stored).await?))
            }
        })
    }

    /// Those entries of a run that the caller keeps, oldest first, without holding the others.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub async fn read_kept(
        &self,
        run: &RunId,
        is_kept: impl Fn(&Entry) -> bool + Send,
    ) -> Result<Vec<Entry>, Error> {
        let mut kept = Vec::new();
        let mut entries = std::pin::pin!(self.entries(run));
        while let Some((_, entry)) = entries.try_next().await? {
            if is_kept(&entry) {
                kept.push(entry);
            }
        }
        Ok(kept)
    }

    /// The next entries of all runs, those of a place and some after it; none at the end. One that cannot be read is left
    /// out and said in the log.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn page(&self, place: JournalPlace) -> Result<JournalPage, Error> {
        let subject = names::journals();
        let stored = match place {
            JournalPlace::Since(instant) => self.connection.page_since(JOURNAL, &subject, instant).await?,
            JournalPlace::At(sequence) => self.connection.page(JOURNAL, &subject, sequence).await?,
        };
        let next = stored.last().map(|last| JournalPlace::At(last.sequence + 1));
        let mut entries = Vec::with_capacity(stored.len());
        for stored in stored {
            let Some(run) = names::run_of(&stored.subject) else {
                continue;
            };
            match body::record_or_bytes::<Entry>(&self.objects(), JOURNAL, stored).await? {
                Ok(entry) => entries.push((run, entry)),
                Err(unreadable) => tracing::warn!(%run, problem = unreadable.problem(), "entry left out"),
            }
        }
        Ok(JournalPage { entries, next })
    }

    /// The stream sequence of the last entry of all journals; 0: there was none yet.
    pub(crate) async fn last_sequence(&self) -> Result<u64, Error> {
        let asked = self.connection.context.get_stream(JOURNAL).await;
        let stream = asked.map_err(|error| Error::unavailable("look at the journals", error))?;
        Ok(stream.cached_info().state.last_sequence)
    }

    /// Forgets the journals of runs that ended before an instant with what is listed of them, and gives how many there were.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn expire(&self, before: Timestamp) -> Result<u64, Error> {
        let mut expired = 0;
        for subject in self.connection.subjects(JOURNAL, &names::journals()).await? {
            let Some(last) = self.connection.last(JOURNAL, &subject).await? else {
                continue;
            };
            let entry = body::record_or_bytes::<Entry>(&self.objects(), JOURNAL, last).await?;
            let entry = match entry {
                Ok(entry) => entry,
                Err(unreadable) => {
                    tracing::error!(subject, problem = unreadable.problem(), "journal left alone");
                    continue;
                }
            };
            if matches!(entry.fact, Fact::RunFinished { .. }) && entry.at < before {
                // The journal goes last: after a crash in between, the next round finds the run by it.
                if let Some(run) = names::run_of(&subject) {
                    let record = Bucket::Runs.subject(&Key::run(&run));
                    self.connection.purge(&Bucket::Runs.stream(), &record).await?;
                }
                self.connection.purge(JOURNAL, &subject).await?;
                expired += 1;
            }
        }
        Ok(expired)
    }

    /// Entries from position `from` on, then new ones as they come; never ends by itself. Entries by stream sequence.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot start.
    pub async fn follow(
        &self,
        run: &RunId,
        from: u64,
    ) -> Result<BoxStream<'static, Result<Entry, Error>>, Error> {
        let entries = self.ordered(names::journal(run), DeliverPolicy::All).await?;
        let wanted = move |item: &Result<(RunId, Entry), Error>| {
            future::ready(item.as_ref().map_or(true, |(_, entry)| entry.position >= from))
        };
        Ok(entries
            .filter(wanted)
            .map(|item| item.map(|(_, entry)| entry))
            .boxed())
    }

    /// The last entry of a run, if there is one, and new ones as they come; never ends by itself.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot start.
    pub async fn follow_newest(
        &self,
        run: &RunId,
    ) -> Result<BoxStream<'static, Result<Entry, Error>>, Error> {
        let subject = names::journal(run);
        // By sequence: a consumer that is made again before its first message would miss entries with `New`.
        let policy = match self.connection.last(JOURNAL, &subject).await? {
            Some(last) => DeliverPolicy::ByStartSequence {
                start_sequence: last.sequence,
            },
            None => DeliverPolicy::All,
        };
        let entries = self.ordered(subject, policy).await?;
        Ok(entries.map(|item| item.map(|(_, entry)| entry)).boxed())
    }

    /// New entries of every run, from now on.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot start.
    pub async fn follow_all(&self) -> Result<BoxStream<'static, Result<(RunId, Entry), Error>>, Error> {
        self.ordered(names::journals(), DeliverPolicy::New).await
    }

    async fn ordered(
        &self,
        filter_subject: String,
        deliver_policy: DeliverPolicy,
    ) -> Result<BoxStream<'static, Result<(RunId, Entry), Error>>, Error> {
        let failed = |cause: Cause| Error::unavailable("follow a journal", cause);
        let config = OrderedConfig {
            filter_subject,
            deliver_policy,
            ..OrderedConfig::default()
        };
        let consumer = self
            .connection
            .context
            .create_consumer_on_stream(config, JOURNAL)
            .await;
        let messages = consumer.map_err(|error| failed(error.into()))?.messages().await;
        let messages = messages.map_err(|error| failed(error.into()))?;
        let objects = self.objects();
        let decoded = messages.then(move |message| {
            let objects = objects.clone();
            async move {
                let message = message.map_err(|error| Error::unavailable("follow a journal", error))?;
                decode(&objects, message).await
            }
        });
        Ok(decoded.boxed())
    }
}

async fn decode(objects: &Objects, message: jetstream::Message) -> Result<(RunId, Entry), Error> {
    let subject = message.subject.as_str();
    let run = names::run_of(subject);
    let run = run.ok_or_else(|| Error::corrupt(subject, "it names no run"))?;
    let body = body::unpack(objects, message.headers.as_ref(), message.payload.clone()).await?;
    let entry = body::decode(objects, &body, || subject.to_owned())?;
    Ok((run, entry))
}
