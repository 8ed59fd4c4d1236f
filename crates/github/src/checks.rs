//! Checks of commits: Journeyman's check run, GitHub Actions runs, and the checks that a merge requires.

use domain::{CommitId, RepositoryName};
use serde_json::{Value, json};

use crate::{
    CommitCheck, CommitRun, Error, WorkflowRun,
    client::{GitHubClient, GitHubClients, GitHubMethod, percent_encode},
    is_action_workflow,
    model::{CHECK_NAME, OURS},
    permissions::AccessKind,
    transport::PAGE,
    wire::{
        WireBranch, WireBranchRule, WireCheckRun, WireCheckRuns, WireCombinedStatus, WireCommitRuns,
        WireWorkflowRun,
    },
};

const MAX_CHECK_PAGES: usize = 3;
// Bytes that are read from the end of a log.
const LOG_BYTES: usize = 512 * 1024;

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

/// Reader of the checks of commits; cheap to clone.
#[derive(Clone, Debug)]
pub struct CheckReader {
    pub(crate) clients: GitHubClients,
}

impl CheckReader {
    /// Lists the latest checks of a commit: check runs and commit statuses, at most 300 of each, without
    /// ours and without the jobs of Journeyman's GitHub Action.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the commit does not exist.
    pub async fn checks(
        &self,
        repository: &RepositoryName,
        commit: &CommitId,
    ) -> Result<Vec<CommitCheck>, Error> {
        self.checks_of(repository, commit.as_str()).await
    }

    async fn checks_of(&self, repository: &RepositoryName, commit: &str) -> Result<Vec<CommitCheck>, Error> {
        // GitHub lists check runs and commit statuses separately, and a commit may have both.
        let mut checks = Vec::new();
        for page in 1..=MAX_CHECK_PAGES {
            let path = format!("/commits/{commit}/check-runs?per_page={PAGE}&page={page}");
            let found: WireCheckRuns = self
                .clients
                .of(repository)?
                .get_again(repository, AccessKind::Look, &path)
                .await?;
            // Counted before our runs are removed, because they fill GitHub's page too.
            let last = found.check_runs.len() < PAGE;
            let others = found.check_runs.into_iter().filter(WireCheckRun::is_of_ci);
            checks.extend(others.map(CommitCheck::from));
            if last {
                break;
            }
        }
        for page in 1..=MAX_CHECK_PAGES {
            let path = format!("/commits/{commit}/status?per_page={PAGE}&page={page}");
            let found: WireCombinedStatus = self
                .clients
                .of(repository)?
                .get_again(repository, AccessKind::Look, &path)
                .await?;
            let last = found.statuses.len() < PAGE;
            checks.extend(found.statuses.into_iter().map(CommitCheck::from));
            if last {
                break;
            }
        }
        Ok(checks)
    }

    /// Lists the checks at the tip of a branch.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the branch is missing.
    pub async fn branch_checks(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Vec<CommitCheck>, Error> {
        self.checks_of(repository, &percent_encode(branch)).await
    }

    /// Reads the end of the log of a GitHub Actions job; `None` for a check of another system or an expired
    /// log.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn job_log(
        &self,
        repository: &RepositoryName,
        check: &CommitCheck,
    ) -> Result<Option<String>, Error> {
        let Some(job) = check.actions_job() else {
            return Ok(None);
        };
        let client = self.clients.of(repository)?;
        let path = format!("/actions/jobs/{job}/logs");
        match client
            .get_redirected(repository, AccessKind::Look, &path, LOG_BYTES)
            .await
        {
            Ok(log) => Ok(Some(log)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the 100 latest GitHub Actions runs for a commit, without those of Journeyman's GitHub Action. Empty
    /// where Actions are disabled or our account cannot see them.
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
        let path = format!("/actions/runs?head_sha={head}&per_page={PAGE}");
        let client = self.clients.of(repository)?;
        let found = client
            .get_again::<WireCommitRuns>(repository, AccessKind::Look, &path)
            .await;
        match found {
            Ok(found) => {
                let runs = found.workflow_runs.into_iter().map(CommitRun::from);
                // The job that reads this may itself be a run of the commit, and would wait for its own end.
                Ok(runs.filter(|run| !is_action_workflow(&run.name)).collect())
            }
            Err(Error::NotFound { .. } | Error::Forbidden { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Lists the checks that must pass before a merge into a branch, as far as our account can read them. A
    /// reader App without permission for contents reads only those of rulesets.
    ///
    /// # Errors
    /// [`Error`] when GitHub cannot be read.
    pub async fn required_checks(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Vec<String>, Error> {
        let client = self.clients.of(repository)?;
        let mut required = Vec::new();
        // Either source may be forbidden to the reader without the other.
        for found in [
            fetch_protected_checks(client, repository, AccessKind::Look, branch).await,
            fetch_ruleset_checks(client, repository, AccessKind::Look, branch).await,
        ] {
            match found {
                Ok(found) => required.extend(found),
                Err(Error::Forbidden { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(required)
    }
}

/// Writer of Journeyman's check run and of reruns; cheap to clone. GitHub lets only Apps create check runs.
#[derive(Clone, Debug)]
pub struct CheckWriter {
    pub(crate) clients: GitHubClients,
}

impl CheckWriter {
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
        let path = format!("/commits/{head}/check-runs?check_name={CHECK_NAME}&per_page={PAGE}");
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

    /// Lists the checks that must pass before a merge into a branch, by branch protection and by rulesets.
    ///
    /// # Errors
    /// [`Error::Forbidden`] when our account has no permission to read them.
    pub async fn required_checks(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Vec<String>, Error> {
        let client = self.clients.of(repository)?;
        // A branch may have both, and GitHub enforces them together.
        let mut required = fetch_protected_checks(client, repository, AccessKind::Write, branch).await?;
        required.extend(fetch_ruleset_checks(client, repository, AccessKind::Write, branch).await?);
        Ok(required)
    }
}

async fn fetch_protected_checks(
    client: &GitHubClient,
    repository: &RepositoryName,
    access: AccessKind,
    branch: &str,
) -> Result<Vec<String>, Error> {
    let path = format!("/branches/{}", percent_encode(branch));
    let found = client.get::<WireBranch>(repository, access, &path).await;
    Ok(Error::none_if_missing(found)?.map_or_else(Vec::new, WireBranch::required))
}

async fn fetch_ruleset_checks(
    client: &GitHubClient,
    repository: &RepositoryName,
    access: AccessKind,
    branch: &str,
) -> Result<Vec<String>, Error> {
    let path = format!("/rules/branches/{}?per_page={PAGE}", percent_encode(branch));
    let found = client.get::<Vec<WireBranchRule>>(repository, access, &path).await;
    let rules = Error::none_if_missing(found)?.unwrap_or_default();
    Ok(rules.iter().flat_map(WireBranchRule::required).collect())
}
