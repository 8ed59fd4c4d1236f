//! Jira Cloud over REST v3: [`Reader`] and [`Writer`] are separate types, so that who may only read cannot hold a
//! writer. [`adf`] translates between Markdown and Atlassian's document format.

pub mod adf;
mod answer;
mod client;
mod clients;
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
mod wire;
mod writer;

pub use error::Error;
pub use model::{
    Assignment, Changed, ChangedIssue, ChangelogId, Comment, CommentId, Issue, IssueStub, Outlined, Related,
    RoleMembers, ScreenField, Sorted, Status, StatusCategory, StatusChange, TextEdit, TextField, Transition,
};
pub use reader::Reader;
pub use screen::Filled;
pub use settings::{Settings, ends, readers, writers};
pub use writer::Writer;
