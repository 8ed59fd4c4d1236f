//! Reads the worktree as a git tree: tracked files, and untracked files that no ignore rule matches.

use std::{
    collections::BTreeMap,
    mem,
    path::{Path, PathBuf},
};

use git2::Oid;
use parking_lot::Mutex;

use super::{
    WorkspaceError,
    byproduct::{FolderMarkers, OwnByproducts},
    change_size::UnstoredFiles,
    conversion::{ATTRIBUTES, AttributeIds, ScanAttributes, hash_attributes},
    file_scan::{FileFindings, FileScan, MAX_FILE_BYTES, ReadFailure},
    omissions::{OmittedPaths, explain_unreadable},
    portable_names::{KnownNames, check_names},
    root::WorkspaceRoot,
    scan_update::{MAX_BYPRODUCTS, ScanBasis, ScanInput, ScanMemory, ScanScope, ScannedTree},
    stat_cache::{StatCache, read_clock_ns},
    survey::{FolderRecords, open_top},
    tracked_files::{TrackedFiles, TreeUpdate, list_tracked_files},
    untracked_files::{UntrackedFiles, UntrackedSearch, retain_written},
};

/// Scans of a worktree. Each uses what the one before found.
#[derive(Default)]
pub(crate) struct WorktreeScanner(Mutex<ScanState>);

#[derive(Default)]
struct ScanState {
    memory: ScanMemory,
    /// Attribute files of the worktree at the last whole scan.
    attributes: Option<AttributeIds>,
    /// Files that the last scan omitted.
    omitted: OmittedPaths,
    /// Omitted files that the last note for the model was about.
    reported: OmittedPaths,
    /// Files that the last scan did not store, because the change is too large.
    unstored: UnstoredFiles,
}

impl ScanState {
    /// Renders a note about the omitted files, and records that the model receives it.
    fn report_omissions(&mut self) -> String {
        self.reported = self.omitted.clone();
        self.omitted.render_note()
    }

    /// Examines every file. Unchanged files are not read again.
    fn scan_all(&mut self, input: ScanInput<'_>) -> Result<ScannedTree, WorkspaceError> {
        let ScanInput { disk, lfs, .. } = input;
        let git = input.git()?;
        self.memory.basis = None;
        self.memory.touched.clear();
        let started = read_clock_ns();
        let head_tree = input.head_tree()?.id();
        let tracked = list_tracked_files(git, head_tree)?;
        let markers = FolderMarkers::new(disk.root());
        let has = |folder: &Path, name: &str| markers.has(folder, name);
        let own = OwnByproducts::among(tracked.keys(), &has);
        let mut omitted = OmittedPaths::default();
        let search = UntrackedSearch {
            disk,
            own: &own,
            has: &has,
            is_tracked: &|path| tracked.contains_key(path),
            written: &self.memory.written,
            scope: None,
        };
        let mut untracked = search.find(&mut omitted);
        let new_paths = mem::take(&mut untracked.paths);
        let is_found = |path: &Path| {
            let found = new_paths.binary_search_by(|new| new.as_path().cmp(path));
            found.is_ok() || tracked.contains_key(path)
        };
        retain_written(disk, &mut self.memory.written, &is_found, &mut omitted);
        let new_files = new_paths.len();
        let mut paths = new_paths;
        paths.extend(tracked.keys().cloned());
        paths.sort();
        paths.dedup();
        let attribute_paths = list_attribute_files(paths.iter());
        let attributes = ScanAttributes::read(disk.root(), git, &tracked, &attribute_paths, lfs);
        self.forget_conversions(attributes.ids());
        let before = (&self.memory.cache, input.objects.change_size());
        let mut scan = FileScan::new(disk.root(), git, attributes, before);
        let mut files = TrackedFiles::new();
        for path in paths {
            let known = tracked.get(&path).copied();
            if known.is_none()
                && !disk.has_any_names
                && let Err(problem) = check_names(&path)
            {
                scan.omit_path(&path, &format!("it {problem}"));
                continue;
            }
            let found = match scan.examine(&path, known) {
                Ok(found) => found,
                Err(ReadFailure::File(error)) => match explain_unreadable(&error)? {
                    Some(why) => {
                        scan.omit_path(&path, &why);
                        known
                    }
                    None => None,
                },
                Err(ReadFailure::Git(error)) => return Err(error.into()),
            };
            files.extend(found.map(|found| (path, found)));
        }
        if !disk.has_any_names {
            remove_twins(&mut files, &tracked, &mut scan);
        }
        let mut findings = scan.finish();
        omitted.append(mem::take(&mut findings.omitted));
        let tree = write_difference(git, head_tree, &tracked, &files)?;
        findings.cache.seal_at(started);
        self.memory.cache = mem::take(&mut findings.cache);
        self.memory.has_command = false;
        let basis = ScanBasis {
            head: input.head.clone(),
            head_tree,
            tree,
            records: FolderRecords::default(),
            own,
            byproducts: mem::take(&mut untracked.byproducts),
            omitted_files: mem::take(&mut findings.omitted_files),
            weights: mem::take(&mut findings.weights),
            new_files,
            attribute_paths,
            tracked_attributes: keep_attribute_files(tracked),
        };
        self.memory.basis = build_basis(disk.root(), basis, &untracked, &findings);
        self.unstored = findings.unstored;
        Ok(ScannedTree { tree, omitted })
    }

