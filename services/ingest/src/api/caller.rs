//! Bearer of a valid token, with a role and a scope.

use api::types::Role;
use domain::{RepositoryName, TicketKey};

use super::{ApiProblem, scope::TokenScope, ticket_key::TicketScoped as _};

/// Bearer of a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenCaller {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Tickets and repositories that the caller may see. Lists contain nothing outside of it.
    pub(crate) scope: TokenScope,
}

impl TokenCaller {
    /// Refuses a ticket outside the scope with the answer for an unknown one, so that the caller learns nothing.
    pub(super) fn reaches(&self, ticket: &TicketKey) -> Result<(), ApiProblem> {
        if self.scope.has_ticket(ticket) {
            Ok(())
        } else {
            Err(ticket.unknown())
        }
    }

    /// Refuses a repository outside the scope in the same way.
    pub(super) fn reaches_repository(&self, repository: &RepositoryName) -> Result<(), ApiProblem> {
        if self.scope.has_repository(repository) {
            Ok(())
        } else {
            Err(ApiProblem::NotFound(format!("nothing is known of {repository}")))
        }
    }
}
