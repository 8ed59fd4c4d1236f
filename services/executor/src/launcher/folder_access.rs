//! Grants the executor, which is another user, read access to the folders of a worktree.

use std::{io, os::fd::OwnedFd};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, chmodat, openat2, statat},
    io::Errno,
};

use crate::confined_dir::PLAIN;

/// Limit of visited folders.
const MAX_FOLDERS: usize = 200_000;
/// Limit of nested folders; each level holds a descriptor.
const MAX_DEPTH: usize = 200;

/// Makes every folder below readable for all users, and the `.gitignore` files too. Follows no symbolic link.
pub(crate) fn show_folders(root: &OwnedFd) -> io::Result<()> {
    let mut left = MAX_FOLDERS;
    show_folder(root, &mut left, 0)
}

fn show_folder(folder: &OwnedFd, left: &mut usize, depth: usize) -> io::Result<()> {
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
            // `chmodat` follows a link that a command swaps in meanwhile, but its target can only be a file
            // of the same user.
            chmodat(
                folder,
                name,
                Mode::from_raw_mode(stat.st_mode | missing),
                AtFlags::empty(),
            )?;
        }
        if kind == FileType::Directory {
            // A command may replace the folder at any time; an entry that changed is skipped.
            match openat2(folder, name, flags, Mode::empty(), PLAIN) {
                Ok(inner) => show_folder(&inner, left, depth + 1)?,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}
