//! Catalog of the files in the index: pairs of content and path.

use std::{
    collections::HashMap,
    fs,
    io::{self, BufRead, BufReader, BufWriter, Write},
    path::Path,
    sync::Arc,
};

use crate::{
    file::{BlobId, TreeFile},
    skip::IndexSkip,
};

/// Content at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CatalogEntry {
    pub(crate) blob: BlobId,
    pub(crate) path: Arc<str>,
    /// Reason why the file has no chunks.
    pub(crate) skip: Option<IndexSkip>,
}

/// Entries by number. A number is never reused.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileCatalog {
    entries: Vec<Option<CatalogEntry>>,
    // One content may have several paths. The chunks contain the path too, so each path has an entry.
    by_blob: HashMap<BlobId, Vec<u32>>,
}

/// Line of the stored form: number, blob id, path, reason to skip.
type CatalogLine = (u32, String, String, Option<IndexSkip>);

impl FileCatalog {
    pub(crate) fn find(&self, file: &TreeFile) -> Option<u32> {
        let numbers = self.by_blob.get(&file.blob)?;
        numbers
            .iter()
            .copied()
            .find(|number| self.get(*number).is_some_and(|entry| *entry.path == *file.path))
    }

    pub(crate) fn get(&self, number: u32) -> Option<&CatalogEntry> {
        self.entries.get(number as usize)?.as_ref()
    }

    pub(crate) fn add(&mut self, entry: CatalogEntry) -> u32 {
        let number = self.next();
        self.put(number, entry);
        number
    }

    /// Number of the next entry.
    pub(crate) fn next(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn remove(&mut self, number: u32) {
        let Some(entry) = self.entries.get_mut(number as usize).and_then(Option::take) else {
            return;
        };
        if let Some(numbers) = self.by_blob.get_mut(&entry.blob) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.by_blob.remove(&entry.blob);
            }
        }
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.next()).filter(|number| self.get(*number).is_some())
    }

    fn put(&mut self, number: u32, entry: CatalogEntry) {
        let at = number as usize;
        if self.entries.len() <= at {
            self.entries.resize(at + 1, None);
        }
        self.by_blob.entry(entry.blob).or_default().push(number);
        self.entries[at] = Some(entry);
    }

    /// Stores the catalog at this path, completely or not at all.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        // A process that stops halfway leaves the previous file intact.
        let unfinished = path.with_extension("unfinished");
        let mut file = BufWriter::new(fs::File::create(&unfinished)?);
        // The number of entries shows a reader whether lines are missing.
        writeln!(file, "{} {}", self.next(), self.numbers().count())?;
        for number in self.numbers() {
            if let Some(entry) = self.get(number) {
                let line: CatalogLine = (number, entry.blob.to_string(), entry.path.to_string(), entry.skip);
                serde_json::to_writer(&mut file, &line)?;
                file.write_all(b"\n")?;
            }
        }
        file.into_inner()
            .map_err(io::IntoInnerError::into_error)?
            // On disk before the rename, so that a power failure cannot leave an empty file under the final
            // name.
            .sync_all()?;
        fs::rename(unfinished, path)
    }

    /// Reads a stored catalog.
    ///
    /// # Errors
    /// When the file is missing or incomplete.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let mut lines = BufReader::new(fs::File::open(path)?).lines();
        let head = lines.next().ok_or_else(broken)??;
        let (next, count) = head.split_once(' ').ok_or_else(broken)?;
        let next: u32 = next.parse().map_err(|_| broken())?;
        let mut catalog = Self::default();
        let mut read = 0_usize;
        for line in lines {
            let (number, blob, path, skip): CatalogLine = serde_json::from_str(&line?)?;
            let blob = BlobId::from_hex(&blob)
                .filter(|_| number < next)
                .ok_or_else(broken)?;
            let path = path.into();
            catalog.put(number, CatalogEntry { blob, path, skip });
            read += 1;
        }
        // Removed numbers at the end stay occupied, so that no later entry gets them.
        catalog.entries.resize(next as usize, None);
        (count == read.to_string()).then_some(catalog).ok_or_else(broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalog_round_trips_unless_truncated() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("catalog");
        let mut catalog = FileCatalog::default();
        let entry = |byte, path: &str, skip| CatalogEntry {
            blob: BlobId([byte; 20]),
            path: path.into(),
            skip,
        };
        let gone = catalog.add(entry(1, "a", None));
        catalog.add(entry(1, "b\n\"", None));
        let last = catalog.add(entry(2, "c", Some(IndexSkip::Binary)));
        catalog.remove(gone);
        catalog.remove(last);
        catalog.write(&path).unwrap();
        let read = FileCatalog::read(&path).unwrap();
        assert_eq!(read.entries, catalog.entries);
        assert_eq!(read.by_blob, catalog.by_blob);
        assert_eq!(read.next(), 3, "a number is not given twice");
        let whole = fs::read_to_string(&path).unwrap();
        for cut in 0..whole.len() - 1 {
            fs::write(&path, &whole[..cut]).unwrap();
            FileCatalog::read(&path).unwrap_err();
        }
    }
}
