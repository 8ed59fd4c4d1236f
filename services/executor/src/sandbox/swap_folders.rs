//! A second pair of folders that replaces the folders of a workspace while one command runs.
//!
//! Tools write absolute paths into installed files, so the result of setup works only at the path at which it
//! was made.

use std::{
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// Worktree, and scratch space with the home folder.
const FOLDERS: [&str; 2] = ["tree", "tmp"];
const HOME: &str = "tmp/home";
/// Names in the folder next to the workspace: the second pair, and the workspace's own folders while they are
/// replaced.
const SECOND: &str = "second";
const OWN: &str = "own";

/// The second pair. Dropping it while it is in place restores the workspace's folders.
#[derive(Debug)]
pub(crate) struct SwapFolders {
    place: PathBuf,
    beside: PathBuf,
    is_entered: bool,
}

impl SwapFolders {
    /// Creates the pair in the folder `beside`, which must be on the file system of `place`, the folder of
    /// the workspace.
    pub(crate) fn make(place: &Path, beside: &Path) -> io::Result<Self> {
        let make = |path: PathBuf| fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
        for name in FOLDERS.iter().chain([&HOME]) {
            make(beside.join(SECOND).join(name))?;
        }
        make(beside.join(OWN))?;
        Ok(Self {
            place: place.to_owned(),
            beside: beside.to_owned(),
            is_entered: false,
        })
    }

    /// Paths of the second worktree and scratch space before they are swapped in.
    pub(crate) fn folders(&self) -> [PathBuf; 2] {
        FOLDERS.map(|name| self.beside.join(SECOND).join(name))
    }

    /// Folder of both pairs, for the caller to delete at the end.
    pub(crate) fn beside(&self) -> &Path {
        &self.beside
    }

    /// Swaps the second pair in. On failure, all folders are at their previous paths.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        let moves = self.moves();
        // Each folder moves by a rename, so both pairs must be on one file system.
        for (done, (from, to)) in moves.iter().enumerate() {
            if let Err(error) = fs::rename(from, to) {
                revert_moves(&moves[..done])?;
                return Err(error);
            }
        }
        self.is_entered = true;
        Ok(())
    }

    /// Restores the workspace's folders.
    pub(crate) fn leave(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_entered) {
            revert_moves(&self.moves())?;
        }
        Ok(())
    }

    fn moves(&self) -> Vec<(PathBuf, PathBuf)> {
        let of = |name: &&str| {
            let (second, own) = (self.beside.join(SECOND), self.beside.join(OWN));
            let place = self.place.join(name);
            // The workspace's folder makes way before the second one takes its path.
            [(place.clone(), own.join(name)), (second.join(name), place)]
        };
        FOLDERS.iter().flat_map(of).collect()
    }
}

impl Drop for SwapFolders {
    fn drop(&mut self) {
        // The error is ignored: callers that can report a failure call `leave` before.
        let _ = self.leave();
    }
}

/// Reverts moves, the last one first.
fn revert_moves(moves: &[(PathBuf, PathBuf)]) -> io::Result<()> {
    moves.iter().rev().try_for_each(|(from, to)| fs::rename(to, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_swap_folders() -> (tempfile::TempDir, SwapFolders) {
        let folder = tempfile::TempDir::new().unwrap();
        for name in FOLDERS {
            fs::create_dir_all(folder.path().join("place").join(name)).unwrap();
            fs::write(folder.path().join("place").join(name).join("file"), "own").unwrap();
        }
        let stage = SwapFolders::make(&folder.path().join("place"), &folder.path().join("beside")).unwrap();
        for path in stage.folders() {
            fs::write(path.join("file"), "second").unwrap();
        }
        (folder, stage)
    }

    fn read_swapped_files(folder: &tempfile::TempDir) -> Vec<String> {
        let file = |name| folder.path().join("place").join(name).join("file");
        FOLDERS
            .map(|name| fs::read_to_string(file(name)).unwrap())
            .to_vec()
    }

    #[test]
    fn swap_takes_and_restores_folders() {
        let (folder, mut stage) = build_swap_folders();
        assert_eq!(read_swapped_files(&folder), ["own", "own"]);
        stage.enter().unwrap();
        assert_eq!(read_swapped_files(&folder), ["second", "second"]);
        stage.leave().unwrap();
        stage.leave().unwrap();
        assert_eq!(read_swapped_files(&folder), ["own", "own"]);
        stage.enter().unwrap();
        drop(stage);
        assert_eq!(read_swapped_files(&folder), ["own", "own"]);
    }

    #[test]
    fn failed_swap_leaves_folders_unchanged() {
        let (folder, mut stage) = build_swap_folders();
        fs::remove_dir_all(folder.path().join("beside/second/tmp")).unwrap();
        assert!(stage.enter().is_err());
        assert_eq!(read_swapped_files(&folder), ["own", "own"]);
    }
}
