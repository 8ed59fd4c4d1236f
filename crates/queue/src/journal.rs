//! Journals of runs: append with compare-and-set, read, page, expire and follow.

use std::sync::Arc;

use async_nats::{
    HeaderMap, jetstream,
    jetstream::consumer::{DeliverPolicy, pull::OrderedConfig},
};
use domain::{ErrorCause, Fact, JournalEntry, RunId, TicketKey, Timestamp};
use futures::{
    FutureExt as _, Stream, StreamExt as _, TryStreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use serde::Deserialize;

use crate::{
    body,
    connection::NatsConnection,
    error::Error,
    names::{self, JOURNAL, KeyValueBucket, RecordKey},
    objects::ContentStore,
    watch::LogWatch,
    wire::{ChainedMessage, CompareOutcome},
};

/// Position in the stream of all journals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalPlace {
    /// First entry that was stored at an instant or later.
    Since(Timestamp),
    /// Entry at a stream sequence.
    At(u64),
}

/// Page of the entries of all journals.
#[derive(Debug)]
pub struct JournalPage {
    /// Entries with their runs, in the order of the stream.
    pub entries: Vec<(RunId, JournalEntry)>,
    /// Position of the next page; absent at the end.
    pub next: Option<JournalPlace>,
}

/// Notification of a new entry in a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalSignal {
    /// The entry is a routine step, which leaves the status of its run unchanged.
    Routine,
    /// The entry may change the status of its run.
    Change,
}

/// Part of an entry that its notification needs.
#[derive(Deserialize)]
struct EntryOutline {
    fact: FactOutline,
}

#[derive(Deserialize)]
struct FactOutline {
    #[serde(rename = "type")]
    name: String,
}

/// Journals of all runs. Cheap to clone.
#[derive(Clone)]
pub struct RunJournals {
    connection: Arc<NatsConnection>,
}

