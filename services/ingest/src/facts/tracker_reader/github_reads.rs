//! Reads of GitHub.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use domain::{CommitId, InstanceName, RepositoryName, TicketKey, Timestamp, cause::format_error_chain};

use super::{ReadError, TitledTicket, TrackerReader, ci_logs};

// Time limit of both attempts to read the log of a check. A commit has several logs, and the delivery has a limit too.
const LOG_PATIENCE: Duration = Duration::from_secs(3);

impl TrackerReader {
    /// Lists the open issues of a repository among the 100 that changed last, and all that changed since then, latest change
    /// first. Costs nothing of GitHub's limit when none changed since the `ETag`.
    pub(crate) async fn changed_issues(
        &self,
        repository: &RepositoryName,
        since: Option<Timestamp>,
        known: Option<&github::ETag>,
    ) -> Result<github::IssuePoll, ReadError> {
        let read = self.github.issues().open_issues(repository, since, known);
        Ok(failpoint::around("ingest.github.issues", read).await?)
    }

    /// Checks that an issue is still at its place, and returns the `ETag` for the next check. Costs nothing of GitHub's
    /// limit when it did not change since the `ETag`.
    pub(crate) async fn issue_presence(
        &self,
        repository: &RepositoryName,
        number: u64,
        known: Option<&github::ETag>,
    ) -> Result<Option<github::ETag>, ReadError> {
        let issues = self.github.issues();
        let read = issues.check_presence(repository, number, known);
        Ok(failpoint::around("ingest.github.presence", read).await?)
    }

