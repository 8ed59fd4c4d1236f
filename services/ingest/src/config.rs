//! Settings of ingest.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use bootstrap::settings::{Error, TextList};
use domain::InstanceName;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, de::IgnoredAny};

use crate::{
    api::{ApiToken, ApiTokens},
    facts::attachments::AttachmentSettings,
    webhook::networks::WebhookNetworks,
};

// A stranger can brute-force a shorter secret offline from one signed delivery.
const SHORTEST_SECRET: usize = 16;

/// Sections of the settings that ingest reads.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Section `[nats]`.
    pub nats: queue::Settings,
    /// Section `[redis]`.
    pub redis: lease::Settings,
    /// Section `[telemetry]`.
    pub telemetry: bootstrap::telemetry::Settings,
    /// Section `[rules]`.
    pub rules: bootstrap::rules::Settings,
    /// Section `[ingest]`.
    pub ingest: Settings,
    /// Section `[github_reader]`.
    pub github_reader: github::Settings,
    /// Section `[jira_reader]`.
    pub jira_reader: jira::Settings,
    /// `[github.<instance>]`: GitHub servers in addition to the default one.
    #[serde(deserialize_with = "github::deserialize_readers")]
    pub github: BTreeMap<InstanceName, github::Settings>,
    /// `[jira.<instance>]`: Jira sites in addition to the default one.
    #[serde(deserialize_with = "jira::deserialize_readers")]
    pub jira: BTreeMap<InstanceName, jira::Settings>,
    /// `[folder.<name>]`: names of the folders. Their paths are settings of the reporter alone.
    pub folder: BTreeMap<InstanceName, IgnoredAny>,
}

/// Webhook secrets of instances, by instance name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InstanceSecrets {
    /// Secrets of `[github.<instance>]`.
    pub github: BTreeMap<InstanceName, SecretList>,
    /// Secrets of `[jira.<instance>]`.
    pub jira: BTreeMap<InstanceName, SecretList>,
    /// Secrets of the web requests of Automation at `[jira.<instance>]`.
    pub automation: BTreeMap<InstanceName, SecretList>,
}

impl Config {
    /// Settings of the default GitHub; absent when folders are configured and GitHub is not.
    pub(crate) fn default_github(&self) -> Option<&github::Settings> {
        let is_off = !self.folder.is_empty() && self.github_reader.is_without_account();
        (!is_off).then_some(&self.github_reader)
    }

    /// Hosts of the pages of GitHub, by instance.
    pub(crate) fn github_hosts(&self) -> BTreeMap<Option<InstanceName>, String> {
        let default = self.default_github().map(|settings| (None, settings.page_host()));
        let named = self.github.iter();
        let named = named.map(|(name, settings)| (Some(name.clone()), settings.page_host()));
        default.into_iter().chain(named).collect()
    }

    /// Expiry times of the reader credentials that the settings contain.
    pub(crate) fn credential_ends(&self) -> domain::CredentialEnds {
        jira::list_token_ends("jira_reader", Some(&self.jira_reader), &self.jira)
    }

    /// The default Jira; absent when folders or GitHub are configured and Jira is not.
    pub(crate) fn default_jira(&self) -> Option<&jira::Settings> {
        let is_elsewhere = !self.folder.is_empty() || !self.github_reader.is_without_account();
        let is_off = is_elsewhere && self.jira_reader.is_empty();
        (!is_off).then_some(&self.jira_reader)
    }

    /// Checks the default accounts that are configured, and requires a secret for each of their webhooks.
    fn check_defaults(&self) -> Result<(), Error> {
        let named = |(key, problem): (String, String)| Error::new(key, problem);
        if let Some(github) = self.default_github() {
            let secrets = &self.ingest.github_webhook_secrets;
            check_secrets("github_webhook_secrets", "GitHub", secrets)?;
            github.check("github_reader").map_err(named)?;
        }
        if let Some(jira) = self.default_jira() {
            let secrets = &self.ingest.jira_webhook_secrets;
            check_secrets("jira_webhook_secrets", "Jira", secrets)?;
            jira.check("jira_reader").map_err(named)?;
        }
        Ok(())
    }

