//! Jira Cloud over REST v3 and Jira Data Center over REST v2. [`Reader`] and [`Writer`] are separate types,
//! so that a service with read access cannot hold a writer.
//!
//! [`adf`] and [`wiki`] convert between Markdown and the texts of the two; `dialect` has all other
//! differences.

pub mod adf;
mod answer;
mod client;
mod clients;
mod criteria;
mod dialect;
mod error;
mod fields;
pub mod hook;
mod limits;
mod model;
pub mod permissions;
mod reader;
mod roles;
mod screen;
mod settings;
mod triage;
pub mod wiki;
mod wire;
mod writer;

pub use dialect::Dialect;
pub use error::Error;
pub use model::{
    Assignment, Changed, ChangedIssue, ChangelogId, Comment, CommentId, FoundGroups, Issue, IssueStub,
    Outlined, Related, RoleMembers, ScreenField, Sorted, Status, StatusCategory, StatusChange, TextEdit,
    TextField, Transition,
};
pub use reader::Reader;
pub use screen::Filled;
pub use settings::{Settings, ends, is_day, readers, writers};
pub use writer::{Audience, Writer};
