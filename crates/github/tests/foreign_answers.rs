//! Answers that GitHub did not write, at every route that is read: each is an outage and passes.

use std::{collections::BTreeSet, future::Future, pin::Pin};

use domain::{CommitId, TicketKey, Timestamp};
use github::{Error, GitHubReader, GitHubWriter, IssueListState};
use testkit::{FakeGitHub, GitHubOptions, ServiceFault, github as stand_in};

use super::against_github::{as_app, build_shop_name};

// Status, content type and body, as proxies, portals, login pages and maintenance pages send them.
const PAGES: [(u16, &str, &str); 8] = [
    (200, "text/html", "<html><body>Unicorn!</body></html>"),
    (
        200,
        "application/json; charset=utf-8",
        "<!DOCTYPE html><title>Sign in</title>",
    ),
    (200, "application/json", ""),
    (
        200,
        "application/json; charset=utf-8",
        "[{\"number\": 1, \"title\": \"Log",
    ),
    (200, "text/html", "[]"),
    (200, "", "OK"),
    (204, "", ""),
    (404, "text/html", "<html>Under maintenance</html>"),
];

struct Hub {
    hub: FakeGitHub,
    reader: GitHubReader,
    writer: GitHubWriter,
    base: CommitId,
    head: CommitId,
}

type Outcome<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;
type Call = (&'static str, fn(&Hub) -> Outcome<'_>);

/// Builds one table row for each call that reads.
macro_rules! calls {
    ($($name:literal: |$hub:ident| $call:expr;)+) => {
        const CALLS: &[Call] = &[$(($name, |$hub| Box::pin(async move { $call.await.map(drop) })),)+];
    };
}

const ISSUE: u64 = 1;
const PULL: u64 = 2;
const START: Timestamp = Timestamp::from_unix_ms(0);

calls! {
    "repository": |hub| hub.reader.repository(&build_shop_name());
    "checks": |hub| hub.reader.checks().checks(&build_shop_name(), &hub.head);
    "pull request": |hub| hub.reader.pull_requests().pull_request(&build_shop_name(), PULL);
    "mentioning": |hub| hub.reader.pull_requests().pull_requests_mentioning(&build_shop_name(), &build_ticket());
    "remarks": |hub| hub.reader.reviews().remarks(&build_shop_name(), PULL);
    "closed": |hub| hub.reader.pull_requests().closed_pull_requests_since(&build_shop_name(), START);
    "changed": |hub| hub.reader.pull_requests().pull_requests_changed_since(&build_shop_name(), START, None);
    "by head": |hub| hub.reader.pull_requests().find_pull_request_by_head(&build_shop_name(), "fix/1");
    "permission": |hub| hub.reader.permission(&build_shop_name(), "ada", 7);
    "deliveries": |hub| hub.reader.deliveries().hook_deliveries(None, START, None);
    "identity": |hub| hub.reader.identity(None);
    "issue": |hub| hub.reader.issues().issue(&build_shop_name(), ISSUE);
    "open issues": |hub| hub.reader.issues().open_issues(&build_shop_name(), None, None);
    "list of issues": |hub| hub.reader.issues().list_issues(&build_shop_name(), IssueListState::Open);
    "comments since": |hub| hub.reader.comments().comments_since(&build_shop_name(), START);
    "branch checks": |hub| hub.reader.checks().branch_checks(&build_shop_name(), "main");
    "reviews": |hub| hub.reader.reviews().reviews(&build_shop_name(), PULL);
    "required checks": |hub| hub.reader.checks().required_checks(&build_shop_name(), "main");
    "changed files": |hub| hub.reader.reviews().changed_files(&build_shop_name(), PULL);
    "changed since": |hub| hub.reader.reviews().changed_since(&build_shop_name(), &hub.base, &hub.head);
    "commits": |hub| hub.reader.pull_requests().pull_request_commits(&build_shop_name(), PULL);
    "review requests": |hub| hub.reader.reviews().review_requests(&build_shop_name(), PULL);
    "discussions": |hub| hub.reader.discussions().changed_discussions(&build_shop_name(), START);
    "writer's repository": |hub| hub.writer.repository(&build_shop_name());
    "writer's pull request": |hub| hub.writer.pull_requests().pull_request(&build_shop_name(), PULL);
    "writer's by head": |hub| hub.writer.pull_requests().find_pull_request_by_head(&build_shop_name(), "fix/1");
    "branch head": |hub| hub.writer.branch_head(&build_shop_name(), "main");
    "comments": |hub| hub.writer.comments().list_comments(&build_shop_name(), ISSUE);
    "login": |hub| hub.writer.login(None);
    "issue open": |hub| hub.writer.issues().is_issue_open(&build_shop_name(), ISSUE);
    "assignees": |hub| hub.writer.issues().assignees(&build_shop_name(), ISSUE);
    "issue type": |hub| hub.writer.issues().issue_type(&build_shop_name(), ISSUE);
    "our issue": |hub| hub.writer.issues().find_our_issue(&build_shop_name(), "x");
    "opened issue": |hub| hub.writer.issues().opened_issue(&build_shop_name(), ISSUE);
    "sub issues": |hub| hub.writer.issues().sub_issues(&build_shop_name(), ISSUE);
    "line comments": |hub| hub.writer.reviews().line_comments(&build_shop_name(), PULL);
    "check run": |hub| hub.writer.checks().find_check_run(&build_shop_name(), &hub.head);
}

