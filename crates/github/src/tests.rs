//! Tests of rules that need no server.

use domain::{ChecksConclusion, RepositoryName, TicketKey, json::is_foreign_object};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    CheckConclusion, CheckStatus, CommitCheck, PullRequest, PullRequestReview, RepositoryPermission,
    ReviewVerdict, Settings, conclude_checks, is_key_mentioned,
    wire::{
        WireBranch, WireCheckRun, WireCheckRuns, WireCollaboratorPermission, WireCombinedStatus,
        WireCommitRuns, WireCommitStatus, WireComparison, WireIssueEvent, WirePullRequest, WireRepository,
        WireWorkflowRun,
    },
};

fn pull_request(title: &str, branch: &str, body: &Value) -> PullRequest {
    let sha = "a".repeat(40);
    let wire: WirePullRequest = serde_json::from_value(json!({
        "number": 7, "node_id": "PR_7", "title": title, "body": body, "state": "open",
        "head": { "ref": branch, "sha": sha, "repo": null }, "base": { "ref": "main", "sha": sha, "repo": null },
        "user": null, "html_url": "https://github.example/acme/shop/pull/7", "draft": true,
    }))
    .unwrap();
    wire.into()
}

#[test]
fn key_mention_requires_whole_word_and_case() {
    for text in [
        "ENG-1",
        "feat/ENG-1-login",
        "[ENG-1] Login",
        "fixes ENG-1.",
        "ENG-12 and ENG-1",
        "x/ENG-1_y",
    ] {
        assert!(is_key_mentioned(text, "ENG-1"), "{text}");
    }
    for text in ["ENG-12", "XENG-1", "eng-1", "X_ENG-1", "ENG-1a", "", "ÄENG-1"] {
        assert!(!is_key_mentioned(text, "ENG-1"), "{text}");
    }
    assert!(!is_key_mentioned("anything", ""));
}

#[test]
fn ticket_is_mentioned_in_title_branch_body() {
    let shop = RepositoryName::new("acme", "shop").unwrap();
    let jira = TicketKey::jira("ENG-1").unwrap();
    assert!(pull_request("ENG-1 Login", "x", &Value::Null).mentions(&shop, &jira));
    assert!(pull_request("Login", "fix/ENG-1", &Value::Null).mentions(&shop, &jira));
    assert!(pull_request("Login", "x", &json!("Closes ENG-1")).mentions(&shop, &jira));
    assert!(!pull_request("Login", "fix/ENG-12", &json!("")).mentions(&shop, &jira));
}

#[test]
fn short_issue_reference_counts_in_home_repository() {
    let shop = RepositoryName::new("acme", "shop").unwrap();
    let other = RepositoryName::new("acme", "other").unwrap();
    let ticket: TicketKey = "github:acme/shop#7".parse().unwrap();
    let short = pull_request("Login", "x", &json!("Fixes #7"));
    assert!(short.mentions(&shop, &ticket));
    assert!(!short.mentions(&other, &ticket));
    assert!(pull_request("Login", "x", &json!("Fixes acme/shop#7")).mentions(&other, &ticket));
    assert!(!pull_request("Login", "x", &json!("Fixes #70")).mentions(&shop, &ticket));
}

#[test]
fn last_judgment_of_each_person_counts() {
    use ReviewVerdict::{Approved, ChangesRequested, Commented, Dismissed};
    let mut pull = pull_request("Login", "x", &Value::Null);
    pull.author = "agent".to_owned();
    let reviews = [
        ("rita", ChangesRequested),
        ("ann", Approved),
        ("rita", Approved),
        ("rita", Commented),
        ("bo", Approved),
        ("bo", Dismissed),
        ("eve", Approved),
        ("eve", ChangesRequested),
        ("Agent", Approved),
    ];
    let reviews = reviews.map(|(author, state)| PullRequestReview {
        id: 1,
        author: author.to_owned(),
        author_id: None,
        by_bot: false,
        state,
        body: String::new(),
        at: None,
        comments: Vec::new(),
        commit: (author == "rita").then(|| pull.head.clone()),
    });
    let state = pull.summarize_reviews(&reviews);
    assert_eq!((state.approvals, state.approvals_of_head), (2, 1));
    assert_eq!(state.change_requests, ["eve"]);
}

