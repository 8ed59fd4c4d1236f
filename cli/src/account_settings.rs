//! Settings that follow from accounts, a model and the users who may request work.
//!
//! `journeyman setup` writes them into the settings file. Demo and stories pass the same settings to their services as variables.

use domain::CommitAuthor;
use github::registration::AppRole;
use secrecy::{ExposeSecret, SecretString};

/// Setting with its section, key and value.
#[derive(Clone, Debug)]
pub struct AccountSetting {
    pub(crate) section: &'static str,
    pub(crate) key: &'static str,
    pub(crate) value: SettingValue,
}

/// Value of a setting.
#[derive(Clone, Debug)]
pub enum SettingValue {
    /// Text.
    Text(String),
    /// Number.
    Number(u64),
    /// Names that are added to the existing ones of the setting.
    Names(Vec<String>),
    /// Secret for a file of this name.
    Secret(String, SecretString),
    /// Secret that the file of this name already contains.
    KeptSecret(String),
    /// No value, which removes the key.
    Removed,
}

fn build_setting(section: &'static str, key: &'static str, value: SettingValue) -> AccountSetting {
    AccountSetting { section, key, value }
}

fn build_text_setting(section: &'static str, key: &'static str, value: &str) -> AccountSetting {
    build_setting(section, key, SettingValue::Text(value.to_owned()))
}

/// GitHub App.
pub struct GithubApp {
    /// Reader or writer.
    pub role: AppRole,
    /// App id.
    pub id: u64,
    /// Private key; absent when its file exists.
    pub private_key: Option<SecretString>,
    /// Base URL of the API.
    pub api_url: String,
    /// Base URL from which repositories are cloned.
    pub git_url: String,
}

impl GithubApp {
    /// Name of the file with the private key.
    pub(crate) fn key_file(role: AppRole, id: u64) -> String {
        format!("{}.{id}.pem", role.section())
    }

    /// Settings of the App, by key.
    pub fn settings(&self) -> Vec<AccountSetting> {
        let section = self.role.section();
        let file = Self::key_file(self.role, self.id);
        let key = match &self.private_key {
            Some(key) => SettingValue::Secret(file, key.clone()),
            None => SettingValue::KeptSecret(file),
        };
        let mut settings = vec![
            build_setting(section, "app_id", SettingValue::Number(self.id)),
            build_setting(section, "private_key", key),
        ];
        // The addresses of github.com are the defaults, so they stay out of the settings file.
        let usual = github::Settings::default();
        if (&self.api_url, &self.git_url) != (&usual.api_url, &usual.git_url) {
            settings.push(build_text_setting(section, "api_url", &self.api_url));
            settings.push(build_text_setting(section, "git_url", &self.git_url));
        }
        settings
    }
}

/// Secret with which a service signs its webhooks.
pub fn build_webhook_secret_setting(service: WebhookSender, secret: &SecretString) -> AccountSetting {
    let key = service.setting();
    build_setting(
        "ingest",
        key,
        SettingValue::Secret(key.to_owned(), secret.clone()),
    )
}

/// Sender of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookSender {
    /// GitHub, by the settings of its webhook.
    Github,
    /// Jira, by the settings of its webhook.
    Jira,
}

impl WebhookSender {
    /// Setting with the secret, which is also the name of its file.
    pub(crate) const fn setting(self) -> &'static str {
        match self {
            Self::Github => "github_webhook_secrets",
            Self::Jira => "jira_webhook_secrets",
        }
    }
}

/// Accounts of Journeyman: their actions start no job.
pub fn build_own_accounts_setting(names: &[String]) -> AccountSetting {
    build_setting("ingest", "own_accounts", SettingValue::Names(names.to_vec()))
}

/// Author of commits.
pub fn build_commit_author_setting(author: &CommitAuthor) -> AccountSetting {
    build_text_setting("rules", "commit_author", &author.to_string())
}

/// Settings of a Jira account; `before` contains the previous ones. A default or empty value is written only when it replaces
/// another one.
pub fn build_jira_account_settings(
    section: &'static str,
    now: &jira::Settings,
    before: &jira::Settings,
) -> Vec<AccountSetting> {
    let token = SettingValue::Secret(format!("{section}.token"), now.api_token.clone());
    let mut settings = vec![
        build_text_setting(section, "base_url", &now.base_url),
        build_setting(section, "api_token", token),
    ];
    // The Cloud authenticates an API token together with a mail address, a Data Center the token alone.
    if now.deployment == jira::JiraDialect::Cloud {
        settings.push(build_text_setting(section, "email", &now.email));
    }
    for (key, value, before) in [
        ("deployment", now.deployment.as_str(), before.deployment.as_str()),
        ("site_url", &now.site_url, &before.site_url),
        ("expires", &now.expires, &before.expires),
        ("email", &now.email, &before.email),
    ] {
        if value != before && !settings.iter().any(|known| known.key == key) {
            settings.push(build_text_setting(section, key, value));
        }
    }
    settings
}

/// Jira group whose members may request work; `*`: every account that can act on a ticket.
pub fn build_requesters_setting(group: &str) -> AccountSetting {
    build_text_setting("ingest", "jira_trigger_group", group)
}

/// Default model of a dialect; `None` when the user must name one.
pub fn find_default_model(dialect: &str) -> Option<&'static str> {
    match dialect {
        "anthropic" => Some("claude-sonnet-5-5"),
        "openai" | "openai-responses" => Some("gpt-6.1-sol"),
        _ => None,
    }
}

