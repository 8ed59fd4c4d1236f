//! Settings of MCP servers.

use std::collections::BTreeMap;

use bootstrap::settings::{Error, TextList};
use domain::{MCP_TIMEOUT_MS, MOST_MCP_TIMEOUT_MS, McpCommand, is_mcp_server_name, is_readable_on_the_way};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

// Headers that belong to the protocol.
const RESERVED: [&str; 8] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
];

/// `[mcp]`: servers of the Model Context Protocol, whose tools the rules of a repository allow by name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Servers by name.
    pub servers: BTreeMap<String, ServerSettings>,
}

/// `[mcp.servers.<name>]`: one server, over streamable HTTP or as a command.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerSettings {
    /// Address of the server's endpoint, such as `https://docs.example/mcp`. Required without `command`.
    #[serde(default)]
    pub url: Option<String>,
    /// Program and arguments of a server over standard input and output. Executors run it in the sandbox of the
    /// run's workspace, without network and without credentials.
    #[serde(default)]
    pub command: TextList,
    /// Folder in which the command runs, relative to the root of the repository.
    #[serde(default)]
    pub directory: String,
    /// Variables of the command's environment. They must not be secret.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Token for the header `Authorization: Bearer`.
    #[serde(default)]
    pub auth_token: Option<SecretString>,
    /// Additional headers of each request. Their values may be secret.
    #[serde(default)]
    pub headers: BTreeMap<String, SecretString>,
    /// Names of the tools that models may call; `*` at the end of a name stands for any text. Absent: the tools
    /// that the server declares read-only.
    #[serde(default)]
    pub tools: Option<TextList>,
    /// Time limit of each request, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
}

const fn default_timeout_ms() -> u64 {
    MCP_TIMEOUT_MS
}

impl Settings {
    /// Validates the servers without a request to them.
    ///
    /// # Errors
    /// The first invalid key and its problem.
    pub fn check(&self) -> Result<(), Error> {
        for (name, server) in &self.servers {
            let section = format!("mcp.servers.{name}");
            if !is_mcp_server_name(name) {
                let problem =
                    "must be named by at most 20 lower-case letters, digits and hyphens, a letter first";
                return Err(Error::new(section, problem));
            }
            server
                .check()
                .map_err(|(key, problem)| Error::new(format!("{section}.{key}"), problem))?;
        }
        Ok(())
    }
}

impl ServerSettings {
    fn check(&self) -> Result<(), (&'static str, String)> {
        let problem = |key, problem: &str| Err((key, problem.to_owned()));
        if let Some(command) = self.build_command() {
            if self.url.is_some() {
                return problem("url", "must not be set together with command");
            }
            let credentials = [
                ("auth_token", self.auth_token.is_some()),
                ("headers", !self.headers.is_empty()),
            ];
            if let Some((key, _)) = credentials.into_iter().find(|(_, is_set)| *is_set) {
                return problem(
                    key,
                    "must not be set together with command: executors hold no credentials",
                );
            }
            return command.check().map_err(|found| (found.key, found.problem));
        }
        if !self.directory.is_empty() {
            return problem("directory", "must not be set without command");
        }
        if !self.environment.is_empty() {
            return problem("environment", "must not be set without command");
        }
        let url = self.url.as_deref().unwrap_or_default();
        let address = reqwest::Url::parse(url).ok();
        let address = address.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let Some(address) = address else {
            return problem("url", "must be an http:// or https:// address");
        };
        if !address.username().is_empty() || address.password().is_some() {
            return problem("url", "must not contain a credential: use auth_token or headers");
        }
        if is_readable_on_the_way(url) {
            return problem(
                "url",
                "sends code and credentials unencrypted to another machine: use https://",
            );
        }
        if !(1..=MOST_MCP_TIMEOUT_MS).contains(&self.timeout_ms) {
            return problem(
                "timeout_ms",
                &format!("must be between 1 and {MOST_MCP_TIMEOUT_MS}"),
            );
        }
        if self.auth_token.is_some()
            && self
                .headers
                .keys()
                .any(|name| name.eq_ignore_ascii_case("authorization"))
        {
            return problem("auth_token", "must not be set beside a header Authorization");
        }
        self.build_headers().map(drop)
    }

    /// Builds the headers of each request.
    ///
    /// # Errors
    /// The key of an invalid header, and its problem without its value.
    pub(crate) fn build_headers(&self) -> Result<HeaderMap, (&'static str, String)> {
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let is_reserved = RESERVED
                .iter()
                .any(|reserved| name.eq_ignore_ascii_case(reserved));
            let parsed = HeaderName::try_from(name.as_str()).ok().filter(|_| !is_reserved);
            let Some(parsed) = parsed else {
                return Err(("headers", format!("must not contain the header {name:?}")));
            };
            let value = build_secret_value(value.expose_secret());
            let value = value.ok_or_else(|| ("headers", format!("has an invalid value for {name:?}")))?;
            headers.insert(parsed, value);
        }
        if let Some(token) = &self.auth_token {
            let value = build_secret_value(&format!("Bearer {}", token.expose_secret()));
            let value = value.filter(|_| !token.expose_secret().trim().is_empty());
            let value = value.ok_or_else(|| ("auth_token", "must be a token on one line".to_owned()))?;
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }

