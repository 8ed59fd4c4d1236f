//! Why an effect is not done, by what follows from it.

use std::time::Duration;

use domain::cause::chain;

use crate::{ledger, message};

/// Why an effect is not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// Policy or the outside refuses; words for model and person.
    #[error("{0}")]
    Refused(String),
    /// It will never work as asked; words for people.
    #[error("{0}")]
    Failed(String),
    /// What it is about does not exist, or the credentials cannot see it.
    #[error("{0}")]
    Missing(String),
    /// The credentials are no good: the operator must look at the named section of the settings.
    #[error("the credentials in [{section}] are refused: {detail}")]
    Credentials {
        /// The section.
        section: &'static str,
        /// What to check.
        detail: String,
    },
    /// The credentials are good and may not do this: the operator must look at their permissions.
    #[error("the account in [{section}] may not do this: {detail}")]
    Denied {
        /// The section.
        section: &'static str,
        /// What the outside says.
        detail: String,
    },
    /// Nothing was done; worth trying again.
    #[error("{detail}")]
    Later {
        /// For people.
        detail: String,
        /// How long the outside asks to wait.
        after: Option<Duration>,
    },
    /// It may have been done: look before trying again.
    #[error("{0}")]
    Unknown(String),
    /// The ledger did not answer, or somebody else works on the ticket.
    #[error(transparent)]
    Ledger(#[from] ledger::Error),
    /// The ticket is handed back and comes again after this long.
    #[error("tried again in {} s", .0.as_secs())]
    HandBack(Duration),
    /// The process is shutting down; the effect waits for the next delivery.
    #[error("shutting down")]
    Shutdown,
}

impl From<queue::Error> for Trouble {
    fn from(error: queue::Error) -> Self {
        match error {
            // It will not become readable by trying again.
            queue::Error::Corrupt { .. } => Self::Failed(chain(&error)),
            queue::Error::Unavailable { .. }
            | queue::Error::Newer { .. }
            | queue::Error::Topology { .. }
            | queue::Error::Conflict => Self::Ledger(error.into()),
        }
    }
}

impl From<github::Error> for Trouble {
    fn from(error: github::Error) -> Self {
        let detail = chain(&error);
        match error {
            github::Error::NotFound { .. } => Self::Missing(detail),
            github::Error::Unauthorized { check } => Self::Credentials {
                section: "github_writer",
                detail: check,
            },
            github::Error::Forbidden { .. } => Self::Denied {
                section: "github_writer",
                detail,
            },
            github::Error::Moved { .. }
            | github::Error::UnknownInstance { .. }
            | github::Error::Conflict { .. }
            | github::Error::Rejected { .. } => Self::Refused(detail),
            github::Error::RateLimited { retry_after } => Self::Later {
                detail,
                after: Some(retry_after),
            },
            github::Error::Unavailable { .. } => Self::Later { detail, after: None },
            // The answer to a write that cannot be read says nothing about whether it was done.
            github::Error::Unknown { .. } | github::Error::Malformed { .. } => Self::Unknown(detail),
        }
    }
}

impl From<jira::Error> for Trouble {
    fn from(error: jira::Error) -> Self {
        let detail = chain(&error);
        match error {
            jira::Error::NotFound { .. } => Self::Missing(detail),
            jira::Error::UnknownInstance { .. } => Self::Failed(detail),
            jira::Error::Unauthorized { check } => Self::Credentials {
                section: "jira_writer",
                detail: check,
            },
            jira::Error::Forbidden { .. } => Self::Denied {
                section: "jira_writer",
                detail,
            },
            jira::Error::Conflict { .. } | jira::Error::Rejected { .. } => Self::Refused(detail),
            jira::Error::RateLimited { retry_after } => Self::Later {
                detail,
                after: Some(retry_after),
            },
            jira::Error::Unavailable { .. } => Self::Later { detail, after: None },
            jira::Error::Unknown { .. } | jira::Error::Malformed { .. } | jira::Error::TooDeep { .. } => {
                Self::Unknown(detail)
            }
        }
    }
}

impl From<git::Error> for Trouble {
    fn from(error: git::Error) -> Self {
        let detail = chain(&error);
        match error {
            git::Error::LeaseStale(_) => Self::Refused(message::branch_has_moved(&detail)),
            git::Error::Rejected(_) | git::Error::BadPack(_) => Self::Refused(detail),
            git::Error::Denied(_) => Self::Credentials {
                section: "github_writer",
                detail,
            },
            git::Error::NotFound(_) => Self::Missing(detail),
            git::Error::Missing { .. } => Self::Failed(detail),
            git::Error::Unavailable(_) | git::Error::Failed(_) => Self::Later { detail, after: None },
            git::Error::TimedOut(_) => Self::Unknown(detail),
        }
    }
}
