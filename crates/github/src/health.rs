//! Snapshots of pull requests: everything that can keep one from being merged, in a bounded set of conditional
//! requests.

use std::collections::{BTreeMap, BTreeSet};

use domain::{
    BaseCondition, BaseRequirements, BaseTip, CheckResult, CommitId, HeadChecks, ObservedCheck,
    ObservedWorkflowRun, PullRequestSnapshot, PullRequestStatus, QueueState, RepositoryName, ReviewState,
};
use serde_json::json;

use crate::{
    CheckReader, CommitCheck, CommitRun, Error, HeadState, PullRequest, PullRequestReview, PullRequestState,
    ReviewVerdict,
    branch_rules::{fetch_branch_rules, none_if_hidden},
    client::{GitHubClient, GitHubClients, percent_encode},
    permissions::AccessKind,
    pull_requests::MAX_COMMIT_PAGES,
    reviews::{MAX_REVIEW_PAGES, MAX_THREAD_PAGES},
    wire::{WireDistance, WireOpenHeads, WirePullRequest, WireQueueData, WireReview, WireVerifiedCommit},
};

const MAX_HEAD_PAGES: usize = 10;

// The entry in the merge queue, the last removal from it with the time of the head commit, and a page of the threads.
const QUEUE: &str = "query($owner: String!, $name: String!, $number: Int!, $after: String) { \
    repository(owner: $owner, name: $name) { pullRequest(number: $number) { \
    mergeQueueEntry { position enqueuedAt headCommit { oid } } \
    timelineItems(itemTypes: [REMOVED_FROM_MERGE_QUEUE_EVENT], last: 1) { nodes { __typename \
    ... on RemovedFromMergeQueueEvent { reason createdAt beforeCommit { oid } } } } \
    commits(last: 1) { nodes { commit { committedDate } } } \
    reviewThreads(first: 100, after: $after) { pageInfo { hasNextPage endCursor } nodes { isResolved } } } } }";

// Open pull requests, the newest first, with what their REST listing does not show. Suites contain the workflow runs that
// wait for an approval, which have no check run.
const OPEN_HEADS: &str = "query($owner: String!, $name: String!, $after: String) { \
    repository(owner: $owner, name: $name) { pullRequests(states: OPEN, first: 100, after: $after, \
    orderBy: {field: CREATED_AT, direction: DESC}) { pageInfo { hasNextPage endCursor } nodes { number headRefOid \
    isInMergeQueue mergeable mergeStateStatus commits(last: 1) { nodes { commit { \
    statusCheckRollup { contexts { checkRunCountsByState { state count } statusContextCountsByState { state count } } } \
    checkSuites(first: 20) { totalCount nodes { status conclusion } } } } } } } } }";

/// Parts of a snapshot that cost a request of their own and are not always needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotScope {
    /// True to read the merge queue even if no ruleset requires one.
    pub queue: bool,
    /// True to count the commits of the base that the head lacks.
    pub distance: bool,
}

/// Reader of snapshots; cheap to clone.
#[derive(Clone, Debug)]
pub struct HealthReader {
    pub(crate) clients: GitHubClients,
}

