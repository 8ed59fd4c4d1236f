//! Records the files that setup created outside of the repository's files (`node_modules`, `.venv`, `target`,
//! the home folder).
//!
//! A check gets a copy of those that are unchanged, by inode and change time, which commands cannot set.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    io,
    path::Path,
    sync::OnceLock,
};

use rustix::fs::FileType;

use super::{
    WorkspaceError, WorkspaceRoot,
    disk::WorkspaceDisk,
    git_directory::GitDirectory,
    tracked_files::list_tracked_files,
    walk::{WalkEntry, walk_folder},
};

/// Home folder in the scratch space.
const HOME: &str = "home";
/// File that points to git settings, which commands may change.
const GIT_FILE: &str = ".git";
/// Limit of the copied files, in bytes.
const MAX_BYTES: u64 = 16 << 30;
/// Limit of changed files that are named.
const MAX_NAMED: usize = 10;

/// All files that setup created. Paths and stamps are stored as hashes, because there may be very many.
#[derive(Debug)]
struct SetupEnvironment {
    /// Hasher with random keys, so that commands cannot construct two paths with the same hash.
    hasher: RandomState,
    tree: HashMap<u64, u64>,
    home: HashMap<u64, u64>,
}

/// State of a file compared with the end of setup.
#[derive(PartialEq, Eq)]
enum SetupDifference {
    /// Unchanged since setup.
    Same,
    /// Changed since setup.
    Changed,
    /// Created after setup.
    New,
}

impl SetupEnvironment {
    fn key(&self, path: &Path) -> u64 {
        self.hasher.hash_one(path)
    }

    fn stamp(&self, met: &WalkEntry) -> u64 {
        self.hasher.hash_one(met.stamp)
    }

