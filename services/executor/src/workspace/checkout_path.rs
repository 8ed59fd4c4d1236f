//! Selects the folder of a checkout. The same path is used again if it is free, because tools write absolute
//! paths into installed files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use domain::RepositoryName;

// Limit of checkouts of one repository at a time; there are far fewer slots.
const MAX_PLACES: u32 = 10_000;
// Limit in bytes of each part of the name. Paths of Unix sockets are limited to 108 bytes (unix(7)), and commands
// may create sockets in the workspace.
const MAX_PART: usize = 24;

/// Creates the folder with the lowest free number. Repositories whose truncated names are equal share the
/// numbers.
pub(super) fn claim_folder(folder: &Path, repository: &RepositoryName) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let (owner, name) = (repository.owner(), repository.name());
    for number in 0..MAX_PLACES {
        let place = folder.join(format!("{owner:.MAX_PART$}.{name:.MAX_PART$}.{number}"));
        match fs::create_dir(&place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| place),
        }
    }
    Err(io::Error::other("no place is free"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_checkout_path_is_reused() {
        let folder = tempfile::TempDir::new().unwrap();
        let shop = "acme/shop".parse().unwrap();
        let first = claim_folder(folder.path(), &shop).unwrap();
        let second = claim_folder(folder.path(), &shop).unwrap();
        assert_ne!(first, second);
        fs::remove_dir(&first).unwrap();
        assert_eq!(claim_folder(folder.path(), &shop).unwrap(), first);
    }
}
