//! Trusted git: git2 for objects in bare repositories that only our services write, and the `git` command
//! line for the network, with a cleared environment and a pinned configuration.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod bare_layout;
mod change;
mod cli;
mod commit_copy;
mod error;
mod external_content;
mod fetch_steps;
mod folder;
mod fsck;
mod history;
mod import;
mod lfs_pointer;
mod lfs_store;
mod merge;
mod merge_audit;
mod mirrors;
mod missing_objects;
mod pack_contents;
mod progress;
mod push_answer;
mod rebase_comparison;
mod recovery;
mod reference_digest;
mod remote_address;
mod remote_proxy;
mod repository;
mod shallow;
mod single_commit;
mod step_fetch;
mod transport;
mod tree_difference;
mod unusable;
mod version;

pub use change::{
    AddedLines, ChangeKind, ChangeSet, CommitInfo, FileMode, InspectionBudget, InspectionCutoff, PathChange,
};
pub use cli::{find_git_program, prepare_command};
pub use commit_copy::{CommitSource, TreeEdit};
pub use error::{Error, UnusableRepository, is_about_incomplete_history};
pub use external_content::{ExternalContent, is_lfs_pointer};
pub use folder::{FolderHead, FolderRepository, FolderView};
pub use history::commit_signature;
pub use import::{PackLimits, adopt_pack};
pub use lfs_pointer::{InvalidLfsOid, LfsFile, LfsListing, LfsOid, LfsOmission, LfsPointer};
pub use lfs_store::{LfsDefect, LfsEviction, LfsHold, LfsReceipt, LfsStore};
pub use merge::PreparedMerge;
pub use merge_audit::MergeAudit;
pub use mirrors::{
    DiskFloor, DiskRoom, MirrorFolder, RepositoryMirror, is_about_archived_repository, is_about_full_disk,
};
pub use progress::{FetchProgress, FetchSettings, FetchWatch};
pub use push_answer::{NOT_READY, PushResult, REFUSED_BRANCH};
pub use recovery::{maintain_mirror, remove_leftovers};
pub use reference_digest::MIRRORED_NAMESPACES;
pub use remote_address::find_remote_repository;
pub use remote_proxy::GitProxy;
pub use repository::{BareRepository, UnifiedDiff, convert_commit_id};
pub use single_commit::SingleCommitRepository;
pub use step_fetch::{StepProgress, StepTarget};
pub use transport::{
    FetchedBranches, GitCredentials, GitTransport, REPORTED_COMMIT, RefusedBranch, WANTED_BRANCH,
    WANTED_COMMIT, find_conflicting_branch, run_blocking_task,
};
pub use tree_difference::{TreeDifference, list_tree_differences};
pub use unusable::is_about_unusable_repository;
pub use version::{OLDEST_GIT, UnusableGit, check_git_version};
