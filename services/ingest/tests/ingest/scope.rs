//! Scope of a token that is limited to repositories and projects: no route returns anything else.

use std::collections::{BTreeMap, BTreeSet};

use domain::{Fact, Job, OutboundId, RunId, Timestamp, WaitCondition};
use ingest::ApiToken;
use queue::{DeadLetter, KeyValueBucket};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::poll_until;

use crate::harness::{self, Harness, api_token, build_entry};

/// Poll interval of an hour: one poll at the start.
const NEVER: u64 = 3_600;
const FOREIGN: &str = "foreign-token";
const INSIDE: &str = "inside-token";
/// Token for the repository, without the project of its tickets.
const HALF: &str = "half-token";
const RUN: &str = "jira:ENG-1@5";

/// Answer to a foreign token from a route that does not return 404.
enum Gets {
    /// Empty list.
    Nothing(Value),
    /// Equal answer for any limited token, because the data concerns the whole installation.
    Never(Value),
    /// Data for every caller.
    Common,
    /// Forbidden, because the action concerns the whole installation.
    Forbidden,
}

/// Routes that are not about one object. Every other route must answer 404.
fn list_exceptions() -> BTreeMap<(&'static str, &'static str), Gets> {
    [
        (("GET", "/v1/runs"), Gets::Nothing(json!([]))),
        (("GET", "/v1/ticket-summaries"), Gets::Nothing(json!([]))),
        // The name and the role are those of the caller. The run of this test began before every period of
        // results; a unit test compares the results of scopes.
        (("GET", "/v1/me"), Gets::Common),
        (("GET", "/v1/activity"), Gets::Common),
        (("GET", "/v1/dead"), Gets::Nothing(json!([]))),
        (("GET", "/v1/spend"), Gets::Nothing(json!({"lines": []}))),
        (
            ("GET", "/v1/tickets"),
            Gets::Nothing(json!({"tickets": [], "problems": []})),
        ),
        (
            ("GET", "/v1/rules"),
            Gets::Nothing(json!({"repositories": [], "problems": []})),
        ),
        (("GET", "/v1/credentials"), Gets::Never(json!([]))),
        // A pool has no owner: the list contains it when the rules of a repository in the scope name it.
        (("GET", "/v1/pools"), Gets::Nothing(json!({"pools": []}))),
        // A separate test checks the stream.
        (("GET", "/v1/events"), Gets::Common),
        (("GET", "/v1/stop-all"), Gets::Common),
        (("POST", "/v1/stop-all"), Gets::Forbidden),
        (("DELETE", "/v1/stop-all"), Gets::Forbidden),
    ]
    .into()
}

fn build_limited_token(token: &str, repository: &str, project: &str) -> ApiToken {
    let list = |text: &str| Some(bootstrap::settings::TextList(vec![text.to_owned()]));
    ApiToken {
        repositories: list(repository),
        projects: list(project),
        ..api_token(token, api::types::Role::Admin)
    }
}

async fn start_harness() -> Harness {
    Harness::start_with(NEVER, |config| {
        config.jira_reader.expires = "2027-01-31".to_owned();
        let tokens = &mut config.ingest.api_tokens;
        tokens.insert(
            "foreign".to_owned(),
            build_limited_token(FOREIGN, "acme/other", "OTHER"),
        );
        tokens.insert(
            "inside".to_owned(),
            build_limited_token(INSIDE, "acme/shop", "ENG"),
        );
        tokens.insert("half".to_owned(), build_limited_token(HALF, "acme/shop", "OTHER"));
    })
    .await
}

