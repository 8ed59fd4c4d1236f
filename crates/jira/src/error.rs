//! Errors of the Jira client, classified by how the caller can react.

use std::time::Duration;

use domain::{ErrorCause, cause::format_error_chain};
use webclient::{ConnectionError, ExchangeError, UnknownInstance};

/// Failure of a call to Jira. Holds no token, and of the body only Jira's message, truncated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The resource does not exist, or the credentials cannot see it.
    #[error("jira does not know {what}, or the credentials cannot see it")]
    NotFound {
        /// Method and path of the request.
        what: String,
    },
    /// The credentials are missing, wrong or expired.
    #[error("jira refused the credentials: {check}")]
    Unauthorized {
        /// The setting or credential to check.
        check: String,
    },
    /// The credentials are valid and insufficient.
    #[error("jira forbids it: {detail}")]
    Forbidden {
        /// Jira's message, at most 300 characters.
        detail: String,
    },
    /// The request clashes with the present state of the resource.
    #[error("jira reports a conflict: {detail}")]
    Conflict {
        /// Jira's message, at most 300 characters.
        detail: String,
    },
    /// Jira does not accept the request as it is; the same request fails again.
    #[error("jira rejected the request: {detail}")]
    Rejected {
        /// Jira's message, at most 300 characters.
        detail: String,
    },
    /// Jira refused the request for a rate limit.
    #[error("jira asks to wait {} s (rate limit)", retry_after.as_secs())]
    RateLimited {
        /// Time to wait before the next request.
        retry_after: Duration,
    },
    /// No request was sent: Jira asked this account, perhaps in another process, to wait.
    #[error("jira asked to wait; {} s of it are left (rate limit)", retry_after.as_secs())]
    HeldBack {
        /// Remaining time to wait before a request.
        retry_after: Duration,
    },
    /// Nothing was done: the connection failed, or a read ended in a server error or without JSON.
    #[error("jira is unavailable: {detail}")]
    Unavailable {
        /// Status or class of the failure.
        detail: String,
        /// Cause of a failed connection.
        source: Option<ErrorCause>,
    },
    /// A write was sent and its outcome is unknown; read the state before a retry.
    #[error("the outcome of a write at jira is unknown: {detail}")]
    Unknown {
        /// Status or class of the failure.
        detail: String,
        /// Cause of a failed connection.
        source: Option<ErrorCause>,
    },
    /// The settings have no section for this instance.
    #[error("the settings have no section [{section}]")]
    UnknownInstance {
        /// Section of the settings that would configure it.
        section: String,
    },
    /// A text is nested too deeply to be read; a repeated request gives the same answer.
    #[error("{what} at jira is nested more than {} levels deep", domain::json::MAX_DEPTH)]
    TooDeep {
        /// The text, in words.
        what: String,
    },
    /// The answer is JSON in another shape than Jira documents; a repeated request gives the same answer.
    #[error("jira's answer cannot be read: {detail}")]
    Malformed {
        /// Location in the answer, without its text.
        detail: String,
    },
}

impl Error {
    /// True when the same call may succeed later. After [`Error::Unknown`] the caller reads the state before
    /// a retry.
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::HeldBack { .. }
            | Self::Unavailable { .. }
            | Self::Unknown { .. } => true,
            Self::NotFound { .. }
            | Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::Conflict { .. }
            | Self::Rejected { .. }
            | Self::TooDeep { .. }
            | Self::UnknownInstance { .. }
            | Self::Malformed { .. } => false,
        }
    }
}

impl From<ExchangeError> for Error {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::InvalidUrl => Self::Rejected {
                detail: error.to_string(),
            },
            ExchangeError::Unavailable { detail, source } => Self::Unavailable { detail, source },
            ExchangeError::Unknown { detail, source } => Self::Unknown { detail, source },
            ExchangeError::Malformed { detail } => Self::Malformed { detail },
        }
    }
}

impl From<ConnectionError> for Error {
    fn from(error: ConnectionError) -> Self {
        Self::Rejected {
            detail: format_error_chain(&error),
        }
    }
}

impl From<UnknownInstance> for Error {
    fn from(unknown: UnknownInstance) -> Self {
        Self::UnknownInstance {
            section: unknown.section,
        }
    }
}
