//! Merge queue and mergeability of pull requests.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::hub::GitHubState;
use super::review_comments::ThreadPage;
use super::rulesets::{BranchRuleset, RulesetCondition};
use super::shape::{extend_object, simple_commit};
use super::state::{PullRecord, RepositoryRecord};
use super::{FakeGitHub, history, repository};
use crate::http::iso_now;

/// Account that removes entries from the queue.
const QUEUE_LOGIN: &str = "github-merge-queue[bot]";
/// Reasons of a removal in GitHub's webhooks.
const REMOVAL_REASONS: [&str; 12] = [
    "UNKNOWN_REMOVAL_REASON",
    "MANUAL",
    "MERGE",
    "MERGE_CONFLICT",
    "CI_FAILURE",
    "CI_TIMEOUT",
    "ALREADY_MERGED",
    "QUEUE_CLEARED",
    "ROLL_BACK",
    "BRANCH_PROTECTIONS",
    "GIT_TREE_INVALID",
    "INVALID_MERGE_COMMIT",
];

/// Merge queue of a repository.
#[derive(Debug, Clone, Default)]
pub(super) struct MergeQueueRecord {
    /// Entries by the number of the pull request.
    pub(super) entries: BTreeMap<u64, QueuedPull>,
    /// Last removal of each pull request.
    removals: BTreeMap<u64, RemovedPull>,
    /// Pull requests whose mergeability is not computed.
    uncomputed: BTreeSet<u64>,
}

/// Entry of the merge queue.
#[derive(Debug, Clone)]
pub(super) struct QueuedPull {
    /// Branch with the commit that the queue tests.
    branch: String,
    commit: String,
    /// Tip of the base branch below the commit.
    base: String,
    since: String,
    /// User who added the pull request.
    by: String,
}

/// Removal from the merge queue.
#[derive(Debug, Clone)]
struct RemovedPull {
    reason: String,
    at: String,
    commit: String,
}

impl RepositoryRecord {
    /// Branch of a commit that the merge queue tests.
    pub(super) fn queue_branch_of(&self, sha: &str) -> Option<&str> {
        let mut entries = self.merge_queue.entries.values();
        let entry = entries.find(|entry| entry.commit == sha);
        entry.map(|entry| entry.branch.as_str())
    }

    /// GitHub's `mergeable` and `mergeable_state` of a pull request.
    pub(super) fn mergeability(&self, pull: &PullRecord) -> (Option<bool>, &'static str) {
        if !pull.open || self.merge_queue.uncomputed.contains(&pull.number) {
            return (None, "unknown");
        }
        let Some(base) = repository::list_branches(&self.path).remove(&pull.base) else {
            return (None, "unknown");
        };
        if !repository::can_merge(&self.path, &base, &pull.head_sha).unwrap_or(true) {
            return (Some(false), "dirty");
        }
        let state = if pull.draft {
            "draft"
        } else if self.is_behind(pull, &base) && self.requires(pull, RulesetCondition::CurrentBase) {
            "behind"
        } else if self.check_merge(pull).is_err() || self.lacks_review(pull) {
            "blocked"
        } else if self.has_failed_check(&pull.head_sha) {
            "unstable"
        } else {
            "clean"
        };
        (Some(true), state)
    }

    fn is_behind(&self, pull: &PullRecord, base: &str) -> bool {
        repository::count_commits_ahead(&self.path, &pull.head_sha, base).is_ok_and(|commits| commits > 0)
    }

    fn requires(&self, pull: &PullRecord, condition: RulesetCondition) -> bool {
        self.rulesets_of(&pull.base)
            .any(|ruleset| ruleset.includes(condition))
    }

