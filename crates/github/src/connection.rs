//! Connection to one API: HTTP client, base URL, and the credentials of its requests.

use std::{sync::Arc, time::Duration};

use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{self, InvalidHeaderValue},
    uri::PathAndQuery,
};
use reqwest::{RequestBuilder, Url};
use secrecy::{ExposeSecret, SecretString};

use crate::{Error, app_key::AppKey};

// Shorter than the limit of `transport` for the whole exchange, so that a host that does not answer is
// reported as such: nothing was sent, and a write may be repeated.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
// GitHub answers a request without a version with its newest one.
const API_VERSION: HeaderValue = HeaderValue::from_static("2022-11-28");
const API_VERSION_NAME: HeaderName = HeaderName::from_static("x-github-api-version");

/// Connection pool with the base URL and credentials of requests; clones and derived ones share the pool.
#[derive(Clone)]
pub(crate) struct ApiConnection {
    http: reqwest::Client,
    base_url: Arc<str>,
    credentials: RequestCredentials,
}

#[derive(Clone)]
enum RequestCredentials {
    Anonymous,
    Token(HeaderValue),
    App(Arc<AppKey>),
}

impl ApiConnection {
    /// Builds a connection without credentials.
    pub(crate) fn anonymous(api_url: &str) -> Result<Self, Error> {
        // An error means only that the process has a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let base_url = api_url.trim_end_matches('/');
        let rejected = || Error::Rejected {
            detail: format!("{api_url} is not a URL"),
        };
        // reqwest would report an invalid URL only with the first request.
        let url = Url::parse(base_url).map_err(|_| rejected())?;
        // reqwest would send them as a second header beside the token.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::Rejected {
                detail: "the URL of the API contains a user name or a password; remove them".to_owned(),
            });
        }
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .http1_only()
            .no_proxy()
            // Redirects are read by `transport`: a renamed repository, or a text at another host that must
            // not receive the token.
            .redirect(reqwest::redirect::Policy::none())
            // A write is sent once; `transport` alone repeats reads.
            .retry(reqwest::retry::never())
            // GitHub refuses requests without a user agent.
            .user_agent("journeyman")
            .default_headers(HeaderMap::from_iter([(API_VERSION_NAME, API_VERSION)]))
            .build()
            .map_err(|_| rejected())?;
        Ok(Self {
            http,
            base_url: base_url.into(),
            credentials: RequestCredentials::Anonymous,
        })
    }

    /// Returns the connection with an App's key, which signs a token for its requests.
    pub(crate) fn with_app(&self, app: u64, key: &SecretString) -> Result<Self, Error> {
        Ok(Self {
            credentials: RequestCredentials::App(Arc::new(AppKey::parse(app, key)?)),
            ..self.clone()
        })
    }

    pub(crate) fn with_token(&self, token: &SecretString) -> Result<Self, Error> {
        let header = build_bearer_header(token.expose_secret()).map_err(|_| Error::Unauthorized {
            check: "the token, which contains a character that is not allowed in a header".to_owned(),
        })?;
        Ok(Self {
            credentials: RequestCredentials::Token(header),
            ..self.clone()
        })
    }

    /// Returns the connection with another base URL of the same server.
    pub(crate) fn with_base_url(&self, base_url: &str) -> Self {
        Self {
            base_url: base_url.into(),
            ..self.clone()
        }
    }

    /// Builds a request to a path below the base URL, with the credentials.
    pub(crate) fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Error> {
        if path.parse::<PathAndQuery>().is_err() || has_dot_segment(path) {
            return Err(build_url_error());
        }
        let url = Url::parse(&format!("{}{path}", self.base_url)).map_err(|_| build_url_error())?;
        let request = self.http.request(method, url);
        Ok(match &self.credentials {
            RequestCredentials::Anonymous => request,
            RequestCredentials::Token(header) => request.header(header::AUTHORIZATION, header.clone()),
            RequestCredentials::App(key) => {
                let header = key
                    .token()
                    .ok()
                    .and_then(|token| build_bearer_header(&token).ok());
                let header = header.ok_or_else(|| Error::Unauthorized {
                    check: "the App's private key".to_owned(),
                })?;
                request.header(header::AUTHORIZATION, header)
            }
        })
    }

    /// Builds a read of an address at any host, without the credentials.
    pub(crate) fn request_elsewhere(&self, url: Url) -> RequestBuilder {
        self.http.get(url)
    }

    /// Returns the target of a redirect, which may be relative to the API.
    pub(crate) fn resolve_location(&self, location: &str) -> Result<Url, Error> {
        let base = Url::parse(&self.base_url).map_err(|_| build_url_error())?;
        base.join(location).map_err(|_| build_url_error())
    }
}

