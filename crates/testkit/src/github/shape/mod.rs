//! JSON of GitHub's objects. Each kind has one constructor for answers and webhooks alike, so every use has
//! the properties that GitHub's description requires; `tests/required` lists them.

mod checks;
mod commits;
mod discussions;
mod people;
mod pulls;
mod repositories;
mod rules;
mod talk;

use serde_json::Value;

pub(super) use checks::CI_LOGIN;
pub(super) use commits::{pushed_commit, simple_commit};
pub(super) use people::{account, actor, app, collaborator, installation, user};
pub(super) use pulls::label_json;
pub(super) use talk::issue_type_json;

/// Extends an object with further properties.
pub(super) fn with(mut object: Value, more: Value) -> Value {
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
