//! JSON of our account's permissions.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Permissions by their keys.
#[derive(Deserialize)]
pub(crate) struct WirePermissions {
    pub(crate) permissions: BTreeMap<String, WirePermission>,
}

/// One permission, with or without it.
#[derive(Deserialize)]
pub(crate) struct WirePermission {
    #[serde(rename = "havePermission", default)]
    pub(crate) is_held: bool,
}
