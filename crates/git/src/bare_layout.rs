//! Files of a bare repository on disk: its creation, and locks that a killed process left.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use crate::{Error, cli::write_configuration};

/// Creates the files of an empty bare repository.
///
/// libgit2 creates the same ones, and besides them descriptions that nothing reads. It also writes each setting on its
/// own, after probes with temporary files.
pub(crate) fn create_layout(path: &Path) -> Result<(), Error> {
    for folder in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        fs::create_dir_all(path.join(folder))?;
    }
    write_configuration(path)?;
    // The last file: a folder without it is not a repository, so the next call repeats an interrupted creation.
    // A rename keeps a full disk from leaving an empty file, and follows no symbolic link.
    let mut head = tempfile::Builder::new()
        .prefix("HEAD-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(path)?;
    head.write_all(b"ref: refs/heads/main\n")?;
    head.persist(path.join("HEAD")).map_err(|error| error.error)?;
    Ok(())
}

/// Returns true when the folder has a head. An empty file does not count, because `git` refuses a repository with it.
pub(crate) fn has_head(path: &Path) -> bool {
    fs::metadata(path.join("HEAD")).is_ok_and(|head| head.len() > 0)
}

/// Removes the lock files of a repository whose sole writer was killed.
///
/// # Errors
/// [`Error::Failed`] when the disk cannot be written.
pub(crate) fn remove_all_locks(path: &Path) -> Result<(), Error> {
    for folder in ["", "objects/info", "objects/pack"] {
        remove_locks(&path.join(folder))?;
    }
    remove_locks_beneath(&path.join("refs"))
}

fn remove_locks(folder: &Path) -> Result<(), Error> {
    for path in list_folder(folder)? {
        if path.extension().is_some_and(|extension| extension == "lock") && path.is_file() {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn remove_locks_beneath(folder: &Path) -> Result<(), Error> {
    remove_locks(folder)?;
    for path in list_folder(folder)?.into_iter().filter(|path| path.is_dir()) {
        remove_locks_beneath(&path)?;
    }
    Ok(())
}

/// Lists the entries of a folder; empty for a missing one.
pub(crate) fn list_folder(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    match fs::read_dir(folder) {
        Ok(found) => Ok(found
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_, std::io::Error>>()?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
