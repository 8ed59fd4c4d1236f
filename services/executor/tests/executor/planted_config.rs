//! Tests that the tools commit correctly after commands planted configuration for git in the worktree and the
//! home folder.

use super::*;

/// All ways by which git would run a program or read another place; `RUN` is the program.
const PLANT: &str = r##"
head=$(GIT_DIR=$TMPDIR/checkout.git git rev-parse HEAD)
rm -rf .git; mkdir -p .git/hooks .git/objects/info .git/refs/replace .git/info "$HOME/.config/git"
for config in .git/config "$HOME/.gitconfig" "$HOME/.config/git/config"; do
    printf '[core]\n\tfsmonitor = RUN\n\thooksPath = .git/hooks\n\tworktree = /\n\tattributesFile = .gitattributes\n' > "$config"
    printf '[filter "evil"]\n\tclean = RUN\n\tsmudge = RUN\n\tprocess = RUN\n\trequired = true\n' >> "$config"
    printf '[diff "evil"]\n\ttextconv = RUN\n\tcommand = RUN\n[merge "evil"]\n\tdriver = RUN\n' >> "$config"
    printf '[user]\n\tname = Mallory\n[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = RUN\n' >> "$config"
done
for hook in pre-commit commit-msg post-commit post-checkout post-index-change reference-transaction; do
    printf '#!/bin/sh\nRUN\n' > .git/hooks/$hook; chmod +x .git/hooks/$hook
done
echo OUTSIDE > .git/commondir; echo OUTSIDE > .git/objects/info/alternates
echo 1111111111111111111111111111111111111111 > .git/info/grafts
echo 1111111111111111111111111111111111111111 > .git/refs/replace/$head
echo 'ref: refs/heads/evil' > .git/HEAD
printf '* diff=evil merge=evil\nREADME.md filter=evil text eol=crlf\n' > .gitattributes
printf '[submodule "x\r"]\n\tpath = sub\n\turl = OUTSIDE\n\tupdate = !RUN\n' > .gitmodules
ln -sfn OUTSIDE out; mkdir -p sub; echo "gitdir: OUTSIDE" > sub/.git
"##;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planted_git_config_never_runs() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let (sentinel, outside) = (
        world.folder.path().join("ran"),
        world.folder.path().join("remote/acme"),
    );
    let plant = PLANT
        .replace("RUN", &format!("touch {}", sentinel.display()))
        .replace("OUTSIDE", &outside.display().to_string());
    session
        .ok(
            "branch",
            "create_branch",
            json!({ "branch_name": "feat/planted" }),
        )
        .await;
    for (number, shape) in [
        "true",
        "rm -rf .git; echo 'gitdir: /etc' > .git",
        "rm -rf .git; ln -s /etc .git",
    ]
    .into_iter()
    .enumerate()
    {
        session
            .shell(&format!("plant {number}"), &format!("{plant}\n{shape}"))
            .await;
        let file = json!({ "path": "a.txt", "content": format!("one\ntwo {number}\n") });
        session.ok(&format!("write {number}"), "write_file", file).await;
        let diff = session
            .ok(&format!("diff {number}"), "diff", json!({}))
            .await
            .content;
        assert!(
            diff.contains(&format!("+two {number}\n")) && !diff.contains("hooksPath"),
            "{diff}"
        );
        session
            .ok(
                &format!("commit {number}"),
                "commit_changes",
                json!({ "message": "A file" }),
            )
            .await;
        session
            .ok(
                &format!("more {number}"),
                "write_file",
                json!({ "path": "a.txt", "content": "gone\n" }),
            )
            .await;
        session.ok(&format!("undo {number}"), "undo", json!({})).await;
        session.snapshot().await;
        let look = "export GIT_DIR=$TMPDIR/checkout.git; git log -1 --format='%an %p'; git ls-tree -r HEAD | cut -f1,2 | cut -c1-6,54-; git cat-file blob HEAD:a.txt";
        let kept = session.shell(&format!("look {number}"), look).await;
        let files = "100644.gitattributes\n100644.gitignore\n100644.gitmodules\n100644AGENTS.md\n100644README.md\n100644a.txt\n120000out\n";
        let kept: String = kept.lines().map(|line| line.replace('\t', "") + "\n").collect();
        assert!(
            kept.contains(files) && kept.ends_with(&format!("one\ntwo {number}\n")),
            "{kept}"
        );
        assert!(kept.contains("\nJourneyman "), "{kept}");
        assert!(!sentinel.exists(), "something that was planted ran");
    }
    println!(
        "| 35-41 planted settings, hooks, filters, links, grafts and folders of git, committed over | L1 with namespaces | held |"
    );
}
