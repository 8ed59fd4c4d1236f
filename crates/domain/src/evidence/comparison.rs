//! Comparison of two runs of the same tests by test name, or by number if the runner reports no names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::evidence::{
    check::{CheckOutcome, CompletedCheck, FailedTest, RemovedTest, TestReport},
    log_failures::list_failures,
};

// Maximum number of names that one comparison keeps.
const MOST_NAMES: usize = 50;

/// Tests that passed in one run and do not pass in another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostTests {
    /// Number of lost tests.
    pub count: u32,
    /// The first names, if the runner reports them; at most 50.
    pub names: Vec<String>,
}

impl LostTests {
    /// Returns true when no test is lost.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn named(names: Vec<String>) -> Self {
        Self {
            count: u32::try_from(names.len()).unwrap_or(u32::MAX),
            names: names.into_iter().take(MOST_NAMES).collect(),
        }
    }

    const fn counted(count: u32) -> Self {
        Self {
            count,
            names: Vec::new(),
        }
    }

    /// Removes the names for which `is_kept` is false and reduces the count accordingly.
    pub fn keep(&mut self, is_kept: impl Fn(&str) -> bool) {
        let before = self.names.len();
        self.names.retain(|name| is_kept(name));
        let gone = u32::try_from(before - self.names.len()).unwrap_or(u32::MAX);
        self.count = self.count.saturating_sub(gone);
    }

    /// Returns the tests that both comparisons report as lost.
    #[must_use]
    pub fn shared_with(&self, other: &Self) -> Self {
        // Without names the overlap is unknown, so the smaller count is the upper bound.
        if self.names.is_empty() || other.names.is_empty() {
            return if self.count <= other.count {
                self.clone()
            } else {
                other.clone()
            };
        }
        let names = self.names.iter().filter(|name| other.names.contains(name));
        let mut shared = Self::named(names.cloned().collect());
        // Names beyond the limit cannot be compared and count as shared.
        let left_out = |lost: &Self| {
            lost.count
                .saturating_sub(u32::try_from(lost.names.len()).unwrap_or(u32::MAX))
        };
        shared.count = shared.count.saturating_add(left_out(self).min(left_out(other)));
        shared
    }
}

/// Failures of a run with the change that its base does not excuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewFailures {
    /// None: the run does not fail, or it fails as the base does.
    None,
    /// These tests fail.
    Tests(Vec<String>),
    /// The command fails, and no single test shows why.
    Command,
}

impl CompletedCheck {
    /// Returns the failures of this run that a run on the base does not excuse.
    ///
    /// Only the same failures on the base are an excuse. A base without a result excuses nothing, except for a
    /// missing setup that both runs report.
    pub fn new_failures(&self, base: &Self) -> NewFailures {
        if self.outcome != CheckOutcome::Red {
            return NewFailures::None;
        }
        let is_excused = match base.outcome {
            CheckOutcome::Red => self.fails_like(base),
            CheckOutcome::Inert => self.lacks_setup_of(base),
            CheckOutcome::Green | CheckOutcome::Timeout | CheckOutcome::Infra | CheckOutcome::NoTests => {
                false
            }
        };
        if is_excused {
            return NewFailures::None;
        }
        let tests = self.tests.as_ref().filter(|tests| !tests.collection_error);
        let failing = tests.iter().flat_map(|tests| &tests.failing);
        let new: Vec<String> = failing
            .filter(|test| !base.tests.iter().any(|tests| tests.is_failing(&test.id)))
            .map(|test| test.id.clone())
            .collect();
        if new.is_empty() {
            NewFailures::Command
        } else {
            NewFailures::Tests(new)
        }
    }

