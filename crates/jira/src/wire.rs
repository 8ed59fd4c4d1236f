//! Jira's JSON, as far as it is read here, and its translation into the model.

use std::{collections::BTreeMap, fmt::Write as _};

use domain::{Instance, TicketKey, Timestamp, json};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};
use time::{OffsetDateTime, macros::format_description};

use crate::{
    Account, ChangedIssue, ChangelogId, Comment, CommentId, Error, Issue, IssueStub, Status, StatusCategory,
    StatusChange, TextEdit, TextField, Transition, adf, error::capped,
};

/// Key of the comment property that holds our marker.
pub(crate) const MARKER: &str = "journeyman";

/// Stands for a comment that is nested too deeply.
const TOO_DEEP: &str = "[This comment is nested too deeply to be read.]";

/// Accounts read a date in JQL in their own time zone, at most this far behind UTC.
const ZONE_MARGIN_MS: i64 = 12 * 3600 * 1000;

/// A group of people.
#[derive(Deserialize)]
pub(crate) struct WireGroup {
    pub(crate) name: String,
}

/// What our own account may do.
#[derive(Deserialize)]
pub(crate) struct WirePermissions {
    pub(crate) permissions: BTreeMap<String, WirePermission>,
}

/// One permission.
#[derive(Deserialize)]
pub(crate) struct WirePermission {
    #[serde(rename = "havePermission", default)]
    pub(crate) is_held: bool,
}

/// A project's statuses, issue type by issue type.
#[derive(Deserialize)]
pub(crate) struct WireTypeStatuses {
    #[serde(default)]
    pub(crate) statuses: Vec<WireStatusName>,
}

/// A status by its name.
#[derive(Deserialize)]
pub(crate) struct WireStatusName {
    pub(crate) name: String,
}

/// Who plays a role in a project.
#[derive(Deserialize)]
pub(crate) struct WireRole {
    #[serde(default)]
    pub(crate) actors: Vec<WireActor>,
}

/// An account or a group that plays a role.
#[derive(Deserialize)]
pub(crate) struct WireActor {
    #[serde(rename = "actorUser")]
    pub(crate) user: Option<WireAccount>,
    #[serde(rename = "actorGroup")]
    pub(crate) group: Option<WireGroup>,
}

/// The issue's address; refuses tickets of other trackers.
pub(crate) fn issue_path(key: &TicketKey) -> Result<String, Error> {
    match key {
        TicketKey::Jira { .. } => Ok(format!("/rest/api/3/issue/{}", key.short())),
        TicketKey::GitHub { .. } => Err(Error::Rejected {
            detail: format!("{key} is not a Jira issue"),
        }),
    }
}

/// Percent-encodes one path segment.
pub(crate) fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

/// The search for issues that are ready. Its date is too early by up to a day; hits are compared exactly afterwards.
pub(crate) fn ready_jql(project: &str, status: &str, updated_since: Option<Timestamp>) -> String {
    let mut jql = format!("project = {} AND status = {}", quoted(project), quoted(status));
    if let Some(minute) = updated_since.and_then(|since| jql_minute(since.plus_ms(-ZONE_MARGIN_MS))) {
        let _ = write!(jql, " AND updated >= {}", quoted(&minute));
    }
    jql.push_str(" ORDER BY updated ASC");
    jql
}

/// The search for what changed lately. A relative date means the same in every account's time zone.
pub(crate) fn changed_jql(project: &str, minutes: u64) -> String {
    let period = quoted(&format!("-{minutes}m"));
    format!(
        "project = {} AND updated >= {period} ORDER BY updated ASC",
        quoted(project)
    )
}

fn jql_minute(at: Timestamp) -> Option<String> {
    let at = OffsetDateTime::from_unix_timestamp(at.unix_s()).ok()?;
    at.format(format_description!("[year]-[month]-[day] [hour]:[minute]"))
        .ok()
}

fn quoted(text: &str) -> String {
    let escaped = text.chars().fold(String::new(), |mut escaped, c| {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
        escaped
    });
    format!("\"{escaped}\"")
}

#[derive(Clone, Deserialize)]
pub(crate) struct WireAccount {
    #[serde(rename = "accountId")]
    account_id: Option<String>,
    // Data Center has names instead of account ids.
    name: Option<String>,
    #[serde(rename = "displayName", default)]
    display_name: String,
}

impl From<WireAccount> for Account {
    fn from(wire: WireAccount) -> Self {
        Self {
            id: wire.account_id.or(wire.name).unwrap_or_default(),
            display_name: wire.display_name,
        }
    }
}

#[derive(Deserialize)]
struct WireName {
    name: String,
}

#[derive(Deserialize)]
struct WireStatus {
    name: String,
    #[serde(rename = "statusCategory")]
    category: Option<WireCategory>,
}

