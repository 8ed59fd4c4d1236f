//! Answers to webhooks, and to requests that imitate one.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bootstrap::settings::TextList;
use reqwest::StatusCode;
use serde_json::json;
use testkit::bound_running_time;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::harness::{self, Harness};

/// Running time that is longer than a valid webhook ever waits, and shorter than its wait behind silent bodies.
const PROMPTLY: Duration = Duration::from_secs(5);

#[tokio::test]
async fn bad_signature_is_refused_and_not_stored() {
    let h = Harness::start(3_600).await;
    let body = r#"{"webhookEvent": "nonsense"}"#;
    for (path, header) in [
        ("/webhooks/jira", "x-hub-signature"),
        ("/webhooks/github", "x-hub-signature-256"),
    ] {
        for signature in [None, Some(harness::sign_body("stranger", body))] {
            let mut request = h.http.post(h.url(path)).body(body);
            if let Some(signature) = signature {
                request = request.header(header, signature);
            }
            let answer = request.send().await.expect("answer");
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
            assert_eq!(answer.text().await.expect("body"), "");
        }
    }
    // A valid one after them is handled. If ingest had stored the invalid ones, they would be dead
    // letters by now.
    assert_eq!(
        h.github_event("check_run", "good", &json!({"action": 5, "check_run": {}}))
            .await,
        StatusCode::ACCEPTED
    );
    let dead = h.dead(1).await;
    assert_eq!(dead.len(), 1, "{dead:?}");
    h.stop().await;
}

#[tokio::test]
async fn oversized_or_invalid_body_is_refused() {
    let h = Harness::start(3_600).await;
    let large = "x".repeat(70_000);
    let chunked = reqwest::Body::wrap_stream(futures::stream::iter(
        [large.clone(), large].map(Ok::<_, std::io::Error>),
    ));
    let request = h.http.post(h.url("/webhooks/jira"));
    let request = request.header("x-hub-signature", harness::sign_body("stranger", ""));
    let answer = request.body(chunked).send().await.expect("answer");
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    for body in [
        "not json",
        "[]",
        "[{}]",
        "\"text\"",
        "7",
        "null",
        "",
        "{} {}",
        "{\"a\": \u{1}",
    ] {
        for (path, header) in [
            ("/webhooks/jira", "x-hub-signature"),
            ("/webhooks/github", "x-hub-signature-256"),
        ] {
            assert_eq!(
                h.signed(path, header, body).await,
                StatusCode::BAD_REQUEST,
                "{body}"
            );
        }
    }
    h.stop().await;
}

