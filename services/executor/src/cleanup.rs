//! Deletes folders that commands wrote to.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use domain::cause::format_error_chain;
use uuid::Uuid;

/// Folder for the data of an earlier start until it is deleted.
const LEFT: &str = "left";
/// Number of deletion attempts, and the pause between them, while a process of the earlier start still
/// writes.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Creates empty folders of these names.
///
/// Processes of an earlier start that was killed may still write into the old folders for a moment, so these
/// are moved away and then deleted. The next start deletes what cannot be deleted within two seconds. Blocks.
///
/// # Errors
/// Fails when a folder cannot be moved or created.
#[expect(
    clippy::disallowed_methods,
    reason = "the caller blocks on a thread of its own, outside of the runtime"
)]
pub(crate) fn renew_folders(parent: &Path, names: &[&str]) -> io::Result<()> {
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
    // The parent of `away`, so that the data that earlier starts could not delete goes too.
    let mut removed = remove_folder(&left);
    for _ in 1..TRIES {
        if removed.is_ok() {
            break;
        }
        std::thread::sleep(PAUSE);
        removed = remove_folder(&left);
    }
    if let Err(error) = removed {
        tracing::warn!(folder = %left.display(), error = %format_error_chain(&error), "old workspaces cannot be deleted");
    }
    Ok(())
}

/// Deletes a folder with its content, even if commands removed the write permission from folders in it, as
/// Go's module cache does. No process may work in it. Blocks.
///
/// # Errors
/// Fails when the disk reports an error; a part of the folder may be deleted by then. A missing folder is not
/// an error.
pub(crate) fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // Only after a refusal, because most folders need no second walk.
            unlock_folders(folder)?;
            fs::remove_dir_all(folder)
        }
        removed => removed,
    }
}

/// Makes all folders below a folder writable. Follows no symbolic link.
fn unlock_folders(folder: &Path) -> io::Result<()> {
    let mut queue: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = queue.pop() {
        // Before the folder is read, because it may lack the read permission too.
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
    fn folders_renew_despite_earlier_writer() {
        let parent = tempfile::TempDir::new().unwrap();
        for _ in 0..5 {
            let inside = parent.path().join("workspaces/a");
            fs::create_dir_all(&inside).unwrap();
            let held = fs::File::open(&inside).unwrap();
            let has_written = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for number in 0..2_000 {
                        // Fails after the folder is deleted, so the error is ignored.
                        let _ = rustix::fs::mkdirat(&held, number.to_string(), Mode::RWXU);
                        has_written.store(true, Ordering::Relaxed);
                    }
                });
                while !has_written.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                renew_folders(parent.path(), &["workspaces", "ready"]).unwrap();
            });
            for name in ["workspaces", "ready"] {
                assert_eq!(fs::read_dir(parent.path().join(name)).unwrap().count(), 0);
            }
        }
        renew_folders(parent.path(), &["workspaces", "ready"]).unwrap();
        assert!(!parent.path().join(LEFT).exists());
    }

    #[test]
    fn folder_with_readonly_content_is_removed() {
        let outer = tempfile::TempDir::new().unwrap();
        let folder = outer.path().join("a");
        fs::create_dir_all(folder.join("b/c")).unwrap();
        fs::write(folder.join("b/c/file"), "x").unwrap();
        for path in ["b/c", "b"] {
            fs::set_permissions(folder.join(path), fs::Permissions::from_mode(0o555)).unwrap();
        }
        // Root can delete without `unlock`; the result is the same.
        unlock_folders(&folder).unwrap();
        fs::set_permissions(folder.join("b"), fs::Permissions::from_mode(0o555)).unwrap();
        remove_folder(&folder).unwrap();
        remove_folder(&folder).unwrap();
        assert!(!folder.exists());
    }
}
