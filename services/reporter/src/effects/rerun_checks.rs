//! Restarts the failed jobs of a pull request.

use async_trait::async_trait;
use domain::{CommitId, PullRequestRef, cause::chain};

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{
    made::{Made, Rerun},
    message,
    trouble::Trouble,
};

/// Restarts the failed jobs of runs of GitHub Actions, at most once for each run, by us or by others.
#[derive(Debug)]
pub(crate) struct RerunChecks {
    pub(crate) pull_request: PullRequestRef,
    /// Commit that the runs check.
    pub(crate) head: CommitId,
    pub(crate) runs: Vec<u64>,
}

#[async_trait]
impl Effect for RerunChecks {
    fn name(&self) -> &'static str {
        "rerun_checks"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
    }

    /// The report about failed checks succeeds without the restart.
    fn only_tells(&self) -> bool {
        true
    }

    async fn create(&self, outside: &Outside, _: &Asked<'_>) -> Result<Made, Trouble> {
        let PullRequestRef {
            repository, number, ..
        } = &self.pull_request;
        let now = outside.github.pull_request(repository, *number).await?;
        if now.head != self.head {
            return Ok(Made {
                rerun: Some(of_another_commit()),
                ..Made::default()
            });
        }
        let mut ends = Vec::new();
        for run in &self.runs {
            ends.push(self.again(outside, *run).await?);
        }
        // A started run is the result: its end is reported later. Otherwise a refusal is the result.
        let is_refusal = |end: &&Rerun| matches!(end, Rerun::Refused { .. });
        let told = match ends.contains(&Rerun::Started) {
            true => Some(Rerun::Started),
            false => ends.iter().find(is_refusal).or(ends.first()).cloned(),
        };
        Ok(Made {
            rerun: told,
            ..Made::default()
        })
    }
}

impl RerunChecks {
    /// Restarts a run. A run at its second attempt counts as restarted, so a repetition after a lost response does
    /// nothing.
    async fn again(&self, outside: &Outside, run: u64) -> Result<Rerun, Trouble> {
        let repository = &self.pull_request.repository;
        let now = match outside.github.workflow_run(repository, run).await {
            Ok(now) => now,
            Err(error) => return refused(run, error),
        };
        if now.head != self.head {
            // The id comes from a check's address, and any App may set any address.
            return Ok(of_another_commit());
        }
        match (now.attempt > 1, now.is_complete) {
            // Includes runs that we started whose response was lost.
            (true, false) => return Ok(Rerun::Started),
            (true, true) | (false, false) => return Ok(Rerun::Before),
            (false, true) => {}
        }
        match outside.github.rerun_failed_jobs(repository, run).await {
            Ok(()) => {
                tracing::info!(%repository, run, "failed jobs run again");
                Ok(Rerun::Started)
            }
            Err(error) => refused(run, error),
        }
    }
}

fn of_another_commit() -> Rerun {
    Rerun::Refused {
        detail: message::run_of_another_commit(),
    }
}

/// Converts a permanent refusal into a result.
fn refused(run: u64, error: github::Error) -> Result<Rerun, Trouble> {
    match error {
        github::Error::Forbidden { .. } | github::Error::NotFound { .. } | github::Error::Rejected { .. } => {
            let detail = chain(&error);
            tracing::warn!(run, error = %detail, "failed jobs do not run again");
            Ok(Rerun::Refused { detail })
        }
        error => Err(error.into()),
    }
}
