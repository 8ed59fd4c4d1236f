//! How pull requests stand.

use domain::{
    ChecksFollow, ChecksSeen, Conclusion, FailureClass, PullRequestRef, PullRequestStatus, RepairEnd,
    ReviewSeen, Standing,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The newest that is known of a pull request, from what webhooks and polls told: GitHub is not asked for it. Of approvals, and of
/// whether it can be merged, nothing is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PullRequestView {
    /// Which.
    #[schema(value_type = Object)]
    pub pull_request: PullRequestRef,
    /// `open`, `merged` or `closed`; absent: not known any more.
    #[schema(value_type = Option<String>)]
    pub status: Option<PullRequestStatus>,
    /// Its newest commit that is known.
    pub head: Option<String>,
    /// The last checks that were complete; absent: none is known of.
    pub checks: Option<ChecksView>,
    /// The last review that asked for something.
    pub review: Option<ReviewView>,
    /// Logins of those whose review it waits for, as a reminder named them.
    pub awaits_review_of: Vec<String>,
    /// Since when it waits for that.
    pub awaits_review_since: Option<String>,
}

/// Checks of one commit, complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChecksView {
    /// The commit.
    pub head: String,
    /// Whether there is a newer commit, whose checks are not complete.
    pub outdated: bool,
    /// `success`, `failure`, or `absent`: none has reported, however long one waited.
    #[schema(value_type = String)]
    pub conclusion: Conclusion,
    /// Those that failed; at most 20.
    pub failed: Vec<FailedCheckView>,
    /// A page about them; may be empty.
    pub page: String,
    /// When the last of them ended.
    pub at: String,
    /// What is done about it: `nothing`, `repair`, `rerun` or `left` to people.
    pub follows: String,
    /// Why it is left to people, e.g. `off` or `per_head`.
    #[schema(value_type = Option<String>)]
    pub left: Option<RepairEnd>,
}

/// A check that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedCheckView {
    /// Its name. Text by others.
    pub name: String,
    /// Its page; may be empty.
    pub url: String,
    /// What kind of failure it is: `real`, `infra`, `inert`, `timeout`, `pre_existing`, `flaky` or `policy`.
    #[schema(value_type = String)]
    pub class: FailureClass,
}

/// A review that asked for something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReviewView {
    /// Login of the reviewer.
    pub author: String,
    /// Whether changes are asked for before a merge.
    pub asks_for_changes: bool,
    /// How many threads of remarks it has.
    pub threads: u32,
    /// When.
    pub at: String,
}

impl PullRequestView {
    /// A pull request as it stands; `status` is what the index says, for one whose triggers are gone.
    pub fn new(pull_request: PullRequestRef, standing: &Standing, status: Option<PullRequestStatus>) -> Self {
        let is_outdated = standing.is_outdated();
        let (reviewers, since) = standing.awaited.clone().unzip();
        Self {
            status: standing.status.or(status),
            head: standing.head.as_ref().map(ToString::to_string),
            checks: standing
                .checks
                .as_ref()
                .map(|checks| ChecksView::new(checks, is_outdated)),
            review: standing.review.as_ref().map(Into::into),
            awaits_review_of: reviewers.unwrap_or_default(),
            awaits_review_since: since.map(|since| since.to_string()),
            pull_request,
        }
    }
}

impl ChecksView {
    fn new(checks: &ChecksSeen, outdated: bool) -> Self {
        let (follows, left) = match checks.follows {
            ChecksFollow::Nothing => ("nothing", None),
            ChecksFollow::Repair => ("repair", None),
            ChecksFollow::Rerun => ("rerun", None),
            ChecksFollow::Left(end) => ("left", Some(end)),
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

    /// Why it is left to people, in words; empty: it is not.
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

impl From<&ReviewSeen> for ReviewView {
    fn from(review: &ReviewSeen) -> Self {
        Self {
            author: review.author.clone(),
            asks_for_changes: review.asks_for_changes,
            threads: u32::try_from(review.threads).unwrap_or(u32::MAX),
            at: review.at.to_string(),
        }
    }
}
