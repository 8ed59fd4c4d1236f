//! One HTTP exchange with GitHub: time-out, answer, and the class of a failure.

use std::{collections::hash_map::RandomState, error::Error as StdError, hash::BuildHasher, time::Duration};

use domain::{Cause, cause::chain, json};
use http::{HeaderMap, HeaderValue, header};
use http_body_util::BodyExt as _;
use octocrab::Octocrab;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    ETag, Error,
    call::Call,
    error::capped,
    limits::{Caller, LimitHeaders},
    permissions,
};

const TOTAL_TIMEOUT: Duration = Duration::from_secs(20);
const RETRY_DELAYS_MS: [u64; 2] = [200, 1000];
const LOST: &str = "the connection was lost";
const DEFAULT_RATE_LIMIT_WAIT: Duration = Duration::from_secs(60);

/// A good answer.
pub(crate) struct Answer {
    name: String,
    /// Nothing changed since the tag that the call named; the body is empty.
    pub(crate) is_unchanged: bool,
    pub(crate) etag: Option<ETag>,
    link: Option<String>,
    scopes: Option<String>,
    /// What it said of limits, as a refusal in a good answer needs it.
    limits: LimitHeaders,
    body: String,
}

impl Answer {
    /// The body that an unchanged answer had before.
    pub(crate) fn with_body(self, body: String) -> Self {
        Self { body, ..self }
    }

