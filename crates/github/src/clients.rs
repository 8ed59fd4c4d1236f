//! One client per instance: the default one and those that the settings name.

use std::{collections::BTreeMap, sync::Arc};

use domain::{InstanceName, RepositoryName};

use crate::{Error, GatePolicy, Settings, client::GitHubClient, limits::AccountLimits};

/// Clients by the instance that a repository names, so that no credential reaches another server.
#[derive(Clone, Debug)]
pub(crate) struct GitHubClients {
    default: Option<GitHubClient>,
    named: Arc<BTreeMap<InstanceName, GitHubClient>>,
}

impl GitHubClients {
    pub(crate) fn new(
        settings: Option<&Settings>,
        others: &BTreeMap<InstanceName, Settings>,
        role: &str,
        gated: Option<&GatePolicy>,
    ) -> Result<Self, Error> {
        // Limits are counted per role and instance, as each has a separate account.
        let client = |name: Option<&InstanceName>, settings: &Settings| {
            GitHubClient::new(settings, AccountLimits::of(gated, role, name, settings))
        };
        let named = others
            .iter()
            .map(|(name, settings)| Ok((name.clone(), client(Some(name), settings)?)))
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            default: settings.map(|settings| client(None, settings)).transpose()?,
            named: Arc::new(named),
        })
    }

    pub(crate) fn of(&self, repository: &RepositoryName) -> Result<&GitHubClient, Error> {
        self.on(repository.instance())
    }

    pub(crate) fn on(&self, instance: Option<&InstanceName>) -> Result<&GitHubClient, Error> {
        let found = match instance {
            Some(name) => self.named.get(name),
            None => self.default.as_ref(),
        };
        found.ok_or_else(|| Error::UnknownInstance {
            section: instance.map_or_else(
                || "github_reader or github_writer".to_owned(),
                |name| format!("github.{name}"),
            ),
        })
    }

    /// The default instance (`None`), if it is configured, and every named one.
    pub(crate) fn instances(&self) -> impl Iterator<Item = Option<&InstanceName>> {
        let default = self.default.iter().map(|_| None);
        default.chain(self.named.keys().map(Some))
    }
}
