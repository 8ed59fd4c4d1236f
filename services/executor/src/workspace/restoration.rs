//! Restores files of a workspace: from the foundation to the base commit, from there to a snapshot, and from
//! before the latest change.

use domain::CommitId;
use git2::Oid;

use super::{
    SnapshotRestore, Workspace, WorkspaceError, git_directory::tree_of, omissions::MAX_NAMED,
    stat_cache::StatCache, tree_change::TreeChange,
};

impl Workspace {
    /// Replaces the foundation's files by the base's. Files that setup created stay. Blocks.
    pub(crate) fn enter_base(&self) -> Result<(), WorkspaceError> {
        let repository = self.git.open()?;
        let git = repository.objects();
        let (foundation, base) = (tree_of(git, &self.head_or_base())?, self.git.base_tree(git)?);
        let now = self.tree(git)?;
        self.history.set_head(None);
        repository.set_branch(&self.git.base_branch, &self.git.base)?;
        TreeChange::new(self, git).move_files((now, foundation), base)?;
        self.write_index(&repository)?;
        self.settle()
    }

    /// Replaces the base's files by a snapshot's. Files that setup created stay. Blocks.
    pub(crate) fn restore(&self, restore: SnapshotRestore) -> Result<(), WorkspaceError> {
        let repository = self.git.open()?;
        let git = repository.objects();
        let now = self.tree(git)?;
        let base = self.git.base_tree(git)?;
        self.git.import(&repository, &restore)?;
        let SnapshotRestore {
            branch, head, commit, ..
        } = restore;
        let head = branch
            .as_ref()
            .map(|_| head.unwrap_or_else(|| self.git.base.clone()));
        self.history.set_branch(branch, head);
        TreeChange::new(self, git).move_files((now, base), tree_of(git, &commit)?)?;
        self.write_index(&repository)?;
        self.settle()
    }

    /// Restores the files from before the latest change, and the head that the branch had. Blocks.
    ///
    /// # Errors
    /// Returns a text for the model.
    pub(crate) fn undo(&self) -> Result<String, String> {
        let Some(before) = self.history.take_step() else {
            return Err("There is nothing to undo.".to_owned());
        };
        let restored = self.restore_files(before.tree).map_err(|problem| {
            format!("Not everything could be put back: {problem}. Inspect the files with diff, and repair them by hand.")
        });
        // Without the mark, the next scan would record the undo as a step.
        self.history.mark_undone();
        let mut paths = restored?;
        let uncommitted = self
            .return_to_head(before.branch, before.head)
            .map_err(|problem| {
                format!("The files are put back, but the commit could not be taken back: {problem}.")
            })?;
        let count = paths.len();
        paths.truncate(MAX_NAMED);
        let mut text = uncommitted.map_or_else(String::new, |commit| {
            format!(
                "Took the commit {} back; its changes stay in the files unless they are put back too. ",
                commit.short()
            )
        });
        if count > 0 || text.is_empty() {
            text.push_str(&format!("Put {count} file(s) back: {}", paths.join(", ")));
        }
        Ok(text)
    }

    /// Moves a branch back to an earlier head. Returns the dropped commit. If another branch is checked out
    /// by now, nothing changes.
    fn return_to_head(
        &self,
        branch: Option<String>,
        head: Option<CommitId>,
    ) -> Result<Option<CommitId>, WorkspaceError> {
        let (now, newest) = self.history.branch();
        let (Some(branch), Some(head)) = (branch, head) else {
            return Ok(None);
        };
        if now.as_ref() != Some(&branch) || newest.as_ref() == Some(&head) {
            return Ok(None);
        }
        self.move_branch(&self.git.open()?, &branch, &head)?;
        Ok(newest)
    }

    fn restore_files(&self, wanted: Oid) -> Result<Vec<String>, WorkspaceError> {
        let repository = self.git.open()?;
        let git = repository.objects();
        let now = self.tree(git)?;
        // The cache is discarded: the next scan fills it.
        TreeChange::new(self, git).change_files(now, wanted, &mut StatCache::default())
    }
}
