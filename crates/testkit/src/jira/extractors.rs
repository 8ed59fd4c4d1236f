//! Extractors of handlers: the caller, the issue to read, the JSON body.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use super::desk::JiraState;
use super::rest::{refuse_request, render_bad_request, render_missing_issue};
use super::state::{JiraAccount, TicketRecord};
use super::{
    READER_API_TOKEN, READER_EMAIL, READER_ID, WRITER_API_TOKEN, WRITER_EMAIL, WRITER_ID, WRITER_NAME,
};
use crate::http::{basic_auth, header_text, is_json, parse_json};

pub(super) fn create_writer_account() -> JiraAccount {
    JiraAccount {
        id: WRITER_ID.to_owned(),
        name: WRITER_NAME.to_owned(),
        email: WRITER_EMAIL.to_owned(),
    }
}

/// Reader's or writer's account. A write by the reader is refused before its handler runs.
pub(super) struct JiraCaller(pub(super) JiraAccount);

impl FromRequestParts<Arc<JiraState>> for JiraCaller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, desk: &Arc<JiraState>) -> Result<Self, Response> {
        let account = authenticate_caller(&parts.headers, desk).ok_or_else(|| {
            refuse_request(
                StatusCode::UNAUTHORIZED,
                "Client must be authenticated to access this resource.",
            )
        })?;
        let path = parts.uri.path();
        // Searches are POST requests that read.
        let reads = parts.method == Method::GET || path.ends_with("/search/jql") || path.ends_with("/search");
        if account != create_writer_account() && !reads {
            desk.log.violation(format!(
                "the reader account called {} {}",
                parts.method,
                parts.uri.path()
            ));
            return Err(refuse_request(
                StatusCode::FORBIDDEN,
                "You do not have permission to edit this issue.",
            ));
        }
        let has_body = matches!(parts.method, Method::POST | Method::PUT);
        if has_body && !is_json(&parts.headers) {
            return Err(refuse_request(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Content-Type must be application/json",
            ));
        }
        Ok(Self(account))
    }
}

/// Authenticates a caller. The Cloud takes an e-mail address with an API token, a Data Center takes a
/// personal access token alone.
fn authenticate_caller(headers: &HeaderMap, desk: &JiraState) -> Option<JiraAccount> {
    let basic = basic_auth(headers);
    if basic.is_some() && !desk.site.is_cloud() {
        desk.log
            .violation("a Data Center was called with an address and a token");
        return None;
    }
    // A bearer token names no account, so the token itself decides.
    let (email, token) = match basic {
        Some(pair) => pair,
        None => match read_bearer_token(header_text(headers, "authorization"))? {
            READER_API_TOKEN => (READER_EMAIL.to_owned(), READER_API_TOKEN.to_owned()),
            token => (WRITER_EMAIL.to_owned(), token.to_owned()),
        },
    };
    match (email.as_str(), token.as_str()) {
        (READER_EMAIL, READER_API_TOKEN) => Some(JiraAccount {
            id: READER_ID.to_owned(),
            name: "Journeyman Reader".to_owned(),
            email: READER_EMAIL.to_owned(),
        }),
        (WRITER_EMAIL, WRITER_API_TOKEN) => Some(create_writer_account()),
        _ => None,
    }
}

/// Returns the token of a bearer header. The scheme's case does not matter.
pub(super) fn read_bearer_token(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Issue that the caller may read.
pub(super) struct ReadableIssue {
    pub(super) desk: Arc<JiraState>,
    pub(super) issue: TicketRecord,
}

impl FromRequestParts<Arc<JiraState>> for ReadableIssue {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, desk: &Arc<JiraState>) -> Result<Self, Response> {
        // The caller is authenticated first, so that strangers learn nothing about keys.
        JiraCaller::from_request_parts(parts, desk).await?;
        let path = Path::<String>::from_request_parts(parts, desk).await;
        let Path(key) = path.map_err(IntoResponse::into_response)?;
        Ok(Self {
            desk: Arc::clone(desk),
            issue: desk.issue(&key).ok_or_else(render_missing_issue)?,
        })
    }
}

/// Body of JSON, answered with 400 if it does not parse.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<JiraState>> for JsonBody<T> {
    type Rejection = Response;

    async fn from_request(request: Request, desk: &Arc<JiraState>) -> Result<Self, Response> {
        let body = Bytes::from_request(request, desk).await;
        let body = body.map_err(IntoResponse::into_response)?;
        parse_json(&body).map(Self).map_err(render_bad_request)
    }
}