    /// True if approvals are missing, changes are requested, or a thread is open that has to be resolved.
    pub(super) fn lacks_review(&self, pull: &PullRecord) -> bool {
        let mut last: BTreeMap<&str, &str> = BTreeMap::new();
        for review in pull.reviews.iter().filter(|review| review.state != "commented") {
            last.insert(&review.author, &review.state);
        }
        let count = |state: &str| last.values().filter(|known| **known == state).count() as u64;
        let needed = self
            .rulesets_of(&pull.base)
            .map(|ruleset| ruleset.required_approvals);
        let needed = needed.max().unwrap_or_default();
        let mut threads = pull.reviews.iter().flat_map(|review| &review.lines);
        let has_open_thread =
            threads.any(|line| line.in_reply_to.is_none() && !pull.resolved.contains(&line.id));
        count("approved") < needed
            || (needed > 0 && count("changes_requested") > 0)
            || (has_open_thread && self.requires(pull, RulesetCondition::ResolvedThreads))
    }

    fn has_failed_check(&self, sha: &str) -> bool {
        let mut checks = self.checks.iter();
        checks.any(|check| check.sha == sha && !check.conclusion.passes())
    }

    /// True for the head branch of a pull request in the queue.
    pub(super) fn is_queued(&self, branch: &str) -> bool {
        let mut numbers = self.merge_queue.entries.keys();
        numbers.any(|number| self.pulls.get(number).is_some_and(|pull| pull.head == branch))
    }

    /// Adds a pull request to the queue, with a branch that merges it into the tip of its base.
    fn add_to_queue(&mut self, pull: &PullRecord, since: String, by: &str) -> anyhow::Result<QueuedPull> {
        let number = pull.number;
        let base = repository::list_branches(&self.path)
            .remove(&pull.base)
            .with_context(|| format!("there is no branch {}", pull.base))?;
        ensure!(
            repository::can_merge(&self.path, &base, &pull.head_sha)?,
            "merge conflict"
        );
        let branch = format!("gh-readonly-queue/{}/pr-{number}-{base}", pull.base);
        repository::set_branch(&self.path, &branch, &base)?;
        let message = format!("Merge pull request #{number} from {}", pull.head);
        let commit = repository::merge_branches(&self.path, &branch, &pull.head_sha, &message, by)?;
        let entry = QueuedPull {
            branch,
            commit,
            base,
            since,
            by: by.to_owned(),
        };
        self.merge_queue.entries.insert(number, entry.clone());
        self.write_update_hook()?;
        Ok(entry)
    }

    /// Removes the entry of a pull request, with its branch. `None` if it is not queued.
    fn take_from_queue(&mut self, number: u64) -> anyhow::Result<Option<QueuedPull>> {
        let Some(entry) = self.merge_queue.entries.remove(&number) else {
            return Ok(None);
        };
        repository::remove_branch(&self.path, &entry.branch)?;
        self.write_update_hook()?;
        Ok(Some(entry))
    }

    /// Renders the queue of a pull request and a page of its threads for GraphQL.
    pub(super) fn queue_graphql(&self, pull: &PullRecord, threads: &ThreadPage) -> Value {
        let queue = &self.merge_queue;
        let entry = queue.entries.get(&pull.number).map(|entry| {
            let position = queue.entries.keys().position(|number| *number == pull.number);
            json!({
                "position": position.map_or(1, |position| position + 1), "enqueuedAt": entry.since,
                "headCommit": {"oid": entry.commit},
            })
        });
        let removals: Vec<Value> = queue
            .removals
            .get(&pull.number)
            .map(|removal| {
                json!({
                    "__typename": "RemovedFromMergeQueueEvent", "reason": removal.reason, "createdAt": removal.at,
                    "beforeCommit": {"oid": removal.commit},
                })
            })
            .into_iter()
            .collect();
        let committed = history::read_commit(&self.path, &pull.head_sha).map(|head| head.at);
        let threads = threads.render(pull, |_, is_resolved| json!({"isResolved": is_resolved}));
        json!({
            "mergeQueueEntry": entry, "timelineItems": {"nodes": removals},
            "commits": {"nodes": [{"commit": {"committedDate": committed.ok()}}]},
            "reviewThreads": threads,
        })
    }
}

