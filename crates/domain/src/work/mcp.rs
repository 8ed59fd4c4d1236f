//! Servers of the Model Context Protocol that a run may use, and their tools.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{journal::record_format::is_default, work::tool::ToolSpec};

// Maximum length of a server's name: with a separator it is the start of each tool's name, for which model
// providers accept 64 characters.
const MAX_NAME: usize = 20;

/// Returns true for a valid name of a server: lower-case letters, digits and `-`, a letter first, at most 20
/// characters.
// Without `_`, so that the separator in the name of a tool is not ambiguous.
pub fn is_mcp_server_name(name: &str) -> bool {
    let is_legal = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == b'-';
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(is_legal)
        && name.starts_with(|letter: char| letter.is_ascii_lowercase())
}

/// Returns true if an error with this code proves that a server did not perform a request.
///
/// It could not read the message, or does not know the method or its parameters. Every other error may come after an
/// effect.
pub const fn is_mcp_rejection(code: i32) -> bool {
    // Codes of JSON-RPC 2.0. An internal error, -32603, is not among them.
    matches!(code, -32700 | -32602..=-32600)
}

/// Default time limit of a request to an MCP server, in milliseconds.
pub const MCP_TIMEOUT_MS: u64 = 60_000;
/// Longest time limit of a request to an MCP server, in milliseconds: a longer call holds up its run.
pub const MOST_MCP_TIMEOUT_MS: u64 = 10 * 60 * 1000;

/// Time limit for the list of an MCP server's tools, in milliseconds: a silent server must not delay the start of a run
/// further.
pub const MCP_LIST_MS: u64 = 30_000;
/// Maximum size of the command of an MCP server with its variables, in bytes: a frame of the launcher contains it.
pub const MOST_MCP_COMMAND_BYTES: usize = 64 * 1024;

// Parts of a variable's name that promise a credential.
const CREDENTIAL_PARTS: [&str; 11] = [
    "APIKEY",
    "AUTH",
    "AUTHORIZATION",
    "CREDENTIAL",
    "CREDENTIALS",
    "KEY",
    "PASSWD",
    "PASSWORD",
    "SECRET",
    "SECRETS",
    "TOKEN",
];

/// MCP server that is a command. An executor runs it in the sandbox of the run's workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpCommand {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Folder in which it runs, relative to the root of the repository; empty: the root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// Variables of its environment. They must not be secret, because executors hold no secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Names of the tools that models may call; `*` at the end of a name stands for any text. Absent: the tools
    /// that the server declares read-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Time limit of each request with the start of the server, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
}

const fn default_timeout_ms() -> u64 {
    MCP_TIMEOUT_MS
}

/// Invalid key of an [`McpCommand`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpCommandProblem {
    /// Name of the key.
    pub key: &'static str,
    /// Problem of its value, without the value.
    pub problem: String,
}

impl McpCommand {
    /// Validates the command.
    ///
    /// # Errors
    /// The first invalid key and its problem.
    pub fn check(&self) -> Result<(), McpCommandProblem> {
        let problem = |key, problem: &str| {
            Err(McpCommandProblem {
                key,
                problem: problem.to_owned(),
            })
        };
        if self
            .command
            .first()
            .is_none_or(|program| program.trim().is_empty())
        {
            return problem("command", "must be a list of a program and its arguments");
        }
        let variables = self.environment.iter().flat_map(|(name, value)| [name, value]);
        let bytes: usize = self.command.iter().chain(variables).map(String::len).sum();
        if bytes > MOST_MCP_COMMAND_BYTES {
            let limit = MOST_MCP_COMMAND_BYTES >> 10;
            return problem(
                "command",
                &format!("must not be larger than {limit} KiB with its environment"),
            );
        }
        if self.command.iter().any(|text| text.contains('\0')) {
            return problem("command", "must not contain a zero byte");
        }
        if self.command.iter().any(|text| has_credential(text)) {
            return problem("command", "must not contain a credential: executors hold none");
        }
        let is_outside =
            self.directory.starts_with('/') || self.directory.split('/').any(|part| part == "..");
        if is_outside || self.directory.contains('\0') {
            return problem(
                "directory",
                "must be a folder of the repository, relative to its root",
            );
        }
        for (name, value) in &self.environment {
            if !is_variable_name(name) || value.contains('\0') {
                return problem(
                    "environment",
                    "must be names of letters, digits and `_`, with texts",
                );
            }
            if is_credential_name(name) || has_credential(value) {
                let words = format!("must not contain the credential {name}: executors hold no secrets");
                return problem("environment", &words);
            }
        }
        if !(1..=MOST_MCP_TIMEOUT_MS).contains(&self.timeout_ms) {
            return problem(
                "timeout_ms",
                &format!("must be between 1 and {MOST_MCP_TIMEOUT_MS}"),
            );
        }
        Ok(())
    }
}

fn is_variable_name(name: &str) -> bool {
    let is_legal = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'_';
    !name.is_empty()
        && name.bytes().all(is_legal)
        && !name.starts_with(|letter: char| letter.is_ascii_digit())
}

fn is_credential_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    upper.split('_').any(|part| CREDENTIAL_PARTS.contains(&part))
}

