//! Lists of runs.

use domain::TicketKey;
use reqwest::Method;

use super::{Client, encode::encode};
use crate::{
    Error,
    types::{RunView, RunsQuery},
};

impl Client {
    /// The runs of a ticket, or the last hundred of all, newest last.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn runs(&self, ticket: Option<&TicketKey>) -> Result<Vec<RunView>, Error> {
        let asked = RunsQuery {
            ticket: ticket.map(ToString::to_string),
            ..RunsQuery::default()
        };
        let mut newest_first = self.list_runs(&asked).await?;
        newest_first.reverse();
        Ok(newest_first)
    }

    /// The runs that are asked for, newest first. As many as the limit: there may be more, `before` the last one.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn list_runs(&self, asked: &RunsQuery) -> Result<Vec<RunView>, Error> {
        let status = asked.status.map(|status| status.as_str().to_owned());
        let job = asked.job.map(|job| job.as_str().to_owned());
        let limit = asked.limit.map(|limit| limit.to_string());
        let pairs = [
            ("ticket", &asked.ticket),
            ("repository", &asked.repository),
            ("job", &job),
            ("status", &status),
            ("waits_for", &asked.waits_for),
            ("stop", &asked.stop),
            ("before", &asked.before),
            ("limit", &limit),
        ];
        let pairs = pairs.into_iter().filter_map(|(name, value)| {
            let value = value.as_deref()?;
            Some(format!("{name}={}", encode(value)))
        });
        let pairs = Vec::from_iter(pairs).join("&");
        self.call(Method::GET, &format!("/v1/runs?{pairs}"), None).await
    }
}
