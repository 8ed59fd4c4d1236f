//! Calls for tickets of trackers, and the events of all tickets.

use domain::{JournalEntry, RunId, TicketKey, address::percent_encode};
use eventsource_stream::Eventsource;
use futures::{Stream, TryStreamExt};
use reqwest::Method;
use serde::Deserialize;

use super::{Client, parse_event_data, refuse_problem};
use crate::{
    Error,
    types::{RulesView, TicketTextView, TicketView, TicketsQuery, TicketsView},
};

/// A new entry in the journal of any run.
#[derive(Debug, Deserialize)]
pub struct RunJournalEntry {
    /// Id of the run.
    pub run: RunId,
    /// The new entry.
    pub entry: JournalEntry,
}

impl Client {
    /// Lists tickets of the projects and repositories in the rules.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn tickets(&self, asked: &TicketsQuery) -> Result<TicketsView, Error> {
        let request = self.request(Method::GET, "/v1/tickets").query(asked);
        self.answered(request).await
    }

    /// Reads the runs of a ticket and the status of its pull requests.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn ticket(&self, ticket: &TicketKey) -> Result<TicketView, Error> {
        let path = format!("/v1/tickets/{}", percent_encode(&ticket.to_string()));
        self.call(Method::GET, &path, None).await
    }

    /// Reads the current text of a ticket.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn ticket_text(&self, ticket: &TicketKey) -> Result<TicketTextView, Error> {
        let path = format!("/v1/tickets/{}/text", percent_encode(&ticket.to_string()));
        self.call(Method::GET, &path, None).await
    }

    /// Lists the repositories with rules, and the problems of invalid files.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn rules(&self) -> Result<RulesView, Error> {
        self.call(Method::GET, "/v1/rules", None).await
    }

    /// Streams the new entries of every run.
    ///
    /// # Errors
    /// Those of the API with their texts. The stream ends with an error when the connection is lost.
    pub async fn events(&self) -> Result<impl Stream<Item = Result<RunJournalEntry, Error>> + use<>, Error> {
        // No time limit, because the stream has no end. No reconnect either: its events carry no id after which
        // another stream could continue.
        let answer = self.send(self.request(Method::GET, "/v1/events")).await?;
        let events = refuse_problem(answer).await?.bytes_stream().eventsource();
        Ok(events
            .map_err(Error::Events)
            .and_then(async |event| parse_event_data(&event.data)))
    }
}
