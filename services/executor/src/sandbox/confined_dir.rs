//! A folder with untrusted content. Every access is resolved beneath it, so that no symbolic link leads
//! outside.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, mkdirat, openat2, renameat, statat,
        unlinkat,
    },
    io::Errno,
};
use serde::{Deserialize, Serialize};

/// Descriptor of the folder, through which every access goes.
#[derive(Debug)]
pub(crate) struct ConfinedDir(pub(crate) OwnedFd);

/// A file that replaces another one after it is completely written. Dropping it earlier removes it.
pub(crate) struct FileReplacement {
    pub(crate) file: File,
    folder: OwnedFd,
    temporary: String,
    name: OsString,
    mode: u32,
}

/// Entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct FolderEntry {
    pub(crate) name: String,
    pub(crate) is_folder: bool,
}

/// Type of a path. A symbolic link at its end is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileKind {
    File { executable: bool },
    Link,
    Folder,
    Other,
}

/// Type of a path, with the values that change when its content changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStat {
    pub(crate) kind: FileKind,
    pub(crate) size: u64,
    pub(crate) inode: u64,
    pub(crate) mtime_ns: i128,
    pub(crate) ctime_ns: i128,
}

/// Resolution that follows links within the folder only.
const INSIDE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
/// Resolution that follows no link.
pub(crate) const PLAIN: ResolveFlags = INSIDE.union(ResolveFlags::NO_SYMLINKS);

impl FileReplacement {
    /// Renames the file to its final name.
    pub(crate) fn finish(self) -> io::Result<()> {
        // Before the rename, so that the file never has its final name with the temporary mode.
        self.file
            .set_permissions(std::fs::Permissions::from_mode(self.mode))?;
        Ok(renameat(&self.folder, &self.temporary, &self.folder, &self.name)?)
    }
}

impl Drop for FileReplacement {
    fn drop(&mut self) {
        // The error is ignored: after the rename no file of this name exists.
        let _ = unlinkat(&self.folder, &self.temporary, AtFlags::empty());
    }
}

