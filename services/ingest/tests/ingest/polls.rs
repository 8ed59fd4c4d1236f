//! Polls when something outside is unreadable.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use domain::{
    ChecksConclusion, InstanceName, Job, Lane, PendingRun, PullRequestEvent, RunId, RunStatus, RunSummary,
    SkipReason, StopReason, TicketDeparture, TicketKey, TicketRow, Timestamp, TriggerChannel, TriggerKey,
    TriggerReason, WaitCondition,
};
use ingest::{Config, SecretList};
use queue::KeyValueBucket;
use reqwest::StatusCode;
use serde::de::IgnoredAny;
use serde_json::json;
use testkit::{
    FakeGitHub, FakeJira, GitHubOptions, JiraOptions, RecordedRequest, ServiceFault, github, poll_until,
};

use crate::harness::{DEADLINE, Harness, OPERATOR, SHA, VIEWER, build_branch_record, next_millisecond};

const READY: &str = "Ready for Agent";
const NEVER: u64 = 3_600;

/// Answers 200 with an unexpected body.
fn build_unreadable_answer(path: &str, times: u32) -> ServiceFault {
    // An object without a field of the answer would count as an answer of a gateway, and be tried again.
    ServiceFault::new(path, times, 200).page("application/json", "7")
}

#[tokio::test]
async fn unreadable_ticket_is_dead_lettered_others_continue() {
    let h = Harness::start(1).await;
    let broken = h.jira.create_issue("ENG", "Broken", "", "Bug", &[]);
    h.jira.fail_next(build_unreadable_answer(
        &format!("/issue/{broken}/comment"),
        1_000,
    ));
    h.jira.comment_as(&broken, "Ada", "/stop").expect("comment");
    let fine = h.jira.create_issue("ENG", "Fine", "", "Bug", &[]);
    let id = h.jira.comment_as(&fine, "Ada", "/stop").expect("comment");
    assert_eq!(
        h.trigger(&fine).await.key,
        TriggerKey::new(format!("comment:{id}"))
    );
    let letter = h.dead(1).await.swap_remove(0);
    assert!(letter["id"].to_string().contains(&broken), "{letter}");
    h.jira.comment_as(&fine, "Ada", "/stop").expect("comment");
    h.triggers_when(&fine, 2).await;
    h.stop().await;
}

#[tokio::test]
async fn unreadable_match_of_condition_is_dead_lettered() {
    let mut key = String::new();
    let h = Harness::prepared(1, |config, jira| {
        let rules = "repo: {owner: acme, name: shop}\njira: {project_key: ENG, jql: labels = agent}\n";
        std::fs::write(config.rules.dir.join("shop.yaml"), rules).expect("rules");
        key = jira.create_issue("ENG", "Broken", "", "Bug", &["agent"]);
        jira.fail_next(build_unreadable_answer(&format!("/issue/{key}?"), 1_000));
    })
    .await;
    let letter = h.dead(1).await.swap_remove(0);
    let finding = letter["id"].to_string();
    assert!(finding.contains(&format!("{key} matched")), "{letter}");
    h.stop().await;
}

#[tokio::test]
async fn refused_search_for_status_leaves_other_polls() {
    let mut key = String::new();
    let h = Harness::prepared(1, |_, jira| {
        key = jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
        jira.comment_as(&key, "Ada", "/stop").expect("comment");
        // Jira refuses the search for a status that it does not have.
        jira.fail_next(ServiceFault::new("/search/jql", 1_000, 400).with("AND status ="));
    })
    .await;
    h.trigger(&key).await;
    h.stop().await;
}

/// Checks that a rate limit drops no other failure of its round: the unreadable finding is a dead letter while the limit
/// lasts, and the limited one is read afterwards. `limited` returns the number of its successful reads.
async fn check_limit_keeps_failures(h: &Harness, unreadable: &str, limited: impl Fn() -> usize) {
    let letter = h.dead(1).await.swap_remove(0);
    assert!(letter["id"].to_string().contains(unreadable), "{letter}");
    assert_eq!(limited(), 0, "the limit lasts for some rounds more");
    let read = async || (limited() > 0).then_some(());
    poll_until("the limited finding is read", DEADLINE, read)
        .await
        .expect("read");
    let (_, letters) = h.get("/v1/dead", VIEWER).await;
    assert_eq!(letters.as_array().map(Vec::len), Some(1), "{letters}");
}

#[tokio::test]
async fn rate_limit_of_jira_keeps_other_failures() {
    let mut keys = Vec::new();
    let h = Harness::prepared(1, |_, jira| {
        for title in ["Broken", "Limited"] {
            let key = jira.create_issue("ENG", title, "", "Bug", &[]);
            jira.comment_as(&key, "Ada", "/stop").expect("comment");
            // The listing is sorted by the time of the change.
            next_millisecond();
            keys.push(key);
        }
        jira.fail_next(build_unreadable_answer(
            &format!("/issue/{}/comment", keys[0]),
            1_000,
        ));
        jira.fail_next(ServiceFault::new(&format!("/issue/{}/comment", keys[1]), 4, 429));
    })
    .await;
    let path = format!("/issue/{}/comment", keys[1]);
    check_limit_keeps_failures(&h, &keys[0], || {
        let requests = h.jira.requests().into_iter();
        let reads = requests.filter(|request| request.path.contains(&path) && request.status == 200);
        reads.count()
    })
    .await;
    h.trigger(&keys[1]).await;
    h.stop().await;
}

