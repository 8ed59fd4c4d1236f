//! Repository as git in commands finds it: a `.git` file in the worktree names a git directory in the scratch
//! space.
//!
//! Commands write git's files there (index, configuration, new objects, stashes). They can only read the
//! existing objects in the real git directory.
//!
//! The executor reads no content of this folder. It writes `HEAD` and branches again when their files differ
//! from those that it wrote.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

use domain::{RunId, cause::format_error_chain};
use parking_lot::Mutex;

use super::{
    FileStat, WorkspaceError, WorkspaceRoot,
    disk::{VIEW, WorkspaceDisk},
    git_directory::{BOUNDARY, GitDirectory},
    work_history::WorkHistory,
};

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
/// once. A command can bypass it; then `clear_obstacles` restores the branches after the command.
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

/// Repository as git in commands finds it.
#[derive(Default)]
pub(crate) struct GitView {
    /// Files of `HEAD` and branches that commands see, with their state after the last write.
    shown: Mutex<Vec<(String, Option<FileStat>)>>,
}

/// Parts of a workspace from which the view is written.
#[derive(Clone, Copy)]
pub(super) struct ViewSource<'a> {
    pub(super) run: &'a RunId,
    pub(super) disk: &'a WorkspaceDisk,
    pub(super) git: &'a GitDirectory,
    pub(super) history: &'a WorkHistory,
}

impl GitView {
    /// Writes the branch and its commit for commands. `index` is the index of that commit; `None` if it is
    /// already written.
    pub(super) fn show(&self, source: ViewSource<'_>, index: Option<Vec<u8>>) -> Result<(), WorkspaceError> {
        fs::write(source.git.path().join(SYSTEM), CONFIG)?;
        let view = ViewFolder(source.disk.scratch());
        source.log_failure(view.lay_out(source.git));
        if let Some(index) = index {
            source.log_failure(view.write("index", &index));
        }
        if !source.git.is_adopted() {
            source.log_failure(source.point_to_view(source.disk.root()));
        }
        self.show_references(source);
        Ok(())
    }

    /// Removes obstacles that the last command may have left: lock files, another `HEAD`, other branches.
    /// Returns true when the command moved `HEAD` or a branch. Blocks.
    pub(super) fn clear_obstacles(&self, source: ViewSource<'_>) -> bool {
        let scratch = source.disk.scratch();
        for lock in LOCKS {
            // No command runs now, so no process holds the lock. The error is ignored, because usually no
            // lock exists.
            let _ = scratch.remove(&view_path(lock));
        }
        let view = ViewFolder(scratch);
        let is_moved = self
            .shown
            .lock()
            .iter()
            // Compared by inode and times, because the content belongs to commands and is never read.
            .any(|(name, file)| view.file(name) != *file);
        if is_moved {
            self.show_references(source);
        }
        is_moved
    }

    fn show_references(&self, source: ViewSource<'_>) {
        let view = ViewFolder(source.disk.scratch());
        let git = source.git;
        let (branch, head) = source.history.branch();
        let named = branch.as_ref().unwrap_or(&git.base_branch);
        let mut files = vec![
            ("HEAD".to_owned(), format!("ref: {}\n", branch_reference(named))),
            (branch_reference(&git.base_branch), format!("{}\n", git.base)),
        ];
        let head = head.as_ref().unwrap_or(&git.base);
        files.extend(
            branch
                .iter()
                .map(|branch| (branch_reference(branch), format!("{head}\n"))),
        );
        let mut shown = self.shown.lock();
        for (name, _) in shown.drain(..) {
            if !files.iter().any(|(wanted, _)| *wanted == name) {
                // The error is ignored: a command may have replaced the file of the old branch, which then
                // stays.
                let _ = source.disk.scratch().remove(&view_path(&name));
            }
        }
        for (name, content) in files {
            source.log_failure(view.write(&name, content.as_bytes()));
            let file = view.file(&name);
            shown.push((name, file));
        }
    }
}

impl ViewSource<'_> {
    /// Variables that make git in commands work on this checkout.
    pub(super) fn variables(self) -> Vec<(&'static str, OsString)> {
        let scratch = self.disk.scratch().path();
        let mut variables = vec![
            ("GIT_CONFIG_GLOBAL", scratch.join("home/.gitconfig").into()),
            ("GIT_CONFIG_SYSTEM", self.git.path().join(SYSTEM).into()),
        ];
        if self.git.needs_variables() {
            variables.extend([
                ("GIT_DIR", scratch.join(VIEW).into()),
                ("GIT_WORK_TREE", self.disk.root().path().into()),
            ]);
        }
        variables
    }

    /// Shows the base commit to git in a check's commands, without a branch. `tree` and `scratch` belong to
    /// the check.
    pub(super) fn show_to_check(
        self,
        repository: &git::BareRepository,
        tree: &WorkspaceRoot,
        scratch: &WorkspaceRoot,
    ) -> Result<(), WorkspaceError> {
        let view = ViewFolder(scratch);
        view.lay_out(self.git)?;
        view.write("HEAD", format!("{}\n", self.git.base).as_bytes())?;
        view.write("index", &self.git.index_of(repository, &self.git.base)?)?;
        Ok(self.point_to_view(tree)?)
    }

    /// Writes the `.git` file of a worktree. It names the workspace's path also in a check, because the
    /// check's folders are swapped in before its command runs.
    fn point_to_view(self, tree: &WorkspaceRoot) -> io::Result<()> {
        let content = format!("gitdir: {}\n", self.disk.scratch().path().join(VIEW).display());
        tree.write(Path::new(".git"), content.as_bytes())
    }

    /// Logs a failed write. It is not an error: a command may have replaced the path, and only its own git is
    /// affected.
    fn log_failure(self, written: io::Result<()>) {
        if let Err(error) = written {
            tracing::debug!(
                run = %self.run,
                error = %format_error_chain(&error),
                "a file for the model's git could not be written"
            );
        }
    }
}

/// Git directory of the view in a scratch space.
struct ViewFolder<'a>(&'a WorkspaceRoot);

impl ViewFolder<'_> {
    /// Writes the files of a git directory, except index and references. Existing configuration and hooks
    /// stay, because commands may have changed them on purpose.
    fn lay_out(&self, git: &GitDirectory) -> io::Result<()> {
        let mut alternates = Vec::new();
        for folder in git.object_folders() {
            alternates.extend(folder.as_os_str().as_encoded_bytes());
            alternates.push(b'\n');
        }
        self.write("objects/info/alternates", &alternates)?;
        if let Some(boundary) = git.boundary_file() {
            self.write(BOUNDARY, &boundary)?;
        } else {
            // The error is ignored, because usually no such file exists.
            let _ = self.0.remove(&view_path(BOUNDARY));
        }
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
