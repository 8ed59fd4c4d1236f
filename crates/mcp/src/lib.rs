//! Client of servers of the Model Context Protocol (MCP) over streamable HTTP, and the reading of answers of those
//! that are commands. Executors run the commands.
//!
//! The servers are in the section `[mcp]` and in the rules. What a server sends is foreign text: tools and results
//! are bounded and sanitized here, and the caller quotes them.

mod answer;
mod command;
mod error;
mod http_client;
mod offer;
#[cfg(test)]
mod server_tests;
mod servers;
mod session;
mod settings;

pub use answer::{McpAnswer, RESULT_BYTES, RESULT_ITEMS};
pub use command::{CommandListing, read_command_answer};
pub use error::McpError;
pub use offer::{MAX_TOOLS, SCHEMA_BYTES};
pub use servers::McpServers;
pub use session::McpSession;
pub use settings::{ServerSettings, Settings};