#[tokio::test]
async fn ambiguous_signed_body_is_refused() {
    let h = Harness::start(3_600).await;
    let deep = format!("{{\"a\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let twice = r#"{"webhookEvent": "jira:issue_deleted", "webhookEvent": "jira:issue_updated"}"#;
    let twice_within = r#"{"comment": {"body": {"type": "doc", "text": "harmless", "text": "/stop"}}}"#;
    for body in [&deep, twice, twice_within] {
        for (path, header) in [
            ("/webhooks/jira", "x-hub-signature"),
            ("/webhooks/github", "x-hub-signature-256"),
        ] {
            assert_eq!(h.signed(path, header, body).await, StatusCode::BAD_REQUEST);
        }
    }
    assert_eq!(
        h.send_jira_move("ENG-1", "1", "To Do", "Ada").await,
        StatusCode::ACCEPTED
    );
    h.stop().await;
}

#[tokio::test]
async fn signed_body_of_other_event_is_refused() {
    let h = Harness::start(3_600).await;
    let said = json!({"action": "created", "issue": {"number": 7}, "comment": {"id": 1, "body": "/stop"}});
    for event in [
        "check_run",
        "pull_request",
        "pull_request_review",
        "push",
        "status",
        "issues",
    ] {
        let status = h.github_event(event, event, &said).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{event}");
    }
    assert_eq!(
        h.github_event("issue_comment", "own", &said).await,
        StatusCode::ACCEPTED
    );
    h.stop().await;
}

#[tokio::test]
async fn networks_setting_adds_to_signature() {
    let event = json!({"action": "created"});
    for (networks, of_a_stranger, signed) in [
        (&[][..], StatusCode::UNAUTHORIZED, StatusCode::ACCEPTED),
        (
            &["127.0.0.0/8", "192.30.252.0/22"],
            StatusCode::UNAUTHORIZED,
            StatusCode::ACCEPTED,
        ),
        (
            &["192.30.252.0/22"],
            StatusCode::UNAUTHORIZED,
            StatusCode::UNAUTHORIZED,
        ),
    ] {
        let setting = TextList(networks.iter().map(|&network| network.to_owned()).collect());
        let h = Harness::start_with(3_600, |config| config.ingest.webhook_networks = setting).await;
        let request = h.http.post(h.url("/webhooks/github")).body("{}");
        let request = request.header("x-hub-signature-256", harness::sign_body("stranger", "{}"));
        let answer = request.send().await.expect("answer");
        assert_eq!(answer.status(), of_a_stranger, "{networks:?}");
        assert_eq!(answer.text().await.expect("body"), "");
        assert_eq!(
            h.github_event("star", "one", &event).await,
            signed,
            "{networks:?}"
        );
        h.stop().await;
    }
}

#[tokio::test]
async fn github_delivery_needs_event_and_id() {
    let h = Harness::start(3_600).await;
    let event = json!({"action": "created"});
    for (name, id) in [("", "one"), ("star", ""), ("", "")] {
        assert_eq!(
            h.github_event(name, id, &event).await,
            StatusCode::BAD_REQUEST,
            "{name:?} {id:?}"
        );
    }
    let path = "/webhooks/github";
    let bare = h.signed(path, "x-hub-signature-256", &event.to_string()).await;
    assert_eq!(bare, StatusCode::BAD_REQUEST);
    assert_eq!(h.github_event("star", "one", &event).await, StatusCode::ACCEPTED);
    h.stop().await;
}

#[tokio::test]
async fn rotated_secret_is_valid_until_removed() {
    let event = json!({"action": "created"});
    let status = async |secrets: &[&str]| {
        let secrets: Vec<String> = secrets.iter().map(|&secret| secret.to_owned()).collect();
        let h = Harness::start_with(3_600, |config| {
            config.ingest.github_webhook_secrets = ingest::SecretList::new(secrets);
        })
        .await;
        let status = h.github_event("star", "one", &event).await;
        h.stop().await;
        status
    };
    let new = "the-secret-after-the-rotation";
    assert_eq!(status(&[new, harness::GITHUB_SECRET]).await, StatusCode::ACCEPTED);
    assert_eq!(status(&[new]).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn nats_outage_answers_503_at_once() {
    let mut h = Harness::start(3_600).await;
    h.nats.stop().await;
    let answers = async {
        for number in 0..10 {
            let status = h
                .github_event("ping", &format!("late-{number}"), &json!({}))
                .await;
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        }
    };
    bound_running_time(PROMPTLY, answers).await.expect("at once");
    h.stop().await;
}

#[tokio::test]
async fn webhook_waits_for_restarted_nats_server() {
    let mut h = Harness::start(3_600).await;
    // A busy machine may need more than a second to restart the server, so the test tries several times.
    for number in 0..5 {
        h.nats.stop().await;
        let request = h.github_request("ping", &format!("late-{number}"), &json!({}));
        let (sent, restarted) = tokio::join!(request.send(), h.nats.restart());
        restarted.expect("nats");
        if sent.expect("answer").status() == StatusCode::ACCEPTED {
            h.stop().await;
            return;
        }
        h.ready().await;
    }
    panic!("no webhook waited for the server");
}

/// Sends the head of a POST of a GitHub webhook, and the given rest.
async fn begin_request(h: &Harness, headers: &str, rest: &str) -> TcpStream {
    let address = h.url("").replace("http://", "");
    let mut stream = TcpStream::connect(address).await.expect("connection");
    let head = format!("POST /webhooks/github HTTP/1.1\r\nhost: here\r\n{headers}\r\n{rest}");
    // A server that refuses from the head may close the connection before the test has written
    // everything.
    let _ = stream.write_all(head.as_bytes()).await;
    stream
}

#[tokio::test]
async fn unsigned_request_is_refused_before_body() {
    let h = Harness::start(3_600).await;
    let digits = "0".repeat(64);
    for (headers, status) in [
        (String::new(), "401"),
        (format!("x-hub-signature-256: {digits}\r\n"), "401"),
        (format!("x-hub-signature: sha256={digits}\r\n"), "401"),
        (
            format!("x-hub-signature-256: sha256={digits}\r\n").repeat(2),
            "401",
        ),
        (format!("x-hub-signature-256: sha256={digits}\r\n"), "413"),
    ] {
        let headers = format!("content-length: 26214401\r\n{headers}");
        let mut stream = begin_request(&h, &headers, "").await;
        let mut answer = String::new();
        let reading = stream.read_to_string(&mut answer);
        let _ = bound_running_time(PROMPTLY, reading)
            .await
            .expect("refused and closed");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{headers}: {answer}"
        );
    }
    h.stop().await;
}

#[tokio::test]
async fn silent_peers_never_block_signed_webhooks() {
    let h = Harness::start_with(3_600, |config| {
        config.ingest.connections = 96;
        config.ingest.connections_per_address = 64;
    })
    .await;
    let bogus = format!("x-hub-signature-256: sha256={}\r\n", "0".repeat(64));
    let mut held = Vec::new();
    for number in 0..300 {
        let (headers, rest) = match number % 5 {
            0 => ("content-length: 9\r\n".to_owned(), ""),
            1 => (format!("content-length: 9\r\n{bogus}"), ""),
            2 => (format!("content-length: 60000\r\n{bogus}"), "{\"a\":"),
            3 => (format!("transfer-encoding: chunked\r\n{bogus}"), "1\r\n{\r\n"),
            _ => ("content-length: 9\r\nx-unfinished: ".to_owned(), "never"),
        };
        held.push(begin_request(&h, &headers, rest).await);
        if number % 30 == 29 {
            let (id, event) = (format!("signed-{number}"), json!({}));
            let sending = h.github_event("star", &id, &event);
            let status = bound_running_time(PROMPTLY, sending).await.expect("promptly");
            assert_eq!(status, StatusCode::ACCEPTED, "beside {} others", held.len());
        }
    }
    let (status, _) = h.get("/v1/runs", harness::VIEWER).await;
    assert_eq!(status, StatusCode::OK);
    h.stop().await;
}

#[tokio::test]
async fn repeated_deliveries_give_one_job() {
    let h = Harness::start_with(3_600, |config| config.ingest.router_slots = 1).await;
    h.first_poll().await;
    let ask = |key: &str, changelog: &str| {
        json!({"webhookEvent": "jira:issue_updated", "timestamp": bootstrap::read_wall_clock().unix_ms(),
            "user": {"accountId": "557058:ada", "displayName": "Ada"}, "issue": {"id": "1", "key": key},
            "changelog": {"id": changelog, "items": [{"field": "status", "toString": "Ready for Agent"}]}})
        .to_string()
    };
    let send = async |id: String, body: &str| {
        let request = h.http.post(h.url("/webhooks/jira")).body(body.to_owned());
        let request = request.header("x-hub-signature", harness::sign_body(harness::JIRA_SECRET, body));
        let request = request.header("x-atlassian-webhook-identifier", id);
        let status = request.send().await.expect("answer").status();
        assert_eq!(status, StatusCode::ACCEPTED);
    };
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    let changelog = h.jira.move_issue(&key, "Ready for Agent", "Ada").expect("move");
    let body = ask(&key, &changelog);
    for _ in 0..10 {
        send("one".to_owned(), &body).await;
    }
    for number in 0..10 {
        send(format!("forged-{number}"), &body).await;
    }
    let other = h.jira.create_issue("ENG", "Another", "", "Bug", &[]);
    let changelog = h.jira.move_issue(&other, "Ready for Agent", "Ada").expect("move");
    send("last".to_owned(), &ask(&other, &changelog)).await;
    h.trigger(&other).await;
    assert_eq!(h.triggers(&key).await.len(), 1);
    h.stop().await;
}

/// Log output for assertions.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("log").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Logged {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("log")).into_owned()
    }
}

