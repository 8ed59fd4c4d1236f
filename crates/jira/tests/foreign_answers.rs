//! Answers that Jira did not write, at every route that is read: each is an outage and passes.

use std::{collections::BTreeSet, future::Future, pin::Pin};

use domain::{TicketKey, Timestamp};
use jira::{CommentAudience, Error, JiraDialect, JiraReader, JiraWriter, Settings};
use testkit::{FakeJira, JiraKind, JiraOptions, ServiceFault, jira as stand_in};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

// Status, content type and body, as proxies, portals, login pages and maintenance pages send them.
const PAGES: [(u16, &str, &str); 9] = [
    (
        200,
        "text/html;charset=UTF-8",
        "<html><body>Site temporarily unavailable</body></html>",
    ),
    (200, "application/json", "<!DOCTYPE html><title>Log in</title>"),
    (200, "application/json", ""),
    (
        200,
        "application/json;charset=UTF-8",
        "{\"key\": \"ENG-1\", \"fields\": {\"summ",
    ),
    (200, "text/html", "{}"),
    (200, "", "OK"),
    (204, "", ""),
    (404, "text/html", "<html>Your site is being moved</html>"),
    (302, "text/html", "<html>Log in</html>"),
];

struct Site {
    jira: FakeJira,
    reader: JiraReader,
    writer: JiraWriter,
    ticket: TicketKey,
}

type Outcome<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;
type Call = (&'static str, fn(&Site) -> Outcome<'_>);

/// Builds one table row for each call that reads.
macro_rules! calls {
    ($($name:literal: |$site:ident| $call:expr;)+) => {
        const CALLS: &[Call] = &[$(($name, |$site| Box::pin(async move { $call.await.map(drop) })),)+];
    };
}

calls! {
    "issue": |site| site.reader.issue(&site.ticket);
    "search": |site| site.reader.search_ready("ENG", "To Do");
    "matching": |site| site.reader.matching("ENG", "labels = backend");
    "matches": |site| site.reader.matches(&site.ticket, "labels = backend");
    "changed": |site| site.reader.changed_within("ENG", 5);
    "similar": |site| site.reader.similar("ENG", &["Login".to_owned()]);
    "list": |site| site.reader.list("ENG", None);
    "outlines": |site| site.reader.outlines(&[&site.ticket]);
    "comments since": |site| site.reader.comments_since(&site.ticket, Timestamp::from_unix_ms(0));
    "text edits": |site| site.reader.text_edits_since(&site.ticket, Timestamp::from_unix_ms(0));
    "last transition": |site| site.reader.last_transition_to(&site.ticket, "To Do");
    "groups": |site| site.reader.groups("mia");
    "statuses": |site| site.reader.project_statuses("ENG");
    "reader's permissions": |site| site.reader.permissions("ENG");
    "reader's account": |site| site.reader.myself();
    "fields": |site| site.reader.field_values(&site.ticket, &["Team".to_owned()]);
    "role": |site| site.reader.role("ENG", "Developers");
    "role names": |site| site.reader.role_names("ENG");
    "comments": |site| site.writer.list_comments(&site.ticket);
    "status": |site| site.writer.status(&site.ticket);
    "transitions": |site| site.writer.transitions(&site.ticket);
    "assignee": |site| site.writer.assignee(&site.ticket);
    "writer's permissions": |site| site.writer.permissions("ENG");
    "writer's account": |site| site.writer.myself();
    "sorted": |site| site.writer.sorted(&site.ticket);
    "link type": |site| site.writer.link_type(&site.ticket, "Duplicate");
    "list of changed": |site| site.reader.list_changed("ENG", 7);
    "reader's projects": |site| site.reader.projects();
    "writer's projects": |site| site.writer.projects();
}