impl ConfinedDir {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let folder = rustix::fs::open(
            path,
            OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        )?;
        Ok(Self(folder))
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&self, path: &Path) -> io::Result<File> {
        // Without `O_NONBLOCK`, opening a named pipe in the worktree would block forever.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(openat2(&self.0, path_or_dot(path), flags, Mode::empty(), INSIDE)?);
        if file.metadata()?.is_file() {
            Ok(file)
        } else {
            Err(Errno::ISDIR.into())
        }
    }

    /// Creates a temporary file in the folder of `path`, to be written and then renamed. Missing folders are
    /// created; the mode of an existing file is kept.
    pub(crate) fn replace(&self, path: &Path) -> io::Result<FileReplacement> {
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        let folder = self.make_folder(path.parent().unwrap_or(Path::new("")))?;
        let mode = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => stat.st_mode & 0o777,
                FileType::Symlink => return Err(Errno::LOOP.into()),
                FileType::Directory
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice
                | FileType::Unknown => return Err(Errno::ISDIR.into()),
            },
            Err(Errno::NOENT) => 0o644,
            Err(error) => return Err(error.into()),
        };
        // A random name, so that simultaneous replacements do not collide.
        let temporary = format!(".{}.tmp", uuid::Uuid::new_v4());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        // Only this user may open the file until it is complete. `finish` sets the final mode.
        let only_ours = Mode::from_raw_mode(0o600);
        let file = File::from(openat2(&folder, &temporary, flags, only_ours, PLAIN)?);
        Ok(FileReplacement {
            file,
            folder,
            temporary,
            name: name.to_owned(),
            mode,
        })
    }

    /// Lists the entries of a folder, sorted, at most `max`.
    pub(crate) fn list(&self, path: &Path, max: usize) -> io::Result<Vec<FolderEntry>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat2(&self.0, path_or_dot(path), flags, Mode::empty(), INSIDE)?;
        let mut entries = Vec::new();
        // The kernel also lists `.` and `..`.
        for entry in Dir::read_from(folder)?.take(max + 2) {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                entries.push(FolderEntry {
                    name,
                    is_folder: entry.file_type() == FileType::Directory,
                });
            }
        }
        entries.sort();
        Ok(entries)
    }

    /// Returns the type and values of a path; `None` when it does not exist or a parent is a symbolic link.
    pub(crate) fn stat(&self, path: &Path) -> io::Result<Option<FileStat>> {
        // `RESOLVE_NO_SYMLINKS` would also refuse a link at the end of the path, so the folder is resolved
        // first.
        match self.find_folder(path.parent().unwrap_or(Path::new("")))? {
            Some(folder) => stat_in(&folder, path),
            None => Ok(None),
        }
    }

    /// Opens a folder for [`stat_in`]; `None` when it does not exist or a part of its path is a symbolic link.
    pub(crate) fn find_folder(&self, path: &Path) -> io::Result<Option<OwnedFd>> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat2(&self.0, path_or_dot(path), flags, Mode::empty(), PLAIN) {
            Ok(folder) => Ok(Some(folder)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the target of a symbolic link.
    pub(crate) fn read_link(&self, path: &Path) -> io::Result<Vec<u8>> {
        let folder = self.folder_of(path)?;
        let name = path.file_name().ok_or(Errno::INVAL)?;
        Ok(rustix::fs::readlinkat(&folder, name, Vec::new())?.into_bytes())
    }

    /// Creates a symbolic link at a free path. Any target is allowed, because the executor follows no link
    /// out of the folder.
    pub(crate) fn write_link(&self, path: &Path, target: &[u8]) -> io::Result<()> {
        let folder = self.make_folder(path.parent().unwrap_or(Path::new("")))?;
        Ok(rustix::fs::symlinkat(
            target,
            &folder,
            path.file_name().ok_or(Errno::INVAL)?,
        )?)
    }

    /// Creates an empty file at a free path.
    pub(crate) fn create(&self, path: &Path, executable: bool) -> io::Result<File> {
        let folder = self.make_folder(path.parent().unwrap_or(Path::new("")))?;
        let mode = Mode::from_raw_mode(if executable { 0o755 } else { 0o644 });
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let name = path.file_name().ok_or(Errno::INVAL)?;
        Ok(File::from(openat2(&folder, name, flags, mode, PLAIN)?))
    }

    /// Removes a file or symbolic link.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let folder = self.folder_of(path)?;
        let name = path.file_name().ok_or(Errno::ISDIR)?;
        Ok(unlinkat(&folder, name, AtFlags::empty())?)
    }

    /// Removes the empty folders above a path.
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
            // The kernel refuses to remove a folder that is not empty, and so ends the way up.
            if removed.is_err() {
                return;
            }
        }
    }

    /// Opens a folder, and creates it and its missing parents.
    pub(crate) fn make_folder(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat2(&self.0, path_or_dot(path), flags, Mode::empty(), PLAIN) {
            Err(Errno::NOENT) => {}
            other => return Ok(other?),
        }
        let parent = self.make_folder(path.parent().unwrap_or(Path::new("")))?;
        let name = path.file_name().ok_or(Errno::INVAL)?;
        match mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
            // A command may create the same folder at this moment. `PLAIN` refuses it if it is a
            // symbolic link.
            Ok(()) | Err(Errno::EXIST) => Ok(openat2(&parent, name, flags, Mode::empty(), PLAIN)?),
            Err(error) => Err(error.into()),
        }
    }

    fn folder_of(&self, path: &Path) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat2(
            &self.0,
            path_or_dot(path.parent().unwrap_or(Path::new(""))),
            flags,
            Mode::empty(),
            PLAIN,
        )?)
    }
}

fn path_or_dot(path: &Path) -> &Path {
    if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    }
}

/// Returns the type and values of the last part of a path, in the opened folder that contains it; `None` when it
/// does not exist.
pub(crate) fn stat_in(folder: &OwnedFd, path: &Path) -> io::Result<Option<FileStat>> {
    stat_entry(folder, path.file_name().unwrap_or(".".as_ref()))
}

/// Returns the type and values of a name in an opened folder; `None` when it does not exist.
pub(crate) fn stat_entry(folder: &OwnedFd, name: &OsStr) -> io::Result<Option<FileStat>> {
    // One name that is not followed cannot lead out of the folder.
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat_of(&stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn stat_of(stat: &Stat) -> FileStat {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File {
            executable: stat.st_mode & 0o100 != 0,
        },
        FileType::Symlink => FileKind::Link,
        FileType::Directory => FileKind::Folder,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => FileKind::Other,
    };
    let nanoseconds = |s: i64, ns: u64| i128::from(s) * 1_000_000_000 + i128::from(ns);
    FileStat {
        kind,
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        inode: stat.st_ino,
        mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
        ctime_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
    }
}
