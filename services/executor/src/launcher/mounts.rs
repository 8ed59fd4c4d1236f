//! Mounts as values: copied from the caller's mount namespace, restricted, and attached in the new one.

use std::{
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::CWD,
    mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, move_mount, open_tree},
};

use crate::sys;

/// Attributes of a mount without writing, devices and set-user-ID programs.
const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY | WRITABLE;
/// Attributes of a mount without devices and set-user-ID programs, for a folder that a command writes to.
const WRITABLE: u64 = libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOSUID;

/// A detached copy of a mount with all mounts below it. It stays usable when its source is covered or
/// unmounted.
pub(crate) struct MountTree {
    mount: OwnedFd,
    is_folder: bool,
}

impl MountTree {
    /// Copies a folder or file, following symbolic links.
    pub(crate) fn copy(path: &Path) -> io::Result<Self> {
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
        Ok(Self {
            is_folder: path.metadata()?.is_dir(),
            mount: open_tree(CWD, path, flags)?,
        })
    }

    pub(crate) fn read_only(self) -> io::Result<Self> {
        sys::set_mount_attributes(self.mount.as_fd(), READ_ONLY)?;
        Ok(self)
    }

    pub(crate) fn writable(self) -> io::Result<Self> {
        sys::set_mount_attributes(self.mount.as_fd(), WRITABLE)?;
        Ok(self)
    }

    /// Mounts the copy at a path, which is created if it does not exist.
    pub(crate) fn attach(self, path: &Path) -> io::Result<()> {
        if !path.exists() {
            // Linux mounts a folder only on a folder, and a file only on a file.
            if self.is_folder {
                fs::create_dir_all(path)?;
            } else {
                fs::create_dir_all(path.parent().unwrap_or(path))?;
                fs::File::create(path)?;
            }
        }
        // The target may be a symbolic link; the mount belongs to the folder behind it.
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_SYMLINKS;
        Ok(move_mount(&self.mount, "", CWD, path, flags)?)
    }
}

/// Mounts an empty `tmpfs` over a folder, with the mount options of `tmpfs`.
pub(crate) fn in_memory(path: &Path, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    Ok(mount("tmpfs", path, "tmpfs", flags, &*options)?)
}

/// Makes the mount at a path read-only; mounts below it stay unchanged.
pub(crate) fn seal_mount(path: &Path) -> io::Result<()> {
    // A remount replaces all flags, so those of `in_memory` are repeated. With `BIND` it changes this
    // mount alone and not the file system (mount(2)).
    let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::BIND;
    Ok(rustix::mount::mount_remount(path, flags, "")?)
}
