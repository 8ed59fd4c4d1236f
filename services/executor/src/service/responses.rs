//! Common parts of responses: tools, sandbox level, and errors as gRPC status.

use std::sync::LazyLock;

use domain::SandboxLevel;
use proto::executor as wire;
use tonic::Status;

use crate::{tools, workspace::WorkspaceError};

/// All tools, rendered once: every opened workspace lists them.
static TOOL_SPECS: LazyLock<Vec<wire::ToolSpec>> = LazyLock::new(|| {
    let spec = |tool: &tools::ExecutorTool| wire::ToolSpec {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        input_schema_json: tool.schema.to_string(),
        read_only: tool.read_only,
    };
    tools::ALL.into_iter().map(spec).collect()
});

/// Tools in the form of the gRPC contract.
pub(crate) fn list_tool_specs() -> Vec<wire::ToolSpec> {
    TOOL_SPECS.clone()
}

pub(crate) const fn wire_level(level: SandboxLevel) -> wire::SandboxLevel {
    match level {
        SandboxLevel::L0 => wire::SandboxLevel::L0,
        SandboxLevel::L1 => wire::SandboxLevel::L1,
        SandboxLevel::L2 => wire::SandboxLevel::L2,
        SandboxLevel::L3 => wire::SandboxLevel::L3,
    }
}

/// Runs blocking work on a workspace and converts its error.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    match done.map_err(|error| Status::internal(error.to_string()))? {
        Ok(value) => Ok(value),
        Err(WorkspaceError::NotFound(text)) => Err(Status::not_found(text)),
        Err(WorkspaceError::BadSnapshot(text) | WorkspaceError::BadRequest(text)) => {
            Err(Status::invalid_argument(text))
        }
        Err(WorkspaceError::Unkeepable(text)) => Err(Status::out_of_range(text)),
        Err(problem @ WorkspaceError::DiskFull(_)) => Err(status_of(problem.to_string())),
        Err(WorkspaceError::Trouble(text)) => Err(status_of(text)),
    }
}

/// Converts a failure of disk, git or gate into a status that the planner retries.
pub(crate) fn status_of(text: String) -> Status {
    tracing::warn!(problem = text, "a workspace is in trouble");
    if git::is_about_full_disk(&text) {
        // Another executor may have room, so the planner must not retry here.
        return Status::resource_exhausted(text);
    }
    Status::unavailable(text)
}
