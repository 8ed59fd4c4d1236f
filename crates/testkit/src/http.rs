//! Shared parts of all stand-ins: HTTP server, request log, faults.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::chaos::{self, WriteFaults};
use crate::exchanges::{self, NotedRequest};
use crate::fault::{FaultPoint, ServiceFault};

// Maximum size of a request body in bytes. Pushed packs are the largest bodies.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// Characters that are encoded in paths: all but the unreserved ones of RFC 3986 and the slash. GitHub's addresses of
/// branches and references, and AWS Signature Version 4 use this set.
pub(crate) const ENCODED_IN_PATHS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'/');
/// Time limit for requests under way when a server stops.
const DRAIN: Duration = Duration::from_secs(5);

/// Request with the status of its answer.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// HTTP method in capitals.
    pub method: String,
    /// Path and query string.
    pub path: String,
    /// Header `Authorization`; empty if absent.
    pub authorization: String,
    /// Body, if it is JSON.
    pub body: Option<Value>,
    /// HTTP status of the answer.
    pub status: u16,
}

/// Log of requests and violations, and source of the faults to come.
#[derive(Default)]
pub(crate) struct RequestLog {
    /// Service name under which exchanges are recorded, for services with a published description.
    service: Option<&'static str>,
    /// True while requests are answered without being kept.
    is_muted: AtomicBool,
    /// Number of answered requests; its watchers wait for the next one.
    answered: watch::Sender<u64>,
    inner: Mutex<RequestRecords>,
    delay: watch::Sender<Duration>,
    /// Frozen value of the header `Date`.
    date: Mutex<Option<HeaderValue>>,
}

#[derive(Default)]
struct RequestRecords {
    requests: Vec<RecordedRequest>,
    violations: Vec<String>,
    faults: Vec<ServiceFault>,
    /// Start and length of the lists' delay.
    list_lag: Option<(Instant, Duration)>,
    write_faults: Option<(WriteFaults, u16)>,
    writes: BTreeMap<String, u64>,
    faults_met: BTreeMap<String, usize>,
}

impl RequestLog {
    pub(crate) fn of(service: &'static str) -> Self {
        let service = Some(service);
        Self {
            service,
            ..Self::default()
        }
    }

    /// Sets whether later requests are kept for [`RequestLog::requests`].
    pub(crate) fn set_recording(&self, is_recording: bool) {
        self.is_muted.store(!is_recording, Ordering::Relaxed);
    }

    /// Number of answered requests, as a channel that wakes up its receivers at each.
    pub(crate) fn answered(&self) -> watch::Receiver<u64> {
        self.answered.subscribe()
    }

    /// Counts kept requests without copying them.
    pub(crate) fn count_requests(&self, is_counted: impl Fn(&RecordedRequest) -> bool) -> usize {
        let inner = self.inner.lock();
        inner
            .requests
            .iter()
            .filter(|request| is_counted(request))
            .count()
    }

    /// Calls a function with each kept request.
    pub(crate) fn visit_requests(&self, visit: impl FnMut(&RecordedRequest)) {
        self.inner.lock().requests.iter().for_each(visit);
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.inner.lock().requests.clone()
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.inner.lock().violations.clone()
    }

    pub(crate) fn violation(&self, what: impl Into<String>) {
        let what = what.into();
        tracing::warn!(violation = what, "a caller broke the protocol");
        self.inner.lock().violations.push(what);
    }

    pub(crate) fn fail_next(&self, fault: ServiceFault) {
        self.inner.lock().faults.push(fault);
    }

    /// Number of faults that wait for a matching request.
    pub(crate) fn faults_left(&self) -> usize {
        self.inner
            .lock()
            .faults
            .iter()
            .filter(|fault| fault.times > 0)
            .count()
    }

    pub(crate) fn set_delay(&self, delay: Duration) {
        self.delay.send_replace(delay);
    }

    pub(crate) fn set_list_lag(&self, lag: Duration) {
        self.inner.lock().list_lag = Some((Instant::now(), lag));
    }

    /// Sets the random faults of later writes. `limit` is the HTTP status of the service's rate limit.
    pub(crate) fn set_write_faults(&self, faults: Option<WriteFaults>, limit: u16) {
        self.inner.lock().write_faults = faults.map(|faults| (faults, limit));
    }

    /// Number of faults met so far, by name.
    pub(crate) fn faults_met(&self) -> BTreeMap<String, usize> {
        self.inner.lock().faults_met.clone()
    }

    /// True if lists already show an object that was created at `made`. Objects older than the delay's start
    /// are always shown.
    pub(crate) fn lists(&self, made: Instant) -> bool {
        let lag = self.inner.lock().list_lag;
        lag.is_none_or(|(since, lag)| made < since || made.elapsed() >= lag)
    }

    /// Freezes the header `Date` of answers.
    pub(crate) fn set_date(&self, date: &'static str) {
        *self.date.lock() = Some(HeaderValue::from_static(date));
    }

