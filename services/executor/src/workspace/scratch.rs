//! A scratch tree: files for one check, made from git's objects and from what the setup left. The model's commands never see
//! it, and while its own command runs it lies at the workspace's place, because tools write their place into what they
//! install.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use domain::{TreeId, cause::chain};
use git2::Oid;

use super::{
    Problem, Root, Workspace,
    hunks::{TreeHunk, hunks, without},
    scan::{tracked, write},
};
use crate::{
    disk,
    sandbox::{Folder, Session, Stage, Task},
};

/// Which files a check sees.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    /// The base commit's.
    Base,
    /// The workspace's as they are.
    Head,
    /// The base commit's with these of the workspace.
    BaseWith(Vec<PathBuf>),
    /// The workspace's, which must be this tree, without these hunks.
    HeadWithout(TreeId, Vec<usize>),
    /// The workspace's, which must be this tree, with these files of the base and without these hunks of others.
    HeadWithBase(TreeId, Vec<PathBuf>, Vec<usize>),
}

/// The files of one check. They go when it is dropped.
pub(crate) struct Scratch {
    pub(crate) tree: Oid,
    /// Files of the setup that were changed since, and are not here: some of them.
    pub(crate) tampered: Vec<String>,
    root: Root,
    way: Way,
    /// Its place is used, so it must not go first.
    workspace: Arc<Workspace>,
}

/// Whose files they are.
enum Way {
    Ours(Stage),
    Runners(Arc<Session>),
}

impl Scratch {
    /// Makes the files in a folder of their own, `beside`, which is on the file system of the workspace. No tool and no
    /// command may run in the workspace as long as this lives. Blocks.
    pub(crate) fn make(workspace: Arc<Workspace>, beside: &Path, wanted: &Wanted) -> Result<Self, Problem> {
        if workspace.adopted.is_some() {
            return Err(Problem::Unkeepable(
                "checks need a workspace of their own, not a folder that was there before".to_owned(),
            ));
        }
        let repository = workspace.git()?;
        let tree = workspace.wanted_tree(repository.objects(), wanted)?;
        let beside = beside.join(uuid::Uuid::new_v4().simple().to_string());
        let (way, [root, scratch]) = begin(&workspace, &beside)?;
        let mut made = Self {
            tree,
            tampered: Vec::new(),
            root,
            way,
            workspace,
        };
        made.fill(&repository, &scratch)?;
        Ok(made)
    }

    fn fill(&mut self, repository: &git::Repository, scratch: &Root) -> Result<(), Problem> {
        let (workspace, git) = (&self.workspace, repository.objects());
        workspace.write_tree(&self.root, git, self.tree)?;
        let files: HashSet<PathBuf> = tracked(git, &git.find_tree(self.tree)?)?.into_keys().collect();
        self.tampered = workspace.copy_environment(&self.root, scratch, &|path| files.contains(path))?;
        workspace.show_git_to_check(repository, &self.root, scratch)
    }

    /// Puts the files into the workspace's place. Blocks.
    pub(crate) fn enter(&mut self) -> Result<(), Problem> {
        match &mut self.way {
            Way::Ours(stage) => Ok(stage.enter()?),
            Way::Runners(session) => Ok(session.check(Task::EnterCheck)?),
        }
    }

    /// The files, wherever they lie.
    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// Gives the place back and deletes the files; on failure the workspace is of no use any more. Blocks.
    pub(crate) fn end(mut self) -> Result<(), Problem> {
        self.give_back()
    }

