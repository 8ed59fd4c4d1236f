//! Survey of a worktree: finds the files and folders whose state differs from the last scan, without reading a
//! file or listing an unchanged folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, openat};

use super::{
    byproduct,
    conversion::ATTRIBUTES,
    root::{FileStat, WorkspaceRoot},
    stat_cache::StatCache,
    tracked_files::os_name,
};
use crate::{
    sandbox::{ConfinedDir, stat_entry, stat_of},
    shared_work::{MAX_THREADS, SharedList, share_work},
};

/// Name of a file with ignore rules.
const RULES: &str = ".gitignore";
/// Name of a repository inside of a worktree.
const REPOSITORY: &str = ".git";
// Limits of a parallel survey: the fewest folders for which another thread is worth its start, and the folders that a
// thread takes at a time.
const MIN_PARALLEL: usize = 100;
const PART_FOLDERS: usize = 16;

/// State of a folder at the last scan.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FolderRecord {
    stat: FileStat,
    /// Entries that decide about other files, with their types.
    special: Vec<(OsString, FileType)>,
    /// State of the folder's ignore rules.
    rules: Option<FileStat>,
}

/// State of all folders with files of the last scan.
#[derive(Default)]
pub(super) struct FolderRecords(BTreeMap<PathBuf, FolderRecord>);

/// Differences from the last scan.
#[derive(Default)]
pub(super) struct WorktreeChanges {
    /// Files that changed, that are missing, or whose state is too young to be reliable.
    pub(super) files: BTreeSet<PathBuf>,
    /// Folders whose entries may differ.
    pub(super) folders: BTreeSet<PathBuf>,
    /// Folders that are missing.
    pub(super) missing: BTreeSet<PathBuf>,
    /// True when ignore rules changed, which may concern every file below them.
    pub(super) has_new_rules: bool,
}

impl WorktreeChanges {
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.folders.is_empty() && self.missing.is_empty() && !self.has_new_rules
    }

    fn merge(&mut self, other: Self) {
        self.files.extend(other.files);
        self.folders.extend(other.folders);
        self.missing.extend(other.missing);
        self.has_new_rules |= other.has_new_rules;
    }
}

impl FolderRecord {
    /// Reads a folder; `None` when it does not exist or a part of its path is a symbolic link.
    pub(super) fn read(top: &ConfinedDir, path: &Path) -> io::Result<Option<Self>> {
        let Some(folder) = top.find_folder(path)? else {
            return Ok(None);
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&folder, ".", flags, Mode::empty())?;
        // Before the entries, so that a change after this point leaves another state.
        let stat = stat_of(&fstat(&folder)?);
        let mut special = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = os_name(entry.file_name().to_bytes());
            if is_special(name) {
                special.push((name.to_owned(), entry.file_type()));
            }
        }
        // The kernel lists entries in no certain order.
        special.sort_by(|one, other| one.0.cmp(&other.0));
        let has_rules = special.iter().any(|(name, _)| name == RULES);
        let rules = if has_rules {
            stat_entry(&folder, OsStr::new(RULES))?
        } else {
            None
        };
        Ok(Some(Self { stat, special, rules }))
    }

    /// Returns true when no entry decides about other files.
    pub(super) fn is_plain(&self) -> bool {
        self.special.is_empty()
    }

    /// Returns true when the same entries decide about other files.
    pub(super) fn has_same_special(&self, other: &Self) -> bool {
        self.special == other.special
    }

    fn has_repository(&self) -> bool {
        self.special.iter().any(|(name, _)| name == REPOSITORY)
    }
}

