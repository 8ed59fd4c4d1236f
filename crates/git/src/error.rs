//! What can go wrong, by what the caller can do about it.

use std::time::Duration;

/// Why a git operation failed. The texts are for people and never hold a credential.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The remote branch is not where the caller expected it: somebody else pushed.
    #[error("the remote branch has moved: {0}")]
    LeaseStale(String),
    /// The remote refused the push, e.g. a protected branch or a hook; trying again does not help.
    #[error("the remote refused the push: {0}")]
    Rejected(String),
    /// The remote does not accept the credentials, or they lack a permission.
    #[error("the remote denied access: {0}")]
    Denied(String),
    /// The remote has no such repository, branch or commit.
    #[error("not found at the remote: {0}")]
    NotFound(String),
    /// The remote cannot be reached or is in trouble; trying again may help.
    #[error("the remote is unavailable: {0}")]
    Unavailable(String),
    /// No answer within the deadline: whether the operation took effect is not known.
    #[error("no answer within {} s; the outcome is unknown", .0.as_secs())]
    TimedOut(Duration),
    /// A pack breaks a limit or git's own checks.
    #[error("the pack is refused: {0}")]
    BadPack(String),
    /// An object that should be there is missing or of another kind.
    #[error("the repository lacks {0}")]
    Missing(String),
    /// `git` itself failed, or the disk.
    #[error("git failed: {0}")]
    Failed(String),
}

impl From<git2::Error> for Error {
    fn from(error: git2::Error) -> Self {
        match error.code() {
            git2::ErrorCode::NotFound => Self::Missing(error.message().to_owned()),
            _ => Self::Failed(error.message().to_owned()),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}
