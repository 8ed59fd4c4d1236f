//! Recorder of the GitHub and Jira stand-ins' traffic. `JOURNEYMAN_EXCHANGES` names the file of JSON lines;
//! without it nothing is recorded. `make contract` compares them with the vendors' descriptions.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Value, json};

const FILE: &str = "JOURNEYMAN_EXCHANGES";

/// Request of an exchange.
#[derive(Serialize)]
pub(crate) struct NotedRequest<'r> {
    pub(crate) method: &'r str,
    pub(crate) path: &'r str,
    pub(crate) agent: &'r str,
    pub(crate) body: Option<&'r Value>,
}

/// True if the exchanges of a service are recorded.
pub(crate) fn is_noted(service: Option<&str>) -> bool {
    service.is_some() && exchange_file().is_some()
}

/// Records a request with its answer and returns the answer unchanged.
pub(crate) async fn note_answer(
    service: Option<&str>,
    request: NotedRequest<'_>,
    answer: Response,
) -> Response {
    // Without a published description, or without the variable, the body is not copied.
    let Some(service) = service.filter(|service| is_noted(Some(service))) else {
        return answer;
    };
    let request = json!(request);
    let kind = answer.headers().get(header::CONTENT_TYPE);
    // Packs and logs are not JSON, and a pack may be large, so their bodies are not buffered.
    if kind.is_some_and(|kind| !kind.as_bytes().starts_with(b"application/json")) {
        return answer;
    }
    let (parts, body) = answer.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
        return Response::from_parts(parts, Body::empty());
    };
    // The body is copied verbatim: `serde_json` refuses documents that are nested too deeply, and some tests
    // send those.
    let body = std::str::from_utf8(&bytes).unwrap_or_default();
    let body = if body.is_empty() { "null" } else { body };
    let (service, status) = (json!(service), parts.status.as_u16());
    write_exchange(&format!(
        r#"{{"service":{service},"request":{request},"answer":{{"status":{status},"body":{body}}}}}"#
    ));
    Response::from_parts(parts, Body::from(bytes))
}

/// Records an outgoing webhook.
pub(crate) fn note_webhook(service: &str, event: &str, payload: &Value) {
    if exchange_file().is_some() {
        write_exchange(&json!({"service": service, "webhook": event, "body": payload}).to_string());
    }
}

fn exchange_file() -> Option<PathBuf> {
    std::env::var_os(FILE).map(PathBuf::from)
}

/// Appends a line with one `write`, so that lines of several processes do not mix.
fn write_exchange(line: &str) {
    let Some(path) = exchange_file() else { return };
    let written = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    // A lost exchange makes the comparison incomplete, but the test's result stays right.
    if let Err(error) = written {
        tracing::error!(%error, path = %path.display(), "an exchange could not be written down");
    }
}
