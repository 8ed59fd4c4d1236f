//! Workspace of a run on an executor: confinement of its commands, the code that a ticket may be about, and
//! snapshots of the changes.

use serde::{Deserialize, Serialize};

use crate::{
    identity::{commit::CommitId, object::ObjectRef},
    journal::record_format::is_default,
    work::{resolution::ConflictFile, tool::ToolSpec},
};

/// Confinement of commands on an executor, from weak to strong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SandboxLevel {
    /// Only resource limits and a cleaned environment.
    L0,
    /// Landlock and seccomp under the executor's uid.
    L1,
    /// In addition, a separate uid or container.
    L2,
    /// microVM or gVisor from the pod's runtime class.
    L3,
}

/// An open workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorWorkspace {
    /// Address of the executor, e.g. `http://10.0.0.7:7403`.
    pub executor: String,
    /// Id of the workspace on the executor.
    pub id: String,
    /// The pinned base commit.
    pub base: CommitId,
    /// The sandbox level of its commands.
    pub sandbox: SandboxLevel,
    /// The tools of the executor.
    pub tools: Vec<ToolSpec>,
    /// The repository's instructions for agents at the base commit.
    pub instructions: String,
    /// Its pull request template at the base commit; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// Submodules at the base commit, whose folders are empty; a sample of a long list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub submodules: Vec<String>,
    /// Files at the base commit of which the workspace has only a pointer to Git LFS; a sample of a long list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lfs_files: Vec<String>,
    /// Files at the base commit in Git LFS whose contents are in the workspace; a sample of a long list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lfs_contents: Vec<String>,
    /// Files that git cannot merge, if the workspace began with a merge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ConflictFile>,
    /// Number of checks that can run at the same time; 0 and 1: one after the other, as on executors of earlier
    /// releases.
    #[serde(default, skip_serializing_if = "is_default")]
    pub checks_at_once: u32,
}

/// The workspace's changes against the base, stored in the object store.
// A full pack instead of deltas: a chain of deltas is only as reliable as its weakest link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceSnapshot {
    /// The base commit of the changes.
    pub base: CommitId,
    /// The branch, if one was created.
    pub branch: Option<String>,
    /// Head of that branch, if the model committed.
    pub head: Option<CommitId>,
    /// The commit that contains the files of the workspace.
    pub commit: CommitId,
    /// The pack with every object that the base lacks.
    pub pack: ObjectRef,
    /// Number of files that differ from the base.
    pub files_changed: u32,
    /// Files and folders with possible changes that the snapshot omits, each with the reason; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
    /// Omitted files that a tool wrote and an ignore rule names, by path; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// Lines of a file with the reason why they may be relevant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeSeed {
    /// Path relative to the root.
    pub path: String,
    /// First and last line, from 1; absent: the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<(u32, u32)>,
    /// The best matching name or heading; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub symbol: String,
    /// Score from 0 to 100, comparable only within one answer.
    pub score: u32,
    /// Reason for the match, for people.
    pub reason: String,
}
