//! Tickets of local folders: their text and their comments come through the API.

use domain::{TicketKey, TicketNews, TriggerChannel, TriggerReason};
use reqwest::StatusCode;
use serde::de::IgnoredAny;
use serde_json::json;

use crate::harness::{Harness, OPERATOR, VIEWER};

const TICKET: &str = "folder:shop#1";
const JOBS: &str = "/v1/jobs";
const COMMENTS: &str = "/v1/tickets/folder%3Ashop%231/comments";

async fn with_folder() -> Harness {
    Harness::start_with(3_600, |config| {
        config.folder = [("shop".parse().expect("name"), IgnoredAny)].into();
        let rules = "repo: {folder: shop, default_branch: trunk}\n";
        std::fs::write(config.rules.dir.join("folder.yaml"), rules).expect("rules");
    })
    .await
}

async fn read_trigger_reasons(h: &Harness) -> Vec<(TriggerChannel, TriggerReason)> {
    let ticket: TicketKey = TICKET.parse().expect("ticket");
    let read = h.queue.triggers().read_after(&ticket, 0).await.expect("triggers");
    read.into_iter()
        .map(|(_, trigger)| (trigger.source, trigger.reason))
        .collect()
}

#[tokio::test]
async fn folder_text_becomes_job_with_folder_rules() {
    let h = with_folder().await;
    let text = json!({"summary": "Fix the cart", "description": "It rounds.<!-- hidden -->"});
    let body = json!({"ticket": TICKET, "job": "implement", "text": text});
    let first = h.post(JOBS, OPERATOR, &body, Some("k1")).await;
    assert_eq!(first.0, StatusCode::ACCEPTED, "{}", first.1);
    assert_eq!(h.post(JOBS, OPERATOR, &body, Some("k1")).await, first);
    let known = read_trigger_reasons(&h).await;
    let [(TriggerChannel::Api, TriggerReason::JobRequested(request))] = known.as_slice() else {
        panic!("{known:?}")
    };
    assert_eq!(request.repository.to_string(), "folder:local/shop");
    assert_eq!(request.rules.repo.default_branch, "trunk");
    assert_eq!(
        (request.text.summary.as_str(), request.text.description.as_str()),
        ("Fix the cart", "It rounds.")
    );
    h.stop().await;
}

#[tokio::test]
async fn only_known_folder_ticket_takes_text() {
    let h = with_folder().await;
    let text = json!({"summary": "Fix the cart"});
    let jira = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    for (body, status) in [
        (
            json!({"ticket": TICKET, "job": "implement"}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            json!({"ticket": jira, "job": "implement", "text": text}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            json!({"ticket": "folder:cart#1", "job": "implement", "text": text}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            json!({"ticket": TICKET, "job": "triage", "text": text}),
            StatusCode::UNPROCESSABLE_ENTITY,
        ),
        (
            json!({"ticket": TICKET, "job": "implement", "text": {"summary": "Not now [AGENT-SKIP]"}}),
            StatusCode::CONFLICT,
        ),
    ] {
        let answer = h.post(JOBS, OPERATOR, &body, None).await;
        assert_eq!(answer.0, status, "{body}: {}", answer.1);
    }
    assert!(read_trigger_reasons(&h).await.is_empty());
    h.stop().await;
}

#[tokio::test]
async fn api_comment_reaches_only_its_ticket() {
    let h = with_folder().await;
    let words = json!({"text": "Half up."});
    let nobody = h.post(COMMENTS, OPERATOR, &words, None).await;
    assert_eq!(nobody.0, StatusCode::CONFLICT, "{}", nobody.1);
    let text = json!({"summary": "Fix the cart"});
    let body = json!({"ticket": TICKET, "job": "implement", "text": text});
    assert_eq!(h.post(JOBS, OPERATOR, &body, None).await.0, StatusCode::ACCEPTED);
    assert_eq!(
        h.post(COMMENTS, VIEWER, &words, None).await.0,
        StatusCode::FORBIDDEN
    );
    let said = h.post(COMMENTS, OPERATOR, &words, None).await;
    assert_eq!(said.0, StatusCode::ACCEPTED, "{}", said.1);
    let known = read_trigger_reasons(&h).await;
    let Some((_, TriggerReason::NewsArrived(TicketNews::Comment { comment, .. }))) = known.last() else {
        panic!("{known:?}")
    };
    assert_eq!(
        (
            comment.author.as_str(),
            comment.text.as_str(),
            comment.may_instruct
        ),
        ("olga", "Half up.", true)
    );
    let key = h.jira.create_issue("ENG", "Fix the prices", "", "Bug", &[]);
    let on_jira = format!("/v1/tickets/jira%3A{key}/comments");
    let nobody = h.post(&on_jira, OPERATOR, &words, None).await;
    assert_eq!(nobody.0, StatusCode::CONFLICT, "{}", nobody.1);
    let body = json!({"ticket": key, "job": "implement"});
    assert_eq!(h.post(JOBS, OPERATOR, &body, None).await.0, StatusCode::ACCEPTED);
    let said = h.post(&on_jira, OPERATOR, &words, None).await;
    assert_eq!(said.0, StatusCode::ACCEPTED, "{}", said.1);
    let triggers = h.triggers(&key).await;
    let Some(TriggerReason::NewsArrived(TicketNews::Comment { comment, .. })) =
        triggers.last().map(|last| &last.reason)
    else {
        panic!("{triggers:?}")
    };
    assert_eq!(
        (&*comment.author, &*comment.text, comment.may_instruct),
        ("olga", "Half up.", true)
    );
    h.stop().await;
}

#[tokio::test]
async fn rules_and_pools_name_repository_of_folder() {
    let h = with_folder().await;
    let (status, rules) = h.get("/v1/rules", VIEWER).await;
    assert_eq!(status, StatusCode::OK);
    let listed = rules["repositories"].as_array().expect("repositories");
    let mut names = listed.iter().map(|one| &one["repository"]);
    assert!(names.any(|name| name == "folder:local/shop"), "{rules}");
    let (status, pools) = h.get("/v1/pools", VIEWER).await;
    assert_eq!(status, StatusCode::OK);
    assert!(pools.to_string().contains("folder:local/shop"), "{pools}");
    h.stop().await;
}
