//! A running reporter with a real queue, and fakes of GitHub and Jira.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    process::Stdio,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use domain::{
    AnyRecord, BranchPush, CommitId, ObjectRef, OutboundAction, OutboundOutcome, OutboundRequest,
    PullRequestRecord, PullRequestRef, PullRequestStatus, ReactionSubject, RepositoryName, RunFence, RunId,
    TicketKey, Trigger, TriggerChannel, TriggerKey, TriggerReason,
};
use grant::{Grant, GrantAudience, GrantSigner};
use queue::{KeyValueBucket, Queue, RecordKey};
use reporter::{Config, LfsSettings, Settings, SigningSettings};
use secrecy::{ExposeSecret, SecretString};
use testkit::{FakeGitHub, FakeJira, GitHubOptions, JiraOptions, NatsServer, github, jira, poll_until};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

/// Limit of every wait, which only a failing test reaches.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
const RULES: &str = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n";
const AGENT_RULES: &str = "agent:\n  review_status: In Review\n";

/// Options of a story.
pub(crate) struct RigOptions {
    /// Number of tickets that are reported concurrently.
    pub(crate) slots: usize,
    /// Longest time of one clone, in seconds.
    pub(crate) clone_limit_s: u64,
    /// YAML that is added to the repository's rules, below `agent`.
    pub(crate) agent: &'static str,
    /// YAML that is added to the rules, below `jira`.
    pub(crate) jira: &'static str,
    /// Keys of the service projects of Jira.
    pub(crate) service_projects: Vec<String>,
    /// Program that replaces the inspector.
    pub(crate) inspector: Option<PathBuf>,
    /// True if the writer is a GitHub App instead of a token.
    pub(crate) as_app: bool,
    /// True if the settings have a token for projects.
    pub(crate) has_project_token: bool,
    /// Address of GitHub for git; by default the fake's.
    pub(crate) git_url: Option<String>,
    /// Address of a Redis that other replicas share.
    pub(crate) redis: Option<String>,
    /// Signatures of commits.
    pub(crate) signing: SigningSettings,
    /// Limits of Git LFS.
    pub(crate) lfs: LfsSettings,
}

impl Default for RigOptions {
    fn default() -> Self {
        Self {
            slots: 8,
            clone_limit_s: 600,
            agent: "",
            jira: "",
            service_projects: Vec::new(),
            inspector: None,
            as_app: false,
            has_project_token: false,
            git_url: None,
            redis: None,
            signing: SigningSettings::default(),
            lfs: LfsSettings::default(),
        }
    }
}

/// All parts of a story.
pub(crate) struct Rig {
    pub(crate) github: FakeGitHub,
    pub(crate) jira: FakeJira,
    pub(crate) queue: Queue,
    pub(crate) ticket: TicketKey,
    pub(crate) address: SocketAddr,
    signer: GrantSigner,
    shutdown: CancellationToken,
    reporter: Option<JoinHandle<anyhow::Result<()>>>,
    folder: tempfile::TempDir,
    pub(crate) nats: NatsServer,
}

impl Rig {
    /// Starts all parts, with the repository `acme/shop` and one ticket.
    pub(crate) async fn start() -> Self {
        Self::start_with(RigOptions::default()).await
    }

