//! Review programs, Journeyman's own review, skip labels, and users' pull requests that name a ticket.

use domain::StopReason;
use e2e::TestWorld;
use serde_json::json;
use testkit::{
    ScriptStep,
    fixture::{self, REPOSITORY},
    github::RunConclusion,
};

use crate::{
    comment_with, complete_check, complete_first_run, end_of, list_commit_subjects, only_pull_request,
    start_default_world,
};

/// Start of the first message of each job.
const REPAIR: &str = "Checks failed on the pull request";
const REVIEW: &str = "A review of the pull request";
const OUR_REVIEW: &str = "Review this pull request";

async fn count_runs(world: &TestWorld, key: &str) -> usize {
    let ticket = domain::TicketKey::jira(key).unwrap();
    world.client.runs().recent(Some(&ticket)).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_waits_while_skip_label_remains() {
    let (world, key) = complete_first_run("").await;
    let script = fixture::build_repair_script("notes/rounding.md", "no note on rounding");
    world.model.set_script_of(REPAIR, "", script);
    let number = only_pull_request(&world).number;
    let label = |labels: &[&str]| {
        world
            .github
            .set_pull_request_labels(REPOSITORY, number, labels, "rita")
            .unwrap();
    };
    label(&["skip-dispatch"]);
    let log = "AssertionError: no note on rounding";
    complete_check(&world, "notes", RunConclusion::Failure, log);
    label(&[]);
    complete_check(&world, "notes", RunConclusion::Failure, log);
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    comment_with(&world, &key, "The failing checks are repaired").await;
    assert_eq!(
        count_runs(&world, &key).await,
        2,
        "the first red checks started nothing"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn review_program_named_by_rules_is_addressed() {
    let (world, key) = complete_first_run("review:\n  agents: ['lint[bot]']\n").await;
    complete_check(&world, "notes", RunConclusion::Success, "");
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    let number = only_pull_request(&world).number;
    // The unknown program causes no run, so the next run belongs to the program in the rules.
    let lines = [("shop/cart.py", 3, "Please add a note on rounding.")];
    let review = |by: &str| {
        world
            .github
            .review_lines(REPOSITORY, number, by, ("commented", ""), &lines)
            .unwrap();
    };
    review("other[bot]");
    let next = world.github.next_id();
    let script = fixture::build_note_script(
        "A program wrote this review",
        &json!([{"id": next + 1, "disposition": "changed", "reply": "It is in notes."}]),
    );
    world.model.set_script_of(REVIEW, "", script);
    review("lint[bot]");
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    assert_eq!(list_commit_subjects(&world).len(), 2);
    assert_eq!(count_runs(&world, &key).await, 3);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn own_review_is_worked_on_once() {
    let rules = "pull_request:\n  reviewer: journeyman-agent\n  self_review: true\n";
    let (world, key) = complete_first_run(rules).await;
    let pull = only_pull_request(&world);
    let patch = world.github.diff(REPOSITORY, &pull.base, &pull.head_sha).unwrap();
    let line = added_line(&patch, "shop/cart.py");
    let finding = json!({"summary": "Looks right.", "comments": [{"path": "shop/cart.py", "line": line,
        "trigger": "A reader", "why": "Nothing says how it is rounded.", "weight": "blocking"}]});
    world.model.set_script_of(
        OUR_REVIEW,
        "",
        vec![
            ScriptStep::call("read_file", json!({"path": "shop/cart.py"})),
            ScriptStep::call("submit_comments", finding),
        ],
    );
    complete_check(&world, "notes", RunConclusion::Success, "");
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    let reviewed = world.until("our review", async || {
        let threads = world.github.threads(REPOSITORY, pull.number).ok()?;
        threads.first().copied()
    });
    let thread = reviewed.await.unwrap();
    // The changed head is reviewed again, maybe before the end of this story.
    let content = json!({"summary": "Looks right.", "comments": []});
    let script = vec![ScriptStep::call("submit_comments", content)];
    world.model.set_script_of(OUR_REVIEW, "", script);
    let script = fixture::build_note_script(
        "",
        &json!([{"id": thread, "disposition": "changed", "reply": "It is in notes."}]),
    );
    world.model.set_script_of(REVIEW, "", script);
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    assert_eq!(list_commit_subjects(&world).len(), 2);
    let reviews = world.github.reviews(REPOSITORY, pull.number).unwrap();
    assert_eq!(reviews[0].state, "commented", "nobody judges what is his own");
    world.stop().await.unwrap();
}

/// Returns the number of the first line of a file that a diff adds.
fn added_line(diff: &str, path: &str) -> u64 {
    let start = diff.find(&format!("+++ b/{path}")).unwrap();
    let mut number = 0;
    for line in diff[start..].lines().skip(1) {
        if let Some(header) = line.strip_prefix("@@ -") {
            let new = header.split('+').nth(1).unwrap();
            number = new.split([',', ' ']).next().unwrap().parse().unwrap();
        } else if line.starts_with('+') {
            return number;
        } else if !line.starts_with('-') {
            number += 1;
        }
    }
    panic!("{path} has no new line: {diff}")
}

#[tokio::test(flavor = "multi_thread")]
async fn work_resumes_after_users_pull_request_closes() {
    let world = start_default_world().await;
    let key = world.file_ticket();
    let files = [("notes/mine.md", "Mine.\n")];
    world.github.commit(REPOSITORY, "mine", "Mine", &files).unwrap();
    let title = format!("{key}: mine");
    let number = world
        .github
        .open_pull_request_as(REPOSITORY, "sam", "mine", &title, "")
        .unwrap();
    world.ask_for_work(&key).unwrap();
    comment_with(&world, &key, "is open for it").await;
    assert!(world.model.calls().is_empty());
    world.github.close(REPOSITORY, number, "sam").unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let ours = world.github.pull_requests(fixture::REPOSITORY);
    assert_eq!(ours.len(), 2, "ours came after the person's: {ours:#?}");
    world.stop().await.unwrap();
}
