//! Reads the worktree as a git tree: tracked files, and untracked files that no ignore rule matches.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fs::FileType,
    io, mem,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use domain::CommitId;
use git2::{ObjectType, Oid};
use parking_lot::Mutex;

use super::{
    WorkspaceError,
    byproduct::{self, FolderMarkers, OwnByproducts},
    change_size::{ChangeSize, FileFit, UnstoredFiles},
    conversion::{ScanAttributes, StoredContent},
    disk::{MAX_DEPTH, WorkspaceDisk},
    folder_stats::FolderStats,
    omissions::{OmittedPaths, explain_unreadable, explain_walk_error},
    portable_names::{KnownNames, check_names},
    root::{FileKind, WorkspaceRoot},
    stat_cache::{KnownFile, StatCache},
};
use crate::lfs_contents::LfsContents;

/// Limit of a file in a tree, in bytes. A tracked file that grows beyond it keeps its committed content.
pub(super) const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Limit of new files in a tree. Generated folders exceed it; hand-written changes do not.
const MAX_NEW_FILES: usize = if cfg!(test) { 1000 } else { 200_000 };

pub(super) fn os_name(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

/// Reason why a file is not in the tree.
enum ReadFailure {
    File(io::Error),
    Git(git2::Error),
}

impl From<io::Error> for ReadFailure {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<git2::Error> for ReadFailure {
    fn from(error: git2::Error) -> Self {
        Self::Git(error)
    }
}

pub(super) type TrackedFiles = BTreeMap<PathBuf, (Oid, i32)>;

/// State of one scan over all files.
struct WorktreeScan<'a> {
    root: &'a WorkspaceRoot,
    stats: FolderStats<'a>,
    git: &'a git2::Repository,
    attributes: ScanAttributes,
    old: &'a StatCache,
    new: StatCache,
    omitted: OmittedPaths,
    size: ChangeSize,
}

impl WorktreeScan<'_> {
    /// Stores the content of a file, if it fits the limits. `None` means that only the size of the whole
    /// change prevents it.
    fn store(&self, content: &[u8]) -> Result<Option<KnownFile>, git2::Error> {
        let fit = self.size.fit(content);
        match fit {
            FileFit::Fits => {}
            FileFit::Exceeds => return Ok(None),
            FileFit::TooLarge => {
                // A large file of the base that was only moved adds no object.
                let id = Oid::hash_object(ObjectType::Blob, content)?;
                let is_there = self.git.odb()?.exists(id) && self.size.weight(id) == 0;
                return Ok(Some(match is_there {
                    true => KnownFile::Stored(id, 0),
                    false => KnownFile::TooLarge,
                }));
            }
        }
        let id = self.git.blob(content)?;
        Ok(Some(KnownFile::Stored(id, self.size.weight(id))))
    }

    /// Reads one path. `tracked` is its entry in the last commit, which an unreadable file keeps.
    fn entry(&mut self, path: &Path, tracked: Option<(Oid, i32)>) -> Result<Option<(Oid, i32)>, ReadFailure> {
        let Some(stat) = self.stats.stat(path)? else {
            return Ok(None);
        };
        let mode = match stat.kind {
            FileKind::File { executable: true } => 0o100_755,
            FileKind::File { executable: false } => 0o100_644,
            FileKind::Link => 0o120_000,
            // A submodule keeps its committed id.
            FileKind::Folder => return Ok(tracked.filter(|(_, mode)| *mode == 0o160_000)),
            FileKind::Other => {
                self.omitted.add(path, "neither a file nor a link");
                return Ok(None);
            }
        };
        if stat.size > MAX_FILE_BYTES {
            let why = format!("larger than {} MiB", MAX_FILE_BYTES >> 20);
            self.omitted.add(path, &why);
            return Ok(tracked);
        }
        let known = match self.old.get(path, &stat) {
            Some(known) => known,
            None if stat.kind == FileKind::Link => {
                KnownFile::Stored(self.git.blob(&self.root.read_link(path)?)?, 0)
            }
            None => {
                let content = self.root.read(path, MAX_FILE_BYTES)?;
                // A new executable binary is a build result that a compiler wrote next to the sources.
                let is_made = tracked.is_none() && mode == 0o100_755 && byproduct::is_program(&content);
                if is_made {
                    self.omitted.add(path, byproduct::WHY);
                    return Ok(None);
                }
                match self.attributes.convert(self.git, path, &content, tracked) {
                    Ok(StoredContent::Unchanged(id)) => KnownFile::Stored(id, 0),
                    Ok(StoredContent::Bytes(bytes)) => {
                        let Some(known) = self.store(&bytes)? else {
                            self.size.refuse(path, stat.size);
                            return Ok(tracked);
                        };
                        known
                    }
                    Err(refusal) => {
                        self.omitted.add(path, &refusal.to_string());
                        return Ok(tracked);
                    }
                }
            }
        };
        self.new.note(path, stat, known);
        let KnownFile::Stored(id, weight) = known else {
            self.size.refuse(path, stat.size);
            return Ok(tracked);
        };
        if tracked.is_none_or(|(old, _)| old != id) {
            self.size.add(path, stat.size, weight);
        }
        Ok(Some((id, mode)))
    }
}

