//! One client per instance: the default one and those that the settings name.

use std::{collections::BTreeMap, sync::Arc};

use domain::{Instance, RepositoryName};

use crate::{Error, Settings, client::Client};

/// Picks the client by the instance that a repository names.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    default: Client,
    named: Arc<BTreeMap<Instance, Client>>,
}

impl Clients {
    pub(crate) fn new(settings: &Settings, others: &BTreeMap<Instance, Settings>) -> Result<Self, Error> {
        let named = others
            .iter()
            .map(|(name, settings)| Ok((name.clone(), Client::new(settings)?)))
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            default: Client::new(settings)?,
            named: Arc::new(named),
        })
    }

    pub(crate) fn of(&self, repository: &RepositoryName) -> Result<&Client, Error> {
        self.on(repository.instance())
    }

    pub(crate) fn on(&self, instance: Option<&Instance>) -> Result<&Client, Error> {
        let Some(name) = instance else {
            return Ok(&self.default);
        };
        self.named.get(name).ok_or_else(|| Error::UnknownInstance {
            instance: name.clone(),
        })
    }

    /// The default instance and every named one.
    pub(crate) fn instances(&self) -> impl Iterator<Item = Option<&Instance>> {
        std::iter::once(None).chain(self.named.keys().map(Some))
    }
}
