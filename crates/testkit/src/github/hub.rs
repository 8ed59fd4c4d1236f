//! Changes of repositories and pull requests, with the webhooks that report them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::time::Instant;

use super::quota::CallQuotas;
use super::scope::{AccessToken, TokenPermissions};
use super::shape::CI_LOGIN;
use super::state::{CheckRunRecord, PullRecord, RepositoryRecord};
use super::{RunConclusion, WRITER_LOGIN, repository};
use crate::chaos::EarlyChecks;
use crate::http::{RequestLog, iso_now};
use crate::webhook::SentWebhooks;

/// Refusal of a draft in a repository without drafts.
pub(super) const NO_DRAFTS: &str = "Draft pull requests are not supported in this repository.";

/// State behind the HTTP interface.
pub(super) struct GitHubState {
    pub(super) log: Arc<RequestLog>,
    pub(super) webhooks: Arc<SentWebhooks>,
    pub(super) url: String,
    pub(super) root: PathBuf,
    pub(super) world: Mutex<GitHubRecords>,
    /// Serializes pushes, because a push's effect is the difference of the branches before and after it.
    pub(super) pushes: tokio::sync::Mutex<()>,
    /// Selection of branches whose checks complete before the push is answered.
    pub(super) early: Mutex<Option<EarlyChecks>>,
    pub(super) quotas: Mutex<CallQuotas>,
    pub(super) line: Mutex<super::slow_link::PackLine>,
    pub(super) lfs: Mutex<super::lfs::LfsShelf>,
    /// Last field, so that the folder of the repositories is removed after everything that uses it.
    pub(super) _temporary: Option<tempfile::TempDir>,
}

#[derive(Default)]
pub(super) struct GitHubRecords {
    pub(super) repos: BTreeMap<String, RepositoryRecord>,
    /// Rights of each installation token.
    pub(super) tokens: BTreeMap<String, AccessToken>,
    /// Permissions by App id, where they differ from the default.
    pub(super) permissions: BTreeMap<u64, TokenPermissions>,
    pub(super) projects: Vec<super::projects::StandInProject>,
    /// Webhook subscriptions by App id, where they differ from the default.
    pub(super) events: BTreeMap<u64, Vec<String>>,
    /// Apps that were registered through a manifest, by id.
    pub(super) registered: BTreeMap<u64, super::registration::ManifestApp>,
    /// Other accounts on which every App is installed, before its own one.
    pub(super) other_accounts: Vec<String>,
    pub(super) hooks: BTreeMap<u64, super::registration::HookConfig>,
    /// Former names of renamed repositories, with their ids.
    pub(super) moved: BTreeMap<String, u64>,
    /// Address of the repository and number that an issue or pull request moved to, by its former place.
    pub(super) transferred: BTreeMap<(String, u64), (String, u64)>,
    /// Logins by the e-mail address of their commits.
    pub(super) addresses: BTreeMap<String, String>,
    /// Files that users uploaded for their texts.
    pub(super) attached: Vec<super::attachments::AttachedFile>,
    next_id: u64,
}

impl GitHubRecords {
    pub(super) fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        1000 + self.next_id
    }

    pub(super) const fn next_id(&self) -> u64 {
        1000 + self.next_id + 1
    }

    pub(super) fn repo(&mut self, name: &str) -> anyhow::Result<&mut RepositoryRecord> {
        self.repos
            .get_mut(name)
            .with_context(|| format!("there is no repository {name}"))
    }
}

impl RepositoryRecord {
    pub(super) fn pull(&mut self, number: u64) -> anyhow::Result<&mut PullRecord> {
        let name = &self.name;
        self.pulls
            .get_mut(&number)
            .with_context(|| format!("there is no pull request {name}#{number}"))
    }
}

/// Content of a new pull request. The caller validates it.
pub(super) struct NewPull {
    pub(super) author: String,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) head: String,
    pub(super) base: String,
    pub(super) draft: bool,
}

