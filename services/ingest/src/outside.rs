//! Reads of Jira and GitHub for decisions, with two kinds of failure.

mod ci_logs;
mod of_github;
mod of_jira;

use std::collections::BTreeSet;

pub(crate) use crate::read_error::ReadError;
use domain::{Account, TicketKey, Timestamp};

/// Issue from its tracker, with raw text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Issue {
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
    pub(crate) creator: Option<Account>,
    /// Status changes of Jira, oldest first.
    pub(crate) moves: Vec<jira::StatusChange>,
    /// Edits of summary and description, oldest first. They are read after the text, so an edit in between is included.
    pub(crate) edits: Vec<Edit>,
    pub(crate) comments: Vec<Comment>,
    /// Accounts that wrote comments with our marker; they are ours.
    pub(crate) our_accounts: BTreeSet<String>,
    /// Issues that it is linked with.
    pub(crate) related: Vec<jira::Related>,
    /// Current assignees of the ticket.
    pub(crate) assignees: Vec<Account>,
    /// Assignments, and labels of GitHub, oldest first.
    pub(crate) gifts: Vec<Gift>,
    /// True for a closed issue, or one in a status of the category "done".
    pub(crate) is_over: bool,
}

/// Comment of an issue, with raw text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
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
pub(crate) struct Gift {
    /// Id of the entry in the changelog of Jira or the timeline of GitHub.
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    /// Absent when the tracker has lost the account.
    pub(crate) by: Option<Account>,
    pub(crate) how: How,
}

/// Kind of an assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Assigned(Account),
    Labeled(String),
}

/// Edit of a ticket's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Id of the changelog entry of Jira; empty for GitHub, where edits have no ids.
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    /// Absent when the tracker has lost the account.
    pub(crate) by: Option<Account>,
}

/// Ticket in the status that requests work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) ticket: TicketKey,
    pub(crate) status: String,
}

/// Open ticket as listed by its tracker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Titled {
    pub(crate) key: TicketKey,
    pub(crate) summary: String,
    pub(crate) status: String,
}

/// Reader accounts: one of Jira and one of GitHub for each instance.
pub(crate) struct Outside {
    jira: jira::Reader,
    github: github::Reader,
}

impl Outside {
    pub(crate) fn new(jira: jira::Reader, github: github::Reader) -> Self {
        Self { jira, github }
    }

    /// Names of our reader accounts that are programs, and the failed requests. An account that a person may use is not
    /// included: actions of that person count, unless the settings name the account.
    pub(crate) async fn programs(&self) -> (Vec<String>, Vec<ReadError>) {
        let (mut names, mut failures) = (Vec::new(), Vec::new());
        for instance in self.github.instances() {
            match self.github.identity(instance).await {
                Ok(us) => names.extend(us.is_app.then_some(us.login)),
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

    pub(crate) async fn issue(&self, ticket: &TicketKey) -> Result<Issue, ReadError> {
        if let TicketKey::GitHub { repository, number } = ticket {
            let read = self.github.issue(repository, *number);
            return Ok(failpoint::around("ingest.github.issue", read).await?.into());
        }
        if let TicketKey::Discussion { repository, number } = ticket {
            return Ok(self.discussion(repository, *number).await?.into());
        }
        let read = self.jira.issue(ticket);
        Ok(failpoint::around("ingest.jira.issue", read).await?.into())
    }
}

impl From<jira::Issue> for Issue {
    fn from(issue: jira::Issue) -> Self {
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
            edits: issue.text_edits.into_iter().map(Edit::from).collect(),
            comments: people.into_iter().map(Comment::from).collect(),
            our_accounts: ours
                .into_iter()
                .map(|comment| comment.author_account_id)
                .collect(),
            related: issue.related,
            assignees: issue.assignee.into_iter().collect(),
            gifts: issue.assignments.into_iter().filter_map(gift).collect(),
            is_over: issue.status.category == jira::StatusCategory::Done,
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
            components: Vec::new(),
            status: if issue.is_open { "open" } else { "closed" }.to_owned(),
            is_over: !issue.is_open,
            url: issue.url,
            created: issue.created_at,
            creator: issue.author.map(account),
            moves: Vec::new(),
            edits: issue.edits.into_iter().map(Edit::from).collect(),
            comments: issue.comments.into_iter().map(Comment::from).collect(),
            our_accounts: BTreeSet::new(),
            related: Vec::new(),
            assignees: issue.assigned.assignees.into_iter().map(by_login).collect(),
            gifts: issue.events.into_iter().map(Gift::from).collect(),
        }
    }
}

/// Conversion of a discussion. Its category becomes the kind.
impl From<github::Discussion> for Issue {
    fn from(discussion: github::Discussion) -> Self {
        Self {
            summary: discussion.title,
            description: discussion.body,
            kind: discussion.category,
            labels: discussion.labels,
            components: Vec::new(),
            status: if discussion.is_open { "open" } else { "closed" }.to_owned(),
            is_over: !discussion.is_open,
            url: discussion.url,
            created: discussion.created_at,
            creator: discussion.author.map(account),
            comments: discussion.comments.into_iter().map(Comment::from).collect(),
            ..Self::default()
        }
    }
}

impl From<github::DiscussionComment> for Comment {
    fn from(comment: github::DiscussionComment) -> Self {
        let author = comment.author.map(account).unwrap_or_default();
        Self {
            author: author.display_name,
            author_id: author.id,
            by_bot: author.is_bot,
            created: comment.created_at,
            updated: comment.updated_at,
            text: comment.body,
        }
    }
}

/// Converts an assignment from Jira's changelog; `None` for an unassignment or an entry without time.
fn gift(assignment: jira::Assignment) -> Option<Gift> {
    Some(Gift {
        id: assignment.id.0,
        at: assignment.at?,
        by: assignment.by,
        how: How::Assigned(assignment.to?),
    })
}

impl From<github::IssueEvent> for Gift {
    fn from(event: github::IssueEvent) -> Self {
        Self {
            id: event.id,
            at: event.at,
            by: event.by.map(account),
            how: match event.wish {
                github::IssueWish::Assigned(login) => How::Assigned(by_login(login)),
                github::IssueWish::Labeled(label) => How::Labeled(label),
            },
        }
    }
}

/// Account of GitHub of which only the login is known.
fn by_login(login: String) -> Account {
    Account {
        id: String::new(),
        display_name: login,
        is_bot: false,
    }
}

/// Kind of a GitHub issue by its usual labels. GitHub has no issue types that every repository uses.
fn kind_of(labels: &[String]) -> &'static str {
    let has = |name: &str| labels.iter().any(|label| label.eq_ignore_ascii_case(name));
    match (has("bug"), has("enhancement") || has("feature")) {
        (true, _) => "Bug",
        (false, true) => "Feature",
        (false, false) => "",
    }
}

/// Account of GitHub: the numeric id, and the login as display name.
pub(crate) fn account(user: github::User) -> Account {
    Account {
        id: user.id.map(|id| id.to_string()).unwrap_or_default(),
        display_name: user.login,
        is_bot: user.is_bot,
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
            by_bot: author.is_bot,
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
            // A customer of a service desk has no authority, like a program.
            by_bot: comment.by_bot || comment.by_customer,
            created: comment.created,
            updated: comment.updated,
            text: comment.text,
        }
    }
}
