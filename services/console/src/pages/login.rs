//! Login with an API token, which the console keeps for the session.

use axum::{
    Form,
    extract::{Query, State as Shared},
    http::{HeaderMap, StatusCode, header::SET_COOKIE},
    response::{IntoResponse, Redirect, Response},
};
use domain::address::percent_encode;
use maud::{Markup, html};
use secrecy::SecretString;
use serde::Deserialize;

use crate::{
    layout::{ConsolePage, PageVisitor},
    person::{ConsoleState, session_id},
    problem::{PageProblem, describe_api_error},
    session::{self, SessionLogin, TokenLogin},
};

/// Query of the login page: the path to show after the login.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct LoginQuery {
    next: String,
}

/// Form fields of a login with a token.
#[derive(Deserialize)]
pub(super) struct TokenForm {
    token: SecretString,
    #[serde(default)]
    next: String,
}

pub(super) async fn show_login(
    Shared(state): Shared<ConsoleState>,
    Query(asked): Query<LoginQuery>,
) -> ConsolePage {
    build_login_page(&state, &asked.next, None)
}

/// Logs a person in if the API accepts their token.
pub(super) async fn begin_token_login(
    Shared(state): Shared<ConsoleState>,
    headers: HeaderMap,
    Form(brought): Form<TokenForm>,
) -> Result<Response, PageProblem> {
    use secrecy::ExposeSecret;
    if !LoginMethods::of(&state).token {
        return Err(PageProblem::Form("Here, people log in at the provider."));
    }
    let token = SecretString::from(brought.token.expose_secret().trim().to_owned());
    let client = api::Client::new(&state.api, token).map_err(PageProblem::Api)?;
    let visitor = match check_token(&client).await {
        Ok(visitor) => visitor,
        Err(refused) => {
            let (status, words) = if let api::Error::UnknownToken = refused {
                (
                    StatusCode::UNAUTHORIZED,
                    "The API does not know this token.".to_owned(),
                )
            } else {
                describe_api_error(&refused)
            };
            return Ok(build_login_page(&state, &brought.next, Some(&words)).with(status));
        }
    };
    // A new login ends the former session, so its token does not stay in memory.
    if let Some(former) = session_id(&state, &headers) {
        state.sessions.end(&former);
    }
    let login = SessionLogin::Token(Box::new(TokenLogin { client, visitor }));
    let cookie = session::build_session_cookie(&state.sessions.begin(login), state.over_tls);
    Ok((
        [(SET_COOKIE, cookie)],
        Redirect::to(&safe_next_path(&brought.next)),
    )
        .into_response())
}

/// Returns the name and the role of a token that the API accepts.
async fn check_token(client: &api::Client) -> Result<Option<PageVisitor>, api::Error> {
    let Some(caller) = client.caller().await? else {
        // An API of an earlier release: the smallest request that every role may make.
        client.installation().is_stopped().await?;
        return Ok(None);
    };
    Ok(Some(PageVisitor {
        name: caller.name,
        role: caller.role,
    }))
}

pub(super) async fn end_session(Shared(state): Shared<ConsoleState>, headers: HeaderMap) -> Response {
    if let Some(id) = session_id(&state, &headers) {
        state.sessions.end(&id);
    }
    (
        [(SET_COOKIE, session::build_removal_cookie(state.over_tls))],
        Redirect::to("/login"),
    )
        .into_response()
}

/// Returns the path if it is one of this console, else the first page.
pub(super) fn safe_next_path(next: &str) -> String {
    // A path with `//` or a backslash at its start is another host for browsers.
    let is_ours = next.starts_with('/')
        && !next.starts_with("//")
        && !next.contains('\\')
        // The path travels in a cookie.
        && next.len() <= 1_000
        && next.chars().all(|c| c.is_ascii_graphic());
    if is_ours { next.to_owned() } else { "/".to_owned() }
}

/// Ways to log in.
#[derive(Clone, Copy)]
struct LoginMethods {
    provider: bool,
    token: bool,
}

impl LoginMethods {
    fn of(state: &ConsoleState) -> Self {
        let provider = state.provider.as_ref();
        Self {
            provider: provider.is_some(),
            token: provider.is_none_or(|provider| provider.takes_tokens()),
        }
    }
}

/// Builds the login page, with the problem of the last attempt.
pub(super) fn build_login_page(state: &ConsoleState, next: &str, problem: Option<&str>) -> ConsolePage {
    ConsolePage::public("Log in", render_login(LoginMethods::of(state), next, problem))
}

fn render_login(methods: LoginMethods, next: &str, problem: Option<&str>) -> Markup {
    html! {
        div.card.narrow {
            p {
                "Journeyman takes a ticket, opens a pull request and stays with it until people have merged it. "
                "Here you see and steer its work."
            }
            @if let Some(problem) = problem {
                div.box.problem role="alert" { p { (problem) } }
            }
            // A link, because the content security policy forbids forms that lead to another site.
            @if methods.provider {
                p { a.button href={ "/login/oidc?next=" (percent_encode(&safe_next_path(next))) } { "Log in with your account" } }
            }
            @if methods.token { (with_token(next)) }
            // The cookie is SameSite=Strict: a link from another site does not send it, a link of this page does.
            @if !next.is_empty() { p { a href=(safe_next_path(next)) { "Continue if you are logged in already" } } }
        }
    }
}

fn with_token(next: &str) -> Markup {
    html! {
        form method="post" action="/login" {
            input type="hidden" name="next" value=(safe_next_path(next));
            label for="token" { "API token" }
            input id="token" name="token" type="password" required autocomplete="current-password" autofocus
                aria-describedby="token-help";
            p.soft id="token-help" {
                "What you do here is done with this token, and the journal has its name. It stays on the server until you "
                "log out, and for eight hours at most."
            }
            div.actions { button.main { "Log in" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_target_outside_console_is_ignored() {
        assert_eq!(safe_next_path("/runs?status=parked"), "/runs?status=parked");
        for elsewhere in [
            "",
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "/a\r\nb: c",
            "javascript:x",
        ] {
            assert_eq!(safe_next_path(elsewhere), "/", "{elsewhere}");
        }
    }
}
