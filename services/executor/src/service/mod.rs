//! Service for planners: the gRPC contract, the open workspaces, and the calls that use them.

mod admission;
pub(crate) mod calls;
pub(crate) mod disk_watch;
mod grpc;
pub(crate) mod isolation;
pub(crate) mod readiness;
pub(crate) mod registry;
pub(crate) mod responses;
pub(crate) mod server;
mod spans;
mod ticket_fences;
pub(crate) mod tool_call;
mod workspace_opening;
pub(crate) mod workspace_use;
