//! Tests the resources of a separate executor process after many commands.

use std::fs;

use super::{process::Process, *};

const COMMANDS: u32 = 1000;

/// Returns the numbers of descriptors and mounts of the process.
fn count_held_resources(process: &Process) -> (usize, usize) {
    let folder = PathBuf::from(format!("/proc/{}", process.0.id()));
    let mounts = fs::read_to_string(folder.join("mountinfo")).unwrap();
    (
        fs::read_dir(folder.join("fd")).unwrap().count(),
        mounts.lines().count(),
    )
}

/// Returns the number of its children, including zombies.
fn count_children(process: &Process) -> usize {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.0.id())).unwrap();
    let of_task = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
    tasks
        .map(|task| of_task(task.unwrap()).split_whitespace().count())
        .sum()
}

async fn wait_until_holds(what: &str, holds: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(tokio::time::Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousand_commands_leak_no_resources() {
    // Indexing in the background would open files too.
    let settings = "slots = 1\nindex = false\n";
    let start = process::start_process("error", |_, lines, _| lines.push_str(settings));
    let (world, process) = start.await;
    let session = world.open(1).await;
    let run = async |number: u32| {
        let input = json!({ "command": "sleep 60 & echo done" });
        assert!(
            session
                .ok(&number.to_string(), "run_command", input)
                .await
                .content
                .contains("done")
        );
    };
    for number in 0..20 {
        run(number).await;
    }
    wait_until_holds("one launcher waits", || count_children(&process) == 1).await;
    let before = count_held_resources(&process);
    for number in 20..COMMANDS {
        run(number).await;
    }
    wait_until_holds("one launcher waits after all of them", || {
        count_children(&process) == 1
    })
    .await;
    wait_until_holds("descriptors and mounts are as before", || {
        count_held_resources(&process) == before
    })
    .await;
    session.close().await;
    wait_until_holds("the launcher goes with its workspace", || {
        count_children(&process) == 0
    })
    .await;
    println!("| 34 a thousand commands: no descriptor, mount, process | any | held |");
}

#[tokio::test(flavor = "multi_thread")]
async fn launcher_starts_with_first_tool_call() {
    let settings = "slots = 2\nindex = false\n";
    let start = process::start_process("error", |_, lines, _| lines.push_str(settings));
    let (world, process) = start.await;
    world.open(1).await.close().await;
    let session = world.open(2).await;
    wait_until_holds("no launcher waits", || count_children(&process) == 0).await;
    session.ok("0", "list_directory", json!({})).await;
    wait_until_holds("one launcher waits", || count_children(&process) == 1).await;
    session.close().await;
    wait_until_holds("the launcher goes with its workspace", || {
        count_children(&process) == 0
    })
    .await;
}
