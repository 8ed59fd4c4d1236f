//! The caller of an executor, and the errors of a call.

use domain::{ErrorCause, RepositoryName, RunFence, RunId, cause::format_error_chain};
use tonic::{Code, Status};

/// Caller of an executor: a run with its repository and its fence.
#[derive(Clone, Debug)]
pub(crate) struct RunCaller {
    pub(crate) run: RunId,
    pub(crate) repository: RepositoryName,
    pub(crate) fence: RunFence,
}

/// Error of a call to an open workspace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The workspace or its executor is gone.
    #[error("the workspace is gone")]
    WorkspaceLost,
    /// A newer planner has the ticket.
    #[error("a newer fence was seen")]
    Stale,
    /// The executor is unreachable or failed. A retry may succeed.
    #[error("the executor is in trouble: {words}")]
    Trouble {
        /// Status, or problem of the response.
        words: String,
        /// Cause, if the connection broke.
        source: Option<ErrorCause>,
    },
    /// The request is malformed, e.g. because of arguments from the model.
    #[error("the executor cannot understand the request: {0}")]
    Invalid(String),
    /// The executor does not accept calls of this kind or from this planner.
    #[error("the executor refused the request: {0}")]
    Refused(String),
    /// The call exceeded its deadline.
    #[error("the call took too long")]
    TimedOut,
    /// The changes of the workspace cannot be stored as they are. A retry does not help.
    #[error("{0}")]
    Unkeepable(String),
    /// The object store did not accept a snapshot.
    #[error("the object store did not take the snapshot")]
    Store(#[source] queue::Error),
}

impl CallError {
    pub(super) fn trouble(words: &str) -> Self {
        Self::Trouble {
            words: words.to_owned(),
            source: None,
        }
    }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        let words = format!("{:?}: {}", status.code(), status.message());
        match status.code() {
            Code::NotFound => Self::WorkspaceLost,
            Code::FailedPrecondition => Self::Stale,
            Code::DeadlineExceeded => Self::TimedOut,
            Code::InvalidArgument => Self::Invalid(status.message().to_owned()),
            Code::OutOfRange => Self::Unkeepable(status.message().to_owned()),
            Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented | Code::AlreadyExists => {
                Self::Refused(words)
            }
            Code::Unavailable
            | Code::ResourceExhausted
            | Code::Cancelled
            | Code::Unknown
            | Code::Aborted
            | Code::Internal
            | Code::DataLoss
            | Code::Ok => Self::Trouble {
                words,
                // A `Status` does not give away its source, so the causes are kept as text.
                source: std::error::Error::source(&status).map(|cause| format_error_chain(cause).into()),
            },
        }
    }
}
