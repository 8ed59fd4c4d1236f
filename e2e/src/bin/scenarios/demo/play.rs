//! Play of one ticket: the users' actions, and the timeline from the API.

use std::{future::Future, path::Path, time::Duration};

use anyhow::{Context, bail, ensure};
use api::Client;
use bootstrap::read_wall_clock;
use domain::{Fact, RunId, StopReason, TicketKey, Timestamp};
use e2e::{
    ReplicaProcesses, run_ci_tests,
    stand_in_process::{PullRequestSummary, StandInAnswer, StandInOrder, StandIns, VendorState},
};
use futures::StreamExt;
use journeyman::{
    local::{BackingServers, PreparedServices, StartPlan},
    timeline,
};
use secrecy::{ExposeSecret, SecretString};
use servers::ScratchFolder;
use testkit::fixture;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::demo::arguments::{Arguments, DemoModel};
use crate::output::print_line;

const SCRIPTED_PATIENCE: Duration = Duration::from_secs(60);
const MODEL_PATIENCE: Duration = Duration::from_secs(900);
const POLL: Duration = Duration::from_millis(25);
/// Prefix of the demo's temporary folders.
const FOLDER_PREFIX: &str = "journeyman-demo-";

/// Running parts of the demo.
pub(crate) struct DemoPlay {
    processes: ReplicaProcesses,
    standins: StandIns,
    console: DemoConsole,
    client: Client,
    folder: ScratchFolder,
    patience: Duration,
    start: Timestamp,
    /// Last field, so that the servers are dropped after their clients.
    _servers: BackingServers,
}

/// Starts all parts into `stage`, plays the story and returns the last line.
pub(crate) async fn play_demo(arguments: &Arguments, stage: &mut Option<DemoPlay>) -> anyhow::Result<String> {
    let play = stage.insert(Box::pin(DemoPlay::start(arguments)).await?);
    Box::pin(play.through()).await
}

impl DemoPlay {
    async fn start(arguments: &Arguments) -> anyhow::Result<Self> {
        if let Some(folder) = &arguments.repository {
            ensure!(
                folder.is_dir(),
                "--repository: {} is not a folder",
                folder.display()
            );
        }
        print_line(
            "starting nats-server, redis-server, the stand-ins and five services on free loopback ports",
        );
        let started = read_wall_clock();
        // The folder of a demo that was killed has the data of its servers, which the next demo removes.
        for left in ScratchFolder::remove_left_behind(FOLDER_PREFIX) {
            print_line(&format!(
                "removed {}: the demo that it belonged to did not end in order",
                left.display()
            ));
        }
        let folder = ScratchFolder::create(FOLDER_PREFIX)?;
        let mut standins = StandIns::start(arguments.repository.as_deref()).await?;
        let environment = arguments.environment(&standins.outside, folder.path())?;
        let plan = StartPlan {
            file: None,
            environment,
            data: folder.path().join("data"),
            free_ports: true,
            ..StartPlan::default()
        };
        let prepared = PreparedServices::new(plan).await?;
        let client = Client::new(&prepared.url, prepared.token.clone())?;
        let (environment, url) = (prepared.environment.clone(), prepared.url.clone());
        let credentials = prepared.credentials.clone();
        let servers = prepared.release();
        let processes = ReplicaProcesses::start(environment, credentials, folder.path()).await?;
        // The webhooks start after the services, so that none of them is lost.
        standins
            .ask(&StandInOrder::SendWebhooks { url: url.clone() })
            .await?;
        let console = DemoConsole::start(&url, arguments.stay.then_some(client.token())).await?;
        print_line(&format!(
            "ready after {} ms\n",
            read_wall_clock().unix_ms() - started.unix_ms()
        ));
        Ok(Self {
            processes,
            standins,
            console,
            client,
            folder,
            patience: if arguments.model == DemoModel::Scripted {
                SCRIPTED_PATIENCE
            } else {
                MODEL_PATIENCE
            },
            start: read_wall_clock(),
            _servers: servers,
        })
    }

