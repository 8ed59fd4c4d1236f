//! Command `executor index`: indexes a repository and searches it from a terminal.

use std::{
    io::{Write, stdout},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use clap::Args;
use domain::CommitId;
use retrieval::{ModuleFolders, SearchAnswer, SearchQuery, SearchRequest};
use tokio::time::Instant;

use super::{
    index_registry::{CommitIndex, IndexStatus},
    worker::IndexBuildReport,
};
use crate::mirror::MirrorPath;

/// Arguments of `executor index`.
#[derive(Args)]
pub(crate) struct IndexArguments {
    /// Bare repository, such as an executor's mirror; the index is stored in its folder code-index
    #[arg(long)]
    repository: PathBuf,
    /// Branch, tag or commit to index
    #[arg(long, default_value = "HEAD")]
    revision: String,
    /// Number of times to run the search; the median time is shown
    #[arg(long, default_value_t = 1)]
    times: u32,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Text to search for, such as the text of a ticket
    #[arg(default_value = "")]
    query: String,
}

/// Builds the index, runs the search and prints both results. Blocks.
pub(crate) fn run_index_command(task: &IndexArguments) -> anyhow::Result<ExitCode> {
    let mirror: MirrorPath = task.repository.canonicalize().context("--repository")?.into();
    let commit = resolve_commit(&mirror, &task.revision)?;
    let (index, took) = CommitIndex::built(&mirror, &commit);
    let took = took.ok_or_else(|| match index.status() {
        IndexStatus::Failed(why) => anyhow::anyhow!("no index: {why}"),
        IndexStatus::Ready | IndexStatus::Building(_) => anyhow::anyhow!("no index"),
    })?;
    let (answer, median) = search_repeatedly(&index, task)?;
    if task.json {
        writeln!(stdout(), "{}", build_report(&commit, took, &answer, median))?;
    } else {
        print_results(took, &answer, median, !task.query.is_empty())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn resolve_commit(mirror: &Path, revision: &str) -> anyhow::Result<CommitId> {
    let git = git::BareRepository::open(mirror)?;
    let found = git.objects().revparse_single(revision).context("--revision")?;
    let commit = found.peel_to_commit().context("--revision")?;
    Ok(git::convert_commit_id(commit.id())?)
}

fn search_repeatedly(
    index: &Arc<CommitIndex>,
    task: &IndexArguments,
) -> anyhow::Result<(SearchAnswer, Duration)> {
    let modules = ModuleFolders::default();
    let (mut times, mut last) = (Vec::new(), SearchAnswer::default());
    for _ in 0..task.times.max(1) {
        let started = Instant::now();
        // The measured time includes this, as each search of a run does.
        let query = SearchQuery::from_text(&task.query);
        last = index
            .search(&SearchRequest::new(&query, &modules))
            .context("not ready")??;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    Ok((last, median))
}

fn build_report(
    commit: &CommitId,
    took: IndexBuildReport,
    answer: &SearchAnswer,
    median: Duration,
) -> serde_json::Value {
    let found = answer.found.iter().map(|found| {
        serde_json::json!({
            "path": found.path, "start": found.start, "end": found.end, "symbol": found.symbol, "score": found.score,
            "reason": found.reason, "test": found.is_test,
        })
    });
    serde_json::json!({
        "commit": commit.to_string(),
        "known": took.updated.known,
        "indexed": took.updated.indexed,
        "skipped": took.updated.skipped,
        "unread": took.updated.unread,
        "chunks": took.chunks,
        "ready_ms": as_milliseconds(took.ready),
        "all_ms": as_milliseconds(took.all),
        "query_ms": as_milliseconds(median),
        "found": found.collect::<Vec<_>>(),
    })
}

fn as_milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn print_results(
    took: IndexBuildReport,
    answer: &SearchAnswer,
    median: Duration,
    has_query: bool,
) -> std::io::Result<()> {
    let mut out = stdout().lock();
    let updated = took.updated;
    writeln!(
        out,
        "{} files known, {} indexed, {} skipped, {} unread; {} chunks; ready after {:.1} s",
        updated.known,
        updated.indexed,
        updated.skipped,
        updated.unread,
        took.chunks,
        took.ready.as_secs_f64()
    )?;
    for found in &answer.found {
        writeln!(
            out,
            "{}:{}-{} {} ({:.2}) {}",
            found.path, found.start, found.end, found.symbol, found.score, found.reason
        )?;
    }
    if has_query && answer.found.is_empty() {
        writeln!(out, "no confident match")?;
    }
    if has_query {
        writeln!(out, "searched in {:.1} ms", as_milliseconds(median))?;
    }
    Ok(())
}
