//! Shape of the GitHub stand-in's answers and webhooks: the properties that GitHub's descriptions require.

use reqwest::Method;
use serde_json::{Value, json};
use testkit::FakeGitHub;
use testkit::github::{
    BranchRuleset, HeldRunState, READER_APP_ID, READER_TOKEN, RulesetCondition, RunConclusion, WRITER_APP_ID,
    WRITER_TOKEN,
};

use super::described::{Description, compare_received_webhooks, every_route_is_described};
use super::github::{app_token, call_github, start_github};
use super::start_receiver;

const REST: &str = include_str!("../required/github_rest.json");
const WEBHOOKS: &str = include_str!("../required/github_webhooks.json");
const REPO: &str = "/repos/{owner}/{repo}";
const SHOP: &str = "/repos/acme/shop";

/// Caller that compares each answer.
struct Caller {
    github: FakeGitHub,
    jwt: String,
    rest: Description,
}

impl Caller {
    /// Calls a route. `name` is the method and the route pattern, `path` a concrete path.
    async fn ask(&mut self, name: &str, path: &str, body: Option<Value>) -> Value {
        let (method, route) = name.split_once(' ').unwrap();
        let is_apps = route.starts_with("/app") || route.ends_with("/installation");
        let token = match method {
            _ if is_apps => &self.jwt,
            "GET" => READER_TOKEN,
            _ => WRITER_TOKEN,
        };
        let method: Method = method.parse().unwrap();
        let (_, answer) = call_github(&self.github, token, method, path, body).await;
        self.rest.compare(name, &answer);
        answer
    }

    /// Calls a route of the repository.
    async fn ask_repo(&mut self, method: &str, route: &str, path: &str, body: Option<Value>) -> Value {
        self.ask(&format!("{method} {REPO}{route}"), &format!("{SHOP}{path}"), body)
            .await
    }

    async fn set_draft(&self, mutation: &str, pull: &Value) {
        let query =
            format!("mutation($id:ID!){{{mutation}(input:{{pullRequestId:$id}}){{pullRequest{{id}}}}}}");
        let body = Some(json!({"query": query, "variables": {"id": pull["node_id"]}}));
        let (_, answer) = call_github(&self.github, WRITER_TOKEN, Method::POST, "/graphql", body).await;
        assert!(answer["errors"].is_null(), "{answer}");
    }

    async fn use_pull_requests(&mut self) {
        let new = || Some(json!({"title": "A change", "head": "fix", "base": "main"}));
        let pull = self.ask_repo("POST", "/pulls", "/pulls", new()).await;
        self.ask_repo("POST", "/pulls (422)", "/pulls", new()).await;
        self.set_draft("convertPullRequestToDraft", &pull).await;
        self.set_draft("markPullRequestReadyForReview", &pull).await;
        let one = "/pulls/{number}";
        let changes = [
            json!({"title": "A better change"}),
            json!({"state": "closed"}),
            json!({"state": "open"}),
        ];
        for change in changes {
            self.ask_repo("PATCH", one, "/pulls/1", Some(change)).await;
        }
        let asked = Some(json!({"reviewers": ["rita"]}));
        let route = "/pulls/{number}/requested_reviewers";
        self.ask_repo("POST", route, "/pulls/1/requested_reviewers", asked)
            .await;
        let labels = Some(json!({"labels": ["journeyman"]}));
        let route = "/issues/{number}/labels";
        self.ask_repo("POST", route, "/issues/1/labels", labels).await;
        self.ask_repo("GET", route, "/issues/1/labels", None).await;
        self.github
            .review_lines(
                "acme/shop",
                1,
                "rita",
                ("approved", "good"),
                &[("src/a.txt", 1, "nice")],
            )
            .unwrap();
        self.ask_repo("GET", "/pulls/{number}/reviews", "/pulls/1/reviews", None)
            .await;
        let comments = self
            .ask_repo("GET", "/pulls/{number}/comments", "/pulls/1/comments", None)
            .await;
        let route = "/pulls/{number}/comments/{comment}/replies";
        let own = format!("/pulls/1/comments/{}/replies", comments[0]["id"]);
        self.ask_repo("POST", route, &own, Some(json!({"body": "Because."})))
            .await;
        self.github
            .ask_for_review("acme/shop", 1, "agent", "rita")
            .unwrap();
        self.github
            .take_back_request("acme/shop", 1, "agent", "rita")
            .unwrap();
        self.ask_repo("GET", "/issues/{number}/events", "/issues/1/events", None)
            .await;
        self.ask_repo("GET", "/pulls/{number}/files", "/pulls/1/files", None)
            .await;
        self.ask_repo("GET", "/pulls/{number}/commits", "/pulls/1/commits", None)
            .await;
        let (base, head) = (&pull["base"]["sha"], &pull["head"]["sha"]);
        let range = format!("/compare/{}...{}", base.as_str().unwrap(), head.as_str().unwrap());
        self.ask_repo("GET", "/compare/{range}", &range, None).await;
        let review = json!({"event": "COMMENT", "body": "Fine", "comments": [
            {"path": "src/b.txt", "line": 1, "side": "RIGHT", "body": "Why?"}]});
        let route = "/pulls/{number}/reviews";
        self.ask_repo("POST", route, "/pulls/1/reviews", Some(review))
            .await;
        let line = self.github.threads("acme/shop", 1).unwrap()[0];
        let eyes = Some(json!({"content": "eyes"}));
        let route = "/pulls/comments/{id}/reactions";
        self.ask_repo("POST", route, &format!("/pulls/comments/{line}/reactions"), eyes)
            .await;
        self.ask_repo("GET", "/pulls", "/pulls", None).await;
    }

