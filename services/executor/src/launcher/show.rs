//! Letting the executor, another user, walk over a worktree.

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, chmodat, openat2, statat},
    io::Errno,
};

use crate::beneath::PLAIN;

/// Folders that are looked at.
const MAX_FOLDERS: usize = 200_000;
/// Folders within folders; each holds a descriptor.
const MAX_DEPTH: usize = 200;

/// Lets everybody look into every folder beneath, and read the ignore rules there. Follows no link.
pub(crate) fn folders(root: &OwnedFd) -> io::Result<()> {
    let mut left = MAX_FOLDERS;
    show(root, &mut left, 0)
}

fn show(folder: &OwnedFd, left: &mut usize, depth: usize) -> io::Result<()> {
    *left = left.checked_sub(1).ok_or(io::ErrorKind::QuotaExceeded)?;
    if depth > MAX_DEPTH {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let entries: Vec<_> = Dir::read_from(folder)?.collect::<Result<_, _>>()?;
    for entry in entries {
        let (name, kind) = (entry.file_name(), entry.file_type());
        let missing = match kind {
            FileType::Directory if name != c"." && name != c".." => 0o755,
            FileType::RegularFile if name == c".gitignore" => 0o444,
            _ => continue,
        };
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if stat.st_mode & missing != missing && FileType::from_raw_mode(stat.st_mode) == kind {
            // Whatever is swapped for it meanwhile belongs to the same user.
            chmodat(
                folder,
                name,
                Mode::from_raw_mode(stat.st_mode | missing),
                AtFlags::empty(),
            )?;
        }
        if kind == FileType::Directory {
            match openat2(folder, name, flags, Mode::empty(), PLAIN) {
                Ok(inner) => show(&inner, left, depth + 1)?,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
