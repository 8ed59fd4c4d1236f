//! Requests that the proxy makes itself: plain HTTP to open hosts, and requests to registries behind mirrors.

use std::{error::Error, io, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderName, Method, Response, StatusCode, Uri, header, request::Parts, uri::Authority,
    },
};
use bytes::Bytes;
use domain::cause::format_error_chain;
use futures::{Stream, StreamExt, stream};
use tokio::{
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use crate::{
    exchange::MeteredExchange,
    mirror::{self, RegistryMirror},
    problem::{EgressProblem, RefusalReason},
    request_decision::RequestTarget,
    resolve::ResolveError,
    rewrite::{AddressRewriter, MAX_TEXT, content_length, filter_headers, is_text},
};

// Memory for rewritten texts of all sessions, in MiB. Four texts of the largest size fit.
const TEXT_MIB: usize = 128;
const MIB: u64 = 1024 * 1024;
// Growth of a text's buffer when its length is unknown, in bytes.
const GROWTH: usize = 1024 * 1024;
// Longest wait of a text for memory. It is shorter than the idle limit of a session (60 s), so the client gets an
// answer before its session ends.
const PLACE_TIME: Duration = Duration::from_secs(40);
// Longest time in which a client may read a rewritten text. Until then the text holds its memory.
const HOLD_TIME: Duration = Duration::from_secs(120);
// Longest Host header of a mirror's client, in bytes. The host replaces each address in a text, so a long one would
// multiply the text's length.
const MAX_HOST: usize = 255;
const NOT_OWN_HOST: &str = "ask for a mirror with the Host header 127.0.0.1:<port>, localhost:<port>, a name without a domain, or one of \
                            egress.mirror_hosts";

/// Headers about one connection, not about the request (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// HTTP client for open hosts and registries, with the memory budget for rewritten texts.
pub(crate) struct HttpForwarder {
    http: reqwest::Client,
    memory: Arc<Semaphore>,
    /// Names with a domain under which sandboxes reach mirrors.
    names: Vec<String>,
}

/// Refuses requests that could upload: methods other than GET, HEAD and OPTIONS, and requests with a body.
///
/// # Errors
/// [`EgressProblem::Refused`] for the target `what`.
pub(crate) fn only_reads(what: &str, request: &Parts) -> Result<(), EgressProblem> {
    let reads = matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS);
    let has_body = request.headers.contains_key(header::TRANSFER_ENCODING)
        || content_length(&request.headers).is_some_and(|length| length > 0);
    if reads && !has_body {
        Ok(())
    } else {
        Err(EgressProblem::refused(what, RefusalReason::Upload))
    }
}

impl HttpForwarder {
    pub(crate) fn new(http: reqwest::Client, names: Vec<String>) -> Self {
        Self {
            http,
            names,
            memory: Arc::new(Semaphore::new(TEXT_MIB)),
        }
    }

    /// Sends the request to an open host and returns the response.
    ///
    /// # Errors
    /// [`EgressProblem`], when the host returns no response.
    pub(crate) async fn plain(
        &self,
        target: &RequestTarget,
        request: &Parts,
        exchange: MeteredExchange,
    ) -> Result<Response<Body>, EgressProblem> {
        let what = target.to_string();
        let path = request.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut headers = end_to_end(&request.headers);
        // reqwest sets Host from the URL. The client's own header could name another host than the one that was
        // checked.
        headers.remove(header::HOST);
        let asking = self
            .http
            .request(request.method.clone(), format!("http://{what}{path}"));
        let answer = send_request(asking, headers, &what, &request.uri, &exchange).await?;
        let (status, headers) = (answer.status(), end_to_end(answer.headers()));
        Ok(build_response(
            status,
            headers,
            Body::from_stream(count_body(answer, exchange)),
        ))
    }

