//! A run's checkout at an executor, and what is kept of it.

use serde::{Deserialize, Serialize};

use crate::{CommitId, ObjectRef, SandboxLevel, ToolSpec};

/// An open workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceInfo {
    /// Address of the executor, e.g. `http://10.0.0.7:7403`.
    pub executor: String,
    /// Its id there.
    pub id: String,
    /// The pinned base commit.
    pub base: CommitId,
    /// The sandbox level of its commands.
    pub sandbox: SandboxLevel,
    /// The executor's tools.
    pub tools: Vec<ToolSpec>,
    /// The repository's own instructions at the base commit.
    pub instructions: String,
    /// Its template for pull requests at the base commit; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// Submodules at the base commit, whose folders are empty; some of them when there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub submodules: Vec<String>,
    /// Files at the base commit whose content Git LFS keeps; some of them when there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lfs_files: Vec<String>,
}

/// The workspace's changes against the base, kept in the object store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The base commit.
    pub base: CommitId,
    /// The branch, when one was created.
    pub branch: Option<String>,
    /// Head of that branch, when something was committed.
    pub head: Option<CommitId>,
    /// The commit that holds the files as they were.
    pub commit: CommitId,
    /// The pack with every object that the base lacks.
    pub pack: ObjectRef,
    /// How many files differ from the base.
    pub files_changed: u32,
    /// Files and folders that differ or may differ but are not in it, each with the reason; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub omitted: Vec<String>,
}
