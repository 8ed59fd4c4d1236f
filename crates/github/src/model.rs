//! Types of this crate's answers: repositories, checks, workflow runs, pull requests, comments and reviews.

use std::fmt;

use domain::{
    AutoMerge, ChecksConclusion, CommitId, MergeState, MetadataPattern, PullRequestRef, RepositoryName,
    TicketKey, Timestamp, WorkflowRunProgress,
};
use secrecy::SecretString;

/// Lock of a conversation, which keeps out accounts without write access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationLock {
    /// Reason in words, e.g. `too heated`; empty when the lock has none.
    pub reason: String,
}

/// Pattern of a ruleset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchPattern {
    /// The pattern.
    pub pattern: MetadataPattern,
    /// Id of its ruleset; absent on older servers.
    pub ruleset: Option<u64>,
}

/// Repository as GitHub describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitHubRepository {
    /// Owner, name and instance of the repository.
    pub name: RepositoryName,
    /// The branch that clones check out.
    pub default_branch: String,
    /// True when the repository is not public.
    pub private: bool,
    /// True when the repository is archived, thus read-only.
    pub archived: bool,
    /// Link to its page.
    pub url: String,
    /// Size of its git data on the server, in KiB; GitHub updates it with a delay.
    pub size_kib: u64,
}

/// Source of a check; ids are unique within one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckKind {
    /// A check run of a GitHub App, Actions included.
    Run,
    /// A commit status (the older API).
    Status,
}

/// Progress of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckStatus {
    /// Waiting for a runner or a start.
    Queued,
    /// Running at the moment.
    InProgress,
    /// Finished; it has a conclusion.
    Completed,
}

/// Conclusion of a check, as in GitHub's documentation of check runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CheckConclusion {
    /// The check passed.
    Success,
    /// The check failed.
    Failure,
    /// Neither passed nor failed; does not block a merge.
    Neutral,
    /// Canceled by a user or program.
    Cancelled,
    /// Skipped without a run.
    Skipped,
    /// Stopped at its time limit.
    TimedOut,
    /// A user has to act first.
    ActionRequired,
    /// GitHub ended it, because it did not finish within 14 days.
    Stale,
    /// The workflow could not start.
    StartupFailure,
}

impl CheckConclusion {
    /// GitHub's name of the conclusion, e.g. `timed_out`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// True when the conclusion does not block a merge.
    pub const fn is_good(self) -> bool {
        match self {
            Self::Success | Self::Neutral | Self::Skipped => true,
            Self::Failure
            | Self::Cancelled
            | Self::TimedOut
            | Self::ActionRequired
            | Self::Stale
            | Self::StartupFailure => false,
        }
    }
}

/// One check of a commit in its present state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitCheck {
    /// Source of the check.
    pub kind: CheckKind,
    /// Id within its kind; a repeated check has a new one.
    pub id: u64,
    /// Name of the check, e.g. `test (3.11)`.
    pub name: String,
    /// Id of its check suite; 0 for commit statuses.
    pub suite: u64,
    /// Progress of the check.
    pub status: CheckStatus,
    /// Conclusion; present exactly when the check is completed.
    pub conclusion: Option<CheckConclusion>,
    /// Time of its completion.
    pub completed_at: Option<Timestamp>,
    /// Link to its page.
    pub url: String,
    /// End of the check's own output text, at most 8 KiB.
    pub output_tail: String,
}

impl CommitCheck {
    /// Id of the GitHub Actions job behind the check. Its URL ends in `/actions/runs/1/job/2`.
    pub fn actions_job(&self) -> Option<u64> {
        let (_, job) = self.url.split_once("/actions/runs/")?.1.split_once("/job/")?;
        job.split(['/', '?', '#']).next()?.parse().ok()
    }
}

/// Conclusion of all checks together; `None` for an empty list or while one is incomplete.
pub fn conclude_checks(checks: &[CommitCheck]) -> Option<ChecksConclusion> {
    let ends: Option<Vec<CheckConclusion>> = checks.iter().map(|check| check.conclusion).collect();
    let ends = ends.filter(|ends| !ends.is_empty())?;
    let good = ends.into_iter().all(CheckConclusion::is_good);
    Some(if good {
        ChecksConclusion::Success
    } else {
        ChecksConclusion::Failure
    })
}

/// State of a pull request; a merged one is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullRequestState {
    /// Open, draft or not.
    Open,
    /// Merged, or closed without a merge.
    Closed,
}

