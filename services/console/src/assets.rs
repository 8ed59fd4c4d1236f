//! Files that pages load. They are part of the binary, so pages load nothing from other hosts.

use axum::{
    Router,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    routing::get,
};

/// Path of the style sheet. It contains the version, so a release with another style sheet has another path.
pub(crate) const STYLE: &str = concat!("/assets/console-", env!("CARGO_PKG_VERSION"), ".css");
/// Path of the icon in a browser's tab.
pub(crate) const ICON: &str = "/assets/icon.svg";
/// Path of the script for keys. Like that of the style sheet, it contains the version.
pub(crate) const KEYS: &str = concat!("/assets/console-", env!("CARGO_PKG_VERSION"), ".js");
/// Scripts of a live page, in load order.
pub(crate) const SCRIPTS: [&str; 3] = [
    "/assets/htmx-4.0.1.min.js",
    "/assets/hx-csp-4.0.1.min.js",
    "/assets/hx-sse-4.0.1.min.js",
];

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const FOR_A_YEAR: &str = "public, max-age=31536000, immutable";
// Style sheet and script keep their paths during the development of a release, so browsers must ask again.
const FOR_A_MINUTE: &str = "public, max-age=60";

type PageAsset = (&'static str, &'static str, &'static str, &'static [u8]);

const ASSETS: [PageAsset; 6] = [
    (
        ICON,
        "image/svg+xml",
        FOR_A_MINUTE,
        include_bytes!("../assets/icon.svg"),
    ),
    (STYLE, CSS, FOR_A_MINUTE, include_bytes!("../assets/console.css")),
    (KEYS, JS, FOR_A_MINUTE, include_bytes!("../assets/console.js")),
    (
        SCRIPTS[0],
        JS,
        FOR_A_YEAR,
        include_bytes!("../assets/htmx-4.0.1.min.js"),
    ),
    (
        SCRIPTS[1],
        JS,
        FOR_A_YEAR,
        include_bytes!("../assets/hx-csp-4.0.1.min.js"),
    ),
    (
        SCRIPTS[2],
        JS,
        FOR_A_YEAR,
        include_bytes!("../assets/hx-sse-4.0.1.min.js"),
    ),
];

pub(crate) fn build_asset_routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    ASSETS
        .into_iter()
        .fold(Router::new(), |router, (path, kind, cache, bytes)| {
            let answer = ([(CONTENT_TYPE, kind), (CACHE_CONTROL, cache)], bytes);
            router.route(path, get(async move || answer))
        })
}
