//! `journeyman setup jira` with a Jira Data Center.

use std::fs;

use testkit::{
    JiraKind, JiraOptions,
    jira::{ADMIN_API_TOKEN, READER_API_TOKEN, READER_EMAIL, WRITER_API_TOKEN},
};

use crate::{
    setup::{OF_JIRA, assert_only_we_may_read_secrets, borrow_steps, build_setup_environment, read_settings},
    stage::Stage,
    terminal::at_terminal_with,
};

async fn start_stage(release: u64) -> Stage {
    let options = JiraOptions {
        kind: JiraKind::DataCenter(release),
        ..JiraOptions::default()
    };
    Stage::start_with("", options).await
}

const HOOK: &str = "https://jm.example/webhooks/jira";
const COMMAND: [&str; 4] = ["setup", "jira", "--public-url", "https://jm.example"];

#[tokio::test(flavor = "multi_thread")]
async fn setup_data_center_takes_tokens_alone() {
    let stage = start_stage(10).await;
    let environment = build_setup_environment(&stage, &OF_JIRA);
    let line = |text: &str| format!("{text}\r");
    let typed = vec![
        ("Jira site", line(&stage.jira.url())),
        (
            "Personal access token of the account that is the reader",
            line(READER_API_TOKEN),
        ),
        ("Day on which this token ends", line("2099-01-31")),
        (
            "Personal access token of the account that is the writer",
            line(WRITER_API_TOKEN),
        ),
        ("Day on which this token ends", line("")),
        ("Jira group whose members may ask for work", line("")),
        ("Is there an administrator's token", "y".to_owned()),
        (
            "Personal access token of a Jira administrator",
            line(ADMIN_API_TOKEN),
        ),
    ];
    let ran = at_terminal_with(&COMMAND, &borrow_steps(&typed), &environment, stage.path()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in [
        "site     Jira Data Center 10.3.0 at ",
        "webhook  registered: https://jm.example/webhooks/jira for all projects",
        "ok    jira reader token      it ends on 2099-01-31",
        "0 failed",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let hook = (HOOK.to_owned(), String::new());
    assert_eq!(stage.jira.registered_webhooks(), std::slice::from_ref(&hook));
    let text = read_settings(&stage);
    assert_eq!(text.matches("deployment = \"data-center\"").count(), 2, "{text}");
    assert!(!text.contains("email"), "{text}");
    let secrets = stage.path().join(".journeyman/secrets");
    assert_only_we_may_read_secrets(&secrets, 3);
    let kept = fs::read_dir(&secrets)
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    assert!(!(kept.collect::<String>() + &text + &ran.out).contains(ADMIN_API_TOKEN));

    let token = stage.path().join("admin.token");
    fs::write(&token, ADMIN_API_TOKEN).unwrap();
    let token = token.display().to_string();
    let again = [&COMMAND[..], &["--admin-token-file", &token]].concat();
    let ran = stage.run(&again, &environment).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("webhook  brought up to date"), "{}", ran.out);
    assert_eq!(
        (stage.jira.registered_webhooks(), read_settings(&stage)),
        (vec![hook], text)
    );
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn setup_data_center_polls_without_signatures() {
    let stage = start_stage(9).await;
    let environment = build_setup_environment(&stage, &OF_JIRA);
    let file = |name: &str, token: &str| {
        let path = stage.path().join(name);
        fs::write(&path, token).unwrap();
        path.display().to_string()
    };
    let (reader, writer) = (file("reader", READER_API_TOKEN), file("writer", WRITER_API_TOKEN));
    let url = stage.jira.url();
    let accounts = [
        "--site",
        &url,
        "--reader-token-file",
        &reader,
        "--writer-token-file",
        &writer,
        "--requesters",
        "journeyman-users",
    ];
    let command = [&COMMAND[..], &accounts[..]].concat();
    let named = [&command[..], &["--reader-email", READER_EMAIL]].concat();
    let ran = stage.run(&named, &environment).await;
    assert_eq!(
        ran.complaints(),
        ["journeyman: --reader-email: Jira Data Center 9.3.0 has personal access tokens alone"]
    );
    let ran = stage.run(&command, &environment).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in [
        "webhook  none: Jira Data Center 9.3.0 does not sign its webhooks, as 10.0 and later do",
        "polls find what happens",
        "0 failed",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert_eq!(stage.jira.registered_webhooks(), []);
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_detects_wrong_jira_deployment() {
    let there = start_stage(10).await;
    let ran = there.run(&["doctor"], &there.environment()).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let problem = "is a Jira Data Center 10.3.0: set deployment = \"data-center\"";
    assert_eq!(ran.out.matches(problem).count(), 2, "{}", ran.out);
}
