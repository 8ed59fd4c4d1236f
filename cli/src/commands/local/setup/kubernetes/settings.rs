//! Settings of the services in a cluster: those of the base, with the public values of the setup.

use anyhow::Context;
use jira::JiraDialect;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value};

use super::{
    super::{super::folder::ConfiguredModel, KnownSettings},
    instances::JiraInstance,
};

const SERVICES: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../k8s/base/settings/journeyman.toml"
));
const EXECUTOR: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../k8s/base/settings/executor.toml"
));

/// Sections of the setup, with the keys that the cluster's settings take over.
const COPIED: [(&str, &[&str]); 8] = [
    ("rules", &["commit_author"]),
    (
        "ingest",
        &["jira_trigger_group", "jira_trigger_role", "own_accounts"],
    ),
    ("github_reader", &["app_id", "api_url", "git_url"]),
    ("github_writer", &["app_id", "api_url", "git_url"]),
    ("jira_reader", &JIRA),
    ("jira_writer", &JIRA),
    ("model", &["dialect", "name", "base_url", "region"]),
    ("reporter", &["run_url", "guide_url"]),
];
const JIRA: [&str; 6] = [
    "base_url",
    "site_url",
    "deployment",
    "email",
    "expires",
    "allow_insecure",
];
// Keys whose values are in the Secrets.
const SECRET: &[&str] = &[
    "private_key",
    "token",
    "api_token",
    "api_key",
    "auth_token",
    "github_webhook_secrets",
    "jira_webhook_secrets",
    "jira_automation_secrets",
];
// Keys and sections that describe this machine; the base has those of a pod.
const OF_MACHINE: [&str; 4] = ["listen", "metrics_listen", "data_dir", "dir"];
const SECTIONS_OF_MACHINE: [&str; 4] = ["nats", "redis", "tls", "cli"];

/// Texts of the two settings files of a cluster.
pub(super) struct ClusterSettings {
    /// Settings of ingest, planner, reporter and egress.
    pub(super) services: String,
    /// Settings of executors: public values only.
    pub(super) executor: String,
}

impl ClusterSettings {
    /// Fills in the base's settings. `console`: address of the console, in place of that of the settings.
    pub(super) fn build(
        known: &KnownSettings,
        model: &ConfiguredModel,
        grant: &grant::KeyPair,
        console: Option<&str>,
        instances: &[JiraInstance],
    ) -> anyhow::Result<Self> {
        let mut services = SettingsDocument::parse(SERVICES)?;
        if let Some(author) = &known.rules.commit_author {
            services.set("rules", "commit_author", author.to_string())?;
        }
        for (section, account) in [
            ("github_reader", &known.github_reader),
            ("github_writer", &known.github_writer),
        ] {
            services.set_github(section, account)?;
        }
        let mut own = Array::new();
        known
            .ingest
            .own_accounts
            .iter()
            .for_each(|name| own.push(name.as_str()));
        services.set("ingest", "own_accounts", own)?;
        services.remove("ingest", "jira_trigger_group");
        for (key, value) in [
            ("jira_trigger_group", &known.ingest.jira_trigger_group),
            ("jira_trigger_role", &known.ingest.jira_trigger_role),
        ] {
            if !value.trim().is_empty() {
                services.set("ingest", key, value.trim())?;
            }
        }
        for (section, account) in [
            ("jira_reader", &known.jira_reader),
            ("jira_writer", &known.jira_writer),
        ] {
            services.set_jira(section, account)?;
        }
        for instance in instances {
            services.add_jira_instance(instance)?;
        }
        for (key, value) in [
            ("dialect", &model.dialect),
            ("name", &model.name),
            ("base_url", &model.base_url),
            ("region", &model.region),
        ] {
            if let Some(value) = value {
                services.set("model", key, value.as_str())?;
            }
        }
        let below = |path: &str| console.map(|url| format!("{}/{path}", url.trim_end_matches('/')));
        for (key, value, usual) in [
            ("run_url", &known.reporter.run_url, below("runs/{run}")),
            ("guide_url", &known.reporter.guide_url, below("reviewers")),
        ] {
            match usual.as_ref().or(value.as_ref()) {
                Some(url) => services.set("reporter", key, url.as_str())?,
                None => services.remove("reporter", key),
            }
        }
        services.set("planner", "grant_key_id", grant.id.as_str())?;
        for section in ["reporter", "egress"] {
            services.set_grant_key(section, grant)?;
        }
        let mut executor = SettingsDocument::parse(EXECUTOR)?;
        executor.set_grant_key("executor", grant)?;
        Ok(Self {
            services: services.0.to_string(),
            executor: executor.0.to_string(),
        })
    }
}

/// Settings file in whose text values are replaced. Its other comments stay.
struct SettingsDocument(DocumentMut);

