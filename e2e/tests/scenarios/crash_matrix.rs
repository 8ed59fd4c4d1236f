//! Crashes at failpoints of the stories: each story ends after the restart as it ends without a crash.

use tokio::process::Command;

use crate::lock_machine;

// Step of the sampled points. All points take more than twenty minutes on two cores, which `make crash-matrix` spends.
// An odd step alternates between points before and after an effect.
const STEP: &str = "13";
// Points of the longest story: a signed commit without a branch, before and after its record, and an updated base
// without a record.
const PICKED: [&str; 3] = [
    "reporter.signed_commit.create/after",
    "reporter.signed_branch.move/before",
    "reporter.pull_request.update_base/after",
];

#[tokio::test]
async fn stories_survive_crash_at_sampled_failpoints() {
    let picked = PICKED.into_iter().flat_map(|point| ["--pick", point]);
    let sample: Vec<&str> = ["--every", STEP].into_iter().chain(picked).collect();
    expect_survival(&sample).await;
}

/// With three servers an acknowledged message may remain visible for a moment. This samples points around
/// finished messages of the shortest story.
#[tokio::test]
async fn stories_survive_crashes_with_three_servers() {
    let finished = "queue.message.finish";
    let sample = [
        "--servers",
        "3",
        "--story",
        "straight",
        "--only",
        finished,
        "--every",
        "3",
    ];
    expect_survival(&sample).await;
}

async fn expect_survival(arguments: &[&str]) {
    let _machine = lock_machine().await;
    let mut matrix = Command::new(e2e::find_binary("scenarios").unwrap());
    let command = matrix.arg("crash-matrix").args(arguments).kill_on_drop(true);
    let played = command.output().await.unwrap();
    let table = String::from_utf8_lossy(&played.stdout);
    // The table is long and test logs are truncated, so only failures are printed.
    let failed: Vec<&str> = table
        .lines()
        .filter(|line| !line.contains(" survived "))
        .collect();
    let said = String::from_utf8_lossy(&played.stderr);
    assert!(played.status.success(), "{}\n{said}", failed.join("\n"));
    let last = table.lines().last().unwrap_or_default();
    let counts = last.strip_prefix("crash-matrix: ").unwrap_or(last);
    let points: Vec<_> = counts.split(' ').collect();
    assert_eq!((points[1], points[3]), ("points,", "survived,"), "{last}");
    assert_eq!(points[0], points[2], "{last}");
}
