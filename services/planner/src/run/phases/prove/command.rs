//! Check command: the runs that it needs, their trees, and the joint evaluation of their results.

use domain::check::{
    ChangeReport, CheckCandidate, CheckOutcome, CheckSpec, CompletedCheck, FailedTest, RemovedTest,
    TestReport, TreeKind,
};
use domain::{
    CheckRow, FileRole, RedCheck,
    comparison::{LostTests, NewFailures},
    text::take_tail,
};

use super::{CHECK_S, REPEATED_MS, SLOW_MS, TAIL};
use crate::run::machine::RunChecks;

// Offset from the numbers of repeats: such a run replaces one that failed because of infrastructure.
const REPLACEMENT: u32 = 100;

/// Command with the change that it checks.
pub(super) struct CheckCommand<'a> {
    pub(super) checks: &'a RunChecks,
    pub(super) found: &'a CheckCandidate,
    pub(super) change: Option<&'a ChangeReport>,
    /// `JUnit` files that the command writes, by the rules.
    pub(super) reports: &'a [String],
}

/// Tests of a command, by the agreement of its runs.
struct SettledTests {
    /// Tests that fail with the change and that the base does not excuse, in all runs.
    broken: Vec<String>,
    /// Tests that fail without the change and not with it, in all runs.
    mended: Vec<String>,
    /// Tests whose runs differ.
    flaky: Vec<String>,
}

impl<'a> CheckCommand<'a> {
    pub(super) fn spec(&self, tree: TreeKind, again: u32) -> CheckSpec {
        CheckSpec {
            command: self.found.command.clone(),
            directory: self.found.directory.clone(),
            tree,
            again,
            limit_s: Some(CHECK_S),
            reports: self.reports.to_vec(),
        }
    }

