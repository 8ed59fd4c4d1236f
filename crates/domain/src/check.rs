//! Checks: a command in a tree of files that the model cannot touch, and what it shows.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{FileChange, SandboxLevel, SetupHint, TreeId};

/// Failing tests that are kept.
pub const MAX_TESTS: usize = 200;
/// Names of passing and of skipped tests that are kept, of each kind, so that two runs can be compared by name …
pub const MAX_PASSING: usize = 2_000;
/// … and the bytes that they take.
pub const MAX_PASSING_BYTES: usize = 96 * 1024;
/// Kept of a test's id and of its message, in characters.
pub const MAX_TEST_ID: usize = 200;
/// Kept of a failing test's message, in characters.
pub const MAX_TEST_MESSAGE: usize = 400;
/// Kept of the end of a check's output, in bytes.
pub const MAX_TAIL: usize = 8 * 1024;

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// Tests ran, none failed, and the exit code says so too.
    Green,
    /// A test failed, the tests could not be loaded, or the command failed in another way.
    Red,
    /// The command cannot run here: the program, the target or the script is missing, or what it needs is not installed.
    Inert,
    /// It did not end in its time.
    Timeout,
    /// The surroundings failed: memory, disk, network, or the call was cut.
    Infra,
    /// It ended well, but nothing shows that a test ran.
    NoTests,
}

impl CheckOutcome {
    /// The name in journals and listings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Red => "red",
            Self::Inert => "inert",
            Self::Timeout => "timeout",
            Self::Infra => "infra",
            Self::NoTests => "no_tests",
        }
    }

    /// True when the outcome says something about the code rather than about where it ran.
    pub const fn is_about_the_code(self) -> bool {
        matches!(self, Self::Green | Self::Red)
    }

    /// Whether the surroundings or the time failed: what it showed until then may not be all.
    pub const fn is_cut_short(self) -> bool {
        matches!(self, Self::Infra | Self::Timeout)
    }
}

/// Which files a check sees.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TreeKind {
    /// The base commit's.
    Base,
    /// The workspace's as they are, committed or not.
    Head,
    /// The base commit's with these files or folders of the head.
    BaseWith {
        /// Relative to the root.
        paths: Vec<String>,
    },
    /// The head's with one hunk of the change taken back.
    HeadWithout {
        /// The tree whose hunks were counted.
        head: TreeId,
        /// Which one, from 0.
        hunk: u32,
    },
    /// The head's with these files or folders as the base has them, and these hunks of other files taken back.
    HeadWithBase {
        /// The tree whose hunks were counted.
        head: TreeId,
        /// Relative to the root; what the base lacks is taken away.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
        /// Which ones, from 0; those of files in `paths` change nothing.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hunks: Vec<u32>,
    },
}

/// A check to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSpec {
    /// For the shell.
    pub command: String,
    /// Folder to run it in, relative to the root; empty: the root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// Which files it sees.
    pub tree: TreeKind,
    /// How often it ran with these files before: what fails only now and then shows nothing.
    #[serde(default, skip_serializing_if = "is_first")]
    pub again: u32,
    /// Seconds it may take; absent: the executor's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<u32>,
    /// `JUnit` XML files that it writes, as globs relative to the root, beside the usual places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_first(again: &u32) -> bool {
    *again == 0
}

/// What a check showed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRun {
    /// For the shell.
    pub command: String,
    /// Folder that it ran in, relative to the root; empty: the root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// The files that it saw; absent when it was cut before they were known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// Where they came from.
    pub tree_kind: TreeKind,
    /// How it ended.
    pub outcome: CheckOutcome,
    /// Why, in words, where the outcome alone does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// 128 + signal when a signal ended it; absent when it was ended from outside.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// How long the command took.
    #[serde(default)]
    pub duration_ms: u64,
    /// What its tests said; absent when nothing shows that tests were run or could not be loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestReport>,
    /// The end of its output.
    #[serde(default)]
    pub output_tail: String,
    /// True when there was more output than the tail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// How it was confined.
    pub sandbox: SandboxLevel,
    /// Files of the setup that were changed afterwards and are therefore not in the tree: some of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tampered: Vec<String>,
    /// What the machine lacked, and what would provide it; absent: nothing that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_hint: Option<SetupHint>,
}

impl CheckRun {
    /// Tests that fail here and not in `other`, as after a change compared with before. Nothing when either list is only a
    /// part, or when one of the runs failed for its surroundings or its time: then nothing can be said.
    pub fn failing_beyond(&self, other: &Self) -> Option<Vec<&FailedTest>> {
        if [self, other].iter().any(|run| run.outcome.is_cut_short()) {
            return None;
        }
        let (ours, theirs) = (self.tests.as_ref()?, other.tests.as_ref()?);
        if ours.truncated || theirs.truncated || ours.collection_error || theirs.collection_error {
            return None;
        }
        let is_new = |test: &&FailedTest| !theirs.failing.iter().any(|known| known.id == test.id);
        Some(ours.failing.iter().filter(is_new).collect())
    }
}

