//! What every page has around it.

use axum::{
    http::{StatusCode, header::CONTENT_SECURITY_POLICY},
    response::{IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, html};

use crate::assets::{ICON, SCRIPTS, STYLE};

/// The places of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    NeedsYou,
    Runs,
    Dead,
    Pools,
    Rules,
    Costs,
    Health,
}

impl Place {
    const ALL: [Self; 7] = [
        Self::NeedsYou,
        Self::Runs,
        Self::Dead,
        Self::Pools,
        Self::Rules,
        Self::Costs,
        Self::Health,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::NeedsYou => "Needs you",
            Self::Runs => "Runs",
            Self::Dead => "Dead letters",
            Self::Pools => "Pools",
            Self::Rules => "Rules",
            Self::Costs => "Costs",
            Self::Health => "Health",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::NeedsYou => "/",
            Self::Runs => "/runs",
            Self::Dead => "/dead",
            Self::Pools => "/pools",
            Self::Rules => "/rules",
            Self::Costs => "/costs",
            Self::Health => "/health",
        }
    }
}

/// A page before it is put together.
pub(crate) struct Page {
    pub(crate) title: String,
    /// Where it stands in the navigation; absent: nobody is logged in.
    pub(crate) place: Option<Place>,
    pub(crate) body: Markup,
}

impl Page {
    pub(crate) fn new(place: Place, title: impl Into<String>, body: Markup) -> Self {
        Self {
            title: title.into(),
            place: Some(place),
            body,
        }
    }

    /// The page with this status; it runs no script.
    pub(crate) fn with(&self, status: StatusCode) -> Response {
        (status, self.markup(None)).into_response()
    }

    /// The page with scripts that follow what happens. Each answer has a nonce of its own: markup without it does nothing.
    pub(crate) fn live(title: String, place: Place, body: impl FnOnce(&str) -> Markup) -> Response {
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        let policy = policy(&nonce);
        let page = Self::new(place, title, body(&nonce));
        ([(CONTENT_SECURITY_POLICY, policy)], page.markup(Some(&nonce))).into_response()
    }

    pub(crate) fn markup(&self, nonce: Option<&str>) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) " · Journeyman" }
                    link rel="stylesheet" href=(STYLE);
                    link rel="icon" href=(ICON) type="image/svg+xml";
                    @if let Some(nonce) = nonce { (scripts(nonce)) }
                }
                body {
                    a.skip href="#main" { "To the content" }
                    @if let Some(place) = self.place { (header(place)) }
                    main id="main" { h1 { (self.title) } (self.body) }
                }
            }
        }
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        self.with(StatusCode::OK)
    }
}

fn policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; connect-src 'self'; style-src 'self'; img-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; \
         trusted-types htmx"
    )
}

/// Without scripts the page is loaded again now and then.
fn scripts(nonce: &str) -> Markup {
    html! {
        meta name="htmx-config" content=r#"{"extensions":"hx-csp,sse","includeIndicatorCSS":false,"history":false}"#;
        // Not deferred: htmx begins at once when the page is parsed already, and an extension that comes after that does nothing.
        @for script in SCRIPTS { script nonce=(nonce) src=(script) {} }
        noscript { meta http-equiv="refresh" content="15"; }
    }
}

fn header(here: Place) -> Markup {
    html! {
        header.site {
            nav aria-label="Pages" {
                ul {
                    @for place in Place::ALL {
                        li {
                            a href=(place.path()) aria-current=[(place == here).then_some("page")] { (place.name()) }
                        }
                    }
                }
            }
            form method="post" action="/logout" { button { "Log out" } }
        }
    }
}
