//! Cache of the results of setup commands, for later runs with the same commands on the same files.
//!
//! Only commits in the history of the base branch use it, so a pull request cannot influence other runs.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use domain::{RepositoryName, cause::format_error_chain};
use git::DiskFloor;
use git2::{ObjectType, Oid};
use parking_lot::RwLock;

use crate::{
    cleanup,
    workspace::{FileAmount, Workspace, WorkspaceError, WorkspaceOrigin},
};

/// Folder of stored results in the data folder, by owner, repository and key.
pub(crate) const FOLDER: &str = "setups";
/// Folder of incomplete results, and of results that are being deleted, in the data folder.
pub(crate) const UNFINISHED: &str = "setups.unfinished";
/// File of an entry with the tree of the workspace's origin, the number of files, and their bytes.
const NOTE: &str = "note";

/// Files in which package managers pin installed versions.
const LOCKFILES: &[&str] = &[
    "Cargo.lock",
    "Gemfile.lock",
    "Package.resolved",
    "Pipfile.lock",
    "Podfile.lock",
    "bun.lock",
    "bun.lockb",
    "composer.lock",
    "conda-lock.yml",
    "deno.lock",
    "flake.lock",
    "go.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pubspec.lock",
    "uv.lock",
    "yarn.lock",
];

/// Results of setup commands on disk. All methods block the calling thread.
pub(crate) struct SetupCache {
    folder: PathBuf,
    unfinished: PathBuf,
    max_bytes: u64,
    floor: DiskFloor,
    identity: String,
    /// Read lock during a copy out of the cache, write lock during a removal.
    in_use: RwLock<()>,
}

/// Location of a result, with the files that it belongs to.
pub(crate) struct SetupKey {
    entry: PathBuf,
    origin: WorkspaceOrigin,
}

struct SetupEntry {
    path: PathBuf,
    last_used: SystemTime,
    bytes: u64,
}

impl SetupCache {
    /// Creates the cache in the data folder. `max_bytes` is the limit of all results together; 0 disables the
    /// cache.
    pub(crate) fn new(data_dir: &Path, max_bytes: u64, floor: DiskFloor) -> Self {
        Self {
            folder: data_dir.join(FOLDER),
            unfinished: data_dir.join(UNFINISHED),
            max_bytes,
            floor,
            identity: describe_environment(),
            in_use: RwLock::default(),
        }
    }

    /// Returns the key for these commands in a workspace in which no command has run.
    ///
    /// Commands may read every file, so the key contains all of them, also the contents of Git LFS that replace
    /// pointers. `None` when there are no commands, when no lockfile pins the installed versions, or when a runner
    /// holds the files.
    ///
    /// # Errors
    /// Fails when the workspace's files cannot be read.
    pub(crate) fn key(
        &self,
        workspace: &Workspace,
        commands: &[String],
    ) -> Result<Option<SetupKey>, WorkspaceError> {
        if self.max_bytes == 0 || !workspace.disk.is_ours() || commands.is_empty() {
            return Ok(None);
        }
        let origin = WorkspaceOrigin::read(workspace)?;
        if !origin.has_file(is_lockfile) {
            return Ok(None);
        }
        let (place, tree) = (workspace.disk.place(), origin.tree);
        let contents = workspace.git.lfs.describe();
        // The workspace's path is part of the key, because tools write it into installed files.
        let known_by = format!("{}\n{place:?}\n{commands:?}\n{tree}\n{contents}", self.identity);
        let key = Oid::hash_object(ObjectType::Blob, known_by.as_bytes())?;
        let entry = self.of(&workspace.repository).join(key.to_string());
        Ok(Some(SetupKey { entry, origin }))
    }

