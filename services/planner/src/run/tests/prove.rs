//! Results of checks of a change, and their consequences.

use domain::check::{
    ChangeFinding, ChangeHunk, ChangeReport, CheckCandidate, CheckOutcome, CheckSpec, CompletedCheck,
    EvidenceLevel, FailedTest, FindingSeverity, TestReport, TreeKind,
};
use domain::{ChangedFileSize, DecisionVerdict, Fact, FileRole, OutboundAction, SandboxLevel};

use serde_json::json;

use super::play::{
    Play, build_decision, build_edit_calls, build_finish_call, build_tool_reply, build_work_replies,
};
use crate::run::{ArgumentProblem, RunAction, tools as own_tools};
use crate::transcript::TranscriptMessage;

/// Simulated environment of checks: the failing tests of each tree.
pub(crate) struct Bench {
    pub(crate) is_there: bool,
    /// True when the executor keeps the result on the base.
    pub(crate) known_at_base: bool,
    pub(crate) base: Vec<&'static str>,
    /// Failing tests at the base with the change's tests.
    pub(crate) without: Vec<&'static str>,
    pub(crate) head: Vec<&'static str>,
    pub(crate) change: ChangeReport,
    /// Tests that fail only in the first run of a tree, and tests that fail only in later ones.
    pub(crate) first: Vec<&'static str>,
    pub(crate) later: Vec<&'static str>,
    /// Hunks whose removal makes no test fail.
    pub(crate) unnoticed: Vec<u32>,
    pub(crate) duration_ms: u64,
    /// Output of commands other than the tests, at the base and with the change.
    pub(crate) prints: [&'static str; 2],
    /// Returns true for runs with an infrastructure failure.
    pub(crate) surroundings_fail: fn(&CheckSpec) -> bool,
    /// Names of passing and failing tests in a tree; they replace the lists above.
    pub(crate) shown: Option<fn(&TreeKind) -> ShownTests>,
    /// Number of passing tests in a tree whose tests have no names.
    pub(crate) passed: fn(&TreeKind) -> u32,
    /// Outcome of a run, where it does not follow from its tests.
    pub(crate) outcome: fn(&CheckSpec) -> Option<CheckOutcome>,
}

/// Names of passing tests, and of failing ones.
pub(crate) type ShownTests = (&'static [&'static str], &'static [&'static str]);

impl Default for Bench {
    fn default() -> Self {
        Self {
            is_there: false,
            known_at_base: false,
            base: Vec::new(),
            without: Vec::new(),
            head: Vec::new(),
            first: Vec::new(),
            later: Vec::new(),
            unnoticed: Vec::new(),
            duration_ms: 1,
            prints: [""; 2],
            surroundings_fail: |_| false,
            shown: None,
            passed: |_| 4,
            outcome: |_| None,
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
                support_files: Vec::new(),
                removed_test_files: Vec::new(),
                removed_tests: Vec::new(),
                code_lines: None,
                lost_hunks: Vec::new(),
                marked_files: Vec::new(),
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
            known_at_base: self.known_at_base,
        };
        self.is_there.then_some(found).into_iter().collect()
    }

    pub(crate) fn run(&self, check: &CheckSpec) -> CompletedCheck {
        if check.command != "pytest" {
            return CompletedCheck {
                outcome: CheckOutcome::NoTests,
                tests: None,
                output_tail: self.prints[usize::from(check.tree == TreeKind::Head)].to_owned(),
                ..self.run_tests(check)
            };
        }
        self.run_tests(check)
    }

