//! The sections `[jira_reader]` and `[jira_writer]`.

use std::collections::BTreeMap;

use domain::{Instance, is_readable_on_the_way};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, de::IgnoredAny};

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
struct Account {
    /// The account's address; empty: `api_token` is a personal access token, sent as a bearer token.
    email: String,
    /// The account's API token.
    api_token: SecretString,
}

/// `[jira.<instance>]` as ingest reads it: the writer's part is skipped unread.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReaderSite {
    base_url: String,
    #[serde(default)]
    allow_insecure: bool,
    reader: Account,
    #[serde(default, rename = "writer")]
    _writer: IgnoredAny,
}

/// `[jira.<instance>]` as the reporter reads it: the reader's part is skipped unread.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriterSite {
    base_url: String,
    #[serde(default)]
    allow_insecure: bool,
    writer: Account,
    #[serde(default, rename = "reader")]
    _reader: IgnoredAny,
}

/// Reads the sites besides the default one with the accounts that read.
///
/// # Errors
/// When a section is not one.
pub fn readers<'de, D: Deserializer<'de>>(sections: D) -> Result<BTreeMap<Instance, Settings>, D::Error> {
    let sites = BTreeMap::<Instance, ReaderSite>::deserialize(sections)?.into_iter();
    let read = |it: ReaderSite| on_site(it.base_url, it.allow_insecure, it.reader);
    Ok(sites.map(|(name, site)| (name, read(site))).collect())
}

/// The same with the accounts that write.
///
/// # Errors
/// When a section is not one.
pub fn writers<'de, D: Deserializer<'de>>(sections: D) -> Result<BTreeMap<Instance, Settings>, D::Error> {
    let sites = BTreeMap::<Instance, WriterSite>::deserialize(sections)?.into_iter();
    let read = |it: WriterSite| on_site(it.base_url, it.allow_insecure, it.writer);
    Ok(sites.map(|(name, site)| (name, read(site))).collect())
}

fn on_site(base_url: String, allow_insecure: bool, account: Account) -> Settings {
    Settings {
        base_url,
        email: account.email,
        api_token: account.api_token,
        allow_insecure,
    }
}

impl Settings {
    /// Whether it names neither a site nor an account.
    pub fn is_empty(&self) -> bool {
        self.base_url.is_empty() && self.api_token.expose_secret().trim().is_empty()
    }

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
