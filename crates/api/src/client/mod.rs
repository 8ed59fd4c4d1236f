//! Client of the API: its connection, and the calls that read.

mod changes;
mod run_stream;

use std::time::Duration;

use domain::{JournalEntry, RunId, TicketKey, address::percent_encode};
use reqwest::{Method, RequestBuilder, Response, StatusCode, header::RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use self::{
    changes::{ApiAction, PullRequestSubmission, build_implement_job},
    run_stream::{RunEvent, RunJournalEntry},
};
use crate::{
    DIFF_SOURCE_HEADER, Error, PERSON_HEADER, ROLE_HEADER, SUBJECT_HEADER,
    types::{
        ActivityQuery, ActivityView, CallerView, CredentialView, DeadDetail, DeadView, DiffSource,
        JournalQuery, PoolsView, Role, RulesView, RunDiff, RunView, RunsQuery, SpendQuery, SpendView,
        StopAllView, TicketSummariesQuery, TicketSummary, TicketTextView, TicketView, TicketsQuery,
        TicketsView,
    },
};

const CONNECT_LIMIT: Duration = Duration::from_secs(5);
const CALL_LIMIT: Duration = Duration::from_secs(30);
// Maximum repetitions of a request that the API rejected for its rate, and the longest pause between two.
const MAX_REPEATS: usize = 5;
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Client of the API with its token. A clone is cheap.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: SecretString,
    // The person on whose behalf the calls are made, for a token that may act for people.
    person: Option<ActingPerson>,
    // The name of the person at the identity provider.
    subject: Option<String>,
}

/// A person who logged in at another service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActingPerson {
    /// The name in journals.
    pub name: String,
    /// Role that limits the calls.
    pub role: Role,
}

impl Client {
    /// Creates a client of the API at `url`.
    ///
    /// # Errors
    /// When the HTTP client cannot be created.
    pub fn new(url: &str, token: SecretString) -> Result<Self, Error> {
        let http = reqwest::Client::builder()
            // A limit for the whole request would end streams of events, so each call sets its own.
            .connect_timeout(CONNECT_LIMIT)
            .build()
            .map_err(Error::Client)?;
        Ok(Self {
            http,
            // Every path begins with a slash, and a double slash would be another route.
            url: url.trim_end_matches('/').to_owned(),
            token,
            person: None,
            subject: None,
        })
    }

    /// Returns the client on behalf of a person. Its token must be one that may act for people.
    #[must_use]
    pub fn on_behalf_of(self, person: ActingPerson) -> Self {
        Self {
            person: Some(person),
            ..self
        }
    }

    /// Returns the client with the person's name at the identity provider. Journals contain it next to the
    /// display name.
    #[must_use]
    pub fn with_subject(self, subject: String) -> Self {
        Self {
            subject: Some(subject),
            ..self
        }
    }

    /// The base URL, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The token of the calls.
    pub fn token(&self) -> &SecretString {
        &self.token
    }

    /// The person on whose behalf the calls are made; `None` for a client that acts for itself.
    pub const fn person(&self) -> Option<&ActingPerson> {
        self.person.as_ref()
    }

