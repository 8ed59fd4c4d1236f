//! Bare repository at an explicit path.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use domain::CommitId;
use git2::{ConfigLevel, Oid, RepositoryOpenFlags};

use crate::{
    ChangeSet, CommitInfo, Error, InspectionBudget, PackLimits,
    bare_layout::{create_layout, has_head, remove_all_locks},
    change::inspect_change,
    cli::write_configuration,
    external_content::{ExternalContent, find_external_content, find_lfs_files},
    import,
    lfs_pointer::LfsFile,
    pack_contents::{LARGE_BYTES, PackRange},
    tree_difference::list_tree_differences,
};

// Namespace for names of remote branches whose objects are not fetched.
const TAKEN: &str = "refs/taken/";
// Larger files are not read, in bytes.
const MAX_FILE_BYTES: usize = 8 * 1024 * 1024;
// Larger files are packed without deltas, in bytes.
const MAX_DELTA_BYTES: i64 = LARGE_BYTES as i64;
// Larger files are shown without lines, in bytes: a comparison takes many times their size in memory.
const MAX_SHOWN_BYTES: i64 = 2 * 1024 * 1024;

/// Bare repository that only trusted code writes. Every method blocks; not `Sync`, so it is not shared
/// between threads. Opening one is cheap.
pub struct BareRepository {
    path: PathBuf,
    git: git2::Repository,
}

/// Diff as text in git's format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnifiedDiff {
    /// The text, truncated at the end of a line.
    pub text: String,
    /// True when the text is truncated.
    pub truncated: bool,
    /// Number of all files that differ.
    pub files_changed: u32,
}

/// Restricts libgit2 to the configuration of each repository: no configuration of system or user applies.
#[expect(
    unsafe_code,
    reason = "the library's search paths are not guarded; nobody has opened a repository yet"
)]
pub(crate) fn disable_system_gitconfig() -> Result<(), Error> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let levels = [
        ConfigLevel::ProgramData,
        ConfigLevel::System,
        ConfigLevel::XDG,
        ConfigLevel::Global,
    ];
    let set = |level| {
        // SAFETY: every repository is opened after this, and this runs once.
        unsafe { git2::opts::set_search_path(level, "") }.map_err(|error| error.message().to_owned())
    };
    let done = DONE.get_or_init(|| levels.into_iter().try_for_each(set));
    done.clone().map_err(|problem| Error::Failed(problem.into()))
}

impl BareRepository {
    /// Creates an empty bare repository with our configuration, or opens the present one.
    ///
    /// # Errors
    /// [`Error::Failed`] when the disk cannot be written.
    pub fn init_bare(path: &Path) -> Result<Self, Error> {
        if has_head(path) {
            // libgit2 reads a present configuration, so it must be ours by then.
            write_configuration(path)?;
            match Self::open(path) {
                // A process ended while it created the repository, so a part is missing.
                Err(Error::Missing { .. }) => {}
                opened => return opened,
            }
        }
        create_layout(path)?;
        Self::open(path)
    }

    /// Opens like [`Self::init_bare`] after a crash: removes lock files that a killed process, this service's
    /// or `git`'s, left behind.
    ///
    /// Only for the sole writer of refs and configuration.
    ///
    /// # Errors
    /// [`Error::Failed`] when the disk cannot be written.
    pub fn take_over(path: &Path) -> Result<Self, Error> {
        remove_all_locks(path)?;
        Self::init_bare(path)
    }

    /// Lists the names of the branches.
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn branches(&self) -> Result<BTreeSet<String>, Error> {
        Ok(self.names_beneath("refs/heads/")?.into_iter().collect())
    }

    /// Lists the names that a new branch cannot have: those of its branches, and of the remote's branches
    /// without objects here (`BareRepository::set_taken`).
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn taken_names(&self) -> Result<BTreeSet<String>, Error> {
        let mut names = self.branches()?;
        names.extend(self.names_beneath(TAKEN)?);
        Ok(names)
    }

