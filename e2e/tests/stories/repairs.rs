//! Failing checks: automatic repair, its limits, and failures for maintainers.

use std::time::Duration;

use domain::StopReason;
use e2e::TestWorld;
use serde_json::{Value, json};
use testkit::{fixture, github::RunConclusion};

use crate::{
    await_model_request, comment_with, complete_check, complete_first_run, end_of, list_commit_subjects,
    only_pull_request,
};

/// Start of the first message of a repair.
const REPAIR: &str = "Checks failed on the pull request";

/// Longer than any step of a story, so a run that waits for this model is canceled.
const LONG: Duration = Duration::from_secs(600);

/// Waits until the pull request has another head.
async fn await_new_head(world: &TestWorld, before: &str) -> String {
    let found = world.until("a new head", async || {
        let head = only_pull_request(world).head_sha;
        (head != before).then_some(head)
    });
    found.await.unwrap()
}

/// Returns the API's result of the checks in a ticket's nth run.
async fn await_repair_result(world: &TestWorld, key: &str, nth: usize) -> Value {
    let run = world.run(key, nth).await.unwrap();
    world.finished(&run).await.unwrap();
    let reported = async || {
        let view = world.client.runs().read(&run).await.ok()?;
        view.repair.map(|repair| serde_json::to_value(repair).unwrap())
    };
    world.until("the result of the repair", reported).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_checks_are_repaired_until_ready() {
    let (world, key) = complete_first_run("").await;
    let script = fixture::build_repair_script("notes/rounding.md", "AssertionError: no note on rounding");
    world.model.set_script_of(REPAIR, "", script);
    let first = only_pull_request(&world).head_sha;
    complete_check(
        &world,
        "notes",
        RunConclusion::Failure,
        "AssertionError: no note on rounding",
    );
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    let second = await_new_head(&world, &first).await;
    comment_with(&world, &key, "The failing checks are repaired").await;
    let pull = only_pull_request(&world);
    let expected = json!({"fixed": true, "strategy": "model", "commit_sha": second, "error": null});
    assert_eq!(await_repair_result(&world, &key, 1).await, expected);
    assert!(pull.draft && list_commit_subjects(&world).len() == 2, "{pull:#?}");
    complete_check(&world, "notes", RunConclusion::Success, "");
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    assert!(!only_pull_request(&world).draft);
    assert_eq!(only_pull_request(&world).head_sha, second);
    world.stop().await.unwrap();
}

/// Pushes to the pull request's branch as a user.
fn push_user_commit(world: &TestWorld, file: &str) {
    let files = [(file, "By a person.\n")];
    world
        .github
        .commit(fixture::REPOSITORY, fixture::BRANCH, "Help out", &files)
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn users_push_ends_repair_for_its_checks() {
    let (world, key) = complete_first_run("").await;
    let script = fixture::build_repair_script("notes/rounding.md", "AssertionError: no note");
    world.model.set_script_of(REPAIR, "", script);
    let first = only_pull_request(&world).head_sha;
    world.model.set_latency(LONG);
    complete_check(&world, "notes", RunConclusion::Failure, "AssertionError: no note");
    await_model_request(&world, &key, 1).await;
    push_user_commit(&world, "notes/person.md");
    let theirs = await_new_head(&world, &first).await;
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Superseded);
    world.model.set_latency(Duration::ZERO);
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    assert_eq!(
        only_pull_request(&world).head_sha,
        theirs,
        "nothing was pushed beside theirs"
    );
    complete_check(&world, "notes", RunConclusion::Failure, "AssertionError: no note");
    assert_eq!(end_of(&world, &key, 3).await, StopReason::Completed);
    assert_eq!(
        list_commit_subjects(&world).len(),
        3,
        "on top of theirs: {:#?}",
        list_commit_subjects(&world)
    );
    assert_eq!(
        world.github.branches(fixture::REPOSITORY).len(),
        2,
        "the target and ours"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn external_check_is_repaired_with_teams_program() {
    let rules = "ci:\n  logs_command: [sh, -c, 'echo \"AssertionError: $CI_CHECK_NAME at $CI_CHECK_URL\"']\n";
    let (world, key) = complete_first_run(rules).await;
    let page = "https://circleci.example/jobs/7";
    let expected = format!("AssertionError: notes at {page}");
    let script = fixture::build_repair_script("notes/rounding.md", &expected);
    world.model.set_script_of(REPAIR, "", script);
    let first = only_pull_request(&world).head_sha;
    let red = RunConclusion::Failure;
    world
        .github
        .run_check_elsewhere(fixture::REPOSITORY, &first, "notes", red, page)
        .unwrap();
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    await_new_head(&world, &first).await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn repository_fixers_repair_without_model() {
    let rules = "ci:\n  auto_fix: [\"mkdir -p notes && echo Rounded. > notes/rounding.md\"]\n";
    let (world, key) = complete_first_run(rules).await;
    let calls = world.model.calls().len();
    let first = only_pull_request(&world).head_sha;
    // A user removes the note.
    world
        .github
        .commit(
            fixture::REPOSITORY,
            fixture::BRANCH,
            "Remove the note",
            &[("notes/rounding.md", "")],
        )
        .unwrap();
    let theirs = await_new_head(&world, &first).await;
    comment_with(&world, &key, "It is a draft until the checks of that commit pass").await;
    complete_check(
        &world,
        "notes",
        RunConclusion::Failure,
        "AssertionError: the note is empty",
    );
    let ours = await_new_head(&world, &theirs).await;
    comment_with(&world, &key, "repository's own repairs mended").await;
    let command = "mkdir -p notes && echo Rounded. > notes/rounding.md";
    let expected = json!({"fixed": true, "strategy": command, "commit_sha": ours, "error": null});
    assert_eq!(await_repair_result(&world, &key, 2).await, expected);
    let subjects = list_commit_subjects(&world);
    assert!(
        subjects.iter().any(|subject| subject.starts_with("style")),
        "{subjects:#?}"
    );
    assert_eq!(world.model.calls().len(), calls);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn infrastructure_failure_reruns_once_then_waits() {
    let (world, key) = complete_first_run("").await;
    let calls = world.model.calls().len();
    let full = "write: No space left on device";
    complete_check(&world, "build", RunConclusion::Failure, full);
    comment_with(&world, &key, "the machine or the network of the check failed").await;
    comment_with(&world, &key, "The failed jobs run again, once for this commit").await;
    end_of(&world, &key, 1).await;
    world
        .github
        .end_reruns(fixture::REPOSITORY, RunConclusion::Failure, full)
        .unwrap();
    comment_with(&world, &key, "they failed again in a second run").await;
    end_of(&world, &key, 2).await;
    assert_eq!(world.github.reruns(fixture::REPOSITORY).unwrap(), 1);
    assert_eq!(world.model.calls().len(), calls);
    assert!(only_pull_request(&world).draft);
    assert_eq!(list_commit_subjects(&world).len(), 1);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn passing_rerun_makes_pull_request_ready() {
    let (world, key) = complete_first_run("").await;
    complete_check(
        &world,
        "build",
        RunConclusion::Failure,
        "curl: Could not resolve host: pypi.org",
    );
    comment_with(&world, &key, "The failed jobs run again").await;
    world
        .github
        .end_reruns(fixture::REPOSITORY, RunConclusion::Success, "")
        .unwrap();
    end_of(&world, &key, 2).await;
    assert!(!only_pull_request(&world).draft);
    assert_eq!(list_commit_subjects(&world).len(), 1);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_forbid_rerun_of_failed_jobs() {
    let (world, key) = complete_first_run("ci:\n  rerun: false\n").await;
    complete_check(
        &world,
        "build",
        RunConclusion::Failure,
        "write: No space left on device",
    );
    comment_with(&world, &key, "so nothing was changed").await;
    assert_eq!(world.github.reruns(fixture::REPOSITORY).unwrap(), 0);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_on_target_branch_is_not_repaired() {
    let (world, key) = complete_first_run("").await;
    let main = world.github.branches(fixture::REPOSITORY)["main"].clone();
    let red = [("test", RunConclusion::Failure, "AssertionError: 1 != 2")];
    world.github.run_checks(fixture::REPOSITORY, &main, &red).unwrap();
    complete_check(&world, "test", RunConclusion::Failure, "AssertionError: 1 != 2");
    comment_with(&world, &key, "it fails on the target branch too").await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_failure_after_repair_waits_for_user() {
    let (world, key) = complete_first_run("").await;
    let script = fixture::build_repair_script("notes/rounding.md", "AssertionError: no note");
    world.model.set_script_of(REPAIR, "", script);
    let first = only_pull_request(&world).head_sha;
    complete_check(
        &world,
        "notes",
        RunConclusion::Failure,
        "AssertionError: no note on rounding at 12:31",
    );
    await_new_head(&world, &first).await;
    end_of(&world, &key, 1).await;
    complete_check(
        &world,
        "notes",
        RunConclusion::Failure,
        "AssertionError: no note on rounding at 12:55",
    );
    comment_with(&world, &key, "The same failure came again").await;
    assert_eq!(list_commit_subjects(&world).len(), 2);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_may_leave_red_checks_to_people() {
    let (world, key) = complete_first_run("ci:\n  repair: false\n").await;
    complete_check(&world, "lint", RunConclusion::Failure, "E501 line too long");
    let comment = comment_with(&world, &key, "Please look at the failed checks").await;
    assert!(comment.contains("lint"), "{comment}");
    end_of(&world, &key, 1).await;
    assert!(only_pull_request(&world).draft);
    assert_eq!(list_commit_subjects(&world).len(), 1);
    world.stop().await.unwrap();
}
