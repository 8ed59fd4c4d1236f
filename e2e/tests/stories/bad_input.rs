//! Bad input ends in one clear error for its audience, and nothing is lost.

use domain::{Job, TicketKey};
use e2e::TestWorld;
use testkit::fixture;

use crate::{end_of, list_ticket_comments, start_default_world};

async fn post_body(world: &TestWorld, path: &str, body: &'static str, headers: &[(&str, &str)]) -> u16 {
    let mut request = reqwest::Client::new()
        .post(format!("{}{path}", world.url))
        .body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_signature_is_refused_without_effect() {
    let world = start_default_world().await;
    let forged = "sha256=0000000000000000000000000000000000000000000000000000000000000000";
    assert_eq!(
        post_body(&world, "/webhooks/jira", "{}", &[("x-hub-signature", forged)]).await,
        401
    );
    assert_eq!(
        post_body(
            &world,
            "/webhooks/github",
            "{}",
            &[("x-hub-signature-256", forged)]
        )
        .await,
        401
    );
    assert_eq!(post_body(&world, "/webhooks/github", "{}", &[]).await, 401);
    assert!(world.client.runs().recent(None).await.unwrap().is_empty());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_ticket_is_refused_in_words() {
    let world = start_default_world().await;
    let unknown = world
        .client
        .jobs()
        .dispatch(&TicketKey::jira("ENG-404").unwrap(), Job::Implement)
        .await
        .unwrap_err();
    assert!(unknown.to_string().contains("ENG-404"), "{unknown}");
    let foreign = world
        .client
        .jobs()
        .dispatch(&TicketKey::jira("OTHER-1").unwrap(), Job::Implement)
        .await
        .unwrap_err();
    assert!(foreign.to_string().contains("OTHER"), "{foreign}");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_rules_disable_repository_until_fixed() {
    let world = start_default_world().await;
    let good = std::fs::read_to_string(world.rules_file()).unwrap();
    std::fs::write(world.rules_file(), format!("{good}agent:\n  statsu: x\n")).unwrap();
    let refused = async || {
        let unknown = TicketKey::jira("ENG-404").unwrap();
        let error = world
            .client
            .jobs()
            .dispatch(&unknown, Job::Implement)
            .await
            .err()?
            .to_string();
        error.contains("rules").then_some(error)
    };
    let key = world.file_ticket();
    world.until("rules refused", refused).await.unwrap();
    std::fs::write(world.rules_file(), good).unwrap();
    let accepted = async || {
        world
            .client
            .jobs()
            .dispatch(&TicketKey::jira(&key).unwrap(), Job::Implement)
            .await
            .ok()
    };
    let run = world
        .until("rules mended", accepted)
        .await
        .unwrap()
        .run
        .parse()
        .unwrap();
    world.finished(&run).await.unwrap();
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn dispatched_job_equals_status_change() {
    let world = start_default_world().await;
    let key = world.file_ticket();
    let run = world
        .client
        .jobs()
        .dispatch(&TicketKey::jira(&key).unwrap(), Job::Implement)
        .await
        .unwrap()
        .run
        .parse()
        .unwrap();
    world.finished(&run).await.unwrap();
    assert_eq!(world.github.pull_requests(fixture::REPOSITORY).len(), 1);
    assert!(!list_ticket_comments(&world, &key).is_empty());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_garbage_becomes_harmless_dead_letter() {
    let world = start_default_world().await;
    assert_eq!(
        world
            .deliver("github", "check_run", r#"{"action": 7, "check_run": {}}"#)
            .await
            .unwrap(),
        202
    );
    assert_eq!(
        world
            .deliver(
                "jira",
                "",
                r#"{"webhookEvent": "jira:issue_updated", "issue": []}"#
            )
            .await
            .unwrap(),
        202
    );
    assert_eq!(
        world.deliver("github", "check_run", "not json").await.unwrap(),
        400
    );
    let two = async || world.dead_letters().await.ok().filter(|dead| dead.len() == 2);
    let dead = world.until("two dead letters", two).await.unwrap();
    assert!(
        dead.iter().all(|letter| letter.starts_with("delivery ")),
        "{dead:#?}"
    );
    let key = world.ask().unwrap();
    end_of(&world, &key, 0).await;
    world.stop_with_dead_letters().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ticket_without_rules_becomes_dead_letter() {
    let world = start_default_world().await;
    let key = world
        .jira
        .create_issue("OPS", "Nobody minds me", "text", "Task", &[]);
    world.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    let one = async || {
        world
            .dead_letters()
            .await
            .ok()
            .and_then(|dead| dead.into_iter().next())
    };
    let letter = world.until("a dead letter", one).await.unwrap();
    assert!(letter.contains("OPS"), "{letter}");
    world.stop_with_dead_letters().await.unwrap();
}
