//! The person behind a request. The token of their session authorizes the calls.

use std::sync::Arc;

use api::Client;
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, Method, header::COOKIE as COOKIES, request::Parts},
};
use tokio_util::sync::CancellationToken;

use crate::{
    layout::PageVisitor,
    login_seal::LoginSeal,
    oidc::OidcProvider,
    problem::PageProblem,
    session::{SessionLogin, SessionTable, cookie_name},
};

/// State that all handlers share.
#[derive(Clone)]
pub(crate) struct ConsoleState {
    /// Base URL of the API.
    pub(crate) api: String,
    /// Sessions of logged-in persons.
    pub(crate) sessions: SessionTable,
    /// Login provider; absent: login with a token of the API.
    pub(crate) provider: Option<Arc<OidcProvider>>,
    /// Seal for logins in progress.
    pub(crate) seal: Arc<LoginSeal>,
    /// True if browsers reach the console over TLS.
    pub(crate) over_tls: bool,
    /// Name of the installation; may be empty.
    pub(crate) environment: String,
    /// Ends the event streams of live pages.
    pub(crate) shutdown: CancellationToken,
}

/// Extractor of a logged-in person: a client of the API with their identity.
pub(crate) struct SignedInPerson(pub(crate) Client);

impl FromRequestParts<ConsoleState> for SignedInPerson {
    type Rejection = PageProblem;

    async fn from_request_parts(parts: &mut Parts, state: &ConsoleState) -> Result<Self, PageProblem> {
        let client = match session_id(state, &parts.headers) {
            Some(id) => client_of(state, &id).await,
            None => None,
        };
        client.map(Self).ok_or_else(|| {
            // An order is not repeated after a login, so only a page is remembered.
            let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
            PageProblem::LogIn(match parts.method {
                Method::GET => path.to_owned(),
                _ => "/".to_owned(),
            })
        })
    }
}

/// Returns the client of a session. A session whose person has no role ends.
async fn client_of(state: &ConsoleState, id: &str) -> Option<Client> {
    let standing = match state.sessions.get(id)? {
        SessionLogin::Token(login) => return Some(login.client),
        SessionLogin::Provider(standing) => standing,
    };
    let provider = state.provider.as_ref()?;
    let client = standing.client(provider, &state.api).await;
    if client.is_none() {
        state.sessions.end(id);
    }
    client
}

/// Returns true for a session whose person still has a role.
pub(crate) async fn is_signed_in(state: &ConsoleState, id: &str) -> bool {
    client_of(state, id).await.is_some()
}

/// Returns the user of a session for the header of pages.
pub(crate) async fn find_visitor(state: &ConsoleState, id: &str) -> Option<PageVisitor> {
    match state.sessions.get(id)? {
        SessionLogin::Token(login) => login.visitor,
        SessionLogin::Provider(standing) => standing.visitor().await,
    }
}

/// Returns the session id from the browser's cookie.
pub(crate) fn session_id(state: &ConsoleState, headers: &HeaderMap) -> Option<String> {
    find_cookie(headers, cookie_name(state.over_tls))
}

/// Returns the value of a cookie.
pub(crate) fn find_cookie(headers: &HeaderMap, wanted: &str) -> Option<String> {
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
