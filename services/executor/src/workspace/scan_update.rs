//! Update of the last scan: only files and folders that changed since then are examined.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    path::{Path, PathBuf},
    sync::Arc,
};

use domain::CommitId;
use git::BareRepository;
use git2::{ObjectType, Oid, Tree};

use super::{
    WorkspaceError,
    byproduct::{self, FolderMarkers, HasFile, OwnByproducts},
    conversion::ScanAttributes,
    disk::{WalkScope, WorkspaceDisk},
    file_scan::{FileFindings, FileScan, ReadFailure},
    objects::ObjectStore,
    omissions::{OmittedPaths, explain_unreadable},
    portable_names::{KnownNames, check_names, find_twin},
    root::FileKind,
    stat_cache::{StatCache, read_clock_ns},
    survey::{FolderRecord, FolderRecords, WorktreeChanges, has_rules, is_special, open_top},
    tracked_files::{
        TrackedFiles, TreeFile, TreeUpdate, find_folder_tree, find_tracked_file, list_tracked_files, os_name,
    },
    untracked_files::{MAX_NEW_FILES, UntrackedFiles, UntrackedSearch, retain_written},
};
use crate::lfs_contents::LfsContents;

/// Limit of by-products that an update keeps track of.
pub(super) const MAX_BYPRODUCTS: usize = 1000;
// More new files at once are compared faster by a whole scan.
const MAX_NEW_NAMES: usize = 64;
// Part of a tree entry's mode that distinguishes files, links and submodules.
const FILE_TYPE: i32 = 0o170_000;

/// Repository that is opened at its first use.
pub(super) struct LazyRepository {
    path: PathBuf,
    opened: OnceCell<BareRepository>,
}

impl LazyRepository {
    pub(super) fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            opened: OnceCell::new(),
        }
    }

    pub(super) fn get(&self) -> Result<&BareRepository, WorkspaceError> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let opened = BareRepository::open(&self.path)?;
        Ok(self.opened.get_or_init(|| opened))
    }
}

/// Repository that a scan reads.
#[derive(Clone, Copy)]
pub(super) enum ScanRepository<'a> {
    /// Repository that the caller has opened.
    Open(&'a git2::Repository),
    /// Repository that is opened only if something changed. Opening takes longer than the comparison of a small
    /// worktree.
    Lazy(&'a LazyRepository),
}

/// Parts of a workspace that a scan reads.
#[derive(Clone, Copy)]
pub(super) struct ScanInput<'a> {
    pub(super) disk: &'a WorkspaceDisk,
    pub(super) repository: ScanRepository<'a>,
    /// Last commit.
    pub(super) head: &'a CommitId,
    pub(super) objects: &'a ObjectStore,
    /// Contents that become their pointers.
    pub(super) lfs: &'a LfsContents,
}

impl<'a> ScanInput<'a> {
    /// Returns the repository, and opens it if necessary.
    pub(super) fn git(&self) -> Result<&'a git2::Repository, WorkspaceError> {
        match self.repository {
            ScanRepository::Open(git) => Ok(git),
            ScanRepository::Lazy(repository) => Ok(repository.get()?.objects()),
        }
    }

    /// Returns the tree of the last commit.
    pub(super) fn head_tree(&self) -> Result<Tree<'a>, WorkspaceError> {
        let head = Oid::from_str(self.head.as_str())?;
        Ok(self.git()?.find_commit(head)?.tree()?)
    }
}

/// Files that may have changed since the last scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanScope {
    /// All files: a command ran, or the time of the last change is unknown.
    Worktree,
    /// Paths that tools of the model wrote; all files if a command ran since the last scan of them.
    Written,
}

/// Memory of the last scan.
#[derive(Default)]
pub(super) struct ScanMemory {
    pub(super) cache: StatCache,
    /// Paths that a tool of the model wrote or a snapshot restored. They belong to the change even at a path
    /// of by-products.
    pub(super) written: BTreeSet<PathBuf>,
    /// Paths that a tool wrote or removed since the last scan.
    pub(super) touched: BTreeSet<PathBuf>,
    /// True if a command ran since the last scan of the worktree.
    pub(super) has_command: bool,
    /// Result of the last scan; `None` if only a whole scan is correct.
    pub(super) basis: Option<ScanBasis>,
}

