//! Deleting folders that commands wrote.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Deletes a folder with all that is in it, also where commands took the right to write from a folder (as the module
/// cache of Go does). No process may work in it any more. Blocks.
///
/// # Errors
/// When the disk refuses; part of it may be gone then. A folder that is not there is no error.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            unlock(folder)?;
            fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}

/// Makes every folder beneath one writable; no link is followed.
fn unlock(folder: &Path) -> io::Result<()> {
    let mut queue: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = queue.pop() {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                queue.push(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_whose_insides_may_not_be_written_goes_all_the_same() {
        let outer = tempfile::TempDir::new().unwrap();
        let folder = outer.path().join("a");
        fs::create_dir_all(folder.join("b/c")).unwrap();
        fs::write(folder.join("b/c/file"), "x").unwrap();
        for path in ["b/c", "b"] {
            fs::set_permissions(folder.join(path), fs::Permissions::from_mode(0o555)).unwrap();
        }
        // Whoever may do everything needs no key; both ways end the same.
        unlock(&folder).unwrap();
        fs::set_permissions(folder.join("b"), fs::Permissions::from_mode(0o555)).unwrap();
        remove(&folder).unwrap();
        remove(&folder).unwrap();
        assert!(!folder.exists());
    }
}
