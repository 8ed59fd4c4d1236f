//! Reading Jira and GitHub: the facts that decisions need, and two kinds of failure.

use std::{collections::BTreeSet, time::Duration};

pub(crate) use crate::read_error::ReadError;
use domain::{Account, CommitId, Instance, JiraRules, RepositoryName, TicketKey, Timestamp, cause::chain};

/// How long the log of a check is waited for: there are several, and a delivery has its own limit.
const LOG_PATIENCE: Duration = Duration::from_secs(3);

/// An issue as read from its tracker; raw text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Issue {
    pub(crate) summary: String,
    pub(crate) description: String,
    pub(crate) kind: String,
    pub(crate) priority: String,
    pub(crate) labels: Vec<String>,
    pub(crate) status: String,
    pub(crate) url: String,
    pub(crate) created: Option<Timestamp>,
    pub(crate) creator: Option<Account>,
    /// Moves between statuses at Jira, oldest first.
    pub(crate) moves: Vec<jira::StatusChange>,
    /// Edits of summary and description, oldest first. They are read after the text: whoever changes it in between is
    /// here.
    pub(crate) edits: Vec<Edit>,
    pub(crate) comments: Vec<Comment>,
    /// The accounts that wrote comments with our marker: ours.
    pub(crate) our_accounts: BTreeSet<String>,
    /// Issues that it is linked with.
    pub(crate) related: Vec<jira::Related>,
    /// Whose it is at GitHub, by login.
    pub(crate) assignees: Vec<String>,
    /// Assignments and labels at GitHub, oldest first.
    pub(crate) events: Vec<github::IssueEvent>,
}

/// A comment of an issue; raw text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) author: String,
    pub(crate) author_id: String,
    pub(crate) created: Timestamp,
    pub(crate) updated: Timestamp,
    pub(crate) text: String,
}

/// An edit of a ticket's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Its changelog entry at Jira; empty at GitHub, where edits have no names.
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    /// Absent when the tracker does not know any more.
    pub(crate) by: Option<Account>,
}

/// A ticket that waits in the status that asks for work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) ticket: TicketKey,
    pub(crate) status: String,
}

/// The reader accounts, of each instance one at Jira and one at GitHub.
pub(crate) struct Outside {
    jira: jira::Reader,
    github: github::Reader,
}

impl Outside {
    pub(crate) fn new(jira: jira::Reader, github: github::Reader) -> Self {
        Self { jira, github }
    }

    pub(crate) async fn issue(&self, ticket: &TicketKey) -> Result<Issue, ReadError> {
        if let TicketKey::GitHub { repository, number } = ticket {
            let read = self.github.issue(repository, *number);
            return Ok(failpoint::around("ingest.github.issue", read).await?.into());
        }
        let read = self.jira.issue(ticket);
        Ok(failpoint::around("ingest.jira.issue", read).await?.into())
    }

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

    /// The statuses that tickets of a project can have.
    pub(crate) async fn statuses(&self, project: &JiraRules) -> Result<BTreeSet<String>, ReadError> {
        let jira = self.jira.on(project.instance.as_ref());
        let read = jira.project_statuses(&project.project_key);
        Ok(failpoint::around("ingest.jira.statuses", read).await?)
    }

    /// Tickets of a project in a status.
    pub(crate) async fn ready(&self, project: &JiraRules, status: &str) -> Result<Vec<Ready>, ReadError> {
        let jira = self.jira.on(project.instance.as_ref());
        let search = jira.search_ready(&project.project_key, status, None);
        let stubs = failpoint::around("ingest.jira.search", search).await?;
        Ok(stubs
            .into_iter()
            .map(|stub| Ready {
                ticket: stub.key,
                status: stub.status,
            })
            .collect())
    }

    /// The ticket's last move into a status; `None` when it was created there.
    pub(crate) async fn last_move(
        &self,
        ticket: &TicketKey,
        status: &str,
    ) -> Result<Option<jira::StatusChange>, ReadError> {
        let read = self.jira.last_transition_to(ticket, status);
        Ok(failpoint::around("ingest.jira.last_move", read).await?)
    }

