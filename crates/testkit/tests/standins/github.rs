//! The GitHub stand-in over HTTP and git.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::github::{
    APP_PRIVATE_KEY, BranchRuleset, READER_APP_ID, READER_TOKEN, RulesetPattern, RunConclusion,
    WRITER_APP_ID, WRITER_LOGIN, WRITER_TOKEN,
};
use testkit::{FakeGitHub, GitHubOptions, ServiceFault};

use super::{await_webhook, build_test_client, send_json, sign_body, start_receiver};

const REPOSITORY: &str = "acme/shop";

pub(crate) async fn start_github() -> FakeGitHub {
    let github = FakeGitHub::start(GitHubOptions::default()).await.unwrap();
    github
        .create_repository(REPOSITORY, &[("README.md", "hello\n"), ("src/a.txt", "a\n")])
        .unwrap();
    github
}

pub(crate) async fn call_github(
    github: &FakeGitHub,
    token: &str,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let request = build_test_client()
        .request(method, format!("{}{path}", github.api_url()))
        .bearer_auth(token);
    send_json(request, body).await
}

async fn run_git(directory: &Path, token: &str, arguments: &[&str]) -> bool {
    let basic = STANDARD.encode(format!("x-access-token:{token}"));
    let output = tokio::process::Command::new("git")
        .args(["-c", &format!("http.extraHeader=Authorization: Basic {basic}")])
        .args([
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@people.test",
            "-c",
            "credential.helper=",
        ])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .await
        .unwrap();
    output.status.success()
}