    async fn use_comments(&mut self) {
        let text = |text: &str| Some(json!({"body": text}));
        let route = "/issues/{number}/comments";
        let made = self
            .ask_repo("POST", route, "/issues/1/comments", text("hello"))
            .await;
        let own = format!("/issues/comments/{}", made["id"]);
        self.ask_repo("PATCH", "/issues/comments/{id}", &own, text("again"))
            .await;
        let rocket = Some(json!({"content": "rocket"}));
        let route_of = "/issues/comments/{id}/reactions";
        self.ask_repo("POST", route_of, &format!("{own}/reactions"), rocket)
            .await;
        self.github.comment_as("acme/shop", 1, "rita", "fine").unwrap();
        self.ask_repo("GET", route, "/issues/1/comments", None).await;
        self.ask_repo("GET", "/issues/comments", "/issues/comments", None)
            .await;
    }

    async fn use_issues(&mut self) {
        let number = self
            .github
            .open_issue_as("acme/shop", "rita", "A title", "A body")
            .unwrap();
        let path = |rest: &str| format!("/issues/{number}{rest}");
        self.github
            .assign_issue("acme/shop", number, "agent", "rita")
            .unwrap();
        self.github
            .label_issue("acme/shop", number, "ready", "rita")
            .unwrap();
        let edited = self
            .github
            .edit_issue_as("acme/shop", number, "rita", Some("Another"), Some("Longer"));
        edited.unwrap();
        self.ask_repo("GET", "/issues", "/issues?state=all", None).await;
        let part = Some(json!({"title": "A part", "body": "- [ ] one", "labels": ["part"]}));
        let part = self.ask_repo("POST", "/issues", "/issues", part).await;
        let route = "/issues/{number}/sub_issues";
        let added = Some(json!({"sub_issue_id": part["id"]}));
        self.ask_repo("POST", route, &path("/sub_issues"), added).await;
        self.ask_repo("GET", route, &path("/sub_issues"), None).await;
        let eyes = Some(json!({"content": "eyes"}));
        let route = "/issues/{number}/reactions";
        self.ask_repo("POST", route, &path("/reactions"), eyes).await;
        let one = "/issues/{number}";
        self.ask_repo("GET", one, &path(""), None).await;
        let changes = [
            json!({"type": "Bug"}),
            json!({"state": "closed"}),
            json!({"state": "open"}),
        ];
        for change in changes {
            let change = Some(change);
            self.ask_repo("PATCH", one, &path(""), change).await;
        }
        let who = Some(json!({"assignees": ["agent"]}));
        let route = "/issues/{number}/assignees";
        self.ask_repo("DELETE", route, &path("/assignees"), who.clone())
            .await;
        self.ask_repo("POST", route, &path("/assignees"), who).await;
        self.github
            .label_issue("acme/shop", number, "second", "rita")
            .unwrap();
        let route = "/issues/{number}/labels/{label}";
        self.ask_repo("DELETE", route, &path("/labels/ready"), None).await;
    }

    fn use_departures(&self) {
        let (github, shop) = (&self.github, "acme/shop");
        github
            .create_repository("acme/other", &[("a.txt", "a\n")])
            .unwrap();
        let open = || github.open_issue_as(shop, "rita", "A title", "").unwrap();
        let (moved, deleted) = (open(), open());
        github.transfer_issue(shop, moved, "acme/other", "rita").unwrap();
        github.delete_issue(shop, deleted, "rita").unwrap();
    }

