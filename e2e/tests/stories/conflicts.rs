//! Conflicts with the base branch: a merge that keeps both sides, and conflicts for maintainers.

use domain::StopReason;
use e2e::{Options, TestWorld};
use serde_json::{Value, json};
use testkit::{ScriptStep, fixture, github::RunConclusion};

use crate::{comment_with, end_of, list_commit_subjects, only_pull_request};

/// Start of the first message of a resolution.
const RESOLUTION: &str = "The pull request that was made for this ticket conflicts with main";
const FILE: &str = "shop/cart.py";
const BEFORE: &str = "full = sum(line.price for line in self._lines)";
const OURS: &str = "full = sum(line.price * line.quantity for line in self._lines)";
const THEIRS: &str = "full = sum(max(line.price, 0) for line in self._lines)";
const BOTH: &str = "full = sum(max(line.price, 0) * line.quantity for line in self._lines)";

/// Returns the file of the cart with another line for the sum.
fn build_cart(line: &str) -> String {
    let files = fixture::list_shop_files();
    let (_, text) = files.iter().find(|(path, _)| *path == FILE).unwrap();
    assert!(text.contains(BEFORE));
    text.replace(BEFORE, line)
}

fn build_finish(dropped: &Value) -> ScriptStep {
    ScriptStep::call(
        "finish",
        json!({"type": "fix", "scope": "cart", "title": "Merge main into the quantity fix",
            "summary": "The sum multiplies by the quantity and ignores negative prices.", "dropped": dropped}),
    )
}

/// Completes the first run, and changes the same line on the base branch as a user. Returns the ticket and the head
/// before the resolution.
async fn start_conflict(script: Vec<ScriptStep>) -> (TestWorld, String, String) {
    let world = TestWorld::start(Options::default()).await.unwrap();
    world.model.set_script_of(RESOLUTION, "", script);
    let key = world.ask().unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let before = only_pull_request(&world).head_sha;
    world
        .github
        .commit(
            fixture::REPOSITORY,
            "main",
            "Ignore negative prices",
            &[(FILE, &build_cart(THEIRS))],
        )
        .unwrap();
    (world, key, before)
}

#[tokio::test(flavor = "multi_thread")]
async fn conflict_is_resolved_with_both_sides() {
    let reasons =
        [OURS, THEIRS].map(|quote| json!({"path": FILE, "quote": quote, "reason": "One line has both."}));
    let script = vec![
        ScriptStep::call("read_file", json!({"path": FILE})),
        ScriptStep::call("write_file", json!({"path": FILE, "content": build_cart(BOTH)}))
            .expecting("<<<<<<< pull request"),
        build_finish(&json!([])),
        build_finish(&json!(reasons)),
    ];
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
    assert_eq!(world.model.violations(), Vec::<String>::new());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn silently_dropped_change_is_left_to_people() {
    let mut script = vec![
        ScriptStep::call("read_file", json!({"path": FILE})),
        ScriptStep::call("write_file", json!({"path": FILE, "content": build_cart(OURS)})),
    ];
    script.extend((0..3).map(|_| build_finish(&json!([]))));
    let (world, key, before) = start_conflict(script).await;
    let reason = end_of(&world, &key, 1).await;
    assert!(matches!(reason, StopReason::ConflictLeft { .. }), "{reason:?}");
    let text = comment_with(&world, &key, "is not resolved").await;
    assert!(text.contains(FILE), "{text}");
    assert_eq!(only_pull_request(&world).head_sha, before, "nothing was pushed");
    world.stop().await.unwrap();
}
