//! Addresses of what is asked for.

use std::fmt::Write as _;

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

/// Percent-encodes one path segment.
pub(crate) fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}
