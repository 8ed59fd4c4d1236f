//! The egress proxy's settings.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
};

use bootstrap::{
    ServiceConfig,
    settings::{self, TextList},
    telemetry, tls,
};
use serde::Deserialize;
use webproxy::AddressRule;

use crate::{
    mirror::{MirrorSettings, RegistryMirror},
    upstream::UpstreamRoutes,
};

/// Largest quota in MiB: one TiB.
const MAX_MIB: u64 = 1024 * 1024;

/// Settings of the egress proxy: its own section, TLS and telemetry.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// The section `[telemetry]`.
    #[serde(default)]
    pub telemetry: telemetry::Settings,
    /// The section `[tls]`. Without it, connections are plain.
    #[serde(default)]
    pub tls: Option<tls::Settings>,
    /// The section `[proxy]`: the proxy of the company, through which hosts are reached.
    #[serde(default)]
    pub proxy: webproxy::Settings,
    /// The section `[egress]`.
    #[serde(default)]
    pub egress: Settings,
}

/// The section `[egress]`: listener, grant keys, quotas, networks and mirrors.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Address of the listener for sessions of executors and for health checks.
    pub listen: SocketAddr,
    /// Public keys of the planners (base64) by key id. They verify grants.
    pub grant_keys: BTreeMap<String, String>,
    /// Networks outside of the public internet that the proxy may dial, e.g. `10.20.0.0/16`. Link-local addresses,
    /// and with them the metadata services of clouds, stay closed.
    pub private_networks: TextList,
    /// Quota of bytes that one run may send, in MiB, 1 to 1048576.
    pub upload_mib: u64,
    /// Quota of bytes that one run may receive, in MiB, 1 to 1048576.
    pub download_mib: u64,
    /// Host names with a domain under which sandboxes reach mirrors. Loopback addresses and names without a domain
    /// need no entry.
    pub mirror_hosts: TextList,
    /// Registries that need a credential, by name. A sandbox reaches one at `/mirror/<name>/…`.
    pub mirrors: BTreeMap<String, MirrorSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 3128)),
            grant_keys: BTreeMap::new(),
            private_networks: TextList::default(),
            upload_mib: 10,
            download_mib: 4096,
            mirror_hosts: TextList::default(),
            mirrors: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Builds the rule for the addresses that the proxy may dial.
    ///
    /// # Errors
    /// [`settings::Error`] for the first entry of `egress.private_networks` that is not a network.
    pub(crate) fn rule(&self) -> Result<AddressRule, settings::Error> {
        AddressRule::new(&self.private_networks)
            .map_err(|problem| settings::Error::new("egress.private_networks", problem))
    }

    /// Returns the host names under which sandboxes reach mirrors, in lower case.
    ///
    /// # Errors
    /// [`settings::Error`] for the first entry of `egress.mirror_hosts` that is not a host name.
    pub(crate) fn mirror_names(&self) -> Result<Vec<String>, settings::Error> {
        let read = |name: &String| match url::Host::parse(name) {
            Ok(url::Host::Domain(name)) => Ok(name),
            Ok(_) | Err(_) => {
                let problem = format!("{name:?} is not a host name");
                Err(settings::Error::new("egress.mirror_hosts", problem))
            }
        };
        self.mirror_hosts.iter().map(read).collect()
    }

    /// Builds the mirrors, by name.
    ///
    /// # Errors
    /// [`settings::Error`] for the first mirror with a wrong setting.
    pub(crate) fn mirrors(&self) -> Result<BTreeMap<String, RegistryMirror>, settings::Error> {
        let rule = self.rule()?;
        let read = |(name, settings): (&String, &MirrorSettings)| {
            let mirror = RegistryMirror::new(name, settings, &rule).map_err(|(key, problem)| {
                let key = key.map(|key| format!(".{key}")).unwrap_or_default();
                settings::Error::new(format!("egress.mirrors.{name}{key}"), problem)
            });
            Ok((name.clone(), mirror?))
        };
        self.mirrors.iter().map(read).collect()
    }
}

impl ServiceConfig for Config {
    fn listen(&self) -> SocketAddr {
        self.egress.listen
    }

    fn telemetry(&self) -> &telemetry::Settings {
        &self.telemetry
    }

    // The section is read here, without the variables of the environment.
    fn takes_proxy() -> bool {
        false
    }

    fn check(&self) -> Result<(), settings::Error> {
        let wrong = |key: &str, problem: &str| Err(settings::Error::new(format!("egress.{key}"), problem));
        if self.egress.grant_keys.is_empty() {
            return wrong("grant_keys", "must name the planner's public key by its key id");
        }
        if let Err(refused) = grant::GrantVerifier::new(&self.egress.grant_keys) {
            return wrong("grant_keys", &refused.to_string());
        }
        for (key, mib) in [
            ("upload_mib", self.egress.upload_mib),
            ("download_mib", self.egress.download_mib),
        ] {
            if !(1..=MAX_MIB).contains(&mib) {
                return wrong(key, "must be from 1 to 1048576");
            }
        }
        UpstreamRoutes::new(&self.proxy)?;
        self.egress.mirror_names()?;
        self.egress.mirrors().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem_with(extra: &[(&str, &str)]) -> Option<String> {
        let key = grant::generate_key_pair().public_key;
        let good = [
            ("JOURNEYMAN__EGRESS__GRANT_KEYS__FIRST", key.as_str()),
            (
                "JOURNEYMAN__EGRESS__MIRRORS__NPM__URL",
                "https://npm.example/acme",
            ),
            ("JOURNEYMAN__EGRESS__MIRRORS__NPM__TOKEN", "very-secret"),
            (
                "JOURNEYMAN__EGRESS__MIRRORS__NPM__REPOSITORIES",
                "acme/shop,acme-two/*",
            ),
            ("JOURNEYMAN__EGRESS__PRIVATE_NETWORKS", "10.20.0.0/16,fd12::/32"),
        ];
        let env = good
            .iter()
            .chain(extra)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let checked = settings::load_settings::<Config>(None, env).and_then(|config| {
            assert!(!format!("{config:?}").contains("very-secret"));
            config.check()
        });
        checked.err().map(|error| {
            assert!(!error.problem.contains("very-secret"));
            error.key
        })
    }

    #[test]
    fn each_wrong_setting_is_named() {
        assert_eq!(problem_with(&[]), None);
        for (name, value, key) in [
            ("GRANT_KEYS__SECOND", "short", "egress.grant_keys"),
            ("PRIVATE_NETWORKS", "10.0.0.0", "egress.private_networks"),
            ("MIRROR_HOSTS", "10.0.0.1", "egress.mirror_hosts"),
            ("UPLOAD_MIB", "0", "egress.upload_mib"),
            ("DOWNLOAD_MIB", "1048577", "egress.download_mib"),
            ("MIRRORS__NPM__URL", "npm.example", "egress.mirrors.npm.url"),
            (
                "MIRRORS__NPM__REPOSITORIES",
                "acme",
                "egress.mirrors.npm.repositories",
            ),
            ("MIRRORS__NPM__PASSWORD", "x", "egress.mirrors.npm.token"),
            ("MIRRORS__A_B__URL", "https://npm.example", "egress.mirrors.a_b"),
        ] {
            let name = format!("JOURNEYMAN__EGRESS__{name}");
            assert_eq!(problem_with(&[(&name, value)]).as_deref(), Some(key));
        }
        let nothing: [(String, String); 0] = [];
        let missing = settings::load_settings::<Config>(None, nothing).and_then(|config| config.check());
        assert_eq!(missing.unwrap_err().key, "egress.grant_keys");
    }
}