#[tokio::test]
async fn rate_limit_of_github_keeps_other_failures() {
    let forge = start_forge().await;
    let issue = forge.open_issue_as("acme/shop", "mia", "Broken cart", "");
    let issue = issue.expect("issue");
    let [first, _] = ["mia", "sam"].map(|by| {
        let said = forge.comment_as("acme/shop", issue, by, "/stop");
        said.expect("comment")
    });
    forge.fail_next(build_unreadable_answer("/collaborators/mia/", 1_000));
    forge.fail_next(ServiceFault::new("/collaborators/sam/", 4, 429));
    let h = start_polling(&forge, "ci: {required: auto}\n").await;
    check_limit_keeps_failures(&h, &format!("comment:{first}"), || {
        let requests = forge.requests().into_iter();
        let reads =
            requests.filter(|request| request.path.contains("/collaborators/sam/") && request.status == 200);
        reads.count()
    })
    .await;
    h.stop().await;
}

#[tokio::test]
async fn unreadable_ticket_status_change_is_reported() {
    let h = Harness::start(NEVER).await;
    h.listen_to_jira();
    h.first_poll().await;
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    h.jira
        .fail_next(build_unreadable_answer(&format!("/issue/{key}?"), 1));
    h.jira.move_issue(&key, READY, "Ada").expect("move");
    assert_eq!(
        h.trigger(&key).await.reason,
        TriggerReason::Skipped(SkipReason::Unreadable)
    );
    h.stop().await;
}

#[tokio::test]
async fn lost_payload_is_dead_lettered_once() {
    let forge = start_forge().await;
    forge
        .commit("acme/shop", "feat/x", "x", &[("b.txt", "b\n")])
        .expect("commit");
    // No process listens on that port, so every delivery is lost.
    forge.set_webhook("http://127.0.0.1:9/webhooks/github", "secret");
    let number = forge
        .open_pull_request_as("acme/shop", "mia", "feat/x", "x", "")
        .expect("pull request");
    for word in ["one", "two", "three"] {
        forge
            .comment_as("acme/shop", number, "mia", word)
            .expect("comment");
    }
    let details = || {
        let requests = forge.requests().into_iter();
        requests
            .filter(|request| request.path.starts_with("/app/hook/deliveries/"))
            .count()
    };
    forge.fail_next(ServiceFault::new("/app/hook/deliveries/", 1, 404));
    let h = start_polling_as_app(&forge).await;
    let all = async || (details() >= 4).then_some(());
    poll_until("every payload asked for", DEADLINE, all)
        .await
        .expect("payloads");
    h.two_polls_more().await;
    assert_eq!(details(), 4, "each payload is asked for once");
    let dead = h.dead(1).await;
    assert_eq!(dead.len(), 1, "{dead:?}");
    assert!(dead[0]["id"].to_string().contains("github delivery"), "{dead:?}");
    h.stop().await;
}

