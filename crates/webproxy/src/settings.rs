//! Settings in the section `[proxy]`.

use std::path::PathBuf;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

use crate::bypass::BypassList;

/// Settings in `[proxy]`: the way of every client to the outside.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Address of the proxy, `http://host:port` or `https://host:port`; empty: the variables `HTTPS_PROXY`,
    /// `HTTP_PROXY` and `ALL_PROXY`.
    pub url: String,
    /// User name that the proxy requires; empty: no authentication.
    pub username: String,
    /// Password of the user.
    pub password: Option<SecretString>,
    /// Hosts that are reached without the proxy.
    pub no_proxy: BypassList,
    /// PEM file with authorities that all clients trust in addition to those of the system.
    pub ca: Option<PathBuf>,
}

/// Wrong key of `[proxy]`, and its problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ProxyError {
    /// Dotted key.
    pub key: &'static str,
    /// Description of the problem and its remedy.
    pub problem: String,
}

impl ProxyError {
    pub(crate) fn new(key: &'static str, problem: impl Into<String>) -> Self {
        Self {
            key,
            problem: problem.into(),
        }
    }
}

impl Settings {
    /// Parses the address; `None` when none is set.
    ///
    /// # Errors
    /// [`ProxyError`] for an address that is not usable, or for credentials at the wrong place.
    pub(crate) fn address(&self) -> Result<Option<Url>, ProxyError> {
        let has_password = self
            .password
            .as_ref()
            .is_some_and(|it| !it.expose_secret().is_empty());
        if self.url.is_empty() {
            if !self.username.is_empty() || has_password {
                return Err(ProxyError::new("proxy.url", "must be set when there is a user"));
            }
            return Ok(None);
        }
        if has_password && self.username.is_empty() {
            return Err(ProxyError::new(
                "proxy.username",
                "must be set when there is a password",
            ));
        }
        let url = parse_address(&self.url).map_err(|problem| ProxyError::new("proxy.url", problem))?;
        // A log may show the address, so it must contain no password.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ProxyError::new(
                "proxy.url",
                "must contain no user and no password: set proxy.username and proxy.password",
            ));
        }
        Ok(Some(url))
    }
}

/// Parses the address of a proxy.
pub(crate) fn parse_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| "must be an http:// or https:// URL".to_owned())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "must be an http:// or https:// URL: {} is not supported",
            url.scheme()
        ));
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("must name a host".to_owned());
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err("must end after the port".to_owned());
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_settings(json: &str) -> Settings {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn wrong_settings_are_refused_by_key() {
        for (json, key, problem) in [
            (r#"{"url": "proxy.corp"}"#, "proxy.url", "http:// or https://"),
            (r#"{"url": "socks5://proxy.corp:1080"}"#, "proxy.url", "socks5"),
            (
                r#"{"url": "http://proxy.corp:3128/path"}"#,
                "proxy.url",
                "after the port",
            ),
            (
                r#"{"url": "http://ada:pw@proxy.corp"}"#,
                "proxy.url",
                "proxy.password",
            ),
            (r#"{"username": "ada"}"#, "proxy.url", "must be set"),
            (r#"{"password": "pw"}"#, "proxy.url", "must be set"),
            (
                r#"{"url": "http://proxy.corp", "password": "pw"}"#,
                "proxy.username",
                "must be set",
            ),
        ] {
            let refused = parse_settings(json).address().unwrap_err();
            assert_eq!(refused.key, key, "{json}");
            assert!(refused.problem.contains(problem), "{refused}");
            assert!(!refused.problem.contains("pw"), "{refused}");
        }
    }

    #[test]
    fn debug_text_hides_password() {
        let settings = parse_settings(r#"{"url": "http://p", "username": "ada", "password": "hidden"}"#);
        assert!(settings.address().unwrap().is_some());
        assert!(!format!("{settings:?}").contains("hidden"));
    }
}
