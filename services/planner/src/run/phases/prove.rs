//! The change is proven without the model: its checks run in trees that the model cannot touch, with the base beside it.

use domain::check::{
    ChangeReport, CheckCandidate, CheckOutcome, CheckRun, CheckSpec, FailedTest, Level, TreeKind,
};
use domain::{CheckRow, Fact, Outside, PhaseOutput, Proof, RedCheck, Return, text::tail};

use super::back::{back, tries};
use crate::run::machine::{Action, PhaseSpec, RunState, Step};
use crate::run::tools::widen_scope;

/// More commands than this cost more time than they show.
const MOST_COMMANDS: usize = 2;
/// Seconds that one check may take.
const LIMIT_S: u32 = 900;
/// How often a change goes back to the model because of its checks.
const MOST_TRIES: usize = 3;
const TAIL: usize = 2_000;

pub(in crate::run) const PHASE: PhaseSpec = PhaseSpec { dialog: None, next };

fn next(state: &RunState) -> Step {
    if state.handover().is_none() || state.proof().is_some() {
        return Step::Over;
    }
    let checks = &state.checks;
    let Some(candidates) = &checks.candidates else {
        return Action::FindChecks.into();
    };
    let Some(change) = &checks.change else {
        return Action::InspectChange.into();
    };
    let outside = outside(state, change.as_ref());
    let strayed = Return::OutOfScope {
        files: outside.clone(),
    };
    if !outside.is_empty() && tries(state, &strayed) == 0 {
        return back(state, strayed);
    }
    if let Some(open) = checks.open() {
        let (id, check) = (open.id.clone(), open.spec.clone());
        return Action::RunCheck { id, check }.into();
    }
    let tests = change.as_ref().map_or(&[][..], |change| &change.test_files);
    let commands: Vec<&CheckCandidate> = candidates.iter().take(MOST_COMMANDS).collect();
    let wanted = commands.iter().flat_map(|command| trees(state, command, tests));
    if let Some(check) = wanted.into_iter().find(|check| checks.result(check).is_none()) {
        let id = state.next_id();
        return Action::Record(Fact::CheckRequested { id, check }).into();
    }
    let rows: Vec<Shown<'_>> = commands
        .iter()
        .filter_map(|command| shown(state, command, tests))
        .collect();
    conclude(state, &rows, outside)
}

/// What really differs is compared with the scope: commands write where they like.
fn outside(state: &RunState, change: Option<&ChangeReport>) -> Vec<Outside> {
    let (Some(request), Some(change)) = (state.request(), change) else {
        return Vec::new();
    };
    let scope = widen_scope::scope(state, request);
    change
        .changed
        .iter()
        .filter_map(|file| scope.outside(&file.path))
        .collect()
}

