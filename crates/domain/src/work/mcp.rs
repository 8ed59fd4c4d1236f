//! Servers of the Model Context Protocol that a run may use, and their tools.

use serde::{Deserialize, Serialize};

use crate::work::tool::ToolSpec;

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

/// MCP server of a run, as the planner found it at the start of the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServerTools {
    /// Name of the server in the settings.
    pub server: String,
    /// Tools that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<McpTool>,
    /// Number of the server's other tools.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u32,
    /// Reason that the server is not available in this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<McpProblem>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
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
}

impl McpProblem {
    /// Describes the problem for people and models.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unknown => "the settings of the planner do not have it",
            Self::Unreachable => "it cannot be reached",
            Self::Unauthorized => "it refused the credential",
            Self::Unusable => "its answers cannot be used",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_mcp_server_name;

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
