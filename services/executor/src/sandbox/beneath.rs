//! A folder whose content is not trusted: every access resolves beneath it, so that no symbolic link leads out.

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, mkdirat, openat2, renameat, statat, unlinkat},
    io::Errno,
};
use serde::{Deserialize, Serialize};

/// Opened once; everything else goes through it.
#[derive(Debug)]
pub(crate) struct Beneath(pub(crate) OwnedFd);

/// A file that takes a place once it is written whole. Dropped before, it leaves nothing.
pub(crate) struct Replacement {
    pub(crate) file: File,
    folder: OwnedFd,
    temporary: String,
    name: OsString,
    mode: u32,
}

/// What a folder holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) is_folder: bool,
}

/// What a path is, without following a link at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    File { executable: bool },
    Link,
    Folder,
    Other,
}

/// Kind and the figures that change when the content does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
pub(crate) const PLAIN: ResolveFlags = INSIDE.union(ResolveFlags::NO_SYMLINKS);

impl Replacement {
    /// Puts the file into its place.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.file
            .set_permissions(std::fs::Permissions::from_mode(self.mode))?;
        Ok(renameat(&self.folder, &self.temporary, &self.folder, &self.name)?)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // After it took its place there is nothing of that name.
        let _ = unlinkat(&self.folder, &self.temporary, AtFlags::empty());
    }
}

impl Beneath {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let folder = rustix::fs::open(
            path,
            OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        )?;
        Ok(Self(folder))
    }

    /// An ordinary file, opened for reading.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<File> {
        // Without NONBLOCK a pipe in the worktree would stop us for good.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(openat2(&self.0, dot(path), flags, Mode::empty(), INSIDE)?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(Errno::ISDIR.into())
        }
    }

    /// A file beside a path, to be written and then renamed to it. Missing folders are made; an existing file's mode
    /// is kept.
    pub(crate) fn replace(&self, path: &Path) -> io::Result<Replacement> {
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
        let only_ours = Mode::from_raw_mode(0o600);
        let file = File::from(openat2(&folder, &temporary, flags, only_ours, PLAIN)?);
        Ok(Replacement {
            file,
            folder,
            temporary,
            name: name.to_owned(),
            mode,
        })
    }

    /// What a folder holds, sorted; at most `max` entries.
    pub(crate) fn list(&self, path: &Path, max: usize) -> io::Result<Vec<Entry>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat2(&self.0, dot(path), flags, Mode::empty(), INSIDE)?;
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
        let folder = match openat2(&self.0, dot(parent), folder_flags, Mode::empty(), PLAIN) {
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

    /// Puts an empty file where nothing is.
    pub(crate) fn create(&self, path: &Path, executable: bool) -> io::Result<File> {
        let folder = self.make_folder(path.parent().unwrap_or(Path::new("")))?;
        let mode = Mode::from_raw_mode(if executable { 0o755 } else { 0o644 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let name = path.file_name().ok_or(Errno::INVAL)?;
        Ok(File::from(openat2(&folder, name, flags, mode, PLAIN)?))
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
        match openat2(&self.0, dot(path), flags, Mode::empty(), PLAIN) {
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
            &self.0,
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

pub(crate) fn stat_of(metadata: &std::fs::Metadata) -> Stat {
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
