//! The stand-ins as a separate process. Its orders and answers are one JSON object per line.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use testkit::fixture;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{StandInVendors, VendorAddresses};

/// Order to the stand-ins.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum StandInOrder {
    /// Sends webhooks to ingest from now on.
    SendWebhooks {
        /// Base URL of ingest.
        url: String,
    },
    /// Creates a ticket as a user.
    FileTicket {
        /// Title of the ticket.
        summary: String,
        /// Text of the ticket.
        description: String,
    },
    /// Transitions a ticket as a user.
    Move {
        /// Key of the ticket.
        key: String,
        /// Name of the target status.
        status: String,
    },
    /// Reports a CI result for a commit.
    ReportChecks {
        /// Id of the commit.
        sha: String,
        /// True if the tests passed.
        passed: bool,
        /// Output of the tests.
        output: String,
    },
    /// Merges a pull request as a user.
    Merge {
        /// Number of the pull request.
        number: u64,
    },
    /// Reads the state without a change.
    Look {
        /// Key of the ticket.
        key: String,
    },
}

/// Answer of the stand-ins.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum StandInAnswer {
    /// Addresses of the started stand-ins.
    Started(VendorAddresses),
    /// Completed order, with the new ticket's key.
    Done {
        /// Key of the new ticket; empty for other orders.
        key: String,
    },
    /// State around a ticket.
    State(VendorState),
    /// Refused order with its reason.
    Refused {
        /// Reason of the refusal.
        problem: String,
    },
}

/// State of the external services, as a user sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct VendorState {
    /// Pull requests of the repository, oldest first.
    pub pull_requests: Vec<PullRequestSummary>,
    /// Status of the ticket.
    pub status: String,
    /// Texts of the ticket's comments, oldest first.
    pub comments: Vec<String>,
    /// URLs of the ticket's remote links.
    pub links: Vec<String>,
    /// Requests that the vendors or the capability table forbid.
    pub violations: Vec<String>,
}

/// Pull request, as a user sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PullRequestSummary {
    /// Number in the repository.
    pub number: u64,
    /// Title as plain text.
    pub title: String,
    /// URL of the web page.
    pub url: String,
    /// Name of the head branch.
    pub branch: String,
    /// Commit id of the head.
    pub head: String,
    /// True until it is ready.
    pub draft: bool,
    /// True after the merge.
    pub merged: bool,
}

/// Process of the stand-ins. It ends with its standard input, so it cannot outlive its owner.
pub struct StandIns {
    /// Addresses of the stand-ins.
    pub outside: VendorAddresses,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl StandIns {
    /// Starts this program as the stand-ins. The repository has the files of a folder, or the fixture's.
    ///
    /// # Errors
    /// When the stand-ins do not start.
    pub async fn start(repository: Option<&Path>) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["demo", "stand-ins"])
            .args(repository)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // In a separate process group, Ctrl-C reaches only the owner; the closed pipe then ends the
            // stand-ins.
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().context("cannot start the stand-ins")?;
        let input = child.stdin.take().context("stdin")?;
        let mut output = BufReader::new(child.stdout.take().context("stdout")?).lines();
        match next_answer(&mut output).await? {
            StandInAnswer::Started(outside) => Ok(Self {
                outside,
                child,
                input,
                output,
            }),
            StandInAnswer::Refused { problem } => anyhow::bail!("{problem}"),
            other => anyhow::bail!("the stand-ins did not start: {other:?}"),
        }
    }

    /// Sends an order and waits for the answer.
    ///
    /// # Errors
    /// When the stand-ins refuse or have ended.
    pub async fn ask(&mut self, ask: &StandInOrder) -> anyhow::Result<StandInAnswer> {
        let line = format!("{}\n", serde_json::to_string(ask)?);
        self.input.write_all(line.as_bytes()).await?;
        match next_answer(&mut self.output).await? {
            StandInAnswer::Refused { problem } => anyhow::bail!("{problem}"),
            answer => Ok(answer),
        }
    }

    /// Reads the state around a ticket.
    ///
    /// # Errors
    /// As for [`StandIns::ask`].
    pub async fn look(&mut self, key: &str) -> anyhow::Result<VendorState> {
        match self.ask(&StandInOrder::Look { key: key.to_owned() }).await? {
            StandInAnswer::State(state) => Ok(state),
            other => anyhow::bail!("no state: {other:?}"),
        }
    }

    /// Stops the process and reaps it.
    pub async fn stop(mut self) {
        drop(self.input);
        let _ = tokio::time::timeout(std::time::Duration::from_secs(5), self.child.wait()).await;
    }
}

