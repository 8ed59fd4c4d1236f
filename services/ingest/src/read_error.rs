//! Why something outside could not be read: two kinds of failure.

use std::time::Duration;

use domain::cause::chain;

/// Why something could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    /// The reader account does not see it.
    #[error("{0}")]
    NotFound(String),
    /// It came, is JSON, and is too deep or of a wrong shape; the next time it will be no better. A page or an answer that
    /// was cut is an outage.
    #[error("{0}")]
    Unreadable(String),
    /// Not now: an outage, a limit, or credentials that an operator can fix.
    #[error("{detail}")]
    Later {
        detail: String,
        /// When the service said how long to wait.
        after: Option<Duration>,
    },
}

impl From<github::Error> for ReadError {
    fn from(error: github::Error) -> Self {
        let detail = chain(&error);
        match error {
            github::Error::NotFound { .. } => Self::NotFound(detail),
            github::Error::RateLimited { retry_after } | github::Error::HeldBack { retry_after } => {
                Self::Later {
                    detail,
                    after: Some(retry_after),
                }
            }
            // Whatever is refused now is refused because of credentials or a fault that an operator can fix.
            github::Error::Unauthorized { .. }
            | github::Error::Forbidden { .. }
            | github::Error::Moved { .. }
            | github::Error::UnknownInstance { .. }
            | github::Error::Conflict { .. }
            | github::Error::Rejected { .. }
            | github::Error::Unavailable { .. }
            | github::Error::Unknown { .. } => Self::Later { detail, after: None },
            github::Error::Malformed { .. } => Self::Unreadable(detail),
        }
    }
}

impl From<jira::Error> for ReadError {
    fn from(error: jira::Error) -> Self {
        let detail = chain(&error);
        match error {
            jira::Error::NotFound { .. } => Self::NotFound(detail),
            jira::Error::RateLimited { retry_after } | jira::Error::HeldBack { retry_after } => Self::Later {
                detail,
                after: Some(retry_after),
            },
            jira::Error::Unauthorized { .. }
            | jira::Error::Forbidden { .. }
            | jira::Error::Conflict { .. }
            | jira::Error::Rejected { .. }
            | jira::Error::UnknownInstance { .. }
            | jira::Error::Unavailable { .. }
            | jira::Error::Unknown { .. } => Self::Later { detail, after: None },
            jira::Error::Malformed { .. } | jira::Error::TooDeep { .. } => Self::Unreadable(detail),
        }
    }
}