    /// Builds the basis of updates from the files of a checkout.
    fn begin(&mut self, input: ScanInput<'_>) -> Result<(), WorkspaceError> {
        let (disk, git) = (input.disk, input.git()?);
        let tree = input.head_tree()?.id();
        let tracked = list_tracked_files(git, tree)?;
        let attribute_paths = list_attribute_files(tracked.keys());
        self.attributes = Some(hash_attributes(disk.root(), &attribute_paths));
        let cache = &self.memory.cache;
        // A file that the checkout did not write, or that no scan stores, leads to a whole scan.
        let is_submodule = |mode: i32| mode == 0o160_000;
        let mut all = tracked.iter();
        let is_complete = all.all(|(path, (_, mode))| is_submodule(*mode) || cache.has(path));
        if !is_complete || cache.has_larger(MAX_FILE_BYTES) {
            return Ok(());
        }
        let markers = FolderMarkers::new(disk.root());
        let has = |folder: &Path, name: &str| markers.has(folder, name);
        let own = OwnByproducts::among(tracked.keys(), &has);
        let basis = ScanBasis {
            head: input.head.clone(),
            head_tree: tree,
            tree,
            records: FolderRecords::default(),
            own,
            byproducts: BTreeMap::new(),
            omitted_files: BTreeMap::new(),
            weights: BTreeMap::new(),
            new_files: 0,
            attribute_paths,
            tracked_attributes: keep_attribute_files(tracked),
        };
        self.memory.basis = build_basis(
            disk.root(),
            basis,
            &UntrackedFiles::default(),
            &FileFindings::default(),
        );
        Ok(())
    }

    /// Forgets the contents of all files if an attribute file changed, because it may change the contents of the
    /// tree for unchanged files.
    fn forget_conversions(&mut self, ids: &AttributeIds) {
        if self.attributes.as_ref().is_some_and(|before| before != ids) {
            self.memory.cache = StatCache::default();
        }
        self.attributes = Some(ids.clone());
    }
}

impl WorktreeScanner {
    /// Builds the tree of the current files. An unreadable file is omitted and recorded; if it is tracked,
    /// its committed content stays in the tree.
    pub(super) fn scan(&self, input: ScanInput<'_>, scope: ScanScope) -> Result<Oid, WorkspaceError> {
        let mut state = self.0.lock();
        let scanned = match state.memory.update(input, scope)? {
            Some(scanned) => {
                state.unstored = UnstoredFiles::default();
                scanned
            }
            None => state.scan_all(input)?,
        };
        state.omitted = scanned.omitted;
        Ok(scanned.tree)
    }

    /// Records the files that a checkout of the last commit wrote. The first scan continues from them.
    pub(super) fn begin(&self, input: ScanInput<'_>, cache: StatCache) -> Result<(), WorkspaceError> {
        let mut state = self.0.lock();
        state.memory.cache = cache;
        state.begin(input)
    }

