//! The sections `[jira_reader]` and `[jira_writer]`.

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// Where Jira is and who we are there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The site, e.g. `https://acme.atlassian.net`.
    pub base_url: String,
    /// The account's address; empty: `api_token` is a personal access token, sent as a bearer token.
    pub email: String,
    /// The account's API token.
    pub api_token: SecretString,
}

impl Settings {
    /// Checks the section.
    ///
    /// # Errors
    /// The key (`<section>.<name>`) and what is wrong with it.
    pub fn check(&self, section: &str) -> Result<(), (String, String)> {
        let wrong = |key: &str, problem: &str| Err((format!("{section}.{key}"), problem.to_owned()));
        if !(self.base_url.starts_with("https://") || self.base_url.starts_with("http://")) {
            return wrong(
                "base_url",
                "must be the site's URL, e.g. https://acme.atlassian.net",
            );
        }
        if self.api_token.expose_secret().trim().is_empty() {
            return wrong("api_token", "must be set");
        }
        Ok(())
    }
}
