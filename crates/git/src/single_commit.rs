//! Repository with the files of one commit and no history. Work in it cannot find a later commit, because the
//! repository never contained one.

use std::{ffi::OsString, io::Write, path::Path, time::Duration};

use domain::{CommitAuthor, CommitId};
use git2::{ApplyOptions, Buf, Diff, Index, IndexAddOption, ObjectType, Oid, build::CheckoutBuilder};

use crate::{
    BareRepository, Error, cli, commit_signature,
    repository::{convert_commit_id, disable_system_gitconfig},
};

const BRANCH: &str = "main";
// Maximum size of a text, in bytes; larger files are not sources that an author copies from.
const MAX_TEXT: usize = 1024 * 1024;
// Time limit for reading a bundle.
const BUNDLE_LIMIT: Duration = Duration::from_secs(600);

/// Bare repository with one root commit on `main`. Every method blocks; not `Sync`, so it is not shared
/// between threads.
pub struct SingleCommitRepository {
    git: git2::Repository,
    base: Oid,
}

impl SingleCommitRepository {
    /// Creates it at `place` from a commit of the repository in `source`. Message, author, parents and all
    /// other objects stay in the source.
    ///
    /// # Errors
    /// [`Error::NotFound`] when `source` is not a repository, [`Error::Missing`] when it lacks the commit.
    pub fn of_commit(source: &Path, commit: &CommitId, place: &Path) -> Result<Self, Error> {
        disable_system_gitconfig()?;
        let source =
            git2::Repository::open(source).map_err(|error| Error::NotFound(error.message().to_owned()))?;
        let missing = |source| Error::Missing {
            what: format!("the commit {commit}"),
            source: Some(source),
        };
        let found = source
            .find_commit(Oid::from_str(commit.as_str())?)
            .map_err(missing)?;
        let git = git2::Repository::init_bare(place)?;
        // A pack of the tree copies exactly the files' objects; a fetch would bring the commit and its
        // history.
        let (mut builder, mut pack) = (source.packbuilder()?, Buf::new());
        builder.insert_tree(found.tree_id())?;
        builder.write_buf(&mut pack)?;
        write_pack(&git, &pack)?;
        Self::with_tree(git, found.tree_id())
    }

    /// Creates it at `place` from a git bundle.
    ///
    /// # Errors
    /// [`Error::BadPack`] when the bundle cannot be read, [`Error::Missing`] when it lacks the commit.
    pub async fn of_bundle(bundle: &Path, commit: &CommitId, place: &Path) -> Result<Self, Error> {
        disable_system_gitconfig()?;
        let whole = tempfile::tempdir()?;
        drop(git2::Repository::init_bare(whole.path())?);
        let arguments: [OsString; 3] = ["bundle".into(), "unbundle".into(), bundle.into()];
        let limit = cli::CallTimeLimit::Total(BUNDLE_LIMIT);
        let read = cli::run_git(
            whole.path(),
            &arguments,
            Vec::new(),
            cli::RemoteAccess::default(),
            limit,
        )
        .await?;
        if !read.success {
            return Err(Error::BadPack(cli::summarize_stderr(&read.stderr)));
        }
        Self::of_commit(whole.path(), commit, place)
    }

    /// Creates it at `place` from the files of a folder, including ignored ones.
    ///
    /// # Errors
    /// [`Error::Failed`] when the folder cannot be read.
    pub fn of_files(source: &Path, place: &Path) -> Result<Self, Error> {
        disable_system_gitconfig()?;
        let git = git2::Repository::init_bare(place)?;
        git.set_workdir(source, false)?;
        let mut index = git.index()?;
        index.add_all(["*"], IndexAddOption::FORCE, None)?;
        let tree = index.write_tree()?;
        drop(index);
        // A new handle, so that the folder is not its working tree any more.
        let git = git2::Repository::open_bare(place)?;
        Self::with_tree(git, tree)
    }

    /// Opens a repository of this kind.
    ///
    /// # Errors
    /// [`Error::Missing`] when `place` has no repository or no branch `main`.
    pub fn open(place: &Path) -> Result<Self, Error> {
        disable_system_gitconfig()?;
        let git = git2::Repository::open_bare(place)?;
        let base = git.refname_to_id(&format!("refs/heads/{BRANCH}"))?;
        Ok(Self { git, base })
    }

