//! `journeyman doctor`: success, and one line for each problem.

use journeyman::local::{LocalServices, PreparedServices, StartPlan};

use crate::{
    checkout::run_git,
    program::{Ran, run_program},
    stage::{Stage, remove_setting, replace_setting},
};

/// Stand-ins with running services.
struct Ward {
    stage: Stage,
    environment: Vec<(String, String)>,
    /// Credentials of ingest for NATS and Redis.
    of_ingest: Vec<(String, String)>,
    local: LocalServices,
}

impl Ward {
    async fn open() -> Self {
        let stage = Stage::start("").await;
        let plan = StartPlan::on_free_ports(stage.environment(), stage.path().join("data"));
        let prepared = PreparedServices::new(plan).await.unwrap();
        let mut environment = prepared.environment.clone();
        // `doctor` connects to NATS as ingest and to Redis as the planner.
        let of_planner = prepared.credentials.of("planner").iter();
        let of_redis = of_planner.filter(|(name, _)| name.contains("REDIS"));
        let of_ingest = prepared.credentials.of("ingest").to_vec();
        environment.extend(of_ingest.iter().chain(of_redis).cloned());
        let local = Box::pin(prepared.serve()).await.unwrap();
        Self {
            stage,
            environment,
            of_ingest,
            local,
        }
    }

    async fn doctor(&self, environment: &[(String, String)]) -> Ran {
        self.stage.run(&["doctor"], environment).await
    }

    /// Returns the failures after one changed setting.
    async fn failures(&self, key: &str, value: &str) -> Vec<String> {
        let ran = self.doctor(&replace_setting(&self.environment, key, value)).await;
        list_failure_lines(&ran)
    }
}

fn list_failure_lines(ran: &Ran) -> Vec<String> {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let failed = ran.out.lines().filter(|line| line.starts_with("FAIL "));
    let failed: Vec<_> = failed.map(str::to_owned).collect();
    for line in &failed {
        let remedy = line
            .rsplit_once(" -> ")
            .map(|(_, remedy)| remedy)
            .unwrap_or_default();
        let is_command = remedy.starts_with("`journeyman ") && remedy.ends_with('`');
        assert!(
            is_command || remedy.starts_with("docs/"),
            "what repairs it? {line}"
        );
    }
    assert_eq!(
        ran.out.lines().last().unwrap(),
        format!("{} failed", failed.len())
    );
    failed
}