    /// Restores a stored result into a new workspace. Returns false when the cache has none. An unusable result is
    /// deleted.
    ///
    /// # Errors
    /// Fails when a partially restored result cannot be removed.
    pub(crate) fn put_in(&self, key: &SetupKey, workspace: &Workspace) -> Result<bool, WorkspaceError> {
        let reading = self.in_use.read();
        let Some((tree, amount)) = read_note(&key.entry) else {
            return Ok(false);
        };
        if tree != key.origin.tree {
            return Ok(false);
        }
        let Err(problem) = key.origin.put_in(&workspace.disk, &key.entry, amount) else {
            mark_used(&key.entry);
            return Ok(true);
        };
        // `drop_entry` takes the write lock, for which this read lock must be free.
        drop(reading);
        tracing::warn!(%problem, "a kept result of setup cannot be used and goes");
        self.drop_entry(&key.entry);
        Ok(false)
    }

    /// Stores the result of setup in a workspace. Failures are logged: they cost only the next run its reuse.
    pub(crate) fn keep(&self, key: &SetupKey, workspace: &Workspace) {
        let unfinished = self.unfinished.join(&workspace.id);
        match self.store(key, workspace, &unfinished) {
            Ok(true) => tracing::info!(run = %workspace.run, "the setup's result is kept"),
            Ok(false) => tracing::info!(run = %workspace.run, "the setup's result is not kept"),
            Err(problem) => tracing::warn!(%problem, "the setup's result cannot be kept"),
        }
        if let Err(error) = cleanup::remove_folder(&unfinished) {
            tracing::warn!(error = %format_error_chain(&error), "an unfinished result of setup stays behind");
        }
    }

    /// Enforces the limits, also when other processes filled the disk.
    pub(crate) fn tidy(&self) {
        self.make_room(self.max_bytes);
    }

    fn store(
        &self,
        key: &SetupKey,
        workspace: &Workspace,
        unfinished: &Path,
    ) -> Result<bool, WorkspaceError> {
        self.tidy();
        if !self.floor.has_room(&self.folder) {
            return Ok(false);
        }
        let Some(amount) = key.origin.take_out(workspace, unfinished, self.max_bytes)? else {
            return Ok(false);
        };
        let note = format!("{} {} {}\n", key.origin.tree, amount.files, amount.bytes);
        // The note is written last: an entry without it is incomplete and unused.
        fs::write(unfinished.join(NOTE), note)?;
        // The copy itself may have filled the disk.
        if !self.floor.has_room(&self.folder) {
            return Ok(false);
        }
        fs::create_dir_all(self.of(&workspace.repository))?;
        self.make_room(self.max_bytes.saturating_sub(amount.bytes));
        // If another run stored the same result first, that one stays.
        Ok(fs::rename(unfinished, &key.entry).is_ok())
    }

    fn of(&self, repository: &RepositoryName) -> PathBuf {
        self.folder.join(repository.folder())
    }

    /// Deletes the least recently used results until the limit is met and the disk has room.
    fn make_room(&self, max_bytes: u64) {
        let mut entries = self.entries();
        entries.sort_by_key(|entry| entry.last_used);
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        for entry in entries {
            if bytes <= max_bytes && self.floor.has_room(&self.folder) {
                return;
            }
            self.drop_entry(&entry.path);
            bytes -= entry.bytes;
        }
    }

    fn drop_entry(&self, entry: &Path) {
        let goes = self.unfinished.join(uuid::Uuid::new_v4().to_string());
        let writing = self.in_use.write();
        // The rename removes the entry at once; the deletion afterwards takes longer.
        let removed = fs::rename(entry, &goes);
        drop(writing);
        if let Err(error) = removed.and_then(|()| cleanup::remove_folder(&goes)) {
            tracing::warn!(error = %format_error_chain(&error), "a kept result of setup cannot be deleted");
        }
    }

