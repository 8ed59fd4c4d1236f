//! Frame of every page: head, header with search, user and navigation, and content.

use api::types::Role;
use axum::{
    http::{StatusCode, header::CONTENT_SECURITY_POLICY},
    response::{IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, html};

use crate::{
    assets::{ICON, KEYS, SCRIPTS, STYLE},
    words::make_visible,
};

/// Entries of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NavigationEntry {
    Overview,
    Tickets,
    Runs,
    Costs,
    Pools,
    Rules,
    Dead,
    Health,
}

impl NavigationEntry {
    const ALL: [Self; 8] = [
        Self::Overview,
        Self::Tickets,
        Self::Runs,
        Self::Costs,
        Self::Pools,
        Self::Rules,
        Self::Dead,
        Self::Health,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Tickets => "Tickets",
            Self::Runs => "Runs",
            Self::Costs => "Costs",
            Self::Pools => "Pools",
            Self::Rules => "Rules",
            Self::Dead => "Dead letters",
            Self::Health => "Health",
        }
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Overview => "/",
            Self::Tickets => "/tickets",
            Self::Runs => "/runs",
            Self::Costs => "/costs",
            Self::Pools => "/pools",
            Self::Rules => "/rules",
            Self::Dead => "/dead",
            Self::Health => "/health",
        }
    }
}

/// Logged-in user, as the header names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageVisitor {
    pub(crate) name: String,
    pub(crate) role: Role,
}

/// Parts of the header that the page itself does not know.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageFrame {
    /// Absent: the page needs no login, or the API did not name the user.
    pub(crate) visitor: Option<PageVisitor>,
    /// Name of the installation, such as `production`; may be empty.
    pub(crate) environment: String,
}

/// The one search field of a page.
#[derive(Clone, Debug)]
pub(crate) struct SearchField {
    /// Path of the list that the search shows.
    pub(crate) action: &'static str,
    pub(crate) label: &'static str,
    pub(crate) text: String,
    /// Other filters of the list, which a search keeps.
    pub(crate) kept: Vec<(&'static str, String)>,
}

impl Default for SearchField {
    fn default() -> Self {
        Self {
            action: "/tickets",
            label: "Search tickets",
            text: String::new(),
            kept: Vec::new(),
        }
    }
}

/// Title, navigation entry and content of a page.
///
/// As a response it has no body yet: the outermost layer renders it, because that layer knows the user.
#[derive(Clone)]
pub(crate) struct ConsolePage {
    title: String,
    /// Navigation entry of the page; absent: the page has no navigation, because it needs no login.
    place: Option<NavigationEntry>,
    body: Markup,
    search: SearchField,
    /// Nonce of the scripts that follow a run.
    nonce: Option<String>,
    /// True if a browser without scripts reloads the page periodically.
    reloads: bool,
}

impl ConsolePage {
    pub(crate) fn new(place: NavigationEntry, title: impl Into<String>, body: Markup) -> Self {
        Self {
            place: Some(place),
            ..Self::public(title, body)
        }
    }

    /// Creates a page without navigation, for readers who are not logged in.
    pub(crate) fn public(title: impl Into<String>, body: Markup) -> Self {
        Self {
            title: title.into(),
            place: None,
            body,
            search: SearchField::default(),
            nonce: None,
            reloads: false,
        }
    }

    /// Returns the page with another search field.
    pub(crate) fn with_search(self, search: SearchField) -> Self {
        Self { search, ..self }
    }

    /// Returns the page as a response with a status.
    pub(crate) fn with(self, status: StatusCode) -> Response {
        (status, self).into_response()
    }

    /// Returns a page with scripts that follow a run. The policy runs only markup with the nonce of this response.
    ///
    /// With `reloads`, a browser without scripts loads the page every 15 seconds. This removes what a user typed, so
    /// only a user who chose to follow the run gets it (WCAG 2.2.1).
    pub(crate) fn live(
        title: String,
        place: NavigationEntry,
        reloads: bool,
        body: impl FnOnce(&str) -> Markup,
    ) -> Response {
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        let policy = build_live_policy(&nonce);
        let page = Self {
            nonce: Some(nonce.clone()),
            reloads,
            ..Self::new(place, title, body(&nonce))
        };
        ([(CONTENT_SECURITY_POLICY, policy)], page).into_response()
    }

    /// Returns true if the header names the user.
    pub(crate) const fn has_navigation(&self) -> bool {
        self.place.is_some()
    }

    pub(crate) fn markup(&self, frame: &PageFrame) -> Markup {
        let nonce = self.nonce.as_deref();
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) " · Journeyman" }
                    link rel="stylesheet" href=(STYLE);
                    link rel="icon" href=(ICON) type="image/svg+xml";
                    @if self.has_navigation() { script defer nonce=[nonce] src=(KEYS) {} }
                    @if let Some(nonce) = nonce { (render_scripts(nonce)) }
                    @if self.reloads { noscript { meta http-equiv="refresh" content="15"; } }
                }
                body {
                    a.skip href="#main" { "To the content" }
                    (self.render_header(frame))
                    main id="main" { h1 { (self.title) } (self.body) }
                }
            }
        }
    }

    fn render_header(&self, frame: &PageFrame) -> Markup {
        html! {
            header.site {
                div.top {
                    a.brand href="/" { img src=(ICON) alt="" width="28" height="28"; "Journeyman" }
                    @if !frame.environment.is_empty() { span.chip { (make_visible(&frame.environment)) } }
                    @if self.has_navigation() { (self.search.render()) }
                    (render_account(frame, self.has_navigation()))
                }
                @if let Some(here) = self.place { (render_navigation(here)) }
            }
            @if self.has_navigation() { (render_keys()) }
        }
    }
}