/// Pull request as GitHub's REST API describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    /// Number in its repository.
    pub number: u64,
    /// GraphQL id, for mutations that REST lacks.
    pub node_id: String,
    /// Title in one line.
    pub title: String,
    /// Description in Markdown; may be empty.
    pub body: String,
    /// Name of the head branch.
    pub branch: String,
    /// Commit at the head.
    pub head: CommitId,
    /// Repository of the head branch, `owner/name`; empty when it was deleted.
    pub head_repository: String,
    /// Branch that it would be merged into.
    pub base_branch: String,
    /// Login of its author.
    pub author: String,
    /// Link to its page.
    pub url: String,
    /// True while it is a draft, or while its description has the note that replaces the draft state in a
    /// repository without drafts.
    pub draft: bool,
    /// True when it was merged.
    pub merged: bool,
    /// Login of the account that merged it; GitHub's lists omit it.
    pub merged_by: Option<String>,
    /// Open or closed state.
    pub state: PullRequestState,
    /// Time of the last change of any kind.
    pub updated_at: Option<Timestamp>,
    /// Time of the close or merge.
    pub closed_at: Option<Timestamp>,
    /// Logins whose review is requested and pending.
    pub requested_reviewers: Vec<String>,
    /// Teams whose review is requested and pending, such as `acme/shop-owners`.
    pub requested_teams: Vec<String>,
    /// Names of its labels.
    pub labels: Vec<String>,
    /// Lock of its conversation; absent while it is not locked.
    pub lock: Option<ConversationLock>,
    /// Properties that decide whether it can be merged; defaults in GitHub's lists.
    pub merge: PullRequestMerge,
}

/// Properties of a pull request that decide whether it can be merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequestMerge {
    /// Combination of the head with the base.
    pub state: MergeState,
    /// Commit of the base when GitHub last compared the two.
    pub base: Option<CommitId>,
    /// Merge that GitHub makes by itself once its conditions are met; absent: auto-merge is off.
    pub auto_merge: Option<AutoMerge>,
    /// True when the repository is archived.
    pub is_archived: bool,
}

impl PullRequest {
    /// Returns the short form that records and reports carry.
    pub fn to_ref(&self, repository: &RepositoryName) -> PullRequestRef {
        PullRequestRef {
            repository: repository.clone(),
            number: self.number,
            url: self.url.clone(),
            branch: self.branch.clone(),
        }
    }

    /// True when the title, head branch or description names the ticket; `repository` is the pull request's.
    pub fn mentions(&self, repository: &RepositoryName, ticket: &TicketKey) -> bool {
        let mut keys = vec![ticket.short()];
        if let TicketKey::GitHub {
            repository: home,
            number,
        } = ticket
            && home == repository
        {
            keys.push(format!("#{number}"));
        }
        let texts = [&self.title, &self.branch, &self.body];
        keys.iter()
            .any(|key| texts.into_iter().any(|text| is_key_mentioned(text, key)))
    }
}

/// True when `text` contains `key` as a whole word with the same case: `ENG-12` and `XENG-1` do not contain
/// `ENG-1`.
pub fn is_key_mentioned(text: &str, key: &str) -> bool {
    !key.is_empty()
        && text.match_indices(key).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + key.len()..].chars().next();
            // An underscore may follow, as in the branch `ENG-1_login`, but not precede: `X_ENG-1` is another
            // key.
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
                && !after.is_some_and(char::is_alphanumeric)
        })
}

/// GitHub's tag for one version of an answer. A conditional request with it costs nothing while the answer is
/// unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ETag(pub(crate) String);

/// Result of a poll for changed pull requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullRequestPoll {
    /// No change since the `ETag` of the poll; the request cost nothing of the rate limit.
    Unchanged,
    /// Pull requests that changed.
    Changed {
        /// Open and closed ones, latest change first.
        pull_requests: Vec<PullRequest>,
        /// `ETag` for the next poll.
        etag: Option<ETag>,
        /// False when more pull requests changed than one poll reads.
        is_complete: bool,
    },
}

/// Permission of an account in a repository, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepositoryPermission {
    /// No more than the public has.
    None,
    /// Reading the repository.
    Read,
    /// Pushing to the repository.
    Write,
    /// All rights, settings included.
    Admin,
}

/// Id of a comment on an issue or pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GitHubCommentId(pub u64);

impl fmt::Display for GitHubCommentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Comment on an issue or pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitHubComment {
    /// Id of the comment.
    pub id: GitHubCommentId,
    /// Login of its author.
    pub author: String,
    /// Id of the author's account, which survives a rename; absent when the account was deleted.
    pub author_id: Option<u64>,
    /// Text in Markdown.
    pub body: String,
    /// Time of its creation.
    pub created_at: Option<Timestamp>,
    /// Time of the last edit; equals `created_at` without an edit.
    pub updated_at: Option<Timestamp>,
    /// True when our own App or account wrote it.
    pub by_us: bool,
    /// True when the author is a bot.
    pub by_bot: bool,
}

/// Text of an author about a pull request: in a review, at a line, or in the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestRemark {
    /// Login of its author.
    pub author: String,
    /// True when the author is a bot.
    pub by_bot: bool,
    /// Location as `path:line` or `path`; empty for the whole pull request.
    pub place: String,
    /// Text in Markdown.
    pub text: String,
    /// Time of the remark.
    pub at: Option<Timestamp>,
}

/// Judgment of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVerdict {
    /// The reviewer approves the merge.
    Approved,
    /// The reviewer demands changes before a merge.
    ChangesRequested,
    /// The reviewer comments without a judgment.
    Commented,
    /// The review was dismissed later.
    Dismissed,
}