    /// Starts all parts with other options.
    pub(crate) async fn start_with(options: RigOptions) -> Self {
        let nats = NatsServer::start().await.unwrap();
        let github = FakeGitHub::start(GitHubOptions::default()).await.unwrap();
        github
            .create_repository(
                "acme/shop",
                &[("README.md", "# Shop\n"), ("cart.py", "total = 1\n")],
            )
            .unwrap();
        let jira = FakeJira::start(JiraOptions {
            service_projects: options.service_projects,
            ..JiraOptions::default()
        })
        .await
        .unwrap();
        let ticket = jira.create_issue("ENG", "Totals are wrong", "They are.", "Bug", &[]);
        let folder = tempfile::tempdir().unwrap();
        let rules = folder.path().join("configs");
        std::fs::create_dir(&rules).unwrap();
        std::fs::write(
            rules.join("shop.yaml"),
            format!("{RULES}{}{AGENT_RULES}{}", options.jira, options.agent),
        )
        .unwrap();
        let keys = grant::generate_key_pair();
        let queue_settings = queue::Settings {
            url: nats.url(),
            ..queue::Settings::default()
        };
        let config = Config {
            git: git::FetchSettings::default(),
            nats: queue_settings.clone(),
            redis: lease::Settings {
                // Nothing listens on the discard port of a loopback address.
                url: options.redis.unwrap_or_else(|| "redis://127.0.0.1:9".to_owned()),
                ..lease::Settings::default()
            },
            telemetry: bootstrap::telemetry::Settings::default(),
            tls: None,
            rules: bootstrap::rules::Settings {
                dir: rules,
                ..bootstrap::rules::Settings::default()
            },
            reporter: Settings {
                data_dir: folder.path().join("data"),
                slots: options.slots,
                clone_limit_s: options.clone_limit_s,
                allow_unconfined: options.inspector.is_some(),
                inspector: options.inspector,
                unknown_window_s: 3,
                signing: options.signing,
                lfs: options.lfs,
                list_lag_s: 2,
                grant_keys: BTreeMap::from([(keys.id.clone(), keys.public_key.clone())]),
                ..Settings::default()
            },
            github_writer: ::github::Settings {
                api_url: github.api_url(),
                git_url: options.git_url.unwrap_or_else(|| github.git_url()),
                token: (!options.as_app).then(|| SecretString::from(github::WRITER_TOKEN)),
                app_id: options.as_app.then_some(github::WRITER_APP_ID),
                project_token: options
                    .has_project_token
                    .then(|| SecretString::from(github::PROJECT_TOKEN)),
                private_key: options.as_app.then(|| github::APP_PRIVATE_KEY.into()),
                ..::github::Settings::default()
            },
            jira_writer: Some(::jira::Settings {
                base_url: jira.url(),
                email: jira::WRITER_EMAIL.to_owned(),
                api_token: SecretString::from(jira::WRITER_API_TOKEN),
                ..::jira::Settings::default()
            }),
            github: BTreeMap::new(),
            jira: BTreeMap::new(),
            folder: BTreeMap::new(),
            ingest: reporter::RetentionSettings::default(),
        };
        let queue = Queue::connect(&queue_settings, "test").await.unwrap();
        queue.ensure_topology().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let reporter = tokio::spawn(Box::pin(bootstrap::serve_app::<reporter::ReporterApp>(
            config,
            listener,
            shutdown.clone(),
        )));
        Self {
            github,
            jira,
            queue,
            ticket: TicketKey::jira(&ticket).unwrap(),
            address,
            signer: GrantSigner::new(&keys.id, &keys.private_key).unwrap(),
            shutdown,
            reporter: Some(reporter),
            folder,
            nats,
        }
    }

    pub(crate) fn run(&self) -> RunId {
        RunId::new(self.ticket.clone(), 1)
    }

    pub(crate) fn report(&self, position: u64, request: OutboundAction) -> OutboundRequest {
        OutboundRequest {
            id: self.run().call(position).into(),
            ticket: self.ticket.clone(),
            run: Some(self.run()),
            fence: RunFence::default(),
            at: bootstrap::read_wall_clock(),
            progress: None,
            request,
        }
    }

    /// Writes the records and triggers that make a report's targets belong to the ticket.
    pub(crate) async fn remember(&self, ticket: &TicketKey, request: &OutboundAction) {
        let json = serde_json::to_value(request).unwrap();
        let named = [
            &json["pull_request"],
            &json["on"],
            &json["question"]["pull_request"],
        ];
        let named = named
            .into_iter()
            .find_map(|named| serde_json::from_value::<PullRequestRef>(named.clone()).ok());
        match (request, named) {
            (OutboundAction::PullRequestReviewed(reviewed), _) => {
                let change = serde_json::json!({"type": "change", "pull_request": reviewed.pull_request,
                    "head": reviewed.head, "is_here": true, "base_branch": "main", "author": "ann", "files": []});
                self.ask_for(ticket, "review", change).await;
            }
            (OutboundAction::React(react), _) if react.to.is_comment() => {
                let seen = self.trigger(ticket, TriggerReason::RetryRequested, Some(react.to.clone()));
                self.queue.triggers().append(&seen).await.unwrap();
            }
            (_, Some(pull_request)) => self.record(ticket, &pull_request).await,
            (_, None) => {}
        }
    }

    /// Writes the reporter's record of a pull request that it opened.
    pub(crate) async fn record(&self, ticket: &TicketKey, pull_request: &PullRequestRef) {
        let record = PullRequestRecord {
            pull_request: pull_request.clone(),
            ticket: ticket.clone(),
            head: None,
            status: PullRequestStatus::Open,
        };
        self.queue.pull_requests().keep(&record).await.unwrap();
    }