    /// Checks the secrets of Automation, which are optional.
    fn check_automation(&self) -> Result<(), Error> {
        let ingest = &self.ingest;
        if !ingest.jira_automation_secrets.is_empty() {
            check_secrets(
                "jira_automation_secrets",
                "web request",
                &ingest.jira_automation_secrets,
            )?;
        }
        for (name, secrets) in &ingest.webhook_secrets.automation {
            let key = format!("webhook_secrets.automation.{name}");
            if !self.jira.contains_key(name) {
                return Err(Error::new(
                    format!("ingest.{key}"),
                    format!("needs the section [jira.{name}]"),
                ));
            }
            check_secrets(&key, "web request", secrets)?;
        }
        Ok(())
    }

    /// Checks the settings of each instance, and requires a secret for its webhook.
    fn check_instances(&self) -> Result<(), Error> {
        let named = |(key, problem): (String, String)| Error::new(key, problem);
        let secrets = &self.ingest.webhook_secrets;
        let signed = |kind: &str, name: &InstanceName, list: Option<&SecretList>| {
            let key = format!("ingest.webhook_secrets.{kind}.{name}");
            list.filter(|list| !list.is_empty())
                .map(drop)
                .ok_or_else(|| Error::new(key, "must hold the secret of this instance's webhook"))
        };
        for (name, settings) in &self.github {
            settings.check(&format!("github.{name}")).map_err(named)?;
            signed("github", name, secrets.github.get(name))?;
        }
        for (name, settings) in &self.jira {
            settings.check(&format!("jira.{name}")).map_err(named)?;
            signed("jira", name, secrets.jira.get(name))?;
        }
        Ok(())
    }
}

