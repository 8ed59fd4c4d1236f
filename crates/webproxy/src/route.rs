//! Decision for each URL, through the proxy or directly, and the way that this process has.

use std::{
    net::IpAddr,
    path::Path,
    sync::{Arc, LazyLock},
};

use parking_lot::RwLock;
use secrecy::{ExposeSecret, SecretString};
use tempfile::TempPath;
use url::{Host, Url};

use crate::{
    authorities::{read_authorities, write_bundle},
    bypass::{BypassList, find_address, is_within},
    settings::{ProxyError, Settings, parse_address},
};

// Domains that only a cluster resolves.
const CLUSTER_DOMAINS: [&str; 2] = ["svc", "cluster.local"];

/// Way of a process to the outside. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct OutboundProxy(Arc<RouteTable>);

#[derive(Debug, Default)]
struct RouteTable {
    /// Proxy of `http://` URLs.
    http: Option<ProxyServer>,
    /// Proxy of `https://` URLs.
    https: Option<ProxyServer>,
    bypass: BypassList,
    /// Additional authorities in PEM format.
    authorities: Option<Vec<u8>>,
}

/// Proxy with its credentials.
#[derive(Clone, Debug)]
pub struct ProxyServer {
    /// Address without credentials.
    address: Url,
    username: String,
    password: Option<SecretString>,
}

/// Way to one host.
#[derive(Clone, Copy, Debug)]
pub enum OutboundRoute<'a> {
    /// Through this proxy.
    Proxy(&'a ProxyServer),
    /// Without a proxy.
    Direct(DirectReason),
}

/// Reason for a way without a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectReason {
    /// There is no proxy for this scheme.
    NoProxy,
    /// The host is this machine, or has a name or an address that is valid in its own network only.
    Internal,
    /// `no_proxy` lists the host.
    Listed,
}

impl ProxyServer {
    /// Address without credentials, for logs and messages.
    pub fn address(&self) -> &str {
        self.address.as_str().trim_end_matches('/')
    }

    /// Host and port.
    pub fn authority(&self) -> (String, u16) {
        let host = self.address.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        (host, self.address.port_or_known_default().unwrap_or(80))
    }

    /// True when the connection to the proxy itself has TLS.
    pub fn has_tls(&self) -> bool {
        self.address.scheme() == "https"
    }

    /// User and password; `None` when the proxy requires none.
    pub fn credentials(&self) -> Option<(&str, &str)> {
        let password = self.password.as_ref().map_or("", |it| it.expose_secret());
        (!self.username.is_empty()).then_some((self.username.as_str(), password))
    }

    /// Address with the credentials, for clients that take them from the URL.
    pub fn address_with_credentials(&self) -> Url {
        let mut url = self.address.clone();
        if let Some((user, password)) = self.credentials() {
            // Both fail only for URLs without a host, which the settings refuse.
            let _ = url.set_username(user);
            let _ = url.set_password((!password.is_empty()).then_some(password));
        }
        url
    }
}

impl OutboundProxy {
    /// Builds the way of the settings. Without `proxy.url`, the variables of the environment count.
    ///
    /// # Errors
    /// [`ProxyError`] for a wrong key, or for a file of authorities that cannot be read.
    pub fn new(settings: &Settings) -> Result<Self, ProxyError> {
        Self::with_variables(settings, read_variable)
    }

    /// Builds the way of the settings, and nothing of the environment.
    ///
    /// # Errors
    /// Those of [`OutboundProxy::new`].
    pub fn without_environment(settings: &Settings) -> Result<Self, ProxyError> {
        Self::with_variables(settings, |_| None)
    }

    fn with_variables(
        settings: &Settings,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ProxyError> {
        let authorities = settings.ca.as_deref().map(read_authorities).transpose()?;
        let table = match settings.address()? {
            Some(address) => {
                let server = ProxyServer {
                    address,
                    username: settings.username.clone(),
                    password: settings.password.clone(),
                };
                RouteTable {
                    http: Some(server.clone()),
                    https: Some(server),
                    bypass: settings.no_proxy.clone(),
                    authorities,
                }
            }
            None => {
                let table = read_environment(variable);
                RouteTable {
                    bypass: table.bypass.join(settings.no_proxy.clone()),
                    authorities,
                    ..table
                }
            }
        };
        Ok(Self(Arc::new(table)))
    }

    pub(crate) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        Self(Arc::new(read_environment(variable)))
    }

    /// True when every URL is reached directly.
    pub fn is_direct(&self) -> bool {
        self.0.http.is_none() && self.0.https.is_none()
    }