    fn run_tests(&self, check: &CheckSpec) -> CompletedCheck {
        let now_and_then = match check.again {
            0 => &self.first,
            _ => &self.later,
        };
        let failing = match &check.tree {
            TreeKind::Base => self.base.clone(),
            TreeKind::BaseWith { .. } => self.without.clone(),
            TreeKind::Head => [self.head.clone(), now_and_then.clone()].concat(),
            TreeKind::HeadWithout { hunk, .. } if self.unnoticed.contains(hunk) => Vec::new(),
            TreeKind::HeadWithout { .. } => vec!["test_totals"],
            TreeKind::HeadWithBase { .. } => self.head.clone(),
        };
        let (passing, failing) = match self.shown {
            Some(shown) => {
                let (passing, failing) = shown(&check.tree);
                (passing.to_vec(), failing.to_vec())
            }
            None => (Vec::new(), failing),
        };
        let tests = failing.iter().map(|id| FailedTest {
            id: (*id).to_owned(),
            message: String::new(),
        });
        CompletedCheck {
            command: check.command.clone(),
            directory: String::new(),
            tree: Some("e".repeat(40).parse().unwrap()),
            tree_kind: check.tree.clone(),
            outcome: if (self.surroundings_fail)(check) {
                CheckOutcome::Infra
            } else if let Some(outcome) = (self.outcome)(check) {
                outcome
            } else if failing.is_empty() {
                CheckOutcome::Green
            } else {
                CheckOutcome::Red
            },
            reason: String::new(),
            exit_code: None,
            duration_ms: self.duration_ms,
            tests: Some(TestReport {
                runner: "pytest".to_owned(),
                passed: match self.shown {
                    Some(_) => u32::try_from(passing.len()).unwrap(),
                    None => (self.passed)(&check.tree).saturating_sub(u32::try_from(failing.len()).unwrap()),
                },
                passing: passing.iter().map(ToString::to_string).collect(),
                failed: u32::try_from(failing.len()).unwrap(),
                failing: tests.collect(),
                ..TestReport::default()
            }),
            output_tail: "AssertionError: 20.50 is not 37.50".to_owned(),
            truncated: false,
            sandbox: SandboxLevel::L1,
            tampered: Vec::new(),
            setup_hint: None,
        }
    }
}

pub(crate) fn build_checked_play(bench: Bench) -> Play {
    let mut play = Play::with((0..6).flat_map(|_| build_work_replies()));
    play.checks = Bench {
        is_there: true,
        ..bench
    };
    play
}

/// Returns the level of evidence that the run reached.
pub(crate) fn read_evidence_level(play: &Play) -> Option<EvidenceLevel> {
    play.state.outputs().proof().map(|proof| proof.level)
}

#[test]
fn repaired_test_is_strongest_evidence() {
    let mut bench = Bench {
        without: vec!["test_empty_cart"],
        ..Bench::default()
    };
    bench.change.test_files = vec!["tests/test_cart.py".to_owned()];
    let mut play = build_checked_play(bench);
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E3));
    play.pushed();
    assert_eq!(play.drive(), RunAction::Wait);
    let description = play.description();
    assert_eq!(description.checks[0].mended, ["test_empty_cart"]);
    assert_eq!(
        (description.checks[0].head, description.checks[0].passed),
        (CheckOutcome::Green, 4)
    );
}

#[test]
fn unchanged_green_checks_are_weak_evidence() {
    let mut play = build_checked_play(Bench::default());
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E1));
    let mut unknown = Play::with(build_work_replies());
    assert_eq!(unknown.drive(), RunAction::Wait);
    assert_eq!(
        read_evidence_level(&unknown),
        Some(EvidenceLevel::E0),
        "no command checks the change"
    );
}

#[test]
fn new_failure_returns_three_times_then_reported() {
    let mut play = build_checked_play(Bench {
        base: vec!["test_old"],
        head: vec!["test_old", "test_totals"],
        ..Bench::default()
    });
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(play.state.conversation().turn_count(), 8, "four times the work");
    let messages = play.transcript().messages;
    let lists_broken_test = |message: &&TranscriptMessage| matches!(message, TranscriptMessage::User(words) if words.contains("`pytest`: test_totals\n"));
    assert_eq!(
        messages.iter().filter(lists_broken_test).count(),
        3,
        "{messages:?}"
    );
    assert_eq!(
        play.state.outputs().proof().unwrap().rows[0].broken,
        ["test_totals"]
    );
}

