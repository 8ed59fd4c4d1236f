//! Opens a workspace: mirror, checkout, setup.

use std::sync::Arc;

use domain::{CommitId, PullRequestRules, RunFence, cause::format_error_chain, text::truncate_bytes};
use grant::Grant;
use proto::executor::{
    MAX_PACK_BYTES, OpenWorkspaceRequest, OpenWorkspaceResponse, SetupResult, SnapshotRef, WorkspaceSpec,
    open_workspace_request::Part,
};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::{
    registry::WorkspaceRegistry,
    responses::{list_tool_specs, run_blocking, status_of, wire_level},
    workspace_use::WorkspaceUse,
};
use crate::{
    base_results::BaseOrigin,
    config::PeerTls,
    content_gate::{GateAddress, fetch_contents},
    lfs_contents::LfsContents,
    mirror::{MirrorPath, WantedBase},
    sandbox::EgressRelay,
    setup::{self, SetupPlan, cache::describe_environment},
    workspace::{SnapshotRestore, Workspace, WorkspaceError, WorkspaceStart, find_foundation},
};

const MAX_INSTRUCTIONS: usize = 32 * 1024;
const MAX_TEMPLATE: usize = 16 * 1024;
/// Further places of a template, in the order in which GitHub prefers them. Of several templates in a folder, the one
/// for every change is used.
const TEMPLATES: &[&str] = &[
    ".github/pull_request_template.md",
    "PULL_REQUEST_TEMPLATE.md",
    "pull_request_template.md",
    "docs/PULL_REQUEST_TEMPLATE.md",
    "docs/pull_request_template.md",
    ".github/PULL_REQUEST_TEMPLATE/pull_request_template.md",
    ".github/PULL_REQUEST_TEMPLATE/default.md",
];
/// Limit of reported paths of each kind whose content is in another place.
const MAX_ELSEWHERE: usize = 50;
/// Limit of reported files that git cannot merge.
const MAX_CONFLICTS: usize = 500;

