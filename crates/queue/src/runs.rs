//! The runs as people see them: one record for each run, drawn from its journal by ingest.

use std::{collections::BTreeMap, sync::Arc};

use domain::{Entry, Overview, Place, RunId, cause::chain};

use crate::{
    connection::Connection,
    error::Error,
    journal::{Journal, JournalPlace},
    names::{Bucket, Key},
    table::Table,
    unreadable::Found,
};

/// Tries to write a record that another process writes at the same moment.
const TRIES: u32 = 3;

/// The records of runs. They follow from the journals: lost or unreadable ones are made again. Cheap to clone.
#[derive(Clone)]
pub struct Runs {
    table: Table<Overview>,
    places: Table<Place>,
    journal: Journal,
}

impl Runs {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self {
            table: Table::new(connection.clone(), Bucket::Runs),
            places: Table::new(connection.clone(), Bucket::Control),
            journal: Journal::new(connection),
        }
    }

    /// The record of a run; `None`: there is none yet.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Newer`], or [`Error::Corrupt`] when the record cannot be read.
    pub async fn get(&self, run: &RunId) -> Result<Option<Overview>, Error> {
        Ok(self.table.get(Key::run(run)).await?.map(|(overview, _)| overview))
    }

    /// All of them, for a [`crate::Mirror`].
    pub fn table(&self) -> Table<Overview> {
        self.table.clone()
    }

    /// Where taking in has to go on: where it was left, or at the first entry when nothing is kept of runs or the journals
    /// were made anew.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn place(&self) -> Result<u64, Error> {
        if self.table.extent().await?.keys == 0 {
            return Ok(1);
        }
        let kept = self.places.get(Place::KEY).await?;
        let next = kept.map_or(1, |(place, _)| place.next);
        let last = self.journal.last_sequence().await?;
        Ok(if next > last + 1 { 1 } else { next })
    }

    /// Remembers where to go on. It may be behind: what is taken in twice counts once.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn keep_place(&self, next: u64) -> Result<(), Error> {
        let last = self.places.get(Place::KEY).await?.map(|(_, revision)| revision);
        match self.places.put(Place::KEY, &Place { next }, last).await {
            Ok(_) | Err(Error::Conflict) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes the next entries of all journals in, those from a stream sequence on, and gives where to go on; `None` at the
    /// end. Repeating it changes nothing, and so does another process that does the same.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Newer`] when a record is a newer release's.
    pub async fn take_in(&self, from: u64) -> Result<Option<u64>, Error> {
        let page = self.journal.page(JournalPlace::At(from)).await?;
        let mut by_run: BTreeMap<RunId, Vec<Entry>> = BTreeMap::new();
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

    async fn fold(&self, run: &RunId, entries: &[Entry]) -> Result<(), Error> {
        for _ in 0..TRIES {
            match self.fold_once(run, entries).await {
                Err(Error::Conflict) => {}
                Err(error @ Error::Corrupt { .. }) => {
                    tracing::error!(%run, error = %chain(&error), "run left out of listings");
                    return Ok(());
                }
                folded => return folded,
            }
        }
        Err(Error::Conflict)
    }

    async fn fold_once(&self, run: &RunId, entries: &[Entry]) -> Result<(), Error> {
        let (known, revision) = match self.table.find(Key::run(run)).await? {
            Some(Found::Value(known, revision)) => (Some(known), Some(revision)),
            Some(Found::Unreadable(unreadable)) => (None, Some(unreadable.unless_newer()?.revision())),
            None => (None, None),
        };
        let folded = self.folded(run, known.as_ref(), entries).await?;
        match folded.filter(|folded| known.as_ref() != Some(folded)) {
            Some(folded) => self.table.put(Key::run(run), &folded, revision).await.map(drop),
            None => Ok(()),
        }
    }

    /// What a run is after these entries. When some before them are missing, it is folded from its journal.
    async fn folded(
        &self,
        run: &RunId,
        known: Option<&Overview>,
        entries: &[Entry],
    ) -> Result<Option<Overview>, Error> {
        let first = entries.first().map_or(0, |entry| entry.position);
        if let Some(known) = known.filter(|known| first <= known.entries) {
            let mut folded = known.clone();
            entries.iter().for_each(|entry| folded.apply(entry));
            return Ok(Some(folded));
        }
        if first == 0 {
            return Ok(Overview::of(run, entries));
        }
        let entries = self.journal.read(run).await?;
        Ok(Overview::of(run, entries.iter().map(|(_, entry)| entry)))
    }
}
