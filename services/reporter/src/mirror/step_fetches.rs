//! First fetches in steps: the base branches for the caller, everything else in the background.
//!
//! The lock of the mirror is free between two steps, so that the fetches of callers come in between.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use domain::{RepositoryName, cause::format_error_chain};
use git::{FetchWatch, GitTransport, StepProgress, StepTarget};
use tokio::time::Instant;

use super::{
    mirror_fetch::{MirrorFetches, clean_mirror},
    resolve_remote,
    step_note::is_in_steps,
};
use crate::effect_error::{DISK_WAIT, EffectError};

// First and longest pause after a failed step.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

impl MirrorFetches {
    /// Returns true if the first fetch of a repository takes steps, by the size that GitHub reports. An unknown size
    /// counts as large.
    pub(super) async fn is_large(&self, repository: &RepositoryName) -> bool {
        let from_kib = self.remotes.fetch.steps_from_mib.saturating_mul(1024);
        if from_kib == 0 {
            return true;
        }
        let described = self.github.repository(repository);
        match failpoint::around("reporter.github.size", described).await {
            Ok(described) => described.size_kib >= from_kib,
            Err(error) => {
                let error = format_error_chain(&error);
                tracing::warn!(%repository, error, "size of the repository is unknown");
                true
            }
        }
    }

    /// Fetches the heads of the base branches, and those that callers wait for. False if the remote has no base branch.
    pub(super) async fn fetch_heads_first(
        &self,
        transport: &GitTransport,
        repository: &RepositoryName,
        target: StepTarget<'_>,
    ) -> Result<bool, EffectError> {
        let mut heads = BTreeMap::new();
        for branch in target.bases {
            let head = self.github.branch_head(repository, branch).await?;
            heads.extend(head.map(|head| ((*branch).to_owned(), head)));
        }
        if heads.is_empty() {
            transport.leave_steps().await?;
            return Ok(false);
        }
        Box::pin(transport.fetch_tips(target, &heads)).await?;
        let (branches, commits) = self.with_note(repository, |note| note.steps.take_wanted());
        for branch in branches
            .iter()
            .filter(|branch| !target.bases.contains(&branch.as_str()))
        {
            Box::pin(transport.fetch_branch_early(target, branch)).await?;
        }
        for commit in &commits {
            Box::pin(transport.fetch_commit_early(target, commit)).await?;
        }
        Ok(true)
    }

    /// Starts the background steps of a mirror, unless they run or the mirror is complete.
    pub(super) fn continue_steps(self: &Arc<Self>, repository: &RepositoryName) {
        if !is_in_steps(&self.folder.path(repository)) {
            return;
        }
        self.with_note(repository, |note| {
            if note.steps.is_running() {
                return;
            }
            let watch = FetchWatch::new(self.remotes.fetch);
            let progress = watch.follow();
            let (fetches, repository) = (Arc::clone(self), repository.clone());
            let task = tokio::spawn(async move { fetches.run_steps(&repository, &watch).await });
            note.steps.start(task.abort_handle(), progress);
        });
    }

    async fn run_steps(&self, repository: &RepositoryName, watch: &FetchWatch) {
        let (started, mut steps, mut pause) = (Instant::now(), 0_u64, PAUSE);
        loop {
            match Box::pin(self.run_step(repository, watch)).await {
                Ok(StepProgress::Finished) => {
                    let duration_s = started.elapsed().as_secs();
                    tracing::info!(%repository, steps, duration_s, "mirror complete");
                    // The next reader fetches all branches in the ordinary way.
                    self.with_note(repository, |note| {
                        note.steps.finish();
                        note.fetched_at = None;
                    });
                    return;
                }
                Ok(StepProgress::Unfinished) => {
                    (steps, pause) = (steps + 1, PAUSE);
                    tracing::debug!(%repository, steps, "step of a first fetch finished");
                }
                Err(error) => {
                    let is_final = matches!(
                        &error,
                        EffectError::Missing(_)
                            | EffectError::Credentials { .. }
                            | EffectError::Denied { .. }
                    );
                    let wait = if let EffectError::DiskFull(_) = &error {
                        DISK_WAIT.max(pause)
                    } else {
                        pause
                    };
                    let error = format_error_chain(&error);
                    tracing::warn!(%repository, error, wait_s = wait.as_secs(), "step of a first fetch failed");
                    if is_final {
                        // The next fetch of a caller has the same failure, and starts the steps again after it.
                        return;
                    }
                    tokio::time::sleep(wait).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn run_step(
        &self,
        repository: &RepositoryName,
        watch: &FetchWatch,
    ) -> Result<StepProgress, EffectError> {
        let mirror = self.folder.get(repository);
        let mut is_clean = mirror.state.lock().await;
        self.make_room().await?;
        if !is_in_steps(&mirror.path) {
            return Ok(StepProgress::Finished);
        }
        clean_mirror(&mirror.path, &mut is_clean).await?;
        let bases = self.base_branches(repository);
        let bases: Vec<&str> = bases.iter().map(String::as_str).collect();
        let (url, auth) = resolve_remote(self.github.fetch_remote(repository)).await?;
        let target = StepTarget {
            url: &url,
            auth: Some(&auth),
            bases: &bases,
        };
        let transport = self.transport(&mirror.path).with_watch(watch.clone());
        let step = Box::pin(transport.fetch_step(target));
        let progress = failpoint::around("reporter.mirror.step", step).await?;
        is_clean.set_clean();
        Ok(progress)
    }
}
