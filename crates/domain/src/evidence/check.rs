//! Checks: a command in a tree of files that the model cannot change, its result, and the setup that it
//! lacked.

use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use crate::{
    evidence::size::ChangedFileSize,
    identity::commit::TreeId,
    journal::record_format::is_default,
    work::{resolution::LostHunk, workspace::SandboxLevel},
};

/// Maximum number of failing tests that a report keeps.
pub const MAX_TESTS: usize = 200;
/// Maximum number of names per list of passing or skipped tests. The names allow a comparison of two runs.
pub const MAX_PASSING: usize = 2_000;
/// Maximum bytes of the names in each of these lists.
pub const MAX_PASSING_BYTES: usize = 96 * 1024;
/// Maximum characters of a test id.
pub const MAX_TEST_ID: usize = 200;
/// Maximum characters of a failing test's message.
pub const MAX_TEST_MESSAGE: usize = 400;
/// Maximum bytes of the tail of a check's output.
pub const MAX_TAIL: usize = 8 * 1024;

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// Tests ran, none failed, and the exit code agrees.
    Green,
    /// A test failed, the tests could not be loaded, or the command failed in another way.
    Red,
    /// The command cannot run here: the program, the target, the script or a dependency is missing.
    Inert,
    /// The command exceeded its time limit.
    Timeout,
    /// An infrastructure failure (memory, disk, network) or an interrupted call.
    Infra,
    /// The command succeeded, but its output shows no tests that ran.
    NoTests,
}

impl CheckOutcome {
    /// The name in journals and listings.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// True when the outcome depends on the code rather than on the environment of the check.
    pub const fn is_about_the_code(self) -> bool {
        matches!(self, Self::Green | Self::Red)
    }

    /// True after an infrastructure failure or a timeout: the result may be incomplete.
    pub const fn is_cut_short(self) -> bool {
        matches!(self, Self::Infra | Self::Timeout)
    }
}

/// Selection of the files that a check sees.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TreeKind {
    /// The files of the base commit.
    Base,
    /// The files of the workspace as they are, committed or not.
    Head,
    /// The files of the base commit, with these files or folders of the head.
    BaseWith {
        /// Paths relative to the root.
        paths: Vec<String>,
    },
    /// The files of the head, with one hunk of the change reverted.
    HeadWithout {
        /// The tree whose hunks are counted.
        head: TreeId,
        /// Index of the hunk, from 0.
        hunk: u32,
    },
    // Without this tree, a test that the change silences or weakens would count as evidence for it.
    /// The files of the head, with these files or folders as in the base and these hunks of other files
    /// reverted.
    HeadWithBase {
        /// The tree whose hunks are counted.
        head: TreeId,
        /// Paths relative to the root; a path that the base lacks is removed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
        /// Indices of the hunks, from 0; hunks of files in `paths` have no effect.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hunks: Vec<u32>,
    },
}

/// A check to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSpec {
    /// The command line for the shell.
    pub command: String,
    /// Folder in which the command runs, relative to the root; empty: the root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// The files that the check sees.
    pub tree: TreeKind,
    /// Number of earlier runs with the same files. Repetitions detect flaky failures.
    #[serde(default, skip_serializing_if = "is_default")]
    pub again: u32,
    /// Time limit in seconds; absent: the executor's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_s: Option<u32>,
    /// Globs of `JUnit` XML files that the command writes outside of the usual folders, relative to the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<String>,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedCheck {
    /// The command line for the shell.
    pub command: String,
    /// Folder in which the command ran, relative to the root; empty: the root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// The files that the check saw; absent when the check was interrupted before the tree was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    /// The selection that the tree was made from.
    pub tree_kind: TreeKind,
    /// The outcome of the check.
    pub outcome: CheckOutcome,
    /// Explanation for people if the outcome alone is ambiguous.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Exit code, 128 + signal after a signal; absent when the executor ended the command.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// Run time of the command in milliseconds.
    #[serde(default)]
    pub duration_ms: u64,
    /// The results of its tests; absent when the output shows neither a test run nor a loading error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestReport>,
    /// The end of its output; at most [`MAX_TAIL`] bytes.
    #[serde(default)]
    pub output_tail: String,
    /// True when the output was longer than the tail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The sandbox level in which the command ran.
    pub sandbox: SandboxLevel,
    /// Files of the setup that changed after the setup and are therefore excluded from the tree; a sample.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tampered: Vec<String>,
    /// The missing program or library with its provider; absent: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_hint: Option<SetupHint>,
}

