//! Reader of the replies of models in the journals of all runs.

use std::{collections::HashMap, pin::pin};

use domain::{JournalEntry, RunId, RunSource, SpendWindow};
use futures::TryStreamExt as _;

use crate::{
    error::Error,
    journal::{JournalPlace, RunJournals},
};

/// Entry with the reply of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ChargedEntry {
    /// The run that called the model.
    pub run: RunId,
    /// Repository and job of that run.
    pub source: RunSource,
    /// The entry, whose fact has a charge.
    pub entry: JournalEntry,
}

/// Reader of the replies that all journals recorded in a period, page by page.
pub struct SpendReader {
    journals: RunJournals,
    window: SpendWindow,
    place: Option<JournalPlace>,
    sources: HashMap<RunId, RunSource>,
}

impl SpendReader {
    /// Creates a reader at the start of the period, or at the [`Self::next_sequence`] of an earlier reader.
    pub fn new(journals: RunJournals, window: SpendWindow, from: Option<u64>) -> Self {
        let first = JournalPlace::Since(window.first_stored());
        Self {
            journals,
            window,
            place: Some(from.map_or(first, JournalPlace::At)),
            sources: HashMap::new(),
        }
    }

    /// Reads the replies of the next page of those runs for which `is_wanted` is true; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Unavailable`], or [`Error::Newer`] when a newer release wrote the first entry of a run.
    pub async fn read_page(
        &mut self,
        is_wanted: impl Fn(&RunId) -> bool,
    ) -> Result<Option<Vec<ChargedEntry>>, Error> {
        let Some(place) = self.place else {
            return Ok(None);
        };
        let page = self.journals.page(place).await?;
        // Entries are stored in the order of time, up to the tolerance of the window.
        let last = page.entries.last();
        let is_over = last.is_some_and(|(_, entry)| self.window.is_over(entry.at));
        self.place = page.next.filter(|_| !is_over);
        let mut charged = Vec::new();
        for (run, entry) in page.entries {
            if !is_wanted(&run) {
                continue;
            }
            if let Some(source) = RunSource::of(&entry.fact) {
                self.sources.insert(run, source);
            } else if entry.fact.charge().is_some() && self.window.contains(entry.at) {
                let source = self.find_source(&run).await?;
                charged.push(ChargedEntry { run, source, entry });
            }
        }
        Ok(Some(charged))
    }

    /// Stream sequence of the next page; absent at the end.
    pub const fn next_sequence(&self) -> Option<u64> {
        match self.place {
            Some(JournalPlace::At(sequence)) => Some(sequence),
            Some(JournalPlace::Since(_)) | None => None,
        }
    }

    /// Repository and job of a run. For a run that started before the first page, it reads the first entry of
    /// the journal, once.
    async fn find_source(&mut self, run: &RunId) -> Result<RunSource, Error> {
        if let Some(known) = self.sources.get(run) {
            return Ok(known.clone());
        }
        // Only the first entry: a later one may be unreadable, and the replies before it count all the same.
        let source = match pin!(self.journals.entries(run)).try_next().await {
            Ok(first) => first.and_then(|(_, entry)| RunSource::of(&entry.fact)),
            // A corrupt first entry leaves repository and job unknown. The reply still counts.
            Err(Error::Corrupt { .. }) => None,
            Err(error) => return Err(error),
        };
        // An unknown source is cached too, so that it is read once.
        let source = source.unwrap_or_default();
        self.sources.insert(run.clone(), source.clone());
        Ok(source)
    }
}
