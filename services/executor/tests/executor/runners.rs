//! Tests of workspaces whose files and commands belong to a runner under another user.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, chown},
        net::UnixStream,
        process::CommandExt,
    },
    path::Path,
    process::{Child, Command},
};

use super::*;

/// Numeric id of `nobody`, which owns nothing on any machine.
const USER: u32 = 65_534;

/// Runner process that is killed and reaped when dropped.
pub(super) struct Runner(Child);

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a runner in a folder of the world. The first start creates its program and place.
pub(super) fn start_runner(folder: &Path) -> (Runner, PathBuf) {
    let (place, program) = (folder.join("runner"), folder.join("launcher"));
    if !place.exists() {
        fs::create_dir(&place).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
        chown(&place, Some(USER), Some(USER)).unwrap();
        // Another process copies the program: a file that this process writes would stay open in children
        // that other threads start meanwhile, and `execve` would fail with `ETXTBSY`.
        let copied = std::process::Command::new("cp")
            .arg(env!("CARGO_BIN_EXE_launcher"))
            .arg(&program)
            .status();
        assert!(copied.unwrap().success());
    }
    let socket = place.join("socket");
    let mut command = Command::new(program);
    let me = fs::metadata("/proc/self").unwrap().uid().to_string();
    command.arg("runner").args([&socket, &place.join("work")]).arg(me);
    let runner = Runner(command.uid(USER).gid(USER).spawn().unwrap());
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while UnixStream::connect(&socket).is_err() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the runner does not start"
        );
        std::thread::yield_now();
    }
    (runner, socket)
}

/// Returns true when a runner can have a separate user here; prints a row for a check that is skipped.
pub(super) fn is_root(check: &str) -> bool {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        println!("| {check} | L2 | not run: takes root |");
    }
    is_root
}

pub(super) async fn start_runner_world(without: Vec<executor::ConfinementMechanism>) -> (World, Runner) {
    let mut runner = None;
    let world = World::start_as(1, |folder, settings| {
        let (started, socket) = start_runner(folder);
        settings.runner_socket = Some(socket);
        settings.min_level = domain::SandboxLevel::L2;
        settings.without = without;
        runner = Some(started);
    });
    (world.await, runner.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn runner_removes_leftovers_between_workspaces() {
    if !is_root("28 what commands leave outside") {
        return;
    }
    let (world, _runner) = start_runner_world(vec![executor::ConfinementMechanism::Namespaces]).await;
    let look = "find /dev/shm -user $(id -u); cat /proc/sysvipc/* | grep -cE \" $(id -u) +[0-9]+ +[0-9]+ +[0-9]+ \" || true";
    let leave = "mkdir /dev/shm/left-$$ && touch /dev/shm/left-$$/file; ipcmk -M 64; ipcmk -S 1; ipcmk -Q";
    let first = world.open(1).await;
    let left = first.shell("1", &format!("{leave}; {look}")).await;
    assert!(
        left.contains("/dev/shm/left-") && left.ends_with("\n3\n"),
        "{left}"
    );
    first.close().await;
    let second = world.open(2).await;
    assert_eq!(second.shell("1", look).await, "exit code: 0\n0\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn runner_commands_have_separate_user() {
    if !is_root("1 runs at a runner") {
        return;
    }
    for without in [vec![], vec![executor::ConfinementMechanism::Namespaces]] {
        let (world, _runner) = start_runner_world(without).await;
        let session = world.open(1).await;
        let result = session
            .call("1", "run_command", json!({ "command": "id -u; cat README.md" }))
            .await;
        assert_eq!(result.sandbox_level(), SandboxLevel::L2);
        assert!(result.content.contains("65534\n# Shop"), "{}", result.content);
        session
            .ok(
                "2",
                "write_file",
                json!({ "path": "bin/run.sh", "content": "#!/bin/sh\necho ran\n" }),
            )
            .await;
        let text = session
            .shell(
                "3",
                "chmod +x bin/run.sh README.md; bin/run.sh; git status --short; touch $(head -n 1 $(git rev-parse --git-common-dir)/objects/info/alternates)/x; echo $?",
            )
            .await;
        assert!(
            text.contains("ran\n") && text.contains("bin/") && text.contains("\n1\n"),
            "{text}"
        );
        session
            .ok("4", "create_branch", json!({ "branch_name": "feat/x" }))
            .await;
        session
            .ok("5", "commit_changes", json!({ "message": "A script" }))
            .await;
        let (info, pack) = session.snapshot().await;
        assert!(info.files_changed == 2 && !pack.is_empty(), "{info:?}");
        let work = world.folder.path().join("runner/work");
        assert_eq!(fs::read_dir(&work).unwrap().count(), 1);
        session.close().await;
        let restore = SnapshotRef {
            branch: info.branch,
            head_commit: info.head_commit,
            snapshot_commit: info.snapshot_commit,
        };
        let opened = world.try_restore(2, RunFence::new(1, 6, 1), pack, |spec| {
            spec.restore = Some(restore)
        });
        let (second, _) = opened.await.unwrap();
        assert!(second.shell("1", "bin/run.sh").await.contains("ran"));
        assert_eq!(
            fs::read_dir(&work).unwrap().count(),
            1,
            "the workspace before is gone"
        );
    }
    println!("| 1 runs at a runner | L2 | held |");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_runner_closes_workspace() {
    if !is_root("30 a runner that goes") {
        return;
    }
    let (world, runner) = start_runner_world(vec![]).await;
    let session = world.open(1).await;
    session.shell("1", "echo kept > file").await;
    let command = json!({ "command": "echo started; sleep 600" });
    let mut running = session.start("2", "run_command", &command).await.unwrap();
    assert!(await_first_output(&mut running).await.contains("started"));
    drop(runner);
    let _again = start_runner(world.folder.path());
    let refused = session.start("3", "read_file", &json!({ "path": "file" })).await;
    assert_eq!(refused.err().unwrap().code(), Code::NotFound);
    drop(running);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    let second = loop {
        match world.try_open(1, RunFence::new(1, 6, 1), |_| {}).await {
            Ok((second, answer)) => {
                assert!(!answer.existing);
                break second;
            }
            Err(status) => assert!(
                status.code() == Code::ResourceExhausted && tokio::time::Instant::now() < deadline,
                "{status}"
            ),
        }
        tokio::task::yield_now().await;
    };
    assert!(second.shell("1", "ls").await.contains("README.md"));
}
