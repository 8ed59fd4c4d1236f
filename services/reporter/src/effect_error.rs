//! Effect errors, classified by the required reaction of the caller.

use std::{fmt, time::Duration};

use domain::{OutboundRefusal, OutboundRequest, cause::format_error_chain};

use crate::{
    ledger,
    refused_notice::{NoticeRefusal, RefusedNotice},
};

/// Pause of a report while the reporter's disk is full.
pub(crate) const DISK_WAIT: Duration = Duration::from_secs(60);
/// Pause of a report whose repository is still being fetched.
pub(crate) const FETCH_WAIT: Duration = Duration::from_secs(15);

/// A writing account. The instance of the target determines its settings section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WritingAccount {
    GitHub,
    Jira,
}

impl WritingAccount {
    /// Returns the settings section that the operator has to check.
    pub(crate) fn section(self, report: &OutboundRequest) -> String {
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

impl fmt::Display for WritingAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GitHub => "GitHub",
            Self::Jira => "Jira",
        })
    }
}

/// Failure of an effect.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EffectError {
    /// Policy, GitHub or Jira refuses the effect.
    #[error("{}", .0.words())]
    Refused(OutboundRefusal),
    /// The request can never succeed; a text for people.
    #[error("{0}")]
    Failed(String),
    /// The target does not exist, or the account cannot see it.
    #[error("{0}")]
    Missing(String),
    /// The credentials are invalid. The operator must check the account's settings section.
    #[error("the credentials of the {account} account are refused: {detail}")]
    Credentials {
        /// Account of the credentials.
        account: WritingAccount,
        /// Advice for the operator.
        detail: String,
    },
    /// The credentials are valid but lack a permission. The operator must grant it.
    #[error("the {account} account is not allowed to do this: {detail}")]
    Denied {
        /// Account without the permission.
        account: WritingAccount,
        /// Reason that GitHub or Jira returned.
        detail: String,
    },
    /// The conversation or repository accepts no writes of our account, whatever they are.
    #[error("{}", .0.detail)]
    Unwritable(RefusedNotice),
    /// Nothing was done, and a retry may succeed.
    #[error("{detail}")]
    Later {
        /// Reason, for people.
        detail: String,
        /// Wait that the service requests.
        after: Option<Duration>,
    },
    /// Nothing was sent: the account has to wait because of other requests.
    #[error("{detail}")]
    HeldBack {
        /// Reason, for people.
        detail: String,
        /// Wait until the account may send again.
        wait: Duration,
    },
    /// The branch is in a merge queue, which accepts no push. Nothing was moved, and the effect waits for the end of the
    /// queue.
    #[error("{0}")]
    Queued(String),
    /// The reporter's disk is full. Nothing is lost: the report waits until an operator frees space.
    #[error("the reporter's disk is full: {0}")]
    DiskFull(String),
    /// The outcome is unknown. The effect must be searched for before a retry.
    #[error("{0}")]
    Unknown(String),
    /// The ledger failed, or another reporter has the ticket.
    #[error(transparent)]
    Ledger(#[from] ledger::Error),
    /// The ticket is handed back and delivered again after this time.
    #[error("tried again in {} s", .0.as_secs())]
    HandBack(Duration),
    /// The process is shutting down. The next delivery continues the effect.
    #[error("shutting down")]
    Shutdown,
}

impl EffectError {
    /// Classifies the failure of an inspection. A retry may succeed.
    pub(crate) fn of_inspection(detail: String) -> Self {
        if git::is_about_full_disk(&detail) {
            Self::DiskFull(detail)
        } else if git::is_about_incomplete_history(&detail) {
            Self::HeldBack {
                detail,
                wait: FETCH_WAIT,
            }
        } else {
            Self::Later { detail, after: None }
        }
    }

    /// Returns true for a failure that no repetition ends: a person has to change something first.
    pub(crate) const fn needs_person(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::Failed(_)
            | Self::Missing(_)
            | Self::Credentials { .. }
            | Self::Denied { .. }
            | Self::Unwritable(_) => true,
            Self::Later { .. }
            | Self::HeldBack { .. }
            | Self::Queued(_)
            | Self::DiskFull(_)
            | Self::Unknown(_)
            | Self::Ledger(_)
            | Self::HandBack(_)
            | Self::Shutdown => false,
        }
    }

    /// Returns the failure of a write that a conversation or repository in this state refuses.
    const fn of_closed_place(cause: NoticeRefusal, detail: String) -> Self {
        Self::Unwritable(RefusedNotice { cause, detail })
    }

    /// Classifies the failure of a push.
    pub(crate) fn of_push(error: git::Error, branch: &str) -> Self {
        if let git::Error::LeaseStale(_) = error {
            return Self::Refused(OutboundRefusal::BranchMoved {
                branch: branch.to_owned(),
                // git does not say where the branch is now. `check_then_push` reads it from the remote.
                head: None,
            });
        }
        if let git::Error::Rejected(detail) = error {
            return Self::Refused(OutboundRefusal::PushRejected {
                branch: branch.to_owned(),
                detail,
            });
        }
        error.into()
    }
}

