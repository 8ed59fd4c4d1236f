//! Settings of the planner.

mod budget;
mod model;

use std::{collections::BTreeMap, net::SocketAddr};

use bootstrap::settings::{Error, TextList};
use secrecy::SecretString;
use serde::Deserialize;

pub use budget::{AmountSettings, BudgetSettings, CeilingSettings, PeriodSettings};
pub use model::{EmbeddingSettings, ModelPrice, ModelSettings, RoleSettings, RoleTable, ThinkingMode};

/// Configuration sections that the planner reads.
#[derive(Clone, Debug, Deserialize)]
pub struct Config {
    /// `[nats]`: connection to NATS.
    #[serde(default)]
    pub nats: queue::Settings,
    /// `[redis]`: connection to Redis.
    #[serde(default)]
    pub redis: lease::Settings,
    /// `[telemetry]`: logs, traces and metrics.
    #[serde(default)]
    pub telemetry: bootstrap::telemetry::Settings,
    /// `[tls]`; absent: connections to executors are not encrypted.
    #[serde(default)]
    pub tls: Option<bootstrap::tls::Settings>,
    /// `[planner]`: the planner itself.
    pub planner: PlannerSettings,
    /// `[model]`: models and their providers.
    pub model: ModelSettings,
    /// `[mcp]`: servers whose tools the rules may allow.
    #[serde(default)]
    pub mcp: mcp::Settings,
}

/// `[planner]`: settings of the planner itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannerSettings {
    /// Address that serves `/healthz` and `/readyz`.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// Number of tickets that the planner works on at once.
    #[serde(default = "default_slots")]
    pub slots: usize,
    /// First pause before a failed run is retried, in milliseconds; it doubles each time.
    #[serde(default = "default_retry_base_ms")]
    pub retry_base_ms: u64,
    /// Longest pause between two attempts, in milliseconds.
    #[serde(default = "default_retry_longest_ms")]
    pub retry_longest_ms: u64,
    /// Retries in a row before a run gives up, at most 100; the rules of a repository may override it.
    #[serde(default = "default_max_retries")]
    pub max_retries: u32,
    /// True: a run whose model has never answered waits for a failing provider and retries. False: the run
    /// ends at once, for a user who waits at a terminal.
    #[serde(default = "default_wait_for_model")]
    pub wait_for_model: bool,
    /// Tokens from which on a conversation is shortened. Absent: the limit of the role's models; 0: only
    /// after the provider refuses a prompt as too long.
    #[serde(default)]
    pub context_tokens: Option<u64>,
    /// Budget of a run where the repository's rules set none.
    #[serde(default)]
    pub budget: BudgetSettings,
    /// Ceiling of a run's budget, which no rule can raise.
    #[serde(default)]
    pub budget_ceiling: CeilingSettings,
    /// Limits of snapshots in the object store.
    #[serde(default)]
    pub snapshots: SnapshotSettings,
    /// Addresses of executors by pool. `dns://host:port` means every address of a name; `https://host:port`
    /// needs the section `[tls]`, `http://host:port` its absence.
    #[serde(default = "default_pools")]
    pub pools: BTreeMap<String, TextList>,
    /// URL of the git gate, as executors reach it.
    #[serde(default = "default_gate_url")]
    pub gate_url: String,
    /// URL of the egress proxy, as executors reach it; absent: setup commands have no network.
    #[serde(default)]
    pub egress_url: Option<String>,
    /// Name of the key that signs grants.
    pub grant_key_id: String,
    /// Key that signs grants: PKCS#8, base64.
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
    /// Validates these settings; `tls` is true when the section `[tls]` exists.
    ///
    /// # Errors
    /// The first invalid key and its problem.
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
        // At the default of 15 minutes each, more retries than this last longer than a day.
        if self.max_retries > 100 {
            return problem("planner.max_retries", "must be at most 100");
        }
        self.snapshots.check()?;
        // A plain address with [tls], or the reverse, would fail at every connection instead of at start.
        for (pool, addresses) in &self.pools {
            let (direct, words) = if tls {
                (
                    "https://",
                    "must list https:// or dns:// addresses: there is a section [tls]",
                )
            } else {
                (
                    "http://",
                    "must list http:// or dns:// addresses: there is no section [tls]",
                )
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
        grant::GrantSigner::new(&self.grant_key_id, &self.grant_key)
            .map_err(|refused| Error::new("planner.grant_key", refused.to_string()))?;
        Ok(())
    }
}

/// `[planner.snapshots]`: limits of snapshots in the object store.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SnapshotSettings {
    /// Snapshots that one run keeps, in MiB.
    pub run_mib: u64,
    /// Snapshots that all live runs of a ticket keep together, in MiB.
    pub ticket_mib: u64,
}

impl Default for SnapshotSettings {
    fn default() -> Self {
        Self {
            run_mib: 128,
            ticket_mib: 256,
        }
    }
}

