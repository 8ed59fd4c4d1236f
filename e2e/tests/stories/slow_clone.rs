//! First clone over a slow link that breaks twice. It resumes, the ticket shows its progress, and the work
//! starts when the base branch is complete.

use std::fmt::Write as _;
use std::time::Duration;

use domain::StopReason;
use testkit::github::SlowLink;
use testkit::{fixture, poll_until};

use crate::{end_of, list_ticket_comments, start_default_world, start_world_with_settings};

/// Size of a repository, and the speed of its link.
struct SlowClone {
    files: u32,
    bytes_per_second: u64,
    /// Time limit of the clone.
    patience: Duration,
}

/// Bytes of one file.
const FILE: u32 = 100_000;

impl SlowClone {
    /// Returns 400 s at 100 kB/s if `JOURNEYMAN_WHOLE_STORIES` is set (`make whole-stories`), and a smaller
    /// sample otherwise.
    fn from_environment() -> Self {
        match std::env::var_os("JOURNEYMAN_WHOLE_STORIES") {
            Some(_) => Self {
                files: 500,
                bytes_per_second: 100_000,
                patience: Duration::from_secs(900),
            },
            None => Self {
                files: 40,
                // Long enough for a progress comment: the git gate reports the clone's progress after 20 s.
                bytes_per_second: 60_000,
                patience: Duration::from_secs(300),
            },
        }
    }
}

/// Generates hexadecimal digits that compress to about half.
fn generate_noise(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut text = String::new();
    while text.len() < FILE as usize {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        writeln!(text, "{state:016x}").unwrap();
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_slow_clone_resumes_to_end() {
    let clone = SlowClone::from_environment();
    let world = start_default_world().await;
    let files: Vec<_> = (0..clone.files)
        .map(|number| {
            (
                format!("assets/{number:03}.txt"),
                generate_noise(u64::from(number) + 1),
            )
        })
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let committed = world
        .github
        .commit(fixture::REPOSITORY, "main", "Many assets", &files);
    committed.unwrap();
    // Lower bound of the transferred bytes.
    let size = u64::from(clone.files * FILE / 2);
    world.github.set_link(SlowLink {
        bytes_per_second: clone.bytes_per_second,
        interruptions: vec![size / 8, size / 8],
    });
    let key = world.ask().unwrap();
    let mut is_shown = false;
    poll_until("the whole clone", clone.patience, async || {
        is_shown |= list_ticket_comments(&world, &key)
            .iter()
            .any(|comment| comment.contains("first clone"));
        let (passed, interruptions) = world.github.line();
        let has_begun = world.github.pull_requests(fixture::REPOSITORY).len() == 1;
        (has_begun && interruptions == 0).then_some(passed)
    })
    .await
    .unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let (passed, _) = world.github.line();
    assert!(passed >= size, "{passed} of {size}");
    assert!(
        passed < size * 5 / 4 + 200_000,
        "what had come was sent again: {passed} of {size}"
    );
    assert!(is_shown, "{:#?}", list_ticket_comments(&world, &key));
    world.stop().await.unwrap();
}

#[expect(clippy::print_stdout, reason = "the figures are shown with `--nocapture`")]
#[tokio::test(flavor = "multi_thread")]
async fn large_repository_is_worked_on_before_its_history() {
    const COMMITS: u32 = 60;
    let world = start_world_with_settings(&[("GIT__STEPS_FROM_MIB", "0")]).await;
    for number in 0..COMMITS {
        let content = generate_noise(u64::from(number) + 1);
        let files = [("assets/map.txt", content.as_str())];
        let committed = world
            .github
            .commit(fixture::REPOSITORY, "main", "Draw the map", &files);
        committed.unwrap();
    }
    // Lower bounds of the bytes of the files and of the whole history.
    let (files, whole) = (u64::from(FILE / 2), u64::from(COMMITS * FILE / 2));
    world.github.set_link(SlowLink {
        // The whole history takes 50 s, far longer than the way to the first model call on a loaded machine.
        bytes_per_second: 60_000,
        // The first one interrupts the files, the others interrupt steps of the history.
        interruptions: vec![files / 2, files * 4, files * 8],
    });
    let key = world.ask().unwrap();
    let before_work = poll_until("the first model call", Duration::from_secs(120), async || {
        let (passed, _) = world.github.line();
        (world.model.call_count() > 0).then_some(passed)
    });
    let before_work = before_work.await.unwrap();
    println!("{before_work} bytes before the first model call, {whole} bytes of history");
    assert!(before_work < whole, "{before_work} of {whole}");
    world.github.set_link_speed(400_000);
    // The push and the pull request do not wait for the history.
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    assert_eq!(world.github.pull_requests(fixture::REPOSITORY).len(), 1);
    let complete = poll_until("the whole history", Duration::from_secs(120), async || {
        let (passed, interruptions) = world.github.line();
        (passed >= whole && interruptions == 0).then_some(passed)
    });
    let passed = complete.await.unwrap();
    // Each interruption loses at most what the link carried of that step.
    assert!(
        passed < whole * 5 / 4 + files * 16 + 400_000,
        "finished steps were sent again: {passed} of {whole}"
    );
    world.stop().await.unwrap();
}