impl CompletedCheck {
    /// Returns the tests that fail in this run but not in `other`, as in a comparison of head and base.
    ///
    /// Returns `None` when a list is incomplete, or when a run had an infrastructure failure or a timeout:
    /// the comparison would be unreliable.
    pub fn failing_beyond(&self, other: &Self) -> Option<Vec<&FailedTest>> {
        // An interrupted run lacks results for reasons outside of the code, so a missing test proves nothing.
        if [self, other].iter().any(|run| run.outcome.is_cut_short()) {
            return None;
        }
        let (ours, theirs) = (self.tests.as_ref()?, other.tests.as_ref()?);
        // The same holds for lists without all names.
        if ours.truncated || theirs.truncated || ours.collection_error || theirs.collection_error {
            return None;
        }
        let new = ours.failing.iter().filter(|test| !theirs.is_failing(&test.id));
        Some(new.collect())
    }
}

/// Test results as one or more runners report them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestReport {
    /// Name of the runner, e.g. `pytest`; several names are joined by `, `.
    pub runner: String,
    /// Number of passed tests. Runners without a number for a package count as one test per package.
    pub passed: u32,
    /// Number of failed tests.
    pub failed: u32,
    /// Number of tests that were skipped or expected to fail.
    #[serde(default)]
    pub skipped: u32,
    /// True when tests could not be collected, imported or compiled. Such an error is not a failing test.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub collection_error: bool,
    /// The failed tests with their messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<FailedTest>,
    /// Names of the passed tests, if the runner reports them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passing: Vec<String>,
    /// Names of the skipped tests, if the runner reports them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipping: Vec<String>,
    /// True when the list of failing tests is incomplete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// A failed test with its message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTest {
    /// The id that its runner reports.
    pub id: String,
    /// The first lines of its message.
    #[serde(default)]
    pub message: String,
}

impl TestReport {
    /// Number of tests that ran to a result.
    pub const fn ran(&self) -> u32 {
        self.passed.saturating_add(self.failed)
    }

    /// Returns true when the report lists the test among the failed ones.
    pub(crate) fn is_failing(&self, id: &str) -> bool {
        self.failing.iter().any(|test| test.id == id)
    }

    /// Merges two reports.
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

    /// Truncates names, messages and lists to the limits of this module.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        // A count above the named failures means that the runner or parser dropped names, even within our own
        // limits.
        self.truncated |=
            self.failing.len() > MAX_TESTS || (self.failing.len() as u64) < u64::from(self.failed);
        self.failing.truncate(MAX_TESTS);
        for test in &mut self.failing {
            test.id = truncate_with_mark(&test.id, MAX_TEST_ID);
            test.message = truncate_with_mark(&test.message, MAX_TEST_MESSAGE);
        }
        // The runner or the tests determine these texts, so each of them is limited on its own.
        for ids in [&mut self.passing, &mut self.skipping] {
            ids.truncate(MAX_PASSING);
            ids.iter_mut()
                .for_each(|id| *id = truncate_with_mark(id, MAX_TEST_ID));
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

fn truncate_with_mark(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Strength of the evidence for a change, as displayed to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Display)]
pub enum EvidenceLevel {
    /// No check could run.
    E0,
    /// Only existing checks ran.
    E1,
    /// A command's output changed as the ticket asks.
    E2,
    /// A test that failed before the change passes after it, and the other tests are no worse.
    E3,
}

/// A command that may serve as a check, with its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckCandidate {
    /// The command line for the shell.
    pub command: String,
    /// Folder in which the command runs, relative to the root; empty: the root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// Description of its source, for people.
    pub why: String,
    /// True when the executor keeps the result of an earlier run on the base, so that this run takes no time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub known_at_base: bool,
}

