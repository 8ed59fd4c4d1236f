//! The five service binaries: help, wrong settings, servers that start late.

use journeyman::local::{PreparedServices, StartPlan};
use rustix::process::Signal;
use testkit::{NatsOptions, NatsServer, RedisOptions, RedisServer, poll_until};

use crate::{
    program::{PATIENCE, Program, run_program},
    stage::{Stage, remove_setting, replace_setting},
};

const SERVICES: [&str; 5] = ["ingest", "planner", "executor", "reporter", "egress"];

/// Returns the settings of all five services without starting anything.
async fn build_service_settings(stage: &Stage, nats: u16, redis: u16) -> Vec<(String, String)> {
    let environment = replace_setting(
        &stage.environment(),
        "NATS__URL",
        &format!("nats://127.0.0.1:{nats}"),
    );
    let environment = replace_setting(&environment, "REDIS__URL", &format!("redis://127.0.0.1:{redis}"));
    let plan = StartPlan::on_free_ports(environment, stage.path().join("data"));
    PreparedServices::new(plan).await.unwrap().environment
}

#[tokio::test(flavor = "multi_thread")]
async fn services_print_version_purpose_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    for service in SERVICES {
        let version = run_program(service, &["--version"], &[], folder.path()).await;
        assert_eq!((version.code, version.err.as_str()), (Some(0), ""), "{version:?}");
        assert_eq!(version.out, format!("{service} {}\n", env!("CARGO_PKG_VERSION")));
        let help = run_program(service, &["--help"], &[], folder.path()).await;
        assert_eq!(help.code, Some(0), "{help:?}");
        for part in ["--config <FILE>", "JOURNEYMAN__SECTION__KEY", "Exit codes"] {
            assert!(help.out.contains(part), "{part}: {}", help.out);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_name_wrong_or_missing_setting() {
    let stage = Stage::start("").await;
    let good = build_service_settings(&stage, 1, 1).await;
    let cases = [
        (
            "ingest",
            remove_setting(&good, "INGEST__GITHUB_WEBHOOK_SECRETS"),
            "ingest.github_webhook_secrets",
        ),
        (
            "ingest",
            remove_setting(&good, "INGEST__JIRA_WEBHOOK_SECRETS"),
            "ingest.jira_webhook_secrets",
        ),
        (
            "ingest",
            replace_setting(&good, "RULES__DIR", "/no/such/folder"),
            "rules.dir",
        ),
        (
            "planner",
            remove_setting(&good, "MODEL__API_KEY"),
            "model.api_key",
        ),
        (
            "planner",
            replace_setting(&good, "PLANNER__SLOTS", "many"),
            "planner.slots",
        ),
        (
            "executor",
            replace_setting(&good, "EXECUTOR__SLOTS", "0"),
            "executor.slots",
        ),
        (
            "executor",
            remove_setting(&good, "EXECUTOR__DATA_DIR"),
            "executor.data_dir",
        ),
        (
            "reporter",
            replace_setting(&good, "GITHUB_WRITER__PRIVATE_KEY", "not a key"),
            "github_writer.private_key",
        ),
        (
            "reporter",
            replace_setting(&good, "REPORTER__SPEED", "9"),
            "reporter.speed",
        ),
        (
            "egress",
            replace_setting(&good, "EGRESS__PRIVATE_NETWORKS", "10.0.0.1"),
            "egress.private_networks",
        ),
        (
            "egress",
            replace_setting(&good, "EGRESS__MIRRORS__NPM__URL", "https://npm.example"),
            "egress.mirrors.npm.token",
        ),
    ];
    for (service, environment, key) in cases {
        let ran = run_program(service, &[], &environment, stage.path()).await;
        assert_eq!(ran.code, Some(64), "{key}: {ran:?}");
        let complaints: Vec<_> = ran
            .complaints()
            .into_iter()
            .filter(|line| !line.contains("service started"))
            .collect();
        let [complaint] = complaints[..] else {
            panic!("{key}: {ran:?}")
        };
        assert!(
            complaint.starts_with(&format!("{service}: {key}: ")),
            "{key}: {complaint}"
        );
        assert!(!complaint.contains("not a key"), "{complaint}");
    }
}

/// Starts a service without its servers and waits until it has logged that twice.
async fn start_early(service: &str, environment: &[(String, String)], stage: &Stage) -> Program {
    let mut program = Program::start(service, &[], environment, stage.path());
    program.until_output_contains("not reachable").await;
    assert_eq!(
        fetch_readiness(service, environment).await,
        Some(503),
        "{service}"
    );
    let tries = || {
        let err = program.err();
        err.lines().filter(|line| line.contains("not reachable")).count()
    };
    // More tries may follow before the next look.
    let twice = poll_until("the second try", PATIENCE, async || (tries() >= 2).then_some(()));
    twice.await.unwrap();
    program
}

/// Returns the status of `/readyz`.
async fn fetch_readiness(service: &str, environment: &[(String, String)]) -> Option<u16> {
    let key = format!("JOURNEYMAN__{}__LISTEN", service.to_uppercase());
    let (_, address) = environment.iter().find(|(name, _)| *name == key)?;
    let answer = reqwest::get(format!("http://{address}/readyz")).await.ok()?;
    Some(answer.status().as_u16())
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_may_come_late() {
    let stage = Stage::start("").await;
    let (nats, redis) = (servers::free_port().unwrap(), servers::free_port().unwrap());
    let environment = build_service_settings(&stage, nats, redis).await;
    let (ingest, planner, reporter) = tokio::join!(
        start_early("ingest", &environment, &stage),
        start_early("planner", &environment, &stage),
        start_early("reporter", &environment, &stage)
    );
    let _nats = NatsServer::start_with(NatsOptions {
        port: Some(nats),
        ..NatsOptions::default()
    })
    .await
    .unwrap();
    let mut programs = [("ingest", ingest), ("reporter", reporter), ("planner", planner)];
    programs[2]
        .1
        .until_output_contains("tickets are worked on without leases, and each planner counts budgets for itself, until redis answers again")
        .await;
    let _redis = RedisServer::start_with(RedisOptions {
        port: Some(redis),
        ..RedisOptions::default()
    })
    .await
    .unwrap();
    for (service, program) in programs {
        let is_ready = poll_until(service, PATIENCE, async || {
            (fetch_readiness(service, &environment).await? == 200).then_some(())
        });
        let is_ready = is_ready.await;
        is_ready.unwrap_or_else(|error| panic!("{error}: {}", program.err()));
        program.signal(Signal::TERM);
        let ran = program.ended().await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
}