#[derive(Deserialize)]
struct WireCategory {
    #[serde(default)]
    key: String,
}

impl From<WireStatus> for Status {
    fn from(wire: WireStatus) -> Self {
        let category = match wire.category.as_ref().map(|category| category.key.as_str()) {
            Some("done") => StatusCategory::Done,
            Some("indeterminate") => StatusCategory::InProgress,
            Some(_) | None => StatusCategory::ToDo,
        };
        Self {
            name: wire.name,
            category,
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct WireStatusOnly {
    fields: WireStatusField,
}

#[derive(Deserialize)]
struct WireStatusField {
    status: WireStatus,
}

impl From<WireStatusOnly> for Status {
    fn from(wire: WireStatusOnly) -> Self {
        wire.fields.status.into()
    }
}

#[derive(Deserialize)]
pub(crate) struct WireIssue {
    fields: WireFields,
}

#[derive(Deserialize)]
struct WireFields {
    #[serde(default)]
    summary: String,
    /// Read by itself, so that a text that cannot be read is known by its place.
    description: Option<Box<RawValue>>,
    issuetype: Option<WireName>,
    priority: Option<WireName>,
    #[serde(default)]
    labels: Vec<String>,
    status: WireStatus,
    assignee: Option<WireAccount>,
    updated: Option<String>,
    created: Option<String>,
    creator: Option<WireAccount>,
}

impl WireIssue {
    pub(crate) fn into_issue(
        self,
        key: &TicketKey,
        url: String,
        comments: Vec<Comment>,
        (status_changes, text_edits): (Vec<StatusChange>, Vec<TextEdit>),
    ) -> Result<Issue, Error> {
        let fields = self.fields;
        let description = fields.description.as_deref();
        let description = description.map_or(Ok(String::new()), |raw| markdown(raw, "the description"))?;
        Ok(Issue {
            key: key.clone(),
            summary: fields.summary,
            description_markdown: description,
            kind: fields.issuetype.map(|kind| kind.name).unwrap_or_default(),
            priority: fields.priority.map(|priority| priority.name).unwrap_or_default(),
            labels: fields.labels,
            status: fields.status.into(),
            status_changed_at: status_changes.last().and_then(|change| change.at),
            assignee: fields.assignee.map(Account::from),
            updated: fields.updated.as_deref().and_then(Timestamp::parse),
            url,
            comments,
            created: fields.created.as_deref().and_then(Timestamp::parse),
            creator: fields.creator.map(Account::from),
            status_changes,
            text_edits,
        })
    }
}

/// A text of Jira as Markdown.
fn markdown(raw: &RawValue, what: &str) -> Result<String, Error> {
    match json::from_slice::<Value>(raw.get().as_bytes()) {
        Ok(document) => Ok(adf::to_markdown(&document)),
        Err(json::Error::TooDeep) => Err(Error::TooDeep {
            what: what.to_owned(),
        }),
        Err(json::Error::Unreadable(_)) => Err(Error::Malformed {
            detail: what.to_owned(),
        }),
    }
}

#[derive(Deserialize)]
pub(crate) struct WireSearch {
    #[serde(default)]
    pub(crate) issues: Vec<WireStub>,
    #[serde(rename = "nextPageToken")]
    pub(crate) next_page_token: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct WireStub {
    key: String,
    fields: WireStubFields,
}

#[derive(Deserialize)]
struct WireStubFields {
    updated: String,
    status: WireName,
    created: Option<String>,
    creator: Option<WireAccount>,
}

fn key(text: &str, instance: Option<&Instance>) -> Result<TicketKey, Error> {
    TicketKey::jira_on(instance.cloned(), text).map_err(|_| Error::Malformed {
        detail: format!("key {}", capped(text)),
    })
}

impl WireStub {
    pub(crate) fn into_changed(self, instance: Option<&Instance>) -> Result<ChangedIssue, Error> {
        Ok(ChangedIssue {
            key: key(&self.key, instance)?,
            updated: instant(&self.fields.updated)?,
            created: instant(&self.fields.created.unwrap_or_default())?,
            creator: self.fields.creator.map(Account::from),
            status: self.fields.status.name,
        })
    }

    pub(crate) fn into_stub(self, instance: Option<&Instance>) -> Result<IssueStub, Error> {
        Ok(IssueStub {
            key: key(&self.key, instance)?,
            updated: instant(&self.fields.updated)?,
            status: self.fields.status.name,
        })
    }
}

fn instant(text: &str) -> Result<Timestamp, Error> {
    Timestamp::parse(text).ok_or_else(|| Error::Malformed {
        detail: format!("time {}", capped(text)),
    })
}

/// One page of a list that Jira counts.
#[derive(Deserialize)]
pub(crate) struct WirePage<T> {
    #[serde(alias = "comments")]
    pub(crate) values: Vec<T>,
    #[serde(default)]
    pub(crate) total: usize,
}

#[derive(Deserialize)]
pub(crate) struct WireComment {
    #[serde(deserialize_with = "text_or_number")]
    id: String,
    author: Option<WireAccount>,
    created: String,
    updated: Option<String>,
    body: Option<Box<RawValue>>,
    #[serde(default)]
    properties: Vec<WireProperty>,
}

#[derive(Deserialize)]
struct WireProperty {
    key: String,
    #[serde(default)]
    value: Value,
}

/// One comment that is nested too deeply keeps nobody from reading the others.
fn comment_text(raw: Option<&RawValue>) -> Result<String, Error> {
    let Some(raw) = raw else { return Ok(String::new()) };
    match markdown(raw, "a comment") {
        Err(Error::TooDeep { .. }) => Ok(TOO_DEEP.to_owned()),
        text => text,
    }
}

impl WireComment {
    pub(crate) fn into_comment(self, us: &Account) -> Result<Comment, Error> {
        let author = self.author.map(Account::from);
        let (account, name) = author.map_or_else(Default::default, |author| (author.id, author.display_name));
        let marker = self.properties.iter().find(|property| property.key == MARKER);
        let marker = marker
            .and_then(|property| property.value["id"].as_str())
            .unwrap_or_default();
        let created = instant(&self.created)?;
        Ok(Comment {
            id: CommentId(self.id),
            author: name,
            by_us: !account.is_empty() && account == us.id,
            author_account_id: account,
            updated: self.updated.as_deref().map_or(Ok(created), instant)?,
            created,
            text: comment_text(self.body.as_deref())?,
            marker: marker.to_owned(),
        })
    }
}

#[derive(Clone, Deserialize)]
pub(crate) struct WireHistory {
    #[serde(deserialize_with = "text_or_number")]
    id: String,
    author: Option<WireAccount>,
    created: Option<String>,
    #[serde(default)]
    items: Vec<WireHistoryItem>,
}

#[derive(Clone, Deserialize)]
struct WireHistoryItem {
    field: String,
    #[serde(rename = "fromString")]
    from: Option<String>,
    #[serde(rename = "toString")]
    to: Option<String>,
}

impl WireHistoryItem {
    /// Which text it changed, and what that was.
    fn into_text(self) -> Option<(TextField, String)> {
        let field = match self.field.as_str() {
            "summary" => TextField::Summary,
            "description" => TextField::Description,
            _ => return None,
        };
        Some((field, self.from.unwrap_or_default()))
    }
}

impl WireHistory {
    /// The edit of the issue's text that this entry records, if it records one.
    pub(crate) fn into_text_edit(self) -> Option<TextEdit> {
        let texts = self.items.into_iter().filter_map(WireHistoryItem::into_text);
        let before: Vec<_> = texts.collect();
        if before.is_empty() {
            return None;
        }
        Some(TextEdit {
            at: Timestamp::parse(self.created.as_deref()?)?,
            id: ChangelogId(self.id),
            by: self.author.map(Account::from),
            before,
        })
    }

    /// The move that this entry records, if it records one.
    pub(crate) fn into_status_change(self) -> Option<StatusChange> {
        let to = self
            .items
            .into_iter()
            .rev()
            .find(|item| item.field == "status")?
            .to?;
        Some(StatusChange {
            id: ChangelogId(self.id),
            to,
            at: self.created.as_deref().and_then(Timestamp::parse),
            by: self.author.map(Account::from),
        })
    }
}

#[derive(Deserialize)]
pub(crate) struct WireTransitions {
    pub(crate) transitions: Vec<WireTransition>,
}

#[derive(Deserialize)]
pub(crate) struct WireTransition {
    #[serde(deserialize_with = "text_or_number")]
    id: String,
    name: String,
    to: WireStatus,
    #[serde(default)]
    fields: BTreeMap<String, WireScreenField>,
}

/// A field of a transition's screen.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireScreenField {
    #[serde(default)]
    required: bool,
    #[serde(default)]
    has_default_value: bool,
    #[serde(default)]
    name: String,
}

impl From<WireTransition> for Transition {
    fn from(wire: WireTransition) -> Self {
        let asked = wire
            .fields
            .into_iter()
            .filter(|(_, field)| field.required && !field.has_default_value);
        let named = asked.map(|(key, field)| if field.name.is_empty() { key } else { field.name });
        Self {
            id: wire.id,
            name: wire.name,
            to: wire.to.into(),
            asks_for: named.collect(),
        }
    }
}

/// The id of what was made.
#[derive(Deserialize)]
pub(crate) struct WireId {
    #[serde(deserialize_with = "text_or_number")]
    pub(crate) id: String,
}

/// Jira writes ids as texts in most places and as numbers in some.
fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(serde::de::Error::custom("an id must be a text or a number"))
        }
    }
}