#[test]
fn requested_team_counts_among_pending_reviews() {
    let sha = "a".repeat(40);
    let wire: WirePullRequest = serde_json::from_value(json!({
        "number": 7, "title": "Login", "state": "open", "user": null, "body": null,
        "head": { "ref": "x", "sha": sha, "repo": null },
        "base": { "ref": "main", "sha": sha, "repo": { "full_name": "acme/shop" } },
        "requested_reviewers": [{ "login": "rita" }],
        "requested_teams": [{ "id": 1, "name": "Shop Owners", "slug": "shop-owners" }],
    }))
    .unwrap();
    let state = PullRequest::from(wire).summarize_reviews(&[]);
    assert_eq!(state.requested, ["rita", "acme/shop-owners"]);
    let event = |asked: &str, of: Value| -> Option<String> {
        let wire: WireIssueEvent = serde_json::from_value(json!({
            "id": 5, "event": "review_requested", "actor": null, "created_at": "2026-11-21T10:00:00Z", asked: of,
        }))
        .unwrap();
        wire.into_request("acme").map(|request| request.reviewer)
    };
    let team = event("requested_team", json!({ "slug": "shop-owners" }));
    assert_eq!(team.as_deref(), Some("acme/shop-owners"));
    let user = event("requested_reviewer", json!({ "login": "rita" }));
    assert_eq!(user.as_deref(), Some("rita"));
}

fn check_run(status: &str, ended: &Value) -> CommitCheck {
    let wire: WireCheckRun = serde_json::from_value(json!({
        "id": 5, "name": "test", "status": status, "conclusion": ended, "completed_at": "2026-11-21T10:00:00Z",
        "html_url": "https://ci.example/5", "check_suite": { "id": 9 },
        "output": { "title": "Tests", "summary": "1 failed", "text": format!("{}end", "ä".repeat(8000)) },
    }))
    .unwrap();
    wire.into()
}

#[test]
fn check_run_keeps_output_tail() {
    let check = check_run("completed", &json!("failure"));
    assert_eq!(
        (check.id, check.suite, check.status),
        (5, 9, CheckStatus::Completed)
    );
    assert_eq!(check.conclusion, Some(CheckConclusion::Failure));
    assert!(check.output_tail.len() <= 8192 && check.output_tail.ends_with("end"));
}

#[test]
fn conclusion_requires_all_checks_completed() {
    let good = check_run("completed", &json!("success"));
    let skipped = check_run("completed", &json!("skipped"));
    let running = check_run("in_progress", &Value::Null);
    let odd = check_run("completed", &json!("a conclusion of tomorrow"));
    assert_eq!(conclude_checks(&[]), None);
    assert_eq!(conclude_checks(&[good.clone(), running]), None);
    assert_eq!(
        conclude_checks(&[good.clone(), skipped]),
        Some(ChecksConclusion::Success)
    );
    assert_eq!(conclude_checks(&[good, odd]), Some(ChecksConclusion::Failure));
}

#[test]
fn a_commit_status_is_a_check() {
    let wire: WireCommitStatus = serde_json::from_value(
        json!({ "id": 3, "context": "ci/build", "state": "error", "description": "no disk" }),
    )
    .unwrap();
    let check = CommitCheck::from(wire);
    assert_eq!(
        (check.name.as_str(), check.conclusion),
        ("ci/build", Some(CheckConclusion::Failure))
    );
    let pending: WireCommitStatus =
        serde_json::from_value(json!({ "id": 3, "context": "ci/build", "state": "pending" })).unwrap();
    assert_eq!(CommitCheck::from(pending).conclusion, None);
}

#[test]
fn a_deleted_author_is_a_ghost() {
    assert_eq!(pull_request("t", "b", &Value::Null).author, "ghost");
}

#[test]
fn permissions_are_ordered() {
    let permission = |text: &str| {
        let answer = json!({ "permission": text, "user": {"login": "mia", "id": 5} });
        serde_json::from_value::<WireCollaboratorPermission>(answer)
            .unwrap()
            .of(5)
    };
    assert!(permission("maintain") >= RepositoryPermission::Write);
    assert!(permission("triage") < RepositoryPermission::Write);
    assert_eq!(permission("none"), RepositoryPermission::None);
}

