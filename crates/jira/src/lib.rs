//! Jira Cloud over REST v3 and Jira Data Center over REST v2. [`JiraReader`] and [`JiraWriter`] are separate types,
//! so that a service with read access cannot hold a writer.
//!
//! [`adf`] and [`wiki`] convert between Markdown and the texts of the two; `dialect` has all other
//! differences.

// Tests may match on the one variant that they expect.
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

// The integration tests name the library as its users do.
#[cfg(test)]
extern crate self as jira;

pub mod adf;
mod answer;
mod attachment_text;
mod client;
mod comment_address;
mod criteria;
mod dialect;
mod error;
mod fields;
pub mod hook;
#[cfg(test)]
#[path = "../tests/main.rs"]
mod integration_tests;
mod model;
pub mod permissions;
mod reader;
mod screen;
mod settings;
mod site_fields;
mod triage;
pub mod wiki;
mod wire;
mod writer;

pub use criteria::CriteriaFields;
pub use dialect::JiraDialect;
pub use error::Error;
pub use model::{
    AssigneeChange, ChangedIssue, ChangelogId, FoundGroups, FoundProjects, IssueChanges, IssueHit,
    IssueOutline, IssueStatus, JiraAttachment, JiraComment, JiraCommentId, JiraIssue, RelatedIssue,
    RoleMembers, ScreenField, StatusCategory, StatusChange, TextEdit, TextField, TriageFields,
    WorkflowTransition,
};
pub use reader::JiraReader;
pub use screen::FilledScreen;
pub use settings::{Settings, deserialize_readers, deserialize_writers, is_day, list_token_ends};
pub use writer::{CommentAudience, JiraWriter};
