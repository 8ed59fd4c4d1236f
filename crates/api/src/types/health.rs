//! Health of a pull request: what keeps it from being merged, since when, and who acts.

use domain::{HealthActor, HealthCause, HealthRecord, HealthState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Last assessment of an open pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HealthView {
    /// State: `ready`, `queued`, `waiting` or `blocked`.
    pub state: String,
    /// Reason of a wait or block, e.g. `outdated_base`; absent for the other states.
    pub cause: Option<String>,
    /// The state or reason in words.
    pub text: String,
    /// Start of the state; absent for `ready`.
    pub since: Option<String>,
    /// Time at which a wait ends with a notice; absent for the other states.
    pub until: Option<String>,
    /// Party that acts: `journeyman`, `maintainer`, `reviewer`, or `github` for what runs there; absent for
    /// `ready`.
    pub who: Option<String>,
    /// Name of the base branch.
    pub base_branch: String,
    /// Merge that GitHub makes by itself once nothing blocks it; absent: auto-merge is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto_merge: Option<AutoMergeView>,
    /// Names of the checks and workflow runs that the rules ignore (`ci.ignore_checks`). Text by others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_checks: Vec<String>,
    /// Time of the assessment.
    pub at: String,
}

/// Auto-merge of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AutoMergeView {
    /// Login of the person who enabled it.
    pub by: String,
    /// Way of the merge: `merge`, `squash` or `rebase`.
    pub method: String,
}

impl AutoMergeView {
    /// Describes the auto-merge in words.
    pub fn words(&self) -> String {
        format!(
            "GitHub merges it by {} once nothing blocks it, as {} wants",
            self.method, self.by
        )
    }
}

impl HealthView {
    /// Creates the view; `None` for a pull request that ended.
    pub fn new(record: &HealthRecord) -> Option<Self> {
        let of = |state: &str, text: &str| Self {
            state: state.to_owned(),
            cause: None,
            text: text.to_owned(),
            since: None,
            until: None,
            who: None,
            base_branch: record.base.branch.clone(),
            auto_merge: record.auto_merge.as_ref().map(|known| AutoMergeView {
                by: known.by.clone(),
                method: known.method.clone(),
            }),
            ignored_checks: record.ignored_checks.clone(),
            at: record.at.to_string(),
        };
        Some(match &record.state {
            HealthState::Merged | HealthState::Closed => return None,
            HealthState::Ready => of("ready", describe_ready(record)),
            HealthState::Queued { since } => Self {
                since: Some(since.to_string()),
                who: Some("github".to_owned()),
                ..of("queued", "the merge queue tests it")
            },
            HealthState::Waiting { cause, since, until } => Self {
                cause: Some(cause.as_str().to_owned()),
                since: Some(since.to_string()),
                until: Some(until.to_string()),
                who: Some(find_waited_for(*cause).to_owned()),
                ..of("waiting", &describe_record_cause(record, *cause))
            },
            HealthState::Blocked { cause, since, who } => Self {
                cause: Some(cause.as_str().to_owned()),
                since: Some(since.to_string()),
                who: Some(who.as_str().to_owned()),
                ..of("blocked", &describe_record_cause(record, *cause))
            },
        })
    }
}

/// Locked conversation on GitHub: accounts without write access cannot comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConversationLockView {
    /// Time of the lock, or of the first read that shows it.
    pub since: String,
    /// Reason in words, e.g. `too heated`; empty when the lock has none. Text by others.
    pub reason: String,
}

/// Party for whose result a pull request waits.
fn find_waited_for(cause: HealthCause) -> &'static str {
    match cause {
        HealthCause::QueueChecks
        | HealthCause::Conflict
        | HealthCause::FailedChecks
        | HealthCause::Draft
        | HealthCause::OutdatedBase => HealthActor::Journeyman.as_str(),
        HealthCause::Archived
        | HealthCause::QueueConflict
        | HealthCause::QueueRemoval
        | HealthCause::RunApproval
        | HealthCause::PendingChecks
        | HealthCause::AbsentChecks
        | HealthCause::RequiredChecks
        | HealthCause::ChangeRequests
        | HealthCause::Approvals
        | HealthCause::OpenThreads
        | HealthCause::Signatures
        | HealthCause::Protection
        | HealthCause::Mergeability => "github",
    }
}

/// Describes a pull request that can be merged. The merge queue may have removed an earlier head.
const fn describe_ready(record: &HealthRecord) -> &'static str {
    // GitHub adds a pull request with auto-merge to the queue by itself.
    if record.memory.removal.is_some() && record.auto_merge.is_none() {
        "nothing keeps it from being merged; add it to the merge queue again"
    } else {
        "nothing keeps it from being merged"
    }
}

/// Describes a cause, with the numbers that the record has.
fn describe_record_cause(record: &HealthRecord, cause: HealthCause) -> String {
    let words = describe_cause(cause);
    match (&record.approvals, cause) {
        (Some(count), HealthCause::Approvals) => format!("{words}: {}", count.words()),
        (Some(_) | None, _) => words.to_owned(),
    }
}