/// `[ingest]` of the settings.
#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Address on which webhooks and the API are served.
    pub listen: SocketAddr,
    /// Secrets of the GitHub webhook; several during a rotation.
    pub github_webhook_secrets: SecretList,
    /// Secrets of the Jira webhook; several during a rotation.
    pub jira_webhook_secrets: SecretList,
    /// Secrets of web requests of Jira Automation; several during a rotation. Empty: no such request is accepted.
    pub jira_automation_secrets: SecretList,
    /// Secrets of the webhooks of `[github.<instance>]` and `[jira.<instance>]`.
    pub webhook_secrets: InstanceSecrets,
    /// Networks from which webhooks are accepted, in addition to the signature check, e.g. `192.30.252.0/22`; empty: any
    /// network.
    pub webhook_networks: TextList,
    /// Tokens of the API, by caller name.
    pub api_tokens: BTreeMap<String, ApiToken>,
    /// Names, logins and account ids of Journeyman's own accounts, as a list or separated by commas. Their actions never start
    /// a job.
    #[serde(deserialize_with = "deserialize_names")]
    pub own_accounts: BTreeSet<String>,
    /// Seconds between two polls of Jira and GitHub, 1 to 86,400.
    pub poll_interval_s: u64,
    /// Seconds after which a commit without any reported check counts as a commit without checks, 1 to 86,400. CI that starts
    /// late needs more.
    pub checks_absent_s: u64,
    /// Seconds after the end of a commit's last check before its checks count as complete, at most 3,600, because a finished
    /// check may start others.
    ///
    /// Checks never count as green without those that GitHub requires. Their absence causes a notice after
    /// `checks_absent_s`.
    pub checks_settle_s: u64,
    /// Seconds after which Journeyman comments once on a ticket that checks of its pull request have not ended, 60 to 604,800.
    /// CI that takes longer needs more.
    pub checks_pending_s: u64,
    /// Seconds between two sweeps for tickets with a lost wake-up, 1 to 86,400.
    pub sweep_interval_s: u64,
    /// Days that the journal of a run is kept after its end; 0: forever. The reporter enforces it.
    pub journal_days: u32,
    /// Hours that an unreferenced object (pack, large body) is kept after its last write, at most 8,760; 0: forever. The
    /// reporter enforces it.
    pub object_grace_h: u32,
    /// Jira group whose members may request work and use `/stop` and `/retry` in comments, and whose comments are instructions;
    /// `*`: every account that can act on the ticket; empty: no account.
    pub jira_trigger_group: String,
    /// Role of the ticket's Jira project with the same rights as `jira_trigger_group`; empty: no role. The reader account needs
    /// the right to administer each project.
    pub jira_trigger_role: String,
    /// Attachments of tickets.
    pub attachments: AttachmentSettings,
    /// Concurrently handled deliveries of one origin, 1 to 256.
    pub router_slots: usize,
    /// Largest webhook body in bytes, at least 1,024.
    pub max_body_bytes: usize,
    /// MiB of memory for all webhook bodies in transit. At the limit, ingest refuses the body that has been in transit longest.
    /// At least `max_body_bytes`.
    pub body_memory_mib: usize,
    /// Milliseconds to wait for NATS to acknowledge a delivery before the answer is 503, 100 to 9,000. GitHub and Jira wait ten
    /// seconds.
    pub publish_timeout_ms: u64,
    /// Maximum concurrent connections, at least 8.
    pub connections: usize,
    /// Maximum concurrent connections of one IPv4 address or one IPv6 /64 network, at least 8. Peers behind a load balancer
    /// share its address.
    pub connections_per_address: usize,
    /// Milliseconds after SIGTERM in which requests are still accepted while `/readyz` reports not ready, at most 60,000. A
    /// load balancer needs that time to route requests elsewhere.
    pub drain_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7401)),
            github_webhook_secrets: SecretList::default(),
            jira_webhook_secrets: SecretList::default(),
            jira_automation_secrets: SecretList::default(),
            webhook_secrets: InstanceSecrets::default(),
            webhook_networks: TextList::default(),
            api_tokens: BTreeMap::new(),
            own_accounts: BTreeSet::new(),
            poll_interval_s: 60,
            checks_absent_s: 600,
            checks_settle_s: 30,
            checks_pending_s: 7_200,
            sweep_interval_s: 60,
            journal_days: 90,
            object_grace_h: 24,
            jira_trigger_group: String::new(),
            jira_trigger_role: String::new(),
            attachments: AttachmentSettings::default(),
            router_slots: 8,
            max_body_bytes: 25 * 1024 * 1024,
            body_memory_mib: 64,
            publish_timeout_ms: 3_000,
            connections: 512,
            connections_per_address: 256,
            drain_ms: 0,
        }
    }
}

/// Secrets from a list, or from one text separated by commas. Empty entries are dropped.
#[derive(Clone, Debug, Default)]
pub struct SecretList(Vec<SecretString>);

impl SecretList {
    /// Creates a list of trimmed, non-empty secrets.
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

fn deserialize_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
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
        self.check_own_accounts()?;
        self.check_defaults()?;
        self.check_automation()?;
        self.check_instances()
    }
}

impl Config {
    /// Requires `own_accounts` when every Jira account may instruct.
    ///
    /// Otherwise Journeyman's own comments would be instructions, and it would answer itself forever: the reader account cannot
    /// discover the writer account of the reporter.
    fn check_own_accounts(&self) -> Result<(), Error> {
        let reads_jira = self.default_jira().is_some() || !self.jira.is_empty();
        if reads_jira && self.ingest.jira_trigger_group.trim() == "*" && self.ingest.own_accounts.is_empty() {
            let problem = "must name the account of [jira_writer], because ingest.jira_trigger_group is \"*\"; \
                           journeyman setup jira does it";
            return Err(Error::new("ingest.own_accounts", problem));
        }
        Ok(())
    }
}

