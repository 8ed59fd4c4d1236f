//! HTTP exchange with GitHub: timeout, retries of reads, and classification of failures.

use std::{collections::hash_map::RandomState, hash::BuildHasher, time::Duration};

use domain::{ErrorCause, cause::format_error_chain, json};
use http::{HeaderValue, Method, header};
use reqwest::{Response, Url};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    ETag, Error,
    call::GitHubCall,
    connection::{ApiConnection, build_url_error},
    error::truncate_text,
    limits::{ApiCaller, LimitHeaders},
    permissions,
};

const TOTAL_TIMEOUT: Duration = Duration::from_secs(20);
const RETRY_DELAYS_MS: [u64; 2] = [200, 1000];
// Above GitHub's largest answers, pages of 100 comments with 65,536 characters each.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
// GitHub's documentation asks for at least one minute where neither header names a time.
const DEFAULT_RATE_LIMIT_WAIT: Duration = Duration::from_secs(60);

/// Successful answer, or a 304.
pub(crate) struct GitHubAnswer {
    name: String,
    is_of_write: bool,
    /// True when nothing changed since the `ETag` of the request; the body is then empty.
    pub(crate) is_unchanged: bool,
    pub(crate) etag: Option<ETag>,
    link: Option<String>,
    scopes: Option<String>,
    /// Rate-limit headers, for a GraphQL refusal in an answer with status 200.
    limits: LimitHeaders,
    body: String,
}

impl GitHubAnswer {
    /// Gives an unchanged answer the body of the cached one.
    pub(crate) fn with_body(self, body: String) -> Self {
        Self { body, ..self }
    }

    pub(crate) fn body(&self) -> &str {
        &self.body
    }

    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if self.body.is_empty() {
            // Only a write can end here: an empty answer to a read was refused before.
            return Err(classify_unreadable(
                true,
                format!("{} was answered by an empty body", self.name),
            ));
        }
        serde_json::from_str(&self.body).map_err(|error| self.malformed(&error))
    }

    // serde quotes unexpected values, which may be confidential; the position suffices.
    fn malformed(&self, error: &serde_json::Error) -> Error {
        let detail = format!("{}, line {} column {}", self.name, error.line(), error.column());
        classify_unreadable(self.is_of_write, detail)
    }

    /// Returns the `data` of a GraphQL answer, or the first of its errors.
    pub(crate) fn parse_graphql(&self) -> Result<Value, Error> {
        // GraphQL reports errors with status 200, also beside a part of the data. Callers need the whole
        // data, so the first error decides.
        let answer: WireGraphql = self.parse()?;
        let Some(first) = answer.errors.into_iter().next() else {
            return Ok(answer.data);
        };
        let detail = truncate_text(&first.message);
        Err(match first.kind.as_deref() {
            Some("NOT_FOUND") => Error::NotFound { what: detail },
            Some("FORBIDDEN" | "INSUFFICIENT_SCOPES") => Error::Forbidden { detail, needs: None },
            Some("RATE_LIMITED") => Error::RateLimited {
                retry_after: self.limits.wait().unwrap_or(DEFAULT_RATE_LIMIT_WAIT),
            },
            Some(_) | None => Error::Rejected { detail },
        })
    }

    /// Query string of the next page, from the `Link` header.
    pub(crate) fn next_query(&self) -> Option<String> {
        let next = self
            .link
            .as_deref()?
            .split(',')
            .find(|part| part.contains("rel=\"next\""))?;
        let url = next.split('<').nth(1)?.split('>').next()?;
        // Callers append the query to the path that they know, so a link cannot lead the token to another
        // host.
        url.split_once('?').map(|(_, query)| query.to_owned())
    }

    /// OAuth scopes of the token, from the header `X-OAuth-Scopes`.
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

/// Headers of a refusal that explain its status.
#[derive(Default)]
struct RefusalHints {
    limits: LimitHeaders,
    location: Option<String>,
    /// Permissions that would have sufficed, from `X-Accepted-GitHub-Permissions`.
    permissions: Option<String>,
}

/// Sends a read, up to three times while GitHub is unavailable.
pub(crate) async fn send_read(caller: &ApiCaller, call: GitHubCall<'_>) -> Result<GitHubAnswer, Error> {
    let mut delays = RETRY_DELAYS_MS.into_iter();
    loop {
        let result = send_request(caller, call).await;
        match (&result, delays.next()) {
            // Only outages are retried: GitHub would refuse any other request again, and the wait of a
            // rate limit exceeds these delays.
            (Err(error @ Error::Unavailable { .. }), Some(delay)) => {
                tracing::debug!(error = %format_error_chain(error), "github read failed, trying again");
                tokio::time::sleep(with_jitter(delay)).await;
            }
            (Ok(_) | Err(_), _) => return result,
        }
    }
}

