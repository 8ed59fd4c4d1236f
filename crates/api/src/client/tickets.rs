//! Tickets: reading, listing, and the orders of people to the work on one ticket.

use std::sync::Arc;

use domain::{TicketKey, address::percent_encode};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    actions::ApiAction,
    connection::{ClientConnection, accept_unknown_path},
};
use crate::{
    Error,
    types::{TicketSummariesQuery, TicketSummary, TicketTextView, TicketView, TicketsQuery, TicketsView},
};

/// Calls about tickets. A clone is cheap.
#[derive(Clone)]
pub struct TicketClient {
    pub(super) connection: Arc<ClientConnection>,
}

impl TicketClient {
    /// Reads the runs of a ticket and the status of its pull requests.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn read(&self, ticket: &TicketKey) -> Result<TicketView, Error> {
        let path = format!("/v1/tickets/{}", percent_encode(&ticket.to_string()));
        self.connection.call(Method::GET, &path, None).await
    }

    /// Reads the current text of a ticket.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn text(&self, ticket: &TicketKey) -> Result<TicketTextView, Error> {
        let path = format!("/v1/tickets/{}/text", percent_encode(&ticket.to_string()));
        self.connection.call(Method::GET, &path, None).await
    }

    /// Lists tickets of the projects and repositories in the rules.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn list(&self, query: &TicketsQuery) -> Result<TicketsView, Error> {
        let request = self.connection.request(Method::GET, "/v1/tickets").query(query);
        self.connection.answered(request).await
    }

    /// Lists the tickets with runs that match a query, the most recently requested first. Empty for an API of
    /// an earlier release without this path.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn summaries(&self, query: &TicketSummariesQuery) -> Result<Vec<TicketSummary>, Error> {
        let request = self
            .connection
            .request(Method::GET, "/v1/ticket-summaries")
            .query(query);
        let found = accept_unknown_path(self.connection.answered(request).await)?;
        Ok(found.unwrap_or_default())
    }

    /// Sends a comment to the active runs of a ticket.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn comment(&self, ticket: &TicketKey, text: &str) -> Result<(), Error> {
        let path = format!("/v1/tickets/{}/comments", percent_encode(&ticket.to_string()));
        self.connection
            .call::<Value>(Method::POST, &path, Some(json!({ "text": text })))
            .await
            .map(drop)
    }

    /// Stops every active run of a ticket.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn stop(&self, ticket: &TicketKey) -> Result<(), Error> {
        self.connection.act(ApiAction::StopTicket(ticket)).await
    }

    /// Retries the work on a ticket.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn retry(&self, ticket: &TicketKey) -> Result<(), Error> {
        self.connection.act(ApiAction::RetryTicket(ticket)).await
    }

    /// Deletes all stored data of a ticket.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn purge(&self, ticket: &TicketKey) -> Result<(), Error> {
        self.connection.act(ApiAction::Purge(ticket)).await
    }
}
