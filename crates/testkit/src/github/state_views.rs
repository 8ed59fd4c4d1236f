//! Read access of tests to the stand-in's state.

use std::collections::BTreeMap;

use super::{FakeGitHub, history, quota::QuotaAccount, repository, state};

/// Commit, as tests read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandInCommit {
    /// Author as `Name <address>`.
    pub author: String,
    /// Message with subject and body.
    pub message: String,
}

/// Pull request, as tests read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandInPullRequest {
    /// Number in the repository.
    pub number: u64,
    /// Title as plain text.
    pub title: String,
    /// Body as Markdown text.
    pub body: String,
    /// Login of the author.
    pub author: String,
    /// Name of the head branch.
    pub head: String,
    /// Commit id of the head branch.
    pub head_sha: String,
    /// Name of the base branch.
    pub base: String,
    /// True until it is marked ready.
    pub draft: bool,
    /// True while neither closed nor merged.
    pub open: bool,
    /// True after a user merged it.
    pub merged: bool,
    /// URL of the web page.
    pub url: String,
    /// Names of the labels.
    pub labels: Vec<String>,
    /// Logins of the requested reviewers.
    pub requested_reviewers: Vec<String>,
}

/// Issue, as tests read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandInIssue {
    /// Number in the repository.
    pub number: u64,
    /// Title as plain text.
    pub title: String,
    /// Body as Markdown text.
    pub body: String,
    /// Names of the labels.
    pub labels: Vec<String>,
    /// Logins of the assignees.
    pub assignees: Vec<String>,
    /// Name of the issue type.
    pub issue_type: Option<String>,
    /// True until it is closed.
    pub open: bool,
    /// `completed` or `not_planned` after it is closed.
    pub closed_as: Option<String>,
}

/// Review, as tests read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandInReview {
    /// Login of the reviewer.
    pub author: String,
    /// `commented`, `approved` or `changes_requested`.
    pub state: String,
    /// Summary as Markdown text.
    pub body: String,
    /// Comments on lines: path, line and text.
    pub comments: Vec<(String, u64, String)>,
}

/// Comment, as tests read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandInComment {
    /// Numeric id, as REST returns it.
    pub id: u64,
    /// Login of the author.
    pub author: String,
    /// Body as Markdown text.
    pub body: String,
}

impl FakeGitHub {
    /// All pull requests of a repository, oldest first.
    #[must_use]
    pub fn pull_requests(&self, repository: &str) -> Vec<StandInPullRequest> {
        let world = self.hub.world();
        let repo = world.repos.get(repository);
        repo.into_iter()
            .flat_map(|repo| repo.pulls.values().map(|pull| pull.state(repo, &self.hub.url)))
            .collect()
    }

    /// Number of pull requests of a repository, open or not.
    #[must_use]
    pub fn count_pull_requests(&self, repository: &str) -> usize {
        let world = self.hub.world();
        world.repos.get(repository).map_or(0, |repo| repo.pulls.len())
    }

    /// State of an issue, if it exists.
    #[must_use]
    pub fn issue(&self, repository: &str, number: u64) -> Option<StandInIssue> {
        let world = self.hub.world();
        let issue = world.repos.get(repository)?.issues.get(&number)?;
        Some(issue.state())
    }

    /// All comments of an issue or pull request, oldest first.
    #[must_use]
    pub fn comments(&self, repository: &str, number: u64) -> Vec<StandInComment> {
        let world = self.hub.world();
        let comments = world
            .repos
            .get(repository)
            .into_iter()
            .flat_map(|repo| &repo.comments);
        comments
            .filter(|comment| comment.number == number)
            .map(state::CommentRecord::state)
            .collect()
    }

    /// Commit ids of all branches, by name.
    #[must_use]
    pub fn branches(&self, repository: &str) -> BTreeMap<String, String> {
        self.path(repository)
            .map(|path| repository::list_branches(&path))
            .unwrap_or_default()
    }

    /// Content of every file of a branch or commit, by path (lossy UTF-8).
    ///
    /// # Errors
    /// When the repository, branch or commit does not exist.
    pub fn branch_files(&self, repository: &str, branch: &str) -> anyhow::Result<BTreeMap<String, String>> {
        repository::read_files(&self.path(repository)?, branch)
    }

    /// Content of one file of a branch or commit, if it exists.
    #[must_use]
    pub fn file(&self, repository: &str, branch: &str, path: &str) -> Option<String> {
        self.branch_files(repository, branch).ok()?.remove(path)
    }

    /// Unified diff between two branches or commits, from their merge base.
    ///
    /// # Errors
    /// When the repository, branch or commit does not exist.
    pub fn diff(&self, repository: &str, base: &str, head: &str) -> anyhow::Result<String> {
        repository::render_unified_diff(&self.path(repository)?, base, head)
    }

    /// First line of each commit message of a pull request, oldest first.
    ///
    /// # Errors
    /// When the repository or pull request does not exist.
    pub fn subjects(&self, repository: &str, number: u64) -> anyhow::Result<Vec<String>> {
        let commits = self.commits(repository, number)?;
        let subject = |commit: &StandInCommit| commit.message.lines().next().unwrap_or_default().to_owned();
        Ok(commits.iter().map(subject).collect())
    }

    /// Commits of a pull request, oldest first.
    ///
    /// # Errors
    /// When the repository or pull request does not exist.
    pub fn commits(&self, repository: &str, number: u64) -> anyhow::Result<Vec<StandInCommit>> {
        let path = self.path(repository)?;
        let base = repository::list_branches(&path);
        let (head, base) = {
            let mut world = self.hub.world();
            let pull = world.repo(repository)?.pull(number)?;
            (pull.head_sha.clone(), base.get(&pull.base).cloned())
        };
        let commits = history::list_pushed_commits(&path, base.as_ref(), &head)?;
        let shown = commits.into_iter().map(|commit| StandInCommit {
            author: format!("{} <{}>", commit.author.name, commit.author.email),
            message: commit.message,
        });
        Ok(shown.collect())
    }

    fn path(&self, repository: &str) -> anyhow::Result<std::path::PathBuf> {
        Ok(self.hub.world().repo(repository)?.path.clone())
    }

    /// Bytes of packs since [`FakeGitHub::set_link`](super::FakeGitHub::set_link), and the number of
    /// interruptions to come.
    #[must_use]
    pub fn line(&self) -> (u64, usize) {
        let line = self.hub.line.lock();
        (line.passed(), line.interruptions_left())
    }

    /// Number of calls that count against the rate limit. Git and conditional reads of unchanged objects do
    /// not count, as on GitHub.
    #[must_use]
    pub fn rate_limit_used(&self) -> u64 {
        self.hub.quotas.lock().used()
    }

    /// Calls of the reader and of the writer, like [`Self::rate_limit_used`].
    #[must_use]
    pub fn rate_limit_used_by_accounts(&self) -> (u64, u64) {
        let quotas = self.hub.quotas.lock();
        (
            quotas.used_by(QuotaAccount::Reader),
            quotas.used_by(QuotaAccount::Writer),
        )
    }
}