impl SnapshotSettings {
    fn check(self) -> Result<(), Error> {
        if self.run_mib == 0 {
            return Err(Error::new("planner.snapshots.run_mib", "must be at least 1"));
        }
        if self.ticket_mib < self.run_mib {
            let problem = "must be at least planner.snapshots.run_mib";
            return Err(Error::new("planner.snapshots.ticket_mib", problem));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Config;
    use bootstrap::{ServiceConfig as _, settings};

    fn load_config(text: &str) -> Result<Config, settings::Error> {
        load_with_environment(text, &[])
    }

    fn load_with_environment(text: &str, env: &[(&str, &str)]) -> Result<Config, settings::Error> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journeyman.toml");
        std::fs::write(&file, text).unwrap();
        let env = env
            .iter()
            .map(|(name, value)| (format!("JOURNEYMAN__{name}"), (*value).to_owned()));
        let config: Config = settings::load_settings(Some(&file), env)?;
        config.check().map(|()| config)
    }

    fn render_config(planner: &str, model: &str) -> String {
        use secrecy::ExposeSecret as _;
        let key = grant::generate_key_pair();
        format!(
            "[planner]\ngrant_key_id = \"{}\"\ngrant_key = \"{}\"\n{planner}\n[model]\n{model}\n",
            key.id,
            key.private_key.expose_secret()
        )
    }

    const MODEL: &str = "name = \"m\"\napi_key = \"k\"";
    const TLS: &str = "[tls]\ncert = \"a\"\nkey = \"b\"\nca = \"c\"\n";

    #[test]
    fn pool_addresses_require_https_with_tls() {
        for pool in ["https://here:7403", "dns://executor:7403"] {
            let planner =
                format!("pools = {{ default = [\"{pool}\"] }}\negress_url = \"https://egress:3128\"");
            let config = load_config(&format!("{}{TLS}", render_config(&planner, MODEL))).unwrap();
            assert!(config.tls.is_some());
        }
    }

    #[test]
    fn two_keys_and_a_model_are_enough() {
        let config = load_config(&render_config("", MODEL)).unwrap();
        assert_eq!((config.planner.slots, config.planner.listen.port()), (64, 7402));
        assert!(!format!("{config:?}").contains("\"k\""));
    }

    #[test]
    fn models_come_from_file_and_environment() {
        let file = format!(
            "{}[model.providers.backup]\ndialect = \"openai\"\nname = \"spare\"\nheaders = {{ X-Team = \"a\" }}\n\
             [model.prices.\"gpt-5.1\"]\ninput = 1\noutput = 2.5\n",
            render_config("", MODEL)
        );
        let env = [
            ("MODEL__FALLBACKS", "backup,backup:other"),
            ("MODEL__PROVIDERS__BACKUP__API_KEY", "s3cret"),
            ("MODEL__PROVIDERS__BACKUP__MAX_OUTPUT_TOKENS", "9000"),
            ("MODEL__ROLES__FAST__NAME", "small"),
            ("MODEL__ROLES__FAST__THINKING", "2048"),
            ("MODEL__PRICES__M__INPUT", "0.5"),
            ("MODEL__PRICES__M__OUTPUT", "1"),
        ];
        let model = load_with_environment(&file, &env).unwrap().model;
        assert_eq!(*model.fallbacks, ["backup", "backup:other"]);
        assert_eq!(model.providers["backup"].max_output_tokens, 9000);
        assert!(model.providers["backup"].api_key.is_some());
        assert_eq!(model.providers["backup"].headers.len(), 1);
        assert_eq!(model.roles.fast.name.as_deref(), Some("small"));
        assert_eq!(model.roles.fast.thinking, Some(super::ThinkingMode::Budget(2048)));
        assert!((model.prices["gpt-5.1"].output - 2.5).abs() < f64::EPSILON);
        assert!((model.prices["m"].input - 0.5).abs() < f64::EPSILON);
        assert!(!format!("{model:?}").contains("s3cret"));
    }

    #[test]
    fn mcp_servers_come_from_file_and_environment() {
        let file = format!(
            "{}[mcp.servers.docs]\nurl = \"https://docs.example/mcp\"\nheaders = {{ X-Team = \"shop\" }}\n",
            render_config("", MODEL)
        );
        let env = [
            ("MCP__SERVERS__DOCS__AUTH_TOKEN", "s3cret"),
            ("MCP__SERVERS__DOCS__TOOLS", "search,get_*"),
        ];
        let config = load_with_environment(&file, &env).unwrap();
        let docs = &config.mcp.servers["docs"];
        assert!(docs.auth_token.is_some() && docs.headers.len() == 1);
        assert_eq!(docs.tools.as_deref().map(<[String]>::len), Some(2));
        assert!(!format!("{config:?}").contains("s3cret"));
    }

    #[test]
    fn a_wrong_or_missing_setting_is_named() {
        let cases = [
            (render_config("", "name = \"m\""), "model.api_key"),
            (render_config("", "name = \"m\"\napi_key = \"\""), "model.api_key"),
            (render_config("", "name = \"\"\napi_key = \"k\""), "model.name"),
            (render_config("slots = 0", MODEL), "planner.slots"),
            (
                render_config("retry_longest_ms = 1", MODEL),
                "planner.retry_longest_ms",
            ),
            (render_config("max_retries = 101", MODEL), "planner.max_retries"),
            (
                render_config("pools = { py = [\"here\"] }", MODEL),
                "planner.pools.py",
            ),
            (
                render_config("pools = { py = [\"https://here:1\"] }", MODEL),
                "planner.pools.py",
            ),
            (
                format!("{}{TLS}", render_config("", MODEL)),
                "planner.pools.default",
            ),
            (
                render_config("", &format!("{MODEL}\nbase_url = \"here\"")),
                "model.base_url",
            ),
            (
                render_config("", &format!("{MODEL}\nbase_url = \"http://model.example\"")),
                "model.base_url",
            ),
            (
                format!(
                    "{}[mcp.servers.docs]\nurl = \"http://docs.example\"\n",
                    render_config("", MODEL)
                ),
                "mcp.servers.docs.url",
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
            assert_eq!(load_config(&text).unwrap_err().key, key, "{text}");
        }
    }
}
