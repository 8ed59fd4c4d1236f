//! Overviews of runs for the API and the console: one record per run, which ingest folds from its journal.

use std::{collections::BTreeMap, sync::Arc};

use domain::{JournalEntry, ProjectionPosition, RunId, RunOverview, cause::format_error_chain};
use parking_lot::Mutex;

use crate::{
    connection::NatsConnection,
    error::Error,
    journal::{JournalPlace, RunJournals},
    names::{KeyValueBucket, RecordKey},
    table::TypedTable,
    unreadable_record::{FoundValue, TableRevision},
};

// Attempts to write a record that another process writes at the same moment.
const TRIES: u32 = 3;
// Overviews in memory, for the next entries of their runs. At the limit all of them are dropped.
const MOST_WRITTEN: usize = 1024;

/// Overviews of runs with their revisions.
type WrittenOverviews = BTreeMap<RunId, (RunOverview, TableRevision)>;

/// Overviews of runs. They are derived from the journals, so lost or unreadable ones are rebuilt. Cheap to
/// clone.
#[derive(Clone)]
pub struct RunOverviews {
    table: TypedTable<RunOverview>,
    places: TypedTable<ProjectionPosition>,
    journal: RunJournals,
    /// Overviews as this process wrote them last. The compare-and-set of the next write fails if another process has
    /// written or removed one since; it is read then.
    written: Arc<Mutex<WrittenOverviews>>,
}

impl RunOverviews {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self {
            table: TypedTable::new(connection.clone(), KeyValueBucket::Runs),
            places: TypedTable::new(connection.clone(), KeyValueBucket::Control),
            journal: RunJournals::new(connection),
            written: Arc::default(),
        }
    }

    /// Overview of a run; `None` before the first one is written.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Newer`], or [`Error::Corrupt`] when the record cannot be read.
    pub async fn get(&self, run: &RunId) -> Result<Option<RunOverview>, Error> {
        Ok(self
            .table
            .get(RecordKey::run(run))
            .await?
            .map(|(overview, _)| overview))
    }

    /// Table of all overviews, for a [`crate::TableMirror`].
    pub fn table(&self) -> TypedTable<RunOverview> {
        self.table.clone()
    }

    /// Stream sequence of the journals at which to continue folding.
    ///
    /// It is 1, the first entry, when the bucket is empty or the journals were created again.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn place(&self) -> Result<u64, Error> {
        // The bucket may have been emptied since. Entries that change nothing are not written, so no compare-and-set
        // would show it.
        self.written.lock().clear();
        if self.table.extent().await?.keys == 0 {
            return Ok(1);
        }
        let kept = self.places.get(ProjectionPosition::KEY).await?;
        let next = kept.map_or(1, |(place, _)| place.next);
        let last = self.journal.last_sequence().await?;
        // The stored place is beyond the end of the journals only if their stream was deleted and created
        // again.
        Ok(if next > last + 1 { 1 } else { next })
    }

    /// Stores the sequence at which to continue. It may lag behind: an entry that is folded twice counts
    /// once.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn keep_place(&self, next: u64) -> Result<(), Error> {
        let last = self
            .places
            .get(ProjectionPosition::KEY)
            .await?
            .map(|(_, revision)| revision);
        match self
            .places
            .put(ProjectionPosition::KEY, &ProjectionPosition { next }, last)
            .await
        {
            // In a conflict another process has stored its place. Either place is right, because entries
            // may be folded twice.
            Ok(_) | Err(Error::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Folds the next page of all journals from a stream sequence on into the overviews. Returns the sequence
    /// to continue at, or `None` at the end.
    ///
    /// Repeated or concurrent calls have the same result.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Newer`] when a newer release wrote a record.
    pub async fn take_in(&self, from: u64) -> Result<Option<u64>, Error> {
        let page = self.journal.page(JournalPlace::At(from)).await?;
        let mut by_run: BTreeMap<RunId, Vec<JournalEntry>> = BTreeMap::new();
        for (run, entry) in page.entries {
            by_run.entry(run).or_default().push(entry);
        }
        for (run, entries) in &by_run {
            self.fold(run, entries).await?;
        }
        Ok(page.next.map(|next| match next {
            JournalPlace::At(sequence) => sequence,
            JournalPlace::Since(_) => from,
        }))
    }

    async fn fold(&self, run: &RunId, entries: &[JournalEntry]) -> Result<(), Error> {
        for _ in 0..TRIES {
            match self.fold_once(run, entries).await {
                Err(Error::Conflict) => {}
                Err(error @ Error::Corrupt { .. }) => {
                    // One unreadable journal must not stop the overviews of all other runs.
                    tracing::error!(%run, error = %format_error_chain(&error), "run left out of listings");
                    return Ok(());
                }
                folded => return folded,
            }
        }
        Err(Error::Conflict)
    }

    async fn fold_once(&self, run: &RunId, entries: &[JournalEntry]) -> Result<(), Error> {
        let written = self.written.lock().remove(run);
        let (known, revision) = match written {
            Some((known, revision)) => (Some(known), Some(revision)),
            None => self.find(run).await?,
        };
        let Some(folded) = self.folded(run, known.as_ref(), entries).await? else {
            return Ok(());
        };
        let revision = match revision.filter(|_| known.as_ref() == Some(&folded)) {
            Some(revision) => revision,
            None => self.table.put(RecordKey::run(run), &folded, revision).await?,
        };
        let mut kept = self.written.lock();
        if kept.len() >= MOST_WRITTEN {
            kept.clear();
        }
        kept.insert(run.clone(), (folded, revision));
        Ok(())
    }

    /// Overview of a run with its revision. An unreadable one counts as missing, unless a newer release wrote it.
    async fn find(&self, run: &RunId) -> Result<(Option<RunOverview>, Option<TableRevision>), Error> {
        Ok(match self.table.find(RecordKey::run(run)).await? {
            Some(FoundValue::Value(known, revision)) => (Some(known), Some(revision)),
            Some(FoundValue::Unreadable(unreadable)) => (None, Some(unreadable.unless_newer()?.revision())),
            None => (None, None),
        })
    }

    /// Overview of a run after these entries. Folds the whole journal if entries before them are missing.
    async fn folded(
        &self,
        run: &RunId,
        known: Option<&RunOverview>,
        entries: &[JournalEntry],
    ) -> Result<Option<RunOverview>, Error> {
        let first = entries.first().map_or(0, |entry| entry.position);
        if let Some(known) = known.filter(|known| first <= known.entries) {
            let mut folded = known.clone();
            entries.iter().for_each(|entry| folded.apply(entry));
            return Ok(Some(folded));
        }
        if first == 0 {
            return Ok(RunOverview::of(run, entries));
        }
        let entries = self.journal.read(run).await?;
        Ok(RunOverview::of(run, entries.iter().map(|(_, entry)| entry)))
    }
}
