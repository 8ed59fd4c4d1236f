//! Objects in a workspace's git directory: the limit for changes, and the cleanup of unreferenced objects.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::ZlibEncoder};
use git2::{ObjectType, Oid};

use super::{SeenState, Workspace, WorkspaceError};

const MIB: u64 = 1 << 20;
/// Size in bytes from which a file is listed individually, and estimated before it is stored.
const LARGE_FILE: u64 = MIB;
/// Number of samples of a large file that are compressed for an estimate, and the bytes of each.
const SAMPLES: usize = 16;
const SAMPLE_BYTES: usize = 16 * 1024;
/// Limit of large files and folders in a message.
const MAX_NAMED: usize = 5;
/// Limit of paths that one scan records as not stored.
const MAX_REFUSED: usize = 1000;

/// Limits of the stored changes of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeepLimits {
    /// Limit of a snapshot's pack, in bytes.
    pub(crate) pack_bytes: u64,
    /// Size of the git directory in bytes from which unreferenced objects are deleted.
    pub(crate) git_bytes: u64,
}

impl Default for KeepLimits {
    fn default() -> Self {
        Self {
            pack_bytes: 32 * MIB,
            git_bytes: 2048 * MIB,
        }
    }
}

impl KeepLimits {
    /// Limit in bytes of a change's loose objects. Packing rarely reduces them to less than half.
    const fn loose_bytes(self) -> u64 {
        self.pack_bytes.saturating_mul(2)
    }

    /// Builds the refusal of a change for the model.
    fn refusal(self, largest: &LargestPaths) -> WorkspaceError {
        WorkspaceError::Unkeepable(format!(
            "the change is too large: compressed it takes more than {} MiB. The largest of it: {}. Name generated files and \
             folders in .gitignore, delete what does not belong to the change, or make it smaller",
            self.pack_bytes / MIB,
            largest.named()
        ))
    }
}

/// Large files of a change, and folders with many small ones.
#[derive(Clone, Debug, Default)]
pub(super) struct LargestPaths(BTreeMap<String, PathAmount>);

#[derive(Clone, Copy, Debug, Default)]
struct PathAmount {
    bytes: u64,
    files: usize,
}

impl LargestPaths {
    /// Counts a file. `note` follows its name in a message.
    pub(super) fn add(&mut self, path: &Path, bytes: u64, note: &str) {
        let name = match path.components().next() {
            _ if bytes >= LARGE_FILE => format!("{}{note}", path.display()),
            Some(first) if first.as_os_str() != path.as_os_str() => {
                format!("{}/", Path::new(first.as_os_str()).display())
            }
            Some(_) | None => "small files at the root".to_owned(),
        };
        let amount = self.0.entry(name).or_default();
        amount.bytes += bytes;
        amount.files += 1;
    }

    fn named(&self) -> String {
        let mut all: Vec<(&String, &PathAmount)> = self.0.iter().collect();
        all.sort_by_key(|(_, amount)| std::cmp::Reverse(amount.bytes));
        let named = all.iter().take(MAX_NAMED).map(|(name, amount)| {
            let name: String = name.chars().filter(|c| !c.is_control()).take(200).collect();
            let mib = amount.bytes.div_ceil(MIB);
            match amount.files {
                1 => format!("{name} ({mib} MiB)"),
                files => format!("{name} ({mib} MiB in {files} files)"),
            }
        });
        let mut named = named.collect::<Vec<_>>().join(", ");
        if all.len() > MAX_NAMED {
            named.push_str(&format!(", and {} more", all.len() - MAX_NAMED));
        }
        named
    }
}

/// Files that differ from the last commit, collected during one scan.
pub(super) struct ChangeSize {
    limits: KeepLimits,
    /// Folder of the workspace's own objects.
    objects: PathBuf,
    /// Bytes of loose objects.
    loose: u64,
    largest: LargestPaths,
    /// Paths that were not stored, with their sizes.
    refused: Vec<(PathBuf, u64)>,
}

/// Result of comparing a file with the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileFit {
    Fits,
    /// The change exceeds its limit with this file.
    Exceeds,
    /// The file alone exceeds the limit of a change.
    TooLarge,
}

impl ChangeSize {
    pub(super) fn new(limits: KeepLimits, git_dir: &Path) -> Self {
        Self {
            limits,
            objects: git_dir.join("objects"),
            loose: 0,
            largest: LargestPaths::default(),
            refused: Vec::new(),
        }
    }