#[tokio::test]
async fn long_delivery_log_is_read_to_its_start() {
    let forge = start_forge().await;
    let issue = forge.open_issue_as("acme/shop", "mia", "Broken cart", "");
    let issue = issue.expect("issue");
    let comment = || {
        let said = forge.comment_as("acme/shop", issue, "mia", "one");
        said.expect("comment");
    };
    // No process listens on that port, so the first delivery is lost.
    forge.set_webhook("http://127.0.0.1:9/webhooks/github", "secret");
    comment();
    let arrived = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&arrived);
    let receiver = axum::Router::new().fallback(async move || {
        counted.fetch_add(1, Ordering::SeqCst);
        StatusCode::ACCEPTED
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("port");
    let url = format!("http://{}", listener.local_addr().expect("address"));
    let server = tokio::spawn(async move { axum::serve(listener, receiver).await.expect("serve") });
    forge.set_webhook(&url, "secret");
    // As many as one round reads.
    for _ in 0..1_000 {
        comment();
    }
    let others = async || (arrived.load(Ordering::SeqCst) >= 1_000).then_some(());
    poll_until("the other deliveries", DEADLINE, others)
        .await
        .expect("deliveries");
    let h = start_polling_as_app(&forge).await;
    let read = async || {
        let requests = forge.requests();
        let mut paths = requests.iter().map(|request| &request.path);
        paths
            .any(|path| path.ends_with("/app/hook/deliveries/1"))
            .then_some(())
    };
    poll_until("the lost delivery", DEADLINE, read)
        .await
        .expect("read");
    h.stop().await;
    server.abort();
}

/// Starts an ingest that polls the forge each second as an App.
async fn start_polling_as_app(forge: &FakeGitHub) -> Harness {
    Harness::start_with(1, |config| {
        config.github_reader.api_url = forge.api_url();
        config.github_reader.app_id = Some(github::READER_APP_ID);
        config.github_reader.private_key = Some(github::APP_PRIVATE_KEY.to_owned().into());
        config.github_reader.token = None;
    })
    .await
}

async fn start_forge() -> FakeGitHub {
    let forge = FakeGitHub::start(GitHubOptions::default()).await.expect("github");
    forge
        .create_repository("acme/shop", &[("a.txt", "a\n")])
        .expect("repository");
    forge
}

/// Starts an ingest that polls the forge each second under these default rules.
async fn start_polling(forge: &FakeGitHub, defaults: &str) -> Harness {
    Harness::start_with(1, |config| {
        config.github_reader.api_url = forge.api_url();
        config.github_reader.token = Some(github::READER_TOKEN.to_owned().into());
        std::fs::write(config.rules.dir.join("defaults.yaml"), defaults).expect("rules");
    })
    .await
}

/// Adds a second Jira site and a second GitHub server with these addresses, and rules of a repository on both.
fn add_second_instances(config: &mut Config, jira_url: String, api_url: String) {
    let name: InstanceName = "second".parse().expect("name");
    let build_secrets = || SecretList::new(["second-secret".to_owned()]);
    let mut site = config.jira_reader.clone();
    site.base_url = jira_url;
    config.jira = [(name.clone(), site)].into();
    config.ingest.webhook_secrets.jira = [(name.clone(), build_secrets())].into();
    let mut server = config.github_reader.clone();
    server.api_url = api_url;
    config.github = [(name.clone(), server)].into();
    config.ingest.webhook_secrets.github = [(name, build_secrets())].into();
    let rules =
        "repo: {owner: acme, name: shop, instance: second}\njira: {project_key: ENG, instance: second}\n";
    std::fs::write(config.rules.dir.join("second.yaml"), rules).expect("rules");
}

/// Waits until a request with this part of a path is among those of a stand-in.
async fn await_request(part: &str, list_requests: impl Fn() -> Vec<RecordedRequest>) {
    let arrived = async || {
        let requests = list_requests();
        let mut paths = requests.iter().map(|request| &request.path);
        paths.any(|path| path.contains(part)).then_some(())
    };
    poll_until(part, DEADLINE, arrived).await.expect("request");
}

#[tokio::test]
async fn rate_limit_of_instance_leaves_other_instance() {
    let second_site = FakeJira::start(JiraOptions::default()).await.expect("jira");
    let (forge, second_forge) = (start_forge().await, start_forge().await);
    // The pauses are longer than the test.
    let limit = |path: &str| ServiceFault::new(path, 1_000, 429).retry_after(600);
    forge.fail_next(limit("/pulls?state=all"));
    let h = Harness::prepared(1, |config, first_site| {
        first_site.fail_next(limit("/search/jql"));
        config.github_reader.api_url = forge.api_url();
        config.github_reader.token = Some(github::READER_TOKEN.to_owned().into());
        add_second_instances(config, second_site.url(), second_forge.api_url());
    })
    .await;
    await_request("/search/jql", || h.jira.requests()).await;
    await_request("/search/jql", || second_site.requests()).await;
    await_request("/pulls?state=all", || forge.requests()).await;
    await_request("/pulls?state=all", || second_forge.requests()).await;
    h.stop().await;
}

/// Checks that a finding which fails in more rounds than one among readable findings may is read in the end. `query`
/// is the part of the call that reads it.
async fn check_outage_loses_nothing(forge: &FakeGitHub, defaults: &str, query: &str) {
    // Six rounds: more than the five of a finding that is refused among readable ones, fewer than the thirty of one
    // that is refused alone. A refusal of validation is not repeated within a round.
    forge.fail_next(ServiceFault::new("/graphql", 6, 422).with(query));
    let h = start_polling(forge, defaults).await;
    let count = |status: u16| count_calls(forge, query, |request| request.status == status);
    let read = async || (count(200) > 0).then_some(());
    poll_until("the finding is read", DEADLINE, read)
        .await
        .expect("read");
    assert_eq!(count(422), 6, "one for each round");
    let (_, letters) = h.get("/v1/dead", VIEWER).await;
    assert_eq!(letters, json!([]));
    h.stop().await;
}

/// Number of GraphQL calls whose body contains a text.
fn count_calls(forge: &FakeGitHub, text: &str, is_wanted: impl Fn(&RecordedRequest) -> bool) -> usize {
    let requests = forge.requests();
    let has_text = |request: &&RecordedRequest| {
        let body = request.body.as_ref().map(ToString::to_string);
        request.path.contains("/graphql") && body.is_some_and(|body| body.contains(text))
    };
    let calls = requests.iter().filter(has_text);
    calls.filter(|request| is_wanted(request)).count()
}

#[tokio::test]
async fn outage_longer_than_five_polls_loses_no_issue() {
    let forge = start_forge().await;
    forge
        .open_issue_as("acme/shop", "mia", "Broken cart", "")
        .expect("issue");
    check_outage_loses_nothing(&forge, "issues: {labels: [agent]}\n", "issue(number").await;
}

#[tokio::test]
async fn outage_longer_than_five_polls_loses_no_discussion() {
    let forge = start_forge().await;
    let started = forge.start_discussion("acme/shop", "mia", "Ideas", ("Rounding", "How?"));
    started.expect("discussion");
    check_outage_loses_nothing(&forge, "discussions: {enabled: true}\n", "discussion(number").await;
}

#[tokio::test]
async fn unreadable_issue_is_dead_lettered_once() {
    let forge = start_forge().await;
    let open = |title: &str| forge.open_issue_as("acme/shop", "mia", title, "").expect("issue");
    let [broken, fine] = [1, 2].map(|number| format!("\"number\":{number}"));
    assert_eq!(open("Broken"), 1);
    let unreadable = ServiceFault::new("/graphql", 1_000, 200).with(&broken);
    forge.fail_next(unreadable.page("application/json", "{\"data\": 7}"));
    let h = start_polling(&forge, "issues: {labels: [agent]}\n").await;
    h.dead(1).await;
    let reads = |number: &str| count_calls(&forge, number, |_| true);
    let before = reads(&broken);
    // The change of another issue lists the unreadable one again.
    assert_eq!(open("Fine"), 2);
    // Each round reads an issue once, so the first of both rounds is over.
    let polled = async || (reads(&fine) >= 2).then_some(());
    poll_until("polls of the other issue", DEADLINE, polled)
        .await
        .expect("polls");
    assert_eq!(reads(&broken), before, "it is not read again");
    assert_eq!(h.dead(1).await.len(), 1);
    h.stop().await;
}

#[tokio::test]
async fn pull_requests_use_one_conditional_listing() {
    let (forge, ours) = start_forge_with_pulls(2).await;
    let h = Harness::start_with(1, |config| {
        config.github_reader.api_url = forge.api_url();
        config.github_reader.token = Some(github::READER_TOKEN.to_owned().into());
    })
    .await;
    let started = tokio::time::Instant::now();
    for record in &ours {
        h.keep(record).await;
    }
    let asked = |part: &str| {
        let requests = forge.requests().into_iter();
        requests.filter(|request| request.path.contains(part)).count()
    };
    let unchanged = || {
        let listings = forge.requests().into_iter();
        listings
            .filter(|request| request.path.contains("/pulls?state=all") && request.status == 304)
            .count()
    };
    let quiet = async |more: usize| {
        let before = unchanged();
        let enough = async || (unchanged() >= before + more).then_some(());
        poll_until("listings without news", DEADLINE, enough)
            .await
            .expect("listings");
    };
    quiet(2).await;
    forge.close("acme/shop", 1, "mia").expect("close");
    let closed = h.trigger("ENG-1").await;
    assert!(
        matches!(
            closed.reason,
            TriggerReason::PullRequest(PullRequestEvent::Closed(_))
        ),
        "{closed:?}"
    );
    quiet(2).await;
    // Two reads of the reviews of each, and one of the closed pull request. The assessment of each reads the pull request
    // with its reviews once. The other requests are the listing, and sometimes the checks of each.
    assert_eq!((asked("/pulls/1"), asked("/pulls/2")), (5, 4));
    // The pause between two reads of a head starts with the poll interval, one second, and doubles.
    let (checks, seconds) = (asked("/check-runs"), started.elapsed().as_secs() + 1);
    // The assessment reads the checks of each again.
    let most = 2 * (3 + usize::try_from(seconds.ilog2()).expect("small"));
    assert!(
        checks <= most,
        "{checks} looks at the checks of two heads in {seconds} s"
    );
    h.stop().await;
}

/// Forge with pull requests of ours, numbered from 1, and their records. Each is for the ticket with its number.
async fn start_forge_with_pulls(count: u64) -> (FakeGitHub, Vec<domain::BranchRecord>) {
    let forge = start_forge().await;
    let mut ours = Vec::new();
    for number in 1..=count {
        let branch = format!("feat/ENG-{number}-x");
        let head = forge.commit("acme/shop", &branch, "x", &[("b.txt", branch.as_str())]);
        let opened = forge.open_pull_request_as("acme/shop", "journeyman", &branch, "x", "");
        assert_eq!(opened.expect("pull request"), number);
        ours.push(domain::BranchRecord {
            head: head.expect("commit").parse().expect("commit"),
            ..build_branch_record(&format!("jira:ENG-{number}"), &branch, Some(number))
        });
    }
    (forge, ours)
}

/// Request about the checks of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadRequest {
    /// Listing of the states of all heads.
    Listing,
    /// Read of the check runs of this head.
    Read,
}

