//! Jira's JSON, as far as this crate reads it, with conversions into the model; one file for each kind of
//! answer.

mod account;
mod comment;
mod history;
mod issue;
mod jql;
mod linked_issue;
mod permission;
mod role;
mod search;
mod status;
mod transition;
mod triage;
mod value;

pub(crate) use account::{WireAccount, WireAssigneeOnly, WireGroups, WireMembers, WirePickedGroups};
pub(crate) use comment::{MARKER, SERVICE_DESK, WireComment, WireVisibility};
pub(crate) use domain::address::percent_encode;
pub(crate) use history::{IssueHistory, WireHistory, WireWithHistory};
pub(crate) use issue::{WireIssue, WireProjectOnly};
pub(crate) use jql::{changed_jql, list_jql, match_jql, matching_jql, ready_jql, similar_jql, these_jql};
pub(crate) use permission::WirePermissions;
pub(crate) use role::WireRole;
pub(crate) use search::{WireOutlined, WireSearch, WireStub};
pub(crate) use status::{WireStatusOnly, WireTypeStatuses};
pub(crate) use transition::WireTransitions;
pub(crate) use triage::{WireLinkTypes, WireTriage};
pub(crate) use value::{WireId, WirePage};
