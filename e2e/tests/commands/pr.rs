//! `journeyman pr`: a local branch becomes a pull request, with the stand-ins and real git.

use std::{path::Path, process::Stdio};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    FakeGitHub, FakeJira, GitHubOptions, JiraOptions, ServiceFault, fixture, github,
    jira::{self, JiraTransition},
    poll_until,
};
use tokio::io::AsyncWriteExt;

use crate::{
    program::{PATIENCE, Ran, run_program},
    stage::{remove_setting, replace_setting},
    terminal::at_terminal_with,
};

const BRANCH: &str = "feature/ENG-1-login";

/// Clone of the fixture's repository with a commit on a branch, and a ticket `ENG-1` with these transitions.
struct Scene {
    github: FakeGitHub,
    jira: FakeJira,
    root: TempDir,
}

impl Scene {
    async fn start(transitions: &[(&str, &str)]) -> Self {
        bootstrap::install_tls_provider();
        let github = FakeGitHub::start(GitHubOptions::default()).await.unwrap();
        let files = fixture::list_shop_files();
        github.create_repository(fixture::REPOSITORY, &files).unwrap();
        let named = transitions.iter().map(|(name, to)| JiraTransition {
            name: (*name).to_owned(),
            to: (*to).to_owned(),
            asks_for: Vec::new(),
        });
        let options = JiraOptions {
            named: named.collect(),
            ..JiraOptions::default()
        };
        let jira = FakeJira::start(options).await.unwrap();
        jira.create_issue(fixture::PROJECT, "Add a login", "A form.", "Story", &[]);
        let root = tempfile::tempdir().unwrap();
        let scene = Self { github, jira, root };
        scene.clone_repository().await;
        scene
    }

    async fn clone_repository(&self) {
        let account = STANDARD.encode(format!("x-access-token:{}", github::WRITER_TOKEN));
        let header = format!("http.extraHeader=Authorization: Basic {account}");
        let url = self.github.clone_url(fixture::REPOSITORY);
        run_git(
            self.root.path(),
            &["-c", &header, "clone", "--quiet", &url, "shop"],
        )
        .await;
        run_git(&self.folder(), &["checkout", "--quiet", "-b", BRANCH]).await;
        self.commit("login.py").await;
    }

    fn folder(&self) -> std::path::PathBuf {
        self.root.path().join("shop")
    }

    /// Commits a file and returns the commit's id.
    async fn commit(&self, file: &str) -> String {
        let folder = self.folder();
        std::fs::write(folder.join(file), "pass\n").unwrap();
        run_git(&folder, &["add", "."]).await;
        run_git(&folder, &["commit", "--quiet", "-m", "Add a file"]).await;
        run_git(&folder, &["rev-parse", "HEAD"]).await
    }

    fn environment(&self) -> Vec<(String, String)> {
        let app = github::WRITER_APP_ID.to_string();
        let settings = [
            ("GITHUB_WRITER__API_URL", self.github.api_url()),
            ("GITHUB_WRITER__GIT_URL", self.github.git_url()),
            ("GITHUB_WRITER__APP_ID", app),
            ("GITHUB_WRITER__PRIVATE_KEY", github::APP_PRIVATE_KEY.to_owned()),
            ("JIRA_WRITER__BASE_URL", self.jira.url()),
            ("JIRA_WRITER__EMAIL", jira::WRITER_EMAIL.to_owned()),
            ("JIRA_WRITER__API_TOKEN", jira::WRITER_API_TOKEN.to_owned()),
        ];
        let named = settings.map(|(key, value)| (format!("JOURNEYMAN__{key}"), value));
        named.to_vec()
    }

    fn input(&self) -> Value {
        json!({
            "branch": BRANCH,
            "title": "Add a login form",
            "description": "## Summary\nA form.\n\n![Login](./login.png)",
            "working_directory": self.folder(),
        })
    }