impl FolderRecords {
    /// Reads these folders. `None` when a folder contains another repository, whose files have other rules.
    pub(super) fn read<'p>(
        top: &ConfinedDir,
        folders: impl Iterator<Item = &'p PathBuf>,
    ) -> io::Result<Option<Self>> {
        let mut records = Self::default();
        for folder in folders {
            if records.0.contains_key(folder) {
                continue;
            }
            let Some(record) = FolderRecord::read(top, folder)? else {
                continue;
            };
            if record.has_repository() && !folder.as_os_str().is_empty() {
                return Ok(None);
            }
            records.0.insert(folder.clone(), record);
        }
        Ok(Some(records))
    }

    pub(super) fn get(&self, folder: &Path) -> Option<&FolderRecord> {
        self.0.get(folder)
    }

    pub(super) fn has(&self, folder: &Path) -> bool {
        self.0.contains_key(folder)
    }

    pub(super) fn insert(&mut self, folder: PathBuf, record: FolderRecord) {
        self.0.insert(folder, record);
    }

    pub(super) fn remove(&mut self, folder: &Path) {
        self.0.remove(folder);
    }

    /// Returns the folders with a record.
    pub(super) fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.keys()
    }

    /// Compares all folders and the files of the last scan with the disk.
    pub(super) fn survey(&self, top: &ConfinedDir, cache: &StatCache) -> io::Result<WorktreeChanges> {
        let records: Vec<(&PathBuf, &FolderRecord)> = self.0.iter().collect();
        if records.len() <= MIN_PARALLEL {
            return survey_folders(top, &records, cache);
        }
        let list = SharedList::new(&records, PART_FOLDERS);
        let surveyed = share_work(MAX_THREADS, || -> io::Result<WorktreeChanges> {
            let mut changes = WorktreeChanges::default();
            while let Some(part) = list.take_part() {
                changes.merge(survey_folders(top, part, cache)?);
            }
            Ok(changes)
        });
        let mut changes = WorktreeChanges::default();
        for found in surveyed {
            changes.merge(found?);
        }
        Ok(changes)
    }
}

fn survey_folders(
    top: &ConfinedDir,
    records: &[(&PathBuf, &FolderRecord)],
    cache: &StatCache,
) -> io::Result<WorktreeChanges> {
    let mut changes = WorktreeChanges::default();
    for (path, record) in records {
        let files = cache.files_in(path).into_iter().flatten();
        let Some(folder) = top.find_folder(path)? else {
            changes.missing.insert((*path).clone());
            changes.files.extend(files.map(|(name, _)| path.join(name)));
            continue;
        };
        let is_same = |found: &FileStat, known: &FileStat| found == known && cache.is_settled(found);
        if !is_same(&stat_of(&fstat(&folder)?), &record.stat) {
            changes.folders.insert((*path).clone());
        }
        if let Some(known) = &record.rules {
            let found = stat_entry(&folder, OsStr::new(RULES))?;
            changes.has_new_rules |= !found.is_some_and(|found| is_same(&found, known));
        }
        for (name, (known, _)) in files {
            let found = stat_entry(&folder, name)?;
            if !found.is_some_and(|found| is_same(&found, known)) {
                changes.files.insert(path.join(name));
            }
        }
    }
    Ok(changes)
}

/// Opens the worktree. Its folders can be examined by this process also when a runner holds them.
pub(super) fn open_top(root: &WorkspaceRoot) -> io::Result<ConfinedDir> {
    ConfinedDir::open(root.path())
}

/// Returns true for a file whose content decides about other files.
pub(super) fn has_rules(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name == RULES || name == ATTRIBUTES)
}

