//! Types of this crate's answers: issues, comments, changes and transitions.

use std::fmt;

use domain::{TicketKey, Timestamp, TrackerAccount};
use serde_json::Value;

use crate::JiraDialect;

/// Id of one entry of an issue's changelog.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangelogId(pub String);

/// Id of a comment on an issue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JiraCommentId(pub String);

impl fmt::Display for ChangelogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for JiraCommentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Jira's three categories of status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusCategory {
    /// Work has not begun.
    ToDo,
    /// Work has begun.
    InProgress,
    /// Work is finished.
    Done,
}

/// Status of a workflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueStatus {
    /// Name, as the workflow's author wrote it.
    pub name: String,
    /// Category of the status.
    pub category: StatusCategory,
}

/// Issue with its comments and history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JiraIssue {
    /// Key on its instance.
    pub key: TicketKey,
    /// Title in one line.
    pub summary: String,
    /// Description in Markdown, with the acceptance criteria of custom fields.
    pub description_markdown: String,
    /// Name of its type: `Story`, `Bug` …
    pub kind: String,
    /// Name of its priority, e.g. `High`; empty when the project has no priorities.
    pub priority: String,
    /// Labels of the issue.
    pub labels: Vec<String>,
    /// Names of its components.
    pub components: Vec<String>,
    /// Present status in its workflow.
    pub status: IssueStatus,
    /// Time of the last move to another status; absent when it never moved.
    pub status_changed_at: Option<Timestamp>,
    /// Account that the issue is assigned to.
    pub assignee: Option<TrackerAccount>,
    /// Time of the last change of any kind.
    pub updated: Option<Timestamp>,
    /// Link to its page.
    pub url: String,
    /// Comments, oldest first; at most the latest 200.
    pub comments: Vec<JiraComment>,
    /// Time of its creation.
    pub created: Option<Timestamp>,
    /// Account that created it; absent when Jira no longer has it.
    pub creator: Option<TrackerAccount>,
    /// Moves between statuses, oldest first.
    pub status_changes: Vec<StatusChange>,
    /// Edits of summary and description, oldest first. Jira reads them after the texts, so they may be newer.
    pub text_edits: Vec<TextEdit>,
    /// Assignments, oldest first.
    pub assignments: Vec<AssigneeChange>,
    /// Linked issues: its parent first, then its links, then its subtasks.
    pub related: Vec<RelatedIssue>,
    /// Epic of the issue, where the site names it in a field of its own and `related` does not contain it.
    pub epic: Option<TicketKey>,
    /// Attachments, oldest first. Images that are pasted into a text are among them.
    pub attachments: Vec<JiraAttachment>,
}

/// Attachment of an issue, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JiraAttachment {
    /// Id at the site.
    pub id: String,
    /// Name of the file; several attachments may have the same.
    pub name: String,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Time of its upload.
    pub created: Option<Timestamp>,
    /// Address of its content, as the site names it.
    pub content: String,
}

/// Short form of an issue that another issue is linked with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedIssue {
    /// Key on the same instance.
    pub key: TicketKey,
    /// Relation of the two in Jira's words: `is blocked by`, `parent`, `subtask` …
    pub relation: String,
    /// Title in one line.
    pub summary: String,
    /// Name of its status.
    pub status: String,
}

/// Entry of a list of issues, with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueOutline {
    /// Key on its instance.
    pub key: TicketKey,
    /// Title in one line.
    pub summary: String,
    /// Name of its status.
    pub status: String,
    /// Description in Markdown; empty when it was not requested or cannot be parsed.
    pub description_markdown: String,
}

/// Move of an issue from one status to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusChange {
    /// Id of its changelog entry.
    pub id: ChangelogId,
    /// Name of the new status.
    pub to: String,
    /// Time of the move.
    pub at: Option<Timestamp>,
    /// Account that moved it.
    pub by: Option<TrackerAccount>,
}

/// Hit of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueHit {
    /// Numeric id, which stays when the key changes; absent when Jira omits it.
    pub id: Option<u64>,
    /// Key on its instance.
    pub key: TicketKey,
    /// Time of the last change of any kind.
    pub updated: Timestamp,
    /// Name of its status.
    pub status: String,
}

/// Result of a search for changed issues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssueChanges {
    /// Issues, least recently changed first.
    pub issues: Vec<ChangedIssue>,
    /// False when more issues changed than one search reads.
    pub is_complete: bool,
}

