//! Stand-in of GitHub: stateful REST and GraphQL, App authentication, git over smart HTTP and signed
//! webhooks. It records every request that the reader or writer must not make.

mod actions;
mod attachments;
mod auth;
mod blame;
mod branches;
mod chaos;
mod check_runs;
mod comments;
mod commit_signatures;
mod departures;
mod discussion_actions;
mod discussions;
mod events;
mod git_data;
mod git_http;
mod graphql;
mod history;
mod hub;
mod hunks;
mod issues;
mod issues_rest;
mod lfs;
mod locks;
mod merge_queue;
mod open_heads;
mod projects;
mod pull_edits;
mod pulls;
mod quota;
mod reactions;
mod registration;
mod repository;
mod repository_redirects;
mod rest;
mod review_comments;
mod review_requests;
mod routes;
mod rulesets;
mod scope;
mod shape;
mod slow_link;
mod state;
mod state_views;
mod sub_issues;
mod suggestions;

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::http::RequestLog;
use crate::stand_in::{StandInParts, StandInServer};
use crate::webhook::{SentWebhooks, WebhookStyle};
pub use actions::HeldRunState;
pub use chaos::BranchLock;
pub use discussion_actions::{StandInDiscussion, StandInDiscussionComment};
use hub::{GitHubRecords, GitHubState, NewPull};
pub use lfs::LfsFault;
pub use locks::LockReach;
pub use reactions::ReactedObject;
pub use registration::HookConfig;
pub use rulesets::{BranchRuleset, RulesetCondition, RulesetPattern};
pub use slow_link::SlowLink;
pub use state_views::{StandInComment, StandInCommit, StandInIssue, StandInPullRequest, StandInReview};

/// Id of the App with read permissions.
pub const READER_APP_ID: u64 = 1001;
/// Id of the App with write permissions.
pub const WRITER_APP_ID: u64 = 1002;
/// PEM private key of both Apps, generated for tests.
pub const APP_PRIVATE_KEY: &str = include_str!("../../data/app_key.pem");
/// SSH key for signatures of commits.
pub const SIGNING_KEY: &str = include_str!("../../data/signing_key");
/// Public part of [`SIGNING_KEY`].
pub const SIGNING_PUBLIC_KEY: &str = include_str!("../../data/signing_key.pub");
/// Personal access token with read permissions.
pub const READER_TOKEN: &str = "ghp_reader_of_the_stand_in";
/// Personal access token with write permissions.
pub const WRITER_TOKEN: &str = "ghp_writer_of_the_stand_in";
/// Personal access token with the scope `project` alone.
pub const PROJECT_TOKEN: &str = "ghp_projects_of_the_stand_in";
/// Token of a workflow's job, with the permissions that docs/action.md lists. It acts as the writer.
pub const WORKFLOW_TOKEN: &str = "ghs_workflow_of_the_stand_in";
/// Login of the writer's App and token.
pub const WRITER_LOGIN: &str = "journeyman[bot]";
/// Login of the reader's App and token.
pub const READER_LOGIN: &str = "journeyman-reader[bot]";
/// Account number of a login.
pub fn account_number(login: &str) -> u64 {
    shape::number_of(login)
}

/// HTTP status of a secondary rate limit.
const LIMITED: u16 = 403;
const READER_INSTALLATION_ID: u64 = 2001;
const WRITER_INSTALLATION_ID: u64 = 2002;

/// Options of a [`FakeGitHub`].
#[derive(Debug, Clone, Default)]
pub struct GitHubOptions {
    /// Folder of the bare repositories; a temporary one if absent.
    pub data_dir: Option<std::path::PathBuf>,
    /// Base URL in answers, for a stand-in behind another address.
    pub public_url: Option<String>,
}

/// Conclusion of a check run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunConclusion {
    /// Green: every test passed.
    Success,
    /// Red: a test failed.
    Failure,
    /// Neither success nor failure.
    Neutral,
    /// Canceled before its end.
    Cancelled,
}

/// Server of the GitHub API. Dropping it stops the server.
pub struct FakeGitHub {
    server: StandInServer,
    hub: Arc<GitHubState>,
}

impl Deref for FakeGitHub {
    type Target = StandInServer;

    fn deref(&self) -> &StandInServer {
        &self.server
    }
}

