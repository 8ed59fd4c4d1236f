//! Actions on runs, tickets, dead letters and the installation, performed or described.

use domain::{DecisionVerdict, RunId, TicketKey, address::percent_encode};
use reqwest::Method;
use serde_json::{Value, json};

use super::connection::ClientConnection;
use crate::{Error, types::Would};

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
    pub(super) fn request(&self) -> (Method, String, Option<Value>) {
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

impl ClientConnection {
    /// Returns the effects of the call without performing them.
    ///
    /// # Errors
    /// Those of the API with their texts, including the reason why the call would fail.
    pub(super) async fn would(&self, act: ApiAction<'_>) -> Result<Vec<String>, Error> {
        let (method, path, body) = act.request();
        let Would { would } = self.call(method, &format!("{path}?dry_run=true"), body).await?;
        Ok(would)
    }

    /// Performs the call.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub(super) async fn act(&self, act: ApiAction<'_>) -> Result<(), Error> {
        let (method, path, body) = act.request();
        self.call::<Value>(method, &path, body).await.map(drop)
    }
}
