//! Reviews by and of Journeyman, changed files and required checks of pull requests, and reruns of jobs.

use std::time::Duration;

use domain::Timestamp;
use github::{Error, NewComment, NewReview, SnapshotScope, parse_run_id};
use testkit::{
    github::{BranchRuleset, READER_LOGIN, RunConclusion, WRITER_LOGIN},
    poll_until,
};

use super::{build_shop_name, start_hub};

#[tokio::test]
async fn pull_request_files_and_commits_are_listed() {
    let hub = start_hub().await;
    let first = hub.branch("feat/x");
    let second = hub
        .hub
        .commit("acme/shop", "feat/x", "more", &[("b.txt", "one\ntwo\n")])
        .unwrap();
    let number = hub
        .hub
        .open_pull_request_as("acme/shop", "mia", "feat/x", "Work", "")
        .unwrap();
    let files = hub
        .reader
        .reviews()
        .changed_files(&build_shop_name(), number)
        .await
        .unwrap();
    assert_eq!(
        hub.writer
            .reviews()
            .changed_files(&build_shop_name(), number)
            .await
            .unwrap(),
        files
    );
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a.txt", "b.txt"]);
    assert!(files[1].patch.contains("+two"), "{files:?}");
    let commits = hub
        .reader
        .pull_requests()
        .pull_request_commits(&build_shop_name(), number)
        .await
        .unwrap();
    assert_eq!(commits, [first, second.parse().unwrap()]);
    let missing = hub
        .reader
        .reviews()
        .changed_files(&build_shop_name(), 99)
        .await
        .unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
    hub.assert_clean();
}

#[tokio::test]
async fn review_is_submitted_with_all_comments() {
    let hub = start_hub().await;
    let head = hub.branch("feat/x");
    let number = hub
        .hub
        .open_pull_request_as("acme/shop", "mia", "feat/x", "Work", "")
        .unwrap();
    let review = |line| NewReview {
        commit: head.clone(),
        asks_for_changes: true,
        body: "Not yet.".to_owned(),
        comments: vec![NewComment {
            start_line: None,
            path: "a.txt".to_owned(),
            line,
            body: "Why?".to_owned(),
        }],
    };
    let elsewhere = hub
        .writer
        .reviews()
        .submit_review(&build_shop_name(), number, &review(9))
        .await;
    assert!(matches!(elsewhere, Err(Error::Rejected { .. })), "{elsewhere:?}");
    let id = hub
        .writer
        .reviews()
        .submit_review(&build_shop_name(), number, &review(1))
        .await
        .unwrap();
    let reviews = hub
        .writer
        .reviews()
        .reviews(&build_shop_name(), number)
        .await
        .unwrap();
    let ours: Vec<(u64, &str)> = reviews
        .iter()
        .map(|review| (review.id, review.author.as_str()))
        .collect();
    assert_eq!(ours, [(id, WRITER_LOGIN)]);

    hub.hub
        .comment_as("acme/shop", number, "mia", "It rounds.")
        .unwrap();
    let remarks = hub
        .reader
        .reviews()
        .remarks(&build_shop_name(), number)
        .await
        .unwrap();
    let mut said: Vec<(&str, bool)> = remarks
        .iter()
        .map(|remark| (remark.text.as_str(), remark.by_bot))
        .collect();
    said.sort_unstable();
    assert_eq!(said, [("It rounds.", false), ("Not yet.", true), ("Why?", true)]);
    let asked = &hub.hub.reviews("acme/shop", number).unwrap()[0];
    assert_eq!(asked.state, "changes_requested");
    hub.assert_clean();
}

