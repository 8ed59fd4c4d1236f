//! Pull requests: answers about their status, and requests to open one.

use domain::{
    ChecksConclusion, ChecksReaction, FailureClass, HealthRecord, ObservedChecks, ObservedPullRequest,
    ObservedReview, PullRequestRef, PullRequestStatus, RepairEnd,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::health::{ConversationLockView, HealthView};

/// Latest known status of a pull request from webhooks and polls, without a request to GitHub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PullRequestView {
    /// Reference to the pull request.
    #[schema(value_type = Object)]
    pub pull_request: PullRequestRef,
    /// Status: `open`, `merged` or `closed`; absent: no longer known.
    #[schema(value_type = Option<String>)]
    pub status: Option<PullRequestStatus>,
    /// Its newest known commit.
    pub head: Option<String>,
    /// The last complete checks; absent: none are known.
    pub checks: Option<ChecksView>,
    /// The last review that requested changes or asked questions.
    pub review: Option<ReviewView>,
    /// Logins of the requested reviewers, from the last reminder.
    pub awaits_review_of: Vec<String>,
    /// Start of the wait for the review.
    pub awaits_review_since: Option<String>,
    /// State of an open pull request on its way to a merge; absent: not assessed yet.
    #[serde(default)]
    pub health: Option<HealthView>,
    /// Lock of its conversation; absent while it is not locked.
    #[serde(default)]
    pub conversation_lock: Option<ConversationLockView>,
}

/// Complete checks of one commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChecksView {
    /// The commit that was checked.
    pub head: String,
    /// True when there is a newer commit, whose checks are not complete.
    pub outdated: bool,
    /// Combined result: `success`, `failure`, or `absent` when no check reported within the waiting time.
    #[schema(value_type = String)]
    pub conclusion: ChecksConclusion,
    /// The failed checks; at most 20.
    pub failed: Vec<FailedCheckView>,
    /// URL of a page about the checks; may be empty.
    pub page: String,
    /// Time at which the last check ended.
    pub at: String,
    /// Reaction to the result: `nothing`, `repair`, `rerun` or `left` to people.
    pub follows: String,
    /// Reason why the failure is left to people, e.g. `off` or `per_head`.
    #[schema(value_type = Option<String>)]
    pub left: Option<RepairEnd>,
}

/// A check that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedCheckView {
    /// Name of the check. Text by others.
    pub name: String,
    /// URL of its page; may be empty.
    pub url: String,
    /// Class of the failure: `real`, `infra`, `inert`, `timeout`, `pre_existing`, `flaky` or `policy`.
    #[schema(value_type = String)]
    pub class: FailureClass,
}

/// A review that requested changes or asked questions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReviewView {
    /// Login of the reviewer.
    pub author: String,
    /// True when the reviewer requests changes before a merge.
    pub asks_for_changes: bool,
    /// Number of threads in the review.
    pub threads: u32,
    /// Time of the review.
    pub at: String,
}

impl PullRequestView {
    /// Creates the view. `status` is that of the index, for a pull request whose triggers have expired; `health` is the
    /// last assessment. The view has no lock of the conversation.
    pub fn new(
        pull_request: PullRequestRef,
        standing: &ObservedPullRequest,
        status: Option<PullRequestStatus>,
        health: Option<&HealthRecord>,
    ) -> Self {
        let is_outdated = standing.is_outdated();
        let (reviewers, since) = standing.awaited.clone().unzip();
        Self {
            // Triggers expire after 30 days; the index keeps the status.
            status: standing.status.or(status),
            head: standing.head.as_ref().map(ToString::to_string),
            checks: standing
                .checks
                .as_ref()
                .map(|checks| ChecksView::new(checks, is_outdated)),
            review: standing.review.as_ref().map(Into::into),
            awaits_review_of: reviewers.unwrap_or_default(),
            awaits_review_since: since.map(|since| since.to_string()),
            health: health.and_then(HealthView::new),
            conversation_lock: None,
            pull_request,
        }
    }
}

impl ChecksView {
    fn new(checks: &ObservedChecks, outdated: bool) -> Self {
        let (follows, left) = match checks.follows {
            ChecksReaction::Nothing => ("nothing", None),
            ChecksReaction::Repair => ("repair", None),
            ChecksReaction::Rerun => ("rerun", None),
            ChecksReaction::Left(end) => ("left", Some(end)),
        };
        let failed = checks.failed.iter().map(|check| FailedCheckView {
            name: check.name.clone(),
            url: check.url.clone(),
            class: check.class,
        });
        Self {
            head: checks.head.to_string(),
            outdated,
            conclusion: checks.conclusion,
            failed: failed.collect(),
            page: checks.page.clone(),
            at: checks.at.to_string(),
            follows: follows.to_owned(),
            left,
        }
    }

    /// Describes why the failure is left to people; empty: it is not.
    pub const fn left_because(&self) -> &'static str {
        match self.left {
            None => "",
            Some(RepairEnd::Off) => "the rules want no repair",
            Some(RepairEnd::NotOurs) => "none of the failures is about the change",
            Some(RepairEnd::FailedAgain) => {
                "they failed again after they ran once more, and none is about the change"
            }
            Some(RepairEnd::PerHead) => "this commit was repaired as often as is allowed",
            Some(RepairEnd::PerPullRequest) => "the pull request was repaired as often as is allowed",
            Some(RepairEnd::Repeated) => "the same failure came again after a repair",
            Some(RepairEnd::Forgotten) => "what the ticket asked for is not known any more",
        }
    }
}

impl From<&ObservedReview> for ReviewView {
    fn from(review: &ObservedReview) -> Self {
        Self {
            author: review.author.clone(),
            asks_for_changes: review.asks_for_changes,
            threads: u32::try_from(review.threads).unwrap_or(u32::MAX),
            at: review.at.to_string(),
        }
    }
}

/// A pull request to open for a branch that exists on GitHub;
/// `docs/schemas/pull-request-api-input.schema.json`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PullRequestBody {
    /// The repository, e.g. `acme/shop`, or `ghe:acme/shop` on an instance.
    pub repository: String,
    /// The branch with the change.
    pub branch: String,
    /// The target branch; `main` by default.
    pub base_branch: Option<String>,
    /// The title; at least 5 characters.
    pub title: String,
    /// The description as Markdown; at least 10 characters.
    pub description: String,
    /// The Jira issue to link and to move to code review.
    pub jira_key: Option<String>,
    /// True to mark it ready for review at once; false by default.
    pub mark_ready: Option<bool>,
    /// True to open it as a draft; true by default.
    pub draft: Option<bool>,
    /// The transition to code review, if several match: its name or that of its target status.
    pub transition: Option<String>,
}

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// No reporter has started the request.
    Waiting,
    /// A reporter carries out the request.
    Running,
    /// The request has its answer.
    Answered,
}

/// A request with its answer.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PullRequestCallView {
    /// Id of the request.
    pub id: String,
    /// State of the request.
    pub state: CallState,
    /// The output of `journeyman pr` in the format of `docs/schemas/pull-request-output.schema.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub answer: Option<serde_json::Value>,
}
