//! A GitHub that behaves: stateful REST and GraphQL, App auth, real git smart HTTP, signed webhooks, strict about who writes.

mod actions;
mod auth;
mod blame;
mod branches;
mod chaos;
mod check_runs;
mod comments;
mod compare;
mod discussing;
mod discussions;
mod events;
mod git_http;
mod graphql;
mod history;
mod hub;
mod hunks;
mod issues;
mod issues_rest;
mod link;
mod logs;
mod look;
mod moved;
mod projects;
mod pulls;
mod quota;
mod reactions;
mod registration;
mod repository;
mod rest;
mod reviewing;
mod routes;
mod rulesets;
mod scope;
mod shape;
mod state;
mod sub_issues;
mod suggestions;
mod talk;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;

use crate::fault::Fault;
use crate::http::{RequestLog, Server, lock};
use crate::webhook::{Style, Webhooks};
pub use actions::RunState;
pub use discussing::{DiscussionState, TalkState};
use hub::{Hub, NewPull, World};
pub use link::SlowLink;
pub use look::{CommentState, CommitState, IssueState, PullRequestState, ReviewState};
pub use reactions::Reacted;
pub use registration::HookConfig;
pub use rulesets::Ruleset;

/// The App that may only read.
pub const READER_APP_ID: u64 = 1001;
/// The App that may write.
pub const WRITER_APP_ID: u64 = 1002;
/// The private key (PEM) of both Apps; made for tests.
pub const APP_PRIVATE_KEY: &str = include_str!("../../data/app_key.pem");
/// The personal access token that may only read.
pub const READER_TOKEN: &str = "ghp_reader_of_the_stand_in";
/// The personal access token that may write.
pub const WRITER_TOKEN: &str = "ghp_writer_of_the_stand_in";
/// The personal access token that may change projects and nothing else.
pub const PROJECT_TOKEN: &str = "ghp_projects_of_the_stand_in";
/// The login under which the writer App and the writer token act.
pub const WRITER_LOGIN: &str = "journeyman[bot]";
/// The login under which the reader App and the reader token act.
pub const READER_LOGIN: &str = "journeyman-reader[bot]";
/// The number of an account, by its login.
pub fn account_number(login: &str) -> u64 {
    shape::number_of(login)
}

const READER_INSTALLATION_ID: u64 = 2001;
const WRITER_INSTALLATION_ID: u64 = 2002;

/// How to start a [`FakeGitHub`].
#[derive(Debug, Clone, Default)]
pub struct GitHubOptions {
    /// Where bare repositories live; without it a temporary directory.
    pub data_dir: Option<std::path::PathBuf>,
    /// The base of the URLs in its answers, where something before it has another address.
    pub public_url: Option<String>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// Green.
    Success,
    /// Red.
    Failure,
    /// Neither.
    Neutral,
    /// Stopped.
    Cancelled,
}

/// The stand-in. Dropping it stops the server.
pub struct FakeGitHub {
    server: Server,
    hub: Arc<Hub>,
}

impl FakeGitHub {
    /// Starts on a free loopback port.
    ///
    /// # Errors
    /// When no port can be bound, or the data directory cannot be made.
    pub async fn start(options: GitHubOptions) -> anyhow::Result<Self> {
        let log = Arc::new(RequestLog::of("github"));
        let mut hub = None;
        let server = Server::start(Arc::clone(&log), |address| {
            let shared = Arc::new(new_hub(options, log, address)?);
            hub = Some(Arc::clone(&shared));
            Ok(moved::router(Arc::clone(&shared), routes::router(shared)))
        })
        .await?;
        Ok(Self {
            server,
            hub: hub.context("the router was not made")?,
        })
    }

    /// Stops serving and waits for requests and webhooks under way, for a few seconds.
    pub async fn stop(self) {
        self.server.stop().await;
        self.hub.webhooks.stop().await;
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The REST base: `http://127.0.0.1:PORT` or the public URL; GraphQL is `<api_url>/graphql`.
    #[must_use]
    pub fn api_url(&self) -> String {
        self.hub.url.clone()
    }

    /// The git base: repositories are at `<git_url>/<owner>/<name>.git`.
    #[must_use]
    pub fn git_url(&self) -> String {
        format!("{}/git", self.hub.url)
    }

    /// `<git_url>/<repository>.git`.
    #[must_use]
    pub fn clone_url(&self, repository: &str) -> String {
        format!("{}/{repository}.git", self.git_url())
    }

    /// Creates `acme/shop` with one commit on `main`; gives the commit's id. Every person has write permission until
    /// [`Self::set_permission`] says otherwise.
    ///
    /// # Errors
    /// When the name is not `owner/name` or taken, or git fails.
    pub fn create_repository(&self, repository: &str, files: &[(&str, &str)]) -> anyhow::Result<String> {
        self.hub.create_repository(repository, files)
    }

    /// Adds a person's commit to a branch (new ones start at the default branch); gives its id. Sends `push`.
    ///
    /// # Errors
    /// When there is no such repository, or git fails.
    pub fn commit(
        &self,
        repository: &str,
        branch: &str,
        message: &str,
        files: &[(&str, &str)],
    ) -> anyhow::Result<String> {
        self.hub.commit(repository, branch, message, files)
    }

    /// The checks that must pass before a merge into a branch.
    ///
    /// # Errors
    /// When there is no such repository.
    pub fn require_checks(&self, repository: &str, branch: &str, checks: &[&str]) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        let checks = checks.iter().map(|check| (*check).to_owned()).collect();
        let required = &mut world.repo(repository)?.required_checks;
        required.insert(branch.to_owned(), checks);
        Ok(())
    }