/// What test runners said of their tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// Whose words they are, e.g. `pytest`; several are joined with `, `.
    pub runner: String,
    /// How many passed. Runners that name no number for a package count as one a package.
    pub passed: u32,
    /// How many failed.
    pub failed: u32,
    /// How many were left out or expected to fail.
    #[serde(default)]
    pub skipped: u32,
    /// True when tests could not be collected, imported or compiled: that is no failing test.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub collection_error: bool,
    /// Those that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<FailedTest>,
    /// Those that passed, where the runner names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passing: Vec<String>,
    /// Those that were left out, where the runner names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipping: Vec<String>,
    /// True when the failing tests are not all named.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A test that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTest {
    /// As its runner names it.
    pub id: String,
    /// The first lines of what it said.
    #[serde(default)]
    pub message: String,
}

impl TestReport {
    /// Tests that ran to a result.
    pub const fn ran(&self) -> u32 {
        self.passed.saturating_add(self.failed)
    }

    /// Both together.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        if !self.runner.split(", ").any(|name| name == other.runner) {
            self.runner = format!("{}, {}", self.runner, other.runner);
        }
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
        self.skipped = self.skipped.saturating_add(other.skipped);
        self.collection_error |= other.collection_error;
        self.truncated |= other.truncated;
        self.failing.extend(other.failing);
        self.passing.extend(other.passing);
        self.skipping.extend(other.skipping);
        self
    }

    /// The same within the bounds of what is kept.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.truncated |=
            self.failing.len() > MAX_TESTS || (self.failing.len() as u64) < u64::from(self.failed);
        self.failing.truncate(MAX_TESTS);
        for test in &mut self.failing {
            test.id = cut(&test.id, MAX_TEST_ID);
            test.message = cut(&test.message, MAX_TEST_MESSAGE);
        }
        for ids in [&mut self.passing, &mut self.skipping] {
            ids.truncate(MAX_PASSING);
            ids.iter_mut().for_each(|id| *id = cut(id, MAX_TEST_ID));
            let mut bytes = 0;
            let kept = ids.iter().take_while(|id| {
                bytes += id.len();
                bytes <= MAX_PASSING_BYTES
            });
            let kept = kept.count();
            ids.truncate(kept);
        }
        self
    }
}

fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// How strong the evidence for a change is, as people are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Level {
    /// Nothing could be run.
    E0,
    /// Existing checks only.
    E1,
    /// A command's output changed as the ticket asks.
    E2,
    /// A test that failed before passes now, and the others are no worse.
    E3,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A command that may serve as a check, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckCandidate {
    /// For the shell.
    pub command: String,
    /// Folder to run it in, relative to the root; empty: the root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// Where it was found, in words.
    pub why: String,
}

/// Whether a finding stops a change until a person approves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// People are told.
    Flag,
    /// A person must approve it; no words of the model lift it.
    Block,
}

/// Something in a change that weakens what its checks show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The file.
    pub path: String,
    /// Line in the head's version, or in the base's when it is gone there; from 1. 0: the file as a whole.
    pub line: u32,
    /// What it is, e.g. `test_removed`.
    pub kind: String,
    /// What follows from it.
    pub severity: Severity,
    /// What was seen, for people.
    pub words: String,
    /// The sentence of the ticket that asks for it; empty: none was found.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ticket_words: String,
}

/// A test that a change removes or renames in the open: its definition is gone from the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedTest {
    /// The file that it was in.
    pub path: String,
    /// Its name there.
    pub name: String,
    /// The name of the test that took its place; empty: none did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub now: String,
}

/// One hunk of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunk {
    /// The file.
    pub path: String,
    /// First line in the head's version, from 1; 0 when the file is gone.
    pub line: u32,
    /// Lines added and removed.
    pub lines: u32,
    /// True when it changes tests rather than the product.
    pub is_test: bool,
}

/// What a change amounts to, and what in it weakens its checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeReport {
    /// The files that were looked at: the workspace's as they are.
    pub tree: TreeId,
    /// Files that differ.
    pub files: u32,
    /// Lines added and removed in product files; generated files, lock files and snapshots left out.
    pub product_lines: u32,
    /// Lines added and removed in tests.
    pub test_lines: u32,
    /// Modules that are touched, by their folders.
    pub modules: Vec<String>,
    /// Files that tests are in and that differ or are new, so that a check can put them onto the base.
    pub test_files: Vec<String>,
    /// What weakens its checks, the worst first.
    pub findings: Vec<Finding>,
    /// Every hunk that can be taken back, in the order in which checks count them.
    pub hunks: Vec<Hunk>,
    /// Every file that differs; empty in what an earlier release wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<FileChange>,
    /// Files beside the tests that runs of tests read and that differ: configuration, hooks, setup. Removed ones are among
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub support_files: Vec<String>,
    /// Test files of the base that the change removes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_test_files: Vec<String>,
    /// Tests that are removed or renamed in the open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_tests: Vec<RemovedTest>,
    /// Lines added and removed in product files that are neither empty nor comments; absent in what an earlier release
    /// wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_lines: Option<u32>,
    /// True when there was more than is listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

