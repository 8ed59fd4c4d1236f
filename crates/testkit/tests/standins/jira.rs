//! The Jira stand-in over HTTP.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::jira::{READER_API_TOKEN, READER_EMAIL, WRITER_API_TOKEN, WRITER_EMAIL, WRITER_NAME};
use testkit::{FakeJira, Fault, JiraOptions};

use crate::{client, hmac, receiver, webhook};

pub(crate) async fn call(
    jira: &FakeJira,
    writer: bool,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> (u16, Value) {
    let (email, token) = if writer {
        (WRITER_EMAIL, WRITER_API_TOKEN)
    } else {
        (READER_EMAIL, READER_API_TOKEN)
    };
    let url = format!("{}/rest/api/3{path}", jira.url());
    let request = client().request(method, url).basic_auth(email, Some(token));
    let request = match body {
        Some(body) => request.json(&body),
        None => request,
    };
    let response = request.send().await.unwrap();
    (
        response.status().as_u16(),
        response.json().await.unwrap_or_default(),
    )
}

pub(crate) fn document(text: &str) -> Value {
    json!({"type": "doc", "version": 1, "content": [{"type": "paragraph", "content": [{"type": "text", "text": text}]}]})
}

#[tokio::test]
async fn a_moved_ticket_sends_a_signed_webhook_whose_changelog_the_interface_shows_too() {
    let jira = FakeJira::start(JiraOptions::default()).await.unwrap();
    let (url, received) = receiver().await;
    jira.set_webhook(&url, "secret");
    let key = jira.create_issue("ENG", "summary", "one\n\ntwo", "Bug", &["shop"]);
    let id = jira.move_issue(&key, "Ready for Agent", "Rita").unwrap();

    let (headers, body, payload) = webhook(&received, |_, payload| {
        payload["webhookEvent"] == "jira:issue_updated"
    })
    .await;
    assert_eq!(headers["x-hub-signature"], hmac("secret", &body).as_str());
    assert!(headers.contains_key("x-atlassian-webhook-identifier"));
    assert_eq!(payload["changelog"]["id"], id.as_str());
    assert_eq!(payload["changelog"]["items"][0]["toString"], "Ready for Agent");
    assert_eq!(payload["issue"]["fields"]["description"], "one\n\ntwo");

    let (status, issue) = call(
        &jira,
        false,
        Method::GET,
        &format!("/issue/{key}?fields=status&expand=changelog"),
        None,
    )
    .await;
    assert_eq!(
        (status, &issue["fields"]["status"]["name"]),
        (200, &json!("Ready for Agent"))
    );
    assert_eq!(issue["changelog"]["histories"][0]["id"], id.as_str());
    assert_eq!(issue["fields"].as_object().unwrap().len(), 1);
}

#[tokio::test]
async fn the_pollers_search_pages_through_matching_tickets() {
    let jira = FakeJira::start(JiraOptions::default()).await.unwrap();
    for number in 0..3 {
        let key = jira.create_issue("ENG", &format!("ticket {number}"), "", "Bug", &[]);
        jira.move_issue(&key, "Ready for Agent", "Rita").unwrap();
    }
    jira.create_issue("ENG", "not ready", "", "Bug", &[]);
    let jql = "project = \"ENG\" AND status = \"Ready for Agent\" ORDER BY updated ASC";
    let mut body = json!({"jql": jql, "maxResults": 2, "fields": ["status", "updated"]});
    let (_, first) = call(&jira, false, Method::POST, "/search/jql", Some(body.clone())).await;
    body["nextPageToken"] = first["nextPageToken"].clone();
    let (_, second) = call(&jira, false, Method::POST, "/search/jql", Some(body)).await;
    let keys: Vec<&str> = [&first, &second]
        .iter()
        .flat_map(|page| page["issues"].as_array().unwrap())
        .map(|issue| issue["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["ENG-1", "ENG-2", "ENG-3"]);
    assert_eq!(second["isLast"], true);
    let (status, _) = call(
        &jira,
        false,
        Method::POST,
        "/search/jql",
        Some(json!({"jql": "status in (Done)"})),
    )
    .await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn the_writer_comments_links_and_moves_along_the_workflow() {
    let transitions = vec![("To Do".to_owned(), "In Progress".to_owned())];
    let jira = FakeJira::start(JiraOptions {
        transitions,
        ..JiraOptions::default()
    })
    .await
    .unwrap();
    let key = jira.create_issue("ENG", "summary", "text", "Bug", &[]);
    let comment = Some(json!({"body": document("hello")}));
    let (status, created) = call(
        &jira,
        true,
        Method::POST,
        &format!("/issue/{key}/comment"),
        comment,
    )
    .await;
    assert_eq!(status, 201);
    let path = format!("/issue/{key}/comment/{}", created["id"].as_str().unwrap());
    assert_eq!(
        call(
            &jira,
            true,
            Method::PUT,
            &path,
            Some(json!({"body": document("again")}))
        )
        .await
        .0,
        200
    );
    let comments = jira.comments(&key);
    assert_eq!(
        (
            comments.len(),
            comments[0].author.as_str(),
            comments[0].text.as_str()
        ),
        (1, WRITER_NAME, "again")
    );

    let link = |title: &str| Some(json!({"globalId": "g", "object": {"url": "http://x", "title": title}}));
    assert_eq!(
        call(
            &jira,
            true,
            Method::POST,
            &format!("/issue/{key}/remotelink"),
            link("a")
        )
        .await
        .0,
        201
    );
    assert_eq!(
        call(
            &jira,
            true,
            Method::POST,
            &format!("/issue/{key}/remotelink"),
            link("b")
        )
        .await
        .0,
        200
    );
    assert_eq!(
        jira.remote_links(&key)
            .iter()
            .map(|link| link.title.as_str())
            .collect::<Vec<_>>(),
        ["b"]
    );

    let path = format!("/issue/{key}/transitions");
    let (_, offered) = call(&jira, true, Method::GET, &path, None).await;
    assert_eq!(offered["transitions"].as_array().unwrap().len(), 1);
    let id = &offered["transitions"][0]["id"];
    assert_eq!(
        call(
            &jira,
            true,
            Method::POST,
            &path,
            Some(json!({"transition": {"id": id}}))
        )
        .await
        .0,
        204
    );
    assert_eq!(
        call(
            &jira,
            true,
            Method::POST,
            &path,
            Some(json!({"transition": {"id": id}}))
        )
        .await
        .0,
        400
    );
    assert_eq!(jira.status_history(&key), ["To Do", "In Progress"]);
    assert_eq!(jira.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn strangers_the_readers_writes_and_bad_documents_are_refused() {
    let jira = FakeJira::start(JiraOptions::default()).await.unwrap();
    let key = jira.create_issue("ENG", "summary", "text", "Bug", &[]);
    let path = format!("/issue/{key}/comment");
    let stranger = client()
        .get(format!("{}/rest/api/3/myself", jira.url()))
        .basic_auth(READER_EMAIL, Some("x"));
    assert_eq!(stranger.send().await.unwrap().status(), 401);
    assert_eq!(
        call(
            &jira,
            false,
            Method::POST,
            &path,
            Some(json!({"body": document("x")}))
        )
        .await
        .0,
        403
    );
    assert_eq!(
        call(&jira, true, Method::POST, &path, Some(json!({"body": "plain"})))
            .await
            .0,
        400
    );
    assert_eq!(
        call(
            &jira,
            true,
            Method::POST,
            &path,
            Some(json!({"text": document("x")}))
        )
        .await
        .0,
        400
    );
    assert_eq!(call(&jira, true, Method::GET, "/issue/ENG-99", None).await.0, 404);
    assert_eq!(jira.comments(&key), []);
    assert_eq!(jira.violations().len(), 2);
}

#[tokio::test]
async fn a_lagging_list_shows_a_comment_late_and_a_cut_answer_comes_after_the_effect() {
    let jira = FakeJira::start(JiraOptions::default()).await.unwrap();
    let key = jira.create_issue("ENG", "Totals", "Wrong.", "Bug", &[]);
    let path = format!("/issue/{key}/comment");
    jira.set_list_lag(Duration::from_secs(3600));
    jira.fail_next(Fault::new("/comment", 1, 200).on("POST").after_effect().cut());
    assert_eq!(jira.faults_left(), 1);
    let url = format!("{}/rest/api/3{path}", jira.url());
    let request = client()
        .post(url)
        .basic_auth(WRITER_EMAIL, Some(WRITER_API_TOKEN));
    let answer = request.json(&json!({"body": document("hello")})).send().await;
    let is_whole = match answer {
        Ok(answer) => answer.bytes().await.is_ok(),
        Err(_) => false,
    };
    assert!(!is_whole, "the answer breaks off");
    assert_eq!(jira.faults_left(), 0);
    assert_eq!(jira.comments(&key).len(), 1);
    let listed = call(&jira, true, Method::GET, &path, None).await;
    assert_eq!(listed.1["total"], 0);
    jira.set_list_lag(Duration::ZERO);
    let listed = call(&jira, true, Method::GET, &path, None).await;
    assert_eq!(listed.1["total"], 1);
}
