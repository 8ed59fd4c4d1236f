//! What people do to runs, tickets and dead letters, and what it would do.

use domain::{RunId, TicketKey, Verdict, address::encode};
use reqwest::Method;
use serde_json::{Value, json};

use super::Client;
use crate::{
    Error,
    types::{StopAllView, Would},
};

/// One thing that changes what is stored.
#[derive(Clone, Copy, Debug)]
pub enum Act<'a> {
    /// Stop one run.
    StopRun(&'a RunId),
    /// Stop every live run of a ticket.
    StopTicket(&'a TicketKey),
    /// Try a ticket again.
    RetryTicket(&'a TicketKey),
    /// Forget all that is stored of a ticket.
    Purge(&'a TicketKey),
    /// Try once more what a dead letter is about.
    RetryLetter(u64),
    /// Forget a dead letter.
    DropLetter(u64),
    /// Switch the stop of every planner.
    StopAll(bool),
    /// Decide at an approval gate.
    Decide {
        /// The run that waits.
        run: &'a RunId,
        /// The answer.
        verdict: Verdict,
        /// The commit that it is about, which may be abbreviated to 7 characters; empty means whatever is asked about, which
        /// an approval must not say.
        head: &'a str,
        /// What to change.
        feedback: &'a str,
    },
}

impl Act<'_> {
    fn request(&self) -> (Method, String, Option<Value>) {
        let of_ticket = |ticket: &TicketKey| format!("/v1/tickets/{}", encode(&ticket.to_string()));
        let of_run = |run: &RunId| format!("/v1/runs/{}", encode(&run.to_string()));
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
    /// Asks what would happen, and nothing does.
    ///
    /// # Errors
    /// Those of the API, in its words: also why it would not be done.
    pub async fn would(&self, act: Act<'_>) -> Result<Vec<String>, Error> {
        let (method, path, body) = act.request();
        let Would { would } = self.call(method, &format!("{path}?dry_run=true"), body).await?;
        Ok(would)
    }

    /// Does it.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn act(&self, act: Act<'_>) -> Result<(), Error> {
        let (method, path, body) = act.request();
        self.call::<Value>(method, &path, body).await.map(drop)
    }

    /// Stops one run.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn stop_run(&self, run: &RunId) -> Result<(), Error> {
        self.act(Act::StopRun(run)).await
    }

    /// Stops every live run of a ticket.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn stop_ticket(&self, ticket: &TicketKey) -> Result<(), Error> {
        self.act(Act::StopTicket(ticket)).await
    }

    /// Tries a ticket again.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn retry_ticket(&self, ticket: &TicketKey) -> Result<(), Error> {
        self.act(Act::RetryTicket(ticket)).await
    }

    /// Forgets all that is stored of a ticket.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn purge(&self, ticket: &TicketKey) -> Result<(), Error> {
        self.act(Act::Purge(ticket)).await
    }

    /// Tries once more what a dead letter is about.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn retry_dead_letter(&self, sequence: u64) -> Result<(), Error> {
        self.act(Act::RetryLetter(sequence)).await
    }

    /// Forgets a dead letter.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn drop_dead_letter(&self, sequence: u64) -> Result<(), Error> {
        self.act(Act::DropLetter(sequence)).await
    }

    /// Switches the stop of every planner.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn stop_all(&self, on: bool) -> Result<StopAllView, Error> {
        let (method, path, body) = Act::StopAll(on).request();
        self.call(method, &path, body).await
    }

    /// Decides at an approval gate about the commit `head`, which may be abbreviated to 7 characters; empty means
    /// whatever is asked about, which an approval must not say.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn decide(
        &self,
        run: &RunId,
        verdict: Verdict,
        head: &str,
        feedback: &str,
    ) -> Result<(), Error> {
        let decision = Act::Decide {
            run,
            verdict,
            head,
            feedback,
        };
        self.act(decision).await
    }
}
