//! A repository with attributes and ignore rules of git: a change of one line is one line in the pull request, new files
//! have names for every system, and a file that an ignore rule names is not lost silently.

use domain::StopReason;
use serde_json::json;
use testkit::{ScriptStep, fixture};

use crate::{end_of, only_pull_request, start_default_world};

/// Text of the ticket.
const WANTED: &str = "Change one line of the batch file.";

fn build_script() -> Vec<ScriptStep> {
    let edit = "grep -c $'\\r' run.bat; sed -i 's/two/2/' run.bat; git diff --stat -- run.bat";
    vec![
        ScriptStep::call("run_command", json!({ "command": edit })),
        ScriptStep::call("write_file", json!({ "path": "docs/a:b.md", "content": "x\n" }))
            .expecting("1 insertion(+), 1 deletion(-)"),
        ScriptStep::call("write_file", json!({ "path": "docs/a-b.md", "content": "x\n" }))
            .expecting("use docs/a-b.md"),
        ScriptStep::call("run_command", json!({ "command": "echo x > aux.js" })),
        ScriptStep::call("run_command", json!({ "command": "rm aux.js" })).expecting("use aux_.js"),
        ScriptStep::call(
            "finish",
            json!({
                "type": "feat",
                "title": "Count to two with a digit",
                "summary": "Changes one line of a batch file; there is nothing to test."
            }),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn attributes_and_names_reach_pull_request() {
    let world = start_default_world().await;
    world.model.set_script(WANTED, build_script());
    let files = [
        (".gitattributes", "*.bat text eol=crlf\n"),
        ("run.bat", "one\ntwo\nthree\n"),
    ];
    let committed = world
        .github
        .commit(fixture::REPOSITORY, "main", "Add a batch file", &files);
    committed.unwrap();
    let key = world
        .jira
        .create_issue(fixture::PROJECT, "Count with digits", WANTED, "Task", &[]);
    world.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let pull = only_pull_request(&world);
    let file = |path: &str| world.github.file(fixture::REPOSITORY, &pull.head, path);
    assert_eq!(file("run.bat").as_deref(), Some("one\n2\nthree\n"));
    assert_eq!(file("docs/a-b.md").as_deref(), Some("x\n"));
    assert_eq!(file("docs/a:b.md"), None);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ignored_file_is_named_in_pull_request() {
    const WANTED: &str = "Write the list of prices.";
    let finish = json!({
        "type": "docs",
        "title": "Write the list of prices",
        "summary": "Writes the list; there is nothing to test."
    });
    let script = vec![
        ScriptStep::call(
            "write_file",
            json!({ "path": "docs/prices.md", "content": "8.50\n" }),
        ),
        ScriptStep::call(
            "write_file",
            json!({ "path": "shop/prices.gen.py", "content": "PRICES = [8.5]\n" }),
        ),
        ScriptStep::call("finish", finish).expecting("shop/prices.gen.py: an ignore rule names it"),
    ];
    let world = start_default_world().await;
    world.model.set_script(WANTED, script);
    let files = [(".gitignore", "__pycache__/\n*.gen.py\n")];
    let committed = world
        .github
        .commit(fixture::REPOSITORY, "main", "Ignore generated files", &files);
    committed.unwrap();
    let key = world
        .jira
        .create_issue(fixture::PROJECT, "Prices", WANTED, "Task", &[]);
    world.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let pull = only_pull_request(&world);
    assert!(
        pull.body.contains("`shop/prices.gen.py` is not in the change"),
        "{}",
        pull.body
    );
    let file = |path: &str| world.github.file(fixture::REPOSITORY, &pull.head, path);
    assert_eq!(file("docs/prices.md").as_deref(), Some("8.50\n"));
    assert_eq!(file("shop/prices.gen.py"), None);
    world.stop().await.unwrap();
}
