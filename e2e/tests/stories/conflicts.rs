//! Conflicts with the base branch: a merge that keeps both sides, and conflicts for maintainers.

use domain::StopReason;
use e2e::{
    TestWorld,
    cart_conflict::{
        BOTH, CART, OURS, RESOLUTION, THEIRS, build_cart, build_resolution_edit, build_resolution_finish,
        name_both_lines,
    },
};
use serde_json::json;
use testkit::{ScriptStep, fixture, github::RunConclusion};

use crate::{
    comment_with, complete_ticket, end_of, list_commit_subjects, only_pull_request, start_default_world,
};

/// Completes the first run, and changes the same line on the base branch as a user. Returns the ticket and the head
/// before the resolution.
async fn start_conflict(script: Vec<ScriptStep>) -> (TestWorld, String, String) {
    let world = start_default_world().await;
    world.model.set_script_of(RESOLUTION, "", script);
    let key = complete_ticket(&world).await;
    let before = only_pull_request(&world).head_sha;
    world
        .github
        .commit(
            fixture::REPOSITORY,
            "main",
            "Ignore negative prices",
            &[(CART, &build_cart(THEIRS))],
        )
        .unwrap();
    (world, key, before)
}

#[tokio::test(flavor = "multi_thread")]
async fn conflict_is_resolved_with_both_sides() {
    let mut script = build_resolution_edit(BOTH);
    script.extend([
        build_resolution_finish(&json!([])),
        build_resolution_finish(&name_both_lines()),
    ]);
    let (world, key, before) = start_conflict(script).await;
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    comment_with(&world, &key, "is resolved with commit").await;
    let pull = only_pull_request(&world);
    assert_ne!(pull.head_sha, before);
    let subjects = list_commit_subjects(&world);
    assert!(
        subjects.iter().any(|subject| subject.contains("Merge main into")),
        "{subjects:#?}"
    );
    let checks = [("unit", RunConclusion::Success, "")];
    world
        .github
        .run_checks(fixture::REPOSITORY, &pull.head_sha, &checks)
        .unwrap();
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    let merged = world.github.merge(fixture::REPOSITORY, pull.number, "ada");
    merged.expect("the sides do not conflict any more");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn silently_dropped_change_is_left_to_people() {
    let mut script = build_resolution_edit(OURS);
    script.extend((0..3).map(|_| build_resolution_finish(&json!([]))));
    let (world, key, before) = start_conflict(script).await;
    let reason = end_of(&world, &key, 1).await;
    assert!(matches!(reason, StopReason::ConflictLeft { .. }), "{reason:?}");
    let text = comment_with(&world, &key, "is not resolved").await;
    assert!(text.contains(CART), "{text}");
    assert_eq!(only_pull_request(&world).head_sha, before, "nothing was pushed");
    world.stop().await.unwrap();
}
