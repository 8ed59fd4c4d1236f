//! Jobs: requests for work on a ticket, and previews of it.

use std::sync::Arc;

use domain::{Job, TicketKey};
use reqwest::Method;
use serde::de::DeserializeOwned;

use super::connection::ClientConnection;
use crate::{
    Error,
    types::{JobAccepted, JobBody, JobPlanned, JobStarted, TextBody},
};

const JOBS: &str = "/v1/jobs";

/// Calls that request jobs. A clone is cheap.
#[derive(Clone)]
pub struct JobClient {
    pub(super) connection: Arc<ClientConnection>,
}

impl JobClient {
    /// Requests a job on a ticket.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn dispatch(&self, ticket: &TicketKey, job: Job) -> Result<JobAccepted, Error> {
        self.dispatch_with(&build_job_body(ticket, job), None).await
    }

    /// Requests work on a folder ticket with this text.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn dispatch_text(&self, ticket: &TicketKey, text: &TextBody) -> Result<JobAccepted, Error> {
        let body = JobBody {
            text: Some(text.clone()),
            ..build_implement_job(ticket)
        };
        self.dispatch_with(&body, None).await
    }

    /// Requests a job. Repeated requests with the same key start it once.
    ///
    /// # Errors
    /// Those of the API with their texts, and [`Error::Needless`] when there is nothing to repair.
    pub async fn dispatch_with(&self, wanted: &JobBody, key: Option<&str>) -> Result<JobAccepted, Error> {
        match self.start(wanted, key).await? {
            JobStarted::Accepted(accepted) => Ok(accepted),
            JobStarted::Needless(result) => Err(Error::Needless(result.message.unwrap_or_default())),
        }
    }

    /// Requests a job, and returns the result of a repair when there is nothing to repair.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn start(&self, wanted: &JobBody, key: Option<&str>) -> Result<JobStarted, Error> {
        self.post(wanted, key).await
    }

    /// Returns the job that would start, without starting it.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn plan(&self, wanted: &JobBody) -> Result<JobPlanned, Error> {
        let wanted = JobBody {
            dry_run: true,
            ..wanted.clone()
        };
        self.post(&wanted, None).await
    }

    async fn post<T: DeserializeOwned>(&self, wanted: &JobBody, key: Option<&str>) -> Result<T, Error> {
        let request = self.connection.request(Method::POST, JOBS).json(wanted);
        self.connection
            .answered(match key {
                // Proxies and clients may repeat a request. The key makes the API count it once.
                Some(key) => request.header("idempotency-key", key),
                None => request,
            })
            .await
    }
}

/// Returns the request for work on a ticket.
pub fn build_implement_job(ticket: &TicketKey) -> JobBody {
    build_job_body(ticket, Job::Implement)
}

fn build_job_body(ticket: &TicketKey, job: Job) -> JobBody {
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
