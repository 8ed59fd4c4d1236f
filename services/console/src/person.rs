//! The person behind a request: the token of their session makes the calls.

use std::sync::Arc;

use api::Client;
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, Method, header::COOKIE as COOKIES, request::Parts},
};
use tokio_util::sync::CancellationToken;

use crate::{
    oidc::{Begun, Provider},
    problem::Problem,
    session::{COOKIE, Kept, Sessions},
};

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct State {
    /// Base URL of the API.
    pub(crate) api: String,
    /// Who is logged in.
    pub(crate) sessions: Sessions,
    /// Where people log in; absent: with a token of the API.
    pub(crate) provider: Option<Arc<Provider>>,
    /// Logins at the provider that have begun.
    pub(crate) logins: Kept<Begun>,
    /// Ends what follows a run.
    pub(crate) shutdown: CancellationToken,
}

/// Somebody who is logged in.
pub(crate) struct Person(pub(crate) Client);

impl FromRequestParts<State> for Person {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, Problem> {
        let client = session_id(&parts.headers).and_then(|id| state.sessions.get(&id));
        client.map(Self).ok_or_else(|| {
            // What a form asked for is not repeated after a login.
            let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
            Problem::LogIn(match parts.method {
                Method::GET => path.to_owned(),
                _ => "/".to_owned(),
            })
        })
    }
}

/// The id of the session that the browser has.
pub(crate) fn session_id(headers: &HeaderMap) -> Option<String> {
    cookie(headers, COOKIE)
}

/// The value of a cookie.
pub(crate) fn cookie(headers: &HeaderMap, wanted: &str) -> Option<String> {
    let cookies = headers
        .get_all(COOKIES)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut pairs = cookies
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(name, _)| *name == wanted)
        .map(|(_, id)| id.to_owned())
}
