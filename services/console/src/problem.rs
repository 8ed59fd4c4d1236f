//! Reasons why a page cannot be shown or an order fails.

use axum::{
    http::{StatusCode, header::SET_COOKIE},
    response::{AppendHeaders, IntoResponse, Redirect, Response},
};
use domain::cause::format_error_chain;
use maud::html;

use crate::{
    layout::{ConsolePage, NavigationEntry},
    session,
    words::make_visible,
};

/// Failure of a request, rendered as a page.
#[derive(Debug)]
pub(crate) enum PageProblem {
    /// The request has no session; the path to show after a login. A link from another site sends no cookie, so the
    /// browser's cookie stays.
    LogIn(String),
    /// The API no longer knows the token.
    Ended,
    /// The page or object does not exist.
    NotFound,
    /// A field of the form is missing or invalid.
    Form(&'static str),
    /// The request came from a page of another site.
    Foreign,
    /// The API refused the request or did not respond.
    Api(api::Error),
    /// The task that renders the page failed.
    Unrendered(tokio::task::JoinError),
}

impl From<tokio::task::JoinError> for PageProblem {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Unrendered(error)
    }
}

impl From<api::Error> for PageProblem {
    fn from(error: api::Error) -> Self {
        if let api::Error::UnknownToken = error {
            Self::Ended
        } else {
            Self::Api(error)
        }
    }
}

impl From<domain::InvalidId> for PageProblem {
    fn from(_: domain::InvalidId) -> Self {
        Self::NotFound
    }
}

/// Returns the status and the message for a failure of the API.
pub(crate) fn describe_api_error(error: &api::Error) -> (StatusCode, String) {
    match error {
        api::Error::Refused { status, .. } if *status == StatusCode::FORBIDDEN => (
            *status,
            format!(
                "Your token is not allowed to do this: {}",
                make_visible(&error.to_string())
            ),
        ),
        api::Error::Refused { status, .. } => (*status, make_visible(&error.to_string())),
        api::Error::Client(_)
        | api::Error::Unreachable { .. }
        | api::Error::UnknownToken
        | api::Error::Needless(_)
        | api::Error::NotUnderstood(_)
        | api::Error::Lost(_)
        | api::Error::BrokenOff
        | api::Error::Events(_) => (StatusCode::BAD_GATEWAY, make_visible(&error.to_string())),
    }
}

impl IntoResponse for PageProblem {
    fn into_response(self) -> Response {
        let (status, words) = match self {
            Self::LogIn(next) => {
                let to = format!("/login?next={}", domain::address::percent_encode(&next));
                return Redirect::to(&to).into_response();
            }
            Self::Ended => {
                // The browser may have the cookie of plain HTTP or of TLS.
                let gone =
                    [false, true].map(|over_tls| (SET_COOKIE, session::build_removal_cookie(over_tls)));
                return (AppendHeaders(gone), Redirect::to("/login")).into_response();
            }
            Self::NotFound => (StatusCode::NOT_FOUND, "There is no such page.".to_owned()),
            Self::Form(why) => (StatusCode::UNPROCESSABLE_ENTITY, why.to_owned()),
            Self::Foreign => (
                StatusCode::FORBIDDEN,
                "The request did not come from a page of this console, so nothing was done.".to_owned(),
            ),
            Self::Api(error) => {
                tracing::info!(error = %format_error_chain(&error), "the API did not serve a page");
                describe_api_error(&error)
            }
            Self::Unrendered(error) => {
                tracing::error!(error = %format_error_chain(&error), "a page was not rendered");
                let words = "The page could not be rendered. Its cause is in the log of the console.";
                (StatusCode::INTERNAL_SERVER_ERROR, words.to_owned())
            }
        };
        let body = html! {
            div.box.problem role="alert" { p { (words) } }
            p { a href="/" { "To the overview" } }
        };
        ConsolePage::new(NavigationEntry::Overview, "Nothing to show", body).with(status)
    }
}
