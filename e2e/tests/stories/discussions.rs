//! GitHub discussions: researched, answered, summarized, planned and closed.

use domain::StopReason;
use e2e::{Options, TestWorld};
use serde_json::json;
use testkit::{
    ScriptStep, fixture,
    fixture::REPOSITORY,
    github::{ReactedObject, StandInDiscussion, StandInDiscussionComment, WRITER_LOGIN},
};

use crate::{end_of, signals::await_reactions, start_world_with_rules};

const RULES: &str = "discussions:\n  enabled: true\nissues:\n  most_planned: 3\n";
const LINE: &str = "return full * (100 - discount_percent) // 100";

fn build_options() -> Options {
    Options {
        rules: RULES.to_owned(),
        ..Options::default()
    }
}

/// Model replies that read the line and answer with `said`.
fn build_answer_script(said: &str) -> Vec<ScriptStep> {
    let citations = json!([{"path": "shop/cart.py", "line": 36, "quote": LINE}]);
    vec![
        ScriptStep::call("read_file", json!({"path": "shop/cart.py"})),
        ScriptStep::call("submit_answer", json!({"answer": said, "citations": citations})),
    ]
}

fn open_discussion(world: &TestWorld, by: &str, category: &str) -> (u64, String) {
    let text = ("How do we round?", "Is the total of an invoice rounded?");
    let number = world
        .github
        .start_discussion(REPOSITORY, by, category, text)
        .unwrap();
    (number, format!("github:{REPOSITORY}/discussions/{number}"))
}

fn read_discussion(world: &TestWorld, number: u64) -> StandInDiscussion {
    world.github.discussion(REPOSITORY, number).unwrap()
}

