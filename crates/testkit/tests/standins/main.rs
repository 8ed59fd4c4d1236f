//! Tests of the stand-ins over HTTP, as clients call them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests may panic too"
)]

mod described;
mod described_github;
mod described_jira;
mod fixture;
mod github;
mod jira;
mod model;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

/// Time limit of a webhook, which only a failing test reaches.
const WEBHOOK_LIMIT: Duration = Duration::from_secs(60);

fn build_test_client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent("tests")
        .no_proxy()
        .timeout(Duration::from_secs(60))
        .build()
        .unwrap()
}

/// Sends a request and returns the status and the JSON of the answer.
async fn send_json(request: reqwest::RequestBuilder, body: Option<Value>) -> (u16, Value) {
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    let response = request.send().await.unwrap();
    (
        response.status().as_u16(),
        response.json().await.unwrap_or_default(),
    )
}

type Received = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// Starts a server that records webhooks and returns its URL.
async fn start_receiver() -> (String, Received) {
    let received = Received::default();
    let take = |State(received): State<Received>, headers: HeaderMap, body: Bytes| async move {
        received.lock().unwrap().push((headers, body));
        StatusCode::ACCEPTED
    };
    let router = axum::Router::new()
        .route("/", axum::routing::post(take))
        .with_state(Arc::clone(&received));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, received)
}

/// Waits for the first webhook that `wanted` accepts.
async fn await_webhook(
    received: &Received,
    wanted: impl Fn(&HeaderMap, &Value) -> bool,
) -> (HeaderMap, Bytes, Value) {
    testkit::poll_until("webhook", WEBHOOK_LIMIT, async || {
        received.lock().unwrap().iter().find_map(|(headers, body)| {
            let value: Value = serde_json::from_slice(body).unwrap();
            wanted(headers, &value).then(|| (headers.clone(), body.clone(), value))
        })
    })
    .await
    .unwrap()
}

fn sign_body(secret: &str, body: &[u8]) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    let tag = ring::hmac::sign(&key, body);
    format!("sha256={}", data_encoding::HEXLOWER.encode(tag.as_ref()))
}
