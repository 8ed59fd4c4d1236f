//! What can go wrong at Jira, by what the caller can do about it.

use std::time::Duration;

use domain::Cause;

/// Why a call to Jira did not do what was asked. Holds no token and no body beyond Jira's capped message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It does not exist, or the credentials cannot see it.
    #[error("jira does not know {what}, or the credentials cannot see it")]
    NotFound {
        /// Method and path.
        what: String,
    },
    /// The credentials are missing, wrong or expired.
    #[error("jira refused the credentials: {check}")]
    Unauthorized {
        /// What to check.
        check: String,
    },
    /// The credentials are good and do not suffice.
    #[error("jira forbids it: {detail}")]
    Forbidden {
        /// Jira's message, at most 300 characters.
        detail: String,
    },
    /// It clashes with what is there.
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
    /// Too many calls.
    #[error("jira asks to wait {} s (rate limit)", retry_after.as_secs())]
    RateLimited {
        /// How long to wait.
        retry_after: Duration,
    },
    /// Nothing was sent: Jira asked this account, perhaps of another process, to wait.
    #[error("jira asked to wait; {} s of it are left (rate limit)", retry_after.as_secs())]
    HeldBack {
        /// How long to wait.
        retry_after: Duration,
    },
    /// Nothing was done: no connection, or a server error or an answer that is not JSON on a read.
    #[error("jira is unavailable: {detail}")]
    Unavailable {
        /// Status or class of the failure.
        detail: String,
        /// What broke, when it was the connection.
        source: Option<Cause>,
    },
    /// A write was sent and its outcome is not known; look before trying again.
    #[error("the outcome of a write at jira is unknown: {detail}")]
    Unknown {
        /// Status or class of the failure.
        detail: String,
        /// What broke, when it was the connection.
        source: Option<Cause>,
    },
    /// The settings have no such instance.
    #[error("the settings have no section [{section}]")]
    UnknownInstance {
        /// What would name it.
        section: String,
    },
    /// A text is nested deeper than is read; asking again gives the same.
    #[error("{what} at jira is nested more than {} levels deep", domain::json::MAX_DEPTH)]
    TooDeep {
        /// Which text.
        what: String,
    },
    /// The answer is JSON and not what Jira documents; asking again gives the same.
    #[error("jira's answer cannot be read: {detail}")]
    Malformed {
        /// Where in the answer.
        detail: String,
    },
}

impl Error {
    /// True when the same call may succeed later. After [`Error::Unknown`] the caller has to look first.
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

/// Cuts foreign text for errors.
pub(crate) fn capped(text: &str) -> String {
    text.chars().take(300).collect()
}
