//! JSON of GitHub's objects. Each kind has one constructor for answers and webhooks alike, so every use has
//! the properties that GitHub's description requires; `tests/required` lists them.

mod checks;
mod commits;
mod discussions;
mod issue_comments;
mod people;
mod pulls;
mod repositories;

use serde_json::Value;

pub(super) use checks::CI_LOGIN;
pub(super) use commits::{pushed_commit, simple_commit};
pub(super) use issue_comments::issue_type_json;
pub(super) use people::{
    render_account, render_actor, render_app, render_collaborator, render_installation, render_user,
};
pub(super) use pulls::label_json;

/// Extends an object with further properties.
pub(super) fn extend_object(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}

/// Derives a stable number from a name.
pub(in crate::github) fn number_of(name: &str) -> u64 {
    name.bytes()
        .fold(7_u64, |sum, byte| (sum * 31 + u64::from(byte)) % 1_000_000)
}
