//! Contents of files by their state at the last read, so that unchanged files are not read again.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use git2::Oid;

use super::root::FileStat;

/// Age from which a timestamp is reliable. A file that changed shortly before it was read may change again
/// within the resolution of its timestamps.
const RACY_NS: i128 = 20_000_000;
/// Age from which a timestamp is reliable that has no fraction of a second: some file systems store none.
const COARSE_RACY_NS: i128 = 2_000_000_000;
const SECOND_NS: i128 = 1_000_000_000;

/// Result of reading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownFile {
    /// Object id, and the bytes that the object adds to the workspace's own objects.
    Stored(Oid, u64),
    /// The file is too large for any snapshot.
    TooLarge,
    /// The file is not part of a tree. Each complete scan decides that again.
    Omitted,
}

/// Files of one folder by name, each with its state at the last read.
pub(super) type FolderFiles = BTreeMap<OsString, (FileStat, KnownFile)>;

/// Contents of files by their state at the last read.
///
/// A process without privileges cannot set the change time (`ctime`) of a file. A file with the same size, times,
/// inode and mode as at the last read has therefore the same content, unless it changed within the resolution of
/// the clock before the read.
#[derive(Default)]
pub(super) struct StatCache {
    folders: HashMap<PathBuf, FolderFiles>,
    /// Time before the last survey of all files. Only files that changed clearly earlier are trusted.
    sealed_ns: i128,
}

impl StatCache {
    pub(super) fn put(&mut self, path: &Path, stat: FileStat, id: Oid) {
        self.note(path, stat, KnownFile::Stored(id, 0));
    }

    pub(super) fn note(&mut self, path: &Path, stat: FileStat, file: KnownFile) {
        let (folder, name) = split_path(path);
        let found = (stat, file);
        match self.folders.get_mut(folder) {
            Some(files) => drop(files.insert(name.to_owned(), found)),
            None => {
                let files = FolderFiles::from([(name.to_owned(), found)]);
                self.folders.insert(folder.to_owned(), files);
            }
        }
    }

    /// Adds the files of another cache, which replace files of this one.
    pub(super) fn merge(&mut self, other: Self) {
        for (folder, files) in other.folders {
            self.folders.entry(folder).or_default().extend(files);
        }
    }

    pub(super) fn forget(&mut self, path: &Path) {
        let (folder, name) = split_path(path);
        if let Some(files) = self.folders.get_mut(folder) {
            files.remove(name);
            if files.is_empty() {
                self.folders.remove(folder);
            }
        }
    }

    /// Marks all files as read by now.
    pub(super) fn seal(&mut self) {
        self.seal_at(read_clock_ns());
    }

    /// Marks all files as read at a time, in nanoseconds since 1970.
    pub(super) fn seal_at(&mut self, time_ns: i128) {
        self.sealed_ns = time_ns;
    }

    /// Returns true when a later change of a file or folder in this state would have changed the state.
    pub(super) fn is_settled(&self, stat: &FileStat) -> bool {
        let age = match stat.ctime_ns % SECOND_NS {
            0 => COARSE_RACY_NS,
            _ => RACY_NS,
        };
        stat.ctime_ns + age < self.sealed_ns
    }

    /// Returns true when the last scan read this path.
    pub(super) fn has(&self, path: &Path) -> bool {
        let (folder, name) = split_path(path);
        self.folders
            .get(folder)
            .is_some_and(|files| files.contains_key(name))
    }

    /// Returns true when a file is larger than a limit, in bytes.
    pub(super) fn has_larger(&self, limit: u64) -> bool {
        let mut files = self.folders.values().flat_map(BTreeMap::values);
        files.any(|(stat, _)| stat.size > limit)
    }

    /// Returns the files of a folder that the last scan read.
    pub(super) fn files_in(&self, folder: &Path) -> Option<&FolderFiles> {
        self.folders.get(folder)
    }

    /// Returns the content of a file that is unchanged since the last read; `None` for any other file.
    pub(super) fn get(&self, path: &Path, stat: &FileStat) -> Option<KnownFile> {
        let (folder, name) = split_path(path);
        let (known, file) = self.folders.get(folder)?.get(name)?;
        (known == stat && self.is_settled(stat) && *file != KnownFile::Omitted).then_some(*file)
    }
}

/// Current time in nanoseconds since 1970.
pub(super) fn read_clock_ns() -> i128 {
    i128::from(bootstrap::read_wall_clock().unix_ms()) * 1_000_000
}

fn split_path(path: &Path) -> (&Path, &OsStr) {
    (
        path.parent().unwrap_or(Path::new("")),
        path.file_name().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root::FileKind;

    const SEALED: i128 = 100 * SECOND_NS + 1;

    fn build_stat(ctime_ns: i128) -> FileStat {
        FileStat {
            kind: FileKind::File { executable: false },
            size: 1,
            inode: 2,
            mtime_ns: 3,
            ctime_ns,
        }
    }

    fn cache_file(stat: FileStat, file: KnownFile) -> StatCache {
        let mut cache = StatCache::default();
        cache.note(Path::new("a/b"), stat, file);
        cache.seal_at(SEALED);
        cache
    }

    fn stored() -> KnownFile {
        KnownFile::Stored(Oid::from_bytes(&[7; 20]).unwrap(), 5)
    }

    #[test]
    fn only_equal_state_is_known() {
        let stat = build_stat(SECOND_NS + 5);
        let cache = cache_file(stat, stored());
        assert_eq!(cache.get(Path::new("a/b"), &stat), Some(stored()));
        assert_eq!(cache.get(Path::new("a/c"), &stat), None);
        assert_eq!(cache.get(Path::new("b"), &stat), None);
        let changes: [fn(&mut FileStat); 5] = [
            |stat| stat.size += 1,
            |stat| stat.inode += 1,
            |stat| stat.mtime_ns += 1,
            |stat| stat.ctime_ns += 1,
            |stat| stat.kind = FileKind::File { executable: true },
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut other = stat;
            change(&mut other);
            assert_eq!(cache.get(Path::new("a/b"), &other), None, "change {number}");
        }
    }

    #[test]
    fn racy_state_is_never_known() {
        for (ctime_ns, is_known) in [
            (SEALED - RACY_NS - 1, true),
            (SEALED - RACY_NS, false),
            (SEALED, false),
            // After a jump of the clock, times may lie in the future.
            (SEALED + SECOND_NS, false),
            // Without a fraction of a second, the resolution is a second or two.
            (97 * SECOND_NS, true),
            (99 * SECOND_NS, false),
        ] {
            let stat = build_stat(ctime_ns);
            let known = cache_file(stat, stored()).get(Path::new("a/b"), &stat);
            assert_eq!(known.is_some(), is_known, "{ctime_ns}");
        }
    }

    #[test]
    fn omitted_file_is_decided_again() {
        let stat = build_stat(SECOND_NS + 5);
        let cache = cache_file(stat, KnownFile::Omitted);
        assert!(cache.has(Path::new("a/b")));
        assert_eq!(cache.get(Path::new("a/b"), &stat), None);
    }

    #[test]
    fn forgotten_file_leaves_no_folder() {
        let mut cache = cache_file(build_stat(5), stored());
        cache.put(Path::new("c"), build_stat(5), Oid::from_bytes(&[8; 20]).unwrap());
        cache.forget(Path::new("a/b"));
        assert!(cache.files_in(Path::new("a")).is_none());
        assert_eq!(cache.files_in(Path::new("")).map(BTreeMap::len), Some(1));
        let other = cache_file(build_stat(6), stored());
        cache.merge(other);
        assert!(cache.has(Path::new("a/b")));
    }
}
