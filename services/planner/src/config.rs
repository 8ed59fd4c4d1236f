//! The planner's settings.

use std::{collections::BTreeMap, net::SocketAddr};

use bootstrap::settings::{Error, TextList};
use domain::Dialect;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// The sections that the planner reads.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// NATS.
    #[serde(default)]
    pub nats: queue::Settings,
    /// Redis.
    #[serde(default)]
    pub redis: lease::Settings,
    /// Logs, traces and metrics.
    #[serde(default)]
    pub telemetry: bootstrap::telemetry::Settings,
    /// The planner itself.
    pub planner: PlannerSettings,
    /// The model.
    pub model: ModelSettings,
}

/// `[planner]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannerSettings {
    /// Where `/healthz` and `/readyz` are served.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// Tickets worked on at once.
    #[serde(default = "default_slots")]
    pub slots: usize,
    /// The first wait before a failed run is tried again, in milliseconds; it doubles each time.
    #[serde(default = "default_retry_base_ms")]
    pub retry_base_ms: u64,
    /// The longest wait between two tries, in milliseconds.
    #[serde(default = "default_retry_longest_ms")]
    pub retry_longest_ms: u64,
    /// Retries in a row before a run gives up, at most 100; the rules of a repository may say otherwise.
    #[serde(default = "default_max_retries")]
    pub max_retries: u32,
    /// Executors by pool: `http://host:port`, or `dns://host:port` for every address behind a name.
    #[serde(default = "default_pools")]
    pub pools: BTreeMap<String, TextList>,
    /// The git gate, as executors reach it.
    #[serde(default = "default_gate_url")]
    pub gate_url: String,
    /// The egress proxy, as executors reach it; absent: setup commands reach nothing.
    #[serde(default)]
    pub egress_url: Option<String>,
    /// The name of the grant-signing key.
    pub grant_key_id: String,
    /// The grant-signing key: PKCS#8, base64.
    pub grant_key: SecretString,
}

/// `[model]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// How the provider is spoken to.
    #[serde(default)]
    pub dialect: Dialect,
    /// The provider's address, with or without `/v1`; absent: the dialect's own provider.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Plain `http://` to another machine is allowed, although the key and what is said can be read on the way.
    #[serde(default)]
    pub allow_insecure: bool,
    /// The model, as the provider names it.
    pub name: String,
    /// The provider's key.
    pub api_key: SecretString,
    /// The most tokens in one reply.
    #[serde(default = "default_max_output_tokens")]
    pub max_output_tokens: u32,
    /// Limit for the connection, in milliseconds.
    #[serde(default = "default_connect_timeout_ms")]
    pub connect_timeout_ms: u64,
    /// Longest pause in a reply, in milliseconds.
    #[serde(default = "default_idle_timeout_ms")]
    pub idle_timeout_ms: u64,
    /// Limit for one whole reply, in milliseconds.
    #[serde(default = "default_total_timeout_ms")]
    pub total_timeout_ms: u64,
}

fn default_listen() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 7402))
}

fn default_slots() -> usize {
    64
}

fn default_retry_base_ms() -> u64 {
    60_000
}

fn default_retry_longest_ms() -> u64 {
    15 * 60 * 1000
}

fn default_max_retries() -> u32 {
    5
}

fn default_pools() -> BTreeMap<String, TextList> {
    BTreeMap::from([(
        "default".to_owned(),
        TextList(vec!["http://127.0.0.1:7403".to_owned()]),
    )])
}

fn default_gate_url() -> String {
    "http://127.0.0.1:7404/git".to_owned()
}

fn default_max_output_tokens() -> u32 {
    8192
}

fn default_connect_timeout_ms() -> u64 {
    5_000
}

fn default_idle_timeout_ms() -> u64 {
    120_000
}

fn default_total_timeout_ms() -> u64 {
    600_000
}

impl bootstrap::ServiceConfig for Config {
    fn listen(&self) -> SocketAddr {
        self.planner.listen
    }

    fn telemetry(&self) -> &bootstrap::telemetry::Settings {
        &self.telemetry
    }

