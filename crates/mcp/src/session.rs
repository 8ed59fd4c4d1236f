//! Session with one MCP server: handshake, list of tools, calls.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use domain::text::one_line;
use rmcp::{
    ErrorData, RoleClient, Service,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ClientResult, ErrorCode,
        Implementation, PaginatedRequestParams, ProtocolVersion, ServerNotification, ServerRequest, Tool,
    },
    service::{NotificationContext, RequestContext, RunningService, serve_client},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Map, Value};

use crate::{
    answer::{McpAnswer, render_answer},
    error::McpError,
    http_client::CorrelatingClient,
    offer::RemoteTool,
};

// Maximum size of one message of a server, in bytes.
const MESSAGE_BYTES: usize = 4 << 20;
// Maximum size of the part of an error page that is read, in bytes.
const ERROR_BYTES: usize = 4 << 10;
// Maximum number of pages of a list.
const MOST_PAGES: usize = 20;
// Maximum number of tools of a server that are read.
const MOST_TOOLS: usize = 1_000;

/// Connection to a server.
#[derive(Clone, Debug)]
pub(crate) struct ServerConnection {
    pub(crate) http: reqwest::Client,
    pub(crate) url: Arc<str>,
    pub(crate) timeout_ms: u64,
}

/// Session with one server. Dropping it ends the session.
pub struct McpSession {
    service: RunningService<RoleClient, RefusingClient>,
    timeout_ms: u64,
}

impl McpSession {
    /// Connects, and negotiates the version of the protocol.
    ///
    /// # Errors
    /// [`McpError`].
    pub(crate) async fn connect(server: &ServerConnection) -> Result<Self, McpError> {
        let config = StreamableHttpClientTransportConfig::with_uri(Arc::clone(&server.url))
            .max_sse_event_size(MESSAGE_BYTES)
            .max_json_response_size(MESSAGE_BYTES)
            .max_error_response_size(ERROR_BYTES);
        let client = CorrelatingClient(server.http.clone());
        let transport = StreamableHttpClientTransport::with_client(client, config);
        let shake = Box::pin(serve_client(RefusingClient, transport));
        let shaken = tokio::time::timeout(Duration::from_millis(server.timeout_ms), shake).await;
        let service = shaken.map_err(|_| McpError::Late(server.timeout_ms))?;
        Ok(Self {
            service: service.map_err(|error| McpError::from(&error))?,
            timeout_ms: server.timeout_ms,
        })
    }

    /// Name and version of the server's program, as it reports them.
    #[must_use]
    pub fn describe_server(&self) -> String {
        let info = self.service.peer().peer_info();
        let program = info.as_ref().and_then(|info| info.server_info.as_ref());
        program.map_or_else(String::new, |program| {
            one_line(&format!("{} {}", program.name, program.version))
        })
    }

    /// Returns true if the connection ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.service.is_closed()
    }

    /// Lists the tools of the server.
    pub(crate) async fn list_tools(&self) -> Result<Vec<RemoteTool>, McpError> {
        self.within_limit(self.list_pages()).await
    }

    async fn list_pages(&self) -> Result<Vec<RemoteTool>, McpError> {
        let (mut tools, mut names, mut cursor) = (Vec::new(), BTreeSet::new(), None);
        for _ in 0..MOST_PAGES {
            let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let page = self.service.peer().list_tools(params).await;
            let page = page.map_err(|error| McpError::from(&error))?;
            // A server that repeats a page must not offer its tools twice.
            let read = page.tools.into_iter().map(read_tool);
            tools.extend(read.filter(|tool| names.insert(tool.name.clone())));
            // Some servers end the list with an empty cursor.
            cursor = page.next_cursor.filter(|next| !next.is_empty());
            if cursor.is_none() || tools.len() >= MOST_TOOLS {
                break;
            }
        }
        tools.truncate(MOST_TOOLS);
        Ok(tools)
    }

    /// Calls a tool once. Dropping the future cancels the call at the server.
    ///
    /// # Errors
    /// [`McpError`].
    pub async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<McpAnswer, McpError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let called = async {
            let answered = self.service.peer().call_tool_once(params).await;
            let response = answered.map_err(|error| McpError::from(&error))?;
            if let CallToolResponse::Complete(result) = response {
                Ok(render_answer(&result))
            } else {
                Err(McpError::Unfinished)
            }
        };
        self.within_limit(called).await
    }

    async fn within_limit<T>(
        &self,
        request: impl Future<Output = Result<T, McpError>>,
    ) -> Result<T, McpError> {
        match tokio::time::timeout(Duration::from_millis(self.timeout_ms), Box::pin(request)).await {
            Ok(answered) => answered,
            Err(_) => Err(McpError::Late(self.timeout_ms)),
        }
    }
}

/// Reads the parts of a tool that a run offers.
pub(crate) fn read_tool(tool: Tool) -> RemoteTool {
    let hints = tool.annotations.as_ref();
    RemoteTool {
        is_read_only: hints.and_then(|hints| hints.read_only_hint) == Some(true),
        name: tool.name.into_owned(),
        description: tool
            .description
            .map(std::borrow::Cow::into_owned)
            .unwrap_or_default(),
        schema: Map::clone(&tool.input_schema),
    }
}

/// Client that offers servers nothing: it refuses requests for text of models, for input of people and for
/// folders, and it ignores notifications.
#[derive(Clone, Copy, Debug)]
struct RefusingClient;

impl Service<RoleClient> for RefusingClient {
    async fn handle_request(
        &self,
        request: ServerRequest,
        _: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        if matches!(request, ServerRequest::PingRequest(_)) {
            return Ok(ClientResult::empty(()));
        }
        let refusal = "this client answers no requests of servers";
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, refusal, None))
    }

    async fn handle_notification(
        &self,
        _: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        let program = Implementation::new("journeyman", env!("CARGO_PKG_VERSION"));
        // Servers with sessions need the handshake, which the newest version of the protocol does not have.
        ClientConfig::new(ClientCapabilities::default(), program)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}
