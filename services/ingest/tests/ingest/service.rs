//! Webhooks, polls, commands and the API.

use crate::harness::{
    self, ADMIN, DEADLINE, Harness, OPERATOR, OURS, SHA, VIEWER, build_branch_record, build_entry,
};
use domain::{
    ChecksConclusion, Fact, Job, JobRequest, JournalEntry, PullRequestEvent, RunId, SkipPlace, SkipReason,
    StopReason, TicketKey, Trigger, TriggerChannel, TriggerKey, TriggerReason, WaitCondition, report,
};
use futures::StreamExt;
use queue::KeyValueBucket;
use reqwest::StatusCode;
use serde_json::{Value, json};

/// Push of a change for the first ticket.
fn push_of(base: &str, head: &str, pack: &domain::ObjectRef) -> domain::BranchPush {
    domain::BranchPush {
        scope: None,
        merge: None,
        repository: "acme/shop".parse().expect("repository"),
        branch: "fix/ENG-1".to_owned(),
        base: base.parse().expect("commit"),
        head: head.parse().expect("commit"),
        pack: pack.clone(),
        expected: None,
    }
}

fn expect_job_request(trigger: &Trigger) -> &JobRequest {
    match &trigger.reason {
        TriggerReason::JobRequested(request) => request,
        other => panic!("not a job: {other:?}"),
    }
}

#[tokio::test]
async fn repeated_status_change_makes_one_trigger() {
    let h = Harness::start(3_600).await;
    h.listen_to_jira();
    h.first_poll().await;
    let key = h
        .jira
        .create_issue("ENG", "Fix the cart", "It rounds", "Bug", &["shop"]);
    let changelog = h.jira.move_issue(&key, "Ready for Agent", "Ada").expect("move");
    let first = h.trigger(&key).await;
    assert_eq!(first.key, TriggerKey::new(format!("changelog:{changelog}")));
    assert_eq!(
        (first.source, first.actor.as_deref()),
        (TriggerChannel::Webhook, Some("Ada"))
    );
    let request = expect_job_request(&first);
    assert_eq!(
        (request.job, request.repository.to_string().as_str()),
        (Job::Implement, "acme/shop")
    );
    assert_eq!(request.text.summary, "Fix the cart");
    assert!(
        request.text.description.contains("It rounds"),
        "{:?}",
        request.text.description
    );

    h.jira.redeliver_all();
    let other = h.jira.create_issue("ENG", "Another", "", "Bug", &[]);
    h.jira.move_issue(&other, "Ready for Agent", "Ada").expect("move");
    h.trigger(&other).await;
    assert_eq!(h.triggers(&key).await.len(), 1);
    h.stop().await;
}

#[tokio::test]
async fn skip_rules_become_explained_triggers() {
    let h = Harness::start(3_600).await;
    h.listen_to_jira();
    let labelled = h.jira.create_issue("ENG", "Fix", "", "Bug", &["skip-dispatch"]);
    let phrased = h
        .jira
        .create_issue("ENG", "Fix", "please [AGENT-SKIP]", "Bug", &[]);
    let commented = h.jira.create_issue("ENG", "Fix", "", "Bug", &[]);
    h.jira
        .comment_as(&commented, "Bob", "no [AGENT-SKIP] thanks")
        .expect("comment");
    let worked_on = h.jira.create_issue("ENG", "Fix", "", "Bug", &[]);
    h.github
        .open(7, "person/cart", &format!("{worked_on}: my own fix"), SHA);
    for key in [&labelled, &phrased, &commented, &worked_on] {
        h.jira.move_issue(key, "Ready for Agent", "Ada").expect("move");
    }
    let phrase = |place| SkipReason::Phrase {
        phrase: "[AGENT-SKIP]".to_owned(),
        place,
    };
    let exists = SkipReason::PullRequestExists {
        url: "https://forge.example/acme/shop/pull/7".to_owned(),
        author: "sam".to_owned(),
    };
    for (key, expected) in [
        (
            labelled,
            SkipReason::Label {
                label: "skip-dispatch".to_owned(),
            },
        ),
        (phrased, phrase(SkipPlace::Description)),
        (
            commented,
            phrase(SkipPlace::Comment {
                author: "Bob".to_owned(),
            }),
        ),
        (worked_on, exists),
    ] {
        assert_eq!(
            h.trigger(&key).await.reason,
            TriggerReason::Skipped(expected),
            "{key}"
        );
    }
    h.stop().await;
}

#[tokio::test]
async fn own_named_account_comment_is_ignored() {
    let h = Harness::start(3_600).await;
    h.listen_to_jira();
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    h.jira
        .comment_as(&key, OURS, "skipped because of [AGENT-SKIP]")
        .expect("comment");
    h.jira.move_issue(&key, "Ready for Agent", "Ada").expect("move");
    assert_eq!(expect_job_request(&h.trigger(&key).await).job, Job::Implement);
    h.stop().await;
}

#[tokio::test]
async fn poll_finds_missed_webhook_same_key() {
    let h = Harness::start(1).await;
    let key = h
        .jira
        .create_issue("ENG", "Fix the cart", "It rounds", "Bug", &[]);
    let changelog = h.jira.move_issue(&key, "Ready for Agent", "Ada").expect("move");
    let found = h.trigger(&key).await;
    assert_eq!(
        (found.source, found.key),
        (
            TriggerChannel::Poll,
            TriggerKey::new(format!("changelog:{changelog}"))
        )
    );
    h.listen_to_jira();
    h.jira.redeliver_all();
    h.stop().await;
}

#[tokio::test]
async fn missed_jira_command_is_found_once() {
    let h = Harness::start(1).await;
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    h.jira.set_groups("Ada", &["agents"]);
    h.jira.comment_as(&key, "Bob", "/stop").unwrap();
    let first = h
        .jira
        .comment_as(&key, "Ada", "/stop\nthis leads nowhere")
        .unwrap();
    let found = h.trigger(&key).await;
    assert_eq!(
        (found.source, found.key, found.actor.as_deref()),
        (
            TriggerChannel::Poll,
            TriggerKey::new(format!("comment:{first}")),
            Some("Ada")
        )
    );
    assert!(matches!(found.reason, TriggerReason::StopRequested { run: None }));

    h.listen_to_jira();
    h.jira.redeliver_all();
    let second = h.jira.comment_as(&key, "Ada", "/stop").unwrap();
    h.triggers_when(&key, 2).await;
    h.two_polls_more().await;
    let keys = h.trigger_keys(&key).await;
    assert_eq!(keys, [format!("comment:{first}"), format!("comment:{second}")]);
    h.stop().await;
}

#[tokio::test]
async fn comment_reaches_only_live_runs() {
    let h = Harness::start(1).await;
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    h.jira.set_groups("Ada", &["agents"]);
    h.jira.comment_as(&key, "Ada", "Before any run.").unwrap();
    h.two_polls_more().await;
    assert_eq!(
        h.trigger_keys(&key).await,
        Vec::<String>::new(),
        "nobody would read it"
    );

    let ticket = TicketKey::jira(&key).unwrap();
    let mut row = domain::TicketRow::default();
    let run = RunId::new(ticket.clone(), 1);
    row.open(
        domain::PendingRun::new(run, Job::Implement, domain::Lane::Talk),
        domain::Timestamp::default(),
    );
    let rows = h.queue.table::<domain::TicketRow>(KeyValueBucket::Tickets);
    rows.put(&ticket.to_string(), &row, None).await.unwrap();
    let polled = h.jira.comment_as(&key, "Ada", "Mind the **tax**.").unwrap();
    let found = h.trigger(&key).await;
    let TriggerReason::NewsArrived(domain::TicketNews::Comment {
        comment,
        pull_request,
        ..
    }) = found.reason
    else {
        panic!("{:?}", found.reason)
    };
    assert_eq!(
        (comment.author.as_str(), comment.may_instruct, pull_request),
        ("Ada", true, None)
    );
    assert!(comment.text.contains("Mind the"), "{}", comment.text);

    h.listen_to_jira();
    h.jira.comment_as(&key, OURS, "We are at it.").unwrap();
    let delivered = h.jira.comment_as(&key, "Bob", "And the shipping.").unwrap();
    h.triggers_when(&key, 2).await;
    h.two_polls_more().await;
    let keys = h.trigger_keys(&key).await;
    assert_eq!(
        keys,
        [format!("comment:{polled}"), format!("comment:{delivered}")]
    );
    h.stop().await;
}

