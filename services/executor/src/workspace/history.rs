//! Branch, commits, snapshot and diff of a workspace.

use std::path::Path;

use domain::{CommitAuthor, CommitId};
use git::BareRepository;
use git2::Oid;

use super::{SeenState, Workspace, WorkspaceError, scan::list_tracked_files};

/// Limits of files at the base: listed ones, and read ones.
const MAX_FILES: usize = 200_000;
const MAX_TEXTS: usize = 200;
/// Limit of a read file, in bytes.
const MAX_TEXT: usize = 256 * 1024;

/// Everything that differs from the base commit.
pub(crate) struct SnapshotPack {
    pub(crate) branch: Option<String>,
    pub(crate) head: Option<CommitId>,
    pub(crate) commit: CommitId,
    pub(crate) files_changed: u32,
    /// Files and folders that the pack does not contain, each with the reason.
    pub(crate) omitted: Vec<String>,
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
        self.lock().head.clone().unwrap_or_else(|| self.base.clone())
    }

    /// Creates a branch at the base, or reports that it exists. Commits of an earlier branch are dropped;
    /// their changes stay in the files.
    pub(crate) fn create_branch(&self, name: &str) -> Result<String, String> {
        let refuse = |why: &str| {
            Err(format!(
                "{name:?} {why}. Choose a name such as feat/ENG-12-short-title."
            ))
        };
        if name == self.base_branch || name == "HEAD" {
            return refuse("is the base branch, which is never changed");
        }
        let is_valid = name.len() <= 200 && git2::Branch::name_is_valid(name).unwrap_or(false);
        if !is_valid || !name.is_ascii() {
            return refuse("is not a branch name that git accepts");
        }
        let (branch, head) = self.branch();
        let free = match &branch {
            Some(branch) if branch == name => name.to_owned(),
            Some(_) | None => self.free_name(name).map_err(|problem| for_model(&problem))?,
        };
        let (asked, name) = (name, free.as_str());
        match branch {
            Some(branch) if branch == name => {
                return Ok(format!("The branch {name} exists and is checked out."));
            }
            Some(_) | None => {}
        }
        let left_behind = branch.as_ref().filter(|_| head.as_ref() != Some(&self.base));
        self.set_branch(name, branch.as_deref())
            .map_err(|problem| for_model(&problem))?;
        let rest = left_behind.map_or_else(String::new, |old| {
            format!(
                " It has no commits yet: the files are as they were on {old}, and commit_changes commits all of it in one commit."
            )
        });
        let other = match asked == name {
            true => String::new(),
            false => {
                format!(" The remote has a branch with the name {asked}, or one that stands in its way.")
            }
        };
        Ok(format!(
            "Created the branch {name} at {} and checked it out.{other}{rest}",
            self.base.short()
        ))
    }

    /// Returns the name if a new branch on the remote can have it. Otherwise it returns the first similar
    /// free name: with `-` for `/`, then with a number.
    fn free_name(&self, name: &str) -> Result<String, WorkspaceError> {
        let mirror = BareRepository::open(&self.mirror)?;
        if self.goes_on_with(&mirror, name)? {
            return Ok(name.to_owned());
        }
        let taken = mirror.taken_names()?;
        let is_free = |name: &str| {
            !taken.contains(name)
                && git::find_conflicting_branch(name, taken.iter().map(String::as_str)).is_none()
        };
        if is_free(name) {
            return Ok(name.to_owned());
        }
        let flat = name.replace('/', "-");
        let base = match taken.contains(name) || taken.contains(&flat) {
            // A number suffices, unless another branch occupies a folder of the name.
            true if git::find_conflicting_branch(name, taken.iter().map(String::as_str)).is_none() => name,
            true | false => flat.as_str(),
        };
        let numbered = (2..10_000).map(|number| format!("{base}-{number}"));
        let mut names = std::iter::once(base.to_owned()).chain(numbered);
        let free = names.find(|name| is_free(name));
        Ok(free.unwrap_or_else(|| name.to_owned()))
    }

    /// Returns true when this work continues the branch: its head is the base commit, which is not a commit
    /// of the base branch.
    fn goes_on_with(&self, mirror: &BareRepository, name: &str) -> Result<bool, WorkspaceError> {
        let Some(head) = mirror.branch_head(name)? else {
            return Ok(false);
        };
        let is_ours = mirror.is_descendant(&head, &self.base)?;
        let Some(main) = mirror.branch_head(&self.base_branch)? else {
            return Ok(is_ours);
        };
        Ok(is_ours && !mirror.is_descendant(&main, &self.base)?)
    }

    fn set_branch(&self, name: &str, old: Option<&str>) -> Result<(), WorkspaceError> {
        let repository = self.git()?;
        // Git cannot store both `a` and `a/b`, so the old branch is deleted before the new one is created.
        if let Some(old) = old {
            repository
                .objects()
                .set_head(&format!("refs/heads/{}", self.base_branch))?;
            repository
                .objects()
                .find_reference(&format!("refs/heads/{old}"))?
                .delete()?;
        }
        repository.set_branch(name, &self.base)?;
        repository.objects().set_head(&format!("refs/heads/{name}"))?;
        let mut state = self.lock();
        state.branch = Some(name.to_owned());
        state.head = Some(self.base.clone());
        drop(state);
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
        let (Some(branch), head) = self.branch() else {
            return Err("There is no branch yet. Call create_branch first.".to_owned());
        };
        let replaced = head.filter(|head| amend && *head != self.base);
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
                self.left_out()
            )),
            Ok(None) => Err(format!(
                "There is nothing to commit: no file differs from the last commit. Files named by .gitignore are \
                 never committed.{}",
                self.left_out()
            )),
            Err(problem) => Err(for_model(&problem)),
        }
    }

    /// Returns a note for the model about files that the last scan omitted; empty if none were.
    pub(crate) fn left_out(&self) -> String {
        let mut state = self.lock();
        state.told = state.omitted.clone();
        state.omitted.told()
    }

    /// Records that a file belongs to the change, even at a path of by-products.
    pub(crate) fn note_written(&self, path: &Path) {
        self.lock().written.insert(path.to_owned());
    }

    /// Returns the note about omitted files if the model has not received it.
    pub(crate) fn news(&self) -> String {
        let state = self.lock();
        let is_known = state.told == state.omitted;
        drop(state);
        if is_known { String::new() } else { self.left_out() }
    }

    fn commit_to(
        &self,
        branch: &str,
        replaced: Option<&CommitId>,
        message: &str,
        signed: (&CommitAuthor, i64),
    ) -> Result<Option<(CommitId, u32)>, WorkspaceError> {
        let repository = self.git()?;
        let head = self.head_or_base();
        let tree = self.tree(repository.objects())?;
        self.refuse_excess()?;
        let last = repository.objects().find_commit(Oid::from_str(head.as_str())?)?;
        if replaced.is_none() && last.tree_id() == tree {
            return Ok(None);
        }
        let parent = match replaced {
            Some(_) => commit_id(last.parent_id(0)?)?,
            None => head,
        };
        let commit = write_commit(
            repository.objects(),
            tree,
            &parent,
            &format!("{message}\n"),
            signed,
        )?;
        self.refuse_large_commit(&repository, &commit)?;
        let files = repository.unified_diff(&parent, &commit, 0)?.files_changed;
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
        self.lock().head = Some(commit.clone());
        self.write_index(repository)
    }

    #[cfg(test)]
    pub(crate) fn parents(&self, commit: &CommitId) -> Vec<CommitId> {
        let repository = self.git().unwrap();
        let commit = repository
            .objects()
            .find_commit(Oid::from_str(commit.as_str()).unwrap())
            .unwrap();
        commit.parent_ids().map(|id| commit_id(id).unwrap()).collect()
    }

    /// Packs everything that differs from the base, committed or not, as a commit. Blocks.
    pub(crate) fn snapshot(&self, time_s: i64) -> Result<SnapshotPack, WorkspaceError> {
        let repository = self.git()?;
        let (branch, head) = self.branch();
        let commit = self.snapshot_commit(&repository, time_s)?;
        // After the scan above, which records the files that are not stored.
        self.refuse_excess()?;
        let new: Vec<CommitId> = head
            .iter()
            .filter(|head| **head != self.base)
            .cloned()
            .chain([commit.clone()])
            .collect();
        let pack = self.pack(&repository, &new)?;
        let files_changed = repository.unified_diff(&self.base, &commit, 0)?.files_changed;
        let head = head.filter(|head| *head != self.base);
        Ok(SnapshotPack {
            branch,
            head,
            commit,
            files_changed,
            omitted: self.lock().omitted.named().to_vec(),
            pack,
        })
    }

    /// Computes the difference between the base and the current files. Blocks.
    pub(crate) fn diff(&self, max_bytes: usize) -> Result<WorkspaceDiff, WorkspaceError> {
        let repository = self.git()?;
        // The time does not matter, because the commit serves this comparison only.
        let commit = self.snapshot_commit(&repository, 0)?;
        let diff = repository.unified_diff(&self.base, &commit, max_bytes)?;
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
        write_commit(git, self.tree(git)?, &self.head_or_base(), "Snapshot\n", signed)
    }

    /// Returns true when files, branch or head changed since the last call. Blocks.
    pub(crate) fn has_changed(&self) -> Result<bool, WorkspaceError> {
        let repository = self.git()?;
        let tree = self.tree(repository.objects())?;
        let (branch, head) = self.branch();
        let changed = self.note_seen((tree, branch, head));
        if changed && let Err(problem) = self.tidy_objects(&repository) {
            tracing::warn!(run = %self.run, %problem, "objects that nothing names stay");
        }
        Ok(changed)
    }

    fn note_seen(&self, now: SeenState) -> bool {
        let mut state = self.lock();
        let changed = state.seen.as_ref() != Some(&now) || state.seen_excess != state.excess;
        state.seen_excess = state.excess.clone();
        let undone = std::mem::take(&mut state.undone);
        if let Some(before) = state
            .seen
            .clone()
            .filter(|before| !undone && is_undoable(before, &now))
        // The oldest steps are dropped at the limit.
        {
            let excess = (state.undo.len() + 1).saturating_sub(super::undo::MAX_UNDO);
            state.undo.drain(..excess);
            state.undo.push(before);
        }
        state.seen = Some(now);
        changed
    }

    /// Tree of the files at the last scan.
    pub(crate) fn last_tree(&self) -> Option<String> {
        self.lock().seen.as_ref().map(|(tree, ..)| tree.to_string())
    }

    /// Lists every file at the base, with its text if it is wanted and within the limits. Blocks.
    pub(crate) fn base_files(
        &self,
        is_wanted: fn(&str) -> bool,
    ) -> Result<Vec<(String, Option<String>)>, WorkspaceError> {
        let repository = self.git()?;
        let git = repository.objects();
        let tree = git.find_commit(Oid::from_str(self.base.as_str())?)?.tree()?;
        let (mut found, mut texts) = (Vec::new(), 0);
        for (path, (id, mode)) in list_tracked_files(git, &tree)?.into_iter().take(MAX_FILES) {
            let Some(path) = path.to_str().map(str::to_owned) else {
                continue;
            };
            let is_read = matches!(mode, 0o100_644 | 0o100_755) && texts < MAX_TEXTS && is_wanted(&path);
            let text = is_read.then(|| git.find_blob(id)).transpose()?;
            let text = text.filter(|blob| blob.size() <= MAX_TEXT);
            texts += usize::from(text.is_some());
            found.push((
                path,
                text.map(|blob| String::from_utf8_lossy(blob.content()).into_owned()),
            ));
        }
        Ok(found)
    }

    /// Returns the commit from which the repository's own instructions are read: the newest commit of the
    /// base branch that is an ancestor of the base.
    ///
    /// At the head of a pull request, its author could instruct the model. `None` if the base branch is
    /// unknown.
    fn instructing_commit(&self) -> Result<Option<CommitId>, WorkspaceError> {
        // The folder belongs to the user who started the command, so all of its files are trusted.
        if self.adopted.is_some() {
            return Ok(Some(self.base.clone()));
        }
        let mirror = BareRepository::open(&self.mirror)?;
        match mirror.branch_head(&self.base_branch)? {
            Some(head) => Ok(mirror.merge_base(&head, &self.base)?),
            None => Ok(None),
        }
    }

    /// Replaces the text of guides by that of the base branch. Blocks.
    pub(crate) fn with_guides_of_base_branch(
        &self,
        mut files: Vec<(String, Option<String>)>,
        is_guide: fn(&str) -> bool,
    ) -> Result<Vec<(String, Option<String>)>, WorkspaceError> {
        let commit = self.instructing_commit()?;
        if commit.as_ref() == Some(&self.base) {
            return Ok(files);
        }
        let repository = self.git()?;
        for (path, text) in files
            .iter_mut()
            .filter(|(path, text)| text.is_some() && is_guide(path))
        {
            let trusted = match &commit {
                Some(commit) => repository.read_file(commit, path)?,
                None => None,
            };
            *text = trusted.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        }
        Ok(files)
    }

    /// Returns the repository's instructions from the base branch, truncated to `max_bytes`.
    pub(crate) fn instructions(&self, max_bytes: usize) -> Result<String, WorkspaceError> {
        let Some(commit) = self.instructing_commit()? else {
            return Ok(String::new());
        };
        let repository = self.git()?;
        for name in ["AGENTS.md", "CLAUDE.md"] {
            if let Some(bytes) = repository.read_file(&commit, name)? {
                return Ok(String::from_utf8_lossy(&bytes[..bytes.len().min(max_bytes)]).into_owned());
            }
        }
        Ok(String::new())
    }

    /// Returns a file at the base; `None` if it does not exist or is too large.
    pub(crate) fn at_base(&self, path: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
        Ok(self.git()?.read_file(&self.base, path)?)
    }
}

/// Returns true when an undo has an effect: the files differ, or the head of the same branch.
fn is_undoable((tree, branch, head): &SeenState, now: &SeenState) -> bool {
    *tree != now.0 || (*branch == now.1 && *head != now.2)
}

fn commit_id(id: Oid) -> Result<CommitId, WorkspaceError> {
    id.to_string()
        .parse()
        .map_err(|_| WorkspaceError::Trouble("git gave a strange commit id".to_owned()))
}

fn write_commit(
    git: &git2::Repository,
    tree: Oid,
    parent: &CommitId,
    message: &str,
    (author, time_s): (&CommitAuthor, i64),
) -> Result<CommitId, WorkspaceError> {
    let who = git::commit_signature(author, time_s)?;
    let parent = git.find_commit(Oid::from_str(parent.as_str())?)?;
    commit_id(git.commit(None, &who, &who, message, &git.find_tree(tree)?, &[&parent])?)
}

fn for_model(problem: &WorkspaceError) -> String {
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
