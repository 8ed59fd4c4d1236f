//! Repository as git in commands finds it: a `.git` file in the worktree names a git directory in the scratch
//! space.
//!
//! Commands write git's files there (index, configuration, new objects, stashes). They can only read the
//! existing objects in the real git directory.
//!
//! The executor reads no content of this folder. It writes `HEAD` and branches again when their files differ
//! from those that it wrote.

use std::{ffi::OsString, fs, io, path::Path, path::PathBuf};

use domain::cause::format_error_chain;

use super::{FileStat, Workspace, WorkspaceError, WorkspaceRoot};

/// Name of the folder in the scratch space.
pub(super) const VIEW: &str = "checkout.git";
/// System configuration for git in commands. It lies in the real git directory, which commands cannot write
/// to.
const SYSTEM: &str = "commands.gitconfig";
/// Configuration with a name for test suites that commit. `safe.directory` is needed because folders may
/// belong to another user than the command's.
const CONFIG: &str = "[user]\n\tname = Journeyman\n\temail = noreply@journeyman.invalid\n[init]\n\tdefaultBranch = main\n\
                      [safe]\n\tdirectory = *\n[advice]\n\tdetachedHead = false\n[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n";
/// Configuration of the view. `bare = false`, because tools that find a bare repository see no worktree and
/// refuse to build.
const VIEW_CONFIG: &str =
    "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfilemode = true\n\tlogallrefupdates = true\n";