#[tokio::test]
async fn webhook_address_is_never_logged() {
    const SECRET: &str = "a1b2c3d4e5f6a7b8c9d0";
    let logged = Logged::default();
    let (writer, here) = (logged.clone(), std::thread::current().id());
    let collected = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || {
            if std::thread::current().id() == here {
                writer.clone()
            } else {
                Logged::default()
            }
        })
        .finish();
    // The service runs on this thread. A thread-local subscriber could miss call sites that other threads
    // registered first.
    tracing::subscriber::set_global_default(collected).expect("the first");
    let h = Harness::start(3_600).await;
    let body = r#"{"webhookEvent": "project_created"}"#;
    let good = harness::sign_body(harness::JIRA_SECRET, body);
    let stranger = harness::sign_body("stranger", body);
    for (place, signature, status) in [
        (format!("/{SECRET}"), None, "404"),
        (format!("/{SECRET}"), Some(&good), "404"),
        (format!("?secret={SECRET}"), None, "401"),
        (format!("?secret={SECRET}"), Some(&stranger), "401"),
        (format!("?secret={SECRET}"), Some(&good), "202"),
    ] {
        let signed = signature.map(|signature| format!("x-hub-signature: {signature}\r\n"));
        let head = format!(
            "POST /webhooks/jira{place} HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: {}\r\n{}\r\n",
            body.len(),
            signed.unwrap_or_default()
        );
        let address = h.url("").replace("http://", "");
        let mut stream = TcpStream::connect(address).await.expect("connection");
        // A server that refuses from the head may close the connection before the test has written the
        // body.
        let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
        let mut answer = String::new();
        let reading = stream.read_to_string(&mut answer);
        let _ = bound_running_time(PROMPTLY, reading).await.expect("answered");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{place}: {answer}"
        );
        assert!(!answer.contains(SECRET), "{answer}");
    }
    h.stop().await;
    let log = logged.text();
    let delivered: Vec<&str> = log.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(delivered.is_empty(), "{delivered:#?}");
    for line in ["webhook refused", "delivery stored"] {
        assert!(log.contains(line), "{line} is not in the log that was read");
    }
}