    fn check(&self) -> Result<(), Error> {
        let (planner, model) = (&self.planner, &self.model);
        let problem = |key: &str, problem: &str| Err(Error::new(key, problem));
        if planner.slots == 0 {
            return problem("planner.slots", "must be at least 1");
        }
        if planner.retry_base_ms == 0 {
            return problem("planner.retry_base_ms", "must be at least 1");
        }
        if planner.retry_longest_ms < planner.retry_base_ms {
            return problem(
                "planner.retry_longest_ms",
                "must be at least planner.retry_base_ms",
            );
        }
        if planner.max_retries > 100 {
            return problem("planner.max_retries", "must be at most 100");
        }
        for (pool, addresses) in &planner.pools {
            let legal = |address: &String| {
                ["http://", "https://", "dns://"]
                    .iter()
                    .any(|scheme| address.starts_with(scheme))
            };
            if addresses.is_empty() || !addresses.iter().all(legal) {
                return problem(
                    &format!("planner.pools.{pool}"),
                    "must list http://, https:// or dns:// addresses",
                );
            }
        }
        let is_http = |url: &String| url.starts_with("http://");
        if !planner.egress_url.as_ref().is_none_or(is_http) {
            return problem("planner.egress_url", "must be an http:// URL");
        }
        if planner.grant_key_id.is_empty() {
            return problem("planner.grant_key_id", "must be set");
        }
        grant::Signer::new(&planner.grant_key_id, &planner.grant_key)
            .map_err(|refused| Error::new("planner.grant_key", refused.to_string()))?;
        if model.name.is_empty() {
            return problem("model.name", "must be set");
        }
        if model.api_key.expose_secret().is_empty() {
            return problem("model.api_key", "must be set");
        }
        if model.max_output_tokens == 0 {
            return problem("model.max_output_tokens", "must be at least 1");
        }
        let base = model.base_url.as_deref().unwrap_or("https://");
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return problem("model.base_url", "must be an http:// or https:// address");
        }
        if domain::is_readable_on_the_way(base) && !model.allow_insecure {
            return problem(
                "model.base_url",
                "sends the key unencrypted to another machine: use https://, or set allow_insecure = true",
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Config;
    use bootstrap::{ServiceConfig as _, settings};

    fn load(text: &str) -> Result<Config, settings::Error> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journeyman.toml");
        std::fs::write(&file, text).unwrap();
        let config: Config = settings::load(Some(&file), [])?;
        config.check().map(|()| config)
    }

    fn with(planner: &str, model: &str) -> String {
        use secrecy::ExposeSecret as _;
        let key = grant::generate();
        format!(
            "[planner]\ngrant_key_id = \"{}\"\ngrant_key = \"{}\"\n{planner}\n[model]\n{model}\n",
            key.id,
            key.private_key.expose_secret()
        )
    }

    const MODEL: &str = "name = \"m\"\napi_key = \"k\"";

    #[test]
    fn two_keys_and_a_model_are_enough() {
        let config = load(&with("", MODEL)).unwrap();
        assert_eq!((config.planner.slots, config.planner.listen.port()), (64, 7402));
        assert!(!format!("{config:?}").contains("\"k\""));
    }

    #[test]
    fn a_wrong_or_missing_setting_is_named() {
        let cases = [
            (with("", "name = \"m\""), "model.api_key"),
            (with("", "name = \"m\"\napi_key = \"\""), "model.api_key"),
            (with("", "name = \"\"\napi_key = \"k\""), "model.name"),
            (with("slots = 0", MODEL), "planner.slots"),
            (with("retry_longest_ms = 1", MODEL), "planner.retry_longest_ms"),
            (with("max_retries = 101", MODEL), "planner.max_retries"),
            (with("pools = { py = [\"here\"] }", MODEL), "planner.pools.py"),
            (
                with("", &format!("{MODEL}\nbase_url = \"here\"")),
                "model.base_url",
            ),
            (
                with("", &format!("{MODEL}\nbase_url = \"http://model.example\"")),
                "model.base_url",
            ),
            (
                format!("[planner]\ngrant_key_id = \"a\"\n[model]\n{MODEL}"),
                "planner.grant_key",
            ),
            (
                format!("[planner]\ngrant_key_id = \"a\"\ngrant_key = \"b\"\n[model]\n{MODEL}"),
                "planner.grant_key",
            ),
        ];
        for (text, key) in cases {
            assert_eq!(load(&text).unwrap_err().key, key, "{text}");
        }
    }
}