    fn use_discussions(&self) {
        let (github, shop) = (&self.github, "acme/shop");
        let number = github
            .start_discussion(shop, "rita", "Q&A", ("How?", "Tell us."))
            .unwrap();
        let first = github.discuss_as(shop, number, "rita", "Anybody?", None).unwrap();
        github
            .discuss_as(shop, number, "rob", "So.", Some(first))
            .unwrap();
        let nested = github.discuss_as(shop, number, "rob", "So.", Some(first + 1));
        assert!(nested.is_err(), "replies have no replies");
    }

    async fn use_commits(&mut self) {
        let (github, files) = (&self.github, [("src/a.txt", "b\n"), ("src/b.txt", "b\n")]);
        let head = github.commit("acme/shop", "fix", "more", &files).unwrap();
        let checks = [("test", RunConclusion::Success, "4 passed")];
        github.run_checks("acme/shop", &head, &checks).unwrap();
        github.require_checks("acme/shop", "main", &["test"]).unwrap();
        let ruleset = BranchRuleset {
            branches: vec!["main".to_owned()],
            required_checks: vec!["test".to_owned()],
            ..BranchRuleset::default()
        };
        github.set_rulesets("acme/shop", &[ruleset]).unwrap();
        for route in ["check-runs", "status"] {
            let path = format!("/commits/{head}/{route}");
            self.ask_repo("GET", &format!("/commits/{{sha}}/{route}"), &path, None)
                .await;
        }
        self.use_runs(&head).await;
        self.use_check_runs(&head).await;
        self.ask_repo("GET", "/git/ref/{*name}", "/git/ref/heads/fix", None)
            .await;
        self.ask_repo("GET", "/branches/{branch}", "/branches/main", None)
            .await;
        self.use_git_data(&head).await;
        let route = "/rules/branches/{branch}";
        self.ask_repo("GET", route, "/rules/branches/main", None).await;
        self.ask_repo("GET", "/rulesets/{id}", "/rulesets/1", None).await;
        let rita = "/collaborators/rita/permission";
        self.ask_repo("GET", "/collaborators/{login}/permission", rita, None)
            .await;
        self.ask_repo("GET", "/pulls/{number}", "/pulls/1", None).await;
    }

    /// Adds the pull request to the merge queue, which tests it again on a base that moved on.
    fn use_merge_queue(&self) {
        let (github, shop) = (&self.github, "acme/shop");
        let ruleset = BranchRuleset {
            branches: vec!["main".to_owned()],
            conditions: vec![RulesetCondition::MergeQueue],
            ..BranchRuleset::default()
        };
        github.set_rulesets(shop, &[ruleset]).unwrap();
        github.enqueue(shop, 1, "rita").unwrap();
        let files = [("src/moved.txt", "on\n")];
        github.commit(shop, "main", "Move on", &files).unwrap();
        github.dequeue(shop, 1, "MANUAL", "rita").unwrap();
    }

    async fn use_git_data(&mut self, head: &str) {
        let blob = Some(json!({"content": "AAE=", "encoding": "base64"}));
        let blob = self.ask_repo("POST", "/git/blobs", "/git/blobs", blob).await;
        let route = "/git/commits/{sha}";
        let path = format!("/git/commits/{head}");
        let commit = self.ask_repo("GET", route, &path, None).await;
        let entry = json!({"path": "a.bin", "mode": "100644", "type": "blob", "sha": blob["sha"]});
        let tree = Some(json!({"base_tree": commit["tree"]["sha"], "tree": [entry]}));
        let tree = self.ask_repo("POST", "/git/trees", "/git/trees", tree).await;
        let new = Some(json!({"message": "More", "tree": tree["sha"], "parents": [head]}));
        let new = self.ask_repo("POST", "/git/commits", "/git/commits", new).await;
        let made = Some(json!({"ref": "refs/heads/made", "sha": head}));
        self.ask_repo("POST", "/git/refs", "/git/refs", made).await;
        let moved = Some(json!({"sha": new["sha"], "force": false}));
        self.ask_repo("PATCH", "/git/refs/{*name}", "/git/refs/heads/made", moved)
            .await;
        let route = "/git/matching-refs/{*name}";
        self.ask_repo("GET", route, "/git/matching-refs/heads/ma", None)
            .await;
    }