/// Creates fresh clients, so that no cached answer prevents a read.
fn site_on(jira: FakeJira, kind: JiraKind, ticket: TicketKey) -> Site {
    let account = |email: &str, token: &str| {
        let (deployment, email) = match kind {
            JiraKind::Cloud => (JiraDialect::Cloud, email),
            JiraKind::DataCenter(_) => (JiraDialect::DataCenter, ""),
        };
        let (base_url, email) = (jira.url(), email.to_owned());
        Settings {
            base_url,
            email,
            api_token: token.into(),
            deployment,
            ..Settings::default()
        }
    };
    let reader = JiraReader::new(&account(stand_in::READER_EMAIL, stand_in::READER_API_TOKEN)).unwrap();
    let writer = JiraWriter::new(&account(stand_in::WRITER_EMAIL, stand_in::WRITER_API_TOKEN)).unwrap();
    Site {
        jira,
        reader,
        writer,
        ticket,
    }
}

async fn start_site(kind: JiraKind) -> Site {
    let jira = FakeJira::start(JiraOptions {
        kind,
        ..JiraOptions::default()
    })
    .await
    .unwrap();
    let ticket = jira.create_issue("ENG", "Login fails", "First.", "Bug", &["backend"]);
    jira.move_issue(&ticket, "Ready for Agent", "Mia").unwrap();
    jira.comment_as(&ticket, "Mia", "Please hurry").unwrap();
    site_on(jira, kind, TicketKey::jira(&ticket).unwrap())
}

/// Records the routes of a call without a fault.
async fn record_routes(kind: JiraKind, call: &Call) -> BTreeSet<(String, String)> {
    let site = start_site(kind).await;
    let _ = (call.1)(&site).await;
    let asked = site.jira.requests();
    let route = |path: String| path.split('?').next().unwrap_or_default().to_owned();
    asked
        .into_iter()
        .map(|request| (request.method, route(request.path)))
        .collect()
}

async fn assert_passing(kind: JiraKind, number: usize, call: &Call) {
    for (index, (method, path)) in record_routes(kind, call).await.into_iter().enumerate() {
        let (status, content_type, body) = PAGES[(number + index) % PAGES.len()];
        let site = start_site(kind).await;
        let fault = ServiceFault::new(&path, 3, status)
            .on(&method)
            .page(content_type, body);
        site.jira.fail_next(fault);
        let failed = (call.1)(&site).await.unwrap_err();
        let case = format!("{}: {method} {path} with {status} {body:?}: {failed}", call.0);
        assert!(
            matches!(failed, Error::Unavailable { .. }) && failed.is_retryable(),
            "{case}"
        );
        assert_eq!(site.jira.faults_left(), 0, "three tries: {case}");
        // After the fault, Jira's own refusal is a valid result too.
        let again = (call.1)(&site).await;
        assert!(
            !matches!(again, Err(Error::Unavailable { .. })),
            "{case}: {again:?}"
        );
    }
}

#[tokio::test]
async fn jira_reads_treat_foreign_answer_as_outage() {
    for kind in [JiraKind::Cloud, JiraKind::DataCenter(10)] {
        let calls = CALLS.iter().enumerate();
        futures::future::join_all(calls.map(|(number, call)| assert_passing(kind, number, call))).await;
    }
}

#[tokio::test]
async fn each_foreign_jira_answer_is_temporary() {
    let cases = PAGES.iter().enumerate();
    futures::future::join_all(cases.map(|(number, _)| assert_passing(JiraKind::Cloud, number, &CALLS[0])))
        .await;
}

#[tokio::test]
async fn json_of_a_wrong_shape_is_final() {
    let site = start_site(JiraKind::Cloud).await;
    let fault =
        ServiceFault::new("/issue/ENG-1", 1, 200).page("application/json", "{\"fields\": [\"cut \\ud83d\"]}");
    site.jira.fail_next(fault);
    let failed = site.writer.status(&site.ticket).await.unwrap_err();
    assert!(
        matches!(failed, Error::Malformed { .. }) && !failed.is_retryable(),
        "{failed}"
    );
    assert_eq!(site.jira.faults_left(), 0);
}

