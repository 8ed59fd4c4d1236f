//! The caller of an executor, and the errors of a call.

use domain::{ErrorCause, RepositoryName, RunFence, RunId, cause::format_error_chain};
use tonic::{Code, Status};

/// Who asks: the run, its repository and its fence.
#[derive(Clone, Debug)]
pub(crate) struct RunCaller {
    pub(crate) run: RunId,
    pub(crate) repository: RepositoryName,
    pub(crate) fence: RunFence,
}

/// Why a call to an open workspace failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The workspace or its executor is gone.
    #[error("the workspace is gone")]
    WorkspaceLost,
    /// A newer planner has the ticket.
    #[error("a newer fence was seen")]
    Stale,
    /// The executor cannot be reached or is in trouble; worth trying again.
    #[error("the executor is in trouble: {words}")]
    Trouble {
        /// The status, or what is wrong with the answer.
        words: String,
        /// What broke, when it was the connection.
        source: Option<ErrorCause>,
    },
    /// The request itself cannot be understood, as the model's arguments may cause.
    #[error("the executor cannot understand the request: {0}")]
    Invalid(String),
    /// The executor does not accept calls of this kind or from here.
    #[error("the executor refused the request: {0}")]
    Refused(String),
    /// The call did not end in its time.
    #[error("the call took too long")]
    TimedOut,
    /// The workspace's changes cannot be kept as they are; asking again changes nothing.
    #[error("{0}")]
    Unkeepable(String),
    /// The object store did not take a snapshot.
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
                // A status cannot be taken apart, but its causes can be said.
                source: std::error::Error::source(&status).map(|cause| format_error_chain(cause).into()),
            },
        }
    }
}