#[tokio::test]
async fn own_command_counts_in_no_channel() {
    let h = Harness::start(1).await;
    h.keep(&build_branch_record("jira:ENG-1", "feat/ENG-1-cart", Some(7)))
        .await;
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    h.jira.set_groups("Ada", &["agents"]);
    h.jira.set_groups(OURS, &["agents"]);
    h.jira.comment_as(&key, OURS, "/stop").unwrap();
    let polled = h.jira.comment_as(&key, "Ada", "/stop").unwrap();
    h.github.comment(900, 7, OURS, "/stop");
    h.github.comment(901, 7, "mia", "/stop");
    h.triggers_when(&key, 2).await;

    h.listen_to_jira();
    h.jira.comment_as(&key, OURS, "/stop").unwrap();
    let delivered = h.jira.comment_as(&key, "Ada", "/stop").unwrap();
    for (id, login) in [(902, OURS), (903, "mia")] {
        h.github_event("issue_comment", &format!("d{id}"), &build_stop_payload(id, login))
            .await;
    }
    h.triggers_when(&key, 4).await;
    h.two_polls_more().await;
    let mut keys = h.trigger_keys(&key).await;
    keys.sort();
    let mut wanted =
        [polled, delivered, "901".to_owned(), "903".to_owned()].map(|id| format!("comment:{id}"));
    wanted.sort();
    assert_eq!(keys, wanted);
    h.stop().await;
}

/// GitHub's payload of a `/stop` on pull request 7.
fn build_stop_payload(id: u64, login: &str) -> Value {
    harness::stop_by(
        id,
        &json!({"login": login, "id": harness::compute_account_id(login)}),
    )
}

#[tokio::test]
async fn missed_ticket_edit_is_triaged() {
    let h = Harness::start(1).await;
    let rules =
        "repo:\n  owner: acme\n  name: docs\njira:\n  project_key: DOC\ntriage:\n  labels: [bug, docs]\n";
    h.add_rules("docs", rules).await;
    let key = h.jira.create_issue("DOC", "Typo", "On page one", "Bug", &[]);
    let created = h.trigger(&key).await;
    assert_eq!(
        (
            expect_job_request(&created).job,
            created.key.as_str(),
            created.source
        ),
        (Job::Triage, "triage:created", TriggerChannel::Poll)
    );
    let edit = h.jira.edit_summary(&key, "Typo on page two", "Ada").unwrap();
    let edited = h.triggers_when(&key, 2).await.pop().unwrap();
    assert_eq!(
        (edited.key.as_str().to_owned(), edited.actor.as_deref()),
        (format!("triage:{edit}"), Some("Ada"))
    );
    assert_eq!(expect_job_request(&edited).text.summary, "Typo on page two");
    h.stop().await;
}

#[tokio::test]
async fn jira_rate_limit_loses_nothing() {
    let h = Harness::start(1).await;
    h.first_poll().await;
    h.jira
        .fail_next(testkit::ServiceFault::new("/search/jql", 1, 429));
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    h.jira.set_groups("Ada", &["agents"]);
    let id = h.jira.comment_as(&key, "Ada", "/stop").unwrap();
    assert_eq!(
        h.trigger(&key).await.key,
        TriggerKey::new(format!("comment:{id}"))
    );
    h.stop().await;
}

#[tokio::test]
async fn missed_github_command_is_polled_without_log() {
    let h = Harness::start(1).await;
    let branch = "feat/ENG-1-cart";
    let ours = build_branch_record("jira:ENG-1", branch, Some(7));
    h.keep(&ours).await;
    h.github.open(7, branch, "fix", SHA);
    h.github.comment(900, 7, "sam", "/stop");
    h.github.comment(901, 7, "mia", "looks good");
    h.github.comment(902, 7, "mia", "/stop");
    let found = h.trigger("ENG-1").await;
    assert_eq!(
        (found.source, found.key, found.actor.as_deref()),
        (TriggerChannel::Poll, TriggerKey::new("comment:902"), Some("mia"))
    );
    assert!(matches!(found.reason, TriggerReason::StopRequested { .. }));
    h.stop().await;
}

#[tokio::test]
async fn jira_outage_delays_delivery_only() {
    let h = Harness::start(3_600).await;
    h.listen_to_jira();
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    h.jira
        .fail_next(testkit::ServiceFault::new(&format!("/issue/{key}"), 3, 503));
    h.jira.move_issue(&key, "Ready for Agent", "Ada").expect("move");
    assert_eq!(
        expect_job_request(&h.trigger(&key).await).text.summary,
        "Fix the cart"
    );
    assert_eq!(h.get("/v1/dead", VIEWER).await.1, json!([]));
    h.stop().await;
}

#[tokio::test]
async fn missed_merge_is_found_by_poll() {
    let h = Harness::start(1).await;
    let branch = "feat/ENG-1-cart";
    let ours = build_branch_record("jira:ENG-1", branch, Some(7));
    h.github.open(7, branch, "fix", SHA);
    h.github.merge(7, "mia");
    h.keep(&ours).await;
    let found = h.trigger("ENG-1").await;
    assert_eq!(
        (found.source, found.key),
        (TriggerChannel::Poll, TriggerKey::new("merged:acme/shop#7"))
    );
    assert!(
        matches!(found.reason, TriggerReason::PullRequest(PullRequestEvent::Merged(end)) if end.by == "mia")
    );
    h.stop().await;
}

#[tokio::test]
async fn service_starts_while_nats_is_down() {
    let mut h = Harness::launch(3_600, false, |_, _| {}).await;
    assert_eq!(h.status("/healthz").await, StatusCode::OK);
    assert_eq!(h.status("/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        h.github_event("ping", "d1", &json!({})).await,
        StatusCode::SERVICE_UNAVAILABLE
    );
    h.nats.restart().await.expect("nats");
    h.ready().await;
    assert_eq!(
        h.github_event("ping", "d1", &json!({})).await,
        StatusCode::ACCEPTED
    );
    h.stop().await;
}

#[tokio::test]
async fn unroutable_events_become_dead_letters() {
    let h = Harness::start(3_600).await;
    for (id, key) in [("gone", "ENG-404"), ("foreign", "OPS-1")] {
        let payload = json!({"webhookEvent": "jira:issue_updated", "timestamp": 1_700_000_000_000_i64,
            "issue": {"key": key, "fields": {"summary": "x"}},
            "changelog": {"id": id, "items": [{"field": "status", "toString": "Ready for Agent"}]}});
        let status = h
            .signed("/webhooks/jira", "x-hub-signature", &payload.to_string())
            .await;
        assert_eq!(status, StatusCode::ACCEPTED);
    }
    let reasons: Vec<_> = h
        .dead(2)
        .await
        .iter()
        .map(|letter| letter["reason"].to_string())
        .collect();
    assert!(
        reasons.iter().any(|reason| reason.contains("ENG-404")),
        "{reasons:?}"
    );
    assert!(
        reasons
            .iter()
            .any(|reason| reason.contains("no rules") && reason.contains("OPS-1")),
        "{reasons:?}"
    );
    h.stop().await;
}

#[tokio::test]
async fn complete_checks_and_merge_reach_ticket() {
    let h = Harness::start(3_600).await;
    let branch = "feat/ENG-1-cart";
    let ours = build_branch_record("jira:ENG-1", branch, Some(7));
    h.keep(&ours).await;
    h.github.open(7, branch, "fix", SHA);
    h.github.check(1, "test", "failure");
    let run = |sha: &str| {
        json!({"action": "completed", "repository": {"full_name": "acme/shop"},
            "check_run": {"head_sha": sha, "check_suite": {"head_branch": branch}}})
    };
    h.github_event("check_run", "d1", &run(&SHA.replace('0', "1")))
        .await;
    h.github_event("check_run", "d2", &run(SHA)).await;
    h.github_event("check_run", "d3", &run(SHA)).await;
    let TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(summary)) =
        h.trigger("ENG-1").await.reason
    else {
        panic!("no checks")
    };
    assert_eq!(
        (summary.conclusion, summary.head.as_str()),
        (ChecksConclusion::Failure, SHA)
    );
    assert_eq!(summary.failed[0].name, "test");

    let merged = json!({"action": "closed", "repository": {"full_name": "acme/shop"}, "sender": {"login": "mia"},
        "pull_request": {"number": 7, "head": {"ref": branch, "repo": {"full_name": "acme/shop"}}, "merged": true,
            "merged_by": {"login": "mia"}, "closed_at": "2026-11-21T10:00:00Z"}});
    h.github.merge(7, "mia");
    h.github_event("pull_request", "d4", &merged).await;
    let last = h.triggers_when("ENG-1", 2).await.pop().expect("merge");
    assert_eq!(last.key, TriggerKey::new("merged:acme/shop#7"));
    assert!(
        matches!(last.reason, TriggerReason::PullRequest(PullRequestEvent::Merged(end)) if end.by == "mia")
    );

    // The ticket's view contains the state of the pull request.
    let mut row = domain::TicketRow::default();
    row.pull_requests.extend(ours.pull_request);
    let rows = h.queue.table::<domain::TicketRow>(KeyValueBucket::Tickets);
    rows.put("jira:ENG-1", &row, None).await.unwrap();
    let (status, ticket) = h.get("/v1/tickets/ENG-1", VIEWER).await;
    assert_eq!(status, StatusCode::OK);
    let standing = &ticket["standing"][0];
    assert_eq!(
        (&standing["status"], &standing["head"]),
        (&json!("merged"), &json!(SHA))
    );
    let checks = &standing["checks"];
    assert_eq!(
        (
            &checks["conclusion"],
            &checks["failed"][0]["name"],
            &checks["follows"]
        ),
        (&json!("failure"), &json!("test"), &json!("left")),
        "{ticket}"
    );
    // No log shows that the base fails alike, so the failure would be repaired; this row knows of no repair.
    assert_eq!(
        (&checks["left"], &checks["outdated"]),
        (&json!("forgotten"), &json!(false))
    );
    h.stop().await;
}

