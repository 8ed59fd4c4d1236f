//! A Jira Data Center: REST v2, wiki markup, user names, personal access tokens.

use e2e::{Options, TestWorld};
use testkit::{JiraKind, JiraOptions};

use crate::{happy::to_the_merge, list_ticket_comments, only_pull_request, recovery::retry_failed_ticket};

/// Makes the default instance a Data Center of this release, whose accounts have tokens alone.
pub(crate) fn build_release_options(release: u64) -> Options {
    let mut settings = vec![
        ("JIRA_READER__DEPLOYMENT", "data-center".to_owned()),
        ("JIRA_READER__EMAIL", String::new()),
        ("JIRA_WRITER__DEPLOYMENT", "data-center".to_owned()),
        ("JIRA_WRITER__EMAIL", String::new()),
        (
            "INGEST__OWN_ACCOUNTS",
            "journeyman-reader[bot],journeyman[bot],journeyman-reader,journeyman-writer".to_owned(),
        ),
    ];
    let no_webhooks = release < 10;
    if no_webhooks {
        settings.push(("INGEST__POLL_INTERVAL_S", "1".to_owned()));
    }
    Options {
        jira: JiraOptions {
            kind: JiraKind::DataCenter(release),
            ..JiraOptions::default()
        },
        settings,
        no_webhooks,
        ..Options::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn polled_data_center_ticket_reaches_merge() {
    let world = TestWorld::start(build_release_options(9)).await.unwrap();
    // A Data Center knows its users by name.
    world.jira.set_groups("ada", &[testkit::jira::USERS]);
    let key = world.ask().unwrap();
    to_the_merge(&world, &key).await;
    assert_eq!(
        world.jira.status_history(&key),
        ["To Do", "Ready for Agent", "In Progress", "Done"]
    );
    let links = world.jira.remote_links(&key);
    let links: Vec<&str> = links.iter().map(|link| link.url.as_str()).collect();
    assert_eq!(links, [only_pull_request(&world).url.as_str()]);
    let said = list_ticket_comments(&world, &key);
    assert_eq!(said.len(), 1, "one status comment: {said:#?}");
    let pull = format!("|{}]", only_pull_request(&world).url);
    for markup in [
        pull.as_str(),
        "{{tests/test_cart.py}}",
        "All checks passed",
        "has started",
    ] {
        assert!(said[0].contains(markup), "{markup}: {}", said[0]);
    }
    for markdown in ["**", "](", "`"] {
        assert!(!said[0].contains(markdown), "{markdown}: {}", said[0]);
    }
    let requests = world.jira.requests();
    let is_of_the_interface = |path: &str| path.starts_with("/rest/api/2/");
    assert!(
        requests.iter().all(|request| is_of_the_interface(&request.path)),
        "{requests:#?}"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn data_center_webhooks_start_work_and_commands() {
    let mut options = build_release_options(10);
    let group = ("INGEST__JIRA_TRIGGER_GROUP", "agents".to_owned());
    options.settings.push(group);
    let world = TestWorld::start(options).await.unwrap();
    retry_failed_ticket(&world).await;
    world.stop().await.unwrap();
}