/// Keys of `[model]` that belong to its provider. A change of the provider removes them; limits, prices and other
/// providers stay.
pub(crate) const PROVIDER_KEYS: [&str; 17] = [
    "dialect",
    "name",
    "base_url",
    "allow_insecure",
    "api_key",
    "key_source",
    "auth_token",
    "headers",
    "api_version",
    "region",
    "aws_profile",
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "thinking",
    "effort",
    "long_cache",
];

/// Model as a setup names it.
#[derive(Clone, Debug, Default)]
pub struct ModelChoice {
    /// Dialect of its provider.
    pub dialect: Option<String>,
    /// Name of the model.
    pub name: Option<String>,
    /// Base URL; absent: the dialect's own provider.
    pub base_url: Option<String>,
    /// AWS region; for Bedrock alone.
    pub region: Option<String>,
    /// API key to store; absent when the settings have one, or the model needs none.
    pub api_key: Option<SecretString>,
}

impl ModelChoice {
    /// Settings that differ from the previous ones.
    pub fn settings(&self, before: &Self) -> Vec<AccountSetting> {
        let texts = [
            ("dialect", &self.dialect, &before.dialect),
            ("name", &self.name, &before.name),
            ("base_url", &self.base_url, &before.base_url),
            ("region", &self.region, &before.region),
        ];
        let changed = texts.into_iter().filter(|(_, now, before)| now != before);
        let changed =
            changed.filter_map(|(key, now, _)| Some(build_text_setting("model", key, now.as_ref()?)));
        let key = self.api_key.as_ref();
        let key = key.map(|key| {
            build_setting(
                "model",
                "api_key",
                SettingValue::Secret("model.key".to_owned(), key.clone()),
            )
        });
        changed.chain(key).collect()
    }

    /// Settings that replace the ones of another provider: its remaining keys are removed.
    pub(crate) fn replacing_settings(&self) -> Vec<AccountSetting> {
        let mut settings = self.settings(&Self::default());
        let unset: Vec<&str> = PROVIDER_KEYS
            .into_iter()
            .filter(|key| !settings.iter().any(|setting| setting.key == *key))
            .collect();
        let removed = unset
            .into_iter()
            .map(|key| build_setting("model", key, SettingValue::Removed));
        settings.extend(removed);
        settings
    }
}

/// Result of a complete setup with both services.
pub struct AccountSetup {
    /// Reader and writer.
    pub apps: [GithubApp; 2],
    /// Webhook secrets of GitHub and Jira.
    pub webhook_secrets: [SecretString; 2],
    /// Reader and writer.
    pub jira: [jira::Settings; 2],
    /// Logins and ids of our accounts.
    pub own_accounts: Vec<String>,
    /// Author of commits.
    pub author: CommitAuthor,
    /// Jira group whose members may request work.
    pub requesters: String,
    /// Model for all roles.
    pub model: ModelChoice,
}

impl AccountSetup {
    /// Settings that `journeyman setup` writes in its steps.
    pub fn settings(&self) -> Vec<AccountSetting> {
        let unset = jira::Settings::default();
        let [of_github, of_jira] = &self.webhook_secrets;
        let [reader, writer] = &self.jira;
        let mut settings: Vec<AccountSetting> = self.apps.iter().flat_map(GithubApp::settings).collect();
        settings.push(build_webhook_secret_setting(WebhookSender::Github, of_github));
        settings.push(build_commit_author_setting(&self.author));
        settings.extend(build_jira_account_settings("jira_reader", reader, &unset));
        settings.extend(build_jira_account_settings("jira_writer", writer, &unset));
        settings.push(build_webhook_secret_setting(WebhookSender::Jira, of_jira));
        settings.push(build_own_accounts_setting(&self.own_accounts));
        settings.push(build_requesters_setting(&self.requesters));
        settings.extend(self.model.settings(&ModelChoice::default()));
        settings
    }
}

/// Converts the settings into environment variables of a service.
pub fn render_variables(settings: &[AccountSetting]) -> Vec<(String, String)> {
    let variable = |setting: &AccountSetting| {
        let value = match &setting.value {
            SettingValue::Text(text) => text.clone(),
            SettingValue::Number(number) => number.to_string(),
            SettingValue::Names(names) => names.join(","),
            SettingValue::Secret(_, secret) => secret.expose_secret().to_owned(),
            // The value of a kept secret is only in its file.
            SettingValue::KeptSecret(_) | SettingValue::Removed => return None,
        };
        let name = format!("JOURNEYMAN__{}__{}", setting.section, setting.key).to_uppercase();
        Some((name, value))
    };
    settings.iter().filter_map(variable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_provider_removes_remaining_keys() {
        let chosen = ModelChoice {
            dialect: Some("openai".to_owned()),
            name: Some("gpt-6.1-sol".to_owned()),
            api_key: Some("new".to_owned().into()),
            ..ModelChoice::default()
        };
        let settings = chosen.replacing_settings();
        let is_removed = |setting: &&AccountSetting| matches!(setting.value, SettingValue::Removed);
        let removed: Vec<&str> = settings
            .iter()
            .filter(is_removed)
            .map(|found| found.key)
            .collect();
        assert_eq!(settings.len(), PROVIDER_KEYS.len(), "each key once: {settings:?}");
        for key in ["base_url", "auth_token", "headers", "region", "effort"] {
            assert!(removed.contains(&key), "{key}: {removed:?}");
        }
        for key in ["dialect", "name", "api_key"] {
            assert!(!removed.contains(&key), "{key}: {removed:?}");
        }
        assert_eq!(render_variables(&settings).len(), 3);
    }
}
