//! Pull requests that stay mergeable: a base that moves on, and a merge queue that throws one out.

use std::time::Duration;

use api::types::HealthView;
use domain::{StopReason, TicketKey, WithdrawalReason};
use e2e::{
    TestWorld,
    cart_conflict::{
        BOTH, CART, RESOLUTION, THEIRS, build_cart, build_resolution_edit, build_resolution_finish,
        name_both_lines,
    },
};
use testkit::{
    fixture::{self, REPOSITORY},
    github::{BranchRuleset, RulesetCondition, RunConclusion},
};

use crate::{
    comment_with, complete_check, complete_ticket, end_of, list_commit_subjects, only_pull_request,
    reviews::{REVIEW, build_note_steps, request_note},
    start_default_world, start_world_with_settings,
};

/// State of a pull request in the merge queue, in words.
const QUEUED: &str = "the merge queue tests it";

/// Opens a pull request that is ready for review, and returns the key of its ticket.
async fn open_ready_pull(world: &TestWorld) -> String {
    let key = complete_ticket(world).await;
    assert!(world.run_ci().await.unwrap());
    assert_eq!(end_of(world, &key, 1).await, StopReason::Completed);
    assert!(!only_pull_request(world).draft);
    key
}

/// Starts a world with a pull request that is ready for review.
async fn start_with_ready_pull() -> (TestWorld, String) {
    let world = start_default_world().await;
    let key = open_ready_pull(&world).await;
    (world, key)
}

/// Sets the conditions of the base branch.
fn require_on_base(world: &TestWorld, conditions: Vec<RulesetCondition>) {
    let ruleset = BranchRuleset {
        branches: vec!["main".to_owned()],
        conditions,
        ..BranchRuleset::default()
    };
    world.github.set_rulesets(REPOSITORY, &[ruleset]).unwrap();
}

/// Waits for a state of the pull request on its way to a merge, by its words.
async fn await_health(world: &TestWorld, key: &str, text: &str) -> HealthView {
    let ticket = TicketKey::jira(key).unwrap();
    let reached = async || {
        let seen = world.client.tickets().read(&ticket).await.ok()?;
        let health = seen.standing.into_iter().next()?.health?;
        (health.text == text).then_some(health)
    };
    world
        .until(&format!("the state {text:?}"), reached)
        .await
        .unwrap()
}

