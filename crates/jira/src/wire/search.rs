//! JSON of search results.

use domain::{InstanceName, TicketKey, TrackerAccount};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{WireName, account::WireAccount, parse_instant, text_or_number, value_or_null};
use crate::{ChangedIssue, Error, IssueHit, IssueOutline, JiraDialect, dialect::SearchPage};

#[derive(Deserialize)]
pub(crate) struct WireSearch<T> {
    pub(crate) issues: Vec<T>,
    #[serde(rename = "nextPageToken")]
    next_page_token: Option<String>,
    /// Position of the page at a Data Center, with the total number of hits.
    #[serde(rename = "startAt", default)]
    start_at: usize,
    #[serde(default)]
    total: usize,
}

impl<T> WireSearch<T> {
    pub(crate) fn page(&self) -> SearchPage {
        SearchPage {
            token: self.next_page_token.clone(),
            start: self.start_at,
            hits: self.issues.len(),
            total: self.total,
        }
    }
}

/// Issue with its key only.
#[derive(Deserialize)]
pub(crate) struct WireKeyOnly {
    key: String,
}

impl WireKeyOnly {
    pub(crate) fn into_key(self, instance: Option<&InstanceName>) -> Result<TicketKey, Error> {
        parse_key(&self.key, instance)
    }
}

#[derive(Deserialize)]
pub(crate) struct WireStub {
    pub(crate) key: String,
    #[serde(default, deserialize_with = "text_or_number")]
    id: String,
    fields: WireStubFields,
}

#[derive(Deserialize)]
struct WireStubFields {
    updated: String,
    status: WireName,
    created: Option<String>,
    creator: Option<WireAccount>,
    assignee: Option<WireAccount>,
}

/// Hit with its text.
#[derive(Deserialize)]
pub(crate) struct WireOutlined {
    key: String,
    fields: WireOutline,
}

#[derive(Deserialize)]
struct WireOutline {
    #[serde(default, deserialize_with = "value_or_null")]
    summary: String,
    status: WireName,
    description: Option<Box<RawValue>>,
}

impl WireOutlined {
    pub(crate) fn into_outlined(
        self,
        instance: Option<&InstanceName>,
        dialect: JiraDialect,
    ) -> Result<IssueOutline, Error> {
        let description = self.fields.description.as_deref();
        // A description that cannot be parsed must not hide the other hits.
        let description = description.and_then(|raw| dialect.markdown(raw, "a description").ok());
        Ok(IssueOutline {
            key: parse_key(&self.key, instance)?,
            summary: self.fields.summary,
            status: self.fields.status.name,
            description_markdown: description.unwrap_or_default(),
        })
    }
}

pub(super) fn parse_key(text: &str, instance: Option<&InstanceName>) -> Result<TicketKey, Error> {
    TicketKey::jira_on(instance.cloned(), text).map_err(|_| Error::Malformed {
        detail: format!("key {}", webclient::truncate_service_text(text)),
    })
}

impl WireStub {
    pub(crate) fn into_changed(self, instance: Option<&InstanceName>) -> Result<ChangedIssue, Error> {
        Ok(ChangedIssue {
            id: self.id.parse().ok(),
            key: parse_key(&self.key, instance)?,
            updated: parse_instant(&self.fields.updated)?,
            created: parse_instant(&self.fields.created.unwrap_or_default())?,
            creator: self.fields.creator.map(TrackerAccount::from),
            status: self.fields.status.name,
            assignee: self.fields.assignee.map(TrackerAccount::from),
        })
    }

    pub(crate) fn into_stub(self, instance: Option<&InstanceName>) -> Result<IssueHit, Error> {
        Ok(IssueHit {
            id: self.id.parse().ok(),
            key: parse_key(&self.key, instance)?,
            updated: parse_instant(&self.fields.updated)?,
            status: self.fields.status.name,
        })
    }
}