impl GitHubState {
    pub(super) fn world(&self) -> MutexGuard<'_, GitHubRecords> {
        self.world.lock()
    }

    pub(super) fn create_repository(&self, name: &str, files: &[(&str, &str)]) -> anyhow::Result<String> {
        ensure!(name.split('/').count() == 2, "a repository's name is owner/name");
        let mut world = self.world();
        ensure!(!world.repos.contains_key(name), "{name} exists already");
        let path = self.root.join(format!("{name}.git"));
        let head = repository::create_bare_repository(&path, files)?;
        let repo = RepositoryRecord {
            id: world.fresh_id(),
            name: name.to_owned(),
            path,
            default_branch: "main".to_owned(),
            created: iso_now(),
            pushed: iso_now(),
            pulls: BTreeMap::new(),
            issues: BTreeMap::new(),
            removed: BTreeMap::new(),
            discussions: BTreeMap::new(),
            comments: Vec::new(),
            reactions: Vec::new(),
            checks: Vec::new(),
            again: BTreeMap::new(),
            permissions: BTreeMap::new(),
            required_checks: BTreeMap::new(),
            rulesets: Vec::new(),
            merge_queue: super::merge_queue::MergeQueueRecord::default(),
            signed_branches: std::collections::BTreeSet::new(),
            signing_keys: Vec::new(),
            has_unsigned_api_commits: false,
            is_archived: false,
            has_drafts: true,
            locks: BTreeMap::new(),
            held_runs: Vec::new(),
        };
        world.repos.insert(name.to_owned(), repo);
        Ok(head)
    }

    /// Renames a repository and keeps the old name as a redirect.
    pub(super) fn rename(&self, old: &str, new: &str) -> anyhow::Result<()> {
        ensure!(new.split('/').count() == 2, "a repository's name is owner/name");
        let mut world = self.world();
        ensure!(!world.repos.contains_key(new), "{new} exists already");
        let mut repo = world
            .repos
            .remove(old)
            .with_context(|| format!("there is no repository {old}"))?;
        let path = self.root.join(format!("{new}.git"));
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::rename(&repo.path, &path)?;
        (repo.name, repo.path) = (new.to_owned(), path);
        // A new repository may take an old name, which then no longer redirects.
        world.moved.insert(old.to_owned(), repo.id);
        world.moved.remove(new);
        world.repos.insert(new.to_owned(), repo);
        Ok(())
    }

    /// Opens a pull request and sends `pull_request` opened.
    pub(super) fn open_pull(
        &self,
        world: &mut GitHubRecords,
        name: &str,
        new: NewPull,
    ) -> anyhow::Result<PullRecord> {
        let id = world.fresh_id();
        let repo = world.repo(name)?;
        let branches = repository::list_branches(&repo.path);
        let sha = |branch: &str| {
            branches
                .get(branch)
                .cloned()
                .with_context(|| format!("there is no branch {branch}"))
        };
        let number = repo.next_number();
        let now = iso_now();
        let pull = PullRecord {
            id,
            number,
            head_sha: sha(&new.head)?,
            base_sha: sha(&new.base)?,
            title: new.title,
            body: new.body,
            author: new.author,
            head: new.head,
            base: new.base,
            draft: new.draft,
            open: true,
            merged_by: None,
            merge_sha: None,
            created: now.clone(),
            updated: now,
            closed: None,
            labels: Vec::new(),
            reviewers: Vec::new(),
            resolved: std::collections::BTreeSet::new(),
            auto_merge: None,
            review_requests: Vec::new(),
            reviews: Vec::new(),
            made: Instant::now(),
        };
        repo.pulls.insert(number, pull.clone());
        self.send_pull_event(repo, &pull, "opened", &pull.author);
        Ok(pull)
    }

    /// Compares the pushed branches with those before the push, moves the heads of open pull requests and
    /// sends the webhooks. Branches that another author moves at the same time stay with that author.
    pub(super) fn after_push(
        &self,
        name: &str,
        before: &BTreeMap<String, String>,
        pushed: &BTreeSet<String>,
        by: &str,
    ) -> anyhow::Result<()> {
        let mut world = self.world();
        let repo = world.repo(name)?;
        let after = repository::list_branches(&repo.path);
        for branch in pushed {
            let (old, new) = (before.get(branch), after.get(branch));
            if old != new {
                // Journeyman works on branches alone. A push to the default branch would bypass the review.
                if *branch == repo.default_branch && by == WRITER_LOGIN {
                    self.log
                        .violation(format!("{by} pushed to the default branch of {name}"));
                }
                self.branch_moved(repo, branch, old, new, by)?;
            }
        }
        Ok(())
    }

    fn branch_moved(
        &self,
        repo: &mut RepositoryRecord,
        branch: &str,
        old: Option<&String>,
        new: Option<&String>,
        by: &str,
    ) -> anyhow::Result<()> {
        repo.pushed = iso_now();
        self.send_push_event(repo, branch, (old, new), by);
        let numbers: Vec<u64> = repo
            .pulls
            .values()
            .filter(|pull| pull.open && pull.head == branch)
            .map(|pull| pull.number)
            .collect();
        for number in numbers {
            let Ok(pull) = repo.pull(number) else { continue };
            pull.updated = iso_now();
            if let Some(new) = new {
                let before = std::mem::replace(&mut pull.head_sha, new.clone());
                let pull = pull.clone();
                let moved = json!({"before": before, "after": new});
                self.send_pull_event_with(repo, &pull, "synchronize", moved, by);
            } else {
                // GitHub closes the pull requests of a deleted branch.
                pull.open = false;
                pull.closed = Some(iso_now());
                let pull = pull.clone();
                self.send_pull_event(repo, &pull, "closed", by);
            }
        }
        match new {
            Some(_) => self.retest_queue(repo, branch),
            None => Ok(()),
        }
    }

    pub(super) fn commit(
        &self,
        name: &str,
        branch: &str,
        message: &str,
        files: &[(&str, &str)],
    ) -> anyhow::Result<String> {
        self.commit_as(name, branch, message, ("Rita Maintainer", "rita"), files)
    }

    /// Commits with an author's name and pushes with a login.
    pub(super) fn commit_as(
        &self,
        name: &str,
        branch: &str,
        message: &str,
        (author, by): (&str, &str),
        files: &[(&str, &str)],
    ) -> anyhow::Result<String> {
        // The block releases the lock, because `after_push` takes it again.
        let (path, default_branch) = {
            let mut world = self.world();
            let repo = world.repo(name)?;
            ensure!(
                !repo.is_queued(branch),
                "Branches that are queued for merging cannot be updated."
            );
            (repo.path.clone(), repo.default_branch.clone())
        };
        let before = repository::list_branches(&path);
        let id = repository::commit_files(&path, branch, Some(&default_branch), message, author, files)?;
        self.after_push(name, &before, &BTreeSet::from([branch.to_owned()]), by)?;
        Ok(id)
    }

    pub(super) fn run_checks(
        &self,
        name: &str,
        sha: &str,
        checks: &[(&str, RunConclusion, &str)],
    ) -> anyhow::Result<()> {
        let mut world = self.world();
        let suite = world.fresh_id();
        let ids: Vec<u64> = checks.iter().map(|_| world.fresh_id()).collect();
        let repo = world.repo(name)?;
        let now = iso_now();
        for ((check, conclusion, output), id) in checks.iter().zip(ids) {
            // A newer check run of the same name replaces the older one in GitHub's default view.
            repo.checks
                .retain(|known| known.sha != sha || known.name != *check);
            repo.checks.push(CheckRunRecord {
                id,
                app: CI_LOGIN,
                external_id: String::new(),
                title: (*check).to_owned(),
                elsewhere: None,
                suite,
                name: (*check).to_owned(),
                sha: sha.to_owned(),
                conclusion: *conclusion,
                output: (*output).to_owned(),
                completed: now.clone(),
            });
        }
        for check in repo.checks.iter().filter(|check| check.suite == suite) {
            let payload =
                json!({"action": "completed", "check_run": repo.check_event_json(check, &self.url)});
            self.send_event(repo, "check_run", payload, CI_LOGIN);
        }
        let suite = repo.suite_event_json(suite, sha, &now, &self.url);
        let payload = json!({"action": "completed", "check_suite": suite});
        self.send_event(repo, "check_suite", payload, CI_LOGIN);
        Ok(())
    }

    pub(super) fn merge(&self, name: &str, number: u64, by: &str) -> anyhow::Result<String> {
        let mut world = self.world();
        let repo = world.repo(name)?;
        let path = repo.path.clone();
        let pull = repo.pull(number)?.clone();
        repo.check_merge(&pull)?;
        ensure!(
            !repo.lacks_review(&pull),
            "At least one approving review is required."
        );
        let pull = repo.pull(number)?;
        ensure!(
            pull.open && !pull.draft,
            "{name}#{number} is closed or a draft and cannot be merged"
        );
        let before = repository::list_branches(&path);
        let message = format!(
            "Merge pull request #{number} from {}\n\n{}",
            pull.head, pull.title
        );
        // The merge precedes the changes of state, so that a conflict leaves the pull request open.
        let id = repository::merge_branches(&path, &pull.base, &pull.head_sha, &message, by)?;
        pull.open = false;
        pull.merged_by = Some(by.to_owned());
        pull.merge_sha = Some(id.clone());
        pull.closed = Some(iso_now());
        pull.updated = iso_now();
        let pull = pull.clone();
        self.remove_from_queue(repo, &pull, "MERGE", by)?;
        self.send_pull_event(repo, &pull, "closed", by);
        let old = before.get(&pull.base);
        // The merge is also a push to the base branch. GitHub reports it after the pull request.
        self.branch_moved(repo, &pull.base, old, Some(&id), by)?;
        if pull.base == repo.default_branch {
            self.close_fixed(repo, &pull, by);
        }
        Ok(id)
    }

    pub(super) fn close(&self, name: &str, number: u64, by: &str) -> anyhow::Result<()> {
        let mut world = self.world();
        let repo = world.repo(name)?;
        let pull = repo.pull(number)?;
        ensure!(pull.open, "{name}#{number} is closed already");
        pull.open = false;
        pull.closed = Some(iso_now());
        pull.updated = iso_now();
        let pull = pull.clone();
        self.send_pull_event(repo, &pull, "closed", by);
        Ok(())
    }

    pub(super) fn set_draft(
        &self,
        name: &str,
        number: u64,
        draft: bool,
        by: &str,
    ) -> anyhow::Result<PullRecord> {
        let mut world = self.world();
        let repo = world.repo(name)?;
        let has_drafts = repo.has_drafts;
        let pull = repo.pull(number)?;
        ensure!(pull.open, "Pull request is closed");
        ensure!(!draft || has_drafts, "{NO_DRAFTS}");
        let changed = pull.draft != draft;
        pull.draft = draft;
        pull.updated = iso_now();
        let pull = pull.clone();
        // An unchanged state causes no webhook.
        if changed {
            self.send_pull_event(
                repo,
                &pull,
                if draft {
                    "converted_to_draft"
                } else {
                    "ready_for_review"
                },
                by,
            );
        }
        Ok(pull)
    }
}
