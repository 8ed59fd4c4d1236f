//! Setup of a workspace: the setup commands of a repository, and the programs that must exist afterwards.

use std::{sync::Arc, time::Duration};

use domain::{CommitId, text::take_tail_bytes};
use proto::executor::SetupResult;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::cache::SetupKey;
use crate::{
    sandbox::{CommandEnd, CommandEnding, EgressRelay},
    service::{registry::WorkspaceRegistry, responses::run_blocking},
    store::DiskStore,
    tools::{self, ToolContext},
    workspace::{Workspace, WorkspaceError},
};

// Time limit of one setup command.
const COMMAND_LIMIT: Duration = Duration::from_secs(600);
const MAX_LOG: usize = 8 * 1024;

/// Commands to run, and programs that must exist afterwards.
pub(crate) struct SetupPlan {
    pub(crate) commands: Vec<String>,
    pub(crate) programs: Vec<String>,
    /// Egress of the commands; `None` for no network.
    pub(crate) egress: Option<Arc<EgressRelay>>,
    /// Commit of the base branch's history on which the base builds, and whose files the workspace has.
    ///
    /// Only there do commands have egress, and only its results are stored and reused. `None` if no such
    /// commit exists; the files are then those of the base.
    pub(crate) foundation: Option<CommitId>,
}

/// Runs the commands and then searches for the programs. `None` when there is nothing to do. Afterwards the
/// workspace has the files of the base, and the commands have also run on these.
pub(crate) async fn run_setup(
    registry: &WorkspaceRegistry,
    workspace: &Arc<Workspace>,
    preparation: SetupPlan,
) -> Result<Option<SetupResult>, Status> {
    let SetupPlan {
        commands,
        programs,
        egress,
        foundation,
    } = preparation;
    if commands.is_empty() && programs.is_empty() {
        return Ok(None);
    }
    let search = build_program_search(&programs)?;
    let call = ToolContext {
        workspace: Arc::clone(workspace),
        sandbox: registry.sandbox.clone(),
        index: None,
        commit_time_s: 0,
        commit_author: domain::CommitAuthor::journeyman(),
        cancel: CancellationToken::new(),
    };
    // Setup at the base itself is complete after the first round.
    let is_at_base = foundation.as_ref() == Some(&workspace.git.base);
    let has_egress = egress.is_some();
    let mut round = SetupRound::default();
    if foundation.is_some() {
        round = run_at_foundation(registry, &call, &commands, egress).await?;
    }
    let without_network = !is_at_base && has_egress && !commands.is_empty();
    if !is_at_base && !commands.is_empty() {
        if foundation.is_some() {
            let entering = Arc::clone(workspace);
            run_blocking(move || entering.enter_base()).await?;
        }
        // Without egress: a stranger may have written the files of a pull request, and setup runs their
        // scripts.
        let again = run_commands(registry, &call, &commands, None).await?;
        round = round.then(again, foundation.as_ref(), workspace);
    }
    let SetupRound { mut log, mut failed } = round;
    // After a failed setup, missing programs are no news.
    if let Some(search) = search.filter(|_| !failed) {
        let missing = run_one(registry, &call, search, None).await?.output;
        failed = !missing.trim().is_empty();
        if failed {
            log.push_str(&describe_missing_programs(&missing));
        }
    }
    let settled = Arc::clone(workspace);
    run_blocking(move || {
        settled.settle()?;
        settled.setup.note(&settled.disk, &settled.git)
    })
    .await?;
    Ok(Some(SetupResult {
        failed,
        log_tail: take_tail_bytes(&log, MAX_LOG).to_owned(),
        without_network,
        prepared_at: foundation
            .filter(|_| without_network)
            .map(|commit| commit.to_string())
            .unwrap_or_default(),
    }))
}

/// Result of running all commands once: their output, and whether one failed.
#[derive(Default)]
struct SetupRound {
    log: String,
    failed: bool,
}

impl SetupRound {
    /// Combines this run with the one at the base, which had no network.
    ///
    /// Commands on a base outside of the branch's history may need the network. If they fail, the files of
    /// the run at the foundation are used.
    fn then(self, again: Self, foundation: Option<&CommitId>, workspace: &Workspace) -> Self {
        let (base, branch) = (workspace.git.base.short(), &workspace.git.base_branch);
        let mut log = format!(
            "Commit {base} is not in the history of {branch}, so the setup commands ran on its files without network.\n"
        );
        if let Some(foundation) = foundation {
            let how = if self.failed { ", and failed" } else { "" };
            log.push_str(&format!(
                "Before, they ran with network on the files of {}, which is in that history{how}.\n",
                foundation.short()
            ));
        }
        if self.failed {
            log.push_str(&self.log);
            log.push_str("\nWithout network:\n");
        }
        log.push_str(&again.log);
        let is_prepared = foundation.is_some() && !self.failed;
        if again.failed && is_prepared {
            log.push_str("\nThe work continues with what the first run left.\n");
        }
        Self {
            log,
            failed: again.failed && !is_prepared,
        }
    }
}

