//! One client per instance: the default one and those that the settings name.

use std::{collections::BTreeMap, sync::Arc};

use domain::InstanceName;

/// Instance that the settings do not configure.
#[derive(Debug, thiserror::Error)]
#[error("the settings have no section [{section}]")]
pub struct UnknownInstance {
    /// Section of the settings that would configure it.
    pub section: String,
}

/// Clients of a service by instance, so that no credential reaches another server.
#[derive(Clone, Debug)]
pub struct InstanceClients<C> {
    service: &'static str,
    default: Option<C>,
    named: Arc<BTreeMap<InstanceName, C>>,
}

impl<C> InstanceClients<C> {
    /// Builds the client of the default instance, if it is configured, and those of the named ones. `service`
    /// begins the names of their sections.
    ///
    /// # Errors
    /// The error of the first client that cannot be built.
    pub fn build<S, E>(
        service: &'static str,
        default: Option<&S>,
        named: &BTreeMap<InstanceName, S>,
        build: impl Fn(Option<&InstanceName>, &S) -> Result<C, E>,
    ) -> Result<Self, E> {
        let named = named
            .iter()
            .map(|(name, settings)| Ok((name.clone(), build(Some(name), settings)?)))
            .collect::<Result<_, E>>()?;
        Ok(Self {
            service,
            default: default.map(|settings| build(None, settings)).transpose()?,
            named: Arc::new(named),
        })
    }

    /// Client of an instance; `None` is the default one.
    ///
    /// # Errors
    /// [`UnknownInstance`] when the settings do not configure it.
    pub fn find(&self, instance: Option<&InstanceName>) -> Result<&C, UnknownInstance> {
        let found = match instance {
            Some(name) => self.named.get(name),
            None => self.default.as_ref(),
        };
        found.ok_or_else(|| UnknownInstance {
            section: instance.map_or_else(
                || format!("{0}_reader or {0}_writer", self.service),
                |name| format!("{}.{name}", self.service),
            ),
        })
    }

    /// The default instance (`None`), if it is configured, and every named one.
    pub fn instances(&self) -> impl Iterator<Item = Option<&InstanceName>> {
        let default = self.default.iter().map(|_| None);
        default.chain(self.named.keys().map(Some))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_name(name: &str) -> InstanceName {
        name.parse().unwrap()
    }

    fn build_clients(default: Option<&u8>) -> InstanceClients<String> {
        let named = BTreeMap::from([(parse_name("eu"), 2), (parse_name("us"), 3)]);
        let build = |name: Option<&InstanceName>, settings: &u8| {
            let name = name.map_or("default", InstanceName::as_str);
            Ok::<_, UnknownInstance>(format!("{name} {settings}"))
        };
        InstanceClients::build("jira", default, &named, build).unwrap()
    }

    #[test]
    fn client_is_found_by_its_instance() {
        let clients = build_clients(Some(&1));
        assert_eq!(clients.find(None).unwrap(), "default 1");
        assert_eq!(clients.find(Some(&parse_name("us"))).unwrap(), "us 3");
        assert_eq!(clients.instances().count(), 3);
    }

    #[test]
    fn unknown_instance_names_its_section() {
        let clients = build_clients(None);
        assert_eq!(clients.instances().count(), 2);
        for (name, section) in [(None, "jira_reader or jira_writer"), (Some("asia"), "jira.asia")] {
            let name = name.map(parse_name);
            let refused = clients.find(name.as_ref()).unwrap_err();
            assert_eq!(refused.section, section);
        }
    }
}
