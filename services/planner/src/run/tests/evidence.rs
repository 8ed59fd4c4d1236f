//! Evidence from test runs: no passing test is lost, silenced or weakened.

use domain::check::{ChangeFinding, ChangeHunk, CheckOutcome, EvidenceLevel, FindingSeverity, TreeKind};
use domain::{
    ChangeDoubt, ChangedFileSize, CheckRow, Fact, FileRole, OutboundAction, OutboundOutcome, OutboundReceipt,
    ReturnReason, ShownBy, StopReason,
};

use super::play::{Play, done, request};
use super::prove::{Bench, checked, level, runs};
use crate::run::RunAction;

/// Passing and failing tests in one kind of tree.
type Shown = (&'static [&'static str], &'static [&'static str]);

const ALL: [&str; 2] = ["tests/test_cart.py::test_total", "tests/test_cart.py::test_tax"];

fn bench(shown: fn(&TreeKind) -> Shown) -> Bench {
    let mut bench = Bench {
        shown: Some(shown),
        ..Bench::default()
    };
    bench.change.test_files = vec!["tests/test_cart.py".to_owned()];
    bench
}

fn proven(bench: Bench) -> Play {
    let mut play = checked(bench);
    assert_eq!(play.drive(), RunAction::Wait);
    play
}

fn row(play: &Play) -> &CheckRow {
    &play.state.proof().unwrap().rows[0]
}

fn findings(play: &Play) -> Vec<(&str, FindingSeverity)> {
    let found = play.state.proof().unwrap().findings.iter();
    found
        .map(|finding| (finding.kind.as_str(), finding.severity))
        .collect()
}

fn returns(play: &Play) -> Vec<&ReturnReason> {
    let entries = play.entries.iter();
    entries
        .filter_map(|entry| match &entry.fact {
            Fact::Returned { why } => Some(why),
            _ => None,
        })
        .collect()
}

/// Drives a verified change to the end of its run.
fn ended(play: &mut Play) -> StopReason {
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
    let mut bench = bench(|tree| match tree {
        TreeKind::Head => (&[], &[]),
        _ => (&ALL[..1], &ALL[1..]),
    });
    bench.outcome = |check| (check.tree == TreeKind::Head).then_some(CheckOutcome::Red);
    let mut play = proven(bench);
    assert_eq!(play.state.turns(), 8, "three returns");
    assert_eq!(
        (row(&play).missing_count, &row(&play).missing[..]),
        (1, &[ALL[0].to_owned()][..])
    );
    assert_eq!(level(&play), Some(EvidenceLevel::E1));
    let reason = ended(&mut play);
    let StopReason::ChecksFail {
        missing, commands, ..
    } = reason
    else {
        panic!("{reason:?}")
    };
    assert_eq!(
        (missing, commands),
        (vec![ALL[0].to_owned()], vec!["pytest".to_owned()])
    );
}

