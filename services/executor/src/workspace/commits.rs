//! Branch, commits, snapshot and diff of a workspace.

use domain::{CommitAuthor, CommitId};
use git2::Oid;

use super::{ScanScope, Workspace, WorkspaceError};

/// Everything that differs from the base commit.
pub(crate) struct SnapshotPack {
    pub(crate) branch: Option<String>,
    pub(crate) head: Option<CommitId>,
    pub(crate) commit: CommitId,
    pub(crate) files_changed: u32,
    /// Files and folders that the pack does not contain, each with the reason.
    pub(crate) omitted: Vec<String>,
    /// Those of them that tools wrote and ignore rules name, by path.
    pub(crate) ignored: Vec<String>,
    pub(crate) pack: Vec<u8>,
}

/// Difference between the base commit and the files.
pub(crate) struct WorkspaceDiff {
    pub(crate) text: String,
    pub(crate) truncated: bool,
    pub(crate) files_changed: u32,
}

impl Workspace {
    /// Returns the head of the branch, or the base commit.
    pub(super) fn head_or_base(&self) -> CommitId {
        self.history.head().unwrap_or_else(|| self.git.base.clone())
    }

    /// Creates a branch at the base, or reports that it exists. Commits of an earlier branch are dropped;
    /// their changes stay in the files.
    pub(crate) fn create_branch(&self, name: &str) -> Result<String, String> {
        let refuse = |why: &str| {
            Err(format!(
                "{name:?} {why}. Choose a name such as feat/ENG-12-short-title."
            ))
        };
        if name == self.git.base_branch || name == "HEAD" {
            return refuse("is the base branch, which is never changed");
        }
        let is_valid = name.len() <= 200 && git2::Branch::name_is_valid(name).unwrap_or(false);
        if !is_valid || !name.is_ascii() {
            return refuse("is not a branch name that git accepts");
        }
        let (branch, head) = self.history.branch();
        let is_checked_out = |name: &str| branch.as_deref() == Some(name);
        let free = if is_checked_out(name) {
            name.to_owned()
        } else {
            self.git
                .free_name(name)
                .map_err(|problem| explain_failure(&problem))?
        };
        if is_checked_out(&free) {
            return Ok(format!("The branch {free} exists and is checked out."));
        }
        let left_behind = branch.as_ref().filter(|_| head.as_ref() != Some(&self.git.base));
        self.set_branch(&free, branch.as_deref())
            .map_err(|problem| explain_failure(&problem))?;
        let rest = left_behind.map_or_else(String::new, |old| {
            format!(
                " It has no commits yet: the files are as they were on {old}, and commit_changes commits all of it in one commit."
            )
        });
        let other = if free == name {
            String::new()
        } else {
            format!(" The remote has a branch with the name {name}, or one that conflicts with it.")
        };
        Ok(format!(
            "Created the branch {free} at {} and checked it out.{other}{rest}",
            self.git.base.short()
        ))
    }

    fn set_branch(&self, name: &str, old: Option<&str>) -> Result<(), WorkspaceError> {
        let repository = self.git.open()?;
        // Git cannot store both `a` and `a/b`, so the old branch is deleted before the new one is created.
        if let Some(old) = old {
            repository
                .objects()
                .set_head(&format!("refs/heads/{}", self.git.base_branch))?;
            repository
                .objects()
                .find_reference(&format!("refs/heads/{old}"))?
                .delete()?;
        }
        repository.set_branch(name, &self.git.base)?;
        repository.objects().set_head(&format!("refs/heads/{name}"))?;
        self.history
            .set_branch(Some(name.to_owned()), Some(self.git.base.clone()));
        self.write_index(&repository)
    }

    /// Commits all files; with `amend`, the commit replaces the last one. Equal files, message, time and head
    /// give the same commit id.
    pub(crate) fn commit_changes(
        &self,
        message: &str,
        amend: bool,
        (author, time_s): (&CommitAuthor, i64),
    ) -> Result<String, String> {
        let message = message.trim();
        if message.is_empty() {
            return Err("The message is empty. Say in one line what the commit changes.".to_owned());
        }
        let (Some(branch), head) = self.history.branch() else {
            return Err("There is no branch yet. Call create_branch first.".to_owned());
        };
        let replaced = head.filter(|head| amend && *head != self.git.base);
        if amend && replaced.is_none() {
            return Err(format!(
                "There is no commit to amend: {branch} has none of its own yet. Call commit_changes without amend."
            ));
        }
        match self.commit_to(&branch, replaced.as_ref(), message, (author, time_s)) {
            Ok(Some((commit, files))) => Ok(format!(
                "Committed {files} changed file(s) as {} on {branch}{}.{}",
                commit.short(),
                replaced.map_or_else(String::new, |old| format!(", in the place of {}", old.short())),
                self.scanner.report_omissions()
            )),
            Ok(None) => Err(format!(
                "There is nothing to commit: no file differs from the last commit. Files named by .gitignore are \
                 never committed.{}",
                self.scanner.report_omissions()
            )),
            Err(problem) => Err(explain_failure(&problem)),
        }
    }

