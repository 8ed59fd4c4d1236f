//! The repository as git in commands finds it: by a file `.git` in the worktree, so that repositories that a command makes
//! elsewhere are its own. That file names a folder in the scratch space with what git itself must write (head and index);
//! all else lies in the real git directory, which commands can only read.

use std::{ffi::OsString, fs, io, path::Path};

use domain::cause::chain;

use super::{Problem, Root, Workspace};

/// The folder in the scratch space.
const VIEW: &str = "checkout.git";
/// Beside the git directory's own files: read by every git of a command, and out of its reach.
const SYSTEM: &str = "commands.gitconfig";
/// A test suite that commits needs a name; folders may belong to another user than the command's.
const CONFIG: &str = "[user]\n\tname = Journeyman\n\temail = journeyman@users.noreply.github.com\n[init]\n\tdefaultBranch = main\n\
                      [safe]\n\tdirectory = *\n[advice]\n\tdetachedHead = false\n[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n";
/// What git says where it cannot write.
const REFUSALS: [&str; 4] = [
    "Read-only file system",
    "Permission denied",
    "insufficient permission",
    "unable to create",
];

impl Workspace {
    /// Variables with which git in commands works on this checkout.
    pub(super) fn git_environment(&self) -> Vec<(&'static str, OsString)> {
        let scratch = self.scratch.path();
        let mut variables = vec![
            ("GIT_CONFIG_GLOBAL", scratch.join("home/.gitconfig").into()),
            ("GIT_CONFIG_SYSTEM", self.git_dir().join(SYSTEM).into()),
        ];
        if self.is_adopted {
            // The folder may be a repository of its own, which is not touched.
            variables.extend([
                ("GIT_DIR", self.git_dir().into()),
                ("GIT_WORK_TREE", self.root().path().into()),
                ("GIT_INDEX_FILE", scratch.join(VIEW).join("index").into()),
            ]);
        }
        variables
    }

    /// Shows commands the branch and its commit; `index`: of that commit, absent when it is there already.
    pub(super) fn show_git(&self, index: Option<Vec<u8>>) -> Result<(), Problem> {
        let branch = self.branch().0.unwrap_or_else(|| self.base_branch.clone());
        fs::write(self.git_dir().join(SYSTEM), CONFIG)?;
        let head = format!("ref: refs/heads/{branch}\n");
        let common = format!("{}\n", self.git_dir().display());
        let files = [("HEAD", head.into_bytes()), ("commondir", common.into_bytes())];
        let index = index.map(|index| ("index", index));
        for (name, content) in files.into_iter().chain(index) {
            self.shown(self.scratch.write(&Path::new(VIEW).join(name), &content));
        }
        if !self.is_adopted {
            let content = format!("gitdir: {}\n", self.scratch.path().join(VIEW).display());
            self.shown(self.root().write(Path::new(".git"), content.as_bytes()));
        }
        Ok(())
    }

    /// Lets git in a check's commands see the base commit, without a branch; `tree` and `scratch` are the check's own.
    pub(super) fn show_git_to_check(
        &self,
        repository: &git::Repository,
        tree: &Root,
        scratch: &Root,
    ) -> Result<(), Problem> {
        let common = format!("{}\n", self.git_dir().display());
        let files = [
            ("HEAD", format!("{}\n", self.base).into_bytes()),
            ("commondir", common.into_bytes()),
            ("index", self.index_of(repository, &self.base)?),
        ];
        for (name, content) in files {
            scratch.write(&Path::new(VIEW).join(name), &content)?;
        }
        // By then the check has the workspace's place.
        let content = format!("gitdir: {}\n", self.scratch.path().join(VIEW).display());
        Ok(tree.write(Path::new(".git"), content.as_bytes())?)
    }

    /// A command may have put something else there; what its git shows then is its own affair.
    fn shown(&self, written: io::Result<()>) {
        if let Err(error) = written {
            tracing::debug!(
                run = %self.run,
                error = %chain(&error),
                "a file for the model's git could not be written"
            );
        }
    }

    /// Whether a command's output says that git could not write into this repository.
    pub(crate) fn is_about_its_git(&self, output: &str) -> bool {
        let git_dir = self.git_dir().display().to_string();
        let git_dir = git_dir.as_str();
        output.lines().any(|line| {
            let is_ours = [git_dir, "repository database", "temporary file"]
                .iter()
                .any(|place| line.contains(*place));
            is_ours && REFUSALS.iter().any(|refusal| line.contains(refusal))
        })
    }
}
