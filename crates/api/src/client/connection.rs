//! Connection to the API: its address, its token, and the exchange of requests and answers.

use std::{net::IpAddr, time::Duration};

use domain::address::percent_encode;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url, header::RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Error, PERSON_HEADER, ROLE_HEADER, SUBJECT_HEADER, types::Role};

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(30);
// Maximum repetitions of a request that the API rejected for its rate, and the longest pause between two.
const MAX_REPEATS: usize = 5;
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Connection to the API with the token of its caller.
#[derive(Clone)]
pub(super) struct ClientConnection {
    http: reqwest::Client,
    pub(super) url: String,
    pub(super) token: SecretString,
    // The person on whose behalf the calls are made, for a token that may act for people.
    pub(super) person: Option<ActingPerson>,
    // The name of the person at the identity provider.
    pub(super) subject: Option<String>,
}

/// A person who logged in at another service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActingPerson {
    /// The name in journals.
    pub name: String,
    /// Role that limits the calls.
    pub role: Role,
}

impl ClientConnection {
    /// Creates a connection to the API at `url`.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub(super) fn new(url: &str, token: SecretString) -> Result<Self, Error> {
        let http = reqwest::Client::builder()
            // A limit for the whole request would end streams of events, so each call sets its own.
            .connect_timeout(CONNECT_LIMIT);
        // The library takes the proxy of the environment for these addresses too. The proxy would get the token and
        // connect to its own loopback.
        let http = if is_this_machine(url) {
            http.no_proxy()
        } else {
            http
        };
        let http = http.build().map_err(Error::Client)?;
        Ok(Self {
            http,
            // Every path begins with a slash, and a double slash would be another route.
            url: url.trim_end_matches('/').to_owned(),
            token,
            person: None,
            subject: None,
        })
    }

    /// Sends a request with an optional body and parses the answer.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<T, Error> {
        let request = self.request(method, path);
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        self.answered(request).await
    }

    /// Sends a request and parses the answer.
    pub(super) async fn answered<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Error> {
        let answer = self.send(request.timeout(CALL_LIMIT)).await?;
        let bytes = refuse_problem(answer).await?.bytes().await.map_err(Error::Lost)?;
        // Some calls succeed without a body, which is not valid JSON.
        let bytes = if bytes.is_empty() {
            b"null".as_slice()
        } else {
            &bytes
        };
        serde_json::from_slice(bytes).map_err(Error::NotUnderstood)
    }

    /// Sends a request, and repeats it after the pause of a `429` answer. The repetition is safe, because the
    /// API did not process the request.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        for _ in 0..MAX_REPEATS {
            // A streamed body cannot be cloned, and then the request is sent only once.
            let Some(copy) = request.try_clone() else { break };
            let answer = copy.send().await.map_err(|source| self.unreachable(source))?;
            let Some(pause) = asked_pause(&answer) else {
                return Ok(answer);
            };
            tokio::time::sleep(pause).await;
        }
        // The last answer is returned even if it is a `429`, so that the caller sees its status and
        // text.
        request.send().await.map_err(|source| self.unreachable(source))
    }

    fn unreachable(&self, source: reqwest::Error) -> Error {
        Error::Unreachable {
            url: self.url.clone(),
            source,
        }
    }

    /// Builds a request with the token and the names of the person.
    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = request.bearer_auth(self.token.expose_secret());
        // Header values are limited to ASCII, so names of people are percent-encoded.
        let request = match &self.subject {
            Some(subject) => request.header(SUBJECT_HEADER, percent_encode(subject)),
            None => request,
        };
        match &self.person {
            Some(person) => request
                .header(PERSON_HEADER, percent_encode(&person.name))
                .header(ROLE_HEADER, person.role.as_str()),
            None => request,
        }
    }
}

/// Returns true for a URL of this machine.
fn is_this_machine(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default();
    match host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>()
    {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost",
    }
}

/// Returns `None` for the answer of an API that does not have the path.
pub(super) fn accept_unknown_path<T>(answered: Result<T, Error>) -> Result<Option<T>, Error> {
    match answered {
        Err(Error::Refused { status, .. }) if status == StatusCode::NOT_FOUND => Ok(None),
        answered => answered.map(Some),
    }
}

/// Returns the pause of a `429` answer; `None` for other answers and without a `Retry-After` in seconds.
fn asked_pause(answer: &Response) -> Option<Duration> {
    if answer.status() != StatusCode::TOO_MANY_REQUESTS {
        return None;
    }
    let seconds = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_PAUSE))
}

/// Returns an answer of success; turns every other one into its error.
pub(super) async fn refuse_problem(answer: Response) -> Result<Response, Error> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    if status == StatusCode::UNAUTHORIZED {
        return Err(Error::UnknownToken);
    }
    // The body is only a description, so an unreadable one does not hide the status.
    let problem: Value = answer.json().await.unwrap_or_default();
    let text = |name| problem.get(name).and_then(Value::as_str).unwrap_or_default();
    let name = text("error").to_owned();
    let detail = match text("detail") {
        "" => name.clone(),
        detail => detail.to_owned(),
    };
    Err(Error::Refused { status, name, detail })
}

/// Parses the data of an event.
pub(super) fn parse_event_data<T: DeserializeOwned>(data: &str) -> Result<T, Error> {
    serde_json::from_str(data).map_err(Error::NotUnderstood)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_machine_are_recognized() {
        for url in [
            "http://127.0.0.1:7401",
            "http://[::1]:7401",
            "http://LOCALHOST:7401/",
            "http://0.0.0.0:7401",
        ] {
            assert!(is_this_machine(url), "{url}");
        }
        for url in [
            "https://journeyman.example",
            "http://10.0.0.1:7401",
            "http://localhost.example",
            "http://127.0.0.1@journeyman.example",
            "ingest:7401",
        ] {
            assert!(!is_this_machine(url), "{url}");
        }
    }
}
