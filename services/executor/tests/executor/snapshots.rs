//! Tests of changes that are too large for a snapshot, of the size of a workspace's git directory, and of a
//! full disk.

use std::{fs, path::Path, process::Command};

use tokio::time::Instant;

use super::*;

const MIB: u64 = 1 << 20;
/// Generous time limit for a refused snapshot, on a machine that may have other work.
const SOON: Duration = Duration::from_secs(60);

/// Returns the bytes of all files below a folder.
fn bytes_beneath(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => bytes_beneath(&entry.path()),
        _ => entry.metadata().map_or(0, |file| file.len()),
    });
    bytes.sum()
}

/// Takes a snapshot. Returns its pack or the refusal.
async fn try_snapshot(session: &Session) -> Result<Vec<u8>, Status> {
    let request = SnapshotWorkspaceRequest {
        workspace_id: session.id.clone(),
        fence: Some(session.fence.into()),
        commit_time_s: 1_790_000_000,
    };
    let mut client = session.client.clone();
    let mut stream = client
        .snapshot_workspace(add_bearer_token(&session.token, request))
        .await?
        .into_inner();
    let mut pack = Vec::new();
    while let Some(message) = stream.message().await? {
        if let Some(snapshot_workspace_response::Event::PackChunk(chunk)) = message.event {
            pack.extend(chunk);
        }
    }
    Ok(pack)
}

