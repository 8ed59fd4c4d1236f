//! Services for the duration of one command, on free ports. They work only on the requests of that command.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use api::Client;
use bootstrap::{
    rules::{ConfiguredInstances, RulesBook},
    settings,
};
use domain::InstanceName;
use ingest::{DryRound, IngestMode};
use serde::{Deserialize, de::IgnoredAny};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::local::{LocalServices, PreparedServices, StartPlan};

/// Configuration of such services.
pub(super) struct OneShotServices {
    /// Rules file of the only repository; absent: the rules of the settings.
    pub(super) rules: Option<PathBuf>,
    /// Settings file.
    pub(super) file: Option<PathBuf>,
    /// Folder for data.
    pub(super) data: PathBuf,
    /// Settings with precedence over the file and the environment, as environment variables.
    pub(super) more: Vec<(String, String)>,
    /// Parts of ingest to start.
    pub(super) extent: IngestMode,
}

impl OneShotServices {
    /// Starts the services, runs the work and stops the services. The first signal cancels the token of the work. `None` when a signal
    /// arrived before the work started.
    pub(super) async fn run<T>(
        self,
        work: impl AsyncFnOnce(Client, CancellationToken) -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        self.run_with_ingest(async |client, _, shutdown| work(client, shutdown).await)
            .await
    }

    /// Variant of [`OneShotServices::run`] for work that also needs the settings of ingest.
    pub(super) async fn run_with_ingest<T>(
        self,
        work: impl AsyncFnOnce(Client, ingest::Config, CancellationToken) -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        // The binding keeps the temporary folder until the services have stopped: a drop removes it.
        let folder = self.only_rules()?;
        let [shutdown, at_once] = bootstrap::listen_for_signals();
        let plan = self.plan(folder.as_ref())?;
        let starting = async {
            let prepared = PreparedServices::new(plan).await?;
            let config = prepared.ingest()?;
            anyhow::Ok((Box::pin(prepared.serve()).await?, config))
        };
        let Some(started) = shutdown.run_until_cancelled(Box::pin(starting)).await else {
            return Ok(None);
        };
        let (local, config): (LocalServices, _) = started?;
        let client = Client::new(&local.url, local.token.clone())?;
        let worked = Box::pin(work(client, config, shutdown)).await;
        // The second signal drops the future, which still stops NATS and Redis.
        at_once.run_until_cancelled(local.stop()).await.transpose()?;
        worked.map(Some)
    }

    /// Runs one dry-run round of all polls; `None` when a signal arrives first.
    pub(super) async fn preview_round(self) -> anyhow::Result<Option<DryRound>> {
        let folder = self.only_rules()?;
        let [shutdown, _] = bootstrap::listen_for_signals();
        let plan = self.plan(folder.as_ref())?;
        let round = async {
            let prepared = PreparedServices::new(plan).await?;
            let previewed = match prepared.ingest() {
                Ok(config) => Box::pin(ingest::run_dry_round(&config)).await,
                Err(error) => Err(error.into()),
            };
            // The servers end even when the settings are invalid.
            prepared.end().await;
            previewed
        };
        shutdown.run_until_cancelled(Box::pin(round)).await.transpose()
    }

    fn plan(self, folder: Option<&TempDir>) -> Result<StartPlan, settings::Error> {
        let mut environment = build_environment(folder.map(TempDir::path))?;
        environment.extend(self.more);
        Ok(StartPlan {
            file: self.file,
            environment,
            data: self.data,
            free_ports: true,
            extent: self.extent,
        })
    }

    /// Temporary rules directory with the one file, so that the services touch no other repository.
    fn only_rules(&self) -> anyhow::Result<Option<TempDir>> {
        let Some(rules) = &self.rules else {
            return Ok(None);
        };
        let folder = tempfile::tempdir()?;
        let name = rules.file_name().context("--config must name a file")?;
        // The loader reads only files with the extension .yaml or .yml.
        let target = folder.path().join(name).with_extension("yaml");
        std::fs::copy(rules, target).with_context(|| format!("cannot read {}", rules.display()))?;
        let connections = read_connections(self.file.as_deref())?;
        read_valid_rules(folder.path(), rules, &connections)?;
        Ok(Some(folder))
    }
}

/// Instances that the settings name. The services read their other settings.
pub(super) fn read_connections(file: Option<&Path>) -> anyhow::Result<ConfiguredInstances> {
    let InstanceNames { github, jira, folder } = settings::load_process_settings(file)?;
    Ok(ConfiguredInstances {
        github: github.into_keys().collect(),
        jira: jira.into_keys().collect(),
        folders: folder.into_keys().collect(),
    })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InstanceNames {
    github: BTreeMap<InstanceName, IgnoredAny>,
    jira: BTreeMap<InstanceName, IgnoredAny>,
    folder: BTreeMap<InstanceName, IgnoredAny>,
}

/// Reads the rules of a folder, and fails for a file with a problem. Such a file disables its repository, and the ticket would
/// appear to belong to none.
pub(super) fn read_valid_rules(
    folder: &Path,
    rules: &Path,
    connections: &ConfiguredInstances,
) -> anyhow::Result<RulesBook> {
    let book = RulesBook::read(folder, connections)?;
    match book.problems().first() {
        None => Ok(book),
        Some(found) => {
            let line = if found.line == 0 {
                String::new()
            } else {
                format!(":{}", found.line)
            };
            bail!("{}{line} {}: {}", rules.display(), found.key, found.problem)
        }
    }
}

/// Process environment with the rules directory, if there is one. Webhook secrets are random unless set, because no outside peer can
/// reach these short-lived listeners.
fn build_environment(rules: Option<&Path>) -> Result<Vec<(String, String)>, settings::Error> {
    let mut environment = settings::read_environment()?;
    let rules = rules.map(|rules| ("JOURNEYMAN__RULES__DIR".to_owned(), rules.display().to_string()));
    environment.extend(rules);
    for key in [
        "JOURNEYMAN__INGEST__GITHUB_WEBHOOK_SECRETS",
        "JOURNEYMAN__INGEST__JIRA_WEBHOOK_SECRETS",
    ] {
        if !environment.iter().any(|(name, _)| name == key) {
            environment.push((key.to_owned(), uuid::Uuid::new_v4().simple().to_string()));
        }
    }
    Ok(environment)
}