    /// Returns true when this failed run shows only failures of another failed run.
    fn fails_like(&self, base: &Self) -> bool {
        let (Some(ours), Some(theirs)) = (&self.tests, &base.tests) else {
            return self.tests.is_none() && base.tests.is_none() && self.prints_only_failures_of(base);
        };
        let new = ours.failing.iter().filter(|test| !theirs.is_failing(&test.id));
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        // An incomplete list may hide a failure, so the numbers count too.
        let unnamed = theirs.failed.saturating_sub(count(theirs.failing.len()));
        let is_whole = !ours.truncated && !theirs.truncated && !theirs.collection_error;
        let is_known = if is_whole {
            new.count() == 0
        } else {
            count(new.count()) <= unnamed && ours.failed <= theirs.failed && ours.passed >= theirs.passed
        };
        if !is_known || (ours.collection_error && !theirs.collection_error) {
            return false;
        }
        // With tests that were not loaded, or without a failing test, only the output shows the reason.
        match (ours.collection_error, ours.failed) {
            (true, _) => self.prints_only_failures_of(base),
            (false, 0) => {
                theirs.failed == 0 && !theirs.collection_error && self.prints_only_failures_of(base)
            }
            (false, _) => true,
        }
    }

    /// Returns true when the end of the output shows only failures that the output of `base` shows too.
    fn prints_only_failures_of(&self, base: &Self) -> bool {
        if self.exit_code != base.exit_code {
            return false;
        }
        let ours = list_failures(self.comparable_tail());
        let theirs = list_failures(&base.output_tail);
        ours.are_known_in(&theirs) || (ours.is_empty() && theirs.is_empty())
    }

    /// Returns the part of the output to compare: the whole lines of its second half if the beginning is
    /// missing, because the tail of another run may begin some lines later.
    fn comparable_tail(&self) -> &str {
        if !self.truncated {
            return &self.output_tail;
        }
        let middle = self.output_tail.len() / 2;
        let rest = (middle..self.output_tail.len()).find_map(|at| self.output_tail.get(at..));
        let rest = rest.unwrap_or_default();
        rest.split_once('\n').map_or(rest, |(_, lines)| lines)
    }

    /// Returns true when no test failed and both runs report the same missing setup.
    fn lacks_setup_of(&self, base: &Self) -> bool {
        let has_failing = self.tests.iter().any(|tests| tests.failed > 0);
        !has_failing && self.setup_hint.is_some() && self.setup_hint == base.setup_hint
    }

    /// Returns the tests that pass here and have no pass or failure in `other`.
    ///
    /// Causes are: skipped, not collected, deselected, outside of the runner's pattern, or part of an
    /// interrupted run. Tests that fail here and are skipped there count, too. Tests that the change visibly
    /// removes or renames do not count.
    pub fn tests_not_run_in(&self, other: &Self, removed: &[RemovedTest]) -> LostTests {
        self.compared_with(other, removed, true)
    }

    /// Returns the tests that pass here and do not pass in `other`, for any reason.
    pub fn tests_not_passing_in(&self, other: &Self, removed: &[RemovedTest]) -> LostTests {
        self.compared_with(other, removed, false)
    }

    /// Returns the tests that fail here and have no result in `other`: a run that omits a failing test does
    /// not count as passing.
    ///
    /// Tests that the change visibly removes or renames do not count, nor do files that could not be loaded
    /// here.
    pub fn failures_not_run_in(&self, other: &Self, removed: &[RemovedTest]) -> LostTests {
        let (Some(before), Some(after)) = (&self.tests, &other.tests) else {
            return LostTests::default();
        };
        if before.collection_error || before.truncated || after.truncated {
            return LostTests::default();
        }
        if !after.names_all_passing() {
            let open = removed.iter().filter(|test| test.now.is_empty()).count();
            // Without names only numbers remain. Passing tests that disappeared are already reported by
            // `tests_not_run_in`, so they must not be counted as failures as well.
            let explained = self.tests_not_run_in(other, removed).count;
            let explained = explained.saturating_add(u32::try_from(open).unwrap_or(u32::MAX));
            let fewer = before.ran().saturating_sub(after.ran()).saturating_sub(explained);
            return LostTests::counted(fewer.min(before.failed));
        }
        let ids = |tests: &[FailedTest]| tests.iter().map(|test| test.id.clone()).collect::<Vec<_>>();
        let failed = TestReport {
            passing: ids(&before.failing),
            // Listing all other tests as skipped marks them as known, so that none of them counts as a
            // replacement of a failed test.
            skipping: before.passing.iter().chain(&before.skipping).cloned().collect(),
            ..TestReport::default()
        };
        let there = after.passing.iter().chain(&after.skipping).map(String::as_str);
        let there = there.chain(after.failing.iter().map(|test| test.id.as_str()));
        LostTests::named(lost_names(&failed, there.collect(), removed))
    }

