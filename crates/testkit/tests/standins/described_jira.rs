//! Shape of the Jira stand-in's answers and webhooks: the properties that Jira's description shows.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::jira::{ADMIN_API_TOKEN, ADMIN_EMAIL, READER_API_TOKEN, READER_EMAIL};
use testkit::{FakeJira, JiraOptions, JiraTransition};

use super::described::{Description, compare_received_webhooks, every_route_is_described};
use super::jira::{build_document, call_jira};
use super::start_receiver;

const DESCRIPTION: &str = include_str!("../required/jira.json");
const ISSUE: &str = "/rest/api/3/issue/{key}";

struct Caller {
    jira: FakeJira,
    rest: Description,
}

impl Caller {
    /// Calls a route. `name` is the method and the route pattern, `path` a concrete path below the REST
    /// interface.
    async fn ask(&mut self, name: &str, path: &str, body: Option<Value>) -> Value {
        let (method, _) = name.split_once(' ').unwrap();
        let method: Method = method.parse().unwrap();
        let (_, answer) = call_jira(&self.jira, true, method, path, body).await;
        self.rest.compare(name, &answer);
        answer
    }

    /// Calls a route of an issue.
    async fn ask_issue(&mut self, method: &str, route: &str, path: &str, body: Option<Value>) -> Value {
        let path = format!("/issue/ENG-1{path}");
        self.ask(&format!("{method} {ISSUE}{route}"), &path, body).await
    }

    async fn use_issues(&mut self) {
        self.ask_issue("GET", "", "?expand=changelog", None).await;
        self.ask(&format!("GET {ISSUE} (404)"), "/issue/ENG-99", None)
            .await;
        self.ask_issue("GET", "/changelog", "/changelog?maxResults=1", None)
            .await;
        let path = "/transitions?expand=transitions.fields";
        self.ask_issue("GET", "/transitions", path, None).await;
        let nowhere = Some(json!({"transition": {"id": "999"}}));
        self.ask_issue("POST", "/transitions (400)", "/transitions", nowhere)
            .await;
        let link = json!({
            "globalId": "g", "object": {"url": "http://x", "title": "x"}, "relationship": "is fixed by",
        });
        self.ask_issue("POST", "/remotelink", "/remotelink", Some(link))
            .await;
        self.ask_issue("GET", "/remotelink", "/remotelink", None).await;
    }

    async fn use_comments(&mut self) {
        let text = |text: &str| Some(json!({"body": build_document(text)}));
        let made = self
            .ask_issue("POST", "/comment", "/comment", text("hello"))
            .await;
        let own = format!("/comment/{}", made["id"].as_str().unwrap());
        self.ask_issue("PUT", "/comment/{id}", &own, text("again")).await;
        self.ask_issue("GET", "/comment/{id}", &own, None).await;
        self.ask_issue("GET", "/comment", "/comment", None).await;
    }

    /// Calls a route as administrator, with the full path.
    async fn ask_as_admin(&mut self, name: &str, path: &str, body: Option<Value>) -> Value {
        let (method, _) = name.split_once(' ').unwrap();
        let url = format!("{}{path}", self.jira.url());
        let asked = reqwest::Client::new().request(method.parse().unwrap(), &url);
        let asked = asked.basic_auth(ADMIN_EMAIL, Some(ADMIN_API_TOKEN));
        let answer = asked.json(&body).send().await.unwrap().json().await.unwrap();
        self.rest.compare(name, &answer);
        answer
    }

    /// Runs last, because deliveries go to the registered address afterwards.
    async fn use_webhooks(&mut self) {
        self.ask_as_admin("GET /rest/api/2/serverInfo", "/rest/api/2/serverInfo", None)
            .await;
        let hook = json!({"name": "n", "url": "http://127.0.0.1:1/", "events": ["comment_created"], "secret": "s",
            "filters": {"issue-related-events-section": ""}, "excludeBody": false});
        let all = "/rest/webhooks/1.0/webhook";
        let made = self
            .ask_as_admin(&format!("POST {all}"), all, Some(hook.clone()))
            .await;
        assert!(made.get("secret").is_none(), "a secret is not returned");
        let own = made["self"]
            .as_str()
            .unwrap()
            .strip_prefix(&self.jira.url())
            .unwrap();
        self.ask_as_admin(&format!("PUT {all}/{{id}}"), own, Some(hook))
            .await;
        let list = self.ask_as_admin(&format!("GET {all}"), all, None).await;
        assert_eq!(list.as_array().unwrap().len(), 1);
        let url = format!("{}{all}", self.jira.url());
        let other = reqwest::Client::new()
            .get(url)
            .basic_auth(READER_EMAIL, Some(READER_API_TOKEN));
        assert_eq!(other.send().await.unwrap().status(), 403, "only an administrator");
    }