    /// Renames or transfers a repository; calls by the old name are redirected.
    ///
    /// # Errors
    /// When there is no such repository, or the new name is taken.
    pub fn rename_repository(&self, old: &str, new: &str) -> anyhow::Result<()> {
        self.hub.rename(old, new)
    }

    /// Where webhooks go and what they are signed with; until then none are sent.
    pub fn set_webhook(&self, url: &str, secret: &str) {
        self.hub.webhooks.set_target(url, secret);
    }

    /// `none`, `read`, `write` or `admin` for a person.
    ///
    /// # Errors
    /// When there is no such repository.
    pub fn set_permission(&self, repository: &str, login: &str, permission: &str) -> anyhow::Result<()> {
        let mut world = self.hub.world();
        world
            .repo(repository)?
            .permissions
            .insert(login.to_owned(), permission.to_owned());
        Ok(())
    }

    /// Completes checks (name, conclusion, output) of a commit; sends `check_run` for each, then one `check_suite`.
    ///
    /// # Errors
    /// When there is no such repository.
    pub fn run_checks(
        &self,
        repository: &str,
        sha: &str,
        checks: &[(&str, Conclusion, &str)],
    ) -> anyhow::Result<()> {
        self.hub.run_checks(repository, sha, checks)
    }

    /// A person merges: a real merge commit in the repository, whose id is given. Sends `pull_request` closed, then `push`.
    ///
    /// # Errors
    /// When there is no such pull request, it is closed or a draft, or it conflicts.
    pub fn merge(&self, repository: &str, number: u64, by: &str) -> anyhow::Result<String> {
        self.hub.merge(repository, number, by)
    }

    /// A person closes without merging. Sends `pull_request` closed.
    ///
    /// # Errors
    /// When there is no such pull request, or it is closed already.
    pub fn close(&self, repository: &str, number: u64, by: &str) -> anyhow::Result<()> {
        self.hub.close(repository, number, by)
    }

    /// A person reviews; `state` is `approved`, `changes_requested` or `commented`. Sends `pull_request_review`.
    ///
    /// # Errors
    /// When there is no such pull request, or its author approves.
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

    /// The same with comments at lines of the head: path, line and text.
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
        let lines: Vec<talk::OnLines<'_>> = lines.iter().map(talk::OnLines::one).collect();
        self.hub
            .review(repository, number, by, (state, body), &lines)
            .map(drop)
    }

    /// The id that the next object gets: a review takes one, then each of its comments.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.hub.world().next_id()
    }

    /// A person comments on an issue or pull request; gives the comment's id. Sends `issue_comment`.
    ///
    /// # Errors
    /// When there is no such issue or pull request.
    pub fn comment_as(&self, repository: &str, number: u64, by: &str, body: &str) -> anyhow::Result<u64> {
        Ok(self.hub.comment(repository, number, by, body)?.id)
    }

    /// A person changes a comment's text. Sends `issue_comment` edited.
    ///
    /// # Errors
    /// When there is no such repository or comment.
    pub fn edit_comment_as(
        &self,
        repository: &str,
        comment: u64,
        by: &str,
        body: &str,
    ) -> anyhow::Result<()> {
        self.hub.edit_comment(repository, comment, by, body)
    }

    /// A person opens a pull request from an existing branch; gives its number. Sends `pull_request` opened.
    ///
    /// # Errors
    /// When there is no such repository or branch.
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

    /// Sends every recorded webhook again, with the same delivery ids.
    pub fn redeliver_all(&self) {
        self.hub.webhooks.redeliver_all();
    }

    /// Answers coming requests with an error.
    pub fn fail_next(&self, fault: Fault) {
        self.hub.log.fail_next(fault);
    }

    /// Delays every answer.
    pub fn set_delay(&self, delay: Duration) {
        self.hub.log.set_delay(delay);
    }

    /// Stops the clock at this instant, in the form of the header `Date`.
    pub fn set_date(&self, date: &'static str) {
        self.hub.log.set_date(date);
    }

    /// Lists show a new comment, review, issue or pull request only after this long, as the real service's do for up to
    /// 5 s; it can be read by its own address at once.
    pub fn set_list_lag(&self, lag: Duration) {
        self.hub.log.set_list_lag(lag);
    }

    /// Sends packs over such a line from now on.
    pub fn set_link(&self, link: link::SlowLink) {
        lock(&self.hub.line).set(link);
    }

    /// How many calls an hour the rate limit allows; 5,000 until then.
    pub fn set_rate_limit(&self, calls: u64) {
        lock(&self.hub.quota).set_limit(calls);
    }
}

fn new_hub(options: GitHubOptions, log: Arc<RequestLog>, address: SocketAddr) -> anyhow::Result<Hub> {
    let (root, temporary) = match options.data_dir {
        Some(directory) => (directory, None),
        None => {
            let directory = tempfile::Builder::new().prefix("journeyman-github-").tempdir()?;
            (directory.path().to_path_buf(), Some(directory))
        }
    };
    std::fs::create_dir_all(&root)?;
    Ok(Hub {
        log,
        webhooks: Webhooks::start(Style::GitHub)?,
        url: options.public_url.unwrap_or_else(|| format!("http://{address}")),
        root: root.canonicalize()?,
        world: Mutex::new(World::default()),
        pushes: tokio::sync::Mutex::new(()),
        early: Mutex::default(),
        line: Mutex::default(),
        quota: Mutex::default(),
        _temporary: temporary,
    })
}