    fn compared_with(&self, other: &Self, removed: &[RemovedTest], counts_failing: bool) -> LostTests {
        // A run that failed because of its environment is not a valid baseline.
        let Some(before) = self.tests.as_ref().filter(|_| self.outcome.is_about_the_code()) else {
            return LostTests::default();
        };
        let nothing = TestReport::default();
        let after = other.tests.as_ref().unwrap_or(&nothing);
        if !before.names_all_passing() || !after.names_all_passing() {
            return LostTests::counted(lost_number(before, after, removed, counts_failing));
        }
        let failing = after.failing.iter().filter(|_| counts_failing);
        let there = after.passing.iter().chain(failing.map(|test| &test.id));
        let mut lost = lost_names(before, there.map(String::as_str).collect(), removed);
        // A test that failed and is now skipped counts as silenced.
        let failed = before.failing.iter().filter(|_| counts_failing);
        let skipped = failed.filter(|test| after.skipping.contains(&test.id));
        lost.extend(skipped.map(|test| test.id.clone()));
        LostTests::named(lost)
    }

    /// Returns true when the test failed here, false when it did not, `None` when the report is incomplete.
    pub fn has_failed(&self, name: &str) -> Option<bool> {
        let tests = self.tests.as_ref()?;
        if tests.failing.iter().any(|test| test.id == name) {
            return Some(true);
        }
        let is_passed = tests.passing.iter().any(|test| test == name);
        (is_passed || (!tests.truncated && !tests.collection_error)).then_some(false)
    }

    /// Returns true when a test that failed in the other run passes here: by its name, or by a higher number
    /// of passed tests.
    pub fn passes_now(&self, name: &str, other: &Self) -> bool {
        let (Some(ours), Some(theirs)) = (&self.tests, &other.tests) else {
            return false;
        };
        if ours.names_all_passing() {
            ours.passing.iter().any(|test| test == name)
        } else {
            ours.passed > theirs.passed
        }
    }

    /// Returns the tests that fail here and that the other run does not list at all.
    pub fn failing_unknown_to(&self, other: &Self) -> Vec<&FailedTest> {
        let (Some(ours), Some(theirs)) = (&self.tests, &other.tests) else {
            return Vec::new();
        };
        if !theirs.names_all_passing() || theirs.truncated || theirs.collection_error || ours.collection_error
        {
            return Vec::new();
        }
        let is_known = |test: &FailedTest| {
            theirs.passing.contains(&test.id)
                || theirs.skipping.contains(&test.id)
                || theirs.failing.iter().any(|known| known.id == test.id)
        };
        ours.failing.iter().filter(|test| !is_known(test)).collect()
    }
}

impl TestReport {
    /// Returns true when the report names every passed test.
    pub fn names_all_passing(&self) -> bool {
        self.passing.len() as u64 >= u64::from(self.passed)
    }
}

