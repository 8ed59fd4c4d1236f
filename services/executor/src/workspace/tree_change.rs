//! Changes the files of a worktree from one tree to another. Only differing files are written.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use git::TreeDifference;
use git2::{ObjectType, Oid, Tree};

use super::{
    Workspace, WorkspaceError,
    conversion::{ATTRIBUTES, CheckoutAttributes},
    disk::WorkspaceDisk,
    paths::is_plain_name,
    root::FileKind,
    scan::WorktreeScanner,
    stat_cache::StatCache,
    tracked_files::list_tracked_files,
};
use crate::lfs_contents::LfsContents;

/// File mode of a submodule's tree entry.
const SUBMODULE: i32 = 0o160_000;

/// Parts of a workspace that a change of its files needs.
pub(super) struct TreeChange<'a> {
    disk: &'a WorkspaceDisk,
    scanner: &'a WorktreeScanner,
    lfs: &'a LfsContents,
    git: &'a git2::Repository,
}

impl<'a> TreeChange<'a> {
    pub(super) fn new(workspace: &'a Workspace, git: &'a git2::Repository) -> Self {
        Self {
            disk: &workspace.disk,
            scanner: &workspace.scanner,
            lfs: &workspace.git.lfs,
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
        let is_wanted = |difference: &TreeDifference| {
            has_plain_names(&difference.path) && (difference.new.is_some() || is_to_go(&difference.path))
        };
        let mut differences = git::list_tree_differences(self.git, Some(now), Some(wanted))?;
        differences.retain(is_wanted);
        // Deletions precede writes, because a folder may be at the path of a new file.
        for TreeDifference { path, .. } in differences.iter().filter(|difference| difference.old.is_some()) {
            self.take_away(path)?;
            cache.forget(path);
        }
        let (now, wanted) = (self.git.find_tree(now)?, self.git.find_tree(wanted)?);
        let kept = || {
            let entries = differences.iter();
            entries.filter_map(|TreeDifference { path, new, .. }| Some((path.as_path(), (*new)?)))
        };
        let paths = kept().map(|(path, _)| path);
        let mut attributes = CheckoutAttributes::of_paths(self.git, &wanted, paths, self.lfs);
        for (path, (id, mode)) in kept() {
            if mode == SUBMODULE {
                root.make_folder(path)?;
                continue;
            }
            self.clear_place(path)?;
            self.scanner.note_written(path);
            self.write_file(path, (id, mode), &mut attributes, cache)?;
        }
        if differences
            .iter()
            .any(|difference| difference.path.ends_with(ATTRIBUTES))
        {
            let written: BTreeSet<&Path> = kept().map(|(path, _)| path).collect();
            self.convert_other_files([&now, &wanted], &written, cache)?;
        }
        Ok(differences
            .iter()
            .map(|difference| difference.path.display().to_string())
            .collect())
    }

    /// Writes a file or link at a free path.
    fn write_file(
        &self,
        path: &Path,
        (id, mode): (Oid, i32),
        attributes: &mut CheckoutAttributes,
        cache: &mut StatCache,
    ) -> Result<(), WorkspaceError> {
        let blob = self.git.find_blob(id)?;
        let content = attributes.convert(path, blob.content(), (id, mode));
        if let Some(stat) = self.disk.root().write_blob(path, &content, mode)? {
            cache.put(path, stat, id);
        }
        Ok(())
    }

    /// Writes the files that both trees have, but with other attributes that change their bytes.
    fn convert_other_files(
        &self,
        [now, wanted]: [&Tree<'_>; 2],
        written: &BTreeSet<&Path>,
        cache: &mut StatCache,
    ) -> Result<(), WorkspaceError> {
        let files = list_tracked_files(self.git, wanted.id())?;
        let paths = || files.keys().map(PathBuf::as_path);
        let mut before = CheckoutAttributes::of_paths(self.git, now, paths(), self.lfs);
        let mut after = CheckoutAttributes::of_paths(self.git, wanted, paths(), self.lfs);
        for (path, (id, mode)) in &files {
            let is_file = matches!(*mode, 0o100_644 | 0o100_755) && has_plain_names(path);
            if !is_file || written.contains(path.as_path()) || before.find(path) == after.find(path) {
                continue;
            }
            // An unreadable or missing file stays so.
            if matches!(self.disk.root().stat(path), Ok(Some(stat)) if stat.kind != FileKind::Folder) {
                self.disk.root().remove(path)?;
                self.write_file(path, (*id, *mode), &mut after, cache)?;
            }
        }
        Ok(())
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
        let root = self.disk.root();
        match root.remove(path) {
            Ok(()) => root.remove_empty_folders(path),
            // The folder of a submodule; one with files stays.
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                root.remove_empty_folders(&path.join("file"));
            }
            // A file that was deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
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

fn has_plain_names(path: &Path) -> bool {
    path.components()
        .all(|part| is_plain_name(part.as_os_str().as_encoded_bytes()))
}
