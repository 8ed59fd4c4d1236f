//! Settings of the console: its listener, the API, and the login provider.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bootstrap::{
    ServiceConfig,
    settings::{Error, TextList},
    telemetry,
};
use secrecy::SecretString;
use serde::Deserialize;
use url::Url;

// Default address of the listener.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7405);

// Longest name of an installation, which the header of a phone shows on one line.
const ENVIRONMENT_CHARS: usize = 40;

/// Settings of the console: its own section and telemetry.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The section `[console]`.
    pub console: Settings,
    /// The section `[telemetry]`.
    pub telemetry: telemetry::Settings,
}

/// The section `[console]`: listener, API, public address and login.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Address of the listener for browsers; absent: 127.0.0.1:7405.
    pub listen: Option<SocketAddr>,
    /// Base URL of the API.
    pub api: String,
    /// Address for browsers, e.g. `https://console.example.com`. With `https://`, the console's cookies are for TLS
    /// alone. Absent: `oidc.public_url`, or plain HTTP.
    pub public_url: String,
    /// Name of this installation in the header of every page, e.g. `production`; empty: none.
    pub environment: String,
    /// If true, `journeyman up` starts the console, too.
    pub in_up: bool,
    /// Login at an `OpenID` provider; absent: login with a token of the API.
    pub oidc: Option<OidcSettings>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: None,
            in_up: true,
            api: String::new(),
            public_url: String::new(),
            environment: String::new(),
            oidc: None,
        }
    }
}

impl Settings {
    /// Returns true if browsers reach the console over TLS. The settings decide; a client could forge a header.
    pub(crate) fn is_over_tls(&self) -> bool {
        let of_oidc = self.oidc.as_ref().map(|oidc| oidc.public_url.as_str());
        let url = Some(self.public_url.as_str()).filter(|url| !url.is_empty());
        url.or(of_oidc).is_some_and(|url| url.starts_with("https://"))
    }
}

/// The section `[console.oidc]`: an `OpenID` provider.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcSettings {
    /// Issuer, spelled as in the provider's discovery document.
    pub issuer: String,
    /// Client id of the console at the provider.
    pub client_id: String,
    /// Client secret of the console at the provider.
    pub client_secret: SecretString,
    /// Address of the console for browsers, e.g. `https://console.example.com`. The provider redirects them there.
    pub public_url: String,
    /// Token of the API with `speaks_for_people`.
    pub api_token: SecretString,
    /// Claim with the person's name for the journals.
    #[serde(default = "name_claim")]
    pub name_claim: String,
    /// Claim that counts even if the provider does not mark it as verified, such as `email` where only its
    /// administrators set addresses. Empty: `email` needs `email_verified`.
    #[serde(default)]
    pub trusted_claim: String,
    /// Claim with the person's groups: a list, or one text.
    #[serde(default = "groups_claim")]
    pub groups_claim: String,
    /// Scopes that the console requests in addition to `openid`.
    #[serde(default = "default_scopes")]
    pub scopes: TextList,
    /// Groups whose members may read.
    #[serde(default)]
    pub viewers: TextList,
    /// Groups whose members may dispatch, decide and stop.
    #[serde(default)]
    pub operators: TextList,
    /// Groups whose members have all permissions.
    #[serde(default)]
    pub admins: TextList,
    /// If true, a token of the API is a second way to log in.
    #[serde(default)]
    pub token_login: bool,
    /// If true, the console reaches the provider over plain HTTP also on other hosts.
    #[serde(default)]
    pub allow_insecure: bool,
}

fn name_claim() -> String {
    "email".to_owned()
}

fn groups_claim() -> String {
    "groups".to_owned()
}

fn default_scopes() -> TextList {
    TextList(["email", "profile"].map(str::to_owned).to_vec())
}

impl Config {
    /// Builds settings for the API at this base URL, with defaults for the rest.
    pub fn of_api(api: &str) -> Self {
        let console = Settings {
            api: api.to_owned(),
            ..Settings::default()
        };
        Self {
            console,
            ..Self::default()
        }
    }
}

impl ServiceConfig for Config {
    fn listen(&self) -> SocketAddr {
        self.console.listen.unwrap_or(LISTEN)
    }

    fn telemetry(&self) -> &telemetry::Settings {
        &self.telemetry
    }

    fn check(&self) -> Result<(), Error> {
        if parse_url_host(&self.console.api).is_none() {
            let problem = "must be the address of the API, with http:// or https:// before it";
            return Err(Error::new("console.api", problem));
        }
        let public_url = &self.console.public_url;
        if !public_url.is_empty() && parse_url_host(public_url).is_none() {
            return Err(Error::new(
                "console.public_url",
                "must begin with https:// or http://",
            ));
        }
        if self.console.environment.chars().count() > ENVIRONMENT_CHARS {
            let problem = format!("must have at most {ENVIRONMENT_CHARS} characters");
            return Err(Error::new("console.environment", problem));
        }
        self.console.oidc.as_ref().map_or(Ok(()), OidcSettings::check)
    }
}

