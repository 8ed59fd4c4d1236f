//! Bare mirrors of repositories, one each, fetched from the git gate.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use domain::{CommitId, RepositoryName};
use git::{Auth, Repository, Transport};
use secrecy::SecretString;
use tokio::sync::Mutex as AsyncMutex;

use crate::disk;

/// The base of a workspace, and where to get it.
pub(crate) struct Wanted {
    pub(crate) repository: RepositoryName,
    /// Base URL of the git gate.
    pub(crate) gate_url: String,
    /// Grant for the gate.
    pub(crate) gate_grant: SecretString,
    /// Absent: the head of `base_branch` as it is now.
    pub(crate) base: Option<CommitId>,
    pub(crate) base_branch: String,
}

/// Held by who works on a mirror: whether the one before ended by itself, so that it left no lock.
type MirrorLock = Arc<AsyncMutex<bool>>;

/// Where a mirror is. It stays there as long as somebody holds this.
pub(crate) type MirrorPath = Arc<Path>;

/// Mirrors on disk.
pub(crate) struct Mirrors {
    folder: PathBuf,
    known: Mutex<HashMap<RepositoryName, (MirrorLock, MirrorPath)>>,
}

impl Mirrors {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            known: Mutex::default(),
        }
    }

    fn path(&self, repository: &RepositoryName) -> PathBuf {
        self.folder
            .join(repository.owner())
            .join(format!("{}.git", repository.name()))
    }

    /// Repositories whose mirror is here and holds something.
    pub(crate) fn warm(&self) -> Vec<RepositoryName> {
        let is_filled = |name: &RepositoryName| {
            let path = self.path(name);
            path.join("packed-refs").exists() || names_in(&path.join("refs/heads")).next().is_some()
        };
        let mut names: Vec<_> = self.all().filter(is_filled).collect();
        names.sort();
        names
    }

    /// Lets mirrors go that nobody reads from, the one that was not asked for the longest first, until there is room.
    /// Blocks.
    pub(crate) fn make_room(&self, has_room: impl Fn() -> bool) {
        let used = |name: &RepositoryName| {
            fs::metadata(self.path(name))
                .and_then(|found| found.modified())
                .ok()
        };
        let mut names: Vec<_> = self.all().collect();
        names.sort_by_key(used);
        for name in names {
            if has_room() {
                return;
            }
            self.let_go(&name);
        }
    }

    fn let_go(&self, name: &RepositoryName) {
        let mut known = self.known();
        let (lock, path) = entry(&mut known, name, self.path(name));
        // This one and the table's: nobody else has it. Whoever asks for it from now on waits for the lock.
        let Ok(_lock) = lock.try_lock_owned() else { return };
        if Arc::strong_count(&path) > 2 {
            return;
        }
        drop(known);
        match disk::remove(&path) {
            Ok(()) => tracing::info!(repository = %name, "a mirror goes, the disk is nearly full"),
            Err(error) => tracing::warn!(repository = %name, %error, "a mirror cannot be deleted"),
        }
    }

    fn all(&self) -> impl Iterator<Item = RepositoryName> {
        names_in(&self.folder).flat_map(|owner| {
            let names = names_in(&self.folder.join(&owner));
            names.filter_map(move |name| RepositoryName::new(&owner, name.strip_suffix(".git")?).ok())
        })
    }

    /// Sees to it that the mirror holds the base, and says which commit that is. A pinned commit that is here already
    /// needs no network.
    pub(crate) async fn prepare(&self, wanted: &Wanted) -> Result<(CommitId, MirrorPath), git::Error> {
        let (lock, path) = entry(
            &mut self.known(),
            &wanted.repository,
            self.path(&wanted.repository),
        );
        let mut is_clean = lock.lock().await;
        make(&path, std::mem::take(&mut *is_clean)).await?;
        let base = self.fetch(wanted, &path, &mut is_clean).await?;
        Ok((base, path))
    }

    async fn fetch(&self, wanted: &Wanted, path: &Path, is_clean: &mut bool) -> Result<CommitId, git::Error> {
        if let Some(base) = &wanted.base
            && holds(path, base).await?
        {
            return Ok(base.clone());
        }
        let url = format!(
            "{}/{}.git",
            wanted.gate_url.trim_end_matches('/'),
            wanted.repository
        );
        let auth = Auth::bearer(&wanted.gate_grant);
        let transport = Transport::new(path);
        let fetched = transport.fetch(&url, Some(&auth), &["+refs/heads/*:refs/heads/*"], true);
        failpoint::around("executor.mirror.fetch", fetched).await?;
        *is_clean = true;
        let missing = |what: String| git::Error::NotFound(format!("{what} in {}", wanted.repository));
        match &wanted.base {
            Some(base) if holds(path, base).await? => Ok(base.clone()),
            Some(base) => Err(missing(format!("commit {}", base.short()))),
            None => {
                let (path, branch) = (path.to_owned(), wanted.base_branch.clone());
                let head = blocking(move || Repository::open(&path)?.branch_head(&branch)).await?;
                head.ok_or_else(|| missing(format!("branch {}", wanted.base_branch)))
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<RepositoryName, (MirrorLock, MirrorPath)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry(
    known: &mut HashMap<RepositoryName, (MirrorLock, MirrorPath)>,
    name: &RepositoryName,
    path: PathBuf,
) -> (MirrorLock, MirrorPath) {
    let known = known.entry(name.clone());
    known
        .or_insert_with(|| (MirrorLock::default(), path.into()))
        .clone()
}

/// Names in a folder; none when it cannot be read.
fn names_in(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

async fn make(path: &Path, is_clean: bool) -> Result<(), git::Error> {
    let path = path.to_owned();
    blocking(move || {
        let made = if is_clean {
            Repository::init_bare(&path)
        } else {
            Repository::take_over(&path)
        };
        // What was asked for last stays the longest.
        let _ = fs::File::open(&path).and_then(|folder| folder.set_modified(SystemTime::now()));
        made.map(drop)
    })
    .await
}

async fn holds(path: &Path, commit: &CommitId) -> Result<bool, git::Error> {
    let (path, commit) = (path.to_owned(), commit.clone());
    blocking(move || Ok(Repository::open(&path)?.contains(&commit))).await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, git::Error> + Send + 'static,
) -> Result<T, git::Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| git::Error::Failed(error.to_string()))?
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, time::Duration};

    use super::*;

    /// Mirrors that were asked for in this order.
    fn mirrors(folder: &Path, names: &[&str]) -> Mirrors {
        let mirrors = Mirrors::new(folder.to_owned());
        for (at, name) in names.iter().enumerate() {
            let path = mirrors.path(&name.parse().unwrap());
            Repository::init_bare(&path).unwrap();
            fs::write(path.join("packed-refs"), "").unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(at as u64);
            fs::File::open(&path).unwrap().set_modified(time).unwrap();
        }
        mirrors
    }

    fn left(mirrors: &Mirrors) -> Vec<String> {
        mirrors.warm().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_mirror_that_was_not_asked_for_the_longest_goes_first_and_only_until_there_is_room() {
        let folder = tempfile::TempDir::new().unwrap();
        let mirrors = mirrors(folder.path(), &["acme/b", "acme/a", "other/c"]);
        let asked = Cell::new(0);
        mirrors.make_room(|| asked.replace(asked.get() + 1) == 2);
        assert_eq!(left(&mirrors), ["other/c"]);
    }

    #[tokio::test]
    async fn a_mirror_that_is_read_from_or_worked_on_stays() {
        let folder = tempfile::TempDir::new().unwrap();
        let mirrors = mirrors(folder.path(), &["acme/a", "acme/b", "acme/c"]);
        let ask = |name: &str| {
            let name = name.parse().unwrap();
            entry(&mut mirrors.known(), &name, mirrors.path(&name))
        };
        let (_, held) = ask("acme/a");
        let (lock, path) = ask("acme/b");
        drop(path);
        let fetching = lock.lock().await;
        mirrors.make_room(|| false);
        assert_eq!(left(&mirrors), ["acme/a", "acme/b"]);
        drop((held, fetching));
        mirrors.make_room(|| false);
        assert_eq!(left(&mirrors), Vec::<String>::new());
    }
}