    /// Records the names of remote branches whose objects are not here. Each is a reference to `commit`,
    /// which is here.
    pub(crate) fn set_taken(&self, names: &[String], commit: &CommitId) -> Result<(), Error> {
        let id = self.commit(commit)?.id();
        for old in self.names_beneath(TAKEN)? {
            self.git.find_reference(&format!("{TAKEN}{old}"))?.delete()?;
        }
        for name in names {
            self.git
                .reference(&format!("{TAKEN}{name}"), id, true, "journeyman")?;
        }
        Ok(())
    }

    fn names_beneath(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        for reference in self.git.references_glob(&format!("{prefix}*"))? {
            let reference = reference?;
            let name = reference.name()?.strip_prefix(prefix);
            names.extend(name.map(str::to_owned));
        }
        Ok(names)
    }

    /// Reads the heads of all branches.
    pub(crate) fn heads_by_name(&self) -> Result<BTreeMap<String, CommitId>, Error> {
        let mut heads = BTreeMap::new();
        for reference in self.git.references_glob("refs/heads/*")? {
            let reference = reference?;
            if let (Some(name), Some(head)) =
                (reference.name()?.strip_prefix("refs/heads/"), reference.target())
            {
                heads.insert(name.to_owned(), convert_commit_id(head)?);
            }
        }
        Ok(heads)
    }

    /// Removes all references beneath a prefix.
    pub(crate) fn remove_references(&self, prefix: &str) -> Result<(), Error> {
        for name in self.names_beneath(prefix)? {
            self.git.find_reference(&format!("{prefix}{name}"))?.delete()?;
        }
        Ok(())
    }

    /// Removes all branches except these.
    pub(crate) fn prune_branches(&self, kept: &BTreeSet<String>) -> Result<(), Error> {
        for branch in self.branches()?.difference(kept) {
            self.git
                .find_reference(&format!("refs/heads/{branch}"))?
                .delete()?;
        }
        Ok(())
    }

    /// Opens the bare repository at exactly this path, with the objects of another folder as an alternate in
    /// memory. The alternate is not written to disk.
    ///
    /// # Errors
    /// [`Error::Missing`] when the path has no repository.
    pub fn open_with_objects(path: &Path, objects: &Path) -> Result<Self, Error> {
        let repository = Self::open(path)?;
        let place = objects
            .to_str()
            .ok_or_else(|| Error::Failed("the path of the objects is not UTF-8".into()))?;
        repository.git.odb()?.add_disk_alternate(place)?;
        Ok(repository)
    }

    /// Opens the bare repository at exactly this path.
    ///
    /// # Errors
    /// [`Error::Missing`] when the path has no repository.
    pub fn open(path: &Path) -> Result<Self, Error> {
        disable_system_gitconfig()?;
        let flags =
            RepositoryOpenFlags::NO_SEARCH | RepositoryOpenFlags::BARE | RepositoryOpenFlags::NO_DOTGIT;
        let git = git2::Repository::open_ext(path, flags, std::iter::empty::<&Path>())?;
        Ok(Self {
            path: path.to_owned(),
            git,
        })
    }

    /// Path of the repository.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The libgit2 handle, for operations without a method here.
    pub fn objects(&self) -> &git2::Repository {
        &self.git
    }