#[test]
fn check_without_result_is_worse() {
    for outcome in [CheckOutcome::NoTests, CheckOutcome::Inert, CheckOutcome::Timeout] {
        let mut bench = bench(|tree| match tree {
            TreeKind::Head => (&[], &[]),
            _ => (&ALL, &[]),
        });
        bench.outcome = match outcome {
            CheckOutcome::NoTests => |check| (check.tree == TreeKind::Head).then_some(CheckOutcome::NoTests),
            CheckOutcome::Inert => |check| (check.tree == TreeKind::Head).then_some(CheckOutcome::Inert),
            _ => |check| (check.tree == TreeKind::Head).then_some(CheckOutcome::Timeout),
        };
        let play = proven(bench);
        assert!(row(&play).is_worse(), "{outcome:?}");
        assert_eq!(row(&play).missing.len(), 2, "{outcome:?}");
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
    let play = proven(bench);
    assert_eq!((row(&play).missing_count, row(&play).is_worse()), (3, true));
}

#[test]
fn silenced_test_goes_back_then_blocks() {
    let play = proven(bench(|tree| match tree {
        TreeKind::Head | TreeKind::BaseWith { .. } => (&ALL[1..], &[]),
        TreeKind::HeadWithBase { .. } => (&ALL[1..], &ALL[..1]),
        _ => (&ALL, &[]),
    }));
    assert_eq!(play.state.turns(), 4, "one return");
    assert_eq!(findings(&play), [("test_silenced", FindingSeverity::Block)]);
    assert_eq!(level(&play), Some(EvidenceLevel::E1));
    assert!(matches!(play.last_request(), OutboundAction::DecisionNeeded(_)));
}

#[test]
fn silenced_test_that_holds_is_flagged() {
    let play = proven(bench(|tree| match tree {
        TreeKind::Head => (&ALL[1..], &[]),
        _ => (&ALL, &[]),
    }));
    assert_eq!(findings(&play), [("test_silenced", FindingSeverity::Flag)]);
}

#[test]
fn weakened_test_blocks_whatever_passes() {
    let play = proven(bench(|tree| match tree {
        TreeKind::HeadWithBase { .. } => (&ALL[1..], &ALL[..1]),
        _ => (&ALL, &[]),
    }));
    assert_eq!(findings(&play), [("test_weakened", FindingSeverity::Block)]);
    let finding = &play.state.proof().unwrap().findings[0];
    assert!(
        finding.words.contains(ALL[0]) && finding.path == "tests/test_cart.py",
        "{finding:?}"
    );
    assert!(matches!(returns(&play)[..], [ReturnReason::Weakened { .. }]));
}

#[test]
fn failing_test_that_is_left_out_blocks() {
    let play = proven(bench(|tree| match tree {
        TreeKind::Head | TreeKind::BaseWith { .. } => (&ALL[1..], &[]),
        _ => (&ALL[1..], &ALL[..1]),
    }));
    assert_eq!(findings(&play), [("test_silenced", FindingSeverity::Block)]);
    assert_eq!(level(&play), Some(EvidenceLevel::E1));
}

#[test]
fn rewritten_expectation_of_failing_test_blocks() {
    let play = proven(bench(|tree| match tree {
        TreeKind::Head | TreeKind::BaseWith { .. } => (&ALL, &[]),
        _ => (&ALL[1..], &ALL[..1]),
    }));
    assert_eq!(findings(&play), [("test_weakened", FindingSeverity::Block)]);
    assert_eq!(level(&play), Some(EvidenceLevel::E1));
}

#[test]
fn changed_expectation_of_behavior_is_flagged() {
    let play = proven(bench(|tree| match tree {
        TreeKind::HeadWithBase { .. } | TreeKind::BaseWith { .. } => (&ALL[1..], &ALL[..1]),
        _ => (&ALL, &[]),
    }));
    assert_eq!(findings(&play), [("behavior_changed", FindingSeverity::Flag)]);
    assert_eq!(level(&play), Some(EvidenceLevel::E3));
    assert_eq!(play.state.proof().unwrap().shown_by, Some(ShownBy::ChangedTests));
    assert_eq!(play.state.turns(), 2, "nothing goes back");
}

#[test]
fn weakened_test_named_by_ticket_is_flag() {
    let mut asked = request(domain::Job::Implement);
    asked.text.description = "Totals are new.\nLet test_total accept both forms. Thanks!".to_owned();
    let mut play = Play::implement(asked, (0..6).flat_map(|_| done()));
    play.checks = Bench {
        is_there: true,
        ..bench(|tree| match tree {
            TreeKind::HeadWithBase { .. } => (&ALL[1..], &ALL[..1]),
            _ => (&ALL, &[]),
        })
    };
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(findings(&play), [("test_weakened", FindingSeverity::Flag)]);
    let finding = &play.state.proof().unwrap().findings[0];
    assert_eq!(finding.ticket_words, "Let test_total accept both forms");
}

#[test]
fn weakened_test_only_mentioned_by_ticket_blocks() {
    for text in [
        "test_total fails since Monday.",
        "The check test_total shows it; it is right.",
        "Do not change test_total.",
    ] {
        let mut asked = request(domain::Job::Implement);
        asked.text.description = text.to_owned();
        let mut play = Play::implement(asked, (0..6).flat_map(|_| done()));
        play.checks = Bench {
            is_there: true,
            ..bench(|tree| match tree {
                TreeKind::HeadWithBase { .. } => (&ALL[1..], &ALL[..1]),
                _ => (&ALL, &[]),
            })
        };
        play.drive();
        assert_eq!(
            findings(&play),
            [("test_weakened", FindingSeverity::Block)],
            "{text}"
        );
    }
}

#[test]
fn forged_repair_is_no_evidence() {
    // With a support file of the change a test passes that still fails with the files of the base.
    let mut bench = bench(|tree| match tree {
        TreeKind::Base | TreeKind::HeadWithBase { .. } => (&ALL[1..], &ALL[..1]),
        _ => (&ALL, &[]),
    });
    bench.change.test_files.clear();
    bench.change.support_files = vec!["sitecustomize.py".to_owned()];
    let play = proven(bench);
    assert_eq!(
        (level(&play), row(&play).mended.len()),
        (Some(EvidenceLevel::E1), 0)
    );
}

#[test]
fn existing_test_outranks_changed_test() {
    let play = proven(bench(|tree| match tree {
        TreeKind::Base | TreeKind::BaseWith { .. } => (&ALL[1..], &ALL[..1]),
        _ => (&ALL, &[]),
    }));
    assert_eq!(level(&play), Some(EvidenceLevel::E3));
    assert_eq!(play.state.proof().unwrap().shown_by, Some(ShownBy::OwnTests));
}

fn hunk(path: &str, is_test: bool) -> ChangeHunk {
    ChangeHunk {
        path: path.to_owned(),
        line: 1,
        lines: 1,
        is_test,
    }
}

#[test]
fn tests_beside_the_code_are_evidence() {
    let mut bench = bench(|tree| match tree {
        TreeKind::Head => (&["tests::new", "tests::old"], &[]),
        TreeKind::HeadWithBase { hunks, .. } if hunks == &[0] => (&["tests::old"], &["tests::new"]),
        _ => (&["tests::old"], &[]),
    });
    bench.change.test_files.clear();
    bench.change.hunks = vec![
        hunk("src/lib.rs", false),
        hunk("src/lib.rs", true),
        hunk("src/a.rs", false),
    ];
    let product = |path: &str| ChangedFileSize {
        path: path.to_owned(),
        added: 2,
        removed: 0,
        role: FileRole::Product,
    };
    bench.change.changed = vec![product("src/a.rs"), product("src/lib.rs")];
    let play = proven(bench);
    assert_eq!(
        (level(&play), &row(&play).mended[..]),
        (Some(EvidenceLevel::E3), &["tests::new".to_owned()][..])
    );
    let base = |check: &domain::check::CheckSpec| matches!(&check.tree, TreeKind::HeadWithBase { paths, hunks, .. } if paths == &["src/a.rs"] && hunks == &[0]);
    assert!(runs(&play, base) > 0, "the other file is the base's");
}

#[test]
fn reverted_part_breaking_new_test_is_evidence() {
    let mut bench = bench(|tree| match tree {
        TreeKind::HeadWithout { .. } => (&["tests::old"], &["tests::new"]),
        TreeKind::Head => (&["tests::old", "tests::new"], &[]),
        _ => (&["tests::old"], &[]),
    });
    bench.outcome = |check| matches!(check.tree, TreeKind::BaseWith { .. }).then_some(CheckOutcome::Infra);
    bench.change.hunks = vec![hunk("src/lib.rs", false)];
    assert_eq!(level(&proven(bench)), Some(EvidenceLevel::E3));
}

fn doubts(bench: Bench) -> Vec<ChangeDoubt> {
    let play = proven(bench);
    let found = returns(&play).into_iter().flat_map(|why| match why {
        ReturnReason::Questioned { doubts } => doubts.clone(),
        _ => Vec::new(),
    });
    found.collect()
}

#[test]
fn change_of_comments_is_questioned_once() {
    let mut bench = bench(|_| (&ALL, &[]));
    bench.change.code_lines = Some(0);
    bench.change.changed = vec![ChangedFileSize {
        path: "shop/cart.py".to_owned(),
        added: 1,
        removed: 0,
        role: FileRole::Product,
    }];
    assert_eq!(doubts(bench), [ChangeDoubt::NoCode]);
}

#[test]
fn change_of_thousands_of_lines_is_questioned() {
    let mut bench = bench(|_| (&ALL, &[]));
    bench.change.product_lines = 3_000;
    assert_eq!(doubts(bench), [ChangeDoubt::TooLarge { lines: 3_000 }]);
}

#[test]
fn flagged_change_does_not_go_back() {
    let mut bench = bench(|_| (&ALL, &[]));
    bench.change.findings = vec![ChangeFinding {
        path: "shop/cart.py".to_owned(),
        line: 3,
        kind: "ticket_value_in_product".to_owned(),
        severity: FindingSeverity::Flag,
        words: "an example of the ticket".to_owned(),
        ticket_words: String::new(),
    }];
    assert_eq!(proven(bench).state.turns(), 2);
}
