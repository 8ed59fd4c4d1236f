//! Users: runs that wait for them, expiring tokens, and confirmations before a loss.

use domain::Timestamp;
use serde_json::Value;
use testkit::poll_until;

use crate::{program::PATIENCE, stage::Stage, terminal::at_terminal, up::Up};

const GATE: &str = "agent: {approval: before_push}\n";

/// Returns the date in this number of days.
fn day_in(days: i64) -> String {
    let at: Timestamp = bootstrap::read_wall_clock().plus_ms(days * 86_400_000);
    at.to_string()[..10].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn follow_exits_with_three_on_waiting_run() {
    let up = Up::start(Stage::start(GATE).await).await;
    let key = up.stage.file_ticket();
    let ran = up
        .ask(&["dispatch", "--job", "implement", "--ticket", &key, "-o", "json"])
        .await;
    assert_eq!(
        (ran.code, ran.err.as_str()),
        (Some(3), "journeyman: the run waits for a person's decision\n"),
        "{ran:?}"
    );
    let output: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&output["waits_for"], output.get("stop")),
        (&"decision".into(), None)
    );
    let followed = up.ask(&["follow", &key, "--exit-status"]).await;
    assert_eq!(followed.code, Some(3), "{followed:?}");
    assert!(
        followed
            .out
            .ends_with("planner   waits for a person's decision\n"),
        "{followed:?}"
    );
    let run = output["run"].as_str().unwrap();
    let head = up.asked_about(run).await;
    up.output(&["approve", &key, &head]).await;
    // The journal contains the wait, which is over.
    let followed = up.output(&["follow", run, "--exit-status"]).await;
    assert!(followed.contains("run finished: completed"), "{followed}");
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn expiring_tokens_appear_under_needs_you() {
    let (soon, late) = (day_in(10), day_in(100));
    let settings = [
        ("JIRA_READER__EXPIRES", late.as_str()),
        ("JIRA_WRITER__EXPIRES", &soon),
    ];
    let up = Up::start_with(Stage::start("").await, &settings).await;
    let output = poll_until("the end of the writer's token", PATIENCE, async || {
        let pending = up.output(&["pending"]).await;
        pending.contains("jira_writer").then_some(pending)
    });
    let output = output.await.unwrap();
    assert!(
        output.starts_with(&format!("the token of jira_writer ends on {soon}, in 9 days\n")),
        "{output}"
    );
    assert!(
        output.contains("set its end in `expires`") && !output.contains("jira_reader"),
        "{output}"
    );
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn destructive_commands_require_confirmation_at_terminal() {
    let up = Up::start(Stage::start(GATE).await).await;
    let key = up.stage.file_ticket();
    up.stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let run = up.until_runs_contain("decision").await;
    for asked in [
        &["stop", &key][..],
        &["stop-all", "on"],
        &["purge", &key],
        &["dead", "drop", "1"],
    ] {
        let refused = up.ask(asked).await;
        assert_eq!(refused.code, Some(64), "{asked:?}: {refused:?}");
        let output = "journeyman: --yes is missing, and there is no terminal to ask at; --dry-run shows what would be lost\n";
        assert_eq!((refused.out.as_str(), refused.err.as_str()), ("", output));
    }
    let folder = up.stage.path();
    for (asked, shown) in [
        (
            &["stop", &key][..],
            format!("this would stop run {run} (implement)"),
        ),
        (&["stop-all", "on"], "this would stop every planner".to_owned()),
    ] {
        let kept = at_terminal(asked, &[(&shown, ""), ("Do it?", "n")], folder).await;
        assert_eq!(kept.code, Some(1), "{kept:?}");
        assert!(kept.out.contains("nothing was done"), "{kept:?}");
    }
    // An empty answer is not a confirmation.
    let kept = at_terminal(&["stop", &key], &[("Do it?", "\r")], folder).await;
    assert_eq!(kept.code, Some(1), "{kept:?}");
    let waits = up.output(&["runs", "--status", "parked"]).await;
    assert!(waits.contains("decision"), "{waits}");
    assert_eq!(up.output(&["stop-all"]).await, "stop-all is off\n");
    // A request that the API refuses needs no confirmation.
    let live = at_terminal(&["purge", &key], &[], folder).await;
    assert!(
        live.code == Some(1) && live.out.contains("has live runs"),
        "{live:?}"
    );

    let stopped = at_terminal(&["stop", &key], &[("Do it?", "y")], folder).await;
    assert!(
        stopped.code == Some(0) && stopped.out.contains("stop asked for"),
        "{stopped:?}"
    );
    up.until_runs_contain("stopped").await;
    let purged = at_terminal(
        &["purge", &key],
        &[("this would forget ", ""), ("Do it?", "y")],
        folder,
    )
    .await;
    assert!(
        purged.code == Some(0) && purged.out.contains("purged: "),
        "{purged:?}"
    );
    assert_eq!(up.output(&["runs"]).await, "");
    up.stop().await;
}