pub(crate) fn app_token(app: u64, lifetime: i64) -> String {
    let der: String = APP_PRIVATE_KEY
        .lines()
        .filter(|line| !line.starts_with("-----"))
        .collect();
    let key = ring::signature::RsaKeyPair::from_der(&STANDARD.decode(der).unwrap()).unwrap();
    let now = time::OffsetDateTime::now_utc().unix_timestamp();
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({"iss": app, "iat": now - 60, "exp": now + lifetime});
    let signed = format!("{}.{}", part(json!({"alg": "RS256", "typ": "JWT"})), part(claims));
    let mut signature = vec![0; key.public().modulus_len()];
    let random = ring::rand::SystemRandom::new();
    key.sign(
        &ring::signature::RSA_PKCS1_SHA256,
        &random,
        signed.as_bytes(),
        &mut signature,
    )
    .unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn build_pull_body(head: &str) -> Option<Value> {
    Some(json!({"title": "A change", "head": head, "base": "main", "body": "text", "draft": true}))
}

/// Asks for a pull request of this branch as the writer.
async fn open_pull(github: &FakeGitHub, branch: &str) -> (u16, Value) {
    let path = "/repos/acme/shop/pulls";
    call_github(github, WRITER_TOKEN, Method::POST, path, build_pull_body(branch)).await
}

#[tokio::test]
async fn installation_tokens_have_app_permissions() {
    let github = start_github().await;
    for (app, writes) in [(READER_APP_ID, false), (WRITER_APP_ID, true)] {
        let jwt = app_token(app, 500);
        let (_, installation) =
            call_github(&github, &jwt, Method::GET, "/repos/acme/shop/installation", None).await;
        let path = format!("/app/installations/{}/access_tokens", installation["id"]);
        let level = if writes { "write" } else { "read" };
        let wanted = json!({
            "repositories": ["shop"], "permissions": {"metadata": "read", "pull_requests": level},
        });
        let (status, granted) = call_github(&github, &jwt, Method::POST, &path, Some(wanted)).await;
        assert_eq!(status, 201);
        let token = granted["token"].as_str().unwrap();
        assert_eq!(
            call_github(&github, token, Method::GET, "/repos/acme/shop", None)
                .await
                .0,
            200
        );
        let (status, _) = call_github(
            &github,
            token,
            Method::POST,
            "/repos/acme/shop/pulls",
            build_pull_body("missing"),
        )
        .await;
        assert_eq!(status, if writes { 422 } else { 403 });
    }
    assert_eq!(github.violations().len(), 1);
    let too_long = app_token(READER_APP_ID, 5000);
    assert_eq!(
        call_github(&github, &too_long, Method::GET, "/app", None).await.0,
        401
    );
    let mut forged = app_token(READER_APP_ID, 500);
    forged.replace_range(forged.len() - 12..forged.len() - 2, "AAAAAAAAAA");
    assert_eq!(
        call_github(&github, &forged, Method::GET, "/app", None).await.0,
        401
    );
    assert_eq!(
        call_github(&github, "nonsense", Method::GET, "/repos/acme/shop", None)
            .await
            .0,
        401
    );
}

#[tokio::test]
async fn git_push_moves_pull_request_head() {
    let github = start_github().await;
    let (url, received) = start_receiver().await;
    github.set_webhook(&url, "secret");
    let directory = tempfile::tempdir().unwrap();
    let clone_url = github.clone_url(REPOSITORY);
    assert!(!run_git(directory.path(), "wrong", &["clone", "-q", &clone_url, "refused"]).await);
    assert!(
        run_git(
            directory.path(),
            READER_TOKEN,
            &["clone", "-q", &clone_url, "work"]
        )
        .await
    );
    let work = directory.path().join("work");
    assert_eq!(std::fs::read_to_string(work.join("src/a.txt")).unwrap(), "a\n");

    std::fs::write(work.join("src/a.txt"), "b\n").unwrap();
    assert!(run_git(&work, "", &["commit", "-qam", "change"]).await);
    let push = ["push", "-q", "origin", "HEAD:refs/heads/fix"];
    assert!(!run_git(&work, READER_TOKEN, &push).await);
    assert!(run_git(&work, WRITER_TOKEN, &push).await);
    let (_, _, event) = await_webhook(&received, |headers, _| headers["x-github-event"] == "push").await;
    assert_eq!(event["ref"], "refs/heads/fix");

    let (status, opened) = open_pull(&github, "fix").await;
    assert_eq!(
        (status, &opened["draft"], &opened["user"]["login"]),
        (201, &json!(true), &json!(WRITER_LOGIN))
    );
    let (status, again) = open_pull(&github, "fix").await;
    assert_eq!(
        (status, &again["errors"][0]["message"]),
        (422, &json!("A pull request already exists for acme:fix."))
    );
    let (_, nothing) = open_pull(&github, "main").await;
    assert_eq!(
        nothing["errors"][0]["message"],
        "No commits between main and main"
    );

    std::fs::write(work.join("src/a.txt"), "c\n").unwrap();
    assert!(run_git(&work, "", &["commit", "-qam", "more"]).await);
    assert!(run_git(&work, WRITER_TOKEN, &push).await);
    let seen = &github.pull_requests(REPOSITORY)[0];
    assert_eq!(seen.head_sha, github.branches(REPOSITORY)["fix"]);
    await_webhook(&received, |_, payload| payload["action"] == "synchronize").await;
    assert!(
        github
            .diff(REPOSITORY, "main", "fix")
            .unwrap()
            .contains("-a\n+c\n")
    );
    assert_eq!(github.violations().len(), 1, "the reader's push");
}

#[tokio::test]
async fn signed_webhooks_report_checks_review_merge() {
    let github = start_github().await;
    let (url, received) = start_receiver().await;
    github.set_webhook(&url, "secret");
    let head = github
        .commit(REPOSITORY, "fix/cart", "change", &[("src/b.txt", "b\n")])
        .unwrap();
    let (_, opened) = open_pull(&github, "fix/cart").await;
    assert!(
        github.merge(REPOSITORY, 1, "rita").is_err(),
        "a draft cannot be merged"
    );

    github
        .run_checks(REPOSITORY, &head, &[("test", RunConclusion::Success, "4 passed")])
        .unwrap();
    let (_, runs) = call_github(
        &github,
        READER_TOKEN,
        Method::GET,
        &format!("/repos/acme/shop/commits/{head}/check-runs"),
        None,
    )
    .await;
    assert_eq!(runs["check_runs"][0]["conclusion"], "success");
    let (headers, body, suite) =
        await_webhook(&received, |headers, _| headers["x-github-event"] == "check_suite").await;
    assert_eq!(
        headers["x-hub-signature-256"],
        sign_body("secret", &body).as_str()
    );
    assert_eq!(suite["check_suite"]["pull_requests"][0]["number"], 1);

    let mutation =
        "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}";
    let query = json!({"query": mutation, "variables": {"id": opened["node_id"]}});
    let (_, refused) = call_github(
        &github,
        READER_TOKEN,
        Method::POST,
        "/graphql",
        Some(query.clone()),
    )
    .await;
    assert_eq!(refused["errors"][0]["type"], "FORBIDDEN");
    let (_, ready) = call_github(&github, WRITER_TOKEN, Method::POST, "/graphql", Some(query)).await;
    assert_eq!(
        ready["data"]["markPullRequestReadyForReview"]["pullRequest"]["isDraft"],
        false
    );
    await_webhook(&received, |_, payload| payload["action"] == "ready_for_review").await;

    github.review(REPOSITORY, 1, "rita", "approved", "good").unwrap();
    let merged = github.merge(REPOSITORY, 1, "rita").unwrap();
    let (_, _, closed) = await_webhook(&received, |_, payload| payload["action"] == "closed").await;
    assert_eq!(closed["pull_request"]["merged"], true);
    assert_eq!(github.branches(REPOSITORY)["main"], merged);
    assert_eq!(
        github.file(REPOSITORY, "main", "src/b.txt").as_deref(),
        Some("b\n")
    );
    assert!(github.pull_requests(REPOSITORY)[0].merged);

    let (status, made) = create_branch_over_api(&github, &merged, &[]).await;
    assert_eq!(status, 201, "{made}");
    let (_, _, pushed) = await_webhook(&received, |headers, payload| {
        headers["x-github-event"] == "push" && payload["ref"] == "refs/heads/fix/api"
    })
    .await;
    assert_eq!(
        pushed["after"], merged,
        "a branch at a merge commit is a push, too"
    );
}

#[tokio::test]
async fn merge_and_self_review_are_violations() {
    let github = start_github().await;
    github
        .commit(REPOSITORY, "fix", "change", &[("src/b.txt", "b\n")])
        .unwrap();
    open_pull(&github, "fix").await;
    let merge = call_github(
        &github,
        WRITER_TOKEN,
        Method::PUT,
        "/repos/acme/shop/pulls/1/merge",
        Some(json!({})),
    )
    .await;
    assert_eq!(merge.0, 403);
    let reviewers = Some(json!({"reviewers": [WRITER_LOGIN]}));
    let path = "/repos/acme/shop/pulls/1/requested_reviewers";
    assert_eq!(
        call_github(&github, WRITER_TOKEN, Method::POST, path, reviewers)
            .await
            .0,
        422
    );
    let unknown_field = Some(json!({"title": "t", "head": "fix", "base": "main", "drafty": true}));
    assert_eq!(
        call_github(
            &github,
            WRITER_TOKEN,
            Method::POST,
            "/repos/acme/shop/pulls",
            unknown_field
        )
        .await
        .0,
        422
    );
    assert_eq!(github.violations().len(), 2);
    assert!(github.pull_requests(REPOSITORY)[0].open);
}

#[tokio::test]
async fn lists_have_page_links_and_head_filter() {
    let github = start_github().await;
    for branch in ["one", "two", "three"] {
        github
            .commit(REPOSITORY, branch, "change", &[(branch, "x\n")])
            .unwrap();
        github
            .open_pull_request_as(REPOSITORY, "rita", branch, branch, "")
            .unwrap();
    }
    let first = build_test_client()
        .get(format!("{}/repos/acme/shop/pulls?per_page=2", github.api_url()))
        .bearer_auth(READER_TOKEN);
    let first = first.send().await.unwrap();
    let link = first.headers()["link"].to_str().unwrap().to_owned();
    let next = link.split_once('<').unwrap().1.split_once('>').unwrap().0;
    assert!(link.contains("rel=\"next\""));
    assert_eq!(first.json::<Value>().await.unwrap()[0]["title"], "three");
    let last: Value = build_test_client()
        .get(next)
        .bearer_auth(READER_TOKEN)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(
        (last.as_array().unwrap().len(), &last[0]["title"]),
        (1, &json!("one"))
    );
    let path = "/repos/acme/shop/pulls?head=acme%3Atwo&state=all";
    let (_, found) = call_github(&github, READER_TOKEN, Method::GET, path, None).await;
    assert_eq!(
        (found.as_array().unwrap().len(), &found[0]["number"]),
        (1, &json!(2))
    );
}

#[tokio::test]
async fn late_fault_keeps_comment_for_redelivery() {
    let github = start_github().await;
    let (url, received) = start_receiver().await;
    github.set_webhook(&url, "secret");
    github
        .commit(REPOSITORY, "fix", "change", &[("b", "b\n")])
        .unwrap();
    let number = github
        .open_pull_request_as(REPOSITORY, "rita", "fix", "t", "")
        .unwrap();
    github.fail_next(ServiceFault::new("/comments", 1, 502).on("POST").after_effect());
    let path = format!("/repos/acme/shop/issues/{number}/comments");
    assert_eq!(
        call_github(
            &github,
            WRITER_TOKEN,
            Method::POST,
            &path,
            Some(json!({"body": "hi"}))
        )
        .await
        .0,
        502
    );
    assert_eq!(github.comments(REPOSITORY, number).len(), 1);
    await_webhook(&received, |headers, _| {
        headers["x-github-event"] == "issue_comment"
    })
    .await;

    let jwt = app_token(READER_APP_ID, 500);
    let (_, deliveries) = call_github(&github, &jwt, Method::GET, "/app/hook/deliveries", None).await;
    let newest = &deliveries[0];
    assert_eq!(newest["event"], "issue_comment");
    let before = received.lock().unwrap().len();
    let path = format!("/app/hook/deliveries/{}/attempts", newest["id"]);
    assert_eq!(call_github(&github, &jwt, Method::POST, &path, None).await.0, 202);
    let again = testkit::poll_until("redelivery", super::WEBHOOK_LIMIT, async || {
        received.lock().unwrap().get(before).cloned()
    });
    assert_eq!(
        again.await.unwrap().0["x-github-delivery"],
        newest["guid"].as_str().unwrap()
    );
}

#[tokio::test]
async fn rulesets_refuse_unchecked_merges_and_restricted_pushes() {
    let github = start_github().await;
    let change = [("src/a.txt", "b\n")];
    let head = github.commit(REPOSITORY, "fix", "change", &change).unwrap();
    github
        .open_pull_request_as(REPOSITORY, "rita", "fix", "t", "")
        .unwrap();
    let on = |branch: &str| BranchRuleset {
        branches: vec![branch.to_owned()],
        ..BranchRuleset::default()
    };
    let rulesets = [
        BranchRuleset {
            required_checks: vec!["build".to_owned()],
            restricts_updates: true,
            ..on("main")
        },
        BranchRuleset {
            restricts_creation: true,
            ..on("release/*")
        },
    ];
    github.set_rulesets(REPOSITORY, &rulesets).unwrap();

    let path = "/repos/acme/shop/pulls/1/merge";
    let (status, refused) = call_github(&github, WRITER_TOKEN, Method::PUT, path, Some(json!({}))).await;
    assert_eq!(status, 405, "{refused}");
    let refused = github.merge(REPOSITORY, 1, "rita").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Required status check \"build\" is expected."
    );

    let directory = tempfile::tempdir().unwrap();
    let clone = ["clone", "-q", &github.clone_url(REPOSITORY), "work"];
    assert!(run_git(directory.path(), READER_TOKEN, &clone).await);
    let work = directory.path().join("work");
    assert!(run_git(&work, "", &["commit", "-q", "--allow-empty", "-m", "more"]).await);
    for (branch, is_taken) in [("main", false), ("release/1", false), ("fix-2", true)] {
        let to = format!("HEAD:refs/heads/{branch}");
        let push = ["push", "-q", "origin", &to];
        assert_eq!(run_git(&work, WRITER_TOKEN, &push).await, is_taken, "{branch}");
    }

    let checks = [("build", RunConclusion::Success, "")];
    github.run_checks(REPOSITORY, &head, &checks).unwrap();
    assert!(github.merge(REPOSITORY, 1, "rita").is_ok());
}

