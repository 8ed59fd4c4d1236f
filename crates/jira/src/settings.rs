//! Settings in the sections `[jira_reader]`, `[jira_writer]` and `[jira.<instance>]`.

use std::collections::BTreeMap;

use domain::{CredentialEnd, CredentialEnds, InstanceName, Timestamp, is_readable_on_the_way};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, de::IgnoredAny};

use crate::JiraDialect;

// Atlassian's gateway for API tokens with scopes.
const GATEWAY: &str = "https://api.atlassian.com/ex/jira/";

/// Address of a Jira site, and its account.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// URL of the site, e.g. `https://jira.example`, or of the gateway for tokens with scopes:
    /// `https://api.atlassian.com/ex/jira/<id>`.
    pub base_url: String,
    /// URL of the site's pages when `base_url` is the gateway; empty: the same as `base_url`.
    pub site_url: String,
    /// Kind of the site: Jira Cloud or Jira Data Center.
    pub deployment: JiraDialect,
    /// Email address of the account; empty: `api_token` is a personal access token, sent as a bearer token.
    pub email: String,
    /// API token or personal access token of the account.
    pub api_token: SecretString,
    /// Day on which the token expires, e.g. `2027-01-31`; empty: unknown.
    pub expires: String,
    /// Permits plain `http://` to other machines, where others can read the credentials.
    pub allow_insecure: bool,
}

/// Account on a named instance.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SiteAccount {
    /// Email address of the account; empty: `api_token` is a personal access token, sent as a bearer token.
    email: String,
    /// API token of the account.
    api_token: SecretString,
    /// Day on which the token expires.
    expires: String,
}

/// `[jira.<instance>]` as ingest reads it: the writer's part is skipped unread.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReaderSite {
    base_url: String,
    #[serde(default)]
    site_url: String,
    #[serde(default)]
    deployment: JiraDialect,
    #[serde(default)]
    allow_insecure: bool,
    reader: SiteAccount,
    #[serde(default, rename = "writer")]
    _writer: IgnoredAny,
}

/// `[jira.<instance>]` as the reporter reads it: the reader's part is skipped unread.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriterSite {
    base_url: String,
    #[serde(default)]
    site_url: String,
    #[serde(default)]
    deployment: JiraDialect,
    #[serde(default)]
    allow_insecure: bool,
    writer: SiteAccount,
    #[serde(default, rename = "reader")]
    _reader: IgnoredAny,
}

/// Deserializes the named instances with their accounts that read.
///
/// # Errors
/// The deserializer's error for a malformed section.
pub fn deserialize_readers<'de, D: Deserializer<'de>>(
    sections: D,
) -> Result<BTreeMap<InstanceName, Settings>, D::Error> {
    let sites = BTreeMap::<InstanceName, ReaderSite>::deserialize(sections)?.into_iter();
    let read = |it: ReaderSite| Settings {
        base_url: it.base_url,
        site_url: it.site_url,
        deployment: it.deployment,
        allow_insecure: it.allow_insecure,
        ..it.reader.into()
    };
    Ok(sites.map(|(name, site)| (name, read(site))).collect())
}

/// Deserializes the named instances with their accounts that write.
///
/// # Errors
/// The deserializer's error for a malformed section.
pub fn deserialize_writers<'de, D: Deserializer<'de>>(
    sections: D,
) -> Result<BTreeMap<InstanceName, Settings>, D::Error> {
    let sites = BTreeMap::<InstanceName, WriterSite>::deserialize(sections)?.into_iter();
    let read = |it: WriterSite| Settings {
        base_url: it.base_url,
        site_url: it.site_url,
        deployment: it.deployment,
        allow_insecure: it.allow_insecure,
        ..it.writer.into()
    };
    Ok(sites.map(|(name, site)| (name, read(site))).collect())
}

impl From<SiteAccount> for Settings {
    fn from(account: SiteAccount) -> Self {
        Self {
            email: account.email,
            api_token: account.api_token,
            expires: account.expires,
            ..Self::default()
        }
    }
}

/// Lists the expiry of the tokens of one kind of account (`jira_reader`, `jira_writer`), without those that
/// have no date.
pub fn list_token_ends(
    kind: &str,
    default: Option<&Settings>,
    others: &BTreeMap<InstanceName, Settings>,
) -> CredentialEnds {
    let default = default.into_iter().map(|jira| (None, jira));
    let others = others.iter().map(|(name, jira)| (Some(name.clone()), jira));
    let known = default.chain(others).filter_map(|(instance, jira)| {
        Some(CredentialEnd {
            kind: kind.to_owned(),
            instance,
            ends: jira.ends()?,
        })
    });
    CredentialEnds {
        ends: known.collect(),
    }
}

