//! Fills a new workspace: git directory, worktree and index.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
};

use domain::{CommitId, cause::format_error_chain};
use git2::{ObjectType, Oid};

use super::{
    SnapshotRestore, Workspace, WorkspaceError,
    paths::is_plain_name,
    prepared_checkout::PreparedFiles,
    root::FileStat,
    root::WorkspaceRoot,
    scan::{MAX_DEPTH, StatCache},
};

// Limits of a parallel checkout: threads, and the fewest files for which another thread is worth its start.
const MAX_THREADS: usize = 4;
const MIN_PART: usize = 250;
/// File modes of git's tree entries.
const LINK: i32 = 0o120_000;
const EXECUTABLE: i32 = 0o100_755;

/// File or symbolic link of a tree.
struct TreeLeaf {
    path: PathBuf,
    id: Oid,
    mode: i32,
}

impl Workspace {
    /// Writes the files of the foundation, or of the base if there is no foundation.
    pub(super) fn fill(
        &self,
        foundation: Option<CommitId>,
        there: Option<PreparedFiles>,
    ) -> Result<(), WorkspaceError> {
        if there.is_none() {
            self.make_git_dir()?;
        }
        let repository = self.git()?;
        if !repository.contains(&self.base) {
            return Err(WorkspaceError::NotFound(format!(
                "commit {} is not in {}",
                self.base.short(),
                self.repository
            )));
        }
        self.lock().head = foundation.filter(|foundation| *foundation != self.base);
        let files = self.head_or_base();
        repository.set_branch(&self.base_branch, &files)?;
        repository
            .objects()
            .set_head(&format!("refs/heads/{}", self.base_branch))?;
        let tree = repository
            .objects()
            .find_commit(Oid::from_str(files.as_str())?)?
            .tree_id();
        let (mut cache, indexed) = match there {
            Some(mut there) => {
                self.change_files(repository.objects(), there.tree, tree, &mut there.cache)?;
                if there.commit == self.base {
                    let _ = self.elsewhere.set(there.elsewhere);
                }
                (there.cache, Some(there.commit))
            }
            None => (self.write_tree(self.root(), repository.objects(), tree)?, None),
        };
        if self.elsewhere.get().is_none() {
            let _ = self.elsewhere.set(repository.elsewhere(&self.base)?);
        }
        cache.seal();
        let mut state = self.lock();
        state.cache = cache;
        state.seen = Some((tree, state.branch.clone(), state.head.clone()));
        drop(state);
        if indexed == Some(self.head_or_base()) && self.branch().0.is_none() {
            // The paths in this git directory are those of the folder in which it was created, so they must
            // be written again.
            return self.show_git(None);
        }
        self.write_index(&repository)
    }

    // The mirror is an alternate of the new git directory, so no object is copied.
    fn make_git_dir(&self) -> Result<(), WorkspaceError> {
        git::BareRepository::init_bare(&self.git_dir())?;
        let info = self.git_dir().join("objects/info");
        fs::create_dir_all(&info)?;
        let objects = self.mirror.join("objects");
        Ok(fs::write(
            info.join("alternates"),
            format!("{}\n", objects.display()),
        )?)
    }

    /// Imports a snapshot's objects and sets its branch. Returns the commit with its files.
    pub(super) fn take_in(
        &self,
        repository: &git::BareRepository,
        restore: SnapshotRestore,
    ) -> Result<CommitId, WorkspaceError> {
        let bad = |error: git::Error| WorkspaceError::BadSnapshot(format_error_chain(&error));
        repository
            .import_pack(&restore.pack, git::PackLimits::default())
            .map_err(bad)?;
        if !repository
            .is_descendant(&restore.commit, &self.base)
            .map_err(bad)?
        {
            return Err(WorkspaceError::BadSnapshot(
                "the snapshot does not start at the base commit".to_owned(),
            ));
        }
        if let Some(branch) = &restore.branch {
            let head = restore.head.as_ref().unwrap_or(&self.base);
            repository.set_branch(branch, head).map_err(bad)?;
            repository.objects().set_head(&format!("refs/heads/{branch}"))?;
        }
        let mut state = self.lock();
        state.head = restore
            .branch
            .as_ref()
            .map(|_| restore.head.unwrap_or_else(|| self.base.clone()));
        state.branch = restore.branch;
        Ok(restore.commit)
    }