/// Returns how many fewer tests pass, for reports without names.
fn lost_number(
    before: &TestReport,
    after: &TestReport,
    removed: &[RemovedTest],
    counts_failing: bool,
) -> u32 {
    let open = removed.iter().filter(|test| test.now.is_empty()).count();
    let newly_failing = if counts_failing {
        after.failed.saturating_sub(before.failed)
    } else {
        0
    };
    let there = after.passed.saturating_add(newly_failing);
    let fewer = before.passed.saturating_sub(there);
    // The difference of passed tests alone hides a silenced test when another test is repaired in the same
    // change.
    let skipped = if counts_failing {
        after.skipped.saturating_sub(before.skipped)
    } else {
        0
    };
    // Newly skipped tests count only as far as fewer tests ran, because a new test may be skipped from the
    // start.
    let silenced = skipped.min(before.ran().saturating_sub(after.ran()));
    let open = u32::try_from(open).unwrap_or(u32::MAX);
    fewer.max(silenced).saturating_sub(open)
}

/// Returns the names of tests that disappeared.
///
/// A parametrized test counts per function, because runners name parameters after their values, and a changed
/// value would look like a lost test.
fn lost_names(before: &TestReport, there: Vec<&str>, removed: &[RemovedTest]) -> Vec<String> {
    let mut now: BTreeMap<String, usize> = BTreeMap::new();
    for name in &there {
        *now.entry(normalize_test_name(name)).or_default() += 1;
    }
    let mut lost = Vec::new();
    for (stem, names) in by_stem(before.passing.iter().map(String::as_str)) {
        let missing = names
            .len()
            .saturating_sub(now.get(&stem).copied().unwrap_or_default());
        let mut gone: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| !there.contains(name))
            .collect();
        // One name may identify several tests, so a missing count can exceed the missing names.
        gone.extend(names.iter().copied().filter(|name| there.contains(name)));
        lost.extend(gone.into_iter().take(missing));
    }
    let known: Vec<String> = before
        .passing
        .iter()
        .chain(&before.skipping)
        .chain(before.failing.iter().map(|test| &test.id))
        .map(|name| normalize_test_name(name))
        .collect();
    let mut new: Vec<&str> = there
        .into_iter()
        .filter(|name| !known.contains(&normalize_test_name(name)))
        .collect();
    // Each new test can replace one lost test only.
    lost.retain(|name| !take_replacement(name, &mut new) && !is_open(name, removed, &new));
    lost.sort_by_key(|name| before.passing.iter().position(|known| known == name));
    lost.into_iter().map(str::to_owned).collect()
}

fn by_stem<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<String, Vec<&'a str>> {
    let mut found: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in names {
        found.entry(normalize_test_name(name)).or_default().push(name);
    }
    found
}

/// Removes the new test that replaces a lost one: it has the same last name in another file, class or group. Returns
/// false when there is none.
fn take_replacement(name: &str, new: &mut Vec<&str>) -> bool {
    let own = find_last_part(name);
    let found = new.iter().position(|other| find_last_part(other) == own);
    found.map(|at| new.remove(at)).is_some()
}

/// Returns true when the change visibly removes the test or renames it to an existing one. Instances of a
/// parametrized test share one definition.
fn is_open(name: &str, removed: &[RemovedTest], new: &[&str]) -> bool {
    removed.iter().any(|test| {
        is_test_of(name, &test.name)
            && is_from(name, &test.path)
            && (test.now.is_empty() || new.iter().any(|other| is_test_of(other, &test.now)))
    })
}

/// Returns true when a test id belongs to a definition with this name: its last part, a subtest of it, or a
/// phrase that contains it.
fn is_test_of(id: &str, name: &str) -> bool {
    let last = find_last_part(id);
    let is_part = || {
        normalize_test_name(id)
            .split(['/', '#'])
            .any(|part| part.rsplit("::").next() == Some(name))
    };
    last == name || is_part() || (last.contains(' ') && is_named(&last, name))
}

/// Returns true when a text contains a name as whole words.
pub fn is_named(id: &str, name: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    !name.is_empty()
        && id.match_indices(name).any(|(at, found)| {
            let before = id.get(..at).and_then(|text| text.chars().next_back());
            let after = id.get(at + found.len()..).and_then(|text| text.chars().next());
            !is_word(before) && !is_word(after)
        })
}

