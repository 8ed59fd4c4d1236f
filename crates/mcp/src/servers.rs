//! MCP servers of the settings.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bootstrap::settings::Error;
use domain::{McpServerTools, cause::format_error_chain};
use futures::future::join_all;

use crate::{
    error::McpError,
    offer::{OfferRoom, RemoteTool, choose_tools},
    session::{McpSession, ServerConnection},
    settings::{ServerSettings, Settings},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
// Time for the answers of all servers together: a silent server must not delay the start of a run further.
const LIST_LIMIT: Duration = Duration::from_secs(30);

/// Configured servers.
#[derive(Clone, Debug, Default)]
pub struct McpServers {
    servers: BTreeMap<String, McpServer>,
}

#[derive(Clone, Debug)]
struct McpServer {
    settings: Arc<ServerSettings>,
    connection: ServerConnection,
}

impl McpServers {
    /// Builds the clients without a request.
    ///
    /// # Errors
    /// The first invalid key and its problem.
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        settings.check()?;
        let build = |(name, server): (&String, &ServerSettings)| {
            Ok((
                name.clone(),
                McpServer {
                    connection: build_connection(name, server)?,
                    settings: Arc::new(server.clone()),
                },
            ))
        };
        let servers = settings.servers.iter().map(build);
        Ok(Self {
            servers: servers.collect::<Result<_, Error>>()?,
        })
    }

    /// Returns the names of the servers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// Opens a session with a server.
    ///
    /// # Errors
    /// [`McpError`].
    pub async fn connect(&self, name: &str) -> Result<McpSession, McpError> {
        let server = self.servers.get(name).ok_or(McpError::Unknown)?;
        McpSession::connect(&server.connection).await
    }

    /// Lists the tools that models may call, in the order of the names. A failed server has no tools and a
    /// reason.
    pub async fn list_tools(&self, names: &[String]) -> Vec<McpServerTools> {
        let read = names.iter().map(|name| async move {
            let read = tokio::time::timeout(LIST_LIMIT, Box::pin(self.read_tools(name))).await;
            read.unwrap_or(Err(McpError::Unreachable))
        });
        let listings = join_all(read).await;
        let mut room = OfferRoom::default();
        let listed = names.iter().zip(listings);
        listed
            .map(|(name, read)| self.choose(name, read, &mut room))
            .collect()
    }

    fn choose(
        &self,
        name: &str,
        read: Result<Vec<RemoteTool>, McpError>,
        room: &mut OfferRoom,
    ) -> McpServerTools {
        let read = read.and_then(|tools| Ok((tools, self.servers.get(name).ok_or(McpError::Unknown)?)));
        match read {
            Ok((tools, server)) => choose_tools(name, &server.settings, &tools, room),
            Err(error) => {
                tracing::warn!(server = name, error = %format_error_chain(&error), "the tools of an MCP server cannot be listed");
                McpServerTools {
                    server: name.to_owned(),
                    tools: Vec::new(),
                    omitted: 0,
                    problem: Some(error.problem()),
                }
            }
        }
    }

    /// Reads the tools of a server, and retries once after a failure that may pass.
    async fn read_tools(&self, name: &str) -> Result<Vec<RemoteTool>, McpError> {
        let read = || async { Box::pin(self.connect(name)).await?.list_tools().await };
        match Box::pin(read()).await {
            Err(error) if error.is_passing() => Box::pin(read()).await,
            read => read,
        }
    }

    /// Checks a server: handshake and list of tools. Returns the program of the server and its tools.
    ///
    /// # Errors
    /// [`McpError`].
    pub async fn inspect(&self, name: &str) -> Result<(String, McpServerTools), McpError> {
        let server = self.servers.get(name).ok_or(McpError::Unknown)?;
        let session = Box::pin(self.connect(name)).await?;
        let tools = session.list_tools().await?;
        let chosen = choose_tools(name, &server.settings, &tools, &mut OfferRoom::default());
        Ok((session.describe_server(), chosen))
    }
}

fn build_connection(name: &str, server: &ServerSettings) -> Result<ServerConnection, Error> {
    // Fails if another service of the same process installed a provider first, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let key = |key: &str| format!("mcp.servers.{name}.{key}");
    let headers = server
        .build_headers()
        .map_err(|(at, problem)| Error::new(key(at), problem))?;
    let builder = reqwest::Client::builder()
        .default_headers(headers)
        .user_agent("journeyman")
        .connect_timeout(CONNECT_TIMEOUT)
        // A redirect could send the credential to another host.
        .redirect(reqwest::redirect::Policy::none());
    let http = webproxy::configure_client(builder).and_then(reqwest::ClientBuilder::build);
    Ok(ServerConnection {
        http: http.map_err(|error| Error::new(key("url"), error.to_string()))?,
        url: Arc::from(server.url.as_str()),
        timeout_ms: server.timeout_ms,
    })
}
