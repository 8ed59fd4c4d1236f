//! Hits of a search.

use domain::{Instance, TicketKey};
use serde::Deserialize;

use super::{
    account::WireAccount,
    value::{WireName, instant},
};
use crate::{Account, ChangedIssue, Error, IssueStub, error::capped};

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
