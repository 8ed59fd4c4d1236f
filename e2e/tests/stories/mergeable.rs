//! Pull requests that stay mergeable: a base that moves on, and a merge queue that throws one out.

use domain::StopReason;
use e2e::TestWorld;
use testkit::{
    fixture::{self, REPOSITORY},
    github::{BranchRuleset, RulesetCondition, RunConclusion},
};

use crate::{
    comment_with, complete_ticket, end_of, list_commit_subjects, only_pull_request, start_default_world,
};

/// Starts a world with a pull request that is ready for review.
async fn start_with_ready_pull() -> (TestWorld, String) {
    let world = start_default_world().await;
    let key = complete_ticket(&world).await;
    assert!(world.run_ci().await.unwrap());
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    assert!(!only_pull_request(&world).draft);
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
async fn removal_by_person_is_told_once() {
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
