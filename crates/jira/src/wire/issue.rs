//! JSON of an issue's fields.

use std::collections::BTreeMap;

use domain::{TicketKey, Timestamp, TrackerAccount, json};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    WireName,
    account::WireAccount,
    history::IssueHistory,
    linked_issue::{WireIssueLink, WireLinked},
    search::parse_key,
    status::WireStatus,
    text_or_number, value_or_null,
};
use crate::{
    Error, JiraAttachment, JiraComment, JiraDialect, JiraIssue, RelatedIssue, criteria::append_criteria,
    site_fields::IssueFieldIds,
};

/// Issue with its project only.
#[derive(Deserialize)]
pub(crate) struct WireProjectOnly {
    fields: WireProjectField,
}

#[derive(Deserialize)]
struct WireProjectField {
    project: WireIssueProject,
}

#[derive(Deserialize)]
struct WireIssueProject {
    #[serde(rename = "projectTypeKey")]
    kind: Option<String>,
}

impl WireProjectOnly {
    /// True for a service project. An unknown type counts as one, because an internal note does no harm
    /// elsewhere.
    pub(crate) fn is_service(&self) -> bool {
        !matches!(
            self.fields.project.kind.as_deref(),
            Some("software" | "business" | "product_discovery")
        )
    }
}

#[derive(Deserialize)]
pub(crate) struct WireIssue {
    /// Parsed twice: as the known fields, and by the ids of custom fields.
    fields: Box<RawValue>,
}

/// Custom fields of the site by their ids.
type OwnFields = BTreeMap<String, Option<Box<RawValue>>>;

fn read_fields<T: DeserializeOwned>(raw: &RawValue) -> Result<T, Error> {
    let what = || "the fields of the issue".to_owned();
    json::from_slice(raw.get().as_bytes()).map_err(|error| match error {
        json::Error::TooDeep => Error::TooDeep { what: what() },
        json::Error::Unreadable(_) => Error::Malformed { detail: what() },
    })
}

#[derive(Deserialize)]
struct WireIssueFields {
    #[serde(default, deserialize_with = "value_or_null")]
    summary: String,
    /// Parsed separately, so that an error can name the description.
    description: Option<Box<RawValue>>,
    issuetype: Option<WireName>,
    priority: Option<WireName>,
    #[serde(default, deserialize_with = "value_or_null")]
    labels: Vec<String>,
    #[serde(default, deserialize_with = "value_or_null")]
    components: Vec<WireName>,
    status: WireStatus,
    assignee: Option<WireAccount>,
    updated: Option<String>,
    created: Option<String>,
    creator: Option<WireAccount>,
    parent: Option<WireLinked>,
    #[serde(default, deserialize_with = "value_or_null")]
    issuelinks: Vec<WireIssueLink>,
    #[serde(default, deserialize_with = "value_or_null")]
    subtasks: Vec<WireLinked>,
    /// Absent where the project hides the field.
    attachment: Option<Vec<WireAttachment>>,
}

/// Attachment of an issue. A field that an app of the site leaves out costs only this field.
#[derive(Deserialize)]
struct WireAttachment {
    #[serde(deserialize_with = "text_or_number")]
    id: String,
    #[serde(default, deserialize_with = "value_or_null")]
    filename: String,
    #[serde(default, deserialize_with = "value_or_null")]
    size: u64,
    created: Option<String>,
    #[serde(default, deserialize_with = "value_or_null")]
    content: String,
}

/// Issue with its attachments only.
#[derive(Deserialize)]
pub(crate) struct WireAttached {
    fields: WireAttachmentField,
}

#[derive(Deserialize)]
struct WireAttachmentField {
    attachment: Option<Vec<WireAttachment>>,
}

impl WireAttached {
    pub(crate) fn into_attachments(self) -> Vec<JiraAttachment> {
        sort_attachments(self.fields.attachment)
    }
}

/// Attachments, oldest first; the Cloud lists them in no documented order.
fn sort_attachments(listed: Option<Vec<WireAttachment>>) -> Vec<JiraAttachment> {
    let listed = listed.unwrap_or_default().into_iter();
    let mut attachments: Vec<JiraAttachment> = listed.map(WireAttachment::into_attachment).collect();
    attachments.sort_by_key(|attachment| attachment.created);
    attachments
}

impl WireAttachment {
    fn into_attachment(self) -> JiraAttachment {
        JiraAttachment {
            id: self.id,
            name: self.filename,
            size_bytes: self.size,
            created: self.created.as_deref().and_then(Timestamp::parse),
            content: self.content,
        }
    }
}

