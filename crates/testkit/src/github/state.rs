//! State of repositories, pull requests, issues and discussions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context as _;
use tokio::time::Instant;

use super::{BranchRuleset, ReactedObject, RunConclusion, StandInComment, StandInIssue, StandInPullRequest};

#[derive(Debug, Clone)]
pub(super) struct CommentRecord {
    pub(super) id: u64,
    pub(super) number: u64,
    pub(super) author: String,
    pub(super) body: String,
    pub(super) created: String,
    pub(super) updated: String,
    pub(super) made: Instant,
}

#[derive(Debug, Clone)]
pub(super) struct CheckRunRecord {
    pub(super) id: u64,
    /// Login of the App that created it.
    pub(super) app: &'static str,
    /// Identifier that the App chose.
    pub(super) external_id: String,
    pub(super) title: String,
    /// URL of the check's page at an external CI system.
    pub(super) elsewhere: Option<String>,
    pub(super) suite: u64,
    pub(super) name: String,
    pub(super) sha: String,
    pub(super) conclusion: RunConclusion,
    pub(super) output: String,
    pub(super) completed: String,
}

#[derive(Debug, Clone)]
pub(super) struct PullReview {
    pub(super) id: u64,
    pub(super) author: String,
    pub(super) state: String,
    pub(super) body: String,
    pub(super) sha: String,
    pub(super) submitted: String,
    pub(super) lines: Vec<LineCommentRecord>,
    pub(super) made: Instant,
}

/// Review comment on a line of the head.
#[derive(Debug, Clone)]
pub(super) struct LineCommentRecord {
    pub(super) id: u64,
    pub(super) path: String,
    /// First line of a comment on several lines.
    pub(super) start: Option<u64>,
    pub(super) line: u64,
    pub(super) body: String,
    pub(super) in_reply_to: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct PullRecord {
    pub(super) id: u64,
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) author: String,
    pub(super) head: String,
    pub(super) head_sha: String,
    pub(super) base: String,
    pub(super) base_sha: String,
    pub(super) draft: bool,
    pub(super) open: bool,
    pub(super) merged_by: Option<String>,
    pub(super) merge_sha: Option<String>,
    pub(super) created: String,
    pub(super) updated: String,
    pub(super) closed: Option<String>,
    pub(super) labels: Vec<String>,
    pub(super) reviewers: Vec<String>,
    /// Ids of the first comments of resolved threads.
    pub(super) resolved: std::collections::BTreeSet<u64>,
    /// Review requests: event id, requester, reviewer and time.
    pub(super) review_requests: Vec<(u64, String, String, String)>,
    pub(super) reviews: Vec<PullReview>,
    /// Login of the person who enabled auto-merge, and the method.
    pub(super) auto_merge: Option<(String, String)>,
    pub(super) made: Instant,
}

#[derive(Debug, Clone)]
pub(super) struct DiscussionRecord {
    pub(super) id: u64,
    pub(super) number: u64,
    pub(super) category: &'static str,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) author: String,
    pub(super) closed_as: Option<String>,
    /// Id of the comment that is marked as the answer.
    pub(super) answer: Option<u64>,
    pub(super) created: String,
    pub(super) updated: String,
    pub(super) comments: Vec<DiscussionCommentRecord>,
}

/// Comment or reply in a discussion.
#[derive(Debug, Clone)]
pub(super) struct DiscussionCommentRecord {
    pub(super) id: u64,
    pub(super) author: String,
    pub(super) body: String,
    pub(super) reply_to: Option<u64>,
    pub(super) created: String,
    pub(super) updated: String,
    pub(super) made: Instant,
}

impl DiscussionRecord {
    pub(super) fn node_id(&self) -> String {
        format!("D_kwDO{:06}", self.id)
    }

    pub(super) fn is_answerable(&self) -> bool {
        super::discussions::CATEGORIES.contains(&(self.category, true))
    }
}

impl DiscussionCommentRecord {
    pub(super) fn node_id(&self) -> String {
        format!("DC_kwDO{:06}", self.id)
    }
}

/// Timeline event of an issue.
#[derive(Debug, Clone)]
pub(super) struct IssueEventRecord {
    pub(super) id: u64,
    pub(super) by: String,
    pub(super) at: String,
    pub(super) what: IssueEventKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IssueEventKind {
    Assigned(String),
    Labeled(String),
    Renamed,
}

#[derive(Debug, Clone)]
pub(super) struct IssueRecord {
    pub(super) id: u64,
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) author: String,
    /// Name of the issue type.
    pub(super) issue_type: Option<String>,
    pub(super) labels: Vec<String>,
    pub(super) assignees: Vec<String>,
    /// `completed` or `not_planned` after it is closed.
    pub(super) closed_as: Option<String>,
    pub(super) created: String,
    pub(super) updated: String,
    pub(super) closed: Option<String>,
    /// Time and login of each edit of the body, oldest first.
    pub(super) edits: Vec<(String, String)>,
    pub(super) events: Vec<IssueEventRecord>,
    /// Number of the parent issue.
    pub(super) parent: Option<u64>,
    pub(super) made: Instant,
}