fn with_jitter(ms: u64) -> Duration {
    // Up to half of the delay more, from the random seed of a hasher, so that processes do not retry in step.
    Duration::from_millis(ms + RandomState::new().hash_one(ms) % (ms / 2))
}

/// Sends a request once, unless the limits of the caller hold it back.
pub(crate) async fn send_request(caller: &ApiCaller, call: GitHubCall<'_>) -> Result<GitHubAnswer, Error> {
    caller.limits.admit(call).await?;
    // Boxed: the exchange is too large to be part of every caller's future (lint `large_futures`).
    let sending = Box::pin(exchange_request(&caller.connection, call));
    let Ok(sent) = timeout(TOTAL_TIMEOUT, sending).await else {
        return Err(classify_lost(
            call.is_write(),
            format!("{} timed out", call.name()),
            None,
        ));
    };
    let (limits, result) = sent?;
    let refused = match &result {
        Err(Error::RateLimited { retry_after }) => Some(*retry_after),
        Ok(_) | Err(_) => None,
    };
    // The gate also receives refusals, so that no other call of the account runs into the same limit.
    caller.limits.hear(call, limits.heard(refused)).await;
    result
}

/// Sends a request and returns the answer or refusal with its limits. The outer error means that no answer
/// arrived.
async fn exchange_request(
    connection: &ApiConnection,
    call: GitHubCall<'_>,
) -> Result<(LimitHeaders, Result<GitHubAnswer, Error>), Error> {
    let write = call.is_write();
    let request = match call {
        GitHubCall::Get(path) => connection.request(Method::GET, path)?,
        GitHubCall::GetUnless(path, known) => connection
            .request(Method::GET, path)?
            .header(header::IF_NONE_MATCH, build_if_none_match(known)?),
        GitHubCall::Query(path, body) | GitHubCall::Post(path, body) => {
            connection.request(Method::POST, path)?.json(body)
        }
        GitHubCall::Patch(path, body) => connection.request(Method::PATCH, path)?.json(body),
        GitHubCall::Delete(path, Some(body)) => connection.request(Method::DELETE, path)?.json(body),
        GitHubCall::Delete(path, None) => connection.request(Method::DELETE, path)?,
    };
    let response = request
        .send()
        .await
        .map_err(|error| classify_failure(error, write))?;
    let status = response.status().as_u16();
    let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
    let limits = LimitHeaders::read(response.headers());
    let hints = RefusalHints {
        limits,
        location: header("location"),
        permissions: header("x-accepted-github-permissions")
            .and_then(|text| permissions::render_accepted_permissions(&text)),
    };
    let (link, scopes, etag) = (header("link"), header("x-oauth-scopes"), header("etag"));
    let content_type = header("content-type").unwrap_or_default();
    // A 304 is an answer to conditional requests only.
    let is_unchanged = status == 304 && matches!(call, GitHubCall::GetUnless(..));
    let body = read_bounded_body(response, write, MAX_ANSWER_BYTES).await?;
    // GitHub may cut a text within a surrogate pair; serde would then reject the whole answer.
    let body = json::replace_broken_characters(&body).into_owned();
    let body = String::from_utf8_lossy(&body).into_owned();
    let result = if is_unchanged || (200..300).contains(&status) {
        if !is_unchanged && let Some(problem) = find_foreign_answer(write, &content_type, &body) {
            let detail = format!("{} answered {status} with {problem}", call.name());
            return Ok((limits, Err(classify_lost(write, detail, None))));
        }
        Ok(GitHubAnswer {
            name: call.name(),
            is_of_write: write,
            is_unchanged,
            etag: etag.map(ETag),
            link,
            scopes,
            limits,
            body,
        })
    } else if matches!(status, 404 | 410) && json::is_page(&content_type) {
        // The API sends its own 404 in JSON. A page comes from a proxy or a maintenance, so the resource may
        // exist.
        let detail = format!("{} answered {status} with a page", call.name());
        Err(classify_lost(write, detail, None))
    } else {
        Err(classify_refusal(call, status, hints, &parse_message(&body)))
    };
    Ok((limits, result))
}

