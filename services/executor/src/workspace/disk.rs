//! Folders of a workspace on the disk: the worktree, and the scratch space with the home folder of commands.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::{self, FileType},
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use domain::{RepositoryName, cause::format_error_chain};
use git::ExternalContent;
use ignore::{DirEntry, WalkBuilder};
use parking_lot::Mutex;

use super::{
    links::resolve_linked_folders,
    paths::{is_git_folder, resolve_model_path},
    portable_names::{NameProblem, check_names, find_twin, fold_name},
    root::WorkspaceRoot,
};
use crate::{
    cleanup,
    sandbox::{PathCover, RunnerClient, RunnerSession, WorkspaceFolder},
};

/// Files in deeper folders are not taken: no checkout would hold them.
pub(super) const MAX_DEPTH: usize = 100;
/// Name of the git directory in the scratch space that git in commands uses.
pub(super) const VIEW: &str = "checkout.git";
// Limit of an ignore file in bytes: the walk holds its lines in memory.
const MAX_RULES_BYTES: u64 = 64 * 1024;
/// Limit of files that a message names.
const MAX_CANDIDATES: usize = 6;
// Limit of entries of a folder that are compared with a new name.
const MAX_ENTRIES: usize = 20_000;
// Names with fewer characters are similar only if one character differs.
const SHORT_NAME: usize = 5;
// Limit of checkouts of one repository at a time; there are far fewer slots.
const MAX_PLACES: u32 = 10_000;
// Limit in bytes of each part of a checkout's name. Paths of Unix sockets are limited to 108 bytes (unix(7)),
// and commands may create sockets in the workspace.
const MAX_PART: usize = 24;

/// Part of a worktree that a walk visits: the files of changed folders, and new folders.
pub(super) struct WalkScope {
    changed: BTreeSet<PathBuf>,
    /// Folders above the changed ones.
    above: BTreeSet<PathBuf>,
    /// Folders that are not new.
    known: BTreeSet<PathBuf>,
}

impl WalkScope {
    pub(super) fn new(changed: BTreeSet<PathBuf>, known: BTreeSet<PathBuf>) -> Self {
        let mut above = BTreeSet::new();
        for folder in &changed {
            for folder in folder.ancestors().skip(1) {
                // The folders above a contained one are contained too.
                if !above.insert(folder.to_owned()) {
                    break;
                }
            }
        }
        Self {
            changed,
            above,
            known,
        }
    }

    /// Returns true for a path that the walk visits.
    fn should_visit(&self, path: &Path, is_folder: bool) -> bool {
        if is_folder {
            return self.changed.contains(path) || self.above.contains(path) || !self.known.contains(path);
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        self.changed.contains(folder) || !self.known.contains(folder)
    }
}

/// Folder that is deleted when it is dropped.
pub(super) struct ScopedFolder(pub(super) PathBuf);

impl ScopedFolder {
    /// Renames the folder to `place`, which may exist as an empty folder.
    pub(super) fn move_to(&mut self, place: PathBuf) -> io::Result<()> {
        fs::rename(&self.0, &place)?;
        // The destructor deletes the folder at this path, so it must name the new one.
        self.0 = place;
        Ok(())
    }
}

impl Drop for ScopedFolder {
    fn drop(&mut self) {
        if let Err(error) = cleanup::remove_folder(&self.0) {
            tracing::warn!(error = %format_error_chain(&error), "a workspace's folder stays behind");
        }
    }
}

/// Folders of a workspace, in this process or at a runner. Dropping it deletes them, except a worktree that
/// existed before.
pub(crate) struct WorkspaceDisk {
    folder: ScopedFolder,
    tree: WorkspaceRoot,
    scratch: WorkspaceRoot,
    session: Option<Arc<RunnerSession>>,
    external: OnceLock<ExternalContent>,
    /// Files of the base in Git LFS whose content is in the worktree.
    lfs_contents: OnceLock<BTreeSet<String>>,
    /// True when new files may have names that only Linux can hold.
    pub(super) has_any_names: bool,
}

impl WorkspaceDisk {
    /// Opens a scratch space in `folder` or at the runner, and the worktree `existing`. `None` creates an empty
    /// worktree next to the scratch space.
    pub(super) fn open(
        folder: ScopedFolder,
        existing: Option<&Path>,
        runner: Option<&RunnerClient>,
    ) -> io::Result<Self> {
        fs::create_dir_all(&folder.0)?;
        let session = runner.map(|runner| runner.workspace(existing)).transpose();
        let runner_error = |error: io::Error| io::Error::other(format!("the runner: {error}"));
        let session = session.map_err(runner_error)?.map(Arc::new);
        let (tree, scratch) = match &session {
            Some(session) => (
                WorkspaceRoot::at_runner(session, WorkspaceFolder::Tree),
                WorkspaceRoot::at_runner(session, WorkspaceFolder::Scratch),
            ),
            None => open_roots(&folder.0, existing)?,
        };
        Ok(Self {
            folder,
            tree,
            scratch,
            session,
            external: OnceLock::new(),
            lfs_contents: OnceLock::new(),
            has_any_names: false,
        })
    }