    /// Appends the trigger of a job, as ingest pins it.
    pub(crate) async fn ask_for(&self, ticket: &TicketKey, job: &str, about: serde_json::Value) {
        let text = serde_json::json!({"summary": "s", "description": "", "kind": "", "priority": "", "labels": [],
            "comments": [], "url": "", "sha256": ""});
        let reason = serde_json::json!({"type": "job_requested", "job": job, "repository": "acme/shop", "text": text,
            "rules": {}, "about": about});
        let asked = self.trigger(ticket, serde_json::from_value(reason).unwrap(), None);
        self.queue.triggers().append(&asked).await.unwrap();
    }

    fn trigger(&self, ticket: &TicketKey, reason: TriggerReason, seen: Option<ReactionSubject>) -> Trigger {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let key = format!("{ticket}:{}", LAST.fetch_add(1, Ordering::Relaxed));
        Trigger {
            ticket: ticket.clone(),
            key: TriggerKey::new(key),
            at: bootstrap::read_wall_clock(),
            source: TriggerChannel::Webhook,
            actor: None,
            seen,
            reason,
        }
    }

    /// Requests a report and waits for its outcome.
    pub(crate) async fn settled(&self, report: &OutboundRequest) -> OutboundOutcome {
        self.queue.reports().append(report).await.unwrap();
        let triggers = self.queue.triggers();
        let look = async || {
            let known = triggers.read_after(&report.ticket, 0).await.unwrap();
            known.into_iter().find_map(|(_, trigger)| match trigger.reason {
                TriggerReason::ReportSettled(settled) if settled.report == report.id => Some(settled.outcome),
                _ => None,
            })
        };
        poll_until("the report is settled", DEADLINE * 3, look)
            .await
            .unwrap()
    }

    /// Removes the records of settled reports, so that every report of the ticket is delivered again. Waits for the
    /// end.
    pub(crate) async fn deliver_everything_again(&self, reports: &[&OutboundRequest]) {
        let table = self.queue.table::<AnyRecord>(KeyValueBucket::Effects);
        let cursor = RecordKey::cursor(&self.ticket);
        for report in reports {
            table
                .delete(RecordKey::outcome(&self.ticket, &report.id))
                .await
                .unwrap();
        }
        table.delete(&cursor).await.unwrap();
        self.queue.reports().wake(&self.ticket).await.unwrap();
        let last = self.queue.reports().last_sequence(&self.ticket).await.unwrap();
        let look = async || {
            let (cursor, _) = table.get(&cursor).await.unwrap()?;
            (cursor.0["sequence"].as_u64() == last).then_some(())
        };
        poll_until("the cursor is back", DEADLINE, look).await.unwrap();
    }

    /// Appends bytes that are not a report to the ticket's log, as a broken writer would.
    pub(crate) async fn append_garbage(&self, bytes: &[u8]) {
        let ticket = self.ticket.to_string().replace(':', "=3A");
        let subject = format!("journeyman.reports.{ticket}.garbage");
        testkit::publish_raw(&self.nats.url(), &subject, bytes)
            .await
            .unwrap();
    }

    pub(crate) fn grant_for(&self, repository: &str) -> String {
        self.grant_of(1, repository)
    }

    /// Signs a grant of another run of the ticket.
    pub(crate) fn grant_of(&self, run: u64, repository: &str) -> String {
        let grant = Grant {
            audience: GrantAudience::Gate,
            run: RunId::new(self.ticket.clone(), run),
            repository: repository.parse().unwrap(),
            workspace: None,
            fence: RunFence::default(),
            network: Vec::new(),
        };
        self.signer
            .sign(&grant, bootstrap::read_wall_clock())
            .unwrap()
            .expose_secret()
            .to_owned()
    }

    pub(crate) fn gate_url(&self) -> String {
        format!("http://{}/git/acme/shop.git", self.address)
    }

    /// Clones through the gate.
    pub(crate) async fn clone(&self) -> PathBuf {
        let target = self.folder.path().join("clone");
        let header = format!(
            "http.extraHeader=Authorization: Bearer {}",
            self.grant_for("acme/shop")
        );
        run_git(&[
            "-c",
            &header,
            "clone",
            "--quiet",
            &self.gate_url(),
            target.to_str().unwrap(),
        ])
        .await;
        target
    }

    /// Commits these files on top of main, and returns the packed and stored change.
    pub(crate) async fn change(&self, branch: &str, files: &[(&str, &str)]) -> BranchPush {
        self.change_as(branch, files, "fix: totals (ENG-1)").await
    }

