//! git in commands: repositories of their own work, the workspace's can be looked at, and what cannot be written there is
//! answered with the tool that does it.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn git_works_in_folders_of_its_own_and_reads_the_workspace() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let own = "set -e; cd $(mktemp -d); git init -q one; cd one; echo x > a; git add a; git commit -qm first; git tag v1; \
               cd ..; git clone -q one two; git -C two log --oneline | wc -l; git -C one rev-parse --show-toplevel | grep -c /one";
    assert_eq!(session.shell("own", own).await, "exit code: 0\n1\n1\n");
    let look = "set -e; echo '# Store' > README.md; git status --short; git diff | grep '^[-+]#'; git log --format=%s; git blame -s AGENTS.md | \
                wc -l; git show HEAD:AGENTS.md; git restore README.md; cat README.md; mkdir -p sub; cd sub; git rev-parse --show-prefix";
    assert_eq!(
        session.shell("look", look).await,
        "exit code: 0\n M README.md\n-# Shop\n+# Store\nfirst\n1\nBe brief.\n# Shop\nsub/\n"
    );
    // The file by which git finds it is nobody's change.
    let listed = session.ok("list", "list_directory", json!({})).await.content;
    assert!(
        !listed.contains(".git\n") && listed.contains(".gitignore"),
        "{listed}"
    );
    let diff = session.ok("diff", "diff", json!({})).await.content;
    assert!(diff.contains("Nothing has changed"), "{diff}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_git_cannot_write_is_answered_with_the_tool_that_does_it() {
    for without in [vec![], vec![executor::Mechanism::Namespaces]] {
        let world = World::start_without(1, without).await;
        let session = world.open(1).await;
        session
            .ok("branch", "create_branch", json!({ "branch_name": "feat/x" }))
            .await;
        for (number, command) in [
            "git commit -am x",
            "git add a",
            "git branch other",
            "git tag v1",
            "git stash",
        ]
        .into_iter()
        .enumerate()
        {
            let script = format!("echo {number} > a; echo x >> README.md; {command}");
            let result = session
                .call(&format!("c{number}"), "run_command", json!({ "command": script }))
                .await;
            assert!(
                result.content.contains("commit_changes to commit"),
                "{command}: {}",
                result.content
            );
            assert_ne!(result.exit_code, Some(0), "{command}");
        }
        session
            .ok("commit", "commit_changes", json!({ "message": "Add a" }))
            .await;
        let seen = session
            .shell(
                "seen",
                "git log -1 --format=%s; git branch --show-current; git status --short",
            )
            .await;
        assert_eq!(seen, "exit code: 0\nAdd a\nfeat/x\n");
        let failed = session
            .call("failed", "run_command", json!({ "command": "exit 3" }))
            .await;
        assert_eq!(
            (failed.exit_code, failed.content.as_str()),
            (Some(3), "exit code: 3\n")
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worktree_that_cannot_be_kept_whole_is_kept_without_what_is_in_the_way_and_told_once() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let deep = "mkfifo pipe; echo x > kept; python3 -c \"import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')\"";
    let result = session
        .ok("deep", "run_command", json!({ "command": deep }))
        .await;
    assert!(
        result.content.contains("pipe: neither a file nor a link")
            && result.content.contains("nested too deep"),
        "{}",
        result.content
    );
    let (info, pack) = session.snapshot().await;
    assert!(!pack.is_empty() && info.files_changed == 1, "{info:?}");
    assert!(
        info.omitted.iter().any(|omitted| omitted.starts_with("pipe: ")),
        "{:?}",
        info.omitted
    );
    let again = session
        .ok("again", "run_command", json!({ "command": "true" }))
        .await;
    assert_eq!(again.content, "exit code: 0\n");
    session.shell("rm", "rm -rf d pipe").await;
    assert_eq!(session.snapshot().await.0.omitted, Vec::<String>::new());
}