/// Scans of a worktree. Each uses what the one before found.
#[derive(Default)]
pub(crate) struct WorktreeScanner(Mutex<ScanState>);

#[derive(Default)]
struct ScanState {
    cache: StatCache,
    /// Files that the last scan omitted.
    omitted: OmittedPaths,
    /// Omitted files that the last note for the model was about.
    reported: OmittedPaths,
    /// Files that the last scan did not store, because the change is too large.
    unstored: UnstoredFiles,
    /// Paths that a tool of the model wrote or a snapshot restored. They belong to the change even at a path
    /// of by-products.
    written: BTreeSet<PathBuf>,
}

impl ScanState {
    /// Renders a note about the omitted files, and records that the model receives it.
    fn report_omissions(&mut self) -> String {
        self.reported = self.omitted.clone();
        self.omitted.render_note()
    }
}

impl WorktreeScanner {
    /// Builds the tree of the current files. An unreadable file is omitted and recorded; if it is tracked,
    /// its committed content stays in the tree. `head` is the last commit, and `size` an empty change. Contents of `lfs`
    /// become their pointers.
    pub(super) fn scan(
        &self,
        disk: &WorkspaceDisk,
        git: &git2::Repository,
        head: &CommitId,
        (size, lfs): (ChangeSize, &LfsContents),
    ) -> Result<Oid, WorkspaceError> {
        let head = Oid::from_str(head.as_str())?;
        let tracked = list_tracked_files(git, git.find_commit(head)?.tree_id())?;
        let mut omitted = OmittedPaths::default();
        let mut state = self.0.lock();
        let mut paths = find_untracked(disk, &tracked, &mut state.written, &mut omitted);
        paths.extend(tracked.keys().cloned());
        paths.sort();
        paths.dedup();
        let mut scan = WorktreeScan {
            root: disk.root(),
            stats: FolderStats::new(disk.root()),
            git,
            attributes: ScanAttributes::read(disk.root(), git, &tracked, &paths, lfs),
            old: &state.cache,
            new: StatCache::default(),
            omitted,
            size,
        };
        let mut files = TrackedFiles::new();
        for path in paths {
            let known = tracked.get(&path).copied();
            if known.is_none()
                && !disk.has_any_names
                && let Err(problem) = check_names(&path)
            {
                scan.omitted.add(&path, &format!("it {problem}"));
                continue;
            }
            let found = match scan.entry(&path, known) {
                Ok(found) => found,
                Err(ReadFailure::File(error)) => match explain_unreadable(&error)? {
                    Some(why) => {
                        scan.omitted.add(&path, &why);
                        known
                    }
                    None => None,
                },
                Err(ReadFailure::Git(error)) => return Err(error.into()),
            };
            files.extend(found.map(|found| (path, found)));
        }
        let WorktreeScan {
            new: mut cache,
            mut omitted,
            size,
            ..
        } = scan;
        if !disk.has_any_names {
            remove_twins(&mut files, &tracked, &mut omitted);
        }
        cache.seal();
        state.cache = cache;
        state.omitted = omitted;
        state.unstored = size.into_unstored();
        drop(state);
        write_tree_of(git, &files)
    }

    /// Records the files that a checkout wrote.
    pub(super) fn set_cache(&self, cache: StatCache) {
        self.0.lock().cache = cache;
    }

    /// Takes what is known about the files. The next scan reads all of them.
    pub(super) fn take_cache(&self) -> StatCache {
        mem::take(&mut self.0.lock().cache)
    }

    /// Records that a file belongs to the change, even at a path of by-products.
    pub(crate) fn note_written(&self, path: &Path) {
        self.0.lock().written.insert(path.to_owned());
    }

    /// Returns the files that the last scan did not store, because the change is too large.
    pub(super) fn unstored(&self) -> UnstoredFiles {
        self.0.lock().unstored.clone()
    }

