//! Trusted git: object work with git2 on bare repositories that only we write, and network transport with the `git`
//! command line under a cleared environment and a pinned configuration.

mod alone;
mod ancestry;
mod author;
mod change;
mod cli;
mod elsewhere;
mod error;
mod folder;
mod import;
mod mails;
mod mirrors;
mod repository;
mod transport;

pub use alone::Alone;
pub use author::{AUTHOR_ADDRESS, AUTHOR_NAME, author_line};
pub use change::{Budget, ChangeKind, ChangeSet, CommitInfo, Cut, FileChange, FileMode};
pub use elsewhere::{Elsewhere, is_lfs_pointer};
pub use error::Error;
pub use folder::{Folder, FolderHead};
pub use import::Limits;
pub use mirrors::{DiskFloor, Mirror, MirrorFolder};
pub use repository::{Repository, UnifiedDiff};
pub use transport::{Auth, Pushed, Transport};