/// Tree of a scan, and the paths that are not in it.
pub(super) struct ScannedTree {
    pub(super) tree: Oid,
    pub(super) omitted: OmittedPaths,
}

/// Result of a scan, from which an update continues. It is kept only when each omission depends on a single file
/// or is a by-product, and when all files fit the limits.
pub(super) struct ScanBasis {
    /// Last commit, and its tree.
    pub(super) head: CommitId,
    pub(super) head_tree: Oid,
    pub(super) tree: Oid,
    pub(super) records: FolderRecords,
    pub(super) own: OwnByproducts,
    /// By-products, with true for a folder.
    pub(super) byproducts: BTreeMap<PathBuf, bool>,
    /// Files that are omitted because of their state.
    pub(super) omitted_files: BTreeMap<PathBuf, String>,
    /// Bytes that each changed file adds to the workspace's own objects.
    pub(super) weights: BTreeMap<PathBuf, u64>,
    /// Upper limit of the number of new files.
    pub(super) new_files: usize,
    /// Files with attributes: paths, and entries in the last commit.
    pub(super) attribute_paths: Vec<PathBuf>,
    pub(super) tracked_attributes: TrackedFiles,
}

impl ScanMemory {
    /// Brings the last scan up to date. `None` if only a whole scan is correct.
    pub(super) fn update(
        &mut self,
        input: ScanInput<'_>,
        scope: ScanScope,
    ) -> Result<Option<ScannedTree>, WorkspaceError> {
        let touched = mem::take(&mut self.touched);
        // Taken, so that after an error the next scan is a whole one.
        let Some(mut basis) = self.basis.take() else {
            return Ok(None);
        };
        let started = read_clock_ns();
        let scope = if self.has_command {
            ScanScope::Worktree
        } else {
            scope
        };
        let changes = match scope {
            ScanScope::Worktree => {
                let top = open_top(input.disk.root());
                let surveyed = top.and_then(|top| basis.records.survey(&top, &self.cache));
                // The whole scan reports files that cannot be examined.
                surveyed.ok()
            }
            ScanScope::Written => basis.find_written(touched, &self.cache),
        };
        let Some(changes) = changes else {
            return Ok(None);
        };
        let scanned = basis.apply(input, self, changes)?;
        if scanned.is_some() {
            if scope == ScanScope::Worktree {
                // Each file was examined after this time. Other processes may have written it since.
                self.cache.seal_at(started);
                self.has_command = false;
            }
            self.basis = Some(basis);
        }
        Ok(scanned)
    }
}

/// Paths to examine, with new states of folders.
#[derive(Default)]
struct ExaminedPaths {
    files: BTreeSet<PathBuf>,
    records: HashMap<PathBuf, FolderRecord>,
}

impl ScanBasis {
    /// Returns the changes of written paths. `None` if one decides about other files.
    fn find_written(&self, touched: BTreeSet<PathBuf>, cache: &StatCache) -> Option<WorktreeChanges> {
        let mut changes = WorktreeChanges::default();
        for path in touched {
            if cache.has(&path) {
                changes.files.insert(path);
            } else {
                // Not the path itself: only a walk decides whether an ignore rule matches it.
                let known = path.ancestors().skip(1).find(|folder| self.records.has(folder));
                changes.folders.insert(known?.to_owned());
            }
        }
        Some(changes)
    }