    /// Sends the request to a registry with the proxy's credential and returns the response.
    ///
    /// # Errors
    /// [`EgressProblem`], when the registry returns no response or refuses the credential.
    pub(crate) async fn mirror(
        &self,
        mirror: &RegistryMirror,
        rest: &str,
        request: &Parts,
        exchange: MeteredExchange,
    ) -> Result<Response<Body>, EgressProblem> {
        let what = mirror_label(mirror.name());
        let rewriter = mirror.rewriter(&self.own_host(request)?);
        let url = mirror
            .upstream(rest, request.uri.query())
            .ok_or_else(|| EgressProblem::refused(&what, RefusalReason::Outside))?;
        let asking = mirror.authorize(self.http.request(request.method.clone(), url.clone()));
        let headers = mirror::request_headers(&request.headers);
        let answer = send_request(asking, headers, &what, &request.uri, &exchange).await?;
        let status = answer.status();
        // The operator has to act: a 401 would make the package manager request a credential that no sandbox has.
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            tracing::error!(mirror = mirror.name(), %status, "registry refuses the credential of its mirror");
            let name = mirror.name();
            return Err(EgressProblem::Unreachable(format!(
                "the proxy's credential for mirror {name} is refused"
            )));
        }
        let mut headers = mirror::answer_headers(&end_to_end(answer.headers()));
        if let Some(location) = headers.remove(header::LOCATION)
            && let Some(location) = mirror.location(&location, &url, &rewriter)
        {
            headers.insert(header::LOCATION, location);
        }
        // A part of a text may begin or end inside of an address, so it is not rewritten.
        if !is_text(&headers) || status == StatusCode::PARTIAL_CONTENT {
            return Ok(build_response(
                status,
                headers,
                Body::from_stream(count_body(answer, exchange)),
            ));
        }
        let (body, length) = self.rewritten(answer, exchange, &rewriter).await?;
        headers.remove(header::CONTENT_LENGTH);
        // A HEAD request has no body, and its rewritten length is unknown.
        if let Some(length) = length.filter(|length| *length > 0) {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
        Ok(build_response(status, headers, body))
    }

    /// Returns the body with the registry's addresses replaced by the mirror's, and its length.
    ///
    /// A body larger than [`MAX_TEXT`] passes unchanged and without a length. The text holds its memory until the
    /// client has read it.
    async fn rewritten(
        &self,
        answer: reqwest::Response,
        exchange: MeteredExchange,
        rewriter: &AddressRewriter,
    ) -> Result<(Body, Option<usize>), EgressProblem> {
        let announced = content_length(answer.headers());
        let places = self.places(&exchange, announced).await?;
        let broken = |_: io::Error| EgressProblem::Unreachable("the registry's answer broke off".to_owned());
        let mut chunks = Box::pin(count_body(answer, exchange));
        let mut text = Vec::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(broken)?;
            if text.capacity() - text.len() < chunk.len() {
                // Vec would double its capacity, and the permits cover the text alone.
                text.reserve_exact(chunk.len().max(GROWTH));
            }
            text.extend_from_slice(&chunk);
            if text.len() > MAX_TEXT {
                let start = stream::once(async { Ok(Bytes::from(text)) });
                // Only the start is in memory. The rest comes at the pace of the registry and may take any time.
                let whole = while_held(start, places).chain(chunks);
                return Ok((Body::from_stream(whole), None));
            }
        }
        let text = rewriter.rewrite(text);
        let length = text.length();
        let blocks = while_held(stream::iter(text).map(Ok), places);
        Ok((Body::from_stream(blocks), Some(length)))
    }

    /// Waits for memory for a text of this length, or of the largest size if the length is unknown.
    ///
    /// # Errors
    /// [`EgressProblem::Unreachable`] after [`PLACE_TIME`].
    async fn places(
        &self,
        exchange: &MeteredExchange,
        length: Option<u64>,
    ) -> Result<TextPermits, EgressProblem> {
        let largest = MAX_TEXT as u64;
        let mib = length.unwrap_or(largest).clamp(1, largest).div_ceil(MIB);
        let count = u32::try_from(mib).unwrap_or(u32::MAX);
        let acquire = |memory: &Arc<Semaphore>| Arc::clone(memory).acquire_many_owned(count);
        let both = async {
            // The run's memory comes first. A run whose clients read slowly then waits for itself, and holds nothing
            // that other runs need.
            let own = acquire(exchange.texts()).await?;
            Ok::<_, AcquireError>((own, acquire(&self.memory).await?))
        };
        match tokio::time::timeout(PLACE_TIME, both).await {
            Ok(Ok((own, all))) => Ok([own, all]),
            Ok(Err(_)) | Err(_) => Err(EgressProblem::Unreachable(
                "the proxy has no memory for a registry's text at the moment; try again".to_owned(),
            )),
        }
    }

    /// Returns the mirror's host as its client reached it.
    ///
    /// The proxy writes it into texts. So it must be short, and the sandbox's loopback, a name without a domain, or a
    /// name of the settings.
    fn own_host(&self, request: &Parts) -> Result<String, EgressProblem> {
        let host = request.headers.get(header::HOST);
        let host = host.and_then(|value| value.to_str().ok());
        let host = host.filter(|host| host.len() <= MAX_HOST);
        let host = host.and_then(|host| host.parse::<Authority>().ok());
        let host = host.filter(|host| self.is_own(host));
        host.map(|host| host.to_string())
            .ok_or(EgressProblem::Malformed(NOT_OWN_HOST))
    }

    fn is_own(&self, host: &Authority) -> bool {
        if host.as_str().contains('@') {
            return false;
        }
        match url::Host::parse(host.host()) {
            Ok(url::Host::Ipv4(address)) => address.is_loopback(),
            Ok(url::Host::Ipv6(address)) => address.is_loopback(),
            Ok(url::Host::Domain(name)) => !name.contains('.') || self.names.contains(&name),
            Err(_) => false,
        }
    }
}