    /// Waits for the delay of answers. A change of the delay also affects requests that are already waiting.
    async fn take_time(&self) {
        let (began, mut delay) = (Instant::now(), self.delay.subscribe());
        loop {
            let left = delay.borrow_and_update().saturating_sub(began.elapsed());
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                changed = delay.changed() => if changed.is_err() { return },
            }
        }
    }

    fn record(&self, request: RecordedRequest) {
        self.inner.lock().requests.push(request);
    }

    /// True if requests are kept, so that their bodies must be parsed.
    fn is_recording(&self) -> bool {
        !self.is_muted.load(Ordering::Relaxed)
    }

    fn count_answer(&self) {
        self.answered.send_modify(|count| *count += 1);
    }

    fn take_fault(&self, method: &str, path: &str, body: &[u8]) -> Option<ServiceFault> {
        // Ordered faults come first, so that a test gets its fault at the request that it names.
        let mut inner = self.inner.lock();
        let fault = inner
            .ordered(method, path, body)
            .or_else(|| inner.drawn(method, path))?;
        *inner.faults_met.entry(chaos::describe_fault(&fault)).or_default() += 1;
        Some(fault)
    }
}

impl RequestRecords {
    fn ordered(&mut self, method: &str, path: &str, body: &[u8]) -> Option<ServiceFault> {
        let mut faults = self.faults.iter_mut();
        let fault = faults.find(|fault| fault.times > 0 && fault.matches(method, path, body))?;
        fault.times -= 1;
        Some(fault.clone())
    }

    fn drawn(&mut self, method: &str, path: &str) -> Option<ServiceFault> {
        let (faults, limit) = self.write_faults.as_ref()?;
        // The count of earlier writes selects the fault, so that a repeated test meets the same faults.
        let met = self.writes.entry(format!("{method} {path}")).or_default();
        *met += 1;
        faults.of(method, path, *met - 1, *limit)
    }
}

/// HTTP server on a free loopback port. Dropping it stops the server.
pub(crate) struct HttpServer {
    address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl HttpServer {
    /// Binds the port before it builds the router, which may contain its own address.
    pub(crate) async fn start(
        log: Arc<RequestLog>,
        router: impl FnOnce(SocketAddr) -> anyhow::Result<Router>,
    ) -> anyhow::Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = router(address)?.layer(middleware::from_fn_with_state(log, record_request));
        let shutdown = CancellationToken::new();
        let stopped = shutdown.clone();
        let task = tokio::spawn(async move {
            let served = axum::serve(
                // Without `TCP_NODELAY`, small answers wait for the peer's delayed acknowledgment.
                listener.tap_io(|connection| drop(connection.set_nodelay(true))),
                router,
            )
            .with_graceful_shutdown(stopped.cancelled_owned());
            if let Err(error) = served.await {
                tracing::error!(%error, "stand-in stopped serving");
            }
        });
        Ok(Self {
            address,
            shutdown,
            task,
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Address and port of the listener, independent of any public URL.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn stop(mut self) {
        self.shutdown.cancel();
        // A held answer can outlast the limit.
        if tokio::time::timeout(DRAIN, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

async fn record_request(State(log): State<Arc<RequestLog>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, MAX_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let method = parts.method.to_string();
    let agent = header_text(&parts.headers, header::USER_AGENT.as_str()).to_owned();
    let path = parts
        .uri
        .path_and_query()
        .map_or_else(|| parts.uri.path().to_owned(), ToString::to_string);
    let authorization = header_text(&parts.headers, header::AUTHORIZATION.as_str()).to_owned();
    let is_recording = log.is_recording();
    let needs_body = is_recording || exchanges::is_noted(log.service);
    let recorded: Option<Value> = needs_body.then(|| serde_json::from_slice(&bytes).ok()).flatten();
    // The fault is chosen in order of arrival, before the delay can reorder requests.
    let fault = log.take_fault(&method, &path, &bytes);
    log.take_time().await;
    let mut response = match fault {
        Some(fault) => {
            if fault.point == FaultPoint::AfterEffect {
                // The effect happens, and its answer is dropped.
                drop(next.run(Request::from_parts(parts, Body::from(bytes))).await);
            }
            tokio::time::sleep(fault.hold).await;
            fault.response()
        }
        None => {
            let answer = next.run(Request::from_parts(parts, Body::from(bytes))).await;
            let request = NotedRequest {
                method: &method,
                path: &path,
                agent: &agent,
                body: recorded.as_ref(),
            };
            exchanges::note_answer(log.service, request, answer).await
        }
    };
    if is_recording {
        log.record(RecordedRequest {
            method,
            path,
            authorization,
            body: recorded,
            status: response.status().as_u16(),
        });
    }
    // The request is in the log before its watchers wake up.
    log.count_answer();
    if let Some(date) = log.date.lock().clone() {
        response.headers_mut().insert(header::DATE, date);
    }
    response
}

/// True if `content-type` is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    header_text(headers, header::CONTENT_TYPE.as_str()).starts_with("application/json")
}

/// Returns a header's text; empty if it is absent or not ASCII.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Returns user and password of HTTP Basic authentication.
pub(crate) fn basic_auth(headers: &HeaderMap) -> Option<(String, String)> {
    use base64::Engine as _;
    let encoded = header_text(headers, header::AUTHORIZATION.as_str()).strip_prefix("Basic ")?;
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':')
        .map(|(user, password)| (user.to_owned(), password.to_owned()))
}

/// Builds a JSON answer.
pub(crate) fn render_json_answer(status: StatusCode, body: Value) -> Response {
    (status, axum::Json(body)).into_response()
}

/// Parses a JSON body. The error is serde's message.
pub(crate) fn parse_json<T: serde::de::DeserializeOwned>(body: &Bytes) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

/// Current time in seconds as RFC 3339 text, the format of GitHub and Jira.
pub(crate) fn iso_now() -> String {
    let now = time::OffsetDateTime::now_utc()
        .replace_nanosecond(0)
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    now.format(&time::format_description::well_known::Rfc3339)
        .unwrap_or_default()
}