/// Run of ENG-1 that waits for a decision, with its row, a trigger, a dead letter and a pull request call.
async fn seed_run(h: &Harness) -> u64 {
    let key = h
        .jira
        .create_issue("ENG", "Fix the cart", "It rounds", "Bug", &[]);
    assert_eq!(key, "ENG-1");
    let run: RunId = RUN.parse().expect("run");
    let commit = || "a".repeat(40).parse().expect("commit");
    let object = h
        .queue
        .objects()
        .put("+total = 2\n".into())
        .await
        .expect("object");
    let facts = [
        Fact::RunStarted {
            trigger: Box::new(harness::merge_trigger()),
        },
        Fact::ModelReplied {
            id: run.call(1),
            reply: domain::ModelReply {
                blocks: Vec::new(),
                stop: domain::ReplyStop::EndTurn,
                usage: domain::TokenUsage::default(),
                model: "large".to_owned(),
                provider: "main".to_owned(),
                cost_micros: Some(1),
            },
            prompt: None,
        },
        Fact::ReportSettled {
            id: OutboundId::from(run.call(2)),
            outcome: domain::OutboundOutcome::Done(domain::OutboundReceipt::DecisionAsked {
                head: commit(),
                diff: object,
            }),
        },
        Fact::Parked {
            waits_for: WaitCondition::Decision,
        },
    ];
    let mut last = 0;
    for (position, fact) in (0..).zip(facts) {
        let entry = build_entry(position, fact);
        let appended = h.queue.journal().append(&run, last, &entry).await;
        last = appended.expect("append");
    }
    let mut row = domain::TicketRow::default();
    let pending = domain::PendingRun::new(run.clone(), Job::Implement, domain::Lane::Talk);
    row.open(pending, Timestamp::default());
    let rows = h.queue.table::<domain::TicketRow>(KeyValueBucket::Tickets);
    rows.put("jira:ENG-1", &row, None).await.expect("row");
    let trigger = harness::merge_trigger();
    h.queue.triggers().append(&trigger).await.expect("trigger");
    let letter = DeadLetter {
        what: domain::RecordKind::Trigger,
        id: "merged:acme/shop#7".to_owned(),
        ticket: Some(run.ticket().clone()),
        reason: "not readable".to_owned(),
        at: Timestamp::default(),
    };
    let letters = h.queue.dead_letters();
    letters.publish(&letter, "{}".into()).await.expect("letter");
    let asked = h
        .post(
            "/v1/pull-requests",
            INSIDE,
            &build_call_body("acme/shop", "ENG-1"),
            Some("call-1"),
        )
        .await;
    assert_eq!(asked.0, StatusCode::ACCEPTED, "{}", asked.1);
    letters.list(10).await.expect("letters")[0].0
}

fn build_call_body(repository: &str, key: &str) -> Value {
    json!({"repository": repository, "branch": "fix/cart", "base_branch": "main", "title": "Fix the cart",
        "description": "It rounded too early.", "jira_key": key})
}

fn build_request_body(path: &str) -> Value {
    match path {
        "/v1/jobs" => json!({"ticket": "ENG-1", "job": "implement"}),
        "/v1/pull-requests" => build_call_body("acme/shop", "ENG-1"),
        "/v1/tickets/{key}/comments" => json!({"text": "Half up."}),
        _ => json!({"verdict": "approve", "head": "a".repeat(40)}),
    }
}

/// Sends a request. Returns the status and the body; streams have no body.
async fn request_route(
    h: &Harness,
    (method, path): (&str, &str),
    letter: u64,
    token: &str,
) -> (StatusCode, Value) {
    let id = if path.contains("pull-requests") {
        "call-1"
    } else {
        "jira:ENG-1%405"
    };
    let place = path
        .replace("{id}", id)
        .replace("{key}", "ENG-1")
        .replace("{sequence}", &letter.to_string());
    let place = match (path, token) {
        ("/v1/spend", _) => format!("{place}?since=1970-01-01"),
        // The authorized token makes dry runs, so that the next token finds the same state.
        (_, INSIDE) if path.contains('{') && method != "GET" => format!("{place}?dry_run=true"),
        _ => place,
    };
    let method: Method = method.parse().expect("method");
    let request = h.http.request(method, h.url(&place)).bearer_auth(token);
    let answer = request
        .json(&build_request_body(path))
        .send()
        .await
        .expect("answer");
    let status = answer.status();
    let kind = answer.headers().get("content-type").cloned();
    if kind.is_some_and(|kind| kind == "text/event-stream") {
        return (status, Value::Null);
    }
    (status, answer.json().await.unwrap_or_default())
}

/// All routes of the `OpenAPI` document.
async fn read_routes(h: &Harness) -> Vec<(String, String)> {
    let (_, document) = h.get("/v1/openapi.json", FOREIGN).await;
    let paths = document["paths"].as_object().expect("paths").clone();
    let routes = paths.into_iter().flat_map(|(path, item)| {
        let methods: BTreeSet<_> = item.as_object().expect("methods").keys().cloned().collect();
        methods
            .into_iter()
            .map(move |method| (method.to_uppercase(), path.clone()))
    });
    routes.collect()
}

