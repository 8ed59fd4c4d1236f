//! Calls for pull requests.

use domain::address::percent_encode;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{CALL_LIMIT, Client, refuse_problem};
use crate::{Error, types::PullRequestCallView};

const PATH: &str = "/v1/pull-requests";

/// Immediate answer to a request for a pull request.
#[derive(Debug)]
pub enum PullRequestSubmission {
    /// The reporter will carry out the request.
    Taken(PullRequestCallView),
    /// The request is invalid. The answer lists the problems.
    Refused(Value),
}

impl Client {
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
        let mut asked = self.request(Method::POST, PATH).json(request);
        if let Some(key) = key {
            // The key makes a repetition safe after a lost answer, when the caller cannot know whether
            // the request arrived.
            asked = asked.header("idempotency-key", key);
        }
        let answer = self.send(asked.timeout(CALL_LIMIT)).await?;
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
        let path = format!("{PATH}/{}", percent_encode(id));
        self.answered(self.request(Method::GET, &path)).await
    }
}
