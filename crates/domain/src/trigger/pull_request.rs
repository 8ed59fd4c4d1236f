//! Pull requests, their changed files and their checks.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    evidence::failure::FailureClass,
    identity::{commit::CommitId, ids::RunId, repository::RepositoryName, ticket::TicketKey},
    journal::{
        kind::RecordKind,
        record_format::{StoredRecord, is_default},
    },
};

/// A pull request that Journeyman opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestRef {
    /// The repository that contains it.
    pub repository: RepositoryName,
    /// Its number in the repository.
    pub number: u64,
    /// URL of its page.
    pub url: String,
    /// Name of the head branch.
    pub branch: String,
}

impl PullRequestRef {
    /// Returns true when both name the same pull request. A number alone does not: each repository counts
    /// from 1, and a ticket may have pull requests in several repositories.
    pub fn is_same(&self, other: &Self) -> bool {
        self.number == other.number && self.repository == other.repository
    }
}

/// A branch of a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BranchRef {
    /// The repository that contains the branch.
    pub repository: RepositoryName,
    /// The branch, without `refs/heads/`.
    pub branch: String,
}

/// Status of a pull request that Journeyman opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullRequestStatus {
    /// The pull request is open, draft or not.
    Open,
    /// A person merged it.
    Merged,
    /// A person closed it without merging.
    Closed,
}

/// Index entry that maps a pull request of Journeyman to its ticket and status. The reporter writes it;
/// ingest reads it to know which pull requests to poll.
// The reporter owns the index, because it alone opens our pull requests. A poll therefore costs one
// conditional listing per repository and does not grow with the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestRecord {
    /// The indexed pull request.
    pub pull_request: PullRequestRef,
    /// The ticket that it belongs to.
    pub ticket: TicketKey,
    /// Head when the record was written; absent after the pull request is merged or closed.
    pub head: Option<CommitId>,
    /// Status when the record was written.
    pub status: PullRequestStatus,
}

impl StoredRecord for PullRequestRecord {
    const KIND: RecordKind = RecordKind::PullRequest;
}

/// Combined result of all checks of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChecksConclusion {
    /// Every check completed, none failed.
    Success,
    /// At least one check failed, was cancelled or timed out.
    Failure,
    /// No check reported within the waiting time.
    Absent,
}

/// All checks of one commit of a pull request, complete but for those that may wait for the end of the draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksSummary {
    /// The checked pull request.
    pub pull_request: PullRequestRef,
    /// The commit that was checked.
    pub head: CommitId,
    /// The combined result of the checks.
    pub conclusion: ChecksConclusion,
    /// Failed checks with the end of their logs; at most 20.
    pub failed: Vec<FailedCheck>,
    /// Reason why Journeyman does not repair a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrepaired: Option<RepairEnd>,
    /// Ids of GitHub Actions runs whose failed jobs run again; at most 20. Empty: no jobs run again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rerun: Vec<u64>,
    /// Logins of the people who are asked to inspect the failure; empty: no login is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<String>,
    /// URL of the CI run that decided the result; empty: unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub page: String,
    /// Changes that may have caused the failure; empty unless Journeyman repairs it.
    #[serde(default, skip_serializing_if = "SuspectChanges::is_empty")]
    pub suspects: SuspectChanges,
    /// Names of the checks that have not ended, although the others passed: they may wait for the end of the draft. At
    /// most 20; empty: all checks are complete.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<String>,
    /// Names of the checks that the rules ignore; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
}

/// Consequence of completed checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksOutcome {
    /// The checks passed: the pull request is ready for its reviewers.
    Passed,
    /// No check reported: the pull request is ready unless a check is configured.
    Missing,
    /// The failed jobs run again.
    Rerun,
    /// The pull request stays a draft.
    Failed,
}

impl ChecksSummary {
    /// Creates a summary without failures and details.
    pub const fn new(pull_request: PullRequestRef, head: CommitId, conclusion: ChecksConclusion) -> Self {
        Self {
            pull_request,
            head,
            conclusion,
            failed: Vec::new(),
            unrepaired: None,
            rerun: Vec::new(),
            asked: Vec::new(),
            page: String::new(),
            suspects: SuspectChanges {
                since: None,
                files: Vec::new(),
            },
            unfinished: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Returns the consequence: the single ranking of the conclusion, the repeated jobs and the reason not to
    /// repair.
    pub const fn outcome(&self) -> ChecksOutcome {
        match self.conclusion {
            ChecksConclusion::Success => ChecksOutcome::Passed,
            ChecksConclusion::Absent => ChecksOutcome::Missing,
            // Jobs that only need another run are repeated before anything is repaired or left to people, so
            // the reason not to repair does not count here.
            ChecksConclusion::Failure if !self.rerun.is_empty() => ChecksOutcome::Rerun,
            ChecksConclusion::Failure => ChecksOutcome::Failed,
        }
    }

    /// Returns the reason why a person has to act; absent: no person has to.
    pub fn calls(&self) -> Option<RepairEnd> {
        self.unrepaired.filter(|why| why.calls_people())
    }
}

/// The changes that may have caused failed checks, within the amount that a model can read at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspectChanges {
    /// The last commit of the pull request whose checks passed; absent: no commit passed, and the files are
    /// those of the whole pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<CommitId>,
    /// The changed files with their patches.
    pub files: Vec<PullRequestFile>,
}

impl SuspectChanges {
    /// Returns true when no change is known.
    pub const fn is_empty(&self) -> bool {
        self.since.is_none() && self.files.is_empty()
    }
}

/// Reason why failed checks are left to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum RepairEnd {
    /// The rules disable repairs.
    Off,
    /// The change caused none of the failures.
    NotOurs,
    /// The change caused none of the failures, and the checks failed again in a second run.
    FailedAgain,
    /// The repairs of one commit reached their limit.
    PerHead,
    /// The repairs of the pull request reached their limit.
    PerPullRequest,
    /// The same failure recurred after a repair of it.
    Repeated,
    /// The request of the ticket is no longer stored.
    Forgotten,
}