    /// Applies changes of the worktree. `None` if only a whole scan is correct; then `memory` is unchanged.
    fn apply(
        &mut self,
        input: ScanInput<'_>,
        memory: &mut ScanMemory,
        changes: WorktreeChanges,
    ) -> Result<Option<ScannedTree>, WorkspaceError> {
        // Without a change the repository stays closed.
        let is_same = changes.is_empty() && self.head == *input.head;
        if !is_same && !self.apply_changes(input, memory, changes)? {
            return Ok(None);
        }
        let mut omitted = OmittedPaths::default();
        for byproduct in self.byproducts.keys() {
            omitted.add(byproduct, byproduct::WHY);
        }
        let ScanMemory { cache, written, .. } = memory;
        let is_tracked = |path: &Path| match input.head_tree() {
            Ok(head) => matches!(find_tracked_file(&head, path), Ok(Some(_))),
            // Nothing is known about the path, so no note names it.
            Err(_) => true,
        };
        let is_found = |path: &Path| cache.has(path) || is_tracked(path);
        retain_written(input.disk, written, &is_found, &mut omitted);
        for (path, why) in &self.omitted_files {
            omitted.add(path, why);
        }
        Ok(Some(ScannedTree {
            tree: self.tree,
            omitted,
        }))
    }

    /// Examines what changed. Returns false if only a whole scan is correct; then `memory` is unchanged.
    fn apply_changes(
        &mut self,
        input: ScanInput<'_>,
        memory: &mut ScanMemory,
        mut changes: WorktreeChanges,
    ) -> Result<bool, WorkspaceError> {
        let (git, head) = (input.git()?, input.head_tree()?);
        let markers = FolderMarkers::new(input.disk.root());
        let has = |folder: &Path, name: &str| markers.has(folder, name);
        if head.id() != self.head_tree {
            let Some(moved) = self.find_moved(git, &head, &has)? else {
                return Ok(false);
            };
            changes.files.extend(moved);
        }
        if !changes.is_empty() {
            let Some(paths) = self.find_paths(input, memory, (&head, &has), changes)? else {
                return Ok(false);
            };
            if !self.examine_paths(input, memory, &head, paths)? {
                return Ok(false);
            }
        }
        self.head_tree = head.id();
        self.head = input.head.clone();
        Ok(true)
    }

    /// Returns the files that differ between the last commit of the previous scan and the present one. `None` if
    /// they decide about other files.
    fn find_moved(
        &mut self,
        git: &git2::Repository,
        head: &Tree<'_>,
        has: HasFile<'_>,
    ) -> Result<Option<Vec<PathBuf>>, WorkspaceError> {
        let mut moved = Vec::new();
        for difference in git::list_tree_differences(git, Some(self.head_tree), Some(head.id()))? {
            let path = difference.path;
            let is_plain = match (difference.old, difference.new) {
                (Some((_, old)), Some((_, new))) => !has_rules(&path) && old & FILE_TYPE == new & FILE_TYPE,
                (None, Some(_)) => !has_rules(&path) && self.own.add_source(&path, has),
                (Some(_) | None, None) => false,
            };
            if !is_plain {
                return Ok(None);
            }
            moved.push(path);
        }
        Ok(Some(moved))
    }

