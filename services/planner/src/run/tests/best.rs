//! Restoration of the best verified state of a change.

use domain::check::EvidenceLevel;
use domain::{DecisionVerdict, Fact, Job, StopReason, WorkspaceSnapshot};

use super::play::{
    Play, build_decision, build_edit_calls, build_job_request, build_review_reply, build_tool_reply,
    build_work_replies,
};
use super::prove::Bench;
use crate::run::RunAction;

/// Plays a change that a test shows and that the reviewer objects to once.
fn play_objection(turns: u32, asked: impl FnOnce(&mut domain::RepositoryRules)) -> (Play, WorkspaceSnapshot) {
    let mut wanted = build_job_request(Job::Implement);
    wanted.rules.agent.review_rounds = 1;
    wanted.rules.agent.max_turns = turns;
    asked(&mut wanted.rules);
    let replies = (0..8).flat_map(|_| build_work_replies());
    let objection = build_review_reply(&[("shop/cart.py", 3, "an empty cart")]);
    let mut play = Play::implement_reviewed(wanted, replies, [objection]);
    play.checks = Bench {
        is_there: true,
        without: vec!["test_empty_cart"],
        ..Bench::default()
    };
    play.checks.change.test_files = vec!["tests/test_cart.py".to_owned()];
    play.until(|action| matches!(action, RunAction::Record(Fact::Returned { .. })));
    let best = play.state.source().work().snapshot.clone().unwrap();
    play.kept = 'e';
    (play, best)
}

fn went_back_to(play: &Play) -> Option<&WorkspaceSnapshot> {
    play.entries.iter().find_map(|entry| match &entry.fact {
        Fact::WentBack { snapshot, .. } => Some(snapshot),
        _ => None,
    })
}

fn drive_to_description(play: &mut Play) -> domain::ChangeDescription {
    play.pushed();
    play.drive();
    play.description().clone()
}

#[test]
fn worse_work_is_replaced_by_best_state() {
    let (mut play, best) = play_objection(60, |_| {});
    play.checks.head = vec!["test_totals"];
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(went_back_to(&play), Some(&best));
    let proof = play.state.outputs().proof().unwrap();
    assert_eq!((proof.level, proof.rows[0].broken.len()), (EvidenceLevel::E3, 0));
    let description = drive_to_description(&mut play);
    assert!(description.went_back);
    assert_eq!(
        description.objections.len(),
        1,
        "nobody met what the reviewer said"
    );
}

#[test]
fn wait_for_best_state_counts_no_minutes() {
    let (mut play, _) = play_objection(60, |_| {});
    play.checks.head = vec!["test_totals"];
    let action = play.until(|action| matches!(action, RunAction::GoBack { .. }));
    let RunAction::GoBack { snapshot } = action else {
        panic!("{action:?}")
    };
    let before = play.state.budget().spending().busy_ms;
    // The workspace was closed, and another run took its slot.
    let workspace = play.workspace.clone();
    play.append_after(500, Fact::WentBack { workspace, snapshot });
    assert_eq!(play.state.budget().spending().busy_ms, before);
}

#[test]
fn limit_after_proof_keeps_best_state() {
    let (mut play, best) = play_objection(4, |_| {});
    play.replies = (0..4).map(|_| build_tool_reply(&build_edit_calls())).collect();
    play.checks.head = vec!["test_totals"];
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(went_back_to(&play), Some(&best));
    assert_eq!(
        play.state.outputs().cut_short(),
        Some(&StopReason::TurnLimit { turns: 4 })
    );
    let description = drive_to_description(&mut play);
    assert_eq!(
        description.handover.title, "Correct the totals",
        "as the model described that state"
    );
    assert_eq!(description.level, Some(EvidenceLevel::E3));
}

#[test]
fn equally_good_work_stays() {
    let (mut play, _) = play_objection(60, |_| {});
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(went_back_to(&play), None);
    assert!(!drive_to_description(&mut play).went_back);
}

#[test]
fn feedback_outweighs_earlier_best_state() {
    let (mut play, _) = play_objection(60, |rules| {
        rules.agent.approval = domain::ApprovalRule::BeforePush
    });
    assert_eq!(play.drive(), RunAction::Wait);
    play.shown();
    assert_eq!(play.drive(), RunAction::Wait);
    play.append(build_decision(DecisionVerdict::Revise));
    play.checks.head = vec!["test_totals"];
    play.kept = 'f';
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(went_back_to(&play), None);
    assert_eq!(
        play.state.outputs().proof().unwrap().rows[0].broken,
        ["test_totals"]
    );
}

#[test]
fn restored_best_state_survives_restart() {
    let (mut play, _) = play_objection(60, |_| {});
    play.checks.head = vec!["test_totals"];
    play.drive();
    let again = crate::run::PlannerRunState::fold(&play.state.run, &play.entries)
        .unwrap()
        .unwrap();
    assert_eq!(format!("{again:?}"), format!("{:?}", play.state));
}
