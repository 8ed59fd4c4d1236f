//! Web requests of Jira Automation as the only channel: neither webhooks nor polls report the tickets.

use domain::{StopReason, TicketKey};
use e2e::{Options, TestWorld};

use crate::{comment_with, end_of, only_pull_request};

const TOKEN: &str = "x-journeyman-token";
const SECRET: &str = "automation-secret-number-one";

async fn start_world() -> TestWorld {
    let world = TestWorld::start(Options {
        settings: vec![
            ("INGEST__POLL_INTERVAL_S", "3600".to_owned()),
            ("INGEST__JIRA_AUTOMATION_SECRETS", SECRET.to_owned()),
        ],
        no_webhooks: true,
        ..Options::default()
    });
    world.await.unwrap()
}

/// Sends the request of a rule about a ticket with this secret, and returns the status of the answer.
async fn send_request(world: &TestWorld, key: &str, secret: &str) -> u16 {
    let url = format!("{}/webhooks/automation", world.url);
    let sent = world.jira.run_automation_rule(key, &url, (TOKEN, secret));
    sent.await.unwrap()
}

/// Sends a request about a ticket that may not exist.
async fn send_named(world: &TestWorld, key: &str) -> u16 {
    let body = format!(r#"{{"issue": {{"key": "{key}"}}}}"#);
    let request = reqwest::Client::new()
        .post(format!("{}/webhooks/automation", world.url))
        .header(TOKEN, SECRET)
        .header("content-type", "application/json")
        .body(body);
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn automation_leads_ticket_to_one_pull_request() {
    let world = start_world().await;
    let key = world.ask().unwrap();
    assert_eq!(send_request(&world, &key, "another-secret-of-someone").await, 401);
    assert_eq!(send_request(&world, &key, "").await, 401);
    // A rule runs for each event of a ticket, so its requests repeat.
    for _ in 0..3 {
        assert_eq!(send_request(&world, &key, SECRET).await, 202);
    }
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    assert!(only_pull_request(&world).open);
    assert_eq!(send_request(&world, &key, SECRET).await, 202);
    // The request about the comment is handled after the repeated one.
    world.jira.comment_as(&key, "ada", "/cost").unwrap();
    assert_eq!(send_request(&world, &key, SECRET).await, 202);
    comment_with(&world, &key, "Models have taken").await;
    let ticket = TicketKey::jira(&key).unwrap();
    let runs = world.client.runs().recent(Some(&ticket)).await.unwrap();
    assert_eq!(runs.len(), 1, "{runs:#?}");
    only_pull_request(&world);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn automation_about_unknown_ticket_starts_nothing() {
    let world = start_world().await;
    // No repository has rules for the first project; the second one lacks the ticket.
    for key in ["NOPE-1", "ENG-99999"] {
        assert_eq!(send_named(&world, key).await, 202, "{key}");
    }
    let dead = async || Some(world.dead_letters().await.ok()?).filter(|dead| !dead.is_empty());
    let dead = world.until("the dead letter", dead).await.unwrap();
    assert_eq!(dead.len(), 1, "{dead:#?}");
    // A ticket that exists is read as before.
    let key = world.ask().unwrap();
    assert_eq!(send_request(&world, &key, SECRET).await, 202);
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    only_pull_request(&world);
    world.stop_with_dead_letters().await.unwrap();
}
