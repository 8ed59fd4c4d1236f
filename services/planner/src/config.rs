//! The planner's settings.

mod budget;
mod embeddings;
mod model;
mod snapshots;

use std::{collections::BTreeMap, net::SocketAddr};

use bootstrap::settings::{Error, TextList};
use secrecy::SecretString;
use serde::Deserialize;

pub use budget::{AmountSettings, BudgetSettings, CeilingSettings, PeriodSettings};
pub use embeddings::EmbeddingSettings;
pub use model::{ModelSettings, Price, RoleSettings, RoleTable, Thinking};
pub use snapshots::SnapshotSettings;

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
    /// `[tls]`; absent: executors are spoken to in the clear.
    #[serde(default)]
    pub tls: Option<bootstrap::tls::Settings>,
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
    /// True when a run whose model has not answered yet waits for a provider that fails, and is tried again. Without it the run
    /// ends at once, for a person who sits in front of it.
    #[serde(default = "default_wait_for_model")]
    pub wait_for_model: bool,
    /// Tokens of one conversation, from which on it is made shorter; absent: as the models of its role bear it; 0: not before
    /// the provider refuses it.
    #[serde(default)]
    pub context_tokens: Option<u64>,
    /// What a run may spend where its repository's rules say nothing.
    #[serde(default)]
    pub budget: BudgetSettings,
    /// What a run may spend whatever the rules say.
    #[serde(default)]
    pub budget_ceiling: CeilingSettings,
    /// Room for snapshots of changes in the object store.
    #[serde(default)]
    pub snapshots: SnapshotSettings,
    /// Executors by pool: `dns://host:port` for every address behind a name, or `https://host:port` with the section `[tls]` and
    /// `http://host:port` without it.
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

fn default_wait_for_model() -> bool {
    true
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

impl PlannerSettings {
    /// Whether these settings can work, with or without TLS to executors.
    ///
    /// # Errors
    /// The first one that cannot, by key.
    pub(crate) fn check(&self, tls: bool) -> Result<(), Error> {
        let problem = |key: &str, problem: &str| Err(Error::new(key, problem));
        if self.slots == 0 {
            return problem("planner.slots", "must be at least 1");
        }
        if self.retry_base_ms == 0 {
            return problem("planner.retry_base_ms", "must be at least 1");
        }
        if self.retry_longest_ms < self.retry_base_ms {
            return problem(
                "planner.retry_longest_ms",
                "must be at least planner.retry_base_ms",
            );
        }
        if self.max_retries > 100 {
            return problem("planner.max_retries", "must be at most 100");
        }
        self.snapshots.check()?;
        for (pool, addresses) in &self.pools {
            let (direct, words) = match tls {
                true => (
                    "https://",
                    "must list https:// or dns:// addresses: there is a section [tls]",
                ),
                false => (
                    "http://",
                    "must list http:// or dns:// addresses: there is no section [tls]",
                ),
            };
            let legal = |address: &String| {
                [direct, "dns://"]
                    .iter()
                    .any(|scheme| address.starts_with(scheme))
            };
            if addresses.is_empty() || !addresses.iter().all(legal) {
                return problem(&format!("planner.pools.{pool}"), words);
            }
        }
        let is_http = |url: &String| url.starts_with("http://") || url.starts_with("https://");
        if !self.egress_url.as_ref().is_none_or(is_http) {
            return problem("planner.egress_url", "must be an http:// or https:// URL");
        }
        if self.grant_key_id.is_empty() {
            return problem("planner.grant_key_id", "must be set");
        }
        grant::Signer::new(&self.grant_key_id, &self.grant_key)
            .map_err(|refused| Error::new("planner.grant_key", refused.to_string()))?;
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
    const TLS: &str = "[tls]\ncert = \"a\"\nkey = \"b\"\nca = \"c\"\n";

    #[test]
    fn with_certificates_no_executor_is_named_by_a_plain_address() {
        for pool in ["https://here:7403", "dns://executor:7403"] {
            let planner =
                format!("pools = {{ default = [\"{pool}\"] }}\negress_url = \"https://egress:3128\"");
            let config = load(&format!("{}{TLS}", with(&planner, MODEL))).unwrap();
            assert!(config.tls.is_some());
        }
    }

    #[test]
    fn two_keys_and_a_model_are_enough() {
        let config = load(&with("", MODEL)).unwrap();
        assert_eq!((config.planner.slots, config.planner.listen.port()), (64, 7402));
        assert!(!format!("{config:?}").contains("\"k\""));
    }

    #[test]
    fn models_can_be_named_in_the_file_and_in_the_environment() {
        let file = format!(
            "{}[model.providers.backup]\ndialect = \"openai\"\nname = \"spare\"\nheaders = {{ X-Team = \"a\" }}\n\
             [model.prices.\"gpt-5.1\"]\ninput = 1\noutput = 2.5\n",
            with("", MODEL)
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journeyman.toml");
        std::fs::write(&path, &file).unwrap();
        let env = [
            ("MODEL__FALLBACKS", "backup,backup:other"),
            ("MODEL__PROVIDERS__BACKUP__API_KEY", "s3cret"),
            ("MODEL__PROVIDERS__BACKUP__MAX_OUTPUT_TOKENS", "9000"),
            ("MODEL__ROLES__FAST__NAME", "small"),
            ("MODEL__ROLES__FAST__THINKING", "2048"),
            ("MODEL__PRICES__M__INPUT", "0.5"),
            ("MODEL__PRICES__M__OUTPUT", "1"),
        ];
        let env = env.map(|(name, value)| (format!("JOURNEYMAN__{name}"), value.to_owned()));
        let config: Config = settings::load(Some(&path), env).unwrap();
        config.check().unwrap();
        let model = config.model;
        assert_eq!(*model.fallbacks, ["backup", "backup:other"]);
        assert_eq!(model.providers["backup"].max_output_tokens, 9000);
        assert!(model.providers["backup"].api_key.is_some());
        assert_eq!(model.providers["backup"].headers.len(), 1);
        assert_eq!(model.roles.fast.name.as_deref(), Some("small"));
        assert_eq!(model.roles.fast.thinking, Some(super::Thinking::Budget(2048)));
        assert!((model.prices["gpt-5.1"].output - 2.5).abs() < f64::EPSILON);
        assert!((model.prices["m"].input - 0.5).abs() < f64::EPSILON);
        assert!(!format!("{model:?}").contains("s3cret"));
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
                with("pools = { py = [\"https://here:1\"] }", MODEL),
                "planner.pools.py",
            ),
            (format!("{}{TLS}", with("", MODEL)), "planner.pools.default"),
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