/// Opens the run's workspace, or returns the open one.
pub(crate) async fn open_workspace(
    registry: &WorkspaceRegistry,
    grant: &Grant,
    fence: RunFence,
    spec: WorkspaceSpec,
    parts: Streaming<OpenWorkspaceRequest>,
) -> Result<OpenWorkspaceResponse, Status> {
    // A repeated request must not create a second checkout for the run. The lock also marks the ticket as in
    // use, so that its fence is not forgotten meanwhile.
    let lock = registry.opening(&grant.run);
    registry.check_fence(&grant.run, fence)?;
    let _one_at_a_time = lock.lock().await;
    let wanted = Arc::new(validate_spec(grant, &spec, &registry.trust)?);
    let merged = optional_commit(&spec.merged_commit)?;
    if let Some(used) = registry.of_run(&grant.run) {
        let open = &used.open.workspace.git;
        let is_same_merge = open.merge().map(|merge| &merge.head) == merged.as_ref();
        if is_same_merge && wanted.base.as_ref().is_none_or(|base| *base == open.base) {
            return build_open_response(registry, &used, spec.template_path, (true, None)).await;
        }
        tracing::info!(run = %grant.run, "the run begins again at another commit");
    }
    if let Some(gone) = registry.close(&grant.run) {
        // The slot is free after this wait.
        gone.cancelled().await;
    }
    let client = registry.trust.client.as_ref();
    let egress =
        EgressRelay::new(&spec.egress_url, &spec.egress_grant, client).map_err(Status::invalid_argument)?;
    let slot = registry.capacity.take_slot()?;
    // Space is made before the mirror is fetched, which may need it.
    let store = Arc::clone(&registry.store);
    run_blocking(move || {
        store.make_room();
        Ok(())
    })
    .await?;
    let (base, mirror) = fetch_commits(registry, grant, &spec, &wanted).await?;
    if let Some(head) = merged.clone().filter(|_| wanted.base.is_none()) {
        require_news_of_base(&mirror, head, base.clone()).await?;
    }
    let lfs = fetch_lfs(registry, &wanted, &mirror, &spec, (&base, merged.as_ref())).await?;
    // The index is built in the background during checkout and setup.
    let index = registry.store.indexes.want(&mirror, &base);
    let restore = match spec.restore {
        Some(snapshot) => Some(parse_restore(snapshot, receive_pack(parts).await?)?),
        None => None,
    };
    let foundation = if spec.setup.is_empty() {
        None
    } else {
        let (mirror, base) = (Arc::clone(&mirror), base.clone());
        let branch = wanted.base_branch.clone();
        run_blocking(move || find_foundation(&mirror, &base, &branch)).await?
    };
    // Without egress the foundation only matters if a stored result may exist for it.
    let foundation = foundation.filter(|foundation| egress.is_some() || *foundation == base);
    let next = WorkspaceStart {
        run: grant.run.clone(),
        repository: wanted.repository.clone(),
        base,
        base_branch: wanted.base_branch.clone(),
        mirror,
        foundation: None,
        runner: registry.sandbox.runner().cloned(),
        limits: registry.keep,
        has_any_names: spec.any_names,
        lfs,
    };
    let start = WorkspaceStart {
        foundation: foundation.clone(),
        ..next.clone()
    };
    let (folder, store) = (registry.workspaces.clone(), Arc::clone(&registry.store));
    let workspace = run_blocking(move || {
        let ready = store.pool.take(&start);
        Workspace::create(&folder, start, ready)
    });
    let workspace = Arc::new(failpoint::around("executor.workspace.create", workspace).await?);
    let has_commands = !spec.setup.is_empty() || !spec.programs.is_empty();
    // Also after a failure, because the planner repeats the call.
    let opened = CancellationToken::new();
    let _at_end = opened.clone().drop_guard();
    if has_commands {
        // Setup takes minutes, in which another run may begin.
        opened.cancel();
    }
    drop(registry.store.prepare_after(opened, next));
    let base_origin = describe_base(registry, &workspace, &spec.setup, &spec.programs);
    if has_commands || merged.is_some() || restore.is_some() {
        workspace.mark_touched();
    }
    let preparation = SetupPlan {
        commands: spec.setup,
        programs: spec.programs,
        egress: egress.map(Arc::new),
        foundation,
    };
    let setup = Box::pin(setup::run_setup(registry, &workspace, preparation)).await?;
    fill_files(&workspace, merged, restore).await?;
    let has_failed = setup.as_ref().is_some_and(|setup| setup.failed);
    let used = registry.add(workspace, index, slot, base_origin.filter(|_| !has_failed));
    tracing::info!(run = %grant.run, repository = %grant.repository, "workspace opened");
    build_open_response(registry, &used, spec.template_path, (false, setup)).await
}

/// Describes the base with its setup for the results of checks on it. `None` without namespaces, because commands of
/// other runs share network and processes with a check then.
fn describe_base(
    registry: &WorkspaceRegistry,
    workspace: &Workspace,
    setup: &[String],
    programs: &[String],
) -> Option<BaseOrigin> {
    // The programs change nothing, but a missing one fails the setup.
    let setup = [setup, programs].concat();
    registry.sandbox.shows_checks().then(|| {
        let (repository, base) = (workspace.repository.to_string(), workspace.git.base.as_str());
        let contents = workspace.git.lfs.describe();
        BaseOrigin::new(&repository, base, &setup, &describe_environment(), &contents)
    })
}

/// Fetches the base into the mirror, and the head of the pull request that is merged into it.
async fn fetch_commits(
    registry: &WorkspaceRegistry,
    grant: &Grant,
    spec: &WorkspaceSpec,
    wanted: &Arc<WantedBase>,
) -> Result<(CommitId, MirrorPath), Status> {
    let mirrors = &registry.store.mirrors;
    let fetched = Box::pin(mirrors.prepare(wanted)).await;
    let fetched = fetched.map_err(|error| git_error_status(&error))?;
    if !spec.merged_commit.is_empty() {
        let head = WorkspaceSpec {
            base_commit: spec.merged_commit.clone(),
            ..spec.clone()
        };
        let head = Arc::new(validate_spec(grant, &head, &registry.trust)?);
        let prepared = Box::pin(mirrors.prepare(&head)).await;
        prepared.map_err(|error| git_error_status(&error))?;
    }
    Ok(fetched)
}

