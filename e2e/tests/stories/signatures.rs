//! Repositories that require signed commits: from the ticket to a pull request that people can merge.

use e2e::TestWorld;
use testkit::{
    fixture,
    github::{BranchRuleset, RulesetCondition, SIGNING_KEY, SIGNING_PUBLIC_KEY},
};

use crate::{complete_ticket, only_pull_request, start_default_world, start_world_with_settings};

/// Requires signatures on the target branch and on ours.
fn require_signatures(world: &TestWorld) {
    let ruleset = BranchRuleset {
        branches: vec!["*".to_owned()],
        conditions: vec![RulesetCondition::SignedCommits],
        ..BranchRuleset::default()
    };
    world
        .github
        .set_rulesets(fixture::REPOSITORY, &[ruleset])
        .unwrap();
}

/// Plays a ticket, and asserts that its pull request has one signed commit and no foreign push.
async fn play_signed_ticket(world: &TestWorld) {
    let key = complete_ticket(world).await;
    let pull = only_pull_request(world);
    let verdict = world.github.signature_of(fixture::REPOSITORY, &pull.head_sha);
    assert_eq!(verdict.unwrap(), "valid");
    let (_, parents) = world
        .github
        .tree_and_parents(fixture::REPOSITORY, &pull.head_sha)
        .unwrap();
    let branches = world.github.branches(fixture::REPOSITORY);
    assert_eq!(parents, [branches["main"].clone()]);
    let comments = world.jira.comments(&key);
    let contains = |text: &str| comments.iter().any(|comment| comment.text.contains(text));
    assert!(
        !contains("pushed to the branch"),
        "our own commit is not a foreign push: {comments:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn app_delivers_signed_pull_request() {
    let world = start_default_world().await;
    require_signatures(&world);
    play_signed_ticket(&world).await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn key_delivers_signed_pull_request() {
    let world = start_world_with_settings(&[("REPORTER__SIGNING__PRIVATE_KEY", SIGNING_KEY)]).await;
    world
        .github
        .add_signing_key(fixture::REPOSITORY, SIGNING_PUBLIC_KEY)
        .unwrap();
    require_signatures(&world);
    play_signed_ticket(&world).await;
    world.stop().await.unwrap();
}