impl IntoResponse for ConsolePage {
    fn into_response(self) -> Response {
        let mut response = StatusCode::OK.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl SearchField {
    fn render(&self) -> Markup {
        html! {
            form.search role="search" method="get" action=(self.action) aria-label=(self.label) {
                @for (name, value) in &self.kept {
                    @if !value.is_empty() { input type="hidden" name=(name) value=(value); }
                }
                label.hidden-text for="search" { (self.label) }
                input id="search" name="q" type="search" value=(make_visible(&self.text)) placeholder=(self.label)
                    aria-keyshortcuts="/" maxlength="200";
                button { "Search" }
            }
        }
    }
}

fn build_live_policy(nonce: &str) -> String {
    format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; connect-src 'self'; style-src 'self'; img-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; \
         trusted-types htmx"
    )
}

/// Renders the script elements.
fn render_scripts(nonce: &str) -> Markup {
    html! {
        meta name="htmx-config" content=r#"{"extensions":"hx-csp,sse","includeIndicatorCSS":false,"history":false}"#;
        // No `defer`: htmx starts as soon as the page is parsed, and ignores extensions that load later.
        @for script in SCRIPTS { script nonce=(nonce) src=(script) {} }
    }
}

fn render_account(frame: &PageFrame, is_logged_in: bool) -> Markup {
    html! {
        div.account {
            @if let Some(visitor) = &frame.visitor {
                span.user { (make_visible(&visitor.name)) }
                span.chip { (visitor.role.as_str()) }
            }
            span title="Release of this console" { "v" (env!("CARGO_PKG_VERSION")) }
            @if is_logged_in {
                button.quiet type="button" popovertarget="keys" { "Keys" }
                form.inline method="post" action="/logout" { button.quiet { "Log out" } }
            }
        }
    }
}

fn render_navigation(here: NavigationEntry) -> Markup {
    html! {
        nav aria-label="Pages" {
            ul {
                @for place in NavigationEntry::ALL {
                    li { a href=(place.path()) aria-current=[(place == here).then_some("page")] { (place.name()) } }
                }
            }
        }
    }
}

/// Renders the list of keys, which a button opens without a script.
fn render_keys() -> Markup {
    html! {
        div id="keys" popover="auto" role="dialog" aria-labelledby="keys-name" {
            strong id="keys-name" { "Keys" }
            dl {
                dt { kbd { "/" } } dd { "search" }
                dt { kbd { "j" } " " kbd { "k" } } dd { "next and previous item of a list" }
                dt { kbd { "Enter" } } dd { "open the item" }
                dt { kbd { "?" } } dd { "show or hide these keys" }
            }
            // WCAG 2.1.4: a user of speech input must be able to turn off keys of one character.
            p hidden { label.inline { input id="keys-on" type="checkbox" checked; "Use these keys" } }
            noscript { p.soft { "Keys need JavaScript; every page works without them." } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_page(place: Option<NavigationEntry>, frame: &PageFrame) -> String {
        let page = ConsolePage {
            place,
            ..ConsolePage::public("Title", html! { p { "content" } })
        };
        page.markup(frame).into_string()
    }

    #[test]
    fn header_names_user_role_and_environment() {
        let frame = PageFrame {
            visitor: Some(PageVisitor {
                name: "<ada>\u{202e}".to_owned(),
                role: Role::Operator,
            }),
            environment: "production".to_owned(),
        };
        let page = render_page(Some(NavigationEntry::Tickets), &frame);
        for part in [
            "&lt;ada&gt;&lt;U+202E&gt;",
            ">operator<",
            ">production<",
            concat!("v", env!("CARGO_PKG_VERSION")),
            "href=\"/tickets\" aria-current=\"page\"",
            "popovertarget=\"keys\"",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert_eq!(page.matches("type=\"search\"").count(), 1, "{page}");
    }

    #[test]
    fn public_page_has_no_navigation_and_no_script() {
        let page = render_page(None, &PageFrame::default());
        for absent in ["<nav", "<script", "type=\"search\"", "/logout"] {
            assert!(!page.contains(absent), "{absent}: {page}");
        }
    }

    #[test]
    fn only_followed_page_reloads_itself() {
        for reloads in [false, true] {
            let page = ConsolePage {
                reloads,
                ..ConsolePage::public("Title", html! {})
            };
            let page = page.markup(&PageFrame::default()).into_string();
            let has_refresh = page.contains("<noscript><meta http-equiv=\"refresh\"");
            assert_eq!(has_refresh, reloads, "{page}");
        }
    }

    #[test]
    fn search_keeps_other_filters_of_list() {
        let search = SearchField {
            action: "/runs",
            label: "Search runs",
            text: "\"cart\"".to_owned(),
            kept: vec![("stop", "failed".to_owned()), ("job", String::new())],
        };
        let form = search.render().into_string();
        assert!(form.contains("name=\"stop\" value=\"failed\""), "{form}");
        assert!(
            form.contains("value=\"&quot;cart&quot;\"") && !form.contains("name=\"job\""),
            "{form}"
        );
    }
}
