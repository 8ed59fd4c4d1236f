//! The two folders of a workspace, their files, and error messages about them.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use domain::cause::format_error_chain;
use rustix::{fs::fstat, io::Errno};

use crate::sandbox::{ConfinedDir, FileTask, RunnerSession, WorkspaceFolder, stat_of};
pub(crate) use crate::sandbox::{FileKind, FileStat, FolderEntry};

/// Folder of a workspace. All access is resolved beneath it, so that no symbolic link leads outside.
#[derive(Debug)]
pub(crate) struct WorkspaceRoot {
    path: PathBuf,
    files: RootAccess,
}

/// Access to the files: directly, or through the runner.
#[derive(Debug)]
enum RootAccess {
    Ours(ConfinedDir),
    Runners(Arc<RunnerSession>, WorkspaceFolder),
}
use RootAccess::{Ours, Runners};

/// File modes of git's tree entries.
const LINK: i32 = 0o120_000;
const EXECUTABLE: i32 = 0o100_755;

impl WorkspaceRoot {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            files: Ours(ConfinedDir::open(path)?),
        })
    }

    /// Creates the root for a folder that a runner holds.
    pub(crate) fn at_runner(session: &Arc<RunnerSession>, folder: WorkspaceFolder) -> Self {
        Self {
            path: session.path(folder),
            files: Runners(Arc::clone(session), folder),
        }
    }

    /// Folder that this process holds; `None` when a runner holds it.
    pub(super) fn own_folder(&self) -> Option<&ConfinedDir> {
        match &self.files {
            Ours(files) => Some(files),
            Runners(..) => None,
        }
    }

    /// Path of the folder, for messages and for commands.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Grants this process read access to the folders of a worktree that the runner holds.
    pub(crate) fn show_folders(&self) {
        if let Runners(session, folder) = &self.files
            && let Err(error) = session.done(*folder, Path::new(""), FileTask::ShowFolders)
        {
            tracing::warn!(error = %format_error_chain(&error), "some folders of a worktree cannot be shown");
        }
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<File> {
        match &self.files {
            Ours(files) => files.open_file(path),
            Runners(session, folder) => session.open_file(*folder, path),
        }
    }

    /// Reads a file; fails if it is larger than `max_bytes`.
    pub(crate) fn read(&self, path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
        let file = self.open_file(path)?;
        if file.metadata()?.len() > max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = Vec::new();
        // The file may grow after the check, so the read has the same limit.
        file.take(max_bytes).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes a whole file to a temporary name and renames it. Missing folders are created; an existing file
    /// keeps its mode.
    pub(crate) fn write(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        match &self.files {
            Ours(files) => {
                let mut replacement = files.replace(path)?;
                replacement.file.write_all(content)?;
                replacement.finish()
            }
            Runners(session, folder) => session.write(*folder, path, content),
        }
    }

    /// Lists the entries of a folder, sorted, at most `max`.
    pub(crate) fn list(&self, path: &Path, max: usize) -> io::Result<Vec<FolderEntry>> {
        match &self.files {
            Ours(files) => files.list(path, max),
            Runners(session, folder) => session.list(*folder, path, max),
        }
    }

    /// Returns the type and values of a path; `None` when it does not exist or a parent is a symbolic link.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Option<FileStat>> {
        match &self.files {
            Ours(files) => files.stat(path),
            Runners(session, folder) => session.stat(*folder, path),
        }
    }

    /// Returns the target of a symbolic link.
    pub(crate) fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        match &self.files {
            Ours(files) => files.read_link(path),
            Runners(session, folder) => session.read_link(*folder, path),
        }
    }

    /// Creates a symbolic link at a free path. Any target is allowed, because the executor follows no link
    /// out of the folder.
    pub(crate) fn write_link(&self, path: &Path, target: &[u8]) -> io::Result<()> {
        match &self.files {
            Ours(files) => files.write_link(path, target),
            Runners(session, folder) => {
                let target = target.to_vec();
                session.done(*folder, path, FileTask::WriteLink { target })
            }
        }
    }

    /// Creates an empty file at a free path, open for writing.
    pub(crate) fn create_file(&self, path: &Path, executable: bool) -> io::Result<File> {
        match &self.files {
            Ours(files) => files.create(path, executable),
            Runners(session, folder) => session.create(*folder, path, executable),
        }
    }

    /// Creates a file at a free path and returns its state.
    pub(crate) fn create(&self, path: &Path, content: &[u8], executable: bool) -> io::Result<FileStat> {
        let mut file = self.create_file(path, executable)?;
        file.write_all(content)?;
        Ok(stat_of(&fstat(&file)?))
    }

    /// Creates the file or link of a git tree at a free path. Returns its state afterwards.
    pub(super) fn write_blob(&self, path: &Path, content: &[u8], mode: i32) -> io::Result<Option<FileStat>> {
        if mode == LINK {
            self.write_link(path, content)?;
            return self.stat(path);
        }
        self.create(path, content, mode == EXECUTABLE).map(Some)
    }

    /// Removes a file or symbolic link.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        match &self.files {
            Ours(files) => files.remove(path),
            Runners(session, folder) => session.done(*folder, path, FileTask::Remove),
        }
    }

    /// Removes the empty folders above a path.
    pub(crate) fn remove_empty_folders(&self, path: &Path) {
        match &self.files {
            Ours(files) => files.remove_empty_folders(path),
            Runners(session, folder) => {
                // The error is ignored: at worst an empty folder stays.
                let _ = session.done(*folder, path, FileTask::RemoveEmptyFolders);
            }
        }
    }

    /// Creates a folder and its missing parents.
    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<()> {
        match &self.files {
            Ours(files) => files.make_folder(path).map(drop),
            Runners(session, folder) => session.done(*folder, path, FileTask::MakeFolder),
        }
    }
}

