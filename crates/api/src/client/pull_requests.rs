//! Pull requests for branches that exist already.

use std::sync::Arc;

use domain::address::percent_encode;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::connection::{CALL_LIMIT, ClientConnection, refuse_problem};
use crate::{Error, types::PullRequestCallView};

const PULL_REQUESTS: &str = "/v1/pull-requests";

/// Immediate answer to a request for a pull request.
#[derive(Debug)]
pub enum PullRequestSubmission {
    /// The reporter will carry out the request.
    Taken(PullRequestCallView),
    /// The request is invalid. The answer lists the problems.
    Refused(Value),
}

/// Calls that request pull requests. A clone is cheap.
#[derive(Clone)]
pub struct PullRequestClient {
    pub(super) connection: Arc<ClientConnection>,
}

impl PullRequestClient {
    /// Requests a pull request for a branch that exists on GitHub. Repeated requests with the same key count
    /// once.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn request(&self, request: &Value, key: Option<&str>) -> Result<PullRequestSubmission, Error> {
        let mut call = self.connection.request(Method::POST, PULL_REQUESTS).json(request);
        if let Some(key) = key {
            // The key makes a repetition safe after a lost answer, when the caller cannot know whether
            // the request arrived.
            call = call.header("idempotency-key", key);
        }
        let answer = self.connection.send(call.timeout(CALL_LIMIT)).await?;
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
    pub async fn read(&self, id: &str) -> Result<PullRequestCallView, Error> {
        let path = format!("{PULL_REQUESTS}/{}", percent_encode(id));
        self.connection
            .answered(self.connection.request(Method::GET, &path))
            .await
    }
}
