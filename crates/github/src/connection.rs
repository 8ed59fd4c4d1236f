//! Connection to one API: base URL, credentials, and the requests that it builds.

use std::sync::Arc;

use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{self, InvalidHeaderValue},
    uri::PathAndQuery,
};
use reqwest::{RequestBuilder, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use webclient::{ExchangeError, RequestIntent};

use crate::{ETag, Error, app_key::AppKey};

// GitHub answers a request without a version with its newest one.
const API_VERSION: HeaderValue = HeaderValue::from_static("2022-11-28");
const API_VERSION_NAME: HeaderName = HeaderName::from_static("x-github-api-version");

/// One request, its path relative to the API's base.
#[derive(Clone, Copy)]
pub(crate) enum GitHubCall<'a> {
    Get(&'a str),
    /// A read that GitHub may answer with 304 while the `ETag` is still valid.
    GetUnless(&'a str, &'a ETag),
    /// A GraphQL query: a read, although it is sent as a POST with a body.
    Query(&'a str, &'a Value),
    Post(&'a str, &'a Value),
    Patch(&'a str, &'a Value),
    Delete(&'a str, Option<&'a Value>),
}

impl<'a> GitHubCall<'a> {
    pub(crate) const fn intent(self) -> RequestIntent {
        match self {
            Self::Get(_) | Self::GetUnless(..) | Self::Query(..) => RequestIntent::Read,
            Self::Post(..) | Self::Patch(..) | Self::Delete(..) => RequestIntent::Write,
        }
    }

    pub(crate) const fn is_write(self) -> bool {
        self.intent().is_write()
    }

    /// The rate-limit resource of the request. GitHub counts a separate primary limit for each resource.
    pub(crate) fn resource(self) -> &'static str {
        // Names of `x-ratelimit-resource`. Only the resources that this crate uses are listed.
        match self.place().1 {
            "/graphql" => "graphql",
            path if path.starts_with("/search/") => "search",
            _ => "core",
        }
    }

    /// Method and path.
    pub(crate) const fn place(self) -> (&'static str, &'a str) {
        match self {
            Self::Get(path) | Self::GetUnless(path, _) => ("GET", path),
            Self::Query(path, _) | Self::Post(path, _) => ("POST", path),
            Self::Patch(path, _) => ("PATCH", path),
            Self::Delete(path, _) => ("DELETE", path),
        }
    }

    /// Method and path, without the query.
    pub(crate) fn name(self) -> String {
        let (method, path) = self.place();
        let path = path.split('?').next().unwrap_or_default();
        format!("{method} {path}")
    }
}

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
        let base_url = api_url.trim_end_matches('/');
        let headers = HeaderMap::from_iter([(API_VERSION_NAME, API_VERSION)]);
        let http = webclient::build_client(base_url, headers)?;
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

    /// Builds the request of a call, with the credentials.
    pub(crate) fn build_request(&self, call: GitHubCall<'_>) -> Result<RequestBuilder, Error> {
        Ok(match call {
            GitHubCall::Get(path) => self.request(Method::GET, path)?,
            GitHubCall::GetUnless(path, known) => {
                let known = HeaderValue::from_str(&known.0).map_err(|_| Error::Rejected {
                    detail: "the tag of an earlier answer is not a legal header".to_owned(),
                })?;
                self.request(Method::GET, path)?
                    .header(header::IF_NONE_MATCH, known)
            }
            GitHubCall::Query(path, body) | GitHubCall::Post(path, body) => {
                self.request(Method::POST, path)?.json(body)
            }
            GitHubCall::Patch(path, body) => self.request(Method::PATCH, path)?.json(body),
            GitHubCall::Delete(path, Some(body)) => self.request(Method::DELETE, path)?.json(body),
            GitHubCall::Delete(path, None) => self.request(Method::DELETE, path)?,
        })
    }

    /// Builds a request to a path below the base URL, with the credentials.
    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Error> {
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

fn build_url_error() -> Error {
    ExchangeError::InvalidUrl.into()
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
    use crate::client::{encode_path, percent_encode};

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
    fn odd_branch_name_is_encoded_in_urls() {
        let branch = "feature/#12|a+b%20";
        let (name, path) = (percent_encode(branch), encode_path(branch));
        let head = percent_encode(&format!("acme:{branch}"));
        for (path, expected) in [
            (
                format!("/rules/branches/{name}?per_page=100"),
                "/rules/branches/feature%2F%2312%7Ca%2Bb%2520?per_page=100",
            ),
            (
                format!("/git/ref/heads/{path}"),
                "/git/ref/heads/feature/%2312%7Ca%2Bb%2520",
            ),
            (
                format!("/pulls?head={head}&state=all"),
                "/pulls?head=acme%3Afeature%2F%2312%7Ca%2Bb%2520&state=all",
            ),
            (
                format!("/compare/{name}...x?page=1"),
                "/compare/feature%2F%2312%7Ca%2Bb%2520...x?page=1",
            ),
        ] {
            let url = build_url(&path).unwrap();
            assert_eq!(url, format!("https://ghe.example/api/v3{expected}"));
        }
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
