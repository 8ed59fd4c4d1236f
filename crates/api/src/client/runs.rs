//! Calls for lists of runs.

use domain::TicketKey;
use reqwest::Method;

use super::Client;
use crate::{
    Error,
    types::{RunView, RunsQuery},
};

impl Client {
    /// Lists the runs of a ticket, or the last hundred of all, newest last.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn runs(&self, ticket: Option<&TicketKey>) -> Result<Vec<RunView>, Error> {
        let asked = RunsQuery {
            ticket: ticket.map(ToString::to_string),
            ..RunsQuery::default()
        };
        let mut newest_first = self.list_runs(&asked).await?;
        // The API pages backward, so its answers begin with the newest run.
        newest_first.reverse();
        Ok(newest_first)
    }

    /// Lists the runs that match a query, newest first.
    ///
    /// A full page may have more runs after it: the next query sets `before` to the last one.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn list_runs(&self, asked: &RunsQuery) -> Result<Vec<RunView>, Error> {
        let request = self.request(Method::GET, "/v1/runs").query(asked);
        self.answered(request).await
    }
}
