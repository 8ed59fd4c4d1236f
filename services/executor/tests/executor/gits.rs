//! Tests of git in commands: repositories that commands create, changes to the workspace's files and index,
//! and refusals that name the right tool.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn git_works_in_commands_own_repositories() {
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
    // The `.git` file of the worktree is not part of the change.
    let listed = session.ok("list", "list_directory", json!({})).await.content;
    assert!(
        !listed.contains(".git\n") && listed.contains(".gitignore"),
        "{listed}"
    );
    let diff = session.ok("diff", "diff", json!({})).await.content;
    assert!(diff.contains("Nothing has changed"), "{diff}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workspace_git_works_on_files_and_index() {
    let edit = "set -e; echo '# Store' > README.md; echo new > new; git add -A; git diff --cached --name-status; git stash -q; \
                cat README.md; git stash pop -q; git checkout -q -- README.md; git restore --staged .; git status --short; \
                git config user.name Own; git reset -q --hard; git log --format=%s; rm new; git fsck --no-dangling; \
                git worktree add -q --detach $TMPDIR/aside HEAD; cat $TMPDIR/aside/README.md";
    for (world, _runner) in checks::start_level_worlds().await {
        let session = world.open(1).await;
        assert_eq!(
            session.shell("edit", edit).await,
            "exit code: 0\nM\tREADME.md\nA\tnew\n# Shop\n?? new\nfirst\n# Shop\n"
        );
        // A killed git leaves its lock file; the next command must work nevertheless.
        let result = session
            .call(
                "lock",
                "run_command",
                json!({ "command": "touch $(git rev-parse --git-dir)/index.lock" }),
            )
            .await;
        assert_eq!(result.exit_code, Some(0), "{}", result.content);
        assert_eq!(session.shell("add", "git add README.md").await, "exit code: 0\n");
        assert!(session.snapshot().await.0.files_changed == 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn branch_moves_name_the_tools_instead() {
    for (world, _runner) in checks::start_level_worlds().await {
        let session = world.open(1).await;
        session
            .ok("branch", "create_branch", json!({ "branch_name": "feat/x" }))
            .await;
        session
            .ok("file", "write_file", json!({ "path": "a", "content": "0\n" }))
            .await;
        session
            .ok("commit", "commit_changes", json!({ "message": "Add a" }))
            .await;
        for (number, command) in [
            "git add -A; git commit -m x",
            "git commit -qam x | cat",
            "git commit --no-verify --amend -m x",
            "git branch other",
            "git branch -D main",
            "git checkout -b other",
            "git switch -c other",
            "git tag v1",
            "git reset --hard HEAD~1",
            "git push origin feat/x",
            "git push",
            "git pull",
            "git -c core.hooksPath=/dev/null commit -qam x",
            "git checkout -q --detach; git commit -qam x",
            "git checkout -q -f main",
            "rm $(git rev-parse --git-dir)/HEAD",
        ]
        .into_iter()
        .enumerate()
        {
            let script = format!("echo {number} > a; echo x >> README.md; {command}");
            let result = session
                .call(&format!("c{number}"), "run_command", json!({ "command": script }))
                .await;
            assert!(
                result.content.contains("commit_changes") && result.content.contains("create_branch"),
                "{command}: {}",
                result.content
            );
            let seen = session
                .shell(
                    &format!("s{number}"),
                    "git log -1 --format=%s; git branch; git tag; git rev-parse main~0",
                )
                .await;
            let expected = format!("exit code: 0\nAdd a\n* feat/x\n  main\n{}\n", world.base);
            assert_eq!(seen, expected, "{command}");
        }
        session
            .ok("again", "commit_changes", json!({ "message": "Change a" }))
            .await;
        let seen = session
            .shell("seen", "git log --format=%s; git status --short")
            .await;
        assert_eq!(seen, "exit code: 0\nChange a\nAdd a\nfirst\n");
        session
            .ok("other", "create_branch", json!({ "branch_name": "other" }))
            .await;
        let seen = session.shell("branches", "git branch").await;
        assert_eq!(seen, "exit code: 0\n  main\n* other\n");
    }
}

/// Program, the script that creates its files, and the command that must succeed.
const TOOLS: [(&str, &str, &str); 5] = [
    (
        "cargo",
        "mkdir src; printf '[package]\\nname = \"x\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n' > Cargo.toml; \
         echo 'fn main() {}' > build.rs; echo '#[test] fn adds() {}' > src/lib.rs",
        "cargo test --offline -q",
    ),
    (
        "npm",
        "printf '{\"name\":\"x\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node -e 0\"}}' > package.json",
        "npm test --silent && npm pack --silent && npm version --no-git-tag-version --allow-same-version 1.0.1",
    ),
    (
        "go",
        "printf 'module example.com/x\\n\\ngo 1.20\\n' > go.mod; printf 'package main\\n\\nfunc main() {}\\n' > main.go",
        "GOFLAGS=-mod=mod go build -buildvcs=true -o /dev/null . && go vet ./...",
    ),
    (
        "setuptools-scm",
        "printf '[project]\\nname = \"x\"\\ndynamic = [\"version\"]\\n[tool.setuptools_scm]\\n' > pyproject.toml",
        "setuptools-scm && setuptools-scm ls | grep README.md",
    ),
    ("git-lfs", "true", "git lfs version"),
];

#[tokio::test(flavor = "multi_thread")]
async fn real_build_tools_find_a_worktree() {
    let session_world = World::start(1).await;
    let session = session_world.open(1).await;
    for (number, (program, files, command)) in TOOLS.into_iter().enumerate() {
        let found = session
            .call(
                &format!("which{number}"),
                "run_command",
                json!({ "command": format!("command -v {program}") }),
            )
            .await;
        if found.exit_code != Some(0) {
            println!("| {program} in a workspace | any | not run: it is not installed |");
            continue;
        }
        let files = session
            .call(
                &format!("files{number}"),
                "run_command",
                json!({ "command": files }),
            )
            .await;
        assert_eq!(files.exit_code, Some(0), "{program}: {}", files.content);
        let ran = session
            .call(
                &format!("ran{number}"),
                "run_command",
                json!({ "command": command, "timeout_s": 300 }),
            )
            .await;
        assert_eq!(ran.exit_code, Some(0), "{program}: {}", ran.content);
        let check = session
            .check(&format!("check{number}"), checks::select_head_tree(), command)
            .await;
        assert_eq!(check.exit_code, Some(0), "{program}: {check:?}");
        println!("| {program} in a workspace and a check | any | held |");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn adopted_folder_git_starts_at_head() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().canonicalize().unwrap().join("work");
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git")
            .arg("-C")
            .arg(&path)
            .args(args)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{args:?}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).unwrap()
    };
    std::fs::create_dir(&path).unwrap();
    git(&["init", "-q", "-b", "trunk"]);
    std::fs::write(path.join("a.txt"), "one\n").unwrap();
    git(&["add", "-A"]);
    git(&[
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@acme.example",
        "commit",
        "-qm",
        "first",
    ]);
    let script = "set -e; echo two >> a.txt; echo b > b; git diff --stat | tail -1; git checkout -q a.txt; git add -A; \
                  git diff --cached --name-status; git stash -q; git status --short; git stash pop -q; git log --format=%s; \
                  git branch --show-current; git commit -m x 2>&1 | grep -o commit_changes | head -1; \
                  cd $(mktemp -d); git init -q; git commit -q --allow-empty -m own; git log --format=%s";
    for options in [&[][..], &["--without", "namespaces"]] {
        let done = std::process::Command::new(env!("CARGO_BIN_EXE_executor"))
            .args(["exec", "--launcher", env!("CARGO_BIN_EXE_launcher"), "--dir"])
            .arg(&path)
            .args(options)
            .args(["--", "bash", "-c", script])
            .output()
            .unwrap();
        let text = [done.stdout, done.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        let own = " 1 file changed, 1 insertion(+)\nA\tb\nfirst\ntrunk\ncommit_changes\n";
        if options.is_empty() {
            assert_eq!(text, format!("{own}own\n"));
        } else {
            // Without namespaces, variables point git to the view, so every folder has the same repository.
            assert!(text.starts_with(own), "{text}");
        }
        // The folder's own repository must contain none of it.
        assert_eq!(git(&["status", "--short"]), "?? b\n");
        assert_eq!(git(&["stash", "list"]), "");
        assert_eq!(git(&["log", "--all", "--format=%s"]), "first\n");
        std::fs::remove_file(path.join("b")).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_worktree_parts_are_reported_once() {
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
