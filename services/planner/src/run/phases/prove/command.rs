//! One command that checks the change: what has to run of it, and what its runs show together.

use domain::check::{CheckCandidate, CheckOutcome, CheckRun, CheckSpec, FailedTest, TreeKind};
use domain::{CheckRow, RedCheck, text::tail};

use super::limits::{CHECK_S, REPEATED_MS, TAIL};
use crate::run::machine::Checks;

/// Set apart from the numbers of repeats: that run stands for the one whose surroundings failed.
const ANEW: u32 = 100;

/// A command and the files with tests that the change has.
pub(super) struct Command<'a> {
    pub(super) checks: &'a Checks,
    pub(super) found: &'a CheckCandidate,
    pub(super) tests: &'a [String],
}

impl<'a> Command<'a> {
    pub(super) fn spec(&self, tree: TreeKind, again: u32) -> CheckSpec {
        CheckSpec {
            command: self.found.command.clone(),
            directory: self.found.directory.clone(),
            tree,
            again,
            limit_s: Some(CHECK_S),
            reports: Vec::new(),
        }
    }

    fn result(&self, tree: TreeKind, again: u32) -> Option<&'a CheckRun> {
        self.made(tree, again).0
    }

    /// The run of a tree that counts so far, and the one that is still to be made for it.
    fn made(&self, tree: TreeKind, again: u32) -> (Option<&'a CheckRun>, Option<CheckSpec>) {
        let spec = self.spec(tree.clone(), again);
        let run = self.checks.result(&spec);
        match run {
            None => (None, Some(spec)),
            Some(first) if is_worth_another(first) => {
                let spec = self.spec(tree, again + ANEW);
                match self.checks.result(&spec) {
                    None => (run, Some(spec)),
                    anew => (anew, None),
                }
            }
            Some(_) => (run, None),
        }
    }

    /// How the command ended with the change, when that says something of the code.
    pub(super) fn telling_head(&self) -> Option<&'a CheckRun> {
        self.telling(TreeKind::Head)
    }

    fn telling(&self, tree: TreeKind) -> Option<&'a CheckRun> {
        self.result(tree, 0).filter(|run| run.outcome.is_about_the_code())
    }

    /// The base with the change's tests, to see whether they fail without the change; the base where there are none.
    fn without(&self) -> TreeKind {
        let paths = self.tests.to_vec();
        match paths.is_empty() {
            true => TreeKind::Base,
            false => TreeKind::BaseWith { paths },
        }
    }

    /// The first run that is still to be made.
    pub(super) fn missing(&self) -> Option<CheckSpec> {
        let missing = |wanted: Vec<(TreeKind, u32)>| {
            let mut wanted = wanted.into_iter();
            wanted.find_map(|(tree, again)| self.made(tree, again).1)
        };
        let first = missing(vec![(TreeKind::Head, 0)]);
        // Where the change's run says nothing of the code, the base says nothing either.
        if first.is_some() || self.telling_head().is_none() {
            return first;
        }
        missing(vec![(TreeKind::Base, 0), (self.without(), 0)]).or_else(|| missing(self.repeats()))
    }

    /// What is run again before its result is believed.
    fn repeats(&self) -> Vec<(TreeKind, u32)> {
        let (is_worse, is_shown) = (!self.suspects().is_empty(), !self.repaired().is_empty());
        let is_quick = self
            .telling_head()
            .is_some_and(|run| run.duration_ms < REPEATED_MS);
        let mut wanted = Vec::new();
        if is_worse || (is_shown && is_quick) {
            wanted.extend([(TreeKind::Head, 1), (TreeKind::Head, 2)]);
        }
        if is_worse {
            wanted.push((TreeKind::Base, 1));
        }
        if is_shown && is_quick {
            wanted.push((self.without(), 1));
        }
        wanted
    }

    /// Tests that fail with the change and not before, by the first runs; the command itself where its tests are not known.
    fn suspects(&self) -> Vec<String> {
        let (Some(head), Some(base)) = (self.telling_head(), self.result(TreeKind::Base, 0)) else {
            return Vec::new();
        };
        if head.outcome != CheckOutcome::Red {
            return Vec::new();
        }
        match head.failing_beyond(base) {
            Some(tests) if !tests.is_empty() || base.outcome == CheckOutcome::Red => named(&tests),
            _ if base.outcome == CheckOutcome::Green => vec![self.found.command.clone()],
            _ => Vec::new(),
        }
    }

    /// Tests that fail without the change and not with it, by the first runs.
    fn repaired(&self) -> Vec<String> {
        match (self.telling_head(), self.result(self.without(), 0)) {
            (Some(head), Some(without)) => named(&without.failing_beyond(head).unwrap_or_default()),
            _ => Vec::new(),
        }
    }

    /// Whether a test fails in a run that was made; nothing where that run does not say.
    fn fails(&self, test: &str, tree: TreeKind, again: u32) -> Option<bool> {
        let run = self.result(tree, again)?;
        match run.outcome {
            CheckOutcome::Green => Some(false),
            CheckOutcome::Red if test == self.found.command => Some(true),
            CheckOutcome::Red => {
                let tests = run.tests.as_ref()?;
                let is_whole = !tests.truncated && !tests.collection_error;
                is_whole.then(|| tests.failing.iter().any(|known| known.id == test))
            }
            CheckOutcome::Inert | CheckOutcome::Timeout | CheckOutcome::Infra | CheckOutcome::NoTests => None,
        }
    }

    /// What every run agrees on, and the tests that fail in some runs of the same files.
    fn settled(&self) -> (Vec<String>, Vec<String>, Vec<String>) {
        let at_head = |test: &str| [1, 2].map(|again| self.fails(test, TreeKind::Head, again));
        let (broken, shaky): (Vec<_>, Vec<_>) = self.suspects().into_iter().partition(|test| {
            !at_head(test).contains(&Some(false)) && self.fails(test, TreeKind::Base, 1) != Some(true)
        });
        let (mended, also_shaky): (Vec<_>, Vec<_>) = self.repaired().into_iter().partition(|test| {
            !at_head(test).contains(&Some(true)) && self.fails(test, self.without(), 1) != Some(false)
        });
        (broken, mended, [shaky, also_shaky].concat())
    }

    /// Tests that fail whether the change is there or not.
    fn still_failing(&self, flaky: &[String]) -> Vec<String> {
        let failing = |tree| self.telling(tree).and_then(|run| run.tests.as_ref());
        let (Some(head), Some(base)) = (failing(TreeKind::Head), failing(TreeKind::Base)) else {
            return Vec::new();
        };
        let at_base = |test: &&FailedTest| base.failing.iter().any(|known| known.id == test.id);
        let mut tests = named(&head.failing.iter().filter(at_base).collect::<Vec<_>>());
        tests.retain(|test| !flaky.contains(test));
        tests
    }

    /// What people read of it; nothing before it has run.
    pub(super) fn row(&self) -> Option<CheckRow> {
        let head = self.result(TreeKind::Head, 0)?;
        let (broken, mended, flaky) = self.settled();
        let still_failing = self.still_failing(&flaky);
        Some(CheckRow {
            command: self.found.command.clone(),
            base: self.result(TreeKind::Base, 0).map(|run| run.outcome),
            head: head.outcome,
            passed: head.tests.as_ref().map_or(0, |tests| tests.passed),
            broken,
            mended,
            still_failing,
            flaky,
        })
    }

    /// What goes back to the model.
    pub(super) fn red(&self) -> Option<RedCheck> {
        let head = self.telling_head()?;
        let (tests, ..) = self.settled();
        (!tests.is_empty()).then(|| RedCheck {
            command: self.found.command.clone(),
            output_tail: tail(&head.output_tail, TAIL),
            tests,
        })
    }
}

/// Surroundings fail now and then, and what a reviewer reads must not rest on that. One that took long would take as long again.
fn is_worth_another(run: &CheckRun) -> bool {
    run.outcome == CheckOutcome::Infra && run.duration_ms < REPEATED_MS
}

fn named(tests: &[&FailedTest]) -> Vec<String> {
    tests.iter().map(|test| test.id.clone()).collect()
}
