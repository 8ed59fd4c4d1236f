//! New files of a worktree: files that the last commit lacks and that no ignore rule matches.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::FileType,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{
    byproduct::{self, HasFile, OwnByproducts},
    disk::{MAX_DEPTH, WalkScope, WorkspaceDisk},
    omissions::{OmittedPaths, explain_walk_error},
    root::FileKind,
};

/// Limit of new files in a tree. Generated folders exceed it; hand-written changes do not.
pub(super) const MAX_NEW_FILES: usize = if cfg!(test) { 1000 } else { 200_000 };

/// Search for new files. Ignore files above the worktree and of the system do not count.
pub(super) struct UntrackedSearch<'a> {
    pub(super) disk: &'a WorkspaceDisk,
    pub(super) own: &'a OwnByproducts,
    pub(super) has: HasFile<'a>,
    /// True for a file of the last commit.
    pub(super) is_tracked: &'a dyn Fn(&Path) -> bool,
    /// Paths that belong to the change even at a path of by-products.
    pub(super) written: &'a BTreeSet<PathBuf>,
    /// Part of the worktree; `None` for all of it.
    pub(super) scope: Option<Arc<WalkScope>>,
}

/// Result of a search.
#[derive(Default)]
pub(super) struct UntrackedFiles {
    pub(super) paths: Vec<PathBuf>,
    /// Folders that the walk entered.
    pub(super) folders: Vec<PathBuf>,
    /// Folders in which the walk found a file.
    pub(super) occupied: BTreeSet<PathBuf>,
    /// By-products, with true for a folder.
    pub(super) byproducts: BTreeMap<PathBuf, bool>,
    /// True when the walk met an obstacle that a later change of another file may remove.
    pub(super) is_obstructed: bool,
}

impl UntrackedSearch<'_> {
    /// Searches the files. Paths that cannot become part of a tree are added to `omitted`.
    pub(super) fn find(&self, omitted: &mut OmittedPaths) -> UntrackedFiles {
        let mut found = UntrackedFiles::default();
        let disk = self.disk;
        let skipped = Arc::<Mutex<Vec<PathBuf>>>::default();
        for entry in disk.walk(&skipped, self.scope.clone()).build() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    found.is_obstructed = true;
                    let left_out = explain_walk_error(&error, disk.root().path());
                    left_out
                        .into_iter()
                        .for_each(|(path, why)| omitted.add(&path, &why));
                    continue;
                }
            };
            if let Some(path) = disk.inside(&entry, FileType::is_dir) {
                if entry.depth() >= MAX_DEPTH {
                    found.is_obstructed = true;
                    omitted.add(&path, "folders are nested too deep");
                }
                found.folders.push(path);
                continue;
            }
            let path = disk.inside(&entry, |kind| !kind.is_dir());
            if let Some(folder) = path.as_deref().and_then(Path::parent)
                && !found.occupied.contains(folder)
            {
                found.occupied.insert(folder.to_owned());
            }
            // Files in a submodule's folder belong to another repository.
            let is_new = |path: &PathBuf| !(self.is_tracked)(path) && disk.submodule_of(path).is_none();
            let Some(path) = path.filter(is_new) else { continue };
            if let Some(left) = self.find_byproduct(&path) {
                if !found.byproducts.contains_key(left) {
                    found.byproducts.insert(left.to_owned(), left != path);
                    omitted.add(left, byproduct::WHY);
                }
                continue;
            }
            if found.paths.len() == MAX_NEW_FILES {
                found.is_obstructed = true;
                let why = format!(
                    "there are more than {MAX_NEW_FILES} new files; name generated folders in .gitignore"
                );
                omitted.add(&path, &why);
                break;
            }
            found.paths.push(path);
        }
        for path in skipped.lock().iter() {
            found.is_obstructed = true;
            omitted.add(path, "its .gitignore cannot be read: too large, or not a file");
        }
        found
    }

    fn find_byproduct<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        self.own
            .find(path, self.has)
            .filter(|_| !self.written.contains(path))
    }
}

/// Removes missing files from `written`. A file that an ignore rule matches is added to `omitted`; `is_found` is
/// true for the others.
pub(super) fn retain_written(
    disk: &WorkspaceDisk,
    written: &mut BTreeSet<PathBuf>,
    is_found: &dyn Fn(&Path) -> bool,
    omitted: &mut OmittedPaths,
) {
    written.retain(|path| {
        if is_found(path) {
            return true;
        }
        match disk.root().stat(path) {
            Ok(Some(stat)) if stat.kind != FileKind::Folder => {
                omitted.add_ignored(path);
                true
            }
            Ok(Some(_)) | Err(_) => true,
            // Without this the list would grow with every file that the model creates and removes.
            Ok(None) => false,
        }
    });
}