/// Returns true when a test id can belong to this file. An id without a file matches every file.
fn is_from(id: &str, path: &str) -> bool {
    match id.split_once("::") {
        Some((file, _)) if file.contains('.') => is_end_of_path(path, file) || is_end_of_path(file, path),
        _ => true,
    }
}

/// Returns true when a path ends with these whole segments: `a.py` is not an end of `test_a.py`.
fn is_end_of_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Returns a test name without parameters, line numbers and memory addresses, which differ between runs.
fn normalize_test_name(name: &str) -> String {
    // Rust's documentation tests contain a line number: `src/lib.rs - add (line 5)`.
    let name = name.split(" (line ").next().unwrap_or(name);
    let leaf_at = name.rfind("::").map_or(0, |at| at + 2);
    let end = name
        .get(leaf_at..)
        .and_then(|leaf| leaf.find('['))
        .filter(|at| *at > 0 && name.ends_with(']'))
        .map_or(name.len(), |at| leaf_at + at);
    let name = name.get(..end).unwrap_or(name);
    // Python's default representation of objects contains an address: `<object at 0x7f01>`.
    match name.find("0x") {
        Some(at) => {
            let rest = name.get(at + 2..).unwrap_or_default();
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            format!("{}0x{rest}", name.get(..at).unwrap_or_default())
        }
        None => name.to_owned(),
    }
}

