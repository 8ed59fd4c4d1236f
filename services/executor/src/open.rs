//! Opening a workspace: mirror, checkout, setup commands.

use std::{sync::Arc, time::Duration};

use domain::{CommitId, RunFence};
use grant::Grant;
use proto::executor::{OpenWorkspaceRequest, OpenWorkspaceResponse, SetupResult, SnapshotRef};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::{
    mirror::Wanted,
    registry::{Registry, Use},
    sandbox::Ending,
    service::{blocking, level, specs, status_of},
    tools::{self, Call},
    workspace::{Restore, Start, Workspace},
};

/// All setup commands together.
const SETUP_LIMIT: Duration = Duration::from_secs(600);
const MAX_SETUP_LOG: usize = 8 * 1024;
const MAX_INSTRUCTIONS: usize = 32 * 1024;

/// Opens the run's workspace, or finds it open.
pub(crate) async fn open(
    registry: &Registry,
    grant: &Grant,
    fence: RunFence,
    request: OpenWorkspaceRequest,
) -> Result<OpenWorkspaceResponse, Status> {
    registry.check_fence(&grant.run, fence)?;
    let lock = registry.opening(&grant.run);
    let _one_at_a_time = lock.lock().await;
    let wanted = wanted(grant, &request)?;
    if let Some(used) = registry.of_run(&grant.run) {
        return existing(registry, &used, wanted.base.as_ref()).await;
    }
    let slot = registry.take_slot()?;
    let base = Box::pin(registry.mirrors.prepare(&wanted))
        .await
        .map_err(|error| for_caller(&error))?;
    let start = Start {
        run: grant.run.clone(),
        repository: wanted.repository.clone(),
        base,
        base_branch: wanted.base_branch,
        mirror: registry.mirrors.path(&wanted.repository),
        restore: request.restore.map(restore).transpose()?,
    };
    let (folder, pool) = (registry.workspaces.clone(), Arc::clone(&registry.pool));
    let next = Start {
        restore: None,
        ..start.clone()
    };
    let workspace = blocking(move || {
        let ready = pool.take(&start);
        Workspace::create_from(&folder, start, ready)
    });
    let workspace = Arc::new(workspace.await?);
    let pool = Arc::clone(&registry.pool);
    drop(tokio::task::spawn_blocking(move || pool.prepare(next)));
    let setup = Box::pin(set_up(registry, &workspace, request.setup)).await?;
    let used = registry.add(workspace, slot);
    tracing::info!(run = %grant.run, repository = %grant.repository, "workspace opened");
    answer(registry, &used, false, setup).await
}

async fn existing(
    registry: &Registry,
    used: &Use,
    base: Option<&CommitId>,
) -> Result<OpenWorkspaceResponse, Status> {
    let open = &used.open.workspace.base;
    if base.is_some_and(|base| base != open) {
        return Err(Status::failed_precondition(format!(
            "the open workspace's base is {open}"
        )));
    }
    answer(registry, used, true, None).await
}

async fn answer(
    registry: &Registry,
    used: &Use,
    existing: bool,
    setup: Option<SetupResult>,
) -> Result<OpenWorkspaceResponse, Status> {
    let workspace = Arc::clone(&used.open.workspace);
    let instructions = blocking(move || workspace.instructions(MAX_INSTRUCTIONS)).await?;
    Ok(OpenWorkspaceResponse {
        workspace_id: used.open.workspace.id.clone(),
        base_commit: used.open.workspace.base.to_string(),
        existing,
        sandbox_level: level(registry.sandbox.level()).into(),
        tools: specs(),
        instructions,
        setup,
    })
}

fn wanted(grant: &Grant, request: &OpenWorkspaceRequest) -> Result<Wanted, Status> {
    if request.run_id != grant.run.to_string() || request.repository != grant.repository.to_string() {
        return Err(Status::permission_denied(
            "the grant is for another run or repository",
        ));
    }
    if !request.gate_url.starts_with("http://") && !request.gate_url.starts_with("https://") {
        return Err(Status::invalid_argument("gate_url must be an http or https URL"));
    }
    if request.base_branch.is_empty() {
        return Err(Status::invalid_argument("base_branch is missing"));
    }
    Ok(Wanted {
        repository: grant.repository.clone(),
        gate_url: request.gate_url.clone(),
        gate_grant: SecretString::from(request.gate_grant.clone()),
        base: optional_commit(&request.base_commit)?,
        base_branch: request.base_branch.clone(),
    })
}

fn restore(snapshot: SnapshotRef) -> Result<Restore, Status> {
    Ok(Restore {
        branch: Some(snapshot.branch).filter(|branch| !branch.is_empty()),
        head: optional_commit(&snapshot.head_commit)?,
        commit: optional_commit(&snapshot.snapshot_commit)?
            .ok_or_else(|| Status::invalid_argument("restore.snapshot_commit is missing"))?,
        pack: snapshot.pack,
    })
}

fn optional_commit(text: &str) -> Result<Option<CommitId>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse()
        .map(Some)
        .map_err(|error: domain::InvalidId| Status::invalid_argument(error.to_string()))
}

/// Runs the setup commands in order until one fails.
async fn set_up(
    registry: &Registry,
    workspace: &Arc<Workspace>,
    commands: Vec<String>,
) -> Result<Option<SetupResult>, Status> {
    if commands.is_empty() {
        return Ok(None);
    }
    let call = Call {
        workspace: Arc::clone(workspace),
        sandbox: registry.sandbox.clone(),
        commit_time_s: 0,
        cancel: CancellationToken::new(),
    };
    let mut log = String::new();
    let mut failed = false;
    for command in commands {
        log.push_str(&format!("$ {command}\n"));
        let mut spec = tools::command_spec(&call, command, SETUP_LIMIT);
        spec.network = registry.setup_network;
        let end = registry.sandbox.run(spec, &call.cancel, None).await;
        let end =
            end.map_err(|error| Status::unavailable(format!("a setup command cannot be started: {error}")))?;
        log.push_str(&end.output);
        failed = end.ending != Ending::Exited(0);
        if failed {
            log.push_str(&format!("\n[{:?}]\n", end.ending));
            break;
        }
    }
    let settled = Arc::clone(workspace);
    blocking(move || settled.settle()).await?;
    let tail = &log.as_bytes()[log.len().saturating_sub(MAX_SETUP_LOG)..];
    Ok(Some(SetupResult {
        failed,
        log_tail: String::from_utf8_lossy(tail).into_owned(),
    }))
}

fn for_caller(error: &git::Error) -> Status {
    let text = error.to_string();
    match error {
        git::Error::NotFound(_) | git::Error::Missing(_) => Status::not_found(text),
        git::Error::Denied(_) => Status::permission_denied(text),
        git::Error::LeaseStale(_)
        | git::Error::Rejected(_)
        | git::Error::Unavailable(_)
        | git::Error::TimedOut(_)
        | git::Error::BadPack(_)
        | git::Error::Failed(_) => status_of(text),
    }
}
