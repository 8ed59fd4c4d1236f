//! Session with one server over a stream: handshake, list of tools, call.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncWriteExt as _, ReadHalf, WriteHalf},
    net::UnixStream,
};

use super::message::{MessageReader, ServerFailure, ServerMessage, build_answer, render_line, render_quote};

// Versions of the protocol with a handshake, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
// Messages before an answer. Progress and logs of a long call fit; a flood ends.
const MOST_MESSAGES: usize = 10_000;
const MOST_PAGES: usize = 20;
const MOST_TOOLS: usize = 1_000;
// Maximum size of all tools of a server, in bytes: the planner receives them in one message.
const TOOLS_BYTES: usize = 2 << 20;

/// Tools of a server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerListing {
    /// Tools as JSON, in the order of the server.
    pub(crate) tools: Vec<String>,
    /// Number of tools beyond the limits.
    pub(crate) omitted: u32,
}

/// Session after the handshake.
pub(super) struct ServerSession {
    messages: MessageReader<ReadHalf<UnixStream>>,
    input: WriteHalf<UnixStream>,
    next_id: u64,
    has_tools: bool,
}

impl ServerSession {
    /// Performs the handshake.
    pub(super) async fn open(stream: UnixStream) -> Result<Self, ServerFailure> {
        let (output, input) = tokio::io::split(stream);
        let mut session = Self {
            messages: MessageReader::new(output),
            input,
            next_id: 1,
            has_tools: false,
        };
        let request = json!({
            "protocolVersion": VERSIONS[0],
            "capabilities": {},
            "clientInfo": {"name": "journeyman", "version": env!("CARGO_PKG_VERSION")},
        });
        let answer = session.request("initialize", &request).await?;
        let version = answer.get("protocolVersion").and_then(Value::as_str);
        let version = version.unwrap_or_default();
        if !VERSIONS.contains(&version) {
            return Err(ServerFailure::of_protocol("its version is not known", version));
        }
        let capabilities = answer.get("capabilities").and_then(Value::as_object);
        session.has_tools = capabilities.is_some_and(|offered| offered.contains_key("tools"));
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        session.send(&initialized).await?;
        Ok(session)
    }

    /// Lists the tools.
    pub(super) async fn list_tools(&mut self) -> Result<ServerListing, ServerFailure> {
        let mut listing = ServerListing::default();
        if !self.has_tools {
            return Ok(listing);
        }
        let (mut bytes, mut names, mut cursor) = (0, BTreeSet::new(), None);
        for _ in 0..MOST_PAGES {
            let params = cursor.map_or_else(|| json!({}), |cursor: String| json!({"cursor": cursor}));
            let mut page = self.request("tools/list", &params).await?;
            let Some(Value::Array(tools)) = page.remove("tools") else {
                return Err(ServerFailure::of_protocol("a list of tools has no tools", ""));
            };
            for tool in tools {
                let text = tool.to_string();
                let Some(name) = tool.get("name").and_then(Value::as_str) else {
                    return Err(ServerFailure::of_protocol("a tool has no name", &text));
                };
                // A server that repeats a page must not offer its tools twice.
                if !names.insert(name.to_owned()) {
                    continue;
                }
                bytes += text.len();
                if listing.tools.len() < MOST_TOOLS && bytes <= TOOLS_BYTES {
                    listing.tools.push(text);
                } else {
                    listing.omitted += 1;
                }
            }
            let next = page.get("nextCursor").and_then(Value::as_str);
            // Some servers end the list with an empty cursor.
            cursor = next.filter(|next| !next.is_empty()).map(str::to_owned);
            if cursor.is_none() || listing.omitted > 0 {
                break;
            }
        }
        Ok(listing)
    }

    /// Calls a tool, and returns its result as JSON.
    pub(super) async fn call_tool(
        &mut self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<String, ServerFailure> {
        let params = json!({"name": name, "arguments": arguments});
        let result = self.request("tools/call", &params).await?;
        Ok(Value::Object(result).to_string())
    }

    /// Sends a request and reads until its answer.
    async fn request(&mut self, method: &str, params: &Value) -> Result<Map<String, Value>, ServerFailure> {
        let request_id = self.next_id;
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params});
        self.send(&message).await?;
        for _ in 0..MOST_MESSAGES {
            match self.messages.read().await? {
                ServerMessage::Result { id, result } if id == request_id => return Ok(result),
                ServerMessage::Refusal { id, code, text } if id == request_id => {
                    return Err(ServerFailure::Refused { code, text });
                }
                ServerMessage::Result { id, .. } | ServerMessage::Refusal { id, .. } => {
                    let id = render_quote(&id.to_string());
                    return Err(ServerFailure::of_protocol(
                        "it answered a request that is not open",
                        &id,
                    ));
                }
                ServerMessage::Request { id, method } => self.send(&build_answer(&id, &method)).await?,
                ServerMessage::Notification => {}
            }
        }
        Err(ServerFailure::TooMany)
    }

    async fn send(&mut self, message: &Value) -> Result<(), ServerFailure> {
        let line = render_line(message);
        let written = self.input.write_all(line.as_bytes()).await;
        written.map_err(ServerFailure::of_socket)
    }
}