#[tokio::test]
async fn review_requests_are_read_and_threads_resolved() {
    let hub = start_hub().await;
    let made = hub.draft("feat/x").await;
    hub.hub
        .ask_for_review("acme/shop", made.number, "rita", "mia")
        .unwrap();
    let requests = hub
        .reader
        .reviews()
        .review_requests(&build_shop_name(), made.number)
        .await
        .unwrap();
    let asked: Vec<(&str, Option<&str>)> = requests
        .iter()
        .map(|request| {
            let by = request.by.as_ref().map(|by| by.login.as_str());
            (request.reviewer.as_str(), by)
        })
        .collect();
    assert_eq!(asked, [("rita", Some("mia"))]);

    let comment = hub.hub.next_id() + 1;
    let judged = ("changes_requested", "No.");
    hub.hub
        .review_lines("acme/shop", made.number, "rita", judged, &[("a.txt", 1, "Why?")])
        .unwrap();
    let open = async || {
        hub.writer
            .reviews()
            .open_thread(&build_shop_name(), made.number, comment)
            .await
            .unwrap()
    };
    let thread = open().await.unwrap();
    for _ in 0..2 {
        hub.writer
            .reviews()
            .resolve_thread(&build_shop_name(), &thread)
            .await
            .unwrap();
    }
    assert_eq!(open().await, None, "it is resolved");
    assert_eq!(hub.hub.resolved("acme/shop", made.number).unwrap(), [comment]);
    let none = hub
        .writer
        .reviews()
        .open_thread(&build_shop_name(), made.number, 1)
        .await
        .unwrap();
    assert_eq!(none, None);
    let missing = hub
        .writer
        .reviews()
        .resolve_thread(&build_shop_name(), "PRRT_1")
        .await
        .unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
    hub.assert_clean();
}

#[tokio::test]
async fn required_checks_come_from_branch_and_rulesets() {
    let hub = start_hub().await;
    let required = async |branch: &str| {
        hub.writer
            .checks()
            .required_checks(&build_shop_name(), branch)
            .await
            .unwrap()
    };
    assert!(required("main").await.is_empty());
    assert!(required("no-such").await.is_empty());
    hub.hub.require_checks("acme/shop", "main", &["build"]).unwrap();
    let ruleset = BranchRuleset {
        branches: vec!["main".to_owned()],
        required_checks: vec!["quick tests".to_owned()],
        ..BranchRuleset::default()
    };
    hub.hub.set_rulesets("acme/shop", &[ruleset]).unwrap();
    assert_eq!(required("main").await, ["build", "quick tests"]);
    hub.assert_clean();
}

#[tokio::test]
async fn rerun_of_failed_jobs_increments_attempt() {
    let hub = start_hub().await;
    let made = hub.draft("feat/x").await;
    let head = made.head.as_str();
    let red = [(
        "unit",
        RunConclusion::Failure,
        "The runner has lost the connection.",
    )];
    hub.hub.run_checks("acme/shop", head, &red).unwrap();
    let checks = hub
        .reader
        .checks()
        .checks(&build_shop_name(), &made.head)
        .await
        .unwrap();
    let run = parse_run_id(&checks[0].url).unwrap();
    let now = async || {
        hub.writer
            .checks()
            .workflow_run(&build_shop_name(), run)
            .await
            .unwrap()
    };
    let first = now().await;
    assert_eq!(
        (first.head, first.attempt, first.is_complete),
        (made.head.clone(), 1, true)
    );
    hub.writer
        .checks()
        .rerun_failed_jobs(&build_shop_name(), run)
        .await
        .unwrap();
    let second = now().await;
    assert_eq!((second.attempt, second.is_complete), (2, false));
    let again = hub
        .writer
        .checks()
        .rerun_failed_jobs(&build_shop_name(), run)
        .await
        .unwrap_err();
    assert!(matches!(again, Error::Forbidden { .. }), "{again}");
    let missing = hub
        .writer
        .checks()
        .workflow_run(&build_shop_name(), 1)
        .await
        .unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
    hub.assert_clean();
}