    fn input_with(&self, fields: Value) -> Value {
        let mut input = self.input();
        for (field, value) in fields.as_object().unwrap() {
            input[field] = value.clone();
        }
        input
    }

    async fn pr(&self, input: &Value, arguments: &[&str]) -> Ran {
        self.pr_with(input, arguments, &self.environment()).await
    }

    async fn pr_with(&self, input: &Value, arguments: &[&str], environment: &[(String, String)]) -> Ran {
        let file = self.root.path().join("request.json");
        std::fs::write(&file, input.to_string()).unwrap();
        let mut all = vec!["pr", "--input", "request.json"];
        all.extend(arguments);
        run_program("journeyman", &all, environment, self.root.path()).await
    }

    /// Returns the answer to a successful request about `ENG-1`.
    async fn about_issue(&self, arguments: &[&str]) -> Value {
        let input = self.input_with(json!({"jira_key": "ENG-1"}));
        expect_success(&self.pr(&input, arguments).await)
    }

    fn pull_requests(&self) -> Vec<testkit::github::StandInPullRequest> {
        self.github.pull_requests(fixture::REPOSITORY)
    }

    /// Lists the requests that changed an external service, without the creation of App tokens.
    fn writes(&self) -> Vec<String> {
        let all = [self.github.requests(), self.jira.requests()].concat();
        let writes = all.into_iter().filter(|request| request.method != "GET");
        let named = writes.map(|request| format!("{} {}", request.method, request.path));
        named
            .filter(|write| !write.contains("access_tokens") && !write.contains("git-upload-pack"))
            .collect()
    }

    fn assert_kept_protocols(&self) {
        let broken = [self.github.violations(), self.jira.violations()].concat();
        assert!(broken.is_empty(), "{broken:#?}");
    }
}