impl EffectError {
    /// Copies the failure for a further caller that waited for the same fetch. Errors of the ledger become temporary
    /// failures.
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
            Self::Unwritable(refused) => Self::Unwritable(refused.clone()),
            Self::Later { detail, after } => Self::Later {
                detail: detail.clone(),
                after: *after,
            },
            Self::HeldBack { detail, wait } => Self::HeldBack {
                detail: detail.clone(),
                wait: *wait,
            },
            Self::Queued(detail) => Self::Queued(detail.clone()),
            Self::DiskFull(detail) => Self::DiskFull(detail.clone()),
            Self::Unknown(detail) => Self::Unknown(detail.clone()),
            Self::Ledger(_) => Self::Later {
                detail: format_error_chain(self),
                after: None,
            },
            Self::HandBack(wait) => Self::HandBack(*wait),
            Self::Shutdown => Self::Shutdown,
        }
    }
}

impl From<queue::Error> for EffectError {
    fn from(error: queue::Error) -> Self {
        match error {
            // A retry cannot make the record readable.
            queue::Error::Corrupt { .. } => Self::Failed(format_error_chain(&error)),
            queue::Error::Unavailable { .. }
            | queue::Error::Full { .. }
            | queue::Error::Newer { .. }
            | queue::Error::Topology { .. }
            | queue::Error::Conflict => Self::Ledger(error.into()),
        }
    }
}

impl From<github::Error> for EffectError {
    fn from(error: github::Error) -> Self {
        let detail = format_error_chain(&error);
        match error {
            github::Error::NotFound { .. } => Self::Missing(detail),
            github::Error::Unauthorized { check } => Self::Credentials {
                account: WritingAccount::GitHub,
                detail: check,
            },
            github::Error::Forbidden { .. } => Self::Denied {
                account: WritingAccount::GitHub,
                detail,
            },
            github::Error::Locked { .. } => Self::of_closed_place(NoticeRefusal::Locked, detail),
            github::Error::Archived { .. } => Self::of_closed_place(NoticeRefusal::Archived, detail),
            github::Error::Transferred(_) => Self::of_closed_place(NoticeRefusal::Moved, detail),
            github::Error::Deleted { .. } => Self::of_closed_place(NoticeRefusal::Deleted, detail),
            github::Error::UnknownInstance { .. }
            | github::Error::Conflict { .. }
            | github::Error::Rejected { .. } => Self::Refused(OutboundRefusal::Outside { detail }),
            github::Error::RateLimited { retry_after } => Self::Later {
                detail,
                after: Some(retry_after),
            },
            github::Error::HeldBack { retry_after } => Self::HeldBack {
                detail,
                wait: retry_after,
            },
            // A redirect to another host leads to a login page or a portal, which did nothing.
            github::Error::Unavailable { .. } | github::Error::Moved { .. } => {
                Self::Later { detail, after: None }
            }
            // An unreadable response to a write does not show if the write happened.
            github::Error::Unknown { .. } | github::Error::Malformed { .. } => Self::Unknown(detail),
        }
    }
}

impl From<jira::Error> for EffectError {
    fn from(error: jira::Error) -> Self {
        let detail = format_error_chain(&error);
        match error {
            jira::Error::NotFound { .. } => Self::Missing(detail),
            jira::Error::UnknownInstance { .. } => Self::Failed(detail),
            jira::Error::Unauthorized { check } => Self::Credentials {
                account: WritingAccount::Jira,
                detail: check,
            },
            jira::Error::Forbidden { .. } => Self::Denied {
                account: WritingAccount::Jira,
                detail,
            },
            jira::Error::Conflict { .. } | jira::Error::Rejected { .. } => {
                Self::Refused(OutboundRefusal::Outside { detail })
            }
            jira::Error::RateLimited { retry_after } => Self::Later {
                detail,
                after: Some(retry_after),
            },
            jira::Error::HeldBack { retry_after } => Self::HeldBack {
                detail,
                wait: retry_after,
            },
            // Nothing was done: no connection, or a server error on a read.
            jira::Error::Unavailable { .. } => Self::Later { detail, after: None },
            jira::Error::Unknown { .. } | jira::Error::Malformed { .. } | jira::Error::TooDeep { .. } => {
                Self::Unknown(detail)
            }
        }
    }
}