const fn describe_cause(cause: HealthCause) -> &'static str {
    match cause {
        HealthCause::Archived => "the repository is archived",
        HealthCause::QueueChecks => "a check of the merge queue failed",
        HealthCause::QueueConflict => "it conflicts with an entry of the merge queue",
        HealthCause::QueueRemoval => "it was removed from the merge queue",
        HealthCause::Conflict => "it conflicts with its base branch",
        HealthCause::RunApproval => "workflow runs wait for an approval",
        HealthCause::FailedChecks => "a check failed",
        HealthCause::PendingChecks => "checks have not ended",
        HealthCause::AbsentChecks => "no check has reported",
        HealthCause::RequiredChecks => "a required check has not reported",
        HealthCause::Draft => "it is a draft",
        HealthCause::OutdatedBase => "it lacks commits of its base branch",
        HealthCause::ChangeRequests => "a reviewer requests changes",
        HealthCause::Approvals => "approvals are missing",
        HealthCause::OpenThreads => "threads of reviews are not resolved",
        HealthCause::Signatures => "commits are not signed",
        HealthCause::Protection => "a rule of the base branch is not met",
        HealthCause::Mergeability => "GitHub has not computed whether it can be merged",
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        ApprovalCount, AutoMerge, BaseTip, HealthMemory, PullRequestRef, RememberedRemoval, Timestamp,
    };

    use super::*;

    fn build_record(state: HealthState) -> HealthRecord {
        HealthRecord {
            pull_request: PullRequestRef {
                repository: "acme/shop".parse().unwrap(),
                number: 7,
                url: "https://github.com/acme/shop/pull/7".to_owned(),
                branch: "fix/ENG-1".to_owned(),
            },
            state,
            base: BaseTip {
                branch: "main".to_owned(),
                commit: "b".repeat(40).parse().unwrap(),
                ahead_by: None,
            },
            approvals: None,
            auto_merge: None,
            ignored_checks: Vec::new(),
            memory: HealthMemory::default(),
            at: Timestamp::from_unix_ms(2_000),
        }
    }

    #[test]
    fn health_view_counts_approvals_with_auto_merge() {
        let record = HealthRecord {
            approvals: Some(ApprovalCount {
                required: 2,
                given: 1,
                by_owners: true,
                lacks_last_push: false,
                requested: vec!["rita".to_owned()],
            }),
            auto_merge: Some(AutoMerge {
                by: "tom".to_owned(),
                method: "squash".to_owned(),
            }),
            ..build_record(HealthState::Blocked {
                cause: HealthCause::Approvals,
                since: Timestamp::from_unix_ms(1_000),
                who: HealthActor::Reviewer,
            })
        };
        let view = HealthView::new(&record).unwrap();
        assert_eq!(
            view.text,
            "approvals are missing: 2 approvals are required, 1 is given; code owners of the changed files have to approve; \
             review requested from rita"
        );
        assert_eq!(
            view.auto_merge.unwrap().words(),
            "GitHub merges it by squash once nothing blocks it, as tom wants"
        );
    }

    #[test]
    fn removed_pull_request_is_added_again() {
        let mut record = build_record(HealthState::Ready);
        let words = |record: &HealthRecord| HealthView::new(record).unwrap().text;
        assert_eq!(words(&record), "nothing keeps it from being merged");
        record.memory.removal = Some(RememberedRemoval {
            at: Timestamp::from_unix_ms(1_000),
            head: "a".repeat(40).parse().unwrap(),
        });
        assert!(words(&record).ends_with("add it to the merge queue again"));
        record.auto_merge = Some(AutoMerge {
            by: "tom".to_owned(),
            method: "squash".to_owned(),
        });
        assert_eq!(words(&record), "nothing keeps it from being merged");
    }

    #[test]
    fn health_view_names_cause_with_actor() {
        let since = Timestamp::from_unix_ms(1_000);
        let blocked = HealthView::new(&build_record(HealthState::Blocked {
            cause: HealthCause::RunApproval,
            since,
            who: HealthActor::Maintainer,
        }));
        let blocked = blocked.unwrap();
        assert_eq!(
            (
                blocked.state.as_str(),
                blocked.cause.as_deref(),
                blocked.who.as_deref()
            ),
            ("blocked", Some("run_approval"), Some("maintainer"))
        );
        let waiting = HealthView::new(&build_record(HealthState::Waiting {
            cause: HealthCause::Conflict,
            since,
            until: Timestamp::from_unix_ms(9_000),
        }));
        let waiting = waiting.unwrap();
        assert_eq!(waiting.who.as_deref(), Some("journeyman"));
        assert_eq!(waiting.until.as_deref(), Some("1970-01-01T00:00:09Z"));
        assert_eq!(HealthView::new(&build_record(HealthState::Merged)), None);
        let ready = HealthView::new(&build_record(HealthState::Ready)).unwrap();
        assert_eq!(
            (ready.state.as_str(), ready.since, ready.who),
            ("ready", None, None)
        );
    }

    #[test]
    fn health_view_lists_ignored_checks() {
        let record = HealthRecord {
            ignored_checks: vec!["WIP".to_owned()],
            ..build_record(HealthState::Ready)
        };
        let view = HealthView::new(&record).unwrap();
        assert_eq!(view.ignored_checks, ["WIP"]);
        let stored = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<HealthRecord>(&stored).unwrap(), record);
        let older = serde_json::to_string(&build_record(HealthState::Ready)).unwrap();
        assert!(!older.contains("ignored"), "{older}");
    }
}