    /// Decides whether the content of a file may be stored.
    pub(super) fn fit(&self, content: &[u8]) -> FileFit {
        let most = self.limits.loose_bytes();
        if self.loose > most {
            return FileFit::Exceeds;
        }
        if (content.len() as u64) < LARGE_FILE {
            return FileFit::Fits;
        }
        match compressed_size(content) {
            bytes if bytes > self.limits.pack_bytes => FileFit::TooLarge,
            bytes if self.loose + bytes > most => FileFit::Exceeds,
            _ => FileFit::Fits,
        }
    }

    /// Returns the bytes that a stored object adds to the change; 0 for an object of the mirror.
    pub(super) fn weight(&self, id: Oid) -> u64 {
        loose_size(&self.objects, id)
    }

    /// Counts a changed file.
    pub(super) fn add(&mut self, path: &Path, bytes: u64, weight: u64) {
        self.loose += weight;
        self.largest.add(path, bytes, "");
    }

    /// Counts a changed file that is not stored.
    pub(super) fn refuse(&mut self, path: &Path, bytes: u64) {
        self.largest.add(path, bytes, "");
        if self.refused.len() < MAX_REFUSED {
            self.refused.push((path.to_owned(), bytes));
        }
    }

    /// Returns the files that were not stored.
    pub(super) fn into_excess(self) -> UnstoredFiles {
        let refused = self.refused;
        UnstoredFiles {
            largest: if refused.is_empty() {
                LargestPaths::default()
            } else {
                self.largest
            },
            refused,
        }
    }
}

/// Files of a change that were not stored, because the change is too large.
#[derive(Clone, Debug, Default)]
pub(super) struct UnstoredFiles {
    refused: Vec<(PathBuf, u64)>,
    largest: LargestPaths,
}

impl PartialEq for UnstoredFiles {
    fn eq(&self, other: &Self) -> bool {
        self.refused == other.refused
    }
}

/// Estimates the compressed size from samples of a long content.
fn compressed_size(content: &[u8]) -> u64 {
    if content.len() <= SAMPLES * SAMPLE_BYTES {
        return compressed_length(content);
    }
    let step = content.len() / SAMPLES;
    let parts = content.chunks(step).take(SAMPLES);
    let sampled: u64 = parts
        .map(|part| compressed_length(&part[..part.len().min(SAMPLE_BYTES)]))
        .sum();
    (content.len() as u64).saturating_mul(sampled) / (SAMPLES * SAMPLE_BYTES) as u64
}

fn compressed_length(bytes: &[u8]) -> u64 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.map_or(bytes.len() as u64, |compressed| compressed.len() as u64)
}

fn loose_size(objects: &Path, id: Oid) -> u64 {
    let name = id.to_string();
    let (folder, rest) = name.split_at(2);
    let file = fs::metadata(objects.join(folder).join(rest));
    file.map_or(0, |file| file.len())
}

impl Workspace {
    /// Refuses a change with files that were not stored.
    pub(super) fn refuse_excess(&self) -> Result<(), WorkspaceError> {
        let state = self.lock();
        if state.excess.refused.is_empty() {
            return Ok(());
        }
        Err(self.limits.refusal(&state.excess.largest))
    }

