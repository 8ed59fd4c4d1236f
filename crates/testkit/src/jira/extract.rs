//! Extractors of handlers: the caller, the issue to read, the JSON body.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use super::desk::Desk;
use super::rest::{bad, missing, refuse};
use super::state::{Account, Issue};
use super::{
    READER_API_TOKEN, READER_EMAIL, READER_ID, WRITER_API_TOKEN, WRITER_EMAIL, WRITER_ID, WRITER_NAME,
};
use crate::http::{basic_auth, header_text, is_json, parse};

pub(super) fn writer() -> Account {
    Account {
        id: WRITER_ID.to_owned(),
        name: WRITER_NAME.to_owned(),
        email: WRITER_EMAIL.to_owned(),
    }
}

/// Reader's or writer's account. A write by the reader is refused before its handler runs.
pub(super) struct Caller(pub(super) Account);

impl FromRequestParts<Arc<Desk>> for Caller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, desk: &Arc<Desk>) -> Result<Self, Response> {
        let account = authenticate(&parts.headers, desk).ok_or_else(|| {
            refuse(
                StatusCode::UNAUTHORIZED,
                "Client must be authenticated to access this resource.",
            )
        })?;
        let path = parts.uri.path();
        // Searches are POST requests that read.
        let reads = parts.method == Method::GET || path.ends_with("/search/jql") || path.ends_with("/search");
        if account != writer() && !reads {
            desk.log.violation(format!(
                "the reader account called {} {}",
                parts.method,
                parts.uri.path()
            ));
            return Err(refuse(
                StatusCode::FORBIDDEN,
                "You do not have permission to edit this issue.",
            ));
        }
        let has_body = matches!(parts.method, Method::POST | Method::PUT);
        if has_body && !is_json(&parts.headers) {
            return Err(refuse(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Content-Type must be application/json",
            ));
        }
        Ok(Self(account))
    }
}

/// Authenticates a caller. The Cloud takes an e-mail address with an API token, a Data Center takes a
/// personal access token alone.
fn authenticate(headers: &HeaderMap, desk: &Desk) -> Option<Account> {
    let basic = basic_auth(headers);
    if basic.is_some() && !desk.site.is_cloud() {
        desk.log
            .violation("a Data Center was called with an address and a token");
        return None;
    }
    // A bearer token names no account, so the token itself decides.
    let (email, token) = match basic {
        Some(pair) => pair,
        None => match bearer(header_text(headers, "authorization"))? {
            READER_API_TOKEN => (READER_EMAIL.to_owned(), READER_API_TOKEN.to_owned()),
            token => (WRITER_EMAIL.to_owned(), token.to_owned()),
        },
    };
    match (email.as_str(), token.as_str()) {
        (READER_EMAIL, READER_API_TOKEN) => Some(Account {
            id: READER_ID.to_owned(),
            name: "Journeyman Reader".to_owned(),
            email: READER_EMAIL.to_owned(),
        }),
        (WRITER_EMAIL, WRITER_API_TOKEN) => Some(writer()),
        _ => None,
    }
}

/// Returns the token of a bearer header. The scheme's case does not matter.
pub(super) fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// Issue that the caller may read.
pub(super) struct Read {
    pub(super) desk: Arc<Desk>,
    pub(super) issue: Issue,
}

impl FromRequestParts<Arc<Desk>> for Read {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, desk: &Arc<Desk>) -> Result<Self, Response> {
        // The caller is authenticated first, so that strangers learn nothing about keys.
        Caller::from_request_parts(parts, desk).await?;
        let path = Path::<String>::from_request_parts(parts, desk).await;
        let Path(key) = path.map_err(IntoResponse::into_response)?;
        Ok(Self {
            desk: Arc::clone(desk),
            issue: desk.issue(&key).ok_or_else(missing)?,
        })
    }
}

/// Body of JSON, answered with 400 if it does not parse.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<Desk>> for Body<T> {
    type Rejection = Response;

    async fn from_request(request: Request, desk: &Arc<Desk>) -> Result<Self, Response> {
        let body = Bytes::from_request(request, desk).await;
        let body = body.map_err(IntoResponse::into_response)?;
        parse(&body).map(Self).map_err(bad)
    }
}