async fn refused_soon(session: &Session) -> String {
    let asked = Instant::now();
    let refused = tokio::time::timeout(SOON, try_snapshot(session)).await;
    let refused = refused.unwrap().unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    println!(
        "refused after {} ms: {}",
        asked.elapsed().as_millis(),
        refused.message()
    );
    refused.message().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn check_71_large_noise_snapshot_refused() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    session.shell("1", "echo kept > kept.txt").await;
    session.snapshot().await;
    let noise = "for n in 1 2 3 4 5; do head -c 62000000 /dev/urandom > noise$n.bin; done";
    let result = session.ok("2", "run_command", json!({ "command": noise })).await;
    assert!(
        result.changed,
        "a snapshot is due, so that the model learns of it"
    );
    let words = refused_soon(&session).await;
    assert!(words.contains("more than 32 MiB"), "{words}");
    for part in ["noise1.bin (60 MiB)", "noise5.bin", ".gitignore", "delete"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let commit = json!({ "message": "Add noise" });
    session
        .ok("3", "create_branch", json!({ "branch_name": "feat/noise" }))
        .await;
    let refused = session.call("4", "commit_changes", commit.clone()).await;
    assert!(
        refused.status() == ToolStatus::Error && refused.content.contains("noise1.bin"),
        "{}",
        refused.content
    );
    session.shell("5", "echo 'noise*.bin' > .gitignore").await;
    session.ok("6", "commit_changes", commit).await;
    let (info, pack) = session.snapshot().await;
    assert!(info.files_changed == 2 && (pack.len() as u64) < MIB, "{info:?}");
    println!("| 71 a snapshot of 300 MB of noise | any | held |");
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_snapshot_names_largest_folders() {
    let world = World::start_as(1, |_, settings| settings.snapshot_mib = 4).await;
    let session = world.open(1).await;
    let files =
        "mkdir -p assets/a; for n in $(seq 60); do head -c 200000 /dev/urandom > assets/a/$n.png; done";
    session.shell("1", files).await;
    let words = refused_soon(&session).await;
    assert!(
        words.contains("more than 4 MiB") && words.contains("assets/ (") && words.contains(" files)"),
        "{words}"
    );
    // Text of the same size compresses well and fits.
    session
        .shell("2", "rm -r assets; seq 1500000 > numbers.txt")
        .await;
    let pack = try_snapshot(&session).await.unwrap();
    assert!((pack.len() as u64) < 4 * MIB, "{}", pack.len());
    // A committed file stays in the pack even after its deletion.
    session
        .ok("3", "create_branch", json!({ "branch_name": "feat/x" }))
        .await;
    session
        .shell("4", "rm numbers.txt; head -c 3000000 /dev/urandom > a.bin")
        .await;
    session
        .ok("5", "commit_changes", json!({ "message": "Add a" }))
        .await;
    session
        .shell("6", "rm a.bin; head -c 3000000 /dev/urandom > b.bin")
        .await;
    let words = refused_soon(&session).await;
    assert!(
        words.contains("a.bin, which an earlier commit of the branch has"),
        "{words}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn check_72_replaced_files_respect_disk_limit() {
    let world = World::start_as(1, |_, settings| settings.limits.disk_mib = 100).await;
    let session = world.open(1).await;
    let data = world.folder.path().join("data");
    for (file_mb, branch) in [(60, "feat/sixty"), (20, "feat/twenty")] {
        let mut most = 0;
        for turn in 0..6 {
            let command = format!("head -c {file_mb}000000 /dev/urandom > big.bin");
            session.shell(&format!("{file_mb} {turn}"), &command).await;
            // A refused snapshot adds no objects either.
            drop(try_snapshot(&session).await);
            most = most.max(bytes_beneath(&data));
        }
        assert!(most < 110 * MIB, "{} MiB with {file_mb} MB", most / MIB);
        println!(
            "| 72 a file of {file_mb} MB replaced six times: {} MiB at most | any | held |",
            most / MIB
        );
        session
            .ok(branch, "create_branch", json!({ "branch_name": branch }))
            .await;
    }
    // Undo reaches back as far as there was room, and the current files are complete.
    session.shell("small", "echo one > small.txt").await;
    session.shell("smaller", "echo two > small.txt").await;
    session.ok("undo", "undo", json!({})).await;
    assert!(session.shell("read", "cat small.txt").await.contains("one"));
    let (_, pack) = session.snapshot().await;
    assert!(pack.len() as u64 > 15 * MIB, "{}", pack.len());
}

/// A small mounted disk, unmounted when dropped; `None` where this process must not mount.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(folder: &Path, mib: u64) -> Option<Self> {
        fs::create_dir_all(folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"])
            .arg(folder)
            .output();
        mounted
            .is_ok_and(|mounted| mounted.status.success())
            .then(|| Self(folder.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A lazy unmount, because the executor may still close its files.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Waits for the first status whose reason matches.
async fn status_with(world: &World, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut statuses = world.watch_status().await;
    let wanted = async {
        while let Some(status) = statuses.message().await.unwrap() {
            if is_wanted(&status.unready) {
                return status.unready;
            }
        }
        panic!("the executor ended")
    };
    tokio::time::timeout(SOON, wanted).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn check_73_full_disk_stops_new_work() {
    let outer = TempDir::new().unwrap();
    let place = outer.path().join("disk");
    let Some(disk) = SmallDisk::mount(&place, 64) else {
        println!("not run: this machine does not let the test mount a small disk");
        return;
    };
    let world = World::start_as(2, |_, settings| {
        settings.data_dir.clone_from(&disk.0);
        settings.disk_reserve_mib = 16;
    })
    .await;
    let session = world.open(1).await;
    session.shell("1", "echo kept > kept.txt").await;
    session.snapshot().await;
    // Files of another process on the same disk.
    let filler = disk.0.join("filler");
    fs::write(&filler, vec![1; 30 << 20]).unwrap();
    let mut rest = fs::File::create(disk.0.join("rest")).unwrap();
    while std::io::Write::write_all(&mut rest, &[1; 4096]).is_ok() {}
    let notice = status_with(&world, |unready| !unready.is_empty()).await;
    assert!(notice.contains("executor.disk_reserve_mib"), "{notice}");
    let refused = world
        .try_open(2, RunFence::new(1, 5, 1), |_| {})
        .await
        .err()
        .unwrap();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    // The open workspace stays usable and reports the reason.
    let written = session
        .call(
            "2",
            "write_file",
            json!({ "path": "new.txt", "content": "x".repeat(9000) }),
        )
        .await;
    assert!(written.content.contains("disk is full"), "{}", written.content);
    fs::remove_file(&filler).unwrap();
    fs::remove_file(disk.0.join("rest")).unwrap();
    status_with(&world, str::is_empty).await;
    session
        .ok("3", "write_file", json!({ "path": "new.txt", "content": "x" }))
        .await;
    session.snapshot().await;
    world.open_with(2, |_| {}).await;
    println!("| 73 a full disk under the executor | any | held |");
}
