//! Process with the GitHub and Jira stand-ins for third-party clients; `make contract` runs it. It prints
//! addresses and credentials as one line of JSON and serves until standard input ends.

use serde_json::{Value, json};
use testkit::github::{self, BranchRuleset, RunConclusion};
use testkit::{FakeGitHub, FakeJira, GitHubOptions, JiraOptions, jira};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, stdin, stdout};

const REPOSITORY: &str = "acme/shop";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let github = FakeGitHub::start(GitHubOptions::default()).await?;
    let jira = FakeJira::start(JiraOptions::default()).await?;
    let begin = json!({"github": furnish_github(&github)?, "jira": furnish_jira(&jira)?});
    // The addresses come first, so that the parent process can send requests.
    stdout().write_all(format!("{begin}\n").as_bytes()).await?;
    stdout().flush().await?;
    // The end of standard input is the parent's signal to stop.
    stdin().read_to_end(&mut Vec::new()).await?;
    github.stop().await;
    jira.stop().await;
    Ok(())
}

/// Creates a repository with a reviewed pull request, completed checks and spare branches for further pull
/// requests.
fn furnish_github(github: &FakeGitHub) -> anyhow::Result<Value> {
    github.create_repository(
        REPOSITORY,
        &[("README.md", "A shop.\n"), ("src/cart.txt", "1\n2\n")],
    )?;
    for branch in ["first", "second", "third"] {
        github.commit(REPOSITORY, branch, branch, &[("src/cart.txt", "1\n2\n3\n")])?;
    }
    let number = github.open_pull_request_as(REPOSITORY, "rita", "first", "Count", "Counts.")?;
    let head = github.commit(REPOSITORY, "first", "More", &[("src/cart.txt", "1\n2\n3\n4\n")])?;
    github.run_checks(
        REPOSITORY,
        &head,
        &[
            ("test", RunConclusion::Failure, "1 failed"),
            ("lint", RunConclusion::Success, "fine"),
        ],
    )?;
    let line = [("src/cart.txt", 3, "Why three?")];
    github.review_lines(
        REPOSITORY,
        number,
        "ada",
        ("changes_requested", "Not yet."),
        &line,
    )?;
    github.comment_as(REPOSITORY, number, "ada", "Please look again.")?;
    github.require_checks(REPOSITORY, "main", &["test"])?;
    let rules = BranchRuleset {
        branches: vec!["main".to_owned()],
        required_checks: vec!["test".to_owned()],
        ..BranchRuleset::default()
    };
    github.set_rulesets(REPOSITORY, &[rules])?;
    Ok(json!({
        "url": github.api_url(), "repository": REPOSITORY, "number": number, "head": head,
        "reader": github::READER_TOKEN, "writer": github::WRITER_TOKEN,
        "app": github::WRITER_APP_ID, "key": github::APP_PRIVATE_KEY,
    }))
}

/// Creates two linked tickets, one of them edited, transitioned and commented.
fn furnish_jira(jira: &FakeJira) -> anyhow::Result<Value> {
    let key = jira.create_issue("ENG", "Count", "The cart\n\ndoes not count.", "Bug", &["shop"]);
    let other = jira.create_issue("ENG", "Pay", "", "Task", &[]);
    jira.relate(&key, "Blocks", &other)?;
    jira.move_issue(&key, "Ready for Agent", "Rita")?;
    jira.edit_summary(&key, "Count the cart", "Rita")?;
    jira.assign(&key, "Ada")?;
    jira.comment_as(&key, "Ada", "Three pieces, please.")?;
    jira.set_groups("Ada", &["developers"]);
    Ok(json!({
        "url": jira.url(), "key": key, "other": other, "project": "ENG",
        "reader": [jira::READER_EMAIL, jira::READER_API_TOKEN], "writer": [jira::WRITER_EMAIL, jira::WRITER_API_TOKEN],
    }))
}