/// Permits for the memory of one text: the run's and the proxy's.
type TextPermits = [OwnedSemaphorePermit; 2];

/// Returns the same stream, holding its memory to the end. A client that reads for longer than [`HOLD_TIME`] gets an
/// error.
fn while_held(
    blocks: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    places: TextPermits,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let deadline = Instant::now() + HOLD_TIME;
    blocks.map(move |block| {
        let _held = &places;
        if Instant::now() > deadline {
            return Err(io::Error::other("the text was read too slowly"));
        }
        block
    })
}

/// Returns the name of a mirror in texts and logs: its path.
pub(crate) fn mirror_label(name: &str) -> String {
    format!("/mirror/{name}/")
}

async fn send_request(
    asking: reqwest::RequestBuilder,
    headers: HeaderMap,
    what: &str,
    uri: &Uri,
    exchange: &MeteredExchange,
) -> Result<reqwest::Response, EgressProblem> {
    let refused = |reason| EgressProblem::refused(what, reason);
    let length = uri.path_and_query().map_or(0, |path| path.as_str().len()) + header_bytes(&headers);
    // Counted before the request leaves: a query is an upload.
    exchange.send(length).map_err(refused)?;
    let answer = asking.headers(headers).send().await;
    let answer = answer.map_err(|error| classify_send_error(what, error))?;
    exchange
        .receive(header_bytes(answer.headers()))
        .map_err(refused)?;
    Ok(answer)
}

fn header_bytes(headers: &HeaderMap) -> usize {
    headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum()
}

fn classify_send_error(what: &str, error: reqwest::Error) -> EgressProblem {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(ResolveError::NotPublic) = inner.downcast_ref() {
            return EgressProblem::refused(what, RefusalReason::NotPublic);
        }
        cause = inner.source();
    }
    let why = match (error.is_timeout(), error.is_connect()) {
        (true, _) => "did not answer in time",
        (false, true) => "cannot be reached",
        (false, false) => "broke off",
    };
    // Without its URL, because a query can contain a secret.
    tracing::warn!(host = what, error = %format_error_chain(&error.without_url()), "host did not answer");
    EgressProblem::Unreachable(format!("{what} {why}"))
}

/// Counts the body while it passes. The stream ends with an error when the run's quota is exhausted.
fn count_body(
    answer: reqwest::Response,
    exchange: MeteredExchange,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    answer.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(|error| io::Error::other(error.without_url()))?;
        exchange.receive_chunk(chunk.len())?;
        Ok(chunk)
    })
}

fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    filter_headers(headers, |name| {
        !HOP_BY_HOP.contains(&name.as_str()) && !named.contains(name)
    })
}

fn build_response(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::exchange::tests::build_caller;

    #[tokio::test(start_paused = true)]
    async fn rest_of_large_text_holds_no_memory() {
        bootstrap::install_tls_provider();
        let forwarder = HttpForwarder::new(reqwest::Client::new(), Vec::new());
        let large = Bytes::from(vec![b'x'; MAX_TEXT + 1]);
        let chunks = [large.clone(), Bytes::from_static(b"y"), Bytes::from_static(b"z")];
        let chunks = stream::iter(chunks.map(Ok::<Bytes, io::Error>));
        let answer = Response::new(reqwest::Body::wrap_stream(chunks));
        let exchange = MeteredExchange::new(&Arc::new(build_caller()), mirror_label("npm"), "mirror");
        let (from, to) = ("https://npm.example/", "http://127.0.0.1:3128/mirror/npm/");
        let rewriter = AddressRewriter::new(from.to_owned(), to.to_owned());
        let rewritten = forwarder.rewritten(answer.into(), exchange, &rewriter).await;
        let (body, length) = rewritten.unwrap();
        let mut passed = body.into_data_stream();
        assert!(length.is_none() && passed.next().await.unwrap().unwrap() == large);
        tokio::time::advance(HOLD_TIME * 2).await;
        assert_eq!(passed.next().await.unwrap().unwrap(), "y");
        assert_eq!(forwarder.memory.available_permits(), TEXT_MIB);
        assert_eq!(passed.next().await.unwrap().unwrap(), "z");
        assert!(passed.next().await.is_none());
    }

    #[test]
    fn hop_headers_are_dropped_repeats_are_kept() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("proxy-authorization", "Basic secret"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("accept", "a/b"),
            ("accept", "c/d"),
        ] {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_static(value));
        }
        let kept = end_to_end(&headers);
        let values: Vec<_> = kept
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(values, [("accept", "a/b"), ("accept", "c/d")]);
    }
}
