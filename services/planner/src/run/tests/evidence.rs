//! Evidence from test runs: no passing test is lost, silenced or weakened.

use domain::check::{ChangeFinding, ChangeHunk, CheckOutcome, EvidenceLevel, FindingSeverity, TreeKind};
use domain::{
    ChangeDoubt, ChangedFileSize, CheckRow, FileRole, OutboundAction, OutboundOutcome, OutboundReceipt,
    ReturnReason, ShownBy, StopReason,
};

use super::play::{Play, build_job_request, build_work_replies};
use super::prove::{Bench, build_checked_play, count_check_runs, read_evidence_level};
use crate::run::RunAction;

/// Passing and failing tests in one kind of tree.
type Shown = (&'static [&'static str], &'static [&'static str]);

const ALL: [&str; 2] = ["tests/test_cart.py::test_total", "tests/test_cart.py::test_tax"];

fn build_bench(shown: fn(&TreeKind) -> Shown) -> Bench {
    let mut bench = Bench {
        shown: Some(shown),
        ..Bench::default()
    };
    bench.change.test_files = vec!["tests/test_cart.py".to_owned()];
    bench
}

fn prove_change(bench: Bench) -> Play {
    let mut play = build_checked_play(bench);
    assert_eq!(play.drive(), RunAction::Wait);
    play
}

fn read_check_row(play: &Play) -> &CheckRow {
    &play.state.outputs().proof().unwrap().rows[0]
}

fn list_findings(play: &Play) -> Vec<(&str, FindingSeverity)> {
    let found = play.state.outputs().proof().unwrap().findings.iter();
    found
        .map(|finding| (finding.kind.as_str(), finding.severity))
        .collect()
}

/// Drives a verified change to the end of its run.
fn drive_to_end(play: &mut Play) -> StopReason {
    play.pushed();
    assert_eq!(play.drive(), RunAction::Wait);
    play.opened();
    for _ in 0..3 {
        if matches!(play.drive(), RunAction::Rest) {
            break;
        }
        play.settle(OutboundOutcome::Done(OutboundReceipt::Told));
    }
    play.reason().clone()
}

#[test]
fn head_that_does_not_load_is_worse() {
    let mut bench = build_bench(|tree| match tree {
        TreeKind::Head => (&[], &[]),
        _ => (&ALL[..1], &ALL[1..]),
    });
    bench.outcome = |check| (check.tree == TreeKind::Head).then_some(CheckOutcome::Red);
    let mut play = prove_change(bench);
    assert_eq!(play.state.conversation().turn_count(), 8, "three returns");
    assert_eq!(
        (
            read_check_row(&play).missing_count,
            &read_check_row(&play).missing[..]
        ),
        (1, &[ALL[0].to_owned()][..])
    );
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E1));
    let reason = drive_to_end(&mut play);
    let StopReason::ChecksFail {
        missing,
        commands,
        uncompared,
        ..
    } = reason
    else {
        panic!("{reason:?}")
    };
    assert_eq!(
        (missing, commands, uncompared),
        (vec![ALL[0].to_owned()], vec!["pytest".to_owned()], Vec::new())
    );
}

#[test]
fn check_without_result_is_worse() {
    for outcome in [CheckOutcome::NoTests, CheckOutcome::Inert, CheckOutcome::Timeout] {
        let mut bench = build_bench(|tree| match tree {
            TreeKind::Head => (&[], &[]),
            _ => (&ALL, &[]),
        });
        bench.outcome = match outcome {
            CheckOutcome::NoTests => |check| (check.tree == TreeKind::Head).then_some(CheckOutcome::NoTests),
            CheckOutcome::Inert => |check| (check.tree == TreeKind::Head).then_some(CheckOutcome::Inert),
            _ => |check| (check.tree == TreeKind::Head).then_some(CheckOutcome::Timeout),
        };
        let play = prove_change(bench);
        assert!(read_check_row(&play).is_worse(), "{outcome:?}");
        assert_eq!(read_check_row(&play).missing.len(), 2, "{outcome:?}");
    }
}

#[test]
fn number_that_falls_is_worse_without_names() {
    let mut bench = Bench {
        base: vec!["test_old"],
        head: vec!["test_old"],
        ..Bench::default()
    };
    bench.passed = |tree| match tree {
        TreeKind::Head => 0,
        _ => 4,
    };
    let play = prove_change(bench);
    assert_eq!(
        (
            read_check_row(&play).missing_count,
            read_check_row(&play).is_worse()
        ),
        (3, true)
    );
}