    fn with_tree(git: git2::Repository, tree: Oid) -> Result<Self, Error> {
        let who = commit_signature(&CommitAuthor::journeyman(), 0)?;
        let name = format!("refs/heads/{BRANCH}");
        let base = git.commit(Some(&name), &who, &who, "Base\n", &git.find_tree(tree)?, &[])?;
        git.set_head(&name)?;
        Ok(Self { git, base })
    }

    /// Id of the root commit.
    ///
    /// # Errors
    /// [`Error::Failed`] when the id cannot be converted, which does not happen in practice.
    pub fn base(&self) -> Result<CommitId, Error> {
        convert_commit_id(self.base)
    }

    /// Renders the change of a branch as a git patch; `None` when the branch is missing.
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn change(&self, branch: &str, max_bytes: usize) -> Result<Option<String>, Error> {
        let repository = BareRepository::open(self.git.path())?;
        let Some(head) = repository.branch_head(branch)? else {
            return Ok(None);
        };
        Ok(Some(
            repository.unified_diff(&self.base()?, &head, max_bytes)?.text,
        ))
    }

    /// Writes the tree of the base or of a branch, with patches on top, and returns its id.
    ///
    /// Each file that `tests` touches is restored to its state at the base first, whatever the branch did to
    /// it.
    ///
    /// # Errors
    /// [`Error::Missing`] when the branch is missing, [`Error::PatchDoesNotApply`].
    pub fn files(&self, branch: Option<&str>, solution: Option<&str>, tests: &str) -> Result<Oid, Error> {
        let commit = match branch {
            Some(branch) => self.git.refname_to_id(&format!("refs/heads/{branch}"))?,
            None => self.base,
        };
        let tree = self.git.find_commit(commit)?.tree_id();
        let tree = match solution {
            Some(patch) => self.applied(tree, patch)?,
            None => tree,
        };
        let tree = self.restored(tree, &list_patch_paths(tests)?)?;
        self.applied(tree, tests)
    }

    /// Restores these paths to their state at the base.
    fn restored(&self, tree: Oid, paths: &[Vec<u8>]) -> Result<Oid, Error> {
        let (mut index, mut base) = (Index::new()?, Index::new()?);
        index.read_tree(&self.git.find_tree(tree)?)?;
        base.read_tree(&self.git.find_commit(self.base)?.tree()?)?;
        let is_meant = |entry: &git2::IndexEntry| paths.contains(&entry.path);
        let now: Vec<_> = index.iter().filter(is_meant).collect();
        for entry in now {
            index.remove(Path::new(&*String::from_utf8_lossy(&entry.path)), 0)?;
        }
        for entry in base.iter().filter(is_meant) {
            index.add(&entry)?;
        }
        Ok(index.write_tree_to(&self.git)?)
    }

    fn applied(&self, tree: Oid, patch: &str) -> Result<Oid, Error> {
        if patch.trim().is_empty() {
            return Ok(tree);
        }
        let diff = Diff::from_buffer(add_final_newline(patch).as_bytes()).map_err(refuse_patch)?;
        let mut options = ApplyOptions::new();
        let applied = self
            .git
            .apply_to_tree(&self.git.find_tree(tree)?, &diff, Some(&mut options));
        Ok(applied.map_err(refuse_patch)?.write_tree_to(&self.git)?)
    }

    /// Writes the files of a tree into an empty folder.
    ///
    /// # Errors
    /// [`Error::Failed`] when a file cannot be written.
    pub fn write(&self, files: Oid, folder: &Path) -> Result<(), Error> {
        let mut options = CheckoutBuilder::new();
        options.force().recreate_missing(true).update_index(false);
        // Filters are off: they could run programs, and the files must be those of the commit.
        options.disable_filters(true).target_dir(folder);
        let tree = self.git.find_tree(files)?;
        Ok(self.git.checkout_tree(tree.as_object(), Some(&mut options))?)
    }

