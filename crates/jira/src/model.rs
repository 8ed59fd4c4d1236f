//! What callers see of Jira.

use std::fmt;

use domain::{Account, TicketKey, Timestamp};
use serde_json::Value;

use crate::Dialect;

/// Id of one entry of an issue's changelog.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangelogId(pub String);

/// Id of a comment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommentId(pub String);

impl fmt::Display for ChangelogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for CommentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Jira's three kinds of status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusCategory {
    /// Not begun.
    ToDo,
    /// Begun.
    InProgress,
    /// Over.
    Done,
}

/// A status of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its name, as the workflow's author wrote it.
    pub name: String,
    /// Its kind.
    pub category: StatusCategory,
}

/// An issue with its discussion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Its key.
    pub key: TicketKey,
    /// The one-line title.
    pub summary: String,
    /// The description as Markdown.
    pub description_markdown: String,
    /// `Story`, `Bug` …
    pub kind: String,
    /// `High` …; empty when the project has none.
    pub priority: String,
    /// Labels.
    pub labels: Vec<String>,
    /// The names of its components.
    pub components: Vec<String>,
    /// Where it is in its workflow.
    pub status: Status,
    /// When it got there; absent when it never moved.
    pub status_changed_at: Option<Timestamp>,
    /// Who it is assigned to.
    pub assignee: Option<Account>,
    /// Last change of any kind.
    pub updated: Option<Timestamp>,
    /// Link for people.
    pub url: String,
    /// Comments, oldest first; the latest 200 at most.
    pub comments: Vec<Comment>,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Who made it; absent when Jira does not know any more.
    pub creator: Option<Account>,
    /// Moves between statuses, oldest first.
    pub status_changes: Vec<StatusChange>,
    /// Edits of summary and description, oldest first; read after these.
    pub text_edits: Vec<TextEdit>,
    /// Who it was assigned to, oldest first.
    pub assignments: Vec<Assignment>,
    /// Other issues that it is linked with: its parent first, then its links, then its parts.
    pub related: Vec<Related>,
}

/// Another issue, as an issue that is linked with it shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Related {
    /// Its key.
    pub key: TicketKey,
    /// What the one is to the other, in Jira's words: `is blocked by`, `parent`, `subtask` …
    pub relation: String,
    /// Its one-line title.
    pub summary: String,
    /// The name of its status.
    pub status: String,
}

/// An issue with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlined {
    /// Its key.
    pub key: TicketKey,
    /// Its one-line title.
    pub summary: String,
    /// The name of its status.
    pub status: String,
    /// The description as Markdown; empty where it was not asked for or cannot be read.
    pub description_markdown: String,
}

/// A move between statuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusChange {
    /// Its changelog entry.
    pub id: ChangelogId,
    /// The new status.
    pub to: String,
    /// When.
    pub at: Option<Timestamp>,
    /// Who moved it.
    pub by: Option<Account>,
}

/// A search hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueStub {
    /// Its key.
    pub key: TicketKey,
    /// Last change of any kind.
    pub updated: Timestamp,
    /// The name of its status.
    pub status: String,
}

/// What a search for changes found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Least recently changed first.
    pub issues: Vec<ChangedIssue>,
    /// False when there are more than one search gives.
    pub is_complete: bool,
}

/// An issue that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedIssue {
    /// Its key.
    pub key: TicketKey,
    /// Last change of any kind.
    pub updated: Timestamp,
    /// When it was made.
    pub created: Timestamp,
    /// Who made it.
    pub creator: Option<Account>,
    /// The name of its status.
    pub status: String,
    /// Who it is assigned to.
    pub assignee: Option<Account>,
}

/// An issue was given to somebody, or taken from somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Its changelog entry.
    pub id: ChangelogId,
    /// Who has it since; absent: nobody.
    pub to: Option<Account>,
    /// When; absent when Jira does not say.
    pub at: Option<Timestamp>,
    /// Who did it.
    pub by: Option<Account>,
}

/// A text of an issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextField {
    /// The one-line title.
    Summary,
    /// The description.
    Description,
    /// A field with acceptance criteria.
    Criteria,
}

/// Groups of a site that contain a text in their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundGroups {
    /// Their names, as the site lists them.
    pub names: Vec<String>,
    /// True when the site has more of them.
    pub has_more: bool,
}

/// An edit of summary, description or acceptance criteria.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextEdit {
    /// Its changelog entry.
    pub id: ChangelogId,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: Option<Account>,
    /// Each text that it changed, and what it was before: as Jira's changelog has it, a description in wiki markup.
    pub before: Vec<(TextField, String)>,
}

/// A comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// Its id.
    pub id: CommentId,
    /// Who wrote it, as people see the name.
    pub author: String,
    /// The author's account.
    pub author_account_id: String,
    /// True when the author is a program.
    pub by_bot: bool,
    /// True when the author is a customer of a service desk.
    pub by_customer: bool,
    /// When.
    pub created: Timestamp,
    /// When its text was changed last; `created` while it never was.
    pub updated: Timestamp,
    /// Markdown.
    pub text: String,
    /// Ids of the accounts that its document mentions outside of quotations.
    pub mentioned: Vec<String>,
    /// The marker that we gave it; empty without one.
    pub marker: String,
    /// True when our own account wrote it.
    pub by_us: bool,
}

/// A move that the workflow offers from where the issue is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Its id.
    pub id: String,
    /// Its name, e.g. `Start progress`.
    pub name: String,
    /// Where it leads.
    pub to: Status,
    /// Names of the fields of its screen that must be filled in and have no default, e.g. `Resolution`.
    pub asks_for: Vec<String>,
    /// Every field of its screen.
    pub screen: Vec<ScreenField>,
}

/// A field of a transition's screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreenField {
    /// As requests name it: `resolution`, `customfield_10010` …
    pub key: String,
    /// As people see it.
    pub name: String,
    /// Whether it must be filled in and has no default.
    pub must: bool,
    /// `string`, `number`, `resolution`, `option`, `array` … as Jira's schema says.
    pub kind: String,
    /// Whether its text is a document of several lines.
    pub is_document: bool,
    /// The names that it can have, with what stands for each in requests; empty: anything of its kind.
    pub allowed: Vec<(String, Value)>,
    /// How its site writes documents and accounts.
    pub dialect: Dialect,
}

/// Who plays a role in a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleMembers {
    /// Ids of accounts.
    pub accounts: Vec<String>,
    /// Names of groups, whose members play it too.
    pub groups: Vec<String>,
}

/// What an issue is sorted by, and which other issues it is linked with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sorted {
    /// The name of its priority; empty where the project has none.
    pub priority: String,
    /// The name of its type.
    pub issue_type: String,
    /// The keys of the issues that it is linked with, as people write them, each with the name of the type of link.
    pub links: Vec<(String, String)>,
}