    async fn use_the_rest(&mut self) {
        self.ask("GET /rest/api/3/myself", "/myself", None).await;
        let search =
            json!({"jql": "project = \"ENG\" ORDER BY updated ASC", "fields": ["*all"], "maxResults": 1});
        self.ask("POST /rest/api/3/search/jql", "/search/jql", Some(search))
            .await;
        self.ask("GET /rest/api/3/issueLinkType", "/issueLinkType", None)
            .await;
        let groups = "/user/groups?accountId=557058:rita";
        self.ask("GET /rest/api/3/user/groups", groups, None).await;
        self.ask("GET /rest/api/3/field", "/field", None).await;
        self.ask(
            "GET /rest/api/3/groups/picker",
            "/groups/picker?query=users",
            None,
        )
        .await;
        let members = "/group/member?groupname=journeyman-users";
        self.ask("GET /rest/api/3/group/member", members, None).await;
        let permissions = "/mypermissions?projectKey=ENG&permissions=EDIT_ISSUES,ADD_COMMENTS";
        self.ask("GET /rest/api/3/mypermissions", permissions, None).await;
        let projects = "/project/search?maxResults=50";
        self.ask("GET /rest/api/3/project/search", projects, None).await;
        let statuses = "/project/ENG/statuses";
        self.ask("GET /rest/api/3/project/{key}/statuses", statuses, None)
            .await;
        self.ask("GET /rest/api/3/project/{key}/role", "/project/ENG/role", None)
            .await;
        self.ask(
            "GET /rest/api/3/project/{key}/role/{id}",
            "/project/ENG/role/10001",
            None,
        )
        .await;
    }
}

/// Starts a Jira with two tickets, one of which was transitioned, edited and assigned.
async fn start_busy_jira(webhook: &str) -> FakeJira {
    let done = JiraTransition {
        name: "Finish".to_owned(),
        to: "Done".to_owned(),
        asks_for: vec!["Resolution".to_owned()],
    };
    let jira = FakeJira::start(JiraOptions {
        named: vec![done],
        ..JiraOptions::default()
    });
    let jira = jira.await.unwrap();
    jira.set_webhook(webhook, "secret");
    let key = jira.create_issue("ENG", "summary", "one\n\ntwo", "Bug", &["shop"]);
    jira.create_issue("ENG", "another", "", "Bug", &[]);
    jira.move_issue(&key, "In Progress", "Rita").unwrap();
    jira.edit_summary(&key, "better", "Rita").unwrap();
    jira.edit_description(&key, "three", "Rita").unwrap();
    jira.set_labels(&key, &["mall"]).unwrap();
    jira.assign(&key, "Rita").unwrap();
    jira.set_groups("Rita", &["people"]);
    jira.set_developers(&["Rita"], &["people"]);
    jira
}

#[tokio::test]
async fn jira_answers_match_published_description() {
    let (url, received) = start_receiver().await;
    let mut caller = Caller {
        jira: start_busy_jira(&url).await,
        rest: Description::read(DESCRIPTION, "answers"),
    };
    caller.use_comments().await;
    caller.use_issues().await;
    caller.use_the_rest().await;
    caller.use_webhooks().await;
    caller.rest.finish();

    let webhooks = Description::read(DESCRIPTION, "webhooks");
    let name = |_: &_, payload: &Value| payload["webhookEvent"].as_str().unwrap().to_owned();
    compare_received_webhooks(webhooks, &received, name).await;
}

#[test]
fn jira_routes_are_all_described() {
    let rest = Description::read(DESCRIPTION, "answers");
    let without_an_answer = [
        "PUT /assignee",
        "POST /transitions",
        "PUT /issue/{key}",
        "POST /issueLink",
        "GET /attachment/content/{id}",
    ];
    every_route_is_described(include_str!("../../src/jira/rest.rs"), &rest, &without_an_answer);
    for route in super::described::list_routes(include_str!("../../src/jira/hooks.rs")) {
        assert!(rest.names().contains(&route), "tests/required has no {route}");
    }
}
