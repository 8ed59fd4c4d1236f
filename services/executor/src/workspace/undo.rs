//! Changes the files from one tree to another. Only differing files are written.

use std::{io, path::Path};

use domain::CommitId;
use git2::{Delta, DiffDelta, DiffOptions, Oid};

use super::{
    FileKind, Workspace, WorkspaceError, checkout::write_blob, omissions::MAX_NAMED, paths::is_plain_name,
    scan::StatCache,
};

/// Limit of recorded undo steps.
pub(super) const MAX_UNDO: usize = 50;
/// File mode of a submodule's tree entry.
const SUBMODULE: i32 = 0o160_000;

impl Workspace {
    /// Restores the files from before the latest change, and the head that the branch had. Blocks.
    ///
    /// # Errors
    /// Returns a text for the model.
    pub(crate) fn undo(&self) -> Result<String, String> {
        let Some((tree, branch, head)) = self.lock().undo.pop() else {
            return Err("There is nothing to undo.".to_owned());
        };
        let restored = self.restore_files(tree).map_err(|problem| {
            format!("Not everything could be put back: {problem}. Look with diff and repair by hand.")
        });
        // Without the mark, the next scan would record the undo as a step.
        self.lock().undone = true;
        let mut paths = restored?;
        let uncommitted = self.take_back(branch, head).map_err(|problem| {
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
    fn take_back(
        &self,
        branch: Option<String>,
        head: Option<CommitId>,
    ) -> Result<Option<CommitId>, WorkspaceError> {
        let (now, newest) = self.branch();
        let (Some(branch), Some(head)) = (branch, head) else {
            return Ok(None);
        };
        if now.as_ref() != Some(&branch) || newest.as_ref() == Some(&head) {
            return Ok(None);
        }
        self.move_branch(&self.git()?, &branch, &head)?;
        Ok(newest)
    }

    fn restore_files(&self, wanted: Oid) -> Result<Vec<String>, WorkspaceError> {
        let repository = self.git()?;
        let now = self.tree(repository.objects())?;
        // The cache is discarded: the next scan fills it.
        self.change_files(repository.objects(), now, wanted, &mut StatCache::default())
    }

    /// Changes the files from `now` to `wanted`. Returns the differing paths.
    pub(super) fn change_files(
        &self,
        git: &git2::Repository,
        now: Oid,
        wanted: Oid,
        cache: &mut StatCache,
    ) -> Result<Vec<String>, WorkspaceError> {
        self.change_some_files(git, now, wanted, cache, &|_| true)
    }

    /// Like [`Workspace::change_files`], but deletes only those files for which `is_to_go` is true.
    pub(super) fn change_some_files(
        &self,
        git: &git2::Repository,
        now: Oid,
        wanted: Oid,
        cache: &mut StatCache,
        is_to_go: &dyn Fn(&Path) -> bool,
    ) -> Result<Vec<String>, WorkspaceError> {
        let (now, wanted) = (git.find_tree(now)?, git.find_tree(wanted)?);
        let mut options = DiffOptions::new();
        options.include_typechange(true);
        let diff = git.diff_tree_to_tree(Some(&now), Some(&wanted), Some(&mut options))?;
        let is_wanted = |delta: &DiffDelta<'_>| {
            delta.status() != Delta::Deleted || delta.old_file().path().is_some_and(is_to_go)
        };
        let deltas: Vec<DiffDelta<'_>> = diff.deltas().filter(is_plain).filter(is_wanted).collect();
        // Deletions precede writes, because a folder may be at the path of a new file.
        for delta in deltas.iter().filter(|delta| delta.status() != Delta::Added) {
            if let Some(path) = delta.old_file().path() {
                self.take_away(path)?;
                cache.forget(path);
            }
        }
        for delta in deltas.iter().filter(|delta| delta.status() != Delta::Deleted) {
            let file = delta.new_file();
            let path = file.path().unwrap_or(Path::new(""));
            let mode = i32::try_from(u32::from(file.mode())).unwrap_or(0o100_644);
            if mode == SUBMODULE {
                self.root().make_folder(path)?;
                continue;
            }
            self.clear_place(path)?;
            self.note_written(path);
            let blob = git.find_blob(file.id())?;
            if let Some(stat) = write_blob(self.root(), blob.content(), mode, path)? {
                cache.put(path.to_owned(), stat, file.id());
            }
        }
        Ok(deltas
            .iter()
            .filter_map(|delta| Some(path_of(delta)?.display().to_string()))
            .collect())
    }

    /// Removes a pipe, a socket or an ignored file at the path of a file. No tree contains it, so no
    /// difference removes it.
    fn clear_place(&self, path: &Path) -> Result<(), WorkspaceError> {
        match self.root().stat(path) {
            Ok(Some(stat)) if stat.kind != FileKind::Folder => Ok(self.root().remove(path)?),
            // Other errors of the path appear when the file is written.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn take_away(&self, path: &Path) -> Result<(), WorkspaceError> {
        match self.root().remove(path) {
            // A submodule's folder, or a file that was deleted meanwhile.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::IsADirectory
                ) => {}
            Err(error) => return Err(error.into()),
            Ok(()) => self.root().remove_empty_folders(path),
        }
        Ok(())
    }

    /// Makes the result of setup the starting point: it is not a change and cannot be undone. Blocks.
    pub(crate) fn settle(&self) -> Result<(), WorkspaceError> {
        self.has_changed()?;
        self.lock().undo.clear();
        Ok(())
    }
}

fn path_of<'a>(delta: &DiffDelta<'a>) -> Option<&'a Path> {
    delta.new_file().path().or_else(|| delta.old_file().path())
}

fn is_plain(delta: &DiffDelta<'_>) -> bool {
    path_of(delta).is_some_and(|path| {
        path.components()
            .all(|part| is_plain_name(part.as_os_str().as_encoded_bytes()))
    })
}