    pub(super) fn result(&self, tree: TreeKind, again: u32) -> Option<&'a CompletedCheck> {
        self.made(tree, again).0
    }

    /// Returns the outcome at the base; `None` before the run there.
    fn base_outcome(&self) -> Option<CheckOutcome> {
        self.result(TreeKind::Base, 0).map(|run| run.outcome)
    }

    /// Returns the run of a tree that counts so far, and the check that is still missing for it.
    fn made(&self, tree: TreeKind, again: u32) -> (Option<&'a CompletedCheck>, Option<CheckSpec>) {
        let spec = self.spec(tree.clone(), again);
        let run = self.checks.result(&spec);
        match run {
            None => (None, Some(spec)),
            Some(first) if is_worth_another(first) => {
                let spec = self.spec(tree, again + REPLACEMENT);
                match self.checks.result(&spec) {
                    None => (run, Some(spec)),
                    replacement => (replacement, None),
                }
            }
            Some(_) => (run, None),
        }
    }

    /// Returns the result with the change, if it depends on the code.
    pub(super) fn conclusive_head(&self) -> Option<&'a CompletedCheck> {
        self.conclusive(TreeKind::Head)
    }

    pub(super) fn conclusive(&self, tree: TreeKind) -> Option<&'a CompletedCheck> {
        self.result(tree, 0).filter(|run| run.outcome.is_about_the_code())
    }

    /// Returns the tree of the change without its product: a test that fails there shows that the product
    /// matters.
    pub(super) fn without(&self) -> TreeKind {
        tree_without_product(self.change)
    }

    /// Returns the tree of the change's product with the tests and support files of the base; `None` if the
    /// change touches none of them.
    pub(super) fn old_tests(&self) -> Option<TreeKind> {
        tree_with_old_tests(self.change?)
    }

    /// Returns the tree of the change without one of its hunks.
    pub(super) fn without_part(&self, hunk: u32) -> Option<TreeKind> {
        Some(tree_without_part(self.change?, hunk))
    }

    /// Returns the tests that the change removes or renames visibly.
    pub(super) fn removed(&self) -> &'a [RemovedTest] {
        self.change.map_or(&[], |change| &change.removed_tests)
    }

    /// Returns the missing checks of these runs.
    pub(super) fn missing_of(&self, wanted: Vec<(TreeKind, u32)>) -> Vec<CheckSpec> {
        let wanted = wanted.into_iter();
        wanted
            .filter_map(|(tree, again)| self.made(tree, again).1)
            .collect()
    }

    /// Returns the missing checks that do not depend on each other.
    pub(super) fn missing(&self) -> Vec<CheckSpec> {
        // The base always runs: a check with a result there and none with the change is worse.
        let first = self.missing_of(vec![(TreeKind::Head, 0), (TreeKind::Base, 0)]);
        if !first.is_empty() {
            return first;
        }
        let without = self.conclusive_head().map(|_| (self.without(), 0));
        let missing = self.missing_of(without.into_iter().collect());
        if missing.is_empty() {
            self.missing_of(self.repeats())
        } else {
            missing
        }
    }

    /// Returns the missing checks that will be needed unless the change is worse or its tests show nothing.
    pub(super) fn likely(&self) -> Vec<CheckSpec> {
        let without = self.without();
        if without == TreeKind::Base {
            return Vec::new();
        }
        let Some(head) = self.result(TreeKind::Head, 0) else {
            return self.missing_of(vec![(without, 0)]);
        };
        let is_worse = !self.suspects().is_empty() || !self.lost_at(0).is_empty();
        let is_quick = head.outcome == CheckOutcome::Green && head.duration_ms < REPEATED_MS;
        if is_quick && !is_worse {
            self.missing_of(vec![(without.clone(), 0), (TreeKind::Head, 1), (without, 1)])
        } else {
            Vec::new()
        }
    }

    /// Returns true if the command ran on both sides and nothing speaks against the change so far.
    pub(super) fn is_undisputed(&self) -> bool {
        let trees = [TreeKind::Head, TreeKind::Base];
        trees.into_iter().all(|tree| self.result(tree, 0).is_some()) && self.red().is_none()
    }

    /// Returns true if the executor keeps the result of this check.
    pub(super) fn is_known(&self, check: &CheckSpec) -> bool {
        self.found.known_at_base && *check == self.spec(TreeKind::Base, 0)
    }

    /// Returns the runs that confirm a result.
    fn repeats(&self) -> Vec<(TreeKind, u32)> {
        let is_worse = !self.suspects().is_empty() || !self.lost_at(0).is_empty();
        let is_shown = !self.repaired().is_empty();
        let head = self.result(TreeKind::Head, 0);
        let is_quick = head.is_some_and(|run| run.duration_ms < REPEATED_MS);
        let mut wanted = Vec::new();
        if is_worse || (is_shown && is_quick) {
            wanted.push((TreeKind::Head, 1));
        }
        // Only failures need a third run, and those of a slow check do without.
        if is_worse && head.is_some_and(|run| run.duration_ms < SLOW_MS) {
            wanted.push((TreeKind::Head, 2));
        }
        // A base that exceeded its time limit would take as long again.
        let base = self.result(TreeKind::Base, 0);
        if is_worse && base.is_none_or(|run| run.outcome != CheckOutcome::Timeout) {
            wanted.push((TreeKind::Base, 1));
        }
        if is_shown && is_quick {
            wanted.push((self.without(), 1));
        }
        wanted
    }

    /// Returns the tests that fail with the change and that the base does not excuse, by the first runs; the
    /// command itself if its tests are unknown.
    fn suspects(&self) -> Vec<String> {
        let (Some(head), Some(base)) = (self.conclusive_head(), self.result(TreeKind::Base, 0)) else {
            return Vec::new();
        };
        match head.new_failures(base) {
            NewFailures::None => Vec::new(),
            NewFailures::Tests(tests) => tests,
            NewFailures::Command => vec![self.found.command.clone()],
        }
    }

    /// Returns true if a test that fails with the change fails in the repeated run on the base, too.
    fn is_excused_again(&self, test: &str) -> bool {
        let (Some(head), Some(base)) = (self.conclusive_head(), self.result(TreeKind::Base, 1)) else {
            return false;
        };
        // A failing command is an excuse only for the same failure.
        if test == self.found.command {
            head.new_failures(base) == NewFailures::None
        } else {
            self.fails(test, TreeKind::Base, 1) == Some(true)
        }
    }

    /// Returns the tests that passed on the base and have no result in a run with the change.
    fn lost_at(&self, again: u32) -> LostTests {
        let (Some(head), Some(base)) = (self.result(TreeKind::Head, again), self.result(TreeKind::Base, 0))
        else {
            return LostTests::default();
        };
        // A run without tree and tests did not happen or was interrupted, so it lost nothing.
        if head.tree.is_some() || head.tests.is_some() {
            base.tests_not_run_in(head, self.removed())
        } else {
            LostTests::default()
        }
    }

    /// Returns the tests that passed on the base and have no result in any run with the change.
    pub(super) fn lost(&self) -> LostTests {
        let mut lost = self.lost_at(0);
        for again in [1, 2] {
            if self.result(TreeKind::Head, again).is_some() {
                lost = lost.shared_with(&self.lost_at(again));
            }
        }
        // A name that differs between runs of the same files does not identify a test.
        let base = self.result(TreeKind::Base, 1).and_then(|run| run.tests.as_ref());
        if let Some(base) = base.filter(|base| base.names_all_passing() && !lost.names.is_empty()) {
            lost.keep(|name| base.passing.iter().any(|known| known == name));
        }
        lost
    }

    /// Returns the tests that fail without the change and not with it, by the first runs.
    fn repaired(&self) -> Vec<String> {
        match (self.conclusive_head(), self.result(self.without(), 0)) {
            (Some(head), Some(without)) => {
                let mut repaired = test_names(&without.failing_beyond(head).unwrap_or_default());
                // A skipped test does not fail either.
                repaired.retain(|test| head.passes_now(test, without));
                repaired
            }
            _ => Vec::new(),
        }
    }

    /// Returns true if a test fails in a run; `None` if the run has no result for it.
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

    /// Returns broken and repaired tests on which all runs agree, and flaky tests.
    fn settled(&self) -> SettledTests {
        let at_head = |test: &str| [1, 2].map(|again| self.fails(test, TreeKind::Head, again));
        let (broken, shaky): (Vec<_>, Vec<_>) = self
            .suspects()
            .into_iter()
            .partition(|test| !at_head(test).contains(&Some(false)) && !self.is_excused_again(test));
        let (mended, also_shaky): (Vec<_>, Vec<_>) = self.repaired().into_iter().partition(|test| {
            !at_head(test).contains(&Some(true)) && self.fails(test, self.without(), 1) != Some(false)
        });
        let mended = mended
            .into_iter()
            .filter(|test| !self.is_rewritten(test))
            .collect();
        SettledTests {
            broken,
            mended,
            flaky: [shaky, also_shaky].concat(),
        }
    }

    /// Returns true if a test that failed on the base passes only because the change also modifies tests or
    /// their data: in its old form it fails with the change, too.
    pub(super) fn is_rewritten(&self, test: &str) -> bool {
        let failed = |run: Option<&CompletedCheck>| run.and_then(|run| run.has_failed(test)) == Some(true);
        let old = self.old_tests().and_then(|tree| self.conclusive(tree));
        failed(self.conclusive(TreeKind::Base)) && failed(old)
    }

    /// Returns the tests that failed on the base and have no result with the change, although the check
    /// passes.
    pub(super) fn hidden_failures(&self) -> LostTests {
        match (self.conclusive(TreeKind::Base), self.conclusive_head()) {
            (Some(base), Some(head)) if head.outcome == CheckOutcome::Green => {
                base.failures_not_run_in(head, self.removed())
            }
            _ => LostTests::default(),
        }
    }

    /// Returns the tests that failed on the base and pass with the change, but not in their old form.
    pub(super) fn rewritten(&self) -> Vec<String> {
        let mut names = self.repaired_base_tests();
        names.retain(|name| self.is_rewritten(name));
        names
    }

    /// Returns the tests that failed on the base and pass with the change, and that have no result in their old
    /// form.
    pub(super) fn replaced(&self) -> Vec<String> {
        let Some(old) = self.old_tests().and_then(|tree| self.conclusive(tree)) else {
            return Vec::new();
        };
        let skipped = || old.tests.iter().flat_map(|tests| &tests.skipping);
        let has_result = |name: &String| {
            old.has_failed(name) == Some(true)
                || has_passed(old, name)
                || skipped().any(|known| known == name)
        };
        let mut names = self.repaired_base_tests();
        names.retain(|name| !has_result(name));
        names
    }

    /// Returns the tests that failed on the base and pass with the change.
    fn repaired_base_tests(&self) -> Vec<String> {
        let (Some(base), Some(head)) = (self.conclusive(TreeKind::Base), self.conclusive_head()) else {
            return Vec::new();
        };
        let failing = base.tests.iter().flat_map(|tests| &tests.failing);
        let names = failing.map(|test| test.id.clone());
        names
            .filter(|name| head.has_failed(name) == Some(false) && head.passes_now(name, base))
            .collect()
    }

    /// Returns true if a repaired test is part of the repository in the same form.
    pub(super) fn is_own(&self, test: &str) -> bool {
        let base = self.conclusive(TreeKind::Base);
        let at_base = base.and_then(|run| run.has_failed(test)) == Some(true);
        // A test that the run of the old form does not name did not run there.
        let with_old = self
            .old_tests()
            .map(|tree| self.conclusive(tree).is_some_and(|run| has_passed(run, test)));
        at_base && with_old.unwrap_or(true)
    }

    /// Returns the new tests that fail when a part of the product is reverted.
    pub(super) fn shown_by_parts(&self, hunks: impl Iterator<Item = u32>) -> Vec<String> {
        let (Some(head), Some(base), Some(change)) = (
            self.conclusive_head(),
            self.result(TreeKind::Base, 0),
            self.change,
        ) else {
            return Vec::new();
        };
        let mut shown: Vec<String> = Vec::new();
        for hunk in hunks {
            let tree = tree_without_part(change, hunk);
            let failing = self.conclusive(tree).map(|run| run.failing_unknown_to(base));
            for test in failing.unwrap_or_default() {
                if head.has_failed(&test.id) == Some(false) && !shown.contains(&test.id) {
                    shown.push(test.id.clone());
                }
            }
        }
        shown
    }

    /// Returns the tests that fail with and without the change.
    fn still_failing(&self, flaky: &[String]) -> Vec<String> {
        let failing = |tree| self.conclusive(tree).and_then(|run| run.tests.as_ref());
        let (Some(head), Some(base)) = (failing(TreeKind::Head), failing(TreeKind::Base)) else {
            return Vec::new();
        };
        let at_base = |test: &&FailedTest| base.failing.iter().any(|known| known.id == test.id);
        let mut tests = test_names(&head.failing.iter().filter(at_base).collect::<Vec<_>>());
        tests.retain(|test| !flaky.contains(test));
        tests
    }

    /// Returns the row for the report; `None` before the first run. `parts`: tests that fail when a part of
    /// the product is reverted.
    pub(super) fn row(&self, parts: Vec<String>) -> Option<CheckRow> {
        let head = self.result(TreeKind::Head, 0)?;
        let SettledTests {
            broken,
            mut mended,
            flaky,
        } = self.settled();
        let still_failing = self.still_failing(&flaky);
        let is_new = |test: &String| !mended.contains(test) && !flaky.contains(test);
        let parts: Vec<String> = parts.into_iter().filter(is_new).collect();
        mended.extend(parts);
        let lost = self.lost();
        Some(CheckRow {
            command: self.found.command.clone(),
            base: self.base_outcome(),
            head: head.outcome,
            passed: head.tests.as_ref().map_or(0, |tests| tests.passed),
            broken,
            mended,
            missing_count: lost.count,
            missing: lost.names,
            still_failing,
            flaky,
            reason: if head.outcome.is_about_the_code() {
                String::new()
            } else {
                head.reason.clone()
            },
            setup_hint: head.setup_hint.clone(),
        })
    }

    /// Returns the failure for the model.
    pub(super) fn red(&self) -> Option<RedCheck> {
        let head = self.result(TreeKind::Head, 0)?;
        let tests = self.settled().broken;
        // Tests that are silenced while the check passes are a finding instead.
        let lost = if head.outcome == CheckOutcome::Green {
            LostTests::default()
        } else {
            self.lost()
        };
        (!tests.is_empty() || !lost.is_empty()).then(|| RedCheck {
            command: self.found.command.clone(),
            base: self.base_outcome(),
            output_tail: take_tail(&head.output_tail, TAIL),
            tests,
            missing_count: lost.count,
            missing: lost.names,
        })
    }
}

