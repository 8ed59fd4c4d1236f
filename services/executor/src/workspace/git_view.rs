//! The repository as git in commands finds it: a file `.git` in the worktree names a git directory in the scratch space.
//! Commands write there what git writes (index, configuration, new objects, stashes). Existing objects lie in the real git
//! directory, which commands can only read. The executor reads no content of this folder: it writes head and branches
//! again when their files are others than those that it wrote.

use std::{ffi::OsString, fs, io, path::Path, path::PathBuf};

use domain::cause::chain;

use super::{Problem, Root, Stat, Workspace};

/// The folder in the scratch space.
pub(super) const VIEW: &str = "checkout.git";
/// Beside the git directory's own files: read by every git of a command, and out of its reach.
const SYSTEM: &str = "commands.gitconfig";
/// A test suite that commits needs a name; folders may belong to another user than the command's.
const CONFIG: &str = "[user]\n\tname = Journeyman\n\temail = noreply@journeyman.invalid\n[init]\n\tdefaultBranch = main\n\
                      [safe]\n\tdirectory = *\n[advice]\n\tdetachedHead = false\n[maintenance]\n\tauto = false\n[gc]\n\tauto = 0\n";
/// The view's own configuration: tools that read a bare repository here find no worktree and refuse to build.
const VIEW_CONFIG: &str =
    "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfilemode = true\n\tlogallrefupdates = true\n";
/// Refuses branches, tags and commits while the command still runs, so that its author reads the reason at once. A
/// command can get around it; then its branches are put back when it has ended.
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
/// Files that a killed git leaves, and that stop the next one.
const LOCKS: [&str; 3] = ["index.lock", "HEAD.lock", "config.lock"];
/// What git says where it cannot write.
const REFUSALS: [&str; 4] = [
    "Read-only file system",
    "Permission denied",
    "insufficient permission",
    "unable to create",
];
/// What git says where a remote is missing.
const NO_REMOTE: [&str; 4] = [
    "No configured push destination",
    "No remote repository specified",
    "There is no tracking information for the current branch",
    "does not appear to be a git repository",
];

impl Workspace {
    /// Variables with which git in commands works on this checkout.
    pub(super) fn git_environment(&self) -> Vec<(&'static str, OsString)> {
        let scratch = self.scratch.path();
        let mut variables = vec![
            ("GIT_CONFIG_GLOBAL", scratch.join("home/.gitconfig").into()),
            ("GIT_CONFIG_SYSTEM", self.git_dir().join(SYSTEM).into()),
        ];
        if self.adopted.as_ref().is_some_and(|adopted| !adopted.is_covered()) {
            // The folder's own `.git` is not touched, and nothing can be put in its place.
            variables.extend([
                ("GIT_DIR", scratch.join(VIEW).into()),
                ("GIT_WORK_TREE", self.root().path().into()),
            ]);
        }
        variables
    }

    /// Shows commands the branch and its commit; `index`: of that commit, absent when it is there already.
    pub(super) fn show_git(&self, index: Option<Vec<u8>>) -> Result<(), Problem> {
        fs::write(self.git_dir().join(SYSTEM), CONFIG)?;
        let view = View(&self.scratch);
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

    /// Puts right what the last command may have left in the way of the next: its locks, another head, other branches. True
    /// when the command moved the head or a branch. Blocks.
    pub(crate) fn mend_git(&self) -> bool {
        let view = View(&self.scratch);
        for lock in LOCKS {
            // No command runs now, so nobody holds it; usually there is none.
            let _ = self.scratch.remove(&place(lock));
        }
        let is_moved = self
            .lock()
            .shown
            .iter()
            .any(|(name, file)| view.file(name) != *file);
        if is_moved {
            self.show_references(&view);
        }
        is_moved
    }

    fn show_references(&self, view: &View<'_>) {
        let (branch, _) = self.branch();
        let head = branch.as_ref().unwrap_or(&self.base_branch);
        let mut files = vec![
            ("HEAD".to_owned(), format!("ref: {}\n", reference(head))),
            (reference(&self.base_branch), format!("{}\n", self.base)),
        ];
        files.extend(
            branch
                .iter()
                .map(|branch| (reference(branch), format!("{}\n", self.head_or_base()))),
        );
        let before = std::mem::take(&mut self.lock().shown);
        for (name, _) in before {
            if !files.iter().any(|(wanted, _)| *wanted == name) {
                // A branch that is no more; what a command made of it may stay.
                let _ = self.scratch.remove(&place(&name));
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

    /// Lets git in a check's commands see the base commit, without a branch; `tree` and `scratch` are the check's own.
    pub(super) fn show_git_to_check(
        &self,
        repository: &git::Repository,
        tree: &Root,
        scratch: &Root,
    ) -> Result<(), Problem> {
        let view = View(scratch);
        view.lay_out(&self.object_folders())?;
        view.write("HEAD", format!("{}\n", self.base).as_bytes())?;
        view.write("index", &self.index_of(repository, &self.base)?)?;
        // By then the check has the workspace's place.
        let content = format!("gitdir: {}\n", self.scratch.path().join(VIEW).display());
        Ok(tree.write(Path::new(".git"), content.as_bytes())?)
    }

    /// Where the objects lie that commands may read. All of them are named, because what the real git directory names
    /// in turn may lie elsewhere in a command's world.
    fn object_folders(&self) -> Vec<PathBuf> {
        match &self.adopted {
            Some(adopted) if !adopted.objects.is_empty() => adopted.objects.clone(),
            _ => [&self.git_dir(), &*self.mirror]
                .map(|place| place.join("objects"))
                .to_vec(),
        }
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

    /// Whether a command's output says that git could not write into this repository, or missed a remote.
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

/// The git directory in a scratch space.
struct View<'a>(&'a Root);

impl View<'_> {
    /// Writes what makes it a git directory, except index and references. Configuration and hooks that are there stay:
    /// commands may have changed them for themselves.
    fn lay_out(&self, object_folders: &[PathBuf]) -> io::Result<()> {
        let mut alternates = Vec::new();
        for folder in object_folders {
            alternates.extend(folder.as_os_str().as_encoded_bytes());
            alternates.push(b'\n');
        }
        self.write("objects/info/alternates", &alternates)?;
        self.0.make_folder(&place("refs"))?;
        self.create("config", VIEW_CONFIG, false)?;
        self.create("hooks/reference-transaction", HOOK, true)
    }

    fn create(&self, name: &str, content: &str, executable: bool) -> io::Result<()> {
        match self.0.create(&place(name), content.as_bytes(), executable) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.0.write(&place(name), content)
    }

    /// How a file looks from outside; it is not read.
    fn file(&self, name: &str) -> Option<Stat> {
        self.0.stat(&place(name)).ok().flatten()
    }
}

fn place(name: &str) -> PathBuf {
    Path::new(VIEW).join(name)
}

fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}
