//! Primary rate limit and conditional requests. A 304 answer is free, as on GitHub.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::auth::{refuse_request, token_of};
use super::hub::GitHubState;
use crate::http::header_text;

/// Hourly limit of an App installation.
const DEFAULT_LIMIT: u64 = 5_000;
/// Maximum size of an answer that gets an entity tag, in bytes.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
const HOUR_S: i64 = 3600;

/// Account whose calls are counted by themselves, as GitHub counts each installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QuotaAccount {
    Reader,
    Writer,
    /// Apps without an installation, and callers without a token.
    Other,
}

impl QuotaAccount {
    fn of_caller(hub: &GitHubState, headers: &HeaderMap) -> Self {
        let token = header_text(headers, "authorization")
            .split_once(' ')
            .and_then(|(_, token)| token_of(hub, token));
        match token {
            Some(token) if token.writes => Self::Writer,
            Some(_) => Self::Reader,
            None => Self::Other,
        }
    }
}

/// Calls of each account.
#[derive(Debug)]
pub(super) struct CallQuotas {
    limit: u64,
    accounts: BTreeMap<QuotaAccount, CallQuota>,
}

impl Default for CallQuotas {
    fn default() -> Self {
        Self {
            limit: DEFAULT_LIMIT,
            accounts: BTreeMap::new(),
        }
    }
}

impl CallQuotas {
    pub(super) fn used(&self) -> u64 {
        self.accounts.values().map(|quota| quota.used).sum()
    }

    pub(super) fn used_by(&self, account: QuotaAccount) -> u64 {
        self.accounts.get(&account).map_or(0, |quota| quota.used)
    }

    /// Sets the limit of each account.
    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        for quota in self.accounts.values_mut() {
            quota.limit = limit;
        }
    }

    fn of(&mut self, account: QuotaAccount) -> &mut CallQuota {
        let limit = self.limit;
        let quota = self.accounts.entry(account).or_insert_with(|| CallQuota {
            limit,
            used: 0,
            reset: read_unix_seconds() + HOUR_S,
        });
        quota.turn();
        quota
    }
}

/// Calls of an account in the current hour.
#[derive(Debug)]
struct CallQuota {
    limit: u64,
    used: u64,
    reset: i64,
}

impl CallQuota {
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
    let account = QuotaAccount::of_caller(&hub, request.headers());
    {
        let mut quotas = hub.quotas.lock();
        let quota = quotas.of(account);
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
    let mut quotas = hub.quotas.lock();
    let quota = quotas.of(account);
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