    /// Returns the folder, which outlives the other parts.
    pub(super) fn into_folder(self) -> ScopedFolder {
        self.folder
    }

    /// Worktree of the workspace.
    pub(crate) fn root(&self) -> &WorkspaceRoot {
        &self.tree
    }

    /// Scratch space of commands.
    pub(super) fn scratch(&self) -> &WorkspaceRoot {
        &self.scratch
    }

    /// Session of the runner that holds the files; `None` when this process holds them.
    pub(super) fn session(&self) -> Option<&Arc<RunnerSession>> {
        self.session.as_ref()
    }

    /// Returns true when this process, and not a runner, holds the files.
    pub(crate) fn is_ours(&self) -> bool {
        self.session.is_none()
    }

    /// Returns true when the runner that holds the files has closed the connection.
    pub(crate) fn is_lost(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_closed())
    }

    /// Folder of the workspace. Tools write this path into installed files.
    pub(crate) fn place(&self) -> &Path {
        &self.folder.0
    }

    /// Home folder of commands.
    pub(super) fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    /// Folders that commands may write to.
    pub(crate) fn writable(&self) -> Vec<PathBuf> {
        vec![self.tree.path().to_owned(), self.scratch.path().to_owned()]
    }

    /// Folders that must have the same path for commands. Worktree and scratch space share one mount, so that
    /// a file can be renamed between them.
    pub(crate) fn exposed(&self) -> Vec<PathCover> {
        let own = self
            .session
            .as_ref()
            .map_or(self.folder.0.as_path(), |session| session.folder());
        let tree = Some(self.tree.path()).filter(|tree| !tree.starts_with(own));
        let itself = |path: &Path| PathCover {
            from: path.to_owned(),
            at: path.to_owned(),
            writable: true,
        };
        [own].into_iter().chain(tree).map(itself).collect()
    }

    /// Content that the base commit names but does not contain: submodules and Git LFS files.
    pub(crate) fn external(&self) -> &ExternalContent {
        static NOTHING: ExternalContent = ExternalContent {
            submodules: Vec::new(),
            lfs_files: Vec::new(),
        };
        self.external.get().unwrap_or(&NOTHING)
    }

    /// Records the content that the base commit names but does not contain.
    pub(super) fn set_external(&self, external: ExternalContent) {
        // The result is ignored: a workspace is filled only once.
        let _ = self.external.set(external);
    }

    /// Files of the base in Git LFS whose content is in the worktree.
    pub(crate) fn lfs_contents(&self) -> impl Iterator<Item = &String> {
        self.lfs_contents.get().into_iter().flatten()
    }

    /// Records the files of the base in Git LFS whose content is in the worktree.
    pub(super) fn set_lfs_contents(&self, paths: BTreeSet<String>) {
        // The result is ignored: a workspace is filled only once.
        let _ = self.lfs_contents.set(paths);
    }

    /// True for a file of the base in Git LFS whose content is in the worktree.
    pub(super) fn has_lfs_content(&self, path: &Path) -> bool {
        let kept = self.lfs_contents.get();
        kept.zip(path.to_str())
            .is_some_and(|(kept, path)| kept.contains(path))
    }

    /// Returns the submodule that contains a path.
    pub(super) fn submodule_of(&self, path: &Path) -> Option<&String> {
        let submodules = &self.external().submodules;
        submodules.iter().find(|submodule| path.starts_with(submodule))
    }