impl GitHubState {
    /// Removes a pull request from the queue, and sends `pull_request` dequeued and `merge_group` destroyed. False if it is
    /// not queued.
    pub(super) fn remove_from_queue(
        &self,
        repo: &mut RepositoryRecord,
        pull: &PullRecord,
        reason: &str,
        by: &str,
    ) -> anyhow::Result<bool> {
        let Some(entry) = repo.take_from_queue(pull.number)? else {
            return Ok(false);
        };
        let removal = RemovedPull {
            reason: reason.to_owned(),
            at: iso_now(),
            commit: entry.commit.clone(),
        };
        repo.merge_queue.removals.insert(pull.number, removal);
        self.send_pull_event_with(repo, pull, "dequeued", json!({"reason": reason}), by);
        let end = if reason == "MERGE" { "merged" } else { "dequeued" };
        let payload = json!({"action": "destroyed", "reason": end});
        self.send_group_event(repo, pull, &entry, payload);
        Ok(true)
    }

    /// Tests the entries of a base branch on its new tip. A pull request that conflicts with it leaves the queue.
    pub(super) fn retest_queue(&self, repo: &mut RepositoryRecord, base: &str) -> anyhow::Result<()> {
        let numbers = repo.merge_queue.entries.keys();
        let queued = numbers.filter_map(|number| repo.pulls.get(number));
        let queued: Vec<PullRecord> = queued.filter(|pull| pull.base == base).cloned().collect();
        for pull in queued {
            let tip = repository::list_branches(&repo.path)
                .remove(base)
                .with_context(|| format!("there is no branch {base}"))?;
            if !repository::can_merge(&repo.path, &tip, &pull.head_sha)? {
                self.remove_from_queue(repo, &pull, "MERGE_CONFLICT", QUEUE_LOGIN)?;
                continue;
            }
            let Some(old) = repo.take_from_queue(pull.number)? else {
                continue;
            };
            let payload = json!({"action": "destroyed", "reason": "invalidated"});
            self.send_group_event(repo, &pull, &old, payload);
            let new = repo.add_to_queue(&pull, old.since, &old.by)?;
            self.send_group_event(repo, &pull, &new, json!({"action": "checks_requested"}));
        }
        Ok(())
    }

    /// Sends `merge_group` about the commit of an entry; `payload` holds the fields of the action.
    fn send_group_event(
        &self,
        repo: &RepositoryRecord,
        pull: &PullRecord,
        entry: &QueuedPull,
        payload: Value,
    ) {
        let head = history::read_commit(&repo.path, &entry.commit).ok();
        let group = json!({
            "head_sha": entry.commit, "head_ref": format!("refs/heads/{}", entry.branch), "base_sha": entry.base,
            "base_ref": format!("refs/heads/{}", pull.base), "head_commit": head.as_ref().map(simple_commit),
        });
        let payload = extend_object(payload, json!({"merge_group": group}));
        self.send_event(repo, "merge_group", payload, &entry.by);
    }

    /// Brings a head branch up to date with its base, as `updatePullRequestBranch` does. Returns the new head.
    pub(super) fn update_branch(
        &self,
        name: &str,
        number: u64,
        expected: Option<&str>,
        is_rebase: bool,
        by: &str,
    ) -> anyhow::Result<String> {
        // The block releases the lock, because `after_push` takes it again.
        let (path, pull) = {
            let mut world = self.world();
            let repo = world.repo(name)?;
            ensure!(
                !repo.merge_queue.entries.contains_key(&number),
                "Branches that are queued for merging cannot be updated."
            );
            let pull = repo.pull(number)?.clone();
            let is_linear = |ruleset: &BranchRuleset| ruleset.includes(RulesetCondition::LinearHistory);
            ensure!(
                is_rebase || !repo.rulesets_of(&pull.head).any(is_linear),
                "Repository rule violations found\n\nThis branch must not contain merge commits.\n\n"
            );
            (repo.path.clone(), pull)
        };
        ensure!(pull.open, "Pull request is closed");
        ensure!(
            expected.is_none_or(|expected| expected == pull.head_sha),
            "expected head sha didn't match current head ref."
        );
        let before = repository::list_branches(&path);
        let base = before
            .get(&pull.base)
            .with_context(|| format!("there is no branch {}", pull.base))?;
        ensure!(
            repository::count_commits_ahead(&path, &pull.head_sha, base)? > 0,
            "There are no new commits on the base branch."
        );
        let new = if is_rebase {
            repository::rebase_branch(&path, &pull.head, base, by)?
        } else {
            let message = format!("Merge branch '{}' into {}", pull.base, pull.head);
            repository::merge_branches(&path, &pull.head, base, &message, by)?
        };
        self.after_push(name, &before, &[pull.head].into(), by)?;
        Ok(new)
    }
}

