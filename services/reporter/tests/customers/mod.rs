//! Readers of comments on requests of a service project.

use domain::{OutboundOutcome, OutboundReceipt};
use serde_json::{Value, json};

use crate::{
    build_work_started,
    rig::{Rig, RigOptions},
};

/// Reports the start of work on a request of a service project, and returns the properties of each new comment.
async fn comment_on_request(rules: &'static str) -> Vec<Vec<Value>> {
    let mut rig = Rig::start_with(RigOptions {
        jira: rules,
        service_projects: vec!["ENG".to_owned()],
        ..RigOptions::default()
    })
    .await;
    assert_eq!(
        rig.settled(&rig.report(2, build_work_started())).await,
        OutboundOutcome::Done(OutboundReceipt::Told)
    );
    let requests = rig.jira.requests();
    let comments = requests
        .iter()
        .filter(|request| request.method == "POST" && request.path.ends_with("/comment"));
    let properties = comments
        .map(|request| {
            request.body.as_ref().unwrap()["properties"]
                .as_array()
                .unwrap()
                .clone()
        })
        .collect();
    rig.stop().await;
    properties
}

#[tokio::test(flavor = "multi_thread")]
async fn comment_on_request_is_internal_by_default() {
    let internal = json!({"key": "sd.public.comment", "value": {"internal": true}});
    for rules in ["", "  public_comments: false\n"] {
        let comments = comment_on_request(rules).await;
        assert_eq!(comments.len(), 1, "{comments:?}");
        assert!(comments[0].contains(&internal), "{rules:?}: {comments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn public_comments_rule_shows_comment_to_customers() {
    let comments = comment_on_request("  public_comments: true\n").await;
    assert_eq!(comments.len(), 1, "{comments:?}");
    let mut keys = comments[0].iter().map(|property| &property["key"]);
    assert!(keys.all(|key| key != "sd.public.comment"), "{comments:?}");
}
