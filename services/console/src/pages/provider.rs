//! Login at the provider: off to it, and back from it.

use axum::{
    extract::{Query, State as Shared},
    http::{HeaderMap, StatusCode, header::SET_COOKIE},
    response::{AppendHeaders, IntoResponse, Redirect, Response},
};
use maud::html;
use serde::Deserialize;

use super::login;
use crate::{
    layout::Page,
    oidc::{Begun, PATIENCE, Provider, Refused},
    person::{State, cookie, session_id},
    problem::Problem,
    session,
    words::shown,
};

/// The cookie with the id of a login that has begun.
const COOKIE: &str = "journeyman-login";

/// Where to go on afterwards.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    next: String,
}

/// What the provider sends the browser back with.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Brought {
    code: String,
    state: String,
    error: String,
}

/// Sends the browser to the provider. Unlike that of a session, the cookie comes along when another site sends the browser
/// back, and it is good for nothing else.
pub(super) async fn begin(
    Shared(state): Shared<State>,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    let provider = state.provider.as_ref().ok_or(Problem::NotFound)?;
    match provider.begin(login::onward(&asked.next)).await {
        Ok((url, begun)) => {
            let id = state.logins.begin(begun);
            let cookie = remembered(&id, PATIENCE.as_secs(), provider.is_over_tls());
            Ok(([(SET_COOKIE, cookie)], Redirect::to(&url)).into_response())
        }
        Err(refused) => Ok(not_in(&state, &asked.next, &refused)),
    }
}

/// Lets in whom the provider knows and a group of whom has a role.
pub(super) async fn back(
    Shared(state): Shared<State>,
    headers: HeaderMap,
    Query(brought): Query<Brought>,
) -> Result<Response, Problem> {
    let provider = state.provider.as_ref().ok_or(Problem::NotFound)?;
    // One try: whatever comes of it, nobody comes back with it again.
    let begun = cookie(&headers, COOKIE).and_then(|id| state.logins.end(&id));
    let next = begun
        .as_ref()
        .map_or_else(String::new, |begun| begun.next.clone());
    let client = match begun {
        Some(begun) => let_in(&state, provider, begun, brought).await,
        None => Err(Refused::Foreign),
    };
    let client = match client {
        Ok(client) => client,
        Err(refused) => return Ok(not_in(&state, &next, &refused)),
    };
    if let Some(former) = session_id(&headers) {
        state.sessions.end(&former);
    }
    let over_tls = provider.is_over_tls();
    let cookies = AppendHeaders([
        (
            SET_COOKIE,
            session::cookie(&state.sessions.begin(client), over_tls),
        ),
        (SET_COOKIE, remembered("", 0, over_tls)),
    ]);
    Ok((cookies, [("refresh", format!("0; url={next}"))], welcome(&next)).into_response())
}

async fn let_in(
    state: &State,
    provider: &Provider,
    begun: Begun,
    brought: Brought,
) -> Result<api::Client, Refused> {
    if !brought.error.is_empty() {
        return Err(Refused::Provider(format!("it says {}", shown(&brought.error))));
    }
    let person = provider.finish(begun, &brought.state, brought.code).await?;
    tracing::info!(person = person.name, role = person.role.as_str(), "logged in");
    let client = api::Client::new(&state.api, provider.api_token().clone());
    let client = client.map_err(|error| Refused::Provider(error.to_string()))?;
    Ok(client.on_behalf_of(person))
}

/// A page, because a redirect would still be the other site's, and bring no cookie of the session.
fn welcome(next: &str) -> Page {
    Page {
        title: "You are logged in".to_owned(),
        place: None,
        body: html! { p { a href=(next) { "Go on" } } },
    }
}

fn remembered(id: &str, seconds: u64, over_tls: bool) -> String {
    let secure = if over_tls { "; Secure" } else { "" };
    format!("{COOKIE}={id}; Path=/login; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

fn not_in(state: &State, next: &str, refused: &Refused) -> Response {
    tracing::warn!(?refused, "nobody is logged in");
    let (status, words) = match refused {
        Refused::Provider(why) => (
            StatusCode::BAD_GATEWAY,
            format!("The provider does not log you in: {}", shown(why)),
        ),
        Refused::Foreign => (
            StatusCode::BAD_REQUEST,
            "This login did not begin in this browser, or it took too long. Try again.".to_owned(),
        ),
        Refused::Token(_) => (
            StatusCode::FORBIDDEN,
            "What the provider says of you is not for this login. Try again.".to_owned(),
        ),
        Refused::Nameless(why) => (StatusCode::FORBIDDEN, format!("You are not logged in: {why}.")),
        Refused::Groupless(name) => (
            StatusCode::FORBIDDEN,
            format!("{} is in no group that may use this console.", shown(name)),
        ),
    };
    login::page(state, next, Some(&words)).with(status)
}