/// Checks that there is one failure with this start and text.
fn assert_one(failed: &[String], check: &str, text: &str) {
    let [line] = failed else {
        panic!("{check}: {failed:#?}")
    };
    assert!(
        line.starts_with(&format!("FAIL  {check}")) && line.contains(text),
        "{check}, {text}: {line}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_one_line_per_problem() {
    let ward = Ward::open().await;
    let well = ward.doctor(&ward.environment).await;
    assert_eq!(well.code, Some(0), "{well:?}");
    assert!(
        !well.out.contains("FAIL") && well.out.ends_with("0 failed\n"),
        "{}",
        well.out
    );
    for part in [
        "acme/shop",
        "edit_file",
        "run_command",
        "journeyman-reader[bot] reads, journeyman[bot] writes",
        "Journeyman with every permission in ENG",
        "ok    jira requesters        members of journeyman-users",
        "ok    model                  scripted-model at 127.0.0.1:",
        "answers to the key in the setting model.api_key",
    ] {
        assert!(well.out.contains(part), "{part}: {}", well.out);
    }
    for secret in [
        testkit::jira::READER_API_TOKEN,
        testkit::jira::WRITER_API_TOKEN,
        testkit::model::MODEL_API_KEY,
    ] {
        assert!(!well.out.contains(secret), "{}", well.out);
    }

    let failed = ward.failures("JIRA_READER__API_TOKEN", "wrong-token").await;
    assert_one(&failed, "jira reader", "credentials");
    let ran = ward
        .doctor(&replace_setting(
            &ward.environment,
            "JIRA_READER__API_TOKEN",
            "wrong-token",
        ))
        .await;
    let said = "skip  two Jira accounts      not both accounts answered";
    assert!(ran.out.contains(said), "{}", ran.out);
    for (key, check) in [
        ("JIRA_READER__BASE_URL", "jira reader"),
        ("GITHUB_READER__API_URL", "github reader"),
    ] {
        let failed = ward.failures(key, "http://127.0.0.1:1").await;
        assert_one(&failed, check, "http://127.0.0.1:1: ");
        assert!(failed[0].contains("#a-server-does-not-answer"), "{failed:#?}");
    }
    let failed = ward.failures("GITHUB_READER__APP_ID", "999").await;
    assert_one(
        &failed,
        "github reader",
        "the App with the id 999 at http://127.0.0.1",
    );
    let failed = ward.failures("NATS__URL", "nats://127.0.0.1:1").await;
    assert_one(&failed, "nats", "127.0.0.1:1");
    let failed = ward.failures("REDIS__URL", "redis://127.0.0.1:1").await;
    assert_one(&failed, "redis", "127.0.0.1:1");
    let failed = ward
        .failures("PLANNER__POOLS__DEFAULT", "http://127.0.0.1:1")
        .await;
    assert_one(&failed, "pool", "default http://127.0.0.1:1: cannot be reached");
    let failed = ward.failures("INGEST__JIRA_TRIGGER_GROUP", "").await;
    assert_one(&failed, "jira requesters", "nobody may ask for work: ");
    let failed = ward.failures("INGEST__JIRA_TRIGGER_GROUP", "nobody").await;
    assert_one(
        &failed,
        "jira requesters",
        "Jira has no group nobody; it has journeyman-users",
    );
    let failed = ward.failures("MODEL__API_KEY", "wrong-key-of-nobody").await;
    assert_one(
        &failed,
        "model",
        "for the key in the setting model.api_key; it says",
    );
    assert!(!failed[0].contains("wrong-key-of-nobody"), "{failed:#?}");
    let failed = ward.failures("MODEL__BASE_URL", "http://127.0.0.1:1").await;
    assert_one(
        &failed,
        "model",
        "the model provider at 127.0.0.1:1 cannot be reached",
    );
    let failed = ward.failures("INGEST__ROUTER_SLOTS", "0").await;
    assert_one(&failed, "ingest settings", "ingest.router_slots: ");
    ward.local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_wrong_credentials_and_rules() {
    let ward = Ward::open().await;
    let writer = testkit::github::WRITER_APP_ID.to_string();
    let failed = ward.failures("GITHUB_READER__APP_ID", &writer).await;
    assert_eq!(failed.len(), 2, "{failed:#?}");
    assert!(
        failed[0].contains("contents:write") && failed[0].contains("take that away"),
        "{failed:#?}"
    );
    assert!(
        failed[1].contains("two GitHub accounts") && failed[1].contains("must be two accounts"),
        "{failed:#?}"
    );
    let token = testkit::jira::WRITER_API_TOKEN;
    let environment = replace_setting(&ward.environment, "JIRA_READER__API_TOKEN", token);
    let environment = replace_setting(&environment, "JIRA_READER__EMAIL", testkit::jira::WRITER_EMAIL);
    let failed = list_failure_lines(&ward.doctor(&environment).await);
    assert_eq!(failed.len(), 2, "{failed:#?}");
    assert!(
        failed[0].contains("jira reader") && failed[0].contains("lacks Browse users and groups"),
        "{failed:#?}"
    );
    assert!(
        failed[1].contains("two Jira accounts") && failed[1].contains("must be two accounts"),
        "{failed:#?}"
    );
    let jira = &ward.stage.jira;
    jira.withhold_permission(testkit::jira::WRITER_EMAIL, "TRANSITION_ISSUES");
    let failed = list_failure_lines(&ward.doctor(&ward.environment).await);
    assert_one(&failed, "jira writer", "lacks Transition issues in ENG");
    jira.restore_permissions();
    let github = &ward.stage.github;
    let less = [("metadata", "read"), ("contents", "write"), ("issues", "write")];
    github.set_app_permissions(testkit::github::WRITER_APP_ID, &less);
    let failed = list_failure_lines(&ward.doctor(&ward.environment).await);
    assert_one(&failed, "github writer", "lacks pull_requests:write");
    github.reset_app_permissions();
    let ran = ward.doctor(&ward.environment).await;
    assert!(ran.code == Some(0) && !ran.out.contains("warn"), "{ran:?}");
    let more = [
        "metadata",
        "checks",
        "actions",
        "statuses",
        "pull_requests",
        "issues",
        "discussions",
        "contents",
    ];
    github.set_app_permissions(testkit::github::READER_APP_ID, &more.map(|name| (name, "read")));
    github.set_app_events(testkit::github::READER_APP_ID, &["push", "check_run", "star"]);
    github.set_app_events(testkit::github::WRITER_APP_ID, &["push"]);
    jira.grant_permission(testkit::jira::READER_EMAIL, "EDIT_ISSUES");
    jira.grant_permission(testkit::jira::WRITER_EMAIL, "DELETE_ISSUES");
    let ran = ward.doctor(&ward.environment).await;
    assert_eq!(ran.code, Some(0), "what is too much works: {ran:?}");
    let warnings: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("warn ")).collect();
    let expected = [
        ("github reader ", "and without need contents:read: take that away"),
        (
            "github reader events",
            "not subscribed to check_suite, workflow_run, status, pull_request, ",
        ),
        (
            "github writer events",
            "subscribed to push: the writer needs no webhook",
        ),
        ("jira reader", "and without need Edit issues in ENG"),
        ("jira writer", "and without need Delete issues in ENG"),
    ];
    assert_eq!(warnings.len(), expected.len(), "{warnings:#?}");
    for (warning, (check, text)) in warnings.iter().zip(expected) {
        assert!(
            warning.starts_with(&format!("warn  {check}")) && warning.contains(text),
            "{check}, {text}: {warning}"
        );
    }
    assert!(
        warnings[1].contains("subscribed in vain to star"),
        "{warnings:#?}"
    );
    github.reset_app_permissions();
    jira.restore_permissions();
    let failed = list_failure_lines(
        &ward
            .doctor(&remove_setting(&ward.environment, "MODEL__API_KEY"))
            .await,
    );
    assert_one(&failed, "planner settings", "model.api_key: is missing");
    let failed = ward.failures("RULES__DIR", "/no/such/folder").await;
    assert_one(&failed, "rules", "/no/such/folder");
    let bad = "repo: {owner: acme, name: bad}\njira:\n  project_kye: BAD\n";
    std::fs::write(ward.stage.path().join("configs/bad.yaml"), bad).unwrap();
    let failed = list_failure_lines(&ward.doctor(&ward.environment).await);
    assert_one(&failed, "rules", "bad.yaml:3 jira.project_kye: ");
    std::fs::write(
        ward.stage.path().join("configs/bad.yaml"),
        "skip:\n  lables: [x]\n",
    )
    .unwrap();
    let failed = list_failure_lines(&ward.doctor(&ward.environment).await);
    assert_eq!(failed.len(), 2, "{failed:#?}");
    assert!(failed[0].contains("bad.yaml:2 skip.lables"), "{failed:#?}");
    assert!(
        failed[1].contains("disabled until the defaults in bad.yaml are repaired"),
        "{failed:#?}"
    );
    ward.local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_accepts_single_machine_setup() {
    let stage = Stage::start("").await;
    let ran = stage.run(&["doctor"], &stage.environment()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in [
        "ok    planner settings       complete",
        "skip  nats                   [nats] is not set; `up` starts its own",
        "skip  pools                  `up` has an executor of its own",
    ] {
        assert!(ran.out.lines().any(|found| found == line), "{line}: {}", ran.out);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ingest_is_checked_without_other_secrets() {
    let ward = Ward::open().await;
    // As in the pod of the chart's test: the settings name the writers, and only ingest's secrets are there.
    let others = ["PLANNER", "EXECUTOR", "REPORTER", "EGRESS", "MODEL"];
    let others = others.map(|section| format!("JOURNEYMAN__{section}__"));
    let is_other = |name: &str| {
        let is_secret = name.ends_with("TOKEN") || name.ends_with("PRIVATE_KEY");
        let is_of_writer = name.contains("_WRITER__") && is_secret;
        is_of_writer || others.iter().any(|section| name.starts_with(section))
    };
    let mut environment = ward.environment.clone();
    environment.retain(|(name, _)| !is_other(name));
    environment.extend(ward.of_ingest.iter().cloned());
    let ran = ward.stage.run(&["doctor", "--ingest-only"], &environment).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in [
        "ok    ingest settings        complete",
        "ok    redis                  redis://",
        "ok    jira reader            ",
        "skip  other settings         ",
        "skip  github writer          ",
        "skip  jira writer            ",
        "skip  pools                  ",
    ] {
        assert!(
            ran.out.lines().any(|found| found.starts_with(line)),
            "{line}: {}",
            ran.out
        );
    }
    let whole = ward.doctor(&environment).await;
    assert!(
        whole.code == Some(1) && whole.out.contains("FAIL  planner settings"),
        "{whole:?}"
    );
    ward.local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn offline_check_asks_nothing_outside() {
    let stage = Stage::start("").await;
    let offline = ["doctor", "--offline"];
    let ran = stage.run(&offline, &stage.environment()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in ["ok    planner settings", "skip  network", "skip  jira requesters"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let asked = (stage.github.requests().len(), stage.jira.requests().len());
    assert_eq!((asked, stage.model.all_calls().len()), ((0, 0), 0));
    let nobody = replace_setting(&stage.environment(), "INGEST__JIRA_TRIGGER_GROUP", "");
    let failed = list_failure_lines(&stage.run(&offline, &nobody).await);
    assert_one(&failed, "jira requesters", "nobody may ask for work");
}

#[tokio::test(flavor = "multi_thread")]
async fn clock_that_differs_from_servers_is_named() {
    let stage = Stage::start("").await;
    let doctor = async || stage.run(&["doctor"], &stage.environment()).await;
    let well = doctor().await;
    let compared = well
        .out
        .lines()
        .filter(|line| line.starts_with("ok    clock ") && line.contains("that of 127.0.0.1"));
    assert_eq!(compared.count(), 2, "{}", well.out);
    stage.github.set_date("Sun, 06 Nov 1994 08:49:37 GMT");
    let failed = list_failure_lines(&doctor().await);
    assert_one(&failed, "clock", " s ahead of that of 127.0.0.1: tokens ");
    stage.jira.set_date("Fri, 01 Jan 2100 00:00:00 GMT");
    let failed = list_failure_lines(&doctor().await);
    let count_lines = |text: &str| failed.iter().filter(|line| line.contains(text)).count();
    assert_eq!(
        (
            failed.len(),
            count_lines(" s ahead of "),
            count_lines(" s behind ")
        ),
        (2, 1, 1),
        "{failed:#?}"
    );
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_warns_of_branch_named_as_folder() {
    let stage = Stage::start("").await;
    let files = [("README.md", "x\n")];
    stage
        .github
        .commit(testkit::fixture::REPOSITORY, "fix", "A branch", &files)
        .unwrap();
    let ran = stage.run(&["doctor"], &stage.environment()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warned = "acme/shop: the branch fix stands in the way of branches in the folder fix/";
    let lines: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("warn ")).collect();
    assert!(lines.len() == 1 && lines[0].contains(warned), "{}", ran.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_declared_setup_of_checkout() {
    let stage = Stage::start("").await;
    let folder = stage.path();
    std::fs::write(
        folder.join(".devcontainer.json"),
        r#"{"postCreateCommand": "npm ci"}"#,
    )
    .unwrap();
    run_git(folder, &["init", "-q", "-b", "main"]);
    run_git(folder, &["add", ".devcontainer.json"]);
    run_git(folder, &["commit", "-q", "-m", "Add a container"]);
    let list_hints = async || {
        let ran = run_program("journeyman", &["doctor"], &stage.environment(), folder).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let hints = ran.out.lines().filter(|line| line.starts_with("warn  setup"));
        hints.map(str::to_owned).collect::<Vec<_>>()
    };
    // The checkout of another repository, or of one at another server, says nothing about this one.
    let server = stage.github.git_url();
    let other = format!("{server}/acme/other.git");
    run_git(folder, &["remote", "add", "origin", &other]);
    assert_eq!(list_hints().await, [""; 0]);
    let elsewhere = "https://github.example/acme/shop.git";
    run_git(folder, &["remote", "set-url", "origin", elsewhere]);
    assert_eq!(list_hints().await, [""; 0]);
    let own = format!("{server}/acme/shop.git");
    run_git(folder, &["remote", "set-url", "origin", &own]);
    let hints = list_hints().await;
    let hint = "acme/shop: its rules name no setup, and .devcontainer.json declares one: add `npm ci` to executor.setup";
    assert!(hints.len() == 1 && hints[0].contains(hint), "{hints:#?}");
    let rules = folder.join("configs/shop.yaml");
    let text = std::fs::read_to_string(&rules).unwrap();
    std::fs::write(&rules, format!("{text}executor:\n  setup: [npm ci]\n")).unwrap();
    assert_eq!(list_hints().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_repository_without_access() {
    let stage = Stage::start("").await;
    let seen = stage.run(&["doctor"], &stage.environment()).await;
    let line = "ok    repository             acme/shop: both accounts of GitHub see it";
    assert!(seen.out.lines().any(|found| found == line), "{seen:?}");
    let text = "repo: {owner: acme, name: nowhere}\njira: {project_key: OTHER}\n";
    std::fs::write(stage.path().join("configs/shop.yaml"), text).unwrap();
    let failed = list_failure_lines(&stage.run(&["doctor"], &stage.environment()).await);
    let failure = failed.iter().find(|line| line.starts_with("FAIL  repository"));
    let part = "acme/nowhere: no account of GitHub sees it";
    assert!(
        failure.is_some_and(|line| line.contains(part) && !line.contains("did you mean")),
        "{failed:#?}"
    );
    std::fs::write(
        stage.path().join("configs/shop.yaml"),
        "repo: {owner: acme, name: shpo}\n",
    )
    .unwrap();
    let failed = list_failure_lines(&stage.run(&["doctor"], &stage.environment()).await);
    let failure = failed.iter().find(|line| line.starts_with("FAIL  repository"));
    let part = "; did you mean acme/shop? -> ";
    assert!(failure.is_some_and(|line| line.contains(part)), "{failed:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_lists_existing_projects_and_statuses() {
    let ward = Ward::open().await;
    let rules = tempfile::tempdir().unwrap();
    let place = rules.path().display().to_string();
    let text = "repo: {owner: acme, name: shop}\njira: {project_key: ENG}\nagent: {status: Redy for Agent}\n";
    std::fs::write(rules.path().join("shop.yaml"), text).unwrap();
    let failed = ward.failures("RULES__DIR", &place).await;
    let problem = format!("{place}/shop.yaml:3: ENG has no status \"Redy for Agent\"; it has ");
    assert_one(&failed, "jira reader", &problem);
    assert!(
        failed[0].contains("; did you mean Ready for Agent? -> "),
        "{failed:#?}"
    );
    let text = "repo: {owner: acme, name: shop}\njira: {project_key: ENGG}\n";
    std::fs::write(rules.path().join("shop.yaml"), text).unwrap();
    let failed = ward.failures("RULES__DIR", &place).await;
    assert_eq!(failed.len(), 2, "{failed:#?}");
    for (line, role) in failed.iter().zip(["reader", "writer"]) {
        let problem =
            format!("{place}/shop.yaml:2: Jira has no project ENGG, or this account cannot see it; ");
        assert!(
            line.starts_with(&format!("FAIL  jira {role}"))
                && line.contains(&problem)
                && line.contains("it sees ENG, OPS; did you mean ENG? -> "),
            "{line}"
        );
    }
    ward.local.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reads_project_with_project_token() {
    let rules = "triage:\n  priorities: [High]\n  project:\n    owner: acme\n    number: 3\n    priority_field: Urgency\n    \
        fields: {Size: [S, XXL]}\n";
    let stage = Stage::start(rules).await;
    let without_token = stage.environment();
    let token = testkit::github::PROJECT_TOKEN;
    let with_token = replace_setting(&without_token, "GITHUB_WRITER__PROJECT_TOKEN", token);
    let doctor = async |environment| stage.run(&["doctor"], environment).await;
    let ran = doctor(&without_token).await;
    let skipped =
        "skip  project                the fields of projects are left alone: project_token is not set";
    assert!(ran.code == Some(0) && ran.out.contains(skipped), "{}", ran.out);
    let failed = list_failure_lines(&doctor(&with_token).await);
    assert_one(&failed, "project", "project 3 of acme");
    stage
        .github
        .create_project("acme", 3, &[("Size", "SINGLE_SELECT", &["S"])]);
    let failed = list_failure_lines(&doctor(&with_token).await);
    assert_one(
        &failed,
        "project",
        "Project 3 (acme/3) has no \"XXL\" in \"Size\", field \"Urgency\"",
    );
    let fields: [(&str, &str, &[&str]); 2] = [
        ("Size", "SINGLE_SELECT", &["S", "XXL"]),
        ("Urgency", "SINGLE_SELECT", &["High"]),
    ];
    stage.github.create_project("acme", 3, &fields);
    let ran = doctor(&with_token).await;
    assert!(
        ran.code == Some(0) && ran.out.contains("Project 3 (acme/3), for acme/shop"),
        "{}",
        ran.out
    );
    assert!(!ran.out.contains(token), "{}", ran.out);
    let failed = list_failure_lines(
        &doctor(&replace_setting(
            &without_token,
            "GITHUB_READER__PROJECT_TOKEN",
            token,
        ))
        .await,
    );
    assert_one(&failed, "ingest settings", "github_reader.project_token");
}
