//! A repository with Git LFS: the model reads the content of a table, changes code, and the pull request leaves
//! the table alone.

use domain::StopReason;
use e2e::{Options, TestWorld};
use serde_json::json;
use testkit::{ScriptStep, fixture};

use crate::{end_of, only_pull_request};

/// Text of the ticket.
const WANTED: &str = "Name the best customer of the table.";
const TABLE: &str = "name,total\nada,7\nmia,3\n";
const RULES: &str = "repository:\n  lfs: read\n";

fn build_script() -> Vec<ScriptStep> {
    vec![
        ScriptStep::call("read_file", json!({ "path": "data/table.csv" })),
        ScriptStep::call(
            "write_file",
            json!({ "path": "data/table.csv", "content": "name,total\n" }),
        )
        .expecting("ada,7"),
        ScriptStep::call(
            "write_file",
            json!({ "path": "data/best.csv", "content": "ada,7\n" }),
        )
        .expecting("cannot be uploaded"),
        ScriptStep::call(
            "run_command",
            json!({ "command": "sort -t, -k2 -rn data/table.csv | head -1 > best.txt; git status --porcelain" }),
        )
        .expecting("data/best.csv: .gitattributes gives it to Git LFS"),
        ScriptStep::call(
            "finish",
            json!({
                "type": "feat",
                "title": "Name the best customer",
                "summary": "Writes the first row of the sorted table; there is nothing to test."
            }),
        )
        .expecting("?? best.txt"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn table_in_git_lfs_is_read_and_kept() {
    let options = Options {
        rules: RULES.to_owned(),
        ..Options::default()
    };
    let world = TestWorld::start(options).await.unwrap();
    world.model.set_script(WANTED, build_script());
    let pointer = world.github.store_lfs(fixture::REPOSITORY, TABLE.as_bytes());
    let files = [
        (".gitattributes", "*.csv filter=lfs diff=lfs merge=lfs -text\n"),
        ("data/table.csv", pointer.as_str()),
    ];
    let committed = world
        .github
        .commit(fixture::REPOSITORY, "main", "Add a table", &files);
    committed.unwrap();
    let key = world
        .jira
        .create_issue(fixture::PROJECT, "Best customer", WANTED, "Task", &[]);
    world.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let pull = only_pull_request(&world);
    let file = |path: &str| world.github.file(fixture::REPOSITORY, &pull.head, path);
    assert_eq!(file("best.txt").as_deref(), Some("ada,7\n"));
    assert_eq!(file("data/table.csv").as_deref(), Some(pointer.as_str()));
    assert_eq!(world.github.count_lfs_downloads(), 1);
    world.stop().await.unwrap();
}