#[tokio::test]
async fn early_event_waits_for_recorded_pull_request() {
    let h = Harness::start(3_600).await;
    let branch = "feat/ENG-1-cart";
    let table = h.queue.branches();
    let early = build_branch_record("jira:ENG-1", branch, None);
    let revision = table.put(&early, None).await.expect("record");
    h.github.open(7, branch, "fix", SHA);
    h.github.check(1, "test", "success");
    let suite = json!({"action": "completed", "repository": {"full_name": "acme/shop"},
        "check_suite": {"head_sha": SHA, "head_branch": branch}});
    h.github_event("check_suite", "d1", &suite).await;
    table
        .put(
            &build_branch_record("jira:ENG-1", branch, Some(7)),
            Some(revision),
        )
        .await
        .expect("record");
    assert!(matches!(
        h.trigger("ENG-1").await.reason,
        TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(_))
    ));
    h.stop().await;
}

#[tokio::test]
async fn dispatch_is_idempotent_per_key() {
    let h = Harness::start(3_600).await;
    let key = h
        .jira
        .create_issue("ENG", "Fix the cart", "It rounds", "Bug", &[]);
    let body = json!({"ticket": key, "job": "implement"});
    let first = h.post("/v1/jobs", OPERATOR, &body, Some("k1")).await;
    assert_eq!(first.0, StatusCode::ACCEPTED, "{}", first.1);
    let again = h.post("/v1/jobs", OPERATOR, &body, Some("k1")).await;
    assert_eq!(again, first);
    for other in [
        json!({"ticket": key, "job": "triage"}),
        json!({"ticket": key, "job": "implement", "mock": true}),
    ] {
        let (status, refused) = h.post("/v1/jobs", OPERATOR, &other, Some("k1")).await;
        assert_eq!(status, StatusCode::CONFLICT, "{refused}");
        assert!(
            refused["detail"].to_string().contains("Idempotency-Key"),
            "{refused}"
        );
    }
    let trigger = h.trigger(&key).await;
    assert_eq!(
        (trigger.source, trigger.actor.as_deref()),
        (TriggerChannel::Api, Some("olga"))
    );
    let run = first.1["run"].as_str().expect("run");
    let shown = h
        .get(&format!("/v1/runs/{}", run.replace('@', "%40")), VIEWER)
        .await;
    assert_eq!((shown.0, &shown.1["status"]), (StatusCode::OK, &json!("queued")));

    let gone = h
        .post(
            "/v1/jobs",
            OPERATOR,
            &json!({"ticket": "ENG-404", "job": "implement"}),
            None,
        )
        .await;
    assert_eq!(gone.0, StatusCode::NOT_FOUND, "{}", gone.1);
    let foreign = h
        .post(
            "/v1/jobs",
            OPERATOR,
            &json!({"ticket": "OPS-1", "job": "implement"}),
            None,
        )
        .await;
    assert_eq!(foreign.0, StatusCode::UNPROCESSABLE_ENTITY, "{}", foreign.1);
    let skipped = h.jira.create_issue("ENG", "Fix [AGENT-SKIP]", "", "Bug", &[]);
    let refused = h
        .post(
            "/v1/jobs",
            OPERATOR,
            &json!({"ticket": skipped, "job": "implement"}),
            None,
        )
        .await;
    assert_eq!(refused.0, StatusCode::CONFLICT);
    assert!(
        refused.1["detail"].to_string().contains("AGENT-SKIP"),
        "{}",
        refused.1
    );
    let garbage = h
        .post(
            "/v1/jobs",
            OPERATOR,
            &json!({"ticket": "../x", "job": "implement"}),
            None,
        )
        .await;
    assert_eq!(garbage.0, StatusCode::BAD_REQUEST);
    h.stop().await;
}

#[tokio::test]
async fn ticket_list_shows_runs_and_problems() {
    let h = Harness::start(3_600).await;
    let rules = "repo:\n  owner: acme\n  name: docs\njira:\n  project_key: NOPE\n";
    h.add_rules("docs", rules).await;
    let waiting = h
        .jira
        .create_issue("ENG", "Fix <!-- x -->the cart", "", "Bug", &[]);
    let ready = h.jira.create_issue("ENG", "Fix the tax", "", "Bug", &[]);
    let done = h.jira.create_issue("ENG", "Old", "", "Bug", &[]);
    h.jira.move_issue(&ready, "Ready for Agent", "Ada").unwrap();
    h.jira.move_issue(&done, "Done", "Ada").unwrap();
    let run = RunId::new(TicketKey::jira(&waiting).unwrap(), 1);
    let mut row = domain::TicketRow::default();
    row.open(
        domain::PendingRun::new(run, Job::Implement, domain::Lane::Talk),
        domain::Timestamp::default(),
    );
    let rows = h.queue.table::<domain::TicketRow>(KeyValueBucket::Tickets);
    rows.put(&format!("jira:{waiting}"), &row, None).await.unwrap();

    let (status, listed) = h.get("/v1/tickets", VIEWER).await;
    assert_eq!(status, StatusCode::OK, "{listed}");
    let of = |listed: &Value| -> Vec<(String, String, String, bool, String)> {
        let text = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let line = |line: &Value| {
            let run = text(&line["run"], "job");
            (
                text(line, "ticket"),
                text(line, "status"),
                text(line, "summary"),
                line["asks"] == true,
                run,
            )
        };
        let mut lines: Vec<_> = listed["tickets"].as_array().unwrap().iter().map(line).collect();
        lines.sort();
        lines
    };
    let line = |ticket: &str, status: &str, summary: &str, asks, run: &str| {
        (
            format!("jira:{ticket}"),
            status.to_owned(),
            summary.to_owned(),
            asks,
            run.to_owned(),
        )
    };
    let expected = [
        line(&waiting, "To Do", "Fix the cart", false, "implement"),
        line(&ready, "Ready for Agent", "Fix the tax", true, ""),
    ];
    assert_eq!(of(&listed), expected);
    let problems = listed["problems"].as_array().unwrap();
    assert!(
        problems.len() == 1 && problems[0]["repository"].to_string().contains("NOPE"),
        "{listed}"
    );

    let (_, listed) = h
        .get("/v1/tickets?status=Done&repository=acme/shop", VIEWER)
        .await;
    assert_eq!(of(&listed), [line(&done, "Done", "Old", false, "")]);
    assert_eq!(listed["problems"], json!([]));
    let (_, changed) = h.get("/v1/tickets?days=7&repository=acme/shop", VIEWER).await;
    let keys: Vec<String> = of(&changed).into_iter().map(|line| line.0).collect();
    let mut all = [&waiting, &ready, &done].map(|key| format!("jira:{key}"));
    all.sort();
    assert_eq!(keys, all, "finished ones too");
    for query in [
        "repository=acme/other",
        "status=Dnoe&repository=acme/shop",
        "days=0",
        "days=32",
        "days=7&status=Done",
    ] {
        let (status, refused) = h.get(&format!("/v1/tickets?{query}"), VIEWER).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    }
    h.stop().await;
}