    /// Lists the discussions of a repository that changed since then, latest change first.
    pub(crate) async fn changed_discussions(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<Vec<github::DiscussionStub>, ReadError> {
        let read = self.github.discussions().changed_discussions(repository, since);
        Ok(failpoint::around("ingest.github.discussions", read).await?)
    }

    pub(crate) async fn discussion(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<github::GitHubDiscussion, ReadError> {
        let read = self.github.discussions().discussion(repository, number);
        Ok(failpoint::around("ingest.github.discussion", read).await?)
    }

    /// True for an address at which the repository's GitHub keeps attached files.
    pub(crate) fn is_attachment_on_github(&self, repository: &RepositoryName, address: &str) -> bool {
        self.github.attachments().is_readable(repository, address)
    }

    /// Reads the content of an attached file; `None` above this many bytes.
    pub(crate) async fn github_attachment(
        &self,
        repository: &RepositoryName,
        address: &str,
        most_bytes: usize,
    ) -> Result<Option<Vec<u8>>, ReadError> {
        let read = self
            .github
            .attachments()
            .attachment(repository, address, most_bytes);
        Ok(failpoint::around("ingest.github.attachment", read).await?)
    }

    /// Reads the addresses in the rendered texts of an issue, pull request or discussion.
    pub(crate) async fn rendered_addresses(
        &self,
        repository: &RepositoryName,
        number: u64,
        thread: github::AttachmentThread,
    ) -> Result<Vec<String>, ReadError> {
        let attachments = self.github.attachments();
        let read = attachments.rendered_addresses(repository, number, thread);
        Ok(failpoint::around("ingest.github.rendered", read).await?)
    }

    /// Titles of the 100 open issues of a repository that changed last.
    pub(super) async fn open_titles(
        &self,
        repository: &RepositoryName,
    ) -> Result<Vec<TitledTicket>, ReadError> {
        let polled = self.changed_issues(repository, None, None).await?;
        let github::IssuePoll::Changed { issues, .. } = polled else {
            return Ok(Vec::new());
        };
        let titled = issues.into_iter().map(|issue| TitledTicket {
            key: TicketKey::GitHub {
                repository: repository.clone(),
                number: issue.number,
            },
            summary: issue.title,
            status: "open".to_owned(),
        });
        Ok(titled.collect())
    }

    /// Lists the issues of a repository in a state, latest change first.
    pub(crate) async fn list_issues(
        &self,
        repository: &RepositoryName,
        state: github::IssueListState,
    ) -> Result<Vec<github::ListedIssue>, ReadError> {
        let read = self.github.issues().list_issues(repository, state);
        Ok(failpoint::around("ingest.github.list", read).await?)
    }

    /// Lists new comments on a repository's pull requests and issues.
    pub(crate) async fn repository_comments(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<github::RepositoryComments, ReadError> {
        let read = self.github.comments().comments_since(repository, since);
        Ok(failpoint::around("ingest.github.comments", read).await?)
    }

    /// GitHub instances: the default one (`None`) and the named ones.
    pub(crate) fn github_instances(&self) -> Vec<Option<InstanceName>> {
        self.github
            .instances()
            .map(Option::<&InstanceName>::cloned)
            .collect()
    }

    /// Lists an instance's attempts to deliver webhooks, newest first, in parts; `None` when our account is not an App.
    pub(crate) async fn hook_deliveries(
        &self,
        instance: Option<&InstanceName>,
        since: Timestamp,
        from: Option<&github::DeliveryCursor>,
    ) -> Result<Option<github::DeliveryLogPart>, ReadError> {
        let read = self.github.deliveries().hook_deliveries(instance, since, from);
        match failpoint::around("ingest.github.hook_deliveries", read).await {
            // Only an App can read its delivery log; GitHub refuses a personal token with 401.
            Err(github::Error::Unauthorized { .. }) => Ok(None),
            deliveries => Ok(Some(deliveries?)),
        }
    }

    /// Reads the payload of a delivery attempt.
    pub(crate) async fn hook_payload(
        &self,
        instance: Option<&InstanceName>,
        id: u64,
    ) -> Result<serde_json::Value, ReadError> {
        let read = self.github.deliveries().hook_payload(instance, id);
        Ok(failpoint::around("ingest.github.hook_payload", read).await?)
    }

    /// Lists pull requests of any author that were closed or merged and changed since then.
    pub(crate) async fn closed_pull_requests(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
    ) -> Result<Vec<github::PullRequest>, ReadError> {
        let read = self
            .github
            .pull_requests()
            .closed_pull_requests_since(repository, since);
        Ok(failpoint::around("ingest.github.closed", read).await?)
    }

    /// Lists the comments and reviews of a pull request.
    pub(crate) async fn remarks(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<github::PullRequestRemark>, ReadError> {
        let read = self.github.reviews().remarks(repository, number);
        Ok(failpoint::around("ingest.github.remarks", read).await?)
    }

    /// True when an account may write to a repository.
    pub(crate) async fn may_write(
        &self,
        repository: &RepositoryName,
        login: &str,
        account: u64,
    ) -> Result<bool, ReadError> {
        let read = self.github.permission(repository, login, account);
        let permission = failpoint::around("ingest.github.permission", read).await?;
        Ok(permission >= github::RepositoryPermission::Write)
    }

    pub(crate) async fn mentioning(
        &self,
        repository: &RepositoryName,
        ticket: &TicketKey,
    ) -> Result<Vec<github::PullRequest>, ReadError> {
        let read = self
            .github
            .pull_requests()
            .pull_requests_mentioning(repository, ticket);
        Ok(failpoint::around("ingest.github.mentioning", read).await?)
    }

    pub(crate) async fn pull_request(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<github::PullRequest, ReadError> {
        let read = self.github.pull_requests().pull_request(repository, number);
        Ok(failpoint::around("ingest.github.pull_request", read).await?)
    }

    /// Lists pull requests of any author that changed since then. Costs nothing of GitHub's limit when none changed since
    /// the `ETag`.
    pub(crate) async fn changed_pull_requests(
        &self,
        repository: &RepositoryName,
        since: Timestamp,
        known: Option<&github::ETag>,
    ) -> Result<github::PullRequestPoll, ReadError> {
        let read = self
            .github
            .pull_requests()
            .pull_requests_changed_since(repository, since, known);
        Ok(failpoint::around("ingest.github.changed", read).await?)
    }

    /// Reads the end of the log of a failed check; `None` when it is unavailable or late. Failed checks are reported and
    /// repaired without it too. `command` serves checks that are not jobs of GitHub Actions.
    pub(crate) async fn job_log(
        &self,
        repository: &RepositoryName,
        check: &github::CommitCheck,
        command: &[String],
    ) -> Result<Option<String>, ReadError> {
        if check.actions_job().is_none() {
            return Ok(ci_logs::read_printed_log(command, repository, check, LOG_PATIENCE).await);
        }
        // A repair without the log has little to work with, and a log that was late once is often ready at the second
        // attempt.
        let mut read = self.log_in_time(repository, check).await;
        if read.is_err() {
            tracing::info!(%repository, check = check.id, "a log did not come in time; it is asked for once more");
            read = self.log_in_time(repository, check).await;
        }
        match read {
            // A rate limit delays the whole delivery. Any other failure costs only the log.
            Ok(Err(limit @ (github::Error::RateLimited { .. } | github::Error::HeldBack { .. }))) => {
                Err(limit.into())
            }
            Ok(Err(error)) => {
                tracing::warn!(%repository, check = check.id, error = %format_error_chain(&error), "a log is not read");
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
        check: &github::CommitCheck,
    ) -> Result<Result<Option<String>, github::Error>, tokio::time::error::Elapsed> {
        let read = tokio::time::timeout(LOG_PATIENCE / 2, self.github.checks().job_log(repository, check));
        failpoint::around("ingest.github.job_log", read).await
    }

    /// Reads everything that can keep a pull request from being merged.
    pub(crate) async fn snapshot(
        &self,
        repository: &RepositoryName,
        number: u64,
        scope: github::SnapshotScope,
    ) -> Result<domain::PullRequestSnapshot, ReadError> {
        let read = Box::pin(self.github.health().snapshot(repository, number, scope));
        Ok(failpoint::around("ingest.github.snapshot", read).await?)
    }

    /// Lists the states of the heads of these open pull requests; `None` where GitHub or our account lacks a part of the
    /// query.
    pub(crate) async fn open_heads(
        &self,
        repository: &RepositoryName,
        numbers: &BTreeSet<u64>,
    ) -> Result<Option<BTreeMap<u64, github::HeadState>>, ReadError> {
        let read = self.github.health().open_heads(repository, numbers);
        Ok(failpoint::around("ingest.github.heads", read).await?)
    }

    pub(crate) async fn branch_checks(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Vec<github::CommitCheck>, ReadError> {
        let read = self.github.checks().branch_checks(repository, branch);
        Ok(failpoint::around("ingest.github.branch_checks", read).await?)
    }

    /// Lists the checks that GitHub requires before a merge into a branch, as far as our account may see them.
    pub(crate) async fn required_checks(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Vec<String>, ReadError> {
        let read = self.github.checks().required_checks(repository, branch);
        Ok(failpoint::around("ingest.github.required_checks", read).await?)
    }

    /// Lists the runs of GitHub Actions for a commit.
    pub(crate) async fn workflow_runs(
        &self,
        repository: &RepositoryName,
        head: &CommitId,
    ) -> Result<Vec<github::CommitRun>, ReadError> {
        Ok(self.github.checks().workflow_runs(repository, head).await?)
    }

    /// Lists the changed files of a pull request.
    pub(crate) async fn changed_files(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<domain::PullRequestFile>, ReadError> {
        let read = self.github.reviews().changed_files(repository, number);
        Ok(failpoint::around("ingest.github.files", read).await?)
    }

    /// Lists the changed files between a commit and its descendant.
    pub(crate) async fn changed_since(
        &self,
        repository: &RepositoryName,
        base: &CommitId,
        head: &CommitId,
    ) -> Result<Vec<domain::PullRequestFile>, ReadError> {
        let read = self.github.reviews().changed_since(repository, base, head);
        Ok(failpoint::around("ingest.github.compare", read).await?)
    }

    /// Lists the commits of a pull request, oldest first.
    pub(crate) async fn commits(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<CommitId>, ReadError> {
        let read = self
            .github
            .pull_requests()
            .pull_request_commits(repository, number);
        Ok(failpoint::around("ingest.github.commits", read).await?)
    }

    /// Lists the review requests of a pull request, oldest first.
    pub(crate) async fn review_requests(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<github::ReviewRequest>, ReadError> {
        let read = self.github.reviews().review_requests(repository, number);
        Ok(failpoint::around("ingest.github.review_requests", read).await?)
    }

    /// Lists the submitted reviews of a pull request, oldest first.
    pub(crate) async fn reviews(
        &self,
        repository: &RepositoryName,
        number: u64,
    ) -> Result<Vec<github::PullRequestReview>, ReadError> {
        let read = self.github.reviews().reviews(repository, number);
        Ok(failpoint::around("ingest.github.reviews", read).await?)
    }

    pub(crate) async fn checks(
        &self,
        repository: &RepositoryName,
        head: &CommitId,
    ) -> Result<Vec<github::CommitCheck>, ReadError> {
        let read = self.github.checks().checks(repository, head);
        Ok(failpoint::around("ingest.github.checks", read).await?)
    }
}
