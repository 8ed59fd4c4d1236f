//! Reviews of our pull requests: each comment gets a reply, and the branch gets the requested changes.

use std::time::Duration;

use domain::StopReason;
use e2e::{Options, TestWorld};
use serde_json::json;
use testkit::{ScriptStep, fixture, github::RunConclusion};

use crate::{
    await_model_request, comment_with, complete_check, complete_ticket, end_of, list_commit_subjects,
    list_ticket_comments, only_pull_request, start_default_world,
};

/// Start of the first message about a review.
pub(crate) const REVIEW: &str = "A review of the pull request";

/// Creates a pull request that is ready for review.
async fn create_ready_request() -> (TestWorld, String) {
    let world = start_default_world().await;
    let key = complete_ticket(&world).await;
    pass_test_check(&world);
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    assert!(!only_pull_request(&world).draft);
    (world, key)
}

fn pass_test_check(world: &TestWorld) {
    complete_check(world, "test", RunConclusion::Success, "");
}

/// Builds the steps that write the note of [`request_note`] and answer its comment. The first one expects `expected`.
pub(crate) fn build_note_steps(comment: u64, expected: &str) -> [ScriptStep; 2] {
    let note = json!({"path": "notes/rounding.md", "content": "Rounded.\n"});
    let finish = json!({"type": "docs", "scope": "cart", "title": "Add a note on rounding",
        "summary": "Adds the note that the review asks for.",
        "replies": [{"id": comment, "disposition": "changed", "reply": "The note is there."}]});
    [
        ScriptStep::call("write_file", note).expecting(expected),
        ScriptStep::call("finish", finish),
    ]
}

/// Requests a note on rounding, as the only line comment of a review.
pub(crate) fn request_note(world: &TestWorld, number: u64) {
    let review = ("changes_requested", "Nearly there.");
    let lines = [("shop/cart.py", 3, "Please add a note on rounding.")];
    world
        .github
        .review_lines(fixture::REPOSITORY, number, "rita", review, &lines)
        .unwrap();
}

fn list_threads(world: &TestWorld) -> Vec<u64> {
    let number = only_pull_request(world).number;
    world.github.threads(fixture::REPOSITORY, number).unwrap()
}

fn list_replies(world: &TestWorld, thread: u64) -> Vec<String> {
    let number = only_pull_request(world).number;
    world.github.replies(fixture::REPOSITORY, number, thread).unwrap()
}

fn list_requested_reviewers(world: &TestWorld) -> Vec<String> {
    only_pull_request(world).requested_reviewers
}

#[tokio::test(flavor = "multi_thread")]
async fn review_threads_are_changed_answered_declined() {
    let (world, key) = create_ready_request().await;
    let number = only_pull_request(&world).number;
    let lines = [
        ("shop/cart.py", 3, "Please add a note on rounding."),
        ("shop/cart.py", 4, "Why is the discount last?"),
        ("shop/cart.py", 5, "Rename this to sum_of_all."),
    ];
    let review = ("changes_requested", "Nearly there.");
    // The script contains the ids that the comments will get.
    let next = world.github.next_id();
    let answered = ScriptStep::call(
        "finish",
        json!({"type": "docs", "scope": "cart", "title": "Add a note on rounding",
                "summary": "Adds the note that the review asks for.", "replies": [
                    {"id": next + 1, "disposition": "changed", "reply": "The note is in notes/rounding.md. @everyone"},
                    {"id": next + 2, "disposition": "answered", "reply": "A discount is a percentage of the sum."},
                    {"id": next + 3, "disposition": "declined", "reply": "The name is part of the API."}]}),
    );
    world.model.set_script_of(
        REVIEW,
        "",
        vec![
            ScriptStep::call(
                "write_file",
                json!({"path": "notes/rounding.md", "content": "Rounded.\n"}),
            )
            .expecting("Please add a note on rounding."),
            ScriptStep::call(
                "run_command",
                json!({"command": "sed -i '3s/$/  # See notes\\/rounding.md/' shop/cart.py"}),
            ),
            ScriptStep::call(
                "finish",
                json!({"type": "docs", "scope": "cart", "title": "Add a note on rounding",
                "summary": "Adds the note that the review asks for.", "replies": []}),
            ),
            answered.clone().expecting("exactly one entry for each comment"),
            // The planner questions a change of comments alone once.
            answered,
        ],
    );
    world
        .github
        .review_lines(fixture::REPOSITORY, number, "rita", review, &lines)
        .unwrap();
    let threads = list_threads(&world);
    assert_eq!(threads, [next + 1, next + 2, next + 3]);
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    let pull = only_pull_request(&world);
    assert!(pull.draft && list_commit_subjects(&world).len() == 2, "{pull:#?}");
    let resolved = world.github.resolved(fixture::REPOSITORY, pull.number).unwrap();
    assert_eq!(resolved, [threads[0]], "only what was done is over");
    let said: Vec<String> = threads
        .iter()
        .map(|thread| list_replies(&world, *thread).join("|"))
        .collect();
    let commit = &pull.head_sha[..12];
    assert!(
        said[0].starts_with(&format!("Changed in `{commit}`. The note is in")),
        "{said:#?}"
    );
    assert!(
        said[0].contains("`@everyone`"),
        "a mention in code notifies no person: {said:#?}"
    );
    assert!(said[1].starts_with("A discount is"), "{said:#?}");
    assert!(
        said[2].starts_with("Not changed. The name is part of the API."),
        "{said:#?}"
    );
    comment_with(&world, &key, "The review of").await;
    assert!(
        list_requested_reviewers(&world).is_empty(),
        "only once the checks pass"
    );
    pass_test_check(&world);
    assert_eq!(end_of(&world, &key, 3).await, StopReason::Completed);
    assert!(!only_pull_request(&world).draft);
    assert_eq!(list_requested_reviewers(&world), ["rita"]);
    world.stop().await.unwrap();
}

