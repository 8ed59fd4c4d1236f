//! Check of a ticket that reportedly entered the ready status: its current status, and the account that moved it.

use std::collections::BTreeSet;

use domain::{RepositoryRules, Timestamp};

use crate::facts::tracker_reader::{TrackerEdit, TrackerIssue};

/// Act that requests work. The ticket's text at that moment defines the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkApproval {
    /// Changelog id of the status change, if it was one.
    pub(crate) changelog: Option<String>,
    pub(crate) at: Timestamp,
    /// Absent when Jira has lost the account.
    pub(crate) by: Option<domain::TrackerAccount>,
}

/// True when this status requests work under these rules. Jira compares status names case-insensitively.
pub(crate) fn asks_for_work(status: &str, rules: &RepositoryRules) -> bool {
    status.to_lowercase() == rules.agent.status.to_lowercase()
}

/// Result of checking the reported status against Jira.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatusCheck {
    /// The ticket is still in the status.
    Asks(WorkApproval),
    /// The ticket is in another status by now.
    Left {
        /// Current status of the ticket.
        status: String,
    },
    /// The ticket entered the status again since. That later status change requests the work.
    Repeated,
}

/// Compares a webhook or search result with the current issue. A ticket created in the status has no changelog id.
pub(crate) fn check_status(
    issue: &TrackerIssue,
    approval: WorkApproval,
    rules: &RepositoryRules,
) -> StatusCheck {
    if !asks_for_work(&issue.status, rules) {
        return StatusCheck::Left {
            status: issue.status.clone(),
        };
    }
    let entries = || issue.moves.iter().filter(|entry| asks_for_work(&entry.to, rules));
    let is_approval = |entry: &&jira::StatusChange| Some(&entry.id.0) == approval.changelog.as_ref();
    match (
        entries().next_back(),
        entries().find(is_approval),
        &approval.changelog,
    ) {
        (Some(last), Some(entry), _) if last.id == entry.id => StatusCheck::Asks(WorkApproval {
            at: last.at.unwrap_or(approval.at),
            by: last.by.clone(),
            changelog: approval.changelog,
        }),
        (Some(_), Some(_), _) | (Some(_), None, None) => StatusCheck::Repeated,
        (None, _, None) => StatusCheck::Asks(WorkApproval {
            changelog: None,
            at: issue.created.unwrap_or(approval.at),
            by: issue.creator.clone().or(approval.by),
        }),
        // Jira's changelog may lag behind the webhook. The signed webhook names the actor.
        (_, None, Some(_)) | (None, Some(_), _) => StatusCheck::Asks(approval),
    }
}

/// First edit after the approval by an account without authority.
pub(crate) fn find_unauthorized_edit<'a>(
    issue: &'a TrackerIssue,
    approval: &WorkApproval,
    instructors: &BTreeSet<String>,
) -> Option<&'a TrackerEdit> {
    issue.edits.iter().find(|edit| {
        // One changelog entry may contain both the status change and an edit; that edit is part of the approval.
        let is_later = edit.at >= approval.at && Some(&edit.id) != approval.changelog.as_ref();
        let may = edit.by.as_ref().is_some_and(|by| instructors.contains(&by.id));
        is_later && !may
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const READY: &str = "Ready for Agent";

    fn build_tracker_account(id: &str) -> domain::TrackerAccount {
        domain::TrackerAccount {
            id: id.to_owned(),
            display_name: id.to_uppercase(),
            is_bot: false,
        }
    }

    fn build_work_approval(changelog: Option<&str>) -> WorkApproval {
        WorkApproval {
            changelog: changelog.map(str::to_owned),
            at: Timestamp::from_unix_ms(50),
            by: Some(build_tracker_account("webhook")),
        }
    }

    fn build_status_change(id: &str, to: &str, at: i64) -> jira::StatusChange {
        jira::StatusChange {
            id: jira::ChangelogId(id.to_owned()),
            to: to.to_owned(),
            at: Some(Timestamp::from_unix_ms(at)),
            by: Some(build_tracker_account("read")),
        }
    }

    fn build_tracker_issue(status: &str, moves: Vec<jira::StatusChange>) -> TrackerIssue {
        TrackerIssue {
            status: status.to_owned(),
            moves,
            creator: Some(build_tracker_account("maker")),
            created: Some(Timestamp::from_unix_ms(3)),
            ..TrackerIssue::default()
        }
    }

    #[test]
    fn last_status_change_requests_work() {
        let standing = |issue: &TrackerIssue, changelog| {
            check_status(issue, build_work_approval(changelog), &RepositoryRules::default())
        };
        let by = |standing: StatusCheck| match standing {
            StatusCheck::Asks(approval) => approval.by.map(|by| by.id),
            StatusCheck::Left { .. } | StatusCheck::Repeated => None,
        };
        let once = vec![build_status_change("1", READY, 5)];
        assert_eq!(
            by(standing(&build_tracker_issue(READY, once.clone()), Some("1"))).as_deref(),
            Some("read")
        );
        let twice = vec![
            build_status_change("1", READY, 5),
            build_status_change("2", "To Do", 6),
            build_status_change("3", READY, 7),
        ];
        assert_eq!(
            standing(&build_tracker_issue(READY, twice.clone()), Some("1")),
            StatusCheck::Repeated
        );
        assert_eq!(
            standing(&build_tracker_issue(READY, twice.clone()), None),
            StatusCheck::Repeated
        );
        assert_eq!(
            by(standing(&build_tracker_issue(READY, twice), Some("3"))).as_deref(),
            Some("read")
        );
        let left = StatusCheck::Left {
            status: "Done".to_owned(),
        };
        assert_eq!(standing(&build_tracker_issue("Done", once), Some("1")), left);
        // Jira's changelog may lag behind its webhook.
        assert_eq!(
            by(standing(&build_tracker_issue(READY, Vec::new()), Some("1"))).as_deref(),
            Some("webhook")
        );
        assert_eq!(
            by(standing(&build_tracker_issue(READY, Vec::new()), None)).as_deref(),
            Some("maker")
        );
    }

    #[test]
    fn ready_status_ignores_case() {
        assert!(asks_for_work("ready for AGENT", &RepositoryRules::default()));
        assert!(!asks_for_work("In Progress", &RepositoryRules::default()));
    }
}
