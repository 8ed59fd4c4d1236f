//! Tests of source files that no parser can handle, with the real parser process.

use serde_json::json;

use super::*;

/// Returns files that abort the grammars or exhaust memory and time.
fn build_deadly_files() -> [(&'static str, String); 3] {
    [
        ("s.yaml", "- ".repeat(255) + "\n"),
        ("A.java", "a<".repeat(25_000)),
        ("a.ts", "a<b,".repeat(25_000)),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parser_crash_leaves_write_unchecked() {
    let world = World::start(2).await;
    let (session, other) = (world.open(1).await, world.open(2).await);
    for (path, content) in build_deadly_files() {
        let input = json!({ "path": path, "content": content });
        let text = session
            .ok(&format!("write {path}"), "write_file", input)
            .await
            .content;
        assert!(text.starts_with(&format!("Wrote {path}")), "{text}");
        assert!(text.contains("applied unchecked"), "{path}: {text}");
        let read = other
            .ok(
                &format!("read beside {path}"),
                "read_file",
                json!({ "path": "README.md" }),
            )
            .await;
        assert!(read.content.contains("# Shop"));
    }
    // The next file is checked again.
    let broken = json!({ "path": "b.py", "content": "def f(:\n" });
    let refused = session.call("broken", "write_file", broken).await;
    assert!(
        refused.content.contains("cannot be parsed"),
        "{}",
        refused.content
    );
}

/// The scanners of these grammars are C code of their own, which the confined process must be able to run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confined_parser_runs_scanners_of_grammars() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    for (path, content, wanted) in [
        (
            "a.c",
            "int total(int count) {\n  return count;\n}\n",
            "1 int total(int count)",
        ),
        (
            "a.cpp",
            "auto text = R\"(a)\";\nint total() {\n  return 0;\n}\n",
            "2 int total()",
        ),
        (
            "a.rb",
            "TEXT = <<~END\n  a\nEND\ndef total(items)\nend\n",
            "4 def total(items)",
        ),
        (
            "a.php",
            "<?php\n$text = <<<END\n  a\n  END;\nfunction total(): int {\n  return 0;\n}\n",
            "5 function total(): int",
        ),
        (
            "a.kt",
            "val text = \"\"\"a\"\"\"\nfun total(): Int {\n  return 0\n}\n",
            "2 fun total(): Int",
        ),
        ("a.sh", "cat <<END\n  a\nEND\ntotal() {\n  :\n}\n", "4 total()"),
    ] {
        let input = json!({ "path": path, "content": content });
        session.ok(&format!("write {path}"), "write_file", input).await;
        let input = json!({ "path": path });
        let shown = session.ok(&format!("outline {path}"), "outline", input).await;
        assert!(shown.content.contains(wanted), "{path}: {}", shown.content);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outline_names_unparsed_files() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    for (path, content) in build_deadly_files() {
        let input = json!({ "path": path, "content": content, "force": true });
        session.ok(&format!("write {path}"), "write_file", input).await;
    }
    let input = json!({ "path": "good.py", "content": "def good():\n    pass\n" });
    session.ok("good", "write_file", input).await;
    let text = session.ok("all", "outline", json!({})).await.content;
    assert!(
        text.contains("def good()") && text.contains("no outline of A.java"),
        "{text}"
    );
    let one = session.call("one", "outline", json!({ "path": "A.java" })).await;
    assert!(
        one.content.contains("There is no outline of A.java"),
        "{}",
        one.content
    );
    let good = session.ok("again", "outline", json!({ "path": "good.py" })).await;
    assert!(good.content.contains("def good()"), "{}", good.content);
}
