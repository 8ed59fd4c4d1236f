//! Frame of every page: head, navigation and content.

use axum::{
    http::{StatusCode, header::CONTENT_SECURITY_POLICY},
    response::{IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, html};

use crate::assets::{ICON, SCRIPTS, STYLE};

/// Entries of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NavigationEntry {
    NeedsYou,
    Runs,
    Dead,
    Pools,
    Rules,
    Costs,
    Health,
}

impl NavigationEntry {
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

/// Title, navigation entry and content of a page.
pub(crate) struct ConsolePage {
    pub(crate) title: String,
    /// Navigation entry of the page; absent: the page has no navigation, because it needs no login.
    pub(crate) place: Option<NavigationEntry>,
    pub(crate) body: Markup,
}

impl ConsolePage {
    pub(crate) fn new(place: NavigationEntry, title: impl Into<String>, body: Markup) -> Self {
        Self {
            title: title.into(),
            place: Some(place),
            body,
        }
    }

    /// Renders the page with a status and without scripts.
    pub(crate) fn with(&self, status: StatusCode) -> Response {
        (status, self.markup(None)).into_response()
    }

    /// Renders a page with scripts that follow a run. The policy runs only markup with the nonce of this response.
    pub(crate) fn live(title: String, place: NavigationEntry, body: impl FnOnce(&str) -> Markup) -> Response {
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        let policy = build_live_policy(&nonce);
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
                    @if let Some(nonce) = nonce { (render_scripts(nonce)) }
                }
                body {
                    a.skip href="#main" { "To the content" }
                    @if let Some(place) = self.place { (render_header(place)) }
                    main id="main" { h1 { (self.title) } (self.body) }
                }
            }
        }
    }
}

impl IntoResponse for ConsolePage {
    fn into_response(self) -> Response {
        self.with(StatusCode::OK)
    }
}

fn build_live_policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; connect-src 'self'; style-src 'self'; img-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; \
         trusted-types htmx"
    )
}

/// Renders the script elements. Without scripts, the browser reloads the page every 15 seconds.
fn render_scripts(nonce: &str) -> Markup {
    html! {
        meta name="htmx-config" content=r#"{"extensions":"hx-csp,sse","includeIndicatorCSS":false,"history":false}"#;
        // No `defer`: htmx starts as soon as the page is parsed, and ignores extensions that load later.
        @for script in SCRIPTS { script nonce=(nonce) src=(script) {} }
        noscript { meta http-equiv="refresh" content="15"; }
    }
}

fn render_header(here: NavigationEntry) -> Markup {
    html! {
        header.site {
            nav aria-label="Pages" {
                ul {
                    @for place in NavigationEntry::ALL {
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