    fn entries(&self) -> Vec<SetupEntry> {
        let repositories =
            list_folders(&self.folder).flat_map(|owner| list_folders(&owner).collect::<Vec<_>>());
        let found = repositories.flat_map(|repository| list_folders(&repository).collect::<Vec<_>>());
        let entry = |path: PathBuf| SetupEntry {
            last_used: fs::metadata(&path)
                .and_then(|metadata| metadata.modified())
                .unwrap_or(SystemTime::UNIX_EPOCH),
            bytes: read_note(&path).map_or(0, |(_, amount)| amount.bytes),
            path,
        };
        found.map(entry).collect()
    }
}

fn is_lockfile(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let is_requirements = name.starts_with("requirements")
        && path
            .extension()
            .is_some_and(|extension| extension == "txt" || extension == "lock");
    is_requirements || LOCKFILES.contains(&name)
}

fn list_folders(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}

fn read_note(entry: &Path) -> Option<(Oid, FileAmount)> {
    let text = fs::read_to_string(entry.join(NOTE)).ok()?;
    let mut parts = text.split_whitespace();
    let tree = Oid::from_str(parts.next()?).ok()?;
    let (files, bytes) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some((tree, FileAmount { files, bytes }))
}

fn mark_used(entry: &Path) {
    let touched = fs::File::open(entry).and_then(|entry| entry.set_modified(SystemTime::now()));
    if let Err(error) = touched {
        tracing::debug!(error = %format_error_chain(&error), "the last use of a kept result cannot be noted");
    }
}

/// Describes this executor and its toolchains: its version, the system, and the folders of programs with
/// their modification times. A result of another environment is not reused.
pub(crate) fn describe_environment() -> String {
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A folder's modification time changes when a program in it is installed or removed.
    let changed = |folder: PathBuf| -> io::Result<String> {
        let modified = fs::metadata(&folder)?.modified()?;
        Ok(format!("{folder:?} {modified:?}"))
    };
    let programs: Vec<String> = std::env::split_paths(&path)
        .filter_map(|folder| changed(folder).ok())
        .collect();
    format!("{}\n{system}\n{}", env!("CARGO_PKG_VERSION"), programs.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_setup_cache(folder: &Path, max_bytes: u64, floor: u64) -> SetupCache {
        for name in [FOLDER, UNFINISHED] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        SetupCache::new(folder, max_bytes, DiskFloor(floor))
    }

    fn create_cache_entry(cache: &SetupCache, name: &str, bytes: u64, age_s: u64) -> PathBuf {
        let path = cache.folder.join("acme/shop").join(name);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(NOTE), format!("{} 1 {bytes}", "a".repeat(40))).unwrap();
        let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 - age_s);
        fs::File::open(&path).unwrap().set_modified(time).unwrap();
        path
    }

    #[test]
    fn least_recently_used_setup_is_removed() {
        let folder = tempfile::TempDir::new().unwrap();
        let cache = build_setup_cache(folder.path(), 100, 0);
        let [old, used, new] = [("old", 30), ("used", 20), ("new", 10)]
            .map(|(name, age)| create_cache_entry(&cache, name, 40, age));
        mark_used(&used);
        cache.make_room(80);
        assert!(!old.exists() && used.exists() && new.exists());
        cache.make_room(40);
        assert!(used.exists() && !new.exists());
        assert_eq!(fs::read_dir(&cache.unfinished).unwrap().count(), 0);
    }

    #[test]
    fn a_full_disk_takes_all_of_it() {
        let folder = tempfile::TempDir::new().unwrap();
        let cache = build_setup_cache(folder.path(), u64::MAX, u64::MAX);
        let kept = create_cache_entry(&cache, "kept", 1, 1);
        cache.make_room(u64::MAX);
        assert!(!kept.exists());
    }

    #[test]
    fn lockfiles_are_known_by_their_names_anywhere() {
        for (path, is_one) in [
            ("Cargo.lock", true),
            ("web/app/package-lock.json", true),
            ("requirements-dev.txt", true),
            ("requirements.txt", true),
            ("requirements.md", false),
            ("Cargo.toml", false),
        ] {
            assert_eq!(is_lockfile(Path::new(path)), is_one, "{path}");
        }
    }
}
