//! Changes the files of a worktree from one tree to another. Only differing files are written.

use std::{io, path::Path};

use git2::{Delta, DiffDelta, DiffOptions, ObjectType, Oid, Tree};

use super::{
    Workspace, WorkspaceError,
    disk::WorkspaceDisk,
    paths::is_plain_name,
    root::FileKind,
    scan::{StatCache, WorktreeScanner},
};

/// File mode of a submodule's tree entry.
const SUBMODULE: i32 = 0o160_000;

/// Parts of a workspace that a change of its files needs.
pub(super) struct TreeChange<'a> {
    disk: &'a WorkspaceDisk,
    scanner: &'a WorktreeScanner,
    git: &'a git2::Repository,
}

impl<'a> TreeChange<'a> {
    pub(super) fn new(workspace: &'a Workspace, git: &'a git2::Repository) -> Self {
        Self {
            disk: &workspace.disk,
            scanner: &workspace.scanner,
            git,
        }
    }

    /// Changes the files from `now` to `wanted`. Returns the differing paths.
    pub(super) fn change_files(
        &self,
        now: Oid,
        wanted: Oid,
        cache: &mut StatCache,
    ) -> Result<Vec<String>, WorkspaceError> {
        self.change_some_files(now, wanted, cache, &|_| true)
    }

    /// Changes the files from `now` to `wanted`. Files in neither `known` nor `wanted` stay, unless they are
    /// in the way.
    pub(super) fn move_files(&self, (now, known): (Oid, Oid), wanted: Oid) -> Result<(), WorkspaceError> {
        let (known, target) = (self.git.find_tree(known)?, self.git.find_tree(wanted)?);
        let is_to_go = |path: &Path| known.get_path(path).is_ok() || is_in_the_way(&target, path);
        self.change_some_files(now, wanted, &mut StatCache::default(), &is_to_go)?;
        Ok(())
    }

    /// Like [`TreeChange::change_files`], but deletes only those files for which `is_to_go` is true.
    fn change_some_files(
        &self,
        now: Oid,
        wanted: Oid,
        cache: &mut StatCache,
        is_to_go: &dyn Fn(&Path) -> bool,
    ) -> Result<Vec<String>, WorkspaceError> {
        let root = self.disk.root();
        let (now, wanted) = (self.git.find_tree(now)?, self.git.find_tree(wanted)?);
        let mut options = DiffOptions::new();
        options.include_typechange(true);
        let diff = self
            .git
            .diff_tree_to_tree(Some(&now), Some(&wanted), Some(&mut options))?;
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
                root.make_folder(path)?;
                continue;
            }
            self.clear_place(path)?;
            self.scanner.note_written(path);
            let blob = self.git.find_blob(file.id())?;
            if let Some(stat) = root.write_blob(path, blob.content(), mode)? {
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
        match self.disk.root().stat(path) {
            Ok(Some(stat)) if stat.kind != FileKind::Folder => Ok(self.disk.root().remove(path)?),
            // Other errors of the path appear when the file is written.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn take_away(&self, path: &Path) -> Result<(), WorkspaceError> {
        match self.disk.root().remove(path) {
            // A submodule's folder, or a file that was deleted meanwhile.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::IsADirectory
                ) => {}
            Err(error) => return Err(error.into()),
            Ok(()) => self.disk.root().remove_empty_folders(path),
        }
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

fn path_of<'a>(delta: &DiffDelta<'a>) -> Option<&'a Path> {
    delta.new_file().path().or_else(|| delta.old_file().path())
}

fn is_plain(delta: &DiffDelta<'_>) -> bool {
    path_of(delta).is_some_and(|path| {
        path.components()
            .all(|part| is_plain_name(part.as_os_str().as_encoded_bytes()))
    })
}