fn build_bearer_header(token: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut header = HeaderValue::from_str(&format!("Bearer {token}"))?;
    header.set_sensitive(true);
    Ok(header)
}

pub(crate) fn build_url_error() -> Error {
    Error::Rejected {
        detail: "the path is not a legal URL".to_owned(),
    }
}

/// True for a path with a segment `.` or `..`. A URL loses such segments when it is parsed, so that the request
/// would reach another resource: `/labels/..` is the list of all labels.
fn has_dot_segment(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.split(['/', '\\']).any(|segment| {
        let segment = segment.to_ascii_lowercase().replace("%2e", ".");
        segment == "." || segment == ".."
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect() -> ApiConnection {
        ApiConnection::anonymous("https://ghe.example/api/v3/").unwrap()
    }

    fn build_url(path: &str) -> Result<String, Error> {
        let request = connect().request(Method::GET, path)?.build().unwrap();
        Ok(request.url().to_string())
    }

    #[test]
    fn request_url_keeps_base_path() {
        let url = build_url("/repos/acme/shop/pulls?head=acme%3Ax&state=all").unwrap();
        assert_eq!(
            url,
            "https://ghe.example/api/v3/repos/acme/shop/pulls?head=acme%3Ax&state=all"
        );
        let graphql = connect().with_base_url("https://ghe.example/api");
        let request = graphql
            .request(Method::POST, "/graphql")
            .unwrap()
            .build()
            .unwrap();
        assert_eq!(request.url().as_str(), "https://ghe.example/api/graphql");
    }

    #[test]
    fn api_url_with_credentials_is_rejected() {
        for url in ["https://ada:secret@ghe.example", "https://:secret@ghe.example"] {
            let Err(error) = ApiConnection::anonymous(url) else {
                panic!("{url}");
            };
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
    }

    #[test]
    fn path_that_changes_when_parsed_is_rejected() {
        for path in [
            "/issues/7/labels/..",
            "/issues/7/labels/.",
            "/a/%2E%2e/b",
            "/a/.%2e?x=1",
            "/a\\..\\b",
            "/a b",
        ] {
            assert!(matches!(build_url(path), Err(Error::Rejected { .. })), "{path}");
        }
        for path in [
            "/labels/...",
            "/labels/.github",
            "/compare/a...b",
            "/x?path=/../y",
        ] {
            assert!(build_url(path).unwrap().ends_with(path), "{path}");
        }
    }

    #[test]
    fn credentials_are_sent_to_api_alone() {
        let secret = SecretString::from("secret-token-value");
        let connection = connect().with_token(&secret).unwrap();
        let request = connection.request(Method::GET, "/user").unwrap().build().unwrap();
        let header = request.headers().get(header::AUTHORIZATION).unwrap();
        assert_eq!(header, "Bearer secret-token-value");
        assert!(!format!("{request:?}").contains("secret-token-value"));
        let target = connection
            .resolve_location("https://logs.example/1?sig=%2F")
            .unwrap();
        let request = connection.request_elsewhere(target).build().unwrap();
        assert_eq!(request.url().as_str(), "https://logs.example/1?sig=%2F");
        assert!(request.headers().is_empty());
    }

    #[test]
    fn token_with_line_break_is_refused() {
        let refused = connect().with_token(&"secret\nvalue".into()).err().unwrap();
        assert!(matches!(refused, Error::Unauthorized { .. }), "{refused}");
        assert!(!format!("{refused:?}").contains("secret"));
    }

    #[test]
    fn relative_redirect_stays_at_api() {
        let target = connect().resolve_location("/api/v3/logs/1").unwrap();
        assert_eq!(target.as_str(), "https://ghe.example/api/v3/logs/1");
    }
}
