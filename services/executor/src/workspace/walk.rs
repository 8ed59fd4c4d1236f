//! Walk over an untrusted folder that follows no symbolic link.

use std::{
    ffi::OsStr,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, openat2, statat},
    io::Errno,
};

use super::{WorkspaceError, WorkspaceRoot, copy};
use crate::sandbox::PLAIN;

/// Limit of nested folders; each level holds a descriptor.
const MAX_DEPTH: usize = 100;
/// Limit of entries in one walk.
const MAX_ENTRIES: u64 = 2_000_000;

/// Entry that a walk found.
pub(super) struct WalkEntry {
    /// Path relative to the start of the walk.
    pub(super) path: PathBuf,
    pub(super) kind: FileType,
    pub(super) executable: bool,
    pub(super) size: u64,
    /// Inode, change time and size. They change with every write, rename and change of mode, and commands
    /// cannot set them.
    pub(super) stamp: [u64; 3],
}

/// Visits every file, link and folder below `start` for which `is_wanted` is true. The content of a refused
/// folder is not visited.
pub(super) fn walk_folder(
    root: &WorkspaceRoot,
    start: &Path,
    is_wanted: &dyn Fn(&Path) -> bool,
    visit: &mut dyn FnMut(WalkEntry) -> Result<(), WorkspaceError>,
) -> Result<(), WorkspaceError> {
    root.show_folders();
    let folder = match copy::open_folder(&root.path().join(start)) {
        Ok(folder) => folder,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut walk = FolderWalk {
        is_wanted,
        visit,
        left: MAX_ENTRIES,
    };
    walk.folder(&folder, Path::new(""), 0)
}

struct FolderWalk<'a> {
    is_wanted: &'a dyn Fn(&Path) -> bool,
    visit: &'a mut dyn FnMut(WalkEntry) -> Result<(), WorkspaceError>,
    left: u64,
}

impl FolderWalk<'_> {
    fn folder(&mut self, folder: &OwnedFd, path: &Path, depth: usize) -> Result<(), WorkspaceError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for entry in Dir::read_from(folder).map_err(std::io::Error::from)? {
            let entry = entry.map_err(std::io::Error::from)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            let path = path.join(name);
            if name == "." || name == ".." || !(self.is_wanted)(&path) {
                continue;
            }
            self.left = self.left.checked_sub(1).ok_or_else(|| {
                WorkspaceError::Unkeepable(format!("there are more than {MAX_ENTRIES} files in a workspace"))
            })?;
            let met = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => walk_entry(path.clone(), &stat),
                // A process deleted the entry after the kernel listed it.
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(std::io::Error::from(error).into()),
            };
            let is_folder = met.kind == FileType::Directory;
            (self.visit)(met)?;
            if is_folder && depth < MAX_DEPTH {
                // A process may have replaced the folder by a symbolic link since `statat`, which
                // `PLAIN` refuses.
                let inner =
                    openat2(folder, name, flags, Mode::empty(), PLAIN).map_err(std::io::Error::from)?;
                self.folder(&inner, &path, depth + 1)?;
            }
        }
        Ok(())
    }
}

fn walk_entry(path: PathBuf, stat: &rustix::fs::Stat) -> WalkEntry {
    let time = |s: i64, ns: u64| (s as u64).wrapping_mul(1_000_000_000).wrapping_add(ns);
    WalkEntry {
        path,
        kind: FileType::from_raw_mode(stat.st_mode),
        executable: stat.st_mode & 0o100 != 0,
        size: u64::try_from(stat.st_size).unwrap_or_default(),
        stamp: [
            stat.st_ino,
            time(stat.st_ctime, stat.st_ctime_nsec),
            u64::try_from(stat.st_size).unwrap_or_default(),
        ],
    }
}