    fn commit_to(
        &self,
        branch: &str,
        replaced: Option<&CommitId>,
        message: &str,
        signed: (&CommitAuthor, i64),
    ) -> Result<Option<(CommitId, u32)>, WorkspaceError> {
        let repository = self.git.open()?;
        let head = self.head_or_base();
        let tree = self.tree(repository.objects())?;
        self.scanner.unstored().refuse(self.git.objects.limits)?;
        let last = repository.objects().find_commit(Oid::from_str(head.as_str())?)?;
        if replaced.is_none() && last.tree_id() == tree {
            return Ok(None);
        }
        let parents: Vec<CommitId> = match replaced {
            Some(_) => last
                .parent_ids()
                .map(git::convert_commit_id)
                .collect::<Result<_, _>>()?,
            None if head == self.git.base => self.git.first_parents(),
            None => vec![head],
        };
        let commit = write_commit(
            repository.objects(),
            tree,
            &parents,
            &format!("{message}\n"),
            signed,
        )?;
        self.git
            .objects
            .refuse_large_commit(&repository, &self.git.first_parents(), &commit)?;
        let before = parents.first().unwrap_or(&self.git.base);
        let files = repository.count_changed_files(before, &commit)?;
        self.move_branch(&repository, branch, &commit)?;
        Ok(Some((commit, files)))
    }

    /// Moves the branch to a commit, also in the git view of commands.
    pub(super) fn move_branch(
        &self,
        repository: &git::BareRepository,
        branch: &str,
        commit: &CommitId,
    ) -> Result<(), WorkspaceError> {
        repository.set_branch(branch, commit)?;
        self.history.set_head(Some(commit.clone()));
        self.write_index(repository)
    }

    /// Packs everything that differs from the base, committed or not, as a commit. Blocks.
    pub(crate) fn snapshot(&self, time_s: i64) -> Result<SnapshotPack, WorkspaceError> {
        let repository = self.git.open()?;
        let (branch, head) = self.history.branch();
        let commit = self.snapshot_commit(&repository, time_s)?;
        // After the scan above, which records the files that are not stored.
        self.scanner.unstored().refuse(self.git.objects.limits)?;
        let new: Vec<CommitId> = head
            .iter()
            .filter(|head| **head != self.git.base)
            .cloned()
            .chain([commit.clone()])
            .collect();
        let pack = self
            .git
            .objects
            .pack(&repository, &self.git.first_parents(), &new)?;
        let files_changed = repository.count_changed_files(&self.git.base, &commit)?;
        let head = head.filter(|head| *head != self.git.base);
        Ok(SnapshotPack {
            branch,
            head,
            commit,
            files_changed,
            omitted: self.scanner.omitted(),
            ignored: self.scanner.ignored(),
            pack,
        })
    }

    /// Computes the difference between the base and the current files. Blocks.
    pub(crate) fn diff(&self, max_bytes: usize) -> Result<WorkspaceDiff, WorkspaceError> {
        let repository = self.git.open()?;
        // The time does not matter, because the commit serves this comparison only.
        let commit = self.snapshot_commit(&repository, 0)?;
        let diff = repository.unified_diff(&self.git.base, &commit, max_bytes)?;
        Ok(WorkspaceDiff {
            text: diff.text,
            truncated: diff.truncated,
            files_changed: diff.files_changed,
        })
    }

    fn snapshot_commit(
        &self,
        repository: &git::BareRepository,
        time_s: i64,
    ) -> Result<CommitId, WorkspaceError> {
        let git = repository.objects();
        let signed = (&CommitAuthor::journeyman(), time_s);
        let parents = [self.head_or_base()];
        write_commit(git, self.tree(git)?, &parents, "Snapshot\n", signed)
    }

    /// Returns true when files, branch or head changed since the last call. Blocks.
    pub(crate) fn has_changed(&self) -> Result<bool, WorkspaceError> {
        self.has_changed_in(ScanScope::Worktree)
    }

    /// Like [`Workspace::has_changed`], for files of which only those in the scope may have changed. Blocks.
    pub(crate) fn has_changed_in(&self, scope: ScanScope) -> Result<bool, WorkspaceError> {
        let repository = self.lazy_repository();
        let tree = self.scan_tree(&repository, scope)?;
        let changed = self.history.note(tree, self.scanner.unstored());
        if changed {
            let (objects, base) = (&self.git.objects, &self.git.base);
            let tidied = repository
                .get()
                .and_then(|git| objects.tidy(&self.run, git, base, &self.history));
            // No later call returns this change, so a failure must not replace it.
            if let Err(problem) = tidied {
                tracing::warn!(run = %self.run, %problem, "objects that nothing names stay");
            }
        }
        Ok(changed)
    }

    /// Makes the result of setup the starting point: it is not a change and cannot be undone. Blocks.
    pub(crate) fn settle(&self) -> Result<(), WorkspaceError> {
        self.has_changed()?;
        self.history.clear_steps();
        Ok(())
    }
}

/// Writes a commit; no branch moves.
pub(super) fn write_commit(
    git: &git2::Repository,
    tree: Oid,
    parents: &[CommitId],
    message: &str,
    (author, time_s): (&CommitAuthor, i64),
) -> Result<CommitId, WorkspaceError> {
    let who = git::commit_signature(author, time_s)?;
    let parents = parents
        .iter()
        .map(|parent| git.find_commit(Oid::from_str(parent.as_str())?))
        .collect::<Result<Vec<_>, _>>()?;
    let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
    let commit = git.commit(None, &who, &who, message, &git.find_tree(tree)?, &parents)?;
    Ok(git::convert_commit_id(commit)?)
}

/// Explains to the model that nothing was written.
fn explain_failure(problem: &WorkspaceError) -> String {
    let advice = match problem {
        WorkspaceError::Unkeepable(_) => {
            return format!("Nothing was committed: {problem}. Then commit again.");
        }
        WorkspaceError::DiskFull(_) => "Delete generated files, or work on and commit later.",
        WorkspaceError::NotFound(_)
        | WorkspaceError::BadSnapshot(_)
        | WorkspaceError::BadRequest(_)
        | WorkspaceError::Trouble(_) => "Work on and commit later.",
    };
    format!("That could not be written: {problem}. Nothing was committed. {advice}")
}