/// Hook that refuses branches, tags and commits during the command, so that the model reads the reason at
/// once. A command can bypass it; then `mend_git` restores the branches after the command.
const HOOK: &str = r#"#!/bin/sh
[ "$1" = prepared ] || exit 0
while read -r old new ref; do
    case "$ref" in
    refs/heads/* | refs/tags/* | refs/remotes/*) ;;
    *) continue ;;
    esac
    # Without the value that a caller expected the line has zeros.
    case "$old" in
    *[!0]*) ;;
    *) old=$(git rev-parse --verify -q "$ref") ;;
    esac
    [ "$old" = "$new" ] && continue
    echo 'journeyman: git can neither commit here nor make, move or delete branches and tags. Call the tool' >&2
    echo 'commit_changes to commit, create_branch for a branch, push_branch to push, and undo to take back what a' >&2
    echo 'command did to the files. git status, diff, log, add, restore, checkout FILE and stash work.' >&2
    exit 1
done
exit 0
"#;
/// Lock files of a killed git, which block the next one.
const LOCKS: [&str; 3] = ["index.lock", "HEAD.lock", "config.lock"];
/// Messages of git when it cannot write.
const REFUSALS: [&str; 4] = [
    "Read-only file system",
    "Permission denied",
    "insufficient permission",
    "unable to create",
];
/// Messages of git when a remote is missing.
const NO_REMOTE: [&str; 4] = [
    "No configured push destination",
    "No remote repository specified",
    "There is no tracking information for the current branch",
    "does not appear to be a git repository",
];

impl Workspace {
    /// Variables that make git in commands work on this checkout.
    pub(super) fn git_environment(&self) -> Vec<(&'static str, OsString)> {
        let scratch = self.scratch.path();
        let mut variables = vec![
            ("GIT_CONFIG_GLOBAL", scratch.join("home/.gitconfig").into()),
            ("GIT_CONFIG_SYSTEM", self.git_dir().join(SYSTEM).into()),
        ];
        if self.adopted.as_ref().is_some_and(|adopted| !adopted.is_covered()) {
            // The folder's own `.git` must not change, and without a mount namespace nothing can cover it.
            variables.extend([
                ("GIT_DIR", scratch.join(VIEW).into()),
                ("GIT_WORK_TREE", self.root().path().into()),
            ]);
        }
        variables
    }

    /// Writes the branch and its commit for commands. `index` is the index of that commit; `None` if it is
    /// already written.
    pub(super) fn show_git(&self, index: Option<Vec<u8>>) -> Result<(), WorkspaceError> {
        fs::write(self.git_dir().join(SYSTEM), CONFIG)?;
        let view = GitView(&self.scratch);
        self.shown(view.lay_out(&self.object_folders()));
        if let Some(index) = index {
            self.shown(view.write("index", &index));
        }
        if self.adopted.is_none() {
            let content = format!("gitdir: {}\n", self.scratch.path().join(VIEW).display());
            self.shown(self.root().write(Path::new(".git"), content.as_bytes()));
        }
        self.show_references(&view);
        Ok(())
    }

    /// Removes obstacles that the last command may have left: lock files, another `HEAD`, other branches.
    /// Returns true when the command moved `HEAD` or a branch. Blocks.
    pub(crate) fn mend_git(&self) -> bool {
        let view = GitView(&self.scratch);
        for lock in LOCKS {
            // No command runs now, so no process holds the lock. The error is ignored, because usually no
            // lock exists.
            let _ = self.scratch.remove(&view_path(lock));
        }
        let is_moved = self
            .lock()
            .shown
            .iter()
            // Compared by inode and times, because the content belongs to commands and is never read.
            .any(|(name, file)| view.file(name) != *file);
        if is_moved {
            self.show_references(&view);
        }
        is_moved
    }

    fn show_references(&self, view: &GitView<'_>) {
        let (branch, _) = self.branch();
        let head = branch.as_ref().unwrap_or(&self.base_branch);
        let mut files = vec![
            ("HEAD".to_owned(), format!("ref: {}\n", branch_reference(head))),
            (branch_reference(&self.base_branch), format!("{}\n", self.base)),
        ];
        files.extend(
            branch
                .iter()
                .map(|branch| (branch_reference(branch), format!("{}\n", self.head_or_base()))),
        );
        let before = std::mem::take(&mut self.lock().shown);
        for (name, _) in before {
            if !files.iter().any(|(wanted, _)| *wanted == name) {
                // The error is ignored: a command may have replaced the file of the old branch, which then
                // stays.
                let _ = self.scratch.remove(&view_path(&name));
            }
        }
        let shown = files.into_iter().map(|(name, content)| {
            self.shown(view.write(&name, content.as_bytes()));
            let file = view.file(&name);
            (name, file)
        });
        let shown: Vec<_> = shown.collect();
        self.lock().shown = shown;
    }

    /// Shows the base commit to git in a check's commands, without a branch. `tree` and `scratch` belong to
    /// the check.
    pub(super) fn show_git_to_check(
        &self,
        repository: &git::BareRepository,
        tree: &WorkspaceRoot,
        scratch: &WorkspaceRoot,
    ) -> Result<(), WorkspaceError> {
        let view = GitView(scratch);
        view.lay_out(&self.object_folders())?;
        view.write("HEAD", format!("{}\n", self.base).as_bytes())?;
        view.write("index", &self.index_of(repository, &self.base)?)?;
        // The pointer names the workspace's path, because the check's folders are swapped in before its
        // command runs.
        let content = format!("gitdir: {}\n", self.scratch.path().join(VIEW).display());
        Ok(tree.write(Path::new(".git"), content.as_bytes())?)
    }

    /// Object folders that commands may read. All are listed directly, because the paths in the real git
    /// directory's own alternates may not exist for commands.
    fn object_folders(&self) -> Vec<PathBuf> {
        match &self.adopted {
            Some(adopted) if !adopted.objects.is_empty() => adopted.objects.clone(),
            _ => [&self.git_dir(), &*self.mirror]
                .map(|place| place.join("objects"))
                .to_vec(),
        }
    }

    /// Logs a failed write. It is not an error: a command may have replaced the path, and only its own git is
    /// affected.
    fn shown(&self, written: io::Result<()>) {
        if let Err(error) = written {
            tracing::debug!(
                run = %self.run,
                error = %format_error_chain(&error),
                "a file for the model's git could not be written"
            );
        }
    }

    /// Returns true when a command's output shows that git could not write to this repository or lacked a
    /// remote.
    pub(crate) fn is_about_its_git(&self, output: &str) -> bool {
        let git_dir = self.git_dir().display().to_string();
        let git_dir = git_dir.as_str();
        output.lines().any(|line| {
            let is_ours = [git_dir, VIEW, "repository database", "temporary file"]
                .iter()
                .any(|place| line.contains(*place));
            let is_refused = is_ours && REFUSALS.iter().any(|refusal| line.contains(refusal));
            is_refused || NO_REMOTE.iter().any(|missing| line.contains(missing))
        })
    }
}

/// Git directory of the view in a scratch space.
struct GitView<'a>(&'a WorkspaceRoot);

impl GitView<'_> {
    /// Writes the files of a git directory, except index and references. Existing configuration and hooks
    /// stay, because commands may have changed them on purpose.
    fn lay_out(&self, object_folders: &[PathBuf]) -> io::Result<()> {
        let mut alternates = Vec::new();
        for folder in object_folders {
            alternates.extend(folder.as_os_str().as_encoded_bytes());
            alternates.push(b'\n');
        }
        self.write("objects/info/alternates", &alternates)?;
        self.0.make_folder(&view_path("refs"))?;
        self.create("config", VIEW_CONFIG, false)?;
        self.create("hooks/reference-transaction", HOOK, true)
    }

    fn create(&self, name: &str, content: &str, executable: bool) -> io::Result<()> {
        match self.0.create(&view_path(name), content.as_bytes(), executable) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.0.write(&view_path(name), content)
    }

    /// Returns the state of a file without reading its content.
    fn file(&self, name: &str) -> Option<FileStat> {
        self.0.stat(&view_path(name)).ok().flatten()
    }
}

fn view_path(name: &str) -> PathBuf {
    Path::new(VIEW).join(name)
}

fn branch_reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}
