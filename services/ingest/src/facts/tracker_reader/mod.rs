//! Reads of Jira and GitHub for decisions, with two kinds of failure.

mod ci_logs;
mod github_reads;
mod jira_reads;

use std::collections::BTreeSet;

pub(crate) use crate::facts::read_error::ReadError;
use domain::{TicketKey, Timestamp, TrackerAccount};

/// Issue from its tracker, with raw text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrackerIssue {
    pub(crate) summary: String,
    pub(crate) description: String,
    pub(crate) kind: String,
    pub(crate) priority: String,
    pub(crate) labels: Vec<String>,
    /// Components of Jira; empty for GitHub.
    pub(crate) components: Vec<String>,
    pub(crate) status: String,
    pub(crate) url: String,
    pub(crate) created: Option<Timestamp>,
    pub(crate) creator: Option<TrackerAccount>,
    /// Status changes of Jira, oldest first.
    pub(crate) moves: Vec<jira::StatusChange>,
    /// Edits of summary and description, oldest first. They are read after the text, so an edit in between is included.
    pub(crate) edits: Vec<TrackerEdit>,
    pub(crate) comments: Vec<TrackerComment>,
    /// Accounts that wrote comments with our marker; they are ours.
    pub(crate) our_accounts: BTreeSet<String>,
    /// Issues that it is linked with.
    pub(crate) related: Vec<jira::RelatedIssue>,
    /// Epic of a Jira issue that is not among `related`.
    pub(crate) epic: Option<TicketKey>,
    /// Attachments of a Jira issue, oldest first. GitHub has them in its texts alone.
    pub(crate) attachments: Vec<jira::JiraAttachment>,
    /// Current assignees of the ticket.
    pub(crate) assignees: Vec<TrackerAccount>,
    /// Assignments, and labels of GitHub, oldest first.
    pub(crate) assignments: Vec<AssignmentEvent>,
    /// True for a closed issue, or one in a status of the category "done".
    pub(crate) is_over: bool,
    /// Lock of the conversation on GitHub; absent while it is not locked.
    pub(crate) lock: Option<github::ConversationLock>,
}

/// Comment of an issue, with raw text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrackerComment {
    pub(crate) author: String,
    pub(crate) author_id: String,
    /// True for a comment of a program.
    pub(crate) by_bot: bool,
    pub(crate) created: Timestamp,
    pub(crate) updated: Timestamp,
    pub(crate) text: String,
}

/// Assignment of a ticket, directly or by a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AssignmentEvent {
    /// Id of the entry in the changelog of Jira or the timeline of GitHub.
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    /// Absent when the tracker has lost the account.
    pub(crate) by: Option<TrackerAccount>,
    pub(crate) how: AssignmentKind,
}

/// Kind of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AssignmentKind {
    Assigned(TrackerAccount),
    Labeled(String),
}

/// Edit of a ticket's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrackerEdit {
    /// Id of the changelog entry of Jira; empty for GitHub, where edits have no ids.
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    /// Absent when the tracker has lost the account.
    pub(crate) by: Option<TrackerAccount>,
}

/// Ticket in the status that requests work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadyTicket {
    /// Numeric id of the issue.
    pub(crate) id: Option<u64>,
    pub(crate) ticket: TicketKey,
    pub(crate) status: String,
}

/// Open ticket as listed by its tracker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TitledTicket {
    pub(crate) key: TicketKey,
    pub(crate) summary: String,
    pub(crate) status: String,
}

/// Reader accounts: one of Jira and one of GitHub for each instance.
pub(crate) struct TrackerReader {
    jira: jira::JiraReader,
    github: github::GitHubReader,
}

impl TrackerReader {
    pub(crate) fn new(jira: jira::JiraReader, github: github::GitHubReader) -> Self {
        Self { jira, github }
    }

