//! Story of one ticket: the users' actions at the stand-ins, and the timeline from the API.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use api::Client;
use bootstrap::read_wall_clock;
use domain::{Fact, RunId, StopReason, TicketKey, Timestamp};
use futures::StreamExt;
use testkit::{fixture, github::StandInPullRequest, poll_until};
use tokio::process::Command;

use super::vendors::StandInVendors;
use crate::timeline;

const SCRIPTED_PATIENCE: Duration = Duration::from_secs(60);
const MODEL_PATIENCE: Duration = Duration::from_secs(900);
/// Time limit of one run of the project's tests.
const TESTS_LIMIT: Duration = Duration::from_secs(60);
/// Programs that CI of the demo runs.
const PROGRAMS: [&str; 2] = ["git", "python3"];

/// Story with its stand-ins, and the printer of its timeline.
pub(super) struct DemoStory {
    vendors: StandInVendors,
    client: Client,
    checkout: PathBuf,
    patience: Duration,
    start: Timestamp,
    print: fn(&str),
}

impl DemoStory {
    pub(super) fn new(
        vendors: StandInVendors,
        client: Client,
        folder: &Path,
        is_scripted: bool,
        print: fn(&str),
    ) -> Self {
        Self {
            vendors,
            client,
            checkout: folder.join("ci"),
            patience: if is_scripted {
                SCRIPTED_PATIENCE
            } else {
                MODEL_PATIENCE
            },
            start: read_wall_clock(),
            print,
        }
    }

    /// Plays the story and returns the last line. The line depends on the stand-ins' final state alone.
    pub(super) async fn play(&mut self) -> anyhow::Result<String> {
        self.clone_repository().await?;
        ensure!(
            !self.check("base", "origin/HEAD").await?.0,
            "the tests pass at the base already: nothing shows that a change is needed"
        );
        let (summary, _) = fixture::describe_shop_ticket();
        let key = self.vendors.file_ticket();
        self.start = read_wall_clock();
        self.print_row(
            "ada",
            &format!("files {key} \"{summary}\" and moves it to Ready for Agent"),
        );
        self.vendors.ask_for_work(&key)?;
        let reason = self.follow(&key, 0).await?;
        ensure!(
            reason == StopReason::Completed,
            "the run ended without a pull request: {}",
            reason.as_str()
        );
        let pull = self
            .wait_for("an open draft pull request", || self.first_pull_request())
            .await?;
        self.print_row(
            "github",
            &format!("#{} is a draft at {:.12}", pull.number, pull.head_sha),
        );
        self.check_head(&pull).await?;
        self.follow(&key, 1).await?;
        self.wait_for("the pull request marked ready", || {
            self.first_pull_request().filter(|pull| !pull.draft)
        })
        .await?;
        self.print_row("grace", &format!("reviews and merges #{}", pull.number));
        self.vendors
            .github
            .merge(fixture::REPOSITORY, pull.number, "grace")?;
        self.follow(&key, 2).await?;
        self.wait_for("the ticket Done", || {
            (self.vendors.jira.status(&key)? == "Done").then_some(())
        })
        .await?;
        self.conclude(&key).await
    }

    fn first_pull_request(&self) -> Option<StandInPullRequest> {
        let pulls = self.vendors.github.pull_requests(fixture::REPOSITORY);
        pulls.into_iter().next()
    }

    /// Clones the repository over git's HTTP protocol, for CI.
    async fn clone_repository(&self) -> anyhow::Result<()> {
        let base = &self.vendors.outside().github_git;
        let url = format!("{base}/{}.git", fixture::REPOSITORY);
        let clone = self.checkout.display().to_string();
        run_git(&["clone", "--quiet", &url, &clone]).await.map(drop)
    }

    /// Runs the project's tests at a commit, as CI does, and returns success and output.
    async fn check(&self, what: &str, commit: &str) -> anyhow::Result<(bool, String)> {
        let checkout = self.checkout.display().to_string();
        run_git(&["-C", &checkout, "fetch", "--quiet"]).await?;
        run_git(&["-C", &checkout, "checkout", "--quiet", "--detach", commit]).await?;
        let (passed, output) = run_ci_tests(&self.checkout).await?;
        let verdict = if passed { "passed" } else { "failed" };
        self.print_row("ci", &format!("tests at the {what}: {verdict}"));
        Ok((passed, output))
    }

    async fn check_head(&self, pull: &StandInPullRequest) -> anyhow::Result<()> {
        let (passed, output) = self.check("head", &pull.head_sha).await?;
        self.vendors.report_tests(&pull.head_sha, passed, &output)?;
        ensure!(passed, "the tests fail at the head of the pull request");
        Ok(())
    }

