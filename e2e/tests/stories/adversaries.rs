//! Changes that break what they touch: they are never delivered as complete.

use domain::StopReason;
use e2e::{Options, World};
use serde_json::json;
use testkit::{Step, fixture};

use crate::{comment_with, end_of, only_pull_request};

#[tokio::test(flavor = "multi_thread")]
async fn change_that_breaks_everything_is_not_completed() {
    let world = World::start(Options::default()).await.unwrap();
    let hand_over = || fixture::finish("cart", "Count every piece in the cart's total");
    let broken = json!({"path": "shop/cart.py", "content": "def total(:\n", "force": true});
    let mut script = vec![Step::call("write_file", broken)];
    script.extend((0..4).map(|_| hand_over()));
    script[2].expect = Some("do not run any more".to_owned());
    world.model.set_script("", script);
    let key = world.ask().unwrap();
    let reason = end_of(&world, &key, 0).await;
    assert!(matches!(&reason, StopReason::ChecksFail { .. }), "{reason:?}");
    let pull = only_pull_request(&world);
    assert!(pull.draft, "it stays a draft");
    for words in [
        "Tests that ran before do not run any more",
        "Ran before and does not run with the change",
    ] {
        assert!(pull.body.contains(words), "{}", pull.body);
    }
    comment_with(&world, &key, "the change is not ready").await;
    assert_eq!(world.model.violations(), Vec::<String>::new());
    world.stop().await.unwrap();
}
