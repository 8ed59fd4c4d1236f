//! Errors of the GitHub client, classified by how the caller can react.

use std::{fmt, time::Duration};

use domain::{ErrorCause, RepositoryName, cause::format_error_chain};
use webclient::{ConnectionError, ExchangeError, UnknownInstance};

/// Failure of a call to GitHub. Holds no token, and of the body only GitHub's message, truncated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The resource does not exist, or the credentials cannot see it.
    #[error("github does not know {what}, or the credentials cannot see it")]
    NotFound {
        /// Method and path of the request.
        what: String,
    },
    /// The credentials are missing, wrong or expired.
    #[error("github refused the credentials: {check}")]
    Unauthorized {
        /// The setting or credential to check.
        check: String,
    },
    /// The credentials are valid and insufficient.
    #[error("github forbids it: {detail}{}", render_missing_permission(needs.as_deref()))]
    Forbidden {
        /// GitHub's message, at most 300 characters.
        detail: String,
        /// Permissions that GitHub names as sufficient, e.g. `issues:write or pull_requests:write`.
        needs: Option<String>,
    },
    /// The conversation of the issue, pull request or discussion is locked for our account.
    #[error("github refuses it, because the conversation is locked: {detail}")]
    Locked {
        /// GitHub's message, at most 300 characters.
        detail: String,
    },
    /// The repository is archived and accepts no writes.
    #[error("github refuses it, because the repository is archived: {detail}")]
    Archived {
        /// GitHub's message, at most 300 characters.
        detail: String,
    },
    /// The issue or pull request is in another repository or has another number.
    #[error("{0}")]
    Transferred(Box<TransferredThread>),
    /// The issue is deleted, with its conversation.
    #[error("github reports for {what} that the issue was deleted")]
    Deleted {
        /// Method and path of the request.
        what: String,
    },
    /// The settings have no section for this instance.
    #[error("the settings have no section [{section}]")]
    UnknownInstance {
        /// Section of the settings that would configure it.
        section: String,
    },
    /// GitHub redirects to an address that is not part of the same API.
    #[error("github redirects to {to}, which is not followed")]
    Moved {
        /// The other address, at most 300 characters.
        to: String,
    },
    /// The request clashes with the present state, e.g. the pull request exists already.
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
    /// GitHub refused the request for a rate limit.
    #[error("github asks to wait {} s (rate limit)", retry_after.as_secs())]
    RateLimited {
        /// Time to wait before the next request.
        retry_after: Duration,
    },
    /// No request was sent: GitHub asked this account, perhaps in another process, to wait.
    #[error("github asked to wait; {} s of it are left (rate limit)", retry_after.as_secs())]
    HeldBack {
        /// Remaining time to wait before a request.
        retry_after: Duration,
    },
    /// Nothing was done: the connection failed, or a read ended in a server error or without JSON.
    #[error("github is unavailable: {detail}")]
    Unavailable {
        /// Status or class of the failure.
        detail: String,
        /// Cause of a failed connection.
        source: Option<ErrorCause>,
    },
    /// A write was sent and its outcome is unknown; read the state before a retry.
    #[error("the outcome of a write at github is unknown: {detail}")]
    Unknown {
        /// Status or class of the failure.
        detail: String,
        /// Cause of a failed connection.
        source: Option<ErrorCause>,
    },
    /// The answer is JSON in another shape than GitHub documents; a repeated request gives the same answer.
    #[error("github's answer cannot be read: {detail}")]
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
            | Self::Locked { .. }
            | Self::Archived { .. }
            | Self::Transferred(_)
            | Self::Deleted { .. }
            | Self::Moved { .. }
            | Self::UnknownInstance { .. }
            | Self::Conflict { .. }
            | Self::Rejected { .. }
            | Self::Malformed { .. } => false,
        }
    }

    /// True when GitHub refused the draft state, which repositories of some plans do not have.
    pub fn is_about_missing_drafts(&self) -> bool {
        self.rejects_with(|detail| detail.contains("draft pull request") && detail.contains("not supported"))
    }

    /// True when GitHub does not know the commits of a branch, as in the moments after their push.
    pub fn is_about_unseen_commits(&self) -> bool {
        const ANSWERS: &[&str] = &[
            "no commits between",
            "not all refs are readable",
            "head sha can't be blank",
            "head: invalid",
        ];
        self.rejects_with(|detail| ANSWERS.iter().any(|answer| detail.contains(answer)))
    }

    /// True when the merge queue has the pull request: its branch cannot change until it leaves the queue.
    pub fn is_about_merge_queue(&self) -> bool {
        self.rejects_with(|detail| detail.contains("queued for merging"))
    }

    /// True when a branch has every commit of its base already.
    pub fn is_about_current_branch(&self) -> bool {
        self.rejects_with(|detail| detail.contains("no new commits"))
    }

    /// Returns the error that a refusal means by its message alone: a locked conversation or an archived repository.
    /// GitHub sends both with the statuses and types of a missing permission.
    pub(crate) fn of_closed_place(detail: &str) -> Option<Self> {
        // "Repository was archived so is read-only and unable to create comment because issue is locked" is about the
        // archived repository, so it comes first.
        const ARCHIVED: &[&str] = &["archived so is read-only", "archived so it is read-only"];
        const LOCKED: &[&str] = &[
            "issue is locked",
            "pull request is locked",
            "discussion is locked",
            "conversation is locked",
            "lock prevents review",
        ];
        let lower = detail.to_ascii_lowercase();
        let names = |known: &[&str]| known.iter().any(|words| lower.contains(words));
        let detail = || detail.to_owned();
        if names(ARCHIVED) {
            return Some(Self::Archived { detail: detail() });
        }
        names(LOCKED).then(|| Self::Locked { detail: detail() })
    }

    /// True for GitHub's message about a deleted issue. A repository without issues answers with the same status.
    pub(crate) fn is_about_deletion(message: &str) -> bool {
        message.to_ascii_lowercase().contains("issue was deleted")
    }

    fn rejects_with(&self, is_known: impl Fn(&str) -> bool) -> bool {
        matches!(self, Self::Rejected { detail } if is_known(&detail.to_ascii_lowercase()))
    }

    /// Turns [`Error::NotFound`] into `Ok(None)`.
    pub(crate) fn none_if_missing<T>(result: Result<T, Self>) -> Result<Option<T>, Self> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(Self::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
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

fn render_missing_permission(needs: Option<&str>) -> String {
    needs.map_or_else(String::new, |needs| {
        format!("; the App lacks the permission {needs}")
    })
}

/// Issue or pull request that GitHub redirects to another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferredThread {
    /// Repository of the request.
    pub repository: RepositoryName,
    /// Number of the request.
    pub number: u64,
    /// Present place, e.g. `acme/other#220`.
    pub to: String,
}