/// Answered requests about the checks of a head, oldest first.
fn list_head_requests(forge: &FakeGitHub, head: &str) -> Vec<HeadRequest> {
    let checks = format!("/commits/{head}/check-runs");
    let find_kind = |request: &RecordedRequest| {
        let body = request.body.as_ref().map(ToString::to_string);
        let is_listing = body.is_some_and(|body| body.contains("statusCheckRollup"));
        if request.path.contains(&checks) {
            Some(HeadRequest::Read)
        } else {
            (is_listing && request.status == 200).then_some(HeadRequest::Listing)
        }
    };
    forge.requests().iter().filter_map(find_kind).collect()
}

#[tokio::test]
async fn changed_checks_among_many_are_found() {
    // One more than the pull requests that need no listing.
    let (forge, ours) = start_forge_with_pulls(13).await;
    let run_checks = |record: &domain::BranchRecord, conclusion: github::RunConclusion| {
        let ran = forge.run_checks("acme/shop", record.head.as_str(), &[("test", conclusion, "")]);
        ran.expect("checks");
    };
    // Checks that passed are settled by one read, so that the allowance lasts for the read after the change.
    for record in &ours {
        run_checks(record, github::RunConclusion::Success);
    }
    let h = start_polling(&forge, "ci: {required: auto}\n").await;
    for record in &ours {
        h.keep(record).await;
    }
    h.trigger("ENG-7").await;
    let changed = &ours[6];
    let requests = || list_head_requests(&forge, changed.head.as_str());
    let unread = async || {
        let listings = [HeadRequest::Listing; 2];
        requests().ends_with(&listings).then_some(())
    };
    poll_until("two listings without a read", DEADLINE, unread)
        .await
        .expect("listings");
    let before = requests().len();
    run_checks(changed, github::RunConclusion::Failure);
    let found = h.triggers_when("ENG-7", 2).await.swap_remove(1);
    let TriggerReason::PullRequest(PullRequestEvent::ChecksCompleted(checks)) = &found.reason else {
        panic!("{found:?}");
    };
    assert_eq!(checks.conclusion, ChecksConclusion::Failure);
    let after = requests().split_off(before);
    assert_eq!(
        after.first(),
        Some(&HeadRequest::Listing),
        "a listing precedes the read of the changed checks"
    );
    h.stop().await;
}

