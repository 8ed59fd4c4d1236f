//! Mirrors of many repositories in one folder, with eviction when the disk is full, and the disk's free space.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use domain::RepositoryName;
use parking_lot::Mutex;

/// Space on a disk, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskRoom {
    /// Space that this user can still fill, in bytes.
    pub free: u64,
    /// Space that is used, in bytes.
    pub used: u64,
}

impl DiskRoom {
    /// Measures the disk that holds a folder; `None` when it cannot be read.
    pub fn measure(folder: &Path) -> Option<Self> {
        let disk = rustix::fs::statvfs(folder).ok()?;
        // `f_frsize` is the unit of the block counts; `f_bavail` leaves out the blocks that only root may
        // use.
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Some(Self {
            free: bytes(disk.f_bavail),
            used: bytes(disk.f_blocks.saturating_sub(disk.f_bfree)),
        })
    }
}

/// Recognizes the refusal of a push to an archived repository, which has the status of a missing permission.
pub fn is_about_archived_repository(words: &str) -> bool {
    words.contains("archived so it is read-only") || words.contains("archived so is read-only")
}

/// Recognizes a full disk by an error message: programs like `git` pass no error code.
pub fn is_about_full_disk(words: &str) -> bool {
    ["No space left on device", "Disk quota exceeded"]
        .iter()
        .any(|full| words.contains(full))
}

/// Minimum free space of a disk, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct DiskFloor(pub u64);

impl DiskFloor {
    /// True when the folder's disk has at least this much free space; false when it cannot be measured.
    pub fn has_room(self, folder: &Path) -> bool {
        DiskRoom::measure(folder).is_some_and(|room| room.free >= self.0)
    }
}

/// Mirror of one repository. Its folder is not evicted while a caller holds this value.
#[derive(Debug)]
pub struct RepositoryMirror<S> {
    /// Path of the mirror, which need not exist yet.
    pub path: Arc<Path>,
    /// State of the mirror, locked by the task that works on it. Reset by an eviction.
    pub state: Arc<tokio::sync::Mutex<S>>,
}

/// Mirrors at `<folder>/<owner>/<name>.git`, or `<folder>/<instance>+<owner>/<name>.git`.
#[derive(Debug)]
pub struct MirrorFolder<S> {
    folder: PathBuf,
    known: Mutex<HashMap<RepositoryName, RepositoryMirror<S>>>,
}

impl<S: Default> MirrorFolder<S> {
    /// Mirrors below a folder, which need not exist yet.
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            known: Mutex::default(),
        }
    }

    /// Returns the mirror of a repository; the caller holds it while it uses the folder.
    pub fn get(&self, repository: &RepositoryName) -> RepositoryMirror<S> {
        self.known_as(&mut self.known.lock(), repository)
    }

    /// Iterates over the repositories with a mirror here, in no order.
    pub fn names(&self) -> impl Iterator<Item = RepositoryName> + use<'_, S> {
        list_names(&self.folder).flat_map(|owner| {
            let names = list_names(&self.folder.join(&owner));
            names.filter_map(move |name| RepositoryName::of_folder(&owner, name.strip_suffix(".git")?))
        })
    }

    /// Path of a repository's mirror, without a hold on it.
    pub fn path(&self, repository: &RepositoryName) -> PathBuf {
        self.folder.join(format!("{}.git", repository.folder()))
    }

    /// Deletes mirrors that no caller holds, least recently used first, while the disk has less free space
    /// than the floor. Returns the names of the deleted ones. Blocks.
    pub fn make_room(&self, floor: DiskFloor) -> Vec<RepositoryName> {
        self.make_room_until(|| floor.has_room(&self.folder))
    }

    /// True when the disk has at least the floor's free space. Blocks.
    pub fn has_room(&self, floor: DiskFloor) -> bool {
        floor.has_room(&self.folder)
    }

    fn make_room_until(&self, has_room: impl Fn() -> bool) -> Vec<RepositoryName> {
        if has_room() {
            return Vec::new();
        }
        let used = |name: &RepositoryName| {
            fs::metadata(self.path(name))
                .and_then(|found| found.modified())
                .ok()
        };
        let mut names: Vec<_> = self.names().collect();
        names.sort_by_cached_key(used);
        let mut gone = Vec::new();
        for name in names {
            if self.let_go(&name) {
                gone.push(name);
                if has_room() {
                    break;
                }
            }
        }
        gone
    }

    fn let_go(&self, name: &RepositoryName) -> bool {
        let mut known = self.known.lock();
        let RepositoryMirror { path, state } = self.known_as(&mut known, name);
        // From here on, other callers wait for the lock of the state.
        let Ok(mut state) = state.try_lock_owned() else {
            return false;
        };
        // One count for this handle, one for the table's; a third is a caller's.
        if Arc::strong_count(&path) > 2 {
            return false;
        }
        drop(known);
        // The state stays locked until the folder is gone, so that no caller sees half of it.
        *state = S::default();
        fs::remove_dir_all(&path).is_ok()
    }

    fn known_as(
        &self,
        known: &mut HashMap<RepositoryName, RepositoryMirror<S>>,
        name: &RepositoryName,
    ) -> RepositoryMirror<S> {
        let make = || RepositoryMirror {
            path: self.path(name).into(),
            state: Arc::default(),
        };
        known.entry(name.clone()).or_insert_with(make).clone()
    }
}

