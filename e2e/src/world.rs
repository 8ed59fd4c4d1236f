//! Journeyman and its external services, for one story.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use api::Client;
use domain::{Fact, JournalEntry, RunId, StopReason};
use journeyman::{
    credentials::ServiceCredentials,
    local::{BackingServers, LocalServices, PreparedServices, StartPlan},
};
use queue::{NatsRole, Queue};
use tempfile::TempDir;
use testkit::{JiraOptions, ScriptStep, fixture, poll_until};

use crate::{
    PreviousRelease, ProviderDialect, ReplicaProcesses, StandInVendors, internal_tls::InternalTls,
    private_servers::PrivateServers, run_ci_tests, sign_webhook,
};

// Time limit of one step of a story, far above its duration even on loaded machines.
const PATIENCE: Duration = Duration::from_secs(120);
/// Settings of services that no story kills: a hold on a ticket outlasts a machine that stands still for 20 s. A hold
/// that is lost without a crash would repeat model calls and tool calls, which stories count.
const LONG_HOLDS: [(&str, &str); 2] = [("NATS__ACK_WAIT_MS", "50000"), ("REDIS__TTL_MS", "40000")];

/// Process model of the services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceMode {
    /// Services inside the current process.
    #[default]
    InProcess,
    /// Separate processes of the services.
    Processes,
}