    /// Reads the commit at the head of a branch; `None` when the branch is missing.
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn branch_head(&self, branch: &str) -> Result<Option<CommitId>, Error> {
        match self.git.refname_to_id(&format!("refs/heads/{branch}")) {
            Ok(id) => convert_commit_id(id).map(Some),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets a branch to a commit, regardless of its previous commit.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks the commit, [`Error::Failed`] for an invalid name.
    pub fn set_branch(&self, branch: &str, commit: &CommitId) -> Result<(), Error> {
        let id = self.commit(commit)?.id();
        self.git
            .reference(&format!("refs/heads/{branch}"), id, true, "journeyman")?;
        Ok(())
    }

    /// True when the repository contains this commit.
    pub fn contains(&self, commit: &CommitId) -> bool {
        self.commit(commit).is_ok()
    }

    /// Imports a pack from an untrusted source, within `limits`.
    ///
    /// A process without credentials checks it in a quarantine folder with `git index-pack --strict`. The
    /// pack must be complete together with the present objects and is moved in only after the check.
    ///
    /// # Errors
    /// [`Error::BadPack`] when it is refused, [`Error::TimedOut`] after 120 s.
    pub fn import_pack(&self, pack: &[u8], limits: PackLimits) -> Result<(), Error> {
        import::import_pack(&self.path, pack, limits)?;
        self.git.odb()?.refresh()?;
        Ok(())
    }

    /// Checks a pack like [`Self::import_pack`] without writing here. The checked pack stays in
    /// `quarantine/objects/pack`, an empty folder of the caller.
    ///
    /// Its objects count as this repository's while this handle is open.
    ///
    /// # Errors
    /// Those of [`BareRepository::import_pack`].
    pub fn import_into(&self, quarantine: &Path, pack: &[u8], limits: PackLimits) -> Result<(), Error> {
        import::check_in_quarantine(&self.path.join("objects"), quarantine, pack, limits)?;
        let objects = quarantine.join("objects");
        let objects = objects
            .to_str()
            .ok_or_else(|| Error::Failed("the path of the quarantine is not UTF-8".into()))?;
        let known = self.git.odb()?;
        known.add_disk_alternate(objects)?;
        known.refresh()?;
        Ok(())
    }

    /// Builds a pack with all objects of `new` and their history that the commits in `known` lack.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit, [`Error::BadPack`] when the pack exceeds
    /// `max_bytes`.
    pub fn pack(&self, new: &[CommitId], known: &[CommitId], max_bytes: usize) -> Result<Vec<u8>, Error> {
        let find = |commits: &[CommitId]| -> Result<Vec<Oid>, Error> {
            commits
                .iter()
                .map(|commit| Ok(self.commit(commit)?.id()))
                .collect()
        };
        self.limit_deltas()?;
        let range = PackRange {
            git: &self.git,
            new: find(new)?,
            known: find(known)?,
            max_bytes,
        };
        range.write()
    }

    /// Turns off libgit2's search for deltas among large files, which takes minutes for incompressible
    /// content.
    fn limit_deltas(&self) -> Result<(), Error> {
        const THRESHOLD: &str = "core.bigFileThreshold";
        let mut configuration = self.git.config()?;
        if configuration
            .get_i64(THRESHOLD)
            .is_ok_and(|bytes| bytes == MAX_DELTA_BYTES)
        {
            return Ok(());
        }
        Ok(configuration.set_i64(THRESHOLD, MAX_DELTA_BYTES)?)
    }

    /// Compares two commits within the budget; a file that only moved counts as renamed.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit.
    pub fn diff(
        &self,
        base: &CommitId,
        head: &CommitId,
        budget: &mut InspectionBudget,
    ) -> Result<ChangeSet, Error> {
        let trees = self.trees(base, head)?;
        let most = i64::try_from(budget.max_file_bytes).unwrap_or(i64::MAX);
        let mut diff = self.tree_diff(&trees, most)?;
        if diff.deltas().len() <= budget.max_files {
            // Inexact renames would read and compare every content, regardless of the budget.
            let mut moved = git2::DiffFindOptions::new();
            diff.find_similar(Some(moved.renames(true).exact_match_only(true)))?;
        }
        inspect_change(&self.git, &diff, &trees, budget)
    }

    /// Renders the difference of two commits in git's format, truncated at `max_bytes`. A file above 2 MiB is
    /// shown without lines.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit.
    pub fn unified_diff(
        &self,
        base: &CommitId,
        head: &CommitId,
        max_bytes: usize,
    ) -> Result<UnifiedDiff, Error> {
        let diff = self.tree_diff(&self.trees(base, head)?, MAX_SHOWN_BYTES)?;
        let files_changed = u32::try_from(diff.deltas().len()).unwrap_or(u32::MAX);
        let (mut text, mut truncated) = (String::new(), false);
        let printed = diff.print(git2::DiffFormat::Patch, |_, _, line| {
            let content = String::from_utf8_lossy(line.content());
            let sign = Some(line.origin()).filter(|sign| matches!(sign, '+' | '-' | ' '));
            if text.len() + content.len() + 1 > max_bytes {
                truncated = true;
                return false;
            }
            text.extend(sign);
            text.push_str(&content);
            true
        });
        match printed {
            Err(error) if !truncated => Err(error.into()),
            Ok(()) | Err(_) => Ok(UnifiedDiff {
                text,
                truncated,
                files_changed,
            }),
        }
    }

    /// Counts the files that differ between two commits.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit.
    pub fn count_changed_files(&self, base: &CommitId, head: &CommitId) -> Result<u32, Error> {
        let (base, head) = (self.commit(base)?.tree_id(), self.commit(head)?.tree_id());
        let differences = list_tree_differences(&self.git, Some(base), Some(head))?;
        Ok(u32::try_from(differences.len()).unwrap_or(u32::MAX))
    }

    /// Finds the lines of a file at `base` that `head` removes, replaces or extends.
    ///
    /// Empty for a file that is unchanged or in neither commit. A file that is new, removed or binary counts
    /// with all lines.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit.
    pub fn touched_lines(
        &self,
        base: &CommitId,
        head: &CommitId,
        path: &str,
    ) -> Result<Vec<RangeInclusive<u32>>, Error> {
        let [old, new] = self.trees(base, head)?;
        let mut options = git2::DiffOptions::new();
        options
            .pathspec(path)
            .disable_pathspec_match(true)
            .context_lines(0)
            .max_size(MAX_SHOWN_BYTES);
        let diff = self
            .git
            .diff_tree_to_tree(Some(&old), Some(&new), Some(&mut options))?;
        let mut lines = Vec::new();
        for (index, delta) in diff.deltas().enumerate() {
            let patch = git2::Patch::from_diff(&diff, index)?;
            let patch = patch.filter(|_| delta.status() == git2::Delta::Modified);
            let Some(patch) = patch.filter(|patch| patch.num_hunks() > 0) else {
                return Ok(vec![0..=u32::MAX]);
            };
            for hunk in 0..patch.num_hunks() {
                let (hunk, _) = patch.hunk(hunk)?;
                let start = hunk.old_start();
                // An addition has no old line: it is between this line and the next.
                lines.push(start..=start + hunk.old_lines().max(2) - 1);
            }
        }
        Ok(lines)
    }

    /// True when a path has the same content and mode in both commits, or is in neither. A path with a replaced
    /// character is never the same, because its bytes are unknown.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks a commit.
    pub fn is_same_file(&self, one: &CommitId, other: &CommitId, path: &str) -> Result<bool, Error> {
        if path.contains(char::REPLACEMENT_CHARACTER) {
            return Ok(false);
        }
        let [one, other] = self.trees(one, other)?;
        let leaf = |tree: &git2::Tree<'_>| {
            let entry = tree.get_path(Path::new(path)).ok()?;
            Some((entry.id(), entry.filemode()))
        };
        Ok(leaf(&one) == leaf(&other))
    }

    /// Reads a file of a commit; `None` when the path is not a file or the file exceeds 8 MiB.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks the commit.
    pub fn read_file(&self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let tree = self.commit(commit)?.tree()?;
        let Ok(entry) = tree.get_path(Path::new(path)) else {
            return Ok(None);
        };
        // 0o120000 is the mode of a symbolic link, which git stores as a blob too.
        let is_file = entry.kind() == Some(git2::ObjectType::Blob) && entry.filemode() != 0o120_000;
        if !is_file || self.git.odb()?.read_header(entry.id())?.0 > MAX_FILE_BYTES {
            return Ok(None);
        }
        Ok(Some(self.git.find_blob(entry.id())?.content().to_vec()))
    }

    /// Lists the paths whose content the commit refers to without containing it.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks the commit.
    pub fn external_content(&self, commit: &CommitId) -> Result<ExternalContent, Error> {
        find_external_content(&self.git, &self.commit(commit)?.tree()?)
    }

    /// Lists the files of a commit whose content is in Git LFS, with their pointers; at most 20,000.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks the commit.
    pub fn lfs_files(&self, commit: &CommitId) -> Result<Vec<LfsFile>, Error> {
        find_lfs_files(&self.git, &self.commit(commit)?.tree()?)
    }

    /// Lists the names of the files directly in a folder of a commit; empty for a missing folder. The empty
    /// path is the root.
    ///
    /// # Errors
    /// [`Error::Missing`] when the repository lacks the commit.
    pub fn files_in(&self, commit: &CommitId, folder: &str) -> Result<Vec<String>, Error> {
        let mut tree = self.commit(commit)?.tree()?;
        if !folder.is_empty() {
            let found = tree.get_path(Path::new(folder));
            let Some(id) = found
                .ok()
                .filter(|entry| entry.kind() == Some(git2::ObjectType::Tree))
                .map(|entry| entry.id())
            else {
                return Ok(Vec::new());
            };
            tree = self.git.find_tree(id)?;
        }
        let files = tree
            .iter()
            .filter(|entry| entry.kind() == Some(git2::ObjectType::Blob));
        Ok(files
            .filter_map(|entry| Some(entry.name().ok()?.to_owned()))
            .collect())
    }

    fn trees(&self, base: &CommitId, head: &CommitId) -> Result<[git2::Tree<'_>; 2], Error> {
        Ok([self.commit(base)?.tree()?, self.commit(head)?.tree()?])
    }

    fn tree_diff(
        &self,
        [base, head]: &[git2::Tree<'_>; 2],
        max_file_bytes: i64,
    ) -> Result<git2::Diff<'_>, Error> {
        let mut options = git2::DiffOptions::new();
        options.include_typechange(true).ignore_submodules(false);
        options.max_size(max_file_bytes);
        Ok(self
            .git
            .diff_tree_to_tree(Some(base), Some(head), Some(&mut options))?)
    }

    pub(crate) fn commit(&self, commit: &CommitId) -> Result<git2::Commit<'_>, Error> {
        let id = Oid::from_str(commit.as_str())?;
        self.git.find_commit(id).map_err(|error| Error::Missing {
            what: format!("commit {}", commit.short()),
            source: Some(error),
        })
    }

