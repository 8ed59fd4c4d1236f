//! Runs of GitHub Actions: those of a commit, and running failed jobs again.

use domain::{CommitId, RepositoryName};

use crate::{
    CommitRun, Error, Reader, WorkflowRun, Writer,
    permissions::Access,
    wire::{WireCommitRuns, WireWorkflowRun},
};

impl Reader {
    /// The runs of GitHub Actions for a commit, the 100 latest. Runs that wait for a person's approval have no check runs, so
    /// only this list tells of them. None where Actions are switched off, or our account may not see them.
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
            .get_again::<WireCommitRuns>(repository, Access::Look, &path)
            .await;
        match found {
            Ok(found) => Ok(found.workflow_runs.into_iter().map(CommitRun::from).collect()),
            Err(Error::NotFound { .. } | Error::Forbidden { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

impl Writer {
    /// A run of GitHub Actions as it is now.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none, [`Error::Forbidden`] without the permission for Actions.
    pub async fn workflow_run(&self, repository: &RepositoryName, run: u64) -> Result<WorkflowRun, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/actions/runs/{run}");
        let found: WireWorkflowRun = client.get(repository, Access::Rerun, &path).await?;
        Ok(found.into())
    }

    /// Runs its failed jobs again, and those that depend on them.
    ///
    /// # Errors
    /// [`Error::Forbidden`] when it is under way, too old (30 days), or the permission is lacking; [`Error::Unknown`] when it
    /// may have happened.
    pub async fn rerun_failed_jobs(&self, repository: &RepositoryName, run: u64) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/actions/runs/{run}/rerun-failed-jobs");
        client.start(repository, Access::Rerun, &path).await
    }
}
