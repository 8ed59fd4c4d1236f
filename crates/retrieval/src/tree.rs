//! Files of one commit.

use std::sync::{Arc, OnceLock};

use crate::{
    file::BlobId,
    graph::NameGraph,
    module::ModuleFolders,
    skip::{self, IndexSkip},
};

/// File of a tree.
#[derive(Clone, Debug)]
pub(crate) struct IndexedFile {
    pub(crate) path: Arc<str>,
    pub(crate) blob: BlobId,
    pub(crate) number: u32,
    pub(crate) skip: Option<IndexSkip>,
    pub(crate) is_test: bool,
}

/// Files of one commit, in the order of their paths.
pub struct IndexedTree {
    pub(crate) files: Vec<IndexedFile>,
    /// Position in `files` by number in the catalog, or [`NOWHERE`].
    pub(crate) places: Vec<u32>,
    /// Positions in `files`, ordered by the files' names.
    by_name: Vec<u32>,
    pub(crate) modules: ModuleFolders,
    pub(crate) graph: OnceLock<NameGraph>,
}

pub(crate) const NOWHERE: u32 = u32::MAX;

impl IndexedTree {
    pub(crate) fn new(mut files: Vec<IndexedFile>) -> Self {
        files.sort_by(|one, other| one.path.cmp(&other.path));
        let highest = files
            .iter()
            .map(|file| file.number)
            .max()
            .map_or(0, |number| number as usize + 1);
        let mut places = vec![NOWHERE; highest];
        for (place, file) in (0_u32..).zip(&files) {
            if let Some(slot) = places
                .get_mut(file.number as usize)
                // Chunks may exist for a file that the attributes of this tree exclude.
                .filter(|_| file.skip.is_none())
            {
                *slot = place;
            }
        }
        let name = |place: &u32| files.get(*place as usize).map_or("", |file| name_of(&file.path));
        let mut by_name: Vec<u32> = (0_u32..).zip(&files).map(|(place, _)| place).collect();
        by_name.sort_by(|one, other| name(one).cmp(name(other)));
        let modules = ModuleFolders::detected(files.iter().map(|file| &*file.path));
        Self {
            files,
            places,
            by_name,
            modules,
            graph: OnceLock::new(),
        }
    }

    /// Position of a file by its number in the catalog; `None` for a file of another tree or without chunks.
    pub(crate) fn place(&self, number: u64) -> Option<u32> {
        let place = self.places.get(usize::try_from(number).ok()?)?;
        Some(*place).filter(|place| *place != NOWHERE)
    }

    pub(crate) fn file(&self, place: u32) -> Option<&IndexedFile> {
        self.files.get(place as usize)
    }

    /// Paths and positions of the files with this name.
    pub(crate) fn of_name(&self, name: &str) -> Vec<(&str, u32)> {
        let path = |place: u32| self.file(place).map_or("", |file| &*file.path);
        let start = self.by_name.partition_point(|place| name_of(path(*place)) < name);
        let same = self.by_name.iter().skip(start).copied();
        same.map(|place| (path(place), place))
            .take_while(|(path, _)| name_of(path) == name)
            .collect()
    }

    /// Number of files, and how many of them are not indexed.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let skipped = self.files.iter().filter(|file| file.skip.is_some()).count();
        (self.files.len(), skipped)
    }

    /// Reason why a file is not indexed; `None` for an indexed or unknown file.
    #[must_use]
    pub fn skip(&self, path: &str) -> Option<IndexSkip> {
        let at = self.files.binary_search_by(|file| (*file.path).cmp(path)).ok()?;
        self.files.get(at)?.skip
    }

    /// Content of a file, by its path.
    #[must_use]
    pub fn blob(&self, path: &str) -> Option<BlobId> {
        let at = self.files.binary_search_by(|file| (*file.path).cmp(path)).ok()?;
        self.files.get(at).map(|file| file.blob)
    }
}

pub(crate) fn build_indexed_file(
    path: &Arc<str>,
    blob: BlobId,
    number: u32,
    skip: Option<IndexSkip>,
) -> IndexedFile {
    IndexedFile {
        path: Arc::clone(path),
        blob,
        number,
        skip,
        is_test: skip::is_test(path),
    }
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
