//! Copy of a bucket in memory, for callers that read all of its records repeatedly.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use domain::StoredRecord;

use crate::{
    error::Error,
    names::RecordKey,
    table::{BucketExtent, TypedTable},
    unreadable_record::TableRevision,
};

/// Copy of a bucket. Reading it needs no request. Catching up costs as much as the changes since the last
/// time.
pub struct TableMirror<V> {
    table: TypedTable<V>,
    /// Values by key. Keys whose value was removed or is unreadable stay, so that their number can be
    /// compared with the server's.
    values: BTreeMap<RecordKey, Option<Arc<V>>>,
    /// Subjects that are not keys. The server counts them as keys.
    foreign: BTreeSet<String>,
    revision: TableRevision,
    version: u64,
}

impl<V: StoredRecord + Send + Sync> TableMirror<V> {
    /// Creates an empty copy.
    pub fn new(table: TypedTable<V>) -> Self {
        Self {
            table,
            values: BTreeMap::new(),
            foreign: BTreeSet::new(),
            revision: TableRevision::default(),
            version: 0,
        }
    }

    /// Applies all changes since the last call. Unreadable records are omitted and logged.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; a repeated call continues.
    pub async fn catch_up(&mut self) -> Result<(), Error> {
        let extent = self.table.extent().await?;
        if self.is_at(&extent) {
            return Ok(());
        }
        // The bucket was created again, from a backup for instance, if its last revision is older.
        let is_same = extent.last >= self.revision;
        let after = if is_same {
            self.revision
        } else {
            TableRevision::default()
        };
        self.take_changes(after, &extent).await?;
        // A purge removes messages without a trace in the stream. Only the number of keys reveals it.
        let extent = self.table.extent().await?;
        if extent.last == self.revision && !self.is_at(&extent) {
            self.take_changes(TableRevision::default(), &extent).await?;
        }
        Ok(())
    }

    /// Readable records, ordered by key.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.values.values().filter_map(Option::as_deref)
    }

    /// Readable record of a key.
    pub fn get(&self, key: impl Into<RecordKey>) -> Option<&V> {
        self.values.get(&key.into())?.as_deref()
    }

    /// Readable records whose keys begin with all parts of a shorter key, ordered by key.
    pub fn values_below(&self, parent: impl Into<RecordKey>) -> impl Iterator<Item = &V> {
        let first = parent.into().first_below();
        let keys = self.values.range(first.clone()..);
        let below = keys.take_while(move |(key, _)| key.tokens().starts_with(first.tokens()));
        below.filter_map(|(_, value)| value.as_deref())
    }

    /// Readable records with their keys, ordered by key. A caller may keep them while this copy changes.
    pub fn shared_values(&self) -> impl Iterator<Item = (&RecordKey, &Arc<V>)> {
        self.values
            .iter()
            .filter_map(|(key, value)| Some((key, value.as_ref()?)))
    }

    /// Number that grows with each change of this copy. Two reads at the same version return the same records.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Applies the changes after a revision; those after the first revision replace the copy. `extent` is read
    /// before, so the result includes at least its last change.
    async fn take_changes(&mut self, after: TableRevision, extent: &BucketExtent) -> Result<(), Error> {
        let changes = self.table.keyed_changes_after(after).await?;
        // An interrupted read leaves the copy as it was.
        if after == TableRevision::default() {
            self.values.clear();
            self.foreign.clear();
        }
        let values = changes.values.into_iter();
        self.values
            .extend(values.map(|(key, value)| (key, value.map(Arc::new))));
        self.foreign.extend(changes.foreign);
        self.revision = changes.revision.max(extent.last);
        // A removal without a trace changes no revision, so the revision cannot be the version.
        self.version += 1;
        Ok(())
    }

    fn is_at(&self, extent: &BucketExtent) -> bool {
        let keys = self.values.len() + self.foreign.len();
        extent.last == self.revision && extent.keys == keys as u64
    }
}
