//! Moves a workspace's files after setup: from the foundation to the base commit, and from there to a
//! snapshot.

use std::path::Path;

use domain::CommitId;
use git2::{ObjectType, Oid, Tree};

use super::{SnapshotRestore, Workspace, WorkspaceError, scan::StatCache};

impl Workspace {
    /// Returns the commit whose files setup receives.
    pub(crate) fn foundation(&self) -> CommitId {
        self.head_or_base()
    }

    /// Replaces the foundation's files by the base's. Files that setup created stay. Blocks.
    pub(crate) fn enter_base(&self) -> Result<(), WorkspaceError> {
        let repository = self.git()?;
        let git = repository.objects();
        let (foundation, base) = (tree_of(git, &self.foundation())?, tree_of(git, &self.base)?);
        let now = self.tree(git)?;
        self.lock().head = None;
        repository.set_branch(&self.base_branch, &self.base)?;
        self.move_files(git, (now, foundation), base)?;
        self.write_index(&repository)?;
        self.settle()
    }

    /// Replaces the base's files by a snapshot's. Files that setup created stay. Blocks.
    pub(crate) fn restore(&self, restore: SnapshotRestore) -> Result<(), WorkspaceError> {
        let repository = self.git()?;
        let git = repository.objects();
        let now = self.tree(git)?;
        let base = tree_of(git, &self.base)?;
        let commit = self.take_in(&repository, restore)?;
        self.move_files(git, (now, base), tree_of(git, &commit)?)?;
        self.write_index(&repository)?;
        self.settle()
    }

    /// Changes the files from `now` to `wanted`. Files in neither `known` nor `wanted` stay, unless they are
    /// in the way.
    fn move_files(
        &self,
        git: &git2::Repository,
        (now, known): (Oid, Oid),
        wanted: Oid,
    ) -> Result<(), WorkspaceError> {
        let (known, target) = (git.find_tree(known)?, git.find_tree(wanted)?);
        let is_to_go = |path: &Path| known.get_path(path).is_ok() || is_in_the_way(&target, path);
        self.change_some_files(git, now, wanted, &mut StatCache::default(), &is_to_go)?;
        Ok(())
    }
}

/// Returns true when a file at this path prevents writing the tree.
fn is_in_the_way(tree: &Tree<'_>, path: &Path) -> bool {
    path.ancestors().any(|place| {
        tree.get_path(place)
            .is_ok_and(|entry| place == path || entry.kind() != Some(ObjectType::Tree))
    })
}

fn tree_of(git: &git2::Repository, commit: &CommitId) -> Result<Oid, WorkspaceError> {
    Ok(git.find_commit(Oid::from_str(commit.as_str())?)?.tree_id())
}
