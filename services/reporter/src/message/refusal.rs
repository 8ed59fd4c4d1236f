//! Text about a missing permission of our account.

/// Renders the refusal of an authenticated request, with the settings section of the account.
pub(crate) fn describe_denied_permission(section: &str, detail: &str) -> String {
    format!(
        "{detail}; an operator must give the account of [{section}] the missing permission (docs/permissions.md)"
    )
}