    /// Proxy of `https://` URLs, or else of `http://` URLs.
    pub fn server(&self) -> Option<&ProxyServer> {
        self.0.https.as_ref().or(self.0.http.as_ref())
    }

    /// Decides the way to a URL.
    pub fn route(&self, url: &Url) -> OutboundRoute<'_> {
        let server = match url.scheme() {
            "https" => self.0.https.as_ref(),
            _ => self.0.http.as_ref(),
        };
        let Some(server) = server else {
            return OutboundRoute::Direct(DirectReason::NoProxy);
        };
        // A URL without a host reaches nothing.
        let Some(host) = url.host() else {
            return OutboundRoute::Direct(DirectReason::NoProxy);
        };
        if is_internal(&host) {
            return OutboundRoute::Direct(DirectReason::Internal);
        }
        let port = url.port_or_known_default().unwrap_or_default();
        if self.0.bypass.contains(&host, port) {
            return OutboundRoute::Direct(DirectReason::Listed);
        }
        OutboundRoute::Proxy(server)
    }

    /// Additional authorities in PEM format.
    pub fn authorities(&self) -> Option<&[u8]> {
        self.0.authorities.as_deref()
    }

    /// Writes a file with the additional authorities and those of the system, for programs that take one
    /// file. The file is removed on drop. `None` without additional authorities.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_authorities(&self, folder: &Path) -> std::io::Result<Option<TempPath>> {
        let own = self.authorities();
        own.map(|own| write_bundle(own, folder)).transpose()
    }
}

/// Reads a variable of the process's environment.
pub(crate) fn read_variable(name: &str) -> Option<String> {
    std::env::var_os(name)?.into_string().ok()
}