    /// Resolves a path that the model wrote, relative to the worktree. Symbolic links to folders of the worktree
    /// are replaced by these folders, so that an answer names the file itself. Returns an error for a path in a
    /// submodule, whose files are missing.
    pub(crate) fn path(&self, text: &str) -> Result<PathBuf, String> {
        let path = resolve_linked_folders(&self.tree, resolve_model_path(self.tree.path(), text)?);
        match self.submodule_of(&path) {
            None => Ok(path),
            Some(submodule) => Err(format!(
                "{text:?} lies in the submodule {submodule}, whose files are in another repository and not here. Work without \
                 them; a submodule cannot be changed."
            )),
        }
    }

    /// Resolves a path that a tool writes to. The name of a new file must be one that Windows and macOS can
    /// hold, unless the rules allow others.
    ///
    /// # Errors
    /// Returns a text for the model.
    pub(crate) fn path_to_write(&self, text: &str) -> Result<PathBuf, String> {
        self.path_to_create(text, None)
    }

    /// Resolves a path to which a tool moves a file, like [`WorkspaceDisk::path_to_write`]. The name may differ from
    /// the name of the file only in case.
    ///
    /// # Errors
    /// Returns a text for the model.
    pub(crate) fn path_to_move(&self, file: &Path, text: &str) -> Result<PathBuf, String> {
        self.path_to_create(text, Some(file))
    }

    fn path_to_create(&self, text: &str, moved: Option<&Path>) -> Result<PathBuf, String> {
        let path = self.path(text)?;
        let is_new = matches!(self.tree.stat(&path), Ok(None));
        if is_new && !self.has_any_names {
            self.check_new_path(&path, moved)
                .map_err(|problem| format!("{text:?} {problem}. Nothing was written."))?;
        }
        Ok(path)
    }

    /// Checks the name of a new path. `moved` is a file that will be gone.
    fn check_new_path(&self, path: &Path, moved: Option<&Path>) -> Result<(), NameProblem> {
        check_names(path)?;
        let mut folder = PathBuf::new();
        for part in path.components() {
            let inner = folder.join(part);
            // Only the first missing name can have a twin; the folders below it are new.
            if matches!(self.tree.stat(&inner), Ok(None)) {
                let entries = self.tree.list(&folder, MAX_ENTRIES).unwrap_or_default();
                let names = entries.iter().map(|entry| entry.name.as_str());
                let stays = |name: &&str| moved.is_none_or(|moved| folder.join(name).as_path() != moved);
                return match find_twin(part.as_os_str(), names.filter(stays)) {
                    Some(twin) => Err(NameProblem::Twin(folder.join(twin).display().to_string())),
                    None => Ok(()),
                };
            }
            folder = inner;
        }
        Ok(())
    }

    /// Resolves the path of an existing file. A part of a path is enough if only one file's path ends in it.
    ///
    /// # Errors
    /// Returns a text for the model: for a path outside of the workspace, or several matching files.
    pub(crate) fn existing(&self, text: &str) -> Result<PathBuf, String> {
        let path = self.path(text).map_err(|why| match self.find_inside(text) {
            Some(inside) => format!("{why} Did you mean {}?", inside.display()),
            None => why,
        })?;
        if path.as_os_str().is_empty() || !matches!(self.tree.stat(&path), Ok(None)) {
            return Ok(path);
        }
        let named: Vec<PathBuf> = self
            .paths(FileType::is_file)
            .filter(|file| file.ends_with(&path))
            .take(MAX_CANDIDATES)
            .collect();
        match named.as_slice() {
            [] => self.missing(path),
            [file] => Ok(file.clone()),
            files => Err(format!(
                "{text:?} names several files: {}. Give a longer path.",
                join_paths(files)
            )),
        }
    }

    /// Returns the end of an absolute path that exists in the worktree: models know other names of its folder.
    fn find_inside(&self, text: &str) -> Option<PathBuf> {
        let names: Vec<_> = Path::new(text).strip_prefix("/").ok()?.iter().collect();
        let ends = (0..names.len()).map(|start| names[start..].iter().collect::<PathBuf>());
        ends.filter_map(|end| self.path(&end.to_string_lossy()).ok())
            .find(|end| matches!(self.tree.stat(end), Ok(Some(_))))
    }

