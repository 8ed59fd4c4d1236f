//! Objects in a workspace's git directory: packs of changes, and the cleanup of unreferenced objects.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
};

use domain::{CommitId, RunId};
use git2::{ObjectType, Oid};
use parking_lot::Mutex;

use super::{
    WorkspaceError,
    change_size::{ChangeSize, KeepLimits, LargestPaths, MIB, loose_size},
    work_history::{WorkHistory, WorkState},
};

/// Objects of a workspace's own git directory.
pub(crate) struct ObjectStore {
    folder: PathBuf,
    pub(super) limits: KeepLimits,
    size: Mutex<GitDirectorySize>,
}

/// Size of a git directory in bytes.
#[derive(Clone, Copy, Default)]
struct GitDirectorySize {
    /// Size at the last measurement.
    bytes: u64,
    /// Size after the last cleanup.
    tidied: u64,
}

impl ObjectStore {
    pub(super) fn new(git_dir: &Path, limits: KeepLimits) -> Self {
        Self {
            folder: git_dir.join("objects"),
            limits,
            size: Mutex::default(),
        }
    }

    /// Returns an empty change that is measured against the limits.
    pub(super) fn change_size(&self) -> ChangeSize {
        ChangeSize::new(self.limits, &self.folder)
    }

    /// Packs these commits and their ancestors, without objects of the known commits.
    pub(super) fn pack(
        &self,
        repository: &git::BareRepository,
        known: &[CommitId],
        new: &[CommitId],
    ) -> Result<Vec<u8>, WorkspaceError> {
        let (loose, largest) = self.new_files(repository, known, new)?;
        if loose > self.limits.loose_bytes() {
            return Err(self.limits.refusal(&largest));
        }
        let most = usize::try_from(self.limits.pack_bytes).unwrap_or(usize::MAX);
        repository.pack(new, known, most).map_err(|error| {
            if let git::Error::BadPack(_) = error {
                self.limits.refusal(&largest)
            } else {
                error.into()
            }
        })
    }

    /// Refuses a commit that no snapshot could contain. Later commits cannot make its pack smaller.
    pub(super) fn refuse_large_commit(
        &self,
        repository: &git::BareRepository,
        known: &[CommitId],
        commit: &CommitId,
    ) -> Result<(), WorkspaceError> {
        let (loose, _) = self.new_files(repository, known, std::slice::from_ref(commit))?;
        // A pack hardly exceeds its loose objects, so that a small commit needs no trial pack.
        if loose <= self.limits.pack_bytes {
            return Ok(());
        }
        self.pack(repository, known, std::slice::from_ref(commit))
            .map(drop)
    }

    /// Returns the loose bytes of all files that commits add to the known ones, and the largest of these files.
    fn new_files(
        &self,
        repository: &git::BareRepository,
        known: &[CommitId],
        new: &[CommitId],
    ) -> Result<(u64, LargestPaths), WorkspaceError> {
        let git = repository.objects();
        let odb = git.odb()?;
        let mut walk = git.revwalk()?;
        for commit in new {
            walk.push(Oid::from_str(commit.as_str())?)?;
        }
        for commit in known {
            walk.hide(Oid::from_str(commit.as_str())?)?;
        }
        let last = new
            .last()
            .map(|commit| Oid::from_str(commit.as_str()))
            .transpose()?;
        let last = last.map(|last| git.find_commit(last)?.tree()).transpose()?;
        let (mut loose, mut largest, mut seen) = (0, LargestPaths::default(), HashSet::new());
        for id in walk {
            let commit = git.find_commit(id?)?;
            let before = commit.parent(0).and_then(|parent| parent.tree()).ok();
            let before = before.map(|tree| tree.id());
            let differences = git::list_tree_differences(git, before, Some(commit.tree_id()))?;
            for git::TreeDifference { path, new, .. } in &differences {
                let Some((id, _)) = *new else { continue };
                let bytes = loose_size(&self.folder, id);
                if bytes == 0 || !seen.insert(id) {
                    continue;
                }
                loose += bytes;
                // A deleted file still belongs to an earlier commit, and the message must name that as the
                // reason.
                let is_there = last
                    .as_ref()
                    .is_some_and(|tree| tree.get_path(path).is_ok_and(|entry| entry.id() == id));
                let note = if is_there {
                    ""
                } else {
                    ", which an earlier commit of the branch has"
                };
                largest.add(path, odb.read_header(id)?.0 as u64, note);
            }
        }
        Ok((loose, largest))
    }

