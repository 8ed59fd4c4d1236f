//! An installation whose network lets it out through one proxy: it alone resolves the names of GitHub, Jira and the
//! model.

use rustix::process::Signal;
use testkit::{ForwardProxy, fixture};

use crate::{
    program::Program,
    stage::{Stage, replace_setting},
    up::Up,
};

const HOSTS: [&str; 3] = ["github.test", "jira.test", "model.test"];
const PASSWORD: &str = "pass/word:of the proxy";

/// Settings of stand-ins behind the proxy, by their names without `JOURNEYMAN__`.
fn list_settings(stage: &Stage, proxy: &ForwardProxy, password: &str) -> Vec<(String, String)> {
    let renamed = |url: String, host: &str| url.replace("127.0.0.1", host);
    let api = renamed(stage.github.api_url(), "github.test");
    let git = renamed(stage.github.git_url(), "github.test");
    let jira = renamed(stage.jira.url(), "jira.test");
    let mut settings = vec![
        ("MODEL__BASE_URL", renamed(stage.model.url(), "model.test")),
        ("MODEL__ALLOW_INSECURE", "true".to_owned()),
        ("PROXY__URL", proxy.url()),
        ("PROXY__USERNAME", "journeyman".to_owned()),
        ("PROXY__PASSWORD", password.to_owned()),
    ];
    for (api_key, git_key, insecure) in [
        (
            "GITHUB_READER__API_URL",
            "GITHUB_READER__GIT_URL",
            "GITHUB_READER__ALLOW_INSECURE",
        ),
        (
            "GITHUB_WRITER__API_URL",
            "GITHUB_WRITER__GIT_URL",
            "GITHUB_WRITER__ALLOW_INSECURE",
        ),
    ] {
        settings.push((api_key, api.clone()));
        settings.push((git_key, git.clone()));
        settings.push((insecure, "true".to_owned()));
    }
    for (url, insecure) in [
        ("JIRA_READER__BASE_URL", "JIRA_READER__ALLOW_INSECURE"),
        ("JIRA_WRITER__BASE_URL", "JIRA_WRITER__ALLOW_INSECURE"),
    ] {
        settings.push((url, jira.clone()));
        settings.push((insecure, "true".to_owned()));
    }
    let settings = settings.into_iter();
    settings.map(|(key, value)| (key.to_owned(), value)).collect()
}

async fn start_proxy() -> ForwardProxy {
    ForwardProxy::start(&HOSTS, Some(("journeyman", PASSWORD)))
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn ticket_is_done_through_proxy_alone() {
    let (stage, proxy) = (Stage::start("").await, start_proxy().await);
    let settings = list_settings(&stage, &proxy, PASSWORD);
    let settings: Vec<(&str, &str)> = settings
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let up = Up::start_with(stage, &settings).await;
    let key = up.stage.file_ticket();
    up.stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    up.until_runs_contain("completed").await;
    assert_eq!(up.stage.github.pull_requests(fixture::REPOSITORY).len(), 1);
    for host in HOSTS {
        assert!(
            !proxy.passed_to(host).is_empty(),
            "{host}: {:?}",
            proxy.requests()
        );
    }
    let is_git = |service: &str| {
        let passed = proxy.passed_to("github.test");
        passed.iter().any(|request| request.path.ends_with(service))
    };
    assert!(is_git("/git-upload-pack"), "fetched: {:?}", proxy.requests());
    assert!(is_git("/git-receive-pack"), "pushed: {:?}", proxy.requests());
    // Services of this machine are reached without the proxy.
    let foreign: Vec<_> = proxy
        .requests()
        .into_iter()
        .filter(|request| !HOSTS.contains(&request.host.as_str()))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    up.stop().await.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_of_environment_gets_no_local_request() {
    let (stage, proxy) = (Stage::start("").await, start_proxy().await);
    let variable = ("HTTP_PROXY".to_owned(), proxy.url());
    let mut environment = stage.environment();
    for service in ["INGEST", "PLANNER", "EXECUTOR", "REPORTER", "EGRESS"] {
        environment = replace_setting(&environment, &format!("{service}__LISTEN"), "127.0.0.1:0");
    }
    environment.push(variable.clone());
    let mut up = Program::start("journeyman", &["up"], &environment, stage.path());
    up.until_output_contains("ready: ").await;
    let ran = stage.run(&["runs"], &[variable]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    up.signal(Signal::TERM);
    assert_eq!(up.ended().await.code, Some(0));
    assert!(proxy.requests().is_empty(), "{:?}", proxy.requests());
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_way_to_each_server() {
    let (stage, proxy) = (Stage::start("").await, start_proxy().await);
    let run_doctor = async |settings: &[(String, String)]| {
        let mut environment = stage.environment();
        for (key, value) in settings {
            environment = replace_setting(&environment, key, value);
        }
        let ran = stage.run(&["doctor"], &environment).await;
        let lines = ran.out.lines().filter(|line| line.contains(" route "));
        assert!(!ran.out.contains("pass/word") && !ran.err.contains("pass/word"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let mut settings = list_settings(&stage, &proxy, PASSWORD);
    // The URL of the stand-in itself: an address of this machine.
    settings.push(("MODEL__BASE_URL".to_owned(), stage.model.url()));
    let lines = run_doctor(&settings).await;
    let through = format!("through {}", proxy.url());
    for (host, way) in [
        ("github.test", through.as_str()),
        ("jira.test", &through),
        ("127.0.0.1", "directly: it is internal"),
    ] {
        let line = lines.iter().find(|line| line.contains(host));
        let line = line.unwrap_or_else(|| panic!("{host}: {lines:?}"));
        assert!(line.starts_with("ok ") && line.contains(way), "{line}");
    }
    let wrong = list_settings(&stage, &proxy, "wrong");
    let lines = run_doctor(&wrong).await;
    let refused = lines.iter().filter(|line| line.starts_with("FAIL "));
    assert_eq!(refused.clone().count(), lines.len(), "{lines:?}");
    for line in refused {
        assert!(line.contains("proxy.password (407)"), "{line}");
        assert!(
            line.contains("operate/proxy#what-do-failures-look-like"),
            "{line}"
        );
    }
}
