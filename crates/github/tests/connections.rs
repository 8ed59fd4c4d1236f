//! Errors of reads and writes over a broken connection.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::limits::{LimitClass, LimitGate, LimitGateFuture, LimitObservation, LimitedRequest, WritePace};
use github::{
    CheckConclusion, CheckKind, CheckStatus, CommitCheck, Error, GatePolicy, GitHubReader, GitHubWriter,
    Settings,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::against_github::build_shop_name;

fn build_settings(api_url: String) -> Settings {
    Settings {
        api_url,
        token: Some("secret-token-value".into()),
        ..Settings::default()
    }
}

/// Error of a comment at a server.
async fn fail_write(api_url: String) -> Error {
    let writer = GitHubWriter::new(&build_settings(api_url)).unwrap();
    let written = writer.comments().comment(&build_shop_name(), 7, "x").await;
    written.unwrap_err()
}

/// Error of a read at a server.
async fn fail_read(api_url: String) -> Error {
    let reader = GitHubReader::new(&build_settings(api_url)).unwrap();
    reader.repository(&build_shop_name()).await.unwrap_err()
}

/// Answers each request with these bytes and closes the connection; counts the requests.
async fn start_counting_server(answer: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            if stream.read(&mut request).await.unwrap_or(0) > 0 {
                seen.fetch_add(1, Ordering::SeqCst);
            }
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (url, count)
}

/// Answers each request with these bytes and closes the connection; records the heads of the requests.
async fn start_recording_server(answer: String) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap_or(0);
            let head = String::from_utf8_lossy(&request[..length]).to_ascii_lowercase();
            seen.lock().unwrap().push(head);
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (url, heads)
}

fn build_failed_job() -> CommitCheck {
    CommitCheck {
        kind: CheckKind::Run,
        id: 5,
        name: "test".to_owned(),
        suite: 9,
        status: CheckStatus::Completed,
        conclusion: Some(CheckConclusion::Failure),
        completed_at: None,
        url: "https://ghe.example/acme/shop/actions/runs/1/job/2".to_owned(),
        output_tail: String::new(),
    }
}

#[tokio::test]
async fn enterprise_log_comes_from_other_host() {
    let text = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\n1 failed\n";
    let (host, at_host) = start_recording_server(text.to_owned()).await;
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nlocation: {host}/logs/2?sig=a%2Fb\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    let (api, at_api) = start_recording_server(redirect).await;
    let reader = GitHubReader::new(&build_settings(format!("{api}/api/v3"))).unwrap();
    let log = reader
        .checks()
        .job_log(&build_shop_name(), &build_failed_job())
        .await;
    assert_eq!(log.unwrap().as_deref(), Some("1 failed\n"));
    let (at_api, at_host) = (at_api.lock().unwrap(), at_host.lock().unwrap());
    assert!(
        at_api[0].starts_with("get /api/v3/repos/acme/shop/actions/jobs/2/logs http/1.1\r\n"),
        "{at_api:?}"
    );
    for header in [
        "authorization: bearer secret-token-value",
        "user-agent: journeyman",
        "x-github-api-version: 2022-11-28",
    ] {
        assert!(at_api[0].contains(header), "{header} in {at_api:?}");
    }
    assert!(
        at_host[0].starts_with("get /logs/2?sig=a%2fb http/1.1\r\n"),
        "{at_host:?}"
    );
    assert!(!at_host[0].contains("secret"), "{at_host:?}");
}

#[tokio::test]
async fn unconnected_github_write_is_unavailable() {
    // No program listens on port 1.
    let failed = fail_write("http://127.0.0.1:1".to_owned()).await;
    assert!(matches!(failed, Error::Unavailable { .. }), "{failed}");
    assert_eq!(failed.to_string(), "github is unavailable: cannot connect");
    assert!(std::error::Error::source(&failed).is_some());
    let all = domain::cause::format_error_chain(&failed);
    assert_eq!(all.matches("refused").count(), 1, "{all}");
    assert_eq!(all.matches("cannot connect").count(), 1, "{all}");
}

