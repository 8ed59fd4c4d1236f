//! What can go wrong, by what the caller can do about it.

use std::{io, time::Duration};

use domain::Cause;

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
    /// A branch of the remote is where this one would need a folder, or the other way round.
    #[error("the branch {branch} cannot be made beside {by}: one of the names is a folder of the other")]
    BranchInTheWay {
        /// The branch that was to be pushed.
        branch: String,
        /// The branch that is there.
        by: String,
    },
    /// The remote's history holds an object that is dangerous to read; the same object comes at every try.
    #[error("the repository holds an object that is refused: {object} ({fault}{})", after(.detail))]
    RefusedObject {
        /// Its id.
        object: String,
        /// The id of the fault, as `git help fsck` has it.
        fault: String,
        /// What `git` says of it.
        detail: String,
    },
    /// The git gate has not got a branch, because its history holds an object that is refused.
    #[error("{0}")]
    RefusedHistory(String),
    /// The git gate has not got the repository yet; asking again helps.
    #[error("the repository is being fetched for the first time{}", at(*.percent))]
    NotReady {
        /// How far the fetch is, of a hundred.
        percent: Option<u8>,
    },
    /// A fetch brought too little for this long.
    #[error("the fetch made no progress for {} s", .0.as_secs())]
    Stalled(Duration),
    /// No answer within the deadline: whether the operation took effect is not known.
    #[error("no answer within {} s; the outcome is unknown", .0.as_secs())]
    TimedOut(Duration),
    /// A pack breaks a limit or git's own checks.
    #[error("the pack is refused: {0}")]
    BadPack(String),
    /// An object that should be there is missing or of another kind.
    #[error("the repository lacks {what}")]
    Missing {
        /// What it is.
        what: String,
        /// What the library says, when it looked.
        source: Option<git2::Error>,
    },
    /// `git` itself failed, or the disk.
    #[error("git failed")]
    Failed(#[source] Cause),
}

fn after(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(": {detail}")
    }
}

fn at(percent: Option<u8>) -> String {
    percent
        .map(|percent| format!(", {percent} %"))
        .unwrap_or_default()
}

/// What was tried, for a cause whose own words do not say it.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
struct Step {
    doing: &'static str,
    source: io::Error,
}

impl Error {
    pub(crate) fn failed(doing: &'static str, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        Self::Failed(Step { doing, source }.into())
    }
}

impl From<git2::Error> for Error {
    fn from(error: git2::Error) -> Self {
        match error.code() {
            git2::ErrorCode::NotFound => Self::Missing {
                what: "an object".to_owned(),
                source: Some(error),
            },
            _ => Self::Failed(error.into()),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.into())
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use domain::cause::chain;

    use super::*;

    #[test]
    fn what_the_disk_and_the_library_say_stays_behind_the_class() {
        let disk = Error::failed("git cannot be started", io::Error::other("no space left"));
        assert_eq!(disk.to_string(), "git failed");
        assert_eq!(chain(&disk), "git failed: git cannot be started: no space left");
        let missing = Error::from(git2::Error::new(
            git2::ErrorCode::NotFound,
            git2::ErrorClass::Odb,
            "no match for id",
        ));
        assert_eq!(missing.to_string(), "the repository lacks an object");
        assert!(missing.source().is_some_and(|cause| cause.is::<git2::Error>()));
        assert_eq!(chain(&missing).matches("no match for id").count(), 1);
    }
}