    /// Size of the git directory after the last measurement, in MiB.
    pub(crate) fn mib(&self) -> u64 {
        self.size.lock().bytes.div_ceil(MIB)
    }

    /// Measures the git directory. Above the limit, deletes objects that are referenced neither by a commit,
    /// nor by an undo step, nor by the files, and drops the oldest undo steps if necessary. Blocks.
    pub(super) fn tidy(
        &self,
        run: &RunId,
        repository: &git::BareRepository,
        base: &CommitId,
        history: &WorkHistory,
    ) -> Result<(), WorkspaceError> {
        let (loose, rest) = own_objects(&self.folder)?;
        let bytes = rest + loose.values().sum::<u64>();
        let most = self.limits.git_bytes;
        let is_due = {
            let mut size = self.size.lock();
            size.bytes = bytes;
            // Objects that a cleanup cannot delete must not trigger the next one.
            bytes > most && bytes > size.tidied + most / 4
        };
        if !is_due {
            return Ok(());
        }
        let mut reached = ReachedObjects::new(repository.objects(), &loose);
        for reference in repository.objects().references()? {
            if let Some(id) = reference?.target() {
                reached.add(id)?;
            }
        }
        let needed = history.needed();
        reached.add_commits(needed.head.iter().chain([base]))?;
        if let Some(seen) = &needed.seen {
            reached.add_state(seen)?;
        }
        let mut kept = 0;
        // The newest steps first, because the oldest are dropped at the limit.
        for step in needed.steps.iter().rev() {
            let mut more = reached.clone();
            more.add_state(step)?;
            if rest + more.bytes > most {
                break;
            }
            (reached, kept) = (more, kept + 1);
        }
        for id in loose.keys().filter(|id| !reached.found.contains(id)) {
            let name = id.to_string();
            let (folder, file) = name.split_at(2);
            fs::remove_file(self.folder.join(folder).join(file))?;
        }
        let left = rest + reached.bytes;
        let dropped = history.keep_steps(kept);
        *self.size.lock() = GitDirectorySize {
            bytes: left,
            tidied: left,
        };
        tracing::info!(
            %run,
            before = bytes,
            after = left,
            undo_steps_dropped = dropped,
            "objects of a workspace that nothing names went"
        );
        Ok(())
    }
}

/// Returns the loose objects with their sizes, and the bytes of all other files.
fn own_objects(objects: &Path) -> io::Result<(HashMap<Oid, u64>, u64)> {
    let (mut loose, mut rest) = (HashMap::new(), 0);
    for folder in fs::read_dir(objects)? {
        let folder = folder?;
        let prefix = folder.file_name().to_string_lossy().into_owned();
        if !folder.file_type()?.is_dir() {
            rest += folder.metadata()?.len();
            continue;
        }
        for file in fs::read_dir(folder.path())? {
            let file = file?;
            let bytes = file.metadata()?.len();
            let id = Oid::from_str(&format!("{prefix}{}", file.file_name().to_string_lossy()));
            match id {
                Ok(id) if prefix.len() == 2 => drop(loose.insert(id, bytes)),
                Ok(_) | Err(_) => rest += bytes,
            }
        }
    }
    Ok((loose, rest))
}

/// Referenced loose objects. Other objects are in a pack or the mirror, together with everything that they
/// reference.
#[derive(Clone)]
struct ReachedObjects<'a> {
    git: &'a git2::Repository,
    loose: &'a HashMap<Oid, u64>,
    found: HashSet<Oid>,
    bytes: u64,
}

impl<'a> ReachedObjects<'a> {
    fn new(git: &'a git2::Repository, loose: &'a HashMap<Oid, u64>) -> Self {
        Self {
            git,
            loose,
            found: HashSet::new(),
            bytes: 0,
        }
    }

    fn add_state(&mut self, state: &WorkState) -> Result<(), WorkspaceError> {
        self.add(state.tree)?;
        self.add_commits(&state.head)
    }