    async fn use_runs(&mut self, head: &str) {
        let red = [("build", RunConclusion::Failure, "No space left on device")];
        self.github.run_checks("acme/shop", head, &red).unwrap();
        let path = format!("/commits/{head}/check-runs");
        let checks = self
            .ask_repo("GET", "/commits/{sha}/check-runs", &path, None)
            .await;
        let mut checks = checks["check_runs"].as_array().unwrap().iter();
        let red = checks.find(|check| check["name"] == "build").unwrap();
        let own = format!("/actions/runs/{}", red["check_suite"]["id"]);
        let route = "/actions/runs/{number}";
        self.ask_repo("GET", route, &own, None).await;
        self.github
            .hold_run("acme/shop", head, "Deploy", HeldRunState::Waiting)
            .unwrap();
        let of_head = format!("/actions/runs?head_sha={head}");
        self.ask_repo("GET", "/actions/runs", &of_head, None).await;
        let (route, again) = (
            format!("{route}/rerun-failed-jobs"),
            format!("{own}/rerun-failed-jobs"),
        );
        self.ask_repo("POST", &route, &again, Some(json!({}))).await;
        self.github
            .end_reruns("acme/shop", RunConclusion::Success, "")
            .unwrap();
    }

    /// GitHub lets only Apps create check runs, so this part uses an App's token.
    async fn use_check_runs(&mut self, head: &str) {
        let (app, wanted) = (
            app_token(WRITER_APP_ID, 500),
            json!({"permissions": {"checks": "write"}}),
        );
        let path = format!("{SHOP}/installation");
        let (_, installed) = call_github(&self.github, &app, Method::GET, &path, None).await;
        let path = format!("/app/installations/{}/access_tokens", installed["id"]);
        let (_, minted) = call_github(&self.github, &app, Method::POST, &path, Some(wanted)).await;
        let token = minted["token"].as_str().unwrap();
        let mut body = json!({"name": "Journeyman", "head_sha": head, "external_id": "journeyman:1",
            "status": "completed", "conclusion": "neutral", "output": {"title": "A title", "summary": "Rounds"}});
        let path = format!("{SHOP}/check-runs");
        let (status, _) = call_github(
            &self.github,
            WRITER_TOKEN,
            Method::POST,
            &path,
            Some(body.clone()),
        )
        .await;
        assert_eq!(status, 403, "a person's token makes no check runs");
        let (_, made) = call_github(&self.github, token, Method::POST, &path, Some(body.clone())).await;
        self.rest.compare(&format!("POST {REPO}/check-runs"), &made);
        body.as_object_mut()
            .unwrap()
            .retain(|name, _| !matches!(name.as_str(), "head_sha" | "external_id"));
        let path = format!("{path}/{}", made["id"]);
        let (_, changed) = call_github(&self.github, token, Method::PATCH, &path, Some(body)).await;
        self.rest
            .compare(&format!("PATCH {REPO}/check-runs/{{number}}"), &changed);
    }

    async fn use_apps(&mut self) {
        self.ask("GET /app", "/app", None).await;
        self.ask("GET /app/installations", "/app/installations", None)
            .await;
        let hook = json!({"url": "https://jm.example/webhooks/github", "content_type": "json", "insecure_ssl": "0", "secret": "s"});
        self.ask("PATCH /app/hook/config", "/app/hook/config", Some(hook))
            .await;
        self.ask("GET /user", "/user", None).await;
        self.ask("GET /meta", "/meta", None).await;
        self.ask("GET /users/{login}", "/users/ada", None).await;
        self.ask_repo("GET", "", "", None).await;
        let installation = self.ask_repo("GET", "/installation", "/installation", None).await;
        let path = format!("/app/installations/{}/access_tokens", installation["id"]);
        let wanted = json!({"repositories": ["shop"], "permissions": {"metadata": "read"}});
        let minted = self
            .ask("POST /app/installations/{id}/access_tokens", &path, Some(wanted))
            .await;
        let token = minted["token"].as_str().unwrap();
        let all = "/installation/repositories";
        let (_, listed) = call_github(&self.github, token, Method::GET, all, None).await;
        self.rest.compare(&format!("GET {all}"), &listed);
        let (status, _) = call_github(&self.github, READER_TOKEN, Method::GET, all, None).await;
        assert_eq!(status, 403, "a person's token has no installation");
        self.ask("GET /user/repos", "/user/repos", None).await;
        let deliveries = self
            .ask("GET /app/hook/deliveries", "/app/hook/deliveries", None)
            .await;
        let own = format!("/app/hook/deliveries/{}", deliveries[0]["id"]);
        self.ask("GET /app/hook/deliveries/{id}", &own, None).await;
        let again = format!("{own}/attempts");
        self.ask("POST /app/hook/deliveries/{id}/attempts", &again, None)
            .await;
    }
}

