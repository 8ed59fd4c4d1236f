//! GitHub Actions runs of a commit, and reruns of failed jobs.

use domain::{CommitId, RepositoryName};

use crate::{
    CommitRun, Error, GitHubReader, GitHubWriter, WorkflowRun,
    permissions::AccessKind,
    wire::{WireCommitRuns, WireWorkflowRun},
};

impl GitHubReader {
    /// Lists the 100 latest GitHub Actions runs for a commit. Empty where Actions are disabled or our account
    /// cannot see them.
    ///
    /// Runs that wait for an approval have no check runs, so only this list contains them.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn workflow_runs(
        &self,
        repository: &RepositoryName,
        head: &CommitId,
    ) -> Result<Vec<CommitRun>, Error> {
        let path = format!("/actions/runs?head_sha={head}&per_page=100");
        let client = self.clients.of(repository)?;
        let found = client
            .get_again::<WireCommitRuns>(repository, AccessKind::Look, &path)
            .await;
        match found {
            Ok(found) => Ok(found.workflow_runs.into_iter().map(CommitRun::from).collect()),
            Err(Error::NotFound { .. } | Error::Forbidden { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

impl GitHubWriter {
    /// Reads the present state of a GitHub Actions run.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the run is missing, [`Error::Forbidden`] without the permission for Actions.
    pub async fn workflow_run(&self, repository: &RepositoryName, run: u64) -> Result<WorkflowRun, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/actions/runs/{run}");
        let found: WireWorkflowRun = client.get(repository, AccessKind::Rerun, &path).await?;
        Ok(found.into())
    }

    /// Reruns the failed jobs of a run, and the jobs that depend on them.
    ///
    /// # Errors
    /// [`Error::Forbidden`] when the run is in progress, older than 30 days, or the permission is missing;
    /// [`Error::Unknown`] when GitHub may have started it.
    pub async fn rerun_failed_jobs(&self, repository: &RepositoryName, run: u64) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/actions/runs/{run}/rerun-failed-jobs");
        client.start(repository, AccessKind::Rerun, &path).await
    }
}
