//! A second GitHub server and a second Jira site, a Data Center, with a repository and a project of equal
//! names.

use std::collections::BTreeSet;

use domain::{RunId, StopReason, TicketKey};
use e2e::{Options, TestWorld, note_marker};
use testkit::{
    FakeGitHub, FakeJira, GitHubOptions, JiraKind, JiraOptions, RecordedRequest, fixture, github, jira,
};

const SECRET: &str = "webhook-secret-of-the-other-instances";
const THERE: &str =
    "repo: {owner: acme, name: shop, instance: ghe}\njira: {project_key: ENG, instance: dc}\n";

struct Elsewhere {
    github: FakeGitHub,
    jira: FakeJira,
}

impl Elsewhere {
    async fn start() -> Self {
        let github = FakeGitHub::start(GitHubOptions::default()).await.unwrap();
        github
            .create_repository(fixture::REPOSITORY, &fixture::list_shop_files())
            .unwrap();
        let jira = FakeJira::start(JiraOptions {
            kind: JiraKind::DataCenter(10),
            ..JiraOptions::default()
        });
        let jira = jira.await.unwrap();
        jira.set_groups("ada", &[testkit::jira::USERS]);
        Self { github, jira }
    }

    /// Settings of both instances: tokens in place of Apps, at their addresses.
    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("GITHUB__GHE__API_URL", self.github.api_url()),
            ("GITHUB__GHE__GIT_URL", self.github.git_url()),
            ("GITHUB__GHE__READER__TOKEN", github::READER_TOKEN.to_owned()),
            ("GITHUB__GHE__WRITER__TOKEN", github::WRITER_TOKEN.to_owned()),
            ("JIRA__DC__BASE_URL", self.jira.url()),
            ("JIRA__DC__DEPLOYMENT", "data-center".to_owned()),
            ("JIRA__DC__READER__API_TOKEN", jira::READER_API_TOKEN.to_owned()),
            ("JIRA__DC__WRITER__API_TOKEN", jira::WRITER_API_TOKEN.to_owned()),
            ("INGEST__WEBHOOK_SECRETS__GITHUB__GHE", SECRET.to_owned()),
            ("INGEST__WEBHOOK_SECRETS__JIRA__DC", SECRET.to_owned()),
        ]
    }

    fn send_webhooks(&self, url: &str) {
        self.github
            .set_webhook(&format!("{url}/webhooks/github/ghe"), SECRET);
        self.jira.set_webhook(&format!("{url}/webhooks/jira/dc"), SECRET);
    }
}

async fn end_of(world: &TestWorld, ticket: &TicketKey, nth: usize) -> StopReason {
    let what = format!("run {nth} of {ticket}");
    let run = world.until(&what, async || {
        let runs = world.client.runs().recent(Some(ticket)).await.ok()?;
        runs.get(nth)?.id.parse::<RunId>().ok()
    });
    world.finished(&run.await.unwrap()).await.unwrap().1
}

fn collect_credentials(requests: &[RecordedRequest]) -> BTreeSet<&str> {
    let sent = requests.iter().map(|request| request.authorization.as_str());
    sent.filter(|authorization| !authorization.is_empty()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_names_on_two_instances_stay_separate() {
    let there = Elsewhere::start().await;
    let world = TestWorld::start(Options {
        settings: there.settings(),
        more_rules: vec![("there.yaml", THERE.to_owned())],
        ..Options::default()
    })
    .await
    .unwrap();
    there.send_webhooks(&world.url);
    for (source, status) in [("jira/dc", 401), ("jira/other", 404), ("jira", 202)] {
        let answered = world
            .deliver(source, "", r#"{"webhookEvent":"project_created"}"#)
            .await
            .unwrap();
        assert_eq!(
            answered, status,
            "{source}, signed with the secret of the default instance"
        );
    }

    // Equal keys give equal branches on both instances.
    let here = world.ask_for_note(1).unwrap();
    let description = format!("One line {}.", note_marker(2));
    world
        .model
        .set_script(&note_marker(2), fixture::note_script(&here));
    let key = there
        .jira
        .create_issue(fixture::PROJECT, "Write a note", &description, "Task", &[]);
    assert_eq!(key, here);
    there.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let tickets: [TicketKey; 2] =
        [format!("jira:{key}"), format!("jira+dc:{key}")].map(|key| key.parse().unwrap());
    for ticket in &tickets {
        assert_eq!(end_of(&world, ticket, 0).await, StopReason::Completed, "{ticket}");
    }
    for (github, jira) in [(&world.github, &world.jira), (&there.github, &there.jira)] {
        let pulls = github.pull_requests(fixture::REPOSITORY);
        assert_eq!(pulls.len(), 1, "{pulls:#?}");
        assert_eq!(pulls[0].head, fixture::note_branch(&key));
        let links = jira.remote_links(&key);
        assert_eq!(links.len(), 1);
        assert_eq!(links[0].url, pulls[0].url);
        assert_eq!(jira.comments(&key).len(), 1);
    }

    // Events of one instance concern that instance alone.
    let pull = &there.github.pull_requests(fixture::REPOSITORY)[0];
    let passed = [("test", github::RunConclusion::Success, "")];
    there
        .github
        .run_checks(fixture::REPOSITORY, &pull.head_sha, &passed)
        .unwrap();
    assert_eq!(end_of(&world, &tickets[1], 1).await, StopReason::Completed);
    there
        .github
        .merge(fixture::REPOSITORY, pull.number, "grace")
        .unwrap();
    assert_eq!(end_of(&world, &tickets[1], 2).await, StopReason::Completed);
    assert_eq!(there.jira.status(&key).as_deref(), Some("Done"));
    assert_ne!(world.jira.status(&key).as_deref(), Some("Done"));
    assert!(world.github.pull_requests(fixture::REPOSITORY)[0].draft);
    assert_eq!(
        world.client.runs().recent(Some(&tickets[0])).await.unwrap().len(),
        1
    );

    for (here, there) in [
        (world.github.requests(), there.github.requests()),
        (world.jira.requests(), there.jira.requests()),
    ] {
        let (here, there) = (collect_credentials(&here), collect_credentials(&there));
        assert!(!here.is_empty() && !there.is_empty());
        assert!(
            here.is_disjoint(&there),
            "a credential of one was sent to the other"
        );
    }
    assert_eq!(there.github.violations(), Vec::<String>::new());
    assert_eq!(there.jira.violations(), Vec::<String>::new());
    world.stop().await.unwrap();
}
