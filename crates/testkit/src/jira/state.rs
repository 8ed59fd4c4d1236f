//! State of the Jira stand-in: tickets, comments, links.

use serde_json::Value;
use tokio::time::Instant;

/// Account that acts on tickets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JiraAccount {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) email: String,
}

/// Prefix of users' account ids.
pub(super) const PEOPLE: &str = "557058:";

impl JiraAccount {
    pub(super) fn person(name: &str) -> Self {
        let word: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_lowercase()
                } else {
                    '-'
                }
            })
            .collect();
        Self {
            id: format!("{PEOPLE}{word}"),
            name: name.to_owned(),
            email: format!("{word}@people.test"),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct TicketCommentRecord {
    pub(super) id: u64,
    /// Id of the issue.
    pub(super) issue: u64,
    pub(super) author: JiraAccount,
    /// Account of the last edit.
    pub(super) editor: JiraAccount,
    pub(super) body: Value,
    pub(super) created: String,
    pub(super) updated: String,
    pub(super) properties: Vec<Value>,
    /// Visibility as Jira writes it; absent means public.
    pub(super) visibility: Option<Value>,
    pub(super) made: Instant,
}

#[derive(Debug, Clone)]
pub(super) struct ChangelogEntry {
    pub(super) id: u64,
    pub(super) author: JiraAccount,
    pub(super) created: String,
    pub(super) items: Vec<Value>,
}

#[derive(Debug, Clone)]
pub(super) struct RemoteLink {
    pub(super) id: u64,
    pub(super) global_id: String,
    pub(super) object: Value,
    pub(super) relationship: Option<String>,
    pub(super) application: Option<Value>,
}

#[derive(Debug, Clone)]
pub(super) struct TicketRecord {
    pub(super) id: u64,
    pub(super) key: String,
    pub(super) project: String,
    pub(super) summary: String,
    pub(super) description: Value,
    pub(super) kind: String,
    /// Name of the priority.
    pub(super) priority: &'static str,
    pub(super) labels: Vec<String>,
    pub(super) components: Vec<String>,
    /// Values of the custom fields, by name.
    pub(super) custom: Vec<(String, CustomFieldValue)>,
    pub(super) assignee: Option<JiraAccount>,
    /// Name of the resolution; set while the status is done.
    pub(super) resolution: Option<&'static str>,
    pub(super) status: usize,
    pub(super) created: String,
    pub(super) updated: String,
    pub(super) status_changed: String,
    pub(super) comments: Vec<TicketCommentRecord>,
    pub(super) histories: Vec<ChangelogEntry>,
    pub(super) links: Vec<RemoteLink>,
    pub(super) attachments: Vec<super::attachments::AttachmentRecord>,
}

/// Value of a custom field.
#[derive(Debug, Clone)]
pub(super) enum CustomFieldValue {
    Choice(String),
    /// Document in ADF, or wiki markup on a Data Center.
    Text(Value),
    /// Key of an issue.
    Issue(String),
}

/// Name of the custom field with the epic of a ticket.
pub(super) const EPIC_LINK: &str = "Epic Link";

/// Default priorities and issue types of projects.
pub(super) const PRIORITIES: [&str; 5] = ["Highest", "High", "Medium", "Low", "Lowest"];
pub(super) const TYPES: [&str; 4] = ["Bug", "Epic", "Story", "Task"];

/// Resolutions of the site: id and name.
pub(super) const RESOLUTIONS: [(&str, &str); 2] = [("10001", "Won't Do"), ("10000", DONE)];
/// Resolution of a ticket that moves to a done status without another one.
pub(super) const DONE: &str = "Done";

/// Returns the id of a resolution.
pub(super) fn resolution_id(name: &str) -> Option<&'static str> {
    let found = RESOLUTIONS.iter().find(|(_, known)| *known == name);
    found.map(|(id, _)| *id)
}

/// Default link types of Jira: name, inward description, outward description.
pub(super) const LINK_TYPES: [(&str, &str, &str); 3] = [
    ("Blocks", "is blocked by", "blocks"),
    ("Duplicate", "is duplicated by", "duplicates"),
    ("Relates", "relates to", "relates to"),
];

/// Link between two issues.
#[derive(Debug, Clone)]
pub(super) struct TicketLink {
    pub(super) id: u64,
    pub(super) kind: RelationKind,
    /// Key of the blocking issue or of the parent.
    pub(super) from: String,
    pub(super) to: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RelationKind {
    /// Index of the type in [`LINK_TYPES`].
    Link(usize),
    Parent,
}

impl TicketLink {
    /// Creates a link. `kind` is the name of a link type, or `Parent`.
    pub(super) fn new(id: u64, kind: &str, from: &str, to: &str) -> Option<Self> {
        let link = LINK_TYPES
            .iter()
            .position(|(name, ..)| *name == kind)
            .map(RelationKind::Link);
        let kind = link.or((kind == "Parent").then_some(RelationKind::Parent))?;
        Some(Self {
            id,
            kind,
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }

    /// Name of the link type; absent for a parent.
    pub(super) fn link_type(&self) -> Option<&'static str> {
        match self.kind {
            RelationKind::Link(number) => Some(LINK_TYPES[number].0),
            RelationKind::Parent => None,
        }
    }

    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.kind, &self.from, &self.to) == (other.kind, &other.from, &other.to)
    }
}

/// Status of the workflow.
#[derive(Debug, Clone)]
pub(super) struct WorkflowStatus {
    pub(super) name: String,
    pub(super) category: String,
}

pub(super) fn status_id(index: usize) -> String {
    (10_000 + index).to_string()
}

/// Returns the current time in Jira's format, such as `2026-01-02T03:04:05.678+0000`.
pub(super) fn jira_now() -> String {
    let format = time::macros::format_description!(
        "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]+0000"
    );
    time::OffsetDateTime::now_utc().format(format).unwrap_or_default()
}

pub(super) fn jira_time(text: &str) -> Option<time::OffsetDateTime> {
    let format = time::macros::format_description!(
        "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]+0000"
    );
    time::PrimitiveDateTime::parse(text, format)
        .ok()
        .map(time::PrimitiveDateTime::assume_utc)
}
