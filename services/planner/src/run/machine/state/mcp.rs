//! MCP servers of a run, with the tools that the model may call.

use domain::{McpCommand, McpServerTools, McpTool};

use super::{ApplyResult, require_legal};

/// MCP servers, once their tools are listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct McpState {
    listed: Option<Vec<McpServerTools>>,
}

/// Tool of a server that is a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandTool<'a> {
    /// Name of the server.
    pub(crate) server: &'a str,
    pub(crate) command: &'a McpCommand,
    pub(crate) tool: &'a McpTool,
}

impl McpState {
    /// Forgets the tools at a restart of the work, which lists them again.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Returns true if the tools are listed.
    pub(crate) const fn is_listed(&self) -> bool {
        self.listed.is_some()
    }

    /// Returns the servers, in the order of the rules.
    pub(crate) fn servers(&self) -> &[McpServerTools] {
        self.listed.as_deref().unwrap_or_default()
    }

    /// Returns the tool with this name of a server that is a command.
    pub(crate) fn find_command_tool(&self, name: &str) -> Option<CommandTool<'_>> {
        self.servers().iter().find_map(|server| {
            let tool = server.tools.iter().find(|tool| tool.spec.name == name)?;
            Some(CommandTool {
                server: &server.server,
                command: server.command.as_ref()?,
                tool,
            })
        })
    }

    pub(super) fn tools_listed(&mut self, servers: &[McpServerTools]) -> ApplyResult {
        // A second list would change the tools in the middle of a conversation.
        require_legal(self.listed.is_none(), "the tools are listed already")?;
        self.listed = Some(servers.to_vec());
        Ok(())
    }
}
