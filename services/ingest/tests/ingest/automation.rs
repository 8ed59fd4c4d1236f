//! Web requests of Jira Automation.

use serde_json::json;

use crate::harness::{Harness, VIEWER};

const READY: &str = "Ready for Agent";
const TOKEN: &str = "X-Journeyman-Token";
const SECRET: &str = "automation-secret-number-one";

async fn start_with_secret() -> Harness {
    let h = Harness::start_with(3_600, |config| {
        config.ingest.jira_automation_secrets = ingest::SecretList::new([SECRET.to_owned()]);
    })
    .await;
    h.first_poll().await;
    h
}

#[tokio::test]
async fn request_leads_to_work_once() {
    let h = start_with_secret().await;
    let url = h.url("/webhooks/automation");
    let key = h
        .jira
        .create_issue("ENG", "Fix the cart", "It rounds", "Bug", &[]);
    let changelog = h.jira.move_issue(&key, READY, "Ada").expect("move");
    for _ in 0..2 {
        let status = h.jira.run_automation_rule(&key, &url, (TOKEN, SECRET)).await;
        assert_eq!(status.expect("answer"), 202);
    }
    h.trigger(&key).await;
    // The webhook of the same change has the same key.
    h.send_jira_move(&key, &changelog, READY, "Ada").await;
    let comment = h.jira.comment_as(&key, "Ada", "/stop").expect("comment");
    let status = h.jira.run_automation_rule(&key, &url, (TOKEN, SECRET)).await;
    assert_eq!(status.expect("answer"), 202);
    h.triggers_when(&key, 2).await;
    assert_eq!(
        h.trigger_keys(&key).await,
        [format!("changelog:{changelog}"), format!("comment:{comment}")]
    );
    assert_eq!(h.get("/v1/dead", VIEWER).await.1, json!([]));
    h.stop().await;
}

#[tokio::test]
async fn request_without_secret_or_key_is_refused() {
    let h = start_with_secret().await;
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    h.jira.move_issue(&key, READY, "Ada").expect("move");
    let url = h.url("/webhooks/automation");
    for (url, header) in [
        (url.clone(), (TOKEN, "automation-secret-number-two")),
        (url.clone(), ("X-Other", SECRET)),
        (format!("{url}/dc"), (TOKEN, SECRET)),
    ] {
        let status = h.jira.run_automation_rule(&key, &url, header).await;
        assert_eq!(status.expect("answer"), 401, "{url} {header:?}");
    }
    for body in ["{}", "[]", r#"{"issue": {"key": "ENG-0"}}"#] {
        let request = h.http.post(&url).header(TOKEN, SECRET).body(body);
        assert_eq!(
            request.send().await.expect("answer").status().as_u16(),
            400,
            "{body}"
        );
    }
    assert!(h.triggers(&key).await.is_empty());
    h.stop().await;
}

#[tokio::test]
async fn author_of_request_decides_nothing() {
    let h = start_with_secret().await;
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    h.jira.move_issue(&key, READY, "Eve").expect("move");
    // The body says that Ada moved it, which is not what Jira says.
    let body = json!({"issue": {"key": key}, "user": {"accountId": "557058:ada", "displayName": "Ada"},
        "webhookEvent": "jira:issue_updated", "changelog": {"id": "1", "items": [
            {"field": "status", "toString": READY}]}});
    let request = h.http.post(h.url("/webhooks/automation"));
    let request = request.header(TOKEN, SECRET).body(body.to_string());
    assert_eq!(request.send().await.expect("answer").status().as_u16(), 202);
    let trigger = h.trigger(&key).await;
    assert!(
        matches!(
            trigger.reason,
            domain::TriggerReason::Skipped(domain::SkipReason::NotAllowed { .. })
        ),
        "{trigger:?}"
    );
    h.stop().await;
}

#[tokio::test]
async fn signed_body_without_event_names_ticket() {
    let h = start_with_secret().await;
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    h.jira.move_issue(&key, READY, "Ada").expect("move");
    let body = json!({"issue": {"key": key}}).to_string();
    assert_eq!(
        h.signed("/webhooks/jira", "x-hub-signature", &body)
            .await
            .as_u16(),
        202
    );
    h.trigger(&key).await;
    // A body that names nothing is a dead letter with the way out of it.
    h.signed("/webhooks/jira", "x-hub-signature", "{\"project\": \"ENG\"}")
        .await;
    let dead = h.dead(1).await;
    assert!(dead[0].to_string().contains("jira-automation.md"), "{dead:?}");
    h.stop().await;
}
