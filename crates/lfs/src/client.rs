//! Client of Git LFS servers and of the stores that they name.

use std::time::Duration;

use bytes::Bytes;
use git::LfsPointer;
use reqwest::{
    Client, Response,
    header::{self, HeaderMap},
    redirect, retry,
};
use secrecy::{ExposeSecret, SecretString};
use url::Url;
use webclient::{RequestIntent, classify_failure, exchange_request};
use webproxy::{AddressRule, configure_client, find_installed_proxy};

use crate::{
    AddressProblem, LfsError,
    address_guard::{CheckedResolver, Destination, check_address},
    batch::{BatchRequest, LfsAddress, LfsAddresses, MEDIA_TYPE, parse_answer},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
// Longest pause between two parts of an answer.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
const BATCH_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 5;
// Limit of the answer to a batch of 100 contents, in bytes. A signed URL has about 1 KiB.
const MAX_ANSWER: usize = 1024 * 1024;
// User name that GitHub expects beside a token.
const USER: &str = "x-access-token";

/// Repository with Git LFS.
#[derive(Clone, Debug)]
pub struct LfsRemote {
    /// URL with which git fetches the repository.
    url: Url,
    token: SecretString,
}

impl LfsRemote {
    /// Describes a repository by the URL with which git fetches it, and the token for it.
    ///
    /// # Errors
    /// [`LfsError::InvalidRemote`] for a text that is not a URL of a server.
    pub fn new(url: &str, token: SecretString) -> Result<Self, LfsError> {
        let url = Url::parse(url).map_err(|_| LfsError::InvalidRemote)?;
        if url.host_str().is_none() || url.cannot_be_a_base() {
            return Err(LfsError::InvalidRemote);
        }
        Ok(Self { url, token })
    }

    /// Returns the address of the batch API. An address in the repository's `.lfsconfig` does not count, because it
    /// would receive the token.
    fn batch_url(&self) -> Url {
        let mut url = self.url.clone();
        let path = url
            .path()
            .trim_end_matches('/')
            .trim_end_matches(".git")
            .to_owned();
        url.set_path(&format!("{path}.git/info/lfs/objects/batch"));
        url
    }
}

/// Client of Git LFS servers. It takes the way of the process to the outside.
pub struct LfsClient {
    /// Client for the origin of a repository.
    origin: Client,
    /// Client for other origins.
    elsewhere: Client,
    rule: AddressRule,
}

impl LfsClient {
    /// Builds the client. Addresses of other origins than the repository's must satisfy the rule.
    ///
    /// # Errors
    /// [`LfsError::Unusable`] when the system offers no connections.
    pub fn new(rule: AddressRule) -> Result<Self, LfsError> {
        // An error means only that the process has a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let proxy = find_installed_proxy().server().map(|server| server.authority().0);
        let resolver = CheckedResolver::new(rule.clone(), proxy);
        let build = |builder: reqwest::ClientBuilder| {
            configure_client(builder)
                .and_then(reqwest::ClientBuilder::build)
                .map_err(|error| LfsError::Unusable(error.into()))
        };
        Ok(Self {
            origin: build(prepare_builder())?,
            elsewhere: build(prepare_builder().dns_resolver(resolver))?,
            rule,
        })
    }

    /// Asks the server for the addresses of at most [`crate::MAX_BATCH`] contents. Each has an entry in the answer.
    ///
    /// # Errors
    /// [`LfsError`] when the server answers nothing usable.
    pub async fn request_addresses(
        &self,
        remote: &LfsRemote,
        wanted: &[LfsPointer],
    ) -> Result<LfsAddresses, LfsError> {
        let body = serde_json::to_vec(&BatchRequest::new(wanted))
            .map_err(|_| LfsError::Malformed("the request cannot be written as JSON"))?;
        let request = self
            .origin
            .post(remote.batch_url())
            .basic_auth(USER, Some(remote.token.expose_secret()))
            .header(header::ACCEPT, MEDIA_TYPE)
            .header(header::CONTENT_TYPE, MEDIA_TYPE)
            .timeout(BATCH_TIMEOUT)
            .body(body);
        // A batch changes nothing, so its loss is that of a read.
        let answer = exchange_request(request, RequestIntent::Read, MAX_ANSWER).await?;
        let status = answer.status.as_u16();
        if status != 200 {
            return Err(LfsError::of_status(status));
        }
        let content_type = answer.header("content-type").unwrap_or_default();
        let is_json = [MEDIA_TYPE, "application/json"]
            .iter()
            .any(|json| content_type.starts_with(json));
        if !is_json {
            return Err(LfsError::Malformed("it has another media type"));
        }
        parse_answer(&answer.body, wanted)
    }

    /// Opens a content. Redirects are followed; the headers of the address and the account's credentials stay at their
    /// origin.
    ///
    /// # Errors
    /// [`LfsError`] for an address that must not be followed, and for each answer that is not a content.
    pub async fn open(&self, remote: &LfsRemote, address: &LfsAddress) -> Result<LfsContent, LfsError> {
        let mut url = address.url.clone();
        let mut headers = address.headers.clone();
        let needs_account = !address.is_authenticated && !headers.contains_key(header::AUTHORIZATION);
        let mut has_account = needs_account && url.origin() == remote.url.origin();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.get(remote, &url, &headers, has_account).await?;
            let status = response.status().as_u16();
            match status {
                200 => return Ok(LfsContent { response }),
                301 | 302 | 303 | 307 | 308 => {}
                _ => return Err(LfsError::of_status(status)),
            }
            let target = response.headers().get(header::LOCATION);
            let target = target.and_then(|target| target.to_str().ok());
            let next = target
                .and_then(|target| url.join(target).ok())
                .ok_or(AddressProblem::NotUrl)?;
            if next.origin() != url.origin() {
                headers = HeaderMap::new();
                has_account = false;
            }
            url = next;
        }
        Err(AddressProblem::TooManyRedirects.into())
    }

    async fn get(
        &self,
        remote: &LfsRemote,
        url: &Url,
        headers: &HeaderMap,
        has_account: bool,
    ) -> Result<Response, LfsError> {
        let client = match check_address(&remote.url, url, &self.rule)? {
            Destination::Origin => &self.origin,
            Destination::Elsewhere => &self.elsewhere,
        };
        let mut request = client
            .get(url.clone())
            .header(header::ACCEPT_ENCODING, "identity")
            .headers(headers.clone());
        if has_account {
            request = request.basic_auth(USER, Some(remote.token.expose_secret()));
        }
        let sent = request.send().await;
        sent.map_err(|error| classify_failure(error, RequestIntent::Read).into())
    }
}

