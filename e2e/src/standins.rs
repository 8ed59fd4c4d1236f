//! The stand-ins as a process of their own, told what people do by one JSON object a line.

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

use crate::{Outside, Vendors};

/// What the stand-ins are asked to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// Send webhooks to ingest at this base URL.
    SendWebhooks {
        /// Base URL.
        url: String,
    },
    /// A person files a ticket.
    FileTicket {
        /// Title.
        summary: String,
        /// Body.
        description: String,
    },
    /// A person moves a ticket.
    Move {
        /// The ticket.
        key: String,
        /// Where to.
        status: String,
    },
    /// CI reports on a commit.
    ReportChecks {
        /// The commit.
        sha: String,
        /// The result.
        passed: bool,
        /// What CI printed.
        output: String,
    },
    /// A person merges a pull request.
    Merge {
        /// Its number.
        number: u64,
    },
    /// Nothing; the state is wanted.
    Look {
        /// The ticket.
        key: String,
    },
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum Answer {
    /// Up, at these addresses.
    Started(Outside),
    /// Done; the new ticket's key, where one was made.
    Done {
        /// The ticket's key.
        key: String,
    },
    /// The state.
    State(State),
    /// Not possible.
    Refused {
        /// Why.
        problem: String,
    },
}

/// The outside as a person sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct State {
    /// Every pull request.
    pub pull_requests: Vec<PullRequest>,
    /// The ticket's status.
    pub status: String,
    /// The ticket's comments.
    pub comments: Vec<String>,
    /// The ticket's links.
    pub links: Vec<String>,
    /// Broken protocols.
    pub violations: Vec<String>,
}

/// A pull request as a person sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Its page.
    pub url: String,
    /// Its branch.
    pub branch: String,
    /// Its head commit.
    pub head: String,
    /// Not ready yet.
    pub draft: bool,
    /// A person merged it.
    pub merged: bool,
}

/// The stand-ins' process; it ends with its standard input, so it cannot outlive us.
pub struct StandIns {
    /// Where they are.
    pub outside: Outside,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl StandIns {
    /// Starts this program again as the stand-ins, with the repository's files from a folder or the fixture's.
    ///
    /// # Errors
    /// When they do not start.
    pub async fn start(repository: Option<&Path>) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["demo", "stand-ins"])
            .args(repository)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A Ctrl-C reaches the owner first; the pipe ends them with it.
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().context("cannot start the stand-ins")?;
        let input = child.stdin.take().context("stdin")?;
        let mut output = BufReader::new(child.stdout.take().context("stdout")?).lines();
        match next_answer(&mut output).await? {
            Answer::Started(outside) => Ok(Self {
                outside,
                child,
                input,
                output,
            }),
            Answer::Refused { problem } => anyhow::bail!("{problem}"),
            other => anyhow::bail!("the stand-ins did not start: {other:?}"),
        }
    }

    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// When the stand-ins refuse or have ended.
    pub async fn ask(&mut self, ask: &Ask) -> anyhow::Result<Answer> {
        let line = format!("{}\n", serde_json::to_string(ask)?);
        self.input.write_all(line.as_bytes()).await?;
        match next_answer(&mut self.output).await? {
            Answer::Refused { problem } => anyhow::bail!("{problem}"),
            answer => Ok(answer),
        }
    }

    /// The state around one ticket.
    ///
    /// # Errors
    /// As for [`StandIns::ask`].
    pub async fn look(&mut self, key: &str) -> anyhow::Result<State> {
        match self.ask(&Ask::Look { key: key.to_owned() }).await? {
            Answer::State(state) => Ok(state),
            other => anyhow::bail!("no state: {other:?}"),
        }
    }

    /// Ends the process and reaps it.
    pub async fn stop(mut self) {
        drop(self.input);
        let _ = tokio::time::timeout(std::time::Duration::from_secs(5), self.child.wait()).await;
    }
}

async fn next_answer(output: &mut Lines<BufReader<ChildStdout>>) -> anyhow::Result<Answer> {
    let line = output.next_line().await?.context("the stand-ins have ended")?;
    Ok(serde_json::from_str(&line)?)
}

/// The other side: serves the stand-ins until standard input ends.
///
/// # Errors
/// When they cannot be started.
pub async fn serve(repository: Option<PathBuf>) -> anyhow::Result<()> {
    let (stage, outside) = match Stage::start(repository.as_deref()).await {
        Ok(started) => started,
        Err(error) => {
            let problem = format!("{error:#}");
            return write_answer(&Answer::Refused { problem }).await;
        }
    };
    write_answer(&Answer::Started(outside)).await?;
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let answer = serde_json::from_str(&line)
            .map_err(anyhow::Error::from)
            .and_then(|ask| stage.play(ask));
        write_answer(&answer.unwrap_or_else(|error| Answer::Refused {
            problem: error.to_string(),
        }))
        .await?;
    }
    Ok(())
}

async fn write_answer(answer: &Answer) -> anyhow::Result<()> {
    let mut output = tokio::io::stdout();
    output
        .write_all(format!("{}\n", serde_json::to_string(answer)?).as_bytes())
        .await?;
    Ok(output.flush().await?)
}

struct Stage(Vendors);

impl Stage {
    async fn start(repository: Option<&Path>) -> anyhow::Result<(Self, Outside)> {
        let read;
        let files: Vec<(&str, &str)> = if let Some(folder) = repository {
            read = read_folder(folder)?;
            let text = read.iter().map(|(path, text)| (path.as_str(), text.as_str()));
            text.collect()
        } else {
            fixture::files()
        };
        let vendors = Vendors::start_with(&files).await?;
        let outside = vendors.outside().clone();
        Ok((Self(vendors), outside))
    }

    fn play(&self, ask: Ask) -> anyhow::Result<Answer> {
        let mut key = String::new();
        match ask {
            Ask::SendWebhooks { url } => self.0.send_webhooks(&url),
            Ask::FileTicket { summary, description } => {
                key = self
                    .0
                    .jira
                    .create_issue(fixture::PROJECT, &summary, &description, "Bug", &[]);
            }
            Ask::Move { key, status } => drop(self.0.jira.move_issue(&key, &status, "ada")?),
            Ask::ReportChecks { sha, passed, output } => {
                use testkit::github::Conclusion::{Failure, Success};
                let conclusion = if passed { Success } else { Failure };
                self.0
                    .github
                    .run_checks(fixture::REPOSITORY, &sha, &[("test", conclusion, &output)])?;
            }
            Ask::Merge { number } => drop(self.0.github.merge(fixture::REPOSITORY, number, "grace")?),
            Ask::Look { key } => return Ok(Answer::State(self.look(&key))),
        }
        Ok(Answer::Done { key })
    }

    fn look(&self, key: &str) -> State {
        let pulls = self
            .0
            .github
            .pull_requests(fixture::REPOSITORY)
            .into_iter()
            .map(|pull| PullRequest {
                number: pull.number,
                title: pull.title,
                url: pull.url,
                branch: pull.head,
                head: pull.head_sha,
                draft: pull.draft,
                merged: pull.merged,
            });
        State {
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

/// Every text file of a folder by its relative path, `.git` left out.
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