/// Returns true for an infrastructure failure that a second run may heal. A slow run would cost the same
/// time again.
fn is_worth_another(run: &CompletedCheck) -> bool {
    run.outcome == CheckOutcome::Infra && run.duration_ms < REPEATED_MS
}

/// Returns true if a test passed, as far as the runner names passing tests.
fn has_passed(run: &CompletedCheck, test: &str) -> bool {
    let names =
        |tests: &TestReport| !tests.names_all_passing() || tests.passing.iter().any(|known| known == test);
    run.has_failed(test) == Some(false) && run.tests.as_ref().is_some_and(names)
}

fn test_names(tests: &[&FailedTest]) -> Vec<String> {
    tests.iter().map(|test| test.id.clone()).collect()
}

// Trees that separate the effect of a change on the product from its effect on tests.

/// Returns the change without its product: the base with the changed tests and the files that test runs
/// read. The base if the change has neither.
fn tree_without_product(change: Option<&ChangeReport>) -> TreeKind {
    let Some(change) = change else {
        return TreeKind::Base;
    };
    let paths = [change.test_files.as_slice(), &change.support_files].concat();
    let mixed = mixed_files(change);
    if mixed.is_empty() {
        return if paths.is_empty() {
            TreeKind::Base
        } else {
            TreeKind::BaseWith { paths }
        };
    }
    let is_product = |path: &String| !paths.contains(path) && !mixed.contains(&path.as_str());
    let product = change.changed.iter().filter(|file| file.role != FileRole::Test);
    TreeKind::HeadWithBase {
        head: change.tree.clone(),
        paths: product.map(|file| file.path.clone()).filter(is_product).collect(),
        hunks: hunk_numbers(change, |path, is_test| !is_test && mixed.contains(&path)),
    }
}