#[test]
fn silenced_test_goes_back_then_blocks() {
    let play = prove_change(build_bench(|tree| match tree {
        TreeKind::Head | TreeKind::BaseWith { .. } => (&ALL[1..], &[]),
        TreeKind::HeadWithBase { .. } => (&ALL[1..], &ALL[..1]),
        _ => (&ALL, &[]),
    }));
    assert_eq!(play.state.conversation().turn_count(), 4, "one return");
    assert_eq!(list_findings(&play), [("test_silenced", FindingSeverity::Block)]);
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E1));
    assert!(matches!(play.last_request(), OutboundAction::DecisionNeeded(_)));
}

#[test]
fn silenced_test_that_holds_is_flagged() {
    let play = prove_change(build_bench(|tree| match tree {
        TreeKind::Head => (&ALL[1..], &[]),
        _ => (&ALL, &[]),
    }));
    assert_eq!(list_findings(&play), [("test_silenced", FindingSeverity::Flag)]);
}

#[test]
fn weakened_test_blocks_whatever_passes() {
    let play = prove_change(build_bench(|tree| match tree {
        TreeKind::HeadWithBase { .. } => (&ALL[1..], &ALL[..1]),
        _ => (&ALL, &[]),
    }));
    assert_eq!(list_findings(&play), [("test_weakened", FindingSeverity::Block)]);
    let finding = &play.state.outputs().proof().unwrap().findings[0];
    assert!(
        finding.words.contains(ALL[0]) && finding.path == "tests/test_cart.py",
        "{finding:?}"
    );
    assert!(matches!(play.returns()[..], [ReturnReason::Weakened { .. }]));
}

#[test]
fn failing_test_that_is_left_out_blocks() {
    let play = prove_change(build_bench(|tree| match tree {
        TreeKind::Head | TreeKind::BaseWith { .. } => (&ALL[1..], &[]),
        _ => (&ALL[1..], &ALL[..1]),
    }));
    assert_eq!(list_findings(&play), [("test_silenced", FindingSeverity::Block)]);
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E1));
}

#[test]
fn rewritten_expectation_of_failing_test_blocks() {
    let play = prove_change(build_bench(|tree| match tree {
        TreeKind::Head | TreeKind::BaseWith { .. } => (&ALL, &[]),
        _ => (&ALL[1..], &ALL[..1]),
    }));
    assert_eq!(list_findings(&play), [("test_weakened", FindingSeverity::Block)]);
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E1));
}

#[test]
fn changed_expectation_of_behavior_is_flagged() {
    let play = prove_change(build_bench(|tree| match tree {
        TreeKind::HeadWithBase { .. } | TreeKind::BaseWith { .. } => (&ALL[1..], &ALL[..1]),
        _ => (&ALL, &[]),
    }));
    assert_eq!(
        list_findings(&play),
        [("behavior_changed", FindingSeverity::Flag)]
    );
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E3));
    assert_eq!(
        play.state.outputs().proof().unwrap().shown_by,
        Some(ShownBy::ChangedTests)
    );
    assert_eq!(play.state.conversation().turn_count(), 2, "nothing goes back");
}

/// Change with a new name for the function under test: the former test file does not load with it.
fn build_rename_bench() -> Bench {
    let mut bench = build_bench(|tree| match tree {
        TreeKind::HeadWithBase { .. } => (&[], &[]),
        TreeKind::BaseWith { .. } => (&ALL[1..], &ALL[..1]),
        _ => (&ALL, &[]),
    });
    bench.outcome = |check| matches!(check.tree, TreeKind::HeadWithBase { .. }).then_some(CheckOutcome::Red);
    bench
}

#[test]
fn replaced_tests_alone_show_no_change() {
    let play = prove_change(build_rename_bench());
    assert_eq!(list_findings(&play), [("test_replaced", FindingSeverity::Flag)]);
    let finding = &play.state.outputs().proof().unwrap().findings[0];
    assert!(
        finding.words.contains("cannot run with the change") && finding.words.contains(ALL[0]),
        "{finding:?}"
    );
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E1));
    assert_eq!(play.state.conversation().turn_count(), 2, "nothing goes back");
}

#[test]
fn replaced_failing_test_shows_no_change() {
    let play = prove_change(build_bench(|tree| match tree {
        TreeKind::Base | TreeKind::BaseWith { .. } => (&ALL[1..], &ALL[..1]),
        TreeKind::HeadWithBase { .. } => (&ALL[1..], &[]),
        _ => (&ALL, &[]),
    }));
    assert_eq!(list_findings(&play), [("test_replaced", FindingSeverity::Flag)]);
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E1));
}

#[test]
fn replaced_tests_beside_existing_one_are_flagged() {
    let play = prove_change(build_bench(|tree| match tree {
        TreeKind::Base | TreeKind::BaseWith { .. } => (&ALL[1..], &ALL[..1]),
        TreeKind::HeadWithBase { .. } => (&ALL[..1], &[]),
        _ => (&ALL, &[]),
    }));
    assert_eq!(list_findings(&play), [("test_replaced", FindingSeverity::Flag)]);
    let proof = play.state.outputs().proof().unwrap();
    assert_eq!(
        (proof.level, proof.shown_by),
        (EvidenceLevel::E3, Some(ShownBy::OwnTests))
    );
}