/// Creates commits with these messages on top of each other, and a branch at the last one, over the API.
async fn create_branch_over_api(github: &FakeGitHub, base: &str, messages: &[&str]) -> (u16, Value) {
    let (tree, _) = github.tree_and_parents(REPOSITORY, base).unwrap();
    let mut head = base.to_owned();
    for message in messages {
        let new = json!({"message": message, "tree": tree, "parents": [head]});
        let path = "/repos/acme/shop/git/commits";
        let (status, made) = call_github(github, WRITER_TOKEN, Method::POST, path, Some(new)).await;
        assert_eq!(status, 201, "a commit alone breaks no rule: {made}");
        made["sha"].as_str().unwrap().clone_into(&mut head);
    }
    let new = json!({"ref": "refs/heads/fix/api", "sha": head});
    let path = "/repos/acme/shop/git/refs";
    call_github(github, WRITER_TOKEN, Method::POST, path, Some(new)).await
}

#[tokio::test]
async fn patterns_hold_over_api_as_in_pushes() {
    let negated = |kind, operator, pattern: &str| RulesetPattern {
        negate: true,
        ..RulesetPattern::new(kind, operator, pattern)
    };
    let message = |operator, pattern: &str| RulesetPattern::new("commit_message_pattern", operator, pattern);
    for (pattern, messages, is_taken) in [
        (message("regex", "^ENG-[0-9]+: "), &["fix: it"][..], false),
        (message("regex", "^ENG-[0-9]+: "), &["ENG-1: it"][..], true),
        (
            message("regex", "^ENG-[0-9]+$"),
            &["fix: it\n\nENG-1\nmore"][..],
            true,
        ),
        (message("regex", "^ENG-"), &["fix: it", "ENG-1: more"][..], false),
        (
            message("starts_with", "ENG-"),
            &["fix: it", "ENG-1: more"][..],
            false,
        ),
        (message("ends_with", "(ENG-1)"), &["fix: it (ENG-1)\n"][..], true),
        (
            negated("commit_message_pattern", "regex", "^WIP"),
            &["fix: it\n\nWIP"][..],
            false,
        ),
        (
            negated("commit_message_pattern", "regex", "^WIP"),
            &["fix: it"][..],
            true,
        ),
        (
            RulesetPattern::new("branch_name_pattern", "regex", "^team/"),
            &[][..],
            false,
        ),
        (
            RulesetPattern::new("branch_name_pattern", "regex", "^fix/[a-z]+$"),
            &[][..],
            true,
        ),
        (message("starts_with", "ENG-"), &[][..], true),
    ] {
        let github = start_github().await;
        let change = [("src/a.txt", "b\n")];
        let base = github.commit(REPOSITORY, "old", "change", &change).unwrap();
        let ruleset = BranchRuleset {
            branches: vec!["fix/*".to_owned()],
            patterns: vec![pattern.clone()],
            ..BranchRuleset::default()
        };
        github.set_rulesets(REPOSITORY, &[ruleset]).unwrap();
        let (status, answer) = create_branch_over_api(&github, &base, messages).await;
        let wanted = if is_taken { 201 } else { 422 };
        assert_eq!(status, wanted, "{pattern:?} {messages:?}: {answer}");
        let words = answer["message"].as_str().unwrap_or_default();
        assert_eq!(
            words.contains("Repository rule violations found"),
            !is_taken,
            "{words}"
        );
        let directory = tempfile::tempdir().unwrap();
        let clone = ["clone", "-q", "-b", "old", &github.clone_url(REPOSITORY), "work"];
        assert!(run_git(directory.path(), READER_TOKEN, &clone).await);
        let work = directory.path().join("work");
        for message in messages {
            assert!(run_git(&work, "", &["commit", "-q", "--allow-empty", "-m", *message]).await);
        }
        let push = ["push", "-q", "origin", "HEAD:refs/heads/fix/push"];
        let is_pushed = run_git(&work, WRITER_TOKEN, &push).await;
        assert_eq!(is_pushed, is_taken, "{pattern:?} {messages:?}");
    }
}