    /// Drains the services, then stops the stand-ins, then the servers.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        self.console.stop().await;
        let drained = self.processes.stop().await.context("the services did not drain");
        self.standins.stop().await;
        drained
    }

    /// Plays the story and returns the last line. The line depends on the stand-ins' final state alone.
    async fn through(&mut self) -> anyhow::Result<String> {
        self.clone_repository().await?;
        ensure!(
            !self.check("base", "origin/HEAD").await?.0,
            "the tests pass at the base already: nothing shows that a change is needed"
        );
        let (summary, description) = fixture::describe_shop_ticket();
        let filed = StandInOrder::FileTicket {
            summary: summary.to_owned(),
            description: description.to_owned(),
        };
        let StandInAnswer::Done { key } = self.standins.ask(&filed).await? else {
            bail!("no ticket")
        };
        self.start = read_wall_clock();
        self.tell(
            "ada",
            &format!("files {key} \"{summary}\" and moves it to Ready for Agent"),
        );
        self.standins
            .ask(&StandInOrder::Move {
                key: key.clone(),
                status: "Ready for Agent".to_owned(),
            })
            .await?;
        let reason = self.follow(&key, 0).await?;
        ensure!(
            reason == StopReason::Completed,
            "the run ended without a pull request: {}",
            reason.as_str()
        );
        let pull = self
            .look_until(&key, "an open draft pull request", |state| {
                state.pull_requests.first().cloned()
            })
            .await?;
        self.tell(
            "github",
            &format!("#{} is a draft at {}", pull.number, &pull.head[..12]),
        );
        self.check_head(&pull).await?;
        self.follow(&key, 1).await?;
        self.look_until(&key, "the pull request marked ready", |state| {
            state.pull_requests.first().filter(|pull| !pull.draft).cloned()
        })
        .await?;
        self.tell("grace", &format!("reviews and merges #{}", pull.number));
        self.standins
            .ask(&StandInOrder::Merge { number: pull.number })
            .await?;
        self.follow(&key, 2).await?;
        self.look_until(&key, "the ticket Done", |state| {
            (state.status == "Done").then_some(())
        })
        .await?;
        self.conclude(&key).await
    }

    /// Clones the repository over git's HTTP protocol, for CI.
    async fn clone_repository(&self) -> anyhow::Result<()> {
        let url = format!("{}/{}.git", self.standins.outside.github_git, fixture::REPOSITORY);
        let clone = self.checkout();
        self.git(&["clone", "--quiet", &url, &clone]).await.map(drop)
    }

    /// Runs the project's tests at a commit, as CI does, and returns success and output.
    async fn check(&self, what: &str, commit: &str) -> anyhow::Result<(bool, String)> {
        let checkout = self.checkout();
        self.git(&["-C", &checkout, "fetch", "--quiet"]).await?;
        self.git(&["-C", &checkout, "checkout", "--quiet", "--detach", commit])
            .await?;
        let (passed, output) = run_ci_tests(Path::new(&checkout)).await?;
        let verdict = if passed { "passed" } else { "failed" };
        self.tell("ci", &format!("tests at the {what}: {verdict}"));
        Ok((passed, output))
    }

    async fn check_head(&mut self, pull: &PullRequestSummary) -> anyhow::Result<()> {
        let (passed, output) = self.check("head", &pull.head).await?;
        let sha = pull.head.clone();
        self.standins
            .ask(&StandInOrder::ReportChecks { sha, passed, output })
            .await?;
        ensure!(passed, "the tests fail at the head of the pull request");
        Ok(())
    }

    fn checkout(&self) -> String {
        self.folder.path().join("ci").display().to_string()
    }

    /// Prints the journal of the ticket's nth run live and returns the reason of its end.
    async fn follow(&mut self, key: &str, nth: usize) -> anyhow::Result<StopReason> {
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
            if let Some(line) = timeline::render_entry_line(&entry, self.start) {
                print_line(&line);
            }
            if let Fact::RunFinished { reason } = entry.fact {
                return Ok(reason);
            }
        }
        bail!("{run} did not end within {} s", self.patience.as_secs())
    }

    async fn look_until<T>(
        &mut self,
        key: &str,
        what: &str,
        look: impl Fn(&VendorState) -> Option<T>,
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
        testkit::poll_until(what, self.patience, look).await
    }

    /// Reads the final state and prints the pull request, the ticket and the comments.
    async fn conclude(&mut self, key: &str) -> anyhow::Result<String> {
        let state = self.standins.look(key).await?;
        let [pull] = state.pull_requests.as_slice() else {
            bail!("{} pull requests instead of one", state.pull_requests.len())
        };
        print_line(&format!("\npull request  {}  \"{}\"\n", pull.url, pull.title));
        let checkout = self.checkout();
        print_line(
            &self
                .git(&["-C", &checkout, "diff", &format!("origin/HEAD...{}", pull.head)])
                .await?,
        );
        print_line(&format!(
            "jira          {key} is {}, linked to {}",
            state.status,
            state.links.join(", ")
        ));
        for comment in &state.comments {
            print_line(&format!(
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
        // Git must neither ask for a password nor read the user's configuration.
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
        print_line(&timeline::render_row(
            read_wall_clock().unix_ms() - self.start.unix_ms(),
            who,
            what,
        ));
    }
}

/// Basic authentication of the reader, as a user who clones.
fn basic_auth() -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(format!("x-access-token:{}", testkit::github::READER_TOKEN))
}

/// Console on a free loopback port.
struct DemoConsole {
    shutdown: CancellationToken,
    served: JoinHandle<anyhow::Result<()>>,
}

impl DemoConsole {
    /// Starts the console and prints its URL. It prints the token only if the demo stays open; the token is
    /// valid while the demo runs.
    async fn start(api: &str, token: Option<&SecretString>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        match token {
            Some(token) => print_line(&format!(
                "console at {url}, log in with {}",
                token.expose_secret()
            )),
            None => print_line(&format!("console at {url} (DEMO_ARGS=--stay keeps it running)")),
        }
        let config = pages::Config::of_api(api);
        let shutdown = CancellationToken::new();
        let served = tokio::spawn(Box::pin(pages::serve_console(config, listener, shutdown.clone())));
        Ok(Self { shutdown, served })
    }

    /// Stops the console and waits for its end.
    async fn stop(self) {
        self.shutdown.cancel();
        let _ = self.served.await;
    }
}