    pub(crate) fn body(&self) -> &str {
        &self.body
    }

    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if self.body.is_empty() {
            // Only a write gets here with it, and it may have been done.
            return Err(lost(
                true,
                format!("{} was answered by an empty body", self.name),
                None,
            ));
        }
        serde_json::from_str(&self.body).map_err(|error| self.malformed(&error))
    }

    // serde quotes values it did not expect; where it stopped says enough.
    fn malformed(&self, error: &serde_json::Error) -> Error {
        let detail = format!("{}, line {} column {}", self.name, error.line(), error.column());
        Error::Malformed { detail }
    }

    /// The `data` of a GraphQL answer, unless it holds errors.
    pub(crate) fn parse_graphql(&self) -> Result<Value, Error> {
        let answer: WireGraphql = self.parse()?;
        let Some(first) = answer.errors.into_iter().next() else {
            return Ok(answer.data);
        };
        let detail = capped(&first.message);
        Err(match first.kind.as_deref() {
            Some("NOT_FOUND") => Error::NotFound { what: detail },
            Some("FORBIDDEN" | "INSUFFICIENT_SCOPES") => Error::Forbidden { detail, needs: None },
            Some("RATE_LIMITED") => Error::RateLimited {
                retry_after: self.limits.wait().unwrap_or(DEFAULT_RATE_LIMIT_WAIT),
            },
            Some(_) | None => Error::Rejected { detail },
        })
    }

    /// Query of the next page, from the `Link` header.
    pub(crate) fn next_query(&self) -> Option<String> {
        let next = self
            .link
            .as_deref()?
            .split(',')
            .find(|part| part.contains("rel=\"next\""))?;
        let url = next.split('<').nth(1)?.split('>').next()?;
        url.split_once('?').map(|(_, query)| query.to_owned())
    }

    /// OAuth scopes of the token.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let scopes = self.scopes.as_deref().unwrap_or_default().split(',');
        scopes
            .map(str::trim)
            .filter(|scope| !scope.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

#[derive(Deserialize)]
struct WireGraphql {
    #[serde(default)]
    data: Value,
    #[serde(default)]
    errors: Vec<WireGraphqlError>,
}

#[derive(Deserialize)]
struct WireGraphqlError {
    #[serde(rename = "type")]
    kind: Option<String>,
    message: String,
}

/// What a refusal says besides its status.
#[derive(Default)]
struct Hints {
    limits: LimitHeaders,
    location: Option<String>,
    /// The permissions that would have sufficed.
    permissions: Option<String>,
}

/// Reads; tried three times.
pub(crate) async fn read(caller: &Caller, call: Call<'_>) -> Result<Answer, Error> {
    let mut delays = RETRY_DELAYS_MS.into_iter();
    loop {
        let result = send(caller, call).await;
        match (&result, delays.next()) {
            (Err(error @ Error::Unavailable { .. }), Some(delay)) => {
                tracing::debug!(error = %chain(error), "github read failed, trying again");
                tokio::time::sleep(with_jitter(delay)).await;
            }
            (Ok(_) | Err(_), _) => return result,
        }
    }
}

fn with_jitter(ms: u64) -> Duration {
    Duration::from_millis(ms + RandomState::new().hash_one(ms) % (ms / 2))
}

/// Sends it once, unless the limits of the caller forbid it.
pub(crate) async fn send(caller: &Caller, call: Call<'_>) -> Result<Answer, Error> {
    caller.limits.admit(call).await?;
    let sending = Box::pin(exchange(&caller.crab, call));
    let Ok(sent) = timeout(TOTAL_TIMEOUT, sending).await else {
        return Err(lost(call.is_write(), format!("{} timed out", call.name()), None));
    };
    let (limits, result) = sent?;
    let refused = match &result {
        Err(Error::RateLimited { retry_after }) => Some(*retry_after),
        Ok(_) | Err(_) => None,
    };
    caller.limits.hear(call, limits.heard(refused)).await;
    result
}

/// An answer of whatever kind, with what it said of limits; the error is that there is none.
async fn exchange(crab: &Octocrab, call: Call<'_>) -> Result<(LimitHeaders, Result<Answer, Error>), Error> {
    let write = call.is_write();
    let response = match call {
        Call::Get(path) => crab._get(path).await,
        Call::GetUnless(path, known) => crab._get_with_headers(path, Some(if_none_match(known)?)).await,
        Call::Query(path, body) | Call::Post(path, body) => crab._post(path, Some(body)).await,
        Call::Patch(path, body) => crab._patch(path, Some(body)).await,
        Call::Delete(path, body) => crab._delete(path, body).await,
    }
    .map_err(|error| failure(error, write))?;
    let status = response.status().as_u16();
    let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
    let limits = LimitHeaders::read(response.headers());
    let hints = Hints {
        limits,
        location: header("location"),
        permissions: header("x-accepted-github-permissions").and_then(|text| permissions::readable(&text)),
    };
    let (link, scopes, etag) = (header("link"), header("x-oauth-scopes"), header("etag"));
    let content_type = header("content-type").unwrap_or_default();
    let is_unchanged = status == 304 && matches!(call, Call::GetUnless(..));
    let body = response
        .into_body()
        .collect()
        .await
        .map_err(|error| failure(error, write))?;
    let body = json::replace_broken_characters(&body.to_bytes()).into_owned();
    let body = String::from_utf8_lossy(&body).into_owned();
    let result = if is_unchanged || (200..300).contains(&status) {
        if !is_unchanged && let Some(problem) = find_foreign_answer(write, &content_type, &body) {
            let detail = format!("{} answered {status} with {problem}", call.name());
            return Ok((limits, Err(lost(write, detail, None))));
        }
        Ok(Answer {
            name: call.name(),
            is_unchanged,
            etag: etag.map(ETag),
            link,
            scopes,
            limits,
            body,
        })
    } else if matches!(status, 404 | 410) && json::is_page(&content_type) {
        // The API itself says in JSON what it does not know.
        let detail = format!("{} answered {status} with a page", call.name());
        Err(lost(write, detail, None))
    } else {
        Err(refusal(call, status, hints, &message(&body)))
    };
    Ok((limits, result))
}

/// The problem with a good status whose body GitHub did not write: a page of a proxy, a portal or a maintenance, or an
/// answer that was cut. It passes, as an error of the server does. A write may be answered by nothing.
fn find_foreign_answer(write: bool, content_type: &str, body: &str) -> Option<&'static str> {
    if write && body.is_empty() {
        return None;
    }
    json::find_foreign_answer(content_type, body.as_bytes())
}

/// The last `keep` bytes of a text at another address. What is not UTF-8 of it is replaced.
pub(crate) async fn fetch(crab: &Octocrab, url: &str, keep: usize) -> Result<String, Error> {
    let fetching = async {
        let response = crab._get(url).await.map_err(|error| failure(error, false))?;
        let status = response.status().as_u16();
        if !(200..300).contains(&status) {
            let what = "the text that GitHub redirects to".to_owned();
            return Err(match status {
                404 | 410 => Error::NotFound { what },
                _ => lost(false, format!("{what} answered {status}"), None),
            });
        }
        let mut body = response.into_body();
        let mut last: Vec<u8> = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| failure(error, false))?;
            if let Some(data) = frame.data_ref() {
                last.extend_from_slice(data);
                // Twice as much is held, so that it is not moved for every piece.
                if last.len() > keep * 2 {
                    last.drain(..last.len() - keep);
                }
            }
        }
        last.drain(..last.len().saturating_sub(keep));
        Ok(String::from_utf8_lossy(&last).into_owned())
    };
    match timeout(TOTAL_TIMEOUT, Box::pin(fetching)).await {
        Ok(result) => result,
        Err(_) => Err(lost(false, "a redirected text timed out".to_owned(), None)),
    }
}