#[test]
fn permission_of_other_account_is_none() {
    for user in [
        json!({"login": "mia", "id": 6}),
        json!({"login": "mia"}),
        Value::Null,
    ] {
        let answer = json!({"permission": "admin", "user": user});
        let found: WireCollaboratorPermission = serde_json::from_value(answer).unwrap();
        assert_eq!(found.of(5), RepositoryPermission::None, "{user}");
    }
    let answer = json!({"permission": "admin", "user": {"login": "mia-renamed", "id": 5}});
    let found: WireCollaboratorPermission = serde_json::from_value(answer).unwrap();
    assert_eq!(found.of(5), RepositoryPermission::Admin);
}

#[test]
fn foreign_json_is_no_empty_answer() {
    fn is_refused_as_foreign<T: DeserializeOwned>(body: &str) -> bool {
        serde_json::from_str::<T>(body).is_err() && is_foreign_object::<T>(body.as_bytes())
    }
    for body in ["{}", r#"{"message":"Service Unavailable"}"#] {
        for (what, is_refused) in [
            ("branch", is_refused_as_foreign::<WireBranch>(body)),
            ("check runs", is_refused_as_foreign::<WireCheckRuns>(body)),
            (
                "permission",
                is_refused_as_foreign::<WireCollaboratorPermission>(body),
            ),
            (
                "combined status",
                is_refused_as_foreign::<WireCombinedStatus>(body),
            ),
            ("workflow runs", is_refused_as_foreign::<WireCommitRuns>(body)),
            ("comparison", is_refused_as_foreign::<WireComparison>(body)),
            ("repository", is_refused_as_foreign::<WireRepository>(body)),
            ("workflow run", is_refused_as_foreign::<WireWorkflowRun>(body)),
        ] {
            assert!(is_refused, "{body} is a {what}");
        }
    }
}

#[test]
fn settings_name_the_key_that_is_wrong() {
    let check = |settings: Settings| settings.check("github_reader").map_err(|(key, _)| key);
    let wrong = |key: &str| Err(format!("github_reader.{key}"));
    let token = || Some("t".into());
    assert_eq!(check(Settings::default()), wrong("token"));
    let plain = |allow_insecure| Settings {
        token: token(),
        git_url: "http://git.example".to_owned(),
        allow_insecure,
        ..Settings::default()
    };
    assert_eq!(check(plain(false)), wrong("git_url"));
    assert_eq!(check(plain(true)), Ok(()));
    assert_eq!(
        check(Settings {
            token: token(),
            ..Settings::default()
        }),
        Ok(())
    );
    assert_eq!(
        check(Settings {
            app_id: Some(1),
            ..Settings::default()
        }),
        wrong("private_key")
    );
    assert_eq!(
        check(Settings {
            private_key: token(),
            ..Settings::default()
        }),
        wrong("app_id")
    );
    let both = Settings {
        app_id: Some(1),
        private_key: token(),
        token: token(),
        ..Settings::default()
    };
    assert_eq!(check(both), wrong("token"));
    let url = Settings {
        api_url: "github.com".to_owned(),
        token: token(),
        ..Settings::default()
    };
    assert_eq!(check(url), wrong("api_url"));
    let projects = Settings {
        token: token(),
        project_token: token(),
        ..Settings::default()
    };
    assert_eq!(projects.check("github_writer"), Ok(()));
    assert_eq!(check(projects), wrong("project_token"));
}

#[test]
fn project_token_is_read_by_writer_only() {
    let section = |place: &str| {
        let mut section = json!({"ghe": {
            "api_url": "https://ghe.example/api/v3", "git_url": "https://ghe.example",
            "reader": {"token": "r"}, "writer": {"token": "w"},
        }});
        match place {
            "" => section["ghe"]["project_token"] = json!("p"),
            place => section["ghe"][place]["project_token"] = json!("p"),
        }
        section
    };
    let has_one =
        |read: Result<std::collections::BTreeMap<domain::InstanceName, Settings>, serde_json::Error>| {
            read.map(|servers| servers.into_values().all(|server| server.project_token.is_some()))
                .ok()
        };
    assert_eq!(has_one(crate::deserialize_writers(section("writer"))), Some(true));
    assert_eq!(
        has_one(crate::deserialize_readers(section("writer"))),
        Some(false)
    );
    assert_eq!(
        has_one(crate::deserialize_readers(section("reader"))),
        None,
        "refused"
    );
    assert_eq!(has_one(crate::deserialize_writers(section(""))), None, "refused");
}
