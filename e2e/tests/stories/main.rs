//! Whole-system stories with real NATS, Redis, git, gRPC and HTTP. Only Jira, GitHub and the model are
//! stand-ins.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that fails fails its test"
)]

mod adversaries;
mod agents;
mod attachments;
mod attributes;
mod automation;
mod background;
mod bad_input;
mod budgets;
mod calls;
mod channels;
mod conflicts;
mod crash_loop;
mod dashboard_metrics;
mod data_center;
mod decisions;
mod departures;
mod discussions;
mod egress;
mod endings;
mod exits;
mod forecast;
mod full_store;
mod happy;
mod hostile;
mod injection;
mod instances;
mod issues;
mod large_files;
mod locked;
mod longest_path;
mod manual_jobs;
mod mcp;
mod meaning;
mod mergeable;
mod models;
mod moved_tickets;
mod odd_repositories;
mod people;
mod phases;
mod proof;
mod questions;
mod recovery;
mod repairs;
mod requested_reviews;
mod requirements;
mod reviews;
mod rolling;
mod runners;
mod signals;
mod signatures;
mod skips;
mod slow_clone;
mod snapshots;
mod spend;
mod steering;
mod strangers;
mod tools;
mod transcripts;
mod triage;
mod triggers;
mod upgrades;
mod whole_loop;

use domain::{Fact, StopReason};
use e2e::{Options, TestWorld};
use testkit::{
    ScriptStep, fixture,
    github::{RunConclusion, StandInPullRequest, WRITER_LOGIN},
};

/// Login whose assignment or requested review asks Journeyman for work.
const AGENT: &str = "journeyman-agent";
/// Rules under which an assignment of [`AGENT`] requests work on an issue.
const ISSUE_RULES: &str = "issues:\n  assignee: journeyman-agent\n";

async fn start_default_world() -> TestWorld {
    TestWorld::start(Options::default()).await.unwrap()
}

/// Starts a world with these additional rules of its repository.
async fn start_world_with_rules(rules: impl Into<String>) -> TestWorld {
    let options = Options {
        rules: rules.into(),
        ..Options::default()
    };
    TestWorld::start(options).await.unwrap()
}

/// Starts a world with this script of the model.
async fn start_world_with_script(script: Vec<ScriptStep>) -> TestWorld {
    let options = Options {
        script: Some(script),
        ..Options::default()
    };
    TestWorld::start(options).await.unwrap()
}