/// Number of assessments of each pull request: each one reads the check runs of the head once.
fn count_assessments(forge: &FakeGitHub, ours: &[domain::BranchRecord]) -> Vec<usize> {
    let requests = forge.requests();
    let count = |record: &domain::BranchRecord| {
        let checks = format!("/commits/{}/check-runs", record.head);
        let reads = requests.iter().filter(|request| request.path.contains(&checks));
        reads.count()
    };
    ours.iter().map(count).collect()
}

/// Starts ingest with these pull requests of ours after its only poll: webhooks alone start assessments.
async fn start_after_only_poll(forge: &FakeGitHub, ours: &[domain::BranchRecord]) -> Harness {
    let h = Harness::start_with(NEVER, |config| {
        config.github_reader.api_url = forge.api_url();
        config.github_reader.token = Some(github::READER_TOKEN.to_owned().into());
    })
    .await;
    let listed = async || {
        let requests = forge.requests();
        let mut paths = requests.iter().map(|request| &request.path);
        paths.any(|path| path.contains("/pulls?state=all")).then_some(())
    };
    poll_until("the first poll", DEADLINE, listed)
        .await
        .expect("poll");
    for record in ours {
        h.keep(record).await;
    }
    h
}

async fn push_to_base(h: &Harness, id: &str) {
    let push = json!({"ref": "refs/heads/main", "after": SHA, "commits": [], "repository": {"full_name": "acme/shop"},
        "sender": {"login": "mia", "id": 1}});
    assert_eq!(h.github_event("push", id, &push).await, StatusCode::ACCEPTED);
}

/// Numbers of the pull requests that have a stored assessment, of those up to `last`.
async fn list_assessed(h: &Harness, last: usize) -> Vec<usize> {
    let health = h.queue.table::<domain::HealthRecord>(KeyValueBucket::Control);
    let mut assessed = Vec::new();
    for number in 1..=last {
        let key = format!("health:acme/shop#{number}");
        if health.get(&key).await.expect("records").is_some() {
            assessed.push(number);
        }
    }
    assessed
}

#[tokio::test]
async fn assessment_of_earlier_process_is_removed_at_end() {
    let h = Harness::start(1).await;
    let record = build_branch_record("jira:ENG-1", "feat/ENG-1-x", Some(1));
    let pull_request = record.pull_request.expect("pull request");
    let assessed = domain::HealthRecord {
        pull_request: pull_request.clone(),
        state: domain::HealthState::Ready,
        base: domain::BaseTip {
            branch: "main".to_owned(),
            commit: SHA.parse().expect("commit"),
            ahead_by: None,
        },
        approvals: None,
        auto_merge: None,
        ignored_checks: Vec::new(),
        memory: domain::HealthMemory::default(),
        at: Timestamp::default(),
    };
    let health = h.queue.table::<domain::HealthRecord>(KeyValueBucket::Control);
    let stored = health.put("health:acme/shop#1", &assessed, None).await;
    stored.expect("record");
    // This process has never seen the pull request open.
    let ended = domain::PullRequestRecord {
        pull_request,
        ticket: record.ticket,
        head: Some(record.head),
        status: domain::PullRequestStatus::Merged,
    };
    let kept = h.queue.pull_requests().keep(&ended).await;
    kept.expect("record");
    let removed = async || list_assessed(&h, 1).await.is_empty().then_some(());
    poll_until("the removal", DEADLINE, removed)
        .await
        .expect("removal");
    h.stop().await;
}

#[tokio::test]
async fn pushes_to_base_assess_all_in_turn() {
    let (forge, ours) = start_forge_with_pulls(60).await;
    let h = start_after_only_poll(&forge, &ours).await;
    for pushes in 1..=3 {
        push_to_base(&h, &format!("push-{pushes}")).await;
        let all = async || (list_assessed(&h, ours.len()).await.len() == pushes * 20).then_some(());
        poll_until("20 assessments more", DEADLINE, all)
            .await
            .expect("assessments");
    }
    assert_eq!(
        count_assessments(&forge, &ours),
        [1; 60],
        "each push takes those that no earlier push has taken"
    );
    h.stop().await;
}

#[tokio::test]
async fn push_assesses_others_after_failed_read() {
    let (forge, ours) = start_forge_with_pulls(3).await;
    let h = start_after_only_poll(&forge, &ours).await;
    forge.fail_next(ServiceFault::new("/pulls/1/reviews", 1_000, 502));
    push_to_base(&h, "push").await;
    let others = async || (list_assessed(&h, ours.len()).await == [2, 3]).then_some(());
    poll_until("the other assessments", DEADLINE, others)
        .await
        .expect("assessments");
    h.stop().await;
}

#[tokio::test]
async fn overlapping_assessment_is_repeated() {
    let (forge, ours) = start_forge_with_pulls(1).await;
    let h = start_after_only_poll(&forge, &ours).await;
    let health = h.queue.table::<domain::HealthRecord>(KeyValueBucket::Control);
    let key = "health:acme/shop#1";
    push_to_base(&h, "first").await;
    let assessed = async || health.get(key).await.expect("record");
    let (first, mut last) = poll_until("an assessment", DEADLINE, assessed)
        .await
        .expect("assessment");
    // An assessment that knows less stores its result while another one reads. A slow machine may need a second try.
    let older = domain::HealthRecord {
        state: domain::HealthState::Ready,
        ..first.clone()
    };
    for round in 1..=20 {
        let reads = || count_assessments(&forge, &ours)[0];
        let before = reads();
        forge.set_delay(Duration::from_millis(200));
        push_to_base(&h, &format!("push-{round}")).await;
        let reading = async || (reads() > before).then_some(());
        poll_until("a read", DEADLINE, reading).await.expect("read");
        let between = health.put(key, &older, Some(last)).await;
        forge.set_delay(Duration::ZERO);
        let repeated = async || {
            let (record, revision) = health.get(key).await.expect("record").expect("assessment");
            (revision > last && record.state == first.state).then_some(revision)
        };
        last = poll_until("the later result", DEADLINE, repeated)
            .await
            .expect("result");
        if between.is_ok() {
            h.stop().await;
            return;
        }
    }
    panic!("no result was stored during an assessment");
}

