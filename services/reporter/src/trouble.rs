//! Why an effect is not done, by what follows from it.

use std::{fmt, time::Duration};

use domain::{Refusal, Report, cause::chain};

use crate::ledger;

/// Pause of a report while the reporter's disk is full.
pub(crate) const DISK_WAIT: Duration = Duration::from_secs(60);
/// Pause of a report whose repository is still being fetched.
pub(crate) const FETCH_WAIT: Duration = Duration::from_secs(15);

/// An account that writes. Which section of the settings holds it follows from the instance that is written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    GitHub,
    Jira,
}

impl Account {
    /// The section that the operator has to look at.
    pub(crate) fn section(self, report: &Report) -> String {
        let instance = match (self, report.request.repository()) {
            (Self::GitHub, Some(repository)) => repository.instance(),
            (Self::GitHub, None) | (Self::Jira, _) => report.ticket.instance(),
        };
        match (self, instance) {
            (Self::GitHub, None) => "github_writer".to_owned(),
            (Self::Jira, None) => "jira_writer".to_owned(),
            (Self::GitHub, Some(instance)) => format!("github.{instance}"),
            (Self::Jira, Some(instance)) => format!("jira.{instance}"),
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GitHub => "GitHub",
            Self::Jira => "Jira",
        })
    }
}