#[test]
fn replaced_tests_named_by_ticket_show_the_change() {
    let mut asked = build_job_request(domain::Job::Implement);
    asked.text.description = "Rename the function.\nLet test_total and test_tax use the new name.".to_owned();
    let mut play = Play::implement(asked, (0..6).flat_map(|_| build_work_replies()));
    play.checks = Bench {
        is_there: true,
        ..build_rename_bench()
    };
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(list_findings(&play), [("test_replaced", FindingSeverity::Flag)]);
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E3));
}

#[test]
fn weakened_test_named_by_ticket_is_flag() {
    let mut asked = build_job_request(domain::Job::Implement);
    asked.text.description = "Totals are new.\nLet test_total accept both forms. Thanks!".to_owned();
    let mut play = Play::implement(asked, (0..6).flat_map(|_| build_work_replies()));
    play.checks = Bench {
        is_there: true,
        ..build_bench(|tree| match tree {
            TreeKind::HeadWithBase { .. } => (&ALL[1..], &ALL[..1]),
            _ => (&ALL, &[]),
        })
    };
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(list_findings(&play), [("test_weakened", FindingSeverity::Flag)]);
    let finding = &play.state.outputs().proof().unwrap().findings[0];
    assert_eq!(finding.ticket_words, "Let test_total accept both forms");
}

#[test]
fn weakened_test_only_mentioned_by_ticket_blocks() {
    for text in [
        "test_total fails since Monday.",
        "The check test_total shows it; it is right.",
        "Do not change test_total.",
    ] {
        let mut asked = build_job_request(domain::Job::Implement);
        asked.text.description = text.to_owned();
        let mut play = Play::implement(asked, (0..6).flat_map(|_| build_work_replies()));
        play.checks = Bench {
            is_there: true,
            ..build_bench(|tree| match tree {
                TreeKind::HeadWithBase { .. } => (&ALL[1..], &ALL[..1]),
                _ => (&ALL, &[]),
            })
        };
        play.drive();
        assert_eq!(
            list_findings(&play),
            [("test_weakened", FindingSeverity::Block)],
            "{text}"
        );
    }
}

#[test]
fn forged_repair_is_no_evidence() {
    // With a support file of the change a test passes that still fails with the files of the base.
    let mut bench = build_bench(|tree| match tree {
        TreeKind::Base | TreeKind::HeadWithBase { .. } => (&ALL[1..], &ALL[..1]),
        _ => (&ALL, &[]),
    });
    bench.change.test_files.clear();
    bench.change.support_files = vec!["sitecustomize.py".to_owned()];
    let play = prove_change(bench);
    assert_eq!(
        (read_evidence_level(&play), read_check_row(&play).mended.len()),
        (Some(EvidenceLevel::E1), 0)
    );
}

#[test]
fn existing_test_outranks_changed_test() {
    let play = prove_change(build_bench(|tree| match tree {
        TreeKind::Base | TreeKind::BaseWith { .. } => (&ALL[1..], &ALL[..1]),
        _ => (&ALL, &[]),
    }));
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E3));
    assert_eq!(
        play.state.outputs().proof().unwrap().shown_by,
        Some(ShownBy::OwnTests)
    );
}

fn build_hunk(path: &str, is_test: bool) -> ChangeHunk {
    ChangeHunk {
        path: path.to_owned(),
        line: 1,
        lines: 1,
        is_test,
    }
}

#[test]
fn tests_beside_the_code_are_evidence() {
    let mut bench = build_bench(|tree| match tree {
        TreeKind::Head => (&["tests::new", "tests::old"], &[]),
        TreeKind::HeadWithBase { hunks, .. } if hunks == &[0] => (&["tests::old"], &["tests::new"]),
        _ => (&["tests::old"], &[]),
    });
    bench.change.test_files.clear();
    bench.change.hunks = vec![
        build_hunk("src/lib.rs", false),
        build_hunk("src/lib.rs", true),
        build_hunk("src/a.rs", false),
    ];
    let product = |path: &str| ChangedFileSize {
        path: path.to_owned(),
        added: 2,
        removed: 0,
        role: FileRole::Product,
    };
    bench.change.changed = vec![product("src/a.rs"), product("src/lib.rs")];
    let play = prove_change(bench);
    assert_eq!(
        (read_evidence_level(&play), &read_check_row(&play).mended[..]),
        (Some(EvidenceLevel::E3), &["tests::new".to_owned()][..])
    );
    let base = |check: &domain::check::CheckSpec| matches!(&check.tree, TreeKind::HeadWithBase { paths, hunks, .. } if paths == &["src/a.rs"] && hunks == &[0]);
    assert!(count_check_runs(&play, base) > 0, "the other file is the base's");
}

