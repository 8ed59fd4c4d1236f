//! `journeyman up`, and the commands that connect to it.

use std::{os::unix::fs::PermissionsExt, process::Stdio};

use domain::JournalEntry;
use rustix::process::Signal;
use serde_json::json;
use testkit::{ScriptStep, fixture, poll_until};
use tokio::process::Command;

use crate::{
    checkout::create_repository,
    forms,
    program::{PATIENCE, Program, Ran, run_program},
    stage::{Stage, replace_setting},
};

const SECRET: &str = "webhook-secret-of-the-stand-ins";

pub(crate) struct Up {
    pub(crate) stage: Stage,
    program: Program,
}

impl Up {
    pub(crate) async fn start(stage: Stage) -> Self {
        Self::start_with(stage, &[]).await
    }

    /// Starts `up` with additional settings, by their names without `JOURNEYMAN__`.
    pub(crate) async fn start_with(stage: Stage, more: &[(&str, &str)]) -> Self {
        let mut environment = stage.environment();
        for (key, value) in more {
            environment = replace_setting(&environment, key, value);
        }
        for service in ["INGEST", "PLANNER", "EXECUTOR", "REPORTER", "EGRESS"] {
            environment = replace_setting(&environment, &format!("{service}__LISTEN"), "127.0.0.1:0");
        }
        let mut program = Program::start("journeyman", &["up"], &environment, stage.path());
        program.until_output_contains("ready: ").await;
        let out = program.out();
        let (_, ready) = out.split_once("ready: ").unwrap();
        let url = ready.split_whitespace().next().unwrap();
        let base = url.strip_suffix("/webhooks/jira").unwrap();
        stage
            .github
            .set_webhook(&format!("{base}/webhooks/github"), SECRET);
        stage.jira.set_webhook(url, SECRET);
        Self { stage, program }
    }

