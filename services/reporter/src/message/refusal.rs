//! What is told when an account of ours is refused.

/// GitHub or Jira know us, and do not let us.
pub(crate) fn denied(section: &str, detail: &str) -> String {
    format!(
        "{detail}; an operator must give the account of [{section}] the missing permission (docs/permissions.md)"
    )
}
