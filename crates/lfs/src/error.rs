//! Errors of a Git LFS server, classified by how the caller can react.

use domain::ErrorCause;
use webclient::ExchangeError;

use crate::address_guard::AddressProblem;

/// Failure of a request to a Git LFS server, or to a store that it names. Its text contains no address and no
/// credential.
#[derive(Debug, thiserror::Error)]
pub enum LfsError {
    /// The HTTP client cannot be built.
    #[error("the HTTP client for Git LFS cannot be built")]
    Unusable(#[source] ErrorCause),
    /// The URL of the repository is not valid.
    #[error("the URL of the repository is not valid")]
    InvalidRemote,
    /// The account must not read the contents.
    #[error(
        "the Git LFS server refuses the account ({0}); it needs read access to the contents of the repository"
    )]
    Denied(u16),
    /// The server or store has no such content, or the repository has no Git LFS.
    #[error("the Git LFS server does not have it ({0})")]
    Missing(u16),
    /// A limit of the server or of its plan.
    #[error(
        "the Git LFS server refuses more requests at the moment ({0}): a rate limit, or the bandwidth of its plan"
    )]
    Limited(u16),
    /// Another refusal.
    #[error("the Git LFS server refuses the request ({0})")]
    Refused(u16),
    /// The address that the server names must not be followed.
    #[error("the Git LFS server names an address that is not followed: {0}")]
    Address(#[from] AddressProblem),
    /// The answer does not follow the specification.
    #[error("the answer of the Git LFS server cannot be used: {0}")]
    Malformed(&'static str),
    /// The server or store failed.
    #[error("the Git LFS server failed ({0})")]
    Failed(u16),
    /// No answer, or a broken one.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
}

impl LfsError {
    /// True when a retry may succeed soon.
    pub const fn is_outage(&self) -> bool {
        match self {
            Self::Failed(_)
            | Self::Exchange(ExchangeError::Unavailable { .. } | ExchangeError::Unknown { .. }) => true,
            Self::Unusable(_)
            | Self::InvalidRemote
            | Self::Denied(_)
            | Self::Missing(_)
            | Self::Limited(_)
            | Self::Refused(_)
            | Self::Address(_)
            | Self::Malformed(_)
            | Self::Exchange(ExchangeError::InvalidUrl | ExchangeError::Malformed { .. }) => false,
        }
    }

    /// Classifies a status that is neither a success nor a redirect.
    pub(crate) const fn of_status(status: u16) -> Self {
        match status {
            401 | 403 => Self::Denied(status),
            404 | 410 => Self::Missing(status),
            // 509 is the specification's status for an exhausted bandwidth.
            429 | 509 => Self::Limited(status),
            500.. => Self::Failed(status),
            _ => Self::Refused(status),
        }
    }
}