    /// Names of our reader accounts that are programs, and the failed requests. An account that a person may use is not
    /// included: actions of that person count, unless the settings name the account.
    pub(crate) async fn programs(&self) -> (Vec<String>, Vec<ReadError>) {
        let (mut names, mut failures) = (Vec::new(), Vec::new());
        for instance in self.github.instances() {
            match self.github.identity(instance).await {
                Ok(us) => names.extend(us.is_program().then_some(us.login)),
                Err(error) => failures.push(error.into()),
            }
        }
        for instance in self.jira.instances() {
            match self.jira.on(instance).myself().await {
                Ok(us) if us.is_bot => names.push(us.id),
                Ok(_) => {}
                Err(error) => failures.push(error.into()),
            }
        }
        (names, failures)
    }

    pub(crate) async fn issue(&self, ticket: &TicketKey) -> Result<TrackerIssue, ReadError> {
        if let TicketKey::GitHub { repository, number } = ticket {
            let read = self.github.issues().issue(repository, *number);
            return Ok(failpoint::around("ingest.github.issue", read).await?.into());
        }
        if let TicketKey::Discussion { repository, number } = ticket {
            return Ok(self.discussion(repository, *number).await?.into());
        }
        let read = self.jira.issue(ticket);
        Ok(failpoint::around("ingest.jira.issue", read).await?.into())
    }
}

impl TrackerIssue {
    /// True for the epic of the issue and for an issue that it is linked with.
    pub(crate) fn is_linked_with(&self, key: &TicketKey) -> bool {
        self.epic.as_ref() == Some(key) || self.related.iter().any(|other| other.key == *key)
    }
}

impl From<jira::JiraIssue> for TrackerIssue {
    fn from(issue: jira::JiraIssue) -> Self {
        // A marker is on our comments only. Our text is not a request of a user.
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
            components: issue.components,
            status: issue.status.name.clone(),
            url: issue.url,
            created: issue.created,
            creator: issue.creator,
            moves: issue.status_changes,
            edits: issue.text_edits.into_iter().map(TrackerEdit::from).collect(),
            comments: people.into_iter().map(TrackerComment::from).collect(),
            our_accounts: ours
                .into_iter()
                .map(|comment| comment.author_account_id)
                .collect(),
            related: issue.related,
            epic: issue.epic,
            attachments: issue.attachments,
            assignees: issue.assignee.into_iter().collect(),
            assignments: issue
                .assignments
                .into_iter()
                .filter_map(convert_assignment)
                .collect(),
            is_over: issue.status.category == jira::StatusCategory::Done,
            lock: None,
        }
    }
}

impl From<github::GitHubIssue> for TrackerIssue {
    fn from(issue: github::GitHubIssue) -> Self {
        Self {
            kind: guess_issue_kind(&issue.assigned.labels).to_owned(),
            summary: issue.title,
            description: issue.body,
            priority: String::new(),
            labels: issue.assigned.labels,
            components: Vec::new(),
            status: if issue.is_open { "open" } else { "closed" }.to_owned(),
            is_over: !issue.is_open,
            lock: issue.lock,
            url: issue.url,
            created: issue.created_at,
            creator: issue.author.map(convert_user),
            moves: Vec::new(),
            edits: issue.edits.into_iter().map(TrackerEdit::from).collect(),
            comments: issue.comments.into_iter().map(TrackerComment::from).collect(),
            our_accounts: BTreeSet::new(),
            related: Vec::new(),
            epic: None,
            attachments: Vec::new(),
            assignees: issue
                .assigned
                .assignees
                .into_iter()
                .map(build_login_account)
                .collect(),
            assignments: issue.events.into_iter().map(AssignmentEvent::from).collect(),
        }
    }
}