    /// Returns a path that does not exist. Fails when files of the same name exist in other folders, or files
    /// of similar names exist.
    fn missing(&self, path: PathBuf) -> Result<PathBuf, String> {
        let of_name: Vec<PathBuf> = self
            .paths(FileType::is_file)
            .filter(|file| file.file_name() == path.file_name())
            .take(MAX_CANDIDATES)
            .collect();
        if of_name.is_empty() {
            return match self.list_similar(&path).as_slice() {
                [] => Ok(path),
                similar => Err(format!(
                    "{} does not exist. Files of similar names: {}.",
                    path.display(),
                    join_paths(similar)
                )),
            };
        }
        Err(format!(
            "{} does not exist. Files of that name: {}.",
            path.display(),
            join_paths(&of_name)
        ))
    }

    /// Lists the files whose names differ from a path's in case, the form of accents or few characters, the
    /// nearest first.
    fn list_similar(&self, path: &Path) -> Vec<PathBuf> {
        let Some(wanted) = path.file_name().map(fold_name) else {
            return Vec::new();
        };
        let most = if wanted.chars().count() < SHORT_NAME { 1 } else { 2 };
        let near = |file: PathBuf| {
            let name = file.file_name().map(fold_name)?;
            // The comparison takes time, and names of other lengths are not similar.
            let is_near = name.len().abs_diff(wanted.len()) <= 2 * most;
            let distance = is_near.then(|| strsim::damerau_levenshtein(&name, &wanted))?;
            (distance <= most).then_some((distance, file))
        };
        let mut similar: Vec<(usize, PathBuf)> = self.paths(FileType::is_file).filter_map(near).collect();
        similar.sort();
        similar.truncate(MAX_CANDIDATES);
        similar.into_iter().map(|(_, file)| file).collect()
    }

    /// Lists all paths of a type that are not ignored, in order. Unreadable entries are skipped.
    pub(crate) fn paths(&self, is_wanted: fn(&FileType) -> bool) -> impl Iterator<Item = PathBuf> {
        let found = self.walk(&Arc::default(), None).build().filter_map(Result::ok);
        found.filter_map(move |entry| self.inside(&entry, is_wanted))
    }

    /// Returns the relative path of an entry if it has the type.
    pub(super) fn inside(&self, entry: &DirEntry, is_wanted: fn(&FileType) -> bool) -> Option<PathBuf> {
        let path = path_beneath(self.tree.path(), entry.path())?;
        entry
            .file_type()
            .is_some_and(|kind| is_wanted(&kind))
            .then(|| path.to_owned())
    }

    /// Creates a walk over the worktree that follows no symbolic link. `skipped` receives the folders with
    /// unsafe ignore rules, which the walk does not enter. Without a scope, all of the worktree is visited.
    pub(super) fn walk(
        &self,
        skipped: &Arc<Mutex<Vec<PathBuf>>>,
        scope: Option<Arc<WalkScope>>,
    ) -> WalkBuilder {
        self.tree.show_folders();
        let mut walk = WalkBuilder::new(self.tree.path());
        walk.hidden(false)
            .ignore(false)
            .parents(false)
            .git_global(false)
            .git_exclude(false)
            // Commands can delete the `.git` file, so it must not decide whether ignore rules apply.
            .require_git(false);
        walk.follow_links(false)
            .max_depth(Some(MAX_DEPTH))
            // The order of names: paths of one folder differ in nothing else, and a name would be parsed out of its path
            // for each comparison.
            .sort_by_file_path(|one, other| one.as_os_str().cmp(other.as_os_str()));
        walk.git_ignore(has_safe_rules(self.tree.path()));
        let (skipped, root) = (Arc::clone(skipped), self.tree.path().to_owned());
        walk.filter_entry(move |entry| {
            let is_root = entry.depth() == 0;
            let is_ours = is_root || !is_git_folder(entry.file_name().as_encoded_bytes());
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            if let (Some(scope), false) = (&scope, is_root)
                && let Some(path) = path_beneath(&root, entry.path())
                && !scope.should_visit(path, is_folder)
            {
                return false;
            }
            let is_safe = is_root || !is_folder || !is_ours || has_safe_rules(entry.path());
            if let (false, Some(path)) = (is_safe, path_beneath(&root, entry.path())) {
                let mut skipped = skipped.lock();
                skipped.push(path.to_owned());
            }
            is_ours && is_safe
        });
        walk
    }
}