/// Options of a world, as differences from the default.
#[derive(Debug, Default)]
pub struct Options {
    /// Process model of the services.
    pub mode: ServiceMode,
    /// Number of processes of each service, in [`ServiceMode::Processes`]; 0 counts as 1.
    pub replicas: usize,
    /// Options of the Jira stand-in.
    pub jira: JiraOptions,
    /// Protocol of the model.
    pub dialect: ProviderDialect,
    /// Script of the model; the fixture's if absent.
    pub script: Option<Vec<ScriptStep>>,
    /// Additional YAML of the repository's rules, with top-level keys other than `repo` and `jira`.
    pub rules: String,
    /// Additional rules files by name.
    pub more_rules: Vec<(&'static str, String)>,
    /// Additional settings, as environment variables without `JOURNEYMAN__`; `OTEL_` variables keep their
    /// names.
    pub settings: Vec<(&'static str, String)>,
    /// Sends no webhooks, so that polls are the only channel.
    pub no_webhooks: bool,
    /// Gives all connections of Journeyman, including NATS and Redis, certificates of a private authority, in
    /// [`ServiceMode::Processes`].
    pub private_authority: bool,
    /// Uses TLS between all internal parts with certificates of `journeyman certs`, in [`ServiceMode::Processes`].
    pub tls: bool,
    /// Services that start with another release, in [`ServiceMode::Processes`].
    pub previous: Option<(PreviousRelease, Vec<&'static str>)>,
    /// Processes without OpenTelemetry variables, in [`ServiceMode::Processes`].
    pub untraced: Vec<&'static str>,
    /// Backup that is restored into NATS before any service starts.
    pub restored: Option<PathBuf>,
}

enum RunningServices {
    InProcess(LocalServices),
    Processes(ReplicaProcesses, BackingServers),
}

/// Journeyman with its external services.
pub struct TestWorld {
    vendors: StandInVendors,
    /// Client of the API.
    pub client: Client,
    /// Base URL of ingest.
    pub url: String,
    services: RunningServices,
    environment: Vec<(String, String)>,
    credentials: ServiceCredentials,
    folder: TempDir,
    inside: Option<InternalTls>,
    _private: Option<PrivateServers>,
}

impl Deref for TestWorld {
    type Target = StandInVendors;

    fn deref(&self) -> &StandInVendors {
        &self.vendors
    }
}

impl TestWorld {
    /// Starts NATS, Redis, the stand-ins with the fixture's repository, and the services.
    ///
    /// # Errors
    /// When a part cannot start.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        bootstrap::install_tls_provider();
        let folder = tempfile::tempdir()?;
        let script = options.script.unwrap_or_else(fixture::build_shop_script);
        let (vendors, private) = if options.private_authority {
            let (private, vendors) =
                Box::pin(PrivateServers::start(folder.path(), options.jira, script)).await?;
            (vendors, Some(private))
        } else {
            (Box::pin(StandInVendors::start(options.jira, script)).await?, None)
        };
        let rules = write_rules(folder.path(), &options.rules)?;
        for (name, text) in &options.more_rules {
            std::fs::write(rules.join(name), text)?;
        }
        let mut environment = vendors.outside().environment(options.dialect, &rules);
        environment.extend(private.iter().flat_map(PrivateServers::environment));
        let inside = if options.tls {
            Some(InternalTls::start(folder.path()).await?)
        } else {
            None
        };
        environment.extend(inside.iter().flat_map(InternalTls::environment));
        if options.mode == ServiceMode::InProcess {
            let holds = LONG_HOLDS.iter();
            environment.extend(holds.map(|(key, value)| (format!("JOURNEYMAN__{key}"), (*value).to_owned())));
        }
        let more = options
            .settings
            .into_iter()
            .map(|(key, value)| match key.strip_prefix("OTEL_") {
                Some(_) => (key.to_owned(), value),
                None => (format!("JOURNEYMAN__{key}"), value),
            });
        environment.extend(more);
        let plan = StartPlan::on_free_ports(environment, folder.path().join("data"));
        let prepared = Box::pin(PreparedServices::new(plan)).await?;
        let (url, token, mut environment) = (
            prepared.url.clone(),
            prepared.token.clone(),
            prepared.environment.clone(),
        );
        let mut credentials = prepared.credentials.clone();
        if let Some(inside) = &inside {
            inside.secure(&mut environment, &mut credentials);
        }
        // The backup is restored before a service creates or reads a stream.
        if let Some(backup) = &options.restored {
            let queue = connect_queue(&environment, &credentials, NatsRole::Backup.name()).await?;
            queue.restore(backup, |_| ()).await?;
        }
        let services = match options.mode {
            ServiceMode::InProcess => RunningServices::InProcess(Box::pin(prepared.serve()).await?),
            ServiceMode::Processes => {
                // The servers keep running while the services become separate processes.
                let servers = prepared.release();
                let count = options.replicas.max(1);
                let mut processes = ReplicaProcesses::planned(
                    environment.clone(),
                    credentials.clone(),
                    folder.path(),
                    count,
                )?;
                if let Some((previous, services)) = &options.previous {
                    for service in services {
                        processes.set_release(service, Some(previous.clone()))?;
                    }
                }
                for name in options.untraced {
                    processes.hide_collector(name)?;
                }
                RunningServices::Processes(Box::pin(processes.begin()).await?, servers)
            }
        };
        let url = match &services {
            RunningServices::Processes(processes, _) => processes.url().unwrap_or(url),
            RunningServices::InProcess(_) => url,
        };
        if !options.no_webhooks {
            vendors.send_webhooks(&url);
        }
        let client = Client::new(&url, token)?;
        Ok(Self {
            vendors,
            client,
            url,
            services,
            environment,
            credentials,
            folder,
            inside,
            _private: private,
        })
    }

    /// Setting of the services, by its name without `JOURNEYMAN__`.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let is_it = |key: &str| key.strip_prefix("JOURNEYMAN__") == Some(name);
        let found = self.environment.iter().find(|(key, _)| is_it(key));
        found.map(|(_, value)| value.as_str())
    }

    /// Connects to the world's queue, to read the stored records.
    ///
    /// # Errors
    /// When NATS cannot be reached.
    pub async fn queue(&self) -> anyhow::Result<Queue> {
        // Of all services, ingest has the widest permission to read.
        self.queue_as("ingest").await
    }

    /// Connects to NATS with the permissions of a service.
    ///
    /// # Errors
    /// When NATS cannot be reached.
    pub async fn queue_as(&self, service: &str) -> anyhow::Result<Queue> {
        connect_queue(&self.environment, &self.credentials, service).await
    }

    /// Renews every certificate of [`Options::tls`].
    ///
    /// # Errors
    /// When the world has no certificates, or the renewal fails.
    pub fn renew_certificates(&self) -> anyhow::Result<()> {
        self.inside.as_ref().context("there are no certificates")?.renew()
    }

    /// Path of the rules file, for changes during a story.
    pub fn rules_file(&self) -> PathBuf {
        self.folder.path().join("rules/shop.yaml")
    }

    /// Folder of the logs, in [`ServiceMode::Processes`].
    pub fn logs(&self) -> &Path {
        self.folder.path()
    }

    /// Keeps the folder of the logs after the end of the world.
    pub fn keep_logs(&mut self) {
        self.folder.disable_cleanup(true);
    }

    /// Processes of the services, in [`ServiceMode::Processes`].
    pub fn processes(&mut self) -> Option<&mut ReplicaProcesses> {
        match &mut self.services {
            RunningServices::InProcess(_) => None,
            RunningServices::Processes(processes, _) => Some(processes),
        }
    }

    /// Creates the fixture's ticket, requests work and returns its key.
    ///
    /// # Errors
    /// When the workflow forbids it.
    pub fn ask(&self) -> anyhow::Result<String> {
        let key = self.file_ticket();
        self.ask_for_work(&key)?;
        Ok(key)
    }

    /// Waits for a state.
    ///
    /// # Errors
    /// When the state is not reached within two minutes.
    pub async fn until<T>(&self, what: &str, read: impl AsyncFnMut() -> Option<T>) -> anyhow::Result<T> {
        poll_until(what, PATIENCE, read).await
    }

    /// Waits for the nth run (from 0) of a ticket, named by Jira key or full ticket name.
    ///
    /// # Errors
    /// When the run does not start within two minutes.
    pub async fn run(&self, key: &str, nth: usize) -> anyhow::Result<RunId> {
        let ticket = if key.contains(':') {
            key.parse()?
        } else {
            domain::TicketKey::jira(key)?
        };
        self.until(&format!("run {nth} of {key}"), async || {
            let runs = self.client.runs().recent(Some(&ticket)).await.ok()?;
            runs.get(nth)?.id.parse().ok()
        })
        .await
    }

    /// Waits for the end of a run and returns its journal and the reason of its end.
    ///
    /// # Errors
    /// When the run does not end within two minutes.
    pub async fn finished(&self, run: &RunId) -> anyhow::Result<(Vec<JournalEntry>, StopReason)> {
        self.until(&format!("the end of {run}"), async || {
            let journal = self.client.runs().journal(run).await.ok()?;
            let reason = match &journal.last()?.fact {
                Fact::RunFinished { reason } => reason.clone(),
                _ => return None,
            };
            Some((journal, reason))
        })
        .await
    }

    /// Runs the repository's tests at the head of its open pull request, as CI does, and reports the result.
    ///
    /// # Errors
    /// When no pull request is open, or the tests cannot run.
    pub async fn run_ci(&self) -> anyhow::Result<bool> {
        let open = self
            .github
            .pull_requests(fixture::REPOSITORY)
            .into_iter()
            .find(|pull| pull.open);
        let pull = open.context("no open pull request")?;
        let checkout = tempfile::tempdir()?;
        for (path, content) in self.github.branch_files(fixture::REPOSITORY, &pull.head)? {
            let file = checkout.path().join(path);
            std::fs::create_dir_all(file.parent().context("parent")?)?;
            std::fs::write(file, content)?;
        }
        let (passed, output) = run_ci_tests(checkout.path()).await?;
        self.report_tests(&pull.head_sha, passed, &output)?;
        Ok(passed)
    }

    /// Delivers a correctly signed webhook and returns the status.
    ///
    /// # Errors
    /// When ingest does not answer.
    pub async fn deliver(&self, source: &str, event: &str, body: &str) -> anyhow::Result<u16> {
        let (signature, event_header) = match source {
            "github" => ("x-hub-signature-256", "x-github-event"),
            _ => ("x-hub-signature", "x-event"),
        };
        let request = reqwest::Client::new()
            .post(format!("{}/webhooks/{source}", self.url))
            .body(body.to_owned());
        let request = request
            .header(signature, sign_webhook(body.as_bytes()))
            .header(event_header, event)
            .header("x-github-delivery", format!("{:032x}", fastrand::u128(..)))
            .header("content-type", "application/json");
        Ok(request.send().await?.status().as_u16())
    }

    /// Descriptions of the dead letters, oldest first.
    ///
    /// # Errors
    /// When the API does not answer.
    pub async fn dead_letters(&self) -> anyhow::Result<Vec<String>> {
        let dead = self.client.dead_letters().list().await?.into_iter();
        Ok(dead
            .map(|letter| format!("{} {}: {}", letter.what, letter.id, letter.reason))
            .collect())
    }

    /// Stops the services and fails if violations or dead letters remain.
    ///
    /// # Errors
    /// When violations or dead letters remain, or a service does not drain.
    pub async fn stop(self) -> anyhow::Result<()> {
        let dead = self.dead_letters().await?;
        self.stop_with_dead_letters().await?;
        anyhow::ensure!(dead.is_empty(), "dead letters: {dead:#?}");
        Ok(())
    }

    /// Stops the services as [`TestWorld::stop`] does, for stories that expect dead letters.
    ///
    /// # Errors
    /// When violations remain, or a service does not drain.
    pub async fn stop_with_dead_letters(self) -> anyhow::Result<()> {
        // The violations are read first: `stop` drops the stand-ins. They may be the reason of a failed stop.
        let violations = self.violations();
        let stopped = match self.services {
            RunningServices::InProcess(local) => local.stop().await,
            RunningServices::Processes(processes, _servers) => processes.stop().await,
        };
        anyhow::ensure!(violations.is_empty(), "broken protocols: {violations:#?}");
        stopped
    }
}

/// Connects to NATS with the permissions of a user.
async fn connect_queue(
    environment: &[(String, String)],
    credentials: &ServiceCredentials,
    user: &str,
) -> anyhow::Result<Queue> {
    /// Section that the settings of every service contain.
    #[derive(serde::Deserialize)]
    struct ConnectionSettings {
        nats: queue::Settings,
    }
    let own = credentials.of(user);
    let connection: ConnectionSettings =
        bootstrap::settings::load_settings(None, environment.iter().chain(own).cloned())?;
    Ok(Queue::connect(&connection.nats, user).await?)
}

fn write_rules(folder: &Path, more: &str) -> anyhow::Result<PathBuf> {
    let rules = folder.join("rules");
    std::fs::create_dir_all(&rules)?;
    let (owner, name) = fixture::REPOSITORY.split_once('/').context("owner/name")?;
    let text = format!(
        "repo:\n  owner: {owner}\n  name: {name}\njira:\n  project_key: {}\n{more}",
        fixture::PROJECT
    );
    std::fs::write(rules.join("shop.yaml"), text)?;
    Ok(rules)
}
