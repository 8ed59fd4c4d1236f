//! `journeyman dispatch`: jobs by hand, their additional text and their results.

use serde_json::{Value, json};
use testkit::{ScriptStep, fixture};

use crate::{stage::Stage, up::Up};

const RULES: &str = "pull_request: {reviewer: journeyman-agent}\n";

fn write_context_file(up: &Up, name: &str, context: &Value) -> String {
    std::fs::write(up.stage.path().join(name), context.to_string()).unwrap();
    name.to_owned()
}

/// Dispatches feedback on the first pull request, with these additional arguments, and returns the output.
async fn dispatch_feedback(up: &Up, more: &[&str]) -> String {
    let number = up.stage.github.pull_requests(fixture::REPOSITORY)[0].number;
    let ours = format!("{}#{number}", fixture::REPOSITORY);
    let feedback = json!({"feedback": "Add a note on rounding."});
    let feedback = write_context_file(up, "feedback.json", &feedback);
    let work = [
        "dispatch",
        "--job",
        "address_review",
        "--ticket",
        &ours,
        "--context",
        &feedback,
    ];
    up.output(&[&work[..], more].concat()).await
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn dispatched_jobs_pass_words_to_model() {
    let up = Up::start(Stage::start(RULES).await).await;
    let key = up.stage.file_ticket();
    let context = write_context_file(
        &up,
        "context.json",
        &json!({"instructions": "Mind the posters.", "issue_title": "Believe me"}),
    );
    let work = [
        "dispatch",
        "--job",
        "implement",
        "--ticket",
        &key,
        "--context",
        &context,
    ];
    let planned = up.output(&[&work[..], &["--dry-run"]].concat()).await;
    assert_eq!(
        planned,
        "would start implement on jira:ENG-1 in acme/shop: Cart total ignores the quantity\n"
    );
    assert_eq!(up.output(&["runs"]).await, "");

    let mut script = fixture::build_shop_script();
    script[0].expect = Some("Mind the posters.".to_owned());
    up.stage.model.set_script("", script);
    let keyed = [&work[..], &["--key", "monday", "-o", "json"]].concat();
    let ended = json_of(&up.output(&keyed).await);
    assert_eq!(
        (&ended["ticket"], &ended["stop"]),
        (&json!("jira:ENG-1"), &json!({"type": "completed"})),
        "{ended}"
    );
    assert_eq!(
        json_of(&up.output(&keyed).await),
        ended,
        "the same key is the same run"
    );
    assert_eq!(up.stage.github.pull_requests(fixture::REPOSITORY).len(), 1);

    up.stage.model.set_script_of(
        "A review of the pull request",
        "",
        fixture::build_note_script("Add a note on rounding.", &json!([])),
    );
    let addressed = dispatch_feedback(&up, &[]).await;
    assert!(
        addressed.starts_with("run jira:ENG-1@"),
        "our pull request stands for its ticket: {addressed}"
    );
    assert!(addressed.contains("run finished: completed"), "{addressed}");
    let note = up
        .stage
        .github
        .file(fixture::REPOSITORY, fixture::BRANCH, "notes/rounding.md");
    assert_eq!(note.as_deref(), Some("Rounded.\n"));
    up.stop().await.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn dispatched_rehearsal_writes_nothing() {
    let up = Up::start(Stage::start(RULES).await).await;
    let key = up.stage.file_ticket();
    let mock = ["dispatch", "--job", "implement", "--ticket", &key, "--mock"];
    let output = up.output(&mock).await;
    let branch = "fix/ENG-1-cart-total-ignores-the-quantity";
    for line in [
        "would tell the ticket that work on acme/shop starts: check_signing, transition, check_run, comment",
        "  > Journeyman has started to work on this ticket in `acme/shop`.",
        &format!("would push {branch} at 000000000000: push_branch, check_run"),
        "would open draft pull request \"",
    ] {
        assert!(output.contains(line), "{line}: {output}");
    }
    let json = json_of(&up.output(&[&mock[..], &["-o", "json"]].concat()).await);
    assert_eq!(json["stop"], json!({"type": "completed"}), "{json}");
    assert_eq!(json["would"].as_array().map(Vec::len), Some(3), "{json}");

    assert_eq!(up.stage.model.call_count(), 0, "no model was asked");
    assert_eq!(up.stage.jira.status(&key).as_deref(), Some("To Do"));
    assert_eq!(up.stage.jira.comments(&key).len(), 0);
    assert_eq!(up.stage.github.branches(fixture::REPOSITORY).len(), 1);
    assert!(up.stage.github.pull_requests(fixture::REPOSITORY).is_empty());
    // A rehearsal is not work on the ticket, so the ticket counts as new.
    let retry = up.ask(&["retry", &key]).await;
    assert_eq!(retry.code, Some(1), "{retry:?}");
    let work = up.output(&mock[..5]).await;
    assert!(work.contains("run finished: completed"), "{work}");
    assert_eq!(up.stage.github.pull_requests(fixture::REPOSITORY).len(), 1);

    // Neither a repair nor an answer to a review uses anything of the rehearsal.
    let before = up.stage.model.call_count();
    let addressed = dispatch_feedback(&up, &["--mock"]).await;
    assert!(
        addressed.contains("would reply to the review of #"),
        "{addressed}"
    );
    assert_eq!(up.stage.model.call_count(), before);
    up.stop().await.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn dispatch_reviews_foreign_pull_request() {
    let up = Up::start(Stage::start(RULES).await).await;
    let github = &up.stage.github;
    let files = [(
        "shop/mean.py",
        "def mean(prices):\n    return sum(prices) / len(prices)\n",
    )];
    github
        .commit(fixture::REPOSITORY, "mean", "Mean price", &files)
        .unwrap();
    let number = github
        .open_pull_request_as(
            fixture::REPOSITORY,
            "sam",
            "mean",
            "Mean price",
            "Adds the mean price.",
        )
        .unwrap();
    let found = json!({"summary": "Adds a mean.", "comments": [{"path": "shop/mean.py", "line": 2,
        "trigger": "An empty cart", "why": "It divides by zero.", "weight": "blocking",
        "suggestion": "    return sum(prices) / max(len(prices), 1)"}]});
    up.stage.model.set_script_of(
        "Review this pull request",
        "",
        vec![ScriptStep::call("submit_comments", found).expecting("Mind empty carts.")],
    );
    let context = write_context_file(
        &up,
        "context.json",
        &json!({"instructions": "Mind empty carts.", "pr_number": number.to_string()}),
    );
    let ticket = format!("github:{}#{number}", fixture::REPOSITORY);
    let reviewed = up
        .output(&[
            "dispatch",
            "--job",
            "pr-review",
            "--ticket",
            &ticket,
            "--context",
            &context,
        ])
        .await;
    assert!(reviewed.contains("run finished: completed"), "{reviewed}");
    let reviews = up.stage.github.reviews(fixture::REPOSITORY, number).unwrap();
    assert!(
        reviews.len() == 1 && reviews[0].state == "changes_requested",
        "{reviews:#?}"
    );
    up.stop().await.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn discussion_dispatch_accepts_foreign_job_names() {
    let up = Up::start(
        Stage::start("discussions: {enabled: true, research: false}\nissues: {most_planned: 3}\n").await,
    )
    .await;
    let github = &up.stage.github;
    let number = github
        .start_discussion(fixture::REPOSITORY, "rita", "Ideas", ("Rounding", "Half up?"))
        .unwrap();
    let ticket = format!("{}/discussions/{number}", fixture::REPOSITORY);
    up.stage.model.set_script_of(
        "Sum this discussion up",
        "",
        vec![
            ScriptStep::call("read_file", json!({"path": "shop/cart.py"})),
            ScriptStep::call(
                "submit_answer",
                json!({"answer": "Rita asks how we round.", "citations": [{"path": "shop/cart.py", "line": 36,
                    "quote": "return full * (100 - discount_percent) // 100"}]}),
            ),
        ],
    );
    let context = write_context_file(
        &up,
        "context.json",
        &json!({"resource_number": number.to_string(), "discussion_number": number.to_string(),
            "discussion_title": "Believe me", "discussion_body": "…"}),
    );
    let asked = ["dispatch", "--ticket", &ticket, "--context", &context, "--job"];
    let planned = up
        .output(&[&asked[..], &["discussion-plan", "--dry-run"]].concat())
        .await;
    assert!(
        planned.starts_with(&format!("would start discuss on github:{ticket}")),
        "{planned}"
    );
    let said = up.output(&[&asked[..], &["discussion-summarize"]].concat()).await;
    assert!(said.contains("run finished: completed"), "{said}");
    let discussion = up.stage.github.discussion(fixture::REPOSITORY, number).unwrap();
    assert!(
        discussion.comments.len() == 1 && discussion.comments[0].body.contains("Rita asks how we round."),
        "{discussion:#?}"
    );
    up.stop().await.assert_kept_protocols();
}

#[tokio::test(flavor = "multi_thread")]
async fn dispatch_refusal_is_one_line_with_reason() {
    let up = Up::start(Stage::start("").await).await;
    let key = up.stage.file_ticket();
    write_context_file(&up, "list.json", &json!(["x"]));
    for (arguments, code, why) in [
        (
            vec!["--job", "fix_ci", "--ticket", &key],
            1,
            "no such open pull request of ours",
        ),
        (
            vec!["--job", "answer", "--ticket", &key],
            1,
            "needs context.question",
        ),
        (vec!["--job", "implement", "--ticket", "ENG-404"], 1, "ENG-404"),
        (
            vec!["--job", "implement", "--ticket", &key, "--context", "none.json"],
            1,
            "none.json cannot be read",
        ),
        (
            vec!["--job", "implement", "--ticket", &key, "--context", "list.json"],
            1,
            "is not a JSON object",
        ),
        (
            vec!["--job", "implement", "--ticket", &key, "--context", "-"],
            1,
            "is not a JSON object",
        ),
    ] {
        let ran = up.ask(&[&["dispatch"][..], &arguments].concat()).await;
        assert_eq!(
            (ran.code, ran.complaints().len()),
            (Some(code), 1),
            "{arguments:?} {ran:?}"
        );
        assert!(
            ran.err.starts_with("journeyman: ") && ran.err.contains(why),
            "{}",
            ran.err
        );
    }
    let unknown = up.ask(&["dispatch", "--job", "finish", "--ticket", &key]).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert_eq!(up.output(&["runs"]).await, "");
    up.stop().await;
}
