//! The sections `[jira_reader]` and `[jira_writer]`.

use domain::is_readable_on_the_way;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::IgnoredAny};

/// Where Jira is and who we are there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The site, e.g. `https://jira.example`.
    pub base_url: String,
    /// The account's address; empty: `api_token` is a personal access token, sent as a bearer token.
    pub email: String,
    /// The account's API token.
    pub api_token: SecretString,
    /// Plain `http://` to other machines is allowed, although credentials can be read on the way.
    pub allow_insecure: bool,
}

/// An account of a site besides the default one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Account {
    /// The account's address; empty: `api_token` is a personal access token, sent as a bearer token.
    pub email: String,
    /// The account's API token.
    pub api_token: SecretString,
}

/// `[jira.<instance>]` as ingest reads it: the writer's part is skipped unread.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReaderSite {
    /// As in [`Settings`].
    pub base_url: String,
    /// As in [`Settings`].
    #[serde(default)]
    pub allow_insecure: bool,
    /// The account that reads.
    pub reader: Account,
    #[serde(default, rename = "writer")]
    _writer: IgnoredAny,
}

/// `[jira.<instance>]` as the reporter reads it: the reader's part is skipped unread.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriterSite {
    /// As in [`Settings`].
    pub base_url: String,
    /// As in [`Settings`].
    #[serde(default)]
    pub allow_insecure: bool,
    /// The account that writes.
    pub writer: Account,
    #[serde(default, rename = "reader")]
    _reader: IgnoredAny,
}

impl ReaderSite {
    /// The site with the account that reads.
    pub fn settings(&self) -> Settings {
        on_site(&self.base_url, self.allow_insecure, &self.reader)
    }
}

impl WriterSite {
    /// The site with the account that writes.
    pub fn settings(&self) -> Settings {
        on_site(&self.base_url, self.allow_insecure, &self.writer)
    }
}

fn on_site(base_url: &str, allow_insecure: bool, account: &Account) -> Settings {
    Settings {
        base_url: base_url.to_owned(),
        email: account.email.clone(),
        api_token: account.api_token.clone(),
        allow_insecure,
    }
}

impl Settings {
    /// Checks the section.
    ///
    /// # Errors
    /// The key (`<section>.<name>`) and what is wrong with it.
    pub fn check(&self, section: &str) -> Result<(), (String, String)> {
        let wrong = |key: &str, problem: &str| Err((format!("{section}.{key}"), problem.to_owned()));
        if !(self.base_url.starts_with("https://") || self.base_url.starts_with("http://")) {
            return wrong("base_url", "must be the site's URL, e.g. https://jira.example");
        }
        if is_readable_on_the_way(&self.base_url) && !self.allow_insecure {
            return wrong(
                "base_url",
                "sends credentials unencrypted to another machine: use https://, or set allow_insecure = true",
            );
        }
        if self.api_token.expose_secret().trim().is_empty() {
            return wrong("api_token", "must be set");
        }
        Ok(())
    }
}