    /// Packs these commits and their ancestors, without objects of the base.
    pub(super) fn pack(
        &self,
        repository: &git::BareRepository,
        new: &[domain::CommitId],
    ) -> Result<Vec<u8>, WorkspaceError> {
        let (loose, largest) = self.new_files(repository, new)?;
        if loose > self.limits.loose_bytes() {
            return Err(self.limits.refusal(&largest));
        }
        let most = usize::try_from(self.limits.pack_bytes).unwrap_or(usize::MAX);
        repository.pack(new, &self.base, most).map_err(|error| {
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
        commit: &domain::CommitId,
    ) -> Result<(), WorkspaceError> {
        let (loose, _) = self.new_files(repository, std::slice::from_ref(commit))?;
        // A pack hardly exceeds its loose objects, so that a small commit needs no trial pack.
        if loose <= self.limits.pack_bytes {
            return Ok(());
        }
        self.pack(repository, std::slice::from_ref(commit)).map(drop)
    }

    /// Returns the loose bytes of all files that commits add to the base, and the largest of these files.
    fn new_files(
        &self,
        repository: &git::BareRepository,
        new: &[domain::CommitId],
    ) -> Result<(u64, LargestPaths), WorkspaceError> {
        let git = repository.objects();
        let (odb, objects) = (git.odb()?, self.git_dir().join("objects"));
        let mut walk = git.revwalk()?;
        for commit in new {
            walk.push(Oid::from_str(commit.as_str())?)?;
        }
        walk.hide(Oid::from_str(self.base.as_str())?)?;
        let last = new
            .last()
            .map(|commit| Oid::from_str(commit.as_str()))
            .transpose()?;
        let last = last.map(|last| git.find_commit(last)?.tree()).transpose()?;
        let (mut loose, mut largest, mut known) = (0, LargestPaths::default(), HashSet::new());
        for id in walk {
            let commit = git.find_commit(id?)?;
            let before = commit.parent(0).and_then(|parent| parent.tree()).ok();
            let diff = git.diff_tree_to_tree(before.as_ref(), Some(&commit.tree()?), None)?;
            for delta in diff.deltas() {
                let file = delta.new_file();
                let bytes = loose_size(&objects, file.id());
                if bytes == 0 || !known.insert(file.id()) {
                    continue;
                }
                loose += bytes;
                let path = file.path().unwrap_or(Path::new(""));
                // A deleted file still belongs to an earlier commit, and the message must name that as the
                // reason.
                let is_there = last
                    .as_ref()
                    .is_some_and(|tree| tree.get_path(path).is_ok_and(|entry| entry.id() == file.id()));
                let note = if is_there {
                    ""
                } else {
                    ", which an earlier commit of the branch has"
                };
                largest.add(path, odb.read_header(file.id())?.0 as u64, note);
            }
        }
        Ok((loose, largest))
    }

    /// Size of the git directory after the last measurement, in MiB.
    pub(crate) fn git_mib(&self) -> u64 {
        self.lock().git_bytes.div_ceil(MIB)
    }

    /// Measures the git directory. Above the limit, deletes objects that are referenced neither by a commit,
    /// nor by an undo step, nor by the files, and drops the oldest undo steps if necessary. Blocks.
    pub(super) fn tidy_objects(&self, repository: &git::BareRepository) -> Result<(), WorkspaceError> {
        let objects = self.git_dir().join("objects");
        let (loose, rest) = own_objects(&objects)?;
        let bytes = rest + loose.values().sum::<u64>();
        let most = self.limits.git_bytes;
        let is_due = {
            let mut state = self.lock();
            state.git_bytes = bytes;
            // Objects that a cleanup cannot delete must not trigger the next one.
            bytes > most && bytes > state.tidied_bytes + most / 4
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
        let (head, seen, steps) = {
            let state = self.lock();
            (state.head.clone(), state.seen.clone(), state.undo.clone())
        };
        reached.add_commits(head.iter().chain([&self.base]))?;
        if let Some(seen) = &seen {
            reached.add_seen(seen)?;
        }
        let mut kept = 0;
        // The newest steps first, because the oldest are dropped at the limit.
        for step in steps.iter().rev() {
            let mut more = reached.clone();
            more.add_seen(step)?;
            if rest + more.bytes > most {
                break;
            }
            (reached, kept) = (more, kept + 1);
        }
        for id in loose.keys().filter(|id| !reached.found.contains(id)) {
            let name = id.to_string();
            let (folder, file) = name.split_at(2);
            fs::remove_file(objects.join(folder).join(file))?;
        }
        let left = rest + reached.bytes;
        let mut state = self.lock();
        let dropped = state.undo.len().saturating_sub(kept);
        state.undo.drain(..dropped);
        (state.git_bytes, state.tidied_bytes) = (left, left);
        drop(state);
        tracing::info!(
            run = %self.run,
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

    fn add_seen(&mut self, (tree, _, head): &SeenState) -> Result<(), WorkspaceError> {
        self.add(*tree)?;
        self.add_commits(head)
    }

    fn add_commits<'b>(
        &mut self,
        commits: impl IntoIterator<Item = &'b domain::CommitId>,
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
    use crate::tools::tests::World;

    /// Returns incompressible bytes, different for each seed.
    fn generate_noise(bytes: usize, seed: u64) -> Vec<u8> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        std::iter::repeat_with(next).take(bytes / 8).flatten().collect()
    }

    fn build_limited_world() -> World {
        World::limited(KeepLimits {
            pack_bytes: 2 * MIB,
            git_bytes: 3 * MIB,
        })
    }

    fn git_bytes(workspace: &Workspace) -> u64 {
        let (loose, rest) = own_objects(&workspace.git_dir().join("objects")).unwrap();
        rest + loose.values().sum::<u64>()
    }

    #[test]
    fn compression_estimate_separates_noise_from_text() {
        let random = generate_noise(2 << 20, 1);
        let estimate = compressed_size(&random);
        assert!(estimate.abs_diff(2 * MIB) < MIB / 50, "{estimate}");
        let text = "the same line again\n".repeat(100_000);
        assert!(compressed_size(text.as_bytes()) < MIB / 20);
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
        assert!(workspace.git_mib() > 0);
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