fn has_fields(answer: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Object(fields) => fields.iter().all(|(name, value)| answer[name] == *value),
        other => answer == other,
    }
}

#[tokio::test]
async fn limited_token_stays_in_scope_everywhere() {
    let h = start_harness().await;
    let letter = seed_run(&h).await;
    let before = h.triggers("ENG-1").await;
    let exceptions = list_exceptions();
    let known = async || {
        let (_, ends) = h.get("/v1/credentials", harness::VIEWER).await;
        (ends[0]["kind"] == "jira_reader" && ends[0]["ends"] == "2027-01-31T00:00:00Z").then_some(())
    };
    let known = poll_until("the end of a credential", harness::DEADLINE, known);
    known.await.expect("visible to a token without a limit");
    let routes = read_routes(&h).await;
    assert!(routes.len() > 20, "{routes:?}");
    for (method, path) in &routes {
        let route = (method.as_str(), path.as_str());
        let (status, answer) = request_route(&h, route, letter, FOREIGN).await;
        match exceptions.get(&route) {
            None => assert_eq!(status, StatusCode::NOT_FOUND, "{route:?}: {answer}"),
            Some(Gets::Forbidden) => assert_eq!(status, StatusCode::FORBIDDEN, "{route:?}: {answer}"),
            Some(Gets::Common) => assert_eq!(status, StatusCode::OK, "{route:?}: {answer}"),
            Some(Gets::Nothing(nothing) | Gets::Never(nothing)) => {
                assert_eq!(status, StatusCode::OK, "{route:?}: {answer}");
                assert!(has_fields(&answer, nothing), "{route:?}: {answer}");
            }
        }
        assert!(!answer.to_string().contains("cart"), "{route:?}: {answer}");
    }
    assert_eq!(h.triggers("ENG-1").await, before, "nothing was asked for");
    for (method, path) in &routes {
        let route = (method.as_str(), path.as_str());
        let (status, answer) = request_route(&h, route, letter, INSIDE).await;
        match exceptions.get(&route) {
            Some(Gets::Forbidden) => assert_eq!(status, StatusCode::FORBIDDEN, "{route:?}"),
            None | Some(Gets::Common) => assert!(
                !matches!(status, StatusCode::NOT_FOUND | StatusCode::FORBIDDEN),
                "{route:?}: {status} {answer}"
            ),
            Some(Gets::Nothing(nothing)) => assert!(!has_fields(&answer, nothing), "{route:?}: {answer}"),
            Some(Gets::Never(nothing)) => assert!(has_fields(&answer, nothing), "{route:?}: {answer}"),
        }
    }
    h.stop().await;
}

#[tokio::test]
async fn limited_token_lists_letters_behind_foreign_ones() {
    let h = start_harness().await;
    let letters = h.queue.dead_letters();
    let publish = |ticket: &str, id: usize| {
        let letter = DeadLetter {
            what: domain::RecordKind::Ticket,
            id: id.to_string(),
            ticket: Some(ticket.parse().expect("ticket")),
            reason: "not readable".to_owned(),
            at: Timestamp::default(),
        };
        let letters = &letters;
        async move { letters.publish(&letter, "{}".into()).await.expect("letter") }
    };
    publish("jira:ENG-1", 0).await;
    publish("jira:ENG-2", 1).await;
    // More than one list has.
    futures::future::join_all((2..302).map(|id| publish("jira:OTHER-1", id))).await;
    let (_, own) = h.get("/v1/dead", INSIDE).await;
    let ids: Vec<_> = own
        .as_array()
        .expect("letters")
        .iter()
        .map(|letter| &letter["id"])
        .collect();
    assert_eq!(ids, ["0", "1"]);
    let (_, foreign) = h.get("/v1/dead", FOREIGN).await;
    assert_eq!(foreign.as_array().expect("letters").len(), 200);
    h.stop().await;
}