    pub(crate) fn commit_info(&self, id: Oid) -> Result<CommitInfo, Error> {
        let commit = self.git.find_commit(id)?;
        let (author, committer) = (commit.author(), commit.committer());
        let who = |who: &git2::Signature<'_>| {
            let name = String::from_utf8_lossy(who.name_bytes()).into_owned();
            format!("{name} <{}>", String::from_utf8_lossy(who.email_bytes()))
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(CommitInfo {
            id: convert_commit_id(id)?,
            message: text(commit.message_bytes()),
            author: who(&author),
            committer: who(&committer),
            other_headers: list_other_headers(commit.raw_header_bytes()),
            parents: commit
                .parent_ids()
                .map(convert_commit_id)
                .collect::<Result<_, _>>()?,
        })
    }
}

/// Names of the header lines that commits of our services lack: signatures, encodings and unknown ones.
fn list_other_headers(header: &[u8]) -> Vec<String> {
    let header = String::from_utf8_lossy(header);
    let lines = header.lines().filter(|line| !line.is_empty());
    let names = lines.map(|line| line.split(' ').next().unwrap_or_default());
    names
        .filter(|name| !matches!(*name, "tree" | "parent" | "author" | "committer"))
        .map(str::to_owned)
        .collect()
}

/// Converts an object id of git2 to the id of a commit.
///
/// # Errors
/// [`Error::Failed`] for an id of an unknown form.
pub fn convert_commit_id(id: Oid) -> Result<CommitId, Error> {
    id.to_string()
        .parse()
        .map_err(|error: domain::InvalidId| Error::Failed(error.into()))
}