#[tokio::test]
async fn lists_are_ordered_and_refuse_unknown_orders() {
    let github = start_github().await;
    for (title, comments) in [("a", 2), ("b", 0), ("c", 3)] {
        let number = github.open_issue_as(REPOSITORY, "rita", title, "").unwrap();
        for _ in 0..comments {
            github.comment_as(REPOSITORY, number, "rita", "me too").unwrap();
        }
    }
    for (branch, comments) in [("fix", 1), ("feat", 4)] {
        github
            .commit(REPOSITORY, branch, branch, &[("a", branch)])
            .unwrap();
        let number = github
            .open_pull_request_as(REPOSITORY, "rita", branch, branch, "")
            .unwrap();
        for _ in 0..comments {
            github.comment_as(REPOSITORY, number, "rita", "me too").unwrap();
        }
    }
    let ask = async |list: &str, query: &str| {
        let path = format!("/repos/{REPOSITORY}/{list}?{query}");
        let (status, found) = call_github(&github, READER_TOKEN, Method::GET, &path, None).await;
        let titles: Vec<String> = found
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| item["title"].as_str().unwrap().to_owned())
            .collect();
        (status, titles.join(" "))
    };
    for (list, query, titles) in [
        ("issues", "sort=comments", "feat c a fix b"),
        ("issues", "sort=comments&direction=asc", "b fix a c feat"),
        ("issues", "sort=created&direction=asc", "a b c fix feat"),
        ("issues", "", "feat fix c b a"),
        ("pulls", "sort=popularity", "fix feat"),
        ("pulls", "sort=popularity&direction=desc", "feat fix"),
        ("pulls", "", "feat fix"),
        ("pulls", "direction=asc", "fix feat"),
    ] {
        assert_eq!(ask(list, query).await, (200, titles.to_owned()), "{list} {query}");
    }
    for list in ["issues", "pulls"] {
        for query in ["sort=size", "state=merged", "direction=up"] {
            assert_eq!(ask(list, query).await.0, 422, "{list} {query}");
        }
    }
}