impl OidcSettings {
    fn check(&self) -> Result<(), Error> {
        let refuse = |key: &str, problem: &str| Err(Error::new(format!("console.oidc.{key}"), problem));
        for (key, text) in [("issuer", &self.issuer), ("public_url", &self.public_url)] {
            if parse_url_host(text).is_none() {
                return refuse(key, "must begin with https:// or http://");
            }
        }
        if !self.can_reach(&self.issuer) {
            return refuse("issuer", "must begin with https://, or allow_insecure be set");
        }
        // Two slashes belong to the scheme; a third one starts a path. The path of the callback is fixed.
        if self.public_url.trim_end_matches('/').matches('/').count() > 2 {
            return refuse("public_url", "must have no path");
        }
        for (key, text) in [
            ("client_id", &self.client_id),
            ("name_claim", &self.name_claim),
            ("groups_claim", &self.groups_claim),
        ] {
            if text.trim().is_empty() {
                return refuse(key, "must not be empty");
            }
        }
        // Another claim than the one that names people would have no effect.
        if !self.trusted_claim.is_empty() && self.trusted_claim != self.name_claim {
            return refuse("trusted_claim", "must be empty or the claim of name_claim");
        }
        if [&self.viewers, &self.operators, &self.admins]
            .iter()
            .all(|groups| groups.is_empty())
        {
            return refuse(
                "viewers",
                "or operators or admins must name a group, else nobody can log in",
            );
        }
        Ok(())
    }

    /// Returns true if the settings permit requests to this URL of the provider.
    ///
    /// Over plain HTTP the client secret and the ID token would be readable on the network, and the keys could be
    /// replaced.
    pub(crate) fn can_reach(&self, url: &str) -> bool {
        self.allow_insecure || !url.starts_with("http://") || is_here(url)
    }
}

/// Returns the host of an HTTP URL, with its port.
fn parse_url_host(url: &str) -> Option<&str> {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"))?;
    let host = rest.split('/').next()?;
    (!host.is_empty()).then_some(host)
}

/// Returns true if the URL's host is this machine.
fn is_here(url: &str) -> bool {
    // The whole URL is parsed, because a user name in front of the host may look like one.
    let parsed = Url::parse(url).ok();
    let name = parsed.as_ref().and_then(Url::host_str);
    matches!(name, Some("127.0.0.1" | "localhost" | "[::1]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect_refusal(text: &str) -> String {
        let config: Config = serde_json::from_str(text).expect("settings");
        config.check().expect_err(text).to_string()
    }

    #[test]
    fn the_api_has_an_http_address() {
        for good in ["http://127.0.0.1:7401", "https://journeyman.example"] {
            assert!(Config::of_api(good).check().is_ok(), "{good}");
        }
        for wrong in ["", "127.0.0.1:7401", "file:///etc/passwd", "https://"] {
            let refused = Config::of_api(wrong).check().expect_err(wrong);
            assert!(refused.to_string().contains("console.api"), "{refused}");
        }
    }

    #[test]
    fn long_environment_name_is_refused() {
        let named = |length: usize| {
            let mut config = Config::of_api("http://127.0.0.1:7401");
            config.console.environment = "x".repeat(length);
            config.check()
        };
        assert!(named(ENVIRONMENT_CHARS).is_ok());
        let refused = named(ENVIRONMENT_CHARS + 1).expect_err("too long");
        assert!(refused.to_string().contains("console.environment"), "{refused}");
    }

    #[test]
    fn provider_settings_require_tls_and_a_group() {
        let with = |issuer: &str, public: &str, groups: &str| {
            format!(
                r#"{{"console": {{"api": "http://a.example", "oidc": {{"issuer": "{issuer}", "client_id": "console", "client_secret": "s",
                "public_url": "{public}", "api_token": "t", {groups} "token_login": false}}}}}}"#
            )
        };
        let viewers = r#""viewers": ["all"],"#;
        let public = "https://console.example";
        for issuer in [
            "https://id.example",
            "http://127.0.0.1:9",
            "http://localhost:9/x",
            "http://[::1]",
        ] {
            let config: Config = serde_json::from_str(&with(issuer, public, viewers)).expect("settings");
            assert!(config.check().is_ok(), "{issuer}");
        }
        for (text, key) in [
            (with("http://id.example", public, viewers), "issuer"),
            (with("http://localhost:x@id.example", public, viewers), "issuer"),
            (with("id.example", public, viewers), "issuer"),
            (
                with("https://id.example", "console.example", viewers),
                "public_url",
            ),
            (
                with("https://id.example", "https://example/console", viewers),
                "public_url",
            ),
            (with("https://id.example", public, ""), "viewers"),
        ] {
            let problem = expect_refusal(&text);
            assert!(problem.contains(&format!("console.oidc.{key}")), "{problem}");
        }
    }
}
