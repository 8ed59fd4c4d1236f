//! The settings of ingest.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, SocketAddr},
};

use bootstrap::settings::{Error, TextList};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};

use crate::api::{Role, Tokens};

/// The sections of the settings that ingest reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// `[nats]`.
    pub nats: queue::Settings,
    /// `[telemetry]`.
    pub telemetry: bootstrap::telemetry::Settings,
    /// `[rules]`.
    pub rules: bootstrap::rules::Settings,
    /// `[ingest]`.
    pub ingest: Settings,
    /// `[github_reader]`.
    pub github_reader: github::Settings,
    /// `[jira_reader]`.
    pub jira_reader: jira::Settings,
}

/// `[ingest]` of the settings.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Address that webhooks and the API are served on.
    pub listen: SocketAddr,
    /// Secrets of the GitHub webhook; several while they rotate.
    pub github_webhook_secrets: SecretList,
    /// Secrets of the Jira webhook; several while they rotate.
    pub jira_webhook_secrets: SecretList,
    /// Who may use the API: a name for each token.
    pub api_tokens: BTreeMap<String, ApiToken>,
    /// Names, logins and account ids of Journeyman's own accounts, as a list or separated by commas; what they do
    /// never starts a job.
    #[serde(deserialize_with = "names")]
    pub own_accounts: BTreeSet<String>,
    /// Seconds between two polls of Jira and GitHub, 1 to 86,400.
    pub poll_interval_s: u64,
    /// Seconds between two looks for tickets whose wake-up was lost, 1 to 86,400.
    pub sweep_interval_s: u64,
    /// Days that the journal of a run is kept after its end; 0: for ever.
    pub journal_days: u32,
    /// Hours that an object (pack, large body) is kept after it was stored last, though nothing refers to it, at most
    /// 8,760; 0: for ever.
    pub object_grace_h: u32,
    /// The Jira group whose members may order `/stop` and `/retry` in comments; empty: nobody may.
    pub jira_command_group: String,
    /// Deliveries handled at once, 1 to 256.
    pub router_slots: usize,
    /// Largest webhook body in bytes.
    pub max_body_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7401)),
            github_webhook_secrets: SecretList::default(),
            jira_webhook_secrets: SecretList::default(),
            api_tokens: BTreeMap::new(),
            own_accounts: BTreeSet::new(),
            poll_interval_s: 60,
            sweep_interval_s: 60,
            journal_days: 90,
            object_grace_h: 24,
            jira_command_group: String::new(),
            router_slots: 8,
            max_body_bytes: 25 * 1024 * 1024,
        }
    }
}

/// A token of the API, known by its hash only.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiToken {
    /// SHA-256 of the token, hexadecimal.
    pub sha256: String,
    /// What its bearer may do.
    pub role: Role,
}

/// Secrets from a list, or from one text separated by commas. Empty ones are dropped.
#[derive(Clone, Debug, Default)]
pub struct SecretList(Vec<SecretString>);

impl SecretList {
    /// A list of these secrets.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let trimmed = secrets.into_iter().map(|secret| secret.trim().to_owned());
        Self(
            trimmed
                .filter(|secret| !secret.is_empty())
                .map(SecretString::from)
                .collect(),
        )
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|secret| secret.expose_secret().as_bytes())
    }
}

impl<'de> Deserialize<'de> for SecretList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::new(TextList::deserialize(deserializer)?.0))
    }
}

fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    Ok(TextList::deserialize(deserializer)?.0.into_iter().collect())
}

impl bootstrap::ServiceConfig for Config {
    fn listen(&self) -> SocketAddr {
        self.ingest.listen
    }

    fn telemetry(&self) -> &bootstrap::telemetry::Settings {
        &self.telemetry
    }

    fn check(&self) -> Result<(), Error> {
        self.ingest.check()?;
        let named = |(key, problem): (String, String)| Error::new(key, problem);
        self.github_reader.check("github_reader").map_err(named)?;
        self.jira_reader.check("jira_reader").map_err(named)
    }
}