#[test]
fn reverted_part_breaking_new_test_is_evidence() {
    let mut bench = build_bench(|tree| match tree {
        TreeKind::HeadWithout { .. } => (&["tests::old"], &["tests::new"]),
        TreeKind::Head => (&["tests::old", "tests::new"], &[]),
        _ => (&["tests::old"], &[]),
    });
    bench.outcome = |check| matches!(check.tree, TreeKind::BaseWith { .. }).then_some(CheckOutcome::Infra);
    bench.change.hunks = vec![build_hunk("src/lib.rs", false)];
    assert_eq!(read_evidence_level(&prove_change(bench)), Some(EvidenceLevel::E3));
}

fn find_doubts(bench: Bench) -> Vec<ChangeDoubt> {
    let play = prove_change(bench);
    let found = play.returns().into_iter().flat_map(|why| match why {
        ReturnReason::Questioned { doubts } => doubts.clone(),
        _ => Vec::new(),
    });
    found.collect()
}

#[test]
fn change_of_comments_is_questioned_once() {
    let mut bench = build_bench(|_| (&ALL, &[]));
    bench.change.code_lines = Some(0);
    bench.change.changed = vec![ChangedFileSize {
        path: "shop/cart.py".to_owned(),
        added: 1,
        removed: 0,
        role: FileRole::Product,
    }];
    assert_eq!(find_doubts(bench), [ChangeDoubt::NoCode]);
}

#[test]
fn change_of_thousands_of_lines_is_questioned() {
    let mut bench = build_bench(|_| (&ALL, &[]));
    bench.change.product_lines = 3_000;
    assert_eq!(find_doubts(bench), [ChangeDoubt::TooLarge { lines: 3_000 }]);
}

#[test]
fn flagged_change_does_not_go_back() {
    let mut bench = build_bench(|_| (&ALL, &[]));
    bench.change.findings = vec![ChangeFinding {
        path: "shop/cart.py".to_owned(),
        line: 3,
        kind: "ticket_value_in_product".to_owned(),
        severity: FindingSeverity::Flag,
        words: "an example of the ticket".to_owned(),
        ticket_words: String::new(),
    }];
    assert_eq!(prove_change(bench).state.conversation().turn_count(), 2);
}

/// Outcomes of runs, where they do not follow from their tests.
type ForcedOutcome = fn(&domain::check::CheckSpec) -> Option<CheckOutcome>;

#[test]
fn base_without_result_excuses_nothing() {
    let bases: [ForcedOutcome; 4] = [
        |check| (check.tree == TreeKind::Base).then_some(CheckOutcome::Inert),
        |check| (check.tree == TreeKind::Base).then_some(CheckOutcome::Timeout),
        |check| (check.tree == TreeKind::Base).then_some(CheckOutcome::Infra),
        |check| (check.tree == TreeKind::Base).then_some(CheckOutcome::NoTests),
    ];
    for (number, outcome) in bases.into_iter().enumerate() {
        let mut play = prove_change(Bench {
            head: vec!["test_totals"],
            outcome,
            ..Bench::default()
        });
        assert_eq!(read_check_row(&play).broken, ["test_totals"], "{number}");
        assert_eq!(
            play.state.conversation().turn_count(),
            8,
            "{number}: three returns"
        );
        assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E1), "{number}");
        let reason = drive_to_end(&mut play);
        let StopReason::ChecksFail {
            failing, uncompared, ..
        } = reason
        else {
            panic!("{number}: {reason:?}")
        };
        assert_eq!(failing, ["test_totals"], "{number}");
        assert_eq!(uncompared, ["pytest"], "{number}");
    }
}

#[test]
fn check_that_never_runs_is_not_worse() {
    let play = prove_change(Bench {
        outcome: |_| Some(CheckOutcome::Inert),
        ..Bench::default()
    });
    assert!(!read_check_row(&play).is_worse());
    assert_eq!(
        (play.state.conversation().turn_count(), read_evidence_level(&play)),
        (2, Some(EvidenceLevel::E0))
    );
}

#[test]
fn reports_of_rules_reach_check() {
    let mut asked = build_job_request(domain::Job::Implement);
    asked.rules.agent.reports = vec!["out/junit/*.xml".to_owned()];
    let mut play = Play::implement(asked, (0..6).flat_map(|_| build_work_replies()));
    play.checks = Bench {
        is_there: true,
        ..Bench::default()
    };
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(count_check_runs(&play, |check| check.command == "pytest") > 0);
    let is_without = |check: &domain::check::CheckSpec| check.reports != ["out/junit/*.xml"];
    assert_eq!(count_check_runs(&play, is_without), 0);
}
