//! Errors of git operations, classified by how the caller can react.

use std::{io, path::PathBuf, time::Duration};

use domain::ErrorCause;

/// Text of [`Error::HistoryIncomplete`], by which other processes recognize it.
const HISTORY_INCOMPLETE: &str = "older history of the repository is still being fetched";

/// True for the text of [`Error::HistoryIncomplete`], also behind other words.
pub fn is_about_incomplete_history(text: &str) -> bool {
    text.contains(HISTORY_INCOMPLETE)
}

/// Failure of a git operation. Users may read its text, so it contains no credential.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The remote branch is not at the expected commit, because another user pushed.
    #[error("the remote branch has moved: {0}")]
    LeaseStale(String),
    /// The remote refused the push, e.g. for a protected branch or a hook; a retry has the same result.
    #[error("the remote refused the push: {0}")]
    Rejected(String),
    /// The repository of a local folder does not let the branch be written; a retry has the same result.
    #[error("the branch {branch} cannot be written: {reason}")]
    BranchNotWritable {
        /// Branch to write.
        branch: String,
        /// Reason of the refusal.
        reason: String,
    },
    /// The checkout would overwrite changed files of a local folder.
    #[error("the branch {branch} cannot be checked out: {reason}")]
    CheckoutRefused {
        /// Branch to check out.
        branch: String,
        /// Explanation of the library.
        reason: String,
    },
    /// A patch is malformed, or its lines do not occur in the files; a retry has the same result.
    #[error("the patch does not apply: {0}")]
    PatchDoesNotApply(String),
    /// The path of a changed file cannot be written by GitHub's API.
    #[error("the name of {0} is not UTF-8, which GitHub's API cannot write")]
    PathNotUtf8(String),
    /// The remote refuses the credentials, or they lack a permission.
    #[error("the remote denied access: {0}")]
    Denied(String),
    /// The remote has no such repository, branch or commit.
    #[error("not found at the remote: {0}")]
    NotFound(String),
    /// The remote is unreachable or reports an internal error; a retry may succeed.
    #[error("the remote is unavailable: {0}")]
    Unavailable(String),
    /// A remote branch has a name that this branch would need as a folder, or the reverse.
    #[error("the branch {branch} cannot be made beside {by}: one of the names is a folder of the other")]
    BranchInTheWay {
        /// Branch to push.
        branch: String,
        /// Present branch with the conflicting name.
        by: String,
    },
    /// The branch is in a merge queue, which refuses pushes until it leaves the queue.
    #[error("the branch {0} is in the merge queue, which refuses pushes")]
    Queued(String),
    /// The remote's history contains an object that is dangerous to read; each retry receives the same
    /// object.
    #[error("the repository holds an object that is refused: {object} ({fault}{})", render_detail(.detail))]
    RefusedObject {
        /// Id of the object.
        object: String,
        /// Id of the fault, as in `git help fsck`.
        fault: String,
        /// Explanation of `git`.
        detail: String,
    },
    /// A property of the repository prevents its use; a retry has the same result.
    #[error("the repository cannot be used: {0}")]
    Unusable(UnusableRepository),
    /// The git gate lacks a branch, because its history contains a refused object.
    #[error("{0}")]
    RefusedHistory(String),
    /// The git gate is still fetching the repository; a retry may succeed.
    #[error("the repository is being fetched for the first time{}", render_percent(*.percent))]
    NotReady {
        /// Progress of that fetch, in percent.
        percent: Option<u8>,
    },
    /// The answer depends on older commits, which a fetch in steps has not brought yet; a retry may succeed.
    #[error("{HISTORY_INCOMPLETE}")]
    HistoryIncomplete,
    /// A fetch made too little progress for this long.
    #[error("the fetch made no progress for {} s", .0.as_secs())]
    Stalled(Duration),
    /// No answer before the deadline; the operation may have taken effect.
    #[error("no answer within {} s; the outcome is unknown", .0.as_secs())]
    TimedOut(Duration),
    /// A pack exceeds a limit or fails git's checks.
    #[error("the pack is refused: {0}")]
    BadPack(String),
    /// A required object is missing or has another type.
    #[error("the repository lacks {what}")]
    Missing {
        /// The missing object, in words.
        what: String,
        /// Error of the library, when it searched for the object.
        source: Option<git2::Error>,
    },
    /// Infrastructure failure: `git` itself or the disk.
    #[error("git failed")]
    Failed(#[source] ErrorCause),
}

/// Property of a repository that prevents its use. Users read its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableRepository {
    /// Objects with names of another length.
    #[error(
        "its objects have SHA-256 names (extensions.objectFormat), and only SHA-1 is supported; make a repository with \
         `git init --object-format=sha1` and commit the files there"
    )]
    Sha256,
    /// Branches in another format than files.
    #[error(
        "its branches are stored as reftable (extensions.refStorage), which is not supported; run \
         `git refs migrate --ref-format=files` there"
    )]
    Reftable,
    /// Another extension of git.
    #[error("it needs an extension of git that is not supported: {0}")]
    Extension(String),
    /// Folder of another user, which git does not trust.
    #[error(
        "{} belongs to another user; if you trust it, run `git config --global --add safe.directory {}`", .0.display(),
        .0.display()
    )]
    ForeignOwner(PathBuf),
}

fn render_detail(detail: &str) -> String {
    if detail.is_empty() {
        String::new()
    } else {
        format!(": {detail}")
    }
}

fn render_percent(percent: Option<u8>) -> String {
    percent
        .map(|percent| format!(", {percent} %"))
        .unwrap_or_default()
}

/// Failed step, for an error whose own text does not name it.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
struct FailedStep {
    doing: &'static str,
    source: io::Error,
}

impl Error {
    pub(crate) fn failed(doing: &'static str, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        Self::Failed(FailedStep { doing, source }.into())
    }
}

impl From<git2::Error> for Error {
    fn from(error: git2::Error) -> Self {
        if error.code() == git2::ErrorCode::NotFound {
            Self::Missing {
                what: "an object".to_owned(),
                source: Some(error),
            }
        } else {
            Self::Failed(error.into())
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

    use domain::cause::format_error_chain;

    use super::*;

    #[test]
    fn error_text_keeps_causes_in_its_sources() {
        let disk = Error::failed("git cannot be started", io::Error::other("no space left"));
        assert_eq!(disk.to_string(), "git failed");
        assert_eq!(
            format_error_chain(&disk),
            "git failed: git cannot be started: no space left"
        );
        let missing = Error::from(git2::Error::new(
            git2::ErrorCode::NotFound,
            git2::ErrorClass::Odb,
            "no match for id",
        ));
        assert_eq!(missing.to_string(), "the repository lacks an object");
        assert!(missing.source().is_some_and(|cause| cause.is::<git2::Error>()));
        assert_eq!(format_error_chain(&missing).matches("no match for id").count(), 1);
    }
}
