//! Decisions in comments: about a plan on Jira, about a change on a GitHub issue.

use domain::StopReason;
use e2e::{Options, TestWorld};
use serde_json::json;
use testkit::{ScriptStep, fixture, fixture::REPOSITORY, github::ReactedObject};

use crate::{
    ISSUE_RULES, assign_issue, comment_with, end_of, list_own_comments, only_pull_request, open_issue,
    signals::await_reactions, start_world_with_rules,
};

/// Returns the commit or plan that an offered approval names.
pub(crate) fn extract_approval_target(words: &str) -> String {
    let (_, rest) = words.rsplit_once("/approve ").expect("an approval is offered");
    rest.chars().take_while(char::is_ascii_hexdigit).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn comment_approves_named_plan() {
    let world = start_world_with_rules("agent:\n  approval: plan\n").await;
    let key = world.ask().unwrap();
    let asked = comment_with(&world, &key, "Decide in a comment").await;
    assert_eq!(world.model.calls().len(), 0, "no work yet");
    let approve = format!("/approve {}", extract_approval_target(&asked));
    world.jira.comment_as(&key, "ada", &approve).unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    only_pull_request(&world);
    world.stop().await.unwrap();
}

/// Issue whose change waits for a decision.
struct Gate {
    world: TestWorld,
    number: u64,
    ticket: String,
}

impl Gate {
    async fn of(script: Vec<ScriptStep>) -> Self {
        let world = TestWorld::start(Options {
            rules: format!("agent:\n  approval: before_push\n{ISSUE_RULES}"),
            script: Some(script),
            ..Options::default()
        });
        let world = world.await.unwrap();
        let (number, ticket) = open_issue(&world, "ada");
        assign_issue(&world, number);
        Self {
            world,
            number,
            ticket,
        }
    }

    /// Waits for a question about another commit than `before` and returns that commit.
    async fn asks(&self, before: &str) -> String {
        let asked = async || {
            let words = list_own_comments(&self.world, self.number).concat();
            let commit = words
                .contains("/approve ")
                .then(|| extract_approval_target(&words))?;
            (commit != before).then_some(commit)
        };
        self.world.until("a question", asked).await.unwrap()
    }

    /// Decides as a user and waits for the reaction that confirms the comment.
    async fn decide(&self, words: &str) {
        let comment = self
            .world
            .github
            .comment_as(REPOSITORY, self.number, "rita", words)
            .unwrap();
        await_reactions(&self.world, ReactedObject::Comment(comment), &["eyes"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_comments_return_then_approve_change() {
    let mut script = fixture::build_shop_script();
    let mark = json!({"command": "echo '# in cents' >> shop/cart.py"});
    script.push(ScriptStep::call("run_command", mark).expecting("Say that it is in cents."));
    script.push(fixture::build_finish_step(
        "cart",
        "Count every piece in the cart's total",
    ));
    let gate = Gate::of(script).await;
    let first = gate.asks("").await;
    gate.decide("/feedback Say that it is in cents.").await;
    let second = gate.asks(&first).await;
    assert_eq!(
        gate.world.github.branches(REPOSITORY).len(),
        1,
        "nothing is pushed yet"
    );
    gate.decide(&format!("/approve {second}")).await;
    let world = &gate.world;
    assert_eq!(end_of(world, &gate.ticket, 0).await, StopReason::Completed);
    let pull = only_pull_request(world);
    assert!(pull.head_sha.starts_with(&second), "{pull:#?}");
    let cart = world.github.file(REPOSITORY, &pull.head, "shop/cart.py");
    assert!(cart.unwrap().contains("# in cents"));
    gate.world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_comment_rejects_change_without_push() {
    let gate = Gate::of(fixture::build_shop_script()).await;
    gate.asks("").await;
    gate.decide("/reject").await;
    let reason = end_of(&gate.world, &gate.ticket, 0).await;
    assert!(
        matches!(&reason, StopReason::Rejected { by } if by == "rita"),
        "{reason:?}"
    );
    assert_eq!(gate.world.github.branches(REPOSITORY).len(), 1);
    assert!(gate.world.github.pull_requests(REPOSITORY).is_empty());
    gate.world.stop().await.unwrap();
}