async fn read_bounded_body(mut response: Response, write: bool, limit: usize) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| classify_failure(error, write))?
    {
        // Checked for each chunk, because the header `content-length` may be missing or wrong.
        if body.len() + chunk.len() > limit {
            return Err(classify_unreadable(write, format!("more than {limit} bytes")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Finds the problem of a successful status whose body is not from GitHub: a page of a proxy or portal, or a
/// truncated answer.
///
/// Such an answer counts as an outage. An empty body is valid for a write.
fn find_foreign_answer(write: bool, content_type: &str, body: &str) -> Option<&'static str> {
    if write && body.is_empty() {
        return None;
    }
    json::find_foreign_answer(content_type, body.as_bytes())
}

/// Reads the last `keep` bytes of a text at another address; invalid UTF-8 is replaced.
pub(crate) async fn fetch_tail(connection: &ApiConnection, url: Url, keep: usize) -> Result<String, Error> {
    let fetching = async {
        let mut response = connection
            .request_elsewhere(url)
            .send()
            .await
            .map_err(|error| classify_failure(error, false))?;
        let status = response.status().as_u16();
        if !(200..300).contains(&status) {
            let what = "the text that GitHub redirects to".to_owned();
            return Err(match status {
                404 | 410 => Error::NotFound { what },
                _ => classify_lost(false, format!("{what} answered {status}"), None),
            });
        }
        let mut last: Vec<u8> = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| classify_failure(error, false))?
        {
            last.extend_from_slice(&chunk);
            // The buffer holds up to twice `keep`, so that its content is not moved for each chunk.
            if last.len() > keep * 2 {
                last.drain(..last.len() - keep);
            }
        }
        last.drain(..last.len().saturating_sub(keep));
        Ok(String::from_utf8_lossy(&last).into_owned())
    };
    match timeout(TOTAL_TIMEOUT, Box::pin(fetching)).await {
        Ok(result) => result,
        Err(_) => Err(classify_lost(
            false,
            "a redirected text timed out".to_owned(),
            None,
        )),
    }
}

fn build_if_none_match(known: &ETag) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(&known.0).map_err(|_| Error::Rejected {
        detail: "the tag of an earlier answer is not a legal header".to_owned(),
    })
}

/// GitHub's message, with its reasons for refused parts of the request.
fn parse_message(body: &str) -> String {
    let value: Value = serde_json::from_str(body).unwrap_or_default();
    let parts = value["errors"].as_array().into_iter().flatten();
    let general = value["message"].as_str().map(str::to_owned);
    let words: Vec<String> = general
        .into_iter()
        .chain(parts.filter_map(render_part_problem))
        .collect();
    truncate_text(&words.join("; "))
}

/// Renders one refused part: `No commits between main and x`, or `head: invalid` where GitHub sends no
/// message.
fn render_part_problem(part: &Value) -> Option<String> {
    let text = |key: &str| part[key].as_str().filter(|text| !text.is_empty());
    let words = text("message").or_else(|| part.as_str()).map(str::to_owned);
    words.or_else(|| {
        let code = text("code")?;
        Some(text("field").map_or_else(|| code.to_owned(), |field| format!("{field}: {code}")))
    })
}

fn classify_refusal(call: GitHubCall<'_>, status: u16, hints: RefusalHints, message: &str) -> Error {
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
    // GitHub answers its limits with 403 or 429; a secondary limit may lack both headers and name itself in
    // the message only.
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
        // GitHub reports an existing pull request as 422, among other errors of validation.
        422 if lower.contains("already exists") => Error::Conflict { detail: detail() },
        // A 503 counts as not executed, also for a write; after any other server error the write may have
        // been done.
        503 => classify_lost(false, what(), None),
        500.. => classify_lost(call.is_write(), what(), None),
        _ => Error::Rejected { detail: detail() },
    }
}

/// Error of an exchange without GitHub's answer, or with a gateway's only: a write may have been done.
const fn classify_lost(write: bool, detail: String, source: Option<ErrorCause>) -> Error {
    if write {
        Error::Unknown { detail, source }
    } else {
        Error::Unavailable { detail, source }
    }
}

/// Error of an answer that cannot be read. A repeated read gives the same answer, whereas a write may have been
/// done.
fn classify_unreadable(write: bool, detail: String) -> Error {
    if write {
        classify_lost(write, detail, None)
    } else {
        Error::Malformed { detail }
    }
}

/// Classifies a failed exchange. Only a connection that was never established proves that nothing was sent.
fn classify_failure(error: reqwest::Error, write: bool) -> Error {
    if error.is_builder() {
        return build_url_error();
    }
    let (write, detail) = if error.is_connect() {
        (false, "cannot connect")
    } else {
        (write, "the connection was lost")
    };
    // The URL is removed: that of a text at another host contains its signature.
    classify_lost(write, detail.to_owned(), Some(error.without_url().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answer_above_limit_is_refused() {
        let answer = || Response::from(http::Response::new("12345678"));
        assert_eq!(read_bounded_body(answer(), false, 8).await.unwrap(), b"12345678");
        let refused = read_bounded_body(answer(), false, 7).await.unwrap_err();
        assert!(matches!(refused, Error::Malformed { .. }), "{refused}");
        let unknown = read_bounded_body(answer(), true, 7).await.unwrap_err();
        assert!(matches!(unknown, Error::Unknown { .. }), "{unknown}");
    }
}