/// Refuses a merge for which the mirror has nothing new: the tip of the base branch that conflicts with the pull
/// request is not fetched yet.
async fn require_news_of_base(mirror: &MirrorPath, head: CommitId, base: CommitId) -> Result<(), Status> {
    let mirror = Arc::clone(mirror);
    let is_old = run_blocking(move || Ok(git::BareRepository::open(&mirror)?.is_descendant(&head, &base)?));
    if is_old.await? {
        return Err(git_error_status(&git::Error::NotReady { percent: None }));
    }
    Ok(())
}

/// Fetches the contents of Git LFS at the base, and at the head of the pull request that is merged into it.
async fn fetch_lfs(
    registry: &WorkspaceRegistry,
    wanted: &WantedBase,
    mirror: &MirrorPath,
    spec: &WorkspaceSpec,
    (base, merged): (&CommitId, Option<&CommitId>),
) -> Result<LfsContents, Status> {
    if !spec.lfs {
        return Ok(LfsContents::default());
    }
    let commits: Vec<CommitId> = [Some(base), merged].into_iter().flatten().cloned().collect();
    let (grant, client) = (wanted.gate_grant.clone(), registry.trust.client.as_ref());
    let address = GateAddress::new(&wanted.gate_url, &wanted.repository, grant, client);
    let fetching = Box::pin(fetch_contents(&registry.store.lfs, mirror, address, &commits));
    fetching.await.map_err(|error| git_error_status(&error))
}

/// Merges a pull request and restores a snapshot. Both come after setup, so that setup commands never run on the
/// files of the model or of a pull request.
async fn fill_files(
    workspace: &Arc<Workspace>,
    merged: Option<CommitId>,
    restore: Option<SnapshotRestore>,
) -> Result<(), Status> {
    if let Some(head) = merged {
        let (merging, is_restored) = (Arc::clone(workspace), restore.is_some());
        run_blocking(move || merging.begin_merge(head, is_restored)).await?;
    }
    if let Some(restore) = restore {
        let restored = Arc::clone(workspace);
        run_blocking(move || restored.restore(restore)).await?;
    }
    Ok(())
}

async fn build_open_response(
    registry: &WorkspaceRegistry,
    used: &WorkspaceUse,
    template_path: String,
    (existing, setup): (bool, Option<SetupResult>),
) -> Result<OpenWorkspaceResponse, Status> {
    let workspace = Arc::clone(&used.open.workspace);
    let external = workspace.disk.external().clone();
    let lfs_contents = workspace
        .disk
        .lfs_contents()
        .take(MAX_ELSEWHERE)
        .cloned()
        .collect();
    let conflicts = workspace.git.merge().map(|merge| merge.conflicts.clone());
    let conflicts = conflicts.unwrap_or_default().into_iter().take(MAX_CONFLICTS);
    let texts = move || {
        let template = read_template(&workspace, &template_path)?;
        Ok((workspace.git.instructions(MAX_INSTRUCTIONS)?, template))
    };
    let (instructions, template) = run_blocking(texts).await?;
    Ok(OpenWorkspaceResponse {
        workspace_id: used.open.workspace.id.clone(),
        base_commit: used.open.workspace.git.base.to_string(),
        existing,
        sandbox_level: wire_level(registry.sandbox.level()).into(),
        tools: list_tool_specs(),
        instructions,
        setup,
        submodules: limit_paths(&external.submodules),
        lfs_files: limit_paths(&external.lfs_files),
        lfs_contents,
        template,
        conflicts: conflicts.map(Into::into).collect(),
        checks_at_once: u32::try_from(registry.sandbox.room().most()).unwrap_or(u32::MAX),
    })
}

fn read_template(workspace: &Workspace, path: &str) -> Result<String, WorkspaceError> {
    if path.is_empty() {
        return Ok(String::new());
    }
    let mut found = workspace.git.read_base(path)?;
    // A path of the operator's own counts alone.
    if path == PullRequestRules::default().template_path {
        for other in TEMPLATES {
            if found.is_none() {
                found = workspace.git.read_base(other)?;
            }
        }
    }
    let text = found.unwrap_or_default();
    Ok(truncate_bytes(&String::from_utf8_lossy(&text), MAX_TEMPLATE).to_owned())
}

fn limit_paths(paths: &[String]) -> Vec<String> {
    paths.iter().take(MAX_ELSEWHERE).cloned().collect()
}

