//! Jira issues that move to another project, with another key and the same id.

use domain::{Job, RunId, TicketKey};
use queue::KeyValueBucket;
use reqwest::StatusCode;
use serde_json::json;
use testkit::poll_until;

use crate::harness::{DEADLINE, Harness, OPERATOR, VIEWER};

/// Waits until the API answers to a key with the ticket of another one.
async fn await_alias(h: &Harness, named: &str, key: &str) {
    let path = format!("/v1/tickets/{named}");
    let known = async || {
        let (_, view) = h.get(&path, VIEWER).await;
        (view["ticket"] == json!(format!("jira:{key}"))).then_some(())
    };
    poll_until(named, DEADLINE, known).await.expect("alias");
}

#[tokio::test]
async fn order_under_new_key_reaches_old_records() {
    let (h, key) = Harness::start_with_requested_ticket().await;
    // No rules name the new project: the run of the ticket is stopped all the same.
    let moved = h.jira.move_to_project(&key, "OPS", "Ada").expect("moved");
    h.jira.comment_as(&moved, "Ada", "/stop").expect("comment");
    h.triggers_when(&key, 2).await;
    assert_eq!(h.trigger_keys(&moved).await, Vec::<String>::new());
    // The move back gives the old key again.
    let back = h.jira.move_to_project(&moved, "ENG", "Ada").expect("moved");
    assert_eq!(back, key);
    h.jira.comment_as(&back, "Ada", "/stop").expect("comment");
    h.triggers_when(&key, 3).await;
    h.stop().await;
}

#[tokio::test]
async fn chain_of_moves_keeps_one_log() {
    let (h, key) = Harness::start_with_requested_ticket().await;
    h.add_rules(
        "web",
        "repo:\n  owner: acme\n  name: web\njira:\n  project_key: OPS\n",
    )
    .await;
    let mut present = key.clone();
    for project in ["OPS", "WEB", "OPS", "ENG", "WEB"] {
        present = h.jira.move_to_project(&present, project, "Ada").expect("moved");
    }
    h.jira.comment_as(&present, "Ada", "/stop").expect("comment");
    h.triggers_when(&key, 2).await;
    for named in [key.as_str(), "OPS-1", present.as_str()] {
        await_alias(&h, named, &key).await;
    }
    let (unknown, _) = h.get("/v1/tickets/OPS-2", VIEWER).await;
    assert_eq!(unknown, StatusCode::NOT_FOUND);
    h.stop().await;
}

#[tokio::test]
async fn api_comment_reaches_run_by_either_key() {
    let (h, key) = Harness::start_with_requested_ticket().await;
    let moved = h.jira.move_to_project(&key, "OPS", "Ada").expect("moved");
    await_alias(&h, &moved, &key).await;
    for (count, named) in [(2, &moved), (3, &key)] {
        let path = format!("/v1/tickets/{named}/comments");
        let (status, answer) = h.post(&path, OPERATOR, &json!({"text": "/stop"}), None).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        h.triggers_when(&key, count).await;
    }
    assert!(h.triggers(&moved).await.is_empty());
    h.stop().await;
}

#[tokio::test]
async fn ticket_list_shows_run_of_moved_issue() {
    let (h, key) = Harness::start_with_requested_ticket().await;
    h.add_rules(
        "web",
        "repo:\n  owner: acme\n  name: web\njira:\n  project_key: OPS\n",
    )
    .await;
    let moved = h.jira.move_to_project(&key, "OPS", "Ada").expect("moved");
    await_alias(&h, &moved, &key).await;
    let ticket = TicketKey::jira(&key).expect("key");
    let mut row = domain::TicketRow::default();
    row.open(
        domain::PendingRun::new(RunId::new(ticket.clone(), 1), Job::Implement, domain::Lane::Talk),
        domain::Timestamp::default(),
    );
    let rows = h.queue.table::<domain::TicketRow>(KeyValueBucket::Tickets);
    rows.put(&ticket, &row, None).await.expect("row");
    let (status, listed) = h.get("/v1/tickets", VIEWER).await;
    assert_eq!(status, StatusCode::OK, "{listed}");
    let name = json!(format!("jira:{moved}"));
    let mut lines = listed["tickets"].as_array().expect("tickets").iter();
    let line = lines
        .find(|line| line["ticket"] == name)
        .expect("the moved issue");
    assert_eq!(line["run"]["job"], "implement", "{listed}");
    h.stop().await;
}

#[tokio::test]
async fn reassigned_key_is_another_ticket() {
    let (h, key) = Harness::start_with_requested_ticket().await;
    let moved = h.jira.move_to_project(&key, "OPS", "Ada").expect("moved");
    h.jira.comment_as(&moved, "Ada", "/stop").expect("comment");
    h.triggers_when(&key, 2).await;
    // The alias is free again once its issue is gone and another one has the key.
    h.jira.delete_issue(&moved, "Ada").expect("deleted");
    h.add_rules(
        "web",
        "repo:\n  owner: acme\n  name: web\njira:\n  project_key: OPS\n",
    )
    .await;
    let other = h.jira.create_issue_as(&moved, "Another one");
    assert_ne!(h.jira.issue_id(&other), h.jira.issue_id(&key));
    h.jira.comment_as(&other, "Ada", "/stop").expect("comment");
    h.triggers_when(&other, 1).await;
    assert_eq!(
        h.triggers(&key).await.len(),
        2,
        "the first ticket has nothing of it"
    );
    h.stop().await;
}