    /// Tickets of a project that changed since then, least recently changed first.
    pub(crate) async fn changed(
        &self,
        project: &JiraRules,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<jira::Changed, ReadError> {
        let minutes = now.since(since).as_secs() / 60 + 1;
        let jira = self.jira.on(project.instance.as_ref());
        let search = jira.changed_within(&project.project_key, minutes);
        Ok(failpoint::around("ingest.jira.changed", search).await?)
    }

    /// A ticket's comments since then, oldest first.
    pub(crate) async fn comments_since(
        &self,
        ticket: &TicketKey,
        since: Timestamp,
    ) -> Result<Vec<jira::Comment>, ReadError> {
        let read = self.jira.comments_since(ticket, since);
        Ok(failpoint::around("ingest.jira.comments", read).await?)
    }

    /// The edits of a ticket's text since then, oldest first.
    pub(crate) async fn text_edits_since(
        &self,
        ticket: &TicketKey,
        since: Timestamp,
    ) -> Result<Vec<Edit>, ReadError> {
        let read = self.jira.text_edits_since(ticket, since);
        let edits = failpoint::around("ingest.jira.edits", read).await?;
        Ok(edits.into_iter().map(Edit::from).collect())
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

    /// Issues with their descriptions.
    pub(crate) async fn outlines(
        &self,
        instance: Option<&Instance>,
        keys: &[&TicketKey],
    ) -> Result<Vec<jira::Outlined>, ReadError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let jira = self.jira.on(instance);
        let read = jira.outlines(keys);
        Ok(failpoint::around("ingest.jira.outlines", read).await?)
    }

    /// Unfinished issues of a ticket's project with one of these words in their title.
    pub(crate) async fn similar(
        &self,
        ticket: &TicketKey,
        words: &[String],
    ) -> Result<Vec<jira::Outlined>, ReadError> {
        let TicketKey::Jira { project, .. } = ticket else {
            return Ok(Vec::new());
        };
        let jira = self.jira.on(ticket.instance());
        let search = jira.similar(project, words);
        Ok(failpoint::around("ingest.jira.similar", search).await?)
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

    /// The names of an account's groups; none for an account that is not known.
    pub(crate) async fn jira_groups(
        &self,
        instance: Option<&Instance>,
        account: &str,
    ) -> Result<Vec<String>, ReadError> {
        let jira = self.jira.on(instance);
        let read = jira.groups(account);
        match failpoint::around("ingest.jira.groups", read).await {
            Err(jira::Error::NotFound { .. }) => Ok(Vec::new()),
            groups => Ok(groups?),
        }
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

    /// The end of the log of a failed check; absent where GitHub has none, or does not give it soon. Red checks are told
    /// and repaired without it too.
    pub(crate) async fn job_log(
        &self,
        repository: &RepositoryName,
        check: &github::Check,
    ) -> Result<Option<String>, ReadError> {
        let read = tokio::time::timeout(LOG_PATIENCE, self.github.job_log(repository, check));
        match failpoint::around("ingest.github.job_log", read).await {
            Ok(Err(limit @ github::Error::RateLimited { .. })) => Err(limit.into()),
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

    pub(crate) async fn branch_checks(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Vec<github::Check>, ReadError> {
        let read = self.github.branch_checks(repository, branch);
        Ok(failpoint::around("ingest.github.branch_checks", read).await?)
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

impl From<jira::Issue> for Issue {
    fn from(issue: jira::Issue) -> Self {
        // A marker stands on comments of ours only: what we said is no wish of a person.
        let (ours, people): (Vec<_>, Vec<_>) = issue
            .comments
            .into_iter()
            .partition(|comment| !comment.marker.is_empty());
        Self {
            summary: issue.summary,
            description: issue.description_markdown,
            kind: issue.kind,
            priority: issue.priority,
            labels: issue.labels,
            status: issue.status.name,
            url: issue.url,
            created: issue.created,
            creator: issue.creator,
            moves: issue.status_changes,
            edits: issue.text_edits.into_iter().map(Edit::from).collect(),
            comments: people.into_iter().map(Comment::from).collect(),
            our_accounts: ours
                .into_iter()
                .map(|comment| comment.author_account_id)
                .collect(),
            related: issue.related,
            assignees: Vec::new(),
            events: Vec::new(),
        }
    }
}

impl From<github::Issue> for Issue {
    fn from(issue: github::Issue) -> Self {
        Self {
            kind: kind_of(&issue.assigned.labels).to_owned(),
            summary: issue.title,
            description: issue.body,
            priority: String::new(),
            labels: issue.assigned.labels,
            status: if issue.is_open { OPEN } else { "closed" }.to_owned(),
            url: issue.url,
            created: issue.created_at,
            creator: issue.author.map(account),
            moves: Vec::new(),
            edits: issue.edits.into_iter().map(Edit::from).collect(),
            comments: issue.comments.into_iter().map(Comment::from).collect(),
            our_accounts: BTreeSet::new(),
            related: Vec::new(),
            assignees: issue.assigned.assignees,
            events: issue.events,
        }
    }
}

/// The status of an issue of GitHub that is not closed.
pub(crate) const OPEN: &str = "open";

/// GitHub has no kinds of issues that every repository uses; its usual labels say as much.
fn kind_of(labels: &[String]) -> &'static str {
    let has = |name: &str| labels.iter().any(|label| label.eq_ignore_ascii_case(name));
    match (has("bug"), has("enhancement") || has("feature")) {
        (true, _) => "Bug",
        (false, true) => "Feature",
        (false, false) => "",
    }
}

/// An account of GitHub: its number, and its login as people see it.
pub(crate) fn account(user: github::User) -> Account {
    Account {
        id: user.id.map(|id| id.to_string()).unwrap_or_default(),
        display_name: user.login,
    }
}

impl From<github::Edit> for Edit {
    fn from(edit: github::Edit) -> Self {
        Self {
            id: String::new(),
            at: edit.at,
            by: edit.by.map(account),
        }
    }
}

impl From<github::IssueComment> for Comment {
    fn from(comment: github::IssueComment) -> Self {
        let author = comment.author.map(account).unwrap_or_default();
        Self {
            author: author.display_name,
            author_id: author.id,
            created: comment.created_at,
            updated: comment.updated_at,
            text: comment.body,
        }
    }
}

impl From<jira::TextEdit> for Edit {
    fn from(edit: jira::TextEdit) -> Self {
        Self {
            id: edit.id.0,
            at: edit.at,
            by: edit.by,
        }
    }
}

impl From<jira::Comment> for Comment {
    fn from(comment: jira::Comment) -> Self {
        Self {
            author: comment.author,
            author_id: comment.author_account_id,
            created: comment.created,
            updated: comment.updated,
            text: comment.text,
        }
    }
}
