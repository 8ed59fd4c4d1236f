//! Reads the worktree as a git tree: tracked files, and untracked files that no ignore rule matches.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsStr,
    fs::FileType,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use git2::{ObjectType, Oid};
use ignore::{DirEntry, WalkBuilder};
use parking_lot::Mutex;

use super::{
    Workspace, WorkspaceError,
    byproduct::{self, OwnByproducts},
    objects::{ChangeSize, FileFit},
    omissions::{OmittedPaths, explain_unreadable, explain_walk_error},
    paths::is_git_folder,
    root::{FileKind, FileStat},
};

/// Limit of a file in a tree, in bytes. A tracked file that grows beyond it keeps its committed content.
pub(super) const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
// Limit of an ignore file in bytes: the walk holds its lines in memory.
const MAX_RULES_BYTES: u64 = 64 * 1024;
/// Limit of new files in a tree. Generated folders exceed it; hand-written changes do not.
const MAX_NEW_FILES: usize = if cfg!(test) { 1000 } else { 200_000 };
/// Files in deeper folders are not taken: no checkout would hold them.
pub(super) const MAX_DEPTH: usize = 100;
// A file that changed less than 20 ms before it was read may change again within the resolution of its
// timestamps.
const RACY_NS: i128 = 20_000_000;

/// Result of reading a file.
#[derive(Clone, Copy)]
enum KnownFile {
    /// Object id, and the bytes that the object adds to the workspace's own objects.
    Stored(Oid, u64),
    /// The file is too large for any snapshot.
    TooLarge,
}

/// Contents of files by their state at the last read, so that unchanged files are not read again.
#[derive(Default)]
pub(super) struct StatCache {
    entries: HashMap<PathBuf, (FileStat, KnownFile)>,
    /// Time of the last complete scan. Only files that changed clearly earlier are trusted.
    sealed_ns: i128,
}

impl StatCache {
    pub(super) fn put(&mut self, path: PathBuf, stat: FileStat, id: Oid) {
        self.note(path, stat, KnownFile::Stored(id, 0));
    }

    fn note(&mut self, path: PathBuf, stat: FileStat, file: KnownFile) {
        self.entries.insert(path, (stat, file));
    }

    /// Merges two caches of different files.
    pub(super) fn with(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    pub(super) fn forget(&mut self, path: &Path) {
        self.entries.remove(path);
    }

    /// Marks the end of a scan over all files.
    pub(super) fn seal(&mut self) {
        self.sealed_ns = i128::from(bootstrap::read_wall_clock().unix_ms()) * 1_000_000;
    }

    fn get(&self, path: &Path, stat: &FileStat) -> Option<KnownFile> {
        let (known, file) = self.entries.get(path)?;
        (known == stat && stat.ctime_ns + RACY_NS < self.sealed_ns).then_some(*file)
    }
}

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
    git: &'a git2::Repository,
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
}

