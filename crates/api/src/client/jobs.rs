//! Asking for jobs.

use domain::{Job, TicketKey};
use reqwest::Method;
use serde::de::DeserializeOwned;

use super::Client;
use crate::{
    Error,
    types::{JobAccepted, JobBody, JobPlanned, JobStarted, TextBody},
};

const PATH: &str = "/v1/jobs";

impl Client {
    /// Asks for a job on a ticket.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn dispatch(&self, ticket: &TicketKey, job: Job) -> Result<JobAccepted, Error> {
        self.dispatch_with(&body(ticket, job), None).await
    }

    /// Asks for work on a ticket of a folder, which is this text.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn dispatch_text(&self, ticket: &TicketKey, text: &TextBody) -> Result<JobAccepted, Error> {
        let body = JobBody {
            text: Some(text.clone()),
            ..implement(ticket)
        };
        self.dispatch_with(&body, None).await
    }

    /// Asks for a job; however often with the same key, it is started once.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn dispatch_with(&self, wanted: &JobBody, key: Option<&str>) -> Result<JobAccepted, Error> {
        match self.start(wanted, key).await? {
            JobStarted::Accepted(accepted) => Ok(accepted),
            JobStarted::Needless(result) => Err(Error::Needless(result.message.unwrap_or_default())),
        }
    }

    /// The same, where there may be nothing to repair.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn start(&self, wanted: &JobBody, key: Option<&str>) -> Result<JobStarted, Error> {
        self.post(wanted, key).await
    }

    /// Asks which job would be started, and starts none.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn plan(&self, wanted: &JobBody) -> Result<JobPlanned, Error> {
        let wanted = JobBody {
            dry_run: true,
            ..wanted.clone()
        };
        self.post(&wanted, None).await
    }

    async fn post<T: DeserializeOwned>(&self, wanted: &JobBody, key: Option<&str>) -> Result<T, Error> {
        let request = self.request(Method::POST, PATH).json(wanted);
        self.answered(match key {
            Some(key) => request.header("idempotency-key", key),
            None => request,
        })
        .await
    }
}

/// Work on a ticket.
pub fn implement(ticket: &TicketKey) -> JobBody {
    body(ticket, Job::Implement)
}

fn body(ticket: &TicketKey, job: Job) -> JobBody {
    JobBody {
        ticket: ticket.to_string(),
        job,
        repository: None,
        text: None,
        context: None,
        dry_run: false,
        mock: false,
    }
}
