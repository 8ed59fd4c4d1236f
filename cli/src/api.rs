//! A client of the API. It is the only way the command talks to a Journeyman.

mod acts;
mod encode;
mod jobs;
mod pull_requests;
mod spend;
mod tickets;

use std::{path::Path, time::Duration};

use anyhow::{Context, bail};
use domain::{Entry, LiveOutput, RunId, TicketKey};
use eventsource_stream::Eventsource;
use futures::{Stream, TryStreamExt};
use ingest::api::types::{DeadDetail, DeadView, RunView, StopAllView};
use reqwest::{Method, RequestBuilder, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use self::encode::encode;
pub use self::{acts::Act, jobs::implement, pull_requests::Asked, tickets::OfRun};
use crate::args;

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const CALL_LIMIT: Duration = Duration::from_secs(30);
/// Where `journeyman up` leaves its address and token, below its data folder.
const ACCESS_FILE: &str = "api.json";

/// The address and token of a running `journeyman up`, readable by its user only.
#[derive(Debug, Serialize, Deserialize)]
pub struct Access {
    /// Base URL.
    pub url: String,
    /// The token.
    pub token: String,
}

impl Access {
    /// That of a client.
    pub fn of(client: &Client) -> Self {
        Self {
            url: client.url.clone(),
            token: client.token.expose_secret().to_owned(),
        }
    }

    /// Leaves the file for other commands of the same user.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, data: &Path) -> anyhow::Result<()> {
        use std::{io::Write, os::unix::fs::OpenOptionsExt};
        let path = data.join(ACCESS_FILE);
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(&serde_json::to_vec(self)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Takes the file away again.
    pub fn forget(data: &Path) {
        let _ = std::fs::remove_file(data.join(ACCESS_FILE));
    }
}

/// What happens to a run while somebody follows it.
#[derive(Debug)]
pub enum Followed {
    /// A new entry of its journal.
    Entry(Box<Entry>),
    /// A tool has printed something.
    Output(LiveOutput),
}

/// A client with its token. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: SecretString,
}

impl Client {
    /// A client of the API at `url`.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn new(url: &str, token: SecretString) -> anyhow::Result<Self> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_LIMIT)
            .build()?;
        Ok(Self {
            http,
            url: url.trim_end_matches('/').to_owned(),
            token,
        })
    }

    /// A client from the arguments, the environment, or the `journeyman up` of the folder `.journeyman`.
    ///
    /// # Errors
    /// When address or token are in none of these places.
    pub fn from_args(arguments: &args::Api) -> anyhow::Result<Self> {
        let local = std::fs::read(Path::new(".journeyman").join(ACCESS_FILE)).ok();
        let local: Option<Access> = local.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let from_file = arguments
            .token_file
            .as_ref()
            .map(std::fs::read_to_string)
            .transpose()?;
        let from_environment = std::env::vars()
            .find(|(name, _)| name == "JOURNEYMAN_TOKEN")
            .map(|(_, token)| token);
        let url = arguments
            .url
            .clone()
            .or_else(|| local.as_ref().map(|access| access.url.clone()));
        let token = from_file
            .or(from_environment)
            .or_else(|| local.map(|access| access.token));
        let (Some(url), Some(token)) = (url, token) else {
            bail!(
                "no API: start `journeyman up` here, or give --api URL and --token-file FILE (or JOURNEYMAN_TOKEN)"
            );
        };
        Self::new(&url, SecretString::from(token.trim().to_owned()))
    }

    /// Says something on a ticket of a folder.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn comment(&self, ticket: &TicketKey, text: &str) -> anyhow::Result<()> {
        let path = format!("/v1/tickets/{}/comments", encode(&ticket.to_string()));
        self.call::<Value>(Method::POST, &path, Some(json!({ "text": text })))
            .await
            .map(drop)
    }

    /// Runs, newest last.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn runs(&self, ticket: Option<&TicketKey>) -> anyhow::Result<Vec<RunView>> {
        let filter = ticket
            .map(|ticket| format!("?ticket={}", encode(&ticket.to_string())))
            .unwrap_or_default();
        let mut newest_first: Vec<RunView> =
            self.call(Method::GET, &format!("/v1/runs{filter}"), None).await?;
        newest_first.reverse();
        Ok(newest_first)
    }

    /// One run.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn run(&self, run: &RunId) -> anyhow::Result<RunView> {
        self.call(
            Method::GET,
            &format!("/v1/runs/{}", encode(&run.to_string())),
            None,
        )
        .await
    }

    /// A run's journal so far.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn journal(&self, run: &RunId) -> anyhow::Result<Vec<Entry>> {
        self.call(
            Method::GET,
            &format!("/v1/runs/{}/journal", encode(&run.to_string())),
            None,
        )
        .await
    }

    /// A run's journal from its first entry on, live; ends after the run has finished.
    ///
    /// # Errors
    /// Those of the API, in its words; the stream ends with an error when the connection is lost.
    pub async fn follow(
        &self,
        run: &RunId,
    ) -> anyhow::Result<impl Stream<Item = anyhow::Result<Entry>> + use<>> {
        let events = self.follow_with_output(run).await?;
        Ok(events.try_filter_map(async |event| {
            Ok(match event {
                Followed::Entry(entry) => Some(*entry),
                Followed::Output(_) => None,
            })
        }))
    }

    /// The same, with what tools print between the entries.
    ///
    /// # Errors
    /// Those of the API, in its words; the stream ends with an error when the connection is lost.
    pub async fn follow_with_output(
        &self,
        run: &RunId,
    ) -> anyhow::Result<impl Stream<Item = anyhow::Result<Followed>> + use<>> {
        let path = format!("/v1/runs/{}/events?output=true", encode(&run.to_string()));
        let answer = self
            .request(Method::GET, &path)
            .send()
            .await
            .context("the API cannot be reached")?;
        let events = refuse_problem(answer).await?.bytes_stream().eventsource();
        Ok(events.map_err(anyhow::Error::from).and_then(async |event| {
            Ok(match event.event.as_str() {
                "output" => Followed::Output(serde_json::from_str(&event.data)?),
                _ => Followed::Entry(serde_json::from_str(&event.data)?),
            })
        }))
    }

    /// What could not be handled, newest last.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn dead_letters(&self) -> anyhow::Result<Vec<DeadView>> {
        self.call(Method::GET, "/v1/dead", None).await
    }

    /// One dead letter with what it is about.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn dead_letter(&self, sequence: u64) -> anyhow::Result<DeadDetail> {
        self.call(Method::GET, &format!("/v1/dead/{sequence}"), None)
            .await
    }

    /// Whether every planner is stopped.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn is_stopped(&self) -> anyhow::Result<StopAllView> {
        self.call(Method::GET, "/v1/stop-all", None).await
    }

    /// The change that a run last asked a person about, as text in git's format.
    ///
    /// # Errors
    /// Those of the API, in its words.
    pub async fn diff(&self, run: &RunId) -> anyhow::Result<String> {
        let path = format!("/v1/runs/{}/diff", encode(&run.to_string()));
        let request = self.request(Method::GET, &path).timeout(CALL_LIMIT);
        let answer = request
            .send()
            .await
            .with_context(|| format!("the API at {} cannot be reached", self.url))?;
        Ok(refuse_problem(answer).await?.text().await?)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<T> {
        let request = self.request(method, path);
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        self.answered(request).await
    }

    async fn answered<T: DeserializeOwned>(&self, request: RequestBuilder) -> anyhow::Result<T> {
        let answer = request
            .timeout(CALL_LIMIT)
            .send()
            .await
            .with_context(|| format!("the API at {} cannot be reached", self.url))?;
        let bytes = refuse_problem(answer).await?.bytes().await?;
        let bytes = if bytes.is_empty() {
            b"null".as_slice()
        } else {
            &bytes
        };
        serde_json::from_slice(bytes).context("the API's answer is not understood")
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(self.token.expose_secret())
    }
}

async fn refuse_problem(answer: reqwest::Response) -> anyhow::Result<reqwest::Response> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let problem: Value = answer.json().await.unwrap_or_default();
    let detail = problem
        .get("detail")
        .or_else(|| problem.get("error"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    match status {
        StatusCode::UNAUTHORIZED => bail!("the API does not know this token"),
        _ if detail.is_empty() => bail!("the API answered {status}"),
        _ => bail!("{detail}"),
    }
}