impl FakeGitHub {
    /// Enables auto-merge, as a user does, with the method `merge`, `squash` or `rebase`. Sends `pull_request`
    /// `auto_merge_enabled`.
    ///
    /// # Errors
    /// When the pull request does not exist, or is closed.
    pub fn enable_auto_merge(
        &self,
        repository: &str,
        number: u64,
        by: &str,
        method: &str,
    ) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        let repo = world.repo(repository)?;
        let mut pull = repo.pull(number)?.clone();
        ensure!(pull.open, "{repository}#{number} is closed");
        pull.auto_merge = Some((by.to_owned(), method.to_owned()));
        repo.pulls.insert(number, pull.clone());
        self.hub.send_pull_event(repo, &pull, "auto_merge_enabled", by);
        Ok(())
    }

    /// Adds a pull request to the merge queue, as a user does. Returns the commit that the queue tests. Sends
    /// `pull_request` enqueued, then `merge_group` `checks_requested`.
    ///
    /// # Errors
    /// When the base branch has no merge queue, or the pull request does not exist, is a draft, is queued already, lacks a
    /// required check or review, or conflicts.
    pub fn enqueue(&self, repository: &str, number: u64, by: &str) -> anyhow::Result<String> {
        let mut world = self.hub.world();
        let repo = world.repo(repository)?;
        let pull = repo.pull(number)?.clone();
        ensure!(
            pull.open && !pull.draft,
            "{repository}#{number} is closed or a draft"
        );
        ensure!(
            !repo.merge_queue.entries.contains_key(&number),
            "{repository}#{number} is queued already"
        );
        ensure!(
            repo.requires(&pull, RulesetCondition::MergeQueue),
            "{} has no merge queue",
            pull.base
        );
        repo.check_merge(&pull)?;
        ensure!(
            !repo.lacks_review(&pull),
            "At least one approving review is required."
        );
        let entry = repo.add_to_queue(&pull, iso_now(), by)?;
        self.hub.send_pull_event(repo, &pull, "enqueued", by);
        let payload = json!({"action": "checks_requested"});
        self.hub.send_group_event(repo, &pull, &entry, payload);
        Ok(entry.commit)
    }

    /// Removes a pull request from the merge queue for a reason such as `CI_FAILURE`. Sends `pull_request` dequeued, then
    /// `merge_group` `destroyed`.
    ///
    /// # Errors
    /// When the pull request is not queued, or GitHub has no such reason.
    pub fn dequeue(&self, repository: &str, number: u64, reason: &str, by: &str) -> anyhow::Result<()> {
        ensure!(
            REMOVAL_REASONS.contains(&reason),
            "GitHub removes no entry for {reason}"
        );
        let mut world = self.hub.world();
        let repo = world.repo(repository)?;
        let pull = repo.pull(number)?.clone();
        let was_queued = self.hub.remove_from_queue(repo, &pull, reason, by)?;
        ensure!(was_queued, "{repository}#{number} is not queued");
        Ok(())
    }

    /// Sets whether GitHub has computed if a pull request can be merged.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn set_mergeability_computed(
        &self,
        repository: &str,
        number: u64,
        is_computed: bool,
    ) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        let uncomputed = &mut world.repo(repository)?.merge_queue.uncomputed;
        if is_computed {
            uncomputed.remove(&number);
        } else {
            uncomputed.insert(number);
        }
        Ok(())
    }
}
