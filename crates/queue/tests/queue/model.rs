//! Keyed log compared with a model, for any order of appends, wakes, takes and settlements.

use std::collections::BTreeMap;

use domain::{RunFence, Trigger};
use proptest::prelude::*;
use queue::{AppendOutcome, KeyedLog, TokenSource, WakeupToken};

use crate::world::{World, await_soon, build_ticket_key, build_trigger};

#[derive(Clone, Debug)]
enum Step {
    Append(u8),
    Wake,
    Take,
    Release,
    Finish,
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0_u8..4).prop_map(Step::Append),
        2 => Just(Step::Wake),
        3 => Just(Step::Take),
        1 => Just(Step::Release),
        1 => Just(Step::Finish),
    ];
    prop::collection::vec(step, 1..25)
}

/// Expected content of the log after some steps.
#[derive(Default)]
struct Model {
    keys: BTreeMap<u64, u8>,
    outstanding: bool,
    fence: Option<RunFence>,
}

async fn apply_steps(
    log: &KeyedLog<Trigger>,
    tokens: &mut TokenSource<Trigger>,
    number: u64,
    steps: Vec<Step>,
) {
    let (ticket, mut model, mut held) = (
        build_ticket_key(number),
        Model::default(),
        None::<WakeupToken<Trigger>>,
    );
    for step in steps {
        match step {
            Step::Append(key) => {
                let known = model
                    .keys
                    .iter()
                    .find(|(_, known)| **known == key)
                    .map(|(at, _)| *at);
                match (
                    log.append(&build_trigger(&ticket, &format!("key:{key}")))
                        .await
                        .unwrap(),
                    known,
                ) {
                    (AppendOutcome::New(at), None) => drop(model.keys.insert(at, key)),
                    (AppendOutcome::Known(at), Some(known)) => assert_eq!(at, known),
                    (appended, known) => panic!("{appended:?}, but the model says {known:?}"),
                }
            }
            Step::Wake => {
                assert_eq!(log.rewake(&ticket).await.unwrap(), !model.outstanding);
                model.outstanding = true;
            }
            Step::Take if model.outstanding && held.is_none() => {
                let token = await_soon(tokens.next()).await.unwrap();
                assert_eq!(*token.ticket(), ticket);
                assert!(
                    model.fence.is_none_or(|fence| token.fence() > fence),
                    "fences only grow"
                );
                model.fence = Some(token.fence());
                held = Some(token);
            }
            Step::Take => {}
            Step::Release => {
                if let Some(token) = held.take() {
                    token.release().await;
                }
            }
            Step::Finish => {
                if let Some(token) = held.take() {
                    token.finish().await.unwrap();
                    model.outstanding = false;
                }
            }
        }
        let stored: Vec<u64> = log
            .read_after(&ticket, 0)
            .await
            .unwrap()
            .into_iter()
            .map(|(at, _)| at)
            .collect();
        assert_eq!(stored, model.keys.keys().copied().collect::<Vec<_>>());
    }
    // The next case must start without tokens of this one.
    if held.is_none() && model.outstanding {
        held = await_soon(tokens.next()).await;
    }
    if let Some(token) = held {
        token.finish().await.unwrap();
    }
}

#[test]
fn keyed_log_matches_its_model() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::new());
    let log = world.queue.triggers();
    let mut tokens = runtime.block_on(log.tokens(world.shutdown.clone())).unwrap();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 24,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let number = std::cell::Cell::new(0);
    let tokens = std::cell::RefCell::new(&mut tokens);
    runner
        .run(&any_steps(), |steps| {
            number.set(number.get() + 1);
            runtime.block_on(apply_steps(&log, &mut tokens.borrow_mut(), number.get(), steps));
            Ok(())
        })
        .unwrap();
}
