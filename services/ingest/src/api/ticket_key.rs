//! Tickets and runs in paths and queries.

use domain::{RunId, TicketKey};

use super::ApiProblem;

/// Parses `ENG-12`, `jira:ENG-12` or `github:acme/shop#7`.
pub(super) fn parse_ticket_key(text: &str) -> Result<TicketKey, ApiProblem> {
    Ok(if text.contains(':') {
        text.parse()?
    } else {
        TicketKey::jira(text)?
    })
}

/// Ticket, or run of a ticket, that a path names.
pub(super) trait TicketScoped: Sized + Send {
    fn read(text: &str) -> Result<Self, ApiProblem>;

    fn ticket(&self) -> &TicketKey;

    /// The same under the ticket that has the records.
    fn among(self, records: TicketKey) -> Self;

    /// Answer about a ticket or run that does not exist, or that is outside the scope of the caller.
    fn unknown(&self) -> ApiProblem;
}

impl TicketScoped for TicketKey {
    fn read(text: &str) -> Result<Self, ApiProblem> {
        parse_ticket_key(text)
    }

    fn ticket(&self) -> &TicketKey {
        self
    }

    fn among(self, records: TicketKey) -> Self {
        records
    }

    fn unknown(&self) -> ApiProblem {
        ApiProblem::NotFound(format!("nothing is known of {self}"))
    }
}

impl TicketScoped for RunId {
    fn read(text: &str) -> Result<Self, ApiProblem> {
        Ok(text.parse()?)
    }

    fn ticket(&self) -> &TicketKey {
        Self::ticket(self)
    }

    fn among(self, records: TicketKey) -> Self {
        Self::new(records, self.sequence())
    }

    fn unknown(&self) -> ApiProblem {
        ApiProblem::NotFound(format!("run {self} does not exist"))
    }
}