#[tokio::test]
async fn json_of_a_gateway_is_temporary_for_jira() {
    for name in ["issue", "comments since", "status", "transitions", "assignee"] {
        let call = CALLS.iter().find(|(known, _)| *known == name).unwrap();
        let site = start_site(JiraKind::Cloud).await;
        let fault = ServiceFault::new("/issue/ENG-1", 3, 200)
            .page("application/json", "{\"message\": \"Service Unavailable\"}");
        site.jira.fail_next(fault);
        let failed = (call.1)(&site).await.unwrap_err();
        assert!(
            matches!(failed, Error::Unavailable { .. }) && failed.is_retryable(),
            "{name}: {failed}"
        );
        assert_eq!(site.jira.faults_left(), 0, "{name}: three tries");
        (call.1)(&site).await.unwrap();
    }
}

#[tokio::test]
async fn jira_write_answered_by_page_is_unknown() {
    let site = start_site(JiraKind::Cloud).await;
    site.jira.fail_next(
        ServiceFault::new("/issue/ENG-1", 1, 200)
            .on("PUT")
            .page("text/html", "<html></html>"),
    );
    let failed = site
        .writer
        .add_labels(&site.ticket, &["x".to_owned()])
        .await
        .unwrap_err();
    assert!(matches!(failed, Error::Unknown { .. }), "{failed}");
}

/// Answers each request with these bytes and closes the connection.
async fn start_answering_server(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(&answer).await;
        }
    });
    url
}

/// Builds an answer with a body of `length` bytes, of which `body` is sent.
fn build_answer(status: &str, content_type: &str, length: usize, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// Every way in which the answer to a write is lost after Jira received the request.
#[tokio::test]
async fn lost_answer_to_jira_write_is_unknown() {
    let json = |body: &str| build_answer("201 Created", "application/json", body.len(), body);
    let deep = format!("{{\"id\": {}{}}}", "[".repeat(400), "]".repeat(400));
    let large = format!("{{\"id\": \"1\", \"body\": \"{}\"}}", "x".repeat(16 << 20));
    for (case, answer) in [
        ("no answer", Vec::new()),
        (
            "a cut body",
            build_answer("201 Created", "application/json", 100, "{\"id\": \"1\""),
        ),
        ("a body that is not JSON", json("{\"id\"")),
        ("JSON of another shape", json("{\"id\": []}")),
        ("an id that is nested too deeply", json(&deep)),
        ("a body above the limit", json(&large)),
        ("no body", json("")),
        (
            "another content type",
            build_answer("201 Created", "text/html", 11, "{\"id\": \"1\"}"),
        ),
        (
            "a server error",
            build_answer("500 Internal Server Error", "application/json", 2, "{}"),
        ),
    ] {
        let settings = Settings {
            base_url: start_answering_server(answer).await,
            api_token: "token".into(),
            ..Settings::default()
        };
        let ticket = TicketKey::jira("ENG-1").unwrap();
        // A comment for customers needs no read before the write.
        let lost = JiraWriter::new(&settings)
            .unwrap()
            .comment_for(&ticket, "x", "", CommentAudience::Customers)
            .await
            .unwrap_err();
        assert!(
            matches!(lost, Error::Unknown { .. }) && lost.is_retryable(),
            "{case}: {lost:?}"
        );
    }
}

#[tokio::test]
async fn lone_surrogate_hides_no_text() {
    let site = start_site(JiraKind::Cloud).await;
    let body = r#"{"id": "1", "key": "ENG-1", "fields": {"status": {"id": "1", "name": "cut \ud83d",
        "statusCategory": {"key": "new"}}, "unread": "\udfff"}}"#;
    site.jira
        .fail_next(ServiceFault::new("/issue/ENG-1", 1, 200).page("application/json", body));
    let status = site.writer.status(&site.ticket).await.unwrap();
    assert_eq!(status.name, "cut \u{fffd}");
}
