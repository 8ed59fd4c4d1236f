//! Addresses of the external services and Journeyman's accounts there, as settings, and webhooks with a valid
//! signature.

use std::path::Path;

use crate::account_settings::{AccountSetup, GithubApp, ModelChoice, render_variables};
use ::github::registration::AppRole;
use data_encoding::HEXLOWER;
use domain::CommitAuthor;
use reqwest::{Client, StatusCode};
use ring::hmac;
use serde::{Deserialize, Serialize};
use testkit::{github, jira, model};

/// Shared secret of the stand-ins' webhooks.
pub const WEBHOOK_SECRET: &str = "webhook-secret-of-the-stand-ins";

/// Settings of tests, in addition to those of a setup: shorter pauses.
const OVERRIDES: [(&str, &str); 3] = [
    ("TELEMETRY__LOG_FILTER", "info"),
    ("INGEST__CHECKS_SETTLE_S", "0"),
    ("PLANNER__RETRY_BASE_MS", "50"),
];

/// Protocol of a model provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderDialect {
    /// Messages interface of Anthropic.
    #[default]
    Anthropic,
    /// Chat Completions interface of `OpenAI` and compatible servers.
    OpenAi,
    /// Responses interface of `OpenAI` and compatible servers.
    Responses,
}

impl ProviderDialect {
    /// Name of the dialect in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Responses => "openai-responses",
        }
    }
}

/// Addresses of the stand-ins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VendorAddresses {
    /// Base URL of GitHub's REST API.
    pub github_api: String,
    /// Base URL of GitHub's repositories.
    pub github_git: String,
    /// Base URL of Jira.
    pub jira: String,
    /// Base URL of the scripted model.
    pub model: String,
}

impl VendorAddresses {
    /// Returns the settings of `journeyman setup` for these stand-ins, and those of tests, as environment
    /// variables.
    pub fn environment(&self, dialect: ProviderDialect, rules: &Path) -> Vec<(String, String)> {
        let mut environment = render_variables(&self.setup(dialect).settings());
        let rules = rules.display().to_string();
        for (key, value) in OVERRIDES.iter().chain(&[("RULES__DIR", rules.as_str())]) {
            environment.push((format!("JOURNEYMAN__{key}"), (*value).to_owned()));
        }
        environment
    }

    /// Returns the result of a setup with accounts of these stand-ins.
    fn setup(&self, dialect: ProviderDialect) -> AccountSetup {
        let base_url = match dialect {
            ProviderDialect::Anthropic => self.model.clone(),
            ProviderDialect::OpenAi | ProviderDialect::Responses => format!("{}/v1", self.model),
        };
        let app = |role, id| GithubApp {
            role,
            id,
            private_key: Some(github::APP_PRIVATE_KEY.to_owned().into()),
            api_url: self.github_api.clone(),
            git_url: self.github_git.clone(),
        };
        let account = |email: &str, token: &str| ::jira::Settings {
            base_url: self.jira.clone(),
            email: email.to_owned(),
            api_token: token.to_owned().into(),
            ..::jira::Settings::default()
        };
        let number = github::account_number(github::WRITER_LOGIN);
        let author = CommitAuthor::of_github("github.test", number, github::WRITER_LOGIN);
        let own = [
            github::READER_LOGIN,
            github::WRITER_LOGIN,
            jira::READER_ID,
            jira::WRITER_ID,
        ];
        AccountSetup {
            apps: [
                app(AppRole::Reader, github::READER_APP_ID),
                app(AppRole::Writer, github::WRITER_APP_ID),
            ],
            webhook_secrets: [(); 2].map(|()| WEBHOOK_SECRET.to_owned().into()),
            jira: [
                account(jira::READER_EMAIL, jira::READER_API_TOKEN),
                account(jira::WRITER_EMAIL, jira::WRITER_API_TOKEN),
            ],
            own_accounts: own.map(str::to_owned).to_vec(),
            author: author.unwrap_or_default(),
            requesters: jira::USERS.to_owned(),
            model: ModelChoice {
                dialect: Some(dialect.as_str().to_owned()),
                name: Some("scripted-model".to_owned()),
                base_url: Some(base_url),
                api_key: Some(model::MODEL_API_KEY.to_owned().into()),
                ..ModelChoice::default()
            },
        }
    }
}

/// Returns the signature header's value for a body, with the secret of the stand-ins.
pub fn sign_webhook(body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, WEBHOOK_SECRET.as_bytes());
    let tag = hmac::sign(&key, body);
    format!("sha256={}", HEXLOWER.encode(tag.as_ref()))
}

/// Sender of webhooks to one ingest address.
#[derive(Clone, Debug)]
pub struct SignedWebhookSender {
    client: Client,
    url: String,
}

impl SignedWebhookSender {
    /// Creates a sender to the URL of ingest's GitHub webhooks.
    pub fn new(client: Client, url: impl Into<String>) -> Self {
        let url = url.into();
        Self { client, url }
    }

    /// URL of ingest's GitHub webhooks.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Creates a sender with the same URL and another client.
    #[must_use]
    pub fn with_client(&self, client: Client) -> Self {
        Self::new(client, self.url.clone())
    }

    /// Sends a webhook and returns the status of the answer.
    ///
    /// # Errors
    /// When ingest does not answer.
    pub async fn send(&self, event: &str, id: &str, body: String) -> reqwest::Result<StatusCode> {
        let request = self
            .client
            .post(&self.url)
            .header("content-type", "application/json")
            .header("x-github-event", event)
            .header("x-github-delivery", id)
            .header("x-hub-signature-256", sign_webhook(body.as_bytes()));
        Ok(request.body(body).send().await?.status())
    }
}