#[tokio::test]
async fn ticket_from_api_shows_health() {
    let forge = start_forge().await;
    let h = Harness::start_with(NEVER, |config| {
        config.github_reader.api_url = forge.api_url();
        config.github_reader.token = Some(github::READER_TOKEN.to_owned().into());
        config.folder = [("shop".parse().expect("name"), IgnoredAny)].into();
        std::fs::write(config.rules.dir.join("folder.yaml"), "repo: {folder: shop}\n").expect("rules");
    })
    .await;
    let key = h.jira.create_issue("ENG", "Fix the cart", "", "Bug", &[]);
    let text = json!({"summary": "Fix the cart"});
    for body in [
        json!({"ticket": key, "job": "implement"}),
        json!({"ticket": "folder:shop#1", "job": "implement", "text": text}),
    ] {
        let answer = h.post("/v1/jobs", OPERATOR, &body, None).await;
        assert_eq!(answer.0, StatusCode::ACCEPTED, "{body}: {}", answer.1);
    }
    assert_eq!(h.trigger(&key).await.source, TriggerChannel::Api);
    let branch = "feat/x";
    forge
        .commit("acme/shop", branch, "x", &[("b.txt", "x\n")])
        .expect("commit");
    let number = forge
        .open_pull_request_as("acme/shop", "journeyman", branch, "x", "")
        .expect("pull request");
    let ours = build_branch_record(&format!("jira:{key}"), branch, Some(number));
    h.keep(&ours).await;
    let rows = h.queue.table::<TicketRow>(KeyValueBucket::Tickets);
    let in_folder = domain::PullRequestRef {
        repository: "folder:local/shop".parse().expect("repository"),
        number: 1,
        url: "file:///shop/1.patch".to_owned(),
        branch: branch.to_owned(),
    };
    let opened = ours.pull_request.expect("pull request");
    for (ticket, pull_request) in [
        (format!("jira:{key}"), opened),
        ("folder:shop#1".to_owned(), in_folder),
    ] {
        let row = TicketRow {
            pull_requests: vec![pull_request],
            ..TicketRow::default()
        };
        rows.put(&ticket, &row, None).await.expect("row");
    }
    push_to_base(&h, "push").await;
    let assessed = async || {
        let (_, ticket) = h.get(&format!("/v1/tickets/{key}"), VIEWER).await;
        let health = ticket["standing"][0]["health"].clone();
        health.is_object().then_some(health)
    };
    let health = poll_until("the assessment", DEADLINE, assessed)
        .await
        .expect("health");
    assert_eq!(
        (&health["state"], &health["cause"], &health["base_branch"]),
        (&json!("waiting"), &json!("absent_checks"), &json!("main")),
        "{health}"
    );
    // A folder has no server that could merge.
    let (status, ticket) = h.get("/v1/tickets/folder%3Ashop%231", VIEWER).await;
    assert_eq!(status, StatusCode::OK, "{ticket}");
    let standing = ticket["standing"].as_array().expect("pull requests");
    assert_eq!(standing.len(), 1, "{ticket}");
    assert_eq!(standing[0]["health"], json!(null), "{ticket}");
    h.stop().await;
}

/// Checks that the end of our pull request 2 is found although the pull requests of these dead letters are unreadable.
async fn check_close_is_found(h: &Harness, unreadable: &[&str]) {
    let closed = h.trigger("ENG-2").await;
    assert!(
        matches!(
            closed.reason,
            TriggerReason::PullRequest(PullRequestEvent::Closed(_))
        ),
        "{closed:?}"
    );
    let letters = h.dead(unreadable.len()).await;
    for what in unreadable {
        assert!(
            letters
                .iter()
                .any(|letter| letter["id"].to_string().contains(what)),
            "{what}: {letters:?}"
        );
    }
    let (_, all) = h.get("/v1/dead", VIEWER).await;
    assert_eq!(all.as_array().map(Vec::len), Some(unreadable.len()), "{all}");
}

#[tokio::test]
async fn unreadable_pull_request_blocks_no_other() {
    let (forge, ours) = start_forge_with_pulls(3).await;
    // One before and one after the closed pull request, whatever the order of the listing is.
    for path in ["/pulls/1/reviews", "/pulls/3/reviews"] {
        forge.fail_next(build_unreadable_answer(path, 1_000));
    }
    forge.close("acme/shop", 2, "mia").expect("close");
    let h = start_polling(&forge, "ci: {required: auto}\n").await;
    for number in [0, 2, 1] {
        h.keep(&ours[number]).await;
    }
    check_close_is_found(&h, &["pull request 1 updated", "pull request 3 updated"]).await;
    h.stop().await;
}