/// Issue that changed within the searched period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedIssue {
    /// Numeric id, which stays when the key changes; absent when Jira omits it.
    pub id: Option<u64>,
    /// Key on its instance.
    pub key: TicketKey,
    /// Time of the last change of any kind.
    pub updated: Timestamp,
    /// Time of its creation.
    pub created: Timestamp,
    /// Account that created it.
    pub creator: Option<TrackerAccount>,
    /// Name of its status.
    pub status: String,
    /// Account that the issue is assigned to.
    pub assignee: Option<TrackerAccount>,
}

/// Change of an issue's assignee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssigneeChange {
    /// Id of its changelog entry.
    pub id: ChangelogId,
    /// New assignee; absent when the issue was unassigned.
    pub to: Option<TrackerAccount>,
    /// Time of the change; absent when Jira omits it.
    pub at: Option<Timestamp>,
    /// Account that changed the assignee.
    pub by: Option<TrackerAccount>,
}

/// Text of an issue that users can edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextField {
    /// Title in one line.
    Summary,
    /// Description of the issue.
    Description,
    /// Custom field with acceptance criteria.
    Criteria,
}

/// Groups of a site whose names contain a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundGroups {
    /// Names in the order of the site.
    pub names: Vec<String>,
    /// True when the site has more of them.
    pub has_more: bool,
}

/// Projects of a site that an account sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundProjects {
    /// Keys in the order of the site.
    pub keys: Vec<String>,
    /// True when the account sees more of them.
    pub has_more: bool,
}

/// Edit of summary, description or acceptance criteria.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextEdit {
    /// Id of its changelog entry.
    pub id: ChangelogId,
    /// Time of the edit.
    pub at: Timestamp,
    /// Account that edited the text.
    pub by: Option<TrackerAccount>,
    /// Changed texts with their previous values, as the changelog has them: a description is in wiki markup.
    pub before: Vec<(TextField, String)>,
}

/// Comment on an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JiraComment {
    /// Id of the comment.
    pub id: JiraCommentId,
    /// Display name of its author.
    pub author: String,
    /// Id of the author's account.
    pub author_account_id: String,
    /// True when the author is a program.
    pub by_bot: bool,
    /// True when the author is a customer of a service desk.
    pub by_customer: bool,
    /// Time of its creation.
    pub created: Timestamp,
    /// Time of the last edit; equals `created` without an edit.
    pub updated: Timestamp,
    /// Text in Markdown.
    pub text: String,
    /// Ids of the accounts that its document mentions outside of quotations.
    pub mentioned: Vec<String>,
    /// Marker that Journeyman stored with the comment; empty without one.
    pub marker: String,
    /// True when our own account wrote it.
    pub by_us: bool,
}

/// Move that the workflow offers from the issue's present status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkflowTransition {
    /// Id of the transition.
    pub id: String,
    /// Name, e.g. `Start progress`.
    pub name: String,
    /// Status that it leads to.
    pub to: IssueStatus,
    /// Names of the required fields of its screen without a default, e.g. `Resolution`.
    pub asks_for: Vec<String>,
    /// All fields of its screen.
    pub screen: Vec<ScreenField>,
}

/// Field of a transition's screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreenField {
    /// Key in requests: `resolution`, `customfield_10010` …
    pub key: String,
    /// Display name of the field.
    pub name: String,
    /// True when the field is required and has no default.
    pub must: bool,
    /// Type in Jira's schema: `string`, `number`, `resolution`, `option`, `array` …
    pub kind: String,
    /// True when its text is a document of several lines.
    pub is_document: bool,
    /// Names of the permitted values, each with its JSON for requests; empty: any value of its type.
    pub allowed: Vec<(String, Value)>,
    /// Kind of the site, which determines the JSON of documents and accounts.
    pub dialect: JiraDialect,
}

/// Members of a project role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleMembers {
    /// Ids of the accounts.
    pub accounts: Vec<String>,
    /// Names of groups, whose members have the role as well.
    pub groups: Vec<String>,
}

/// Fields that a triage sets, with the links of the issue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TriageFields {
    /// Name of its priority; empty where the project has no priorities.
    pub priority: String,
    /// Name of its type.
    pub issue_type: String,
    /// Keys of linked issues (without instance), each with the name of the link type.
    pub links: Vec<(String, String)>,
}
