//! An issue's own fields.

use domain::{TicketKey, Timestamp};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{account::WireAccount, status::WireStatus, text::markdown, value::WireName};
use crate::{Account, Comment, Error, Issue, StatusChange, TextEdit};

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