impl SettingsDocument {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let parsed: DocumentMut = text.parse().context("the settings of the base are not TOML")?;
        Ok(Self(parsed))
    }

    fn section(&mut self, name: &str) -> anyhow::Result<&mut dyn TableLike> {
        let section = self
            .0
            .entry(name)
            .or_insert_with(|| Item::Table(Table::new()))
            .as_table_like_mut();
        section.with_context(|| format!("{name} is not a section of the base's settings"))
    }

    /// Sets a value. The comment on its line asks to replace it, so it goes too.
    fn set(&mut self, section: &str, key: &str, value: impl Into<Value>) -> anyhow::Result<()> {
        self.section(section)?.insert(key, Item::Value(value.into()));
        Ok(())
    }

    fn remove(&mut self, section: &str, key: &str) {
        if let Some(section) = self.0.get_mut(section).and_then(Item::as_table_like_mut) {
            section.remove(key);
        }
    }

    fn set_github(&mut self, section: &str, account: &::github::Settings) -> anyhow::Result<()> {
        self.remove(section, "app_id");
        if let Some(id) = account.app_id {
            let id = i64::try_from(id).with_context(|| format!("{section}.app_id: {id} is too large"))?;
            self.set(section, "app_id", id)?;
        }
        let usual = ::github::Settings::default();
        if (&account.api_url, &account.git_url) != (&usual.api_url, &usual.git_url) {
            self.set(section, "api_url", account.api_url.as_str())?;
            self.set(section, "git_url", account.git_url.as_str())?;
        }
        Ok(())
    }

    /// Sets the values of a Jira account, or removes the section of a site that is not used.
    fn set_jira(&mut self, section: &str, account: &::jira::Settings) -> anyhow::Result<()> {
        self.0.remove(section);
        if account.is_empty() {
            return Ok(());
        }
        let values = list_site_values(account);
        for (key, value) in values.into_iter().chain(list_account_values(account)) {
            self.set(section, key, value)?;
        }
        Ok(())
    }

    /// Adds `[jira.<name>]` without the tokens of its accounts.
    fn add_jira_instance(&mut self, instance: &JiraInstance) -> anyhow::Result<()> {
        let mut site = Table::new();
        for (key, value) in list_site_values(&instance.reader) {
            site.insert(key, Item::Value(value));
        }
        for (role, account) in [("reader", &instance.reader), ("writer", &instance.writer)] {
            let mut values = InlineTable::new();
            for (key, value) in list_account_values(account) {
                values.insert(key, value);
            }
            site.insert(role, Item::Value(values.into()));
        }
        self.section("jira")?
            .insert(instance.name.as_str(), Item::Table(site));
        Ok(())
    }

    /// Replaces the public key of grants in `<section>.grant_keys`.
    fn set_grant_key(&mut self, section: &str, grant: &grant::KeyPair) -> anyhow::Result<()> {
        let mut keys = Table::new();
        keys.insert(&grant.id, Item::Value(grant.public_key.as_str().into()));
        self.section(section)?.insert("grant_keys", Item::Table(keys));
        Ok(())
    }
}

/// Values of a Jira site apart from its accounts.
fn list_site_values(site: &::jira::Settings) -> Vec<(&'static str, Value)> {
    let mut values = vec![("base_url", site.base_url.as_str().into())];
    if !site.site_url.is_empty() {
        values.push(("site_url", site.site_url.as_str().into()));
    }
    if site.deployment != JiraDialect::Cloud {
        values.push(("deployment", site.deployment.as_str().into()));
    }
    if site.allow_insecure {
        values.push(("allow_insecure", true.into()));
    }
    values
}

/// Values of an account of Jira apart from its token.
fn list_account_values(account: &::jira::Settings) -> Vec<(&'static str, Value)> {
    let texts = [("email", &account.email), ("expires", &account.expires)];
    let set = texts.into_iter().filter(|(_, value)| !value.is_empty());
    set.map(|(key, value)| (key, value.as_str().into())).collect()
}

/// Keys of a settings file that the cluster's settings do not take over, with their sections. The keys of secrets and of this
/// machine are left out.
pub(super) fn list_remaining_keys(text: &str) -> Vec<String> {
    // The settings were read before, so that a file with another problem does not get here.
    let Ok(document) = text.parse::<DocumentMut>() else {
        return Vec::new();
    };
    let mut remaining = Vec::new();
    for (section, item) in document.iter() {
        let Some(table) = item.as_table_like() else {
            continue;
        };
        // Every named Jira is taken over.
        if SECTIONS_OF_MACHINE.contains(&section) || section == "jira" {
            continue;
        }
        let copied = COPIED.iter().find(|(name, _)| *name == section);
        for (key, value) in table.iter() {
            let is_copied = copied.is_some_and(|(_, keys)| keys.contains(&key));
            if (section, key) == ("ingest", "webhook_secrets") {
                remaining.extend(list_other_webhooks(value));
            } else if !is_copied && !SECRET.contains(&key) && !OF_MACHINE.contains(&key) {
                remaining.push(format!("{section}.{key}"));
            }
        }
    }
    remaining
}