#[tokio::test]
async fn closed_issue_is_not_closed_again() {
    let github = start_github().await;
    let (url, received) = start_receiver().await;
    github.set_webhook(&url, "s");
    let number = github.open_issue_as(REPOSITORY, "rita", "a", "").unwrap();
    let path = format!("/repos/{REPOSITORY}/issues/{number}");
    let edit = async |body: Value| call_github(&github, WRITER_TOKEN, Method::PATCH, &path, Some(body)).await;
    for _ in 0..2 {
        let (status, issue) = edit(json!({"state": "closed", "state_reason": "not_planned"})).await;
        assert_eq!((status, &issue["state_reason"]), (200, &json!("not_planned")));
    }
    assert_eq!(edit(json!({"title": " "})).await.0, 422);
    assert_eq!(edit(json!({"state": "open"})).await.0, 200);
    await_webhook(&received, |_, body| body["action"] == "reopened").await;
    let actions: Vec<String> = received
        .lock()
        .unwrap()
        .iter()
        .map(|(_, body)| serde_json::from_slice::<Value>(body).unwrap())
        .filter_map(|body| body["action"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(actions, ["opened", "closed", "reopened"]);
}

#[tokio::test]
async fn lfs_batch_is_strict_and_signed() {
    const LFS: &str = "application/vnd.git-lfs+json";
    let github = start_github().await;
    let pointer = github.store_lfs(REPOSITORY, b"content");
    let oid = pointer.split(':').nth(2).unwrap().split('\n').next().unwrap();
    let url = format!("{}/info/lfs/objects/batch", github.clone_url(REPOSITORY));
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .unwrap();
    let ask = async |media: &str, operation: &str, token: &str| {
        let body = json!({"operation": operation, "objects": [{"oid": oid, "size": 7}]});
        let request = client.post(&url).basic_auth("x-access-token", Some(token));
        let request = request.header("accept", media).header("content-type", media);
        request.body(body.to_string()).send().await.unwrap()
    };
    assert_eq!(ask(LFS, "download", "wrong").await.status(), 401);
    assert_eq!(
        ask("application/json", "download", READER_TOKEN).await.status(),
        406
    );
    assert_eq!(ask(LFS, "upload", READER_TOKEN).await.status(), 403);
    assert_eq!(github.violations().len(), 2);
    let answer = ask(LFS, "download", READER_TOKEN).await;
    assert_eq!(answer.headers()["content-type"], LFS);
    let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let action = &answer["objects"][0]["actions"]["download"];
    let key = action["header"]["X-Store-Key"].as_str().unwrap();
    let moved = client
        .get(action["href"].as_str().unwrap())
        .header("x-store-key", key);
    let moved = moved.send().await.unwrap();
    assert_eq!(moved.status(), 302);
    let target = format!(
        "{}{}",
        github.api_url(),
        moved.headers()["location"].to_str().unwrap()
    );
    let content = client.get(&target).send().await.unwrap().text().await.unwrap();
    assert_eq!((content.as_str(), github.count_lfs_downloads()), ("content", 1));
    let forged = format!("{}/lfs-store/{oid}?signature=forged", github.api_url());
    assert_eq!(client.get(&forged).send().await.unwrap().status(), 403);
}
