//! `journeyman list-tickets` and `show-ticket`: the open tickets, and the selection at a terminal.

use serde_json::Value;
use testkit::{ServiceFault, fixture};

use crate::{
    stage::{Stage, remove_setting},
    terminal::{DOWN, ENTER, UP, at_terminal, at_terminal_with},
    up::Up,
};

const ISSUES: &str = "issues: {labels: [agent]}\n";

/// Starts the services with the fixture's ticket, a ticket in another status, a finished one and an issue.
async fn with_tickets() -> (Up, u64) {
    let up = Up::start(Stage::start(ISSUES).await).await;
    up.stage.file_ticket();
    let jira = &up.stage.jira;
    let other = jira.create_issue(fixture::PROJECT, "Explain the tax\u{1b}[2J", "", "Task", &[]);
    jira.move_issue(&other, "In Progress", "ada").unwrap();
    let over = jira.create_issue(fixture::PROJECT, "Old", "", "Task", &[]);
    jira.move_issue(&over, "Done", "ada").unwrap();
    let issue = up
        .stage
        .github
        .open_issue_as(fixture::REPOSITORY, "sam", "Add a mean", "Of prices.");
    (up, issue.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn list_tickets_covers_jira_and_github() {
    let (up, issue) = with_tickets().await;
    let listed = up.output(&["list-tickets"]).await;
    let lines: Vec<Vec<&str>> = listed
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines[0], ["TICKET", "STATUS", "LAST", "RUN", "TITLE"]);
    assert_eq!(lines.len(), 4, "{listed}");
    for line in [
        "jira:ENG-1 To Do Cart total ignores the quantity".to_owned(),
        "jira:ENG-2 In Progress Explain the tax[2J".to_owned(),
        format!("github:acme/shop#{issue} open Add a mean"),
    ] {
        assert!(
            lines.iter().any(|found| found.join(" ") == line),
            "{line}: {listed}"
        );
    }
    let done = up.output(&["list-tickets", "--status", "Done"]).await;
    assert!(done.contains("jira:ENG-3") && done.lines().count() == 2, "{done}");
    let closed = up
        .output(&["list-tickets", "--status", "open", "--repository", "acme/shop"])
        .await;
    assert!(closed.contains("Add a mean"), "{closed}");
    let json: Value = serde_json::from_str(&up.output(&["list-tickets", "-o", "json"]).await).unwrap();
    assert_eq!(json["tickets"].as_array().map(Vec::len), Some(3), "{json}");

    let shown = up.output(&["show-ticket", "ENG-1"]).await;
    assert!(
        shown.starts_with("jira:ENG-1: Cart total ignores the quantity\nstatus: To Do\ntype: Bug\n")
            && shown.contains("Three mugs at 8.50"),
        "{shown}"
    );
    let shown = up.output(&["show-ticket", &format!("acme/shop#{issue}")]).await;
    assert!(
        shown.contains("status: open\n") && shown.contains("Of prices."),
        "{shown}"
    );
    let unknown = up.ask(&["show-ticket", "OPS-1"]).await;
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    let blind = up.ask(&["list-tickets", "--interactive"]).await;
    assert_eq!(
        (blind.code, blind.complaints()),
        (
            Some(2),
            vec!["journeyman: --interactive needs a terminal to choose at; without it the list is printed"]
        )
    );
    up.stop().await.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn list_tickets_selects_with_arrow_keys() {
    let (up, _) = with_tickets().await;
    let menu = "What would you like to do:";
    let list = "Select a ticket to process:";
    let steps = [
        (list, DOWN),
        ("> jira:ENG-1 ", ENTER),
        (menu, DOWN),
        ("> Process with dry-run", DOWN),
        ("> View ticket details", ENTER),
        ("Three mugs at 8.50", ""),
        (menu, UP),
        ("> Process with dry-run", ENTER),
        ("would start implement on jira:ENG-1 in acme/shop", ""),
        (menu, UP),
        ("> Process this ticket", ENTER),
        ("Process ENG-1 and create a pull request?", "n"),
        (menu, ENTER),
        ("Process ENG-1 and create a pull request?", "y"),
        ("run finished: completed", ""),
    ];
    let ran = at_terminal(&["list-tickets", "-i"], &steps, up.stage.path()).await;
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    assert!(
        !ran.out.contains("\u{1b}[2J"),
        "a title steers no terminal: {}",
        ran.out
    );
    assert_eq!(up.stage.github.pull_requests(fixture::REPOSITORY).len(), 1);
    let listed = up.output(&["list-tickets"]).await;
    assert!(listed.contains("implement completed"), "{listed}");
    up.stop().await.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn choosing_nothing_does_nothing() {
    let (up, _) = with_tickets().await;
    let list = "Select a ticket to process:";
    let cancelled = [(list, UP), ("> Cancel", ENTER)];
    let ran = at_terminal(&["list-tickets", "-i"], &cancelled, up.stage.path()).await;
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    let steps = [
        (list, ENTER),
        ("What would you like to do:", UP),
        ("> Cancel", ENTER),
        (list, ""),
        ("> jira:ENG-", "\u{1b}"),
    ];
    let ran = at_terminal(&["list-tickets", "-i"], &steps, up.stage.path()).await;
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    let interrupted = [(list, ENTER), ("What would you like to do:", "\u{3}")];
    let ran = at_terminal(&["list-tickets", "-i"], &interrupted, up.stage.path()).await;
    assert_eq!(ran.code, Some(130), "{}\n{}", ran.out, ran.err);
    assert!(
        ran.out.ends_with("\u{1b}[?25h"),
        "the cursor is seen again: {:?}",
        ran.out
    );
    assert_eq!(up.output(&["runs"]).await, "");
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn list_tickets_works_offline_by_rules_file() {
    let stage = Stage::start("").await;
    let key = stage.file_ticket();
    stage.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    // The list needs neither a model nor write credentials.
    let environment = remove_setting(&stage.environment(), "MODEL__API_KEY");
    let list = ["list-tickets", "--config", "configs/shop.yaml"];
    let listed = stage.run(&list, &environment).await;
    assert_eq!((listed.code, listed.err.as_str()), (Some(0), ""), "{listed:?}");
    let line = listed.out.lines().nth(1).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(
        words.join(" "),
        "jira:ENG-1 Ready for Agent * Cart total ignores the quantity"
    );
    assert_eq!(stage.model.call_count(), 0);
    assert_eq!(stage.jira.status(&key).as_deref(), Some("Ready for Agent"));
    assert!(
        stage.jira.comments(&key).is_empty() && stage.github.pull_requests(fixture::REPOSITORY).is_empty()
    );
    let wrong = ["list-tickets", "--config", "configs/none.yaml"];
    let ran = stage.run(&wrong, &environment).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.err.starts_with("journeyman: cannot read configs/none.yaml: "),
        "{}",
        ran.err
    );
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn chosen_ticket_starts_services_for_itself() {
    let stage = Stage::start("").await;
    stage.file_ticket();
    let steps = [
        ("Select a ticket to process:", ENTER),
        ("What would you like to do:", DOWN),
        ("> Process with dry-run", ENTER),
        ("would start implement on jira:ENG-1 in acme/shop", ""),
        ("What would you like to do:", UP),
        ("> Process this ticket", ENTER),
        ("Process ENG-1 and create a pull request?", "y"),
        ("run finished: completed", ""),
    ];
    let list = ["list-tickets", "-i", "--config", "configs/shop.yaml"];
    let ran = at_terminal_with(&list, &steps, &stage.environment(), stage.path()).await;
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.out, ran.err);
    assert_eq!(stage.github.pull_requests(fixture::REPOSITORY).len(), 1);
    stage.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn interactive_list_keeps_failure_exit_code() {
    let stage = Stage::start("").await;
    stage.file_ticket();
    stage.jira.fail_next(ServiceFault::new("/search", 50, 403));
    let list = ["list-tickets", "-i", "--config", "configs/shop.yaml"];
    let steps = [("there are no such tickets", "")];
    let ran = at_terminal_with(&list, &steps, &stage.environment(), stage.path()).await;
    assert_eq!(ran.code, Some(1), "{}\n{}", ran.out, ran.err);
    assert!(ran.out.contains("the Jira project ENG"), "{}", ran.out);
}
