//! Running failed jobs of GitHub Actions again.

use domain::RepositoryName;

use crate::{Error, WorkflowRun, Writer, permissions::Access, wire::WireWorkflowRun};

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