impl fmt::Display for TransferredThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            repository,
            number,
            to,
        } = self;
        write!(f, "{repository}#{number} moved to {to}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_place_is_known_by_message() {
        for (detail, name) in [
            ("Unable to create comment because issue is locked.", "locked"),
            ("Unable to update comment because issue is locked.", "locked"),
            ("Unprocessable Entity; lock prevents review", "locked"),
            ("Discussion is locked", "locked"),
            ("Repository was archived so is read-only.", "archived"),
            (
                "Repository was archived so is read-only and unable to create comment because issue is locked",
                "archived",
            ),
            ("Resource not accessible by integration", "other"),
            ("Branch is locked", "other"),
        ] {
            let found = match Error::of_closed_place(detail) {
                Some(Error::Locked { detail: kept }) => {
                    assert_eq!(kept, detail);
                    "locked"
                }
                Some(Error::Archived { .. }) => "archived",
                Some(error) => panic!("{error}"),
                None => "other",
            };
            assert_eq!(found, name, "{detail}");
        }
    }

    #[test]
    fn deletion_is_known_by_message() {
        assert!(Error::is_about_deletion("This issue was deleted"));
        assert!(!Error::is_about_deletion("Issues are disabled for this repo"));
    }

    #[test]
    fn refusals_of_new_pull_request_differ() {
        for (detail, is_without_drafts, is_unseen) in [
            (
                "Validation Failed; Draft pull requests are not supported in this repository.",
                true,
                false,
            ),
            (
                "Validation Failed; No commits between main and fix/one",
                false,
                true,
            ),
            ("Validation Failed; head: invalid", false, true),
            (
                "Head sha can't be blank; Head repository can't be blank; not all refs are readable",
                false,
                true,
            ),
            ("Validation Failed; base: invalid", false, false),
        ] {
            let error = Error::Rejected {
                detail: detail.to_owned(),
            };
            assert_eq!(error.is_about_missing_drafts(), is_without_drafts, "{detail}");
            assert_eq!(error.is_about_unseen_commits(), is_unseen, "{detail}");
        }
        let rejected = |detail: &str| Error::Rejected {
            detail: detail.to_owned(),
        };
        assert!(rejected("There are no new commits on the base branch.").is_about_current_branch());
        assert!(!rejected("merge conflict between base and head").is_about_current_branch());
        assert!(rejected("Branches that are queued for merging cannot be updated").is_about_merge_queue());
        let passing = Error::Unavailable {
            detail: "no commits between".to_owned(),
            source: None,
        };
        assert!(!passing.is_about_unseen_commits());
    }
}