    /// Returns the paths to examine. `None` if a change decides about other files.
    fn find_paths(
        &mut self,
        input: ScanInput<'_>,
        memory: &ScanMemory,
        (head, has): (&Tree<'_>, HasFile<'_>),
        changes: WorktreeChanges,
    ) -> Result<Option<ExaminedPaths>, WorkspaceError> {
        let contains = |folder: &PathBuf| self.byproducts.keys().any(|path| path.starts_with(folder));
        if changes.has_new_rules
            || changes.files.iter().any(|path| has_rules(path))
            || changes.missing.iter().any(contains)
        {
            return Ok(None);
        }
        let mut paths = ExaminedPaths {
            files: changes.files,
            records: HashMap::new(),
        };
        for folder in &changes.missing {
            self.records.remove(folder);
        }
        if changes.folders.is_empty() {
            return Ok(Some(paths));
        }
        let Ok(top) = open_top(input.disk.root()) else {
            return Ok(None);
        };
        for folder in &changes.folders {
            let record = FolderRecord::read(&top, folder).ok().flatten();
            let known = self.records.get(folder);
            let (Some(record), Some(known)) = (record, known) else {
                return Ok(None);
            };
            if !record.has_same_special(known) {
                return Ok(None);
            }
            paths.records.insert(folder.clone(), record);
        }
        let known = self.records.folders().cloned().collect();
        let is_tracked = |path: &Path| !matches!(find_tracked_file(head, path), Ok(None));
        let search = UntrackedSearch {
            disk: input.disk,
            own: &self.own,
            has,
            is_tracked: &is_tracked,
            written: &memory.written,
            scope: Some(Arc::new(WalkScope::new(changes.folders.clone(), known))),
        };
        let found = search.find(&mut OmittedPaths::default());
        if !self.replace_byproducts(input.disk, &changes.folders, &found) {
            return Ok(None);
        }
        let new = found.paths.into_iter().filter(|path| !memory.cache.has(path));
        let before = paths.files.len();
        paths.files.extend(new);
        self.new_files += paths.files.len() - before;
        let mut folders: BTreeSet<PathBuf> = found.folders.into_iter().collect();
        for folder in &changes.folders {
            self.find_tracked_in(input.git()?, memory, (head, folder), &mut paths.files)?;
        }
        for path in &paths.files {
            let above = path.ancestors().skip(1).map(Path::to_owned);
            folders.extend(above.take_while(|folder| !self.records.has(folder)));
        }
        for folder in folders {
            if self.records.has(&folder) {
                continue;
            }
            match FolderRecord::read(&top, &folder) {
                Ok(Some(record)) if record.is_plain() => drop(paths.records.insert(folder, record)),
                // A file of a folder that is missing on the disk.
                Ok(None) => {}
                Ok(Some(_)) | Err(_) => return Ok(None),
            }
        }
        Ok((self.new_files <= MAX_NEW_FILES).then_some(paths))
    }

