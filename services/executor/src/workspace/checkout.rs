//! Fills a new workspace: git directory, worktree and index.

use std::{
    collections::BTreeSet,
    iter,
    path::{Path, PathBuf},
};

use domain::CommitId;
use git2::{ObjectType, Oid};

use super::{
    Workspace, WorkspaceError,
    conversion::{AttributeFiles, CheckoutAttributes, read_attributes},
    disk::MAX_DEPTH,
    git_directory::{GitDirectory, tree_of},
    paths::is_plain_name,
    prepared_checkout::PreparedFiles,
    root::WorkspaceRoot,
    stat_cache::StatCache,
    tracked_files::os_name,
    tree_change::TreeChange,
};
use crate::shared_work::{MAX_THREADS, SharedList, share_work};

// Number of files that a thread takes at a time. For fewer files another thread is not worth its start.
const PART_FILES: usize = 250;

/// File or symbolic link of a tree.
struct TreeLeaf {
    path: PathBuf,
    id: Oid,
    mode: i32,
}

/// Writes the files of the foundation, or of the base if there is no foundation.
pub(super) fn fill_workspace(
    workspace: &Workspace,
    foundation: Option<CommitId>,
    there: Option<PreparedFiles>,
) -> Result<(), WorkspaceError> {
    let (directory, disk) = (&workspace.git, &workspace.disk);
    if there.is_none() {
        directory.create()?;
    }
    // A prepared directory may be older than the mirror's last fetch.
    directory.copy_boundary()?;
    let repository = directory.open()?;
    let git = repository.objects();
    directory.require_base(&repository, &workspace.repository)?;
    workspace
        .history
        .set_head(foundation.filter(|foundation| *foundation != directory.base));
    let files = workspace.head_or_base();
    repository.set_branch(&directory.base_branch, &files)?;
    git.set_head(&format!("refs/heads/{}", directory.base_branch))?;
    let tree = tree_of(git, &files)?;
    let mut external = None;
    let (mut cache, indexed) = match there {
        Some(mut there) => {
            TreeChange::new(workspace, git).change_files(there.tree, tree, &mut there.cache)?;
            external = (there.commit == directory.base).then_some(there.external);
            (there.cache, Some(there.commit))
        }
        None => {
            let writer = CheckoutWriter {
                directory,
                root: disk.root(),
            };
            (writer.write_tree(git, tree)?, None)
        }
    };
    let external = match external {
        Some(external) => external,
        None => repository.external_content(&directory.base)?,
    };
    record_external_content(workspace, &repository, external)?;
    cache.seal();
    workspace.history.begin(tree);
    if indexed == Some(files) {
        // The paths in this git directory are those of the folder in which it was created, so they must be
        // written again.
        workspace.view.show(workspace.view_source(), None)?;
    } else {
        workspace.write_index(&repository)?;
    }
    // After the `.git` file is written, which belongs to the state of the worktree.
    workspace.begin_scans(git, cache)
}

/// Records the content that the base does not contain. Files of Git LFS whose content is in the worktree are not missing.
fn record_external_content(
    workspace: &Workspace,
    repository: &git::BareRepository,
    mut external: git::ExternalContent,
) -> Result<(), WorkspaceError> {
    let (directory, disk) = (&workspace.git, &workspace.disk);
    if !directory.lfs.is_off() {
        let files = repository.lfs_files(&directory.base)?;
        let present = files.into_iter().filter(|file| directory.lfs.has(&file.pointer));
        let present: BTreeSet<String> = present.map(|file| file.path).collect();
        external.lfs_files.retain(|path| !present.contains(path));
        disk.set_lfs_contents(present);
    }
    disk.set_external(external);
    Ok(())
}

/// Writer of a tree's files into an empty folder.
pub(super) struct CheckoutWriter<'a> {
    pub(super) directory: &'a GitDirectory,
    pub(super) root: &'a WorkspaceRoot,
}

impl CheckoutWriter<'_> {
    /// Writes all files of a tree.
    pub(super) fn write_tree(&self, git: &git2::Repository, tree: Oid) -> Result<StatCache, WorkspaceError> {
        let leaves = self.find_leaves(git, tree, Path::new(""), 0)?;
        let files = leaves
            .iter()
            .map(|leaf| (leaf.path.as_path(), (leaf.id, leaf.mode)));
        let attributes = read_attributes(git, files);
        // With a runner, every file goes over one socket, so more threads would only wait for each other.
        let most = if self.root.own_folder().is_some() {
            MAX_THREADS
        } else {
            1
        };
        let list = SharedList::new(&leaves, PART_FILES);
        let threads = most.min(leaves.len().div_ceil(PART_FILES));
        let mut cache = StatCache::default();
        for written in share_work(threads, || self.write_leaves(&list, &attributes)) {
            cache.merge(written?);
        }
        Ok(cache)
    }

    fn write_leaves(
        &self,
        list: &SharedList<'_, TreeLeaf>,
        attributes: &AttributeFiles,
    ) -> Result<StatCache, WorkspaceError> {
        let repository = self.directory.open()?;
        let mut attributes = CheckoutAttributes::new(attributes, &self.directory.lfs);
        let mut cache = StatCache::default();
        for leaf in iter::from_fn(|| list.take_part()).flatten() {
            let blob = repository.objects().find_blob(leaf.id)?;
            let content = attributes.convert(&leaf.path, blob.content(), (leaf.id, leaf.mode));
            if let Some(stat) = self.root.write_blob(&leaf.path, &content, leaf.mode)? {
                cache.put(&leaf.path, stat, leaf.id);
            }
        }
        Ok(cache)
    }

    /// Collects files and links of a tree. For a submodule, only its folder is created; its content is never
    /// fetched.
    fn find_leaves(
        &self,
        git: &git2::Repository,
        tree: Oid,
        folder: &Path,
        depth: usize,
    ) -> Result<Vec<TreeLeaf>, WorkspaceError> {
        if depth > MAX_DEPTH {
            let problem = format!("{} is nested too deep", folder.display());
            return Err(WorkspaceError::Trouble(problem));
        }
        let mut found = Vec::new();
        for entry in &git.find_tree(tree)? {
            if !is_plain_name(entry.name_bytes()) {
                tracing::warn!(folder = %folder.display(), "an entry with an unsafe name is left out");
                continue;
            }
            let path = folder.join(os_name(entry.name_bytes()));
            match entry.kind() {
                Some(ObjectType::Tree) => {
                    found.extend(self.find_leaves(git, entry.id(), &path, depth + 1)?)
                }
                Some(ObjectType::Blob) => found.push(TreeLeaf {
                    path,
                    id: entry.id(),
                    mode: entry.filemode(),
                }),
                _ => self.root.make_folder(&path)?,
            }
        }
        Ok(found)
    }
}
