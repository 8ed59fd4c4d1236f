//! Hits of a search.

use domain::TicketKey;
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

fn key(text: &str) -> Result<TicketKey, Error> {
    TicketKey::jira(text).map_err(|_| Error::Malformed {
        detail: format!("key {}", capped(text)),
    })
}

impl TryFrom<WireStub> for ChangedIssue {
    type Error = Error;
    fn try_from(wire: WireStub) -> Result<Self, Error> {
        Ok(Self {
            key: key(&wire.key)?,
            updated: instant(&wire.fields.updated)?,
            created: instant(&wire.fields.created.unwrap_or_default())?,
            creator: wire.fields.creator.map(Account::from),
            status: wire.fields.status.name,
        })
    }
}

impl TryFrom<WireStub> for IssueStub {
    type Error = Error;
    fn try_from(wire: WireStub) -> Result<Self, Error> {
        Ok(Self {
            key: key(&wire.key)?,
            updated: instant(&wire.fields.updated)?,
            status: wire.fields.status.name,
        })
    }
}