fn play_demonstration(prints: [&'static str; 2], bench: Bench) -> Play {
    let (name, mut says) = build_finish_call();
    says["demonstrations"] = json!([{"command": "shop total", "prints": "37.50"}]);
    let replies = [
        build_tool_reply(&build_edit_calls()),
        build_tool_reply(&[(name, says)]),
    ];
    let mut play = Play::with((0..6).flat_map(|_| replies.clone()));
    play.checks = Bench { prints, ..bench };
    assert_eq!(play.drive(), RunAction::Wait);
    play
}

#[test]
fn new_command_output_is_evidence() {
    let play = play_demonstration(["total: 20.50\n", "cart\ntotal: 37.50\nbye\n"], Bench::default());
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E2));
    let seen = &play.state.outputs().proof().unwrap().demonstrations[0];
    assert_eq!(
        (seen.before.as_str(), seen.after.as_str()),
        ("total: 20.50", "total: 37.50")
    );
    for (prints, why) in [
        (["total: 37.50", "total: 37.50"], "it was there before"),
        (["total: 20.50", "total: 20.50"], "it is not there"),
    ] {
        let play = play_demonstration(prints, Bench::default());
        assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E0), "{why}");
        assert!(
            !play.state.outputs().proof().unwrap().demonstrations[0].is_shown,
            "{why}"
        );
    }
}

#[test]
fn broken_test_voids_command_output_evidence() {
    let broken = Bench {
        is_there: true,
        head: vec!["test_totals"],
        ..Bench::default()
    };
    assert_eq!(
        read_evidence_level(&play_demonstration(["", "37.50"], broken)),
        Some(EvidenceLevel::E1)
    );
}

#[test]
fn demonstration_printing_files_is_refused() {
    for command in [
        "cat shop/cart.py",
        "/bin/grep -r total .",
        "git show",
        "shop --say 37.50",
        "",
    ] {
        let (_, mut says) = build_finish_call();
        says["demonstrations"] = json!([{"command": command, "prints": "37.50"}]);
        assert_eq!(
            own_tools::exits::parse_handover(&says),
            Err(ArgumentProblem::Demonstration),
            "{command}"
        );
    }
}

#[test]
fn failure_on_base_is_not_blamed() {
    let mut play = build_checked_play(Bench {
        base: vec!["test_old"],
        head: vec!["test_old"],
        ..Bench::default()
    });
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(
        (play.state.conversation().turn_count(), read_evidence_level(&play)),
        (2, Some(EvidenceLevel::E1))
    );
}

/// Returns the number of checks that ran.
pub(crate) fn count_check_runs(play: &Play, is_it: impl Fn(&CheckSpec) -> bool) -> usize {
    let entries = play.entries.iter();
    entries
        .filter(|entry| matches!(&entry.fact, Fact::CheckRequested { check, .. } if is_it(check)))
        .count()
}

#[test]
fn flaky_failure_is_named_without_blame() {
    let mut play = build_checked_play(Bench {
        first: vec!["test_clock"],
        ..Bench::default()
    });
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(
        play.state.conversation().turn_count(),
        2,
        "nothing goes back to the model"
    );
    let row = &play.state.outputs().proof().unwrap().rows[0];
    assert_eq!(
        (row.broken.len(), row.flaky.as_slice()),
        (0, &["test_clock".to_owned()][..])
    );
    assert_eq!(count_check_runs(&play, |check| check.tree == TreeKind::Head), 3);
    assert_eq!(count_check_runs(&play, |check| check.tree == TreeKind::Base), 2);
}

#[test]
fn flaky_new_test_is_not_evidence() {
    let bench = |duration_ms| {
        let mut bench = Bench {
            without: vec!["test_empty_cart"],
            later: vec!["test_empty_cart"],
            duration_ms,
            ..Bench::default()
        };
        bench.change.test_files = vec!["tests/test_cart.py".to_owned()];
        bench
    };
    let mut play = build_checked_play(bench(9_999));
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E1));
    assert_eq!(
        play.state.outputs().proof().unwrap().rows[0].flaky,
        ["test_empty_cart"]
    );
    let mut slow = build_checked_play(bench(10_000));
    assert_eq!(slow.drive(), RunAction::Wait);
    assert_eq!(
        read_evidence_level(&slow),
        Some(EvidenceLevel::E3),
        "running it again would take too long"
    );
    assert_eq!(count_check_runs(&slow, |check| check.again > 0), 0);
}

