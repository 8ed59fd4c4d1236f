//! Selection of models for a run.

use domain::StopReason;
use e2e::{Options, TestWorld};
use testkit::{
    ScriptedModel, ServiceFault, fixture,
    model::{MODEL_API_KEY, ModelCall, surrounding_replies},
};

use crate::{complete_ticket, end_of, only_pull_request};

/// Starts a world with a second provider that has the other dialect and the same script.
async fn start_provider_world(rules: &str, fallbacks: &str) -> (TestWorld, ScriptedModel) {
    bootstrap::install_tls_provider();
    let second = ScriptedModel::start(fixture::build_shop_script()).await.unwrap();
    let world = TestWorld::start(Options {
        rules: rules.to_owned(),
        settings: vec![
            ("MODEL__FALLBACKS", fallbacks.to_owned()),
            ("MODEL__PROVIDERS__SECOND__DIALECT", "openai".to_owned()),
            ("MODEL__PROVIDERS__SECOND__NAME", "spare".to_owned()),
            ("MODEL__PROVIDERS__SECOND__API_KEY", MODEL_API_KEY.to_owned()),
            (
                "MODEL__PROVIDERS__SECOND__BASE_URL",
                format!("{}/v1", second.url()),
            ),
        ],
        ..Options::default()
    });
    (world.await.unwrap(), second)
}

fn list_model_names(calls: &[ModelCall]) -> Vec<&str> {
    let mut names: Vec<&str> = calls
        .iter()
        .filter_map(|call| call.request["model"].as_str())
        .collect();
    names.dedup();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_select_model_of_each_phase() {
    let rules = "agent:\n  models: {intake: tiny, work: \"second:strong\", review: judge}\n";
    let (world, second) = start_provider_world(rules, "").await;
    complete_ticket(&world).await;
    assert_eq!(
        list_model_names(&world.model.calls_of(surrounding_replies::INTAKE)),
        ["tiny"]
    );
    assert_eq!(
        list_model_names(&world.model.calls_of(surrounding_replies::REVIEW)),
        ["judge"]
    );
    assert!(world.model.calls().is_empty(), "the work is the other provider's");
    assert_eq!(list_model_names(&second.calls()), ["strong"]);
    assert_eq!(second.calls().len(), fixture::build_shop_script().len());
    only_pull_request(&world);
    assert_eq!(second.violations(), Vec::<String>::new());
    world.stop().await.unwrap();
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fallback_provider_continues_whole_conversation() {
    let (world, second) = start_provider_world("", "second").await;
    // The first provider refuses every later turn of a conversation.
    let refusal = ServiceFault::new("/v1/", 1000, 401).with("tool_result");
    world.model.fail_next(refusal);
    let key = world.ask().unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    let (first, rest) = (world.model.calls(), second.calls());
    assert!(
        !first.is_empty() && !rest.is_empty(),
        "{} and {}",
        first.len(),
        rest.len()
    );
    assert_eq!(first.len() + rest.len(), fixture::build_shop_script().len());
    let steps: Vec<usize> = first.iter().chain(&rest).map(|call| call.step).collect();
    assert!(steps.is_sorted(), "{steps:?}");
    assert_eq!(list_model_names(&rest), ["spare"]);
    only_pull_request(&world);
    assert_eq!(second.violations(), Vec::<String>::new());
    world.stop().await.unwrap();
    second.stop().await;
}