    fn add_commits<'b>(
        &mut self,
        commits: impl IntoIterator<Item = &'b CommitId>,
    ) -> Result<(), WorkspaceError> {
        for commit in commits {
            self.add(Oid::from_str(commit.as_str())?)?;
        }
        Ok(())
    }

    fn add(&mut self, id: Oid) -> Result<(), WorkspaceError> {
        let mut queue = vec![id];
        while let Some(id) = queue.pop() {
            let Some(bytes) = self.loose.get(&id) else {
                continue;
            };
            if !self.found.insert(id) {
                continue;
            }
            self.bytes += bytes;
            let (_, kind) = self.git.odb()?.read_header(id)?;
            match kind {
                ObjectType::Commit => {
                    let commit = self.git.find_commit(id)?;
                    queue.push(commit.tree_id());
                    queue.extend(commit.parent_ids());
                }
                ObjectType::Tree => queue.extend(self.git.find_tree(id)?.iter().map(|entry| entry.id())),
                ObjectType::Any | ObjectType::Blob | ObjectType::Tag => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use domain::CommitAuthor;

    use super::*;
    use crate::{
        tools::tests::World,
        workspace::{Workspace, change_size::tests::generate_noise},
    };

    fn build_limited_world() -> World {
        World::limited(KeepLimits {
            pack_bytes: 2 * MIB,
            git_bytes: 3 * MIB,
        })
    }

    fn git_bytes(workspace: &Workspace) -> u64 {
        let (loose, rest) = own_objects(&workspace.git.objects.folder).unwrap();
        rest + loose.values().sum::<u64>()
    }

    #[test]
    fn oversized_file_is_not_stored() {
        let world = build_limited_world();
        let workspace = &world.call.workspace;
        let before = git_bytes(workspace);
        fs::write(
            workspace.root().path().join("big.bin"),
            generate_noise(3 << 20, 1),
        )
        .unwrap();
        assert!(workspace.has_changed().unwrap(), "the model is to learn of it");
        assert!(!workspace.has_changed().unwrap(), "once");
        assert_eq!(git_bytes(workspace), before);
        let Err(WorkspaceError::Unkeepable(words)) = workspace.snapshot(1) else {
            panic!("it was kept")
        };
        assert!(
            words.contains("2 MiB") && words.contains("big.bin (3 MiB)"),
            "{words}"
        );
        // Zeros compress well, so a file of this size fits.
        fs::write(workspace.root().path().join("big.bin"), vec![0; 3 << 20]).unwrap();
        assert!(workspace.has_changed().unwrap());
        workspace.snapshot(1).unwrap();
    }

    #[test]
    fn unreferenced_objects_are_removed_at_limit() {
        let world = build_limited_world();
        let workspace = &world.call.workspace;
        let file = workspace.root().path().join("a.bin");
        for turn in 1..=6 {
            fs::write(&file, generate_noise(1_500_000, turn)).unwrap();
            assert!(workspace.has_changed().unwrap());
            assert!(
                git_bytes(workspace) < 6 * MIB,
                "turn {turn}: {}",
                git_bytes(workspace)
            );
        }
        assert!(workspace.git.objects.mib() > 0);
        workspace.snapshot(1).unwrap();
        let mut undone = 0;
        while workspace.undo().is_ok() {
            workspace.has_changed().unwrap();
            undone += 1;
        }
        assert!((1..5).contains(&undone), "{undone}");
        assert!(!fs::read(&file).unwrap().is_empty(), "the files are whole");
        workspace.snapshot(2).unwrap();
    }

    #[test]
    fn committed_objects_are_never_removed() {
        let world = build_limited_world();
        let workspace = &world.call.workspace;
        workspace.create_branch("feat/x").unwrap();
        let file = workspace.root().path().join("a.bin");
        fs::write(&file, generate_noise(900_000, 1)).unwrap();
        workspace
            .commit_changes("Add a", false, (&CommitAuthor::journeyman(), 1))
            .unwrap();
        for turn in 2..=8 {
            fs::write(&file, generate_noise(900_000, turn)).unwrap();
            workspace.has_changed().unwrap();
        }
        fs::remove_file(&file).unwrap();
        workspace
            .commit_changes("Remove a", false, (&CommitAuthor::journeyman(), 2))
            .unwrap();
        workspace.has_changed().unwrap();
        let pack = workspace.snapshot(3).unwrap().pack;
        assert!(pack.len() > 800_000, "both commits are in it");
    }
}