    /// Returns the first files that the last scan omitted, each with the reason.
    pub(super) fn omitted(&self) -> Vec<String> {
        self.0.lock().omitted.named().to_vec()
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

/// Returns the paths of new files that no ignore rule matches. Ignore files above the worktree and of the
/// system do not count. Removes missing files from `written`.
fn find_untracked(
    disk: &WorkspaceDisk,
    tracked: &TrackedFiles,
    written: &mut BTreeSet<PathBuf>,
    omitted: &mut OmittedPaths,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let markers = FolderMarkers::new(disk.root());
    let has = |folder: &Path, name: &str| markers.has(folder, name);
    let own = OwnByproducts::among(tracked.keys(), &has);
    let mut left_behind = BTreeSet::new();
    let skipped = Arc::<Mutex<Vec<PathBuf>>>::default();
    for entry in disk.walk(&skipped).build() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let left_out = explain_walk_error(&error, disk.root().path());
                left_out
                    .into_iter()
                    .for_each(|(path, why)| omitted.add(&path, &why));
                continue;
            }
        };
        if entry.depth() >= MAX_DEPTH
            && let Some(path) = disk.inside(&entry, FileType::is_dir)
        {
            omitted.add(&path, "folders are nested too deep");
        }
        let path = disk.inside(&entry, |kind| !kind.is_dir());
        // Files in a submodule's folder belong to another repository.
        let is_new = |path: &PathBuf| !tracked.contains_key(path) && disk.submodule_of(path).is_none();
        let Some(path) = path.filter(is_new) else { continue };
        if let Some(left) = own.find(&path, &has).filter(|_| !written.contains(&path)) {
            if left_behind.insert(left.to_owned()) {
                omitted.add(left, byproduct::WHY);
            }
            continue;
        }
        if found.len() == MAX_NEW_FILES {
            let why = format!(
                "there are more than {MAX_NEW_FILES} new files; name generated folders in .gitignore"
            );
            omitted.add(&path, &why);
            break;
        }
        found.push(path);
    }
    let known: BTreeSet<&PathBuf> = found.iter().collect();
    written.retain(|path| {
        if known.contains(path) || tracked.contains_key(path) {
            return true;
        }
        match disk.root().stat(path) {
            Ok(Some(stat)) if stat.kind != FileKind::Folder => {
                omitted.add(path, "an ignore rule names it; use another path or change .gitignore if it belongs to the change");
                true
            }
            Ok(Some(_)) | Err(_) => true,
            // Without this the list would grow with every file that the model creates and removes.
            Ok(None) => false,
        }
    });
    for path in skipped.lock().iter() {
        omitted.add(path, "its .gitignore cannot be read: too large, or not a file");
    }
    found
}

/// Removes new files whose path only Linux distinguishes from another one.
fn remove_twins(files: &mut TrackedFiles, tracked: &TrackedFiles, omitted: &mut OmittedPaths) {
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
                omitted.add(&path, &format!("it {problem}"));
                files.remove(&path);
            }
        }
    }
}

/// Lists all files of a tree, including links and submodules.
pub(super) fn list_tracked_files(git: &git2::Repository, tree: Oid) -> Result<TrackedFiles, WorkspaceError> {
    let mut files = TrackedFiles::new();
    let mut queue = vec![(PathBuf::new(), git.find_tree(tree)?)];
    while let Some((folder, tree)) = queue.pop() {
        for entry in &tree {
            let path = folder.join(os_name(entry.name_bytes()));
            if entry.kind() == Some(ObjectType::Tree) {
                queue.push((path, git.find_tree(entry.id())?));
            } else {
                files.insert(path, (entry.id(), entry.filemode()));
            }
        }
    }
    Ok(files)
}

#[derive(Default)]
struct TreeNode {
    files: Vec<(PathBuf, Oid, i32)>,
    folders: BTreeMap<PathBuf, TreeNode>,
}

/// Writes the tree of these files.
pub(super) fn write_tree_of(git: &git2::Repository, files: &TrackedFiles) -> Result<Oid, WorkspaceError> {
    let mut root = TreeNode::default();
    for (path, (id, mode)) in files {
        let mut node = &mut root;
        for part in path.parent().into_iter().flat_map(Path::components) {
            node = node.folders.entry(PathBuf::from(part.as_os_str())).or_default();
        }
        let name = path.file_name().map(PathBuf::from).unwrap_or_default();
        node.files.push((name, *id, *mode));
    }
    write_node(git, &root)
}

fn write_node(git: &git2::Repository, node: &TreeNode) -> Result<Oid, WorkspaceError> {
    let mut builder = git.treebuilder(None)?;
    for (name, id, mode) in &node.files {
        builder.insert(name, *id, *mode)?;
    }
    for (name, child) in &node.folders {
        builder.insert(name, write_node(git, child)?, 0o040_000)?;
    }
    Ok(builder.write()?)
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
