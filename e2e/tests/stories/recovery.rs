//! Failures and recovery: retries, the circuit breaker, commands in comments, triage.

use domain::{RunStatus, StopReason, TicketKey};
use e2e::{Options, TestWorld};
use serde_json::json;
use testkit::{ScriptStep, fixture};

use crate::{comment_with, end_of, only_pull_request, start_default_world, start_world_with_settings};

/// Lets a ticket's run fail at the model, and retries it by a comment of a user who may.
pub(crate) async fn retry_failed_ticket(world: &TestWorld) {
    world.jira.set_groups("ada", &["agents"]);
    let key = world.file_ticket();
    world.jira.assign(&key, "Agent").unwrap();
    world.model.garble_next(1_000);
    world.ask_for_work(&key).unwrap();
    let run = world.run(&key, 0).await.unwrap();
    let (journal, reason) = world.finished(&run).await.unwrap();
    assert!(matches!(reason, StopReason::ModelFailed { .. }), "{reason:?}");
    let retried = journal
        .iter()
        .filter(|entry| entry.fact.name() == "retried")
        .count();
    assert_eq!(retried, 5);
    comment_with(world, &key, "An operator must look into it").await;
    let unassigned = async || world.jira.assignee(&key).is_none().then_some(());
    world.until("nobody has the ticket", unassigned).await.unwrap();
    world.model.garble_next(0);
    world.jira.comment_as(&key, "ada", "/retry").unwrap();
    assert_eq!(end_of(world, &key, 1).await, StopReason::Completed);
    assert!(only_pull_request(world).open);
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_comment_closes_open_circuit() {
    let world = start_world_with_settings(&[("INGEST__JIRA_TRIGGER_GROUP", "agents")]).await;
    retry_failed_ticket(&world).await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_comment_ends_waiting_run() {
    let world = start_world_with_settings(&[
        ("INGEST__JIRA_TRIGGER_GROUP", "agents"),
        ("PLANNER__RETRY_BASE_MS", "600000"),
    ])
    .await;
    world.jira.set_groups("ada", &["agents"]);
    let key = world.file_ticket();
    world.model.garble_next(1_000);
    world.ask_for_work(&key).unwrap();
    comment_with(&world, &key, "retry 1 of 5").await;
    world.jira.comment_as(&key, "ada", "/stop").unwrap();
    let reason = end_of(&world, &key, 0).await;
    assert_eq!(reason, StopReason::Stopped { by: "ada".to_owned() });
    let queue = world.queue().await.unwrap();
    let rows = queue.table::<domain::TicketRow>(queue::KeyValueBucket::Tickets);
    let ticket = TicketKey::jira(&key).unwrap();
    let settled = async || {
        let (row, _) = rows.get(&ticket.to_string()).await.ok()??;
        let over = matches!(row.runs[0].status, RunStatus::Finished { .. });
        (over && row.due.is_none()).then_some(())
    };
    world.until("the timer is gone", settled).await.unwrap();
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn new_ticket_is_labeled_by_rules() {
    let labels = json!({"labels": ["bug"]});
    let world = TestWorld::start(Options {
        script: Some(vec![ScriptStep::call("submit_triage", labels)]),
        rules: "triage:\n  labels: [bug, docs]\n".to_owned(),
        ..Options::default()
    })
    .await
    .unwrap();
    let key = world.file_ticket();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    assert_eq!(world.jira.labels(&key), ["bug", "triaged"]);
    assert!(world.github.pull_requests(fixture::REPOSITORY).is_empty());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_webhook_is_found_in_github_log() {
    let world = start_world_with_settings(&[("INGEST__POLL_INTERVAL_S", "1")]).await;
    let key = world.ask().unwrap();
    end_of(&world, &key, 0).await;
    world.github.set_webhook("http://127.0.0.1:1/nowhere", "secret");
    let number = only_pull_request(&world).number;
    let id = world
        .github
        .comment_as(fixture::REPOSITORY, number, "grace", "/stop")
        .unwrap();
    let queue = world.queue().await.unwrap();
    let ticket = TicketKey::jira(&key).unwrap();
    let ordered = async || {
        let triggers = queue.triggers().read_after(&ticket, 0).await.ok()?;
        let wanted = format!("comment:{id}");
        let found: Vec<_> = triggers
            .iter()
            .filter(|(_, trigger)| trigger.key.as_str() == wanted)
            .collect();
        (found.len() == 1).then_some(())
    };
    world.until("the order is found", ordered).await.unwrap();
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn purge_forgets_ticket_after_stop_all() {
    let world = start_default_world().await;
    assert!(world.client.installation().stop_all(true).await.unwrap().on);
    let key = world.ask().unwrap();
    assert!(world.client.installation().is_stopped().await.unwrap().on);
    assert!(!world.client.installation().stop_all(false).await.unwrap().on);
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let ticket = TicketKey::jira(&key).unwrap();
    assert!(
        world.client.tickets().retry(&ticket).await.is_err(),
        "nothing has failed"
    );
    assert!(world.client.dead_letters().list().await.unwrap().is_empty());
    let purged = async || world.client.tickets().purge(&ticket).await.ok();
    world.until("the purge is accepted", purged).await.unwrap();
    assert!(world.client.runs().recent(None).await.unwrap().is_empty());
    assert!(
        world
            .client
            .runs()
            .recent(Some(&ticket))
            .await
            .unwrap()
            .is_empty()
    );
    world.stop().await.unwrap();
}
