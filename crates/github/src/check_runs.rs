//! Journeyman's check run on a commit. GitHub lets only Apps create check runs.

use domain::{CommitId, RepositoryName};
use serde_json::{Value, json};

use crate::{
    Error, GitHubWriter,
    client::GitHubMethod,
    model::{CHECK_NAME, OURS},
    permissions::AccessKind,
    wire::{WireCheckRun, WireCheckRuns},
};

/// Text and conclusion of our check run. The check run is always complete, so that no pull request waits for
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRunText {
    /// Title in one line.
    pub title: String,
    /// Markdown, at most 65,535 characters (the limit of GitHub's API).
    pub summary: String,
    /// True when the check run is shown as passed; otherwise it is neutral.
    pub passed: bool,
}

impl CheckRunText {
    fn body(&self) -> Value {
        json!({
            "name": CHECK_NAME, "status": "completed",
            // Never `failure`: a failed check of ours would block merges; drafts and reviews carry the
            // judgment.
            "conclusion": if self.passed { "success" } else { "neutral" },
            "output": {"title": self.title, "summary": self.summary},
        })
    }
}

impl GitHubWriter {
    /// True when this account can create check runs: it is an App. GitHub refuses tokens of users.
    pub fn makes_check_runs(&self, repository: &RepositoryName) -> bool {
        self.clients
            .of(repository)
            .is_ok_and(|client| client.app_id().is_some())
    }

    /// Finds the id of our check run on a commit.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the commit does not exist, [`Error::Forbidden`] without the permission for checks.
    pub async fn find_check_run(
        &self,
        repository: &RepositoryName,
        head: &CommitId,
    ) -> Result<Option<u64>, Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/commits/{head}/check-runs?check_name={CHECK_NAME}&per_page=100");
        let found: WireCheckRuns = client.get(repository, AccessKind::Checks, &path).await?;
        Ok(found
            .check_runs
            .into_iter()
            // Another App may use the same name, so the filter by name is not enough.
            .find(WireCheckRun::is_ours)
            .map(|run| run.id))
    }

    /// Creates our check run on a commit and returns its id.
    ///
    /// # Errors
    /// As for [`Self::find_check_run`]; [`Error::Unknown`] when GitHub may have created it.
    pub async fn create_check_run(
        &self,
        repository: &RepositoryName,
        head: &CommitId,
        text: &CheckRunText,
    ) -> Result<u64, Error> {
        let client = self.clients.of(repository)?;
        let mut body = text.body();
        body["head_sha"] = json!(head);
        body["external_id"] = json!(format!("{OURS}{head}"));
        let made: WireCheckRun = client
            .write_as(
                AccessKind::Checks,
                repository,
                GitHubMethod::Post,
                "/check-runs",
                &body,
            )
            .await?;
        Ok(made.id)
    }

    /// Replaces the text of our check run.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no check run has this id; otherwise as for [`Self::create_check_run`].
    pub async fn update_check_run(
        &self,
        repository: &RepositoryName,
        id: u64,
        text: &CheckRunText,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/check-runs/{id}");
        let _: Value = client
            .write_as(
                AccessKind::Checks,
                repository,
                GitHubMethod::Patch,
                &path,
                &text.body(),
            )
            .await?;
        Ok(())
    }
}
