//! The Jira stand-in over HTTP.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use testkit::jira::{READER_API_TOKEN, READER_EMAIL, WRITER_API_TOKEN, WRITER_EMAIL, WRITER_NAME};
use testkit::{FakeJira, JiraKind, JiraOptions, ServiceFault};

use super::{await_webhook, build_test_client, send_json, sign_body, start_receiver};

pub(crate) async fn call_jira(
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
    let request = build_test_client()
        .request(method, url)
        .basic_auth(email, Some(token));
    send_json(request, body).await
}

pub(crate) fn build_document(text: &str) -> Value {
    json!({"type": "doc", "version": 1, "content": [{"type": "paragraph", "content": [{"type": "text", "text": text}]}]})
}

#[tokio::test]
async fn transition_webhook_agrees_with_rest_changelog() {
    let jira = FakeJira::start(JiraOptions::default()).await.unwrap();
    let (url, received) = start_receiver().await;
    jira.set_webhook(&url, "secret");
    let key = jira.create_issue("ENG", "summary", "one\n\ntwo", "Bug", &["shop"]);
    let id = jira.move_issue(&key, "Ready for Agent", "Rita").unwrap();

    let (headers, body, payload) = await_webhook(&received, |_, payload| {
        payload["webhookEvent"] == "jira:issue_updated"
    })
    .await;
    assert_eq!(headers["x-hub-signature"], sign_body("secret", &body).as_str());
    assert!(headers.contains_key("x-atlassian-webhook-identifier"));
    assert_eq!(payload["changelog"]["id"], id.as_str());
    assert_eq!(payload["changelog"]["items"][0]["toString"], "Ready for Agent");
    assert_eq!(payload["issue"]["fields"]["description"], "one\n\ntwo");

    let (status, issue) = call_jira(
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
    let (_, first) = call_jira(&jira, false, Method::POST, "/search/jql", Some(body.clone())).await;
    body["nextPageToken"] = first["nextPageToken"].clone();
    let (_, second) = call_jira(&jira, false, Method::POST, "/search/jql", Some(body)).await;
    let keys: Vec<&str> = [&first, &second]
        .iter()
        .flat_map(|page| page["issues"].as_array().unwrap())
        .map(|issue| issue["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["ENG-1", "ENG-2", "ENG-3"]);
    assert_eq!(second["isLast"], true);
    let (status, _) = call_jira(
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
async fn writer_comments_links_and_transitions_ticket() {
    let transitions = vec![("To Do".to_owned(), "In Progress".to_owned())];
    let jira = FakeJira::start(JiraOptions {
        transitions,
        ..JiraOptions::default()
    })
    .await
    .unwrap();
    let key = jira.create_issue("ENG", "summary", "text", "Bug", &[]);
    let comment = Some(json!({"body": build_document("hello")}));
    let (status, created) = call_jira(
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
        call_jira(
            &jira,
            true,
            Method::PUT,
            &path,
            Some(json!({"body": build_document("again")}))
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
        call_jira(
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
        call_jira(
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
    let (_, offered) = call_jira(&jira, true, Method::GET, &path, None).await;
    assert_eq!(offered["transitions"].as_array().unwrap().len(), 1);
    let id = &offered["transitions"][0]["id"];
    assert_eq!(
        call_jira(
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
        call_jira(
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
async fn jira_refuses_strangers_reader_writes_bad_documents() {
    let jira = FakeJira::start(JiraOptions::default()).await.unwrap();
    let key = jira.create_issue("ENG", "summary", "text", "Bug", &[]);
    let path = format!("/issue/{key}/comment");
    let stranger = build_test_client()
        .get(format!("{}/rest/api/3/myself", jira.url()))
        .basic_auth(READER_EMAIL, Some("x"));
    assert_eq!(stranger.send().await.unwrap().status(), 401);
    assert_eq!(
        call_jira(
            &jira,
            false,
            Method::POST,
            &path,
            Some(json!({"body": build_document("x")}))
        )
        .await
        .0,
        403
    );
    assert_eq!(
        call_jira(&jira, true, Method::POST, &path, Some(json!({"body": "plain"})))
            .await
            .0,
        400
    );
    assert_eq!(
        call_jira(
            &jira,
            true,
            Method::POST,
            &path,
            Some(json!({"text": build_document("x")}))
        )
        .await
        .0,
        400
    );
    assert_eq!(
        call_jira(&jira, true, Method::GET, "/issue/ENG-99", None).await.0,
        404
    );
    assert_eq!(jira.comments(&key), []);
    assert_eq!(jira.violations().len(), 2);
}

#[tokio::test]
async fn list_lag_and_lost_answer_follow_effect() {
    let jira = FakeJira::start(JiraOptions::default()).await.unwrap();
    let key = jira.create_issue("ENG", "Totals", "Wrong.", "Bug", &[]);
    let path = format!("/issue/{key}/comment");
    jira.set_list_lag(Duration::from_secs(3600));
    jira.fail_next(
        ServiceFault::new("/comment", 1, 200)
            .on("POST")
            .after_effect()
            .cut(),
    );
    assert_eq!(jira.faults_left(), 1);
    let url = format!("{}/rest/api/3{path}", jira.url());
    let request = build_test_client()
        .post(url)
        .basic_auth(WRITER_EMAIL, Some(WRITER_API_TOKEN));
    let answer = request
        .json(&json!({"body": build_document("hello")}))
        .send()
        .await;
    let is_whole = match answer {
        Ok(answer) => answer.bytes().await.is_ok(),
        Err(_) => false,
    };
    assert!(!is_whole, "the answer breaks off");
    assert_eq!(jira.faults_left(), 0);
    assert_eq!(jira.comments(&key).len(), 1);
    let listed = call_jira(&jira, true, Method::GET, &path, None).await;
    assert_eq!(listed.1["total"], 0);
    jira.set_list_lag(Duration::ZERO);
    let listed = call_jira(&jira, true, Method::GET, &path, None).await;
    assert_eq!(listed.1["total"], 1);
}

async fn call_data_center(jira: &FakeJira, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
    let request = build_test_client().request(method, format!("{}{path}", jira.url()));
    let request = request.bearer_auth(WRITER_API_TOKEN);
    send_json(request, body).await
}

async fn data_center(release: u64) -> FakeJira {
    FakeJira::start(JiraOptions {
        kind: JiraKind::DataCenter(release),
        ..JiraOptions::default()
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn data_center_refuses_cloud_requests() {
    let jira = data_center(10).await;
    let key = jira.create_issue("ENG", "summary", "text", "Bug", &[]);
    assert_eq!(call_jira(&jira, true, Method::GET, "/myself", None).await.0, 404);
    let of = format!("/rest/api/2/issue/{key}");
    let named = build_test_client().get(format!("{}{of}", jira.url()));
    let named = named.basic_auth(WRITER_EMAIL, Some(WRITER_API_TOKEN));
    assert_eq!(named.send().await.unwrap().status(), 401);
    for (path, body, status) in [
        (
            format!("{of}/comment"),
            json!({"body": build_document("text")}),
            400,
        ),
        (
            format!("{of}/comment"),
            json!({"body": "[text](https://a.example)"}),
            400,
        ),
        (format!("{of}/assignee"), json!({"accountId": null}), 400),
        (
            "/rest/api/2/search/jql".to_owned(),
            json!({"jql": "project = ENG"}),
            404,
        ),
        (
            "/rest/api/2/search".to_owned(),
            json!({"jql": "project = ENG", "nextPageToken": "1"}),
            400,
        ),
    ] {
        let method = if path.ends_with("/assignee") {
            Method::PUT
        } else {
            Method::POST
        };
        let answered = call_data_center(&jira, method, &path, Some(body)).await;
        assert_eq!(answered.0, status, "{path}: {answered:?}");
    }
    assert_eq!(
        call_data_center(&jira, Method::GET, &format!("{of}/changelog"), None)
            .await
            .0,
        404
    );
    assert!(jira.comments(&key).is_empty());
    assert!(jira.violations().len() >= 6, "{:#?}", jira.violations());
}

#[tokio::test]
async fn data_center_answers_have_names_and_histories() {
    let jira = data_center(10).await;
    let key = jira.create_issue("ENG", "summary", "h1. text", "Bug", &[]);
    jira.assign(&key, "Mia Meyer").unwrap();
    let of = format!("/rest/api/2/issue/{key}");
    let (_, issue) = call_data_center(&jira, Method::GET, &format!("{of}?expand=changelog"), None).await;
    assert_eq!(issue["fields"]["description"], "h1. text");
    let assignee = &issue["fields"]["assignee"];
    assert_eq!(
        (&assignee["name"], &assignee["accountId"]),
        (&json!("mia-meyer"), &Value::Null)
    );
    let given = &issue["changelog"]["histories"][0]["items"][0];
    assert_eq!(
        (&given["to"], &given["toString"]),
        (&assignee["key"], &json!("Mia Meyer"))
    );
    let user = format!("/rest/api/2/user?key={}", assignee["key"].as_str().unwrap());
    assert_eq!(
        call_data_center(&jira, Method::GET, &user, None).await.1["name"],
        "mia-meyer"
    );

    let body = json!({"body": "*text*", "properties": [{"key": "k", "value": {"id": "m"}}]});
    let path = format!("{of}/comment");
    assert_eq!(
        call_data_center(&jira, Method::POST, &path, Some(body)).await.0,
        201
    );
    let (_, plain) = call_data_center(&jira, Method::GET, &path, None).await;
    let (_, whole) = call_data_center(&jira, Method::GET, &format!("{path}?expand=properties"), None).await;
    let property = "/comments/0/properties/0/value/id";
    assert_eq!(
        (plain.pointer(property), whole.pointer(property)),
        (None, Some(&json!("m")))
    );
    let (_, found) = call_data_center(
        &jira,
        Method::POST,
        "/rest/api/2/search",
        Some(json!({"jql": "project = ENG"})),
    )
    .await;
    assert_eq!((&found["startAt"], &found["total"]), (&json!(0), &json!(1)));
    let (_, all) = call_data_center(
        &jira,
        Method::GET,
        "/rest/api/2/mypermissions?projectKey=ENG",
        None,
    )
    .await;
    assert_eq!(all["permissions"]["ADMINISTER"]["havePermission"], false);
    assert_eq!(jira.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn data_center_signs_webhooks_since_release_ten() {
    for (release, signs) in [(9, false), (10, true)] {
        let jira = data_center(release).await;
        let (url, received) = start_receiver().await;
        jira.set_webhook(&url, "secret");
        let key = jira.create_issue("ENG", "summary", "text", "Bug", &[]);
        jira.comment_as(&key, "Rita", "*text*").unwrap();
        let (headers, body, payload) = await_webhook(&received, |_, payload| {
            payload["issue_event_type_name"] == "issue_commented"
        })
        .await;
        let signature = headers
            .get("x-hub-signature")
            .map(|value| value.to_str().unwrap());
        let expected = sign_body("secret", &body);
        assert_eq!(signature, signs.then_some(expected.as_str()));
        assert_eq!(payload["issue"]["key"], key.as_str());
        assert_eq!(payload["comment"]["body"], "*text*");
        assert_eq!(payload["user"]["name"], "rita");
        let alone = await_webhook(&received, |_, payload| {
            payload["webhookEvent"] == "comment_created"
        })
        .await;
        assert_eq!(alone.2["issue"], Value::Null);
    }
}

/// Returns the keys of the hits of a query.
async fn search_keys(jira: &FakeJira, jql: &str) -> Vec<String> {
    let body = json!({"jql": jql, "fields": ["summary"]});
    let (status, found) = call_jira(jira, false, Method::POST, "/search/jql", Some(body)).await;
    assert_eq!(status, 200, "{found}");
    let issues = found["issues"].as_array().unwrap().iter();
    issues
        .map(|issue| issue["key"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn search_orders_hits_as_asked() {
    let jira = FakeJira::start(JiraOptions::default()).await.unwrap();
    for number in 1..=11 {
        let summary = format!("ticket {}", number % 3);
        jira.create_issue("ENG", &summary, "", "Bug", &[]);
    }
    for (key, priority) in [("ENG-5", "Highest"), ("ENG-2", "Lowest")] {
        let edit = Some(json!({"fields": {"priority": {"name": priority}}}));
        let (status, _) = call_jira(&jira, true, Method::PUT, &format!("/issue/{key}"), edit).await;
        assert_eq!(status, 204);
    }
    let ordered = async |order: &str| search_keys(&jira, &format!("project = ENG {order}")).await;
    let first = |keys: Vec<String>| keys.into_iter().take(3).collect::<Vec<_>>();
    assert_eq!(
        first(ordered("ORDER BY key ASC").await),
        ["ENG-1", "ENG-2", "ENG-3"]
    );
    assert_eq!(
        first(ordered("ORDER BY key DESC").await),
        ["ENG-11", "ENG-10", "ENG-9"]
    );
    assert_eq!(
        ordered("ORDER BY priority DESC, key ASC").await[..2],
        ["ENG-5", "ENG-1"]
    );
    assert_eq!(
        ordered("ORDER BY priority ASC, key ASC").await[..2],
        ["ENG-2", "ENG-1"]
    );
    assert_eq!(
        first(ordered("ORDER BY summary DESC, key DESC").await),
        ["ENG-11", "ENG-8", "ENG-5"]
    );
    let mut newest = ordered("ORDER BY key ASC").await;
    newest.reverse();
    assert_eq!(ordered("").await, newest);
    for order in [
        "ORDER BY updated",
        "ORDER BY updated ASC key ASC",
        "ORDER BY votes ASC",
    ] {
        let body = Some(json!({"jql": format!("project = ENG {order}"), "fields": ["summary"]}));
        let (status, _) = call_jira(&jira, false, Method::POST, "/search/jql", body).await;
        assert_eq!(status, 400, "{order}");
    }
}

#[tokio::test]
async fn done_ticket_has_resolution_until_reopened() {
    let jira = FakeJira::start(JiraOptions::default()).await.unwrap();
    let key = jira.create_issue("ENG", "summary", "", "Bug", &[]);
    let read = async || {
        let path = format!("/issue/{key}?fields=resolution,resolutiondate&expand=changelog");
        call_jira(&jira, false, Method::GET, &path, None).await.1
    };
    assert!(read().await["fields"]["resolution"].is_null());
    jira.move_issue(&key, "Done", "Rita").unwrap();
    let done = read().await;
    assert_eq!(done["fields"]["resolution"]["name"], "Done");
    assert!(done["fields"]["resolutiondate"].is_string());
    let items = &done["changelog"]["histories"][0]["items"];
    assert_eq!(items[1]["field"], "resolution");
    assert_eq!(items[1]["toString"], "Done");
    jira.move_issue(&key, "In Progress", "Rita").unwrap();
    let reopened = read().await;
    assert!(reopened["fields"]["resolution"].is_null() && reopened["fields"]["resolutiondate"].is_null());
    assert_eq!(jira.resolution(&key), None);
}