#[tokio::test]
async fn unreadable_unlisted_pull_request_blocks_no_other() {
    let (forge, ours) = start_forge_with_pulls(2).await;
    forge.fail_next(build_unreadable_answer("/pulls?state=all", 1_000).page("application/json", "[]"));
    forge.fail_next(build_unreadable_answer("/pulls/1", 1_000));
    forge.close("acme/shop", 2, "mia").expect("close");
    let h = start_polling(&forge, "ci: {required: auto}\n").await;
    // Only pull requests that are recorded after the first round are read without a listing.
    let listed = async || {
        let requests = forge.requests();
        let mut paths = requests.iter().map(|request| request.path.as_str());
        paths.any(|path| path.contains("/pulls?state=all")).then_some(())
    };
    poll_until("the first listing", DEADLINE, listed)
        .await
        .expect("listing");
    for record in &ours {
        h.keep(record).await;
    }
    check_close_is_found(&h, &["pull request 1 without a listing"]).await;
    h.stop().await;
}

/// Webhook about the end of a pull request of ours.
fn build_close_payload(number: u64, branch: &str) -> serde_json::Value {
    json!({"action": "closed", "repository": {"full_name": "acme/shop"}, "sender": {"login": "mia"},
        "pull_request": {"number": number, "head": {"ref": branch, "repo": {"full_name": "acme/shop"}}, "merged": false,
            "merged_by": null, "closed_at": "2026-11-21T10:00:00Z"}})
}

#[tokio::test]
async fn moved_pull_request_ends_once() {
    let (forge, ours) = start_forge_with_pulls(2).await;
    let made = forge.create_repository("acme/other", &[("a.txt", "a\n")]);
    made.expect("repository");
    forge.fail_next(build_unreadable_answer("/pulls?state=all", 1_000).page("application/json", "[]"));
    forge
        .transfer_thread("acme/shop", 1, ("acme/other", 220))
        .expect("transfer");
    let h = start_polling(&forge, "ci: {required: auto}\n").await;
    let count = |part: &str, status: u16| {
        let requests = forge.requests().into_iter();
        let found = requests.filter(|request| request.path.contains(part) && request.status == status);
        found.count()
    };
    let listed = async |more: usize| {
        let before = count("/pulls?state=all", 200);
        let enough = async || (count("/pulls?state=all", 200) >= before + more).then_some(());
        poll_until("listings", DEADLINE, enough).await.expect("listings");
    };
    // Only pull requests that are recorded after the first round are read without a listing.
    listed(1).await;
    for record in &ours {
        h.keep(record).await;
    }
    let moved = h.trigger("ENG-1").await;
    assert_eq!(moved.key, TriggerKey::new("moved:acme/shop#1"));
    let TriggerReason::PullRequest(PullRequestEvent::Closed(end)) = &moved.reason else {
        panic!("{moved:?}");
    };
    assert_eq!(end.moved_to.as_deref(), Some("acme/other#220"));
    let reads = count("/pulls/1", 301);
    listed(3).await;
    assert_eq!(count("/pulls/1", 301), reads, "polls stop asking for it");
    // A late webhook finds the same end.
    let payload = build_close_payload(1, "feat/ENG-1-x");
    h.github_event("pull_request", "d1", &payload).await;
    let read = async || (count("/pulls/1", 301) > reads).then_some(());
    poll_until("the read for the webhook", DEADLINE, read)
        .await
        .expect("read");
    listed(2).await;
    assert_eq!(count("/pulls/1", 301), reads + 1, "the delivery is not repeated");
    assert_eq!(h.triggers("ENG-1").await.len(), 1);
    let (_, letters) = h.get("/v1/dead", VIEWER).await;
    assert_eq!(letters, json!([]));
    h.stop().await;
}

/// Row of an issue whose run a planner has begun.
fn build_begun_row(ticket: &TicketKey) -> TicketRow {
    let run = RunId::new(ticket.clone(), 5);
    TicketRow {
        cursor: 5,
        pending: vec![PendingRun::new(run.clone(), Job::Answer, Lane::Talk)],
        runs: vec![RunSummary {
            id: run,
            job: Job::Answer,
            status: RunStatus::Parked {
                waits_for: WaitCondition::Answer,
            },
            started_at: Timestamp::default(),
            finished_at: None,
            turns: 0,
        }],
        ..TicketRow::default()
    }
}