    /// Takes what is known about the files. The next scan reads all of them.
    pub(super) fn take_cache(&self) -> StatCache {
        let memory = &mut self.0.lock().memory;
        memory.basis = None;
        mem::take(&mut memory.cache)
    }

    /// Records that a tool writes or removes a file. It belongs to the change, even at a path of by-products.
    pub(crate) fn note_written(&self, path: &Path) {
        let memory = &mut self.0.lock().memory;
        memory.written.insert(path.to_owned());
        memory.touched.insert(path.to_owned());
    }

    /// Records that a command runs, which may change any file.
    pub(crate) fn note_command(&self) {
        self.0.lock().memory.has_command = true;
    }

    /// Returns the files that the last scan did not store, because the change is too large.
    pub(super) fn unstored(&self) -> UnstoredFiles {
        self.0.lock().unstored.clone()
    }

    /// Returns the first files that the last scan omitted, each with the reason.
    pub(super) fn omitted(&self) -> Vec<String> {
        self.0.lock().omitted.named().to_vec()
    }

    /// Returns the first files that tools wrote and ignore rules kept out of the last scan.
    pub(super) fn ignored(&self) -> Vec<String> {
        self.0.lock().omitted.ignored().to_vec()
    }

    /// Returns a note for the model about files that the last scan omitted; empty if none were.
    pub(crate) fn report_omissions(&self) -> String {
        self.0.lock().report_omissions()
    }

    /// Returns the note about omitted files if the model has not received it.
    pub(crate) fn report_new_omissions(&self) -> String {
        let mut state = self.0.lock();
        if state.reported == state.omitted {
            return String::new();
        }
        state.report_omissions()
    }
}

/// Completes the basis of later updates; `None` if they would not be correct.
fn build_basis(
    root: &WorkspaceRoot,
    mut basis: ScanBasis,
    untracked: &UntrackedFiles,
    findings: &FileFindings,
) -> Option<ScanBasis> {
    let is_simple = !untracked.is_obstructed && !findings.is_obstructed && findings.unstored.is_empty();
    if !is_simple || basis.byproducts.len() > MAX_BYPRODUCTS {
        return None;
    }
    let top = open_top(root).ok()?;
    // A repository without files has no folder of files, but new files may appear at the top.
    let top_path = PathBuf::new();
    let folders = [&top_path]
        .into_iter()
        .chain(basis.own.folders())
        .chain(&untracked.folders);
    // A folder that cannot be read has no record, and the next scan is a whole one.
    basis.records = FolderRecords::read(&top, folders).ok()??;
    Some(basis)
}

fn list_attribute_files<'p>(paths: impl Iterator<Item = &'p PathBuf>) -> Vec<PathBuf> {
    paths.filter(|path| path.ends_with(ATTRIBUTES)).cloned().collect()
}

fn keep_attribute_files(mut files: TrackedFiles) -> TrackedFiles {
    files.retain(|path, _| path.ends_with(ATTRIBUTES));
    files
}

/// Writes the tree of `files`, which differs in few files from the tree with the tracked ones.
fn write_difference(
    git: &git2::Repository,
    head_tree: Oid,
    tracked: &TrackedFiles,
    files: &TrackedFiles,
) -> Result<Oid, WorkspaceError> {
    let mut update = TreeUpdate::default();
    for path in tracked.keys().filter(|path| !files.contains_key(*path)) {
        update.set(path, None);
    }
    for (path, file) in files {
        if tracked.get(path) != Some(file) {
            update.set(path, Some(*file));
        }
    }
    update.write(git, Some(head_tree))
}

/// Removes new files whose path only Linux distinguishes from another one.
fn remove_twins(files: &mut TrackedFiles, tracked: &TrackedFiles, scan: &mut FileScan<'_>) {
    let (old, new): (Vec<PathBuf>, Vec<PathBuf>) =
        files.keys().cloned().partition(|path| tracked.contains_key(path));
    if new.is_empty() {
        return;
    }
    let mut known = KnownNames::default();
    old.iter().for_each(|path| known.add(path));
    for path in new {
        match known.check(&path) {
            Ok(()) => known.add(&path),
            Err(problem) => {
                scan.omit_path(&path, &format!("it {problem}"));
                files.remove(&path);
            }
        }
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "scan_update_tests.rs"]
mod update_tests;