/// Effect of a finding on the delivery of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingSeverity {
    /// The finding is shown to people.
    Flag,
    /// A person must approve the change; no text of the model can override this.
    Block,
}

/// A part of a change that weakens its checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeFinding {
    /// Path of the file, relative to the root.
    pub path: String,
    /// Line in the head's version, or in the base's when the head no longer has it; from 1. 0: the file as a
    /// whole.
    pub line: u32,
    /// Machine-readable kind, e.g. `test_removed`.
    pub kind: String,
    /// Effect on the delivery of the change.
    pub severity: FindingSeverity,
    /// Description of the finding for people.
    pub words: String,
    /// The sentence of the ticket that asks for it; empty: none was found.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ticket_words: String,
}

/// A test that a change visibly removes or renames: its definition disappears from the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedTest {
    /// The file that contained it.
    pub path: String,
    /// Its name in that file.
    pub name: String,
    /// The name of the test that replaces it; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub now: String,
}

/// One hunk of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeHunk {
    /// Path of the file, relative to the root.
    pub path: String,
    /// First line in the head's version, from 1; 0 when the head does not have the file.
    pub line: u32,
    /// Number of lines added and removed.
    pub lines: u32,
    /// True when it changes tests rather than the product.
    pub is_test: bool,
}

/// Size of a change and the findings that weaken its checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeReport {
    /// The analyzed tree: the files of the workspace as they are.
    pub tree: TreeId,
    /// Number of files that differ.
    pub files: u32,
    /// Lines added and removed in product files, without generated files, lock files and snapshots.
    pub product_lines: u32,
    /// Lines added and removed in tests.
    pub test_lines: u32,
    /// Modules that the change touches, named by their folders.
    pub modules: Vec<String>,
    /// Test files that differ or are new, which a check can put onto the base.
    pub test_files: Vec<String>,
    /// Findings that weaken the checks, the worst first.
    pub findings: Vec<ChangeFinding>,
    /// Every hunk that can be reverted, in the order in which checks count them.
    pub hunks: Vec<ChangeHunk>,
    /// Every file that differs; empty in records of earlier releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedFileSize>,
    /// Changed files that test runs read and that are not tests: configuration, hooks, setup. The list
    /// includes removed files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub support_files: Vec<String>,
    /// Test files of the base that the change removes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_test_files: Vec<String>,
    /// Tests that the change visibly removes or renames.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed_tests: Vec<RemovedTest>,
    /// Changed product lines that are neither empty nor comments; absent in records of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_lines: Option<u32>,
    /// Hunks of either side that the result of a merge lacks; empty for other work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_hunks: Vec<LostHunk>,
    /// Files with leftover markers of a merge.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marked_files: Vec<String>,
    /// True when the lists are incomplete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

impl ChangeReport {
    /// Returns true when a person must approve the change.
    pub fn is_blocked(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == FindingSeverity::Block)
    }
}

/// A missing prerequisite of a check with the commands that provide it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupHint {
    /// The missing package, toolchain or program, for people.
    pub missing: String,
    /// Commands for `executor.setup` of the repository's rules; empty: a person must decide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// The package registry that the commands need and that `executor.network` must allow, e.g. `npm`; empty:
    /// unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub registry: String,
}