#[tokio::test]
async fn runs_of_moved_ticket_follow_its_project() {
    let h = start_harness().await;
    h.first_poll().await;
    h.listen_to_jira();
    let key = h
        .jira
        .create_issue("ENG", "Fix the cart", "It rounds", "Bug", &[]);
    h.jira.move_issue(&key, "Ready for Agent", "Ada").expect("move");
    let ticket = h.trigger(&key).await.ticket;
    let mut row = domain::TicketRow::default();
    let pending = domain::PendingRun::new(RunId::new(ticket.clone(), 1), Job::Implement, domain::Lane::Talk);
    row.open(pending, Timestamp::default());
    let rows = h.queue.table::<domain::TicketRow>(KeyValueBucket::Tickets);
    rows.put(&ticket, &row, None).await.expect("row");
    let count = async |token: &str, named: &str| {
        let (_, runs) = h.get(&format!("/v1/runs?ticket={named}"), token).await;
        runs.as_array().map(Vec::len)
    };
    assert_eq!(count(INSIDE, &key).await, Some(1));
    let moved = h.jira.move_to_project(&key, "OTHER", "Ada").expect("moved");
    let known = async || (count(FOREIGN, &moved).await == Some(1)).then_some(());
    poll_until("the run under its new key", harness::DEADLINE, known)
        .await
        .expect("the project has it");
    for (token, named) in [(INSIDE, &key), (INSIDE, &moved), (FOREIGN, &key)] {
        assert_eq!(count(token, named).await, Some(0), "{token} {named}");
    }
    h.stop().await;
}

#[tokio::test]
async fn limited_token_starts_no_foreign_work() {
    let h = start_harness().await;
    let elsewhere = json!({"ticket": "OTHER-1", "job": "implement", "repository": "acme/shop"});
    let (status, answer) = h.post("/v1/jobs", FOREIGN, &elsewhere, None).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
    assert_eq!(answer["detail"], "no rules name the repository acme/shop");
    // Neither the repository nor the issue may be outside the scope.
    for body in [
        build_call_body("acme/shop", "OTHER-1"),
        build_call_body("acme/other", "ENG-1"),
    ] {
        let (status, answer) = h.post("/v1/pull-requests", FOREIGN, &body, None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{answer}");
    }
    let kept = harness::build_branch_record("jira:ENG-1", "fix/ENG-1", Some(7));
    h.keep(&kept).await;
    // A job on our pull request runs on its ticket, which must be in the scope too.
    let pull = json!({"ticket": "github:acme/shop#7", "job": "fix_ci"});
    let (status, answer) = h.post("/v1/jobs", HALF, &pull, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{answer}");
    h.stop().await;
}

#[tokio::test]
async fn limited_token_streams_its_runs_only() {
    use futures::StreamExt;
    let h = start_harness().await;
    let request = h.http.get(h.url("/v1/events")).bearer_auth(FOREIGN);
    let mut stream = request.send().await.expect("answer").bytes_stream();
    for run in [RUN, "jira:OTHER-1@1"] {
        let run: RunId = run.parse().expect("run");
        let started = build_entry(
            0,
            Fact::RunStarted {
                trigger: Box::new(harness::merge_trigger()),
            },
        );
        let appended = h.queue.journal().append(&run, 0, &started).await;
        appended.expect("append");
    }
    let first = stream.next().await.expect("event").expect("bytes");
    let text = String::from_utf8_lossy(&first).into_owned();
    assert!(
        text.contains(r#""run":"jira:OTHER-1@1""#) && !text.contains(RUN),
        "{text}"
    );
    h.stop().await;
}

#[tokio::test]
async fn named_person_acts_with_capped_role() {
    const CONSOLE: &str = "token-of-the-console";
    let h = Harness::start_with(NEVER, |config| {
        let token = ApiToken {
            speaks_for_people: true,
            ..api_token(CONSOLE, api::types::Role::Admin)
        };
        config.ingest.api_tokens.insert("console".to_owned(), token);
    })
    .await;
    let stop = async |token: &str, person: Option<(&str, &str)>| {
        let mut request = h.http.post(h.url("/v1/stop-all")).bearer_auth(token);
        if let Some((name, role)) = person {
            request = request
                .header("journeyman-person", name)
                .header("journeyman-role", role);
        }
        let answer = request.send().await.expect("answer");
        (answer.status(), answer.json::<Value>().await.unwrap_or_default())
    };
    let ada = Some(("ada%40acme.example", "admin"));
    for (token, person) in [
        (CONSOLE, None),
        (CONSOLE, Some(("bob", "operator"))),
        (harness::ADMIN, ada),
    ] {
        assert_eq!(stop(token, person).await.0, StatusCode::FORBIDDEN, "{person:?}");
    }
    let (status, on) = stop(CONSOLE, ada).await;
    assert_eq!(
        (status, &on["by"]),
        (StatusCode::OK, &json!("ada@acme.example via console"))
    );
    h.stop().await;
}