impl Settings {
    /// True when the section has neither a site nor an account.
    pub fn is_empty(&self) -> bool {
        self.base_url.is_empty() && self.api_token.expose_secret().trim().is_empty()
    }

    /// Expiry of the token, if it is known: the start of its last day, since the exact time is unknown.
    pub fn ends(&self) -> Option<Timestamp> {
        parse_start_of_day(&self.expires)
    }

    /// Validates the values of the section.
    ///
    /// # Errors
    /// The key (`<section>.<name>`) and its problem.
    pub fn check(&self, section: &str) -> Result<(), (String, String)> {
        let wrong = |key: &str, problem: &str| Err((format!("{section}.{key}"), problem.to_owned()));
        if !(self.base_url.starts_with("https://") || self.base_url.starts_with("http://")) {
            return wrong("base_url", "must be the site's URL, e.g. https://jira.example");
        }
        let is_page = self.site_url.starts_with("https://") || self.site_url.starts_with("http://");
        if !self.site_url.is_empty() && !is_page {
            return wrong("site_url", "must be the site's URL, e.g. https://jira.example");
        }
        if self.deployment == JiraDialect::DataCenter && !self.email.trim().is_empty() {
            return wrong(
                "email",
                "must be empty: a Data Center takes a personal access token as api_token, and no address",
            );
        }
        // Without it, links in comments would lead to the gateway.
        if self.base_url.starts_with(GATEWAY) && self.site_url.is_empty() {
            return wrong(
                "site_url",
                "must be the site's URL, as base_url is the gateway, which has no pages",
            );
        }
        if !self.expires.is_empty() && self.ends().is_none() {
            return wrong("expires", "must be a day, e.g. 2027-01-31");
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

/// True when a text is a day (`2027-01-31`) on which a token can expire.
pub fn is_day(text: &str) -> bool {
    parse_start_of_day(text).is_some()
}

fn parse_start_of_day(text: &str) -> Option<Timestamp> {
    Timestamp::parse(&format!("{text}T00:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_wrong_setting(site_url: &str, base_url: &str, expires: &str) -> Option<String> {
        let settings = Settings {
            base_url: base_url.to_owned(),
            site_url: site_url.to_owned(),
            api_token: "t".to_owned().into(),
            expires: expires.to_owned(),
            ..Settings::default()
        };
        settings.check("jira_reader").err().map(|(key, _)| key)
    }

    #[test]
    fn token_ends_are_listed_where_known() {
        let until = |day: &str| Settings {
            expires: day.to_owned(),
            ..Settings::default()
        };
        let name = |name: &str| name.parse::<InstanceName>().expect("a name");
        let others = BTreeMap::from([(name("eu"), until("2027-01-31")), (name("us"), until(""))]);
        let ends = list_token_ends("jira_reader", Some(&until("2027-02-01")), &others).ends;
        let end = |instance: Option<&str>, day: &str| CredentialEnd {
            kind: "jira_reader".to_owned(),
            instance: instance.map(name),
            ends: Timestamp::parse(&format!("{day}T00:00:00Z")).expect("a day"),
        };
        assert_eq!(ends, [end(None, "2027-02-01"), end(Some("eu"), "2027-01-31")]);
    }

    #[test]
    fn gateway_requires_site_url_and_valid_date() {
        let (site, gateway) = (
            "https://acme.atlassian.net",
            "https://api.atlassian.com/ex/jira/1f2e",
        );
        assert_eq!(find_wrong_setting("", site, ""), None);
        assert_eq!(find_wrong_setting(site, gateway, "2027-01-31"), None);
        assert_eq!(
            find_wrong_setting("", gateway, "").as_deref(),
            Some("jira_reader.site_url")
        );
        assert_eq!(
            find_wrong_setting("acme", gateway, "").as_deref(),
            Some("jira_reader.site_url")
        );
        for wrong in ["soon", "2027-02-31", "2027-01-31T10:00:00Z"] {
            assert_eq!(
                find_wrong_setting("", site, wrong).as_deref(),
                Some("jira_reader.expires"),
                "{wrong}"
            );
        }
    }
}
