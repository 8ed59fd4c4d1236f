//! Run the failed jobs of a pull request again.

use async_trait::async_trait;
use domain::{CommitId, PullRequestRef, cause::chain};

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{
    made::{Made, Rerun},
    message,
    trouble::Trouble,
};

/// Run the failed jobs of these runs of GitHub Actions again, each run once at most, whoever did it.
#[derive(Debug)]
pub(crate) struct RerunChecks {
    pub(crate) pull_request: PullRequestRef,
    /// The commit that they check.
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

    /// That the checks failed is told all the same.
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
        // What was refused is told, unless something runs: then its end is told.
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
    /// A run that is at its second attempt has run again. So a repetition after an answer that was lost does nothing.
    async fn again(&self, outside: &Outside, run: u64) -> Result<Rerun, Trouble> {
        let repository = &self.pull_request.repository;
        let now = match outside.github.workflow_run(repository, run).await {
            Ok(now) => now,
            Err(error) => return refused(run, error),
        };
        if now.head != self.head {
            // Any App may name any address as that of its check.
            return Ok(of_another_commit());
        }
        match (now.attempt > 1, now.is_complete) {
            // Also when we started them and did not hear of it.
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

/// What will be refused every time is an answer.
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