#[tokio::test]
async fn accounts_have_logins_and_payloads_are_readable() {
    let hub = start_hub().await;
    assert_eq!(hub.writer.login(None).await.unwrap(), WRITER_LOGIN);
    assert_eq!(hub.reader.whoami().await.unwrap().login, READER_LOGIN);
    let repository = hub.writer.repository(&build_shop_name()).await.unwrap();
    assert_eq!(repository.default_branch, "main");
    let made = hub.draft("feat/x").await;
    let read = hub
        .writer
        .pull_requests()
        .pull_request(&build_shop_name(), made.number)
        .await
        .unwrap();
    assert_eq!(read, made);
    let found = hub
        .reader
        .pull_requests()
        .find_pull_request_by_head(&build_shop_name(), "feat/x")
        .await;
    assert_eq!(found.unwrap().map(|found| found.number), Some(made.number));

    hub.hub
        .set_webhook(&format!("{}/nowhere", hub.hub.api_url()), "secret");
    hub.branch("feat/y");
    let start = Timestamp::from_unix_ms(0);
    let delivered = async || {
        let log = hub.reader.deliveries();
        let found = log.hook_deliveries(None, start, None).await.ok()?;
        found.attempts.into_iter().next()
    };
    let delivery = poll_until("a delivery", Duration::from_secs(10), delivered)
        .await
        .unwrap();
    let payload = hub
        .reader
        .deliveries()
        .hook_payload(None, delivery.id)
        .await
        .unwrap();
    assert_eq!(payload["ref"], "refs/heads/feat/y");
    let missing = hub
        .reader
        .deliveries()
        .hook_payload(None, 4_711)
        .await
        .unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
}

#[tokio::test]
async fn open_thread_on_second_page_counts() {
    let hub = start_hub().await;
    let made = hub.draft("feat/x").await;
    let shop = build_shop_name();
    let writer = hub.writer.reviews();
    let scope = SnapshotScope {
        queue: true,
        distance: false,
    };
    let count_open = async || {
        let health = hub.reader.health();
        let snapshot = health.snapshot(&shop, made.number, scope).await.unwrap();
        snapshot.reviews.open_threads
    };
    let count_pages = || {
        hub.hub.count_requests(|request| {
            let query = request.body.as_ref().and_then(|body| body["query"].as_str());
            query.is_some_and(|query| query.contains("reviewThreads"))
        })
    };
    let comment_on_lines = |lines: &[(&str, u64, &str)]| {
        let judged = ("commented", "Hm.");
        hub.hub
            .review_lines("acme/shop", made.number, "rita", judged, lines)
            .unwrap();
    };
    comment_on_lines(&[("a.txt", 1, "Why?"); 100]);
    assert_eq!((count_open().await, count_pages()), (Some(100), 1));
    comment_on_lines(&[("a.txt", 1, "Why not?")]);
    assert_eq!((count_open().await, count_pages()), (Some(101), 3));
    let threads = hub.hub.threads("acme/shop", made.number).unwrap();
    let (last, others) = threads.split_last().unwrap();
    for thread in others {
        let id = format!("PRRT_{thread}");
        writer.resolve_thread(&shop, &id).await.unwrap();
    }
    assert_eq!(count_open().await, Some(1));
    let find_open = async |comment: u64| writer.open_thread(&shop, made.number, comment).await.unwrap();
    assert_eq!(find_open(*last).await, Some(format!("PRRT_{last}")));
    assert_eq!(find_open(others[99]).await, None, "it is resolved");
    assert_eq!(find_open(1).await, None);
    hub.assert_clean();
}

/// A long conversation has more reviews than one page, because each reply is one.
#[tokio::test]
async fn reviews_beyond_first_page_count() {
    let hub = start_hub().await;
    let made = hub.draft("feat/x").await;
    let review = |by: &str, state: &str| {
        let judged = (state, "Hm.");
        hub.hub
            .review_lines("acme/shop", made.number, by, judged, &[("a.txt", 1, "Why?")])
            .unwrap();
    };
    for _ in 0..100 {
        review("mia", "commented");
    }
    review("rita", "changes_requested");
    let shop = build_shop_name();
    let read = hub.reader.reviews().reviews(&shop, made.number).await.unwrap();
    assert_eq!(read.len(), 101);
    assert_eq!((read[100].author.as_str(), read[100].comments.len()), ("rita", 1));
    let writer = hub.writer.reviews();
    assert_eq!(writer.reviews(&shop, made.number).await.unwrap().len(), 101);
    assert_eq!(writer.line_comments(&shop, made.number).await.unwrap().len(), 101);
    let health = hub.reader.health();
    let snapshot = health
        .snapshot(&shop, made.number, SnapshotScope::default())
        .await
        .unwrap();
    assert_eq!(snapshot.reviews.change_requests, ["rita"]);
    hub.assert_clean();
}
