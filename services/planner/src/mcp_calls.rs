//! Calls of runs to MCP servers, with a session for each run and server.

use std::{collections::BTreeMap, num::NonZeroUsize, sync::Arc, time::Duration};

use domain::{
    CallId, McpCommand, McpServerTools, McpTool, RunId, ToolCall, ToolResult, cause::format_error_chain,
};
use lru::LruCache;
use mcp::{CommandListing, McpAnswer, McpError, McpServers, McpSession};
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::config::Config;
use crate::prompts::{self, McpCallFailure};
use crate::run::PlannerRunState;
use crate::telemetry;

// Open sessions of all runs. The least recently used one ends first; its run opens another one.
const SESSIONS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(255);

type SessionKey = (RunId, String);

/// Caller of MCP servers.
pub(crate) struct McpCaller {
    servers: McpServers,
    sessions: Mutex<LruCache<SessionKey, Arc<McpSession>>>,
}

impl McpCaller {
    pub(crate) fn new(servers: McpServers) -> Self {
        Self {
            servers,
            sessions: Mutex::new(LruCache::new(SESSIONS)),
        }
    }

    /// Finds those of the named servers that are commands. A server of the settings comes before one of the
    /// rules.
    pub(crate) fn find_commands(
        &self,
        names: &[String],
        rules: &BTreeMap<String, McpCommand>,
    ) -> BTreeMap<String, McpCommand> {
        let find = |name: &String| {
            if self.servers.contains(name) {
                self.servers.command(name)
            } else {
                rules.get(name)
            }
        };
        let found = names
            .iter()
            .filter_map(|name| Some((name.clone(), find(name)?.clone())));
        found.collect()
    }

    /// Lists the tools of the named servers. `commands`: listings of those that are commands.
    pub(crate) async fn list_tools(
        &self,
        names: &[String],
        commands: &BTreeMap<String, CommandListing>,
    ) -> Vec<McpServerTools> {
        failpoint::around("planner.mcp.list", self.servers.list_tools(names, commands)).await
    }

    /// Calls a tool. Every failure is a result for the model.
    pub(crate) async fn call(
        &self,
        state: &PlannerRunState,
        id: &CallId,
        (server, tool): (&str, &McpTool),
        call: &ToolCall,
    ) -> ToolResult {
        let start = Instant::now();
        let span = telemetry::tool_span(&state.run.to_string(), &call.name, id.as_str());
        let called = Box::pin(self.call_with_retry(&state.run, (server, tool), call));
        let called = failpoint::around("planner.mcp.call", called)
            .instrument(span)
            .await;
        let (nonce, place) = (state.conversation().nonce(), (server, tool.tool.as_str()));
        let result = match called {
            Ok(answer) => prompts::render_mcp_answer(nonce, place, &answer),
            Err(CallFailure { error, was_sent }) => {
                tracing::warn!(run = %state.run, server, tool = place.1, error = %format_error_chain(&error), "a call at an MCP server failed");
                let is_unknown = was_sent && !tool.spec.read_only && !error.is_before_effect();
                let failure = if is_unknown {
                    McpCallFailure::Unknown
                } else {
                    McpCallFailure::NoEffect
                };
                prompts::render_mcp_failure(nonce, place, &error.to_string(), failure)
            }
        };
        let elapsed = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let result = ToolResult {
            duration_ms: elapsed,
            ..result
        };
        // Servers choose the names of their tools, so a name is not used as a label of a metric.
        telemetry::count_tool_call("mcp", start, &result);
        result
    }

    /// Repeats a call after a failure that may pass, if the first one had no effect: it was not sent, or its tool
    /// only reads.
    async fn call_with_retry(
        &self,
        run: &RunId,
        (server, tool): (&str, &McpTool),
        call: &ToolCall,
    ) -> Result<McpAnswer, CallFailure> {
        match Box::pin(self.call_once(run, (server, tool), call)).await {
            Err(failure) if failure.error.is_passing() && (!failure.was_sent || tool.spec.read_only) => {
                Box::pin(self.call_once(run, (server, tool), call)).await
            }
            called => called,
        }
    }

    async fn call_once(
        &self,
        run: &RunId,
        (server, tool): (&str, &McpTool),
        call: &ToolCall,
    ) -> Result<McpAnswer, CallFailure> {
        let key = (run.clone(), server.to_owned());
        let opened = Box::pin(self.open_session(&key)).await;
        let session = opened.map_err(|error| CallFailure {
            error,
            was_sent: false,
        })?;
        let arguments = call.input.as_object().cloned().unwrap_or_default();
        let called = session.call(&tool.tool, arguments).await;
        called.map_err(|error| {
            // A session after a failure may be unusable; the next call opens another one.
            self.sessions.lock().pop(&key);
            CallFailure {
                error,
                was_sent: true,
            }
        })
    }

    async fn open_session(&self, key: &SessionKey) -> Result<Arc<McpSession>, McpError> {
        let known = self.sessions.lock().get(key).cloned();
        if let Some(session) = known.filter(|session| !session.is_closed()) {
            return Ok(session);
        }
        let session = Arc::new(Box::pin(self.servers.connect(&key.1)).await?);
        self.sessions.lock().put(key.clone(), Arc::clone(&session));
        Ok(session)
    }

    /// Ends the sessions of a run.
    pub(crate) fn close(&self, run: &RunId) {
        let mut sessions = self.sessions.lock();
        let of_run = sessions.iter().map(|(key, _)| key.clone());
        let of_run: Vec<SessionKey> = of_run.filter(|(of, _)| of == run).collect();
        for key in of_run {
            sessions.pop(&key);
        }
    }
}

/// State of a configured server, in words for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpInspection {
    /// The server answered.
    Works(String),
    /// The server does not work.
    Failed(String),
    /// The server is a command, which only an executor can run.
    Unchecked(String),
}

/// Checks each configured server: handshake and list of tools.
pub async fn inspect_mcp_servers(config: &Config, limit: Duration) -> Vec<(String, McpInspection)> {
    let servers = match McpServers::new(&config.mcp) {
        Ok(servers) => servers,
        Err(error) => return vec![(error.key, McpInspection::Failed(error.problem))],
    };
    let mut found = Vec::new();
    for name in servers.names() {
        if let Some(command) = servers.command(name) {
            let program = command.command.first().map_or("", String::as_str);
            let words = format!("the command {program} starts in the workspaces of executors, and not here");
            found.push((name.to_owned(), McpInspection::Unchecked(words)));
            continue;
        }
        let inspected = tokio::time::timeout(limit, Box::pin(servers.inspect(name))).await;
        let inspected = match inspected {
            Ok(Ok((program, listed))) => McpInspection::Works(describe_tools(&program, &listed)),
            Ok(Err(error)) => McpInspection::Failed(error.to_string()),
            Err(_) => McpInspection::Failed(format!("no answer within {} s", limit.as_secs())),
        };
        found.push((name.to_owned(), inspected));
    }
    found
}

fn describe_tools(program: &str, listed: &McpServerTools) -> String {
    let tools = listed.tools.iter().map(|tool| tool.spec.name.as_str());
    let offered = if listed.tools.is_empty() {
        "offers no tool".to_owned()
    } else {
        format!("offers {}", tools.collect::<Vec<_>>().join(", "))
    };
    match listed.omitted {
        0 => format!("{program} {offered}"),
        omitted => format!(
            "{program} {offered}; {omitted} more are not declared read-only, not named in `tools`, or beyond the limits"
        ),
    }
}

/// Failure of a call.
#[derive(Debug)]
struct CallFailure {
    error: McpError,
    /// True if the server may have received the call.
    was_sent: bool,
}
