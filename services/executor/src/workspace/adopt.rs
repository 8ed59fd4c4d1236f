//! A workspace over a folder that is there already, for one tool or command by hand.

use std::{
    fs,
    path::Path,
    sync::{Mutex, OnceLock},
};

use domain::{CommitId, RunId, TicketKey};
use git2::{Oid, Signature, Time};

use super::{Folder, Problem, Results, Root, Workspace};
use crate::{
    parser::Parser,
    sandbox::{Runner, Spare},
};

const BRANCH: &str = "main";

impl Workspace {
    /// Takes `tree` as the worktree, its files as they are as the base. Its own git directory is neither read nor
    /// written; what the tools need lies under `workspaces` and goes with the workspace. Blocks.
    pub(crate) fn adopt(workspaces: &Path, tree: &Path, runner: Option<&Runner>) -> Result<Self, Problem> {
        let strange = |error: domain::InvalidId| Problem::Trouble(error.to_string());
        let id = uuid::Uuid::new_v4().simple().to_string();
        let folder = Folder(workspaces.join(&id));
        fs::create_dir_all(folder.0.join("tmp/home"))?;
        let session = super::session(runner, Some(tree))?;
        let (root, scratch) = match &session {
            Some(session) => super::roots_at(session),
            None => (Root::open(tree)?, Root::open(&folder.0.join("tmp"))?),
        };
        let git_dir = folder.0.join("git");
        git::Repository::init_bare(&git_dir)?;
        let repository = git::Repository::open(&git_dir)?;
        let empty = repository.objects().treebuilder(None)?.write()?;
        let mut workspace = Self {
            id,
            run: RunId::new(TicketKey::jira("LOCAL-1").map_err(strange)?, 1),
            repository: "local/folder".parse().map_err(strange)?,
            base: base(&repository, empty)?,
            base_branch: BRANCH.to_owned(),
            mirror: git_dir.into(),
            root,
            scratch,
            session,
            is_adopted: true,
            results: Results::beneath(&folder.0),
            folder,
            elsewhere: OnceLock::new(),
            environment: OnceLock::new(),
            state: Mutex::default(),
            spare: Spare::default(),
            parser: Parser::default(),
        };
        let files = workspace.tree(repository.objects())?;
        workspace.base = base(&repository, files)?;
        repository.set_branch(BRANCH, &workspace.base)?;
        repository.objects().set_head(&format!("refs/heads/{BRANCH}"))?;
        workspace.write_index(&repository)?;
        Ok(workspace)
    }
}

fn base(repository: &git::Repository, tree: Oid) -> Result<CommitId, Problem> {
    let git = repository.objects();
    let who = Signature::new(git::AUTHOR_NAME, git::AUTHOR_ADDRESS, &Time::new(0, 0))?;
    let id = git.commit(None, &who, &who, "As it was\n", &git.find_tree(tree)?, &[])?;
    id.to_string()
        .parse()
        .map_err(|_| Problem::Trouble("git gave a strange commit id".to_owned()))
}