    /// Reports a push, and waits for its outcome.
    pub(crate) async fn settle_push(&self, position: u64, push: BranchPush) -> OutboundOutcome {
        let report = self.report(position, OutboundAction::PushBranch(push));
        self.settled(&report).await
    }

    /// Number of pushes that the stand-in has received.
    pub(crate) fn count_pushes(&self) -> usize {
        let requests = self.github.requests();
        let is_push = |request: &&testkit::RecordedRequest| {
            request.method == "POST" && request.path.ends_with("/git-receive-pack")
        };
        requests.iter().filter(is_push).count()
    }

    /// Commits the change with another message.
    pub(crate) async fn change_as(&self, branch: &str, files: &[(&str, &str)], message: &str) -> BranchPush {
        let here = self.branch_off(branch).await;
        self.commit(&here, files, &["-m", message]).await;
        self.packed(&here, branch).await
    }

    /// Returns the path of the reporter's mirror of `acme/shop`.
    pub(crate) fn mirror_path(&self) -> PathBuf {
        self.folder.path().join("data/mirrors/acme/shop.git")
    }

    /// Returns the path of the clone.
    pub(crate) fn clone_path(&self) -> String {
        self.folder.path().join("clone").to_str().unwrap().to_owned()
    }

    /// Clones, and creates a branch on top of main.
    pub(crate) async fn branch_off(&self, branch: &str) -> String {
        let clone = self.folder.path().join("clone");
        let clone = if clone.exists() { clone } else { self.clone().await };
        let here = clone.to_str().unwrap().to_owned();
        run_git(&["-C", &here, "checkout", "--quiet", "-B", branch, "origin/main"]).await;
        here
    }

    /// Writes files and commits them as our account, with further arguments of `git commit`. Empty content removes a
    /// file.
    pub(crate) async fn commit(&self, here: &str, files: &[(&str, &str)], arguments: &[&str]) {
        for (path, content) in files {
            let path = std::path::Path::new(here).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            if content.is_empty() {
                std::fs::remove_file(path).unwrap();
            } else {
                std::fs::write(path, content).unwrap();
            }
        }
        run_git(&["-C", here, "add", "--all"]).await;
        let author = domain::CommitAuthor::journeyman();
        let name = format!("user.name={}", author.name());
        let address = format!("user.email={}", author.address());
        let commit = ["-C", here, "-c", &name, "-c", &address, "commit", "--quiet"];
        run_git(&[&commit[..], arguments].concat()).await;
    }

    /// Packs and stores the branch of the clone, ready for a push.
    pub(crate) async fn packed(&self, here: &str, branch: &str) -> BranchPush {
        let clone = PathBuf::from(here);
        let id = |text: String| text.trim().parse::<CommitId>().unwrap();
        let base = id(run_git(&["-C", here, "rev-parse", "origin/main"]).await);
        let head = id(run_git(&["-C", here, "rev-parse", "HEAD"]).await);
        let pack = git::BareRepository::open(&clone.join(".git"))
            .unwrap()
            .pack(
                std::slice::from_ref(&head),
                std::slice::from_ref(&base),
                usize::MAX,
            )
            .unwrap();
        let pack: ObjectRef = self.queue.objects().put(pack.into()).await.unwrap();
        let repository: RepositoryName = "acme/shop".parse().unwrap();
        BranchPush {
            scope: None,
            merge: None,
            repository,
            branch: branch.to_owned(),
            base,
            head,
            pack,
            expected: None,
        }
    }

    /// Stops the reporter. Fails the test if it did not end well or broke a protocol.
    pub(crate) async fn stop(&mut self) {
        self.shutdown.cancel();
        let reporter = self.reporter.take().unwrap();
        tokio::time::timeout(DEADLINE, reporter)
            .await
            .expect("the reporter stops")
            .unwrap()
            .unwrap();
        assert_eq!(self.github.violations(), Vec::<String>::new());
        assert_eq!(self.jira.violations(), Vec::<String>::new());
    }
}

/// Runs git without the machine's configuration, and returns its output.
pub(crate) async fn run_git(args: &[&str]) -> String {
    let output = try_git(args).await;
    output.unwrap_or_else(|problem| panic!("git {args:?}: {problem}"))
}

/// Runs git for calls that may fail.
pub(crate) async fn try_git(args: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Returns the whole response to one GET, as text.
pub(crate) async fn http_get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
