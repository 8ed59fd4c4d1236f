//! A copy of a bucket in memory that follows it, for whoever looks at all of its records again and again.

use std::collections::BTreeMap;

use domain::Stored;

use crate::{
    error::Error,
    names::Key,
    table::{Extent, Table},
    unreadable::Revision,
};

/// A copy of a bucket. Reading it costs nothing; catching up costs as much as what changed since the last time.
pub struct Mirror<V> {
    table: Table<V>,
    /// With the keys whose value was removed or cannot be read, so that the keys here can be counted against the server's.
    values: BTreeMap<Key, Option<V>>,
    revision: Revision,
}

impl<V: Stored + Send + Sync> Mirror<V> {
    /// An empty copy.
    pub fn new(table: Table<V>) -> Self {
        Self {
            table,
            values: BTreeMap::new(),
            revision: Revision::default(),
        }
    }

    /// Takes in what was written and removed since the last time. A record that cannot be read is left out and logged.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; the copy then is as it was.
    pub async fn catch_up(&mut self) -> Result<(), Error> {
        let extent = self.table.extent().await?;
        if self.is_at(&extent) {
            return Ok(());
        }
        if extent.last < self.revision {
            // The bucket was made anew, from a backup for instance.
            self.revision = Revision::default();
            self.values.clear();
        }
        self.take_changes(&extent).await?;
        // A purge leaves nothing behind that could be followed: only the number of keys tells of it.
        let extent = self.table.extent().await?;
        if extent.last == self.revision && !self.is_at(&extent) {
            self.values.clear();
            self.revision = Revision::default();
            self.take_changes(&extent).await?;
        }
        Ok(())
    }

    /// Every record, by key.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.values.values().flatten()
    }

    /// The record of a key.
    pub fn get(&self, key: impl Into<Key>) -> Option<&V> {
        self.values.get(&key.into())?.as_ref()
    }

    /// What is read after the extent was looked at holds all that the extent has and that was not purged, the last change
    /// included: nothing of it comes later.
    async fn take_changes(&mut self, extent: &Extent) -> Result<(), Error> {
        let (changes, revision) = self.table.keyed_changes_after(self.revision).await?;
        self.values.extend(changes);
        self.revision = revision.max(extent.last);
        Ok(())
    }

    fn is_at(&self, extent: &Extent) -> bool {
        extent.last == self.revision && extent.keys == self.values.len() as u64
    }
}