    /// Reads the name and the role of the caller. `None` for an API of an earlier release without this path,
    /// which has then not checked the token.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn caller(&self) -> Result<Option<CallerView>, Error> {
        accept_unknown_path(self.call(Method::GET, "/v1/me", None).await)
    }

    /// Reads the results of the last days. `None` for an API of an earlier release without this path.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn activity(&self, query: &ActivityQuery) -> Result<Option<ActivityView>, Error> {
        let request = self.request(Method::GET, "/v1/activity").query(query);
        accept_unknown_path(self.answered(request).await)
    }

    /// Lists the tickets with runs that match a query, the most recently requested first. Empty for an API of
    /// an earlier release without this path.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn ticket_summaries(&self, query: &TicketSummariesQuery) -> Result<Vec<TicketSummary>, Error> {
        let request = self.request(Method::GET, "/v1/ticket-summaries").query(query);
        let found = accept_unknown_path(self.answered(request).await)?;
        Ok(found.unwrap_or_default())
    }

    /// Sends a comment to the active runs of a ticket.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn comment(&self, ticket: &TicketKey, text: &str) -> Result<(), Error> {
        let path = format!("/v1/tickets/{}/comments", percent_encode(&ticket.to_string()));
        self.call::<Value>(Method::POST, &path, Some(json!({ "text": text })))
            .await
            .map(drop)
    }

    /// Reads one run.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn run(&self, run: &RunId) -> Result<RunView, Error> {
        self.call(
            Method::GET,
            &format!("/v1/runs/{}", percent_encode(&run.to_string())),
            None,
        )
        .await
    }

    /// Reads a run's journal so far.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn journal(&self, run: &RunId) -> Result<Vec<JournalEntry>, Error> {
        self.call(
            Method::GET,
            &format!("/v1/runs/{}/journal", percent_encode(&run.to_string())),
            None,
        )
        .await
    }

    /// Reads one entry of a run's journal; `None` if the journal is shorter.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn entry(&self, run: &RunId, position: u64) -> Result<Option<JournalEntry>, Error> {
        let entries = self.entries(run, position, 1).await?;
        Ok(entries.into_iter().find(|entry| entry.position == position))
    }

    /// Reads a part of a run's journal: at most `limit` entries, the first one at the position `from`.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn entries(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<JournalEntry>, Error> {
        let query = JournalQuery {
            from: Some(from),
            limit: Some(limit),
        };
        let path = format!("/v1/runs/{}/journal", percent_encode(&run.to_string()));
        let request = self.request(Method::GET, &path).query(&query);
        self.answered(request).await
    }

    /// Lists the dead letters, newest last.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn dead_letters(&self) -> Result<Vec<DeadView>, Error> {
        self.call(Method::GET, "/v1/dead", None).await
    }

    /// Reads one dead letter with its content.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn dead_letter(&self, sequence: u64) -> Result<DeadDetail, Error> {
        self.call(Method::GET, &format!("/v1/dead/{sequence}"), None)
            .await
    }

    /// Lists the expiry dates of the services' credentials, the earliest first. Empty for an API of an
    /// earlier release without this path.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn credentials(&self) -> Result<Vec<CredentialView>, Error> {
        let found = accept_unknown_path(self.call(Method::GET, "/v1/credentials", None).await)?;
        Ok(found.unwrap_or_default())
    }

    /// Reads the state of the switch that stops every planner.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn is_stopped(&self) -> Result<StopAllView, Error> {
        self.call(Method::GET, "/v1/stop-all", None).await
    }

    /// Reads the change of the run as text in git's format: the one of its last question at the gate, else the last one
    /// that it pushed or that its workspace showed.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn run_diff(&self, run: &RunId) -> Result<RunDiff, Error> {
        let path = format!("/v1/runs/{}/diff", percent_encode(&run.to_string()));
        // The answer is text, so it cannot go through `answered`, which parses JSON.
        let request = self.request(Method::GET, &path).timeout(CALL_LIMIT);
        let answer = refuse_problem(self.send(request).await?).await?;
        let source = answer.headers().get(DIFF_SOURCE_HEADER);
        let source = source.and_then(|name| DiffSource::parse(name.to_str().ok()?));
        Ok(RunDiff {
            // An API of an earlier release keeps only changes that people decide about, and sends no header.
            source: source.unwrap_or(DiffSource::Decision),
            text: answer.text().await.map_err(Error::Lost)?,
        })
    }

    /// Reads the text of [`Client::run_diff`].
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn diff(&self, run: &RunId) -> Result<String, Error> {
        Ok(self.run_diff(run).await?.text)
    }

    /// Lists the runs of a ticket, or the last hundred of all, newest last.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn runs(&self, ticket: Option<&TicketKey>) -> Result<Vec<RunView>, Error> {
        let query = RunsQuery {
            ticket: ticket.map(ToString::to_string),
            ..RunsQuery::default()
        };
        let mut newest_first = self.list_runs(&query).await?;
        // The API pages backward, so its answers begin with the newest run.
        newest_first.reverse();
        Ok(newest_first)
    }

    /// Lists the runs that match a query, newest first.
    ///
    /// A full page may have more runs after it: the next query sets `before` to the last one.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn list_runs(&self, query: &RunsQuery) -> Result<Vec<RunView>, Error> {
        let request = self.request(Method::GET, "/v1/runs").query(query);
        self.answered(request).await
    }

    /// Reads the cost of models in a period, from all pages of the answer. Several lines may have the same
    /// names; their amounts have to be added.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn spend(&self, query: &SpendQuery) -> Result<SpendView, Error> {
        let mut all = self.read_spend_page(query).await?;
        while let Some(from) = all.next {
            let rest = SpendQuery {
                // The first answer resolves open limits such as "now". Later pages repeat its values, so that
                // all pages cover the same period.
                since: Some(all.since.clone()),
                until: Some(all.until.clone()),
                from: Some(from),
            };
            let page = self.read_spend_page(&rest).await?;
            all.lines.extend(page.lines);
            all.next = page.next;
        }
        Ok(all)
    }

    async fn read_spend_page(&self, query: &SpendQuery) -> Result<SpendView, Error> {
        let request = self.request(Method::GET, "/v1/spend").query(query);
        self.answered(request).await
    }

    /// Lists the pools of executors, sorted by name.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn pools(&self) -> Result<PoolsView, Error> {
        self.call(Method::GET, "/v1/pools", None).await
    }

    /// Lists tickets of the projects and repositories in the rules.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn tickets(&self, query: &TicketsQuery) -> Result<TicketsView, Error> {
        let request = self.request(Method::GET, "/v1/tickets").query(query);
        self.answered(request).await
    }

    /// Reads the runs of a ticket and the status of its pull requests.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn ticket(&self, ticket: &TicketKey) -> Result<TicketView, Error> {
        let path = format!("/v1/tickets/{}", percent_encode(&ticket.to_string()));
        self.call(Method::GET, &path, None).await
    }

    /// Reads the current text of a ticket.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn ticket_text(&self, ticket: &TicketKey) -> Result<TicketTextView, Error> {
        let path = format!("/v1/tickets/{}/text", percent_encode(&ticket.to_string()));
        self.call(Method::GET, &path, None).await
    }

    /// Lists the repositories with rules, and the problems of invalid files.
    ///
    /// # Errors
    /// Those of the API with their texts.
    pub async fn rules(&self) -> Result<RulesView, Error> {
        self.call(Method::GET, "/v1/rules", None).await
    }

    async fn call<T: DeserializeOwned>(
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

    async fn answered<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Error> {
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
    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
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

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
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

/// Returns `None` for the answer of an API that does not have the path.
fn accept_unknown_path<T>(answered: Result<T, Error>) -> Result<Option<T>, Error> {
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

async fn refuse_problem(answer: Response) -> Result<Response, Error> {
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

fn parse_event_data<T: DeserializeOwned>(data: &str) -> Result<T, Error> {
    serde_json::from_str(data).map_err(Error::NotUnderstood)
}
