//! Tickets and runs in paths and queries.

use domain::{RunId, TicketKey};

use super::Problem;

/// `ENG-12`, `jira:ENG-12` or `github:acme/shop#7`.
pub(super) fn ticket_key(text: &str) -> Result<TicketKey, Problem> {
    Ok(if text.contains(':') {
        text.parse()?
    } else {
        TicketKey::jira(text)?
    })
}

/// Ticket, or run of a ticket, that a path names.
pub(super) trait OfTicket: Sized + Send {
    fn read(text: &str) -> Result<Self, Problem>;

    fn ticket(&self) -> &TicketKey;

    /// Answer about one that does not exist, or that is outside the scope of the caller.
    fn unknown(&self) -> Problem;
}

impl OfTicket for TicketKey {
    fn read(text: &str) -> Result<Self, Problem> {
        ticket_key(text)
    }

    fn ticket(&self) -> &TicketKey {
        self
    }

    fn unknown(&self) -> Problem {
        Problem::NotFound(format!("nothing is known of {self}"))
    }
}

impl OfTicket for RunId {
    fn read(text: &str) -> Result<Self, Problem> {
        Ok(text.parse()?)
    }

    fn ticket(&self) -> &TicketKey {
        Self::ticket(self)
    }

    fn unknown(&self) -> Problem {
        Problem::NotFound(format!("run {self} does not exist"))
    }
}
