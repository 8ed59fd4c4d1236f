//! What our own account may do.

use std::collections::BTreeMap;

use serde::Deserialize;

/// What our own account may do.
#[derive(Deserialize)]
pub(crate) struct WirePermissions {
    pub(crate) permissions: BTreeMap<String, WirePermission>,
}

/// One permission.
#[derive(Deserialize)]
pub(crate) struct WirePermission {
    #[serde(rename = "havePermission", default)]
    pub(crate) is_held: bool,
}