/// Content that arrives in parts.
pub struct LfsContent {
    response: Response,
}

impl LfsContent {
    /// Returns the next part; `None` at the end.
    ///
    /// # Errors
    /// [`LfsError::Exchange`] when the connection is lost.
    pub async fn next_part(&mut self) -> Result<Option<Bytes>, LfsError> {
        let part = self.response.chunk().await;
        part.map_err(|error| classify_failure(error, RequestIntent::Read).into())
    }
}

fn prepare_builder() -> reqwest::ClientBuilder {
    Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(SILENCE_TIMEOUT)
        // Large contents would share one connection of HTTP/2, so that a slow one would hold the others back.
        .http1_only()
        // Each redirect is checked first.
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .user_agent("journeyman")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::{
        Router,
        extract::{Request, State},
        http::StatusCode,
        response::{IntoResponse, Response as Answer},
    };
    use tokio::{net::TcpListener, sync::Mutex};

    use super::*;

    const CONTENT: &str = "content";

    /// Requests that a server has received: path and `Authorization`.
    type Seen = Arc<Mutex<Vec<(String, String)>>>;

    async fn answer(State((seen, redirect)): State<(Seen, String)>, request: Request) -> Answer {
        let authorization = request.headers().get("authorization");
        let authorization = authorization
            .map_or("", |value| value.to_str().unwrap())
            .to_owned();
        let path = request.uri().path().to_owned();
        seen.lock().await.push((path.clone(), authorization));
        match path.as_str() {
            "/moved" => (StatusCode::FOUND, [("location", redirect)]).into_response(),
            "/loop" => (StatusCode::FOUND, [("location", "/loop")]).into_response(),
            "/content" => CONTENT.into_response(),
            _ => StatusCode::NOT_FOUND.into_response(),
        }
    }

    async fn serve(redirect: &str) -> (Url, Seen) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let seen = Seen::default();
        let router = Router::new()
            .fallback(answer)
            .with_state((Arc::clone(&seen), redirect.to_owned()));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (url, seen)
    }

    fn build_client(networks: &[&str]) -> LfsClient {
        let networks: Vec<String> = networks.iter().map(|&network| network.to_owned()).collect();
        LfsClient::new(AddressRule::new(&networks).unwrap()).unwrap()
    }

    fn build_address(url: Url, authorization: Option<&str>) -> LfsAddress {
        let headers = authorization.map(|value| (header::AUTHORIZATION, value.parse().unwrap()));
        LfsAddress {
            url,
            headers: headers.into_iter().collect(),
            is_authenticated: false,
        }
    }

    async fn read(client: &LfsClient, base: &Url, address: &LfsAddress) -> Result<String, LfsError> {
        let remote = LfsRemote::new(
            base.join("acme/shop.git").unwrap().as_str(),
            "token".to_owned().into(),
        )?;
        let mut content = client.open(&remote, address).await?;
        let mut text = Vec::new();
        while let Some(part) = content.next_part().await? {
            text.extend_from_slice(&part);
        }
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn batch_is_asked_beneath_repository() {
        for url in [
            "https://github.com/acme/shop.git",
            "https://github.com/acme/shop",
            "https://github.com/acme/shop.git/",
        ] {
            let remote = LfsRemote::new(url, "token".to_owned().into()).unwrap();
            let expected = "https://github.com/acme/shop.git/info/lfs/objects/batch";
            assert_eq!(remote.batch_url().as_str(), expected);
        }
        assert!(LfsRemote::new("acme/shop", "token".to_owned().into()).is_err());
    }

    #[tokio::test]
    async fn redirect_elsewhere_has_no_credentials() {
        let (store, at_store) = serve("").await;
        let (base, at_base) = serve(store.join("content").unwrap().as_str()).await;
        let client = build_client(&["127.0.0.0/8"]);
        for (given, expected) in [
            (None, "Basic eC1hY2Nlc3MtdG9rZW46dG9rZW4="),
            (Some("RemoteAuth x"), "RemoteAuth x"),
        ] {
            let address = build_address(base.join("moved").unwrap(), given);
            assert_eq!(read(&client, &base, &address).await.unwrap(), CONTENT);
            assert_eq!(at_base.lock().await.pop().unwrap().1, expected);
            assert_eq!(
                at_store.lock().await.pop().unwrap(),
                ("/content".to_owned(), String::new())
            );
        }
        // Another origin gets its own headers, never the account's.
        let address = build_address(store.join("content").unwrap(), None);
        read(&client, &base, &address).await.unwrap();
        assert_eq!(at_store.lock().await.pop().unwrap().1, "");
    }

    #[tokio::test]
    async fn internal_store_is_refused() {
        let (store, at_store) = serve("").await;
        let (base, _) = serve(store.join("content").unwrap().as_str()).await;
        let client = build_client(&[]);
        for url in [store.join("content").unwrap(), base.join("moved").unwrap()] {
            let refused = read(&client, &base, &build_address(url, None)).await.unwrap_err();
            assert!(
                matches!(refused, LfsError::Address(AddressProblem::NotPublic)),
                "{refused}"
            );
        }
        assert!(at_store.lock().await.is_empty());
    }

    #[tokio::test]
    async fn endless_redirects_and_missing_contents_end() {
        let (base, _) = serve("").await;
        let client = build_client(&[]);
        let open = |path: &str| build_address(base.join(path).unwrap(), None);
        let refused = read(&client, &base, &open("loop")).await.unwrap_err();
        assert!(matches!(
            refused,
            LfsError::Address(AddressProblem::TooManyRedirects)
        ));
        let refused = read(&client, &base, &open("gone")).await.unwrap_err();
        assert!(matches!(refused, LfsError::Missing(404)) && !refused.is_outage());
    }
}
