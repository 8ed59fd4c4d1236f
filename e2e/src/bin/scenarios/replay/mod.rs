//! Real bug fixes of published packages, played from the ticket to the patch by a model that repeats the
//! maintainers' fix, and resolutions of generated conflicts.

mod catalogue;
mod conflicts;
mod fetch;
mod instance;
mod play;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::Args;

use crate::output::exit_code;
use crate::replay::{catalogue::FixCatalogue, fetch::ArchiveStore, instance::ReplayInstance};

/// Plays bug fixes of published packages with `journeyman eval`; prints one line for each:
/// `replay ID LANGUAGE OUTCOME EVIDENCE MILLISECONDS`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Fixes to play; all if absent
    ids: Vec<String>,
    /// Another catalogue of fixes
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// Folder for archives, instances and results
    #[arg(long, value_name = "DIR", default_value = "target/replay")]
    out: PathBuf,
    /// Fixes at a time
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: u16,
    /// Generated conflicts to judge, unless fixes are named; 0: none
    #[arg(long, value_name = "N", default_value_t = 100)]
    conflicts: usize,
}

/// Plays the scenario.
pub(crate) async fn run_scenario(arguments: Arguments) -> anyhow::Result<ExitCode> {
    replay_fixes(arguments).await.map(exit_code)
}

async fn replay_fixes(arguments: Arguments) -> anyhow::Result<bool> {
    // They need no download, so they are judged first.
    let is_lossless = !arguments.ids.is_empty() || conflicts::judge_conflicts(arguments.conflicts)?;
    std::fs::create_dir_all(&arguments.out)
        .with_context(|| format!("cannot create {}", arguments.out.display()))?;
    let out = arguments.out.canonicalize()?;
    let fixes = FixCatalogue::read(arguments.catalogue.as_deref())?.only(&arguments.ids)?;
    let store = ArchiveStore::open(&out)?;
    let mut instances = Vec::new();
    for fix in fixes {
        let id = fix.id.clone();
        let made = ReplayInstance::make(fix, &store, &out).await;
        instances.push(made.with_context(|| format!("{id} cannot be made"))?);
    }
    let is_resolved = play::play_instances(&instances, &out, arguments.jobs).await?;
    Ok(is_lossless && is_resolved)
}