    /// Stamps all files below a folder, by path.
    fn stamp_files(
        &self,
        root: &WorkspaceRoot,
        folder: &str,
        is_wanted: &dyn Fn(&Path) -> bool,
    ) -> Result<HashMap<u64, u64>, WorkspaceError> {
        let mut found = HashMap::new();
        walk_folder(root, Path::new(folder), is_wanted, &mut |met| {
            if met.kind != FileType::Directory {
                found.insert(self.key(&met.path), self.stamp(&met));
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn since(&self, known: &HashMap<u64, u64>, met: &WalkEntry) -> SetupDifference {
        match known.get(&self.key(&met.path)) {
            Some(stamp) if *stamp == self.stamp(met) => SetupDifference::Same,
            Some(_) => SetupDifference::Changed,
            None => SetupDifference::New,
        }
    }
}

/// Files that setup created; unset if setup did not run.
#[derive(Default)]
pub(crate) struct SetupFiles(OnceLock<SetupEnvironment>);

impl SetupFiles {
    /// Records the files outside of the repository's files. The caller must call it after setup and before
    /// the model's first command. Blocks.
    pub(crate) fn note(&self, disk: &WorkspaceDisk, git: &GitDirectory) -> Result<(), WorkspaceError> {
        let repository = git.open()?;
        let own = list_tracked_files(repository.objects(), git.base_tree(repository.objects())?)?;
        let mut environment = SetupEnvironment {
            hasher: RandomState::new(),
            tree: HashMap::new(),
            home: HashMap::new(),
        };
        let is_other = |path: &Path| path != Path::new(GIT_FILE) && !own.contains_key(path);
        environment.tree = environment.stamp_files(disk.root(), "", &is_other)?;
        environment.home = environment.stamp_files(disk.scratch(), HOME, &|_| true)?;
        // The result is ignored: setup of a workspace happens only once.
        let _ = self.0.set(environment);
        Ok(())
    }

    /// Copies unchanged files of setup to the folders of a check, except to paths that are taken. Blocks.
    pub(super) fn copy(
        &self,
        disk: &WorkspaceDisk,
        tree: &WorkspaceRoot,
        scratch: &WorkspaceRoot,
        is_taken: &dyn Fn(&Path) -> bool,
    ) -> Result<SetupCopy, WorkspaceError> {
        let Some(environment) = self.0.get() else {
            return Ok(SetupCopy {
                tampered: Vec::new(),
                is_complete: true,
            });
        };
        let mut copy = EnvironmentCopy {
            environment,
            bytes: 0,
            unchanged: 0,
            tampered: Vec::new(),
        };
        let is_wanted = |path: &Path| path != Path::new(GIT_FILE) && !is_taken(path);
        walk_folder(disk.root(), Path::new(""), &is_wanted, &mut |met| {
            copy.one(&environment.tree, met, disk.root(), tree, Path::new(""))
        })?;
        walk_folder(disk.scratch(), Path::new(HOME), &|_| true, &mut |met| {
            copy.one(&environment.home, met, disk.scratch(), scratch, Path::new(HOME))
        })?;
        Ok(SetupCopy {
            is_complete: copy.unchanged == environment.tree.len() + environment.home.len(),
            tampered: copy.tampered,
        })
    }
}

/// Result of copying the files of setup to a check.
pub(super) struct SetupCopy {
    /// Paths of some files that were changed since setup.
    pub(super) tampered: Vec<String>,
    /// True when every file is as setup left it; a deleted one is not tampered with, but missing.
    pub(super) is_complete: bool,
}

struct EnvironmentCopy<'a> {
    environment: &'a SetupEnvironment,
    bytes: u64,
    unchanged: usize,
    tampered: Vec<String>,
}

impl EnvironmentCopy<'_> {
    /// Copies one file. `start` is the folder in both roots at which the walk began.
    fn one(
        &mut self,
        known: &HashMap<u64, u64>,
        met: WalkEntry,
        from: &WorkspaceRoot,
        to: &WorkspaceRoot,
        start: &Path,
    ) -> Result<(), WorkspaceError> {
        if met.kind == FileType::Directory {
            return Ok(());
        }
        let path = start.join(&met.path);
        match self.environment.since(known, &met) {
            SetupDifference::New => return Ok(()),
            // The model's commands may have changed it to influence checks, so it is reported and not copied.
            SetupDifference::Changed => {
                self.note(&path);
                return Ok(());
            }
            SetupDifference::Same => self.unchanged += 1,
        }
        self.bytes += met.size;
        if self.bytes > MAX_BYTES {
            return Err(WorkspaceError::Unkeepable(format!(
                "the setup left more than {} GiB, which is too much for a check's copy",
                MAX_BYTES >> 30
            )));
        }
        match met.kind {
            FileType::Symlink => Ok(to.write_link(&path, &from.read_link(&path)?)?),
            FileType::RegularFile => Ok(copy_file(from, to, &path, met.executable)?),
            FileType::Directory => Ok(()),
            // Pipes and sockets are useless without the process that created them.
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(()),
        }
    }

    fn note(&mut self, path: &Path) {
        if self.tampered.len() < MAX_NAMED {
            let text: String = path
                .to_string_lossy()
                .chars()
                .filter(|c| !c.is_control())
                .take(200)
                .collect();
            self.tampered.push(text);
        }
    }
}

fn copy_file(from: &WorkspaceRoot, to: &WorkspaceRoot, path: &Path, executable: bool) -> io::Result<()> {
    let mut source = from.open_file(path)?;
    let modified = source.metadata()?.modified()?;
    let mut target = to.create_file(path, executable)?;
    // Shares blocks where the file system supports it. A hard link is impossible: a later write would change
    // the original.
    if rustix::fs::ioctl_ficlone(&target, &source).is_err() {
        io::copy(&mut source, &mut target)?;
    }
    // The error is ignored: a file of the runner belongs to another user, and without the old time build
    // tools only build again.
    let _ = target.set_modified(modified);
    Ok(())
}