impl Settings {
    fn check(&self) -> Result<(), Error> {
        let refuse = |key: &str, problem: &str| Err(Error::new(format!("ingest.{key}"), problem));
        if self.github_webhook_secrets.is_empty() {
            return refuse(
                "github_webhook_secrets",
                "must hold the secret of the GitHub webhook",
            );
        }
        if self.jira_webhook_secrets.is_empty() {
            return refuse("jira_webhook_secrets", "must hold the secret of the Jira webhook");
        }
        if !(1..=86_400).contains(&self.poll_interval_s) {
            return refuse("poll_interval_s", "must be between 1 and 86400");
        }
        if !(1..=86_400).contains(&self.sweep_interval_s) {
            return refuse("sweep_interval_s", "must be between 1 and 86400");
        }
        if !(1..=256).contains(&self.router_slots) {
            return refuse("router_slots", "must be between 1 and 256");
        }
        if self.object_grace_h > 8_760 {
            return refuse("object_grace_h", "must be at most 8760");
        }
        if self.max_body_bytes < 1024 {
            return refuse("max_body_bytes", "must be at least 1024");
        }
        Tokens::new(&self.api_tokens).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Settings {
        serde_json::from_str(text).expect("settings")
    }

    #[test]
    fn secrets_come_as_a_list_or_separated_by_commas() {
        let list = settings(r#"{"github_webhook_secrets": ["a", "", "b"], "jira_webhook_secrets": "c, d,"}"#);
        let github: Vec<_> = list.github_webhook_secrets.bytes().collect();
        let jira: Vec<_> = list.jira_webhook_secrets.bytes().collect();
        assert_eq!((github, jira), (vec![&b"a"[..], b"b"], vec![&b"c"[..], b"d"]));
    }

    #[test]
    fn a_start_without_webhook_secret_is_refused_naming_the_key() {
        let error = settings(r#"{"github_webhook_secrets": " , "}"#)
            .check()
            .expect_err("no secret");
        assert!(
            error.to_string().contains("ingest.github_webhook_secrets"),
            "{error}"
        );
        let error = settings(r#"{"github_webhook_secrets": "a"}"#)
            .check()
            .expect_err("no secret");
        assert!(
            error.to_string().contains("ingest.jira_webhook_secrets"),
            "{error}"
        );
    }

    #[test]
    fn a_token_hash_of_the_wrong_length_is_refused_naming_it() {
        let text = r#"{"github_webhook_secrets": "a", "jira_webhook_secrets": "b",
            "api_tokens": {"ci": {"sha256": "abc", "role": "viewer"}}}"#;
        let error = settings(text).check().expect_err("short hash");
        assert!(
            error.to_string().contains("ingest.api_tokens.ci.sha256"),
            "{error}"
        );
    }

    #[test]
    fn file_and_environment_together_give_settings_that_pass() {
        let directory = tempfile::tempdir().expect("directory");
        let file = directory.path().join("journeyman.toml");
        let hash = "ab".repeat(32);
        let text = format!(
            "[ingest]\ngithub_webhook_secrets = [\"a\", \"b\"]\n[ingest.api_tokens.ci]\nsha256 = \"{hash}\"\nrole = \"operator\"\n"
        );
        std::fs::write(&file, text).expect("file");
        let env = [
            ("JOURNEYMAN__INGEST__JIRA_WEBHOOK_SECRETS", "c,d"),
            ("JOURNEYMAN__INGEST__OWN_ACCOUNTS", "journeyman[bot], Journeyman"),
            ("JOURNEYMAN__INGEST__POLL_INTERVAL_S", "5"),
            ("JOURNEYMAN__GITHUB_READER__TOKEN", "t"),
            ("JOURNEYMAN__JIRA_READER__BASE_URL", "https://acme.example"),
            ("JOURNEYMAN__JIRA_READER__API_TOKEN", "t"),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config: Config = bootstrap::settings::load(Some(&file), env).expect("settings");
        bootstrap::ServiceConfig::check(&config).expect("they pass");
        assert_eq!(
            (config.ingest.poll_interval_s, config.ingest.own_accounts.len()),
            (5, 2)
        );
        assert_eq!(config.ingest.github_webhook_secrets.bytes().count(), 2);
        assert_eq!(config.ingest.jira_webhook_secrets.bytes().count(), 2);
        assert_eq!(config.ingest.api_tokens["ci"].role, Role::Operator);
    }

    #[test]
    fn secrets_do_not_show_in_debug_output() {
        let list = settings(r#"{"github_webhook_secrets": ["hunter2"]}"#);
        assert!(!format!("{list:?}").contains("hunter2"));
    }
}