/// Runs the commands with egress and stores their result, or restores the stored result of an earlier run.
async fn run_at_foundation(
    registry: &WorkspaceRegistry,
    call: &ToolContext,
    commands: &[String],
    egress: Option<Arc<EgressRelay>>,
) -> Result<SetupRound, Status> {
    let (first, store) = (Arc::clone(&call.workspace), Arc::clone(&registry.store));
    let wanted = commands.to_vec();
    let kept = run_blocking(move || CachedSetup::restore(store, first, &wanted)).await?;
    if kept.is_reused {
        return Ok(SetupRound {
            log: "The result of an earlier run of the same commands on the same files was reused.\n"
                .to_owned(),
            failed: false,
        });
    }
    let mut round = run_commands(registry, call, commands, egress.as_ref()).await?;
    if let Some(egress) = egress.filter(|_| round.failed) {
        round.log.push_str(&describe_refusals(&egress.refusals().await));
    }
    let (settled, failed) = (Arc::clone(&call.workspace), round.failed);
    run_blocking(move || {
        settled.settle()?;
        if !failed {
            kept.keep(&settled);
        }
        Ok(())
    })
    .await?;
    Ok(round)
}

/// Runs the commands in order until one fails.
async fn run_commands(
    registry: &WorkspaceRegistry,
    call: &ToolContext,
    commands: &[String],
    egress: Option<&Arc<EgressRelay>>,
) -> Result<SetupRound, Status> {
    let mut round = SetupRound::default();
    for command in commands {
        round.log.push_str(&format!("$ {command}\n"));
        let end = run_one(registry, call, command.clone(), egress).await?;
        round.log.push_str(&end.output);
        round.failed = end.ending != CommandEnding::Exited(0);
        if round.failed {
            round.log.push_str(&format!("\n[{:?}]\n", end.ending));
            break;
        }
    }
    Ok(round)
}

/// Part of the cache in one setup.
struct CachedSetup {
    store: Arc<DiskStore>,
    key: Option<SetupKey>,
    is_reused: bool,
}

impl CachedSetup {
    /// Restores a stored result if one exists.
    fn restore(
        store: Arc<DiskStore>,
        workspace: Arc<Workspace>,
        commands: &[String],
    ) -> Result<Self, WorkspaceError> {
        let key = store.setups.key(&workspace, commands)?;
        let is_reused = match &key {
            Some(key) => store.setups.put_in(key, &workspace)?,
            None => false,
        };
        Ok(Self {
            store,
            key,
            is_reused,
        })
    }

    fn keep(self, workspace: &Workspace) {
        if let Some(key) = self.key.filter(|_| !self.is_reused) {
            self.store.setups.keep(&key, workspace);
        }
    }
}

async fn run_one(
    registry: &WorkspaceRegistry,
    call: &ToolContext,
    command: String,
    egress: Option<&Arc<EgressRelay>>,
) -> Result<CommandEnd, Status> {
    let mut spec = tools::build_command_spec(call, command, COMMAND_LIMIT);
    if let Some(egress) = egress {
        let failed = |error| Status::unavailable(format!("setup commands cannot get egress: {error}"));
        spec.add_egress(egress, registry.sandbox.open_egress_port().map_err(failed)?);
    }
    let ran = registry
        .sandbox
        .run(spec, &call.cancel, None, &call.workspace.spare);
    failpoint::around("executor.setup.run", ran)
        .await
        .map_err(|error| Status::unavailable(format!("a setup command cannot be started: {error}")))
}

/// Builds a command that prints the names of missing programs.
fn build_program_search(programs: &[String]) -> Result<Option<String>, Status> {
    if let Some(wrong) = programs.iter().find(|name| !domain::is_program_name(name)) {
        return Err(Status::invalid_argument(format!(
            "{wrong:?} is not a program name"
        )));
    }
    let names = programs.join(" ");
    let all = format!("for p in {names}; do command -v \"$p\" >/dev/null 2>&1 || echo \"$p\"; done");
    Ok((!programs.is_empty()).then_some(all))
}

/// Renders the refusals of the egress proxy, a possible reason of the failure.
fn describe_refusals(lines: &str) -> String {
    if lines.is_empty() {
        String::new()
    } else {
        format!("\nThe egress proxy refused:\n{lines}")
    }
}

fn describe_missing_programs(missing: &str) -> String {
    let names: Vec<_> = missing.split_whitespace().collect();
    format!(
        "This pool of executors has no {}. Name a pool that has it (executor.pool), or install it in executor.setup.\n",
        names.join(", ")
    )
}