/// Keys of `ingest.webhook_secrets` that the cluster's settings do not take over.
fn list_other_webhooks(secrets: &Item) -> Vec<String> {
    let Some(kinds) = secrets.as_table_like() else {
        return Vec::new();
    };
    let others = kinds.iter().filter(|(kind, _)| *kind != "jira");
    others
        .map(|(kind, _)| format!("ingest.webhook_secrets.{kind}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::instances::tests::build_instance, *};

    fn build_known_settings() -> KnownSettings {
        let mut known = KnownSettings::default();
        known.rules.commit_author = Some("Bot <bot@acme.example>".parse().unwrap());
        for (account, id) in [(&mut known.github_reader, 7), (&mut known.github_writer, 8)] {
            account.app_id = Some(id);
            account.private_key = Some("a secret key".to_owned().into());
        }
        for account in [&mut known.jira_reader, &mut known.jira_writer] {
            account.base_url = "https://acme.atlassian.net".to_owned();
            account.email = "bot@acme.example".to_owned();
            account.api_token = "a secret token".to_owned().into();
        }
        known.ingest.jira_trigger_group = "developers".to_owned();
        known.ingest.own_accounts.0 = vec!["acme[bot]".to_owned()];
        known
    }

    fn build_cluster_settings(known: &KnownSettings, console: Option<&str>) -> ClusterSettings {
        let model = ConfiguredModel {
            dialect: Some("anthropic".to_owned()),
            name: Some("claude-sonnet-5-5".to_owned()),
            api_key: Some("a secret key".to_owned().into()),
            ..ConfiguredModel::default()
        };
        let grant = grant::generate_key_pair();
        let sites = [build_instance("dc")];
        let built = ClusterSettings::build(known, &model, &grant, console, &sites).unwrap();
        for text in [&built.services, &built.executor] {
            assert!(
                !text.contains("replace") && !text.contains("grant-1") && !text.contains("secret key"),
                "{text}"
            );
            assert!(text.contains(&grant.public_key), "{text}");
        }
        built
    }

    #[test]
    fn cluster_settings_have_no_placeholders_or_secrets() {
        let known = build_known_settings();
        let text = build_cluster_settings(&known, Some("https://jm.acme.example/")).services;
        let read: toml::Table = text.parse().unwrap();
        let value = |section: &str, key: &str| read[section][key].as_str().unwrap_or_default().to_owned();
        for (section, key, expected) in [
            ("rules", "commit_author", "Bot <bot@acme.example>"),
            ("rules", "dir", "/etc/journeyman-rules"),
            ("ingest", "jira_trigger_group", "developers"),
            ("jira_writer", "base_url", "https://acme.atlassian.net"),
            ("jira_writer", "email", "bot@acme.example"),
            ("model", "name", "claude-sonnet-5-5"),
            ("reporter", "run_url", "https://jm.acme.example/runs/{run}"),
            ("reporter", "guide_url", "https://jm.acme.example/reviewers"),
        ] {
            assert_eq!(value(section, key), expected, "{section}.{key}: {text}");
        }
        assert_eq!(read["github_reader"]["app_id"].as_integer(), Some(7));
        assert_eq!(read["github_writer"]["app_id"].as_integer(), Some(8));
        assert!(text.contains("own_accounts = [\"acme[bot]\"]"), "{text}");
        let site = read["jira"]["dc"].as_table().unwrap();
        assert_eq!(site["base_url"].as_str(), Some("https://jira.corp.example"));
        assert_eq!(site["deployment"].as_str(), Some("data-center"));
        // Ingest and the reporter refuse a section without their account.
        for role in ["reader", "writer"] {
            assert!(site[role].as_table().unwrap().is_empty(), "{text}");
        }
        for secret in ["reading token", "writing token", "signing secret"] {
            assert!(!text.contains(secret), "{text}");
        }
    }

    #[test]
    fn github_alone_has_no_jira_sections() {
        let mut known = build_known_settings();
        (known.jira_reader, known.jira_writer) = Default::default();
        known.ingest.jira_trigger_group.clear();
        let text = build_cluster_settings(&known, None).services;
        for absent in ["jira_", "run_url", "guide_url"] {
            let is_key = |line: &str| !line.starts_with('#') && line.contains(absent);
            assert!(!text.lines().any(is_key), "{absent}: {text}");
        }
    }

    #[test]
    fn remaining_keys_are_public_and_of_cluster() {
        let text = "[nats]\nurl = \"x\"\n[ingest]\nlisten = \"x\"\npoll_interval_s = 30\nown_accounts = []\n\
                    github_webhook_secrets = \"x\"\n[planner.budget]\nruns = 1\n[github.eu]\napi_url = \"x\"\n\
                    [jira.dc]\nbase_url = \"x\"\n[ingest.webhook_secrets]\njira.dc = [\"x\"]\ngithub.eu = [\"x\"]\n\
                    [model]\nname = \"x\"\neffort = \"high\"\napi_key = {file = \"x\"}\n";
        assert_eq!(
            list_remaining_keys(text),
            [
                "ingest.poll_interval_s",
                "ingest.webhook_secrets.github",
                "planner.budget",
                "github.eu",
                "model.effort"
            ]
        );
    }
}