/// Reviews a queued pull request, and waits until the push of the change was refused twice.
async fn review_until_push_waits(world: &TestWorld, number: u64) {
    let comment = world.github.next_id() + 1;
    let script = build_note_steps(comment, "Please add a note on rounding.");
    world.model.set_script_of(REVIEW, "", script.into());
    let count_pushes = || {
        world
            .github
            .count_requests(|request| request.method == "POST" && request.path.ends_with("/git-receive-pack"))
    };
    let before = count_pushes();
    request_note(world, number);
    let refused = async || (count_pushes() >= before + 2).then_some(());
    world.until("two refused pushes", refused).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn outdated_base_is_updated_once() {
    let (world, key) = start_with_ready_pull().await;
    require_on_base(&world, vec![RulesetCondition::CurrentBase]);
    let first = only_pull_request(&world).head_sha;
    world
        .github
        .commit(REPOSITORY, "main", "Move on", &[("notes/moved.md", "On.\n")])
        .unwrap();
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    let pull = only_pull_request(&world);
    assert_ne!(pull.head_sha, first);
    assert!(!pull.draft, "our own update takes nothing back: {pull:#?}");
    let merges = list_commit_subjects(&world);
    let merges = merges
        .iter()
        .filter(|subject| subject.starts_with("Merge branch"));
    assert_eq!(merges.count(), 1);
    comment_with(&world, &key, "brings it up to date").await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_in_merge_queue_is_repaired() {
    let (world, key) = start_with_ready_pull().await;
    let script = fixture::build_repair_script("notes/rounding.md", "");
    world
        .model
        .set_script_of("Checks failed on the pull request", "", script);
    require_on_base(&world, vec![RulesetCondition::MergeQueue]);
    let pull = only_pull_request(&world);
    let commit = world.github.enqueue(REPOSITORY, pull.number, "rita").unwrap();
    let red = [(
        "notes",
        RunConclusion::Failure,
        "AssertionError: no note on rounding",
    )];
    world.github.run_checks(REPOSITORY, &commit, &red).unwrap();
    world
        .github
        .dequeue(REPOSITORY, pull.number, "CI_FAILURE", "github-merge-queue[bot]")
        .unwrap();
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    let repaired = only_pull_request(&world);
    assert_ne!(repaired.head_sha, pull.head_sha);
    comment_with(&world, &key, "The failing checks are repaired").await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn removal_by_person_is_reported_once() {
    let (world, key) = start_with_ready_pull().await;
    require_on_base(&world, vec![RulesetCondition::MergeQueue]);
    let number = only_pull_request(&world).number;
    world.github.enqueue(REPOSITORY, number, "rita").unwrap();
    world
        .github
        .dequeue(REPOSITORY, number, "MANUAL", "rita")
        .unwrap();
    comment_with(&world, &key, "it was removed from the merge queue").await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn conflict_in_merge_queue_is_resolved() {
    // A poll assesses the head after the resolution, because no webhook about the queue follows it.
    let world = start_world_with_settings(&[("INGEST__POLL_INTERVAL_S", "1")]).await;
    let key = open_ready_pull(&world).await;
    require_on_base(&world, vec![RulesetCondition::MergeQueue]);
    let mut script = build_resolution_edit(BOTH);
    script.push(build_resolution_finish(&name_both_lines()));
    world.model.set_script_of(RESOLUTION, "", script);
    let queued = only_pull_request(&world);
    world.github.enqueue(REPOSITORY, queued.number, "rita").unwrap();
    await_health(&world, &key, QUEUED).await;
    // The model waits until the story has read the conflict, which its resolution ends.
    world.model.set_latency(Duration::from_secs(600));
    // The queue itself finds the conflict, and removes the pull request.
    world
        .github
        .commit(
            REPOSITORY,
            "main",
            "Ignore negative prices",
            &[(CART, &build_cart(THEIRS))],
        )
        .unwrap();
    let conflict = await_health(&world, &key, "it conflicts with its base branch").await;
    assert_eq!(conflict.who.as_deref(), Some("journeyman"));
    world.model.set_latency(Duration::ZERO);
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    comment_with(&world, &key, "is resolved with commit").await;
    assert_ne!(only_pull_request(&world).head_sha, queued.head_sha);
    await_health(&world, &key, "no check has reported").await;
    complete_check(&world, "unit", RunConclusion::Success, "");
    assert_eq!(end_of(&world, &key, 3).await, StopReason::Completed);
    world.github.enqueue(REPOSITORY, queued.number, "rita").unwrap();
    await_health(&world, &key, QUEUED).await;
    world.github.merge(REPOSITORY, queued.number, "rita").unwrap();
    assert_eq!(end_of(&world, &key, 4).await, StopReason::Completed);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn push_waits_for_end_of_queue() {
    let (world, key) = start_with_ready_pull().await;
    let conditions = vec![RulesetCondition::CurrentBase, RulesetCondition::MergeQueue];
    require_on_base(&world, conditions);
    let queued = only_pull_request(&world);
    world.github.enqueue(REPOSITORY, queued.number, "rita").unwrap();
    await_health(&world, &key, QUEUED).await;
    world
        .github
        .commit(REPOSITORY, "main", "Move on", &[("notes/moved.md", "On.\n")])
        .unwrap();
    review_until_push_waits(&world, queued.number).await;
    assert_eq!(only_pull_request(&world).head_sha, queued.head_sha);
    world
        .github
        .dequeue(REPOSITORY, queued.number, "MANUAL", "rita")
        .unwrap();
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    comment_with(&world, &key, "The review of").await;
    complete_check(&world, "unit", RunConclusion::Success, "");
    assert_eq!(end_of(&world, &key, 3).await, StopReason::Completed);
    // The update of the base follows on the new head.
    assert_eq!(end_of(&world, &key, 4).await, StopReason::Completed);
    let subjects = list_commit_subjects(&world);
    assert_eq!(subjects.len(), 3, "{subjects:#?}");
    assert!(subjects[1].contains("note on rounding"), "{subjects:#?}");
    assert!(subjects[2].starts_with("Merge branch"), "{subjects:#?}");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn merge_by_queue_ends_waiting_push() {
    let (world, key) = start_with_ready_pull().await;
    require_on_base(&world, vec![RulesetCondition::MergeQueue]);
    let queued = only_pull_request(&world);
    world.github.enqueue(REPOSITORY, queued.number, "rita").unwrap();
    review_until_push_waits(&world, queued.number).await;
    world.github.merge(REPOSITORY, queued.number, "rita").unwrap();
    let why = WithdrawalReason::Merged;
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Withdrawn { why });
    let branches = world.github.branches(REPOSITORY);
    assert_eq!(branches[&queued.head], queued.head_sha, "nothing is pushed");
    assert_eq!(end_of(&world, &key, 3).await, StopReason::Completed);
    comment_with(&world, &key, "merged").await;
    world.stop().await.unwrap();
}
