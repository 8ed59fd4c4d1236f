//! Pools of executors: workspaces, records of the pools' state, and their inspection for an operator.
//!
//! A workspace opens at the executor that is warm and has a free slot, else at the next one, else the run
//! waits.

use std::time::Duration;

use bootstrap::settings::TextList;
use domain::{
    CommitId, ExecutorRules, ExecutorWorkspace, JobRequest, PoolRecord, RunId, Timestamp, ToolSpec,
    UnlistedExecutors, WorkspaceSnapshot,
};
use grant::{GrantAudience, GrantSigner};
use proto::executor::{self as wire, ListToolsRequest, executor_service_client::ExecutorServiceClient};
use secrecy::ExposeSecret;
use tokio::time::Instant;
use tonic::Code;

use super::{
    channels::authorize_request,
    connection::{CallError, ExecutorConnector, RunCaller},
    directory::sandbox_level_of,
    fleet::ExecutorFleet,
    workspaces::parse_commit_id,
};
use crate::config::Config;

const OPEN_LIMIT: Duration = Duration::from_secs(15 * 60);
// Time for an executor or the git gate to recover before opening fails.
const TROUBLE_LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_secs(1);
// Wait for the base commit that GitHub reported with a conflict. The mirrors follow within seconds; a commit that is
// missing for longer was rewritten.
const REPORTED_LIMIT: Duration = Duration::from_secs(30);

/// Reason that no workspace was opened. Its texts are for users.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// A newer planner owns the ticket.
    #[error("a newer fence was seen")]
    Stale,
    /// No slot is free, or other runs are first: the run waits.
    #[error("no slot is free")]
    NoSlot,
    /// NATS did not answer or refused.
    #[error(transparent)]
    Queue(#[from] queue::Error),
    /// No executor opened a workspace.
    #[error("{0}")]
    Unavailable(String),
    /// The first clone of the repository is running, or the mirrors lack the commit that GitHub reported; a retry helps.
    #[error("the repository is being fetched for the first time")]
    NotReady {
        /// Progress of the clone in percent.
        percent: Option<u8>,
    },
    /// Every executor fails in the same way; a retry does not help.
    #[error("{0}")]
    Permanent(String),
    /// The setup commands failed; the end of their log.
    #[error("the setup commands failed")]
    Setup(String),
}

/// Commit at which a workspace opens; by default the head of the base branch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpeningCommit<'a> {
    /// Pinned commit; `None` for the head of the base branch.
    pinned: Option<&'a CommitId>,
    /// Commit that the head of the base branch has to contain.
    reported: Option<&'a CommitId>,
}

impl<'a> OpeningCommit<'a> {
    /// Pins a commit.
    pub(crate) const fn pinned(commit: Option<&'a CommitId>) -> Self {
        Self {
            pinned: commit,
            reported: None,
        }
    }

    /// Commit of a new workspace for a request, for which the mirrors were not ready during `waited`.
    pub(crate) fn of_request(request: &'a JobRequest, waited: Duration) -> Self {
        let conflict = request.about.conflict().filter(|conflict| {
            // Where GitHub reported no base, ingest records the head in its place.
            waited < REPORTED_LIMIT && conflict.base != conflict.head
        });
        Self {
            pinned: request.about.base(),
            reported: conflict.map(|conflict| &conflict.base),
        }
    }

    /// Returns true if the head of the base branch has to contain a commit that GitHub reported.
    pub(crate) const fn has_report(&self) -> bool {
        self.reported.is_some()
    }
}

/// Wait of a new workspace until the mirrors of its repository are ready.
pub(crate) struct MirrorWait {
    /// Last progress of the first clone, in percent.
    percent: Option<u8>,
    progressed_at: Instant,
    answered_at: Instant,
    idle: Duration,
}

impl MirrorWait {
    pub(crate) fn start() -> Self {
        let now = Instant::now();
        Self {
            percent: None,
            progressed_at: now,
            answered_at: now,
            idle: Duration::ZERO,
        }
    }

    /// Notes that the mirrors are not ready, with the progress of a clone if one is known.
    pub(crate) fn note(&mut self, percent: Option<u8>) {
        let now = Instant::now();
        match percent {
            None => self.idle += now - self.answered_at,
            Some(_) if percent != self.percent => (self.percent, self.progressed_at) = (percent, now),
            Some(_) => {}
        }
        self.answered_at = now;
    }

