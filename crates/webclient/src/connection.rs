//! Connection pool of a service.

use std::time::Duration;

use reqwest::{Client, Url, header::HeaderMap, redirect, retry};

// Shorter than the limit of the whole exchange, so that a host that does not answer is reported as such: nothing
// was sent, and a write may be repeated.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
// Covers the whole exchange, from the connection to the end of the body.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(20);

/// Reason why a connection pool cannot be built from the settings.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The base URL is not a URL.
    #[error("{base_url} is not a URL")]
    InvalidUrl {
        /// Text of the settings.
        base_url: String,
    },
    /// The base URL contains a user name or a password.
    #[error("the URL of the API contains a user name or a password; remove them")]
    UrlWithCredentials,
    /// The system offers no connections, e.g. no certificates of authorities.
    #[error("the HTTP client cannot be built")]
    Unusable {
        /// Cause that the HTTP library reports.
        source: reqwest::Error,
    },
}

/// Builds the connection pool of a service. Each request carries `headers`, and takes the way of the process to
/// the outside.
///
/// # Errors
/// [`ConnectionError`] for an invalid base URL, or when the system offers no connections.
pub fn build_client(base_url: &str, headers: HeaderMap) -> Result<Client, ConnectionError> {
    // An error means only that the process has a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // reqwest would report an invalid URL only with the first request.
    let url = Url::parse(base_url).map_err(|_| ConnectionError::InvalidUrl {
        base_url: base_url.to_owned(),
    })?;
    // reqwest would send them as a second header beside the token.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ConnectionError::UrlWithCredentials);
    }
    let builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TOTAL_TIMEOUT)
        // A request that times out closes its connection. All requests share one connection of HTTP/2, so
        // that a dead one would fail the next requests, too.
        .http1_only()
        // The callers classify redirects: a renamed repository, a login page, or a text at another host that
        // must not receive the token.
        .redirect(redirect::Policy::none())
        // A write is sent once; `retry_read` alone repeats reads.
        .retry(retry::never())
        // GitHub refuses requests without a user agent.
        .user_agent("journeyman")
        .default_headers(headers);
    webproxy::configure_client(builder)
        .and_then(reqwest::ClientBuilder::build)
        .map_err(|source| ConnectionError::Unusable { source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_needs_scheme_and_no_credentials() {
        for url in ["", "jira.example", "/rest"] {
            let refused = build_client(url, HeaderMap::new()).unwrap_err();
            assert_eq!(refused.to_string(), format!("{url} is not a URL"));
        }
        for url in ["https://ada:secret@ghe.example", "https://:secret@ghe.example"] {
            let refused = build_client(url, HeaderMap::new()).unwrap_err();
            assert!(
                matches!(refused, ConnectionError::UrlWithCredentials),
                "{refused}"
            );
            assert!(!format!("{refused:?}").contains("secret"), "{refused:?}");
        }
        build_client("https://ghe.example/api/v3", HeaderMap::new()).unwrap();
    }
}