impl FakeGitHub {
    /// Starts on a free loopback port.
    ///
    /// # Errors
    /// When no port can be bound, or the data directory cannot be made.
    pub async fn start(options: GitHubOptions) -> anyhow::Result<Self> {
        let started = StandInServer::start(RequestLog::of("github"), LIMITED, |address, log| {
            let hub = Arc::new(new_hub(options, log, address)?);
            let routes = routes::build_github_routes(Arc::clone(&hub));
            Ok(StandInParts {
                router: repository_redirects::build_redirecting_router(Arc::clone(&hub), routes),
                webhooks: Arc::clone(&hub.webhooks),
                state: hub,
            })
        });
        let (server, hub) = started.await?;
        Ok(Self { server, hub })
    }

    /// Stops the server and waits a few seconds for requests and webhooks under way.
    pub async fn stop(self) {
        self.server.stop().await;
    }

    /// Base URL of REST: `http://127.0.0.1:PORT` or the public URL. GraphQL is at `<api_url>/graphql`.
    #[must_use]
    pub fn api_url(&self) -> String {
        self.hub.url.clone()
    }

    /// Base URL of git; a repository is at `<git_url>/<owner>/<name>.git`.
    #[must_use]
    pub fn git_url(&self) -> String {
        format!("{}/git", self.hub.url)
    }

    /// Clone URL of a repository: `<git_url>/<repository>.git`.
    #[must_use]
    pub fn clone_url(&self, repository: &str) -> String {
        format!("{}/{repository}.git", self.git_url())
    }

    /// Creates a repository such as `acme/shop` with one commit on `main` and returns the commit's id. Every
    /// user has write permission until [`Self::set_permission`] changes it.
    ///
    /// # Errors
    /// When the name is not of the form `owner/name` or exists, or git fails.
    pub fn create_repository(&self, repository: &str, files: &[(&str, &str)]) -> anyhow::Result<String> {
        self.hub.create_repository(repository, files)
    }