/// Returns the part of a path below a folder to which a walk joined names. Its bytes are compared, because a comparison
/// of components parses both paths for each entry of a worktree.
fn path_beneath<'p>(folder: &Path, path: &'p Path) -> Option<&'p Path> {
    let folder = folder.as_os_str().as_bytes();
    let rest = path.as_os_str().as_bytes().strip_prefix(folder)?;
    let inner = match rest.strip_prefix(b"/") {
        Some(inner) => inner,
        None if rest.is_empty() || folder.ends_with(b"/") => rest,
        None => return None,
    };
    Some(Path::new(OsStr::from_bytes(inner)))
}

/// Returns true when the ignore file of a folder can be read safely.
///
/// A link could lead outside, a pipe would block the walk, and a large file would exhaust the memory. New
/// files in a folder without safe rules do not count; tracked files still do.
fn has_safe_rules(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(".gitignore")).map_or(true, |metadata| {
        metadata.is_file() && metadata.len() <= MAX_RULES_BYTES
    })
}

fn join_paths(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

/// Opens the worktree and the scratch space that this process holds.
fn open_roots(folder: &Path, existing: Option<&Path>) -> io::Result<(WorkspaceRoot, WorkspaceRoot)> {
    fs::create_dir_all(folder.join("tmp/home"))?;
    let scratch = WorkspaceRoot::open(&folder.join("tmp"))?;
    if let Some(tree) = existing {
        return Ok((WorkspaceRoot::open(tree)?, scratch));
    }
    let tree = folder.join("tree");
    fs::create_dir_all(&tree)?;
    Ok((WorkspaceRoot::open(&tree)?, scratch))
}

/// Creates the folder of a checkout, with the lowest free number. The same path is used again if it is free,
/// because tools write absolute paths into installed files.
///
/// Repositories whose truncated names are equal share the numbers.
pub(super) fn claim_folder(folder: &Path, repository: &RepositoryName) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let (owner, name) = (repository.owner(), repository.name());
    for number in 0..MAX_PLACES {
        let place = folder.join(format!("{owner:.MAX_PART$}.{name:.MAX_PART$}.{number}"));
        match fs::create_dir(&place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| place),
        }
    }
    Err(io::Error::other("no place is free"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walked_path_is_relative_to_folder() {
        for (folder, path, inner) in [
            ("/w/tree", "/w/tree", Some("")),
            ("/w/tree", "/w/tree/a", Some("a")),
            ("/w/tree", "/w/tree/a b/\u{e9}", Some("a b/\u{e9}")),
            ("/w/tree/", "/w/tree/a/b", Some("a/b")),
            ("/", "/a", Some("a")),
            ("/w/tree", "/w/tree2/a", None),
            ("/w/tree", "/w", None),
            ("/w/tree", "a", None),
        ] {
            let found = path_beneath(Path::new(folder), Path::new(path));
            assert_eq!(found, inner.map(Path::new), "{folder} {path}");
            assert_eq!(
                found,
                Path::new(path).strip_prefix(folder).ok(),
                "{folder} {path}"
            );
        }
    }

    #[test]
    fn walk_lists_folders_at_their_names() {
        let folder = tempfile::TempDir::new().unwrap();
        let place = ScopedFolder(folder.path().join("place"));
        let disk = WorkspaceDisk::open(place, None, None).unwrap();
        for path in ["b", "aa", "a.b", "a/y", "a/x/z", "a-b"] {
            disk.root().write(Path::new(path), b"").unwrap();
        }
        let listed: Vec<PathBuf> = disk.paths(FileType::is_file).collect();
        // As whole paths, `a-b` and `a.b` would come before `a/y`.
        let expected = ["a/x/z", "a/y", "a-b", "a.b", "aa", "b"].map(PathBuf::from);
        assert_eq!(listed, expected);
    }

    #[test]
    fn freed_checkout_path_is_reused() {
        let folder = tempfile::TempDir::new().unwrap();
        let shop = "acme/shop".parse().unwrap();
        let first = claim_folder(folder.path(), &shop).unwrap();
        let second = claim_folder(folder.path(), &shop).unwrap();
        assert_ne!(first, second);
        fs::remove_dir(&first).unwrap();
        assert_eq!(claim_folder(folder.path(), &shop).unwrap(), first);
    }
}