fn read_environment(variable: impl Fn(&str) -> Option<String>) -> RouteTable {
    let read = |names: [&str; 2]| {
        let found = names.into_iter().find_map(&variable)?;
        Some(found.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let server = |names: [&str; 2]| {
        let [name, _] = names;
        parse_variable(name, &read(names)?)
    };
    let every = server(["all_proxy", "ALL_PROXY"]);
    // In a CGI program, a request's header `Proxy` sets the upper-case variable.
    let http = match variable("REQUEST_METHOD") {
        Some(_) => ["http_proxy", "http_proxy"],
        None => ["http_proxy", "HTTP_PROXY"],
    };
    let bypass = read(["no_proxy", "NO_PROXY"]).unwrap_or_default();
    RouteTable {
        http: server(http).or_else(|| every.clone()),
        https: server(["https_proxy", "HTTPS_PROXY"]).or(every),
        bypass: BypassList::parse_lenient(&bypass),
        authorities: None,
    }
}

/// Parses a variable, which may lack the scheme and contain credentials. An unusable one is ignored with a
/// warning, because it is written for other programs, too.
fn parse_variable(name: &str, text: &str) -> Option<ProxyServer> {
    let text = if text.contains("://") {
        text.to_owned()
    } else {
        format!("http://{text}")
    };
    let mut address = match parse_address(&text) {
        Ok(address) => address,
        Err(problem) => {
            tracing::warn!(variable = name, problem, "proxy of the environment is ignored");
            return None;
        }
    };
    let username = decode_percent(address.username());
    let password = address.password().map(decode_percent).map(SecretString::from);
    let _ = address.set_username("");
    let _ = address.set_password(None);
    Some(ProxyServer {
        address,
        username,
        password,
    })
}

/// Decodes the percent-encoding of a part of a URL.
fn decode_percent(text: &str) -> String {
    // A pair of a form has the same encoding, apart from the plus sign.
    let pair = format!("v={}", text.replace('+', "%2B").replace('&', "%26"));
    let decoded = url::form_urlencoded::parse(pair.as_bytes()).next();
    decoded.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// True for hosts that no proxy outside of the machine or the cluster reaches.
fn is_internal(host: &Host<&str>) -> bool {
    if let Some(address) = find_address(host) {
        return address.is_loopback() || address.is_unspecified() || is_link_local(address);
    }
    let Host::Domain(name) = host else {
        return false;
    };
    let name = name.trim_end_matches('.');
    !name.contains('.')
        || is_within(name, "localhost")
        || CLUSTER_DOMAINS.iter().any(|domain| is_within(name, domain))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

// Before the first call of `install_proxy`, the variables of the environment count, as with other programs.
static INSTALLED: LazyLock<RwLock<OutboundProxy>> =
    LazyLock::new(|| RwLock::new(OutboundProxy::of_environment(read_variable)));

/// Makes a way the one of this process. Clients that exist already keep theirs.
pub fn install_proxy(proxy: OutboundProxy) {
    *INSTALLED.write() = proxy;
}

/// Returns the way of this process.
pub fn find_installed_proxy() -> OutboundProxy {
    INSTALLED.read().clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_proxy(json: &str, variables: &[(&str, &str)]) -> OutboundProxy {
        let settings = serde_json::from_str(json).unwrap();
        let find = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        OutboundProxy::with_variables(&settings, find).unwrap()
    }

    fn describe_route(proxy: &OutboundProxy, url: &str) -> String {
        match proxy.route(&Url::parse(url).unwrap()) {
            OutboundRoute::Proxy(server) => server.address().to_owned(),
            OutboundRoute::Direct(reason) => format!("{reason:?}"),
        }
    }

    #[test]
    fn internal_hosts_bypass_proxy() {
        let proxy = build_proxy(
            r#"{"url": "http://proxy.corp:3128", "no_proxy": "ghe.corp"}"#,
            &[],
        );
        for (url, expected) in [
            ("https://api.github.com/meta", "http://proxy.corp:3128"),
            ("http://plain.example", "http://proxy.corp:3128"),
            ("https://10.1.2.3", "http://proxy.corp:3128"),
            ("https://git.ghe.corp/acme", "Listed"),
            ("http://127.0.0.1:7401", "Internal"),
            ("http://127.9.9.9", "Internal"),
            ("http://[::1]:80", "Internal"),
            ("http://[::ffff:127.0.0.1]", "Internal"),
            ("http://localhost:7401", "Internal"),
            ("http://api.localhost", "Internal"),
            ("http://reporter:7404/git", "Internal"),
            ("http://model.ai.svc:80/v1", "Internal"),
            ("http://model.ai.svc.cluster.local", "Internal"),
            ("http://169.254.169.254/latest", "Internal"),
            ("http://[fe80::1]/", "Internal"),
            ("https://svc.example.com", "http://proxy.corp:3128"),
        ] {
            assert_eq!(describe_route(&proxy, url), expected, "{url}");
        }
    }

    #[test]
    fn environment_counts_without_setting() {
        let variables = [
            ("HTTPS_PROXY", "http://ada:p%40ss+1@proxy.corp:3128"),
            ("http_proxy", "plain.corp:8080"),
            ("NO_PROXY", "direct.example, also bad:port"),
        ];
        let proxy = build_proxy(r#"{"no_proxy": ["own.example"]}"#, &variables);
        for (url, expected) in [
            ("https://api.github.com", "http://proxy.corp:3128"),
            ("http://api.github.com", "http://plain.corp:8080"),
            ("https://direct.example", "Listed"),
            ("https://own.example", "Listed"),
        ] {
            assert_eq!(describe_route(&proxy, url), expected, "{url}");
        }
        let url = Url::parse("https://api.github.com").unwrap();
        let OutboundRoute::Proxy(server) = proxy.route(&url) else {
            panic!("the proxy of the environment is not taken");
        };
        assert_eq!(server.credentials(), Some(("ada", "p@ss+1")));
        assert!(!format!("{proxy:?}").contains("p@ss"), "{proxy:?}");
        let set = build_proxy(r#"{"url": "http://set.corp"}"#, &variables);
        assert_eq!(describe_route(&set, "https://direct.example"), "http://set.corp");
        for (name, value) in [
            ("ALL_PROXY", "socks5://proxy.corp"),
            ("HTTPS_PROXY", ""),
            ("REQUEST_METHOD", "GET"),
        ] {
            assert!(build_proxy("{}", &[(name, value)]).is_direct(), "{name}");
        }
        let cgi = [("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "http://evil.example")];
        assert!(build_proxy("{}", &cgi).is_direct());
    }

    #[test]
    fn credentials_are_encoded_in_address() {
        let json = r#"{"url": "http://proxy.corp:3128", "username": "ada@corp", "password": "p:/@ %"}"#;
        let proxy = build_proxy(json, &[]);
        let url = Url::parse("https://api.github.com").unwrap();
        let OutboundRoute::Proxy(server) = proxy.route(&url) else {
            panic!("the proxy is not taken");
        };
        let with = server.address_with_credentials();
        assert_eq!(decode_percent(with.username()), "ada@corp");
        assert_eq!(decode_percent(with.password().unwrap()), "p:/@ %");
        assert_eq!(server.address(), "http://proxy.corp:3128");
        assert_eq!(server.authority(), ("proxy.corp".to_owned(), 3128));
    }
}