impl<S> Clone for RepositoryMirror<S> {
    fn clone(&self) -> Self {
        Self {
            path: Arc::clone(&self.path),
            state: Arc::clone(&self.state),
        }
    }
}

impl<S> RepositoryMirror<S> {
    /// Updates the time of its last use.
    pub fn touch(&self) {
        // A failure only makes an earlier eviction likely.
        let _ = fs::File::open(&self.path).and_then(|folder| folder.set_modified(SystemTime::now()));
    }
}

/// Names in a folder; empty when it cannot be read.
fn list_names(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, time::Duration};

    use super::*;

    /// Creates mirrors that were used in this order.
    fn create_mirrors(folder: &Path, names: &[&str]) -> MirrorFolder<bool> {
        let mirrors = MirrorFolder::new(folder.to_owned());
        for (at, name) in names.iter().enumerate() {
            let path = mirrors.path(&name.parse().unwrap());
            crate::BareRepository::init_bare(&path).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(at as u64);
            fs::File::open(&path).unwrap().set_modified(time).unwrap();
        }
        mirrors
    }

    fn list_mirror_names(mirrors: &MirrorFolder<bool>) -> Vec<String> {
        let mut names: Vec<_> = mirrors.names().map(|name| name.to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn least_recently_used_mirror_is_evicted_first() {
        let folder = tempfile::TempDir::new().unwrap();
        let mirrors = create_mirrors(folder.path(), &["acme/b", "acme/a", "other/c"]);
        mirrors.get(&"acme/b".parse().unwrap()).touch();
        let asked = Cell::new(0);
        let gone = mirrors.make_room_until(|| asked.replace(asked.get() + 1) == 2);
        assert_eq!(
            gone.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["acme/a", "other/c"]
        );
        assert_eq!(list_mirror_names(&mirrors), ["acme/b"]);
    }

    #[test]
    fn same_path_on_instances_has_separate_mirrors() {
        let folder = tempfile::TempDir::new().unwrap();
        let names = ["acme/shop", "dc:acme/shop", "ghe:acme/shop"];
        assert_eq!(list_mirror_names(&create_mirrors(folder.path(), &names)), names);
    }

    #[tokio::test]
    async fn held_or_locked_mirror_survives_eviction() {
        let folder = tempfile::TempDir::new().unwrap();
        let mirrors = create_mirrors(folder.path(), &["acme/a", "acme/b", "acme/c"]);
        let [a, b, c] = ["acme/a", "acme/b", "acme/c"].map(|name| mirrors.get(&name.parse().unwrap()));
        *c.state.lock().await = true;
        drop(c);
        let RepositoryMirror { path, state } = b;
        drop(path);
        let working = state.lock().await;
        mirrors.make_room_until(|| false);
        assert_eq!(list_mirror_names(&mirrors), ["acme/a", "acme/b"]);
        assert!(!*mirrors.get(&"acme/c".parse().unwrap()).state.lock().await);
        drop((a, working));
        mirrors.make_room_until(|| false);
        assert!(list_mirror_names(&mirrors).is_empty());
    }
}