/// Returns the last part of a test name.
fn find_last_part(name: &str) -> String {
    let name = normalize_test_name(name);
    // The format of Python's `unittest`: `test_total (tests.test_cart.TestCart.test_total)`
    let name = match name.split_once(" (") {
        Some((first, rest)) if rest.ends_with(')') && !first.contains(' ') => first.to_owned(),
        _ => name,
    };
    let last = [" > ", " › ", "::", " - "]
        .into_iter()
        .fold(name.as_str(), |name, mark| {
            name.rsplit(mark).next().unwrap_or(name)
        });
    // A name with spaces is a phrase, as in Jest: dots and slashes in it are punctuation, not separators.
    if last.contains(' ') {
        last.to_owned()
    } else {
        last.rsplit(['.', '/', '#']).next().unwrap_or(last).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_belong_to_files_of_their_whole_name() {
        assert!(is_from("tests/a.py::test_x", "tests/a.py"));
        assert!(is_from("a.py::test_x", "tests/a.py"));
        assert!(is_from("app/tests/a.py::test_x", "tests/a.py"));
        assert!(!is_from("a.py::test_x", "tests/test_a.py"));
        assert!(!is_from("tests/test_a.py::test_x", "a.py"));
    }
    use crate::{
        evidence::check::{SetupHint, TreeKind},
        work::workspace::SandboxLevel,
    };

    fn build_check(passing: &[&str], failing: &[&str]) -> CompletedCheck {
        let failing: Vec<FailedTest> = failing
            .iter()
            .map(|id| FailedTest {
                id: (*id).to_owned(),
                message: String::new(),
            })
            .collect();
        CompletedCheck {
            command: "pytest".to_owned(),
            directory: String::new(),
            tree: Some("a".repeat(40).parse().unwrap()),
            tree_kind: TreeKind::Head,
            outcome: if failing.is_empty() {
                CheckOutcome::Green
            } else {
                CheckOutcome::Red
            },
            reason: String::new(),
            setup_hint: None,
            exit_code: Some(0),
            duration_ms: 5,
            tests: Some(TestReport {
                runner: "pytest".to_owned(),
                passed: u32::try_from(passing.len()).unwrap(),
                failed: u32::try_from(failing.len()).unwrap(),
                passing: passing.iter().map(ToString::to_string).collect(),
                failing,
                ..TestReport::default()
            }),
            output_tail: String::new(),
            truncated: false,
            sandbox: SandboxLevel::L1,
            tampered: Vec::new(),
        }
    }

    fn build_counted_check(passed: u32, failed: u32) -> CompletedCheck {
        let mut run = build_check(&[], &[]);
        let tests = run.tests.as_mut().unwrap();
        (tests.passed, tests.failed) = (passed, failed);
        run
    }

    fn build_removed_test(name: &str, now: &str) -> RemovedTest {
        RemovedTest {
            path: "tests/test_a.py".to_owned(),
            name: name.to_owned(),
            now: now.to_owned(),
        }
    }

    fn list_lost_tests(before: &[&str], after: &[&str], removed: &[RemovedTest]) -> Vec<String> {
        build_check(before, &[])
            .tests_not_run_in(&build_check(after, &[]), removed)
            .names
    }

    #[test]
    fn comparison_names_tests_without_a_result() {
        let base = build_check(&["a.py::test_a", "a.py::test_b", "a.py::test_c"], &[]);
        let head = build_check(&["a.py::test_a"], &["a.py::test_b"]);
        assert_eq!(base.tests_not_run_in(&head, &[]).names, ["a.py::test_c"]);
        assert_eq!(base.tests_not_passing_in(&head, &[]).count, 2);
        let unloaded = CompletedCheck {
            tests: None,
            outcome: CheckOutcome::NoTests,
            ..head
        };
        assert_eq!(base.tests_not_run_in(&unloaded, &[]).count, 3);
        assert!(unloaded.tests_not_run_in(&base, &[]).is_empty());
        let mut skipped = build_check(&["a.py::test_a"], &[]);
        skipped.tests.as_mut().unwrap().skipping = vec!["a.py::test_b".to_owned()];
        let failed = build_check(&["a.py::test_a"], &["a.py::test_b"]);
        assert_eq!(failed.tests_not_run_in(&skipped, &[]).names, ["a.py::test_b"]);
    }

    #[test]
    fn comparison_forgives_removal_in_the_open() {
        let before = ["test_a.py::test_a", "test_b.py::test_a", "test_a.py::test_ab"];
        assert_eq!(
            list_lost_tests(&before, &[], &[build_removed_test("test_a", "")]),
            [before[1], before[2]]
        );
        let renamed = [build_removed_test("test_a", "test_z")];
        assert_eq!(
            list_lost_tests(&before[..1], &["test_a.py::test_z"], &renamed),
            [""; 0]
        );
        assert_eq!(
            list_lost_tests(&before[..1], &["test_a.py::test_y"], &renamed),
            [before[0]],
            "it does not run"
        );
    }

    #[test]
    fn comparison_follows_tests_that_moved() {
        for (before, after) in [
            ("tests/test_a.py::test_x", "tests/unit/test_b.py::test_x"),
            ("cart > adds", "basket > adds"),
            ("cart::tests::adds", "basket::tests::adds"),
            ("test_x (tests.a.T.test_x)", "test_x (tests.b.U.test_x)"),
            ("src/lib.rs - add (line 5)", "src/lib.rs - add (line 9)"),
            (
                "test_a.py::test_x[<object at 0x7f01>]",
                "test_a.py::test_x[<object at 0x7f99>]",
            ),
        ] {
            assert_eq!(list_lost_tests(&[before], &[after], &[]), [""; 0], "{before}");
        }
    }

    #[test]
    fn comparison_counts_parameters_by_function() {
        let before = ["a.py::test_x[1-2]", "a.py::test_x[3-4]"];
        assert_eq!(
            list_lost_tests(&before, &["a.py::test_x[1-2]", "a.py::test_x[3-5]"], &[]),
            [""; 0]
        );
        assert_eq!(list_lost_tests(&before, &["a.py::test_x[1-2]"], &[]), [before[1]]);
    }

    #[test]
    fn comparison_falls_back_to_numbers() {
        assert_eq!(
            build_counted_check(5, 0)
                .tests_not_run_in(&build_counted_check(3, 1), &[])
                .count,
            1
        );
        assert_eq!(
            build_counted_check(5, 0)
                .tests_not_passing_in(&build_counted_check(3, 1), &[])
                .count,
            2
        );
        let open = [build_removed_test("test_a", "")];
        assert!(
            build_counted_check(5, 0)
                .tests_not_run_in(&build_counted_check(4, 0), &open)
                .is_empty()
        );
        assert_eq!(
            build_counted_check(5, 2)
                .tests_not_run_in(&build_counted_check(0, 0), &[])
                .count,
            5
        );
        let mut skipped = build_counted_check(3, 0);
        skipped.tests.as_mut().unwrap().skipped = 1;
        assert_eq!(
            build_counted_check(2, 2).tests_not_run_in(&skipped, &[]).count,
            1,
            "one is repaired, one silenced"
        );
        assert!(
            build_counted_check(2, 2)
                .tests_not_run_in(&build_counted_check(4, 0), &[])
                .is_empty()
        );
    }

    #[test]
    fn comparisons_share_common_results() {
        let [one, other] = [&["a", "b"][..], &["b", "c"]]
            .map(|names| LostTests::named(names.iter().map(ToString::to_string).collect()));
        assert_eq!(one.shared_with(&other).names, ["b"]);
        assert_eq!(one.shared_with(&LostTests::default()).count, 0);
    }

    /// Builds a run by its name: outcome, tests and output.
    fn build_run(name: &str) -> CompletedCheck {
        let with = |outcome, output: &str, run: CompletedCheck| CompletedCheck {
            outcome,
            output_tail: output.to_owned(),
            exit_code: Some(i32::from(outcome != CheckOutcome::Green)),
            ..run
        };
        let without_tests = |outcome, output| {
            let run = CompletedCheck {
                tests: None,
                ..build_check(&[], &[])
            };
            with(outcome, output, run)
        };
        let unloaded = |output: &str, run| {
            let mut run = with(CheckOutcome::Red, output, run);
            run.tests.as_mut().unwrap().collection_error = true;
            run
        };
        let hint = |missing: &str| {
            Some(SetupHint {
                missing: missing.to_owned(),
                ..SetupHint::default()
            })
        };
        match name {
            "green" => with(CheckOutcome::Green, "", build_check(&["a", "b", "c"], &[])),
            "a fails" => with(CheckOutcome::Red, "", build_check(&["b", "c"], &["a"])),
            "b fails" => with(CheckOutcome::Red, "", build_check(&["a", "c"], &["b"])),
            "a and b fail" => with(CheckOutcome::Red, "", build_check(&["c"], &["a", "b"])),
            "nothing loads" => unloaded("ImportError: no module shop.vat", build_check(&[], &[])),
            "another module does not load" => unloaded("ImportError: no module stock", build_check(&[], &[])),
            "some tests do not load" => unloaded("ImportError: no module stock", build_check(&["c"], &["a"])),
            "no package" => CompletedCheck {
                setup_hint: hint("express"),
                ..unloaded("Cannot find module 'express'", build_check(&[], &[]))
            },
            "inert without package" => CompletedCheck {
                setup_hint: hint("express"),
                ..without_tests(CheckOutcome::Inert, "Cannot find module 'express'")
            },
            "many fail" => {
                let mut run = with(CheckOutcome::Red, "", build_check(&["c"], &["a", "b"]));
                let tests = run.tests.as_mut().unwrap();
                (tests.failed, tests.truncated) = (300, true);
                run
            }
            "more fail" => {
                let mut run = build_run("many fail");
                run.tests.as_mut().unwrap().failed = 301;
                run
            }
            "lint" => without_tests(CheckOutcome::Red, "src/a.py:3:1: F401 unused"),
            "lint moved" => without_tests(CheckOutcome::Red, "src/a.py:9:1: F401 unused"),
            "lint more" => without_tests(
                CheckOutcome::Red,
                "src/a.py:3:1: F401 unused\nsrc/b.py:3:1: F401 unused",
            ),
            "syntax error" => without_tests(CheckOutcome::Red, "SyntaxError: invalid syntax"),
            "no tests found" => without_tests(CheckOutcome::Red, "No tests found, exiting with code 1"),
            "coverage" => with(
                CheckOutcome::Red,
                "coverage 71 %",
                build_check(&["a", "b", "c"], &[]),
            ),
            "inert" => without_tests(CheckOutcome::Inert, "jest: command not found"),
            "timeout" => without_tests(CheckOutcome::Timeout, ""),
            "infra" => without_tests(CheckOutcome::Infra, "no space left on device"),
            "no tests" => without_tests(CheckOutcome::NoTests, ""),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn base_excuses_only_its_own_failures() {
        let a = || NewFailures::Tests(vec!["a".to_owned()]);
        let b = || NewFailures::Tests(vec!["b".to_owned()]);
        let both = || NewFailures::Tests(vec!["a".to_owned(), "b".to_owned()]);
        let (none, command) = (|| NewFailures::None, || NewFailures::Command);
        for (base, head, expected) in [
            ("green", "green", none()),
            ("green", "a fails", a()),
            ("green", "coverage", command()),
            ("green", "syntax error", command()),
            ("a fails", "a fails", none()),
            ("a and b fail", "a fails", none()),
            ("a fails", "b fails", b()),
            ("a fails", "a and b fail", b()),
            ("a fails", "green", none()),
            ("a fails", "coverage", command()),
            ("a fails", "syntax error", command()),
            ("a fails", "nothing loads", command()),
            ("a fails", "some tests do not load", command()),
            ("coverage", "coverage", none()),
            ("coverage", "a fails", a()),
            // The base does not load, because the ticket asks for the missing module.
            ("nothing loads", "a fails", a()),
            ("nothing loads", "a and b fail", both()),
            ("nothing loads", "coverage", command()),
            ("nothing loads", "nothing loads", none()),
            ("nothing loads", "another module does not load", command()),
            ("some tests do not load", "some tests do not load", none()),
            ("some tests do not load", "b fails", b()),
            ("many fail", "many fail", none()),
            ("many fail", "a fails", none()),
            ("many fail", "more fail", command()),
            ("a fails", "many fail", b()),
            ("lint", "lint", none()),
            ("lint", "lint moved", none()),
            ("lint", "lint more", command()),
            ("lint more", "lint", none()),
            ("lint", "syntax error", command()),
            ("syntax error", "a fails", a()),
            ("no tests found", "a fails", a()),
            ("no tests found", "no tests found", none()),
            // A base without a result.
            ("inert", "a fails", a()),
            ("inert", "syntax error", command()),
            ("inert", "inert", none()),
            ("inert without package", "no package", none()),
            ("inert without package", "nothing loads", command()),
            ("inert without package", "a fails", a()),
            ("timeout", "syntax error", command()),
            ("timeout", "a fails", a()),
            ("timeout", "timeout", none()),
            ("infra", "syntax error", command()),
            ("infra", "a and b fail", both()),
            ("infra", "infra", none()),
            ("no tests", "a fails", a()),
            ("no tests", "no tests", none()),
            ("no tests", "green", none()),
        ] {
            assert_eq!(
                build_run(head).new_failures(&build_run(base)),
                expected,
                "{base} → {head}"
            );
        }
    }

    #[test]
    fn shortened_output_is_compared_from_its_middle() {
        let lines = |from: usize| -> String {
            (from..400)
                .map(|number| format!("src/{}.py:1:1: F401 unused\n", "x".repeat(number)))
                .collect()
        };
        let run = |output: String| CompletedCheck {
            truncated: true,
            output_tail: output,
            ..build_run("lint")
        };
        let (base, head) = (run(lines(310)), run(lines(300)));
        assert_eq!(head.new_failures(&base), NewFailures::None);
        let worse = run(format!("{}src/new.py:1:1: F401 unused\n", lines(310)));
        assert_eq!(worse.new_failures(&base), NewFailures::Command);
    }
}
