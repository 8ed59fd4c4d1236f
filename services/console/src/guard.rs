//! Middleware for all requests and responses: origin check and security headers.

use axum::{
    extract::Request,
    http::{
        HeaderMap, HeaderValue, Method,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
        },
    },
    middleware::Next,
    response::{IntoResponse, Response},
};

use crate::problem::PageProblem;

// Content security policy of pages that follow no run. Their one script is a file of the console, and can write no
// markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Refuses form submissions from other sites, and sets the security headers.
pub(crate) async fn guard_request(request: Request, next: Next) -> Response {
    let is_order = !matches!(*request.method(), Method::GET | Method::HEAD);
    if is_order && !is_ours(request.headers()) {
        return with_headers(PageProblem::Foreign.into_response());
    }
    with_headers(next.run(request).await)
}

/// Returns true if a page of this console sent the request.
fn is_ours(headers: &HeaderMap) -> bool {
    // Browsers send Sec-Fetch-Site, older ones Origin. A client without both is not a browser and has the API.
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match text("sec-fetch-site") {
        Some(site) => site == "same-origin",
        None => {
            let origin = text(ORIGIN.as_str()).and_then(|origin| origin.split_once("://"));
            // Browsers send `Origin: null` for sandboxed pages. It has no host, so the request is
            // refused.
            origin.is_some_and(|(_, host)| text(HOST.as_str()) == Some(host))
        }
    }
}

fn with_headers(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        // An asset sets its own cache lifetime.
        // A live page sets its policy itself, with its nonce.
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own_request(pairs: &[(&'static str, &'static str)]) -> bool {
        let pairs = pairs.iter().map(|(name, value)| {
            (
                axum::http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        is_ours(&pairs.collect())
    }

    #[test]
    fn only_pages_of_the_console_give_orders() {
        let host = ("host", "127.0.0.1:7405");
        assert!(is_own_request(&[host, ("sec-fetch-site", "same-origin")]));
        assert!(is_own_request(&[host, ("origin", "http://127.0.0.1:7405")]));
        assert!(!is_own_request(&[host]));
        assert!(!is_own_request(&[host, ("origin", "null")]));
        assert!(!is_own_request(&[host, ("origin", "http://127.0.0.1:9")]));
        for site in ["cross-site", "same-site", "none"] {
            let origin = ("origin", "http://127.0.0.1:7405");
            assert!(
                !is_own_request(&[host, origin, ("sec-fetch-site", site)]),
                "{site}"
            );
        }
    }
}