    /// Writes all files of a tree into an empty folder.
    pub(super) fn write_tree(
        &self,
        root: &WorkspaceRoot,
        git: &git2::Repository,
        tree: Oid,
    ) -> Result<StatCache, WorkspaceError> {
        let mut leaves = Vec::new();
        find_leaves(root, git, tree, Path::new(""), &mut leaves, 0)?;
        // With a runner, every file goes over one socket, so more threads would only wait for each other.
        let threads = if self.is_ours() {
            thread::available_parallelism().map_or(1, usize::from)
        } else {
            1
        };
        let part = leaves.len().div_ceil(threads.min(MAX_THREADS)).max(MIN_PART);
        let caches = thread::scope(|scope| {
            let parts: Vec<_> = leaves
                .chunks(part)
                .map(|leaves| scope.spawn(|| self.write_leaves(root, leaves)))
                .collect();
            let failed = |_| WorkspaceError::Trouble("a checkout panicked".to_owned());
            parts
                .into_iter()
                .map(|part| part.join().map_err(failed)?)
                .collect::<Result<Vec<_>, WorkspaceError>>()
        });
        Ok(caches?.into_iter().fold(StatCache::default(), StatCache::with))
    }

    fn write_leaves(&self, root: &WorkspaceRoot, leaves: &[TreeLeaf]) -> Result<StatCache, WorkspaceError> {
        let repository = self.git()?;
        let mut cache = StatCache::default();
        for leaf in leaves {
            let blob = repository.objects().find_blob(leaf.id)?;
            if let Some(stat) = write_blob(root, blob.content(), leaf.mode, &leaf.path)? {
                cache.put(leaf.path.clone(), stat, leaf.id);
            }
        }
        Ok(cache)
    }

    /// Writes the index that git in commands reads.
    pub(super) fn write_index(&self, repository: &git::BareRepository) -> Result<(), WorkspaceError> {
        let bytes = self.index_of(repository, &self.head_or_base())?;
        self.show_git(Some(bytes))
    }

    /// Builds the index of a commit. It is written to a path that commands cannot reach and then copied,
    /// because libgit2 would follow a symbolic link at the final path.
    pub(super) fn index_of(
        &self,
        repository: &git::BareRepository,
        commit: &CommitId,
    ) -> Result<Vec<u8>, WorkspaceError> {
        let git = repository.objects();
        let tree = git.find_commit(Oid::from_str(commit.as_str())?)?.tree()?;
        let place = self.git_dir().join("index.new");
        let mut index = git2::Index::open(&place)?;
        index.read_tree(&tree)?;
        index.write()?;
        let bytes = fs::read(&place)?;
        fs::remove_file(&place)?;
        Ok(bytes)
    }
}

/// Collects files and links of a tree. For a submodule, only its folder is created; its content is never
/// fetched.
fn find_leaves(
    root: &WorkspaceRoot,
    git: &git2::Repository,
    tree: Oid,
    folder: &Path,
    found: &mut Vec<TreeLeaf>,
    depth: usize,
) -> Result<(), WorkspaceError> {
    if depth > MAX_DEPTH {
        return Err(WorkspaceError::Trouble(format!(
            "{} is nested too deep",
            folder.display()
        )));
    }
    for entry in &git.find_tree(tree)? {
        if !is_plain_name(entry.name_bytes()) {
            tracing::warn!(folder = %folder.display(), "an entry with an unsafe name is left out");
            continue;
        }
        let path = folder.join(super::scan::os_name(entry.name_bytes()));
        match entry.kind() {
            Some(ObjectType::Tree) => find_leaves(root, git, entry.id(), &path, found, depth + 1)?,
            Some(ObjectType::Blob) => found.push(TreeLeaf {
                path,
                id: entry.id(),
                mode: entry.filemode(),
            }),
            _ => root.make_folder(&path)?,
        }
    }
    Ok(())
}

/// Creates a file or link at a free path. Returns its state afterwards.
pub(super) fn write_blob(
    root: &WorkspaceRoot,
    content: &[u8],
    mode: i32,
    path: &Path,
) -> Result<Option<FileStat>, WorkspaceError> {
    if mode == LINK {
        root.write_link(path, content)?;
        return Ok(root.stat(path)?);
    }
    Ok(Some(root.create(path, content, mode == EXECUTABLE)?))
}
