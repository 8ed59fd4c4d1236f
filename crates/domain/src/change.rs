//! Pull requests and their checks.

use serde::{Deserialize, Serialize};

use crate::{ChangedFile, CommitId, FailureClass, RecordKind, RepositoryName, RunId, Stored, TicketKey};

/// A pull request that Journeyman opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestRef {
    /// Where it is.
    pub repository: RepositoryName,
    /// Its number.
    pub number: u64,
    /// Link for people.
    pub url: String,
    /// Head branch.
    pub branch: String,
}

/// A branch of a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BranchRef {
    /// The repository.
    pub repository: RepositoryName,
    /// The branch, without `refs/heads/`.
    pub branch: String,
}

/// Where a pull request of ours stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullRequestStatus {
    /// Open, draft or not.
    Open,
    /// A person merged it.
    Merged,
    /// A person closed it without merging.
    Closed,
}

/// A pull request of ours in the index: which ticket it belongs to, and whether it has to be looked after. The reporter
/// writes it, ingest reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestRecord {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The ticket.
    pub ticket: TicketKey,
    /// Its head when the record was written; absent once it is over.
    pub head: Option<CommitId>,
    /// Where it stands.
    pub status: PullRequestStatus,
}

impl Stored for PullRequestRecord {
    const KIND: RecordKind = RecordKind::PullRequest;
}

/// How the checks of a commit ended, taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// Every check completed, none failed.
    Success,
    /// At least one check failed, was cancelled or timed out.
    Failure,
    /// No check has reported, however long one waited.
    Absent,
}

/// All checks of one commit of a pull request, complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksSummary {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// The commit that was checked.
    pub head: CommitId,
    /// The result.
    pub conclusion: Conclusion,
    /// Those that failed, with the end of their logs; at most 20.
    pub failed: Vec<FailedCheck>,
    /// Why nothing is done about it, when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrepaired: Option<RepairEnd>,
    /// Runs of GitHub Actions whose failed jobs run again; at most 20. Empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rerun: Vec<u64>,
    /// Logins of those who are asked to look, where a person has to; empty: nobody is known by a login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// The page of the CI run that decided, for people; empty: there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub page: String,
    /// Where a failure may come from; empty where nothing is repaired.
    #[serde(default, skip_serializing_if = "Suspects::is_empty")]
    pub suspects: Suspects,
}

/// The changes that a failure of checks may come from, as far as a model can read them at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspects {
    /// The last commit of the pull request whose checks passed; absent: there is none, and the files are the pull request's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<CommitId>,
    /// What was changed.
    pub files: Vec<ChangedFile>,
}

impl Suspects {
    /// Whether nothing is known.
    pub const fn is_empty(&self) -> bool {
        self.since.is_none() && self.files.is_empty()
    }
}

/// Why failed checks are left to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairEnd {
    /// The rules do not want it.
    Off,
    /// None of them is about the change.
    NotOurs,
    /// None of them is about the change, and they failed again after they ran once more.
    FailedAgain,
    /// The same commit was tried as often as is allowed.
    PerHead,
    /// The pull request was repaired as often as is allowed.
    PerPullRequest,
    /// The same failure came again after a repair of it.
    Repeated,
    /// What the ticket asked for is not known any more.
    Forgotten,
}

/// One failed check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCheck {
    /// Its name, e.g. `test (3.11)`.
    pub name: String,
    /// Link for people.
    pub url: String,
    /// The end of its output, capped at 8 KiB.
    pub log_tail: String,
    /// What kind of failure it is.
    #[serde(default, skip_serializing_if = "FailureClass::is_real")]
    pub class: FailureClass,
    /// The step that failed, where the system tells.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// Everything that the step runs, where the log tells more than its first line; at most 4,000 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// What matters of its log, for the model; at most 24,000 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
}

impl FailedCheck {
    /// What is known of its output: what matters of its log, else the end of what it reports.
    pub fn output(&self) -> &str {
        if self.log.is_empty() {
            &self.log_tail
        } else {
            &self.log
        }
    }
}

/// Which ticket a head branch belongs to; recorded before the branch is pushed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchRecord {
    /// The repository.
    pub repository: RepositoryName,
    /// The head branch.
    pub branch: String,
    /// The ticket.
    pub ticket: TicketKey,
    /// The run that pushed it last.
    pub run: RunId,
    /// The head that was pushed last.
    pub head: CommitId,
    /// The pull request, once it is open.
    pub pull_request: Option<PullRequestRef>,
}

impl Stored for BranchRecord {
    const KIND: RecordKind = RecordKind::Branch;
}