fn build_ticket() -> TicketKey {
    TicketKey::jira("ENG-1").unwrap()
}

async fn start_hub() -> Hub {
    let hub = FakeGitHub::start(GitHubOptions::default()).await.unwrap();
    let base = hub
        .create_repository("acme/shop", &[("README.md", "shop\n")])
        .unwrap();
    hub.open_issue_as("acme/shop", "ada", "Login fails", "First.")
        .unwrap();
    let head = hub
        .commit("acme/shop", "fix/1", "work", &[("a.txt", "a")])
        .unwrap();
    let reader = GitHubReader::new(&as_app(&hub, stand_in::READER_APP_ID)).unwrap();
    let writer = GitHubWriter::new(&as_app(&hub, stand_in::WRITER_APP_ID)).unwrap();
    writer
        .pull_requests()
        .create_pull_request(&build_shop_name(), "fix/1", "main", "ENG-1 Login", "Body", true)
        .await
        .unwrap();
    let (base, head) = (base.parse().unwrap(), head.parse().unwrap());
    Hub {
        reader,
        writer,
        base,
        head,
        hub,
    }
}

impl Hub {
    /// Replaces the clients, so that no cached answer prevents a read.
    fn renew(&mut self) {
        self.reader = GitHubReader::new(&as_app(&self.hub, stand_in::READER_APP_ID)).unwrap();
        self.writer = GitHubWriter::new(&as_app(&self.hub, stand_in::WRITER_APP_ID)).unwrap();
    }

    /// Records the routes of a call without a fault.
    async fn routes(&mut self, call: &Call) -> BTreeSet<(String, String)> {
        self.renew();
        let before = self.hub.requests().len();
        let _ = (call.1)(self).await;
        let route = |path: String| path.split('?').next().unwrap_or_default().to_owned();
        let asked = self.hub.requests().into_iter().skip(before);
        asked
            .map(|request| (request.method, route(request.path)))
            .collect()
    }
}

async fn assert_passing(number: usize, call: &Call) {
    let mut hub = start_hub().await;
    let routes = hub.routes(call).await;
    assert!(!routes.is_empty(), "{}", call.0);
    for (index, (method, path)) in routes.into_iter().enumerate() {
        let (status, content_type, body) = PAGES[(number + index) % PAGES.len()];
        hub.renew();
        let fault = ServiceFault::new(&path, 3, status).on(&method);
        hub.hub.fail_next(fault.page(content_type, body));
        let case = format!("{}: {method} {path} with {status} {body:?}", call.0);
        let failed = (call.1)(&hub).await;
        let failed = failed.map_err(|error| (error.is_retryable(), error));
        assert!(
            matches!(failed, Err((true, Error::Unavailable { .. }))),
            "{case}: {failed:?}"
        );
        // A write is not repeated, so it leaves faults that the next calls consume.
        while hub.hub.faults_left() > 0 {
            let _ = (call.1)(&hub).await;
        }
    }
}

#[tokio::test]
async fn github_reads_treat_foreign_answer_as_outage() {
    let calls = CALLS.iter().enumerate();
    futures::future::join_all(calls.map(|(number, call)| assert_passing(number, call))).await;
}

#[tokio::test]
async fn each_foreign_github_answer_is_temporary() {
    let cases = PAGES.iter().enumerate();
    futures::future::join_all(cases.map(|(number, _)| assert_passing(number, &CALLS[2]))).await;
}

#[tokio::test]
async fn json_of_a_wrong_shape_is_final() {
    let hub = start_hub().await;
    let fault =
        ServiceFault::new("/pulls/2", 1, 200).page("application/json", "{\"number\": [\"cut \\ud83d\"]}");
    hub.hub.fail_next(fault);
    let failed = hub
        .reader
        .pull_requests()
        .pull_request(&build_shop_name(), PULL)
        .await
        .unwrap_err();
    assert!(
        matches!(failed, Error::Malformed { .. }) && !failed.is_retryable(),
        "{failed}"
    );
}

#[tokio::test]
async fn json_of_a_gateway_is_temporary_for_github() {
    for (name, path) in [
        ("pull request", "/pulls/2"),
        ("issue", "/graphql"),
        ("reviews", "/reviews"),
        ("discussions", "/graphql"),
    ] {
        let call = CALLS.iter().find(|(known, _)| *known == name).unwrap();
        let hub = start_hub().await;
        let fault = ServiceFault::new(path, 1, 200)
            .page("application/json", "{\"message\": \"Service Unavailable\"}");
        hub.hub.fail_next(fault);
        let failed = (call.1)(&hub).await.unwrap_err();
        assert!(
            matches!(failed, Error::Unavailable { .. }) && failed.is_retryable(),
            "{name}: {failed}"
        );
        assert_eq!(hub.hub.faults_left(), 0, "{name}");
    }
}

#[tokio::test]
async fn github_write_answered_by_page_is_unknown() {
    let hub = start_hub().await;
    hub.hub.fail_next(
        ServiceFault::new("/comments", 1, 200)
            .on("POST")
            .page("text/html", "<html></html>"),
    );
    let failed = hub
        .writer
        .comments()
        .comment(&build_shop_name(), ISSUE, "x")
        .await
        .unwrap_err();
    assert!(matches!(failed, Error::Unknown { .. }), "{failed}");
}
