//! One ingest with its environment: NATS, Jira, GitHub and rules.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use api::types::Role;
use axum::{Json, Router, extract::Path, routing::get};
use data_encoding::HEXLOWER;
use domain::{
    BranchRecord, Fact, JournalEntry, PullRequestEnd, PullRequestEvent, PullRequestRecord, PullRequestRef,
    PullRequestStatus, RunFence, TicketKey, Timestamp, Trigger, TriggerChannel, TriggerKey, TriggerReason,
};
use ingest::{ApiToken, Config, SecretList};
use queue::Queue;
use reqwest::StatusCode;
use ring::{digest, hmac};
use serde_json::{Value, json};
use testkit::{FakeJira, JiraOptions, NatsServer, poll_until};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

pub(crate) const SHA: &str = "0000000000000000000000000000000000000abc";
pub(crate) const VIEWER: &str = "viewer-token";
pub(crate) const OPERATOR: &str = "operator-token";
pub(crate) const ADMIN: &str = "admin-token";
/// Account of ours on Jira and on GitHub.
pub(crate) const OURS: &str = "Journeyman";
pub(crate) const GITHUB_SECRET: &str = "github-secret";
pub(crate) const JIRA_SECRET: &str = "jira-secret";
/// Limit of every wait, which only a failing test reaches.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Harness {
    pub(crate) nats: NatsServer,
    pub(crate) jira: FakeJira,
    pub(crate) github: Forge,
    pub(crate) queue: Queue,
    pub(crate) http: reqwest::Client,
    base: String,
    shutdown: CancellationToken,
    service: JoinHandle<anyhow::Result<()>>,
    rules: tempfile::TempDir,
}

/// Returns in the next millisecond, the finest time unit of Jira.
pub(crate) fn next_millisecond() {
    let now = bootstrap::read_wall_clock();
    while bootstrap::read_wall_clock() == now {
        std::hint::spin_loop();
    }
}

pub(crate) fn sign_body(secret: &str, body: &str) -> String {
    let tag = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
        body.as_bytes(),
    );
    format!("sha256={}", HEXLOWER.encode(tag.as_ref()))
}

pub(crate) fn api_token(token: &str, role: Role) -> ApiToken {
    ApiToken {
        repositories: None,
        projects: None,
        speaks_for_people: false,
        sha256: HEXLOWER.encode(digest::digest(&digest::SHA256, token.as_bytes()).as_ref()),
        role,
    }
}

fn build_config(
    nats: &NatsServer,
    jira: &FakeJira,
    github: &Forge,
    rules: &std::path::Path,
    poll: u64,
) -> Config {
    let mut config = Config::default();
    config.nats.url = nats.url();
    // No process listens on the discard port of a loopback address.
    config.redis.url = "redis://127.0.0.1:9".to_owned();
    config.rules.dir = rules.to_path_buf();
    config.ingest.github_webhook_secrets = SecretList::new([GITHUB_SECRET.to_owned()]);
    config.ingest.jira_webhook_secrets = SecretList::new([JIRA_SECRET.to_owned()]);
    config.ingest.api_tokens = [
        ("vera".to_owned(), api_token(VIEWER, Role::Viewer)),
        ("olga".to_owned(), api_token(OPERATOR, Role::Operator)),
        ("root".to_owned(), api_token(ADMIN, Role::Admin)),
    ]
    .into();
    config.ingest.poll_interval_s = poll;
    config.ingest.sweep_interval_s = 1;
    config.ingest.checks_settle_s = 0;
    config.ingest.jira_trigger_group = "agents".to_owned();
    config.ingest.own_accounts = [OURS.to_owned()].into();
    config.ingest.max_body_bytes = 64 * 1024;
    config.github_reader.api_url = github.url.clone();
    config.github_reader.token = Some("reader".to_owned().into());
    config.jira_reader.base_url = jira.url();
    config.jira_reader.email = testkit::jira::READER_EMAIL.to_owned();
    config.jira_reader.api_token = testkit::jira::READER_API_TOKEN.to_owned().into();
    config
}

impl Harness {
    pub(crate) async fn start(poll_interval_s: u64) -> Self {
        Self::prepared(poll_interval_s, |_, _| {}).await
    }

    /// Starts with other settings.
    pub(crate) async fn start_with(poll_interval_s: u64, change: impl FnOnce(&mut Config)) -> Self {
        Self::prepared(poll_interval_s, |config, _| change(config)).await
    }