fn if_none_match(known: &ETag) -> Result<HeaderMap, Error> {
    let value = HeaderValue::from_str(&known.0).map_err(|_| Error::Rejected {
        detail: "the tag of an earlier answer is not a legal header".to_owned(),
    })?;
    Ok(HeaderMap::from_iter([(header::IF_NONE_MATCH, value)]))
}

/// GitHub's words: the message and what it says of the parts of the request.
fn message(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let parts = value["errors"].as_array().into_iter().flatten();
    let general = value["message"].as_str().map(str::to_owned);
    let words: Vec<String> = general.into_iter().chain(parts.filter_map(problem)).collect();
    capped(&words.join("; "))
}

/// One refused part: `No commits between main and x`, or `head: invalid` where GitHub has no words for it.
fn problem(part: &Value) -> Option<String> {
    let text = |key: &str| part[key].as_str().filter(|text| !text.is_empty());
    let words = text("message").or_else(|| part.as_str()).map(str::to_owned);
    words.or_else(|| {
        let code = text("code")?;
        Some(text("field").map_or_else(|| code.to_owned(), |field| format!("{field}: {code}")))
    })
}

fn refusal(call: Call<'_>, status: u16, hints: Hints, message: &str) -> Error {
    if let (301 | 302 | 307 | 308, Some(to)) = (status, hints.location) {
        return Error::Moved { to };
    }
    let what = || format!("{} answered {status}", call.name());
    let detail = || {
        if message.is_empty() {
            what()
        } else {
            message.to_owned()
        }
    };
    let lower = message.to_ascii_lowercase();
    let limits = hints.limits;
    let limited = limits.retry_after.is_some() || limits.is_exhausted() || lower.contains("rate limit");
    match status {
        401 => Error::Unauthorized {
            check: "App id and private key, or the token".to_owned(),
        },
        403 | 429 if limited || status == 429 => Error::RateLimited {
            retry_after: limits.wait().unwrap_or(DEFAULT_RATE_LIMIT_WAIT),
        },
        403 => Error::Forbidden {
            detail: detail(),
            needs: hints.permissions,
        },
        404 | 410 => Error::NotFound { what: call.name() },
        409 => Error::Conflict { detail: detail() },
        422 if lower.contains("already exists") => Error::Conflict { detail: detail() },
        503 => lost(false, what(), None),
        500.. => lost(call.is_write(), what(), None),
        _ => Error::Rejected { detail: detail() },
    }
}

/// Nobody answered, or only a gateway did: a write may have arrived.
const fn lost(write: bool, detail: String, source: Option<Cause>) -> Error {
    if write {
        Error::Unknown { detail, source }
    } else {
        Error::Unavailable { detail, source }
    }
}

/// The class of a failed call. Only a connection that never stood proves that nothing was sent.
pub(crate) fn failure(error: octocrab::Error, write: bool) -> Error {
    match error {
        octocrab::Error::JWT { .. } => Error::Unauthorized {
            check: "the App's private key".to_owned(),
        },
        octocrab::Error::Service { source, .. } if never_connected(&*source) => {
            lost(false, "cannot connect".to_owned(), Some(source))
        }
        octocrab::Error::InvalidUtf8 { .. }
        | octocrab::Error::Json { .. }
        | octocrab::Error::Serde { .. } => lost(write, "the answer is not JSON in UTF-8".to_owned(), None),
        octocrab::Error::Uri { .. } | octocrab::Error::UriParse { .. } | octocrab::Error::Http { .. } => {
            Error::Rejected {
                detail: "the path is not a legal URL".to_owned(),
            }
        }
        // Its own text has a backtrace.
        octocrab::Error::Service { source, .. } => lost(write, LOST.to_owned(), Some(source)),
        octocrab::Error::Hyper { source, .. } => lost(write, LOST.to_owned(), Some(source.into())),
        _ => lost(write, LOST.to_owned(), None),
    }
}

fn never_connected(error: &(dyn StdError + 'static)) -> bool {
    let mut link = Some(error);
    while let Some(error) = link {
        if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
            return error.is_connect();
        }
        link = error.source();
    }
    false
}
