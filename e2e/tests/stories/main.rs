//! Whole-system stories with real NATS, Redis, git, gRPC and HTTP. Only Jira, GitHub and the model are
//! stand-ins.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that fails fails its test"
)]

mod adversaries;
mod agents;
mod background;
mod bad_input;
mod budgets;
mod by_hand;
mod calls;
mod crash_loop;
mod data_center;
mod decisions;
mod discussions;
mod doors;
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
mod meaning;
mod measured;
mod models;
mod people;
mod phases;
mod proof;
mod questions;
mod recovery;
mod repairs;
mod requested;
mod reviews;
mod rolling;
mod runners;
mod seen;
mod signals;
mod skips;
mod slow_clone;
mod snapshots;
mod spend;
mod steering;
mod strangers;
mod triage;
mod triggers;
mod upgrades;
mod whole;

use domain::{Fact, StopReason};
use e2e::World;
use testkit::{fixture, github::PullRequestState};

/// Waits for the end of a ticket's nth run (from 0) and returns its reason.
async fn end_of(world: &World, key: &str, nth: usize) -> StopReason {
    let run = world.run(key, nth).await.unwrap();
    world.finished(&run).await.unwrap().1
}

/// Waits until a ticket's nth run (from 0) waits for the model.
async fn thinking(world: &World, key: &str, nth: usize) {
    let run = world.run(key, nth).await.unwrap();
    let asked = async || {
        let journal = world.client.journal(&run).await.ok()?;
        matches!(journal.last()?.fact, Fact::ModelRequested { .. }).then_some(())
    };
    world.until("the model at work", asked).await.unwrap();
}

/// Returns the only pull request of the story's repository.
fn only_pull_request(world: &World) -> PullRequestState {
    let pulls = world.github.pull_requests(fixture::REPOSITORY);
    assert_eq!(pulls.len(), 1, "{pulls:#?}");
    pulls.into_iter().next().unwrap()
}

/// Returns the commit subjects of the only pull request, oldest first.
fn commits(world: &World) -> Vec<String> {
    let number = only_pull_request(world).number;
    world.github.subjects(fixture::REPOSITORY, number).unwrap()
}

/// Returns the texts of the ticket's comments.
fn comments(world: &World, key: &str) -> Vec<String> {
    world
        .jira
        .comments(key)
        .into_iter()
        .map(|comment| comment.text)
        .collect()
}

/// Waits for a comment that contains `text`.
async fn comment_with(world: &World, key: &str, text: &str) -> String {
    let found = world
        .until(&format!("a comment with {text:?}"), async || {
            comments(world, key)
                .into_iter()
                .find(|comment| comment.to_lowercase().contains(&text.to_lowercase()))
        })
        .await;
    found.unwrap_or_else(|error| panic!("{error}; there are {:#?}", comments(world, key)))
}
