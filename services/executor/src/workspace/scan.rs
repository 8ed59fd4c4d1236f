//! Reading the worktree as a git tree: tracked files and untracked ones that no ignore rule names.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    fs::FileType,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use git2::{ObjectType, Oid};
use ignore::{DirEntry, WalkBuilder};

use super::{
    Problem, Workspace,
    paths::is_git_folder,
    root::{Kind, Stat},
};

/// Files above this are not taken into a tree, in bytes; where one was smaller, it stays what it was.
pub(super) const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Ignore files above this are not read, in bytes: a walk holds their lines.
const MAX_RULES_BYTES: u64 = 1024 * 1024;
/// More files than this are no source tree.
const MAX_FILES: usize = 200_000;
/// A file that changed this shortly before it was read may change again without its times showing it.
const RACY_NS: i128 = 20_000_000;

/// Which content a file had when it was last read, so that unchanged files are not read again.
#[derive(Default)]
pub(super) struct StatCache {
    entries: HashMap<PathBuf, (Stat, Oid)>,
    /// Only files that changed clearly before this are believed.
    sealed_ns: i128,
}

impl StatCache {
    pub(super) fn put(&mut self, path: PathBuf, stat: Stat, id: Oid) {
        self.entries.insert(path, (stat, id));
    }

    /// Both together.
    pub(super) fn with(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self
    }

    pub(super) fn forget(&mut self, path: &Path) {
        self.entries.remove(path);
    }

    /// Call after a pass over all files.
    pub(super) fn seal(&mut self) {
        self.sealed_ns = i128::from(bootstrap::now().unix_ms()) * 1_000_000;
    }

    fn get(&self, path: &Path, stat: &Stat) -> Option<Oid> {
        let (known, id) = self.entries.get(path)?;
        (known == stat && stat.ctime_ns + RACY_NS < self.sealed_ns).then_some(*id)
    }
}

pub(super) fn os_name(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

pub(super) type Files = BTreeMap<PathBuf, (Oid, i32)>;

impl Workspace {
    /// The tree of all files as they are now.
    pub(super) fn tree(&self, git: &git2::Repository) -> Result<Oid, Problem> {
        let head = Oid::from_str(self.head_or_base().as_str())?;
        let tracked = tracked(git, &git.find_commit(head)?.tree()?)?;
        let mut paths: Vec<PathBuf> = self.untracked()?;
        // What lies in a submodule's folder is not this repository's.
        paths.retain(|path| self.submodule_of(path).is_none());
        paths.extend(tracked.keys().cloned());
        paths.sort();
        paths.dedup();
        if paths.len() > MAX_FILES {
            return Err(Problem::Trouble(format!(
                "the worktree has more than {MAX_FILES} files"
            )));
        }
        let mut state = self.lock();
        let mut cache = StatCache::default();
        let (mut files, mut too_large) = (Files::new(), Vec::new());
        for path in paths {
            let known = tracked.get(&path);
            if let Some((id, mode)) =
                self.entry(git, &path, known, &state.cache, &mut cache, &mut too_large)?
            {
                files.insert(path, (id, mode));
            }
        }
        cache.seal();
        state.cache = cache;
        state.too_large = too_large;
        drop(state);
        write(git, &files)
    }

    fn entry(
        &self,
        git: &git2::Repository,
        path: &Path,
        tracked: Option<&(Oid, i32)>,
        old: &StatCache,
        new: &mut StatCache,
        too_large: &mut Vec<PathBuf>,
    ) -> Result<Option<(Oid, i32)>, Problem> {
        let Some(stat) = self.root().stat(path)? else {
            return Ok(None);
        };
        let mode = match stat.kind {
            Kind::File { executable: true } => 0o100_755,
            Kind::File { executable: false } => 0o100_644,
            Kind::Link => 0o120_000,
            // A submodule stays what it was.
            Kind::Folder => return Ok(tracked.copied().filter(|(_, mode)| *mode == 0o160_000)),
            Kind::Other => return Ok(None),
        };
        if stat.size > MAX_FILE_BYTES {
            too_large.push(path.to_owned());
            return Ok(tracked.copied());
        }
        let id = match old.get(path, &stat) {
            Some(id) => id,
            None if stat.kind == Kind::Link => git.blob(&self.root().read_link(path)?)?,
            None => git.blob(&self.root().read(path, MAX_FILE_BYTES)?)?,
        };
        new.put(path.to_owned(), stat, id);
        Ok(Some((id, mode)))
    }

    /// Paths of files that no ignore rule names. Ignore files above the worktree and the system's do not count.
    fn untracked(&self) -> Result<Vec<PathBuf>, Problem> {
        let mut found = Vec::new();
        for entry in self.walk().build() {
            let entry = entry.map_err(|error| Problem::Trouble(error.to_string()))?;
            found.extend(self.inside(&entry, |kind| !kind.is_dir()));
        }
        Ok(found)
    }

    /// Everything of a kind that is not ignored, in order of paths; what cannot be read is left out.
    pub(crate) fn paths(&self, is_wanted: fn(&FileType) -> bool) -> impl Iterator<Item = PathBuf> {
        let found = self.walk().build().filter_map(Result::ok);
        found.filter_map(move |entry| self.inside(&entry, is_wanted))
    }

    /// The relative path of what a walk found, when it is of such a kind.
    fn inside(&self, entry: &DirEntry, is_wanted: fn(&FileType) -> bool) -> Option<PathBuf> {
        let path = entry.path().strip_prefix(self.root().path()).ok()?;
        entry
            .file_type()
            .is_some_and(|kind| is_wanted(&kind))
            .then(|| path.to_owned())
    }

    /// A walk over the worktree that follows no link.
    fn walk(&self) -> WalkBuilder {
        self.root().show_folders();
        let mut walk = WalkBuilder::new(self.root().path());
        walk.hidden(false)
            .ignore(false)
            .parents(false)
            .git_global(false)
            .git_exclude(false)
            .require_git(false);
        walk.follow_links(false).sort_by_file_path(Path::cmp);
        walk.git_ignore(has_safe_rules(self.root().path()));
        walk.filter_entry(|entry| {
            let is_ours = entry.depth() == 0 || !is_git_folder(entry.file_name().as_encoded_bytes());
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            is_ours && (entry.depth() == 0 || !is_folder || has_safe_rules(entry.path()))
        });
        walk
    }
}

/// Whether a folder's ignore rules can be read: a link may lead out, a pipe would hold the walk for good, and a large
/// file would fill the memory. Without
/// that, new files in such a folder do not count; tracked ones still do.
fn has_safe_rules(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder.join(".gitignore")).map_or(true, |metadata| {
        metadata.is_file() && metadata.len() <= MAX_RULES_BYTES
    })
}

/// Every file of a tree, links and submodules among them.
pub(super) fn tracked(git: &git2::Repository, tree: &git2::Tree<'_>) -> Result<Files, Problem> {
    let mut files = Files::new();
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
struct Node {
    files: Vec<(PathBuf, Oid, i32)>,
    folders: BTreeMap<PathBuf, Node>,
}

fn write(git: &git2::Repository, files: &Files) -> Result<Oid, Problem> {
    let mut root = Node::default();
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

fn write_node(git: &git2::Repository, node: &Node) -> Result<Oid, Problem> {
    let mut builder = git.treebuilder(None)?;
    for (name, id, mode) in &node.files {
        builder.insert(name, *id, *mode)?;
    }
    for (name, child) in &node.folders {
        builder.insert(name, write_node(git, child)?, 0o040_000)?;
    }
    Ok(builder.write()?)
}
