//! Calls that change runs, tickets and dead letters, with a dry run for each of them.

use domain::{DecisionVerdict, RunId, TicketKey, address::percent_encode};
use reqwest::Method;
use serde_json::{Value, json};

use super::Client;
use crate::{
    Error,
    types::{StopAllView, Would},
};

/// A call that changes stored data.
#[derive(Clone, Copy, Debug)]
pub enum ApiAction<'a> {
    /// Stops one run.
    StopRun(&'a RunId),
    /// Stops every active run of a ticket.
    StopTicket(&'a TicketKey),
    /// Retries the work on a ticket.
    RetryTicket(&'a TicketKey),
    /// Deletes all stored data of a ticket.
    Purge(&'a TicketKey),
    /// Retries the processing of a dead letter.
    RetryLetter(u64),
    /// Deletes a dead letter.
    DropLetter(u64),
    /// Sets or clears the stop of every planner.
    StopAll(bool),
    /// Decides at an approval gate.
    Decide {
        /// The run that waits.
        run: &'a RunId,
        /// The verdict at the gate.
        verdict: DecisionVerdict,
        /// The commit that it is about, which may be abbreviated to 12 characters; empty: the current
        /// question. An approval must not be empty.
        head: &'a str,
        /// The requested changes.
        feedback: &'a str,
    },
}

impl ApiAction<'_> {
    // A dry run and the call share method, path and body, so that the dry run describes exactly the same
    // call.
    fn request(&self) -> (Method, String, Option<Value>) {
        let of_ticket = |ticket: &TicketKey| format!("/v1/tickets/{}", percent_encode(&ticket.to_string()));
        let of_run = |run: &RunId| format!("/v1/runs/{}", percent_encode(&run.to_string()));
        let (method, path) = match self {
            Self::StopRun(run) => (Method::POST, format!("{}/stop", of_run(run))),
            Self::StopTicket(ticket) => (Method::POST, format!("{}/stop", of_ticket(ticket))),
            Self::RetryTicket(ticket) => (Method::POST, format!("{}/retry", of_ticket(ticket))),
            Self::Purge(ticket) => (Method::DELETE, of_ticket(ticket)),
            Self::RetryLetter(sequence) => (Method::POST, format!("/v1/dead/{sequence}/retry")),
            Self::DropLetter(sequence) => (Method::DELETE, format!("/v1/dead/{sequence}")),
            Self::StopAll(true) => (Method::POST, "/v1/stop-all".to_owned()),
            Self::StopAll(false) => (Method::DELETE, "/v1/stop-all".to_owned()),
            Self::Decide {
                run,
                verdict,
                head,
                feedback,
            } => {
                let body = json!({"verdict": verdict, "head": head, "feedback": feedback});
                return (Method::POST, format!("{}/decision", of_run(run)), Some(body));
            }
        };
        (method, path, None)
    }
}

impl Client {
    /// Returns the effects of the call without performing them.
    ///
    /// # Errors
    /// Those of the API with their texts, including the reason why the call would fail.
    pub async fn would(&self, act: ApiAction<'_>) -> Result<Vec<String>, Error> {
        let (method, path, body) = act.request();
        let Would { would } = self.call(method, &format!("{path}?dry_run=true"), body).await?;
        Ok(would)
    }

    /// Performs the call.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn act(&self, act: ApiAction<'_>) -> Result<(), Error> {
        let (method, path, body) = act.request();
        self.call::<Value>(method, &path, body).await.map(drop)
    }

    /// Stops one run.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn stop_run(&self, run: &RunId) -> Result<(), Error> {
        self.act(ApiAction::StopRun(run)).await
    }

    /// Stops every active run of a ticket.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn stop_ticket(&self, ticket: &TicketKey) -> Result<(), Error> {
        self.act(ApiAction::StopTicket(ticket)).await
    }

    /// Retries the work on a ticket.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn retry_ticket(&self, ticket: &TicketKey) -> Result<(), Error> {
        self.act(ApiAction::RetryTicket(ticket)).await
    }

    /// Deletes all stored data of a ticket.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn purge(&self, ticket: &TicketKey) -> Result<(), Error> {
        self.act(ApiAction::Purge(ticket)).await
    }

    /// Retries the processing of a dead letter.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn retry_dead_letter(&self, sequence: u64) -> Result<(), Error> {
        self.act(ApiAction::RetryLetter(sequence)).await
    }

    /// Deletes a dead letter.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn drop_dead_letter(&self, sequence: u64) -> Result<(), Error> {
        self.act(ApiAction::DropLetter(sequence)).await
    }

    /// Sets or clears the stop of every planner.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn stop_all(&self, on: bool) -> Result<StopAllView, Error> {
        let (method, path, body) = ApiAction::StopAll(on).request();
        self.call(method, &path, body).await
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
        self.act(decision).await
    }
}
