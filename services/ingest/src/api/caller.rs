//! The bearer of a valid token, with a role and a scope.

use api::types::Role;
use domain::{RepositoryName, TicketKey};

use super::{ApiProblem, scope::TokenScope, ticket_key::TicketScoped as _};

/// Somebody with a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenCaller {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// What the caller may know of. Whoever lists something lists what is in here.
    pub(crate) scope: TokenScope,
}

impl TokenCaller {
    /// Refuses a ticket outside the scope, as one that nobody knows.
    pub(super) fn reaches(&self, ticket: &TicketKey) -> Result<(), ApiProblem> {
        match self.scope.has_ticket(ticket) {
            true => Ok(()),
            false => Err(ticket.unknown()),
        }
    }

    /// The same for a repository.
    pub(super) fn reaches_repository(&self, repository: &RepositoryName) -> Result<(), ApiProblem> {
        match self.scope.has_repository(repository) {
            true => Ok(()),
            false => Err(ApiProblem::NotFound(format!("nothing is known of {repository}"))),
        }
    }
}