    /// Starts with a ticket of Jira on which work was requested, and returns its key.
    pub(crate) async fn start_with_requested_ticket() -> (Self, String) {
        let h = Self::start(3_600).await;
        h.first_poll().await;
        h.listen_to_jira();
        let key = h
            .jira
            .create_issue("ENG", "Fix the cart", "It rounds", "Bug", &[]);
        h.jira.move_issue(&key, "Ready for Agent", "Ada").expect("move");
        h.trigger(&key).await;
        (h, key)
    }

    /// Starts with other settings and earlier events on Jira.
    pub(crate) async fn prepared(poll_interval_s: u64, prepare: impl FnOnce(&mut Config, &FakeJira)) -> Self {
        let harness = Self::launch(poll_interval_s, true, prepare).await;
        harness.ready().await;
        harness
    }

    /// Starts without waiting for readiness; NATS may be down at first.
    pub(crate) async fn launch(
        poll_interval_s: u64,
        nats_is_up: bool,
        prepare: impl FnOnce(&mut Config, &FakeJira),
    ) -> Self {
        let mut nats = NatsServer::start().await.expect("nats");
        let jira = FakeJira::start(JiraOptions::default()).await.expect("jira");
        let github = Forge::start().await;
        let rules = tempfile::tempdir().expect("directory");
        let shop = "repo:\n  owner: acme\n  name: shop\njira:\n  project_key: ENG\n";
        std::fs::write(rules.path().join("shop.yaml"), shop).expect("rules");
        std::fs::write(
            rules.path().join("broken.yaml"),
            "repo:\n  owner: acme\n  nmae: web\n",
        )
        .expect("rules");
        let mut config = build_config(&nats, &jira, &github, rules.path(), poll_interval_s);
        jira.set_groups("Ada", &["agents"]);
        jira.set_groups("Rita Reporter", &["agents"]);
        prepare(&mut config, &jira);
        let queue = Queue::connect(&config.nats, "test").await.expect("queue");
        // The reporter creates the topology in production.
        queue.ensure_topology().await.expect("topology");
        if !nats_is_up {
            nats.stop().await;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("port");
        let base = format!("http://{}", listener.local_addr().expect("address"));
        let shutdown = CancellationToken::new();
        // The reporter does the maintenance in production: nothing is deleted without it.
        let worker = queue.maintenance_worker(bootstrap::read_wall_clock);
        let stopped = shutdown.clone();
        tokio::spawn(async move {
            while !stopped.is_cancelled() {
                let _ = worker.run(stopped.clone()).await;
                tokio::task::yield_now().await;
            }
        });
        let service = tokio::spawn(bootstrap::serve_app::<ingest::IngestApp>(
            config,
            listener,
            shutdown.clone(),
        ));
        let http = reqwest::Client::builder().no_proxy().build().expect("client");
        Self {
            nats,
            jira,
            github,
            queue,
            http,
            base,
            shutdown,
            service,
            rules,
        }
    }

    pub(crate) async fn ready(&self) {
        let look = async || (self.status("/readyz").await == StatusCode::OK).then_some(());
        poll_until("ready", DEADLINE, look).await.expect("ready");
    }

    pub(crate) async fn status(&self, path: &str) -> StatusCode {
        self.http
            .get(self.url(path))
            .send()
            .await
            .expect("answer")
            .status()
    }

    pub(crate) async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(DEADLINE, self.service)
            .await
            .expect("stops")
            .expect("task")
            .expect("ends well");
        assert_eq!(self.jira.violations(), Vec::<String>::new());
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Waits until the first poll has read the board, so that only webhooks find later events.
    pub(crate) async fn first_poll(&self) {
        let polled = async || {
            let requests = self.jira.requests();
            requests
                .iter()
                .any(|request| request.path.contains("/search/jql"))
                .then_some(())
        };
        poll_until("the first poll", DEADLINE, polled)
            .await
            .expect("poll");
    }

    /// Waits until two more polls have read the board, so that polls have found every earlier event.
    pub(crate) async fn two_polls_more(&self) {
        let looked = self.jira.requests().len();
        let polled = async || (self.jira.requests().len() > looked + 6).then_some(());
        poll_until("two polls more", DEADLINE, polled)
            .await
            .expect("polls");
    }

    pub(crate) fn listen_to_jira(&self) {
        self.jira.set_webhook(&self.url("/webhooks/jira"), JIRA_SECRET);
    }

    pub(crate) async fn signed(&self, path: &str, header: &str, body: &str) -> StatusCode {
        let secret = if path.ends_with("jira") {
            JIRA_SECRET
        } else {
            GITHUB_SECRET
        };
        let request = self
            .http
            .post(self.url(path))
            .header(header, sign_body(secret, body))
            .body(body.to_owned());
        request.send().await.expect("answer").status()
    }

    /// Sends Jira's webhook of a status change now, independent of its time.
    pub(crate) async fn send_jira_move(
        &self,
        key: &str,
        changelog: &str,
        status: &str,
        by: &str,
    ) -> StatusCode {
        let payload = json!({"webhookEvent": "jira:issue_updated", "timestamp": bootstrap::read_wall_clock().unix_ms(),
            "user": {"accountId": format!("557058:{}", by.to_lowercase()), "displayName": by},
            "issue": {"id": "1", "key": key, "fields": {"summary": "As it was signed"}},
            "changelog": {"id": changelog, "items": [
                {"field": "status", "fromString": "To Do", "toString": status}]}});
        self.signed("/webhooks/jira", "x-hub-signature", &payload.to_string())
            .await
    }

    /// Request of a GitHub webhook with a valid signature.
    pub(crate) fn github_request(&self, event: &str, id: &str, payload: &Value) -> reqwest::RequestBuilder {
        let body = payload.to_string();
        let request = self
            .http
            .post(self.url("/webhooks/github"))
            .header("x-github-event", event);
        let request = request
            .header("x-github-delivery", id)
            .header("x-hub-signature-256", sign_body(GITHUB_SECRET, &body));
        request.body(body)
    }

    pub(crate) async fn github_event(&self, event: &str, id: &str, payload: &Value) -> StatusCode {
        let sent = self.github_request(event, id, payload).send().await;
        sent.expect("answer").status()
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> (StatusCode, Value) {
        let answer = self
            .http
            .get(self.url(path))
            .bearer_auth(token)
            .send()
            .await
            .expect("answer");
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    /// Requests a path whose answer is not JSON.
    pub(crate) async fn text(&self, path: &str, token: &str) -> (StatusCode, String) {
        let request = self.http.get(self.url(path)).bearer_auth(token);
        let answer = request.send().await.expect("answer");
        (answer.status(), answer.text().await.expect("text"))
    }

    /// Adds a rules file and waits until it is loaded.
    pub(crate) async fn add_rules(&self, repository: &str, text: &str) {
        std::fs::write(self.rules.path().join(format!("{repository}.yaml")), text).expect("rules");
        let wanted = format!("acme/{repository}");
        let loaded = async || {
            let (_, view) = self.get("/v1/rules", VIEWER).await;
            let known = view["repositories"].as_array()?.iter();
            let mut names = known.map(|known| known["repository"].as_str().unwrap_or_default());
            names.any(|name| name == wanted).then_some(())
        };
        poll_until("rules loaded", DEADLINE, loaded).await.expect("rules");
    }

    pub(crate) async fn delete(&self, path: &str, token: &str) -> StatusCode {
        let request = self.http.delete(self.url(path)).bearer_auth(token);
        request.send().await.expect("answer").status()
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        token: &str,
        body: &Value,
        key: Option<&str>,
    ) -> (StatusCode, Value) {
        let mut request = self.http.post(self.url(path)).bearer_auth(token).json(body);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let answer = request.send().await.expect("answer");
        (answer.status(), answer.json().await.unwrap_or_default())
    }

    /// Records a branch like the reporter.
    pub(crate) async fn keep(&self, record: &BranchRecord) {
        let kept = self.queue.branches().put(record, None).await;
        kept.expect("record");
        if let Some(pull_request) = &record.pull_request {
            let open = PullRequestRecord {
                pull_request: pull_request.clone(),
                ticket: record.ticket.clone(),
                head: Some(record.head.clone()),
                status: PullRequestStatus::Open,
            };
            let kept = self.queue.pull_requests().keep(&open).await;
            kept.expect("record");
        }
    }

    pub(crate) async fn triggers(&self, key: &str) -> Vec<Trigger> {
        let ticket = TicketKey::jira(key).expect("key");
        let found = self
            .queue
            .triggers()
            .read_after(&ticket, 0)
            .await
            .expect("triggers");
        found.into_iter().map(|(_, trigger)| trigger).collect()
    }

    pub(crate) async fn trigger_keys(&self, key: &str) -> Vec<String> {
        let found = self.triggers(key).await.into_iter();
        found.map(|trigger| trigger.key.as_str().to_owned()).collect()
    }

    pub(crate) async fn triggers_when(&self, key: &str, count: usize) -> Vec<Trigger> {
        let look = async || Some(self.triggers(key).await).filter(|found| found.len() >= count);
        poll_until(&format!("{count} triggers of {key}"), DEADLINE, look)
            .await
            .expect("triggers")
    }

    pub(crate) async fn trigger(&self, key: &str) -> Trigger {
        self.triggers_when(key, 1).await.swap_remove(0)
    }

    pub(crate) async fn dead(&self, count: usize) -> Vec<Value> {
        let look = async || {
            let (_, letters) = self.get("/v1/dead", VIEWER).await;
            letters
                .as_array()
                .cloned()
                .filter(|letters| letters.len() >= count)
        };
        poll_until(&format!("{count} dead letters"), DEADLINE, look)
            .await
            .expect("dead letters")
    }
}

pub(crate) fn build_branch_record(ticket: &str, branch: &str, number: Option<u64>) -> BranchRecord {
    let repository: domain::RepositoryName = "acme/shop".parse().expect("repository");
    let ticket: TicketKey = ticket.parse().expect("ticket");
    let pull_request = number.map(|number| PullRequestRef {
        repository: repository.clone(),
        number,
        url: format!("https://forge.example/acme/shop/pull/{number}"),
        branch: branch.to_owned(),
    });
    BranchRecord {
        repository,
        branch: branch.to_owned(),
        run: domain::RunId::new(ticket.clone(), 1),
        ticket,
        head: SHA.parse().expect("commit"),
        pull_request,
        signed: Vec::new(),
    }
}

pub(crate) fn merge_trigger() -> Trigger {
    let pull_request = build_branch_record("jira:ENG-1", "feat/ENG-1-cart", Some(7))
        .pull_request
        .expect("pull request");
    Trigger {
        ticket: "jira:ENG-1".parse().expect("ticket"),
        key: TriggerKey::new("merged:acme/shop#7"),
        at: Timestamp::from_unix_ms(1),
        source: TriggerChannel::Webhook,
        actor: None,
        seen: None,
        reason: TriggerReason::from(PullRequestEvent::Merged(PullRequestEnd {
            pull_request,
            by: "mia".to_owned(),
            moved_to: None,
        })),
    }
}

pub(crate) fn build_entry(position: u64, fact: Fact) -> JournalEntry {
    JournalEntry {
        position,
        nonce: format!("n{position}"),
        fence: RunFence::default(),
        at: Timestamp::from_unix_ms(1),
        fact,
    }
}

/// Id of an account on GitHub.
pub(crate) fn compute_account_id(login: &str) -> u64 {
    login.bytes().map(u64::from).sum()
}

/// GitHub's payload of a `/stop` by this account on pull request 7.
pub(crate) fn stop_by(id: u64, user: &Value) -> Value {
    json!({"action": "created", "repository": {"full_name": "acme/shop"}, "issue": {"number": 7},
        "comment": {"id": id, "body": "/stop", "user": user, "created_at": "2026-11-21T10:00:00Z"}})
}

#[derive(Default)]
struct ForgeState {
    /// Number of permission requests that fail first.
    permission_faults: u32,
    permissions_asked: usize,
    pulls: Vec<Value>,
    comments: Vec<Value>,
    checks: Vec<Value>,
}

/// The few endpoints of GitHub that ingest reads.
pub(crate) struct Forge {
    pub(crate) url: String,
    state: Arc<Mutex<ForgeState>>,
    server: JoinHandle<()>,
}

/// Mia and our account may write; GitHub does not know `gone`.
fn answer_permission(state: &mut ForgeState, login: &str) -> Result<Json<Value>, StatusCode> {
    state.permissions_asked += 1;
    if state.permission_faults > 0 {
        state.permission_faults -= 1;
        return Err(StatusCode::BAD_GATEWAY);
    }
    let permission = match login {
        "gone" => return Err(StatusCode::NOT_FOUND),
        "mia" | OURS => "write",
        _ => "read",
    };
    let user = json!({"login": login, "id": compute_account_id(login)});
    Ok(Json(
        json!({"permission": permission, "role_name": permission, "user": user}),
    ))
}

impl Forge {
    async fn start() -> Self {
        let state = Arc::new(Mutex::new(ForgeState::default()));
        let (list, one, runs) = (Arc::clone(&state), Arc::clone(&state), Arc::clone(&state));
        let (said, asked) = (Arc::clone(&state), Arc::clone(&state));
        let app = Router::new()
            .route(
                "/repos/acme/shop/pulls",
                get(async move || Json(list.lock().expect("state").pulls.clone())),
            )
            .route("/repos/acme/docs/pulls", get(async || Json(json!([]))))
            .route(
                "/repos/acme/shop/pulls/{number}",
                get(async move |Path(number): Path<u64>| {
                    let state = one.lock().expect("state");
                    Json(state.pulls.iter().find(|pull| pull["number"] == number).cloned())
                }),
            )
            .route(
                "/repos/acme/shop/pulls/{number}/files",
                get(async || Json(json!([]))),
            )
            .route(
                "/repos/acme/shop/issues/comments",
                get(async move || Json(said.lock().expect("state").comments.clone())),
            )
            .route(
                "/repos/acme/shop/collaborators/{login}/permission",
                get(async move |Path(login): Path<String>| {
                    answer_permission(&mut asked.lock().expect("state"), &login)
                }),
            )
            .route(
                "/repos/acme/shop/commits/{sha}/check-runs",
                get(async move || {
                    let checks = runs.lock().expect("state").checks.clone();
                    Json(json!({"total_count": checks.len(), "check_runs": checks}))
                }),
            )
            .route(
                "/repos/acme/shop/commits/{sha}/status",
                get(async || Json(json!({"state": "pending", "total_count": 0, "statuses": []}))),
            );
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("port");
        let url = format!("http://{}", listener.local_addr().expect("address"));
        let server = tokio::spawn(async move { axum::serve(listener, app).await.expect("serve") });
        Self { url, state, server }
    }

    pub(crate) fn open(&self, number: u64, branch: &str, title: &str, sha: &str) {
        let end = |name: &str| json!({"ref": name, "sha": sha, "repo": {"full_name": "acme/shop"}});
        self.state.lock().expect("state").pulls.push(json!({
            "number": number, "node_id": "n", "title": title, "body": "", "state": "open", "draft": true,
            "user": {"login": "sam"}, "html_url": format!("https://forge.example/acme/shop/pull/{number}"),
            "head": end(branch), "base": end("main"), "merged": false, "merged_at": null, "merged_by": null,
            "updated_at": "2026-11-21T10:00:00Z", "closed_at": null}));
    }

    pub(crate) fn fail_permissions(&self, times: u32) {
        self.state.lock().expect("state").permission_faults = times;
    }

    /// Waits until this number of permission requests arrived.
    pub(crate) async fn permissions_asked(&self, times: usize) {
        let asked = async || (self.state.lock().expect("state").permissions_asked >= times).then_some(());
        poll_until("questions for permissions", DEADLINE, asked)
            .await
            .expect("questions");
    }

    pub(crate) fn comment(&self, id: u64, number: u64, by: &str, body: &str) {
        self.state.lock().expect("state").comments.push(json!({
            "id": id, "body": body, "user": {"login": by, "id": compute_account_id(by)}, "created_at": bootstrap::read_wall_clock().to_string(),
            "issue_url": format!("https://forge.example/repos/acme/shop/issues/{number}")}));
    }

    pub(crate) fn merge(&self, number: u64, by: &str) {
        let mut state = self.state.lock().expect("state");
        for pull in state.pulls.iter_mut().filter(|pull| pull["number"] == number) {
            pull["state"] = json!("closed");
            pull["merged"] = json!(true);
            pull["merged_by"] = json!({"login": by});
            pull["merged_at"] = json!("2026-11-21T11:00:00Z");
            pull["closed_at"] = json!("2026-11-21T11:00:00Z");
            pull["updated_at"] = json!("2026-11-21T11:00:00Z");
        }
    }

    pub(crate) fn check(&self, id: u64, name: &str, conclusion: &str) {
        self.state.lock().expect("state").checks.push(json!({
            "id": id, "name": name, "status": "completed", "conclusion": conclusion,
            "completed_at": "2026-11-21T10:00:00Z", "html_url": "https://forge.example/check",
            "check_suite": {"id": 1}, "output": {"title": name, "summary": "log", "text": null}}));
    }
}

impl Drop for Forge {
    fn drop(&mut self) {
        self.server.abort();
    }
}
