//! Checks on the base before the work.

use domain::check::{CheckSpec, TreeKind};
use domain::{BaseCheckRule, Fact, Job, JobRequest};

use super::play::{Play, build_job_request, build_work_replies};
use super::prove::Bench;
use crate::run::{PlannerRunState, RunAction, decide_action};
use crate::transcript::TranscriptMessage;

fn build_play(rule: BaseCheckRule, known_at_base: bool, change: fn(&mut JobRequest)) -> Play {
    let mut asked = build_job_request(Job::Implement);
    asked.rules.agent.base_checks = rule;
    change(&mut asked);
    let mut play = Play::implement(asked, (0..6).flat_map(|_| build_work_replies()));
    play.checks = Bench {
        is_there: true,
        known_at_base,
        base: vec!["test_totals"],
        head: vec!["test_totals"],
        ..Bench::default()
    };
    play
}

fn list_checks(play: &Play) -> Vec<CheckSpec> {
    let requested = play.entries.iter().filter_map(|entry| match &entry.fact {
        Fact::CheckRequested { check, .. } => Some(check.clone()),
        _ => None,
    });
    requested.collect()
}

fn read_task(play: &Play) -> String {
    match play.transcript().messages.first() {
        Some(TranscriptMessage::User(text)) => text.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rule_selects_checks_before_work() {
    use BaseCheckRule::{Always, Never, WhenKnown};
    for (rule, is_known, is_run) in [
        (Never, true, false),
        (WhenKnown, true, true),
        (WhenKnown, false, false),
        (Always, true, true),
        (Always, false, true),
    ] {
        let mut play = build_play(rule, is_known, |_| {});
        play.until_model_call();
        let checks = list_checks(&play);
        assert_eq!(checks.len(), usize::from(is_run), "{rule:?}, {is_known}");
        assert!(
            checks
                .iter()
                .all(|check| check.tree == TreeKind::Base && check.again == 0)
        );
        assert_eq!(
            read_task(&play).contains("pytest: fails\n  - test_totals"),
            is_run,
            "{rule:?}, {is_known}"
        );
    }
}

#[test]
fn change_is_inspected_after_work_only() {
    for (rule, is_first) in [(BaseCheckRule::Never, true), (BaseCheckRule::Always, false)] {
        let mut play = build_play(rule, false, |_| {});
        let search = play.until(|action| matches!(action, RunAction::FindChecks { .. }));
        let expected = RunAction::FindChecks {
            inspects_change: is_first,
        };
        assert_eq!(search, expected, "{rule:?}");
        assert_eq!(play.drive(), RunAction::Wait, "{rule:?}");
        let find = |is_it: fn(&Fact) -> bool| play.entries.iter().position(|entry| is_it(&entry.fact));
        let inspected = find(|fact| matches!(fact, Fact::ChangeInspected { .. }));
        let handed_over = find(|fact| {
            matches!(
                fact,
                Fact::PhaseFinished {
                    output: domain::PhaseOutput::Work { .. }
                }
            )
        });
        assert!(handed_over.is_some() && handed_over < inspected, "{rule:?}");
    }
}

#[test]
fn disabled_checks_are_not_searched() {
    let mut play = build_play(BaseCheckRule::Always, true, |asked| {
        asked.rules.agent.checks = Some(Vec::new());
    });
    play.until_model_call();
    let is_search = |fact: &Fact| matches!(fact, Fact::ChecksFound { .. });
    assert!(!play.entries.iter().any(|entry| is_search(&entry.fact)));
}

#[test]
fn proof_uses_result_from_before_work() {
    let mut play = build_play(BaseCheckRule::Always, false, |_| {});
    assert_eq!(play.drive(), RunAction::Wait);
    let on_base = list_checks(&play)
        .into_iter()
        .filter(|check| check.tree == TreeKind::Base && check.again == 0);
    assert_eq!(on_base.count(), 1);
    let searches = play.entries.iter();
    let searches = searches.filter(|entry| matches!(entry.fact, Fact::ChecksFound { .. }));
    assert_eq!(searches.count(), 1);
}

#[test]
fn first_message_ignores_later_results() {
    let mut play = build_play(BaseCheckRule::WhenKnown, false, |_| {});
    play.until_model_call();
    let first = read_task(&play);
    play.perform(decide_action(&play.state));
    // The proof runs the check on the base, and then the work continues.
    play.until(|action| matches!(action, RunAction::RunChecks { .. }));
    while let RunAction::RunChecks { .. } = decide_action(&play.state) {
        play.perform(decide_action(&play.state));
    }
    assert!(!list_checks(&play).is_empty());
    assert!(play.state.verification().early_base_results().is_empty());
    play.append(Fact::Returned {
        why: domain::ReturnReason::NothingChanged,
    });
    play.until_model_call();
    assert_eq!(read_task(&play), first);
}

#[test]
fn work_of_former_release_gets_no_base_checks() {
    let mut play = build_play(BaseCheckRule::Never, true, |_| {});
    play.until_model_call();
    let Fact::RunStarted { trigger } = &mut play.entries[0].fact else {
        panic!("no start")
    };
    let domain::TriggerReason::JobRequested(request) = &mut trigger.reason else {
        panic!("no request")
    };
    request.rules.agent.base_checks = BaseCheckRule::Always;
    let state = PlannerRunState::fold(&play.state.run, &play.entries);
    let next = decide_action(&state.unwrap().unwrap());
    assert!(matches!(next, RunAction::AskModel { .. }), "{next:?}");
}

#[test]
fn every_prefix_of_early_checks_resumes() {
    let mut play = build_play(BaseCheckRule::Always, false, |_| {});
    play.until_model_call();
    let task = read_task(&play);
    let found = |entry: &domain::JournalEntry| matches!(entry.fact, Fact::ChecksFound { .. });
    let first = play.entries.iter().position(found).unwrap();
    for length in first..=play.entries.len() {
        let entries = play.entries[..length].to_vec();
        let state = PlannerRunState::fold(&play.state.run, &entries).unwrap().unwrap();
        let mut resumed = Play::resumed(entries, state, build_work_replies().to_vec());
        resumed.checks = Bench {
            is_there: true,
            base: vec!["test_totals"],
            ..Bench::default()
        };
        resumed.until_model_call();
        assert_eq!(read_task(&resumed), task, "{length}");
        assert_eq!(list_checks(&resumed).len(), 1, "{length}");
    }
}