#[tokio::test]
async fn unanswered_write_is_sent_once_and_unknown() {
    let (url, count) = start_counting_server("").await;
    let failed = fail_write(url).await;
    assert!(matches!(failed, Error::Unknown { .. }), "{failed}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn write_answered_by_bad_gateway_is_unknown() {
    let (url, count) =
        start_counting_server("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .await;
    let failed = fail_write(url).await;
    assert!(matches!(failed, Error::Unknown { .. }), "{failed}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

/// Every way in which the answer to a write is lost after GitHub received the request.
#[tokio::test]
async fn lost_answer_to_github_write_is_unknown() {
    let answer = |content_type: &str, length: usize, body: &str| {
        format!(
            "HTTP/1.1 201 Created\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
    };
    let json = |body: &str| answer("application/json", body.len(), body);
    let lost = [
        ("a cut body", answer("application/json", 100, "{\"id\": 1")),
        ("a body that is not JSON", json("{\"id\"")),
        ("JSON of another shape", json("{\"errors\": 1, \"id\": []}")),
        ("no body", json("")),
        ("another content type", answer("text/html", 2, "{}")),
    ];
    for (case, answer) in lost {
        let (url, count) = start_counting_server(answer.leak()).await;
        let writer = GitHubWriter::new(&build_settings(url)).unwrap();
        let rest = writer
            .comments()
            .comment(&build_shop_name(), 7, "x")
            .await
            .map(drop)
            .unwrap_err();
        // GraphQL reports refusals in the body, so that its answers are read in another place.
        let graphql = writer
            .reviews()
            .resolve_thread(&build_shop_name(), "T_1")
            .await
            .unwrap_err();
        for error in [rest, graphql] {
            assert!(
                matches!(error, Error::Unknown { .. }) && error.is_retryable(),
                "{case}: {error:?}"
            );
        }
        assert_eq!(count.load(Ordering::SeqCst), 2, "{case}: each is sent once");
    }
}

#[tokio::test]
async fn a_read_is_tried_three_times() {
    let (url, count) =
        start_counting_server("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .await;
    let failed = fail_read(url).await;
    assert!(matches!(failed, Error::Unavailable { .. }), "{failed}");
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn rate_limit_wait_follows_server_clock() {
    let (url, count) = start_counting_server(
        "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\nconnection: close\r\nx-ratelimit-remaining: 0\r\n\
         x-ratelimit-reset: 1782000090\r\ndate: Sun, 21 Jun 2026 00:00:00 GMT\r\n\r\n{}",
    )
    .await;
    let limited = fail_read(url).await;
    assert!(
        matches!(limited, Error::RateLimited { retry_after } if retry_after.as_secs() == 90),
        "{limited}"
    );
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn redirect_to_other_host_is_refused() {
    let (target, reached) =
        start_counting_server("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").await;
    let answer = format!(
        "HTTP/1.1 307 Temporary Redirect\r\nlocation: {target}/repositories/7/issues/7/comments\r\ncontent-length: 0\r\n\
         connection: close\r\n\r\n"
    );
    let (url, _) = start_counting_server(answer.leak()).await;
    let refused = fail_write(url).await;
    assert!(matches!(refused, Error::Moved { .. }), "{refused}");
    assert_eq!(reached.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn redirect_loop_ends_with_error() {
    let (url, count) = start_counting_server(
        "HTTP/1.1 301 Moved Permanently\r\nlocation: /repositories/7\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    )
    .await;
    let refused = fail_read(url).await;
    assert!(matches!(refused, Error::Moved { .. }), "{refused}");
    assert!(count.load(Ordering::SeqCst) < 5);
}

#[tokio::test]
async fn a_refused_request_names_the_field() {
    let (url, _) = start_counting_server(
        "HTTP/1.1 422 Unprocessable Entity\r\ncontent-length: 101\r\nconnection: close\r\n\r\n\
         {\"message\":\"Validation Failed\",\"errors\":[{\"resource\":\"PullRequest\",\"field\":\"head\",\"code\":\"invalid\"}]}",
    )
    .await;
    let refused = GitHubWriter::new(&build_settings(url))
        .unwrap()
        .pull_requests()
        .create_pull_request(&build_shop_name(), "x", "main", "t", "", true)
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "github rejected the request: Validation Failed; head: invalid"
    );
}

#[tokio::test]
async fn non_json_answer_counts_as_outage() {
    let (url, count) =
        start_counting_server("HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\n<private>")
            .await;
    let failed = fail_read(url).await;
    assert!(matches!(failed, Error::Unavailable { .. }), "{failed}");
    assert_eq!(count.load(Ordering::SeqCst), 3);
    assert!(!format!("{failed:?}").contains("private"));
}

#[tokio::test]
async fn invalid_private_key_is_refused_at_construction() {
    let settings = Settings {
        app_id: Some(1),
        private_key: Some("secret-but-no-key".into()),
        ..Settings::default()
    };
    let refused = GitHubReader::new(&settings).unwrap_err();
    assert!(matches!(refused, Error::Unauthorized { .. }), "{refused}");
    assert!(!format!("{refused:?}").contains("secret"));
}

/// Gate that records its calls, and admits requests until an answer reported a refusal.
#[derive(Debug, Default)]
struct Notes {
    requests: Mutex<Vec<(String, Option<WritePace>)>>,
    refused: Mutex<Option<(LimitClass, Duration)>>,
    left: Mutex<Vec<u64>>,
}

impl LimitGate for Notes {
    fn admit<'a>(&'a self, request: LimitedRequest<'a>) -> LimitGateFuture<'a, Result<(), Duration>> {
        let name = format!("{} {}", request.account, request.resource);
        self.requests.lock().unwrap().push((name, request.pace));
        let refused = *self.refused.lock().unwrap();
        Box::pin(async move { refused.map_or(Ok(()), |(_, wait)| Err(wait)) })
    }

    fn observe<'a>(
        &'a self,
        _: LimitedRequest<'a>,
        observation: LimitObservation,
    ) -> LimitGateFuture<'a, ()> {
        let mut refused = self.refused.lock().unwrap();
        *refused = observation.refused.or(*refused);
        let left = observation.quota.map(|(quota, _)| quota.remaining);
        self.left.lock().unwrap().extend(left);
        Box::pin(async {})
    }
}

fn writer_behind(notes: &Arc<Notes>, url: String) -> GitHubWriter {
    let gate: Arc<dyn LimitGate> = Arc::<Notes>::clone(notes);
    let gated = GatePolicy {
        writes_a_minute: Some(7),
        ..GatePolicy::by(gate)
    };
    GitHubWriter::with_instances(Some(&build_settings(url)), &BTreeMap::new(), Some(&gated)).unwrap()
}

#[tokio::test]
async fn limit_gate_admits_requests_and_receives_refusals() {
    let answers = [
        (
            LimitClass::Primary,
            "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\nconnection: close\r\nx-ratelimit-limit: 5000\r\n\
             x-ratelimit-remaining: 0\r\nx-ratelimit-reset: 1782000090\r\ndate: Sun, 21 Jun 2026 00:00:00 GMT\r\n\r\n{}",
        ),
        (
            LimitClass::Secondary,
            "HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\nconnection: close\r\nretry-after: 90\r\n\r\n{}",
        ),
    ];
    for (class, answer) in answers {
        let (url, count) = start_counting_server(answer).await;
        let notes = Arc::new(Notes::default());
        let writer = writer_behind(&notes, url);
        let limited = writer
            .comments()
            .comment(&build_shop_name(), 7, "x")
            .await
            .unwrap_err();
        assert!(
            matches!(limited, Error::RateLimited { retry_after } if retry_after.as_secs() == 90),
            "{limited}"
        );
        let held_back = writer
            .comments()
            .comment(&build_shop_name(), 7, "x")
            .await
            .unwrap_err();
        assert!(
            matches!(held_back, Error::HeldBack { retry_after } if retry_after.as_secs() == 90),
            "{held_back}"
        );
        assert_eq!(count.load(Ordering::SeqCst), 1, "the second one was not sent");
        assert_eq!(
            *notes.refused.lock().unwrap(),
            Some((class, Duration::from_secs(90)))
        );
        let pace = WritePace {
            a_minute: 7,
            an_hour: 0,
        };
        let requests = notes.requests.lock().unwrap();
        assert!(!requests.is_empty());
        for request in requests.iter() {
            assert_eq!(*request, ("github:writer:default core".to_owned(), Some(pace)));
        }
    }
}

#[tokio::test]
async fn limit_gate_receives_quota_of_successful_answers() {
    let (url, _) = start_counting_server(
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\nx-ratelimit-limit: 5000\r\n\
         x-ratelimit-remaining: 17\r\nx-ratelimit-reset: 1782000090\r\ndate: Sun, 21 Jun 2026 00:00:00 GMT\r\n\r\n[]",
    )
    .await;
    let notes = Arc::new(Notes::default());
    let writer = writer_behind(&notes, url);
    assert!(
        writer
            .pull_requests()
            .find_pull_request_by_head(&build_shop_name(), "x")
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(*notes.left.lock().unwrap(), [17]);
    let requests = notes.requests.lock().unwrap();
    assert_eq!(*requests, [("github:writer:default core".to_owned(), None)]);
}