    /// Adds files of the last commit that are in a changed folder and were missing.
    fn find_tracked_in(
        &self,
        git: &git2::Repository,
        memory: &ScanMemory,
        (head, folder): (&Tree<'_>, &Path),
        files: &mut BTreeSet<PathBuf>,
    ) -> Result<(), WorkspaceError> {
        let Some(tree) = find_folder_tree(git, head, folder)? else {
            return Ok(());
        };
        for entry in &tree {
            let path = folder.join(os_name(entry.name_bytes()));
            if entry.kind() != Some(ObjectType::Tree) {
                if !memory.cache.has(&path) {
                    files.insert(path);
                }
            } else if !self.records.has(&path) {
                let inner = list_tracked_files(git, entry.id())?;
                files.extend(inner.into_keys().map(|inner| path.join(inner)));
            }
        }
        Ok(())
    }

    /// Replaces the by-products in changed folders by those that a walk found. Returns false if the others cannot
    /// be known.
    fn replace_byproducts(
        &mut self,
        disk: &WorkspaceDisk,
        folders: &BTreeSet<PathBuf>,
        found: &UntrackedFiles,
    ) -> bool {
        let is_byproduct = |folder: &Path| self.byproducts.get(folder) == Some(&true);
        // Only a walk over all of a by-product's folders shows that it is empty.
        let is_emptied =
            |folder: &PathBuf| !found.occupied.contains(folder) && folder.ancestors().any(is_byproduct);
        let is_inside = |path: &PathBuf| path.ancestors().any(is_byproduct);
        if found.is_obstructed || folders.iter().any(is_emptied) || found.paths.iter().any(is_inside) {
            return false;
        }
        self.byproducts.retain(|path, is_folder| {
            let is_listed = path.parent().is_some_and(|folder| folders.contains(folder));
            let has_folder = || {
                let stat = disk.root().stat(path);
                stat.is_ok_and(|stat| stat.is_some_and(|stat| stat.kind == FileKind::Folder))
            };
            !is_listed || (*is_folder && has_folder())
        });
        let new = found.byproducts.iter();
        self.byproducts
            .extend(new.map(|(path, is_folder)| (path.clone(), *is_folder)));
        self.byproducts.len() <= MAX_BYPRODUCTS
    }

    /// Examines paths and records their states in `memory`. Returns false if only a whole scan is correct; then
    /// `memory` is unchanged.
    fn examine_paths(
        &mut self,
        input: ScanInput<'_>,
        memory: &mut ScanMemory,
        head: &Tree<'_>,
        paths: ExaminedPaths,
    ) -> Result<bool, WorkspaceError> {
        for path in &paths.files {
            self.weights.remove(path);
            self.omitted_files.remove(path);
        }
        let (disk, git) = (input.disk, input.git()?);
        let mut size = input.objects.change_size();
        size.add_known(self.weights.values().sum());
        let attributes = ScanAttributes::read(
            disk.root(),
            git,
            &self.tracked_attributes,
            &self.attribute_paths,
            input.lfs,
        );
        let mut scan = FileScan::new(disk.root(), git, attributes, (&memory.cache, size));
        let old = git.find_tree(self.tree)?;
        let (mut update, mut new) = (TreeUpdate::default(), Vec::new());
        for path in &paths.files {
            let tracked = find_tracked_file(head, path)?;
            if tracked.is_none() && !disk.has_any_names && check_names(path).is_err() {
                return Ok(false);
            }
            let found = match examine_file(&mut scan, path, tracked)? {
                FileState::Found(file) => Some(file),
                FileState::Missing => None,
                FileState::Unreadable => return Ok(false),
            };
            let is_new = find_tracked_file(&old, path)?.is_none();
            let decides = path.file_name().is_some_and(is_special);
            if decides && found.is_some() == is_new {
                return Ok(false);
            }
            if found.is_some() && is_new {
                new.push(path.as_path());
            }
            update.set(path, found);
        }
        let findings = scan.finish();
        if findings.is_obstructed || !findings.unstored.is_empty() {
            return Ok(false);
        }
        if !disk.has_any_names && (new.len() > MAX_NEW_NAMES || has_twins(git, &old, &new)?) {
            return Ok(false);
        }
        self.tree = update.write(git, Some(self.tree))?;
        self.record_findings(memory, paths, findings);
        Ok(true)
    }

    fn record_findings(&mut self, memory: &mut ScanMemory, paths: ExaminedPaths, findings: FileFindings) {
        for path in &paths.files {
            memory.cache.forget(path);
        }
        memory.cache.merge(findings.cache);
        self.omitted_files.extend(findings.omitted_files);
        self.weights.extend(findings.weights);
        for (folder, record) in paths.records {
            self.records.insert(folder, record);
        }
    }
}

/// State of an examined file.
enum FileState {
    Found(TreeFile),
    Missing,
    Unreadable,
}

fn examine_file(
    scan: &mut FileScan<'_>,
    path: &Path,
    tracked: Option<TreeFile>,
) -> Result<FileState, WorkspaceError> {
    match scan.examine(path, tracked) {
        Ok(Some(file)) => Ok(FileState::Found(file)),
        Ok(None) => Ok(FileState::Missing),
        Err(ReadFailure::File(error)) => Ok(match explain_unreadable(&error)? {
            Some(_) => FileState::Unreadable,
            None => FileState::Missing,
        }),
        Err(ReadFailure::Git(error)) => Err(error.into()),
    }
}

/// Returns true when a new path differs from another path only in a way that some file systems ignore.
fn has_twins(git: &git2::Repository, old: &Tree<'_>, new: &[&Path]) -> Result<bool, WorkspaceError> {
    let mut known = KnownNames::default();
    for path in new {
        if known.check(path).is_err() || has_twin(git, old, path)? {
            return Ok(true);
        }
        known.add(path);
    }
    Ok(false)
}

fn has_twin(git: &git2::Repository, old: &Tree<'_>, path: &Path) -> Result<bool, WorkspaceError> {
    let mut folder = Some(git.find_tree(old.id())?);
    for part in path.components() {
        let Some(tree) = folder else { break };
        let names: Option<Vec<String>> = tree
            .iter()
            .map(|entry| entry.name().ok().map(str::to_owned))
            .collect();
        // Names that are no text are compared by a whole scan.
        let Some(names) = names else {
            return Ok(true);
        };
        if find_twin(part.as_os_str(), names.iter().map(String::as_str)).is_some() {
            return Ok(true);
        }
        folder = find_folder_tree(git, &tree, Path::new(part.as_os_str()))?;
    }
    Ok(false)
}
