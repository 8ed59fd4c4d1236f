//! Runs: reading, listing, and the orders of people to one run.

use std::sync::Arc;

use domain::{DecisionVerdict, JournalEntry, RunId, TicketKey, address::percent_encode};
use reqwest::Method;

use super::{
    actions::ApiAction,
    connection::{CALL_LIMIT, ClientConnection, refuse_problem},
};
use crate::{
    DIFF_SOURCE_HEADER, Error,
    types::{DiffSource, JournalQuery, RunDiff, RunView, RunsQuery},
};

/// Calls about runs. A clone is cheap.
#[derive(Clone)]
pub struct RunClient {
    pub(super) connection: Arc<ClientConnection>,
}

impl RunClient {
    /// Reads one run.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn read(&self, run: &RunId) -> Result<RunView, Error> {
        self.connection
            .call(
                Method::GET,
                &format!("/v1/runs/{}", percent_encode(&run.to_string())),
                None,
            )
            .await
    }

    /// Reads a run's journal so far.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn journal(&self, run: &RunId) -> Result<Vec<JournalEntry>, Error> {
        self.connection
            .call(
                Method::GET,
                &format!("/v1/runs/{}/journal", percent_encode(&run.to_string())),
                None,
            )
            .await
    }

    /// Reads one entry of a run's journal; `None` if the journal is shorter.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn entry(&self, run: &RunId, position: u64) -> Result<Option<JournalEntry>, Error> {
        let entries = self.entries(run, position, 1).await?;
        Ok(entries.into_iter().find(|entry| entry.position == position))
    }

    /// Reads a part of a run's journal: at most `limit` entries, the first one at the position `from`.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn entries(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<JournalEntry>, Error> {
        let query = JournalQuery {
            from: Some(from),
            limit: Some(limit),
        };
        let path = format!("/v1/runs/{}/journal", percent_encode(&run.to_string()));
        let request = self.connection.request(Method::GET, &path).query(&query);
        self.connection.answered(request).await
    }

    /// Reads the change of the run as text in git's format: the one of its last question at the gate, else the last one
    /// that it pushed or that its workspace showed.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn diff(&self, run: &RunId) -> Result<RunDiff, Error> {
        let path = format!("/v1/runs/{}/diff", percent_encode(&run.to_string()));
        // The answer is text, so it cannot go through `answered`, which parses JSON.
        let request = self.connection.request(Method::GET, &path).timeout(CALL_LIMIT);
        let answer = refuse_problem(self.connection.send(request).await?).await?;
        let source = answer.headers().get(DIFF_SOURCE_HEADER);
        let source = source.and_then(|name| DiffSource::parse(name.to_str().ok()?));
        Ok(RunDiff {
            // An API of an earlier release keeps only changes that people decide about, and sends no header.
            source: source.unwrap_or(DiffSource::Decision),
            text: answer.text().await.map_err(Error::Lost)?,
        })
    }

    /// Reads the text of [`Self::diff`].
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn diff_text(&self, run: &RunId) -> Result<String, Error> {
        Ok(self.diff(run).await?.text)
    }

    /// Lists the runs of a ticket, or the last hundred of all, newest last.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn recent(&self, ticket: Option<&TicketKey>) -> Result<Vec<RunView>, Error> {
        let query = RunsQuery {
            ticket: ticket.map(ToString::to_string),
            ..RunsQuery::default()
        };
        let mut newest_first = self.list(&query).await?;
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
    pub async fn list(&self, query: &RunsQuery) -> Result<Vec<RunView>, Error> {
        let request = self.connection.request(Method::GET, "/v1/runs").query(query);
        self.connection.answered(request).await
    }

    /// Decides at an approval gate about the commit `head`, which may be abbreviated to 12 characters. An
    /// empty `head` means the current question and is not accepted for an approval.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn decide(
        &self,
        run: &RunId,
        verdict: DecisionVerdict,
        head: &str,
        feedback: &str,
    ) -> Result<(), Error> {
        let decision = ApiAction::Decide {
            run,
            verdict,
            head,
            feedback,
        };
        self.connection.act(decision).await
    }

    /// Stops one run.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn stop(&self, run: &RunId) -> Result<(), Error> {
        self.connection.act(ApiAction::StopRun(run)).await
    }
}
