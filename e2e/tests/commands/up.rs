//! `journeyman up`, and the commands that talk to it.

use std::{os::unix::fs::PermissionsExt, time::Duration};

use domain::Entry;
use rustix::process::Signal;
use testkit::{eventually, fixture};

use crate::{
    program::{Program, Ran, run},
    stage::{Stage, with},
};

const PATIENCE: Duration = Duration::from_secs(60);
const SECRET: &str = "webhook-secret-of-the-stand-ins";

pub(crate) struct Up {
    pub(crate) stage: Stage,
    program: Program,
}

impl Up {
    pub(crate) async fn start(stage: Stage) -> Self {
        let mut environment = stage.environment();
        for service in ["INGEST", "PLANNER", "EXECUTOR", "REPORTER", "EGRESS"] {
            environment = with(&environment, &format!("{service}__LISTEN"), "127.0.0.1:0");
        }
        let mut program = Program::start("journeyman", &["up"], &environment, stage.path());
        program.says("ready: ").await;
        let out = program.out();
        let url = out.split_whitespace().nth(1).unwrap();
        let base = url.strip_suffix("/webhooks/jira").unwrap();
        stage
            .github
            .set_webhook(&format!("{base}/webhooks/github"), SECRET);
        stage.jira.set_webhook(url, SECRET);
        Self { stage, program }
    }

    /// Drains it and gives the outside and the data back.
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
        run("journeyman", arguments, &[], self.stage.path()).await
    }

    pub(crate) async fn told(&self, arguments: &[&str]) -> String {
        let ran = self.ask(arguments).await;
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        ran.out
    }

    /// The commit that a run asks about, abbreviated, as its journal names it.
    async fn asked_about(&self, run: &str) -> String {
        let journal = self.told(&["journal", run]).await;
        let (_, head) = journal.split_once("asked a person about ").expect("asked");
        head.split_whitespace().next().unwrap().to_owned()
    }

    /// Waits until `journeyman runs` says `text`, and gives the id of the first run.
    async fn until_runs_say(&self, text: &str) -> String {
        let listed = eventually(text, PATIENCE, async || {
            let runs = self.told(&["runs"]).await;
            runs.contains(text).then_some(runs)
        });
        let listed = listed.await.unwrap();
        listed.split_whitespace().next().unwrap().to_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_is_decided_and_a_second_start_still_knows_the_run() {
    let up = Up::start(Stage::start("agent: {approval: before_push}\n").await).await;
    assert_eq!(up.told(&["runs"]).await, "");
    let key = up.stage.file_ticket();
    up.stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let run = up.until_runs_say("decision").await;
    assert!(run.starts_with("jira:ENG-1@"), "{run}");

    let nameless = up.ask(&["decide", &run, "approve"]).await;
    assert_eq!(nameless.code, Some(2), "{nameless:?}");
    let head = up.asked_about(&run).await;
    let other = up.ask(&["approve", &key, "0000000"]).await;
    assert_eq!(other.code, Some(1), "{other:?}");
    let decided = up.told(&["approve", &key, &head]).await;
    assert_eq!(decided, format!("decided: {run}\n"));
    let followed = up.told(&["journal", &run, "--follow"]).await;
    assert!(followed.contains("ms  person    "), "{followed}");
    assert!(followed.contains("run finished: completed"), "{followed}");
    assert_eq!(up.stage.github.pull_requests(fixture::REPOSITORY).len(), 1);
    let text = up.told(&["journal", &run]).await;
    assert_eq!(text, followed);
    let json = up.told(&["journal", &run, "--json"]).await;
    let entries: Vec<Entry> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(entries.len() >= text.lines().count());
    assert!(entries.windows(2).all(|two| two[0].position < two[1].position));

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
    assert_eq!(second.until_runs_say("completed").await, run);
    assert_eq!(second.told(&["journal", &run, "--json"]).await, json);
    second.stop().await.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_stopped_by_its_ticket() {
    let up = Up::start(Stage::start("agent: {approval: before_push}\n").await).await;
    let unknown = up.ask(&["stop", "ENG-7"]).await;
    assert_eq!(
        (unknown.code, unknown.err.as_str()),
        (Some(1), "journeyman: nothing is known of jira:ENG-7\n")
    );
    let key = up.stage.file_ticket();
    up.stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let run = up.until_runs_say("decision").await;
    assert_eq!(up.told(&["stop", "ENG-1"]).await, "stop asked for: ENG-1\n");
    let followed = up.told(&["journal", &run, "--follow"]).await;
    assert!(followed.contains("asked to stop"), "{followed}");
    up.until_runs_say("stopped").await;
    let over = up.ask(&["stop", &run]).await;
    assert_eq!(
        (over.code, over.err),
        (Some(1), format!("journeyman: run {run} is over\n"))
    );
    assert_eq!(up.stage.github.branches(fixture::REPOSITORY).len(), 1);
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_data_folder_is_used_by_one_journeyman() {
    let up = Up::start(Stage::start("").await).await;
    let environment = up.stage.environment();
    let second = run("journeyman", &["up"], &environment, up.stage.path()).await;
    assert_eq!(second.code, Some(1), "{second:?}");
    assert_eq!(
        second.err.lines().last().unwrap(),
        "journeyman: another journeyman uses .journeyman: stop it, or name another folder with --data"
    );
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_leaves_no_process_behind_either() {
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
async fn without_an_api_a_command_says_where_to_get_one() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run("journeyman", &["runs"], &[], folder.path()).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err
            .starts_with("journeyman: no API: start `journeyman up` here, or give --api URL"),
        "{}",
        ran.err
    );
}