fn conclude(state: &RunState, rows: &[Shown<'_>], outside: Vec<Outside>) -> Step {
    let checks: Vec<RedCheck> = rows.iter().filter_map(Shown::red).collect();
    let (is_red, red) = (!checks.is_empty(), Return::Red { checks });
    if is_red && tries(state, &red) < MOST_TRIES {
        return back(state, red);
    }
    let change = state.checks.change.as_ref().and_then(Option::as_ref);
    let findings = change.map(|change| change.findings.clone()).unwrap_or_default();
    let weakened = Return::Weakened {
        findings: findings.clone(),
    };
    if change.is_some_and(ChangeReport::is_blocked) && tries(state, &weakened) == 0 {
        return back(state, weakened);
    }
    let proof = Proof {
        level: level(rows),
        rows: rows.iter().map(Shown::row).collect(),
        findings,
        outside,
    };
    Action::Record(Fact::PhaseFinished {
        output: PhaseOutput::Prove {
            proof: Box::new(proof),
        },
    })
    .into()
}

fn spec(command: &CheckCandidate, tree: TreeKind) -> CheckSpec {
    CheckSpec {
        command: command.command.clone(),
        directory: command.directory.clone(),
        tree,
        limit_s: Some(LIMIT_S),
        reports: Vec::new(),
    }
}

/// What has to run for a command: with the change first. Where that says nothing of the code, the base says nothing either.
fn trees(state: &RunState, command: &CheckCandidate, tests: &[String]) -> Vec<CheckSpec> {
    let head = spec(command, TreeKind::Head);
    let is_telling = match state.checks.result(&head) {
        Some(run) => run.outcome.is_about_the_code(),
        None => return vec![head],
    };
    if !is_telling {
        return vec![head];
    }
    let mut wanted = vec![head, spec(command, TreeKind::Base)];
    wanted.extend(with_tests(command, tests));
    wanted
}

/// The base with the change's tests, to see whether they fail without the change.
fn with_tests(command: &CheckCandidate, tests: &[String]) -> Option<CheckSpec> {
    let paths = tests.to_vec();
    (!paths.is_empty()).then(|| spec(command, TreeKind::BaseWith { paths }))
}

/// What a command showed.
struct Shown<'a> {
    head: &'a CheckRun,
    base: Option<&'a CheckRun>,
    /// The base with the change's tests, or the base where there are none.
    without: Option<&'a CheckRun>,
}

fn shown<'a>(state: &'a RunState, command: &CheckCandidate, tests: &[String]) -> Option<Shown<'a>> {
    let result = |tree| state.checks.result(&spec(command, tree));
    let base = result(TreeKind::Base);
    let with_tests = with_tests(command, tests);
    Some(Shown {
        head: result(TreeKind::Head)?,
        base,
        without: with_tests.map_or(base, |check| state.checks.result(&check)),
    })
}

impl Shown<'_> {
    /// Tests that fail with the change and not before; the command itself where its tests are not known.
    fn broken(&self) -> Vec<String> {
        if self.head.outcome != CheckOutcome::Red {
            return Vec::new();
        }
        let Some(base) = self.base else {
            return Vec::new();
        };
        match self.head.failing_beyond(base) {
            Some(tests) if !tests.is_empty() || base.outcome == CheckOutcome::Red => named(&tests),
            _ if base.outcome == CheckOutcome::Green => vec![self.head.command.clone()],
            _ => Vec::new(),
        }
    }

    /// Tests that fail without the change, for a reason of their own, and not with it.
    fn mended(&self) -> Vec<String> {
        match self.without {
            Some(without) if self.head.outcome.is_about_the_code() => {
                named(&without.failing_beyond(self.head).unwrap_or_default())
            }
            _ => Vec::new(),
        }
    }

    fn red(&self) -> Option<RedCheck> {
        let tests = self.broken();
        (!tests.is_empty()).then(|| RedCheck {
            command: self.head.command.clone(),
            output_tail: tail(&self.head.output_tail, TAIL),
            tests,
        })
    }

    fn row(&self) -> CheckRow {
        CheckRow {
            command: self.head.command.clone(),
            base: self.base.map(|run| run.outcome),
            head: self.head.outcome,
            passed: self.head.tests.as_ref().map_or(0, |tests| tests.passed),
            broken: self.broken(),
            mended: self.mended(),
        }
    }
}

fn level(rows: &[Shown<'_>]) -> Level {
    let is_worse = rows.iter().any(|row| !row.broken().is_empty());
    let is_shown = rows
        .iter()
        .any(|row| row.head.outcome == CheckOutcome::Green && !row.mended().is_empty());
    match (
        is_shown && !is_worse,
        rows.iter().any(|row| row.head.outcome.is_about_the_code()),
    ) {
        (true, _) => Level::E3,
        (false, true) => Level::E1,
        (false, false) => Level::E0,
    }
}

fn named(tests: &[&FailedTest]) -> Vec<String> {
    tests.iter().map(|test| test.id.clone()).collect()
}