/// Returns true if a text contains an address with a user and a password.
fn has_credential(text: &str) -> bool {
    let mut addresses = text.split("://").skip(1);
    addresses.any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ']).next().unwrap_or_default();
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
    })
}

/// MCP server of a run, as the planner found it at the start of the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServerTools {
    /// Name of the server in the settings.
    pub server: String,
    /// Tools that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<McpTool>,
    /// Number of the server's other tools.
    #[serde(default, skip_serializing_if = "is_default")]
    pub omitted: u32,
    /// Command of the server, which runs in the workspace; absent: the planner reaches the server over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<McpCommand>,
    /// Reason that the server is not available in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<McpProblem>,
}

/// Tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpTool {
    /// Description for the model, with the name that the model calls.
    pub spec: ToolSpec,
    /// Name of the tool at the server.
    pub tool: String,
}

/// Reason that an MCP server is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum McpProblem {
    /// The rules name a server that the planner's settings do not have.
    Unknown,
    /// The server cannot be reached, or did not answer in time.
    Unreachable,
    /// The server refused the credential.
    Unauthorized,
    /// The answer of the server does not follow the protocol, or is too large.
    Unusable,
    /// The command of the server does not start, ends early, or does not answer in time.
    CommandFailed,
}

impl McpProblem {
    /// Describes the problem for people and models.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "the settings of the planner do not have it",
            Self::Unreachable => "it cannot be reached",
            Self::Unauthorized => "it refused the credential",
            Self::Unusable => "its answers cannot be used",
            Self::CommandFailed => "its command does not start or gives no usable answer",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MOST_MCP_COMMAND_BYTES, MOST_MCP_TIMEOUT_MS, McpCommand, is_mcp_server_name};

    fn check_command(command: Value) -> Result<(), (&'static str, String)> {
        let command: McpCommand = serde_json::from_value(command).unwrap();
        command.check().map_err(|found| (found.key, found.problem))
    }

    #[test]
    fn limits_of_command_are_inclusive() {
        let largest = "x".repeat(MOST_MCP_COMMAND_BYTES);
        assert_eq!(
            check_command(json!({"command": [largest], "timeout_ms": MOST_MCP_TIMEOUT_MS})),
            Ok(())
        );
        let larger = "x".repeat(MOST_MCP_COMMAND_BYTES + 1);
        let (_, problem) = check_command(json!({"command": [larger]})).unwrap_err();
        assert!(problem.contains("64 KiB"), "{problem}");
        let later = json!({"command": ["a"], "timeout_ms": MOST_MCP_TIMEOUT_MS + 1});
        let (_, problem) = check_command(later).unwrap_err();
        assert!(problem.ends_with(&MOST_MCP_TIMEOUT_MS.to_string()), "{problem}");
    }

    #[test]
    fn invalid_command_is_named_by_key() {
        for (command, key) in [
            (json!({"command": []}), "command"),
            (json!({"command": [" "]}), "command"),
            (json!({"command": ["x".repeat(70_000)]}), "command"),
            (json!({"command": ["a", "b\u{0}"]}), "command"),
            (
                json!({"command": ["db", "postgres://shop:pw@db.example/shop"]}),
                "command",
            ),
            (json!({"command": ["a"], "directory": "/etc"}), "directory"),
            (json!({"command": ["a"], "directory": "a/../.."}), "directory"),
            (
                json!({"command": ["a"], "environment": {"A B": "x"}}),
                "environment",
            ),
            (
                json!({"command": ["a"], "environment": {"A": "x\u{0}"}}),
                "environment",
            ),
            (json!({"command": ["a"], "timeout_ms": 0}), "timeout_ms"),
            (json!({"command": ["a"], "timeout_ms": 600_001}), "timeout_ms"),
        ] {
            assert_eq!(check_command(command.clone()).unwrap_err().0, key, "{command}");
        }
        let whole = json!({
            "command": ["python3", "tools/mcp.py"], "directory": "tools", "tools": ["*"],
            "environment": {"MAX_TOKENS": "5", "MODE": "fast"}, "timeout_ms": 5000
        });
        assert_eq!(check_command(whole), Ok(()));
    }

    #[test]
    fn credential_in_environment_is_refused() {
        for name in ["GITHUB_TOKEN", "api_key", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY"] {
            let (key, problem) =
                check_command(json!({"command": ["a"], "environment": {name: "s3cret"}})).unwrap_err();
            assert!(
                key == "environment" && problem.contains(name) && !problem.contains("s3cret"),
                "{problem}"
            );
        }
        let address = json!({"command": ["a"], "environment": {"DATABASE": "postgres://a:s3cret@db/x"}});
        assert!(!check_command(address).unwrap_err().1.contains("s3cret"));
    }

    #[test]
    fn server_names_fit_into_tool_names() {
        for legal in ["docs", "d", "issue-tracker-2", "abcdefghijklmnopqrst"] {
            assert!(is_mcp_server_name(legal), "{legal}");
        }
        for illegal in [
            "",
            "Docs",
            "my_docs",
            "2docs",
            "-docs",
            "döcs",
            "docs.x",
            "abcdefghijklmnopqrstu",
        ] {
            assert!(!is_mcp_server_name(illegal), "{illegal}");
        }
    }
}
