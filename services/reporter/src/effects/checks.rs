//! Restarts failed jobs, and shows the rounds of work in a check run.

use async_trait::async_trait;
use domain::{CommitId, PullRequestRef, RepositoryName, cause::format_error_chain};

use super::{EffectContext, EffectTarget, OutboundClients, OutboundEffect};
use crate::{
    effect_error::EffectError,
    message,
    receipt::{CheckRunId, RerunResult},
    rounds::RoundEvent,
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
impl OutboundEffect for RerunChecks {
    type Output = Option<RerunResult>;

    /// The report about failed checks succeeds without the restart.
    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "rerun_checks"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::PullRequest(&self.pull_request)
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        _: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let now = outside.read_pull_request(&self.pull_request).await?;
        if now.head != self.head {
            return Ok(Some(of_another_commit()));
        }
        let mut ends = Vec::new();
        for run in &self.runs {
            ends.push(self.again(outside, *run).await?);
        }
        // A started run is the result: its end is reported later. Otherwise a refusal is the result.
        let is_refusal = |end: &&RerunResult| matches!(end, RerunResult::Refused { .. });
        Ok(if ends.contains(&RerunResult::Started) {
            Some(RerunResult::Started)
        } else {
            ends.iter().find(is_refusal).or(ends.first()).cloned()
        })
    }
}

impl RerunChecks {
    /// Restarts a run. A run at its second attempt counts as restarted, so a repetition after a lost response does
    /// nothing.
    async fn again(&self, outside: &OutboundClients, run: u64) -> Result<RerunResult, EffectError> {
        let repository = &self.pull_request.repository;
        let now = match outside.github.checks().workflow_run(repository, run).await {
            Ok(now) => now,
            Err(error) => return convert_refusal(run, error),
        };
        if now.head != self.head {
            // The id comes from a check's address, and any App may set any address.
            return Ok(of_another_commit());
        }
        match (now.attempt > 1, now.is_complete) {
            // Includes runs that we started whose response was lost.
            (true, false) => return Ok(RerunResult::Started),
            (true, true) | (false, false) => return Ok(RerunResult::Before),
            (false, true) => {}
        }
        match outside.github.checks().rerun_failed_jobs(repository, run).await {
            Ok(()) => {
                tracing::info!(%repository, run, "failed jobs run again");
                Ok(RerunResult::Started)
            }
            Err(error) => convert_refusal(run, error),
        }
    }
}

fn of_another_commit() -> RerunResult {
    RerunResult::Refused {
        detail: message::run_of_another_commit(),
    }
}

/// Converts a permanent refusal into a result.
fn convert_refusal(run: u64, error: github::Error) -> Result<RerunResult, EffectError> {
    if let github::Error::Forbidden { .. } | github::Error::NotFound { .. } | github::Error::Rejected { .. } =
        error
    {
        let detail = format_error_chain(&error);
        tracing::warn!(run, error = %detail, "failed jobs do not run again");
        return Ok(RerunResult::Refused { detail });
    }
    Err(error.into())
}

/// Check run `Journeyman` with the rounds of work on the pull request.
#[derive(Debug)]
pub(crate) struct CheckRun {
    /// Repository of the check run; absent: the round is recorded, and a later report shows it.
    pub(crate) repository: Option<RepositoryName>,
    pub(crate) event: RoundEvent,
}

#[async_trait]
impl OutboundEffect for CheckRun {
    type Output = Option<CheckRunId>;

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "check_run"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::CheckRun(self.repository.as_ref())
    }

    fn shows_round(&self) -> Option<(&RoundEvent, Option<&RepositoryName>)> {
        Some((&self.event, self.repository.as_ref()))
    }

    /// An App without the permission for checks makes no check run. The report succeeds, and `doctor` reports the
    /// missing permission.
    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        let Some((on, text)) = asked.rounds else {
            return Ok(None);
        };
        match outside.show_check_run(on, text).await {
            Ok(id) => Ok(Some(CheckRunId(id))),
            Err(EffectError::Denied { detail, .. }) => {
                tracing::info!(%detail, "no check run: the writer's App lacks the permission for checks");
                Ok(None)
            }
            Err(trouble) => Err(trouble),
        }
    }
}