#[test]
fn quick_infrastructure_failure_is_rerun_once() {
    let bench = |surroundings_fail, duration_ms| Bench {
        base: vec!["test_totals"],
        without: vec!["test_totals"],
        surroundings_fail,
        duration_ms,
        ..Bench::default()
    };
    let base = |bench| {
        let mut play = build_checked_play(bench);
        assert_eq!(play.drive(), RunAction::Wait);
        let proof = play.state.outputs().proof().unwrap();
        let runs = count_check_runs(&play, |check| check.tree == TreeKind::Base);
        (proof.rows[0].base, read_evidence_level(&play), runs)
    };
    let (red, infra) = (Some(CheckOutcome::Red), Some(CheckOutcome::Infra));
    let once = |check: &CheckSpec| check.tree == TreeKind::Base && check.again == 0;
    assert_eq!(base(bench(once, 1)), (red, Some(EvidenceLevel::E3), 3));
    let always = |check: &CheckSpec| check.tree == TreeKind::Base;
    assert_eq!(base(bench(always, 1)), (infra, Some(EvidenceLevel::E1), 2));
    assert_eq!(base(bench(once, 10_000)), (infra, Some(EvidenceLevel::E1), 1));
}

#[test]
fn uncovered_product_parts_are_named() {
    let bench = |hunks: u32, duration_ms| {
        let mut bench = Bench {
            unnoticed: vec![1, 2],
            duration_ms,
            ..Bench::default()
        };
        let hunk = |line| ChangeHunk {
            path: "shop/cart.py".to_owned(),
            line,
            lines: 1,
            is_test: line == 2,
        };
        bench.change.hunks = (0..hunks).map(hunk).collect();
        bench
    };
    let unnoticed = |bench| {
        let mut play = build_checked_play(bench);
        assert_eq!(play.drive(), RunAction::Wait);
        let taken_back = count_check_runs(&play, |check| matches!(check.tree, TreeKind::HeadWithout { .. }));
        let proof = play.state.outputs().proof().unwrap();
        let lines: Vec<u32> = proof.unnoticed.iter().map(|hunk| hunk.line).collect();
        (lines, taken_back)
    };
    assert_eq!(
        unnoticed(bench(9, 19_999)),
        (vec![1], 8),
        "the third is of a test"
    );
    assert_eq!(unnoticed(bench(10, 1)), (vec![], 0), "too many");
    assert_eq!(unnoticed(bench(3, 20_000)), (vec![], 0), "too slow");
    let failing = Bench {
        base: vec!["test_old"],
        head: vec!["test_old"],
        ..bench(3, 1)
    };
    assert_eq!(unnoticed(failing), (vec![], 0), "the check fails anyway");
}

/// Returns a play whose executor runs `most` checks at the same time.
fn build_parallel_play(most: u32, bench: Bench) -> Play {
    let mut play = build_checked_play(bench);
    play.workspace.checks_at_once = most;
    play
}

/// Plays to the end of the proof. Returns the checks of each step, as tree and repeat.
fn drive_rounds(play: &mut Play) -> Vec<Vec<(TreeKind, u32)>> {
    let mut rounds = Vec::new();
    loop {
        let next = play.until(|action| matches!(action, RunAction::RunChecks { .. } | RunAction::Wait));
        let RunAction::RunChecks { checks } = next else {
            return rounds;
        };
        let names = checks.iter().map(|(_, check)| (check.tree.clone(), check.again));
        rounds.push(names.collect());
        for (id, check) in checks {
            let run = Box::new(play.checks.run(&check));
            play.append(Fact::CheckRan { id, run });
        }
    }
}

fn build_new_test_bench() -> Bench {
    let mut bench = Bench {
        without: vec!["test_empty_cart"],
        ..Bench::default()
    };
    bench.change.test_files = vec!["tests/test_cart.py".to_owned()];
    bench.change.changed = ["shop/cart.py", "tests/test_cart.py"]
        .map(build_changed_file)
        .to_vec();
    bench.change.hunks = vec![ChangeHunk {
        path: "shop/cart.py".to_owned(),
        line: 1,
        lines: 1,
        is_test: false,
    }];
    bench
}

fn build_changed_file(path: &str) -> ChangedFileSize {
    ChangedFileSize {
        path: path.to_owned(),
        role: if path.starts_with("tests/") {
            FileRole::Test
        } else {
            FileRole::Product
        },
        added: 1,
        removed: 0,
    }
}