#[tokio::test]
async fn ticket_text_is_sanitized_and_needs_rules() {
    let h = Harness::start(3_600).await;
    h.jira.create_project("OPS");
    let key = h.jira.create_issue(
        "ENG",
        "Fix the cart",
        "It rounds.<!-- hidden -->",
        "Bug",
        &["shop"],
    );
    h.jira.comment_as(&key, "Ada", "Mind the tax.").unwrap();
    let (status, text) = h.get(&format!("/v1/tickets/{key}/text"), VIEWER).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    assert_eq!(
        (&text["summary"], &text["status"], &text["labels"]),
        (&json!("Fix the cart"), &json!("To Do"), &json!(["shop"]))
    );
    assert!(!text["description"].to_string().contains("hidden"), "{text}");
    assert_eq!(
        (&text["comments"][0]["author"], &text["comments"][0]["text"]),
        (&json!("Ada"), &json!("Mind the tax."))
    );

    let other = h.jira.create_issue("OPS", "Secret", "", "Bug", &[]);
    let (status, refused) = h.get(&format!("/v1/tickets/{other}/text"), ADMIN).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{refused}");
    assert!(!refused.to_string().contains("Secret"), "{refused}");
    let (status, _) = h.get("/v1/tickets/ENG-404/text", VIEWER).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    h.stop().await;
}

#[tokio::test]
async fn dry_run_plans_job_without_start() {
    let h = Harness::start(3_600).await;
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    let body = json!({"ticket": key, "job": "implement", "dry_run": true});
    let (status, planned) = h.post("/v1/jobs", OPERATOR, &body, Some("k1")).await;
    assert_eq!(status, StatusCode::OK, "{planned}");
    let expected = json!({"ticket": "jira:ENG-1", "job": "implement", "repository": "acme/shop",
        "summary": "Fix the cart", "about": "ticket", "pull_request": null});
    assert_eq!(planned, expected);
    assert_eq!(h.trigger_keys(&key).await, Vec::<String>::new());
    let skipped = h.jira.create_issue("ENG", "Fix [AGENT-SKIP]", "", "Bug", &[]);
    let body = json!({"ticket": skipped, "job": "implement", "dry_run": true});
    let (status, refused) = h.post("/v1/jobs", OPERATOR, &body, None).await;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    h.stop().await;
}

