//! Answer about the bearer of a token.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Role;

/// Bearer of the token of a call, or the person on whose behalf it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallerView {
    /// The name in journals: that of the token, or of the person with the token's.
    pub name: String,
    /// Role that limits the calls.
    pub role: Role,
    /// True for a token that reaches some repositories and projects only.
    pub is_limited: bool,
    /// Release of the API.
    pub version: String,
}
