//! `journeyman watch` and `serve`: all services in one process, with reports on the command line.

use rustix::process::Signal;
use testkit::{ServiceFault, fixture, github::RunConclusion};

use crate::{
    program::Program,
    stage::{Stage, remove_setting, replace_setting},
};

#[tokio::test(flavor = "multi_thread")]
async fn watch_finds_and_works_requested_tickets() {
    let stage = Stage::start("").await;
    let environment = stage.environment();
    let arguments = ["watch", "--config", "configs/shop.yaml", "--interval", "1"];
    let mut watch = Program::start("journeyman", &arguments, &environment, stage.path());
    watch.until_output_contains("watching acme/shop every 1 s").await;
    let key = stage.file_ticket();
    stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    watch.until_output_contains("run finished: completed").await;
    let runs = stage.run(&["runs"], &[]).await;
    assert!(runs.out.contains("implement      finished completed"), "{runs:?}");
    watch.signal(Signal::INT);
    let ran = watch.ended().await;
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert!(
        ran.out
            .lines()
            .skip(1)
            .all(|line| line.starts_with("jira:ENG-1@")),
        "each line names its run: {}",
        ran.out
    );
    assert_eq!(stage.github.pull_requests(fixture::REPOSITORY).len(), 1);
    assert!(!stage.path().join(".journeyman/api.json").exists());
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_dry_run_lists_candidates_once() {
    let stage = Stage::start("").await;
    let ready = stage.file_ticket();
    stage.jira.move_issue(&ready, "Ready for Agent", "ada").unwrap();
    let skipped = stage
        .jira
        .create_issue(fixture::PROJECT, "Later", "[AGENT-SKIP]", "Task", &[]);
    stage.jira.move_issue(&skipped, "Ready for Agent", "ada").unwrap();
    stage
        .jira
        .create_issue(fixture::PROJECT, "Not yet", "", "Task", &[]);
    let environment = remove_setting(&stage.environment(), "MODEL__API_KEY");
    let arguments = ["watch", "--config", "configs/shop.yaml", "--dry-run"];
    let first = stage.run(&arguments, &environment).await;
    assert_eq!((first.code, first.err.as_str()), (Some(0), ""), "{first:?}");
    let mut lines: Vec<&str> = first.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "jira:ENG-2: Journeyman leaves this ticket alone: [AGENT-SKIP] is in the description. Remove it first.",
            "would start implement on jira:ENG-1 in acme/shop: Cart total ignores the quantity",
        ]
    );
    let again = stage.run(&arguments, &environment).await;
    assert_eq!(again.out, first.out, "nothing is remembered of it");
    assert_eq!(stage.jira.status(&ready).as_deref(), Some("Ready for Agent"));
    assert!(stage.jira.comments(&ready).is_empty() && stage.jira.comments(&skipped).is_empty());
    assert!(stage.github.pull_requests(fixture::REPOSITORY).is_empty());
    assert_eq!(stage.model.call_count(), 0);
    stage.assert_kept_protocols();

    // A failed search must not count as an empty one.
    stage.jira.fail_next(ServiceFault::new("/search", 50, 403));
    let blind = stage.run(&arguments, &environment).await;
    assert_eq!(blind.code, Some(1), "{blind:?}");
    assert!(
        blind.err.starts_with("journeyman: ") && blind.err.contains("ENG"),
        "{blind:?}"
    );
}

const ONCE: [&str; 4] = ["watch", "--once", "--config", "configs/shop.yaml"];

/// Runs one watch until nothing is new, and returns its output.
async fn watch_until_rest(stage: &Stage) -> String {
    let ran = stage.run(&ONCE, &stage.environment()).await;
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    ran.out
}

/// Runs one watch after which no run waits, and returns its output.
async fn watch_once(stage: &Stage) -> String {
    let out = watch_until_rest(stage).await;
    assert!(out.ends_with("nothing is left to do\n"), "{out}");
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_that_end_carry_ticket_to_its_merge() {
    // Without this rule the watch would wait for the time after which a commit counts as one without checks.
    let stage = Stage::start("ci: {required: true}\n").await;
    assert_eq!(watch_once(&stage).await, "nothing is left to do\n");
    let key = stage.file_ticket();
    stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let worked = watch_once(&stage).await;
    assert!(worked.contains("run finished: completed"), "{worked}");
    let pulls = stage.github.pull_requests(fixture::REPOSITORY);
    let [pull] = pulls.as_slice() else {
        panic!("{pulls:#?}")
    };
    assert!(pull.draft, "{pull:#?}");
    let checks = [("test", RunConclusion::Success, "")];
    stage
        .github
        .run_checks(fixture::REPOSITORY, &pull.head_sha, &checks)
        .unwrap();
    watch_once(&stage).await;
    assert!(!stage.github.pull_requests(fixture::REPOSITORY)[0].draft);
    stage
        .github
        .merge(fixture::REPOSITORY, pull.number, "grace")
        .unwrap();
    watch_once(&stage).await;
    assert_eq!(stage.jira.status(&key).as_deref(), Some("Done"));
    assert_eq!(watch_once(&stage).await, "nothing is left to do\n");
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_that_ends_names_waiting_run() {
    let stage = Stage::start("agent: {approval: before_push}\n").await;
    let key = stage.file_ticket();
    stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let worked = watch_until_rest(&stage).await;
    assert!(
        worked.ends_with(" waits for: decision\nthe rest waits for: decision\n"),
        "{worked}"
    );
    assert!(!worked.contains("nothing is left to do"), "{worked}");
    assert!(stage.github.pull_requests(fixture::REPOSITORY).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_that_ends_fails_for_failed_run() {
    let stage = Stage::start("").await;
    stage.model.set_script("", vec![fixture::nothing_to_do()]);
    let key = stage.file_ticket();
    stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let ran = stage.run(&ONCE, &stage.environment()).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let [line] = ran.complaints()[..] else {
        panic!("one line for the one run: {ran:?}")
    };
    assert!(line.starts_with("journeyman: jira:ENG-1@"), "{line}");
    assert!(
        line.ends_with(" ended: given up, already done: There is nothing to do."),
        "{line}"
    );
    assert!(!ran.out.contains("nothing is left to do"), "{ran:?}");
    // The failure belongs to the watch in which the run ended.
    watch_once(&stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_listens_with_rules_of_folder() {
    let stage = Stage::start("").await;
    let mut environment = remove_setting(&stage.environment(), "RULES__DIR");
    for service in ["PLANNER", "EXECUTOR", "REPORTER", "EGRESS"] {
        environment = replace_setting(&environment, &format!("{service}__LISTEN"), "127.0.0.1:0");
    }
    let environment = replace_setting(&environment, "INGEST__LISTEN", "127.0.0.2:1");
    let port = servers::free_port().unwrap().to_string();
    let wrong = ["serve", "--port", &port, "--config-dir", "nowhere"];
    let ran = stage.run(&wrong, &environment).await;
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(1), "journeyman: --config-dir nowhere is no folder\n")
    );
    let arguments = ["serve", "--port", &port, "--config-dir", "configs"];
    let mut serve = Program::start("journeyman", &arguments, &environment, stage.path());
    serve
        .until_output_contains(&format!("ready: http://127.0.0.2:{port}/webhooks/jira"))
        .await;
    let listed = stage.run(&["list-tickets"], &[]).await;
    assert_eq!(
        (listed.code, listed.err.as_str()),
        (Some(0), ""),
        "the rules are known: {listed:?}"
    );
    serve.signal(Signal::TERM);
    let ran = serve.ended().await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
