//! MCP servers of a run, with the tools that the model may call.

use domain::McpServerTools;

use super::{ApplyResult, require_legal};

/// MCP servers, once their tools are listed.
#[derive(Clone, Debug, Default)]
pub(crate) struct McpState {
    listed: Option<Vec<McpServerTools>>,
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

    pub(super) fn tools_listed(&mut self, servers: &[McpServerTools]) -> ApplyResult {
        // A second list would change the tools in the middle of a conversation.
        require_legal(self.listed.is_none(), "the tools are listed already")?;
        self.listed = Some(servers.to_vec());
        Ok(())
    }
}