#[derive(Debug, Clone)]
pub(super) struct RepositoryRecord {
    pub(super) id: u64,
    /// Full name in the form `owner/name`.
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) default_branch: String,
    pub(super) is_archived: bool,
    /// False in a repository whose plan has no draft pull requests.
    pub(super) has_drafts: bool,
    pub(super) created: String,
    /// Time of the last push.
    pub(super) pushed: String,
    pub(super) pulls: BTreeMap<u64, PullRecord>,
    /// Issues by number. Issues, pull requests and discussions share one sequence of numbers.
    pub(super) issues: BTreeMap<u64, IssueRecord>,
    /// Numbers of issues that were transferred or deleted, with the end of each.
    pub(super) removed: BTreeMap<u64, super::departures::IssueRemoval>,
    /// Discussions by number, from the same sequence.
    pub(super) discussions: BTreeMap<u64, DiscussionRecord>,
    pub(super) comments: Vec<CommentRecord>,
    /// Target, login and content of each reaction.
    pub(super) reactions: Vec<(ReactedObject, String, String)>,
    pub(super) checks: Vec<CheckRunRecord>,
    /// Reruns of Actions runs, by the id of the check suite.
    pub(super) again: BTreeMap<u64, super::actions::JobRerun>,
    pub(super) permissions: BTreeMap<String, String>,
    /// Required checks of classic protection, by branch.
    pub(super) required_checks: BTreeMap<String, Vec<String>>,
    pub(super) rulesets: Vec<BranchRuleset>,
    pub(super) merge_queue: super::merge_queue::MergeQueueRecord,
    /// Branches whose classic protection requires signatures.
    pub(super) signed_branches: std::collections::BTreeSet<String>,
    /// Public SSH keys whose signatures are verified.
    pub(super) signing_keys: Vec<String>,
    /// True if commits over REST stay unsigned.
    pub(super) has_unsigned_api_commits: bool,
    /// Locked conversations by number.
    pub(super) locks: BTreeMap<u64, super::locks::ConversationLockRecord>,
    /// Workflow runs that have not begun.
    pub(super) held_runs: Vec<super::actions::HeldRun>,
}

impl RepositoryRecord {
    pub(super) fn owner(&self) -> &str {
        self.name.split_once('/').map_or("", |(owner, _)| owner)
    }

    pub(super) fn pull_url(&self, number: u64, url: &str) -> String {
        format!("{url}/{}/pull/{number}", self.name)
    }

    pub(super) fn issue_url(&self, number: u64, url: &str) -> String {
        format!("{url}/{}/issues/{number}", self.name)
    }

    /// Number of comments in the discussion of an issue or pull request.
    pub(super) fn count_comments(&self, number: u64) -> usize {
        let comments = self.comments.iter();
        comments.filter(|comment| comment.number == number).count()
    }

    /// URL of the web page of an issue or pull request.
    pub(super) fn page_url(&self, number: u64, url: &str) -> String {
        if self.issues.contains_key(&number) {
            self.issue_url(number, url)
        } else {
            self.pull_url(number, url)
        }
    }

    /// True if an issue or pull request has this number.
    pub(super) fn has_thread(&self, number: u64) -> bool {
        self.issues.contains_key(&number) || self.pulls.contains_key(&number)
    }

    pub(super) fn next_number(&self) -> u64 {
        let last = |keys: Option<&u64>| keys.copied().unwrap_or_default();
        let discussed = last(self.discussions.keys().next_back());
        last(self.pulls.keys().next_back())
            .max(last(self.issues.keys().next_back()))
            .max(last(self.removed.keys().next_back()))
            .max(discussed)
            + 1
    }

    pub(super) fn discussion(&mut self, number: u64) -> anyhow::Result<&mut DiscussionRecord> {
        let name = &self.name;
        let found = self.discussions.get_mut(&number);
        found.with_context(|| format!("there is no discussion {number} in {name}"))
    }
}

impl PullRecord {
    pub(super) fn merged_at(&self) -> Option<&String> {
        self.merged_by.as_ref().and(self.closed.as_ref())
    }

    pub(super) fn node_id(&self) -> String {
        format!("PR_kwDO{:06}", self.id)
    }

    pub(super) fn state(&self, repo: &RepositoryRecord, url: &str) -> StandInPullRequest {
        StandInPullRequest {
            number: self.number,
            title: self.title.clone(),
            body: self.body.clone(),
            author: self.author.clone(),
            head: self.head.clone(),
            head_sha: self.head_sha.clone(),
            base: self.base.clone(),
            draft: self.draft,
            open: self.open,
            merged: self.merged_by.is_some(),
            url: repo.pull_url(self.number, url),
            labels: self.labels.clone(),
            requested_reviewers: self.reviewers.clone(),
        }
    }
}

impl IssueRecord {
    pub(super) const fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    pub(super) fn node_id(&self) -> String {
        format!("I_kwDO{:06}", self.id)
    }

    pub(super) fn state(&self) -> StandInIssue {
        StandInIssue {
            number: self.number,
            title: self.title.clone(),
            body: self.body.clone(),
            labels: self.labels.clone(),
            assignees: self.assignees.clone(),
            issue_type: self.issue_type.clone(),
            open: self.is_open(),
            closed_as: self.closed_as.clone(),
        }
    }
}

impl CommentRecord {
    pub(super) fn state(&self) -> StandInComment {
        StandInComment {
            id: self.id,
            author: self.author.clone(),
            body: self.body.clone(),
        }
    }
}

impl RunConclusion {
    /// True if a required check with this conclusion permits a merge.
    pub(super) fn passes(self) -> bool {
        matches!(self, Self::Success | Self::Neutral)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Neutral => "neutral",
            Self::Cancelled => "cancelled",
        }
    }
}
