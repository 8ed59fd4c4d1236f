//! Coverage of the contract: a recorded test makes every call of the clients.

use std::{fs, path::Path};

use crate::{find_repository_root, production_lines, rust_files};

/// Returns the calls of a client's file: account (`reader` or `writer`, with its part) and name.
fn list_client_calls(file: &Path) -> Vec<(&'static str, String)> {
    let mut whose = None;
    let mut found = Vec::new();
    for line in production_lines(file) {
        match line.as_str() {
            "impl GitHubReader {" | "impl JiraReader {" => whose = Some("reader"),
            "impl GitHubWriter {" | "impl JiraWriter {" => whose = Some("writer"),
            "impl PullRequestReader {" => whose = Some("reader.pull_requests()"),
            "impl ReviewReader {" => whose = Some("reader.reviews()"),
            "impl IssueReader {" => whose = Some("reader.issues()"),
            "impl CommentReader {" => whose = Some("reader.comments()"),
            "impl DiscussionReader {" => whose = Some("reader.discussions()"),
            "impl CheckReader {" => whose = Some("reader.checks()"),
            "impl DeliveryReader {" => whose = Some("reader.deliveries()"),
            "impl HealthReader {" => whose = Some("reader.health()"),
            "impl AttachmentReader {" => whose = Some("reader.attachments()"),
            "impl CommitWriter {" => whose = Some("writer.commits()"),
            "impl PullRequestWriter {" => whose = Some("writer.pull_requests()"),
            "impl ReviewWriter {" => whose = Some("writer.reviews()"),
            "impl IssueWriter {" => whose = Some("writer.issues()"),
            "impl CommentWriter {" => whose = Some("writer.comments()"),
            "impl DiscussionWriter {" => whose = Some("writer.discussions()"),
            "impl CheckWriter {" => whose = Some("writer.checks()"),
            "impl ProjectWriter {" => whose = Some("writer.projects()"),
            "}" => whose = None,
            line => assert!(
                !(line.starts_with("impl ") && (line.ends_with("Reader {") || line.ends_with("Writer {"))),
                "an account's part that no accessor of the list returns: {line}"
            ),
        }
        let name = line.strip_prefix("    pub async fn ");
        let name = name.and_then(|line| line.split(['(', '<']).next());
        found.extend(whose.zip(name.map(str::to_owned)));
    }
    found
}

#[test]
fn stand_ins_cover_every_client_call() {
    let mut lacking = Vec::new();
    let mut known = 0;
    for client in ["github", "jira"] {
        let crate_folder = find_repository_root().join("crates").join(client);
        let tests = rust_files(&crate_folder.join("tests"));
        let tests = tests.iter().map(|file| fs::read_to_string(file).unwrap());
        let tests: String = tests
            .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        for file in rust_files(&crate_folder.join("src")) {
            let calls = list_client_calls(&file);
            known += calls.len();
            let is_made = |(whose, name): &(&str, String)| tests.contains(&format!("{whose}.{name}("));
            let lacks = calls.into_iter().filter(|call| !is_made(call));
            lacking.extend(lacks.map(|(whose, name)| format!("{client}: {whose}.{name}")));
        }
    }
    assert!(known > 80, "the clients are not read as expected: {known}");
    assert!(
        lacking.is_empty(),
        "no test in crates/*/tests makes these calls, so `make contract` compares none of them: {lacking:#?}"
    );
}