/// Starts a world with these settings.
async fn start_world_with_settings(settings: &[(&'static str, &str)]) -> TestWorld {
    let settings = settings.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let options = Options {
        settings: settings.collect(),
        ..Options::default()
    };
    TestWorld::start(options).await.unwrap()
}

/// Options with polls alone, every second.
fn build_polled_options() -> Options {
    Options {
        settings: vec![("INGEST__POLL_INTERVAL_S", "1".to_owned())],
        no_webhooks: true,
        ..Options::default()
    }
}

/// Waits for the end of a ticket's nth run (from 0) and returns its reason.
async fn end_of(world: &TestWorld, key: &str, nth: usize) -> StopReason {
    let run = world.run(key, nth).await.unwrap();
    world.finished(&run).await.unwrap().1
}

/// Completes the first run of a new ticket and returns the ticket's key.
async fn complete_ticket(world: &TestWorld) -> String {
    let key = world.ask().unwrap();
    assert_eq!(end_of(world, &key, 0).await, StopReason::Completed);
    key
}

/// Starts a world with these additional rules of its repository, and completes the first run of a ticket.
async fn complete_first_run(rules: &str) -> (TestWorld, String) {
    let world = start_world_with_rules(rules).await;
    let key = complete_ticket(&world).await;
    (world, key)
}

/// Waits until a ticket's nth run (from 0) waits for the model.
async fn await_model_request(world: &TestWorld, key: &str, nth: usize) {
    let run = world.run(key, nth).await.unwrap();
    let asked = async || {
        let journal = world.client.runs().journal(&run).await.ok()?;
        matches!(journal.last()?.fact, Fact::ModelRequested { .. }).then_some(())
    };
    world.until("the model at work", asked).await.unwrap();
}

/// Opens the fixture's ticket as an issue of a user and returns its number and ticket name.
fn open_issue(world: &TestWorld, by: &str) -> (u64, String) {
    let (title, body) = fixture::describe_shop_ticket();
    let number = world.github.open_issue_as(fixture::REPOSITORY, by, title, body);
    let number = number.unwrap();
    (number, format!("github:{}#{number}", fixture::REPOSITORY))
}

/// Assigns an issue to [`AGENT`] as a user with write permission.
fn assign_issue(world: &TestWorld, number: u64) {
    let assigned = world
        .github
        .assign_issue(fixture::REPOSITORY, number, AGENT, "rita");
    assigned.unwrap();
}

/// Returns our comments on an issue or pull request.
fn list_own_comments(world: &TestWorld, number: u64) -> Vec<String> {
    let comments = world.github.comments(fixture::REPOSITORY, number).into_iter();
    let ours = comments.filter(|comment| comment.author == WRITER_LOGIN);
    ours.map(|comment| comment.body).collect()
}

/// Waits for a comment of ours that contains `text`, on an issue or pull request.
async fn await_own_comment(world: &TestWorld, number: u64, text: &str) -> String {
    let found = async || {
        let mut comments = list_own_comments(world, number).into_iter();
        comments.find(|comment| comment.contains(text))
    };
    let found = world.until(&format!("a comment with {text:?}"), found).await;
    found.unwrap_or_else(|error| panic!("{error}; there are {:#?}", list_own_comments(world, number)))
}

/// Waits until three more rounds of polls pass without a request whose path contains `part` and whose answer has
/// `status`.
async fn await_end_of_requests(world: &TestWorld, part: &str, status: u16) {
    // Each round lists the changed pull requests once, so three whole rounds lie between four listings.
    const LISTINGS: usize = 4;
    let listing = format!("/repos/{}/pulls?state=all", fixture::REPOSITORY);
    let earlier = world.github.count_requests(|_| true);
    let ended = async || {
        let (mut seen, mut listings) = (0, 0);
        world.github.visit_requests(|request| {
            seen += 1;
            if request.path.contains(part) && request.status == status {
                listings = 0;
            } else if seen > earlier && request.path.contains(&listing) {
                listings += 1;
            }
        });
        (listings >= LISTINGS).then_some(())
    };
    let what = format!("the end of requests for {part} with answer {status}");
    world.until(&what, ended).await.unwrap();
}

/// Returns the only pull request of the story's repository.
fn only_pull_request(world: &TestWorld) -> StandInPullRequest {
    let pulls = world.github.pull_requests(fixture::REPOSITORY);
    assert_eq!(pulls.len(), 1, "{pulls:#?}");
    pulls.into_iter().next().unwrap()
}

/// Completes a check of the head of the only pull request.
fn complete_check(world: &TestWorld, name: &str, conclusion: RunConclusion, log: &str) {
    let head = only_pull_request(world).head_sha;
    let checks = [(name, conclusion, log)];
    world
        .github
        .run_checks(fixture::REPOSITORY, &head, &checks)
        .unwrap();
}

/// Returns the commit subjects of the only pull request, oldest first.
fn list_commit_subjects(world: &TestWorld) -> Vec<String> {
    let number = only_pull_request(world).number;
    world.github.subjects(fixture::REPOSITORY, number).unwrap()
}

/// Returns the texts of the ticket's comments.
fn list_ticket_comments(world: &TestWorld, key: &str) -> Vec<String> {
    world
        .jira
        .comments(key)
        .into_iter()
        .map(|comment| comment.text)
        .collect()
}

/// Waits for a comment that contains `text`.
async fn comment_with(world: &TestWorld, key: &str, text: &str) -> String {
    let found = world
        .until(&format!("a comment with {text:?}"), async || {
            list_ticket_comments(world, key)
                .into_iter()
                .find(|comment| comment.to_lowercase().contains(&text.to_lowercase()))
        })
        .await;
    found.unwrap_or_else(|error| panic!("{error}; there are {:#?}", list_ticket_comments(world, key)))
}
