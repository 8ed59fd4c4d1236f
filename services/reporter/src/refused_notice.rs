//! Texts and reactions that their conversation does not accept: it is locked, moved, deleted or archived.

use std::collections::BTreeSet;

use domain::TicketKey;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

// Tickets whose refusals are remembered. Above it the memory starts again, and a ticket may get a second line in the log.
const MAX_TICKETS: usize = 1_000;

/// Text or reaction that was not possible. As a receipt it ends the effect, so no retry repeats it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefusedNotice {
    /// State of the conversation.
    pub(crate) cause: NoticeRefusal,
    /// Message of GitHub.
    pub(crate) detail: String,
}

/// State in which a conversation accepts neither texts nor reactions of our account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NoticeRefusal {
    /// It is locked, until a maintainer unlocks it.
    Locked,
    /// It is in another repository or has another number.
    Moved,
    /// Its issue is deleted.
    Deleted,
    /// Its repository is archived.
    Archived,
}

impl NoticeRefusal {
    /// Returns the state in words for the log.
    const fn describe(self) -> &'static str {
        match self {
            Self::Locked => "the conversation is locked",
            Self::Moved => "the conversation moved",
            Self::Deleted => "the issue is deleted",
            Self::Archived => "the repository is archived",
        }
    }
}

/// Tickets whose conversation refused a text, so that the operator gets one line for each.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(Mutex<BTreeSet<TicketKey>>);

impl RefusalLog {
    /// Logs a refused effect: the first one of a ticket as a warning.
    pub(crate) fn note(&self, ticket: &TicketKey, effect: &str, refused: &RefusedNotice) {
        let is_first = {
            let mut tickets = self.0.lock();
            if tickets.len() >= MAX_TICKETS {
                tickets.clear();
            }
            tickets.insert(ticket.clone())
        };
        let (state, detail) = (refused.cause.describe(), &refused.detail);
        if is_first {
            tracing::warn!(
                %ticket,
                effect,
                state,
                %detail,
                "text not possible; the ticket's pull request gets it if there is one"
            );
        } else {
            tracing::debug!(%ticket, effect, state, %detail, "text not possible");
        }
    }

    /// Forgets a ticket whose conversation accepted a text.
    pub(crate) fn forget(&self, ticket: &TicketKey) {
        self.0.lock().remove(ticket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_text_ends_remembered_refusal() {
        let (log, ticket) = (RefusalLog::default(), "jira:ENG-1".parse().unwrap());
        let refused = RefusedNotice {
            cause: NoticeRefusal::Locked,
            detail: "issue is locked".to_owned(),
        };
        log.note(&ticket, "comment", &refused);
        log.note(&ticket, "eyes", &refused);
        assert_eq!(log.0.lock().len(), 1);
        log.forget(&ticket);
        assert!(log.0.lock().is_empty());
    }
}
