//! Asking for pull requests.

use domain::address::encode;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{CALL_LIMIT, Client, refuse_problem};
use crate::{Error, types::PullRequestCallView};

const PATH: &str = "/v1/pull-requests";

/// What becomes of a request at once.
#[derive(Debug)]
pub enum Asked {
    /// It will be carried out.
    Taken(PullRequestCallView),
    /// It is wrong: the answer says how.
    Refused(Value),
}

impl Client {
    /// Asks for a pull request of a branch that GitHub has; however often with the same key, once.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn ask_pull_request(&self, request: &Value, key: Option<&str>) -> Result<Asked, Error> {
        let mut asked = self.request(Method::POST, PATH).json(request);
        if let Some(key) = key {
            asked = asked.header("idempotency-key", key);
        }
        let answer = self.send(asked.timeout(CALL_LIMIT)).await?;
        if answer.status() == StatusCode::UNPROCESSABLE_ENTITY {
            return Ok(Asked::Refused(answer.json().await.map_err(Error::Lost)?));
        }
        Ok(Asked::Taken(
            refuse_problem(answer).await?.json().await.map_err(Error::Lost)?,
        ))
    }

    /// How far it is.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn pull_request_call(&self, id: &str) -> Result<PullRequestCallView, Error> {
        let path = format!("{PATH}/{}", encode(id));
        self.answered(self.request(Method::GET, &path)).await
    }
}