#[tokio::test]
async fn issue_that_left_ends_its_work_once() {
    let forge = start_forge().await;
    let made = forge.create_repository("acme/other", &[("a.txt", "a\n")]);
    made.expect("repository");
    let [moved, hidden, deleted, present] = [(); 4].map(|()| {
        let opened = forge.open_issue_as("acme/shop", "mia", "Cart", "");
        opened.expect("issue")
    });
    let transfer = |number| {
        let transferred = forge.transfer_issue("acme/shop", number, "acme/other", "mia");
        transferred.expect("transfer")
    };
    let to = format!("acme/other#{}", transfer(moved));
    transfer(hidden);
    forge.hide_transfer("acme/shop", hidden).expect("transferred");
    forge.delete_issue("acme/shop", deleted, "mia").expect("issue");
    let h = start_polling(&forge, "ci: {required: auto}\n").await;
    let ticket_of = |number: u64| -> TicketKey {
        let ticket = format!("github:acme/shop#{number}");
        ticket.parse().expect("ticket")
    };
    for number in [moved, hidden, deleted, present] {
        let ticket = ticket_of(number);
        let rows = h.queue.table::<TicketRow>(KeyValueBucket::Tickets);
        let put = rows
            .put(&ticket.to_string(), &build_begun_row(&ticket), None)
            .await;
        put.expect("row");
    }
    let triggers = async |number: u64| {
        let found = h.queue.triggers().read_after(&ticket_of(number), 0).await;
        let found = found.expect("triggers").into_iter();
        found.map(|(_, trigger)| trigger.reason).collect::<Vec<_>>()
    };
    let departures = [
        (moved, TicketDeparture::Transferred { to: Some(to) }),
        (hidden, TicketDeparture::Transferred { to: None }),
        (deleted, TicketDeparture::Deleted),
    ];
    for (number, departure) in &departures {
        let found = async || Some(triggers(*number).await).filter(|found| !found.is_empty());
        let found = poll_until("the departure", DEADLINE, found)
            .await
            .expect("trigger");
        assert_eq!(found, [TriggerReason::TicketLeft(departure.clone())]);
    }
    let hidden_path = format!("/issues/{hidden}");
    let requests = forge.requests().into_iter();
    let missed = requests.filter(|request| request.path.ends_with(&hidden_path) && request.status == 404);
    assert_eq!(missed.count(), 2, "the second read confirms the first one");
    // Further rounds read the issue that is still there, and find each departure once.
    let path = format!("/issues/{present}");
    let reads = || {
        let requests = forge.requests().into_iter();
        let reads = requests.filter(|request| request.path.ends_with(&path) && request.status < 400);
        reads.count()
    };
    let before = reads();
    let read = async || (reads() >= before + 2).then_some(());
    poll_until("further rounds", DEADLINE, read).await.expect("reads");
    for (number, _) in &departures {
        assert_eq!(triggers(*number).await.len(), 1);
    }
    assert!(triggers(present).await.is_empty());
    let (_, letters) = h.get("/v1/dead", VIEWER).await;
    assert_eq!(letters, json!([]));
    h.stop().await;
}

#[tokio::test]
async fn call_about_departed_issue_is_refused() {
    let forge = start_forge().await;
    let opened = forge.open_issue_as("acme/shop", "mia", "Cart", "");
    let number = opened.expect("issue");
    forge.delete_issue("acme/shop", number, "mia").expect("issue");
    let h = start_polling(&forge, "ci: {required: auto}\n").await;
    let key = format!("github:acme/shop#{number}");
    let ticket: TicketKey = key.parse().expect("ticket");
    let run = RunId::new(ticket.clone(), 5);
    let mut row = TicketRow {
        cursor: 5,
        ..TicketRow::default()
    };
    let pending = PendingRun::new(run.clone(), Job::Implement, Lane::Talk);
    row.open(pending, Timestamp::default());
    row.finish(&run, StopReason::TurnLimit { turns: 50 }, Timestamp::default());
    let rows = h.queue.table::<TicketRow>(KeyValueBucket::Tickets);
    rows.put(&key, &row, None).await.expect("row");
    let path = format!("/v1/tickets/github%3Aacme%2Fshop%23{number}/retry");
    // The first call finds the departure, and the second one knows it.
    for _ in 0..2 {
        let (status, answer) = h.post(&path, OPERATOR, &json!({}), None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{answer}");
        let found = h.queue.triggers().read_after(&ticket, 0).await;
        let found = found.expect("triggers").into_iter();
        let reasons: Vec<TriggerReason> = found.map(|(_, trigger)| trigger.reason).collect();
        assert_eq!(reasons, [TriggerReason::TicketLeft(TicketDeparture::Deleted)]);
    }
    h.stop().await;
}

/// Trigger keys of a ticket without checks on its pull request, after some polls.
async fn poll_without_checks(defaults: &str, polls: usize) -> Vec<String> {
    let (forge, ours) = start_forge_with_pulls(1).await;
    let h = Harness::start_with(1, |config| {
        config.github_reader.api_url = forge.api_url();
        config.github_reader.token = Some(github::READER_TOKEN.to_owned().into());
        config.ingest.checks_absent_s = 1;
        std::fs::write(config.rules.dir.join("defaults.yaml"), defaults).expect("rules");
    })
    .await;
    h.keep(&ours[0]).await;
    let polled = async || {
        let requests = forge.requests().into_iter();
        let listings = requests.filter(|request| request.path.contains("/pulls?state=all"));
        (listings.count() >= polls).then_some(())
    };
    poll_until("polls", DEADLINE, polled).await.expect("polls");
    let keys = h.trigger_keys("ENG-1").await;
    h.stop().await;
    keys
}

#[tokio::test]
async fn head_without_checks_is_reported_once() {
    let (keys, none) = tokio::join!(
        poll_without_checks("ci: {required: auto}\n", 6),
        poll_without_checks("ci: {required: true}\n", 6),
    );
    assert_eq!(keys.len(), 1, "{keys:?}");
    assert!(
        keys[0].starts_with("checks:acme/shop:") && keys[0].ends_with(":absent"),
        "{keys:?}"
    );
    assert!(none.is_empty(), "{none:?}");
}

#[tokio::test]
async fn late_close_of_reopened_pull_request_ignored() {
    let h = Harness::start(NEVER).await;
    let branch = "feat/ENG-1-cart";
    h.keep(&build_branch_record("jira:ENG-1", branch, Some(7))).await;
    h.github.open(7, branch, "fix", SHA);
    let closed = build_close_payload(7, branch);
    h.github_event("pull_request", "d1", &closed).await;
    h.github.merge(7, "mia");
    h.github_event("pull_request", "d2", &closed).await;
    h.trigger("ENG-1").await;
    assert_eq!(h.trigger_keys("ENG-1").await, ["merged:acme/shop#7"]);
    h.stop().await;
}