#[test]
fn checks_run_together_as_executor_allows() {
    let without = || {
        let paths = vec!["tests/test_cart.py".to_owned()];
        TreeKind::BaseWith { paths }
    };
    let old = || {
        let tree = TreeKind::HeadWithBase {
            head: "d".repeat(40).parse().unwrap(),
            paths: vec!["tests/test_cart.py".to_owned()],
            hunks: Vec::new(),
        };
        (tree, 0)
    };
    let (head, base) = (|again: u32| (TreeKind::Head, again), (TreeKind::Base, 0));
    let rounds = |most, bench| {
        let mut play = build_parallel_play(most, bench);
        let rounds = drive_rounds(&mut play);
        assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E3), "{most}");
        rounds
    };
    // The only hunk of the product has no check of its own: its files are those without the product.
    let alone: Vec<_> = [
        head(0),
        base.clone(),
        (without(), 0),
        head(1),
        (without(), 1),
        old(),
    ]
    .map(|check| vec![check])
    .to_vec();
    for most in [0, 1] {
        assert_eq!(rounds(most, build_new_test_bench()), alone, "{most}");
    }
    assert_eq!(
        rounds(2, build_new_test_bench()),
        [
            vec![head(0), base.clone()],
            vec![(without(), 0), head(1)],
            vec![(without(), 1), old()]
        ]
    );
    let known = Bench {
        known_at_base: true,
        ..build_new_test_bench()
    };
    assert_eq!(
        rounds(2, known),
        [
            vec![head(0), base.clone(), (without(), 0)],
            vec![head(1), (without(), 1)],
            vec![old()]
        ],
        "a kept result takes no room"
    );
    assert_eq!(
        rounds(4, build_new_test_bench()),
        [
            vec![head(0), base, (without(), 0)],
            vec![head(1), (without(), 1), old()]
        ]
    );
}

#[test]
fn slow_checks_need_two_rounds() {
    let slow = Bench {
        duration_ms: 60_000,
        ..build_new_test_bench()
    };
    let mut play = build_parallel_play(2, slow);
    assert_eq!(drive_rounds(&mut play).len(), 2);
    assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E3));
}

#[test]
fn hunk_checks_run_together() {
    let mut bench = Bench::default();
    let hunk = |line| ChangeHunk {
        path: "shop/cart.py".to_owned(),
        line,
        lines: 1,
        is_test: false,
    };
    bench.change.hunks = (0..5).map(hunk).collect();
    let mut play = build_parallel_play(3, bench);
    let sizes: Vec<usize> = drive_rounds(&mut play).iter().map(Vec::len).collect();
    assert_eq!(sizes, [2, 3, 2]);
}

#[test]
fn interrupted_checks_continue_under_their_ids() {
    let ids = |checks: &[(domain::CallId, CheckSpec)]| -> Vec<domain::CallId> {
        checks.iter().map(|(id, _)| id.clone()).collect()
    };
    // The planner crashes after each number of results of the first round.
    for results in 0..=3 {
        let mut play = build_parallel_play(4, build_new_test_bench());
        let RunAction::RunChecks { checks } =
            play.until(|action| matches!(action, RunAction::RunChecks { .. }))
        else {
            panic!("no checks")
        };
        assert_eq!(checks.len(), 3);
        for (id, check) in checks.iter().take(results) {
            let run = Box::new(play.checks.run(check));
            let id = id.clone();
            play.append(Fact::CheckRan { id, run });
        }
        let RunAction::RunChecks { checks: rest } =
            play.until(|action| matches!(action, RunAction::RunChecks { .. }))
        else {
            panic!("no checks")
        };
        let open = ids(&checks[results..]);
        assert!(ids(&rest).starts_with(&open), "{results}: {rest:?}");
        assert_eq!(play.drive(), RunAction::Wait);
        assert_eq!(read_evidence_level(&play), Some(EvidenceLevel::E3), "{results}");
    }
}

/// Returns the ids of the checks without a result, in the order of their requests.
fn list_open_checks(entries: &[domain::JournalEntry]) -> Vec<domain::CallId> {
    let mut open = Vec::new();
    for entry in entries {
        if let Fact::CheckRequested { id, .. } = &entry.fact {
            open.push(id.clone());
        }
        if let Fact::CheckRan { id, .. } = &entry.fact {
            open.retain(|known| known != id);
        }
    }
    open
}