    /// Archives a repository, which then refuses every write.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn archive_repository(&self, repository: &str) -> anyhow::Result<()> {
        self.hub.world().repo(repository)?.is_archived = true;
        Ok(())
    }

    /// Takes the draft state from a repository, like a plan without it.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn disable_drafts(&self, repository: &str) -> anyhow::Result<()> {
        self.hub.world().repo(repository)?.has_drafts = false;
        Ok(())
    }

    /// Commits to a branch as a user and returns the commit's id. A new branch starts at the default branch.
    /// Sends `push`.
    ///
    /// # Errors
    /// When the repository, or git fails does not exist.
    pub fn commit(
        &self,
        repository: &str,
        branch: &str,
        message: &str,
        files: &[(&str, &str)],
    ) -> anyhow::Result<String> {
        self.hub.commit(repository, branch, message, files)
    }

    /// Sets a branch to a commit with this text, also to one that git itself would not write, and returns the commit's
    /// id. No webhook follows.
    ///
    /// # Errors
    /// When the repository does not exist or cannot be written.
    pub fn store_commit(&self, repository: &str, branch: &str, text: &str) -> anyhow::Result<String> {
        let path = self.hub.world().repo(repository)?.path.clone();
        repository::store_commit(&path, branch, text.as_bytes())
    }

    /// Sets the checks that must pass before a merge into a branch.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn require_checks(&self, repository: &str, branch: &str, checks: &[&str]) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        let checks = checks.iter().map(|check| (*check).to_owned()).collect();
        let required = &mut world.repo(repository)?.required_checks;
        required.insert(branch.to_owned(), checks);
        Ok(())
    }

    /// Renames or transfers a repository. Calls by the old name are redirected.
    ///
    /// # Errors
    /// When the repository, or the new name is taken does not exist.
    pub fn rename_repository(&self, old: &str, new: &str) -> anyhow::Result<()> {
        self.hub.rename(old, new)
    }

    /// Sets a user's permission: `none`, `read`, `write` or `admin`.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn set_permission(&self, repository: &str, login: &str, permission: &str) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        world
            .repo(repository)?
            .permissions
            .insert(login.to_owned(), permission.to_owned());
        Ok(())
    }

    /// Completes checks (name, conclusion, output) of a commit. Sends `check_run` for each, then one
    /// `check_suite`.
    ///
    /// # Errors
    /// When the repository does not exist.
    pub fn run_checks(
        &self,
        repository: &str,
        sha: &str,
        checks: &[(&str, RunConclusion, &str)],
    ) -> anyhow::Result<()> {
        self.hub.run_checks(repository, sha, checks)
    }

    /// Merges as a user, with a real merge commit whose id is returned. Sends `pull_request` closed, then
    /// `push`.
    ///
    /// # Errors
    /// When the pull request does not exist, is closed or a draft, lacks a required check, or conflicts.
    pub fn merge(&self, repository: &str, number: u64, by: &str) -> anyhow::Result<String> {
        self.hub.merge(repository, number, by)
    }

    /// Closes a pull request without merging, as a user. Sends `pull_request` closed.
    ///
    /// # Errors
    /// When the pull request does not exist or is already closed.
    pub fn close(&self, repository: &str, number: u64, by: &str) -> anyhow::Result<()> {
        self.hub.close(repository, number, by)
    }

    /// Reviews as a user; `state` is `approved`, `changes_requested` or `commented`. Sends
    /// `pull_request_review`.
    ///
    /// # Errors
    /// When the pull request does not exist, or its author approves it.
    pub fn review(
        &self,
        repository: &str,
        number: u64,
        by: &str,
        state: &str,
        body: &str,
    ) -> anyhow::Result<()> {
        self.hub
            .review(repository, number, by, (state, body), &[])
            .map(drop)
    }

    /// Reviews as [`Self::review`] does, with comments on lines of the head: path, line and text.
    ///
    /// # Errors
    /// As for [`Self::review`].
    pub fn review_lines(
        &self,
        repository: &str,
        number: u64,
        by: &str,
        (state, body): (&str, &str),
        lines: &[(&str, u64, &str)],
    ) -> anyhow::Result<()> {
        let lines: Vec<review_comments::OnLines<'_>> =
            lines.iter().map(review_comments::OnLines::one).collect();
        self.hub
            .review(repository, number, by, (state, body), &lines)
            .map(drop)
    }

    /// Id of the next object. A review takes one id, then each of its comments takes one.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.hub.world().next_id()
    }

    /// Comments on an issue or pull request as a user and returns the comment's id. Sends `issue_comment`.
    ///
    /// # Errors
    /// When neither an issue nor a pull request has the number.
    pub fn comment_as(&self, repository: &str, number: u64, by: &str, body: &str) -> anyhow::Result<u64> {
        Ok(self.hub.comment(repository, number, by, body)?.id)
    }

    /// Changes a comment's text as a user. Sends `issue_comment` edited.
    ///
    /// # Errors
    /// When the repository or comment does not exist.
    pub fn edit_comment_as(
        &self,
        repository: &str,
        comment: u64,
        by: &str,
        body: &str,
    ) -> anyhow::Result<()> {
        self.hub.edit_comment(repository, comment, by, body)
    }

    /// Opens a pull request from an existing branch as a user and returns its number. Sends `pull_request`
    /// opened.
    ///
    /// # Errors
    /// When the repository or branch does not exist.
    pub fn open_pull_request_as(
        &self,
        repository: &str,
        by: &str,
        head: &str,
        title: &str,
        body: &str,
    ) -> anyhow::Result<u64> {
        let mut world = self.hub.world();
        let base = world.repo(repository)?.default_branch.clone();
        let new = NewPull {
            author: by.to_owned(),
            title: title.to_owned(),
            body: body.to_owned(),
            head: head.to_owned(),
            base,
            draft: false,
        };
        Ok(self.hub.open_pull(&mut world, repository, new)?.number)
    }

    /// Sends packs over a slow link from now on.
    pub fn set_link(&self, link: slow_link::SlowLink) {
        self.hub.line.lock().set(link);
    }

    /// Changes the speed of the link in bytes per second, also for the packs under way; 0 means unlimited. The count of
    /// bytes and the interruptions stay.
    pub fn set_link_speed(&self, bytes_per_second: u64) {
        self.hub.line.lock().set_speed(bytes_per_second);
    }

    /// Sets the hourly rate limit of each account; the default is 5,000 calls.
    pub fn set_rate_limit(&self, calls: u64) {
        self.hub.quotas.lock().set_limit(calls);
    }
}

fn new_hub(options: GitHubOptions, log: Arc<RequestLog>, address: SocketAddr) -> anyhow::Result<GitHubState> {
    let (root, temporary) = match options.data_dir {
        Some(directory) => (directory, None),
        None => {
            let directory = tempfile::Builder::new().prefix("journeyman-github-").tempdir()?;
            (directory.path().to_path_buf(), Some(directory))
        }
    };
    std::fs::create_dir_all(&root)?;
    Ok(GitHubState {
        log,
        webhooks: Arc::new(SentWebhooks::start(WebhookStyle::GitHub)?),
        url: options.public_url.unwrap_or_else(|| format!("http://{address}")),
        root: root.canonicalize()?,
        world: Mutex::new(GitHubRecords::default()),
        pushes: tokio::sync::Mutex::new(()),
        early: Mutex::default(),
        line: Mutex::default(),
        quotas: Mutex::default(),
        lfs: Mutex::default(),
        _temporary: temporary,
    })
}