impl SetupHint {
    /// Returns one sentence for the person who can change the repository's rules.
    pub fn sentence(&self) -> String {
        let mut text = format!("{} is missing here", self.missing);
        if !self.commands.is_empty() {
            let commands: Vec<String> = self
                .commands
                .iter()
                .map(|command| format!("`{command}`"))
                .collect();
            text.push_str(&format!("; setup with {} would help", commands.join(", then ")));
            if !self.registry.is_empty() {
                text.push_str(&format!(", with the {} registry allowed", self.registry));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_report(failing: &[&str]) -> TestReport {
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

    fn build_check(tests: Option<TestReport>) -> CompletedCheck {
        CompletedCheck {
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
    fn failing_beyond_excludes_known_failures() {
        let (base, head) = (
            build_check(Some(build_report(&["a", "b"]))),
            build_check(Some(build_report(&["b", "c"]))),
        );
        let new = head.failing_beyond(&base).unwrap();
        assert_eq!(new.iter().map(|test| test.id.as_str()).collect::<Vec<_>>(), ["c"]);
    }

    #[test]
    fn failing_beyond_needs_complete_test_lists() {
        let cut = TestReport {
            truncated: true,
            ..build_report(&["a"])
        };
        let unloaded = TestReport {
            collection_error: true,
            ..build_report(&[])
        };
        for other in [Some(cut), Some(unloaded), None] {
            let (known, other) = (build_check(Some(build_report(&["a"]))), build_check(other));
            assert_eq!(known.failing_beyond(&other), None);
            assert_eq!(other.failing_beyond(&known), None);
        }
    }

    #[test]
    fn failing_beyond_ignores_interrupted_runs() {
        for outcome in [CheckOutcome::Infra, CheckOutcome::Timeout] {
            let head = build_check(Some(build_report(&[])));
            let base = CompletedCheck {
                outcome,
                ..build_check(Some(build_report(&["a"])))
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
    fn failing_beyond_counts_failures_without_baseline() {
        let base = CompletedCheck {
            outcome: CheckOutcome::NoTests,
            ..build_check(Some(build_report(&[])))
        };
        let head = build_check(Some(build_report(&["a"])));
        assert_eq!(head.failing_beyond(&base).unwrap().len(), 1);
    }

    #[test]
    fn bounded_report_marks_unnamed_failures() {
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
        assert!(!build_report(&["a"]).bounded().truncated);
        let unnamed = TestReport {
            failed: 2,
            ..build_report(&["a"])
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
        let both = build_report(&["a"]).with(go.clone()).with(go);
        assert_eq!(
            (both.runner.as_str(), both.passed, both.failed),
            ("pytest, go", 5, 1)
        );
        assert!(both.collection_error);
    }

    #[test]
    fn stored_check_with_missing_fields_is_readable() {
        let whole = build_check(Some(build_report(&["a"])));
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<CompletedCheck>(&text).unwrap(), whole);
        let short = format!(
            r#"{{"command":"make test","tree":"{}","tree_kind":{{"kind":"base"}},"outcome":"no_tests","sandbox":"L2"}}"#,
            "b".repeat(40)
        );
        let read: CompletedCheck = serde_json::from_str(&short).unwrap();
        assert_eq!((read.outcome, read.tests), (CheckOutcome::NoTests, None));
        assert!("xyz".parse::<TreeId>().is_err());
    }

    #[test]
    fn stronger_evidence_is_greater() {
        assert!(EvidenceLevel::E0 < EvidenceLevel::E1 && EvidenceLevel::E2 < EvidenceLevel::E3);
        assert_eq!(EvidenceLevel::E3.to_string(), "E3");
    }

    #[test]
    fn sentence_names_commands_with_their_registry() {
        let hint = SetupHint {
            missing: "the package `express`".to_owned(),
            commands: vec!["npm ci".to_owned()],
            registry: "npm".to_owned(),
        };
        assert_eq!(
            hint.sentence(),
            "the package `express` is missing here; setup with `npm ci` would help, with the npm registry allowed"
        );
        let bare = SetupHint {
            missing: "a Java compiler".to_owned(),
            ..SetupHint::default()
        };
        assert_eq!(bare.sentence(), "a Java compiler is missing here");
    }
}
