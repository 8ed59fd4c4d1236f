//! Jira's JSON, as far as this crate reads it, with conversions into the model; one file for each kind of
//! answer, and here what several answers have in common.

mod account;
mod comment;
mod history;
mod issue;
mod jql;
mod linked_issue;
mod search;
mod status;
mod transition;
mod triage;

pub(crate) use account::{
    WireAccount, WireAssigneeOnly, WireGroupsOnly, WireMembers, WirePermissions, WirePickedGroups, WireRole,
};
pub(crate) use comment::{MARKER, SERVICE_DESK, WireComment, WireVisibility};
pub(crate) use domain::address::percent_encode;
pub(crate) use history::{IssueHistory, WireHistory, WireWithHistory};
pub(crate) use issue::{WireAttached, WireIssue, WireProjectOnly};
pub(crate) use jql::{
    changed_jql, list_jql, match_jql, matching_jql, ready_jql, recent_jql, similar_jql, these_jql,
};
pub(crate) use search::{WireKeyOnly, WireOutlined, WireSearch, WireStub};
pub(crate) use status::{MAX_PROJECTS, WireProjectKey, WireStatusOnly, WireTypeStatuses, collect_projects};
pub(crate) use transition::WireTransitions;
pub(crate) use triage::{WireLinkTypes, WireTriage};

use domain::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::Error;

/// Page of a list with the total number of entries.
#[derive(Deserialize)]
pub(crate) struct WirePage<T> {
    #[serde(alias = "comments")]
    pub(crate) values: Vec<T>,
    #[serde(default)]
    pub(crate) total: usize,
}

/// Id of a created resource.
#[derive(Deserialize)]
pub(crate) struct WireId {
    #[serde(deserialize_with = "text_or_number")]
    pub(crate) id: String,
}

#[derive(Deserialize)]
struct WireName {
    name: String,
}

fn parse_instant(text: &str) -> Result<Timestamp, Error> {
    Timestamp::parse(text).ok_or_else(|| Error::Malformed {
        detail: format!("time {}", webclient::truncate_service_text(text)),
    })
}

/// Deserializes a list or text that may be null, as some apps and proxies of a site write an empty one.
fn value_or_null<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Deserializes an id. Jira writes ids as strings in most answers and as numbers in some.
fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(serde::de::Error::custom("an id must be a text or a number"))
        }
    }
}
