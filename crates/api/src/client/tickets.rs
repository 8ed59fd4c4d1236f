//! Tickets as their trackers have them, and what happens to all of them.

use domain::{Entry, RunId, TicketKey, address::encode};
use eventsource_stream::Eventsource;
use futures::{Stream, TryStreamExt};
use reqwest::Method;
use serde::Deserialize;

use super::{Client, refuse_problem, understood};
use crate::{
    Error,
    types::{RulesView, TicketTextView, TicketView, TicketsQuery, TicketsView},
};

/// A new entry of some run's journal.
#[derive(Debug, Deserialize)]
pub struct OfRun {
    /// Which.
    pub run: RunId,
    /// What happened.
    pub entry: Entry,
}

impl Client {
    /// Tickets of the projects and repositories that the rules name.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn tickets(&self, asked: &TicketsQuery) -> Result<TicketsView, Error> {
        let request = self.request(Method::GET, "/v1/tickets").query(asked);
        self.answered(request).await
    }

    /// A ticket's runs, and how its pull requests stand.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn ticket(&self, ticket: &TicketKey) -> Result<TicketView, Error> {
        let path = format!("/v1/tickets/{}", encode(&ticket.to_string()));
        self.call(Method::GET, &path, None).await
    }

    /// What a ticket says now.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn ticket_text(&self, ticket: &TicketKey) -> Result<TicketTextView, Error> {
        let path = format!("/v1/tickets/{}/text", encode(&ticket.to_string()));
        self.call(Method::GET, &path, None).await
    }

    /// The repositories with rules, and what is wrong with the others.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn rules(&self) -> Result<RulesView, Error> {
        self.call(Method::GET, "/v1/rules", None).await
    }

    /// New entries of every run from now on.
    ///
    /// # Errors
    /// Those of the API, in its words; the stream ends with an error when the connection is lost.
    pub async fn events(&self) -> Result<impl Stream<Item = Result<OfRun, Error>> + use<>, Error> {
        let answer = self.send(self.request(Method::GET, "/v1/events")).await?;
        let events = refuse_problem(answer).await?.bytes_stream().eventsource();
        Ok(events
            .map_err(Error::Events)
            .and_then(async |event| understood(&event.data)))
    }
}
