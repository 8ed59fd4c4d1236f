//! A smart HTTP remote for tests: `git http-backend` behind a loopback port, with one accepted `Authorization` header.
#![allow(
    dead_code,
    reason = "not every test that includes this file sets answers or counts requests"
)]

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use axum::{
    Router,
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use tokio::{io::AsyncWriteExt, net::TcpListener, process::Command};

/// Running remote; it ends with the test's runtime.
pub(crate) struct HttpBackend {
    /// Base URL: repositories are `<url>/<owner>/<name>.git`.
    pub(crate) url: String,
    state: Arc<Backend>,
}

struct Backend {
    root: PathBuf,
    authorization: String,
    /// Other answers, by path.
    answers: Mutex<BTreeMap<String, (StatusCode, Vec<u8>)>>,
    /// True if it answers digests of references, as the git gate does.
    has_digests: AtomicBool,
    /// Method and path of every request with the right header, and the commit that it reports.
    requests: Mutex<Vec<String>>,
}

impl HttpBackend {
    /// Serves the bare repositories below `root` to requests with this `Authorization` header.
    pub(crate) async fn start(root: PathBuf, authorization: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Backend {
            root,
            authorization: authorization.to_owned(),
            answers: Mutex::default(),
            has_digests: AtomicBool::new(false),
            requests: Mutex::default(),
        });
        let router = Router::new()
            .fallback(serve_git_request)
            .with_state(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, state }
    }

    /// Sets the answer to requests for a path, in place of git's.
    pub(crate) fn set_answer(&self, path: String, body: Vec<u8>) {
        self.set_refusal(path, StatusCode::OK, body);
    }

    /// Sets the status and answer to requests for a path, in place of git's.
    pub(crate) fn set_refusal(&self, path: String, status: StatusCode, body: Vec<u8>) {
        self.state.answers.lock().unwrap().insert(path, (status, body));
    }

    /// Answers `<repository>.git/digest` as the git gate does, or not.
    pub(crate) fn serve_digests(&self, is_served: bool) {
        self.state.has_digests.store(is_served, Ordering::Relaxed);
    }

    /// Takes the method and path of every request since the last call, followed by the commit that it reports in the
    /// wanted branch, if any. Requests with another header are not among them.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.requests.lock().unwrap())
    }
}

/// Answers the digest of a repository's references. Like the gate, it needs the name of the wanted branch or commit.
fn answer_digest(backend: &Backend, path: &str, headers: &HeaderMap) -> Option<Response> {
    let repository = path.strip_suffix("/digest")?;
    if !backend.has_digests.load(Ordering::Relaxed) {
        return None;
    }
    if !headers.contains_key(git::WANTED_BRANCH) && !headers.contains_key(git::WANTED_COMMIT) {
        return Some((StatusCode::BAD_REQUEST, "no wanted head").into_response());
    }
    let place = backend.root.join(repository.trim_start_matches('/'));
    let digest = git::BareRepository::open(&place).and_then(|opened| opened.reference_digest());
    Some(match digest {
        Ok(digest) => digest.into_response(),
        Err(_) => (StatusCode::NOT_FOUND, "no such repository here").into_response(),
    })
}

async fn serve_git_request(State(backend): State<Arc<Backend>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let text = |name| {
        parts
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
            .to_owned()
    };
    if text(header::AUTHORIZATION) != backend.authorization {
        return (StatusCode::FORBIDDEN, "no").into_response();
    }
    let mut request = format!("{} {}", parts.method, parts.uri.path());
    if let Some(reported) = parts.headers.get(git::REPORTED_COMMIT) {
        request = format!("{request} {}", reported.to_str().unwrap());
    }
    backend.requests.lock().unwrap().push(request);
    let answer = backend.answers.lock().unwrap().get(parts.uri.path()).cloned();
    if let Some(answer) = answer {
        return answer.into_response();
    }
    if let Some(answer) = answer_digest(&backend, parts.uri.path(), &parts.headers) {
        return answer;
    }
    let body = axum::body::to_bytes(body, 64 * 1024 * 1024).await.unwrap();
    let mut child = Command::new("git")
        .args([
            "-c",
            "http.receivepack=true",
            "-c",
            "safe.directory=*",
            "http-backend",
        ])
        .env("GIT_PROJECT_ROOT", &backend.root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "test")
        .env("REQUEST_METHOD", parts.method.as_str())
        .env("PATH_INFO", parts.uri.path())
        .env("QUERY_STRING", parts.uri.query().unwrap_or_default())
        .env("CONTENT_TYPE", text(header::CONTENT_TYPE))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", text(header::CONTENT_ENCODING))
        .env(
            "GIT_PROTOCOL",
            parts
                .headers
                .get("git-protocol")
                .map_or("", |value| value.to_str().unwrap()),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writing = tokio::spawn(async move { stdin.write_all(&body).await });
    let output = child.wait_with_output().await.unwrap();
    // The backend may answer before it has read the whole request.
    let _ = writing.await.unwrap();
    parse_cgi(&output.stdout)
}

fn parse_cgi(output: &[u8]) -> Response {
    let end = output
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap_or(output.len());
    let mut status = StatusCode::OK;
    let mut headers = HeaderMap::new();
    for line in String::from_utf8_lossy(&output[..end]).lines() {
        let Some((name, value)) = line.split_once(": ") else {
            continue;
        };
        if name.eq_ignore_ascii_case("status") {
            status = value[..3].parse().unwrap();
        } else {
            headers.insert(
                name.parse::<header::HeaderName>().unwrap(),
                value.parse().unwrap(),
            );
        }
    }
    (
        status,
        headers,
        Bytes::copy_from_slice(output.get(end + 4..).unwrap_or_default()),
    )
        .into_response()
}
