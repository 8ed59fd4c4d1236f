//! A check run of our own on a commit. Only GitHub Apps may make them.

use domain::{CommitId, RepositoryName};
use serde_json::{Value, json};

use crate::{
    Error, Writer,
    client::Method,
    model_runs::{CHECK_NAME, OURS},
    permissions::Access,
    wire::{WireCheckRun, WireCheckRuns},
};

/// What our check run says. It is always complete, so that no pull request waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRunText {
    /// One line.
    pub title: String,
    /// Markdown, at most 65,535 characters.
    pub summary: String,
    /// Whether it is shown as passed; otherwise as neutral.
    pub passed: bool,
}

impl CheckRunText {
    fn body(&self) -> Value {
        json!({
            "name": CHECK_NAME, "status": "completed",
            "conclusion": if self.passed { "success" } else { "neutral" },
            "output": {"title": self.title, "summary": self.summary},
        })
    }
}

impl Writer {
    /// Whether check runs can be made there: GitHub lets no person's token do it.
    pub fn makes_check_runs(&self, repository: &RepositoryName) -> bool {
        self.clients
            .of(repository)
            .is_ok_and(|client| client.app_id().is_some())
    }

    /// Our check run on a commit.
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
        let found: WireCheckRuns = client.get(repository, Access::Checks, &path).await?;
        Ok(found
            .check_runs
            .into_iter()
            .find(WireCheckRun::is_ours)
            .map(|run| run.id))
    }

    /// Makes our check run on a commit; gives its id.
    ///
    /// # Errors
    /// As for [`Self::find_check_run`]; [`Error::Unknown`] when it may have happened.
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
            .write_as(Access::Checks, repository, Method::Post, "/check-runs", &body)
            .await?;
        Ok(made.id)
    }

    /// Replaces what our check run says.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with this id; else as for [`Self::create_check_run`].
    pub async fn update_check_run(
        &self,
        repository: &RepositoryName,
        id: u64,
        text: &CheckRunText,
    ) -> Result<(), Error> {
        let client = self.clients.of(repository)?;
        let path = format!("/check-runs/{id}");
        let _: Value = client
            .write_as(Access::Checks, repository, Method::Patch, &path, &text.body())
            .await?;
        Ok(())
    }
}