    /// Reads every text file of the base up to 1 MiB.
    ///
    /// # Errors
    /// [`Error::Failed`] when the repository cannot be read.
    pub fn texts(&self) -> Result<Vec<String>, Error> {
        let (mut texts, mut open) = (Vec::new(), vec![self.git.find_commit(self.base)?.tree_id()]);
        while let Some(tree) = open.pop() {
            for entry in &self.git.find_tree(tree)? {
                match entry.kind() {
                    Some(ObjectType::Tree) => open.push(entry.id()),
                    Some(ObjectType::Blob) => {
                        let blob = self.git.find_blob(entry.id())?;
                        if blob.size() <= MAX_TEXT && !blob.is_binary() {
                            texts.push(String::from_utf8_lossy(blob.content()).into_owned());
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(texts)
    }
}

fn write_pack(git: &git2::Repository, pack: &[u8]) -> Result<(), Error> {
    let objects = git.odb()?;
    let mut writer = objects.packwriter()?;
    writer.write_all(pack)?;
    writer.commit()?;
    Ok(())
}

/// Paths of the files that a patch touches, before and after it.
fn list_patch_paths(patch: &str) -> Result<Vec<Vec<u8>>, Error> {
    if patch.trim().is_empty() {
        return Ok(Vec::new());
    }
    let diff = Diff::from_buffer(add_final_newline(patch).as_bytes()).map_err(refuse_patch)?;
    let both = |delta: git2::DiffDelta<'_>| {
        let sides = [delta.old_file(), delta.new_file()];
        sides.map(|file| file.path_bytes().map(<[u8]>::to_vec))
    };
    Ok(diff.deltas().flat_map(both).flatten().collect())
}

/// Converts the library's error about a patch.
fn refuse_patch(error: git2::Error) -> Error {
    Error::PatchDoesNotApply(error.message().to_owned())
}

/// Adds the final newline, which patches in data sets often lack.
fn add_final_newline(patch: &str) -> String {
    format!("{}\n", patch.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use tempfile::TempDir;

    use super::*;

    const TEST: &str =
        "diff --git a/t.txt b/t.txt\n--- a/t.txt\n+++ b/t.txt\n@@ -1 +1 @@\n-old test\n+new test";
    const FIX: &str =
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n";

    fn execute_git(folder: &Path, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args([
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@b.example",
            "-c",
            "init.defaultBranch=main",
        ]);
        let output = command.args(arguments).current_dir(folder).output().unwrap();
        assert!(output.status.success(), "{arguments:?} {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Creates a repository whose second commit solves a task posed at its first. Returns both ids.
    fn create_source_repository() -> (TempDir, CommitId, String) {
        let folder = tempfile::tempdir().unwrap();
        execute_git(folder.path(), &["init", "-q"]);
        for (path, text) in [
            ("a.txt", "one\ntwo\n"),
            ("t.txt", "old test\n"),
            ("sub/b.txt", "b\n"),
        ] {
            fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
            fs::write(folder.path().join(path), text).unwrap();
        }
        execute_git(folder.path(), &["add", "--all"]);
        execute_git(folder.path(), &["commit", "-q", "-m", "Before"]);
        let base = execute_git(folder.path(), &["rev-parse", "HEAD"]);
        fs::write(folder.path().join("a.txt"), "one\nTWO\n").unwrap();
        execute_git(folder.path(), &["commit", "-q", "-a", "-m", "The solution"]);
        let later = execute_git(folder.path(), &["rev-parse", "HEAD"]);
        (folder, base.parse().unwrap(), later)
    }

    fn write_commit_files(alone: &SingleCommitRepository, files: Oid) -> (TempDir, String, String) {
        let folder = tempfile::tempdir().unwrap();
        alone.write(files, folder.path()).unwrap();
        let read = |path| fs::read_to_string(folder.path().join(path)).unwrap();
        let (a, t) = (read("a.txt"), read("t.txt"));
        (folder, a, t)
    }

    #[tokio::test]
    async fn single_commit_repository_has_no_history() {
        let (source, base, later) = create_source_repository();
        let place = tempfile::tempdir().unwrap();
        let bundle = place.path().join("all.bundle");
        execute_git(
            source.path(),
            &["bundle", "create", "-q", bundle.to_str().unwrap(), "--all"],
        );
        let at = |name: &str| place.path().join(name);
        let of_commit = SingleCommitRepository::of_commit(source.path(), &base, &at("one")).unwrap();
        let of_bundle = SingleCommitRepository::of_bundle(&bundle, &base, &at("two"))
            .await
            .unwrap();
        assert_eq!(of_commit.base().unwrap(), of_bundle.base().unwrap());
        let solved = execute_git(source.path(), &["rev-parse", "HEAD:a.txt"]);
        for name in ["one", "two"] {
            let alone = at(name);
            assert_eq!(execute_git(&alone, &["log", "--all", "--format=%s %P"]), "Base");
            assert_eq!(execute_git(&alone, &["fsck", "--strict", "--no-dangling"]), "");
            let all = execute_git(&alone, &["cat-file", "--batch-check", "--batch-all-objects"]);
            assert!(!all.contains(&later) && !all.contains(&solved), "{all}");
            assert!(!alone.join("objects/info/alternates").exists());
        }
    }

    #[test]
    fn folder_files_become_the_base() {
        let (source, ..) = create_source_repository();
        fs::remove_dir_all(source.path().join(".git")).unwrap();
        fs::write(source.path().join(".gitignore"), "kept\n").unwrap();
        fs::write(source.path().join("kept"), "x").unwrap();
        let place = tempfile::tempdir().unwrap();
        let alone = SingleCommitRepository::of_files(source.path(), &place.path().join("g")).unwrap();
        let (folder, a, _) = write_commit_files(&alone, alone.files(None, None, "").unwrap());
        assert_eq!(a, "one\nTWO\n");
        assert!(folder.path().join("kept").exists() && folder.path().join("sub/b.txt").exists());
        assert!(!source.path().join(".git").exists());
        assert_eq!(alone.texts().unwrap().len(), 5);
    }

    #[test]
    fn grader_tests_override_changes_to_tests() {
        let (source, base, _) = create_source_repository();
        let place = tempfile::tempdir().unwrap();
        let alone = SingleCommitRepository::of_commit(source.path(), &base, &place.path().join("g")).unwrap();
        let (_folder, a, t) = write_commit_files(&alone, alone.files(None, Some(FIX), TEST).unwrap());
        assert_eq!((a.as_str(), t.as_str()), ("one\nTWO\n", "new test\n"));

        let work = place.path().join("work");
        let bare = place.path().join("g");
        execute_git(place.path(), &["clone", "-q", bare.to_str().unwrap(), "work"]);
        execute_git(&work, &["checkout", "-q", "-b", "fix/x"]);
        fs::write(work.join("a.txt"), "one\n2\n").unwrap();
        fs::write(work.join("t.txt"), "always green\n").unwrap();
        execute_git(&work, &["commit", "-q", "-a", "-m", "Mine"]);
        execute_git(&work, &["push", "-q", "origin", "fix/x"]);
        let (_folder, a, t) = write_commit_files(&alone, alone.files(Some("fix/x"), None, TEST).unwrap());
        assert_eq!((a.as_str(), t.as_str()), ("one\n2\n", "new test\n"));
        let change = alone.change("fix/x", 1 << 20).unwrap().unwrap();
        assert!(
            change.contains("+always green\n") && change.contains("-two\n"),
            "{change}"
        );
        assert_eq!(alone.change("fix/none", 1 << 20).unwrap(), None);
        assert!(alone.files(Some("fix/none"), None, TEST).is_err());
    }

    #[test]
    fn patch_without_matching_context_is_refused() {
        let (source, base, _) = create_source_repository();
        let place = tempfile::tempdir().unwrap();
        let alone = SingleCommitRepository::of_commit(source.path(), &base, &place.path().join("g")).unwrap();
        let stale = FIX.replace("-two", "-three");
        let short = FIX.replace("+TWO\n", "");
        for (solution, tests) in [
            (Some(stale.as_str()), ""),
            (Some(short.as_str()), ""),
            (Some("nonsense"), ""),
            (None, "nonsense"),
        ] {
            let refused = alone.files(None, solution, tests).unwrap_err();
            assert!(matches!(refused, Error::PatchDoesNotApply(_)), "{refused:?}");
            let text = refused.to_string();
            assert!(text.starts_with("the patch does not apply: "), "{text}");
        }
        let absent: CommitId = "1".repeat(40).parse().unwrap();
        let missing = SingleCommitRepository::of_commit(source.path(), &absent, &place.path().join("h"));
        assert!(matches!(missing, Err(Error::Missing { .. })));
    }
}
