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