/// Submitted review with its comments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequestReview {
    /// Id of the review.
    pub id: u64,
    /// Login of its author.
    pub author: String,
    /// Id of the author's account, which survives a rename; absent when the account was deleted.
    pub author_id: Option<u64>,
    /// True when the author is a bot.
    pub by_bot: bool,
    /// Judgment of the review.
    pub state: ReviewVerdict,
    /// Text in Markdown; may be empty.
    pub body: String,
    /// Time of its submission.
    pub at: Option<Timestamp>,
    /// Comments of the review on lines.
    pub comments: Vec<ReviewLineComment>,
    /// Head commit at the submission; absent when the commit is gone.
    pub commit: Option<CommitId>,
}

/// Comment of a review on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewLineComment {
    /// Id of the comment.
    pub id: u64,
    /// Login of its author.
    pub author: String,
    /// Id of the author's account; absent when the account was deleted.
    pub author_id: Option<u64>,
    /// True when the author is a bot.
    pub by_bot: bool,
    /// Path of the file.
    pub path: String,
    /// Line in the new file; absent when the line was removed since.
    pub line: Option<u64>,
    /// Text in Markdown.
    pub body: String,
    /// Id of the comment that it replies to.
    pub in_reply_to: Option<u64>,
    /// Hunk of the diff up to the commented line.
    pub hunk: String,
}

/// One attempt of GitHub to deliver a webhook to our App.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookDelivery {
    /// Id of the attempt.
    pub id: u64,
    /// Id of the delivery (`X-GitHub-Delivery`); attempts of one delivery share it.
    pub guid: String,
    /// Time of the attempt.
    pub delivered_at: Timestamp,
    /// Name of the event: `pull_request`, `check_run` …
    pub event: String,
    /// Action of the event: `opened`, `completed` …
    pub action: Option<String>,
    /// HTTP status of our answer; 0 when GitHub received none.
    pub status_code: u16,
    /// True when it repeats an earlier attempt.
    pub redelivery: bool,
}

/// Git URL of a repository with the token for it.
#[derive(Clone, Debug)]
pub struct GitRemote {
    /// HTTPS URL without credentials.
    pub url: String,
    /// Password of the user `x-access-token`, restricted to this repository and purpose, valid for at least
    /// five minutes.
    pub token: SecretString,
}

/// Id of the GitHub Actions run in the URL of a check; `None` for checks of other systems.
pub fn parse_run_id(url: &str) -> Option<u64> {
    let (run, _) = url.split_once("/actions/runs/")?.1.split_once("/job/")?;
    run.parse().ok()
}

/// Workflow run of GitHub Actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowRun {
    /// Commit that the run checks.
    pub head: CommitId,
    /// Number of the attempt, from 1. Each rerun of jobs increments it.
    pub attempt: u32,
    /// True when all its jobs have ended.
    pub is_complete: bool,
}

/// GitHub Actions run for a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRun {
    /// Name of its workflow.
    pub name: String,
    /// Link to its page.
    pub url: String,
    /// Progress of the run.
    pub progress: WorkflowRunProgress,
}

// Name of our check run. Decisions about a pull request ignore this check run.
pub(crate) const CHECK_NAME: &str = "Journeyman";

// Prefix of its `external_id`: another App may give its check run the same name.
pub(crate) const OURS: &str = "journeyman:";

/// True for a check run of the repository's CI: not the one that Journeyman creates, and not a job of its GitHub Action.
pub fn is_ci_check_run(name: &str, external_id: Option<&str>) -> bool {
    !is_our_check_run(name, external_id) && !is_action_job(name)
}

/// True for the check run that Journeyman creates.
pub(crate) fn is_our_check_run(name: &str, external_id: Option<&str>) -> bool {
    name == CHECK_NAME && external_id.is_some_and(|id| id.starts_with(OURS))
}

/// True when a check is a job of the workflows in `packaging/action`, by its name. Such a job shows that Journeyman ran,
/// not that a change is right.
pub fn is_action_job(name: &str) -> bool {
    ["Journeyman action", "Journeyman reviews"].contains(&name)
}

/// True when a workflow is one of those in `packaging/action`, by its name.
pub fn is_action_workflow(name: &str) -> bool {
    ["Journeyman", "Journeyman reviews"].contains(&name)
}

/// GitHub's judgment about the signature of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitVerification {
    /// True when GitHub shows the commit as verified.
    pub verified: bool,
    /// Code of the judgment, e.g. `valid`, `unsigned` or `unknown_key`.
    pub reason: String,
}

/// Origin of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitOrigin {
    /// Ids of its parents, in order.
    pub parents: Vec<CommitId>,
    /// True for a commit that GitHub made, such as the merge of an updated branch.
    pub is_made_by_server: bool,
}

/// Commit that GitHub created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedCommit {
    /// Id of the commit.
    pub id: CommitId,
    /// Judgment about its signature.
    pub verification: CommitVerification,
}
