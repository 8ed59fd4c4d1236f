//! Phases around the work: intake, plan and review.

use domain::{GiveUp, StopReason};
use e2e::{Options, TestWorld};
use serde_json::{Value, json};
use testkit::{ScriptStep, fixture, model::surrounding_replies};

use crate::{comment_with, complete_ticket, end_of, only_pull_request, start_default_world};

fn build_intake_script(fields: &Value) -> Vec<ScriptStep> {
    vec![ScriptStep::reply(surrounding_replies::render_intake(fields))]
}

#[tokio::test(flavor = "multi_thread")]
async fn ordinary_ticket_costs_two_extra_calls() {
    let world = start_default_world().await;
    complete_ticket(&world).await;
    assert_eq!(world.model.calls_of(surrounding_replies::INTAKE).len(), 1);
    assert_eq!(world.model.calls_of(surrounding_replies::PLAN).len(), 0);
    assert_eq!(world.model.calls_of(surrounding_replies::REVIEW).len(), 1);
    assert_eq!(world.model.calls().len(), fixture::build_shop_script().len());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn trivial_ticket_costs_one_extra_call() {
    let world = start_default_world().await;
    world.model.set_script_of(
        surrounding_replies::INTAKE,
        "",
        build_intake_script(&json!({"class": "trivial"})),
    );
    complete_ticket(&world).await;
    let around_the_work = world.model.all_calls().len() - world.model.calls().len();
    assert_eq!(around_the_work, 1, "a change of one line has no review");
    only_pull_request(&world);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unclear_ticket_is_asked_about_first() {
    let world = start_default_world().await;
    let questions = json!([{"text": "Are prices gross or net?", "options": ["gross", "net"]}]);
    let asks = build_intake_script(&json!({"decision": "ask", "questions": questions}));
    world.model.set_script_of(surrounding_replies::INTAKE, "", asks);
    let mut script = fixture::build_shop_script();
    script[0].expect = Some("They are net.".to_owned());
    world.model.set_script("", script);
    let key = world.ask().unwrap();
    comment_with(&world, &key, "gross or net").await;
    assert_eq!(world.model.calls().len(), 0, "no work before the answer");
    world.jira.comment_as(&key, "ada", "They are net.").unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    only_pull_request(&world);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn oversized_ticket_is_declined_with_proposal() {
    let world = start_default_world().await;
    let reason = "These are three changes: the cart, the invoices and the reports.";
    let fields = json!({"decision": "decline", "decline_kind": "too_large", "reason": reason});
    world
        .model
        .set_script_of(surrounding_replies::INTAKE, "", build_intake_script(&fields));
    let key = world.ask().unwrap();
    let ended = end_of(&world, &key, 0).await;
    assert!(
        matches!(
            ended,
            StopReason::GivenUp {
                kind: GiveUp::TooLarge,
                ..
            }
        ),
        "{ended:?}"
    );
    let comment = comment_with(&world, &key, "more than one pull request").await;
    assert!(comment.contains(reason), "{comment}");
    assert!(world.github.pull_requests(fixture::REPOSITORY).is_empty());
    assert_eq!(world.model.calls().len(), 0);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn large_ticket_is_planned_before_work() {
    let world = start_default_world().await;
    world.model.set_script_of(
        surrounding_replies::INTAKE,
        "",
        build_intake_script(&json!({"class": "large"})),
    );
    let plan = json!({
        "goal": "The total counts every piece.",
        "approach": "Multiply before the discount.",
        "steps": [{"what": "Multiply by the quantity.", "files": ["shop/cart.py"]}]
    });
    let planning = vec![
        ScriptStep::call("read_file", json!({"path": "shop/cart.py"}))
            .and_call("write_file", json!({"path": "plan.md", "content": "No.\n"})),
        ScriptStep::call("submit_plan", plan).expecting("nothing may be changed"),
    ];
    world.model.set_script_of(surrounding_replies::PLAN, "", planning);
    let mut script = fixture::build_shop_script();
    script[0].expect = Some("1. Multiply by the quantity. (shop/cart.py)".to_owned());
    world.model.set_script("", script);
    complete_ticket(&world).await;
    only_pull_request(&world);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_objection_reaches_pull_request() {
    let world = start_default_world().await;
    let objection = json!({"objections": [{
        "path": "shop/cart.py", "line": 20, "trigger": "A line with no price", "why": "The total is not a number.",
        "weight": "blocking"
    }]});
    let reviewing = vec![
        ScriptStep::call("read_file", json!({"path": "shop/cart.py"}))
            .expecting("line.price * line.quantity"),
        ScriptStep::call("submit_review", objection),
    ];
    world
        .model
        .set_script_of(surrounding_replies::REVIEW, "", reviewing);
    let mut script = fixture::build_shop_script();
    script.push(
        fixture::build_finish_step("cart", "Count every piece in the cart's total")
            .expecting("The total is not a number."),
    );
    world.model.set_script("", script);
    complete_ticket(&world).await;
    let body = only_pull_request(&world).body;
    assert!(
        body.contains("shop/cart.py line 20: The total is not a number. (A line with no price)"),
        "{body}"
    );
    assert_eq!(
        world.model.calls_of(surrounding_replies::REVIEW).len(),
        4,
        "two reviews of two calls"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn worse_rework_is_dropped_for_proven_change() {
    let world = start_default_world().await;
    let objection = json!({"objections": [{
        "path": "shop/cart.py", "line": 20, "trigger": "A line with no price", "why": "The total is not a number.",
        "weight": "blocking"
    }]});
    world.model.set_script_of(
        surrounding_replies::REVIEW,
        "",
        vec![ScriptStep::call("submit_review", objection)],
    );
    let finish = || fixture::build_finish_step("cart", "Count every piece in the cart's total");
    let mut script = fixture::build_shop_script();
    let worse = json!({"command": "sed -i 's/return full/return 1 + full/' shop/cart.py"});
    script.push(ScriptStep::call("run_command", worse).expecting("The total is not a number."));
    script.push(finish());
    for _ in 0..3 {
        script.push(finish().expecting("test_an_empty_cart_costs_nothing"));
    }
    world.model.set_script("", script);
    complete_ticket(&world).await;
    let pull = only_pull_request(&world);
    let file = world
        .github
        .file(fixture::REPOSITORY, &pull.head, "shop/cart.py")
        .unwrap();
    assert!(
        file.contains("line.price * line.quantity") && !file.contains("1 + full"),
        "{file}"
    );
    assert!(
        pull.body.contains("the state that was proven best is delivered")
            && pull.body.contains("Level of evidence: E3 "),
        "{}",
        pull.body
    );
    assert!(
        pull.body.contains("The total is not a number."),
        "the objection stays: {}",
        pull.body
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn long_conversation_is_cleared_without_harm() {
    let read = |number: usize| {
        let command = format!("seq {number} 700 # {number}");
        ScriptStep::call("run_command", json!({ "command": command }))
    };
    let mut script: Vec<ScriptStep> = (1..8).map(read).collect();
    script.extend(
        fixture::build_shop_script()
            .into_iter()
            .map(|step| ScriptStep { expect: None, ..step }),
    );
    let world = TestWorld::start(Options {
        script: Some(script),
        settings: vec![("PLANNER__CONTEXT_TOKENS", "5000".to_owned())],
        ..Options::default()
    });
    let world = world.await.unwrap();
    complete_ticket(&world).await;
    only_pull_request(&world);
    let last = world.model.calls().pop().unwrap().request.to_string();
    assert!(last.contains("left out to make room"), "{last}");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn twice_summarized_conversation_keeps_change_right() {
    let words = "I look at the next part of the shop before I change it. ".repeat(120);
    let note = |number: usize| ScriptStep {
        text: words.clone(),
        ..ScriptStep::call(
            "write_file",
            json!({ "path": "notes.txt", "content": format!("{number}\n") }),
        )
    };
    let mut script: Vec<ScriptStep> = (1..14).map(note).collect();
    script.push(ScriptStep::call(
        "run_command",
        json!({ "command": "rm notes.txt" }),
    ));
    script.extend(
        fixture::build_shop_script()
            .into_iter()
            .map(|step| ScriptStep { expect: None, ..step }),
    );
    let world = TestWorld::start(Options {
        script: Some(script),
        settings: vec![("PLANNER__CONTEXT_TOKENS", "9000".to_owned())],
        ..Options::default()
    });
    let world = world.await.unwrap();
    complete_ticket(&world).await;
    only_pull_request(&world);
    let calls = world.model.calls();
    let asked =
        |call: &&testkit::model::ModelCall| call.request.to_string().contains("Reply with a summary of it");
    assert!(calls.iter().filter(asked).count() >= 2);
    let last = calls.last().unwrap().request.to_string();
    assert!(
        last.contains("turns of your work are left out here") && last.contains("notes.txt"),
        "{last}"
    );
    world.stop().await.unwrap();
}
