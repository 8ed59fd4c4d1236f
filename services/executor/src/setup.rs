//! What a repository asks for before the work: setup commands, and the programs that must be there after them.

use std::{sync::Arc, time::Duration};

use proto::executor::SetupResult;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::{
    answer::blocking,
    registry::Registry,
    sandbox::{CommandEnd, Ending, WayOut},
    setup_cache::Key,
    store::Store,
    tools::{self, Call},
    workspace::{Problem, Workspace},
};

/// One command.
const COMMAND_LIMIT: Duration = Duration::from_secs(600);
const MAX_LOG: usize = 8 * 1024;

/// What is to be done, and what must be there then.
pub(crate) struct Preparation {
    pub(crate) commands: Vec<String>,
    pub(crate) programs: Vec<String>,
    /// Where the commands get out; absent: nowhere.
    pub(crate) way_out: Option<Arc<WayOut>>,
    /// Whether the files are the base's, and nobody has worked on them yet.
    pub(crate) is_fresh: bool,
}

/// Runs the commands in order until one fails, then looks for the programs. `None` when there was nothing to do.
pub(crate) async fn run(
    registry: &Registry,
    workspace: &Arc<Workspace>,
    preparation: Preparation,
) -> Result<Option<SetupResult>, Status> {
    let Preparation {
        commands,
        programs,
        way_out,
        is_fresh,
    } = preparation;
    if commands.is_empty() && programs.is_empty() {
        return Ok(None);
    }
    let search = search(&programs)?;
    let call = Call {
        workspace: Arc::clone(workspace),
        sandbox: registry.sandbox.clone(),
        index: None,
        commit_time_s: 0,
        cancel: CancellationToken::new(),
    };
    let (first, store) = (Arc::clone(workspace), Arc::clone(&registry.store));
    let wanted = commands.clone();
    let kept = blocking(move || Kept::look(store, first, &wanted)).await?;
    let (mut log, mut failed) = (String::new(), false);
    if kept.is_reused {
        log.push_str(
            "The result of an earlier run of the same commands with the same lockfiles was reused.\n",
        );
    }
    for command in commands.into_iter().filter(|_| !kept.is_reused) {
        log.push_str(&format!("$ {command}\n"));
        let end = run_one(registry, &call, command, way_out.as_ref()).await?;
        log.push_str(&end.output);
        failed = end.ending != Ending::Exited(0);
        if failed {
            log.push_str(&format!("\n[{:?}]\n", end.ending));
            break;
        }
    }
    if let Some(way_out) = way_out.filter(|_| failed) {
        log.push_str(&refused(&way_out.refusals().await));
    }
    if let Some(search) = search.filter(|_| !failed) {
        let missing = run_one(registry, &call, search, None).await?.output;
        failed = !missing.trim().is_empty();
        if failed {
            log.push_str(&told(&missing));
        }
    }
    let settled = Arc::clone(workspace);
    blocking(move || {
        settled.settle()?;
        settled.note_environment()?;
        // Nobody but the commands themselves has had a hand in it yet.
        if is_fresh && !failed {
            kept.keep(&settled);
        }
        Ok(())
    })
    .await?;
    let tail = &log.as_bytes()[log.len().saturating_sub(MAX_LOG)..];
    Ok(Some(SetupResult {
        failed,
        log_tail: String::from_utf8_lossy(tail).into_owned(),
    }))
}

/// The cache's part in one setup.
struct Kept {
    store: Arc<Store>,
    key: Option<Key>,
    is_reused: bool,
}

impl Kept {
    /// Puts in what is kept, if anything is.
    fn look(store: Arc<Store>, workspace: Arc<Workspace>, commands: &[String]) -> Result<Self, Problem> {
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
    registry: &Registry,
    call: &Call,
    command: String,
    way_out: Option<&Arc<WayOut>>,
) -> Result<CommandEnd, Status> {
    let mut spec = tools::command_spec(call, command, COMMAND_LIMIT);
    if let Some(way_out) = way_out {
        let no_door = |error| Status::unavailable(format!("setup commands cannot be let out: {error}"));
        spec.let_out(way_out, registry.sandbox.door().map_err(no_door)?);
    }
    let ran = registry
        .sandbox
        .run(spec, &call.cancel, None, &call.workspace.spare);
    failpoint::around("executor.setup.run", ran)
        .await
        .map_err(|error| Status::unavailable(format!("a setup command cannot be started: {error}")))
}

/// A command that prints the names of the programs that are not there.
fn search(programs: &[String]) -> Result<Option<String>, Status> {
    if let Some(wrong) = programs.iter().find(|name| !domain::is_program_name(name)) {
        return Err(Status::invalid_argument(format!(
            "{wrong:?} is not a program name"
        )));
    }
    let names = programs.join(" ");
    let all = format!("for p in {names}; do command -v \"$p\" >/dev/null 2>&1 || echo \"$p\"; done");
    Ok((!programs.is_empty()).then_some(all))
}

/// What the commands may have failed for.
fn refused(lines: &str) -> String {
    if lines.is_empty() {
        String::new()
    } else {
        format!("\nThe egress proxy refused:\n{lines}")
    }
}

fn told(missing: &str) -> String {
    let names: Vec<_> = missing.split_whitespace().collect();
    format!(
        "This pool of executors has no {}. Name a pool that has it (executor.pool), or install it in executor.setup.\n",
        names.join(", ")
    )
}