async fn run_git(folder: &Path, arguments: &[&str]) -> String {
    let ran = tokio::process::Command::new("git")
        .args(["-c", "user.name=Robin", "-c", "user.email=robin@shop.example"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .await
        .unwrap();
    assert!(ran.status.success(), "{arguments:?}: {ran:?}");
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

fn parse_json_answer(ran: &Ran) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

fn expect_success(ran: &Ran) -> Value {
    let answer = parse_json_answer(ran);
    assert_eq!(
        (ran.code, &answer["status"]),
        (Some(0), &json!("success")),
        "{answer}"
    );
    answer
}

/// Returns the only error of an answer without a pull request.
fn expect_failure(ran: &Ran) -> Value {
    let answer = parse_json_answer(ran);
    assert_eq!(
        (ran.code, &answer["status"]),
        (Some(1), &json!("failed")),
        "{answer}"
    );
    assert_eq!(answer["pr_number"], Value::Null);
    one_error(&answer)
}

fn one_error(answer: &Value) -> Value {
    let errors = answer["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 1, "{answer}");
    errors[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_finds_its_pull_request_again() {
    let scene = Scene::start(&[("Work", "In Progress"), ("Ready for Code Review", "In Review")]).await;
    let input = scene.input_with(json!({"mark_ready": true}));
    let first = expect_success(&scene.pr(&input, &["--jira-key-from-branch"]).await);
    assert_eq!(first["pr_number"], 1);
    assert_eq!(first["marked_ready"], true);
    assert_eq!(
        first["jira_status"],
        json!({"linked": true, "transitioned": true, "current_state": "In Review"})
    );
    assert_eq!(first["errors"], json!([]));
    assert!(first["execution_time_ms"].as_u64().unwrap() > 0);

    let head = scene.commit("logout.py").await;
    let second = expect_success(&scene.pr(&input, &["--jira-key-from-branch"]).await);
    for field in ["pr_url", "pr_number", "jira_status", "marked_ready", "errors"] {
        assert_eq!(second[field], first[field], "{field}");
    }
    let [opened] = scene.pull_requests().try_into().unwrap();
    assert_eq!(opened.url, first["pr_url"].as_str().unwrap());
    assert_eq!((opened.head_sha, opened.draft), (head, false));
    assert_eq!(opened.title, "Add a login form");
    assert_eq!(opened.body, "## Summary\nA form.\n\n![Login](./login.png)");
    assert_eq!(opened.base, "main");
    let [link] = scene.jira.remote_links("ENG-1").try_into().unwrap();
    assert_eq!(link.url, opened.url);
    assert!(scene.jira.comments("ENG-1").is_empty());
    scene.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_reads_request_from_standard_input() {
    let scene = Scene::start(&[]).await;
    let mut child = tokio::process::Command::new(e2e::find_binary("journeyman").unwrap())
        .args(["pr", "--input", "-"])
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH"))
        .envs(scene.environment())
        .current_dir(scene.root.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(scene.input().to_string().as_bytes())
        .await
        .unwrap();
    drop(stdin);
    let ended = child.wait_with_output().await.unwrap();
    let answer: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(answer["status"], "success", "{answer}");
    assert_eq!(answer["marked_ready"], false);
    assert_eq!(
        answer["jira_status"],
        json!({"linked": false, "transitioned": false, "current_state": null})
    );
    assert!(scene.pull_requests()[0].draft);
    assert!(scene.jira.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_lost_answer_creates_no_second_one() {
    let scene = Scene::start(&[]).await;
    let lost = ServiceFault::new("/pulls", 1, 502).on("POST").after_effect();
    scene.github.fail_next(lost);
    let answer = expect_success(&scene.pr(&scene.input_with(json!({"draft": false})), &[]).await);
    assert_eq!(answer["errors"], json!([]));
    assert_eq!(scene.github.faults_left(), 0);
    let [opened] = scene.pull_requests().try_into().unwrap();
    assert!(!opened.draft);
}

/// GitHub receives the push, and its answer is lost.
#[tokio::test(flavor = "multi_thread")]
async fn pr_finds_arrived_push_of_lost_answer() {
    let push = |status| {
        let lost = ServiceFault::new("git-receive-pack", 1, status).on("POST");
        lost.after_effect()
    };
    for fault in [push(502), push(504), push(200).cut()] {
        let scene = Scene::start(&[]).await;
        let head = run_git(&scene.folder(), &["rev-parse", "HEAD"]).await;
        let case = format!("{fault:?}");
        scene.github.fail_next(fault);
        let answer = expect_success(&scene.pr(&scene.input(), &[]).await);
        assert_eq!(answer["errors"], json!([]), "{case}");
        assert_eq!(scene.github.faults_left(), 0, "{case}");
        let [opened] = scene.pull_requests().try_into().unwrap();
        assert_eq!(opened.head_sha, head, "{case}");
        let writes = scene.writes();
        let pushes = writes.iter().filter(|write| write.contains("git-receive-pack"));
        // curl may have sent the lost request a second time, which changed nothing.
        assert!(pushes.count() <= 2, "{case}: {writes:#?}");
        scene.assert_kept_protocols();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_waits_for_other_push_of_branch() {
    let scene = Scene::start(&[]).await;
    let lock = scene.github.lock_branch(fixture::REPOSITORY, BRANCH).unwrap();
    let count_pushes = || {
        let writes = scene.writes().into_iter();
        writes.filter(|write| write.contains("git-receive-pack")).count()
    };
    let unlock = async {
        // The second try begins after the refusal of the first one.
        poll_until("two tries", PATIENCE, async || {
            (count_pushes() >= 2).then_some(())
        })
        .await
        .unwrap();
        drop(lock);
    };
    let input = scene.input();
    let (ended, ()) = tokio::join!(scene.pr(&input, &[]), unlock);
    assert_eq!(expect_success(&ended)["errors"], json!([]));
    assert_eq!(scene.pull_requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_survives_jira_failures() {
    let scene = Scene::start(&[("Block", "In Progress"), ("Finish", "Done")]).await;
    scene
        .jira
        .fail_next(ServiceFault::new("/remotelink", 1, 400).on("POST"));
    let answer = scene.about_issue(&[]).await;
    assert_eq!(
        answer["jira_status"]["linked"], true,
        "a comment is there instead"
    );
    let [comment] = scene.jira.comments("ENG-1").try_into().unwrap();
    assert_eq!(
        comment.text,
        format!("Pull Request: {}", answer["pr_url"].as_str().unwrap())
    );
    let error = one_error(&answer);
    assert_eq!(error["type"], "jira_transition_failed");
    assert_eq!(error["context"]["jira_key"], "ENG-1");
    assert_eq!(
        error["context"]["available_transitions"],
        json!(["Block", "Finish"])
    );
    assert_eq!(
        answer["jira_status"]["error"],
        "No transition found matching 'Code Review' pattern"
    );
    assert_eq!(answer["jira_status"]["current_state"], "To Do");

    scene
        .jira
        .fail_next(ServiceFault::new("/remotelink", 3, 502).on("POST"));
    scene.jira.fail_next(ServiceFault::new("/comment", 30, 400));
    let answer = scene.about_issue(&[]).await;
    assert_eq!(answer["jira_status"]["linked"], false);
    let error = &answer["errors"][0];
    assert_eq!(error["type"], "jira_link_failed", "{answer}");
    assert_eq!(error["context"]["retries"], 2);
    assert_eq!(scene.pull_requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_opens_without_jira_or_issue() {
    let scene = Scene::start(&[]).await;
    let input = scene.input_with(json!({"jira_key": "ENG-1"}));
    let environment = scene.environment();
    let no_jira = [
        "JIRA_WRITER__BASE_URL",
        "JIRA_WRITER__EMAIL",
        "JIRA_WRITER__API_TOKEN",
    ]
    .iter()
    .fold(environment.clone(), |left, key| remove_setting(&left, key));
    let answer = expect_success(&scene.pr_with(&input, &[], &no_jira).await);
    assert_eq!(one_error(&answer)["type"], "jira_not_configured");
    let wrong = replace_setting(&environment, "JIRA_WRITER__API_TOKEN", "wrong-token");
    let ran = scene.pr_with(&input, &[], &wrong).await;
    assert_eq!(
        one_error(&expect_success(&ran))["type"],
        "jira_authentication_failed"
    );
    assert!(!ran.out.contains("wrong-token"));
    let unknown = scene.input_with(json!({"jira_key": "ENG-999"}));
    let answer = expect_success(&scene.pr(&unknown, &[]).await);
    let error = one_error(&answer);
    assert_eq!(error["type"], "jira_issue_not_found");
    assert_eq!(
        error["message"],
        "Jira issue ENG-999 does not exist or you don't have permission to view it"
    );
    assert_eq!(answer["jira_status"]["error"], "Jira issue ENG-999 not found");
    assert_eq!(scene.pull_requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_lists_ambiguous_transitions_for_choice() {
    let scene = Scene::start(&[
        ("Peer Review", "In Progress"),
        ("Finish", "Done"),
        ("Design Review", "In Review"),
    ])
    .await;
    let error = one_error(&scene.about_issue(&[]).await);
    assert_eq!(error["type"], "jira_transition_ambiguous");
    let list = "1. Peer Review (to In Progress)\n2. Design Review (to In Review)";
    assert!(error["message"].as_str().unwrap().ends_with(list), "{error}");
    assert_eq!(scene.jira.status("ENG-1").unwrap(), "To Do");

    let answer = scene.about_issue(&["--transition", "design review"]).await;
    assert_eq!(answer["jira_status"]["transitioned"], true, "{answer}");
    assert_eq!(scene.jira.status("ENG-1").unwrap(), "In Review");
    assert_eq!(scene.pull_requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_asks_terminal_user_for_transition() {
    let moves = [
        ("Peer Review", "In Progress"),
        ("Finish", "Done"),
        ("Design Review", "In Review"),
    ];
    let scene = Scene::start(&moves).await;
    let input = scene.input_with(json!({"jira_key": "ENG-1"}));
    std::fs::write(scene.root.path().join("request.json"), input.to_string()).unwrap();
    let steps = [
        ("choose one:", ""),
        ("1. Peer Review (to In Progress)", ""),
        ("2. Design Review (to In Review)", "2\r"),
        ("\"status\":\"success\"", ""),
    ];
    let pr = ["pr", "--input", "request.json"];
    let ran = at_terminal_with(&pr, &steps, &scene.environment(), scene.root.path()).await;
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    assert!(ran.out.contains("\"errors\":[]"), "{}", ran.out);
    assert_eq!(scene.jira.status("ENG-1").unwrap(), "In Review");
    assert_eq!(scene.pull_requests().len(), 1);
    scene.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_without_choice_skips_transition_alone() {
    let moves = [("Peer Review", "In Progress"), ("Design Review", "In Review")];
    let scene = Scene::start(&moves).await;
    let input = scene.input_with(json!({"jira_key": "ENG-1"}));
    std::fs::write(scene.root.path().join("request.json"), input.to_string()).unwrap();
    let steps = [
        ("2. Design Review (to In Review)", "\r"),
        ("jira_transition_ambiguous", ""),
    ];
    let pr = ["pr", "--input", "request.json"];
    let ran = at_terminal_with(&pr, &steps, &scene.environment(), scene.root.path()).await;
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    assert_eq!(scene.jira.status("ENG-1").unwrap(), "To Do");
    assert_eq!(scene.jira.remote_links("ENG-1").len(), 1);
    assert_eq!(scene.pull_requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_acronym_setting_means_code_review() {
    let scene = Scene::start(&[("Finish", "Done"), ("To CR", "In Progress")]).await;
    let input = scene.input_with(json!({"jira_key": "ENG-1"}));
    let environment = replace_setting(&scene.environment(), "CLI__REVIEW_ACRONYMS", "ICR,CR");
    let answer = expect_success(&scene.pr_with(&input, &[], &environment).await);
    assert_eq!(answer["jira_status"]["current_state"], "In Progress", "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_dry_run_writes_nothing() {
    let scene = Scene::start(&[("Code Review", "In Review")]).await;
    let input = scene.input_with(json!({"jira_key": "ENG-1", "mark_ready": true}));
    let before = scene.github.branches(fixture::REPOSITORY);
    let ran = scene.pr(&input, &["--dry-run"]).await;
    let shown = parse_json_answer(&ran);
    assert_eq!((ran.code, &shown["dry_run"]), (Some(0), &json!(true)), "{ran:?}");
    let steps = shown["would_write"].as_array().unwrap();
    let names: Vec<&str> = steps.iter().map(|step| step["write"].as_str().unwrap()).collect();
    let expected = [
        "push_branch",
        "open_pull_request",
        "mark_ready",
        "link_issue",
        "move_issue",
    ];
    assert_eq!(names, expected);
    assert_eq!(steps[1]["title"], "Add a login form");
    assert_eq!(steps[4]["transition"], "Code Review");
    let asked = scene.input_with(json!({"jira_key": "ENG-1", "mark_ready": true, "dry_run": true}));
    let ran = scene.pr(&asked, &[]).await;
    assert_eq!(parse_json_answer(&ran), shown, "the request may ask for it, too");
    assert_eq!(scene.writes(), Vec::<String>::new());
    assert_eq!(scene.github.branches(fixture::REPOSITORY), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_refuses_wrong_request_before_any_call() {
    let scene = Scene::start(&[]).await;
    let error = expect_failure(&scene.pr(&scene.input_with(json!({"title": "Fix"})), &[]).await);
    assert_eq!(error["type"], "validation_error");
    assert_eq!(error["message"], "PR title must be at least 5 characters");
    assert_eq!(error["context"], json!({"field": "title", "value": "Fix"}));
    let token = format!("ghp_{}", "a1B2c3D4e5".repeat(4));
    let ran = scene
        .pr(&scene.input_with(json!({"title": format!("Use {token}")})), &[])
        .await;
    assert_eq!(expect_failure(&ran)["context"]["field"], "title");
    assert!(!ran.out.contains(&token) && !ran.err.contains(&token), "{ran:?}");
    assert!(
        scene
            .github
            .requests()
            .iter()
            .all(|request| !request.path.contains("/repos/"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_refuses_protected_branches() {
    let scene = Scene::start(&[]).await;
    let gone = expect_failure(
        &scene
            .pr(&scene.input_with(json!({"branch": "feature/gone"})), &[])
            .await,
    );
    assert_eq!(gone["type"], "branch_not_found");
    assert_eq!(
        gone["message"],
        "Branch 'feature/gone' does not exist locally or remotely"
    );
    assert_eq!(gone["context"]["branch"], "feature/gone");
    let protected = scene.input_with(json!({"branch": "main", "base_branch": "develop"}));
    let error = expect_failure(&scene.pr(&protected, &[]).await);
    assert_eq!(
        (&error["type"], &error["context"]["field"]),
        (&json!("validation_error"), &json!("branch"))
    );
    assert_eq!(scene.writes(), Vec::<String>::new());

    expect_success(&scene.pr(&scene.input(), &[]).await);
    let theirs = scene
        .github
        .commit(
            fixture::REPOSITORY,
            BRANCH,
            "Somebody's",
            &[("theirs.py", "pass\n")],
        )
        .unwrap();
    scene.commit("ours.py").await;
    let error = expect_failure(&scene.pr(&scene.input(), &[]).await);
    assert_eq!(error["type"], "git_push_failed");
    assert_eq!(scene.github.branches(fixture::REPOSITORY)[BRANCH], theirs);
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_elses_pull_request_is_not_taken() {
    let scene = Scene::start(&[]).await;
    expect_success(&scene.pr(&scene.input(), &[]).await);
    scene.github.close(fixture::REPOSITORY, 1, "robin").unwrap();
    scene
        .github
        .open_pull_request_as(fixture::REPOSITORY, "robin", BRANCH, "Mine", "My own")
        .unwrap();
    let error = expect_failure(&scene.pr(&scene.input(), &[]).await);
    assert_eq!(error["type"], "pr_creation_failed");
    let message =
        format!("Failed to create pull request: A pull request for branch '{BRANCH}' already exists");
    assert_eq!(error["message"], message);
}

#[tokio::test(flavor = "multi_thread")]
async fn pr_retries_transient_errors_by_type() {
    let scene = Scene::start(&[]).await;
    scene
        .github
        .fail_next(ServiceFault::new("git-receive-pack", 4, 502));
    let error = expect_failure(&scene.pr(&scene.input(), &[]).await);
    assert_eq!(
        (&error["type"], &error["context"]["retries"]),
        (&json!("git_push_failed"), &json!(3))
    );
    assert_eq!(scene.github.faults_left(), 0);

    scene
        .github
        .fail_next(ServiceFault::new("/pulls", 4, 502).on("POST"));
    let error = expect_failure(&scene.pr(&scene.input(), &[]).await);
    assert_eq!(
        (&error["type"], &error["context"]["retries"]),
        (&json!("pr_creation_failed"), &json!(3))
    );
    assert_eq!(scene.github.faults_left(), 0);

    scene.github.fail_next(ServiceFault::new("/graphql", 3, 502));
    let answer = expect_success(
        &scene
            .pr(&scene.input_with(json!({"mark_ready": true})), &[])
            .await,
    );
    let error = one_error(&answer);
    assert_eq!(
        (&error["type"], &error["context"]["retries"]),
        (&json!("mark_ready_failed"), &json!(2))
    );
    assert_eq!(answer["marked_ready"], false);
    assert_eq!(scene.github.faults_left(), 0);
}
