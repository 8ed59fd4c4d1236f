//! Comment events of Jira that do not contain the issue.

use serde_json::{Value, json};
use testkit::poll_until;

use crate::harness::{DEADLINE, Harness, VIEWER};

/// Body of a new comment of Ada without the issue, with these fields in place of the usual ones.
fn build_lone_comment(id: &str, text: &str, address: &Value) -> String {
    let ada = json!({"accountId": "557058:ada", "name": "ada", "key": "ada", "displayName": "Ada", "active": true,
        "timeZone": "Etc/UTC"});
    let mut comment = json!({"id": id, "author": ada, "updateAuthor": ada, "body": text,
        "created": "2026-11-21T10:00:00.000+0000", "updated": "2026-11-21T10:00:00.000+0000"});
    if !address.is_null() {
        comment["self"] = address.clone();
    }
    json!({"timestamp": bootstrap::read_wall_clock().unix_ms(), "webhookEvent": "comment_created",
        "comment": comment})
    .to_string()
}

async fn send_lone_comment(h: &Harness, id: &str, address: &Value) {
    let body = build_lone_comment(id, "/stop", address);
    let status = h.signed("/webhooks/jira", "x-hub-signature", &body).await;
    assert_eq!(status.as_u16(), 202, "{address}");
}

#[tokio::test]
async fn lone_comment_reaches_ticket_by_address() {
    let (h, key) = Harness::start_with_requested_ticket().await;
    let issue = h.jira.issue_id(&key).expect("issue");
    let address = |comment: u64| {
        json!(format!(
            "{}/rest/api/2/issue/{issue}/comment/{comment}",
            h.jira.url()
        ))
    };
    send_lone_comment(&h, "70001", &address(70_001)).await;
    h.triggers_when(&key, 2).await;
    // The issue has another key now, and its records keep the first one.
    let moved = h.jira.move_to_project(&key, "OPS", "Ada").expect("moved");
    send_lone_comment(&h, "70002", &address(70_002)).await;
    h.triggers_when(&key, 3).await;
    let keys = h.trigger_keys(&key).await;
    assert_eq!(keys[1..], ["comment:70001", "comment:70002"]);
    assert!(h.triggers(&moved).await.is_empty());
    assert_eq!(h.get("/v1/dead", VIEWER).await.1, json!([]));
    h.stop().await;
}

#[tokio::test]
async fn both_events_of_comment_count_once() {
    let (h, key) = Harness::start_with_requested_ticket().await;
    // Jira sends this comment with its issue.
    let first = h.jira.comment_as(&key, "Ada", "/stop").expect("comment");
    h.triggers_when(&key, 2).await;
    let issue = h.jira.issue_id(&key).expect("issue");
    let base = format!("{}/rest/api/2/issue/{issue}/comment", h.jira.url());
    send_lone_comment(&h, &first, &json!(format!("{base}/{first}"))).await;
    let path = format!("/rest/api/3/issue/{issue}?");
    let is_read = async || {
        let requests = h.jira.requests();
        let mut paths = requests.iter().map(|request| &request.path);
        paths.any(|read| read.starts_with(&path)).then_some(())
    };
    poll_until("the read of the issue", DEADLINE, is_read)
        .await
        .expect("read");
    send_lone_comment(&h, "70001", &json!(format!("{base}/70001"))).await;
    h.triggers_when(&key, 3).await;
    let keys = h.trigger_keys(&key).await;
    assert_eq!(
        keys[1..],
        [format!("comment:{first}"), "comment:70001".to_owned()]
    );
    h.stop().await;
}

#[tokio::test]
async fn lone_comment_elsewhere_becomes_dead_letter() {
    let h = Harness::start(3_600).await;
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    let (site, issue) = (h.jira.url(), h.jira.issue_id(&key).expect("issue"));
    let hostile = [
        Value::Null,
        json!(7),
        json!({"href": format!("{site}/rest/api/2/issue/{issue}/comment/5")}),
        json!(format!("https://evil.example/rest/api/2/issue/{issue}/comment/5")),
        json!(format!("{site}.evil.example/rest/api/2/issue/{issue}/comment/5")),
        json!(format!("{site}/rest/api/2/issue/{key}/comment/5")),
        json!(format!(
            "{site}/rest/api/2/issue/../../../secure/{issue}/comment/5"
        )),
        json!(format!("{site}/rest/api/2/issue/{issue}/comment/6")),
    ];
    for address in &hostile {
        send_lone_comment(&h, "5", address).await;
    }
    let dead = h.dead(hostile.len()).await;
    assert_eq!(dead.len(), hostile.len(), "{dead:#?}");
    for letter in &dead {
        let text = letter.to_string();
        assert!(
            text.contains("comment_created") && text.contains("site_url"),
            "{text}"
        );
        assert!(!text.contains("evil.example"), "{text}");
    }
    assert!(h.triggers(&key).await.is_empty());
    h.stop().await;
}

#[tokio::test]
async fn lone_comment_on_unseen_issue_is_dropped() {
    let h = Harness::start(3_600).await;
    let unseen = json!(format!("{}/rest/api/2/issue/999999/comment/5", h.jira.url()));
    send_lone_comment(&h, "5", &unseen).await;
    let is_read = async || {
        let requests = h.jira.requests();
        let mut paths = requests.iter().map(|request| &request.path);
        paths.any(|path| path.contains("/issue/999999?")).then_some(())
    };
    poll_until("the read of the issue", DEADLINE, is_read)
        .await
        .expect("read");
    // A later event ends as a dead letter, the earlier one has none.
    send_lone_comment(&h, "6", &json!("elsewhere")).await;
    let dead = h.dead(1).await;
    assert_eq!(dead.len(), 1, "{dead:#?}");
    assert!(dead[0].to_string().contains("site_url"), "{dead:#?}");
    h.stop().await;
}
