//! MCP servers that are commands: the executor runs them in the workspace of the run.

use std::{collections::BTreeMap, time::Duration};

use domain::{
    CallId, Fact, JobRequest, McpCommand, McpProblem, ToolCall, ToolResult, cause::format_error_chain,
};
use mcp::CommandListing;
use tokio::{sync::mpsc, time::Instant};

use super::{PlannerRunState, RunDriver, StepOutcome, TicketError, retry_call};
use crate::executors::{CallError, WorkspaceCalls};
use crate::prompts;
use crate::run::CommandTool;

// Time for the lists of all commands together: silent servers must not delay the start of a run further.
const LIST_LIMIT: Duration = Duration::from_secs(60);

impl RunDriver {
    /// Lists the tools of the MCP servers that the rules allow.
    pub(super) async fn list_mcp_tools(
        &self,
        workspace: WorkspaceCalls<'_>,
        state: &PlannerRunState,
        request: &JobRequest,
    ) -> Result<StepOutcome, TicketError> {
        let names = &request.rules.agent.mcp;
        let commands = self.mcp.find_commands(names, &request.rules.agent.mcp_commands);
        let (listings, failure) = match list_commands(workspace, &commands).await {
            Ok(listings) => (listings, None),
            Err(error) => (describe_unlisted(&commands), Some(error)),
        };
        let servers = Box::pin(self.mcp.list_tools(names, &listings)).await;
        let listed = Fact::McpToolsListed { servers };
        match failure {
            None => Ok(listed.into()),
            // A lost workspace is opened again, and the list is repeated there.
            Some(error) => {
                tracing::warn!(run = %workspace.caller.run, error = %format_error_chain(&error), "the tools of MCP servers in the workspace cannot be listed");
                self.or_nothing(workspace.caller, state, Err(error), listed).await
            }
        }
    }
}

async fn list_commands(
    workspace: WorkspaceCalls<'_>,
    commands: &BTreeMap<String, McpCommand>,
) -> Result<BTreeMap<String, CommandListing>, CallError> {
    let mut listings = describe_unlisted(commands);
    let until = Instant::now() + LIST_LIMIT;
    for (name, command) in commands {
        let listed = retry_call(|| workspace.list_server_tools(command));
        let failure = match tokio::time::timeout_at(until, listed).await {
            Ok(Ok(listed)) if listed.failure.is_empty() => {
                let listing = CommandListing {
                    command: command.clone(),
                    tools: Ok(listed.tools),
                    omitted: listed.omitted,
                };
                listings.insert(name.clone(), listing);
                continue;
            }
            Ok(Ok(listed)) => listed.failure,
            Ok(Err(CallError::Invalid(words))) => words,
            Ok(Err(CallError::TimedOut)) | Err(_) => "it did not answer in time".to_owned(),
            Ok(Err(error)) => return Err(error),
        };
        tracing::warn!(run = %workspace.caller.run, server = name, failure, "the tools of an MCP server cannot be listed");
    }
    Ok(listings)
}

/// Calls a tool of a server that is a command. The result quotes the server.
pub(super) async fn call_command_tool(
    workspace: WorkspaceCalls<'_>,
    state: &PlannerRunState,
    (id, call): (&CallId, &ToolCall),
    place: CommandTool<'_>,
    output: &mpsc::Sender<Vec<u8>>,
) -> Result<ToolResult, CallError> {
    let asked = (place.command, place.tool.tool.as_str());
    let called = retry_call(|| workspace.call_server_tool(id, call, asked, output)).await?;
    let nonce = state.conversation().nonce();
    let server = (place.server, asked.1);
    Ok(prompts::render_command_result(
        nonce,
        server,
        called.result,
        &called.note,
    ))
}

/// Describes commands whose tools are not known.
fn describe_unlisted(commands: &BTreeMap<String, McpCommand>) -> BTreeMap<String, CommandListing> {
    let describe = |(name, command): (&String, &McpCommand)| {
        let listing = CommandListing {
            command: command.clone(),
            tools: Err(McpProblem::CommandFailed),
            omitted: 0,
        };
        (name.clone(), listing)
    };
    commands.iter().map(describe).collect()
}
