//! How GitHub writes its objects down. Each kind has one constructor, for answers and webhooks alike, so that whatever
//! tells of it has every property that GitHub's description requires; `tests/required` lists these.

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

/// An object with more properties.
pub(super) fn with(mut object: Value, more: Value) -> Value {
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}

/// A number that a name always has.
pub(in crate::github) fn number_of(name: &str) -> u64 {
    name.bytes()
        .fold(7_u64, |sum, byte| (sum * 31 + u64::from(byte)) % 1_000_000)
}
