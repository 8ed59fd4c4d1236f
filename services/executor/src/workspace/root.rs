//! The two folders of a workspace, the files in them and what goes wrong with them.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use domain::cause::chain;
use rustix::io::Errno;

use crate::sandbox::{Beneath, Folder, Session, Task, stat_of};
pub(crate) use crate::sandbox::{Entry, Kind, Stat};

/// Opened once; everything else goes through it, so that no symbolic link leads out.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    files: Files,
}

/// Whose files they are.
#[derive(Debug)]
enum Files {
    Ours(Beneath),
    Runners(Arc<Session>, Folder),
}
use Files::{Ours, Runners};

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            files: Ours(Beneath::open(path)?),
        })
    }

    /// A folder of a workspace that a runner keeps.
    pub(crate) fn at_runner(session: &Arc<Session>, folder: Folder) -> Self {
        Self {
            path: session.path(folder),
            files: Runners(Arc::clone(session), folder),
        }
    }

    /// Where it is, for texts and for commands.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that this process can walk over the folders.
    pub(crate) fn show_folders(&self) {
        if let Runners(session, folder) = &self.files
            && let Err(error) = session.done(*folder, Path::new(""), Task::ShowFolders)
        {
            tracing::warn!(error = %chain(&error), "some folders of a worktree cannot be shown");
        }
    }

    /// An ordinary file, opened for reading.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<File> {
        match &self.files {
            Ours(files) => files.open_file(path),
            Runners(session, folder) => session.open_file(*folder, path),
        }
    }

    /// A file's content; an error above `max_bytes`.
    pub(crate) fn read(&self, path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
        let file = self.open_file(path)?;
        if file.metadata()?.len() > max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = Vec::new();
        file.take(max_bytes).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes a file whole: beside its place, then renamed. Missing folders are made; an existing file keeps its mode.
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

    /// What a folder holds, sorted; at most `max` entries.
    pub(crate) fn list(&self, path: &Path, max: usize) -> io::Result<Vec<Entry>> {
        match &self.files {
            Ours(files) => files.list(path, max),
            Runners(session, folder) => session.list(*folder, path, max),
        }
    }

    /// What is at a path; absent when nothing is, or when a link is on the way.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        match &self.files {
            Ours(files) => files.stat(path),
            Runners(session, folder) => session.stat(*folder, path),
        }
    }

    /// What a link says.
    pub(crate) fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        match &self.files {
            Ours(files) => files.read_link(path),
            Runners(session, folder) => session.read_link(*folder, path),
        }
    }

    /// Puts a link where nothing is. It may say anything: nobody here follows it out.
    pub(crate) fn write_link(&self, path: &Path, target: &[u8]) -> io::Result<()> {
        match &self.files {
            Ours(files) => files.write_link(path, target),
            Runners(session, folder) => {
                let target = target.to_vec();
                session.done(*folder, path, Task::WriteLink { target })
            }
        }
    }

    /// Puts an empty file where nothing is, open for writing.
    pub(crate) fn create_file(&self, path: &Path, executable: bool) -> io::Result<File> {
        match &self.files {
            Ours(files) => files.create(path, executable),
            Runners(session, folder) => session.create(*folder, path, executable),
        }
    }

    /// Puts a file where nothing is; how it looks then.
    pub(crate) fn create(&self, path: &Path, content: &[u8], executable: bool) -> io::Result<Stat> {
        let mut file = self.create_file(path, executable)?;
        file.write_all(content)?;
        Ok(stat_of(&file.metadata()?))
    }

    /// Takes a file or link away.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        match &self.files {
            Ours(files) => files.remove(path),
            Runners(session, folder) => session.done(*folder, path, Task::Remove),
        }
    }

    /// Takes away the folders above a path that hold nothing.
    pub(crate) fn remove_empty_folders(&self, path: &Path) {
        match &self.files {
            Ours(files) => files.remove_empty_folders(path),
            Runners(session, folder) => {
                // What stays is an empty folder.
                let _ = session.done(*folder, path, Task::RemoveEmptyFolders);
            }
        }
    }

    /// Makes a folder and those above it where they are missing.
    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<()> {
        match &self.files {
            Ours(files) => files.make_folder(path).map(drop),
            Runners(session, folder) => session.done(*folder, path, Task::MakeFolder),
        }
    }
}

/// What went wrong with a path, in words for the model.
pub(crate) fn explain(path: &Path, error: &io::Error) -> String {
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
        Some(Errno::XDEV) => {
            format!("{path} leads out of the workspace through a symbolic link; that is refused.")
        }
        Some(Errno::LOOP) => {
            format!(
                "{path} is or passes through a symbolic link. Use the path of the file that it points to instead."
            )
        }
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

    fn root() -> (tempfile::TempDir, Root) {
        let outer = tempfile::TempDir::new().unwrap();
        std::fs::create_dir(outer.path().join("tree")).unwrap();
        std::fs::write(outer.path().join("secret"), "secret").unwrap();
        let root = Root::open(&outer.path().join("tree")).unwrap();
        (outer, root)
    }

    #[test]
    fn no_link_leads_out_for_reading_or_writing() {
        let (outer, root) = root();
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
        let (_outer, root) = root();
        root.write(Path::new("dir/file"), b"text").unwrap();
        symlink("dir/file", root.path().join("link")).unwrap();
        assert_eq!(root.read(Path::new("link"), 100).unwrap(), b"text");
        assert_eq!(root.stat(Path::new("link")).unwrap().unwrap().kind, Kind::Link);
    }

    #[test]
    fn a_written_file_keeps_its_mode_and_leaves_no_temporary_file() {
        let (_outer, root) = root();
        root.create(Path::new("run.sh"), b"old", true).unwrap();
        root.write(Path::new("run.sh"), b"new").unwrap();
        assert_eq!(
            root.stat(Path::new("run.sh")).unwrap().unwrap().kind,
            Kind::File { executable: true }
        );
        assert_eq!(root.list(Path::new(""), 10).unwrap().len(), 1);
        assert_eq!(
            root.read(Path::new("run.sh"), 2).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
    }

    #[test]
    fn a_folder_swapped_for_a_link_while_it_is_written_never_leads_out() {
        let (outer, root) = root();
        let (inside, aside) = (root.path().join("dir"), root.path().join("aside"));
        std::fs::create_dir(&inside).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    // The writer may make the folder anew at any moment.
                    let _ = std::fs::rename(&inside, &aside);
                    let _ = symlink(outer.path(), &inside);
                    let _ = std::fs::remove_file(&inside);
                    let _ = std::fs::remove_dir_all(&inside);
                    let _ = std::fs::rename(&aside, &inside);
                }
            });
            for _ in 0..3000 {
                // Refused or done inside: both are right.
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