#[test]
fn every_prefix_of_parallel_proof_resumes() {
    let benches: [fn() -> Bench; 3] = [
        build_new_test_bench,
        || Bench {
            known_at_base: true,
            later: vec!["test_empty_cart"],
            ..build_new_test_bench()
        },
        || Bench {
            head: vec!["test_totals"],
            surroundings_fail: |check| check.again == 0 && check.tree == TreeKind::Base,
            ..build_new_test_bench()
        },
    ];
    for (most, bench) in (0..=9).flat_map(|most| benches.map(|bench| (most, bench))) {
        let mut play = build_parallel_play(most, bench());
        assert_eq!(play.drive(), RunAction::Wait);
        let mut most_open = 0;
        for length in 1..=play.entries.len() {
            let prefix = &play.entries[..length];
            let state = crate::run::PlannerRunState::fold(&play.state.run, prefix);
            let (state, open) = (state.unwrap().unwrap(), list_open_checks(prefix));
            most_open = most_open.max(open.len());
            match crate::run::decide_action(&state) {
                RunAction::RunChecks { checks } => {
                    let ids: Vec<domain::CallId> = checks.into_iter().map(|(id, _)| id).collect();
                    assert_eq!(ids, open);
                    assert!(!ids.is_empty());
                }
                RunAction::Record(Fact::CheckRequested { id, .. }) => assert!(!open.contains(&id)),
                other => assert!(open.is_empty(), "{most}: {other:?} leaves checks open"),
            }
        }
        // One more is a kept result, which takes no room.
        assert!(most_open <= most.clamp(1, 8) as usize + 1, "{most}: {most_open}");
    }
}

#[test]
fn result_of_unknown_check_is_illegal() {
    let mut play = build_parallel_play(2, build_new_test_bench());
    let RunAction::RunChecks { checks } = play.until(|action| matches!(action, RunAction::RunChecks { .. }))
    else {
        panic!("no checks")
    };
    let fold = |facts: Vec<Fact>| {
        let mut entries = play.entries.clone();
        for fact in facts {
            let position = entries.len() as u64;
            let last = entries.last().unwrap().clone();
            entries.push(domain::JournalEntry {
                position,
                fact,
                ..last
            });
        }
        crate::run::PlannerRunState::fold(&play.state.run, &entries)
    };
    let run = |number: usize| Box::new(play.checks.run(&checks[number].1));
    let ran = |number: usize| Fact::CheckRan {
        id: checks[number].0.clone(),
        run: run(number),
    };
    // Results may come in any order, each once.
    assert!(fold(vec![ran(1), ran(0)]).is_ok());
    assert!(fold(vec![ran(1), ran(1)]).is_err());
    let again = Fact::CheckRequested {
        id: play.state.next_id(),
        check: checks[0].1.clone(),
    };
    assert!(fold(vec![again]).is_err(), "the same check is open");
}

#[test]
fn base_is_checked_once_per_run() {
    let mut play = build_checked_play(Bench {
        head: vec!["test_totals"],
        ..Bench::default()
    });
    play.drive();
    let at_base = |entry: &&domain::JournalEntry| matches!(&entry.fact, Fact::CheckRequested { check, .. } if check.tree == TreeKind::Base && check.again == 0);
    assert_eq!(play.entries.iter().filter(at_base).count(), 1);
    let at_head = |entry: &&domain::JournalEntry| matches!(&entry.fact, Fact::CheckRequested { check, .. } if check.tree == TreeKind::Head && check.again == 0);
    assert_eq!(play.entries.iter().filter(at_head).count(), 4);
}

#[test]
fn weakened_checks_return_once_then_need_approval() {
    let mut bench = Bench::default();
    bench.change.findings = vec![ChangeFinding {
        path: "tests/test_cart.py".to_owned(),
        line: 3,
        kind: "test_removed".to_owned(),
        severity: FindingSeverity::Block,
        words: "test_totals is gone".to_owned(),
        ticket_words: String::new(),
    }];
    let mut play = build_checked_play(bench);
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(play.state.conversation().turn_count(), 4);
    assert!(
        matches!(play.last_request(), OutboundAction::DecisionNeeded(_)),
        "no rule asks for it"
    );
    play.shown();
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(play.is_parked_for("decision"));
    play.append(build_decision(DecisionVerdict::Approve));
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
}