impl HealthReader {
    /// Reads a snapshot: 7 requests for a pull request with fewer than 100 checks, reviews and commits, 4 more where the
    /// base branch is protected and requires current heads, signatures or threads. An unchanged answer costs nothing of
    /// the rate limit. A part that our account cannot read counts as not required.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no pull request has that number.
    pub async fn snapshot(
        &self,
        repository: &RepositoryName,
        number: u64,
        scope: SnapshotScope,
    ) -> Result<PullRequestSnapshot, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/pulls/{number}");
        let pull: WirePullRequest = client.get_again(repository, AccessKind::Look, &path).await?;
        let pull = PullRequest::from(pull);
        let status = find_status(&pull);
        // Nothing else counts for a pull request that ended.
        if status != PullRequestStatus::Open {
            return Ok(build_snapshot(pull, status, SnapshotParts::default()));
        }
        let mut parts = SnapshotParts::default();
        let checks = CheckReader {
            clients: self.clients.clone(),
        };
        parts.checks = HeadChecks {
            checks: checks
                .checks(repository, &pull.head)
                .await?
                .iter()
                .map(ObservedCheck::from)
                .collect(),
            runs: checks
                .workflow_runs(repository, &pull.head)
                .await?
                .into_iter()
                .map(ObservedWorkflowRun::from)
                .collect(),
        };
        let (tip, rules) =
            fetch_branch_rules(client, repository, AccessKind::Look, &pull.base_branch).await?;
        (parts.tip, parts.requirements) = (tip, rules.requirements);
        parts.reviews = fetch_reviews(client, repository, &pull).await?;
        let needs = |condition| parts.requirements.includes(condition);
        if scope.distance || needs(BaseCondition::CurrentBase) {
            parts.ahead_by = fetch_distance(client, repository, &pull).await?;
        }
        if needs(BaseCondition::SignedCommits) {
            parts.is_unsigned = has_unsigned_commit(client, repository, number).await?;
        }
        if scope.queue || needs(BaseCondition::MergeQueue) || needs(BaseCondition::ResolvedThreads) {
            let (queue, open) = fetch_queue(client, repository, number).await?;
            parts.queue = queue;
            parts.reviews.open_threads = open;
        }
        Ok(build_snapshot(pull, status, parts))
    }

    /// Lists the states of the heads of these open pull requests, with a request for 100 open ones. Searches the 1,000
    /// newest. `None` where the server or our account lacks a part of the query.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn open_heads(
        &self,
        repository: &RepositoryName,
        numbers: &BTreeSet<u64>,
    ) -> Result<Option<BTreeMap<u64, HeadState>>, Error> {
        let client = self.clients.of(repository)?;
        let (mut found, mut after) = (BTreeMap::new(), None::<String>);
        for _ in 0..MAX_HEAD_PAGES {
            let variables = json!({ "after": after });
            let queried = client
                .query(repository, AccessKind::Look, OPEN_HEADS, variables)
                .await;
            let Some(data) = none_if_hidden(queried)? else {
                return Ok(None);
            };
            let data: WireOpenHeads = serde_json::from_value(data).map_err(|error| Error::Malformed {
                detail: format!("the open pull requests: {:?} error", error.classify()),
            })?;
            let (heads, next) = data.into_parts();
            found.extend(heads.into_iter().filter(|(number, _)| numbers.contains(number)));
            if next.is_none() || found.len() == numbers.len() {
                break;
            }
            after = next;
        }
        Ok(Some(found))
    }
}

/// Parts of a snapshot beside the pull request.
#[derive(Default)]
struct SnapshotParts {
    checks: HeadChecks,
    tip: Option<CommitId>,
    requirements: BaseRequirements,
    reviews: ReviewState,
    ahead_by: Option<u64>,
    is_unsigned: bool,
    queue: QueueState,
}

fn build_snapshot(pull: PullRequest, status: PullRequestStatus, parts: SnapshotParts) -> PullRequestSnapshot {
    // `base.sha` of a pull request is from the last time that GitHub compared the two; the branch is newer.
    let commit = parts.tip.or(pull.merge.base).unwrap_or_else(|| pull.head.clone());
    PullRequestSnapshot {
        status,
        is_draft: pull.draft,
        head: pull.head,
        base: BaseTip {
            branch: pull.base_branch,
            commit,
            ahead_by: parts.ahead_by,
        },
        merge: pull.merge.state,
        queue: QueueState {
            auto_merge: pull.merge.auto_merge,
            ..parts.queue
        },
        checks: parts.checks,
        reviews: parts.reviews,
        requirements: parts.requirements,
        is_unsigned: parts.is_unsigned,
        is_archived: pull.merge.is_archived,
    }
}

const fn find_status(pull: &PullRequest) -> PullRequestStatus {
    match (pull.merged, pull.state) {
        (true, _) => PullRequestStatus::Merged,
        (false, PullRequestState::Closed) => PullRequestStatus::Closed,
        (false, PullRequestState::Open) => PullRequestStatus::Open,
    }
}

impl From<&CommitCheck> for ObservedCheck {
    fn from(check: &CommitCheck) -> Self {
        Self {
            name: check.name.clone(),
            result: check.conclusion.map(|end| {
                if end.is_good() {
                    CheckResult::Good
                } else {
                    CheckResult::Bad
                }
            }),
            ended_at: check.completed_at,
        }
    }
}

