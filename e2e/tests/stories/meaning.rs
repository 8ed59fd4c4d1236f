//! Ranking of code by meaning, with a configured embeddings server.

use domain::StopReason;
use e2e::TestWorld;
use testkit::{FakeEmbeddings, ScriptStep, ServiceFault, fixture, model::MODEL_API_KEY};

use crate::{end_of, start_world_with_settings};

const SUMMARY: &str = "Coupons are refused at the checkout";

/// Files about the checkout; one of them is also about vouchers.
fn build_checkout_files() -> Vec<(String, String)> {
    let file = |number: usize| {
        let (name, words) = match number {
            7 => ("rebate", "voucher voucher voucher"),
            _ => ("step", "address address address"),
        };
        let path = format!("shop/m{number}/{name}_{number}.py");
        let text = format!(
            "def checkout_{name}_{number}(cart):\n    \"\"\"The checkout: {words}.\"\"\"\n    return cart\n"
        );
        (path, text)
    };
    (0..12).map(file).collect()
}

/// Plays a ticket to its pull request and returns the first prompt of the work.
async fn worked_on(world: &TestWorld) -> String {
    let before = world.model.calls().len();
    let key = world
        .jira
        .create_issue(fixture::PROJECT, SUMMARY, "The checkout says no.", "Bug", &[]);
    let script = fixture::build_shop_script().into_iter();
    let script = script.map(|step| ScriptStep { expect: None, ..step });
    world.model.set_script("", script.collect());
    world.ask_for_work(&key).unwrap();
    assert_eq!(end_of(world, &key, 0).await, StopReason::Completed);
    let calls = world.model.calls().split_off(before);
    let first = calls.first().expect("the model worked");
    first.request["messages"][0]["content"].to_string()
}

/// Plays tickets until the first prompt contains ranked code. Work does not wait for an index that is not
/// ready.
async fn play_until_ranked(world: &TestWorld) -> String {
    for _ in 0..10 {
        let shown = worked_on(world).await;
        if shown.contains("meaning 0.") {
            return shown;
        }
    }
    panic!("no ticket's places were ranked");
}

#[tokio::test(flavor = "multi_thread")]
async fn embeddings_rank_matching_code_first() {
    let embeddings = FakeEmbeddings::start(&[&["coupon", "voucher"], &["address"]])
        .await
        .unwrap();
    let world = start_world_with_settings(&[
        ("MODEL__EMBEDDINGS__NAME", "counting"),
        ("MODEL__EMBEDDINGS__BASE_URL", &embeddings.url()),
        ("MODEL__EMBEDDINGS__API_KEY", MODEL_API_KEY),
    ])
    .await;
    let files = build_checkout_files();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    world
        .github
        .commit(fixture::REPOSITORY, "main", "A checkout", &files)
        .unwrap();
    let shown = play_until_ranked(&world).await;
    let at = |path: &str| shown.find(path).unwrap_or(usize::MAX);
    assert!(at("shop/m7/rebate_7.py") < at("shop/m0/step_0.py"), "{shown}");
    assert!(at("shop/m7/rebate_7.py") < usize::MAX, "{shown}");

    let before = embeddings.inputs().len();
    play_until_ranked(&world).await;
    let later = embeddings.inputs().split_off(before);
    assert!(
        !later.is_empty() && later.iter().all(|texts| texts.len() == 1),
        "{later:#?}"
    );
    assert!(
        later.iter().all(|texts| texts[0].starts_with(SUMMARY)),
        "{later:#?}"
    );

    embeddings.fail_next(ServiceFault::new("/v1/embeddings", 1_000, 500));
    let shown = worked_on(&world).await;
    assert!(!shown.contains("meaning 0."), "{shown}");
    assert_eq!(embeddings.violations(), Vec::<String>::new());
    world.stop().await.unwrap();
    embeddings.stop().await;
}
