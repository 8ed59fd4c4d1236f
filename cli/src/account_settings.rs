//! Settings that follow from accounts, a model and the people who may ask for work.
//!
//! `journeyman setup` writes them into the settings file; demo and stories give the same settings to their services as variables.

use domain::CommitAuthor;
use github::registration::Role;
use secrecy::{ExposeSecret, SecretString};

/// One setting.
#[derive(Clone, Debug)]
pub struct AccountSetting {
    pub(crate) section: &'static str,
    pub(crate) key: &'static str,
    pub(crate) value: SettingValue,
}

/// The value of a setting.
#[derive(Clone, Debug)]
pub enum SettingValue {
    /// A text.
    Text(String),
    /// A number.
    Number(u64),
    /// Names that join those that the setting has.
    Names(Vec<String>),
    /// A secret, which goes into a file of this name.
    Secret(String, SecretString),
    /// A secret that the file of this name has already.
    KeptSecret(String),
}

fn setting(section: &'static str, key: &'static str, value: SettingValue) -> AccountSetting {
    AccountSetting { section, key, value }
}

fn text(section: &'static str, key: &'static str, value: &str) -> AccountSetting {
    setting(section, key, SettingValue::Text(value.to_owned()))
}

/// An App of a GitHub.
pub struct GithubApp {
    /// Reader or writer.
    pub role: Role,
    /// Its number.
    pub id: u64,
    /// Its private key; absent: its file is there.
    pub private_key: Option<SecretString>,
    /// Address of the API.
    pub api_url: String,
    /// Address that repositories are cloned from.
    pub git_url: String,
}

impl GithubApp {
    /// The name of the file with its private key.
    pub(crate) fn key_file(role: Role, id: u64) -> String {
        format!("{}.{id}.pem", role.section())
    }

    /// Its settings, by key.
    pub fn settings(&self) -> Vec<AccountSetting> {
        let section = self.role.section();
        let file = Self::key_file(self.role, self.id);
        let key = match &self.private_key {
            Some(key) => SettingValue::Secret(file, key.clone()),
            None => SettingValue::KeptSecret(file),
        };
        let mut settings = vec![
            setting(section, "app_id", SettingValue::Number(self.id)),
            setting(section, "private_key", key),
        ];
        let usual = github::Settings::default();
        if (&self.api_url, &self.git_url) != (&usual.api_url, &usual.git_url) {
            settings.push(text(section, "api_url", &self.api_url));
            settings.push(text(section, "git_url", &self.git_url));
        }
        settings
    }
}

/// The secret that a service signs its webhooks with.
pub fn webhook_secret(service: WebhookSender, secret: &SecretString) -> AccountSetting {
    let key = service.setting();
    setting(
        "ingest",
        key,
        SettingValue::Secret(key.to_owned(), secret.clone()),
    )
}

/// A sender of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookSender {
    /// GitHub.
    Github,
    /// Jira.
    Jira,
}

impl WebhookSender {
    /// The setting with the secret, and the name of its file.
    pub(crate) const fn setting(self) -> &'static str {
        match self {
            Self::Github => "github_webhook_secrets",
            Self::Jira => "jira_webhook_secrets",
        }
    }
}

/// Accounts of ours: what they do starts no job.
pub fn own_accounts(names: &[String]) -> AccountSetting {
    setting("ingest", "own_accounts", SettingValue::Names(names.to_vec()))
}

/// The author of commits.
pub fn commit_author(author: &CommitAuthor) -> AccountSetting {
    text("rules", "commit_author", &author.to_string())
}

/// Settings of an account of Jira; `before`: the former ones. A value that is usual or empty is written only over what was
/// there.
pub fn jira_account(
    section: &'static str,
    now: &jira::Settings,
    before: &jira::Settings,
) -> Vec<AccountSetting> {
    let token = SettingValue::Secret(format!("{section}.token"), now.api_token.clone());
    let mut settings = vec![
        text(section, "base_url", &now.base_url),
        setting(section, "api_token", token),
    ];
    if now.deployment == jira::Dialect::Cloud {
        settings.push(text(section, "email", &now.email));
    }
    for (key, value, before) in [
        ("deployment", now.deployment.as_str(), before.deployment.as_str()),
        ("site_url", &now.site_url, &before.site_url),
        ("expires", &now.expires, &before.expires),
        ("email", &now.email, &before.email),
    ] {
        if value != before && !settings.iter().any(|known| known.key == key) {
            settings.push(text(section, key, value));
        }
    }
    settings
}

