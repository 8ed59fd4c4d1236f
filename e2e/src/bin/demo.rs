//! The demo: one ticket from a person's move on Jira to a merged pull request, over real parts, with a live timeline.

use std::{future::Future, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, bail, ensure};
use bootstrap::now;
use clap::{Parser, ValueEnum};
use domain::{Fact, RunId, TicketKey, Timestamp};
use e2e::{
    Dialect, Processes, ci,
    standins::{Answer, Ask, PullRequest, StandIns, State},
};
use futures::StreamExt;
use journeyman::{
    api::Client,
    local::{Plan, Prepared, Servers},
    timeline,
};
use tempfile::TempDir;
use testkit::fixture;

const SCRIPTED_PATIENCE: Duration = Duration::from_secs(60);
const MODEL_PATIENCE: Duration = Duration::from_secs(900);
const POLL: Duration = Duration::from_millis(25);

/// Plays one ticket to a merged pull request.
#[derive(Parser)]
struct Arguments {
    /// Who thinks: the script, or a real model (key in `ANTHROPIC_API_KEY` or `OPENAI_API_KEY`)
    #[arg(long, value_enum, default_value = "scripted")]
    model: Model,
    /// The model's name
    #[arg(long)]
    model_name: Option<String>,
    /// Where the model is, for compatible servers
    #[arg(long)]
    model_base_url: Option<String>,
    /// Play on the files of this folder instead of the built-in project
    #[arg(long)]
    repository: Option<PathBuf>,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Model {
    Scripted,
    Anthropic,
    Openai,
}

#[derive(clap::Subcommand)]
enum Role {
    /// Be the stand-ins (started by the demo itself)
    #[command(hide = true)]
    StandIns { repository: Option<PathBuf> },
}

#[tokio::main]
async fn main() -> ExitCode {
    bootstrap::install_tls_provider();
    let arguments = Arguments::parse();
    if let Some(Role::StandIns { repository }) = arguments.role {
        return finish(e2e::standins::serve(repository).await);
    }
    let interrupted = async { tokio::signal::ctrl_c().await.ok() };
    tokio::select! {
        played = Box::pin(play(arguments)) => finish(played),
        _ = interrupted => {
            say("interrupted; everything that was started is ended");
            ExitCode::from(130)
        }
    }
}

fn finish(outcome: anyhow::Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("demo failed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "the demo is its output")]
fn say(line: &str) {
    println!("{line}");
}

/// Everything that runs.
struct Play {
    standins: StandIns,
    client: Client,
    folder: TempDir,
    patience: Duration,
    start: Timestamp,
    /// Last field: the servers outlive what talks to them.
    _servers: Servers,
}

async fn play(arguments: Arguments) -> anyhow::Result<()> {
    let patience = if arguments.model == Model::Scripted {
        SCRIPTED_PATIENCE
    } else {
        MODEL_PATIENCE
    };
    say("starting nats-server, redis-server, the stand-ins and four services on free loopback ports");
    let started = now();
    let folder = tempfile::tempdir()?;
    let mut standins = StandIns::start(arguments.repository.as_ref()).await?;
    let environment = environment(&arguments, &standins, &folder)?;
    let plan = Plan {
        file: None,
        environment,
        data: folder.path().join("data"),
        free_ports: true,
    };
    let prepared = Prepared::new(plan).await?;
    let client = Client::new(&prepared.url, prepared.token.clone())?;
    let (environment, url) = (prepared.environment.clone(), prepared.url.clone());
    let servers = prepared.release();
    let processes = Processes::start(environment, folder.path()).await?;
    standins.ask(&Ask::SendWebhooks { url }).await?;
    say(&format!(
        "ready after {} ms\n",
        now().unix_ms() - started.unix_ms()
    ));

    let mut play = Play {
        standins,
        client,
        folder,
        patience,
        start: now(),
        _servers: servers,
    };
    let verdict = Box::pin(play.through()).await?;
    processes.stop().await.context("the services did not drain")?;
    play.standins.stop().await;
    say(&verdict);
    Ok(())
}

fn environment(
    arguments: &Arguments,
    standins: &StandIns,
    folder: &TempDir,
) -> anyhow::Result<Vec<(String, String)>> {
    let rules = folder.path().join("rules");
    std::fs::create_dir_all(&rules)?;
    let (owner, name) = fixture::REPOSITORY.split_once('/').context("owner/name")?;
    let project = fixture::PROJECT;
    let text = format!(
        "repo: {{owner: {owner}, name: {name}}}\njira: {{project_key: {project}}}\nagent: {{review_status: In Review}}\n"
    );
    std::fs::write(rules.join("shop.yaml"), text)?;
    let dialect = if arguments.model == Model::Openai {
        Dialect::OpenAi
    } else {
        Dialect::Anthropic
    };
    let mut environment = standins.outside.environment(dialect, &rules);
    if arguments.model == Model::Scripted {
        return Ok(environment);
    }
    let (variable, name, base) = match dialect {
        Dialect::Anthropic => (
            "ANTHROPIC_API_KEY",
            "claude-sonnet-4-5",
            "https://api.anthropic.com",
        ),
        Dialect::OpenAi => ("OPENAI_API_KEY", "gpt-5", "https://api.openai.com/v1"),
    };
    let key = std::env::vars()
        .find(|(name, _)| name == variable)
        .map(|(_, key)| key);
    let key = key.with_context(|| format!("{variable} must hold the model's key"))?;
    let name = arguments.model_name.clone().unwrap_or_else(|| name.to_owned());
    let base = arguments
        .model_base_url
        .clone()
        .unwrap_or_else(|| base.to_owned());
    environment.retain(|(name, _)| !name.starts_with("JOURNEYMAN__MODEL__"));
    for (key, value) in [
        ("DIALECT", dialect.as_str().to_owned()),
        ("NAME", name),
        ("BASE_URL", base),
        ("API_KEY", key),
    ] {
        environment.push((format!("JOURNEYMAN__MODEL__{key}"), value));
    }
    Ok(environment)
}

impl Play {
    /// Plays the story and gives the last line, made of the stand-ins' final state alone.
    async fn through(&mut self) -> anyhow::Result<String> {
        let (summary, description) = fixture::ticket();
        let filed = Ask::FileTicket {
            summary: summary.to_owned(),
            description: description.to_owned(),
        };
        let Answer::Done { key } = self.standins.ask(&filed).await? else {
            bail!("no ticket")
        };
        self.start = now();
        self.tell(
            "ada",
            &format!("files {key} \"{summary}\" and moves it to Ready for Agent"),
        );
        self.standins
            .ask(&Ask::Move {
                key: key.clone(),
                status: "Ready for Agent".to_owned(),
            })
            .await?;
        self.follow(&key, 0).await?;

        let pull = self
            .look_until(&key, "an open draft pull request", |state| {
                state.pull_requests.first().cloned()
            })
            .await?;
        self.tell(
            "github",
            &format!("#{} is a draft at {}", pull.number, &pull.head[..12]),
        );
        let (base_passed, head_passed) = self.check_base_and_head(&pull).await?;
        self.follow(&key, 1).await?;
        let is_ready = |state: &State| state.pull_requests.first().filter(|pull| !pull.draft).cloned();
        if head_passed {
            self.look_until(&key, "the pull request marked ready", is_ready)
                .await?;
        }
        ensure!(
            !base_passed,
            "the tests pass at the base already: nothing shows that the change was needed"
        );
        ensure!(head_passed, "the tests fail at the head of the pull request");
        self.tell("grace", &format!("reviews and merges #{}", pull.number));
        self.standins.ask(&Ask::Merge { number: pull.number }).await?;
        self.follow(&key, 2).await?;
        self.look_until(&key, "the ticket Done", |state| {
            (state.status == "Done").then_some(())
        })
        .await?;
        self.conclude(&key).await
    }

    /// Plays CI for real: the project's tests at the base and at the head, from a clone over git's HTTP protocol.
    async fn check_base_and_head(&mut self, pull: &PullRequest) -> anyhow::Result<(bool, bool)> {
        let clone = self.folder.path().join("ci");
        let url = format!("{}/{}.git", self.standins.outside.github_git, fixture::REPOSITORY);
        self.git(&["clone", "--quiet", &url, &clone.display().to_string()])
            .await?;
        let checkout = clone.display().to_string();
        let (base_passed, _) = ci(&clone).await?;
        self.tell("ci", &format!("tests at the base: {}", verdict(base_passed)));
        self.git(&["-C", &checkout, "checkout", "--quiet", &pull.head])
            .await?;
        let (head_passed, output) = ci(&clone).await?;
        self.tell("ci", &format!("tests at the head: {}", verdict(head_passed)));
        self.standins
            .ask(&Ask::ReportChecks {
                sha: pull.head.clone(),
                passed: head_passed,
                output,
            })
            .await?;
        Ok((base_passed, head_passed))
    }

    /// Prints the journal of the ticket's nth run as it comes, to its end.
    async fn follow(&mut self, key: &str, nth: usize) -> anyhow::Result<()> {
        let ticket = TicketKey::jira(key)?;
        let client = self.client.clone();
        let run: RunId = self
            .wait_for("the run", async || {
                let runs = client.runs(Some(&ticket)).await.ok()?;
                runs.get(nth)?.id.parse().ok()
            })
            .await?;
        let mut events = std::pin::pin!(self.client.follow(&run).await?);
        let deadline = tokio::time::Instant::now() + self.patience;
        while let Ok(Some(entry)) = tokio::time::timeout_at(deadline, events.next()).await {
            let entry = entry?;
            if let Some(line) = timeline::line(&entry, self.start) {
                say(&line);
            }
            if let Fact::RunFinished { .. } = entry.fact {
                return Ok(());
            }
        }
        bail!("{run} did not end within {} s", self.patience.as_secs())
    }

    async fn look_until<T>(
        &mut self,
        key: &str,
        what: &str,
        look: impl Fn(&State) -> Option<T>,
    ) -> anyhow::Result<T> {
        let deadline = tokio::time::Instant::now() + self.patience;
        loop {
            if let Some(found) = look(&self.standins.look(key).await?) {
                return Ok(found);
            }
            ensure!(
                tokio::time::Instant::now() < deadline,
                "{what}: not seen within {} s",
                self.patience.as_secs()
            );
            tokio::time::sleep(POLL).await;
        }
    }

    async fn wait_for<T>(&self, what: &str, look: impl AsyncFnMut() -> Option<T>) -> anyhow::Result<T> {
        testkit::eventually(what, self.patience, look).await
    }

    /// Reads the final state and says what a person would find.
    async fn conclude(&mut self, key: &str) -> anyhow::Result<String> {
        let state = self.standins.look(key).await?;
        let [pull] = state.pull_requests.as_slice() else {
            bail!("{} pull requests instead of one", state.pull_requests.len())
        };
        say(&format!("\npull request  {}  \"{}\"\n", pull.url, pull.title));
        let checkout = self.folder.path().join("ci").display().to_string();
        say(&self
            .git(&["-C", &checkout, "diff", &format!("origin/HEAD...{}", pull.head)])
            .await?);
        say(&format!(
            "jira          {key} is {}, linked to {}",
            state.status,
            state.links.join(", ")
        ));
        for comment in &state.comments {
            say(&format!(
                "  comment     {}",
                comment.replace('\n', "\n              ")
            ));
        }
        ensure!(
            state.violations.is_empty(),
            "protocols were broken: {:#?}",
            state.violations
        );
        ensure!(pull.merged, "the pull request is not merged");
        ensure!(
            state.links == [pull.url.clone()],
            "the ticket is not linked to the pull request"
        );
        Ok(format!(
            "demo ok ticket={key} pr={} base=failed head=passed status={}",
            pull.url, state.status
        ))
    }

    fn git<'a>(&self, arguments: &[&'a str]) -> impl Future<Output = anyhow::Result<String>> + use<'a> {
        let mut command = tokio::process::Command::new("git");
        let credentials = format!("http.extraHeader=Authorization: Basic {}", basic_auth());
        command
            .args(["-c", &credentials])
            .args(arguments)
            .kill_on_drop(true);
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        async move {
            let output = command.output().await.context("git cannot be run")?;
            let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
            ensure!(output.status.success(), "git: {complaint}");
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
    }

    fn tell(&self, who: &str, what: &str) {
        say(&timeline::row(now().unix_ms() - self.start.unix_ms(), who, what));
    }
}

fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "failed" }
}

/// The person's own read access to the stand-in forge.
fn basic_auth() -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(format!("x-access-token:{}", testkit::github::READER_TOKEN))
}
