//! Output forms of a run: text, JSON, pager, address.

use serde_json::Value;
use testkit::poll_until;

use crate::{program::PATIENCE, terminal::at_terminal_with, up::Up};

fn parse_json_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn parse_json_lines(text: &str) -> Value {
    text.lines().map(parse_json_text).collect()
}

/// Checks the forms of a completed run.
pub(crate) async fn assert_agree(up: &Up, run: &str, key: &str) {
    for command in [["runs", "--ticket", key], ["journal", run, "--no-pager"]] {
        let whole = up.output(&[&command[..], &["-o", "json"]].concat()).await;
        let each = up.output(&[&command[..], &["-o", "jsonl"]].concat()).await;
        assert!(!each.is_empty(), "{command:?}");
        assert_eq!(parse_json_lines(&each), parse_json_text(&whole), "{command:?}");
    }
    let tickets = up.output(&["list-tickets", "-o", "json"]).await;
    let each = up.output(&["tickets", "-o", "jsonl"]).await;
    assert_eq!(parse_json_lines(&each), parse_json_text(&tickets)["tickets"]);
    let sums = up.output(&["spend", "-o", "json"]).await;
    assert_eq!(
        parse_json_lines(&up.output(&["spend", "-o", "jsonl"]).await),
        parse_json_text(&sums)["sums"]
    );

    let journal = up.output(&["journal", run]).await;
    assert_eq!(up.output(&["follow", key]).await, format!("run {run}\n{journal}"));
    let entries = up.output(&["journal", run, "-o", "jsonl"]).await;
    assert_eq!(up.output(&["follow", run, "-o", "jsonl"]).await, entries);
    let none = up.ask(&["follow", "ENG-77"]).await;
    assert_eq!(
        (none.code, none.err.as_str()),
        (Some(1), "journeyman: jira:ENG-77 has no run\n")
    );
}

/// Checks the forms of this machine's pool, after the planner has reported its executor.
pub(crate) async fn assert_pools(up: &Up) {
    let ready = poll_until("the executor is reported", PATIENCE, async || {
        let output = up.output(&["pools"]).await;
        output
            .starts_with("default  1 of 1 executors ready")
            .then_some(output)
    });
    let output = ready.await.unwrap();
    let version = format!("1 executor of release {}, sandbox L", env!("CARGO_PKG_VERSION"));
    assert!(
        output.contains(&version) && !output.contains("problem"),
        "{output}"
    );
    let whole = parse_json_text(&up.output(&["pools", "-o", "json"]).await);
    assert_eq!(whole["pools"][0]["members"][0]["state"], "ready", "{whole}");
    let each = parse_json_lines(&up.output(&["pools", "-o", "jsonl"]).await);
    assert_eq!(each[0]["name"], "default", "{each}");
}

/// Checks the addresses of the run's pages.
pub(crate) async fn assert_open(up: &Up, run: &str, key: &str) {
    let open = async |arguments: &[&str]| {
        let output = up.output(&[&["open"], arguments].concat()).await;
        output.trim_end().to_owned()
    };
    let ticket = format!("{}/browse/{key}", up.stage.jira.url());
    assert_eq!(open(&[key]).await, ticket);
    assert_eq!(open(&[run, "--page", "ticket"]).await, ticket);
    let pull_request = open(&[run]).await;
    assert!(pull_request.ends_with("/acme/shop/pull/1"), "{pull_request}");
    assert_eq!(
        open(&[key, "--page", "pull-request", "--print"]).await,
        pull_request
    );
    let console = ["--console", "http://127.0.0.1:7405/"];
    let of_run = open(&[&[run], &console[..]].concat()).await;
    assert_eq!(
        of_run,
        format!(
            "http://127.0.0.1:7405/runs/{}",
            run.replace(':', "%3A").replace('@', "%40")
        )
    );
    let nowhere = up.ask(&["open", run, "--page", "console"]).await;
    assert!(
        nowhere.code == Some(1) && nowhere.err.contains("--console URL, or set JOURNEYMAN_CONSOLE"),
        "{nowhere:?}"
    );
}

/// Checks that long text at a terminal goes through a pager, and that `--no-pager` prints it.
pub(crate) async fn assert_paged(up: &Up, run: &str) {
    let pager = [("PAGER".to_owned(), "sed s/^/paged:/".to_owned())];
    let shown = async |arguments: &[&str]| at_terminal_with(arguments, &[], &pager, up.stage.path()).await;
    let paged = shown(&["runs"]).await;
    assert!(
        paged.code == Some(0) && paged.out.starts_with(&format!("paged:{run}")),
        "{paged:?}"
    );
    let plain = shown(&["runs", "--no-pager"]).await;
    assert!(plain.code == Some(0) && plain.out.starts_with(run), "{plain:?}");
    let piped = up.output(&["runs"]).await;
    assert!(piped.starts_with(run), "{piped}");
}