    /// Returns the command of a server that is one.
    pub(crate) fn build_command(&self) -> Option<McpCommand> {
        (!self.command.is_empty()).then(|| McpCommand {
            command: self.command.to_vec(),
            directory: self.directory.clone(),
            environment: self.environment.clone(),
            tools: self.tools.as_ref().map(|tools| tools.to_vec()),
            timeout_ms: self.timeout_ms,
        })
    }
}

/// Returns true if models may call a tool. `allowed`: names of the settings or rules.
pub(crate) fn is_tool_allowed(allowed: Option<&[String]>, tool: &str, is_read_only: bool) -> bool {
    let Some(allowed) = allowed else {
        return is_read_only;
    };
    allowed.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => tool.starts_with(start),
        None => tool == pattern,
    })
}

fn build_secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check_server(name: &str, server: serde_json::Value) -> Result<(), String> {
        let settings = json!({"servers": {name: server}});
        let settings: Settings = serde_json::from_value(settings).unwrap();
        settings.check().map_err(|error| error.key)
    }

    #[test]
    fn wrong_server_setting_is_named() {
        for (name, server, key) in [
            ("Docs", json!({"url": "https://d.example"}), "mcp.servers.Docs"),
            ("d_x", json!({"url": "https://d.example"}), "mcp.servers.d_x"),
            ("docs", json!({"url": "docs.example"}), "mcp.servers.docs.url"),
            ("docs", json!({"url": "file:///etc"}), "mcp.servers.docs.url"),
            (
                "docs",
                json!({"url": "http://docs.example/mcp"}),
                "mcp.servers.docs.url",
            ),
            (
                "docs",
                json!({"url": "https://a:b@docs.example/mcp"}),
                "mcp.servers.docs.url",
            ),
            (
                "docs",
                json!({"url": "https://d.example", "timeout_ms": 0}),
                "mcp.servers.docs.timeout_ms",
            ),
            (
                "docs",
                json!({"url": "https://d.example", "auth_token": "a\nb"}),
                "mcp.servers.docs.auth_token",
            ),
            (
                "docs",
                json!({"url": "https://d.example", "auth_token": " "}),
                "mcp.servers.docs.auth_token",
            ),
            (
                "docs",
                json!({"url": "https://d.example", "auth_token": "a", "headers": {"authorization": "b"}}),
                "mcp.servers.docs.auth_token",
            ),
            (
                "docs",
                json!({"url": "https://d.example", "headers": {"Mcp-Session-Id": "1"}}),
                "mcp.servers.docs.headers",
            ),
            (
                "docs",
                json!({"url": "https://d.example", "headers": {"a b": "1"}}),
                "mcp.servers.docs.headers",
            ),
            ("docs", json!({}), "mcp.servers.docs.url"),
            (
                "docs",
                json!({"url": "https://d.example", "command": ["docs"]}),
                "mcp.servers.docs.url",
            ),
            (
                "docs",
                json!({"command": ["docs"], "auth_token": "s3cret"}),
                "mcp.servers.docs.auth_token",
            ),
            (
                "docs",
                json!({"command": ["docs"], "headers": {"x-key": "s3cret"}}),
                "mcp.servers.docs.headers",
            ),
            (
                "docs",
                json!({"command": ["docs"], "environment": {"DOCS_TOKEN": "s3cret"}}),
                "mcp.servers.docs.environment",
            ),
            (
                "docs",
                json!({"command": ["docs"], "directory": "../other"}),
                "mcp.servers.docs.directory",
            ),
            (
                "docs",
                json!({"url": "https://d.example", "directory": "tools"}),
                "mcp.servers.docs.directory",
            ),
            (
                "docs",
                json!({"url": "https://d.example", "environment": {"MODE": "x"}}),
                "mcp.servers.docs.environment",
            ),
        ] {
            assert_eq!(check_server(name, server), Err(key.to_owned()));
        }
        let whole = json!({
            "url": "https://d.example/mcp", "auth_token": "t0ken", "headers": {"X-Team": "shop"},
            "tools": ["search", "get_*"], "timeout_ms": 5000
        });
        assert_eq!(check_server("docs", whole), Ok(()));
        let command = json!({
            "command": ["python3", "tools/docs.py"], "directory": "tools", "environment": {"MODE": "fast"},
            "tools": ["search"], "timeout_ms": 5000
        });
        assert_eq!(check_server("docs", command), Ok(()));
        let local = json!({"url": "http://127.0.0.1:9000/mcp"});
        assert_eq!(check_server("docs", local), Ok(()));
    }

    #[test]
    fn tools_are_read_only_unless_named() {
        assert!(is_tool_allowed(None, "search", true) && !is_tool_allowed(None, "search", false));
        let names = ["search".to_owned(), "get_*".to_owned()];
        let is_named = |tool, is_read_only| is_tool_allowed(Some(&names), tool, is_read_only);
        assert!(is_named("search", false) && is_named("get_page", false));
        assert!(!is_named("search_all", true) && !is_named("delete", true));
        assert!(!is_tool_allowed(Some(&[]), "search", true));
        assert!(is_tool_allowed(Some(&["*".to_owned()]), "delete", false));
    }

    #[test]
    fn secrets_are_absent_from_debug_output() {
        let settings = json!({"servers": {"docs": {
            "url": "https://d.example", "auth_token": "s3cret", "headers": {"x-key": "s3cret"}
        }}});
        let settings: Settings = serde_json::from_value(settings).unwrap();
        let headers = settings.servers["docs"].build_headers().unwrap();
        assert_eq!(headers.len(), 2);
        assert!(!format!("{settings:?} {headers:?}").contains("s3cret"));
    }
}
