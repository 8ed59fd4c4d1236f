//! MCP servers of the settings.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bootstrap::settings::Error;
use domain::{MCP_LIST_MS, McpCommand, McpProblem, McpServerTools, cause::format_error_chain};
use futures::future::join_all;

use crate::{
    command::CommandListing,
    error::McpError,
    offer::{OfferRoom, RemoteTool, choose_tools},
    session::{McpSession, ServerConnection},
    settings::{ServerSettings, Settings},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
// Time for the answers of all servers together.
const LIST_LIMIT: Duration = Duration::from_millis(MCP_LIST_MS);

/// Configured servers.
#[derive(Clone, Debug, Default)]
pub struct McpServers {
    servers: BTreeMap<String, McpServer>,
}

#[derive(Clone, Debug)]
struct McpServer {
    settings: Arc<ServerSettings>,
    place: ServerPlace,
}

/// Place of a server.
#[derive(Clone, Debug)]
enum ServerPlace {
    /// The planner reaches the server over HTTP.
    Remote(ServerConnection),
    /// Executors run the server.
    Command(McpCommand),
}

impl McpServer {
    fn allowed(&self) -> Option<&[String]> {
        self.settings.tools.as_deref()
    }
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
                    place: match server.build_command() {
                        Some(command) => ServerPlace::Command(command),
                        None => ServerPlace::Remote(build_connection(name, server)?),
                    },
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

    /// Returns true if the settings have a server of this name.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.servers.contains_key(name)
    }

    /// Returns the command of a server that is one.
    #[must_use]
    pub fn command(&self, name: &str) -> Option<&McpCommand> {
        match &self.servers.get(name)?.place {
            ServerPlace::Command(command) => Some(command),
            ServerPlace::Remote(_) => None,
        }
    }

    /// Opens a session with a server over HTTP.
    ///
    /// # Errors
    /// [`McpError`]; [`McpError::Unknown`] for a command.
    pub async fn connect(&self, name: &str) -> Result<McpSession, McpError> {
        match self.servers.get(name).map(|server| &server.place) {
            Some(ServerPlace::Remote(connection)) => McpSession::connect(connection).await,
            Some(ServerPlace::Command(_)) | None => Err(McpError::Unknown),
        }
    }

    /// Lists the tools that models may call, in the order of the names. `commands`: listings of the servers that
    /// are commands. A failed server has no tools and a reason.
    pub async fn list_tools(
        &self,
        names: &[String],
        commands: &BTreeMap<String, CommandListing>,
    ) -> Vec<McpServerTools> {
        let read = names.iter().map(|name| async move {
            if commands.contains_key(name) {
                return Ok(Vec::new());
            }
            let read = tokio::time::timeout(LIST_LIMIT, Box::pin(self.read_tools(name))).await;
            read.unwrap_or(Err(McpError::Unreachable))
        });
        let listings = join_all(read).await;
        let mut room = OfferRoom::default();
        let listed = names.iter().zip(listings);
        listed
            .map(|(name, read)| match commands.get(name) {
                Some(listing) => choose_command_tools(name, listing, &mut room),
                None => self.choose(name, read, &mut room),
            })
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
            Ok((tools, server)) => choose_tools(name, server.allowed(), &tools, room),
            Err(error) => {
                tracing::warn!(server = name, error = %format_error_chain(&error), "the tools of an MCP server cannot be listed");
                describe_missing_server(name, error.problem())
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
        let chosen = choose_tools(name, server.allowed(), &tools, &mut OfferRoom::default());
        Ok((session.describe_server(), chosen))
    }
}

fn describe_missing_server(name: &str, problem: McpProblem) -> McpServerTools {
    McpServerTools {
        server: name.to_owned(),
        tools: Vec::new(),
        omitted: 0,
        command: None,
        problem: Some(problem),
    }
}

fn choose_command_tools(name: &str, listing: &CommandListing, room: &mut OfferRoom) -> McpServerTools {
    let tools = match listing.read_tools() {
        Ok(tools) => tools,
        Err(problem) => return describe_missing_server(name, problem),
    };
    let mut chosen = choose_tools(name, listing.command.tools.as_deref(), &tools, room);
    for tool in &mut chosen.tools {
        // The command may change files of the workspace, whatever its tools declare.
        tool.spec.read_only = false;
    }
    McpServerTools {
        omitted: chosen.omitted.saturating_add(listing.omitted),
        command: Some(listing.command.clone()),
        ..chosen
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
        url: Arc::from(server.url.as_deref().unwrap_or_default()),
        timeout_ms: server.timeout_ms,
    })
}