fn check_secrets(key: &str, sender: &str, secrets: &SecretList) -> Result<(), Error> {
    let refuse = |problem: String| Err(Error::new(format!("ingest.{key}"), problem));
    if secrets.is_empty() {
        return refuse(format!("must hold the secret of the {sender} webhook"));
    }
    if secrets.bytes().any(|secret| secret.len() < SHORTEST_SECRET) {
        return refuse(format!(
            "each secret must have at least {SHORTEST_SECRET} characters"
        ));
    }
    Ok(())
}

impl Settings {
    fn check(&self) -> Result<(), Error> {
        let refuse = |key: &str, problem: &str| Err(Error::new(format!("ingest.{key}"), problem));
        if !(1..=86_400).contains(&self.poll_interval_s) {
            return refuse("poll_interval_s", "must be between 1 and 86400");
        }
        if !(1..=86_400).contains(&self.checks_absent_s) {
            return refuse("checks_absent_s", "must be between 1 and 86400");
        }
        if !(60..=604_800).contains(&self.checks_pending_s) {
            return refuse("checks_pending_s", "must be between 60 and 604800");
        }
        if self.checks_settle_s > 3_600 {
            return refuse("checks_settle_s", "must be at most 3600");
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
        if let Some((key, problem)) = self.attachments.find_problem() {
            return refuse(&format!("attachments.{key}"), problem);
        }
        self.check_http()?;
        // Constructing the tokens validates them.
        ApiTokens::new(&self.api_tokens).map(|_| ())
    }

    fn check_http(&self) -> Result<(), Error> {
        let refuse = |key: &str, problem: &str| Err(Error::new(format!("ingest.{key}"), problem));
        self.networks()?;
        if self.max_body_bytes < 1024 {
            return refuse("max_body_bytes", "must be at least 1024");
        }
        // One body of the maximum size must fit. The upper limit keeps the shift from overflowing.
        if self.body_memory_mib > 65_536 || self.body_memory_mib << 20 < self.max_body_bytes {
            return refuse(
                "body_memory_mib",
                "must be at least max_body_bytes, and at most 65536",
            );
        }
        if !(100..=9_000).contains(&self.publish_timeout_ms) {
            return refuse("publish_timeout_ms", "must be between 100 and 9000");
        }
        if self.connections < 8 {
            return refuse("connections", "must be at least 8");
        }
        if self.connections_per_address < 8 {
            return refuse("connections_per_address", "must be at least 8");
        }
        if self.drain_ms > 60_000 {
            return refuse("drain_ms", "must be at most 60000");
        }
        Ok(())
    }

    /// Networks from which webhooks are accepted.
    pub(crate) fn networks(&self) -> Result<WebhookNetworks, Error> {
        WebhookNetworks::new(&self.webhook_networks)
            .map_err(|problem| Error::new("ingest.webhook_networks", problem))
    }

    /// Connection limits of the listener.
    pub(crate) fn limits(&self) -> bootstrap::http::ListenerLimits {
        bootstrap::http::ListenerLimits {
            connections: self.connections,
            per_address: self.connections_per_address,
            lame_duck: Duration::from_millis(self.drain_ms),
            ..bootstrap::http::ListenerLimits::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use bootstrap::ServiceConfig as _;

    use super::*;
    use api::types::Role;

    fn parse_settings(text: &str) -> Settings {
        serde_json::from_str(text).expect("settings")
    }

    /// Settings with both default accounts and the given `[ingest]` section.
    fn parse_ingest_config(ingest: &str) -> Config {
        let rest = r#""github_reader": {"token": "t"}, "jira_reader": {"base_url": "https://a.example", "api_token": "t"}"#;
        serde_json::from_str(&format!(r#"{{"ingest": {ingest}, {rest}}}"#)).expect("settings")
    }

    #[test]
    fn folder_settings_disable_only_unnamed_accounts() {
        let config = |text: &str| -> Config { serde_json::from_str(text).expect("settings") };
        let bare = config(r#"{"folder": {"shop": {"path": "/anywhere"}}}"#);
        bare.check().expect("a folder needs no account");
        assert!(bare.default_github().is_none() && bare.default_jira().is_none());
        let nothing = config("{}").check().expect_err("nothing to work on");
        assert_eq!(nothing.key, "ingest.github_webhook_secrets");
        let half = config(r#"{"folder": {"shop": {}}, "github_reader": {"token": "t"}}"#);
        assert_eq!(
            half.check().expect_err("its webhooks are not signed").key,
            "ingest.github_webhook_secrets"
        );
        let wrong = config(
            r#"{"folder": {"shop": {}}, "jira_reader": {"api_token": "t"},
            "ingest": {"jira_webhook_secrets": "0123456789abcdef"}}"#,
        );
        assert_eq!(
            wrong.check().expect_err("a site is missing").key,
            "jira_reader.base_url"
        );
    }

    #[test]
    fn github_only_settings_disable_jira() {
        let config = |text: &str| -> Config { serde_json::from_str(text).expect("settings") };
        let github = config(
            r#"{"github_reader": {"token": "t"}, "ingest": {"github_webhook_secrets": "0123456789abcdef"}}"#,
        );
        github.check().expect("issues of GitHub are tickets, too");
        assert!(github.default_github().is_some() && github.default_jira().is_none());
        let jira = r#"{"jira_reader": {"base_url": "https://a.example", "api_token": "t"}}"#;
        let missing = config(jira).check().expect_err("changes need a repository");
        assert_eq!(missing.key, "ingest.github_webhook_secrets");
    }

    #[test]
    fn secrets_parse_from_list_or_text() {
        let list =
            parse_settings(r#"{"github_webhook_secrets": ["a", "", "b"], "jira_webhook_secrets": "c, d,"}"#);
        let github: Vec<_> = list.github_webhook_secrets.bytes().collect();
        let jira: Vec<_> = list.jira_webhook_secrets.bytes().collect();
        assert_eq!((github, jira), (vec![&b"a"[..], b"b"], vec![&b"c"[..], b"d"]));
    }

    #[test]
    fn missing_webhook_secret_names_its_key() {
        let error = parse_ingest_config(r#"{"github_webhook_secrets": " , "}"#)
            .check()
            .expect_err("no secret");
        assert!(
            error.to_string().contains("ingest.github_webhook_secrets"),
            "{error}"
        );
        let error = parse_ingest_config(r#"{"github_webhook_secrets": "0123456789abcdef"}"#)
            .check()
            .expect_err("no secret");
        assert!(
            error.to_string().contains("ingest.jira_webhook_secrets"),
            "{error}"
        );
    }

    #[test]
    fn instructions_by_everybody_need_own_accounts() {
        let with = |group: &str, accounts: &str| {
            let secret = "0123456789abcdef";
            let text = format!(
                r#"{{"github_webhook_secrets": "{secret}", "jira_webhook_secrets": "{secret}",
                "jira_trigger_group": "{group}", "own_accounts": {accounts}}}"#
            );
            parse_ingest_config(&text).check().err().map(|error| error.key)
        };
        let own_accounts = Some("ingest.own_accounts".to_owned());
        assert_eq!(with("*", "[]"), own_accounts);
        assert_eq!(with(" * ", "[]"), own_accounts);
        assert_eq!(with("*", "[\"a9\"]"), None);
        assert_eq!(with("agents", "[]"), None);
        // Without Jira no comment is an instruction of everybody.
        let github: Config = serde_json::from_str(
            r#"{"github_reader": {"token": "t"},
            "ingest": {"github_webhook_secrets": "0123456789abcdef", "jira_trigger_group": "*"}}"#,
        )
        .expect("settings");
        github.check().expect("no Jira is read");
    }

    #[test]
    fn automation_secret_is_optional_but_long() {
        let check = |more: &str| {
            let secret = "0123456789abcdef";
            let text = format!(
                r#"{{"github_webhook_secrets": "{secret}", "jira_webhook_secrets": "{secret}"{more}}}"#
            );
            parse_ingest_config(&text).check().err().map(|error| error.key)
        };
        assert_eq!(check(""), None);
        assert_eq!(check(r#", "jira_automation_secrets": "0123456789abcdef""#), None);
        assert_eq!(
            check(r#", "jira_automation_secrets": "short""#).as_deref(),
            Some("ingest.jira_automation_secrets")
        );
        assert_eq!(
            check(r#", "webhook_secrets": {"automation": {"dc": "0123456789abcdef"}}"#).as_deref(),
            Some("ingest.webhook_secrets.automation.dc")
        );
    }

    #[test]
    fn guessable_webhook_secret_names_its_key() {
        let long = "0123456789abcdef";
        for (github, jira, key) in [
            ("0123456789abcde", long, "ingest.github_webhook_secrets"),
            (long, "0123456789abcdef,x", "ingest.jira_webhook_secrets"),
        ] {
            let text =
                format!(r#"{{"github_webhook_secrets": "{github}", "jira_webhook_secrets": "{jira}"}}"#);
            let error = parse_ingest_config(&text).check().expect_err("a short secret");
            assert!(error.to_string().contains(key), "{error}");
            assert!(!error.to_string().contains(github), "{error}");
        }
    }

    #[test]
    fn invalid_listener_limit_names_its_key() {
        for (key, value) in [
            ("max_body_bytes", "10"),
            ("body_memory_mib", "24"),
            ("publish_timeout_ms", "10000"),
            ("webhook_networks", "[\"10.0.0.0/8\", \"192.30.252.0\"]"),
            ("connections", "1"),
            ("connections_per_address", "0"),
            ("drain_ms", "100000"),
        ] {
            let text = format!(
                r#"{{"github_webhook_secrets": "0123456789abcdef", "jira_webhook_secrets": "0123456789abcdef", "{key}": {value}}}"#
            );
            let error = parse_settings(&text).check().expect_err(key);
            assert!(error.to_string().contains(&format!("ingest.{key}")), "{error}");
        }
    }

    #[test]
    fn short_token_hash_names_its_key() {
        let text = r#"{"github_webhook_secrets": "0123456789abcdef", "jira_webhook_secrets": "0123456789abcdef",
            "api_tokens": {"ci": {"sha256": "abc", "role": "viewer"}}}"#;
        let error = parse_settings(text).check().expect_err("short hash");
        assert!(
            error.to_string().contains("ingest.api_tokens.ci.sha256"),
            "{error}"
        );
    }

    #[test]
    fn file_and_environment_settings_combine() {
        let directory = tempfile::tempdir().expect("directory");
        let file = directory.path().join("journeyman.toml");
        let hash = "ab".repeat(32);
        let text = format!(
            "[ingest]\ngithub_webhook_secrets = [\"secret-number-one\", \"secret-number-two\"]\n[ingest.api_tokens.ci]\nsha256 = \"{hash}\"\nrole = \"operator\"\n"
        );
        std::fs::write(&file, text).expect("file");
        let env = [
            (
                "JOURNEYMAN__INGEST__JIRA_WEBHOOK_SECRETS",
                "secret-number-one,secret-number-two",
            ),
            ("JOURNEYMAN__INGEST__OWN_ACCOUNTS", "journeyman[bot], Journeyman"),
            ("JOURNEYMAN__INGEST__POLL_INTERVAL_S", "5"),
            ("JOURNEYMAN__GITHUB_READER__TOKEN", "t"),
            ("JOURNEYMAN__JIRA_READER__BASE_URL", "https://acme.example"),
            ("JOURNEYMAN__JIRA_READER__API_TOKEN", "t"),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config: Config = bootstrap::settings::load_settings(Some(&file), env).expect("settings");
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
        let list = parse_settings(r#"{"github_webhook_secrets": ["hunter2"]}"#);
        assert!(!format!("{list:?}").contains("hunter2"));
    }
}