/// The Jira group whose members may ask for work; `*`: everybody who can act on a ticket.
pub fn requesters(group: &str) -> AccountSetting {
    text("ingest", "jira_trigger_group", group)
}

/// The model that is asked where nobody names one, by the dialect of its provider.
pub fn usual_model(dialect: &str) -> Option<&'static str> {
    match dialect {
        "anthropic" => Some("claude-sonnet-5-5"),
        "openai" => Some("gpt-6.1-sol"),
        _ => None,
    }
}

/// A model as a set-up names it.
#[derive(Clone, Debug, Default)]
pub struct ModelChoice {
    /// Dialect of its provider.
    pub dialect: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its address; absent: the dialect's own provider.
    pub base_url: Option<String>,
    /// The key that has to be kept; absent: the settings have one, or none is needed.
    pub api_key: Option<SecretString>,
}

impl ModelChoice {
    /// Its settings that are new.
    pub fn settings(&self, before: &Self) -> Vec<AccountSetting> {
        let texts = [
            ("dialect", &self.dialect, &before.dialect),
            ("name", &self.name, &before.name),
            ("base_url", &self.base_url, &before.base_url),
        ];
        let changed = texts.into_iter().filter(|(_, now, before)| now != before);
        let changed = changed.filter_map(|(key, now, _)| Some(text("model", key, now.as_ref()?)));
        let key = self.api_key.as_ref();
        let key = key.map(|key| {
            setting(
                "model",
                "api_key",
                SettingValue::Secret("model.key".to_owned(), key.clone()),
            )
        });
        changed.chain(key).collect()
    }
}

/// The result of a whole set-up with both services.
pub struct AccountSetup {
    /// Reader and writer.
    pub apps: [GithubApp; 2],
    /// The secrets of GitHub's and Jira's webhooks.
    pub webhook_secrets: [SecretString; 2],
    /// Reader and writer.
    pub jira: [jira::Settings; 2],
    /// Logins and ids of our accounts.
    pub own_accounts: Vec<String>,
    /// The author of commits.
    pub author: CommitAuthor,
    /// The Jira group whose members may ask for work.
    pub requesters: String,
    /// The model.
    pub model: ModelChoice,
}

impl AccountSetup {
    /// Everything that `journeyman setup` writes at its steps.
    pub fn settings(&self) -> Vec<AccountSetting> {
        let nothing = jira::Settings::default();
        let [of_github, of_jira] = &self.webhook_secrets;
        let [reader, writer] = &self.jira;
        let mut settings: Vec<AccountSetting> = self.apps.iter().flat_map(GithubApp::settings).collect();
        settings.push(webhook_secret(WebhookSender::Github, of_github));
        settings.push(commit_author(&self.author));
        settings.extend(jira_account("jira_reader", reader, &nothing));
        settings.extend(jira_account("jira_writer", writer, &nothing));
        settings.push(webhook_secret(WebhookSender::Jira, of_jira));
        settings.push(own_accounts(&self.own_accounts));
        settings.push(requesters(&self.requesters));
        settings.extend(self.model.settings(&ModelChoice::default()));
        settings
    }
}

/// The settings as variables of a service's environment.
pub fn as_variables(settings: &[AccountSetting]) -> Vec<(String, String)> {
    let variable = |setting: &AccountSetting| {
        let value = match &setting.value {
            SettingValue::Text(text) => text.clone(),
            SettingValue::Number(number) => number.to_string(),
            SettingValue::Names(names) => names.join(","),
            SettingValue::Secret(_, secret) => secret.expose_secret().to_owned(),
            SettingValue::KeptSecret(_) => return None,
        };
        let name = format!("JOURNEYMAN__{}__{}", setting.section, setting.key).to_uppercase();
        Some((name, value))
    };
    settings.iter().filter_map(variable).collect()
}