    fn give_back(&mut self) -> Result<(), Problem> {
        match &mut self.way {
            Way::Ours(stage) => {
                stage.leave()?;
                // Leftovers of its command cost room and nothing else; they go at the next start.
                if let Err(error) = disk::remove(stage.beside()) {
                    tracing::warn!(error = %chain(&error), "a scratch tree stays behind");
                }
                Ok(())
            }
            Way::Runners(session) => Ok(session.check(Task::EndCheck)?),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(problem) = self.give_back() {
            tracing::error!(%problem, run = %self.workspace.run, "a scratch tree cannot be taken away");
        }
    }
}

fn begin(workspace: &Workspace, beside: &Path) -> Result<(Way, [Root; 2]), Problem> {
    if let Some(session) = &workspace.session {
        session.check(Task::BeginCheck)?;
        let root = |folder| Root::at_runner(session, folder);
        let roots = [root(Folder::CheckTree), root(Folder::CheckScratch)];
        return Ok((Way::Runners(Arc::clone(session)), roots));
    }
    let stage = Stage::make(&workspace.folder.0, beside)?;
    let [tree, scratch] = stage.folders();
    let roots = [Root::open(&tree)?, Root::open(&scratch)?];
    Ok((Way::Ours(stage), roots))
}

impl Workspace {
    /// The base's and the head's tree.
    pub(super) fn both_trees(&self, git: &git2::Repository) -> Result<(Oid, Oid), Problem> {
        Ok((self.base_tree(git)?, self.tree(git)?))
    }

    fn base_tree(&self, git: &git2::Repository) -> Result<Oid, Problem> {
        Ok(git.find_commit(Oid::from_str(self.base.as_str())?)?.tree_id())
    }

    fn wanted_tree(&self, git: &git2::Repository, wanted: &Wanted) -> Result<Oid, Problem> {
        match wanted {
            Wanted::Base => self.base_tree(git),
            Wanted::Head => self.tree(git),
            Wanted::BaseWith(paths) => {
                let (base, head) = self.both_trees(git)?;
                overlaid(git, base, head, paths)
            }
            Wanted::HeadWithout(counted, numbers) => {
                let (base, head) = self.counted_trees(git, counted)?;
                without(git, base, head, &numbered(git, base, head, numbers)?)
            }
            Wanted::HeadWithBase(counted, paths, numbers) => {
                let (base, head) = self.counted_trees(git, counted)?;
                let mut taken = numbered(git, base, head, numbers)?;
                // Their files are as in the base anyway.
                taken.retain(|hunk| !paths.iter().any(|named| hunk.path.starts_with(named)));
                let less = without(git, base, head, &taken)?;
                overlaid(git, less, base, paths)
            }
        }
    }

    /// The base's and the head's tree, which must be the one whose hunks were counted.
    fn counted_trees(&self, git: &git2::Repository, counted: &TreeId) -> Result<(Oid, Oid), Problem> {
        let (base, head) = self.both_trees(git)?;
        if head.to_string() != counted.to_string() {
            return Err(Problem::BadRequest(
                "the workspace's files are others than those whose hunks were counted; inspect the change again"
                    .to_owned(),
            ));
        }
        Ok((base, head))
    }
}

/// The hunks of a change with these numbers.
fn numbered(
    git: &git2::Repository,
    base: Oid,
    head: Oid,
    numbers: &[usize],
) -> Result<Vec<TreeHunk>, Problem> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let hunks: Vec<TreeHunk> = hunks(git, base, head)?;
    let one = |number: &usize| {
        hunks.get(*number).cloned().ok_or_else(|| {
            Problem::BadRequest(format!(
                "the change has {} hunks, and none of number {number}",
                hunks.len()
            ))
        })
    };
    numbers.iter().map(one).collect()
}

/// A tree with what is at these paths in another one; what is not there goes.
fn overlaid(git: &git2::Repository, tree: Oid, other: Oid, paths: &[PathBuf]) -> Result<Oid, Problem> {
    let mut files = tracked(git, &git.find_tree(tree)?)?;
    let other = tracked(git, &git.find_tree(other)?)?;
    let is_named = |path: &PathBuf| paths.iter().any(|named| path.starts_with(named));
    files.retain(|path, _| !is_named(path));
    let named: Vec<_> = other.into_iter().filter(|(path, _)| is_named(path)).collect();
    for (path, _) in &named {
        // A file of the one where the other has a folder, or the other way round.
        files.retain(|other, _| !other.starts_with(path) && !path.starts_with(other));
    }
    files.extend(named);
    write(git, &files)
}
