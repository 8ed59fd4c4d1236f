//! Login at the provider: redirect to it, and callback from it.

use std::sync::Arc;

use axum::{
    extract::{Query, State as Shared},
    http::{HeaderMap, StatusCode, header::SET_COOKIE},
    response::{AppendHeaders, IntoResponse, Redirect, Response},
};
use domain::cause::format_error_chain;
use maud::html;
use serde::Deserialize;

use super::login;
use crate::{
    layout::ConsolePage,
    oidc::{LoginInProgress, LoginRefusal, OidcProvider, PATIENCE},
    person::{ConsoleState, find_cookie, session_id},
    person_role::PersonStanding,
    problem::PageProblem,
    session::{self, SessionLogin},
    words::make_visible,
};

// Name of the cookie with the sealed state of a login.
const COOKIE: &str = "journeyman-login";
const TLS_COOKIE: &str = "__Secure-journeyman-login";

/// Query of the login: the path to show after it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ProviderLoginQuery {
    next: String,
}

/// Query of the callback, as the provider sends it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ProviderCallback {
    code: String,
    state: String,
    error: String,
}

/// Redirects the browser to the provider.
///
/// The cookie of the login is SameSite=Lax, unlike the session's: the browser must send it when the provider
/// redirects back. It authorizes nothing else.
pub(super) async fn begin_provider_login(
    Shared(state): Shared<ConsoleState>,
    Query(asked): Query<ProviderLoginQuery>,
) -> Result<Response, PageProblem> {
    let provider = state.provider.as_ref().ok_or(PageProblem::NotFound)?;
    match provider.begin(login::safe_next_path(&asked.next)).await {
        Ok((url, begun)) => {
            let ends = bootstrap::read_wall_clock().plus(PATIENCE);
            let sealed = state.seal.seal(begun, ends).map_err(|error| {
                tracing::error!(error = %format_error_chain(&error), "a login cannot be sealed");
                PageProblem::Form("No login can begin at the moment. Try again.")
            })?;
            let cookie = build_login_cookie(&sealed, PATIENCE.as_secs(), state.over_tls);
            Ok(([(SET_COOKIE, cookie)], Redirect::to(&url)).into_response())
        }
        Err(refused) => Ok(not_in(&state, &asked.next, &refused)),
    }
}

/// Logs a person in if the provider vouches for them and one of their groups has a role.
pub(super) async fn finish_provider_login(
    Shared(state): Shared<ConsoleState>,
    headers: HeaderMap,
    Query(brought): Query<ProviderCallback>,
) -> Result<Response, PageProblem> {
    let provider = state.provider.as_ref().ok_or(PageProblem::NotFound)?;
    // A login is opened once, even if it fails: the code and the state cannot be tried a second time.
    let sealed = find_cookie(&headers, remembered_name(state.over_tls));
    let begun = sealed.and_then(|sealed| {
        state
            .seal
            .open_once::<LoginInProgress>(&sealed, bootstrap::read_wall_clock())
    });
    let next = begun
        .as_ref()
        .map_or_else(String::new, |begun| begun.next.clone());
    let standing = match begun {
        Some(begun) => let_in(&state, provider, begun, brought).await,
        None => Err(LoginRefusal::Foreign),
    };
    let standing = match standing {
        Ok(standing) => standing,
        Err(refused) => return Ok(not_in(&state, &next, &refused)),
    };
    // A new login ends the former session of this browser.
    // Only after success: a link from another site to this page must not log a person out.
    if let Some(former) = session_id(&state, &headers) {
        state.sessions.end(&former);
    }
    let over_tls = state.over_tls;
    let login = SessionLogin::Provider(Arc::new(standing));
    let cookies = AppendHeaders([
        (
            SET_COOKIE,
            session::build_session_cookie(&state.sessions.begin(login), over_tls),
        ),
        (SET_COOKIE, build_login_cookie("", 0, over_tls)),
    ]);
    Ok((
        cookies,
        [("refresh", format!("0; url={next}"))],
        build_welcome_page(&next),
    )
        .into_response())
}

async fn let_in(
    state: &ConsoleState,
    provider: &OidcProvider,
    begun: LoginInProgress,
    brought: ProviderCallback,
) -> Result<PersonStanding, LoginRefusal> {
    if !brought.error.is_empty() {
        return Err(LoginRefusal::Provider(format!(
            "it says {}",
            make_visible(&brought.error)
        )));
    }
    let known = provider.finish(begun, &brought.state, brought.code).await?;
    tracing::info!(
        person = known.person.name,
        role = known.person.role.as_str(),
        identity = %known.identity,
        "logged in"
    );
    let client = provider.client_for(&state.api, known.person, &known.identity)?;
    // The first page would end the session, and the next login would lead there again without a reason. The pages
    // show other problems.
    if let Err(api::Error::UnknownToken) = client.caller().await {
        return Err(LoginRefusal::ApiToken);
    }
    Ok(PersonStanding::new(client, known.identity, known.refresh))
}

/// Page that continues after the login. A redirect would still belong to the other site's navigation, and the browser
/// would not send the session's cookie.
fn build_welcome_page(next: &str) -> ConsolePage {
    ConsolePage::public("You are logged in", html! { p { a href=(next) { "Continue" } } })
}

/// Returns the name of the cookie. `__Secure-` limits it to TLS; `__Host-` would need the path `/`.
const fn remembered_name(over_tls: bool) -> &'static str {
    if over_tls { TLS_COOKIE } else { COOKIE }
}

fn build_login_cookie(sealed: &str, seconds: u64, over_tls: bool) -> String {
    let secure = if over_tls { "; Secure" } else { "" };
    let name = remembered_name(over_tls);
    format!("{name}={sealed}; Path=/login; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}

fn not_in(state: &ConsoleState, next: &str, refused: &LoginRefusal) -> Response {
    tracing::warn!(?refused, "a login at the provider was refused");
    let (status, words) = match refused {
        LoginRefusal::Provider(why) => (
            StatusCode::BAD_GATEWAY,
            format!("The provider does not log you in: {}", make_visible(why)),
        ),
        LoginRefusal::Foreign => (
            StatusCode::BAD_REQUEST,
            "This login did not begin in this browser, or it took too long. Try again.".to_owned(),
        ),
        LoginRefusal::Token(_) => (
            StatusCode::FORBIDDEN,
            "What the provider says of you is not for this login. Try again.".to_owned(),
        ),
        LoginRefusal::Nameless(why) => (StatusCode::FORBIDDEN, format!("You are not logged in: {why}.")),
        LoginRefusal::Groupless(name) => (
            StatusCode::FORBIDDEN,
            format!("{} is in no group that may use this console.", make_visible(name)),
        ),
        LoginRefusal::ApiToken => (
            StatusCode::BAD_GATEWAY,
            "The API does not know the token of this console. Its operator has to set console.oidc.api_token."
                .to_owned(),
        ),
    };
    login::build_login_page(state, next, Some(&words)).with(status)
}
