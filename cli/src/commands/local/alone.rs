//! The services for as long as one command lasts, on free ports: what only this command asks for, nothing comes in.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use api::Client;
use bootstrap::rules::{Connections, RulesBook};
use domain::Instance;
use ingest::{Extent, Look};
use serde::{Deserialize, de::IgnoredAny};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::local::{Local, Plan, Prepared};

/// What the services are started with.
pub(super) struct Alone {
    /// The rules file of the only repository; absent: those of the settings.
    pub(super) rules: Option<PathBuf>,
    /// Settings file.
    pub(super) file: Option<PathBuf>,
    /// Folder for data.
    pub(super) data: PathBuf,
    /// Settings above the file and the environment, as environment variables.
    pub(super) more: Vec<(String, String)>,
    /// How much is started.
    pub(super) extent: Extent,
}

impl Alone {
    /// Starts the services, does the work and ends them. The work gets a token that the first signal cancels; absent: it
    /// came before the work began.
    pub(super) async fn run<T>(
        self,
        work: impl AsyncFnOnce(Client, CancellationToken) -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        let folder = self.only_rules()?;
        let [shutdown, at_once] = bootstrap::signals();
        let plan = self.plan(folder.as_ref());
        let Some(local) = shutdown.run_until_cancelled(Box::pin(Local::start(plan))).await else {
            return Ok(None);
        };
        let local = local?;
        let client = Client::new(&local.url, local.token.clone())?;
        let worked = Box::pin(work(client, shutdown)).await;
        // Dropped at the second signal, it ends NATS and Redis all the same.
        at_once.run_until_cancelled(local.stop()).await.transpose()?;
        worked.map(Some)
    }

    /// Looks once at everything that polls look at, and takes nothing up; absent: a signal came first.
    pub(super) async fn look(self) -> anyhow::Result<Option<Look>> {
        let folder = self.only_rules()?;
        let [shutdown, _] = bootstrap::signals();
        let plan = self.plan(folder.as_ref());
        let looked = async {
            let prepared = Prepared::new(plan).await?;
            let look = match prepared.ingest() {
                Ok(config) => Box::pin(ingest::look(&config)).await,
                Err(error) => Err(error.into()),
            };
            prepared.end().await;
            look
        };
        shutdown.run_until_cancelled(Box::pin(looked)).await.transpose()
    }

    fn plan(self, folder: Option<&TempDir>) -> Plan {
        let mut environment = environment(folder.map(TempDir::path));
        environment.extend(self.more);
        Plan {
            file: self.file,
            environment,
            data: self.data,
            free_ports: true,
            extent: self.extent,
        }
    }

    /// A directory of rules that holds the one file, so that no other repository is touched.
    fn only_rules(&self) -> anyhow::Result<Option<TempDir>> {
        let Some(rules) = &self.rules else {
            return Ok(None);
        };
        let folder = tempfile::tempdir()?;
        let name = rules.file_name().context("--config must name a file")?;
        let target = folder.path().join(name).with_extension("yaml");
        std::fs::copy(rules, target).with_context(|| format!("cannot read {}", rules.display()))?;
        let connections = connections(self.file.as_deref())?;
        refuse_problems(folder.path(), rules, &connections)?;
        Ok(Some(folder))
    }
}

/// The instances that the settings name; what else they say of them is for the services.
pub(super) fn connections(file: Option<&Path>) -> anyhow::Result<Connections> {
    let Instances { github, jira, folder } = bootstrap::settings::load(file, std::env::vars())?;
    Ok(Connections {
        github: github.into_keys().collect(),
        jira: jira.into_keys().collect(),
        folders: folder.into_keys().collect(),
    })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Instances {
    github: BTreeMap<Instance, IgnoredAny>,
    jira: BTreeMap<Instance, IgnoredAny>,
    folder: BTreeMap<Instance, IgnoredAny>,
}

/// A file with a problem disables its repository, and the ticket would seem to belong to none.
pub(super) fn refuse_problems(folder: &Path, rules: &Path, connections: &Connections) -> anyhow::Result<()> {
    match RulesBook::read(folder, connections)?.problems().first() {
        None => Ok(()),
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

/// The process environment, with this rules directory when there is one. Nothing outside can reach the webhooks of this short life, so
/// their secrets are random unless set.
fn environment(rules: Option<&Path>) -> Vec<(String, String)> {
    let mut environment: Vec<_> = std::env::vars().collect();
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
    environment
}
