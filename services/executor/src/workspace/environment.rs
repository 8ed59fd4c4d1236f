//! What the setup left beside the repository's own files (`node_modules`, `.venv`, `target`, the home folder), as it was
//! then. A check gets a copy of it without whatever was changed since: by inode and time of change, which no command can set.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    io,
    path::Path,
};

use rustix::fs::FileType;

use super::{
    Problem, Root, Workspace,
    scan::tracked,
    walk::{Met, walk},
};

/// In the scratch space.
const HOME: &str = "home";
/// Where the settings of the model's git are, which it may write.
const GIT_FILE: &str = ".git";
/// The most that is copied, in bytes.
const MAX_BYTES: u64 = 16 << 30;
/// Changed files that are named.
const MAX_NAMED: usize = 10;

/// Every file that the setup left. Paths and stamps are kept as numbers, because there may be very many.
#[derive(Debug)]
pub(super) struct Environment {
    /// Its keys are made at random, so that no two paths can be found that it takes for one.
    hasher: RandomState,
    tree: HashMap<u64, u64>,
    home: HashMap<u64, u64>,
}

/// What a look at a file says.
#[derive(PartialEq, Eq)]
enum Since {
    /// The setup left it so.
    Same,
    /// The setup left something else there.
    Changed,
    /// It came later.
    New,
}

impl Environment {
    fn key(&self, path: &Path) -> u64 {
        self.hasher.hash_one(path)
    }

    fn stamp(&self, met: &Met) -> u64 {
        self.hasher.hash_one(met.stamp)
    }

    fn since(&self, known: &HashMap<u64, u64>, met: &Met) -> Since {
        match known.get(&self.key(&met.path)) {
            Some(stamp) if *stamp == self.stamp(met) => Since::Same,
            Some(_) => Since::Changed,
            None => Since::New,
        }
    }
}

impl Workspace {
    /// Remembers what lies beside the repository's own files: call it when the setup is through, and before the model's
    /// first command. Blocks.
    pub(crate) fn note_environment(&self) -> Result<(), Problem> {
        let repository = self.git()?;
        let base = repository
            .objects()
            .find_commit(git2::Oid::from_str(self.base.as_str())?)?;
        let own = tracked(repository.objects(), &base.tree()?)?;
        let mut environment = Environment {
            hasher: RandomState::new(),
            tree: HashMap::new(),
            home: HashMap::new(),
        };
        let mut found = Vec::new();
        let is_other = |path: &Path| path != Path::new(GIT_FILE) && !own.contains_key(path);
        walk(self.root(), Path::new(""), &is_other, &mut |met| {
            if met.kind != FileType::Directory {
                found.push((environment.key(&met.path), environment.stamp(&met)));
            }
            Ok(())
        })?;
        environment.tree.extend(found.drain(..));
        walk(&self.scratch, Path::new(HOME), &|_| true, &mut |met| {
            if met.kind != FileType::Directory {
                found.push((environment.key(&met.path), environment.stamp(&met)));
            }
            Ok(())
        })?;
        environment.home.extend(found);
        // A second setup of the same workspace does not happen.
        let _ = self.environment.set(environment);
        Ok(())
    }

    /// Copies what the setup left and nobody changed since to where a check has its files, except to paths that are taken.
    /// The paths of some that were changed. Blocks.
    pub(super) fn copy_environment(
        &self,
        tree: &Root,
        scratch: &Root,
        is_taken: &dyn Fn(&Path) -> bool,
    ) -> Result<Vec<String>, Problem> {
        let Some(environment) = self.environment.get() else {
            return Ok(Vec::new());
        };
        let mut copy = Copying {
            environment,
            bytes: 0,
            tampered: Vec::new(),
        };
        let is_wanted = |path: &Path| path != Path::new(GIT_FILE) && !is_taken(path);
        walk(self.root(), Path::new(""), &is_wanted, &mut |met| {
            copy.one(&environment.tree, met, self.root(), tree, Path::new(""))
        })?;
        walk(&self.scratch, Path::new(HOME), &|_| true, &mut |met| {
            copy.one(&environment.home, met, &self.scratch, scratch, Path::new(HOME))
        })?;
        Ok(copy.tampered)
    }
}

struct Copying<'a> {
    environment: &'a Environment,
    bytes: u64,
    tampered: Vec<String>,
}

impl Copying<'_> {
    /// `start`: where the walk began, in both roots.
    fn one(
        &mut self,
        known: &HashMap<u64, u64>,
        met: Met,
        from: &Root,
        to: &Root,
        start: &Path,
    ) -> Result<(), Problem> {
        if met.kind == FileType::Directory {
            return Ok(());
        }
        let path = start.join(&met.path);
        match self.environment.since(known, &met) {
            Since::New => return Ok(()),
            Since::Changed => {
                self.note(&path);
                return Ok(());
            }
            Since::Same => {}
        }
        self.bytes += met.size;
        if self.bytes > MAX_BYTES {
            return Err(Problem::Unkeepable(format!(
                "the setup left more than {} GiB, which is too much for a check's copy",
                MAX_BYTES >> 30
            )));
        }
        match met.kind {
            FileType::Symlink => Ok(to.write_link(&path, &from.read_link(&path)?)?),
            FileType::RegularFile => Ok(copy_file(from, to, &path, met.executable)?),
            // Pipes and sockets are of no use without whoever made them.
            _ => Ok(()),
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

fn copy_file(from: &Root, to: &Root, path: &Path, executable: bool) -> io::Result<()> {
    let mut source = from.open_file(path)?;
    let modified = source.metadata()?.modified()?;
    let mut target = to.create_file(path, executable)?;
    // Shared blocks where the file system can, never a hard link: a later write must not reach the original.
    if rustix::fs::ioctl_ficlone(&target, &source).is_err() {
        io::copy(&mut source, &mut target)?;
    }
    // Build tools go by it. A runner's file is another user's: then they build again.
    let _ = target.set_modified(modified);
    Ok(())
}
