//! Journeyman and its outside, for one story.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use api::Client;
use domain::{Entry, Fact, RunId, StopReason};
use journeyman::{
    credentials::Credentials,
    local::{Local, Plan, Prepared, Servers},
};
use queue::{Queue, Role};
use tempfile::TempDir;
use testkit::{JiraOptions, Step, eventually, fixture};

use crate::{Dialect, Previous, Processes, Vendors, inside::Inside, private::Private, sign_webhook};

/// Longest wait for one thing to happen in a story: far above what it takes, for loaded machines.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the services run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// In this process.
    #[default]
    InProcess,
    /// As processes of their own.
    Processes,
}

/// How a world differs from the usual one.
#[derive(Debug, Default)]
pub struct Options {
    /// Where the services run.
    pub mode: Mode,
    /// How many processes there are of each service, in [`Mode::Processes`]; 0 counts as 1.
    pub replicas: usize,
    /// How the tracker is set up.
    pub jira: JiraOptions,
    /// What the model speaks.
    pub dialect: Dialect,
    /// The model's script; the fixture's when absent.
    pub script: Option<Vec<Step>>,
    /// More YAML for the repository's rules, top-level keys other than `repo` and `jira`.
    pub rules: String,
    /// More files of rules, by name.
    pub more_rules: Vec<(&'static str, String)>,
    /// More settings, as environment variables without `JOURNEYMAN__`; those of `OTEL_` as they are.
    pub settings: Vec<(&'static str, String)>,
    /// Do not send webhooks: the poller is the only door.
    pub no_webhooks: bool,
    /// Everything outside of Journeyman, NATS and Redis included, has a certificate of a private authority; in
    /// [`Mode::Processes`].
    pub private_authority: bool,
    /// Everything inside speaks TLS with certificates of `journeyman certs`; in [`Mode::Processes`].
    pub tls: bool,
    /// Services that begin as another release, in [`Mode::Processes`].
    pub previous: Option<(Previous, Vec<&'static str>)>,
    /// Processes that know of no collector, in [`Mode::Processes`].
    pub untraced: Vec<&'static str>,
    /// A backup that NATS holds before any service starts.
    pub restored: Option<PathBuf>,
}

enum Services {
    InProcess(Local),
    Processes(Processes, Servers),
}

/// Journeyman with its outside.
pub struct World {
    vendors: Vendors,
    /// The API.
    pub client: Client,
    /// Base URL of ingest.
    pub url: String,
    services: Services,
    environment: Vec<(String, String)>,
    credentials: Credentials,
    folder: TempDir,
    inside: Option<Inside>,
    _private: Option<Private>,
}

impl Deref for World {
    type Target = Vendors;

    fn deref(&self) -> &Vendors {
        &self.vendors
    }
}

impl World {
    /// Starts real NATS and Redis, the stand-ins with the fixture's repository, and the services.
    ///
    /// # Errors
    /// When something cannot be started.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        bootstrap::install_tls_provider();
        let folder = tempfile::tempdir()?;
        let script = options.script.unwrap_or_else(fixture::script);
        let (vendors, private) = if options.private_authority {
            let (private, vendors) = Private::start(folder.path(), options.jira, script).await?;
            (vendors, Some(private))
        } else {
            (Vendors::start(options.jira, script).await?, None)
        };
        let rules = write_rules(folder.path(), &options.rules)?;
        for (name, text) in &options.more_rules {
            std::fs::write(rules.join(name), text)?;
        }
        let mut environment = vendors.outside().environment(options.dialect, &rules);
        environment.extend(private.iter().flat_map(Private::environment));
        let inside = match options.tls {
            true => Some(Inside::start(folder.path()).await?),
            false => None,
        };
        environment.extend(inside.iter().flat_map(Inside::environment));
        let more = options
            .settings
            .into_iter()
            .map(|(key, value)| match key.strip_prefix("OTEL_") {
                Some(_) => (key.to_owned(), value),
                None => (format!("JOURNEYMAN__{key}"), value),
            });
        environment.extend(more);
        let plan = Plan {
            file: None,
            environment,
            data: folder.path().join("data"),
            free_ports: true,
            ..Plan::default()
        };
        let prepared = Prepared::new(plan).await?;
        let (url, token, mut environment) = (
            prepared.url.clone(),
            prepared.token.clone(),
            prepared.environment.clone(),
        );
        let mut credentials = prepared.credentials.clone();
        if let Some(inside) = &inside {
            inside.secure(&mut environment, &mut credentials);
        }
        if let Some(backup) = &options.restored {
            let queue = connect(&environment, &credentials, Role::Backup.name()).await?;
            queue.restore(backup, |_| ()).await?;
        }
        let services = match options.mode {
            Mode::InProcess => Services::InProcess(Box::pin(prepared.serve()).await?),
            Mode::Processes => {
                let servers = prepared.release();
                let count = options.replicas.max(1);
                let mut processes =
                    Processes::planned(environment.clone(), credentials.clone(), folder.path(), count)?;
                if let Some((previous, services)) = &options.previous {
                    for service in services {
                        processes.set_release(service, Some(previous.clone()))?;
                    }
                }
                for name in options.untraced {
                    processes.hide_collector(name)?;
                }
                Services::Processes(Box::pin(processes.begin()).await?, servers)
            }
        };
        let url = match &services {
            Services::Processes(processes, _) => processes.url().unwrap_or(url),
            Services::InProcess(_) => url,
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

    /// A setting that the services were started with, by its name without `JOURNEYMAN__`.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let is_it = |key: &str| key.strip_prefix("JOURNEYMAN__") == Some(name);
        let found = self.environment.iter().find(|(key, _)| is_it(key));
        found.map(|(_, value)| value.as_str())
    }

    /// A connection to the world's queue, to look at what is stored.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub async fn queue(&self) -> anyhow::Result<Queue> {
        // Ingest may read everything.
        self.queue_as("ingest").await
    }

    /// A connection to the running NATS with the permissions of a service.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub async fn queue_as(&self, service: &str) -> anyhow::Result<Queue> {
        connect(&self.environment, &self.credentials, service).await
    }

    /// Renews every certificate, with [`Options::tls`].
    ///
    /// # Errors
    /// When there is none.
    pub fn renew_certificates(&self) -> anyhow::Result<()> {
        self.inside.as_ref().context("there are no certificates")?.renew()
    }

    /// The rules file, to change it.
    pub fn rules_file(&self) -> PathBuf {
        self.folder.path().join("rules/shop.yaml")
    }

    /// The folder of logs, in [`Mode::Processes`].
    pub fn logs(&self) -> &Path {
        self.folder.path()
    }

    /// Keeps the folder of logs when the world ends.
    pub fn keep_logs(&mut self) {
        self.folder.disable_cleanup(true);
    }

    /// The processes, in [`Mode::Processes`].
    pub fn processes(&mut self) -> Option<&mut Processes> {
        match &mut self.services {
            Services::InProcess(_) => None,
            Services::Processes(processes, _) => Some(processes),
        }
    }

    /// Files the fixture's ticket; nothing happens yet. Gives its key, e.g. `ENG-1`.
    pub fn file_ticket(&self) -> String {
        let (summary, description) = fixture::ticket();
        self.jira
            .create_issue(fixture::PROJECT, summary, description, "Bug", &[])
    }

    /// Files the fixture's ticket and asks for work; gives its key.
    ///
    /// # Errors
    /// When the workflow forbids it.
    pub fn ask(&self) -> anyhow::Result<String> {
        let key = self.file_ticket();
        self.ask_for_work(&key)?;
        Ok(key)
    }

    /// Waits until a state holds.
    ///
    /// # Errors
    /// When it does not within a minute.
    pub async fn until<T>(&self, what: &str, look: impl AsyncFnMut() -> Option<T>) -> anyhow::Result<T> {
        eventually(what, PATIENCE, look).await
    }

    /// Waits for the nth run (from 0) of a ticket: a Jira key, or the ticket's whole name.
    ///
    /// # Errors
    /// When there is none within a minute.
    pub async fn run(&self, key: &str, nth: usize) -> anyhow::Result<RunId> {
        let ticket = match key.contains(':') {
            true => key.parse()?,
            false => domain::TicketKey::jira(key)?,
        };
        self.until(&format!("run {nth} of {key}"), async || {
            let runs = self.client.runs(Some(&ticket)).await.ok()?;
            runs.get(nth)?.id.parse().ok()
        })
        .await
    }

    /// Waits for the end of a run and gives its whole journal and the reason of its end.
    ///
    /// # Errors
    /// When it does not end within a minute.
    pub async fn finished(&self, run: &RunId) -> anyhow::Result<(Vec<Entry>, StopReason)> {
        self.until(&format!("the end of {run}"), async || {
            let journal = self.client.journal(run).await.ok()?;
            let reason = match &journal.last()?.fact {
                Fact::RunFinished { reason } => reason.clone(),
                _ => return None,
            };
            Some((journal, reason))
        })
        .await
    }

    /// Runs the repository's own tests at the head of its open pull request, as CI would, and reports the result.
    ///
    /// # Errors
    /// When there is no open pull request or the tests cannot be run.
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
        let (passed, output) = ci(checkout.path()).await?;
        let conclusion = if passed {
            testkit::github::Conclusion::Success
        } else {
            testkit::github::Conclusion::Failure
        };
        self.github.run_checks(
            fixture::REPOSITORY,
            &pull.head_sha,
            &[("test", conclusion, &output)],
        )?;
        Ok(passed)
    }