impl WireIssueFields {
    fn take_related(&mut self, key: &TicketKey) -> Vec<RelatedIssue> {
        let instance = key.instance();
        let parent = self.parent.take().into_iter();
        let parent = parent.filter_map(|issue| issue.into_related("parent".to_owned(), instance));
        let links = std::mem::take(&mut self.issuelinks).into_iter();
        let links = links.filter_map(|link| link.into_related(instance));
        let parts = std::mem::take(&mut self.subtasks).into_iter();
        let parts = parts.filter_map(|issue| issue.into_related("subtask".to_owned(), instance));
        parent.chain(links).chain(parts).collect()
    }
}

/// Lists the values that an issue has in these fields.
fn list_values<'a>(own: &'a OwnFields, ids: &[String]) -> Vec<&'a RawValue> {
    ids.iter().filter_map(|id| own.get(id)?.as_deref()).collect()
}

/// Key of the epic in the value of a field; `None` for any other value.
fn parse_epic(raw: &RawValue, issue: &TicketKey) -> Option<TicketKey> {
    let key: String = json::from_slice(raw.get().as_bytes()).ok()?;
    parse_key(&key, issue.instance()).ok()
}

impl WireIssue {
    pub(crate) fn into_issue(
        self,
        key: &TicketKey,
        url: String,
        comments: Vec<JiraComment>,
        changes: IssueHistory,
        (dialect, custom): (JiraDialect, &IssueFieldIds),
    ) -> Result<JiraIssue, Error> {
        let mut fields: WireIssueFields = read_fields(&self.fields)?;
        let related = fields.take_related(key);
        let description = fields.description.as_deref();
        let read = |raw| dialect.markdown(raw, "the description");
        let description = description.map_or(Ok(String::new()), read)?;
        let attachments = sort_attachments(fields.attachment.take());
        // The second parse is needless for a site without such fields.
        let own: OwnFields = if custom.is_empty() {
            OwnFields::new()
        } else {
            read_fields(&self.fields)?
        };
        let mut epics = list_values(&own, &custom.epics).into_iter();
        let epic = epics.find_map(|raw| parse_epic(raw, key));
        // The Cloud shows the epic as the parent too.
        let epic = epic.filter(|epic| related.iter().all(|other| other.key != *epic));
        let description = append_criteria(description, &list_values(&own, &custom.criteria), dialect)?;
        Ok(JiraIssue {
            key: key.clone(),
            summary: fields.summary,
            description_markdown: description,
            kind: fields.issuetype.map(|kind| kind.name).unwrap_or_default(),
            priority: fields.priority.map(|priority| priority.name).unwrap_or_default(),
            labels: fields.labels,
            components: fields
                .components
                .into_iter()
                .map(|component| component.name)
                .collect(),
            status: fields.status.into(),
            // Moves are oldest first, so the last one led to the present status.
            status_changed_at: changes.moves.last().and_then(|change| change.at),
            assignee: fields.assignee.map(TrackerAccount::from),
            updated: fields.updated.as_deref().and_then(Timestamp::parse),
            url,
            comments,
            created: fields.created.as_deref().and_then(Timestamp::parse),
            creator: fields.creator.map(TrackerAccount::from),
            status_changes: changes.moves,
            text_edits: changes.edits,
            assignments: changes.assignments,
            related,
            epic,
            attachments,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read_issue(fields: &Value) -> JiraIssue {
        let body = json!({ "fields": fields }).to_string();
        let issue: WireIssue = json::from_slice(body.as_bytes()).unwrap();
        let key = TicketKey::jira("ENG-1").unwrap();
        let history = IssueHistory {
            moves: Vec::new(),
            edits: Vec::new(),
            assignments: Vec::new(),
        };
        let custom = IssueFieldIds::default();
        let place = (JiraDialect::DataCenter, &custom);
        issue
            .into_issue(&key, String::new(), Vec::new(), history, place)
            .unwrap()
    }

    #[test]
    fn null_field_counts_as_absent() {
        let bare = json!({ "status": { "name": "To Do" } });
        let expected = read_issue(&bare);
        for field in [
            "summary",
            "description",
            "issuetype",
            "priority",
            "labels",
            "components",
            "assignee",
            "updated",
            "created",
            "creator",
            "parent",
            "issuelinks",
            "subtasks",
            "attachment",
        ] {
            let mut fields = bare.clone();
            fields[field] = Value::Null;
            assert_eq!(read_issue(&fields), expected, "{field}");
        }
    }

    #[test]
    fn null_within_field_costs_only_itself() {
        let issue = read_issue(&json!({
            "status": { "name": "To Do" },
            "creator": { "name": "mia", "displayName": null, "accountType": null },
            "parent": { "key": "ENG-2", "fields": { "summary": null, "status": { "name": "Done" } } },
            "attachment": [{ "id": "7", "filename": "a.log", "size": null, "content": null }],
        }));
        assert_eq!(issue.creator.unwrap().id, "mia");
        assert_eq!(issue.related[0].summary, "");
        assert_eq!(issue.attachments[0].name, "a.log");
    }
}
