//! Reading GitHub.

use std::time::Duration;

use domain::{CommitId, Instance, RepositoryName, TicketKey, Timestamp, cause::chain};

use super::{Outside, ReadError, Titled, ci_logs};

/// How long the log of a check is waited for, both times together: there are several, and a delivery has its own limit.
const LOG_PATIENCE: Duration = Duration::from_secs(3);

impl Outside {
    /// The open issues of a repository, latest change first; costs nothing of GitHub's limit when none changed since the
    /// tag.
    pub(crate) async fn changed_issues(
        &self,
        repository: &RepositoryName,
        known: Option<&github::ETag>,
    ) -> Result<github::PolledIssues, ReadError> {
        let read = self.github.open_issues(repository, known);
        Ok(failpoint::around("ingest.github.issues", read).await?)
    }

    /// The discussions of a repository that changed last, latest change first.
    pub(crate) async fn changed_discussions(
        &self,
        repository: &RepositoryName,
    ) -> Result<Vec<github::DiscussionStub>, ReadError> {
        let read = self.github.changed_discussions(repository);
        Ok(failpoint::around("ingest.github.discussions", read).await?)
    }

    pub(crate) async fn discussion(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<github::Discussion, ReadError> {
        let read = self.github.discussion(repository, number);
        Ok(failpoint::around("ingest.github.discussion", read).await?)
    }

    /// The titles of the 100 open issues of a repository that changed last.
    pub(super) async fn open_titles(&self, repository: &RepositoryName) -> Result<Vec<Titled>, ReadError> {
        let github::PolledIssues::Changed { issues, .. } = self.changed_issues(repository, None).await?
        else {
            return Ok(Vec::new());
        };
        let titled = issues.into_iter().map(|issue| Titled {
            key: TicketKey::GitHub {
                repository: repository.clone(),
                number: issue.number,
            },
            summary: issue.title,
            status: "open".to_owned(),
        });
        Ok(titled.collect())
    }

    /// The issues of a repository in a state, the latest change first.
    pub(crate) async fn list_issues(
        &self,
        repository: &RepositoryName,
        state: github::IssueState,
    ) -> Result<Vec<github::ListedIssue>, ReadError> {
        let read = self.github.list_issues(repository, state);
        Ok(failpoint::around("ingest.github.list", read).await?)
    }

    /// New comments of a repository's pull requests and issues since then, with the numbers of these.
    pub(crate) async fn repository_comments(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<Vec<(u64, github::Comment)>, ReadError> {
        let read = self.github.comments_since(repository, since);
        Ok(failpoint::around("ingest.github.comments", read).await?)
    }

    /// The GitHub instances: the default one (`None`) and the named ones.
    pub(crate) fn github_instances(&self) -> Vec<Option<Instance>> {
        self.github.instances().map(Option::<&Instance>::cloned).collect()
    }

    /// An instance's attempts to deliver webhooks since then, newest first; absent when our account is no App.
    pub(crate) async fn hook_deliveries(
        &self,
        instance: Option<&Instance>,
        since: Timestamp,
    ) -> Result<Option<Vec<github::HookDelivery>>, ReadError> {
        let read = self.github.hook_deliveries(instance, since);
        match failpoint::around("ingest.github.hook_deliveries", read).await {
            Err(github::Error::Unauthorized { .. }) => Ok(None),
            deliveries => Ok(Some(deliveries?)),
        }
    }

    /// What one of those attempts carried.
    pub(crate) async fn hook_payload(
        &self,
        instance: Option<&Instance>,
        id: u64,
    ) -> Result<serde_json::Value, ReadError> {
        let read = self.github.hook_payload(instance, id);
        Ok(failpoint::around("ingest.github.hook_payload", read).await?)
    }

    /// Pull requests of anybody that were closed or merged and changed since then.
    pub(crate) async fn closed_pull_requests(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<Vec<github::PullRequest>, ReadError> {
        let read = self.github.closed_pull_requests_since(repository, since);
        Ok(failpoint::around("ingest.github.closed", read).await?)
    }

    /// What was said of a pull request.
    pub(crate) async fn remarks(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<github::Remark>, ReadError> {
        let read = self.github.remarks(repository, number);
        Ok(failpoint::around("ingest.github.remarks", read).await?)
    }

    /// Whether an account may write to a repository.
    pub(crate) async fn may_write(
        &self,
        repository: &RepositoryName,
        login: &str,
        account: u64,
    ) -> Result<bool, ReadError> {
        let read = self.github.permission(repository, login, account);
        let permission = failpoint::around("ingest.github.permission", read).await?;
        Ok(permission >= github::Permission::Write)
    }

    pub(crate) async fn mentioning(
        &self,
        repository: &RepositoryName,
        ticket: &TicketKey,
    ) -> Result<Vec<github::PullRequest>, ReadError> {
        let read = self.github.pull_requests_mentioning(repository, ticket);
        Ok(failpoint::around("ingest.github.mentioning", read).await?)
    }

    pub(crate) async fn pull_request(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<github::PullRequest, ReadError> {
        let read = self.github.pull_request(repository, number);
        Ok(failpoint::around("ingest.github.pull_request", read).await?)
    }

    /// Pull requests of anybody that changed since then; costs nothing of GitHub's limit when none did since the tag.
    pub(crate) async fn changed_pull_requests(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
        known: Option<&github::ETag>,
    ) -> Result<github::Polled, ReadError> {
        let read = self.github.pull_requests_changed_since(repository, since, known);
        Ok(failpoint::around("ingest.github.changed", read).await?)
    }

    /// The end of the log of a failed check; absent where nobody has it, or gives it soon. Red checks are told and repaired
    /// without it too. `command` is asked for what is no job of GitHub Actions.
    pub(crate) async fn job_log(
        &self,
        repository: &RepositoryName,
        check: &github::Check,
        command: &[String],
    ) -> Result<Option<String>, ReadError> {
        if check.actions_job().is_none() {
            return Ok(ci_logs::printed(command, repository, check, LOG_PATIENCE).await);
        }
        // Without its log a repair works blind, and what was slow once is often there the next time.
        let mut read = self.log_in_time(repository, check).await;
        if read.is_err() {
            tracing::info!(%repository, check = check.id, "a log did not come in time; it is asked for once more");
            read = self.log_in_time(repository, check).await;
        }
        match read {
            Ok(Err(limit @ (github::Error::RateLimited { .. } | github::Error::HeldBack { .. }))) => {
                Err(limit.into())
            }
            Ok(Err(error)) => {
                tracing::warn!(%repository, check = check.id, error = %chain(&error), "a log is not read");
                Ok(None)
            }
            Ok(Ok(log)) => Ok(log),
            Err(_) => {
                tracing::warn!(%repository, check = check.id, "a log did not come in time");
                Ok(None)
            }
        }
    }

    async fn log_in_time(
        &self,
        repository: &RepositoryName,
        check: &github::Check,
    ) -> Result<Result<Option<String>, github::Error>, tokio::time::error::Elapsed> {
        let read = tokio::time::timeout(LOG_PATIENCE / 2, self.github.job_log(repository, check));
        failpoint::around("ingest.github.job_log", read).await
    }

    pub(crate) async fn branch_checks(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Vec<github::Check>, ReadError> {
        let read = self.github.branch_checks(repository, branch);
        Ok(failpoint::around("ingest.github.branch_checks", read).await?)
    }

    /// The checks that must pass before a merge into a branch, as far as our account may know.
    pub(crate) async fn required_checks(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Vec<String>, ReadError> {
        let read = self.github.required_checks(repository, branch);
        Ok(failpoint::around("ingest.github.required_checks", read).await?)
    }

    /// The runs of GitHub Actions for a commit.
    pub(crate) async fn workflow_runs(
        &self,
        repository: &RepositoryName,
        head: &CommitId,
    ) -> Result<Vec<github::CommitRun>, ReadError> {
        Ok(self.github.workflow_runs(repository, head).await?)
    }

    /// What a pull request changes.
    pub(crate) async fn changed_files(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<domain::ChangedFile>, ReadError> {
        let read = self.github.changed_files(repository, number);
        Ok(failpoint::around("ingest.github.files", read).await?)
    }

    /// What a commit changes since another that it comes from.
    pub(crate) async fn changed_since(
        &self,
        repository: &RepositoryName,
        base: &CommitId,
        head: &CommitId,
    ) -> Result<Vec<domain::ChangedFile>, ReadError> {
        let read = self.github.changed_since(repository, base, head);
        Ok(failpoint::around("ingest.github.compare", read).await?)
    }

    /// The commits of a pull request, oldest first.
    pub(crate) async fn commits(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<CommitId>, ReadError> {
        let read = self.github.pull_request_commits(repository, number);
        Ok(failpoint::around("ingest.github.commits", read).await?)
    }

    /// The requests for reviews of a pull request, oldest first.
    pub(crate) async fn review_requests(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<github::ReviewRequest>, ReadError> {
        let read = self.github.review_requests(repository, number);
        Ok(failpoint::around("ingest.github.review_requests", read).await?)
    }

    /// The submitted reviews of a pull request, oldest first.
    pub(crate) async fn reviews(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<github::Review>, ReadError> {
        let read = self.github.reviews(repository, number);
        Ok(failpoint::around("ingest.github.reviews", read).await?)
    }

    pub(crate) async fn checks(
        &self,
        repository: &RepositoryName,
        head: &CommitId,
    ) -> Result<Vec<github::Check>, ReadError> {
        let read = self.github.checks(repository, head);
        Ok(failpoint::around("ingest.github.checks", read).await?)
    }
}