#[tokio::test]
async fn mocked_job_becomes_rehearsal_only() {
    let h = Harness::start(3_600).await;
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    let body = json!({"ticket": key, "job": "implement", "mock": true});
    let (status, accepted) = h.post("/v1/jobs", OPERATOR, &body, None).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{accepted}");
    let trigger = h.trigger(&key).await;
    let asked = expect_job_request(&trigger);
    assert_eq!(
        (asked.job, asked.text.summary.as_str()),
        (Job::Rehearse, "Fix the cart")
    );
    assert_eq!(
        asked.about.rehearsal().map(|rehearsal| rehearsal.job),
        Some(Job::Implement)
    );

    h.keep(&build_branch_record(
        &format!("jira:{key}"),
        "feat/ENG-1-cart",
        Some(7),
    ))
    .await;
    h.github.open(7, "feat/ENG-1-cart", "Cart", SHA);
    h.github.check(1, "test", "failure");
    let body = json!({"ticket": "github:acme/shop#7", "job": "fix_ci"});
    let (status, refused) = h.post("/v1/jobs", OPERATOR, &body, None).await;
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    assert!(
        refused["detail"].to_string().contains("is not kept any more"),
        "a rehearsal asked for no work: {refused}"
    );
    let skipped = h.jira.create_issue("ENG", "Fix [AGENT-SKIP]", "", "Bug", &[]);
    let body = json!({"ticket": skipped, "job": "implement", "mock": true});
    assert_eq!(
        h.post("/v1/jobs", OPERATOR, &body, None).await.0,
        StatusCode::CONFLICT
    );
    let body = json!({"ticket": key, "job": "rehearse"});
    assert_eq!(
        h.post("/v1/jobs", OPERATOR, &body, None).await.0,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    h.stop().await;
}

#[tokio::test]
async fn every_dispatchable_job_reads_its_source() {
    let h = Harness::start(3_600).await;
    h.first_poll().await;
    let key = h
        .jira
        .create_issue("ENG", "Fix the cart", "It rounds", "Bug", &[]);
    let context =
        json!({"instructions": "Half up.", "issue_title": "Believe me", "trigger_type": "assigned"});
    let body = json!({"ticket": key, "job": "implement", "context": context});
    assert_eq!(
        h.post("/v1/jobs", OPERATOR, &body, None).await.0,
        StatusCode::ACCEPTED
    );
    let work = h.trigger(&key).await;
    assert_eq!(expect_job_request(&work).text.summary, "Fix the cart");
    let said = expect_job_request(&work).text.comments.last().expect("words");
    assert_eq!((said.author.as_str(), said.text.as_str()), ("olga", "Half up."));

    h.keep(&build_branch_record(
        &format!("jira:{key}"),
        "feat/ENG-1-cart",
        Some(7),
    ))
    .await;
    h.github.open(7, "feat/ENG-1-cart", "Cart", SHA);
    h.github.check(1, "test", "failure");
    let body = json!({"ticket": "github:acme/shop#7", "job": "fix_ci", "context": {"pr_number": "7"}});
    let first = h.post("/v1/jobs", OPERATOR, &body, Some("k7")).await;
    assert_eq!(
        (first.0, &first.1["ticket"]),
        (StatusCode::ACCEPTED, &json!("jira:ENG-1")),
        "{}",
        first.1
    );
    assert_eq!(h.post("/v1/jobs", OPERATOR, &body, Some("k7")).await, first);
    let body = json!({"ticket": key, "job": "answer", "context": {"question": "Why 5 %?"}});
    assert_eq!(
        h.post("/v1/jobs", OPERATOR, &body, None).await.0,
        StatusCode::ACCEPTED
    );
    let body = json!({"ticket": "github:acme/shop#7", "job": "address_review", "context": {"feedback": "Use cents."}});
    assert_eq!(
        h.post("/v1/jobs", OPERATOR, &body, None).await.0,
        StatusCode::ACCEPTED
    );
    let jobs: Vec<_> = h
        .triggers_when(&key, 4)
        .await
        .iter()
        .map(|trigger| expect_job_request(trigger).job)
        .collect();
    assert_eq!(
        jobs,
        [Job::Implement, Job::FixCi, Job::Answer, Job::AddressReview]
    );
    h.stop().await;
}

#[tokio::test]
async fn impossible_dispatch_is_refused_with_reason() {
    let h = Harness::start(3_600).await;
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    h.keep(&build_branch_record("jira:ENG-9", "feat/ENG-9-cart", Some(7)))
        .await;
    let ours = "github:acme/shop#7";
    for (ticket, rest, status, why) in [
        (
            key.as_str(),
            json!({"job": "finish"}),
            422,
            "follows from checks, pushes, merges or time",
        ),
        (&key, json!({"job": "answer"}), 422, "needs context.question"),
        (
            &key,
            json!({"job": "implement", "context": {"quesiton": "x"}}),
            422,
            "unknown field",
        ),
        (
            &key,
            json!({"job": "implement", "context": {"issue_number": 5}}),
            422,
            "the ticket is jira:ENG-1",
        ),
        (
            ours,
            json!({"job": "fix_ci", "context": {"pr_number": "8"}}),
            422,
            "context.pr_number is 8",
        ),
        (
            ours,
            json!({"job": "implement"}),
            409,
            "is our own pull request, of jira:ENG-9",
        ),
        (&key, json!({"job": "fix_ci"}), 409, "no such open pull request"),
        (&key, json!({"job": "triage"}), 409, "triage.labels"),
        (&key, json!({"job": "review"}), 409, "github:OWNER/NAME#NUMBER"),
        (
            &key,
            json!({"job": "triage", "repository": "acme/shop"}),
            422,
            "implement alone",
        ),
        (&key, json!({"job": "implement", "context": "x"}), 400, "context"),
    ] {
        let mut body = rest;
        body["ticket"] = json!(ticket);
        let (found, refused) = h.post("/v1/jobs", OPERATOR, &body, None).await;
        assert_eq!(found.as_u16(), status, "{body} {refused}");
        assert!(refused["detail"].to_string().contains(why), "{body} {refused}");
    }
    assert_eq!(h.trigger_keys(&key).await, Vec::<String>::new());
    h.stop().await;
}

#[tokio::test]
async fn event_stream_resumes_and_ends_with_run() {
    let h = Harness::start(3_600).await;
    let run: RunId = "jira:ENG-1@5".parse().expect("run");
    let journal = h.queue.journal();
    let facts = [
        Fact::RunStarted {
            trigger: Box::new(harness::merge_trigger()),
        },
        Fact::Parked {
            waits_for: WaitCondition::Report,
        },
    ];
    let mut last = 0;
    for (position, fact) in facts.into_iter().enumerate() {
        last = journal
            .append(&run, last, &build_entry(position as u64, fact))
            .await
            .expect("append");
    }
    let request = h
        .http
        .get(h.url("/v1/runs/jira:ENG-1%405/events?output=true"))
        .bearer_auth(VIEWER)
        .header("last-event-id", "0");
    let answer = request.send().await.expect("answer");
    assert_eq!(answer.status(), StatusCode::OK);
    let mut stream = answer.bytes_stream();
    let first = stream.next().await.expect("first").expect("bytes");
    assert!(String::from_utf8_lossy(&first).contains("parked"));
    let output = domain::LiveOutput {
        call: run.call(1),
        text: "tests run\n".to_owned(),
    };
    h.queue.live().publish(&run, &output).await.expect("publish");
    let delivered = stream.next().await.expect("output").expect("bytes");
    assert!(
        String::from_utf8_lossy(&delivered).contains(r#"data: {"call":"#),
        "{delivered:?}"
    );
    assert!(
        String::from_utf8_lossy(&delivered).starts_with("event: output"),
        "{delivered:?}"
    );
    let over = build_entry(
        2,
        Fact::RunFinished {
            reason: StopReason::Completed,
        },
    );
    journal.append(&run, last, &over).await.expect("append");
    let rest = async {
        let mut text = String::from_utf8_lossy(&first).into_owned();
        while let Some(chunk) = stream.next().await {
            text.push_str(&String::from_utf8_lossy(&chunk.expect("bytes")));
        }
        text
    };
    let text = tokio::time::timeout(DEADLINE, rest)
        .await
        .expect("the stream ends");
    let ids: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .collect();
    assert_eq!(ids, ["1", "2"], "{text}");

    let (status, entries) = h.get("/v1/runs/jira:ENG-1%405/journal?from=1", VIEWER).await;
    assert_eq!(
        (status, entries.as_array().map(Vec::len)),
        (StatusCode::OK, Some(2))
    );
    let (status, timeline) = h
        .get("/v1/runs/jira:ENG-1%405/timeline?from=2&limit=1", VIEWER)
        .await;
    assert_eq!(status, StatusCode::OK, "{timeline}");
    assert_eq!(
        (&timeline["version"], timeline["entries"].as_array().map(Vec::len)),
        (&json!(1), Some(1))
    );
    let last = &timeline["entries"][0];
    assert_eq!(
        (&last["position"], &last["who"], &last["fact"], &last["head"]),
        (
            &json!(2),
            &json!("planner"),
            &json!("run_finished"),
            &json!("run finished: completed")
        )
    );
    let unknown = h.get("/v1/runs/jira:ENG-1%4099/timeline", VIEWER).await;
    assert_eq!(unknown.0, StatusCode::NOT_FOUND);
    let (status, shown) = h.get("/v1/runs/jira:ENG-1%405", VIEWER).await;
    assert_eq!((status, &shown["status"]), (StatusCode::OK, &json!("finished")));
    assert_eq!(
        h.get("/v1/runs/jira:ENG-1%4099/events", VIEWER).await.0,
        StatusCode::NOT_FOUND
    );
    h.stop().await;
}

#[tokio::test]
async fn run_list_pages_with_journal_data() {
    let h = Harness::start(3_600).await;
    let mut asked = Vec::new();
    for name in ["One", "Two", "Three"] {
        let key = h.jira.create_issue("ENG", name, "", "Bug", &[]);
        let body = json!({"ticket": key, "job": "implement"});
        let (status, answer) = h.post("/v1/jobs", OPERATOR, &body, None).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        asked.push(answer["run"].as_str().expect("run").to_owned());
    }
    let list = async |query: &str| {
        let (status, runs) = h.get(&format!("/v1/runs?{query}"), VIEWER).await;
        assert_eq!(status, StatusCode::OK, "{runs}");
        let runs: Vec<api::types::RunView> = serde_json::from_value(runs).expect("runs");
        runs
    };
    let ids = |runs: &[api::types::RunView]| Vec::from_iter(runs.iter().map(|run| run.id.clone()));
    let (work, start) = (asked[1].parse::<RunId>().expect("run"), harness::merge_trigger());
    let fact = Fact::RunStarted {
        trigger: Box::new(start),
    };
    let journal = h.queue.journal();
    journal
        .append(&work, 0, &build_entry(0, fact))
        .await
        .expect("append");
    // Only a planner writes rows, and this test runs none.
    let mut row = domain::TicketRow::default();
    row.open(
        domain::PendingRun::new(work.clone(), Job::Implement, domain::Lane::Talk),
        domain::Timestamp::default(),
    );
    let rows = h.queue.table::<domain::TicketRow>(KeyValueBucket::Tickets);
    rows.put(&work.ticket().to_string(), &row, None)
        .await
        .expect("row");
    testkit::poll_until("the record of the run", DEADLINE, async || {
        let runs = list("limit=2").await;
        let is_delivered = runs.iter().any(|run| run.overview.is_some());
        (ids(&runs) == [asked[1].clone()] && is_delivered).then_some(runs)
    })
    .await
    .expect("a record");
    let [run] = list("job=implement").await.try_into().expect("one run");
    assert_eq!(run.overview.map(|overview| overview.entries), Some(1));
    assert!(list("status=finished").await.is_empty());
    assert_eq!(ids(&list("search=ENG-2").await), [asked[1].clone()]);
    assert!(list("search=eng-2+elsewhere").await.is_empty());
    let (status, tickets) = h.get("/v1/ticket-summaries?standing=working", VIEWER).await;
    assert_eq!(
        (status, tickets.as_array().map(Vec::len)),
        (StatusCode::OK, Some(1))
    );
    assert_eq!(
        (&tickets[0]["ticket"], &tickets[0]["last_run"]["id"]),
        (&json!(work.ticket().to_string()), &json!(asked[1]))
    );
    let (status, results) = h.get("/v1/activity?days=2", VIEWER).await;
    assert_eq!(
        (status, results["days"].as_array().map(Vec::len)),
        (StatusCode::OK, Some(2))
    );
    assert_eq!(
        h.get("/v1/activity?days=0", VIEWER).await.0,
        StatusCode::BAD_REQUEST
    );
    let (_, caller) = h.get("/v1/me", VIEWER).await;
    assert_eq!(caller["role"], "viewer");
    assert!(
        list(&format!("before={}", asked[1].replace('@', "%40")))
            .await
            .is_empty()
    );
    assert_eq!(
        ids(&list(&format!("before={}", asked[2].replace('@', "%40"))).await),
        [asked[1].clone()]
    );
    for wrong in ["before=57", "status=odd", "page=2"] {
        let (status, problem) = h.get(&format!("/v1/runs?{wrong}"), VIEWER).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}: {problem}");
    }
    h.stop().await;
}

#[tokio::test]
async fn decision_is_accepted_once_while_waiting() {
    let h = Harness::start(3_600).await;
    let run: RunId = "jira:ENG-1@5".parse().expect("run");
    let journal = h.queue.journal();
    let start = build_entry(
        0,
        Fact::RunStarted {
            trigger: Box::new(harness::merge_trigger()),
        },
    );
    let last = journal.append(&run, 0, &start).await.expect("append");
    let (asked, other) = ("a".repeat(40), "b".repeat(40));
    let approve = json!({"verdict": "approve", "head": &asked[..12]});
    let path = "/v1/runs/jira:ENG-1%405/decision";
    assert_eq!(
        h.post(path, OPERATOR, &approve, None).await.0,
        StatusCode::CONFLICT
    );
    let diff = "/v1/runs/jira:ENG-1%405/diff";
    assert_eq!(h.get(diff, VIEWER).await.0, StatusCode::NOT_FOUND);
    let text = "diff --git a/cart.py b/cart.py\n+total = 2\n";
    let object = h.queue.objects().put(text.into()).await.expect("object");
    let push = push_of(&other, &asked, &object);
    let id = domain::OutboundId::from(run.call(1));
    let question = build_entry(
        1,
        Fact::ReportRequested {
            id: id.clone(),
            request: domain::OutboundAction::DecisionNeeded(domain::PushProposal {
                push,
                description: None,
            }),
            answers: None,
        },
    );
    let last = journal.append(&run, last, &question).await.expect("append");
    let receipt = domain::OutboundReceipt::DecisionAsked {
        head: asked.parse().expect("commit"),
        diff: object,
    };
    let outcome = domain::OutboundOutcome::Done(receipt);
    let settled = settled_by_reporter(&run, &id, outcome.clone());
    let shown = build_entry(2, Fact::ReportSettled { id, outcome });
    let last = journal.append(&run, last, &shown).await.expect("append");
    h.queue.triggers().append(&settled).await.expect("append");
    assert_eq!(h.text(diff, VIEWER).await, (StatusCode::OK, text.to_owned()));
    // The run has asked and does not wait yet. The decision is early, not superfluous.
    let (status, early) = h.post(path, OPERATOR, &approve, None).await;
    assert_eq!(status, StatusCode::CONFLICT, "{early}");
    assert!(early["detail"].to_string().contains("try again"), "{early}");
    let gate = build_entry(
        3,
        Fact::Parked {
            waits_for: WaitCondition::Decision,
        },
    );
    journal.append(&run, last, &gate).await.expect("append");
    assert_eq!(
        h.post(path, OPERATOR, &json!({"verdict": "perhaps"}), None)
            .await
            .0,
        StatusCode::BAD_REQUEST
    );
    for (head, refused) in [
        (Value::Null, StatusCode::BAD_REQUEST),
        (json!(""), StatusCode::UNPROCESSABLE_ENTITY),
        (json!("aaaaaaaaaaa"), StatusCode::UNPROCESSABLE_ENTITY),
        (json!(other), StatusCode::CONFLICT),
    ] {
        let body = json!({"verdict": "approve", "head": head});
        assert_eq!(h.post(path, OPERATOR, &body, None).await.0, refused, "{body}");
    }
    assert_eq!(
        h.post(path, OPERATOR, &approve, None).await.0,
        StatusCode::ACCEPTED
    );
    assert_eq!(
        h.post(path, OPERATOR, &approve, None).await.0,
        StatusCode::CONFLICT
    );
    assert!(
        matches!(&h.triggers_when("ENG-1", 2).await[1].reason, TriggerReason::Decided(decision)
        if decision.run == run && decision.head.as_str() == asked)
    );
    let stop = h
        .post("/v1/runs/jira:ENG-1%405/stop", OPERATOR, &Value::Null, None)
        .await;
    assert_eq!(stop.0, StatusCode::ACCEPTED, "{}", stop.1);
    let all = h
        .post("/v1/tickets/ENG-1/stop", OPERATOR, &Value::Null, None)
        .await;
    assert_eq!(all.0, StatusCode::ACCEPTED, "{}", all.1);
    assert_eq!(
        h.triggers(&TicketKey::jira("ENG-1").expect("key").short())
            .await
            .len(),
        4
    );
    h.stop().await;
}

fn settled_by_reporter(
    run: &RunId,
    report: &domain::OutboundId,
    outcome: domain::OutboundOutcome,
) -> domain::Trigger {
    domain::Trigger {
        ticket: run.ticket().clone(),
        key: TriggerKey::new(format!("settled:{report}")),
        at: domain::Timestamp::default(),
        source: domain::TriggerChannel::Reporter,
        actor: None,
        seen: None,
        reason: TriggerReason::ReportSettled(domain::OutboundSettled {
            report: report.clone(),
            run: run.clone(),
            outcome,
        }),
    }
}

/// A planner that writes false entries into its journal: users would see one commit and approve
/// another.
#[tokio::test]
async fn decision_requires_shown_commit() {
    let h = Harness::start(3_600).await;
    let ticket = TicketKey::jira("ENG-1").expect("key");
    let run = RunId::new(ticket.clone(), 5);
    let mut row = domain::TicketRow::default();
    row.open(
        domain::PendingRun::new(run.clone(), Job::Implement, domain::Lane::Upkeep),
        domain::Timestamp::default(),
    );
    let rows = h.queue.table::<domain::TicketRow>(KeyValueBucket::Tickets);
    rows.put(&ticket.to_string(), &row, None).await.expect("row");
    let (asked, shown) = ("a".repeat(40), "b".repeat(40));
    let object = h.queue.objects().put("diff".into()).await.expect("object");
    let push = push_of(&shown, &asked, &object);
    let receipt = |head: &str| {
        domain::OutboundOutcome::Done(domain::OutboundReceipt::DecisionAsked {
            head: head.parse().expect("commit"),
            diff: object.clone(),
        })
    };
    let id = domain::OutboundId::from(run.call(1));
    let facts = [
        Fact::RunStarted {
            trigger: Box::new(harness::merge_trigger()),
        },
        Fact::ReportRequested {
            id: id.clone(),
            request: domain::OutboundAction::DecisionNeeded(domain::PushProposal {
                push,
                description: None,
            }),
            answers: None,
        },
        Fact::ReportSettled {
            id: id.clone(),
            outcome: receipt(&asked),
        },
        Fact::Parked {
            waits_for: WaitCondition::Decision,
        },
    ];
    let mut last = 0;
    for (position, fact) in (0..).zip(facts) {
        let entry = build_entry(position, fact);
        last = h
            .queue
            .journal()
            .append(&run, last, &entry)
            .await
            .expect("append");
    }
    let diff = "/v1/runs/jira:ENG-1%405/diff";
    assert_eq!(
        h.get(diff, VIEWER).await.0,
        StatusCode::NOT_FOUND,
        "the journal's word alone shows nothing"
    );
    let path = "/v1/runs/jira:ENG-1%405/decision";
    let approve = |head: &str| json!({"verdict": "approve", "head": head});
    assert_eq!(
        h.post(path, OPERATOR, &approve(&asked), None).await.0,
        StatusCode::CONFLICT,
        "nobody showed it"
    );
    let settled = settled_by_reporter(&run, &id, receipt(&shown));
    h.queue.triggers().append(&settled).await.expect("append");
    for head in [&asked, &shown] {
        let (status, said) = h.post(path, OPERATOR, &approve(head), None).await;
        assert_eq!(status, StatusCode::CONFLICT, "{said}");
    }
    assert_eq!(h.triggers("ENG-1").await.len(), 1, "nothing is decided");
    h.stop().await;
}

#[tokio::test]
async fn rules_list_shows_broken_files() {
    let h = Harness::start(3_600).await;
    let (status, rules) = h.get("/v1/rules", VIEWER).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(rules["repositories"][0]["repository"], "acme/shop");
    assert!(
        rules["problems"][0]["file"].to_string().contains("broken.yaml"),
        "{rules}"
    );
    assert!(rules["repositories"][0]["problem"].is_null(), "{rules}");
    for (repository, jira, problem) in [
        ("depot", "{project_key: NOPE}", "no project NOPE"),
        (
            "mill",
            "{project_key: OPS}\nagent: {status: Nowhere}",
            "no status \"Nowhere\"",
        ),
    ] {
        let text = format!("repo: {{owner: acme, name: {repository}}}\njira: {jira}\n");
        h.add_rules(repository, &text).await;
        let (_, rules) = h.get("/v1/rules", VIEWER).await;
        let name = format!("acme/{repository}");
        let mut shown = rules["repositories"].as_array().expect("repositories").iter();
        let shown = shown
            .find(|shown| shown["repository"] == *name)
            .expect("repository");
        let delivered = shown["problem"].as_str().unwrap_or_default();
        assert!(delivered.contains(problem), "{rules}");
    }
    h.stop().await;
}

#[test]
fn cli_parses_every_journal_entry() {
    let text = serde_json::to_string(&build_entry(
        0,
        Fact::Parked {
            waits_for: WaitCondition::Report,
        },
    ))
    .expect("json");
    assert!(serde_json::from_str::<JournalEntry>(&text).is_ok());
}

fn is_stop(trigger: &Trigger) -> bool {
    matches!(trigger.reason, TriggerReason::StopRequested { run: None })
}

#[tokio::test]
async fn jira_stop_needs_group_membership() {
    let h = Harness::start(3_600).await;
    h.listen_to_jira();
    h.jira.set_groups("Ada", &["staff", "agents"]);
    h.jira.set_groups("Bob", &["staff"]);
    let key = h
        .jira
        .create_issue("ENG", "Fix the cart", "It rounds", "Bug", &[]);
    h.jira.comment_as(&key, "Bob", "/stop").unwrap();
    h.jira.comment_as(&key, "Ada", "please do not /stop").unwrap();
    let id = h.jira.comment_as(&key, "Ada", "/stop").unwrap();
    let trigger = h.trigger(&key).await;
    assert!(is_stop(&trigger), "{trigger:?}");
    assert_eq!(trigger.key, TriggerKey::new(format!("comment:{id}")));
    assert_eq!(trigger.actor.as_deref(), Some("Ada"));
    h.stop().await;
}

#[tokio::test]
async fn github_stop_needs_write_permission() {
    let h = Harness::start(3_600).await;
    h.keep(&build_branch_record("jira:ENG-1", "feat/ENG-1-cart", Some(7)))
        .await;
    for (id, login) in [(1, "eve"), (2, "mia")] {
        let status = h
            .github_event("issue_comment", &format!("d{id}"), &build_stop_payload(id, login))
            .await;
        assert_eq!(status, StatusCode::ACCEPTED);
    }
    let trigger = h.trigger("ENG-1").await;
    assert!(is_stop(&trigger), "{trigger:?}");
    assert_eq!(trigger.key, TriggerKey::new("comment:2"));
    h.stop().await;
}

/// The triggers of a run that waits for a month have aged out. Its row stays.
#[tokio::test]
async fn ticket_stop_needs_row_or_trigger() {
    let h = Harness::start(3_600).await;
    let (stop, dry) = ("/v1/tickets/ENG-7/stop", "/v1/tickets/ENG-7/stop?dry_run=true");
    for path in [stop, dry] {
        let (status, _) = h.post(path, OPERATOR, &Value::Null, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    let run: RunId = "jira:ENG-7@5".parse().expect("run");
    let mut row = domain::TicketRow::default();
    row.open(
        domain::PendingRun::new(run.clone(), Job::Implement, domain::Lane::Talk),
        domain::Timestamp::default(),
    );
    row.open(
        domain::PendingRun::new(
            RunId::new(run.ticket().clone(), 6),
            Job::Finish,
            domain::Lane::Upkeep,
        ),
        domain::Timestamp::default(),
    );
    let rows = h.queue.table::<domain::TicketRow>(KeyValueBucket::Tickets);
    rows.put(&run.ticket().to_string(), &row, None)
        .await
        .expect("row");
    let (status, effects) = h.post(dry, OPERATOR, &Value::Null, None).await;
    assert_eq!(status, StatusCode::OK, "{effects}");
    let expected = json!({"would": ["stop run jira:ENG-7@5 (implement)"]});
    assert_eq!(effects, expected, "maintenance must complete");
    let (status, accepted) = h.post(stop, OPERATOR, &Value::Null, None).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{accepted}");
    assert!(is_stop(&h.trigger("ENG-7").await));
    h.stop().await;
}

#[tokio::test]
async fn retry_restarts_only_failed_job() {
    let h = Harness::start(3_600).await;
    let key = h
        .jira
        .create_issue("ENG", "Fix the cart", "It rounds", "Bug", &[]);
    let path = format!("/v1/tickets/{key}/retry");
    let (status, _) = h.post(&path, OPERATOR, &json!({}), None).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let ticket = TicketKey::jira(&key).unwrap();
    let run = RunId::new(ticket.clone(), 1);
    let mut row = domain::TicketRow::default();
    row.open(
        domain::PendingRun::new(run.clone(), Job::Implement, domain::Lane::Talk),
        domain::Timestamp::default(),
    );
    row.finish(
        &run,
        StopReason::TurnLimit { turns: 50 },
        domain::Timestamp::default(),
    );
    let rows = h.queue.table::<domain::TicketRow>(KeyValueBucket::Tickets);
    let revision = rows.put(&ticket.to_string(), &row, None).await.unwrap();
    let (status, _) = h.post(&path, OPERATOR, &json!({}), None).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    assert_eq!(expect_job_request(&h.trigger(&key).await).job, Job::Implement);
    row.quarantined = Some("stuck".to_owned());
    rows.put(&ticket.to_string(), &row, Some(revision)).await.unwrap();
    let (status, _) = h.post(&path, OPERATOR, &json!({}), None).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let triggers = h.triggers_when(&key, 2).await;
    assert_eq!(triggers[1].reason, TriggerReason::RetryRequested);
    h.stop().await;
}

#[tokio::test]
async fn dead_delivery_is_shown_retried_deleted() {
    let h = Harness::start(3_600).await;
    h.listen_to_jira();
    let key = h.jira.create_issue("OPS", "Nobody minds me", "", "Bug", &[]);
    h.jira.move_issue(&key, "Ready for Agent", "Ada").unwrap();
    let letter = h.dead(1).await.swap_remove(0);
    let path = format!("/v1/dead/{}", letter["sequence"]);
    let (status, shown) = h.get(&path, OPERATOR).await;
    assert_eq!(status, StatusCode::OK);
    assert!(shown["body"].as_str().unwrap().contains(&key), "{shown}");
    assert_eq!(h.get(&path, VIEWER).await.0, StatusCode::FORBIDDEN);
    let look = format!("{path}/retry?dry_run=true");
    let (status, delivered) = h.post(&look, OPERATOR, &json!({}), None).await;
    let again = format!("hand over the delivery {} again", letter["id"].as_str().unwrap());
    let forgotten = format!("forget dead letter {}", letter["sequence"]);
    assert_eq!(
        (status, delivered),
        (StatusCode::OK, json!({ "would": [again, forgotten] }))
    );
    assert_eq!(
        h.post(&look, VIEWER, &json!({}), None).await.0,
        StatusCode::FORBIDDEN,
        "a dry run needs the same permission"
    );
    assert_eq!(
        h.delete(&format!("{path}?dry_run=true"), OPERATOR).await,
        StatusCode::OK
    );
    let unknown = h.delete(&format!("{path}?dry=true"), OPERATOR).await;
    assert_eq!(
        unknown,
        StatusCode::BAD_REQUEST,
        "an unknown parameter changes nothing"
    );
    assert_eq!(h.get(&path, OPERATOR).await.1, shown, "it is still there");
    let (status, _) = h.post(&format!("{path}/retry"), OPERATOR, &json!({}), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    // There are still no rules for the project, so it is dead-lettered again under a new number.
    let again = async || {
        let (_, letters) = h.get("/v1/dead", VIEWER).await;
        let found = letters.as_array()?.first()?.clone();
        (found["sequence"] != letter["sequence"]).then_some(found)
    };
    let again = testkit::poll_until("a second death", DEADLINE, again)
        .await
        .unwrap();
    assert_eq!(again["id"], letter["id"]);
    let path = format!("/v1/dead/{}", again["sequence"]);
    assert_eq!(h.delete(&path, OPERATOR).await, StatusCode::NO_CONTENT);
    assert_eq!(h.delete(&path, OPERATOR).await, StatusCode::NOT_FOUND);
    h.stop().await;
}

#[tokio::test]
async fn only_an_admin_stops_every_planner() {
    let h = Harness::start(3_600).await;
    let (status, _) = h.post("/v1/stop-all", OPERATOR, &json!({}), None).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    let (status, on) = h.post("/v1/stop-all", ADMIN, &json!({}), None).await;
    assert_eq!(
        (status, &on["on"], &on["by"]),
        (StatusCode::OK, &json!(true), &json!("root"))
    );
    assert_eq!(h.get("/v1/stop-all", VIEWER).await.1, on);
    assert_eq!(h.delete("/v1/stop-all?dry_run=true", ADMIN).await, StatusCode::OK);
    assert_eq!(h.get("/v1/stop-all", VIEWER).await.1, on);
    assert_eq!(h.delete("/v1/stop-all", ADMIN).await, StatusCode::OK);
    assert_eq!(h.get("/v1/stop-all", VIEWER).await.1["on"], json!(false));
    let body = json!({});
    let stop = || h.post("/v1/stop-all", ADMIN, &body, None);
    let (first, second, third) = tokio::join!(stop(), stop(), stop());
    assert_eq!(first.0, StatusCode::OK, "{}", first.1);
    assert_eq!((&second, &third), (&first, &first), "all get the same record");
    assert_eq!(h.delete("/v1/stop-all", ADMIN).await, StatusCode::OK);
    let (_, would) = h.post("/v1/stop-all?dry_run=true", ADMIN, &json!({}), None).await;
    assert_eq!(would, json!({"would": ["stop every planner"]}));
    assert_eq!(h.get("/v1/stop-all", VIEWER).await.1["on"], json!(false));
    h.stop().await;
}

#[tokio::test]
async fn unreadable_stop_record_can_be_removed() {
    let h = Harness::start(3_600).await;
    let control = h.queue.table::<domain::AnyRecord>(KeyValueBucket::Control);
    let unreadable = domain::AnyRecord::default();
    let stored = control.put(domain::StopAll::KEY, &unreadable, None).await;
    stored.expect("record");
    let (status, _) = h.get("/v1/stop-all", VIEWER).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    for _ in 0..2 {
        assert_eq!(h.delete("/v1/stop-all", ADMIN).await, StatusCode::OK);
        assert_eq!(h.get("/v1/stop-all", VIEWER).await.1["on"], json!(false));
    }
    h.stop().await;
}

#[tokio::test]
async fn sweeper_wakes_ticket_with_lost_token() {
    let h = Harness::start(3_600).await;
    h.queue
        .triggers()
        .append(&harness::merge_trigger())
        .await
        .unwrap();
    let mut tokens = h
        .queue
        .triggers()
        .tokens(tokio_util::sync::CancellationToken::new())
        .await
        .unwrap();
    for _ in 0..2 {
        // A planner that acks a token without handling its trigger loses the wake-up.
        let token = tokio::time::timeout(DEADLINE, tokens.next()).await.unwrap();
        token.unwrap().finish().await.unwrap();
    }
    h.stop().await;
}

#[tokio::test]
async fn sweeper_wakes_report_until_settled() {
    let h = Harness::start(3_600).await;
    let ticket = TicketKey::jira("ENG-1").unwrap();
    let report = domain::OutboundRequest {
        id: domain::OutboundId::notice(&ticket, 1),
        ticket: ticket.clone(),
        run: None,
        fence: domain::RunFence::default(),
        at: domain::Timestamp::default(),
        progress: None,
        request: domain::OutboundAction::WorkStarted(report::WorkStarted {
            job: Job::Implement,
            repository: "acme/shop".parse().unwrap(),
            begun: report::WorkOrigin::default(),
        }),
    };
    // No process runs the reports' waker here, so every token comes from the sweeper.
    h.queue.reports().append(&report).await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let mut tokens = h.queue.reports().tokens(stop).await.unwrap();
    for _ in 0..2 {
        let token = tokio::time::timeout(DEADLINE, tokens.next()).await;
        let token = token.unwrap().unwrap();
        assert_eq!(token.ticket(), &ticket);
        token.finish().await.unwrap();
    }
    let cursor = domain::OutboundCursor {
        sequence: 1,
        ..domain::OutboundCursor::default()
    };
    let cursors = h.queue.table(KeyValueBucket::Effects);
    cursors
        .put(queue::RecordKey::cursor(&ticket), &cursor, None)
        .await
        .unwrap();
    // One token may be in transit. After it no other token of this ticket arrives, while those of
    // other tickets do.
    let other = TicketKey::jira("ENG-2").unwrap();
    let id = domain::OutboundId::notice(&other, 1);
    h.queue
        .reports()
        .append(&domain::OutboundRequest {
            id,
            ticket: other.clone(),
            ..report
        })
        .await
        .unwrap();
    let mut mine = 0;
    for _ in 0..4 {
        let token = tokio::time::timeout(DEADLINE, tokens.next()).await;
        let token = token.unwrap().unwrap();
        mine += usize::from(token.ticket() == &ticket);
        token.finish().await.unwrap();
    }
    assert!(mine <= 1, "{mine}");
    h.stop().await;
}

#[tokio::test]
async fn ticket_is_triaged_until_labeled() {
    let h = Harness::start(3_600).await;
    let rules =
        "repo:\n  owner: acme\n  name: docs\njira:\n  project_key: DOC\ntriage:\n  labels: [bug, docs]\n";
    h.add_rules("docs", rules).await;
    h.listen_to_jira();
    let key = h.jira.create_issue("DOC", "Typo", "On page one", "Bug", &[]);
    let trigger = h.trigger(&key).await;
    assert_eq!(
        (expect_job_request(&trigger).job, trigger.key.as_str()),
        (Job::Triage, "triage:created")
    );
    assert_eq!(expect_job_request(&trigger).text.summary, "Typo");
    h.jira.create_issue("DOC", "Known", "", "Bug", &["triaged"]);
    h.jira.create_issue("ENG", "Not sorted here", "", "Bug", &[]);
    let moved = h.jira.move_issue("ENG-1", "Ready for Agent", "Ada").unwrap();
    assert_eq!(
        h.trigger("ENG-1").await.key,
        TriggerKey::new(format!("changelog:{moved}"))
    );
    assert!(h.triggers("DOC-2").await.is_empty());
    h.stop().await;
}

#[tokio::test]
async fn purged_ticket_leaves_no_records() {
    let h = Harness::start(3_600).await;
    let ticket = TicketKey::jira("ENG-1").unwrap();
    let run = RunId::new(ticket.clone(), 1);
    let mut row = domain::TicketRow::default();
    row.open(
        domain::PendingRun::new(run.clone(), Job::Finish, domain::Lane::Upkeep),
        domain::Timestamp::default(),
    );
    let rows = h.queue.table::<domain::TicketRow>(KeyValueBucket::Tickets);
    let revision = rows.put(&ticket.to_string(), &row, None).await.unwrap();
    let merged = harness::merge_trigger();
    let started = build_entry(
        0,
        Fact::RunStarted {
            trigger: Box::new(merged.clone()),
        },
    );
    h.queue.journal().append(&run, 0, &started).await.unwrap();
    h.queue.triggers().append(&merged).await.unwrap();
    let effects = h.queue.table::<domain::AnyRecord>(KeyValueBucket::Effects);
    let other = queue::RecordKey::board(&TicketKey::jira("ENG-11").unwrap());
    let report = run.call(2).into();
    for key in [
        queue::RecordKey::effect(&ticket, run.call(2).as_str(), "comment"),
        queue::RecordKey::outcome(&ticket, &report),
        queue::RecordKey::board(&ticket),
        other.clone(),
    ] {
        effects
            .put(key, &domain::AnyRecord::default(), None)
            .await
            .unwrap();
    }
    let ours = build_branch_record("jira:ENG-1", "feat/ENG-1-cart", Some(7));
    let branches = h.queue.branches();
    branches.put(&ours, None).await.unwrap();
    let path = "/v1/tickets/ENG-1";
    assert_eq!(h.delete(path, OPERATOR).await, StatusCode::FORBIDDEN);
    assert_eq!(h.delete(path, ADMIN).await, StatusCode::CONFLICT);
    row.finish(&run, StopReason::Completed, domain::Timestamp::default());
    rows.put(&ticket.to_string(), &row, Some(revision)).await.unwrap();
    let known = h.get(path, VIEWER).await;
    assert_eq!(
        h.delete(&format!("{path}?dry_run=true"), ADMIN).await,
        StatusCode::OK
    );
    assert_eq!(h.get(path, VIEWER).await, known);
    assert_eq!(h.triggers("ENG-1").await.len(), 1);
    assert_eq!(h.delete(path, ADMIN).await, StatusCode::NO_CONTENT);
    assert_eq!(h.get(path, VIEWER).await.0, StatusCode::NOT_FOUND);
    assert!(h.queue.journal().read(&run).await.unwrap().is_empty());
    assert!(h.triggers("ENG-1").await.is_empty());
    let left: Vec<queue::RecordKey> = effects
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        // The reporter's answer to the order stays for a week.
        .filter(|key| !key.to_string().starts_with("maintenance-order"))
        .collect();
    assert_eq!(left, [other]);
    assert!(branches.list().await.unwrap().is_empty());
    h.stop().await;
}
