//! Merge of a pull request's head into the base of a workspace.

use domain::CommitId;
use git2::Oid;

use super::{
    Workspace, WorkspaceError,
    git_directory::{WorkspaceMerge, tree_of},
    tree_change::TreeChange,
};

impl Workspace {
    /// Merges the head of a pull request into the base, with markers in the files that git cannot merge. The merge
    /// is the starting point of the work: it cannot be undone. Blocks.
    ///
    /// With `is_restored` the files stay, because a snapshot replaces them.
    pub(crate) fn begin_merge(&self, head: CommitId, is_restored: bool) -> Result<(), WorkspaceError> {
        let repository = self.git.open()?;
        let merge = match repository.prepare_merge(&head, &self.git.base) {
            Ok(merge) => merge,
            Err(git::Error::Missing { what, .. }) => {
                return Err(WorkspaceError::NotFound(format!(
                    "{} lacks {what}",
                    self.repository
                )));
            }
            Err(error) => return Err(error.into()),
        };
        self.git.set_merge(WorkspaceMerge {
            head,
            conflicts: merge.conflicts,
        })?;
        if is_restored {
            return Ok(());
        }
        let git = repository.objects();
        let (now, base) = (self.tree(git)?, self.git.base_tree(git)?);
        TreeChange::new(self, git).move_files((now, base), tree_of(git, &merge.preview)?)?;
        self.write_index(&repository)?;
        self.settle()
    }

    /// Audits a tree of this workspace as the result of its merge; `None` without a merge. Blocks.
    pub(crate) fn audit_merge(&self, tree: &str) -> Result<Option<git::MergeAudit>, WorkspaceError> {
        let Some(merge) = self.git.merge() else {
            return Ok(None);
        };
        let repository = self.git.open()?;
        // The preview is not part of the work, so it leaves no object.
        repository.write_to_memory()?;
        let audit = repository.audit_merge(&merge.head, &self.git.base, Oid::from_str(tree)?)?;
        Ok(Some(audit))
    }
}

#[cfg(test)]
mod tests {
    use domain::{CommitAuthor, CommitId, ConflictKind, MergeSide};
    use git2::{Oid, Repository};

    use crate::{
        inspection::inspect_change,
        tools::tests::World,
        workspace::{SnapshotRestore, Workspace, tests::commit_tree},
    };

    /// Commits one file on top of a commit.
    fn commit_file(git: &Repository, parent: &CommitId, path: &str, text: &str) -> CommitId {
        let base = git.find_commit(Oid::from_str(parent.as_str()).unwrap()).unwrap();
        let mut tree = git.treebuilder(Some(&base.tree().unwrap())).unwrap();
        tree.insert(path, git.blob(text.as_bytes()).unwrap(), 0o100_644)
            .unwrap();
        commit_tree(git, tree.write().unwrap(), Some(parent))
    }

    /// Starts a workspace whose base conflicts with a pull request in `conflict.txt`.
    fn build_merge() -> (World, CommitId) {
        let world = World::new();
        let workspace = &world.call.workspace;
        let mirror = git::BareRepository::open(&workspace.git.mirror).unwrap();
        let head = commit_file(mirror.objects(), &workspace.git.base, "conflict.txt", "theirs\n");
        (world, head)
    }

    fn write(workspace: &Workspace, path: &str, text: &str) {
        std::fs::write(workspace.root().path().join(path), text).unwrap();
    }

    #[test]
    fn merged_work_has_two_parents() {
        let (world, head) = build_merge();
        let workspace = &world.call.workspace;
        workspace.begin_merge(head.clone(), false).unwrap();
        assert_eq!(
            world.file("conflict.txt"),
            "theirs\n",
            "git merges what does not conflict"
        );
        assert_eq!(workspace.git.merge().unwrap().conflicts, []);
        workspace.create_branch("fix/ENG-12-x").unwrap();
        let (author, at) = (CommitAuthor::journeyman(), 7);
        workspace
            .commit_changes("Merge main", false, (&author, at))
            .unwrap();
        let first = workspace.history.head().unwrap();
        assert_eq!(world.parents(&first), [head.clone(), workspace.git.base.clone()]);
        write(workspace, "conflict.txt", "both\n");
        workspace
            .commit_changes("Merge main", true, (&author, at))
            .unwrap();
        let amended = workspace.history.head().unwrap();
        assert_eq!(world.parents(&amended), [head, workspace.git.base.clone()]);
        write(workspace, "conflict.txt", "both again\n");
        workspace.commit_changes("Fix", false, (&author, at)).unwrap();
        assert_eq!(world.parents(&workspace.history.head().unwrap()), [amended]);
    }

    #[test]
    fn snapshot_of_merge_restores_elsewhere() {
        let (world, head) = build_merge();
        let workspace = &world.call.workspace;
        workspace.begin_merge(head.clone(), false).unwrap();
        write(workspace, "conflict.txt", "both\n");
        let kept = workspace.snapshot(1).unwrap();
        let again = World::new();
        let other = &again.call.workspace;
        let mirror = git::BareRepository::open(&other.git.mirror).unwrap();
        let same = commit_file(mirror.objects(), &other.git.base, "conflict.txt", "theirs\n");
        assert_eq!((&same, &other.git.base), (&head, &workspace.git.base));
        other.begin_merge(head.clone(), true).unwrap();
        let restore = SnapshotRestore {
            branch: kept.branch,
            head: kept.head,
            commit: kept.commit,
            pack: kept.pack,
        };
        other.restore(restore).unwrap();
        assert_eq!(again.file("conflict.txt"), "both\n");
        assert_eq!(other.git.merge().unwrap().head, head);
    }

    #[test]
    fn inspection_names_lost_hunks() {
        let (world, head) = build_merge();
        let workspace = &world.call.workspace;
        workspace.begin_merge(head, false).unwrap();
        assert_eq!(inspect_change(workspace, "").unwrap().lost_hunks, []);
        write(workspace, "conflict.txt", "mine\n");
        let report = inspect_change(workspace, "").unwrap();
        let lost: Vec<_> = report
            .lost_hunks
            .iter()
            .map(|hunk| (hunk.side, hunk.path.as_str(), &hunk.lines[..]))
            .collect();
        assert_eq!(
            lost,
            [(MergeSide::PullRequest, "conflict.txt", &["theirs".to_owned()][..])]
        );
        assert!(report.marked_files.is_empty());
    }

    #[test]
    fn conflicting_files_have_markers() {
        let world = World::new();
        let (ours, base) = {
            let workspace = &world.call.workspace;
            let mirror = git::BareRepository::open(&workspace.git.mirror).unwrap();
            let git = mirror.objects();
            let start = &workspace.git.base;
            (
                commit_file(git, start, "conflict.txt", "ours\n"),
                commit_file(git, start, "conflict.txt", "base\n"),
            )
        };
        let world = world.at(base);
        let workspace = &world.call.workspace;
        workspace.begin_merge(ours, false).unwrap();
        let merge = workspace.git.merge().unwrap();
        let found: Vec<_> = merge
            .conflicts
            .iter()
            .map(|file| (file.path.as_str(), file.kind))
            .collect();
        assert_eq!(found, [("conflict.txt", ConflictKind::BothAdded)]);
        let text = world.file("conflict.txt");
        assert!(
            text.contains("<<<<<<< pull request\nours\n") && text.contains("base\n>>>>>>> base branch\n"),
            "{text}"
        );
        let report = inspect_change(workspace, "").unwrap();
        assert_eq!(report.marked_files, ["conflict.txt"]);
    }
}
