//! What a test sees of the stand-in.

use std::collections::BTreeMap;

use super::{FakeGitHub, history, repository, state};
use crate::http::{RecordedRequest, lock};

/// A commit as a test looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitState {
    /// Its author, `Name <address>`.
    pub author: String,
    /// Its message.
    pub message: String,
}

/// A pull request as a test looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestState {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its body.
    pub body: String,
    /// Its author's login.
    pub author: String,
    /// The branch it comes from.
    pub head: String,
    /// The head's commit.
    pub head_sha: String,
    /// The branch it goes to.
    pub base: String,
    /// True until it is marked ready.
    pub draft: bool,
    /// True while neither closed nor merged.
    pub open: bool,
    /// True after a person merged it.
    pub merged: bool,
    /// The page for people.
    pub url: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// Whose review was asked for.
    pub requested_reviewers: Vec<String>,
}

/// An issue as a test looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueState {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its body.
    pub body: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// The logins of its assignees.
    pub assignees: Vec<String>,
    /// The name of its type.
    pub issue_type: Option<String>,
    /// True while it is not closed.
    pub open: bool,
    /// `completed` or `not_planned` once it is closed.
    pub closed_as: Option<String>,
}

/// A review as a test looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewState {
    /// Who submitted it.
    pub author: String,
    /// `commented`, `approved` or `changes_requested`.
    pub state: String,
    /// Its words.
    pub body: String,
    /// Its comments on lines: path, line and text.
    pub comments: Vec<(String, u64, String)>,
}

/// A comment as a test looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommentState {
    /// Its id.
    pub id: u64,
    /// Who wrote it.
    pub author: String,
    /// Its Markdown.
    pub body: String,
}

impl FakeGitHub {
    /// All pull requests, oldest first.
    #[must_use]
    pub fn pull_requests(&self, repository: &str) -> Vec<PullRequestState> {
        let world = self.hub.world();
        let repo = world.repos.get(repository);
        repo.into_iter()
            .flat_map(|repo| repo.pulls.values().map(|pull| pull.state(repo, &self.hub.url)))
            .collect()
    }

    /// One issue.
    #[must_use]
    pub fn issue(&self, repository: &str, number: u64) -> Option<IssueState> {
        let world = self.hub.world();
        let issue = world.repos.get(repository)?.issues.get(&number)?;
        Some(issue.state())
    }

    /// All comments of an issue or pull request, oldest first.
    #[must_use]
    pub fn comments(&self, repository: &str, number: u64) -> Vec<CommentState> {
        let world = self.hub.world();
        let comments = world
            .repos
            .get(repository)
            .into_iter()
            .flat_map(|repo| &repo.comments);
        comments
            .filter(|comment| comment.number == number)
            .map(state::Comment::state)
            .collect()
    }

    /// The names of all branches with their commits.
    #[must_use]
    pub fn branches(&self, repository: &str) -> BTreeMap<String, String> {
        self.path(repository)
            .map(|path| repository::branches(&path))
            .unwrap_or_default()
    }

    /// Every file of a branch or commit (lossy UTF-8).
    ///
    /// # Errors
    /// When there is no such repository, branch or commit.
    pub fn branch_files(&self, repository: &str, branch: &str) -> anyhow::Result<BTreeMap<String, String>> {
        repository::files(&self.path(repository)?, branch)
    }

    /// One file of a branch or commit.
    #[must_use]
    pub fn file(&self, repository: &str, branch: &str, path: &str) -> Option<String> {
        self.branch_files(repository, branch).ok()?.remove(path)
    }

    /// The unified diff between two branches or commits, from their merge base.
    ///
    /// # Errors
    /// When there is no such repository, branch or commit.
    pub fn diff(&self, repository: &str, base: &str, head: &str) -> anyhow::Result<String> {
        repository::diff(&self.path(repository)?, base, head)
    }

    /// The first lines of the messages of a pull request's commits, oldest first.
    ///
    /// # Errors
    /// When there is no such repository or pull request.
    pub fn subjects(&self, repository: &str, number: u64) -> anyhow::Result<Vec<String>> {
        let commits = self.commits(repository, number)?;
        let subject = |commit: &CommitState| commit.message.lines().next().unwrap_or_default().to_owned();
        Ok(commits.iter().map(subject).collect())
    }

    /// A pull request's commits, oldest first.
    ///
    /// # Errors
    /// When there is no such repository or pull request.
    pub fn commits(&self, repository: &str, number: u64) -> anyhow::Result<Vec<CommitState>> {
        let path = self.path(repository)?;
        let base = repository::branches(&path);
        let (head, base) = {
            let mut world = self.hub.world();
            let pull = world.repo(repository)?.pull(number)?;
            (pull.head_sha.clone(), base.get(&pull.base).cloned())
        };
        let commits = history::pushed(&path, base.as_ref(), &head)?;
        let shown = commits.into_iter().map(|commit| CommitState {
            author: format!("{} <{}>", commit.author.name, commit.author.email),
            message: commit.message,
        });
        Ok(shown.collect())
    }

    fn path(&self, repository: &str) -> anyhow::Result<std::path::PathBuf> {
        Ok(self.hub.world().repo(repository)?.path.clone())
    }

    /// How many faults still wait for their requests.
    #[must_use]
    pub fn faults_left(&self) -> usize {
        self.hub.log.faults_left()
    }

    /// Bytes of packs that passed since [`FakeGitHub::set_link`](super::FakeGitHub::set_link), and the interruptions that are still to come.
    #[must_use]
    pub fn line(&self) -> (u64, usize) {
        let line = lock(&self.hub.line);
        (line.passed(), line.interruptions_left())
    }

    /// How many calls count against the rate limit: neither git nor conditional reads of what did not change.
    #[must_use]
    pub fn rate_limit_used(&self) -> u64 {
        lock(&self.hub.quota).used()
    }

    /// Every request so far.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.hub.log.requests()
    }

    /// What callers did that GitHub or the capability table forbids.
    #[must_use]
    pub fn violations(&self) -> Vec<String> {
        self.hub.log.violations()
    }
}
