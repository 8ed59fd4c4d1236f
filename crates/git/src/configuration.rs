//! Configuration of a bare repository, which this crate writes before `git` reads it.

use std::{fs, io::Write as _, path::Path};

use crate::Error;

// Complete configuration of every bare repository of ours.
const CONFIGURATION: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n\tfilemode = true\n";

// Files that `git` obeys in a bare repository and that ours lack: further configuration, objects of other
// repositories, another common folder, attributes, rewritten history.
const FOREIGN_FILES: [&str; 7] = [
    "config.worktree",
    "commondir",
    "gitdir",
    "info/attributes",
    "info/grafts",
    "objects/info/alternates",
    "objects/info/http-alternates",
];

/// Replaces the configuration of a bare repository and removes files that could make `git` run a program,
/// contact another host or read other objects.
///
/// A process with write access to the folder may have left any of these. Only the objects and refs of the
/// folder are kept.
pub(crate) fn write_configuration(git_dir: &Path) -> Result<(), Error> {
    for name in FOREIGN_FILES {
        remove_file(&git_dir.join(name))?;
    }
    let place = git_dir.join("config");
    // A symbolic link, or a pipe that would block a read, is replaced like other foreign content.
    let is_file = fs::symlink_metadata(&place).is_ok_and(|found| found.is_file());
    if is_file && fs::read(&place).is_ok_and(|found| found == CONFIGURATION.as_bytes()) {
        return Ok(());
    }
    // Renaming a complete file keeps a concurrent `git` from reading half of it.
    let mut written = tempfile::Builder::new()
        .prefix("config-")
        .tempfile_in(git_dir)
        .map_err(|error| Error::failed("the configuration cannot be written", error))?;
    written.write_all(CONFIGURATION.as_bytes())?;
    written
        .persist(&place)
        .map_err(|error| Error::failed("the configuration cannot be written", error.error))?;
    Ok(())
}

fn remove_file(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path)?,
        Ok(_) => fs::remove_file(path)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        // A file in the place of a folder has no children.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    tracing::warn!(path = %path.display(), "removed from a repository of ours: no part of it writes this file");
    Ok(())
}