    /// Prints the journal of the ticket's nth run live and returns the reason of its end.
    async fn follow(&self, key: &str, nth: usize) -> anyhow::Result<StopReason> {
        let ticket = TicketKey::jira(key)?;
        let run: RunId = poll_until("the run", self.patience, async || {
            let runs = self.client.runs().recent(Some(&ticket)).await.ok()?;
            runs.get(nth)?.id.parse().ok()
        })
        .await?;
        let mut events = std::pin::pin!(self.client.runs().follow(&run).await?);
        let deadline = tokio::time::Instant::now() + self.patience;
        while let Ok(Some(entry)) = tokio::time::timeout_at(deadline, events.next()).await {
            let entry = entry?;
            if let Some(line) = timeline::render_entry_line(&entry, self.start) {
                (self.print)(&line);
            }
            if let Fact::RunFinished { reason } = entry.fact {
                return Ok(reason);
            }
        }
        bail!("{run} did not end within {} s", self.patience.as_secs())
    }

    /// Waits for a state of the stand-ins.
    async fn wait_for<T>(&self, what: &str, find: impl Fn() -> Option<T>) -> anyhow::Result<T> {
        poll_until(what, self.patience, async || find()).await
    }

    /// Reads the final state and prints the pull request, the ticket and the comments.
    async fn conclude(&self, key: &str) -> anyhow::Result<String> {
        let pulls = self.vendors.github.pull_requests(fixture::REPOSITORY);
        let [pull] = pulls.as_slice() else {
            bail!("{} pull requests instead of one", pulls.len())
        };
        (self.print)(&format!("\npull request  {}  \"{}\"\n", pull.url, pull.title));
        let checkout = self.checkout.display().to_string();
        let range = format!("origin/HEAD...{}", pull.head_sha);
        (self.print)(&run_git(&["-C", &checkout, "diff", &range]).await?);
        let jira = &self.vendors.jira;
        let status = jira.status(key).unwrap_or_default();
        let links: Vec<String> = jira.remote_links(key).into_iter().map(|link| link.url).collect();
        (self.print)(&format!(
            "jira          {key} is {status}, linked to {}",
            links.join(", ")
        ));
        for comment in jira.comments(key) {
            (self.print)(&format!(
                "  comment     {}",
                comment.text.replace('\n', "\n              ")
            ));
        }
        let violations = self.vendors.violations();
        ensure!(violations.is_empty(), "protocols were broken: {violations:#?}");
        ensure!(pull.merged, "the pull request is not merged");
        ensure!(
            links == [pull.url.clone()],
            "the ticket is not linked to the pull request"
        );
        Ok(format!(
            "demo ok ticket={key} pr={} base=failed head=passed status={status}",
            pull.url
        ))
    }

    fn print_row(&self, who: &str, what: &str) {
        let elapsed_ms = read_wall_clock().unix_ms() - self.start.unix_ms();
        (self.print)(&timeline::render_row(elapsed_ms, who, what));
    }
}

/// Fails early when a program is missing. A missing `python3` would otherwise count as failing tests.
pub(super) async fn require_programs() -> anyhow::Result<()> {
    for program in PROGRAMS {
        match Command::new(program).arg("--version").output().await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!("the demo needs {program}, which is not on PATH: install it and run the demo again")
            }
            Err(error) => return Err(error).with_context(|| format!("{program} cannot be run")),
            Ok(_) => {}
        }
    }
    Ok(())
}

/// Runs git as a user with the reader's token, and returns its output.
async fn run_git(arguments: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    let credentials = format!("http.extraHeader=Authorization: Basic {}", encode_basic_auth());
    command
        .args(["-c", &credentials])
        .args(arguments)
        .kill_on_drop(true);
    // Git must neither ask for a password nor read the user's configuration.
    command
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = command.output().await.context("git cannot be run")?;
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "git: {complaint}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Basic authentication of the reader, as a user who clones.
fn encode_basic_auth() -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(format!("x-access-token:{}", testkit::github::READER_TOKEN))
}

/// Runs the fixture's tests in a folder and returns success and output.
///
/// # Errors
/// When the tests cannot run or take more than a minute.
pub async fn run_ci_tests(folder: &Path) -> anyhow::Result<(bool, String)> {
    let mut command = Command::new("sh");
    // With a real model the tests are its code: they get neither its key nor any other variable of the user.
    let kept = std::env::vars_os().filter(|(name, _)| name == "PATH");
    command
        .args(["-c", fixture::TEST_COMMAND])
        .env_clear()
        .envs(kept)
        .env("HOME", folder)
        .current_dir(folder)
        .kill_on_drop(true);
    let output = tokio::time::timeout(TESTS_LIMIT, command.output())
        .await
        .context("the tests took too long")??;
    let text = [output.stdout, output.stderr].concat();
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    ))
}
