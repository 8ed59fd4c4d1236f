//! A large change is planned first.

use domain::{Job, Phase, Planned};
use serde_json::json;

use super::play::{Play, done, end, plan, request, tools};
use crate::run::{Action, decide};
use crate::transcript::Message;

fn play(replies: impl IntoIterator<Item = domain::Reply>) -> Play {
    let mut asked = request(Job::Implement);
    asked.rules.agent.plan = Planned::Always;
    let mut play = Play::implement(asked, done());
    play.around.insert(Phase::Plan, replies.into_iter().collect());
    play
}

#[test]
fn the_work_begins_with_the_plan() {
    let mut play = play([plan()]);
    play.drive();
    assert_eq!(play.state.plan().unwrap().unwrap().steps.len(), 1);
    let Message::User(task) = &play.transcript().messages[0] else {
        panic!("no task")
    };
    assert!(task.contains("1. Multiply by the quantity. (a)"), "{task}");
}

#[test]
fn nothing_is_changed_while_planning() {
    let mut play = play([
        tools(&[
            ("edit_file", json!({"path": "a"})),
            ("read_file", json!({"path": "a"})),
        ]),
        plan(),
    ]);
    play.until(|action| matches!(action, Action::CallTool { .. }));
    let Action::CallTool { call, .. } = decide(&play.state) else {
        panic!("no call")
    };
    assert_eq!(call.name, "read_file", "the edit was answered from here");
    assert!(play.last_result().content.contains("nothing may be changed"));
}

#[test]
fn a_model_that_makes_no_plan_does_not_hold_the_work_up() {
    let mut play = play((0..20).map(|_| end("Hm.")));
    play.drive();
    assert_eq!(play.state.plan(), Some(None));
    assert!(play.state.exit().is_some());
    assert_eq!(play.state.turns(), 15 + 2);
}