/// Registers an App as a browser does. Returns the status and the redirect's location.
async fn submit_app_manifest(github: &FakeGitHub, manifest: &Value) -> (u16, String) {
    let http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let url = format!(
        "{}/organizations/acme/settings/apps/new?state=s1",
        github.api_url()
    );
    let form = [("manifest", manifest.to_string())];
    let answer = http.post(url).form(&form).send().await.unwrap();
    let to = answer
        .headers()
        .get("location")
        .map(|to| to.to_str().unwrap().to_owned());
    (answer.status().as_u16(), to.unwrap_or_default())
}

impl Caller {
    /// Runs last, because the App of the manifest replaces the reader's App.
    async fn use_manifests(&mut self) {
        let good = json!({"name": "acme reader", "url": "https://github.com/acme", "public": false,
            "redirect_url": "http://127.0.0.1:1/callback", "default_permissions": {"metadata": "read"}});
        let mut without_url = good.clone();
        without_url["hook_attributes"] = json!({"active": false});
        assert_eq!(
            submit_app_manifest(&self.github, &without_url).await.0,
            422,
            "as GitHub refuses it"
        );
        let (_, to) = submit_app_manifest(&self.github, &good).await;
        let code = to.strip_prefix("http://127.0.0.1:1/callback?code=").unwrap();
        let (code, state) = code.split_once('&').unwrap();
        assert_eq!(state, "state=s1");
        assert_eq!(
            submit_app_manifest(&self.github, &good).await.0,
            422,
            "the name is taken"
        );
        let url = format!("{}/app-manifests/{code}/conversions", self.github.api_url());
        let convert = async || reqwest::Client::new().post(&url).send().await.unwrap();
        let made = convert().await;
        assert_eq!(made.status(), 201);
        let made = made.json().await.unwrap();
        self.rest.compare("POST /app-manifests/{code}/conversions", &made);
        assert_eq!(convert().await.status(), 404, "a code is good for once");
        let path = "/app/installations";
        let installed = async || {
            call_github(&self.github, &self.jwt, Method::GET, path, None)
                .await
                .1
        };
        assert_eq!(installed().await, json!([]));
        let page = format!("{}/apps/acme-reader/installations/new", self.github.api_url());
        reqwest::get(page).await.unwrap();
        assert_eq!(installed().await[0]["app_slug"], "acme-reader");
    }
}

fn name_of(headers: &axum::http::HeaderMap, payload: &Value) -> String {
    let event = headers["x-github-event"].to_str().unwrap();
    match payload["action"].as_str() {
        Some(action) => format!("{event} {action}"),
        None => event.to_owned(),
    }
}

#[tokio::test]
async fn github_answers_match_published_descriptions() {
    let github = start_github().await;
    let (url, received) = start_receiver().await;
    github.set_webhook(&url, "secret");
    github
        .commit("acme/shop", "fix", "change", &[("src/b.txt", "a\n")])
        .unwrap();
    let mut caller = Caller {
        github,
        jwt: app_token(READER_APP_ID, 500),
        rest: Description::read(REST, "answers"),
    };
    caller.use_pull_requests().await;
    caller.use_comments().await;
    caller.use_issues().await;
    caller.use_discussions();
    caller.use_commits().await;
    caller.use_apps().await;
    caller.use_merge_queue();
    caller.github.merge("acme/shop", 1, "rita").unwrap();
    let merged = caller.ask_repo("GET", "/pulls/{number}", "/pulls/1", None).await;
    assert_eq!(merged["merged_by"]["login"], "rita");
    caller.use_departures();
    caller.use_manifests().await;
    caller.rest.finish();

    compare_received_webhooks(Description::read(WEBHOOKS, "webhooks"), &received, name_of).await;
}

#[test]
fn github_routes_are_all_described() {
    let rest = Description::read(REST, "answers");
    let others = [
        "POST /graphql",
        "GET /git/{owner}/{name}/{*rest}",
        "POST /git/{owner}/{name}/{*rest}",
        "GET /actions/jobs/{job}/logs",
        "GET /stored-logs/{job}",
        "GET /lfs-store/{oid}",
    ];
    every_route_is_described(include_str!("../../src/github/routes.rs"), &rest, &others);
    // These routes serve web pages.
    let pages = [
        "POST /organizations/{owner}/settings/apps/new",
        "GET /apps/{slug}/installations/new",
    ];
    let source = include_str!("../../src/github/registration.rs");
    for route in super::described::list_routes(source) {
        assert!(
            pages.contains(&route.as_str()) || rest.names().contains(&route),
            "tests/required has no {route}"
        );
    }
}