/// Why an effect is not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    /// Policy or the outside refuses.
    #[error("{}", .0.words())]
    Refused(Refusal),
    /// It will never work as asked; words for people.
    #[error("{0}")]
    Failed(String),
    /// What it is about does not exist, or the credentials cannot see it.
    #[error("{0}")]
    Missing(String),
    /// The credentials are no good: the operator must look at the account's section of the settings.
    #[error("the credentials of the {account} account are refused: {detail}")]
    Credentials {
        /// Whose.
        account: Account,
        /// What to check.
        detail: String,
    },
    /// The credentials are good and may not do this: the operator must look at their permissions.
    #[error("the {account} account may not do this: {detail}")]
    Denied {
        /// Whose.
        account: Account,
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
    /// Nothing was asked: the account has to wait, because of whatever made the outside say so.
    #[error("{detail}")]
    HeldBack {
        /// For people.
        detail: String,
        /// How long.
        wait: Duration,
    },
    /// The reporter's own disk is full. Nothing is lost: the report waits until an operator makes room.
    #[error("the reporter's disk is full: {0}")]
    DiskFull(String),
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

impl Trouble {
    /// Failure of an inspection; it may work later.
    pub(crate) fn of_inspection(detail: String) -> Self {
        if git::is_about_full_disk(&detail) {
            Self::DiskFull(detail)
        } else {
            Self::Later { detail, after: None }
        }
    }

    /// Why a branch could not be pushed.
    pub(crate) fn of_push(error: git::Error, branch: &str) -> Self {
        match error {
            git::Error::LeaseStale(_) => Self::Refused(Refusal::BranchMoved {
                branch: branch.to_owned(),
                head: None,
            }),
            other => other.into(),
        }
    }
}

impl Trouble {
    /// The same for another of those who waited for one fetch.
    pub(crate) fn repeat(&self) -> Self {
        match self {
            Self::Refused(refusal) => Self::Refused(refusal.clone()),
            Self::Failed(detail) => Self::Failed(detail.clone()),
            Self::Missing(detail) => Self::Missing(detail.clone()),
            Self::Credentials { account, detail } => Self::Credentials {
                account: *account,
                detail: detail.clone(),
            },
            Self::Denied { account, detail } => Self::Denied {
                account: *account,
                detail: detail.clone(),
            },
            Self::Later { detail, after } => Self::Later {
                detail: detail.clone(),
                after: *after,
            },
            Self::HeldBack { detail, wait } => Self::HeldBack {
                detail: detail.clone(),
                wait: *wait,
            },
            Self::DiskFull(detail) => Self::DiskFull(detail.clone()),
            Self::Unknown(detail) => Self::Unknown(detail.clone()),
            Self::Ledger(_) => Self::Later {
                detail: chain(self),
                after: None,
            },
            Self::HandBack(wait) => Self::HandBack(*wait),
            Self::Shutdown => Self::Shutdown,
        }
    }
}

impl From<queue::Error> for Trouble {
    fn from(error: queue::Error) -> Self {
        match error {
            // It will not become readable by trying again.
            queue::Error::Corrupt { .. } => Self::Failed(chain(&error)),
            queue::Error::Unavailable { .. }
            | queue::Error::Full { .. }
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
                account: Account::GitHub,
                detail: check,
            },
            github::Error::Forbidden { .. } => Self::Denied {
                account: Account::GitHub,
                detail,
            },
            github::Error::UnknownInstance { .. }
            | github::Error::Conflict { .. }
            | github::Error::Rejected { .. } => Self::Refused(Refusal::Outside { detail }),
            github::Error::RateLimited { retry_after } => Self::Later {
                detail,
                after: Some(retry_after),
            },
            github::Error::HeldBack { retry_after } => Self::HeldBack {
                detail,
                wait: retry_after,
            },
            // A redirect to another service is a log-in page or a portal, which did nothing.
            github::Error::Unavailable { .. } | github::Error::Moved { .. } => {
                Self::Later { detail, after: None }
            }
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
                account: Account::Jira,
                detail: check,
            },
            jira::Error::Forbidden { .. } => Self::Denied {
                account: Account::Jira,
                detail,
            },
            jira::Error::Conflict { .. } | jira::Error::Rejected { .. } => {
                Self::Refused(Refusal::Outside { detail })
            }
            jira::Error::RateLimited { retry_after } => Self::Later {
                detail,
                after: Some(retry_after),
            },
            jira::Error::HeldBack { retry_after } => Self::HeldBack {
                detail,
                wait: retry_after,
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
            // git and its library say it in words alone. The remote's own full disk is a refusal of a push.
            git::Error::Failed(_) | git::Error::BadPack(_) | git::Error::Unavailable(_)
                if git::is_about_full_disk(&detail) =>
            {
                Self::DiskFull(detail)
            }
            git::Error::LeaseStale(_) | git::Error::Rejected(_) | git::Error::BadPack(_) => {
                Self::Refused(Refusal::Outside { detail })
            }
            git::Error::Denied(_) => Self::Credentials {
                account: Account::GitHub,
                detail,
            },
            git::Error::NotFound(_) => Self::Missing(detail),
            // The same object comes at every try.
            git::Error::Missing { .. } | git::Error::RefusedObject { .. } | git::Error::RefusedHistory(_) => {
                Self::Failed(detail)
            }
            git::Error::BranchInTheWay { branch, by } => {
                Self::Refused(Refusal::BranchInTheWay { branch, by })
            }
            git::Error::Unavailable(_) | git::Error::Failed(_) | git::Error::Stalled(_) => {
                Self::Later { detail, after: None }
            }
            git::Error::NotReady { .. } => Self::HeldBack {
                detail,
                wait: FETCH_WAIT,
            },
            git::Error::TimedOut(_) => Self::Unknown(detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_waits_for_room() {
        let said = [
            "fatal: write error: No space left on device",
            "failed to write chunk: No space left on device",
            "fatal: unable to write new index file: Disk quota exceeded",
        ];
        for words in said {
            for error in [
                git::Error::Failed(words.into()),
                git::Error::BadPack(words.to_owned()),
                git::Error::Failed(std::io::Error::other(words).into()),
            ] {
                let trouble = Trouble::from(error);
                assert!(
                    matches!(&trouble, Trouble::DiskFull(detail) if detail.contains(words)),
                    "{trouble}"
                );
            }
            let inspected = Trouble::of_inspection(words.to_owned());
            assert!(matches!(inspected, Trouble::DiskFull(_)), "{inspected}");
        }
        let disk = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let trouble = Trouble::from(git::Error::Failed(disk.into()));
        assert!(
            !matches!(trouble, Trouble::Refused(_) | Trouble::Failed(_)),
            "{trouble}"
        );
        let remote = git::Error::Rejected("remote: No space left on device".to_owned());
        assert!(
            matches!(Trouble::from(remote), Trouble::Refused(_)),
            "the disk of GitHub"
        );
    }
}