/// Explains an error about a path, in words for the model.
pub(crate) fn explain_path_error(path: &Path, error: &io::Error) -> String {
    let path = if path.as_os_str().is_empty() {
        "The workspace's root".to_owned()
    } else {
        path.display().to_string()
    };
    if error.kind() == io::ErrorKind::FileTooLarge {
        return format!(
            "{path} is too large to be read at once. See a part with run_command (head, sed -n, grep)."
        );
    }
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => {
            format!("{path} does not exist. Look with list_directory or search_files.")
        }
        // `openat2` reports a path that leaves the folder as `EXDEV` (openat2(2)).
        Some(Errno::XDEV) => {
            format!("{path} leads out of the workspace through a symbolic link; that is refused.")
        }
        Some(Errno::LOOP) => {
            format!(
                "{path} is or passes through a symbolic link. Use the path of the file that it points to instead."
            )
        }
        // `ConfinedDir::open_file` reports everything that is not a regular file as `EISDIR`.
        Some(Errno::ISDIR) => {
            format!("{path} is not an ordinary file. Name a file; list_directory shows what a folder holds.")
        }
        Some(Errno::NOTDIR) => {
            format!("{path}: a part of this path is a file, not a folder. Choose another path.")
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            format!("{path}: permission denied. Change its mode with run_command (chmod) first.")
        }
        Some(Errno::NXIO) => format!("{path} is a pipe or socket, not a file."),
        Some(Errno::NAMETOOLONG) => format!("{path}: the path is too long. Choose a shorter one."),
        Some(Errno::NOSPC | Errno::DQUOT) => {
            format!("{path}: the disk is full. Delete generated files with run_command.")
        }
        Some(_) | None => format!("{path}: {error}. Look at it with run_command (ls -l)."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn open_workspace_root() -> (tempfile::TempDir, WorkspaceRoot) {
        let outer = tempfile::TempDir::new().unwrap();
        std::fs::create_dir(outer.path().join("tree")).unwrap();
        std::fs::write(outer.path().join("secret"), "secret").unwrap();
        let root = WorkspaceRoot::open(&outer.path().join("tree")).unwrap();
        (outer, root)
    }

    #[test]
    fn links_never_lead_outside_root() {
        let (outer, root) = open_workspace_root();
        symlink("../secret", root.path().join("relative")).unwrap();
        symlink(outer.path().join("secret"), root.path().join("absolute")).unwrap();
        symlink("..", root.path().join("up")).unwrap();
        for path in ["relative", "absolute", "up/secret", "../secret"] {
            assert!(root.read(Path::new(path), 100).is_err(), "{path}");
            assert!(root.write(Path::new(path), b"changed").is_err(), "{path}");
            assert!(root.list(Path::new("up"), 10).is_err());
        }
        assert!(root.create(Path::new("up/new"), b"x", false).is_err());
        assert_eq!(
            std::fs::read_to_string(outer.path().join("secret")).unwrap(),
            "secret"
        );
        assert!(!outer.path().join("new").exists());
    }

    #[test]
    fn links_inside_are_followed_for_reading() {
        let (_outer, root) = open_workspace_root();
        root.write(Path::new("dir/file"), b"text").unwrap();
        symlink("dir/file", root.path().join("link")).unwrap();
        assert_eq!(root.read(Path::new("link"), 100).unwrap(), b"text");
        assert_eq!(
            root.stat(Path::new("link")).unwrap().unwrap().kind,
            FileKind::Link
        );
    }

    #[test]
    fn write_keeps_mode_without_temporary_file() {
        let (_outer, root) = open_workspace_root();
        root.create(Path::new("run.sh"), b"old", true).unwrap();
        root.write(Path::new("run.sh"), b"new").unwrap();
        assert_eq!(
            root.stat(Path::new("run.sh")).unwrap().unwrap().kind,
            FileKind::File { executable: true }
        );
        assert_eq!(root.list(Path::new(""), 10).unwrap().len(), 1);
        assert_eq!(
            root.read(Path::new("run.sh"), 2).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
    }

    #[test]
    fn swapped_folder_link_never_leads_outside() {
        let (outer, root) = open_workspace_root();
        let (inside, aside) = (root.path().join("dir"), root.path().join("aside"));
        std::fs::create_dir(&inside).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    // The writer may create the folder again at any moment, so errors are ignored.
                    let _ = std::fs::rename(&inside, &aside);
                    let _ = symlink(outer.path(), &inside);
                    let _ = std::fs::remove_file(&inside);
                    let _ = std::fs::remove_dir_all(&inside);
                    let _ = std::fs::rename(&aside, &inside);
                }
            });
            for _ in 0..3000 {
                // An access may be refused or happen inside; both are correct.
                let _ = root.write(Path::new("dir/secret"), b"changed");
                let _ = root.remove(Path::new("dir/secret"));
                if let Ok(bytes) = root.read(Path::new("dir/secret"), 100) {
                    assert_eq!(bytes, b"changed");
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(
            std::fs::read_to_string(outer.path().join("secret")).unwrap(),
            "secret"
        );
    }
}
