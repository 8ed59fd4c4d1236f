//! Thread that builds indexes one after the other at low priority.

use std::{
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use domain::cause::format_error_chain;
use git::DiskFloor;
use retrieval::{Error, UpdateProgress, UpdateSummary};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    index_registry::{CommitIndex, RepositoryIndex},
    source::{self, MirrorSource},
};
use crate::parser::ParserClient;

/// Nice value of the thread and of the parser that it starts. Commands and tools have priority.
const NICE: i32 = 10;

const NO_ROOM: &str = "the disk is nearly full";
const TROUBLE: &str = "it could not be built";
const STOPPED: &str = "the executor stops";

/// Starts the thread, which ends when the last sender is dropped. `None` when the system cannot start a
/// thread.
pub(super) fn start_build_thread(
    floor: DiskFloor,
    stop: CancellationToken,
) -> Option<mpsc::Sender<Arc<CommitIndex>>> {
    let (jobs, next) = mpsc::channel::<Arc<CommitIndex>>();
    let work = move || {
        // The error is ignored: without the lower priority, indexing merely competes with commands.
        let _ = rustix::process::setpriority_process(None, NICE);
        while let Ok(job) = next.recv() {
            // A panic must not end the thread, because the next repository may be fine.
            if catch_unwind(AssertUnwindSafe(|| build_index(&job, floor, &stop))).is_err() {
                tracing::error!(mirror = %job.shelf.mirror.display(), "building an index panicked");
                job.failed(TROUBLE);
            }
        }
    };
    let started = thread::Builder::new().name("index".to_owned()).spawn(work);
    if let Err(error) = &started {
        tracing::warn!(error = %format_error_chain(error), "nothing will be indexed");
    }
    started.is_ok().then_some(jobs)
}

/// Error of building an index.
#[derive(Debug, thiserror::Error)]
enum IndexBuildError {
    #[error(transparent)]
    Index(#[from] Error),
    #[error(transparent)]
    Git(#[from] git::Error),
    #[error("the tree cannot be read")]
    Tree(#[from] git2::Error),
}

/// Statistics of a build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexBuildReport {
    pub(crate) updated: UpdateSummary,
    pub(crate) chunks: u64,
    /// Duration until the index could be searched.
    pub(crate) ready: Duration,
    /// Duration including the merge of index parts and the connection of references.
    pub(crate) all: Duration,
}

/// Builds the index of a commit and sets its state.
pub(super) fn build_index(
    job: &CommitIndex,
    floor: DiskFloor,
    stop: &CancellationToken,
) -> Option<IndexBuildReport> {
    if stop.is_cancelled() {
        job.failed(STOPPED);
        return None;
    }
    if !floor.has_room(&job.shelf.mirror) {
        job.failed(NO_ROOM);
        return None;
    }
    let built = try_build(job, stop);
    match &built {
        Ok(_) => {}
        Err(IndexBuildError::Index(Error::Interrupted)) => job.failed(STOPPED),
        Err(error) => {
            tracing::warn!(mirror = %job.shelf.mirror.display(), error = %format_error_chain(error), "an index could not be built");
            job.failed(TROUBLE);
        }
    }
    built.ok()
}

fn try_build(job: &CommitIndex, stop: &CancellationToken) -> Result<IndexBuildReport, IndexBuildError> {
    let started = Instant::now();
    let RepositoryIndex { mirror, .. } = &*job.shelf;
    let git = git::BareRepository::open(mirror)?;
    let (files, attributes) = source::list_commit_files(git.objects(), &job.commit)?;
    let index = job.shelf.index()?;
    let parser = ParserClient::default();
    let mut source = MirrorSource::new(git.objects(), &parser, stop);
    let mut progress = |progress: UpdateProgress| {
        job.progress(build_percent(progress));
        if stop.is_cancelled() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let (tree, updated) = index.update(&files, &attributes, &mut source, &mut progress)?;
    job.ready(Arc::clone(&index), Arc::clone(&tree));
    let (ready, chunks) = (started.elapsed(), index.chunks());
    tracing::info!(
        mirror = %mirror.display(),
        commit = %job.commit.short(),
        known = updated.known,
        indexed = updated.indexed,
        skipped = updated.skipped,
        unread = updated.unread,
        chunks,
        duration_ms = u64::try_from(ready.as_millis()).unwrap_or(u64::MAX),
        "index ready"
    );
    // The index is searchable now. The remaining steps make searches better and faster.
    drop(parser);
    // The parser process is not needed any more, so it ends before the merge.
    index.tidy()?;
    index.connect(&tree)?;
    Ok(IndexBuildReport {
        updated,
        chunks,
        ready,
        all: started.elapsed(),
    })
}

fn build_percent(progress: UpdateProgress) -> u32 {
    let percent = progress.done * 100 / progress.all.max(1);
    // 100 % is reserved for a finished index.
    u32::try_from(percent).unwrap_or(100).min(99)
}