/// Conversion of a discussion. Its category becomes the kind.
impl From<github::GitHubDiscussion> for TrackerIssue {
    fn from(discussion: github::GitHubDiscussion) -> Self {
        Self {
            summary: discussion.title,
            description: discussion.body,
            kind: discussion.category,
            labels: discussion.labels,
            components: Vec::new(),
            status: if discussion.is_open { "open" } else { "closed" }.to_owned(),
            is_over: !discussion.is_open,
            lock: discussion.lock,
            url: discussion.url,
            created: discussion.created_at,
            creator: discussion.author.map(convert_user),
            comments: discussion
                .comments
                .into_iter()
                .map(TrackerComment::from)
                .collect(),
            ..Self::default()
        }
    }
}

impl TrackerComment {
    fn of_github_user(
        author: Option<github::GitHubUser>,
        text: String,
        created: Timestamp,
        updated: Timestamp,
    ) -> Self {
        let author = author.map(convert_user).unwrap_or_default();
        Self {
            author: author.display_name,
            author_id: author.id,
            by_bot: author.is_bot,
            created,
            updated,
            text,
        }
    }
}

impl From<github::DiscussionComment> for TrackerComment {
    fn from(comment: github::DiscussionComment) -> Self {
        Self::of_github_user(
            comment.author,
            comment.body,
            comment.created_at,
            comment.updated_at,
        )
    }
}

/// Converts an assignment from Jira's changelog; `None` for an unassignment or an entry without time.
fn convert_assignment(assignment: jira::AssigneeChange) -> Option<AssignmentEvent> {
    Some(AssignmentEvent {
        id: assignment.id.0,
        at: assignment.at?,
        by: assignment.by,
        how: AssignmentKind::Assigned(assignment.to?),
    })
}

impl From<github::IssueTimelineEvent> for AssignmentEvent {
    fn from(event: github::IssueTimelineEvent) -> Self {
        Self {
            id: event.id,
            at: event.at,
            by: event.by.map(convert_user),
            how: match event.wish {
                github::IssueWish::Assigned(login) => AssignmentKind::Assigned(build_login_account(login)),
                github::IssueWish::Labeled(label) => AssignmentKind::Labeled(label),
            },
        }
    }
}

/// Account of GitHub of which only the login is known.
fn build_login_account(login: String) -> TrackerAccount {
    TrackerAccount {
        id: String::new(),
        display_name: login,
        is_bot: false,
    }
}

/// Kind of a GitHub issue by its usual labels. GitHub has no issue types that every repository uses.
fn guess_issue_kind(labels: &[String]) -> &'static str {
    let has = |name: &str| labels.iter().any(|label| label.eq_ignore_ascii_case(name));
    match (has("bug"), has("enhancement") || has("feature")) {
        (true, _) => "Bug",
        (false, true) => "Feature",
        (false, false) => "",
    }
}

/// Account of GitHub: the numeric id, and the login as display name.
pub(crate) fn convert_user(user: github::GitHubUser) -> TrackerAccount {
    TrackerAccount {
        id: user.id.map(|id| id.to_string()).unwrap_or_default(),
        display_name: user.login,
        is_bot: user.is_bot,
    }
}

impl From<github::IssueEdit> for TrackerEdit {
    fn from(edit: github::IssueEdit) -> Self {
        Self {
            id: String::new(),
            at: edit.at,
            by: edit.by.map(convert_user),
        }
    }
}

impl From<github::IssueComment> for TrackerComment {
    fn from(comment: github::IssueComment) -> Self {
        Self::of_github_user(
            comment.author,
            comment.body,
            comment.created_at,
            comment.updated_at,
        )
    }
}

impl From<jira::TextEdit> for TrackerEdit {
    fn from(edit: jira::TextEdit) -> Self {
        Self {
            id: edit.id.0,
            at: edit.at,
            by: edit.by,
        }
    }
}

impl From<jira::JiraComment> for TrackerComment {
    fn from(comment: jira::JiraComment) -> Self {
        Self {
            author: comment.author,
            author_id: comment.author_account_id,
            // A customer of a service desk has no authority, like a program.
            by_bot: comment.by_bot || comment.by_customer,
            created: comment.created,
            updated: comment.updated,
            text: comment.text,
        }
    }
}
