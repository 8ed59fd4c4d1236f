//! Deleting folders that commands wrote.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use domain::cause::chain;
use uuid::Uuid;

/// Where folders of an earlier start lie until they are deleted.
const LEFT: &str = "left";
/// How often, and after which pause, deleting them is tried while a process of that start still writes.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Makes folders of these names new and empty, also where processes of an earlier start that was killed still write into the old
/// ones for a moment: the old ones are moved away, then deleted. What cannot be deleted within two seconds is deleted by the
/// next start. Blocks.
///
/// # Errors
/// When a folder cannot be moved or made.
pub(crate) fn renew(parent: &Path, names: &[&str]) -> io::Result<()> {
    let left = parent.join(LEFT);
    let away = left.join(Uuid::new_v4().to_string());
    fs::create_dir_all(&away)?;
    for name in names {
        let folder = parent.join(name);
        match fs::rename(&folder, away.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => fs::create_dir_all(&folder)?,
        }
    }
    let mut removed = remove(&left);
    for _ in 1..TRIES {
        if removed.is_ok() {
            break;
        }
        std::thread::sleep(PAUSE);
        removed = remove(&left);
    }
    if let Err(error) = removed {
        tracing::warn!(folder = %left.display(), error = %chain(&error), "old workspaces cannot be deleted");
    }
    Ok(())
}

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
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::Mode;

    use super::*;

    #[test]
    fn folders_are_renewed_under_a_writer_of_an_earlier_start() {
        let parent = tempfile::TempDir::new().unwrap();
        for _ in 0..5 {
            let inside = parent.path().join("workspaces/a");
            fs::create_dir_all(&inside).unwrap();
            let held = fs::File::open(&inside).unwrap();
            let has_written = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for number in 0..2_000 {
                        // Fails once the folder is deleted.
                        let _ = rustix::fs::mkdirat(&held, number.to_string(), Mode::RWXU);
                        has_written.store(true, Ordering::Relaxed);
                    }
                });
                while !has_written.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                renew(parent.path(), &["workspaces", "ready"]).unwrap();
            });
            for name in ["workspaces", "ready"] {
                assert_eq!(fs::read_dir(parent.path().join(name)).unwrap().count(), 0);
            }
        }
        renew(parent.path(), &["workspaces", "ready"]).unwrap();
        assert!(!parent.path().join(LEFT).exists());
    }

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
