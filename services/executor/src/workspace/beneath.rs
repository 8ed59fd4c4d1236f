//! A folder whose content is not trusted: every access resolves beneath it, so that no symbolic link leads out.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat2, renameat, statat, unlinkat},
    io::Errno,
};

/// Opened once; everything else goes through it.
#[derive(Debug)]
pub(crate) struct Root {
    folder: OwnedFd,
    path: PathBuf,
}

/// What a folder holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) is_folder: bool,
}

/// What a path is, without following a link at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File { executable: bool },
    Link,
    Folder,
    Other,
}

/// Kind and the figures that change when the content does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) inode: u64,
    pub(crate) mtime_ns: i128,
    pub(crate) ctime_ns: i128,
}

/// Links inside are followed, never out.
const INSIDE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// No link is followed.
const PLAIN: ResolveFlags = INSIDE.union(ResolveFlags::NO_SYMLINKS);

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let folder = rustix::fs::open(
            path,
            OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        )?;
        Ok(Self {
            folder,
            path: path.to_owned(),
        })
    }

    /// Where it is, for texts and for commands.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An ordinary file, opened for reading.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<File> {
        // Without NONBLOCK a pipe in the worktree would stop us for good.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(openat2(&self.folder, dot(path), flags, Mode::empty(), INSIDE)?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(Errno::ISDIR.into())
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
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        let folder = self.make_folder(path.parent().unwrap_or(Path::new("")))?;
        let mode = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => stat.st_mode & 0o777,
                FileType::Symlink => return Err(Errno::LOOP.into()),
                _ => return Err(Errno::ISDIR.into()),
            },
            Err(Errno::NOENT) => 0o644,
            Err(error) => return Err(error.into()),
        };
        let temporary = format!(".{}.tmp", uuid::Uuid::new_v4());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat2(
            &folder,
            &temporary,
            flags,
            Mode::from_raw_mode(0o600),
            PLAIN,
        )?);
        let written = file
            .write_all(content)
            .and_then(|()| file.set_permissions(std::fs::Permissions::from_mode(mode)))
            .and_then(|()| Ok(renameat(&folder, &temporary, &folder, name)?));
        if written.is_err() {
            // The first error is the one to tell.
            let _ = unlinkat(&folder, &temporary, AtFlags::empty());
        }
        written
    }

    /// What a folder holds, sorted; at most `max` entries.
    pub(crate) fn list(&self, path: &Path, max: usize) -> io::Result<Vec<Entry>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat2(&self.folder, dot(path), flags, Mode::empty(), INSIDE)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(folder)?.take(max + 2) {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                entries.push(Entry {
                    name,
                    is_folder: entry.file_type() == FileType::Directory,
                });
            }
        }
        entries.sort();
        Ok(entries)
    }

    /// What is at a path; absent when nothing is, or when a link is on the way.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Option<Stat>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // NO_SYMLINKS would also refuse a link at the end, so the folder is resolved first.
        let parent = path.parent().unwrap_or(Path::new(""));
        let folder_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = match openat2(&self.folder, dot(parent), folder_flags, Mode::empty(), PLAIN) {
            Ok(folder) => folder,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match openat2(
            &folder,
            path.file_name().unwrap_or(".".as_ref()),
            flags,
            Mode::empty(),
            INSIDE,
        ) {
            Ok(found) => Ok(Some(stat_of(&File::from(found).metadata()?))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What a link says.
    pub(crate) fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        let folder = self.folder_of(path)?;
        let name = path.file_name().ok_or(Errno::INVAL)?;
        Ok(rustix::fs::readlinkat(&folder, name, Vec::new())?.into_bytes())
    }

    /// Puts a link where nothing is. It may say anything: nobody here follows it out.
    pub(crate) fn write_link(&self, path: &Path, target: &[u8]) -> io::Result<()> {
        let folder = self.make_folder(path.parent().unwrap_or(Path::new("")))?;
        Ok(rustix::fs::symlinkat(
            target,
            &folder,
            path.file_name().ok_or(Errno::INVAL)?,
        )?)
    }

    /// Puts a file where nothing is.
    pub(crate) fn create(&self, path: &Path, content: &[u8], executable: bool) -> io::Result<()> {
        let folder = self.make_folder(path.parent().unwrap_or(Path::new("")))?;
        let mode = Mode::from_raw_mode(if executable { 0o755 } else { 0o644 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let name = path.file_name().ok_or(Errno::INVAL)?;
        File::from(openat2(&folder, name, flags, mode, PLAIN)?).write_all(content)
    }

    /// Takes a file or link away.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let folder = self.folder_of(path)?;
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        Ok(unlinkat(&folder, name, AtFlags::empty())?)
    }

    /// Takes away the folders above a path that hold nothing.
    pub(crate) fn remove_empty_folders(&self, path: &Path) {
        for folder in path
            .ancestors()
            .skip(1)
            .filter(|folder| !folder.as_os_str().is_empty())
        {
            let removed = self.folder_of(folder).and_then(|above| {
                let name = folder.file_name().ok_or(Errno::INVAL)?;
                Ok(unlinkat(&above, name, AtFlags::REMOVEDIR)?)
            });
            if removed.is_err() {
                return;
            }
        }
    }

    /// Opens a folder, making it and those above it where they are missing.
    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat2(&self.folder, dot(path), flags, Mode::empty(), PLAIN) {
            Err(Errno::NOENT) => {}
            other => return Ok(other?),
        }
        let parent = self.make_folder(path.parent().unwrap_or(Path::new("")))?;
        let name = path.file_name().ok_or(Errno::INVAL)?;
        match mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => Ok(openat2(&parent, name, flags, Mode::empty(), PLAIN)?),
            Err(error) => Err(error.into()),
        }
    }

    fn folder_of(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat2(
            &self.folder,
            dot(path.parent().unwrap_or(Path::new(""))),
            flags,
            Mode::empty(),
            PLAIN,
        )?)
    }
}

fn dot(path: &Path) -> &Path {
    if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    }
}

fn stat_of(metadata: &std::fs::Metadata) -> Stat {
    let kind = if metadata.is_file() {
        Kind::File {
            executable: metadata.permissions().mode() & 0o100 != 0,
        }
    } else if metadata.is_symlink() {
        Kind::Link
    } else if metadata.is_dir() {
        Kind::Folder
    } else {
        Kind::Other
    };
    let nanoseconds = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
    Stat {
        kind,
        size: metadata.len(),
        inode: metadata.ino(),
        mtime_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
        ctime_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
    }
}

/// What went wrong with a path, in words for the model.
pub(crate) fn explain(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => {
            format!("{path} does not exist. Look with list_directory or search_files.")
        }
        Some(Errno::XDEV) => {
            format!("{path} leads out of the workspace through a symbolic link; that is refused.")
        }
        Some(Errno::LOOP) => {
            format!(
                "{path} is or passes through a symbolic link. Write to the file that it points to instead."
            )
        }
        Some(Errno::ISDIR) => format!("{path} is not an ordinary file. Use list_directory for folders."),
        Some(Errno::NOTDIR) => {
            format!("{path}: a part of this path is a file, not a folder. Choose another path.")
        }
        Some(Errno::ACCESS | Errno::PERM) => {
            format!("{path}: permission denied. Change its mode with run_command (chmod) first.")
        }
        Some(_) | None => format!("{path}: {error}."),
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