impl ChangeReport {
    /// Whether a person must approve the change.
    pub fn is_blocked(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(failing: &[&str]) -> TestReport {
        let failing: Vec<FailedTest> = failing
            .iter()
            .map(|id| FailedTest {
                id: (*id).to_owned(),
                message: String::new(),
            })
            .collect();
        TestReport {
            runner: "pytest".to_owned(),
            passed: 3,
            failed: u32::try_from(failing.len()).unwrap(),
            failing,
            ..TestReport::default()
        }
    }

    fn run(tests: Option<TestReport>) -> CheckRun {
        CheckRun {
            command: "pytest".to_owned(),
            directory: String::new(),
            tree: Some("a".repeat(40).parse().unwrap()),
            tree_kind: TreeKind::Head,
            outcome: CheckOutcome::Red,
            reason: String::new(),
            exit_code: Some(1),
            duration_ms: 5,
            tests,
            output_tail: String::new(),
            truncated: false,
            sandbox: SandboxLevel::L1,
            tampered: Vec::new(),
            setup_hint: None,
        }
    }

    #[test]
    fn only_tests_that_did_not_fail_before_count_as_newly_failing() {
        let (base, head) = (run(Some(report(&["a", "b"]))), run(Some(report(&["b", "c"]))));
        let new = head.failing_beyond(&base).unwrap();
        assert_eq!(new.iter().map(|test| test.id.as_str()).collect::<Vec<_>>(), ["c"]);
    }

    #[test]
    fn nothing_is_said_of_lists_that_are_not_whole() {
        let cut = TestReport {
            truncated: true,
            ..report(&["a"])
        };
        let unloaded = TestReport {
            collection_error: true,
            ..report(&[])
        };
        for other in [Some(cut), Some(unloaded), None] {
            let (known, other) = (run(Some(report(&["a"]))), run(other));
            assert_eq!(known.failing_beyond(&other), None);
            assert_eq!(other.failing_beyond(&known), None);
        }
    }

    #[test]
    fn nothing_is_said_of_runs_that_failed_for_their_surroundings_or_their_time() {
        for outcome in [CheckOutcome::Infra, CheckOutcome::Timeout] {
            let head = run(Some(report(&[])));
            let base = CheckRun {
                outcome,
                ..run(Some(report(&["a"])))
            };
            assert_eq!(
                base.failing_beyond(&head),
                None,
                "a test that did not fail for the code"
            );
            assert_eq!(head.failing_beyond(&base), None);
        }
    }

    #[test]
    fn where_there_were_no_tests_before_a_failing_one_is_new() {
        let base = CheckRun {
            outcome: CheckOutcome::NoTests,
            ..run(Some(report(&[])))
        };
        let head = run(Some(report(&["a"])));
        assert_eq!(head.failing_beyond(&base).unwrap().len(), 1);
    }

    #[test]
    fn what_is_kept_of_a_report_is_bounded_and_says_when_tests_are_not_named() {
        let many = TestReport {
            failed: 1000,
            failing: vec![
                FailedTest {
                    id: "é".repeat(1000),
                    message: "x".repeat(10_000),
                };
                1000
            ],
            passing: vec!["p".repeat(1000); 1000],
            ..TestReport::default()
        }
        .bounded();
        assert!(many.truncated && many.failing.len() == MAX_TESTS);
        assert_eq!(
            many.passing.len(),
            MAX_PASSING_BYTES / (MAX_TEST_ID + '…'.len_utf8())
        );
        assert_eq!(many.failing[0].id.chars().count(), MAX_TEST_ID + 1);
        assert!(!report(&["a"]).bounded().truncated);
        let unnamed = TestReport {
            failed: 2,
            ..report(&["a"])
        };
        assert!(unnamed.bounded().truncated);
    }

    #[test]
    fn reports_of_two_runners_add_up() {
        let go = TestReport {
            runner: "go".to_owned(),
            passed: 1,
            collection_error: true,
            ..TestReport::default()
        };
        let both = report(&["a"]).with(go.clone()).with(go);
        assert_eq!(
            (both.runner.as_str(), both.passed, both.failed),
            ("pytest, go", 5, 1)
        );
        assert!(both.collection_error);
    }

    #[test]
    fn a_stored_check_is_read_back_and_an_older_one_with_fewer_fields_too() {
        let whole = run(Some(report(&["a"])));
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<CheckRun>(&text).unwrap(), whole);
        let short = format!(
            r#"{{"command":"make test","tree":"{}","tree_kind":{{"kind":"base"}},"outcome":"no_tests","sandbox":"L2"}}"#,
            "b".repeat(40)
        );
        let read: CheckRun = serde_json::from_str(&short).unwrap();
        assert_eq!((read.outcome, read.tests), (CheckOutcome::NoTests, None));
        assert!("xyz".parse::<TreeId>().is_err());
    }

    #[test]
    fn stronger_evidence_is_greater() {
        assert!(Level::E0 < Level::E1 && Level::E2 < Level::E3);
        assert_eq!(Level::E3.to_string(), "E3");
    }
}