/// One failed check of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCheck {
    /// Its name, e.g. `test (3.11)`.
    pub name: String,
    /// URL of the check's page.
    pub url: String,
    /// The end of its output, capped at 8 KiB.
    pub log_tail: String,
    /// The class of the failure.
    #[serde(default, skip_serializing_if = "FailureClass::is_real")]
    pub class: FailureClass,
    /// The failed step, if the CI system reports it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub step: String,
    /// All commands of the step, if the log contains more than the first line; at most 4,000 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The relevant parts of its log, for the model; at most 24,000 characters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
}

impl FailedCheck {
    /// Returns the relevant parts of its log, or the end of the output that it reports.
    pub fn output(&self) -> &str {
        if self.log.is_empty() {
            &self.log_tail
        } else {
            &self.log
        }
    }
}

/// Owner of a head branch: its ticket and last push. The reporter records it before it pushes the branch.
// The record precedes the push, so that a crash between the two cannot leave a branch without an owner. It is
// unique per branch: its compare-and-set covers the records of all tickets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchRecord {
    /// The repository that contains the branch.
    pub repository: RepositoryName,
    /// Name of the head branch.
    pub branch: String,
    /// The ticket that owns the branch.
    pub ticket: TicketKey,
    /// The run that pushed it last.
    pub run: RunId,
    /// The head that was pushed last.
    pub head: CommitId,
    /// The pull request, once it is open.
    pub pull_request: Option<PullRequestRef>,
    /// Commits of the branch that the reporter created again with a signature, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signed: Vec<SignedCommit>,
}

/// Commit that the reporter created again with a signature: it has another id at the remote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedCommit {
    /// The commit of the workspace.
    pub source: CommitId,
    /// The signed commit at the remote.
    pub head: CommitId,
}

impl BranchRecord {
    /// Returns the signed commit that stands for a commit of the workspace.
    pub fn signed_head(&self, source: &CommitId) -> Option<&CommitId> {
        let mut signed = self.signed.iter().rev();
        signed
            .find(|commit| commit.source == *source)
            .map(|commit| &commit.head)
    }
}

impl StoredRecord for BranchRecord {
    const KIND: RecordKind = RecordKind::Branch;
}

/// A changed file of a pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestFile {
    /// Its path after the change.
    pub path: String,
    /// Hunks of a unified diff without a header; empty: the file is binary, only renamed, or too large.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub patch: String,
}

impl PullRequestFile {
    /// Returns the line numbers that the change adds to the new file: the only lines that accept comments.
    pub fn added_lines(&self) -> BTreeSet<u32> {
        let mut added = BTreeSet::new();
        let mut next = 0;
        for line in self.patch.lines() {
            match (line.strip_prefix("@@ "), line.chars().next()) {
                (Some(header), _) => next = first_line(header).unwrap_or(next),
                (None, Some('+')) => {
                    added.insert(next);
                    next += 1;
                }
                // `\ No newline at end of file` is not a line of either file.
                (None, Some('-' | '\\')) => {}
                (None, _) => next += 1,
            }
        }
        added
    }
}

/// Returns the first line of the new file from a hunk header: the 12 of `-10,2 +12,3 @@ fn total`.
fn first_line(header: &str) -> Option<u32> {
    let new = header.split_once('+')?.1;
    new.split([',', ' ']).next()?.parse().ok()
}

/// Pull request of ours whose head lacks commits of its base branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutdatedBase {
    /// The pull request that is behind.
    pub pull_request: PullRequestRef,
    /// Its head at that time. The update is refused for another head.
    pub head: CommitId,
    /// Name of the base branch, without `refs/heads/`.
    pub base_branch: String,
    /// Way of the update.
    #[serde(default, skip_serializing_if = "is_default")]
    pub way: UpdateWay,
}

/// Way in which a head gets the new commits of its base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UpdateWay {
    /// A merge commit on the head branch. All commits stay.
    #[default]
    Merge,
    /// New copies of the commits on top of the base, where the base accepts no merge commit.
    Rebase,
}