impl RunJournals {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self { connection }
    }

    fn objects(&self) -> ContentStore {
        ContentStore::new(self.connection.clone())
    }

    /// Runs of a ticket that have a journal, oldest first.
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
        // Subjects are listed in no defined order.
        runs.sort_by_key(RunId::sequence);
        Ok(runs)
    }

    /// Appends after the entry at stream sequence `last` (0 for the run's first entry) and returns the new
    /// sequence.
    ///
    /// After a lost acknowledgement the last entry is read: if it has the nonce of `entry`, the append
    /// succeeded.
    ///
    /// # Errors
    /// [`Error::Conflict`] when another writer's entry is the last. After [`Error::Unavailable`] the same
    /// entry may be appended again.
    pub async fn append(&self, run: &RunId, last: u64, entry: &JournalEntry) -> Result<u64, Error> {
        self.append_all(run, last, std::slice::from_ref(entry)).await
    }

    /// Appends the entries of one step after the entry at stream sequence `last`, each directly after the one
    /// before, and returns the sequence of the last one.
    ///
    /// Every entry is a message like one of [`Self::append`]. After an error or a crash the first ones may be
    /// stored without the others.
    ///
    /// # Errors
    /// Those of [`Self::append`]. After [`Error::Unavailable`] the same entries may be appended again.
    pub async fn append_all(&self, run: &RunId, last: u64, entries: &[JournalEntry]) -> Result<u64, Error> {
        let subject = names::build_journal_subject(run);
        let mut chain = Vec::with_capacity(entries.len());
        for entry in entries {
            let mut headers = HeaderMap::new();
            let payload = body::encode_record(&subject, entry)?.into();
            let payload = body::pack_body(&self.objects(), &mut headers, payload).await?;
            let nonce = entry.nonce.clone();
            chain.push(ChainedMessage {
                nonce,
                headers,
                payload,
            });
        }
        let place = (JOURNAL, subject.as_str());
        let written = self.connection.compare_and_publish_chain(place, last, &chain);
        let mut written: BoxFuture<'_, Result<CompareOutcome, Error>> = written.boxed();
        for entry in entries.iter().rev() {
            written = failpoint::around_kind("queue.journal.append", entry.fact.name(), written).boxed();
        }
        match written.await? {
            CompareOutcome::Written(sequence) => Ok(sequence),
            CompareOutcome::Lost(_) => Err(Error::Conflict),
        }
    }

    /// Reads all entries with their stream sequences, oldest first; empty for an unknown run.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Newer`], or [`Error::Corrupt`] when an entry cannot be read.
    pub async fn read(&self, run: &RunId) -> Result<Vec<(u64, JournalEntry)>, Error> {
        let mut entries = Vec::new();
        let subject = names::build_journal_subject(run);
        let range = self.connection.expected_range(JOURNAL, &subject, 0);
        for stored in failpoint::around("queue.journal.read", range).await?.messages {
            let sequence = stored.sequence;
            entries.push((sequence, body::read_record(&self.objects(), stored).await?));
        }
        Ok(entries)
    }

    /// Streams all entries with their stream sequences, oldest first, and ends at an error.
    ///
    /// Entries are read as the caller consumes them, so only one page (1 MiB) of a long journal is in memory.
    pub fn entries(
        &self,
        run: &RunId,
    ) -> impl Stream<Item = Result<(u64, JournalEntry), Error>> + Send + use<> {
        let (connection, objects) = (Arc::clone(&self.connection), self.objects());
        let subject = names::build_journal_subject(run);
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
                Ok((sequence, body::read_record(&objects, stored).await?))
            }
        })
    }

    /// Reads those entries of a run for which `is_kept` is true, oldest first. The others are not held in
    /// memory.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub async fn read_kept(
        &self,
        run: &RunId,
        is_kept: impl Fn(&JournalEntry) -> bool + Send,
    ) -> Result<Vec<JournalEntry>, Error> {
        let mut kept = Vec::new();
        let mut entries = std::pin::pin!(self.entries(run));
        while let Some((_, entry)) = entries.try_next().await? {
            if is_kept(&entry) {
                kept.push(entry);
            }
        }
        Ok(kept)
    }

    /// Reads the next entries of all runs from a place on; empty at the end. Unreadable entries are omitted
    /// and logged.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn page(&self, place: JournalPlace) -> Result<JournalPage, Error> {
        let subject = names::build_journal_filter();
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
            match body::read_record_or_bytes::<JournalEntry>(&self.objects(), JOURNAL, stored).await? {
                Ok(entry) => entries.push((run, entry)),
                Err(unreadable) => tracing::warn!(%run, problem = unreadable.problem(), "entry left out"),
            }
        }
        Ok(JournalPage { entries, next })
    }

    /// Stream sequence of the last entry of all journals; 0 before the first entry.
    pub(crate) async fn last_sequence(&self) -> Result<u64, Error> {
        let info = self.connection.stream_info(JOURNAL).await?;
        Ok(info.state.last_sequence)
    }

    /// Deletes the journals of runs that ended before an instant, with their overviews. Returns the number of
    /// deleted journals.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn expire(&self, before: Timestamp) -> Result<u64, Error> {
        let mut expired = 0;
        for subject in self
            .connection
            .subjects(JOURNAL, &names::build_journal_filter())
            .await?
        {
            let Some(last) = self.connection.last(JOURNAL, &subject).await? else {
                continue;
            };
            let entry = body::read_record_or_bytes::<JournalEntry>(&self.objects(), JOURNAL, last).await?;
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
                    let record = KeyValueBucket::Runs.subject(&RecordKey::run(&run));
                    self.connection
                        .purge(&KeyValueBucket::Runs.stream(), &record)
                        .await?;
                }
                self.connection.purge(JOURNAL, &subject).await?;
                expired += 1;
            }
        }
        Ok(expired)
    }

    /// Follows a run from its last entry, if it has one. The stream ends only at an error.
    ///
    /// It creates no consumer: a server admits 1,000 of them for each stream, and keeps those of former followers for 30 s.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot start.
    pub async fn follow_newest(
        &self,
        run: &RunId,
    ) -> Result<BoxStream<'static, Result<JournalEntry, Error>>, Error> {
        let (connection, objects) = (Arc::clone(&self.connection), self.objects());
        let subject = names::build_journal_subject(run);
        let watch = LogWatch::open(Arc::clone(&connection), JOURNAL, subject.clone()).await?;
        let first = watch.last_sequence().max(1);
        let pages = stream::try_unfold((watch, first), move |(mut watch, next)| {
            let (connection, subject) = (Arc::clone(&connection), subject.clone());
            async move {
                if next > watch.last_sequence() {
                    watch.changed().await;
                }
                let page = connection.small_page(JOURNAL, &subject, next).await?;
                // An empty page: the journal was deleted meanwhile.
                let last = page.last().map_or(watch.last_sequence(), |last| last.sequence);
                let next = last + 1;
                Ok::<_, Error>(Some((page, (watch, next))))
            }
        });
        let stored = pages
            .map_ok(|page| stream::iter(page.into_iter().map(Ok::<_, Error>)))
            .try_flatten();
        let entries = stored.and_then(move |stored| {
            let objects = objects.clone();
            async move { body::read_record(&objects, stored).await }
        });
        Ok(entries.boxed())
    }

    /// Follows the new entries of all runs from now on.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot start.
    pub async fn follow_all(
        &self,
    ) -> Result<BoxStream<'static, Result<(RunId, JournalEntry), Error>>, Error> {
        let objects = self.objects();
        let decoded = self.receive_all().await?.and_then(move |message| {
            let objects = objects.clone();
            async move { decode_entry(&objects, message).await }
        });
        Ok(decoded.boxed())
    }

    /// Notifies of the new entries of all runs from now on, without decoding them.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it cannot start.
    pub async fn signal_all(&self) -> Result<BoxStream<'static, Result<JournalSignal, Error>>, Error> {
        let messages = self.receive_all().await?;
        let signals = messages.map_ok(|message| classify_entry(&message.payload));
        Ok(signals.boxed())
    }

    /// Receives the messages of new entries of all runs from now on.
    async fn receive_all(&self) -> Result<BoxStream<'static, Result<jetstream::Message, Error>>, Error> {
        let failed = |cause: ErrorCause| Error::unavailable("follow all journals", cause);
        let config = OrderedConfig {
            filter_subject: names::build_journal_filter(),
            deliver_policy: DeliverPolicy::New,
            ..OrderedConfig::default()
        };
        let consumer = self
            .connection
            .context
            .create_consumer_on_stream(config, JOURNAL)
            .await;
        let messages = consumer.map_err(|error| failed(error.into()))?.messages().await;
        let messages = messages.map_err(|error| failed(error.into()))?;
        let received = messages.map_err(|error| Error::unavailable("follow all journals", error));
        Ok(received.boxed())
    }
}

/// Classifies an entry by the name of its fact. An entry of another release or in the object store may be of any kind.
fn classify_entry(payload: &[u8]) -> JournalSignal {
    let is_routine = serde_json::from_slice::<EntryOutline>(payload)
        .is_ok_and(|entry| Fact::is_routine_name(&entry.fact.name));
    if is_routine {
        JournalSignal::Routine
    } else {
        JournalSignal::Change
    }
}

async fn decode_entry(
    objects: &ContentStore,
    message: jetstream::Message,
) -> Result<(RunId, JournalEntry), Error> {
    let subject = message.subject.as_str();
    let run = names::run_of(subject);
    let run = run.ok_or_else(|| Error::corrupt(subject, "it names no run"))?;
    let body = body::unpack_body(objects, message.headers.as_ref(), message.payload.clone()).await?;
    let entry = body::decode_record(objects, &body, || subject.to_owned())?;
    Ok((run, entry))
}
