//! Answers of MCP servers that are commands, as an executor returns them.

use domain::{McpCommand, McpProblem};
use rmcp::model::{CallToolResult, Tool};

use crate::{
    answer::{McpAnswer, render_answer},
    error::McpError,
    offer::RemoteTool,
    session::read_tool,
};

/// Tools of a server that is a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandListing {
    /// The command.
    pub command: McpCommand,
    /// Tools as JSON, in the order of the server; or the reason that the server is not available.
    pub tools: Result<Vec<String>, McpProblem>,
    /// Number of further tools beyond the limits of the executor.
    pub omitted: u32,
}

impl CommandListing {
    /// Reads the tools. One that does not follow the protocol makes the server unusable.
    pub(crate) fn read_tools(&self) -> Result<Vec<RemoteTool>, McpProblem> {
        let texts = self.tools.as_ref().map_err(|problem| *problem)?;
        let tools = texts.iter().map(|text| serde_json::from_str::<Tool>(text));
        let read: Result<Vec<RemoteTool>, _> = tools.map(|tool| tool.map(read_tool)).collect();
        // The error may contain text of the server.
        read.map_err(|_| McpProblem::Unusable)
    }
}

/// Reads the result of a call, which an executor returns as JSON.
///
/// # Errors
/// [`McpError::Protocol`] for a result that does not follow the protocol.
pub fn read_command_answer(json: &str) -> Result<McpAnswer, McpError> {
    let result: Result<CallToolResult, _> = serde_json::from_str(json);
    result
        .map(|result| render_answer(&result))
        .map_err(|_| McpError::Protocol)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn command_answer_is_read_and_bounded() {
        let answer = read_command_answer(
            &json!({"content": [{"type": "text", "text": "a\u{202e}b"}], "isError": true}).to_string(),
        )
        .unwrap();
        assert_eq!((answer.text.as_str(), answer.is_error), ("a<U+202E>b", true));
        let long = json!({"content": [{"type": "text", "text": "x".repeat(100_000)}]}).to_string();
        assert!(read_command_answer(&long).unwrap().is_truncated);
        for wrong in ["", "[]", "{}", r#"{"content": "text"}"#] {
            assert_eq!(read_command_answer(wrong), Err(McpError::Protocol), "{wrong}");
        }
    }
}