    /// Drains the services and returns the stand-ins with the data.
    pub(crate) async fn stop(self) -> Stage {
        let access = self.stage.path().join(".journeyman/api.json");
        let mode = std::fs::metadata(&access).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "the token is for one user");
        self.program.signal(Signal::TERM);
        let ran = self.program.ended().await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!access.exists(), "nobody answers there any more");
        self.stage
    }

    pub(crate) async fn ask(&self, arguments: &[&str]) -> Ran {
        self.stage.run(arguments, &[]).await
    }

    pub(crate) async fn output(&self, arguments: &[&str]) -> String {
        let ran = self.ask(arguments).await;
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        ran.out
    }

    /// Returns the abbreviated commit that a run asks about, as its journal names it.
    pub(crate) async fn asked_about(&self, run: &str) -> String {
        let journal = self.output(&["journal", run]).await;
        let (_, head) = journal.split_once("asked a person about ").expect("asked");
        head.split_whitespace().next().unwrap().to_owned()
    }

    /// Waits until `journeyman runs` contains `text` and returns the id of the first run.
    pub(crate) async fn until_runs_contain(&self, text: &str) -> String {
        let listed = poll_until(text, PATIENCE, async || {
            let runs = self.output(&["runs"]).await;
            runs.contains(text).then_some(runs)
        });
        let listed = listed.await.unwrap();
        listed.split_whitespace().next().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn restart_keeps_run_at_decided_gate() {
    let up = Up::start(Stage::start("agent: {approval: before_push}\n").await).await;
    assert_eq!(up.output(&["runs"]).await, "");
    let key = up.stage.file_ticket();
    up.stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let run = up.until_runs_contain("decision").await;
    assert!(run.starts_with("jira:ENG-1@"), "{run}");

    let nameless = up.ask(&["decide", &run, "approve"]).await;
    assert_eq!(nameless.code, Some(2), "{nameless:?}");
    let head = up.asked_about(&run).await;
    let other = up.ask(&["approve", &key, "0000000"]).await;
    assert_eq!(other.code, Some(1), "{other:?}");
    let decided = up.output(&["approve", &key, &head]).await;
    assert_eq!(decided, format!("decided: {run}\n"));
    let followed = up.output(&["journal", &run, "--follow"]).await;
    assert!(followed.contains("ms  person    "), "{followed}");
    assert!(followed.contains("run finished: completed"), "{followed}");
    assert_eq!(up.stage.github.pull_requests(fixture::REPOSITORY).len(), 1);
    let text = up.output(&["journal", &run]).await;
    assert_eq!(text, followed);
    let json = up.output(&["journal", &run, "--json"]).await;
    let entries: Vec<JournalEntry> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(entries.len() >= text.lines().count());
    assert!(entries.windows(2).all(|two| two[0].position < two[1].position));

    // The list of runs follows the journal later, and the forms of one list are compared.
    assert_eq!(up.until_runs_contain("completed").await, run);
    forms::assert_agree(&up, &run, &key).await;
    forms::assert_open(&up, &run, &key).await;
    forms::assert_paged(&up, &run).await;

    let again = up.ask(&["decide", &run, "approve", "--head", &head]).await;
    assert_eq!(again.code, Some(1), "{again:?}");
    assert_eq!(again.complaints().len(), 1, "{again:?}");
    let nothing = up.ask(&["reject", &key]).await;
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(
        nothing.complaints()[0].contains("waits for a decision"),
        "{nothing:?}"
    );
    let unknown = up.ask(&["journal", "jira:ENG-1@999"]).await;
    assert_eq!(
        (unknown.code, unknown.err.as_str()),
        (Some(1), "journeyman: run jira:ENG-1@999 does not exist\n")
    );

    let second = Up::start(up.stop().await).await;
    assert_eq!(second.until_runs_contain("completed").await, run);
    assert_eq!(second.output(&["journal", &run, "--json"]).await, json);
    second.stop().await.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn up_with_folders_alone_lists_disabled_parts() {
    let stage = Stage::start("").await;
    let shop = stage.path().join("shop");
    create_repository(&shop, "main", &[("shop.py", "total = 1\n")]);
    std::fs::write(stage.path().join("configs/shop.yaml"), "repo: {folder: shop}\n").unwrap();
    let mut environment = stage.environment();
    environment.retain(|(name, _)| name.contains("__MODEL__") || name.contains("__RULES__"));
    environment = replace_setting(&environment, "FOLDER__SHOP__PATH", &shop.display().to_string());
    for service in ["INGEST", "PLANNER", "EXECUTOR", "REPORTER", "EGRESS"] {
        environment = replace_setting(&environment, &format!("{service}__LISTEN"), "127.0.0.1:0");
    }
    let doctor = stage.run(&["doctor"], &environment).await;
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    let mut up = Program::start("journeyman", &["up"], &environment, stage.path());
    up.until_output_contains("console at").await;
    let output = up.out();
    let lines: Vec<&str> = output.lines().collect();
    let [ready, jira, github, _console] = lines[..] else {
        panic!("{output}")
    };
    assert!(ready.starts_with("ready: API at http://127.0.0.1:"), "{ready}");
    assert!(jira.contains("`journeyman setup jira`"), "{jira}");
    assert!(github.contains("`journeyman setup github`"), "{github}");
    assert_eq!(stage.run(&["runs"], &[]).await.code, Some(0));
    up.signal(Signal::TERM);
    assert_eq!(up.ended().await.code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_stopped_by_its_ticket() {
    let up = Up::start(Stage::start("agent: {approval: before_push}\n").await).await;
    let unknown = up.ask(&["stop", "ENG-7", "--yes"]).await;
    assert_eq!(
        (unknown.code, unknown.err.as_str()),
        (Some(1), "journeyman: nothing is known of jira:ENG-7\n")
    );
    let key = up.stage.file_ticket();
    up.stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let run = up.until_runs_contain("decision").await;
    assert_eq!(
        up.output(&["stop", "ENG-1", "--yes"]).await,
        "stop asked for: ENG-1\n"
    );
    let followed = up.output(&["journal", &run, "--follow"]).await;
    assert!(followed.contains("asked to stop"), "{followed}");
    up.until_runs_contain("stopped").await;
    let over = up.ask(&["stop", &run]).await;
    assert_eq!(
        (over.code, over.err),
        (Some(1), format!("journeyman: run {run} is over\n"))
    );
    assert_eq!(up.stage.github.branches(fixture::REPOSITORY).len(), 1);
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gate_commands_accept_ticket_as_run() {
    let up = Up::start(Stage::start("agent: {approval: before_push}\n").await).await;
    let key = up.stage.file_ticket();
    let mut script = fixture::build_shop_script();
    let note = json!({"path": "notes/rounding.md", "content": "Rounded.\n"});
    script.push(ScriptStep::call("write_file", note).expecting("Say how it is rounded."));
    script.push(fixture::build_finish_step(
        "cart",
        "Count every piece in the cart's total",
    ));
    up.stage.model.set_script("", script);
    up.stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let run = up.until_runs_contain("decision").await;
    let before = up.asked_about(&run).await;
    let said = up.output(&["say", &run, "Mind the Swiss franc."]).await;
    assert_eq!(said, format!("said to jira:{key}\n"));
    let journal = poll_until("the words in the journal", PATIENCE, async || {
        let journal = up.output(&["journal", &run]).await;
        journal.contains("Swiss franc").then_some(journal)
    });
    let journal = journal.await.unwrap();
    let dry = up
        .output(&["feedback", &key, "Say how it is rounded.", "--dry-run"])
        .await;
    assert_eq!(
        dry,
        format!("would send run {run} back to change it: Say how it is rounded.\n")
    );
    assert_eq!(up.output(&["journal", &run]).await, journal, "nothing happened");
    let said = up.output(&["feedback", &key, "Say how it is rounded."]).await;
    assert_eq!(said, format!("decided: {run}\n"));
    let after = poll_until("another question", PATIENCE, async || {
        let journal = up.output(&["journal", &run]).await;
        let asked = journal.matches("asked a person about ").count();
        (asked == 2).then_some(journal)
    });
    let after = after.await.unwrap();
    let read = up
        .stage
        .model
        .calls()
        .iter()
        .any(|call| call.request.to_string().contains("Mind the Swiss franc."));
    assert!(read, "the model read the comment");
    up.until_runs_contain("decision").await;
    let (_, head) = after.rsplit_once("asked a person about ").unwrap();
    assert!(!head.starts_with(&before), "the change is another one: {after}");
    assert!(up.output(&["diff", &run]).await.contains("notes/rounding.md"));

    let dry = up.output(&["reject", &key, "--dry-run"]).await;
    assert_eq!(
        dry,
        format!("would reject what run {run} asks about, and the run would end\n")
    );
    let waits = up.output(&["runs", "--status", "parked"]).await;
    assert!(waits.contains("decision"), "it waits as before: {waits}");
    let pending = up.output(&["pending"]).await;
    let decide = format!("journeyman decide {run} approve --head {}", &head[..12]);
    assert!(
        pending.starts_with(&run) && pending.contains(&decide),
        "{pending}"
    );
    forms::assert_pools(&up).await;
    assert_eq!(up.output(&["reject", &key]).await, format!("decided: {run}\n"));
    let followed = up.output(&["journal", &run, "--follow"]).await;
    assert!(followed.contains("run finished: "), "{followed}");
    assert!(!up.output(&["runs"]).await.contains("completed"));
    assert_eq!(up.output(&["pending"]).await, "nothing waits for a person\n");
    let failed = up.output(&["runs", "--stop", "failed", "-o", "json"]).await;
    assert!(
        failed.contains(&run) && failed.contains(r#""repository":"#),
        "{failed}"
    );
    assert_eq!(
        up.stage.github.branches(fixture::REPOSITORY).len(),
        1,
        "nothing was pushed"
    );
    assert!(up.stage.github.pull_requests(fixture::REPOSITORY).is_empty());
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn up_dry_run_starts_nothing() {
    let up = Up::start(Stage::start("agent: {approval: before_push}\n").await).await;
    let key = up.stage.file_ticket();
    up.stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let run = up.until_runs_contain("decision").await;
    let head = up.asked_about(&run).await;
    let (runs, journal) = (
        up.output(&["runs"]).await,
        up.output(&["journal", &run, "--json"]).await,
    );
    let comments = up.stage.jira.comments(&key).len();
    for (asked, output) in [
        (
            vec!["approve", &key, &head],
            format!("would approve {head}, and run {run} would continue with it\n"),
        ),
        (
            vec!["decide", &run, "approve", "--head", &head],
            format!("would approve {head}, and run {run} would continue with it\n"),
        ),
        (vec!["stop", &run], format!("would stop run {run} (implement)\n")),
        (vec!["stop", &key], format!("would stop run {run} (implement)\n")),
        (vec!["stop-all", "on"], "would stop every planner\n".to_owned()),
        (vec!["stop-all", "off"], "nothing would change\n".to_owned()),
    ] {
        let asked = [&asked[..], &["--dry-run"]].concat();
        assert_eq!(up.output(&asked).await, output, "{asked:?}");
    }
    // A dry run refuses what the real command refuses.
    for (asked, why) in [
        (
            vec!["approve", &key, "000000000000"],
            "waits for a decision about commit",
        ),
        (vec!["retry", &key], "nothing has failed"),
        (vec!["purge", &key], "has live runs"),
        (vec!["dead", "retry", "99"], "there is no dead letter 99"),
        (vec!["dead", "drop", "99"], "there is no dead letter 99"),
        (vec!["stop", "ENG-7"], "nothing is known of jira:ENG-7"),
    ] {
        let ran = up.ask(&[&asked[..], &["--dry-run"]].concat()).await;
        assert!(ran.code == Some(1) && ran.err.contains(why), "{asked:?}: {ran:?}");
    }
    assert_eq!(up.output(&["runs"]).await, runs);
    assert_eq!(up.output(&["journal", &run, "--json"]).await, journal);
    assert_eq!(up.output(&["stop-all"]).await, "stop-all is off\n");
    assert_eq!(up.stage.jira.comments(&key).len(), comments);
    assert_eq!(up.stage.github.branches(fixture::REPOSITORY).len(), 1);

    up.output(&["stop-all", "on", "--yes"]).await;
    assert_eq!(
        up.output(&["stop-all", "off", "--dry-run"]).await,
        "would let every planner continue\n"
    );
    assert!(up.output(&["stop-all"]).await.starts_with("stop-all is on"));
    up.output(&["stop-all", "off"]).await;
    up.output(&["stop", &run]).await;
    up.until_runs_contain("stopped").await;
    let again = up.output(&["retry", &key, "--dry-run"]).await;
    assert_eq!(again, "would start implement on jira:ENG-1 again\n");
    let purged = up.output(&["purge", &key, "--dry-run"]).await;
    assert!(
        purged.starts_with("would forget ") && purged.contains("of jira:ENG-1 and 1 runs"),
        "{purged}"
    );
    assert_eq!(
        up.output(&["runs"]).await.lines().count(),
        1,
        "the run is still known"
    );
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn data_folder_has_one_owner() {
    let up = Up::start(Stage::start("").await).await;
    let environment = up.stage.environment();
    let second = up.stage.run(&["up"], &environment).await;
    assert_eq!(second.code, Some(1), "{second:?}");
    assert_eq!(
        second.err.lines().last().unwrap(),
        "journeyman: another journeyman uses .journeyman: stop it, or name another folder with --data"
    );
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn second_signal_leaves_no_process() {
    let mut up = Up::start(Stage::start("").await).await;
    assert!(up.program.family_size() >= 2, "nats and redis");
    up.program.signal(Signal::INT);
    up.program.signal(Signal::TERM);
    let access = up.stage.path().join(".journeyman/api.json");
    let ran = up.program.ended().await;
    assert!(matches!(ran.code, Some(0 | 130)), "{ran:?}");
    assert!(!access.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn up_reports_cleanup_after_kill() {
    let up = Up::start(Stage::start("").await).await;
    up.program.signal(Signal::KILL);
    let Up { stage, program } = up;
    assert_eq!(program.ended().await.code, None);
    let second = Up::start(stage).await;
    let out = second.program.out();
    for server in ["nats-server", "redis-server"] {
        let words = format!("the last start did not end in order: its {server} (process ");
        assert!(out.contains(&words), "{out}");
    }
    let third = Up::start(second.stop().await).await;
    assert!(!third.program.out().contains("did not end in order"));
    third.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn up_serves_console_unless_disabled() {
    let mut up = Up::start(Stage::start("").await).await;
    up.program.until_output_contains("console at ").await;
    let out = up.program.out();
    let (_, rest) = out.split_once("console at ").unwrap();
    let console = rest.split(',').next().unwrap().to_owned();
    let access = std::fs::read_to_string(up.stage.path().join(".journeyman/api.json")).unwrap();
    let access: serde_json::Value = serde_json::from_str(&access).unwrap();
    let browser = reqwest::Client::builder().no_proxy();
    let browser = browser
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let token = access["token"].as_str().unwrap();
    let login = browser
        .post(format!("{console}/login"))
        .header("sec-fetch-site", "same-origin");
    let login = login
        .form(&[("token", token), ("next", "/runs")])
        .send()
        .await
        .unwrap();
    assert_eq!(
        login.headers()["location"],
        "/runs",
        "the token of this API lets in"
    );
    // Another process may have taken the default console port, which must not prevent another start.
    let second = Up::start(Stage::start("").await).await;
    second.stop().await;
    up.stop().await;
    assert!(
        browser.get(&console).send().await.is_err(),
        "it ends with the rest"
    );

    let stage = Stage::start("").await;
    let environment = replace_setting(&stage.environment(), "CONSOLE__IN_UP", "false");
    let mut environment = replace_setting(&environment, "INGEST__LISTEN", "127.0.0.1:0");
    for service in ["PLANNER", "EXECUTOR", "REPORTER", "EGRESS"] {
        environment = replace_setting(&environment, &format!("{service}__LISTEN"), "127.0.0.1:0");
    }
    let mut program = Program::start("journeyman", &["up"], &environment, stage.path());
    program.until_output_contains("ready: ").await;
    program.signal(Signal::TERM);
    let ran = program.ended().await;
    assert!(ran.code == Some(0) && !ran.out.contains("console"), "{ran:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn command_without_api_names_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run_program("journeyman", &["runs"], &[], folder.path()).await;
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(
        ran.err
            .starts_with("journeyman: no API: start `journeyman up` here, or give --api URL"),
        "{}",
        ran.err
    );
}

#[tokio::test]
async fn exit_code_survives_closed_error_output() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = Command::new(e2e::find_binary("journeyman").unwrap())
        .arg("runs")
        .env_clear()
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stderr(writer)
        .status()
        .await
        .unwrap();
    assert_eq!(status.code(), Some(4), "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn login_works_anywhere_and_reports_wrong_token() {
    let up = Up::start(
        Stage::start(
            "agent: {approval: before_push}
",
        )
        .await,
    )
    .await;
    let access = std::fs::read(up.stage.path().join(".journeyman/api.json")).unwrap();
    let access: serde_json::Value = serde_json::from_slice(&access).unwrap();
    let url = access["url"].as_str().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let home = [("HOME".to_owned(), elsewhere.path().display().to_string())];
    let file = elsewhere.path().join("token");
    let journeyman =
        async |arguments: &[&str]| run_program("journeyman", arguments, &home, elsewhere.path()).await;

    std::fs::write(&file, "no such token\n").unwrap();
    let login = ["login", url, "--token-file", file.to_str().unwrap()];
    let refused = journeyman(&login).await;
    assert_eq!(
        (refused.code, &*refused.err),
        (Some(4), "journeyman: the API does not know this token\n")
    );
    assert_eq!(journeyman(&["pending"]).await.code, Some(4), "nothing was kept");

    std::fs::write(&file, access["token"].as_str().unwrap()).unwrap();
    assert_eq!(journeyman(&login).await.out, format!("logged in to {url}\n"));
    assert_eq!(journeyman(&["pending"]).await.out, "nothing waits for a person\n");
    let other = journeyman(&["pending", "--api", "http://127.0.0.1:9"]).await;
    assert!(
        other
            .err
            .starts_with("journeyman: no token for http://127.0.0.1:9"),
        "{}",
        other.err
    );

    assert_eq!(journeyman(&["login", url, "--forget"]).await.code, Some(0));
    assert_eq!(journeyman(&["pending"]).await.code, Some(4));
    up.stop().await;
}