    /// Returns the time since the last progress.
    pub(crate) fn since_progress(&self) -> Duration {
        self.progressed_at.elapsed()
    }

    /// Returns the time of all answers without progress. Fetches of a slow remote that show progress in between do not
    /// restart it.
    pub(crate) const fn idle(&self) -> Duration {
        self.idle
    }
}

/// Snapshot to restore, with its pack.
pub(crate) struct PlannerSnapshotRestore {
    pub(crate) snapshot: WorkspaceSnapshot,
    pub(crate) pack: bytes::Bytes,
}

/// Refusal of one executor to open a workspace.
enum OpenRefusal {
    Full,
    Trouble(String),
    /// The executor did not respond, or the connection broke.
    Silent(String),
    Final(OpenError),
}

impl ExecutorFleet {
    /// Opens the run's workspace at the best executor of the repository's pool.
    ///
    /// # Errors
    /// [`OpenError`]
    pub(crate) async fn open(
        &self,
        caller: &RunCaller,
        request: &JobRequest,
        base: OpeningCommit<'_>,
        restore: Option<&PlannerSnapshotRestore>,
    ) -> Result<ExecutorWorkspace, OpenError> {
        let pool = &request.rules.executor.pool;
        if !self.settings.pools.contains_key(pool) {
            let words = format!("there is no pool of executors with the name {pool:?}");
            return Err(OpenError::Unavailable(words));
        }
        self.directory.wait_for_statuses(pool).await;
        let start = Instant::now();
        loop {
            let ranked = self.directory.ranked(pool, &caller.repository, &caller.run);
            let mut trouble = None;
            for address in ranked {
                match self.open_at(&address, caller, request, base, restore).await {
                    Ok(info) => return Ok(info),
                    Err(OpenRefusal::Final(error)) => return Err(error),
                    Err(OpenRefusal::Full) => {}
                    Err(OpenRefusal::Trouble(detail)) => trouble = Some(detail),
                    Err(OpenRefusal::Silent(detail)) => {
                        // Leaves it first, so that the next round ranks the others without it.
                        self.leave(&address);
                        trouble = Some(detail);
                    }
                }
            }
            match trouble {
                // Every executor was full: the run waits in the durable queue, not here.
                None => return Err(OpenError::NoSlot),
                Some(detail) if start.elapsed() > TROUBLE_LIMIT => {
                    return Err(OpenError::Unavailable(detail));
                }
                Some(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Returns a record of each pool's current state.
    pub(crate) fn seen(&self, planner: &str, now: Timestamp) -> Vec<PoolRecord> {
        let one = |(pool, names): (&String, &TextList)| {
            let (mut executors, unresolved) = self.directory.seen(pool, names);
            // A record has a size limit; the remaining executors only count.
            let listed = executors.len().min(PoolRecord::MOST);
            let rest = executors.split_off(listed);
            let left_out = rest
                .iter()
                .fold(UnlistedExecutors::default(), UnlistedExecutors::with);
            PoolRecord {
                pool: pool.clone(),
                planner: planner.to_owned(),
                at: now,
                executors,
                left_out,
                unresolved,
            }
        };
        self.settings.pools.iter().map(one).collect()
    }

    /// Returns the number of slots that a run may count on; a run whose workspace is open needs none.
    pub(crate) async fn free_slots(&self, pool: &str, run: &RunId) -> u32 {
        if !self.settings.pools.contains_key(pool) {
            // Opening reports the unknown pool; a wait for a slot would never end.
            return u32::MAX;
        }
        // A planner that has just started knows no status yet, and would take the pool for full.
        self.directory.wait_for_statuses(pool).await;
        if self.directory.holds(pool, run) {
            return u32::MAX;
        }
        self.directory.slots().get(pool).map_or(0, |slots| slots.free)
    }

    /// Returns the egress URL and its grant for setup commands; both are empty without a proxy or without
    /// setup commands.
    ///
    /// The executor grants network only if the setup files come from the history of the base branch,
    /// because it alone has the history.
    fn way_out(&self, caller: &RunCaller, rules: &ExecutorRules) -> Result<(String, String), OpenRefusal> {
        if rules.setup.is_empty() {
            return Ok((String::new(), String::new()));
        }
        let Some(url) = &self.settings.egress_url else {
            return if rules.network.is_empty() {
                Ok((String::new(), String::new()))
            } else {
                Err(OpenRefusal::Final(OpenError::Setup(NO_PROXY.to_owned())))
            };
        };
        let grant = self
            .channels
            .grant(caller, GrantAudience::Egress, None, rules.network.clone());
        let grant = grant.map_err(|error| OpenRefusal::Trouble(error.to_string()))?;
        Ok((url.clone(), grant.expose_secret().to_owned()))
    }

    async fn open_at(
        &self,
        address: &str,
        caller: &RunCaller,
        request: &JobRequest,
        base: OpeningCommit<'_>,
        restore: Option<&PlannerSnapshotRestore>,
    ) -> Result<ExecutorWorkspace, OpenRefusal> {
        let refused = |error: CallError| OpenRefusal::Trouble(error.to_string());
        let gate_grant = self
            .channels
            .grant(caller, GrantAudience::Gate, None, Vec::new())
            .map_err(refused)?;
        let (egress_url, egress_grant) = self.way_out(caller, &request.rules.executor)?;
        let merged = request.about.conflict();
        let spec = wire::WorkspaceSpec {
            run_id: caller.run.to_string(),
            fence: Some(caller.fence.into()),
            repository: caller.repository.to_string(),
            gate_url: self.settings.gate_url.clone(),
            gate_grant: gate_grant.expose_secret().to_owned(),
            base_commit: base.pinned.map(ToString::to_string).unwrap_or_default(),
            base_branch: base_branch_of(request).to_owned(),
            restore: restore.map(snapshot_reference),
            setup: request.rules.executor.setup.clone(),
            programs: request.rules.executor.programs.clone(),
            egress_url,
            egress_grant,
            template_path: request.rules.pull_request.template_path.clone(),
            any_names: !request.rules.agent.portable_names,
            lfs: request.rules.reads_lfs(),
            merged_commit: merged
                .map(|conflict| conflict.head.to_string())
                .unwrap_or_default(),
            reported_base: base.reported.map(ToString::to_string).unwrap_or_default(),
        };
        let pack = restore.map(|restore| restore.pack.clone()).unwrap_or_default();
        let message = wire::open_request(spec, pack);
        let _noted = self.note_call(address, caller);
        let message = self
            .channels
            .request(caller, None, OPEN_LIMIT, message)
            .map_err(refused)?;
        let mut client = self.channels.client(address).map_err(refused)?;
        let opened = client.open_workspace(message);
        let answer = failpoint::around("planner.executor.open", opened).await;
        let opened = answer.map_err(|status| refusal_of_status(&status))?.into_inner();
        let info = workspace_info_from(address, &opened)?;
        if let Some(setup) = opened.setup.as_ref().filter(|setup| setup.without_network) {
            tracing::info!(
                run = %caller.run,
                base = %info.base,
                prepared_at = setup.prepared_at,
                "setup ran without network: the base is not in the base branch's history"
            );
        }
        match opened.setup.filter(|setup| setup.failed) {
            None => Ok(info),
            Some(setup) => {
                // A workspace with a failed setup is useless, and its slot is needed.
                self.workspace(caller, &info).close().await;
                Err(OpenRefusal::Final(OpenError::Setup(setup.log_tail)))
            }
        }
    }
}

/// Returns the branch whose history may instruct the model and reach the network: for a conflict the one that pull
/// requests target.
fn base_branch_of(request: &JobRequest) -> &str {
    match request.about.conflict() {
        Some(_) => request.rules.target_branch(),
        None => &request.rules.repo.default_branch,
    }
}

// Shown on the ticket.
const NO_PROXY: &str = "The rules name hosts for the setup (executor.network), and this installation has no egress proxy: \
                        planner.egress_url is not set.\n";

fn refusal_of_status(status: &tonic::Status) -> OpenRefusal {
    let words = status.message().to_owned();
    match status.code() {
        Code::Unavailable if status.metadata().contains_key(wire::NOT_READY) => {
            let value = status.metadata().get(wire::NOT_READY);
            let percent = value.and_then(|value| value.to_str().ok()?.parse().ok());
            OpenRefusal::Final(OpenError::NotReady { percent })
        }
        Code::DataLoss => OpenRefusal::Final(OpenError::Permanent(words)),
        Code::ResourceExhausted => OpenRefusal::Full,
        Code::FailedPrecondition => OpenRefusal::Final(OpenError::Stale),
        // A source means that the connection failed, not that an executor sent this status.
        Code::Unavailable | Code::Unknown | Code::Cancelled
            if std::error::Error::source(status).is_some() =>
        {
            OpenRefusal::Silent(words)
        }
        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Aborted => OpenRefusal::Trouble(words),
        Code::NotFound
        | Code::InvalidArgument
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::Internal
        | Code::DeadlineExceeded
        | Code::AlreadyExists
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Ok => OpenRefusal::Final(OpenError::Unavailable(words)),
    }
}

fn workspace_info_from(
    address: &str,
    opened: &wire::OpenWorkspaceResponse,
) -> Result<ExecutorWorkspace, OpenRefusal> {
    let base = parse_commit_id(&opened.base_commit)
        .ok_or_else(|| OpenRefusal::Trouble("the executor named no base commit".to_owned()))?;
    let tools = opened.tools.iter().filter_map(|tool| {
        let input_schema = serde_json::from_str(&tool.input_schema_json).ok()?;
        Some(ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema,
            read_only: tool.read_only,
        })
    });
    Ok(ExecutorWorkspace {
        executor: address.to_owned(),
        id: opened.workspace_id.clone(),
        base,
        sandbox: sandbox_level_of(opened.sandbox_level),
        tools: tools.collect(),
        instructions: opened.instructions.clone(),
        template: opened.template.clone(),
        submodules: opened.submodules.clone(),
        lfs_files: opened.lfs_files.clone(),
        lfs_contents: opened.lfs_contents.clone(),
        conflicts: opened.conflicts.iter().cloned().map(Into::into).collect(),
        checks_at_once: opened.checks_at_once,
    })
}

fn snapshot_reference(restore: &PlannerSnapshotRestore) -> wire::SnapshotRef {
    let snapshot = &restore.snapshot;
    wire::SnapshotRef {
        branch: snapshot.branch.clone().unwrap_or_default(),
        head_commit: snapshot
            .head
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
        snapshot_commit: snapshot.commit.to_string(),
    }
}

/// Requests the tools of each executor of each pool. Returns their names, or the problem in words for the
/// operator.
pub async fn inspect_pools(config: &Config, limit: Duration) -> Vec<(String, Result<Vec<String>, String>)> {
    let signer = match GrantSigner::new(&config.planner.grant_key_id, &config.planner.grant_key) {
        Ok(signer) => signer,
        Err(refused) => return vec![("planner.grant_key".to_owned(), Err(refused.to_string()))],
    };
    let dial = match ExecutorConnector::new(config.tls.as_ref()) {
        Ok(dial) => dial,
        Err(error) => return vec![(error.key, Err(error.problem))],
    };
    let mut found = Vec::new();
    for (pool, addresses) in &config.planner.pools {
        for address in addresses.iter() {
            let executors = dial.resolve(address).await.unwrap_or_default();
            if executors.is_empty() {
                found.push((
                    format!("{pool} {address}"),
                    Err("the name does not resolve".to_owned()),
                ));
            }
            for executor in executors {
                let tools = tokio::time::timeout(limit, list_executor_tools(&executor, &dial, &signer)).await;
                let tools = tools.unwrap_or_else(|_| Err(format!("no answer within {} s", limit.as_secs())));
                found.push((format!("{pool} {executor}"), tools));
            }
        }
    }
    found
}

async fn list_executor_tools(
    address: &str,
    dial: &ExecutorConnector,
    signer: &GrantSigner,
) -> Result<Vec<String>, String> {
    let token = signer
        .sign_status(bootstrap::read_wall_clock())
        .map_err(|refused| refused.to_string())?;
    let request = authorize_request(&token, ListToolsRequest {}).map_err(|error| error.to_string())?;
    let channel = dial.channel(address).map_err(|error| error.to_string())?;
    let answer = ExecutorServiceClient::new(channel).list_tools(request).await;
    let tools = answer
        .map_err(|status| match status.code() {
            Code::Unavailable | Code::Unknown => "cannot be reached".to_owned(),
            code @ (Code::Ok
            | Code::Cancelled
            | Code::InvalidArgument
            | Code::DeadlineExceeded
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::ResourceExhausted
            | Code::FailedPrecondition
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Internal
            | Code::DataLoss
            | Code::Unauthenticated) => format!("refused: {code:?}"),
        })?
        .into_inner()
        .tools;
    Ok(tools.into_iter().map(|tool| tool.name).collect())
}
