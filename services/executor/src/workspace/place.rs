//! Where a checkout lies: at the same place again where that is free, because tools write their place into what they
//! install.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use domain::RepositoryName;

/// Checkouts of one repository at a time; far more than slots.
const MAX_PLACES: u32 = 10_000;
/// Kept of each part of a name, so that the path of a socket inside is not too long for the kernel.
const MAX_PART: usize = 24;

/// Makes the folder of the lowest free number. Names that are the same once they are cut share their numbers.
pub(super) fn claim(folder: &Path, repository: &RepositoryName) -> io::Result<PathBuf> {
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
    fn a_place_that_became_free_is_taken_again() {
        let folder = tempfile::TempDir::new().unwrap();
        let shop = "acme/shop".parse().unwrap();
        let first = claim(folder.path(), &shop).unwrap();
        let second = claim(folder.path(), &shop).unwrap();
        assert_ne!(first, second);
        fs::remove_dir(&first).unwrap();
        assert_eq!(claim(folder.path(), &shop).unwrap(), first);
    }
}