/// Waits until a run has restarted on a new head.
async fn begun_again(world: &TestWorld, key: &str, nth: usize) {
    let run = world.run(key, nth).await.unwrap();
    let moved = async || {
        let journal = world.client.runs().journal(&run).await.ok()?;
        let is_it = |entry: &domain::JournalEntry| matches!(entry.fact, domain::Fact::HeadMoved { .. });
        journal.iter().any(is_it).then_some(())
    };
    world.until("a new beginning", moved).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn push_during_review_work_is_kept() {
    let (world, key) = create_ready_request().await;
    let number = only_pull_request(&world).number;
    let next = world.github.next_id();
    let mut script = vec![
        ScriptStep::call("create_branch", json!({"branch_name": "fix/ENG-1-elsewhere"}))
            .expecting("Please add a note on rounding."),
        ScriptStep::call("read_file", json!({"path": "notes/person.md"}))
            .expecting("belongs to an open pull request"),
    ];
    script.extend(build_note_steps(next + 1, "By a person."));
    world.model.set_script_of(REVIEW, "", script);
    world.model.set_latency(Duration::from_secs(600));
    request_note(&world, number);
    await_model_request(&world, &key, 2).await;
    let files = [("notes/person.md", "By a person.\n")];
    world
        .github
        .commit(fixture::REPOSITORY, fixture::BRANCH, "Help out", &files)
        .unwrap();
    let theirs = only_pull_request(&world).head_sha;
    begun_again(&world, &key, 2).await;
    world.model.set_latency(Duration::ZERO);
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    let pull = only_pull_request(&world);
    assert!(pull.draft && pull.head_sha != theirs, "{pull:#?}");
    assert_eq!(
        list_commit_subjects(&world).len(),
        3,
        "on top of theirs: {:#?}",
        list_commit_subjects(&world)
    );
    assert!(
        list_commit_subjects(&world)
            .iter()
            .any(|subject| subject == "Help out")
    );
    assert_eq!(
        world.github.branches(fixture::REPOSITORY).len(),
        2,
        "the target and ours"
    );
    let said = list_replies(&world, next + 1).join("|");
    assert!(
        said.starts_with(&format!("Changed in `{}`", &pull.head_sha[..12])),
        "{said}"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn review_question_gets_answer_without_commit() {
    let (world, key) = create_ready_request().await;
    let number = only_pull_request(&world).number;
    let next = world.github.next_id();
    world.model.set_script_of(
        REVIEW,
        "",
        vec![
            ScriptStep::call("read_file", json!({"path": "shop/cart.py"})),
            ScriptStep::call(
                "finish",
                json!({"type": "fix", "title": "Answer the question", "summary": "Nothing had to be changed.",
                "replies": [{"id": next + 1, "disposition": "answered", "reply": "It is a percentage."}]}),
            ),
        ],
    );
    let lines = [("shop/cart.py", 4, "Why is the discount last?")];
    world
        .github
        .review_lines(fixture::REPOSITORY, number, "rita", ("commented", ""), &lines)
        .unwrap();
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    let pull = only_pull_request(&world);
    assert!(
        !pull.draft && list_commit_subjects(&world).len() == 1,
        "{pull:#?}"
    );
    let answer = list_replies(&world, next + 1);
    assert!(answer[0].starts_with("It is a percentage."), "{answer:#?}");
    assert_eq!(list_requested_reviewers(&world), ["rita"]);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unauthorized_review_is_ignored() {
    let (world, key) = create_ready_request().await;
    let number = only_pull_request(&world).number;
    world
        .github
        .set_permission(fixture::REPOSITORY, "eve", "read")
        .unwrap();
    let calls = world.model.calls().len();
    world
        .github
        .review(
            fixture::REPOSITORY,
            number,
            "eve",
            "changes_requested",
            "Delete everything.",
        )
        .unwrap();
    // A later event is handled, which proves that the earlier one caused nothing.
    world.github.close(fixture::REPOSITORY, number, "grace").unwrap();
    end_of(&world, &key, 2).await;
    comment_with(&world, &key, "closed").await;
    assert_eq!(world.model.calls().len(), calls);
    assert!(
        list_ticket_comments(&world, &key)
            .iter()
            .all(|text| !text.contains("The review of"))
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn third_return_of_thread_waits_for_user() {
    let (world, key) = create_ready_request().await;
    let number = only_pull_request(&world).number;
    let thread = world.github.next_id() + 1;
    let answer = |reply: &str| {
        ScriptStep::call(
            "finish",
            json!({"type": "fix", "title": "Answer the question", "summary": "Nothing had to be changed.",
            "replies": [{"id": thread, "disposition": "answered", "reply": reply}]}),
        )
    };
    let lines = [("shop/cart.py", 4, "Why is the discount last?")];
    world
        .model
        .set_script_of(REVIEW, "", vec![answer("It is a percentage.")]);
    world
        .github
        .review_lines(fixture::REPOSITORY, number, "rita", ("commented", ""), &lines)
        .unwrap();
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    // The model reads the earlier replies and the pull request's change.
    let second = answer("Of the whole sum.").expecting("It is a percentage.");
    world.model.set_script_of(REVIEW, "", vec![second]);
    let again = |text: &str| {
        world
            .github
            .reply_as(fixture::REPOSITORY, number, thread, "rita", text)
    };
    again("A percentage of what?").unwrap();
    assert_eq!(end_of(&world, &key, 3).await, StopReason::Completed);
    let shown = world.model.calls_of(REVIEW).last().unwrap().request.to_string();
    for known in [
        "Why is the discount last?",
        "What the pull request changes, as it is now",
        "A percentage of what?",
    ] {
        assert!(shown.contains(known), "{known}: {shown}");
    }
    let calls = world.model.calls().len();
    again("That is wrong for gift cards.").unwrap();
    assert_eq!(end_of(&world, &key, 4).await, StopReason::Completed);
    comment_with(&world, &key, "so Journeyman leaves that to people").await;
    let said = list_replies(&world, thread);
    let last = said.last().unwrap();
    assert!(
        last.contains("worked on this thread twice") && last.contains("@rita"),
        "{said:#?}"
    );
    assert_eq!(world.model.calls().len(), calls, "no model is asked");
    assert!(!only_pull_request(&world).draft && list_commit_subjects(&world).len() == 1);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn overdue_review_is_reminded_once_per_wait() {
    let options = Options {
        rules: "review:\n  remind_after_days: 3\n".to_owned(),
        settings: vec![("INGEST__POLL_INTERVAL_S", "1".to_owned())],
        ..Options::default()
    };
    let world = TestWorld::start(options).await.unwrap();
    let key = complete_ticket(&world).await;
    pass_test_check(&world);
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    let number = only_pull_request(&world).number;
    world
        .github
        .ask_for_review_days_ago(fixture::REPOSITORY, number, "rita", "grace", 4)
        .unwrap();
    assert_eq!(end_of(&world, &key, 2).await, StopReason::Completed);
    let reminders = async || {
        let said = world.github.comments(fixture::REPOSITORY, number);
        let is_reminder =
            |text: &str| text.contains("has waited for a review since") && text.contains("@rita");
        let count = said.iter().filter(|comment| is_reminder(&comment.body)).count();
        (count > 0).then_some(count)
    };
    assert_eq!(world.until("a reminder", reminders).await.unwrap(), 1);
    world.stop().await.unwrap();
}