impl From<CommitRun> for ObservedWorkflowRun {
    fn from(run: CommitRun) -> Self {
        Self {
            name: run.name,
            progress: run.progress,
        }
    }
}

async fn fetch_reviews(
    client: &GitHubClient,
    repository: &RepositoryName,
    pull: &PullRequest,
) -> Result<ReviewState, Error> {
    let path = format!("/pulls/{}/reviews", pull.number);
    let reviews: Vec<WireReview> = client.list_again(repository, &path, MAX_REVIEW_PAGES).await?;
    let reviews: Vec<_> = reviews
        .into_iter()
        .filter_map(|review| review.into_review(&[]))
        .collect();
    Ok(pull.summarize_reviews(&reviews))
}

impl PullRequest {
    /// Summarizes its reviews, oldest first, by the last judgment of each person. A comment does not change an earlier
    /// judgment, and authors do not judge their own work.
    pub fn summarize_reviews(&self, reviews: &[PullRequestReview]) -> ReviewState {
        let judged = reviews.iter().filter(|review| {
            review.state != ReviewVerdict::Commented && !review.author.eq_ignore_ascii_case(&self.author)
        });
        let last: BTreeMap<&str, &PullRequestReview> =
            judged.map(|review| (review.author.as_str(), review)).collect();
        let with = |verdict: ReviewVerdict| last.values().filter(move |review| review.state == verdict);
        let count = |number| u32::try_from(number).unwrap_or(u32::MAX);
        let approved = || with(ReviewVerdict::Approved);
        let of_head = approved().filter(|review| review.commit.as_ref() == Some(&self.head));
        ReviewState {
            approvals: count(approved().count()),
            approvals_of_head: count(of_head.count()),
            change_requests: with(ReviewVerdict::ChangesRequested)
                .map(|review| review.author.clone())
                .collect(),
            requested: [
                self.requested_reviewers.as_slice(),
                self.requested_teams.as_slice(),
            ]
            .concat(),
            open_threads: None,
        }
    }
}

async fn fetch_distance(
    client: &GitHubClient,
    repository: &RepositoryName,
    pull: &PullRequest,
) -> Result<Option<u64>, Error> {
    let base = percent_encode(&pull.base_branch);
    // The commits and files are not needed, so the page holds one of them.
    let path = format!("/compare/{base}...{}?per_page=1&page=1", pull.head);
    let found = client
        .get_again::<WireDistance>(repository, AccessKind::Look, &path)
        .await;
    Ok(none_if_hidden(found)?.map(|distance| distance.behind_by))
}

/// Searches the first 250 commits, because GitHub lists no others. A block by a later one has no known cause.
async fn has_unsigned_commit(
    client: &GitHubClient,
    repository: &RepositoryName,
    number: u64,
) -> Result<bool, Error> {
    let path = format!("/pulls/{number}/commits");
    let commits: Vec<WireVerifiedCommit> = client.list_again(repository, &path, MAX_COMMIT_PAGES).await?;
    Ok(commits.iter().any(WireVerifiedCommit::is_unverified))
}

/// Reads the merge queue, and counts the open threads among the first 1,000, with a request for each 100. A block by a
/// later one has no known cause. A server without merge queues refuses the query.
async fn fetch_queue(
    client: &GitHubClient,
    repository: &RepositoryName,
    number: u64,
) -> Result<(QueueState, Option<u32>), Error> {
    let (mut queue, mut open, mut after) = (QueueState::default(), None::<u32>, None::<String>);
    for _ in 0..MAX_THREAD_PAGES {
        let variables = json!({ "number": number, "after": after });
        let queried = client.query(repository, AccessKind::Look, QUEUE, variables).await;
        let Some(data) = none_if_hidden(queried)? else {
            return Ok((QueueState::default(), None));
        };
        let data: WireQueueData = serde_json::from_value(data).map_err(|error| Error::Malformed {
            detail: format!("the merge queue: {:?} error", error.classify()),
        })?;
        let (found, threads) = data.into_parts();
        queue = found;
        let Some(threads) = threads else {
            break;
        };
        open = Some(open.unwrap_or_default().saturating_add(threads.count));
        after = threads.next;
        if after.is_none() {
            break;
        }
    }
    Ok((queue, open))
}