async fn next_answer(output: &mut Lines<BufReader<ChildStdout>>) -> anyhow::Result<StandInAnswer> {
    let line = output.next_line().await?.context("the stand-ins have ended")?;
    Ok(serde_json::from_str(&line)?)
}

/// Serves the stand-ins in their process until standard input ends.
///
/// # Errors
/// When an answer cannot be written.
pub async fn serve_stand_ins(repository: Option<PathBuf>) -> anyhow::Result<()> {
    let (stage, outside) = match StandInStage::start(repository.as_deref()).await {
        Ok(started) => started,
        Err(error) => {
            let problem = format!("{error:#}");
            return write_answer(&StandInAnswer::Refused { problem }).await;
        }
    };
    write_answer(&StandInAnswer::Started(outside)).await?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let answer = serde_json::from_str(&line)
            .map_err(anyhow::Error::from)
            .and_then(|ask| stage.play(ask));
        write_answer(&answer.unwrap_or_else(|error| StandInAnswer::Refused {
            problem: error.to_string(),
        }))
        .await?;
    }
    Ok(())
}

async fn write_answer(answer: &StandInAnswer) -> anyhow::Result<()> {
    let mut output = tokio::io::stdout();
    output
        .write_all(format!("{}\n", serde_json::to_string(answer)?).as_bytes())
        .await?;
    Ok(output.flush().await?)
}

struct StandInStage(StandInVendors);

impl StandInStage {
    async fn start(repository: Option<&Path>) -> anyhow::Result<(Self, VendorAddresses)> {
        // Declared outside the branch, because `files` borrows from it.
        let read;
        let files: Vec<(&str, &str)> = if let Some(folder) = repository {
            read = read_folder(folder)?;
            let text = read.iter().map(|(path, text)| (path.as_str(), text.as_str()));
            text.collect()
        } else {
            fixture::list_shop_files()
        };
        let vendors = StandInVendors::start_with(&files).await?;
        let outside = vendors.outside().clone();
        Ok((Self(vendors), outside))
    }

    fn play(&self, ask: StandInOrder) -> anyhow::Result<StandInAnswer> {
        let mut key = String::new();
        match ask {
            StandInOrder::SendWebhooks { url } => self.0.send_webhooks(&url),
            StandInOrder::FileTicket { summary, description } => {
                key = self
                    .0
                    .jira
                    .create_issue(fixture::PROJECT, &summary, &description, "Bug", &[]);
            }
            StandInOrder::Move { key, status } => drop(self.0.jira.move_issue(&key, &status, "ada")?),
            StandInOrder::ReportChecks { sha, passed, output } => {
                self.0.report_tests(&sha, passed, &output)?;
            }
            StandInOrder::Merge { number } => {
                drop(self.0.github.merge(fixture::REPOSITORY, number, "grace")?)
            }
            StandInOrder::Look { key } => return Ok(StandInAnswer::State(self.look(&key))),
        }
        Ok(StandInAnswer::Done { key })
    }

    fn look(&self, key: &str) -> VendorState {
        let pulls = self
            .0
            .github
            .pull_requests(fixture::REPOSITORY)
            .into_iter()
            .map(|pull| PullRequestSummary {
                number: pull.number,
                title: pull.title,
                url: pull.url,
                branch: pull.head,
                head: pull.head_sha,
                draft: pull.draft,
                merged: pull.merged,
            });
        VendorState {
            pull_requests: pulls.collect(),
            status: self.0.jira.status(key).unwrap_or_default(),
            comments: self
                .0
                .jira
                .comments(key)
                .into_iter()
                .map(|comment| comment.text)
                .collect(),
            links: self
                .0
                .jira
                .remote_links(key)
                .into_iter()
                .map(|link| link.url)
                .collect(),
            violations: self.0.violations(),
        }
    }
}

/// Reads all text files of a folder by relative path, without `.git`.
fn read_folder(folder: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).with_context(|| format!("cannot read {}", next.display()))? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with(".git") {
                open.push(path);
            } else if path.is_file() {
                let name = path.strip_prefix(folder)?.display().to_string();
                let text = std::fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                files.push((name, text));
            }
        }
    }
    Ok(files)
}
