//! `journeyman process-ticket`: one ticket, its timeline, its exit code.

use rustix::process::Signal;
use testkit::fixture;

use crate::{
    program::Program,
    stage::{Stage, remove_setting, replace_setting},
};

const ARGUMENTS: [&str; 4] = ["process-ticket", "ENG-1", "--config", "configs/shop.yaml"];

#[tokio::test(flavor = "multi_thread")]
async fn process_ticket_opens_draft_with_timeline() {
    let stage = Stage::start("").await;
    let key = stage.file_ticket();
    let ran = stage.run(&ARGUMENTS, &stage.environment()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for step in [
        "run jira:ENG-1@",
        "run started",
        "workspace open",
        "edit_file",
        "opened http",
        "run finished",
    ] {
        assert!(ran.out.contains(step), "{step}: {}", ran.out);
    }
    let pulls = stage.github.pull_requests(fixture::REPOSITORY);
    assert!(pulls.len() == 1 && pulls[0].draft, "{pulls:#?}");
    assert_eq!(stage.jira.remote_links(&key).len(), 1);
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn process_ticket_ends_at_open_gate() {
    let stage = Stage::start("agent: {approval: before_push}\n").await;
    stage.file_ticket();
    let ran = stage.run(&ARGUMENTS, &stage.environment()).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let complaints = ran.complaints();
    assert_eq!(
        complaints,
        [
            "journeyman: the run waits for a person's decision",
            "once it has that, the run carries on when journeyman starts again"
        ]
    );
    assert!(stage.github.pull_requests(fixture::REPOSITORY).is_empty());
    stage.assert_kept_protocols();
}

/// Checks that no external service was changed and no model was called.
fn assert_untouched(stage: &Stage, key: &str, status: &str) {
    assert_eq!(stage.model.call_count(), 0);
    assert_eq!(stage.jira.status(key).as_deref(), Some(status));
    assert!(stage.jira.comments(key).is_empty() && stage.jira.remote_links(key).is_empty());
    assert_eq!(stage.github.branches(fixture::REPOSITORY).len(), 1);
    assert!(stage.github.pull_requests(fixture::REPOSITORY).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn process_ticket_dry_run_needs_no_model() {
    let stage = Stage::start("").await;
    let key = stage.file_ticket();
    stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let environment = remove_setting(&stage.environment(), "MODEL__API_KEY");
    let dry = [&ARGUMENTS[..], &["--dry-run"]].concat();
    let ran = stage.run(&dry, &environment).await;
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (
            Some(0),
            "would start implement on jira:ENG-1 in acme/shop: Cart total ignores the quantity\n"
        ),
        "{ran:?}"
    );
    assert_untouched(&stage, &key, "Ready for Agent");
    let unknown = [
        "process-ticket",
        "ENG-404",
        "--config",
        "configs/shop.yaml",
        "--dry-run",
    ];
    let ran = stage.run(&unknown, &environment).await;
    assert!(ran.code == Some(1) && ran.err.contains("ENG-404"), "{ran:?}");
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn process_ticket_rehearsal_leaves_other_tickets_alone() {
    let stage = Stage::start("").await;
    let key = stage.file_ticket();
    let other = stage
        .jira
        .create_issue(fixture::PROJECT, "Explain the tax", "", "Task", &[]);
    stage.jira.move_issue(&other, "Ready for Agent", "ada").unwrap();
    let mock = [&ARGUMENTS[..], &["--mock"]].concat();
    let ran = stage.run(&mock, &stage.environment()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in [
        "would tell the ticket that work on acme/shop starts: check_signing, transition, check_run, comment",
        "would push fix/ENG-1-cart-total-ignores-the-quantity at 000000000000: push_branch, check_run",
        "would open draft pull request \"",
    ] {
        assert!(ran.out.contains(line), "{line}: {}", ran.out);
    }
    assert_untouched(&stage, &key, "To Do");
    assert_untouched(&stage, &other, "Ready for Agent");
    assert!(
        !stage.path().join(".journeyman/nats").exists(),
        "it leaves no data"
    );
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn process_ticket_reports_unknown_ticket() {
    let stage = Stage::start("").await;
    let ran = stage.run(&ARGUMENTS, &stage.environment()).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let [complaint] = ran.complaints()[..] else {
        panic!("{ran:?}")
    };
    assert!(
        complaint.starts_with("journeyman: ") && complaint.contains("ENG-1"),
        "{complaint}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn process_ticket_names_missing_setting_first() {
    let stage = Stage::start("").await;
    let environment = remove_setting(&stage.environment(), "MODEL__API_KEY");
    let ran = stage.run(&ARGUMENTS, &environment).await;
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert_eq!(ran.err, "journeyman: model.api_key: is missing\n");
    let environment = replace_setting(&stage.environment(), "INGEST__POLL_INTERVAL_S", "0");
    let ran = stage.run(&ARGUMENTS, &environment).await;
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert_eq!(
        ran.err,
        "journeyman: ingest.poll_interval_s: must be between 1 and 86400\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn process_ticket_names_missing_or_wrong_rules() {
    let stage = Stage::start("agent:\n  max_turnz: 3\n").await;
    let ran = stage.run(&ARGUMENTS, &stage.environment()).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err
            .starts_with("journeyman: configs/shop.yaml:4 agent.max_turnz: ")
            && ran.complaints().len() == 1,
        "{}",
        ran.err
    );
    let arguments = ["process-ticket", "ENG-1", "--config", "configs/none.yaml"];
    let ran = stage.run(&arguments, &stage.environment()).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err.starts_with("journeyman: cannot read configs/none.yaml: "),
        "{}",
        ran.err
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_process_ticket_resumes_at_next_start() {
    let stage = Stage::start("agent: {approval: before_push}\n").await;
    stage.file_ticket();
    let environment = stage.environment();
    let mut waits = Program::start("journeyman", &ARGUMENTS, &environment, stage.path());
    waits.until_output_contains("ask a person to decide").await;
    assert!(waits.family_size() >= 2, "nats and redis");
    waits.signal(Signal::INT);
    let ran = waits.ended().await;
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(
        ran.err,
        "stopped; the run carries on when journeyman starts again\n"
    );
    let again = Program::start("journeyman", &ARGUMENTS, &environment, stage.path());
    again.signal(Signal::TERM);
    again.signal(Signal::INT);
    let ran = again.ended().await;
    assert_ne!(ran.code, Some(0), "{ran:?}");
}
