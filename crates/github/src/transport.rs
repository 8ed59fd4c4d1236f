//! Exchange with GitHub: retries of reads, limits, and classification of refusals.

use std::time::Duration;

use domain::json;
use reqwest::Url;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use webclient::{RequestIntent, ServiceAnswer, ServiceRefusal};

use crate::{
    ETag, Error,
    connection::{ApiConnection, GitHubCall},
    limits::{ApiCaller, LimitHeaders},
    permissions,
};

// Above GitHub's largest answers, pages of 100 comments with 65,536 characters each.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
// GitHub's documentation asks for at least one minute where neither header names a time.
const DEFAULT_RATE_LIMIT_WAIT: Duration = Duration::from_secs(60);
/// GitHub's maximum number of entries per page.
pub(crate) const PAGE: usize = 100;
// An App on more accounts is public, and an owner with more repositories is configured in parts.
const MAX_PAGES: usize = 50;

/// Successful answer, or a 304.
pub(crate) struct GitHubAnswer {
    name: String,
    intent: RequestIntent,
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
            let detail = format!("{} was answered by an empty body", self.name);
            return Err(self.intent.refuse_answer(detail).into());
        }
        serde_json::from_str(&self.body).map_err(|error| {
            if json::is_foreign_object::<T>(self.body.as_bytes()) {
                self.foreign()
            } else {
                self.malformed(&error)
            }
        })
    }

    /// Error for JSON of a gateway, which passes.
    fn foreign(&self) -> Error {
        self.intent.lose_to_foreign_answer(&self.name).into()
    }

    // serde quotes unexpected values, which may be confidential; the position suffices.
    fn malformed(&self, error: &serde_json::Error) -> Error {
        let detail = format!("{}, line {} column {}", self.name, error.line(), error.column());
        self.intent.refuse_answer(detail).into()
    }

    /// Returns the `data` of a GraphQL answer, or the first of its errors.
    pub(crate) fn parse_graphql(&self) -> Result<Value, Error> {
        // GraphQL reports errors with status 200, also beside a part of the data. Callers need the whole
        // data, so the first error decides.
        let answer: WireGraphql = self.parse()?;
        let Some(first) = answer.errors.into_iter().next() else {
            // GraphQL answers with data or with errors.
            return match answer.data {
                Value::Null => Err(self.foreign()),
                data => Ok(data),
            };
        };
        let detail = webclient::truncate_service_text(&first.message);
        if let Some(closed) = Error::of_closed_place(&detail) {
            return Err(closed);
        }
        Err(match first.kind.as_deref() {
            Some("NOT_FOUND") => Error::NotFound { what: detail },
            Some("FORBIDDEN" | "INSUFFICIENT_SCOPES") => Error::Forbidden { detail, needs: None },
            Some("RATE_LIMITED" | "RATE_LIMIT") => Error::RateLimited {
                retry_after: self.limits.wait().unwrap_or(DEFAULT_RATE_LIMIT_WAIT),
            },
            Some("UNPROCESSABLE") => Error::Rejected { detail },
            // A document that does not fit the schema has a code, and GitHub runs no part of it.
            Some(_) | None if !self.intent.is_write() || first.extensions["code"].is_string() => {
                Error::Rejected { detail }
            }
            // Other errors report a timeout or a failure of GitHub, often without a type ("Something went wrong
            // while executing your query"), and the mutation may have been done before it.
            Some(_) | None => self.intent.lose_answer(detail, None).into(),
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
    #[serde(default)]
    extensions: Value,
}

/// Sends a write once, and a read up to three times while GitHub is unavailable.
pub(crate) async fn send_call(caller: &ApiCaller, call: GitHubCall<'_>) -> Result<GitHubAnswer, Error> {
    if call.is_write() {
        return send_once(caller, call).await;
    }
    let is_outage = |error: &Error| matches!(error, Error::Unavailable { .. });
    webclient::retry_read("github", is_outage, || send_once(caller, call)).await
}

/// Reads a list of the account, at most 5,000 entries. `entries` returns those of one page.
pub(crate) async fn read_list<P: DeserializeOwned, T>(
    caller: &ApiCaller,
    path: &str,
    entries: fn(P) -> Vec<T>,
) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    for page in 1..=MAX_PAGES {
        let path = format!("{path}?per_page={PAGE}&page={page}");
        let answer = send_call(caller, GitHubCall::Get(&path)).await?;
        let found = entries(answer.parse()?);
        let is_last = found.len() < PAGE;
        list.extend(found);
        if is_last {
            break;
        }
    }
    Ok(list)
}

/// Sends a request once, unless the limits of the caller hold it back.
async fn send_once(caller: &ApiCaller, call: GitHubCall<'_>) -> Result<GitHubAnswer, Error> {
    caller.limits.admit(call).await?;
    let request = caller.connection.build_request(call)?;
    // Boxed: the exchange is too large to be part of every caller's future (lint `large_futures`).
    let exchange = Box::pin(webclient::exchange_request(
        request,
        call.intent(),
        MAX_ANSWER_BYTES,
    ));
    let answer = exchange.await?;
    let limits = LimitHeaders::read(&answer.headers);
    let result = classify_answer(call, limits, answer);
    let refused = match &result {
        Err(Error::RateLimited { retry_after }) => Some(*retry_after),
        Ok(_) | Err(_) => None,
    };
    // The gate also receives refusals, so that no other call of the account runs into the same limit.
    caller.limits.report(call, limits.observe(refused)).await;
    result
}

fn classify_answer(
    call: GitHubCall<'_>,
    limits: LimitHeaders,
    answer: ServiceAnswer,
) -> Result<GitHubAnswer, Error> {
    // A 304 is an answer to conditional requests only.
    let is_unchanged = answer.status.as_u16() == 304 && matches!(call, GitHubCall::GetUnless(..));
    if !is_unchanged {
        answer.check_origin(&call.name())?;
    }
    if !is_unchanged && !answer.status.is_success() {
        return Err(classify_refusal(call, limits, &answer));
    }
    let header = |name: &str| answer.header(name).map(str::to_owned);
    Ok(GitHubAnswer {
        name: call.name(),
        intent: call.intent(),
        is_unchanged,
        etag: header("etag").map(ETag),
        link: header("link"),
        scopes: header("x-oauth-scopes"),
        limits,
        // The exchange has replaced invalid UTF-8, so that the text is not copied.
        body: String::from_utf8(answer.body)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    })
}

/// Reads the last `keep` bytes of a text at another address; invalid UTF-8 is replaced.
pub(crate) async fn fetch_tail(connection: &ApiConnection, url: Url, keep: usize) -> Result<String, Error> {
    let lose = |error| webclient::classify_failure(error, RequestIntent::Read);
    let mut response = connection.request_elsewhere(url).send().await.map_err(lose)?;
    let status = response.status().as_u16();
    if !(200..300).contains(&status) {
        let what = "the text that GitHub redirects to".to_owned();
        return Err(match status {
            404 | 410 => Error::NotFound { what },
            _ => RequestIntent::Read
                .lose_answer(format!("{what} answered {status}"), None)
                .into(),
        });
    }
    let mut last: Vec<u8> = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(lose)? {
        last.extend_from_slice(&chunk);
        // The buffer holds up to twice `keep`, so that its content is not moved for each chunk.
        if last.len() > keep * 2 {
            last.drain(..last.len() - keep);
        }
    }
    last.drain(..last.len().saturating_sub(keep));
    Ok(String::from_utf8_lossy(&last).into_owned())
}

/// GitHub's message, with its reasons for refused parts of the request.
fn parse_message(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let parts = value["errors"].as_array().into_iter().flatten();
    let general = value["message"].as_str().map(str::to_owned);
    let words: Vec<String> = general
        .into_iter()
        .chain(parts.filter_map(render_part_problem))
        .collect();
    webclient::truncate_service_text(&words.join("; "))
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

fn classify_refusal(call: GitHubCall<'_>, limits: LimitHeaders, answer: &ServiceAnswer) -> Error {
    let status = answer.status.as_u16();
    if let (301 | 302 | 307 | 308, Some(to)) = (status, answer.header("location")) {
        return Error::Moved { to: to.to_owned() };
    }
    let message = parse_message(&answer.body);
    // GitHub refuses comments with 403 and reviews with 422 in a locked conversation.
    if matches!(status, 400 | 403 | 422)
        && let Some(closed) = Error::of_closed_place(&message)
    {
        return closed;
    }
    if status == 410 && Error::is_about_deletion(&message) {
        return Error::Deleted { what: call.name() };
    }
    let lower = message.to_ascii_lowercase();
    let detail = if message.is_empty() {
        format!("{} answered {status}", call.name())
    } else {
        message
    };
    // GitHub answers its limits with 403 or 429; a secondary limit may lack both headers and name itself in
    // the message only.
    let is_limited = limits.retry_after.is_some() || limits.is_exhausted() || lower.contains("rate limit");
    let wait = || Error::RateLimited {
        retry_after: limits.wait().unwrap_or(DEFAULT_RATE_LIMIT_WAIT),
    };
    match answer.refusal(&call.name()) {
        ServiceRefusal::Unauthorized => Error::Unauthorized {
            check: "App id and private key, or the token".to_owned(),
        },
        ServiceRefusal::Forbidden if is_limited => wait(),
        ServiceRefusal::RateLimited => wait(),
        ServiceRefusal::Forbidden => Error::Forbidden {
            detail,
            needs: answer
                .header("x-accepted-github-permissions")
                .and_then(permissions::render_accepted_permissions),
        },
        ServiceRefusal::NotFound => Error::NotFound { what: call.name() },
        ServiceRefusal::Conflict => Error::Conflict { detail },
        ServiceRefusal::Failed(error) => error.into(),
        // GitHub reports an existing pull request as 422, among other errors of validation.
        ServiceRefusal::Rejected if status == 422 && lower.contains("already exists") => {
            Error::Conflict { detail }
        }
        ServiceRefusal::Rejected => Error::Rejected { detail },
    }
}

#[cfg(test)]
mod tests {
    use RequestIntent::{Read, Write};
    use serde_json::json;

    use super::*;

    /// Class of the error that an `errors` entry means.
    fn classify_graphql(intent: RequestIntent, entry: &Value) -> &'static str {
        let answer = GitHubAnswer {
            name: "POST /graphql".to_owned(),
            intent,
            is_unchanged: false,
            etag: None,
            link: None,
            scopes: None,
            limits: LimitHeaders::default(),
            body: json!({"data": null, "errors": [entry]}).to_string(),
        };
        match answer.parse_graphql().unwrap_err() {
            Error::NotFound { .. } => "not found",
            Error::Forbidden { .. } => "forbidden",
            Error::RateLimited { .. } => "rate limited",
            Error::Rejected { .. } => "rejected",
            Error::Locked { .. } => "locked",
            Error::Archived { .. } => "archived",
            Error::Unknown { .. } => "unknown",
            error => panic!("{error}"),
        }
    }

    #[test]
    fn graphql_failure_of_other_type_leaves_mutation_unknown() {
        let typed = |kind: &str| json!({"type": kind, "message": "No."});
        for (entry, read, write) in [
            (typed("NOT_FOUND"), "not found", "not found"),
            (typed("FORBIDDEN"), "forbidden", "forbidden"),
            (typed("INSUFFICIENT_SCOPES"), "forbidden", "forbidden"),
            (typed("RATE_LIMITED"), "rate limited", "rate limited"),
            (typed("RATE_LIMIT"), "rate limited", "rate limited"),
            (typed("UNPROCESSABLE"), "rejected", "rejected"),
            (
                json!({"message": "Field 'x' doesn't exist on type 'Issue'", "extensions": {"code": "undefinedField"}}),
                "rejected",
                "rejected",
            ),
            (
                json!({"message": "Something went wrong while executing your query."}),
                "rejected",
                "unknown",
            ),
            (
                json!({"message": "Timeout", "extensions": null}),
                "rejected",
                "unknown",
            ),
            (
                json!({"type": "FORBIDDEN", "message": "Unable to create comment because issue is locked"}),
                "locked",
                "locked",
            ),
            (
                json!({"type": "UNPROCESSABLE", "message": "Repository was archived so is read-only"}),
                "archived",
                "archived",
            ),
            (typed("SERVICE_UNAVAILABLE"), "rejected", "unknown"),
            (typed("INTERNAL"), "rejected", "unknown"),
        ] {
            assert_eq!(classify_graphql(Read, &entry), read, "{entry}");
            assert_eq!(classify_graphql(Write, &entry), write, "{entry}");
        }
    }
}
