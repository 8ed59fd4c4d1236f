//! What can go wrong at GitHub, by what the caller can do about it.

use std::time::Duration;

use domain::Cause;

/// Why a call to GitHub did not do what was asked. Holds no token and no body beyond GitHub's capped message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It does not exist, or the credentials cannot see it.
    #[error("github does not know {what}, or the credentials cannot see it")]
    NotFound {
        /// Method and path.
        what: String,
    },
    /// The credentials are missing, wrong or expired.
    #[error("github refused the credentials: {check}")]
    Unauthorized {
        /// What to check.
        check: String,
    },
    /// The credentials are good and do not suffice.
    #[error("github forbids it: {detail}{}", lacking(needs.as_deref()))]
    Forbidden {
        /// GitHub's message, at most 300 characters.
        detail: String,
        /// The permission that GitHub says would suffice, e.g. `issues:write or pull_requests:write`.
        needs: Option<String>,
    },
    /// The settings have no such instance.
    #[error("the settings have no section [{section}]")]
    UnknownInstance {
        /// What would name it.
        section: String,
    },
    /// It is at another address, which is not one of the same service.
    #[error("github redirects to {to}, which is not followed")]
    Moved {
        /// The other address, at most 300 characters.
        to: String,
    },
    /// It clashes with what is there, e.g. the pull request exists already.
    #[error("github reports a conflict: {detail}")]
    Conflict {
        /// GitHub's message, at most 300 characters.
        detail: String,
    },
    /// GitHub does not accept the request as it is; the same request fails again.
    #[error("github rejected the request: {detail}")]
    Rejected {
        /// GitHub's message, at most 300 characters.
        detail: String,
    },
    /// Too many calls.
    #[error("github asks to wait {} s (rate limit)", retry_after.as_secs())]
    RateLimited {
        /// How long to wait.
        retry_after: Duration,
    },
    /// Nothing was sent: GitHub asked this account, perhaps of another process, to wait.
    #[error("github asked to wait; {} s of it are left (rate limit)", retry_after.as_secs())]
    HeldBack {
        /// How long to wait.
        retry_after: Duration,
    },
    /// Nothing was done: no connection, or a server error or an answer that is not JSON on a read.
    #[error("github is unavailable: {detail}")]
    Unavailable {
        /// Status or class of the failure.
        detail: String,
        /// What broke, when it was the connection.
        source: Option<Cause>,
    },
    /// A write was sent and its outcome is not known; look before trying again.
    #[error("the outcome of a write at github is unknown: {detail}")]
    Unknown {
        /// Status or class of the failure.
        detail: String,
        /// What broke, when it was the connection.
        source: Option<Cause>,
    },
    /// The answer is JSON and not what GitHub documents; asking again gives the same.
    #[error("github's answer cannot be read: {detail}")]
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
            | Self::Moved { .. }
            | Self::UnknownInstance { .. }
            | Self::Conflict { .. }
            | Self::Rejected { .. }
            | Self::Malformed { .. } => false,
        }
    }

    /// `Ok(None)` for what does not exist.
    pub(crate) fn none_if_missing<T>(result: Result<T, Self>) -> Result<Option<T>, Self> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(Self::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn lacking(needs: Option<&str>) -> String {
    needs.map_or_else(String::new, |needs| {
        format!("; the App lacks the permission {needs}")
    })
}

/// Cuts foreign text for errors.
pub(crate) fn capped(text: &str) -> String {
    text.chars().take(300).collect()
}