fn validate_spec(grant: &Grant, spec: &WorkspaceSpec, trust: &PeerTls) -> Result<WantedBase, Status> {
    if spec.run_id != grant.run.to_string() || spec.repository != grant.repository.to_string() {
        return Err(Status::permission_denied(
            "the grant is for another run or repository",
        ));
    }
    if !spec.gate_url.starts_with("http://") && !spec.gate_url.starts_with("https://") {
        return Err(Status::invalid_argument("gate_url must be an http or https URL"));
    }
    if spec.base_branch.is_empty() {
        return Err(Status::invalid_argument("base_branch is missing"));
    }
    let base = optional_commit(&spec.base_commit)?;
    let reported = optional_commit(&spec.reported_base)?.filter(|_| base.is_none());
    Ok(WantedBase {
        repository: grant.repository.clone(),
        gate_url: spec.gate_url.clone(),
        gate_authority: trust.authority.clone(),
        gate_tls: trust.client.clone(),
        gate_grant: SecretString::from(spec.gate_grant.clone()),
        base,
        base_branch: spec.base_branch.clone(),
        reported,
    })
}

/// Receives the first part of a request.
pub(crate) async fn receive_spec(
    parts: &mut Streaming<OpenWorkspaceRequest>,
) -> Result<WorkspaceSpec, Status> {
    match parts.message().await?.and_then(|message| message.part) {
        Some(Part::Spec(spec)) => Ok(spec),
        Some(Part::PackChunk(_)) | None => {
            Err(Status::invalid_argument("the first message must be the spec"))
        }
    }
}

/// Receives the pack from the following parts.
async fn receive_pack(mut parts: Streaming<OpenWorkspaceRequest>) -> Result<Vec<u8>, Status> {
    let mut pack = Vec::new();
    while let Some(message) = parts.message().await? {
        let Some(Part::PackChunk(chunk)) = message.part else {
            return Err(Status::invalid_argument(
                "after the spec only the pack may follow",
            ));
        };
        if pack.len() + chunk.len() > MAX_PACK_BYTES {
            return Err(Status::invalid_argument(format!(
                "the pack is larger than {} MiB",
                MAX_PACK_BYTES >> 20
            )));
        }
        pack.extend(chunk);
    }
    Ok(pack)
}

fn parse_restore(snapshot: SnapshotRef, pack: Vec<u8>) -> Result<SnapshotRestore, Status> {
    Ok(SnapshotRestore {
        branch: Some(snapshot.branch).filter(|branch| !branch.is_empty()),
        head: optional_commit(&snapshot.head_commit)?,
        commit: optional_commit(&snapshot.snapshot_commit)?
            .ok_or_else(|| Status::invalid_argument("restore.snapshot_commit is missing"))?,
        pack,
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

/// Creates the status for a repository that is still being cloned. The planner repeats the call and does not
/// count it as a failure.
fn not_ready_status(text: String, percent: Option<u8>) -> Status {
    let mut status = Status::unavailable(text);
    let percent = percent.map_or_else(String::new, |percent| percent.to_string());
    if let Ok(value) = percent.parse() {
        status.metadata_mut().insert(proto::executor::NOT_READY, value);
    }
    status
}

fn git_error_status(error: &git::Error) -> Status {
    let text = format_error_chain(error);
    match error {
        git::Error::NotFound(_) | git::Error::Missing { .. } => Status::not_found(text),
        git::Error::Denied(_) => Status::permission_denied(text),
        // A retry would receive the same object, so this error is final.
        git::Error::RefusedObject { .. } | git::Error::RefusedHistory(_) | git::Error::Unusable(_) => {
            Status::data_loss(text)
        }
        git::Error::NotReady { percent } => not_ready_status(text, *percent),
        git::Error::HistoryIncomplete => not_ready_status(text, None),
        git::Error::LeaseStale(_)
        | git::Error::Rejected(_)
        | git::Error::BranchNotWritable { .. }
        | git::Error::CheckoutRefused { .. }
        | git::Error::PatchDoesNotApply(_)
        | git::Error::PathNotUtf8(_)
        | git::Error::Unavailable(_)
        | git::Error::TimedOut(_)
        | git::Error::Stalled(_)
        | git::Error::BranchInTheWay { .. }
        | git::Error::Queued(_)
        | git::Error::BadPack(_)
        | git::Error::Failed(_) => status_of(text),
    }
}
