//! Reasons for a failed read outside: permanent and temporary.

use std::time::Duration;

use domain::cause::format_error_chain;

/// Reason for a failed read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    /// The reader account does not see the object.
    #[error("{0}")]
    NotFound(String),
    /// The answer is JSON, but too deep or of a wrong shape, so a retry does not help. An HTML page or a truncated answer
    /// counts as an outage instead.
    #[error("{0}")]
    Unreadable(String),
    /// The service refuses this read, and an operator may be able to fix that.
    #[error("{0}")]
    Refused(String),
    /// The issue or pull request is at another place, so a retry does not help.
    #[error("{0}")]
    Transferred(Box<github::TransferredThread>),
    /// The issue is deleted, so a retry does not help.
    #[error("{0}")]
    Deleted(String),
    /// Temporary failure that is independent of the object: an outage, a limit, or credentials that an operator can
    /// fix.
    #[error("{detail}")]
    Later {
        detail: String,
        /// Pause that the service asked for.
        after: Option<Duration>,
    },
}

impl From<github::Error> for ReadError {
    fn from(error: github::Error) -> Self {
        let detail = format_error_chain(&error);
        match error {
            github::Error::NotFound { .. } => Self::NotFound(detail),
            github::Error::Transferred(moved) => Self::Transferred(moved),
            github::Error::Deleted { .. } => Self::Deleted(detail),
            github::Error::RateLimited { retry_after } | github::Error::HeldBack { retry_after } => {
                Self::Later {
                    detail,
                    after: Some(retry_after),
                }
            }
            // A refusal may come from a permission or a setting that an operator can fix. So the event is kept and
            // retried.
            github::Error::Forbidden { .. }
            | github::Error::Locked { .. }
            | github::Error::Archived { .. }
            | github::Error::Moved { .. }
            | github::Error::Conflict { .. }
            | github::Error::Rejected { .. } => Self::Refused(detail),
            github::Error::Unauthorized { .. }
            | github::Error::UnknownInstance { .. }
            | github::Error::Unavailable { .. }
            | github::Error::Unknown { .. } => Self::Later { detail, after: None },
            github::Error::Malformed { .. } => Self::Unreadable(detail),
        }
    }
}

impl From<jira::Error> for ReadError {
    fn from(error: jira::Error) -> Self {
        let detail = format_error_chain(&error);
        match error {
            jira::Error::NotFound { .. } => Self::NotFound(detail),
            jira::Error::RateLimited { retry_after } | jira::Error::HeldBack { retry_after } => Self::Later {
                detail,
                after: Some(retry_after),
            },
            jira::Error::Forbidden { .. } | jira::Error::Conflict { .. } | jira::Error::Rejected { .. } => {
                Self::Refused(detail)
            }
            jira::Error::Unauthorized { .. }
            | jira::Error::UnknownInstance { .. }
            | jira::Error::Unavailable { .. }
            | jira::Error::Unknown { .. } => Self::Later { detail, after: None },
            jira::Error::Malformed { .. } | jira::Error::TooDeep { .. } => Self::Unreadable(detail),
        }
    }
}
