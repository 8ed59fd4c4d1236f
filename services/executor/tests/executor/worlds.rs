//! Tests that the namespaces of a launcher serve many commands, and that each finds them as the first one
//! did.

use super::*;

const WORLD: &str = "readlink /proc/self/ns/mnt";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clean_command_reuses_namespaces() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let first = session.shell("c1", WORLD).await;
    assert_eq!(session.shell("c2", WORLD).await, first);
    // All processes of a command end, including detached ones; the next command finds none.
    session
        .shell("c3", "setsid sh -c 'sleep 987 & exec sleep 986' & true")
        .await;
    let found = session
        .shell(
            "c4",
            &format!("{WORLD}; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep [9]8' || true"),
        )
        .await;
    assert_eq!(found, format!("{first}0\n"));
    // A command does not change its process environment for the next one.
    session
        .shell("c5", "cd / && umask 0 && ulimit -n 10 && export LEFT=1 && exit 7")
        .await;
    let found = session
        .shell("c6", "pwd; umask; ulimit -n; echo \"left: $LEFT\"")
        .await;
    assert!(
        found.contains("\n0022\n4096\nleft: \n") && found.contains("workspaces/acme.shop"),
        "{found}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn command_traces_end_the_namespaces() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let leave = ["echo x > /tmp/left", "mkdir -p /dev/shm/a/b", "ipcmk -M 100"];
    // A toolchain in a folder below `/tmp` appears in the listing.
    let look = format!("ls /tmp /dev/shm; tail -n +2 /proc/sysvipc/shm; {WORLD}");
    let mut before = session.shell("w", &look).await;
    let lines = before.lines().count();
    for (number, leave) in leave.into_iter().enumerate() {
        let ended = session
            .shell(&format!("a{number}"), &format!("{leave}; exit 7"))
            .await;
        assert!(ended.starts_with("exit code: 7\n"), "{ended}");
        let found = session.shell(&format!("b{number}"), &look).await;
        assert_eq!(found.lines().count(), lines, "{found}");
        assert!(!before.contains(found.lines().last().unwrap()), "{leave}");
        before = found;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_namespaces_are_replaced() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    // The command kills everything including itself, but process 1 of a PID namespace receives no signal from
    // inside.
    let killed = session.shell("c1", "kill -9 -1; kill -9 1; kill -9 $$").await;
    assert!(killed.starts_with("exit code: 137"), "{killed}");
    let cut = session
        .call(
            "c2",
            "run_command",
            json!({ "command": "sleep 60", "timeout_s": 1 }),
        )
        .await;
    assert!(cut.content.contains("killed after 1 s"), "{}", cut.content);
    assert_eq!(session.shell("c3", "echo here").await, "exit code: 0\nhere\n");
}