/// Returns true for a name that decides about other files.
pub(super) fn is_special(name: &OsStr) -> bool {
    name == RULES || name == ATTRIBUTES || name == REPOSITORY || byproduct::is_marker(name)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use git2::Oid;

    use super::*;
    use crate::workspace::stat_cache::read_clock_ns;

    /// Worktree with a record of its folders and files.
    struct SurveyedTree {
        folder: tempfile::TempDir,
        top: ConfinedDir,
        records: FolderRecords,
        cache: StatCache,
    }

    impl SurveyedTree {
        fn new() -> Self {
            let folder = tempfile::TempDir::new().unwrap();
            fs::create_dir_all(folder.path().join("a/b")).unwrap();
            for name in ["a/b/c", "a/d", ".gitignore", "e"] {
                fs::write(folder.path().join(name), name).unwrap();
            }
            let top = ConfinedDir::open(folder.path()).unwrap();
            let mut cache = StatCache::default();
            for name in ["a/b/c", "a/d", "e"].map(Path::new) {
                let stat = top.stat(name).unwrap().unwrap();
                cache.put(name, stat, Oid::from_bytes(&[1; 20]).unwrap());
            }
            let folders = ["", "a", "a/b"].map(PathBuf::from);
            let records = FolderRecords::read(&top, folders.iter()).unwrap().unwrap();
            // As if the scan were long after the last change.
            cache.seal_at(read_clock_ns() + 10_000_000_000);
            Self {
                folder,
                top,
                records,
                cache,
            }
        }

        fn survey(&self) -> WorktreeChanges {
            self.records.survey(&self.top, &self.cache).unwrap()
        }

        fn place(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }
    }

    fn join_names(paths: &BTreeSet<PathBuf>) -> String {
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        names.join(" ")
    }

    #[test]
    fn untouched_tree_has_no_changes() {
        assert!(SurveyedTree::new().survey().is_empty());
    }

    #[test]
    fn file_written_in_place_is_found() {
        let tree = SurveyedTree::new();
        fs::write(tree.place("a/d"), "A/D").unwrap();
        fs::set_permissions(tree.place("a/b/c"), fs::Permissions::from_mode(0o755)).unwrap();
        let changes = tree.survey();
        assert_eq!(join_names(&changes.files), "a/b/c a/d");
        assert!(changes.folders.is_empty() && !changes.has_new_rules);
    }

    #[test]
    fn new_and_removed_entries_name_their_folder() {
        let tree = SurveyedTree::new();
        fs::write(tree.place("a/new"), "").unwrap();
        fs::remove_file(tree.place("e")).unwrap();
        let changes = tree.survey();
        assert_eq!(join_names(&changes.files), "e");
        assert_eq!(join_names(&changes.folders), " a");
    }

    #[test]
    fn folder_behind_link_is_missing() {
        let tree = SurveyedTree::new();
        fs::rename(tree.place("a"), tree.place("z")).unwrap();
        symlink("z", tree.place("a")).unwrap();
        let changes = tree.survey();
        assert_eq!(join_names(&changes.missing), "a a/b");
        assert_eq!(join_names(&changes.files), "a/b/c a/d");
    }

    #[test]
    fn changed_ignore_rules_are_reported() {
        let tree = SurveyedTree::new();
        fs::write(tree.place(".gitignore"), "*.log").unwrap();
        assert!(tree.survey().has_new_rules);
    }

    #[test]
    fn young_state_is_never_trusted() {
        let mut tree = SurveyedTree::new();
        tree.cache.seal_at(0);
        let changes = tree.survey();
        assert_eq!(join_names(&changes.files), "a/b/c a/d e");
        assert_eq!(changes.folders.len(), 3);
        assert!(changes.has_new_rules);
    }

    #[test]
    fn every_part_reports_its_changes() {
        let tree = tempfile::TempDir::new().unwrap();
        let top = ConfinedDir::open(tree.path()).unwrap();
        let mut cache = StatCache::default();
        let folders: Vec<PathBuf> = (0..2 * MIN_PARALLEL + 1)
            .map(|number| PathBuf::from(format!("{number:03}")))
            .collect();
        for folder in &folders {
            fs::create_dir(tree.path().join(folder)).unwrap();
            for name in ["changed", "same"].map(|name| folder.join(name)) {
                fs::write(tree.path().join(&name), "text").unwrap();
                let stat = top.stat(&name).unwrap().unwrap();
                cache.put(&name, stat, Oid::from_bytes(&[1; 20]).unwrap());
            }
        }
        let records = FolderRecords::read(&top, folders.iter()).unwrap().unwrap();
        cache.seal_at(read_clock_ns() + 10_000_000_000);
        assert!(records.survey(&top, &cache).unwrap().is_empty());
        let changed: BTreeSet<PathBuf> = folders.iter().map(|folder| folder.join("changed")).collect();
        for path in &changed {
            fs::write(tree.path().join(path), "other text").unwrap();
        }
        let changes = records.survey(&top, &cache).unwrap();
        assert_eq!(changes.files, changed);
        assert!(changes.folders.is_empty() && changes.missing.is_empty());
    }

    #[test]
    fn nested_repository_prevents_records() {
        let tree = SurveyedTree::new();
        fs::create_dir(tree.place("a/.git")).unwrap();
        let folders = [PathBuf::from("a")];
        assert!(FolderRecords::read(&tree.top, folders.iter()).unwrap().is_none());
    }
}
