//! Trusted git: git2 for objects in bare repositories that only our services write, and the `git` command
//! line for the network, with a cleared environment and a pinned configuration.

mod alone;
mod ancestry;
mod author;
mod change;
mod cli;
mod configuration;
mod disk;
mod elsewhere;
mod error;
mod folder;
mod fsck;
mod import;
mod mails;
mod maintenance;
mod mirrors;
mod progress;
mod push_answer;
mod recovery;
mod repository;
mod transport;
mod version;

pub use alone::Alone;
pub use author::commit_signature;
pub use change::{AddedLines, Budget, ChangeKind, ChangeSet, CommitInfo, Cut, FileChange, FileMode};
pub use cli::prepare_command;
pub use disk::{DiskRoom, is_about_full_disk};
pub use elsewhere::{Elsewhere, is_lfs_pointer};
pub use error::Error;
pub use folder::{Folder, FolderHead, FolderView};
pub use import::{Limits, adopt_pack};
pub use maintenance::maintain_mirror;
pub use mirrors::{DiskFloor, Mirror, MirrorFolder};
pub use progress::{FetchProgress, FetchSettings, FetchWatch};
pub use push_answer::{NOT_READY, Pushed, REFUSED_BRANCH};
pub use repository::{Repository, UnifiedDiff};
pub use transport::{
    Auth, FetchedBranches, RefusedBranch, Transport, WANTED_BRANCH, WANTED_COMMIT, branch_in_the_way,
};
pub use version::{GitVersion, OLDEST_GIT, UnusableGit, check_git_version};
