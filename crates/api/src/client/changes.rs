//! Calls that change something: requests for jobs and pull requests, and actions on runs, tickets and dead
//! letters.

use domain::{DecisionVerdict, Job, RunId, TicketKey, address::percent_encode};
use reqwest::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{CALL_LIMIT, Client, refuse_problem};
use crate::{
    Error,
    types::{
        JobAccepted, JobBody, JobPlanned, JobStarted, PullRequestCallView, StopAllView, TextBody, Would,
    },
};

const JOBS: &str = "/v1/jobs";
const PULL_REQUESTS: &str = "/v1/pull-requests";

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

/// Immediate answer to a request for a pull request.
#[derive(Debug)]
pub enum PullRequestSubmission {
    /// The reporter will carry out the request.
    Taken(PullRequestCallView),
    /// The request is invalid. The answer lists the problems.
    Refused(Value),
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
        let request = self.request(Method::POST, JOBS).json(wanted);
        self.answered(match key {
            // Proxies and clients may repeat a request. The key makes the API count it once.
            Some(key) => request.header("idempotency-key", key),
            None => request,
        })
        .await
    }

    /// Requests a pull request for a branch that exists on GitHub. Repeated requests with the same key count
    /// once.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn ask_pull_request(
        &self,
        request: &Value,
        key: Option<&str>,
    ) -> Result<PullRequestSubmission, Error> {
        let mut call = self.request(Method::POST, PULL_REQUESTS).json(request);
        if let Some(key) = key {
            // The key makes a repetition safe after a lost answer, when the caller cannot know whether
            // the request arrived.
            call = call.header("idempotency-key", key);
        }
        let answer = self.send(call.timeout(CALL_LIMIT)).await?;
        // A `422` answer has the schema of a result instead of a problem, so `refuse_problem` must not read
        // it.
        if answer.status() == StatusCode::UNPROCESSABLE_ENTITY {
            return Ok(PullRequestSubmission::Refused(
                answer.json().await.map_err(Error::Lost)?,
            ));
        }
        Ok(PullRequestSubmission::Taken(
            refuse_problem(answer).await?.json().await.map_err(Error::Lost)?,
        ))
    }

    /// Reads the state of a requested pull request.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn pull_request_call(&self, id: &str) -> Result<PullRequestCallView, Error> {
        let path = format!("{PULL_REQUESTS}/{}", percent_encode(id));
        self.answered(self.request(Method::GET, &path)).await
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
