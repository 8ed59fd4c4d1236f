//! Primary rate limit and conditional requests. A 304 answer is free, as on GitHub.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::auth::refuse_request;
use super::hub::GitHubState;
use crate::http::header_text;

/// Hourly limit of an App installation.
const DEFAULT_LIMIT: u64 = 5_000;
/// Maximum size of an answer that gets an entity tag, in bytes.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
const HOUR_S: i64 = 3600;

/// Calls of the current hour.
#[derive(Debug)]
pub(super) struct CallQuota {
    limit: u64,
    used: u64,
    reset: i64,
}

impl Default for CallQuota {
    fn default() -> Self {
        Self {
            limit: DEFAULT_LIMIT,
            used: 0,
            reset: read_unix_seconds() + HOUR_S,
        }
    }
}

impl CallQuota {
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    fn turn(&mut self) {
        // A window starts with the first call after the end of the previous one.
        if read_unix_seconds() >= self.reset {
            (self.used, self.reset) = (0, read_unix_seconds() + HOUR_S);
        }
    }

    fn headers(&self) -> HeaderMap {
        let numbers = [
            ("x-ratelimit-limit", self.limit),
            ("x-ratelimit-remaining", self.limit.saturating_sub(self.used)),
            ("x-ratelimit-used", self.used),
            ("x-ratelimit-reset", u64::try_from(self.reset).unwrap_or_default()),
        ];
        numbers
            .into_iter()
            .map(|(name, number)| (header::HeaderName::from_static(name), number.into()))
            .collect()
    }
}

fn read_unix_seconds() -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp()
}

/// Counts API calls without git, answers 304 to a matching `if-none-match`, and refuses calls beyond the
/// limit.
pub(super) async fn meter_calls(
    State(hub): State<Arc<GitHubState>>,
    request: Request,
    next: Next,
) -> Response {
    // Git over HTTP does not count against the API's rate limit.
    if request.uri().path().starts_with("/git/") {
        return next.run(request).await;
    }
    {
        let mut quota = hub.quota.lock();
        quota.turn();
        if quota.used >= quota.limit {
            let refused = refuse_request(
                StatusCode::FORBIDDEN,
                "API rate limit exceeded for installation ID 2001.",
            );
            return (quota.headers(), refused).into_response();
        }
    }
    let known = header_text(request.headers(), "if-none-match").to_owned();
    let is_read = request.method() == Method::GET;
    let response = next.run(request).await;
    let response = if is_read && response.status() == StatusCode::OK {
        tag_answer(response, &known).await
    } else {
        response
    };
    // The call is counted after the answer, because the status shows whether it was free.
    let mut quota = hub.quota.lock();
    quota.used += u64::from(response.status() != StatusCode::NOT_MODIFIED);
    (quota.headers(), response).into_response()
}

/// Adds an entity tag to the answer, or answers 304 if the caller sent that tag.
async fn tag_answer(response: Response, known: &str) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_ANSWER).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    // The hash is stable within a process, which is the lifetime of a tag.
    let mut hasher = DefaultHasher::new();
    // The tag covers the header `link`: a page's body may be equal while its successors change.
    body.hash(&mut hasher);
    header_text(&parts.headers, "link").hash(&mut hasher);
    let tag = format!("W/\"{:016x}\"", hasher.finish());
    let Ok(value) = HeaderValue::from_str(&tag) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    if known == tag {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, value)]).into_response();
    }
    parts.headers.insert(header::ETAG, value);
    Response::from_parts(parts, Body::from(body))
}