/// Returns the change without one hunk of its product. If the hunk is the whole product, that is the tree without
/// the product, which has run already.
fn tree_without_part(change: &ChangeReport, hunk: u32) -> TreeKind {
    let all = tree_without_product(Some(change));
    match &all {
        TreeKind::BaseWith { paths } if is_only_part(change, hunk, paths) => all,
        TreeKind::Base
        | TreeKind::Head
        | TreeKind::BaseWith { .. }
        | TreeKind::HeadWithout { .. }
        | TreeKind::HeadWithBase { .. } => TreeKind::HeadWithout {
            head: change.tree.clone(),
            hunk,
        },
    }
}

/// Returns true if a hunk is all that the change does outside of these files.
fn is_only_part(change: &ChangeReport, hunk: u32, paths: &[String]) -> bool {
    let is_other = |path: &String| !paths.contains(path);
    let mut files = change
        .changed
        .iter()
        .map(|file| &file.path)
        .filter(|path| is_other(path));
    let mut hunks = (0_u32..)
        .zip(&change.hunks)
        .filter(|(_, hunk)| is_other(&hunk.path));
    let (Some(file), None) = (files.next(), files.next()) else {
        return false;
    };
    let (Some((number, part)), None) = (hunks.next(), hunks.next()) else {
        return false;
    };
    !change.truncated && number == hunk && part.path == *file
}

