//! Settings in the sections `[github_reader]`, `[github_writer]` and `[github.<instance>]`.

use std::collections::BTreeMap;

use domain::{InstanceName, is_readable_on_the_way};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, de::IgnoredAny};

// Section of the account that reads; the only one that must not hold a project token.
const READER: &str = "github_reader";

/// Address of a GitHub server, and its account: an App (id and private key) or a token.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Base URL of the REST API; GitHub Enterprise Server: `https://<host>/api/v3`.
    pub api_url: String,
    /// Base URL of repositories for git.
    pub git_url: String,
    /// Id of the GitHub App.
    pub app_id: Option<u64>,
    /// RSA private key of the GitHub App in PEM format.
    pub private_key: Option<SecretString>,
    /// Personal access token instead of an App.
    pub token: Option<SecretString>,
    /// Personal access token for fields of projects, for the account that writes; absent: no fields are set.
    pub project_token: Option<SecretString>,
    /// Permits plain `http://` to other machines, where others can read the credentials.
    pub allow_insecure: bool,
}

/// App (id and private key) or token on a named instance.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct InstanceAccount {
    /// Id of the GitHub App.
    app_id: Option<u64>,
    /// RSA private key of the GitHub App in PEM format.
    private_key: Option<SecretString>,
    /// Personal access token instead of an App.
    token: Option<SecretString>,
}

/// Account that writes on a named instance; it may also have a project token.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WriterAccount {
    /// Id of the GitHub App.
    app_id: Option<u64>,
    /// RSA private key of the GitHub App in PEM format.
    private_key: Option<SecretString>,
    /// Personal access token instead of an App.
    token: Option<SecretString>,
    /// Personal access token for fields of projects.
    project_token: Option<SecretString>,
}

/// `[github.<instance>]` as ingest reads it: the writer's part is skipped unread.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReaderServer {
    api_url: String,
    git_url: String,
    #[serde(default)]
    allow_insecure: bool,
    reader: InstanceAccount,
    #[serde(default, rename = "writer")]
    _writer: IgnoredAny,
}

/// `[github.<instance>]` as the reporter reads it: the reader's part is skipped unread.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriterServer {
    api_url: String,
    git_url: String,
    #[serde(default)]
    allow_insecure: bool,
    writer: WriterAccount,
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
    let servers = BTreeMap::<InstanceName, ReaderServer>::deserialize(sections)?.into_iter();
    let read = |it: ReaderServer| build_settings(it.api_url, it.git_url, it.allow_insecure, it.reader);
    Ok(servers.map(|(name, server)| (name, read(server))).collect())
}

/// Deserializes the named instances with their accounts that write.
///
/// # Errors
/// The deserializer's error for a malformed section.
pub fn deserialize_writers<'de, D: Deserializer<'de>>(
    sections: D,
) -> Result<BTreeMap<InstanceName, Settings>, D::Error> {
    let servers = BTreeMap::<InstanceName, WriterServer>::deserialize(sections)?.into_iter();
    let read = |it: WriterServer| {
        let WriterAccount {
            app_id,
            private_key,
            token,
            project_token,
        } = it.writer;
        let account = InstanceAccount {
            app_id,
            private_key,
            token,
        };
        Settings {
            project_token,
            ..build_settings(it.api_url, it.git_url, it.allow_insecure, account)
        }
    };
    Ok(servers.map(|(name, server)| (name, read(server))).collect())
}

fn build_settings(
    api_url: String,
    git_url: String,
    allow_insecure: bool,
    account: InstanceAccount,
) -> Settings {
    let InstanceAccount {
        app_id,
        private_key,
        token,
    } = account;
    Settings {
        api_url,
        git_url,
        app_id,
        private_key,
        token,
        project_token: None,
        allow_insecure,
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            api_url: "https://api.github.com".to_owned(),
            git_url: "https://github.com".to_owned(),
            app_id: None,
            private_key: None,
            token: None,
            project_token: None,
            allow_insecure: false,
        }
    }
}

impl Settings {
    /// Iterates over the credentials in the section.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        let all = [&self.token, &self.project_token, &self.private_key];
        all.into_iter().flatten()
    }

    /// True when the section has no account, so that this instance is not used.
    pub fn is_without_account(&self) -> bool {
        self.app_id.is_none() && !has_secret(self.private_key.as_ref()) && !has_secret(self.token.as_ref())
    }

    /// True for GitHub's own service: github.com, or an enterprise subdomain of ghe.com.
    pub(crate) fn is_github_com(&self) -> bool {
        // GitHub with data residency has subdomains of ghe.com.
        let host = self.api_url.split("://").nth(1).unwrap_or_default();
        let host = host.split(['/', ':']).next().unwrap_or_default();
        host == "api.github.com" || host.ends_with(".ghe.com")
    }

    /// Host of the server's pages with its port: `github.com` for `https://api.github.com`.
    pub fn page_host(&self) -> String {
        let host = self.api_url.split("://").nth(1).unwrap_or_default();
        let host = host.split('/').next().unwrap_or_default();
        let hosted = host.strip_prefix("api.").filter(|_| self.is_github_com());
        hosted.unwrap_or(host).to_owned()
    }

    /// Validates the values of the section.
    ///
    /// # Errors
    /// The key (`<section>.<name>`) and its problem.
    pub fn check(&self, section: &str) -> Result<(), (String, String)> {
        let wrong = |key: &str, problem: &str| Err((format!("{section}.{key}"), problem.to_owned()));
        for (key, url) in [("api_url", &self.api_url), ("git_url", &self.git_url)] {
            if !(url.starts_with("https://") || url.starts_with("http://")) {
                return wrong(key, "must be an http:// or https:// URL");
            }
            if is_readable_on_the_way(url) && !self.allow_insecure {
                return wrong(
                    key,
                    "sends credentials unencrypted to another machine: use https://, or set allow_insecure = true",
                );
            }
        }
        // The reader has read access only, and a project token would add write access.
        if section == READER && self.project_token.is_some() {
            return wrong(
                "project_token",
                "must not be set here: the reader changes nothing",
            );
        }
        match (
            self.app_id,
            has_secret(self.private_key.as_ref()),
            has_secret(self.token.as_ref()),
        ) {
            (Some(_), true, false) if !self.holds_pem() => wrong(
                "private_key",
                "must be the text of a PEM file, its first and last line included",
            ),
            (Some(_), true, false) | (None, false, true) => Ok(()),
            (Some(_), false, _) => wrong("private_key", "must be set when app_id is set"),
            (None, true, _) => wrong("app_id", "must be set when private_key is set"),
            (Some(_), true, true) => wrong("token", "must not be set besides app_id"),
            (None, false, false) => wrong("token", "must be set, or app_id and private_key"),
        }
    }

    /// True when the text is a PEM key. The usual mistake is a path in its place.
    fn holds_pem(&self) -> bool {
        self.private_key.as_ref().is_some_and(|key| {
            let text = key.expose_secret();
            text.contains("-----BEGIN ") && text.contains(" PRIVATE KEY-----")
        })
    }
}

fn has_secret(secret: Option<&SecretString>) -> bool {
    secret.is_some_and(is_filled)
}

/// True when a secret holds text; an empty one counts as unset.
pub(crate) fn is_filled(secret: &SecretString) -> bool {
    !secret.expose_secret().trim().is_empty()
}