impl Workspace {
    /// Builds the tree of the current files. An unreadable file is omitted and recorded; if it is tracked,
    /// its committed content stays in the tree.
    pub(super) fn tree(&self, git: &git2::Repository) -> Result<Oid, WorkspaceError> {
        let head = Oid::from_str(self.head_or_base().as_str())?;
        let tracked = list_tracked_files(git, &git.find_commit(head)?.tree()?)?;
        let mut omitted = OmittedPaths::default();
        let mut paths = self.untracked(&tracked, &mut omitted);
        paths.extend(tracked.keys().cloned());
        paths.sort();
        paths.dedup();
        let mut state = self.lock();
        let mut look = WorktreeScan {
            git,
            old: &state.cache,
            new: StatCache::default(),
            omitted,
            size: ChangeSize::new(self.limits, &self.git_dir()),
        };
        let mut files = TrackedFiles::new();
        for path in paths {
            let known = tracked.get(&path).copied();
            let found = match self.entry(&mut look, &path, known) {
                Ok(found) => found,
                Err(ReadFailure::File(error)) => match explain_unreadable(&error)? {
                    Some(why) => {
                        look.omitted.add(&path, &why);
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
            omitted,
            size,
            ..
        } = look;
        cache.seal();
        state.cache = cache;
        state.omitted = omitted;
        state.excess = size.into_excess();
        drop(state);
        write_tree_of(git, &files)
    }

    fn entry(
        &self,
        look: &mut WorktreeScan<'_>,
        path: &Path,
        tracked: Option<(Oid, i32)>,
    ) -> Result<Option<(Oid, i32)>, ReadFailure> {
        let Some(stat) = self.root().stat(path)? else {
            return Ok(None);
        };
        let mode = match stat.kind {
            FileKind::File { executable: true } => 0o100_755,
            FileKind::File { executable: false } => 0o100_644,
            FileKind::Link => 0o120_000,
            // A submodule keeps its committed id.
            FileKind::Folder => return Ok(tracked.filter(|(_, mode)| *mode == 0o160_000)),
            FileKind::Other => {
                look.omitted.add(path, "neither a file nor a link");
                return Ok(None);
            }
        };
        if stat.size > MAX_FILE_BYTES {
            let why = format!("larger than {} MiB", MAX_FILE_BYTES >> 20);
            look.omitted.add(path, &why);
            return Ok(tracked);
        }
        let known = match look.old.get(path, &stat) {
            Some(known) => known,
            None if stat.kind == FileKind::Link => {
                KnownFile::Stored(look.git.blob(&self.root().read_link(path)?)?, 0)
            }
            None => {
                let content = self.root().read(path, MAX_FILE_BYTES)?;
                // A new executable binary is a build result that a compiler wrote next to the sources.
                let is_made = tracked.is_none() && mode == 0o100_755 && byproduct::is_program(&content);
                if is_made {
                    look.omitted.add(path, byproduct::WHY);
                    return Ok(None);
                }
                let Some(known) = look.store(&content)? else {
                    look.size.refuse(path, stat.size);
                    return Ok(tracked);
                };
                known
            }
        };
        look.new.note(path.to_owned(), stat, known);
        let KnownFile::Stored(id, weight) = known else {
            look.size.refuse(path, stat.size);
            return Ok(tracked);
        };
        if tracked.is_none_or(|(old, _)| old != id) {
            look.size.add(path, stat.size, weight);
        }
        Ok(Some((id, mode)))
    }

    /// Returns the paths of new files that no ignore rule matches. Ignore files above the worktree and of the
    /// system do not count.
    fn untracked(&self, tracked: &TrackedFiles, omitted: &mut OmittedPaths) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let own = OwnByproducts::among(tracked.keys());
        let written = self.lock().written.clone();
        let mut left_behind = BTreeSet::new();
        let skipped = Arc::<Mutex<Vec<PathBuf>>>::default();
        for entry in self.walk(&skipped).build() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let left_out = explain_walk_error(&error, self.root().path());
                    left_out
                        .into_iter()
                        .for_each(|(path, why)| omitted.add(&path, &why));
                    continue;
                }
            };
            if entry.depth() >= MAX_DEPTH
                && let Some(path) = self.inside(&entry, FileType::is_dir)
            {
                omitted.add(&path, "folders are nested too deep");
            }
            let path = self.inside(&entry, |kind| !kind.is_dir());
            // Files in a submodule's folder belong to another repository.
            let is_new = |path: &PathBuf| !tracked.contains_key(path) && self.submodule_of(path).is_none();
            let Some(path) = path.filter(is_new) else { continue };
            if let Some(left) = own.find(&path).filter(|_| !written.contains(&path)) {
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
        for path in written
            .iter()
            .filter(|path| !known.contains(path) && !tracked.contains_key(*path))
        {
            match self.root().stat(path) {
                Ok(Some(stat)) if stat.kind != FileKind::Folder => {
                    omitted.add(path, "an ignore rule names it; use another path or change .gitignore if it belongs to the change");
                }
                // Without this the list would grow with every file that the model creates and removes.
                Ok(None) => {
                    self.lock().written.remove(path);
                }
                Ok(Some(_)) | Err(_) => {}
            }
        }
        for path in skipped.lock().iter() {
            omitted.add(path, "its .gitignore cannot be read: too large, or not a file");
        }
        found
    }

    /// Lists all paths of a type that are not ignored, in order. Unreadable entries are skipped.
    pub(crate) fn paths(&self, is_wanted: fn(&FileType) -> bool) -> impl Iterator<Item = PathBuf> {
        let found = self.walk(&Arc::default()).build().filter_map(Result::ok);
        found.filter_map(move |entry| self.inside(&entry, is_wanted))
    }

    /// Returns the relative path of an entry if it has the type.
    fn inside(&self, entry: &DirEntry, is_wanted: fn(&FileType) -> bool) -> Option<PathBuf> {
        let path = entry.path().strip_prefix(self.root().path()).ok()?;
        entry
            .file_type()
            .is_some_and(|kind| is_wanted(&kind))
            .then(|| path.to_owned())
    }

    /// Creates a walk over the worktree that follows no symbolic link. `skipped` receives the folders with
    /// unsafe ignore rules, which the walk does not enter.
    fn walk(&self, skipped: &Arc<Mutex<Vec<PathBuf>>>) -> WalkBuilder {
        self.root().show_folders();
        let mut walk = WalkBuilder::new(self.root().path());
        walk.hidden(false)
            .ignore(false)
            .parents(false)
            .git_global(false)
            .git_exclude(false)
            // Commands can delete the `.git` file, so it must not decide whether ignore rules apply.
            .require_git(false);
        walk.follow_links(false)
            .max_depth(Some(MAX_DEPTH))
            .sort_by_file_path(Path::cmp);
        walk.git_ignore(has_safe_rules(self.root().path()));
        let (skipped, root) = (Arc::clone(skipped), self.root().path().to_owned());
        walk.filter_entry(move |entry| {
            let is_root = entry.depth() == 0;
            let is_ours = is_root || !is_git_folder(entry.file_name().as_encoded_bytes());
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let is_safe = is_root || !is_folder || !is_ours || has_safe_rules(entry.path());
            if let (false, Ok(path)) = (is_safe, entry.path().strip_prefix(&root)) {
                let mut skipped = skipped.lock();
                skipped.push(path.to_owned());
            }
            is_ours && is_safe
        });
        walk
    }
}

/// Returns true when the ignore file of a folder can be read safely.
///
/// A link could lead outside, a pipe would block the walk, and a large file would exhaust the memory. New
/// files in a folder without safe rules do not count; tracked files still do.
fn has_safe_rules(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder.join(".gitignore")).map_or(true, |metadata| {
        metadata.is_file() && metadata.len() <= MAX_RULES_BYTES
    })
}

/// Lists all files of a tree, including links and submodules.
pub(super) fn list_tracked_files(
    git: &git2::Repository,
    tree: &git2::Tree<'_>,
) -> Result<TrackedFiles, WorkspaceError> {
    let mut files = TrackedFiles::new();
    let mut queue = vec![(PathBuf::new(), git.find_tree(tree.id())?)];
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
