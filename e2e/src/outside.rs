//! Where the outside is and how Journeyman is known there, as settings.

use std::path::Path;

use serde::{Deserialize, Serialize};
use testkit::{github, jira, model};

/// The shared secret of the stand-ins' webhooks.
pub const WEBHOOK_SECRET: &str = "webhook-secret-of-the-stand-ins";

/// A model provider's protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Anthropic Messages.
    #[default]
    Anthropic,
    /// `OpenAI`-compatible Chat Completions.
    OpenAi,
}

impl Dialect {
    /// The name in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }
}

/// The stand-ins' addresses.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outside {
    /// Base of GitHub's REST API.
    pub github_api: String,
    /// Base of its git URLs.
    pub github_git: String,
    /// Jira's base.
    pub jira: String,
    /// The scripted model's base.
    pub model: String,
}

impl Outside {
    /// The settings that make Journeyman work against these stand-ins, as environment variables.
    pub fn environment(&self, dialect: Dialect, rules: &Path) -> Vec<(String, String)> {
        let base = match dialect {
            Dialect::Anthropic => self.model.clone(),
            Dialect::OpenAi => format!("{}/v1", self.model),
        };
        let own = format!("{},{}", jira::WRITER_NAME, github::WRITER_LOGIN);
        let reader = github::READER_APP_ID.to_string();
        let writer = github::WRITER_APP_ID.to_string();
        let rules = rules.display().to_string();
        let settings: [(&str, &str); 26] = [
            ("RULES__DIR", &rules),
            ("TELEMETRY__LOG_FILTER", "info"),
            ("INGEST__GITHUB_WEBHOOK_SECRETS", WEBHOOK_SECRET),
            ("INGEST__JIRA_WEBHOOK_SECRETS", WEBHOOK_SECRET),
            ("INGEST__OWN_ACCOUNTS", &own),
            ("INGEST__JIRA_TRIGGER_GROUP", "*"),
            ("INGEST__CHECKS_SETTLE_S", "0"),
            ("GITHUB_READER__API_URL", &self.github_api),
            ("GITHUB_READER__GIT_URL", &self.github_git),
            ("GITHUB_READER__APP_ID", &reader),
            ("GITHUB_READER__PRIVATE_KEY", github::APP_PRIVATE_KEY),
            ("GITHUB_WRITER__API_URL", &self.github_api),
            ("GITHUB_WRITER__GIT_URL", &self.github_git),
            ("GITHUB_WRITER__APP_ID", &writer),
            ("GITHUB_WRITER__PRIVATE_KEY", github::APP_PRIVATE_KEY),
            ("JIRA_READER__BASE_URL", &self.jira),
            ("JIRA_READER__EMAIL", jira::READER_EMAIL),
            ("JIRA_READER__API_TOKEN", jira::READER_API_TOKEN),
            ("JIRA_WRITER__BASE_URL", &self.jira),
            ("JIRA_WRITER__EMAIL", jira::WRITER_EMAIL),
            ("JIRA_WRITER__API_TOKEN", jira::WRITER_API_TOKEN),
            ("MODEL__DIALECT", dialect.as_str()),
            ("MODEL__BASE_URL", &base),
            ("MODEL__NAME", "scripted-model"),
            ("PLANNER__RETRY_BASE_MS", "50"),
            ("MODEL__API_KEY", model::MODEL_API_KEY),
        ];
        settings
            .into_iter()
            .map(|(key, value)| (format!("JOURNEYMAN__{key}"), value.to_owned()))
            .collect()
    }
}