    /// Delivers a webhook with a right signature and gives the status.
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

    /// The reasons of the dead letters, oldest first.
    ///
    /// # Errors
    /// When the API does not answer.
    pub async fn dead_letters(&self) -> anyhow::Result<Vec<String>> {
        let dead = self.client.dead_letters().await?.into_iter();
        Ok(dead
            .map(|letter| format!("{} {}: {}", letter.what, letter.id, letter.reason))
            .collect())
    }

    /// Drains the services and fails on what a story must not leave behind: broken protocols and dead letters.
    ///
    /// # Errors
    /// What was left behind.
    pub async fn stop(self) -> anyhow::Result<()> {
        let dead = self.dead_letters().await?;
        self.stop_with_dead_letters().await?;
        anyhow::ensure!(dead.is_empty(), "dead letters: {dead:#?}");
        Ok(())
    }

    /// [`World::stop`] for stories that expect dead letters.
    ///
    /// # Errors
    /// Broken protocols, or services that do not drain.
    pub async fn stop_with_dead_letters(self) -> anyhow::Result<()> {
        let violations = self.violations();
        match self.services {
            Services::InProcess(local) => local.stop().await?,
            Services::Processes(processes, _servers) => processes.stop().await?,
        }
        anyhow::ensure!(violations.is_empty(), "broken protocols: {violations:#?}");
        Ok(())
    }
}

/// A connection to NATS with the permissions of a user.
async fn connect(
    environment: &[(String, String)],
    credentials: &Credentials,
    user: &str,
) -> anyhow::Result<Queue> {
    /// What every service's settings have.
    #[derive(serde::Deserialize)]
    struct Connection {
        nats: queue::Settings,
    }
    let own = credentials.of(user);
    let connection: Connection = bootstrap::settings::load(None, environment.iter().chain(own).cloned())?;
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

/// Runs the fixture's tests in a folder: whether they passed, and their output.
///
/// # Errors
/// When they cannot be run within a minute.
pub async fn ci(folder: &Path) -> anyhow::Result<(bool, String)> {
    let mut command = tokio::process::Command::new("sh");
    command
        .args(["-c", fixture::TEST_COMMAND])
        .current_dir(folder)
        .kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output())
        .await
        .context("the tests took too long")??;
    let text = [output.stdout, output.stderr].concat();
    Ok((
        output.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    ))
}
