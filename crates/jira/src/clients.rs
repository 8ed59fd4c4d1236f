//! One client per instance: the default one and those that the settings name.

use std::{collections::BTreeMap, sync::Arc};

use domain::{InstanceName, TicketKey, limits::LimitGate};

use crate::{Error, Settings, client::JiraClient, limits::JiraLimits};

/// Clients by the instance that a ticket names, so that no credential reaches another server.
#[derive(Clone, Debug)]
pub(crate) struct JiraClients {
    default: Option<JiraClient>,
    named: Arc<BTreeMap<InstanceName, JiraClient>>,
}

impl JiraClients {
    pub(crate) fn new(
        settings: Option<&Settings>,
        others: &BTreeMap<InstanceName, Settings>,
        role: &str,
        gate: Option<&Arc<dyn LimitGate>>,
    ) -> Result<Self, Error> {
        let client = |name: Option<&InstanceName>, settings: &Settings| {
            JiraClient::new(settings, JiraLimits::of(gate, role, name))
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

    /// The default instance (`None`), if it is configured, and every named one.
    pub(crate) fn instances(&self) -> impl Iterator<Item = Option<&InstanceName>> {
        let default = self.default.iter().map(|_| None);
        default.chain(self.named.keys().map(Some))
    }

    pub(crate) fn of(&self, key: &TicketKey) -> Result<&JiraClient, Error> {
        self.on(key.instance())
    }

    pub(crate) fn on(&self, instance: Option<&InstanceName>) -> Result<&JiraClient, Error> {
        let found = match instance {
            Some(name) => self.named.get(name),
            None => self.default.as_ref(),
        };
        found.ok_or_else(|| Error::UnknownInstance {
            section: instance.map_or_else(
                || "jira_reader or jira_writer".to_owned(),
                |name| format!("jira.{name}"),
            ),
        })
    }
}
