//! What checks show of a change, and what follows.

use domain::check::{
    ChangeReport, CheckCandidate, CheckOutcome, CheckRun, CheckSpec, FailedTest, Finding, Level, Severity,
    TestReport, TreeKind,
};
use domain::{Fact, ReportRequest, SandboxLevel, Verdict};

use super::play::{Play, decided, done};
use crate::run::Action;
use crate::transcript::Message;

/// Where checks run, as a test has it: the failing tests of each tree.
pub(crate) struct Bench {
    pub(crate) is_there: bool,
    pub(crate) base: Vec<&'static str>,
    /// The base with the change's tests.
    pub(crate) without: Vec<&'static str>,
    pub(crate) head: Vec<&'static str>,
    pub(crate) change: ChangeReport,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            is_there: false,
            base: Vec::new(),
            without: Vec::new(),
            head: Vec::new(),
            change: ChangeReport {
                tree: "d".repeat(40).parse().unwrap(),
                files: 1,
                product_lines: 2,
                test_lines: 0,
                modules: Vec::new(),
                test_files: Vec::new(),
                findings: Vec::new(),
                hunks: Vec::new(),
                changed: Vec::new(),
                truncated: false,
            },
        }
    }
}

impl Bench {
    pub(crate) fn candidates(&self) -> Vec<CheckCandidate> {
        let found = CheckCandidate {
            command: "pytest".to_owned(),
            directory: String::new(),
            why: "pyproject.toml".to_owned(),
        };
        self.is_there.then_some(found).into_iter().collect()
    }

    pub(crate) fn run(&self, check: &CheckSpec) -> CheckRun {
        let failing = match &check.tree {
            TreeKind::Base => &self.base,
            TreeKind::BaseWith { .. } => &self.without,
            TreeKind::Head | TreeKind::HeadWithout { .. } => &self.head,
        };
        let tests = failing.iter().map(|id| FailedTest {
            id: (*id).to_owned(),
            message: String::new(),
        });
        CheckRun {
            command: check.command.clone(),
            directory: String::new(),
            tree: None,
            tree_kind: check.tree.clone(),
            outcome: match failing.is_empty() {
                true => CheckOutcome::Green,
                false => CheckOutcome::Red,
            },
            reason: String::new(),
            exit_code: None,
            duration_ms: 1,
            tests: Some(TestReport {
                runner: "pytest".to_owned(),
                passed: 4,
                failed: u32::try_from(failing.len()).unwrap(),
                failing: tests.collect(),
                ..TestReport::default()
            }),
            output_tail: "AssertionError: 20.50 is not 37.50".to_owned(),
            truncated: false,
            sandbox: SandboxLevel::L1,
            tampered: Vec::new(),
        }
    }
}

fn checked(bench: Bench) -> Play {
    let mut play = Play::with((0..6).flat_map(|_| done()));
    play.checks = Bench {
        is_there: true,
        ..bench
    };
    play
}

/// How strong the evidence is that the run came to.
fn level(play: &Play) -> Option<Level> {
    play.state.proof().map(|proof| proof.level)
}

#[test]
fn a_test_that_fails_without_the_change_and_passes_with_it_is_the_strongest_evidence() {
    let mut bench = Bench {
        without: vec!["test_empty_cart"],
        ..Bench::default()
    };
    bench.change.test_files = vec!["tests/test_cart.py".to_owned()];
    let mut play = checked(bench);
    assert_eq!(play.drive(), Action::Wait);
    assert_eq!(level(&play), Some(Level::E3));
    play.pushed();
    assert_eq!(play.drive(), Action::Wait);
    let ReportRequest::OpenPullRequest {
        description: Some(said),
        ..
    } = play.last_request()
    else {
        panic!("{:?}", play.last_request())
    };
    assert_eq!(said.checks[0].mended, ["test_empty_cart"]);
    assert_eq!(
        (said.checks[0].head, said.checks[0].passed),
        (CheckOutcome::Green, 4)
    );
}

#[test]
fn checks_that_pass_before_and_after_show_that_nothing_broke_and_no_more() {
    let mut play = checked(Bench::default());
    assert_eq!(play.drive(), Action::Wait);
    assert_eq!(level(&play), Some(Level::E1));
    let mut unknown = Play::with(done());
    assert_eq!(unknown.drive(), Action::Wait);
    assert_eq!(level(&unknown), Some(Level::E0), "no command checks the change");
}

#[test]
fn what_fails_with_the_change_and_not_before_goes_back_to_the_model_three_times_and_is_then_said() {
    let mut play = checked(Bench {
        base: vec!["test_old"],
        head: vec!["test_old", "test_totals"],
        ..Bench::default()
    });
    assert_eq!(play.drive(), Action::Wait);
    assert_eq!(play.state.turns(), 8, "four times the work");
    let messages = play.transcript().messages;
    let told = |message: &&Message| matches!(message, Message::User(words) if words.contains("`pytest`: test_totals\n"));
    assert_eq!(messages.iter().filter(told).count(), 3, "{messages:?}");
    assert_eq!(play.state.proof().unwrap().rows[0].broken, ["test_totals"]);
}

#[test]
fn a_test_that_fails_before_as_well_is_nobodys_fault() {
    let mut play = checked(Bench {
        base: vec!["test_old"],
        head: vec!["test_old"],
        ..Bench::default()
    });
    assert_eq!(play.drive(), Action::Wait);
    assert_eq!((play.state.turns(), level(&play)), (2, Some(Level::E1)));
}

#[test]
fn the_base_is_checked_once_however_often_the_work_goes_on() {
    let mut play = checked(Bench {
        head: vec!["test_totals"],
        ..Bench::default()
    });
    play.drive();
    let at_base = |entry: &&domain::Entry| matches!(&entry.fact, Fact::CheckRequested { check, .. } if check.tree == TreeKind::Base);
    assert_eq!(play.entries.iter().filter(at_base).count(), 1);
    let at_head = |entry: &&domain::Entry| matches!(&entry.fact, Fact::CheckRequested { check, .. } if check.tree == TreeKind::Head);
    assert_eq!(play.entries.iter().filter(at_head).count(), 4);
}

#[test]
fn a_change_that_weakens_checks_goes_back_once_and_then_needs_a_person() {
    let mut bench = Bench::default();
    bench.change.findings = vec![Finding {
        path: "tests/test_cart.py".to_owned(),
        line: 3,
        kind: "test_removed".to_owned(),
        severity: Severity::Block,
        words: "test_totals is gone".to_owned(),
    }];
    let mut play = checked(bench);
    assert_eq!(play.drive(), Action::Wait);
    assert_eq!(play.state.turns(), 4);
    assert!(
        matches!(play.last_request(), ReportRequest::DecisionNeeded(_)),
        "no rule asks for it"
    );
    play.shown();
    assert_eq!(play.drive(), Action::Wait);
    assert!(play.is_parked_for("decision"));
    play.append(decided(Verdict::Approve));
    assert_eq!(play.drive(), Action::Wait);
    assert!(matches!(play.last_request(), ReportRequest::PushBranch(_)));
}
