//! Addresses of what is asked for.

use domain::TicketKey;

use crate::Error;

/// The issue's address; refuses tickets of other trackers.
pub(crate) fn issue_path(key: &TicketKey) -> Result<String, Error> {
    match key {
        TicketKey::Jira { .. } => Ok(format!("/rest/api/3/issue/{}", key.short())),
        TicketKey::GitHub { .. } | TicketKey::Discussion { .. } | TicketKey::Folder { .. } => {
            Err(Error::Rejected {
                detail: format!("{key} is not a Jira issue"),
            })
        }
    }
}
