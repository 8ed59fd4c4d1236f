//! Tickets as their trackers have them, and what happens to all of them.

use anyhow::Context;
use domain::{Entry, RunId, TicketKey};
use eventsource_stream::Eventsource;
use futures::{Stream, TryStreamExt};
use ingest::api::types::{RulesView, TicketTextView, TicketsQuery, TicketsView};
use reqwest::Method;
use serde::Deserialize;

use super::{Client, encode::encode, refuse_problem};

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
    pub async fn tickets(&self, asked: &TicketsQuery) -> anyhow::Result<TicketsView> {
        let pairs = [("status", &asked.status), ("repository", &asked.repository)];
        let pairs = pairs.into_iter().filter_map(|(name, value)| {
            let value = value.as_deref()?;
            Some(format!("{name}={}", encode(value)))
        });
        let pairs = Vec::from_iter(pairs).join("&");
        self.call(Method::GET, &format!("/v1/tickets?{pairs}"), None)
            .await
    }

    /// What a ticket says now.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn ticket_text(&self, ticket: &TicketKey) -> anyhow::Result<TicketTextView> {
        let path = format!("/v1/tickets/{}/text", encode(&ticket.to_string()));
        self.call(Method::GET, &path, None).await
    }

    /// The repositories with rules, and what is wrong with the others.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn rules(&self) -> anyhow::Result<RulesView> {
        self.call(Method::GET, "/v1/rules", None).await
    }

    /// New entries of every run from now on.
    ///
    /// # Errors
    /// Those of the API, in its words; the stream ends with an error when the connection is lost.
    pub async fn events(&self) -> anyhow::Result<impl Stream<Item = anyhow::Result<OfRun>> + use<>> {
        let asked = self.request(Method::GET, "/v1/events").send().await;
        let answer = asked.context("the API cannot be reached")?;
        let events = refuse_problem(answer).await?.bytes_stream().eventsource();
        Ok(events
            .map_err(anyhow::Error::from)
            .and_then(async |event| Ok(serde_json::from_str(&event.data)?)))
    }
}