/// Returns the change's product with tests and support files of the base; `None` if the change touches
/// neither.
fn tree_with_old_tests(change: &ChangeReport) -> Option<TreeKind> {
    let paths = [
        change.test_files.as_slice(),
        &change.removed_test_files,
        &change.support_files,
    ]
    .concat();
    let mixed = mixed_files(change);
    let hunks = hunk_numbers(change, |path, is_test| is_test && mixed.contains(&path));
    (!paths.is_empty() || !hunks.is_empty()).then(|| TreeKind::HeadWithBase {
        head: change.tree.clone(),
        paths,
        hunks,
    })
}

/// Returns the product files that also contain tests, if both changed.
fn mixed_files(change: &ChangeReport) -> Vec<&str> {
    if change.truncated {
        return Vec::new();
    }
    let is_test_file =
        |path: &String| change.test_files.contains(path) || change.removed_test_files.contains(path);
    let tests = change
        .hunks
        .iter()
        .filter(|hunk| hunk.is_test && !is_test_file(&hunk.path));
    let mut paths: Vec<&str> = tests.map(|hunk| hunk.path.as_str()).collect();
    paths.dedup();
    paths
}

fn hunk_numbers(change: &ChangeReport, is_it: impl Fn(&str, bool) -> bool) -> Vec<u32> {
    let numbered = (0_u32..).zip(&change.hunks);
    numbered
        .filter(|(_, hunk)| is_it(&hunk.path, hunk.is_test))
        .map(|(number, _)| number)
        .collect()
}