impl From<git::Error> for EffectError {
    fn from(error: git::Error) -> Self {
        let detail = format_error_chain(&error);
        match error {
            // git and libgit2 report a full disk in their message only. A full disk of the remote is a refusal of the
            // push.
            git::Error::Failed(_) | git::Error::BadPack(_) | git::Error::Unavailable(_)
                if git::is_about_full_disk(&detail) =>
            {
                Self::DiskFull(detail)
            }
            git::Error::LeaseStale(_)
            | git::Error::Rejected(_)
            | git::Error::BranchNotWritable { .. }
            | git::Error::CheckoutRefused { .. }
            | git::Error::PatchDoesNotApply(_)
            | git::Error::PathNotUtf8(_)
            | git::Error::BadPack(_) => Self::Refused(OutboundRefusal::Outside { detail }),
            // GitHub refuses a push to an archived repository with the status of a missing permission.
            git::Error::Denied(_) if git::is_about_archived_repository(&detail) => {
                Self::of_closed_place(NoticeRefusal::Archived, detail)
            }
            git::Error::Denied(_) => Self::Credentials {
                account: WritingAccount::GitHub,
                detail,
            },
            git::Error::NotFound(_) => Self::Missing(detail),
            // Every try would receive the same object.
            git::Error::Missing { .. }
            | git::Error::RefusedObject { .. }
            | git::Error::RefusedHistory(_)
            | git::Error::Unusable(_) => Self::Failed(detail),
            git::Error::BranchInTheWay { branch, by } => {
                Self::Refused(OutboundRefusal::BranchInTheWay { branch, by })
            }
            git::Error::Unavailable(_) | git::Error::Failed(_) | git::Error::Stalled(_) => {
                Self::Later { detail, after: None }
            }
            git::Error::Queued(_) => Self::Queued(detail),
            git::Error::NotReady { .. } | git::Error::HistoryIncomplete => Self::HeldBack {
                detail,
                wait: FETCH_WAIT,
            },
            // The remote may have accepted the push before the timeout.
            git::Error::TimedOut(_) => Self::Unknown(detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queued_branch_waits_for_end_of_queue() {
        let trouble = EffectError::of_push(git::Error::Queued("fix/ENG-1".to_owned()), "fix/ENG-1");
        assert!(matches!(&trouble, EffectError::Queued(_)), "{trouble}");
    }

    #[test]
    fn refusal_of_folder_names_no_remote() {
        let error = git::Error::BranchNotWritable {
            branch: "trunk".to_owned(),
            reason: "it is checked out".to_owned(),
        };
        let trouble = EffectError::of_push(error, "trunk");
        assert!(
            matches!(&trouble, EffectError::Refused(OutboundRefusal::Outside { detail })
                if detail == "the branch trunk cannot be written: it is checked out"),
            "{trouble}"
        );
    }

    #[test]
    fn rejected_push_keeps_words_of_server() {
        let words = "pre-receive hook declined; error: no key in message";
        let trouble = EffectError::of_push(git::Error::Rejected(words.to_owned()), "fix/ENG-1");
        assert!(
            matches!(&trouble, EffectError::Refused(OutboundRefusal::PushRejected { branch, detail })
                if branch == "fix/ENG-1" && detail == words),
            "{trouble}"
        );
    }

    #[test]
    fn closed_places_are_no_missing_permission() {
        let detail = || "Unable to create comment because issue is locked.".to_owned();
        let moved = github::TransferredThread {
            repository: "acme/shop".parse().unwrap(),
            number: 2,
            to: "acme/other#220".to_owned(),
        };
        let push = "remote: This repository was archived so it is read-only. error: 403";
        for (trouble, cause) in [
            (
                EffectError::from(github::Error::Locked { detail: detail() }),
                NoticeRefusal::Locked,
            ),
            (
                github::Error::Archived { detail: detail() }.into(),
                NoticeRefusal::Archived,
            ),
            (
                github::Error::Transferred(Box::new(moved)).into(),
                NoticeRefusal::Moved,
            ),
            (
                github::Error::Deleted { what: detail() }.into(),
                NoticeRefusal::Deleted,
            ),
            (
                git::Error::Denied(push.to_owned()).into(),
                NoticeRefusal::Archived,
            ),
        ] {
            let EffectError::Unwritable(refused) = trouble else {
                panic!("{trouble}");
            };
            assert_eq!(refused.cause, cause, "{}", refused.detail);
        }
        let denied = EffectError::from(git::Error::Denied("error: 403".to_owned()));
        assert!(matches!(denied, EffectError::Credentials { .. }), "{denied}");
    }

    #[test]
    fn incomplete_history_waits_without_failure() {
        let error = git::Error::HistoryIncomplete;
        let inspected = EffectError::of_inspection(format!("inspection failed: {error}"));
        for trouble in [error.into(), inspected] {
            assert!(
                matches!(&trouble, EffectError::HeldBack { wait, .. } if *wait == FETCH_WAIT),
                "{trouble}"
            );
        }
    }

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
                let trouble = EffectError::from(error);
                assert!(
                    matches!(&trouble, EffectError::DiskFull(detail) if detail.contains(words)),
                    "{trouble}"
                );
            }
            let inspected = EffectError::of_inspection(words.to_owned());
            assert!(matches!(inspected, EffectError::DiskFull(_)), "{inspected}");
        }
        let disk = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let trouble = EffectError::from(git::Error::Failed(disk.into()));
        assert!(
            !matches!(trouble, EffectError::Refused(_) | EffectError::Failed(_)),
            "{trouble}"
        );
        let remote = git::Error::Rejected("remote: No space left on device".to_owned());
        assert!(
            matches!(EffectError::from(remote), EffectError::Refused(_)),
            "the disk of GitHub"
        );
    }
}
