//! Tests of files, lines and objects that exceed the executor's memory.

use std::{fs, os::unix::fs::FileExt, path::Path, process::Command};

use super::{process::Process, *};

/// Limit of the executor's peak memory in MiB; an idle process takes a third of it.
const MAX_MEMORY_MIB: u64 = 200;
const MIB: u64 = 1 << 20;

/// Returns the peak memory of the process in MiB.
fn read_peak_memory(process: &Process) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.0.id())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

/// Creates a sparse file that ends in `end`.
fn create_sparse_file(path: &Path, length: u64, end: &str) {
    let file = fs::File::create(path).unwrap();
    file.set_len(length).unwrap();
    file.write_all_at(end.as_bytes(), length - end.len() as u64)
        .unwrap();
}

/// Returns the only worktree of the executor.
fn find_worktree(world: &World) -> PathBuf {
    let mut found = fs::read_dir(world.folder.path().join("own/workspaces")).unwrap();
    found.next().unwrap().unwrap().path().join("tree")
}

/// Calls a tool, asserts that it answers in time, and returns the answer.
async fn call_tool_promptly(session: &Session, id: &str, name: &str, input: Value) -> String {
    let called = session.call(id, name, input);
    let result = tokio::time::timeout(Duration::from_secs(120), called).await;
    result
        .unwrap_or_else(|_| panic!("{id}: {name} does not answer"))
        .content
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_larger_than_memory_are_refused() {
    let start = process::start_process("error", |_, lines, _| lines.push_str("slots = 1\n"));
    let (world, process) = start.await;
    let session = world.open(1).await;
    call_tool_promptly(
        &session,
        "branch",
        "create_branch",
        json!({ "branch_name": "feat/large" }),
    )
    .await;
    let tree = find_worktree(&world);
    let edits = "<<<<<<< SEARCH\nthe end\n=======\nx\n>>>>>>> REPLACE";
    for (name, length) in [
        ("huge.py", 10 << 30),
        ("tail.py", 2 << 30),
        ("README.md", 10 << 30),
    ] {
        create_sparse_file(&tree.join(name), length, "\nthe end\n");
        let patch = format!("--- a/{name}\n+++ b/{name}\n@@ -1,1 +1,1 @@\n-the end\n+x\n");
        for (tool, input) in [
            ("read_file", json!({ "path": name })),
            ("outline", json!({ "path": name })),
            ("edit_file", json!({ "path": name, "edits": edits })),
            ("apply_patch", json!({ "patch": patch })),
        ] {
            let said = call_tool_promptly(&session, &format!("{tool} {name}"), tool, input).await;
            assert!(
                said.contains("too large") || said.contains("no outline"),
                "{tool} {name}: {said}"
            );
        }
    }
    // One line without an end, millions of lines, and ignore rules larger than the memory.
    fs::write(tree.join("long.txt"), vec![b'a'; 300 << 20]).unwrap();
    fs::write(tree.join("lines.txt"), vec![b'\n'; 6 << 20]).unwrap();
    fs::create_dir(tree.join("sub")).unwrap();
    create_sparse_file(&tree.join("sub/.gitignore"), 4 << 30, "end\n");
    let found = call_tool_promptly(
        &session,
        "search",
        "search_content",
        json!({ "pattern": "a+b|the end" }),
    )
    .await;
    assert!(found.contains("[not searched to the end: long.txt]"), "{found}");
    let listed = call_tool_promptly(&session, "list", "list_directory", json!({ "path": "." })).await;
    assert!(listed.contains("huge.py"), "{listed}");
    let names = call_tool_promptly(&session, "names", "search_files", json!({ "pattern": "*.py" })).await;
    assert!(names.contains("tail.py"), "{names}");
    call_tool_promptly(&session, "outline", "outline", json!({})).await;
    let written = json!({ "path": "small.txt", "content": "small\n" });
    call_tool_promptly(&session, "write", "write_file", written).await;
    let left_out =
        "  README.md: larger than 64 MiB\n  huge.py: larger than 64 MiB\n  long.txt: larger than 64 MiB\n";
    let said = call_tool_promptly(&session, "diff", "diff", json!({})).await;
    assert!(said.contains("+small") && said.contains(left_out), "{said}");
    let said = call_tool_promptly(
        &session,
        "commit",
        "commit_changes",
        json!({ "message": "Small" }),
    )
    .await;
    assert!(
        said.starts_with("Committed 2 changed")
            && said.contains(left_out)
            && said.contains("sub: its .gitignore"),
        "{said}"
    );
    let (info, pack) = session.snapshot().await;
    assert!(info.files_changed == 2 && (pack.len() as u64) < MIB, "{info:?}");
    // A tracked file that grew keeps its committed content.
    call_tool_promptly(
        &session,
        "replace",
        "write_file",
        json!({ "path": "huge.py", "content": "x = 1\n", "format": "as_given" }),
    )
    .await;
    let said = call_tool_promptly(&session, "undo", "undo", json!({})).await;
    assert!(said.contains("huge.py"), "{said}");
    let held = read_peak_memory(&process);
    assert!(held < MAX_MEMORY_MIB, "{held} MiB");
    println!("| 13 files of 2 and 10 GB, endless lines and rules: {held} MiB at most | any | held |");
}

/// Returns a pack with one object that claims 2 GiB and consists of `mib` MiB of zeros.
fn build_announced_pack(folder: &Path, mib: u32) -> Vec<u8> {
    let script = format!(
        "import hashlib, struct, sys, zlib\nsize, head = 2 << 30, []\nbyte, size = 0x30 | size & 15, size >> 4\n\
         while size: head.append(byte | 0x80); byte, size = size & 127, size >> 7\n\
         head.append(byte); z = zlib.compressobj(1)\nbody = b''.join(z.compress(bytes(1 << 20)) for _ in range({mib})) + z.flush()\n\
         pack = b'PACK' + struct.pack('>II', 2, 1) + bytes(head) + body\n\
         open(sys.argv[1], 'wb').write(pack + hashlib.sha1(pack).digest())"
    );
    let file = folder.join("announced");
    assert!(
        Command::new("python3")
            .args(["-c", &script])
            .arg(&file)
            .status()
            .unwrap()
            .success()
    );
    fs::read(file).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshot_with_huge_object_is_refused() {
    let start = process::start_process("error", |_, lines, _| lines.push_str("slots = 1\n"));
    let (world, process) = start.await;
    for mib in [0, 64] {
        let pack = build_announced_pack(world.folder.path(), mib);
        let restore = SnapshotRef {
            snapshot_commit: world.base.to_string(),
            ..SnapshotRef::default()
        };
        let opened = world.try_restore(1, RunFence::new(1, 5, 1), pack, |spec| {
            spec.restore = Some(restore)
        });
        let refused = tokio::time::timeout(Duration::from_secs(120), opened)
            .await
            .unwrap()
            .err()
            .unwrap();
        assert_eq!(refused.code(), Code::InvalidArgument, "{mib} MiB: {refused}");
    }
    world.open(1).await.shell("c1", "true").await;
    let held = read_peak_memory(&process);
    assert!(held < MAX_MEMORY_MIB, "{held} MiB");
    println!("| 45 a pack with an object of 2 GB: {held} MiB at most | any | held |");
}
