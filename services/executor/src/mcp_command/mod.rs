//! MCP servers that are commands. Each dialog with one is a command in the workspace's sandbox, which ends with it.

mod message;
mod server;
mod session;

pub(crate) use server::{ServerCall, ServerCommand, ServerContext, call_server_tool, list_server_tools};