/// Returns our comments in a discussion.
fn list_own_comments(world: &TestWorld, number: u64) -> Vec<StandInDiscussionComment> {
    let said = read_discussion(world, number).comments.into_iter();
    said.filter(|comment| comment.author == WRITER_LOGIN).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn discussion_is_researched_and_answered_in_thread() {
    let world = TestWorld::start(build_options()).await.unwrap();
    world.model.set_script_of(
        "Research what this",
        "",
        build_answer_script("It is rounded down. @everyone"),
    );
    let (number, ticket) = open_discussion(&world, "rita", "Ideas");
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    let said = list_own_comments(&world, number);
    assert_eq!(said.len(), 1, "{said:#?}");
    let body = &said[0].body;
    assert!(
        body.contains("It is rounded down. `@everyone`") && body.contains("shop/cart.py:36"),
        "{body}"
    );
    assert_eq!(said[0].reply_to, None);
    await_reactions(&world, ReactedObject::Discussion(number), &["eyes"]).await;

    world.model.set_script_of(
        "Answer this question",
        "",
        build_answer_script("Because of the tax law."),
    );
    let first = world
        .github
        .discuss_as(REPOSITORY, number, "rob", "I wonder.", None)
        .unwrap();
    let asked = world
        .github
        .discuss_as(REPOSITORY, number, "rita", "@journeyman Why?", Some(first));
    assert_eq!(end_of(&world, &ticket, 1).await, StopReason::Completed);
    let said = list_own_comments(&world, number);
    assert_eq!(said.len(), 2, "{said:#?}");
    assert!(said[1].body.contains("Because of the tax law."), "{said:#?}");
    assert_eq!(
        said[1].reply_to,
        Some(first),
        "replies have no replies, so it goes to the thread's first comment"
    );
    await_reactions(
        &world,
        ReactedObject::DiscussionComment(asked.unwrap()),
        &["eyes", "rocket"],
    )
    .await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn discussion_is_summarized_planned_and_closed() {
    let rules = format!(
        "{}  research: false\n",
        "issues:\n  most_planned: 3\ndiscussions:\n  enabled: true\n"
    );
    let world = start_world_with_rules(rules).await;
    let (number, ticket) = open_discussion(&world, "rita", "Q&A");
    let order = |text: &str| {
        world
            .github
            .discuss_as(REPOSITORY, number, "rita", text, None)
            .unwrap()
    };

    world.model.set_script_of(
        "Sum this discussion up",
        "",
        build_answer_script("Rita asks how we round."),
    );
    order("/summarize");
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    world.model.set_script_of(
        "Sum this discussion up",
        "",
        build_answer_script("All agree on half up."),
    );
    order("/summarize");
    assert_eq!(end_of(&world, &ticket, 1).await, StopReason::Completed);
    let said = list_own_comments(&world, number);
    assert_eq!(
        said.len(),
        1,
        "the summary is kept up to date in place: {said:#?}"
    );
    assert!(said[0].body.contains("All agree on half up."), "{said:#?}");

    let issue = |title: &str| json!({"title": title, "text": "As agreed.", "checklist": ["Test it"]});
    let plan = json!({"issues": [issue("Round half up"), issue("Round the tax"), issue("Round totals")]});
    world.model.set_script_of(
        "Plan what follows",
        "",
        vec![ScriptStep::call("submit_issues", plan)],
    );
    order("/plan");
    assert_eq!(end_of(&world, &ticket, 2).await, StopReason::Completed);
    let issues = world.github.issues(REPOSITORY);
    let titles: Vec<&str> = issues.iter().map(|issue| issue.title.as_str()).collect();
    assert_eq!(titles, ["Round half up", "Round the tax", "Round totals"]);
    assert!(issues[0].body.contains("- [ ] Test it"), "{}", issues[0].body);
    assert!(
        issues[0]
            .body
            .contains(&format!("Planned in {REPOSITORY}#{number}.")),
        "{}",
        issues[0].body
    );
    let parts = world.github.sub_issues(REPOSITORY, issues[0].number).unwrap();
    assert_eq!(parts, [issues[1].number, issues[2].number]);
    let listed = list_own_comments(&world, number).pop().unwrap().body;
    assert!(listed.contains("Round the tax"), "{listed}");

    let mut steps = build_answer_script("We round half up.");
    let first = steps.remove(0).expecting("Round the tax");
    steps.insert(0, first);
    world
        .model
        .set_script_of("This discussion is to be closed", "", steps);
    order("/complete");
    assert_eq!(end_of(&world, &ticket, 3).await, StopReason::Completed);
    let last = list_own_comments(&world, number).pop().unwrap();
    assert!(last.body.contains("We round half up."), "{last:#?}");
    let end = read_discussion(&world, number);
    assert_eq!(
        (end.closed_as.as_deref(), end.answer),
        (Some("resolved"), Some(last.id))
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn polled_discussions_ignore_guests_commands() {
    let world = TestWorld::start(Options {
        no_webhooks: true,
        settings: vec![("INGEST__POLL_INTERVAL_S", "5".to_owned())],
        ..build_options()
    })
    .await
    .unwrap();
    world
        .github
        .set_permission(fixture::REPOSITORY, "guest", "read")
        .unwrap();
    let (others, _) = open_discussion(&world, "guest", "Ideas");
    world
        .github
        .discuss_as(REPOSITORY, others, "guest", "/summarize", None)
        .unwrap();
    world.model.set_script_of(
        "Research what this",
        "",
        build_answer_script("It is rounded down."),
    );
    let (number, ticket) = open_discussion(&world, "rita", "Ideas");
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    world.model.set_script_of(
        "Sum this discussion up",
        "",
        build_answer_script("Rita asks how we round."),
    );
    world
        .github
        .discuss_as(REPOSITORY, number, "rita", "/summarize", None)
        .unwrap();
    assert_eq!(end_of(&world, &ticket, 1).await, StopReason::Completed);
    assert_eq!(list_own_comments(&world, number).len(), 2);
    assert_eq!(
        list_own_comments(&world, others),
        [],
        "whoever may not write to the repository orders nothing"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn research_links_one_thread_per_question() {
    let rules = format!(
        "{}  threads: 2\n",
        "issues:\n  most_planned: 3\ndiscussions:\n  enabled: true\n"
    );
    let world = start_world_with_rules(rules).await;
    let found = |question: &str, answer: &str| {
        let citations = json!([{"path": "shop/cart.py", "line": 36, "quote": LINE}]);
        json!({"question": question, "answer": answer, "citations": citations})
    };
    let questions = json!([
        found("How do we round?", "Down."),
        found("Where?", "In the cart."),
        found("Why?", "Ask rita.")
    ]);
    let steps = vec![
        ScriptStep::call("read_file", json!({"path": "shop/cart.py"})),
        ScriptStep::call(
            "submit_answer",
            json!({"answer": "Three things are asked.", "questions": questions}),
        ),
    ];
    world.model.set_script_of("Research what this", "", steps);
    let (number, ticket) = open_discussion(&world, "rita", "Ideas");
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    let said = list_own_comments(&world, number);
    let [first, round, place] = &said[..] else {
        panic!("{said:#?}")
    };
    for (thread, question, answer) in [
        (round, "How do we round?", "Down."),
        (place, "Where?", "In the cart."),
    ] {
        assert_eq!(thread.reply_to, None, "people can reply in it");
        assert!(
            thread.body.contains(question) && thread.body.contains(answer),
            "{thread:#?}"
        );
        let link = format!("#discussioncomment-{}", thread.id);
        assert!(
            first.body.contains(question) && first.body.contains(&link),
            "{first:#?}"
        );
    }
    assert!(
        first.body.contains("Three things are asked.") && first.body.contains("Ask rita."),
        "{first:#?}"
    );
    world.github.redeliver_all();
    assert_eq!(list_own_comments(&world, number).len(), 3);
    world.stop().await.unwrap();
}
