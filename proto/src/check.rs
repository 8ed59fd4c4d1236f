//! Conversion of checks and changes between wire and domain types.

use domain::{
    ChangedFileSize, FileRole, SandboxLevel, SetupHint,
    check::{
        ChangeFinding, ChangeHunk, ChangeReport, CheckCandidate, CheckOutcome, CheckSpec, CompletedCheck,
        FailedTest, FindingSeverity, RemovedTest, TestReport, TreeKind,
    },
};

use crate::executor as wire;

impl From<&TreeKind> for wire::CheckTree {
    fn from(kind: &TreeKind) -> Self {
        use wire::check_tree::Kind;
        let kind = match kind {
            TreeKind::Base => Kind::Base(wire::BaseTree {}),
            TreeKind::Head => Kind::Head(wire::HeadTree {}),
            TreeKind::BaseWith { paths } => Kind::BaseWith(wire::BaseWith { paths: paths.clone() }),
            TreeKind::HeadWithout { head, hunk } => Kind::HeadWithout(wire::HeadWithout {
                head_tree: head.to_string(),
                hunk: *hunk,
            }),
            TreeKind::HeadWithBase { head, paths, hunks } => Kind::HeadWithBase(wire::HeadWithBase {
                head_tree: head.to_string(),
                paths: paths.clone(),
                hunks: hunks.clone(),
            }),
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<wire::CheckTree> for TreeKind {
    type Error = String;

    fn try_from(tree: wire::CheckTree) -> Result<Self, Self::Error> {
        use wire::check_tree::Kind;
        Ok(match tree.kind.ok_or("the kind of tree is missing")? {
            Kind::Base(_) => Self::Base,
            Kind::Head(_) => Self::Head,
            Kind::BaseWith(wire::BaseWith { paths }) => Self::BaseWith { paths },
            Kind::HeadWithout(without) => Self::HeadWithout {
                head: without
                    .head_tree
                    .parse()
                    .map_err(|error: domain::InvalidId| error.to_string())?,
                hunk: without.hunk,
            },
            Kind::HeadWithBase(with) => Self::HeadWithBase {
                head: with
                    .head_tree
                    .parse()
                    .map_err(|error: domain::InvalidId| error.to_string())?,
                paths: with.paths,
                hunks: with.hunks,
            },
        })
    }
}

impl From<CheckOutcome> for wire::CheckOutcome {
    fn from(outcome: CheckOutcome) -> Self {
        match outcome {
            CheckOutcome::Green => Self::Green,
            CheckOutcome::Red => Self::Red,
            CheckOutcome::Inert => Self::Inert,
            CheckOutcome::Timeout => Self::Timeout,
            CheckOutcome::Infra => Self::Infra,
            CheckOutcome::NoTests => Self::NoTests,
        }
    }
}

/// Maps an outcome. One that this release does not know proves nothing about the code.
fn convert_outcome(outcome: wire::CheckOutcome) -> CheckOutcome {
    match outcome {
        wire::CheckOutcome::Green => CheckOutcome::Green,
        wire::CheckOutcome::Red => CheckOutcome::Red,
        wire::CheckOutcome::Inert => CheckOutcome::Inert,
        wire::CheckOutcome::Timeout => CheckOutcome::Timeout,
        wire::CheckOutcome::NoTests => CheckOutcome::NoTests,
        wire::CheckOutcome::Infra | wire::CheckOutcome::Unspecified => CheckOutcome::Infra,
    }
}

impl From<TestReport> for wire::TestReport {
    fn from(report: TestReport) -> Self {
        let failed = |test: FailedTest| wire::FailedTest {
            id: test.id,
            message: test.message,
        };
        Self {
            runner: report.runner,
            passed: report.passed,
            failed: report.failed,
            skipped: report.skipped,
            collection_error: report.collection_error,
            failing: report.failing.into_iter().map(failed).collect(),
            passing: report.passing,
            skipping: report.skipping,
            truncated: report.truncated,
        }
    }
}

impl From<wire::TestReport> for TestReport {
    fn from(report: wire::TestReport) -> Self {
        let failed = |test: wire::FailedTest| FailedTest {
            id: test.id,
            message: test.message,
        };
        Self {
            runner: report.runner,
            passed: report.passed,
            failed: report.failed,
            skipped: report.skipped,
            collection_error: report.collection_error,
            failing: report.failing.into_iter().map(failed).collect(),
            passing: report.passing,
            skipping: report.skipping,
            truncated: report.truncated,
        }
    }
}

impl wire::CheckResult {
    /// Converts the result of a check, with the spec of its request.
    ///
    /// # Errors
    /// A result about the code without a tree: it would be unknown for which files it holds.
    pub fn of(self, spec: &CheckSpec) -> Result<CompletedCheck, String> {
        // Only a result about the code needs a tree.
        let (outcome, tree) = (convert_outcome(self.outcome()), self.tree.parse().ok());
        if tree.is_none() && outcome.is_about_the_code() {
            return Err("the executor named no tree".to_owned());
        }
        Ok(CompletedCheck {
            command: spec.command.clone(),
            directory: spec.directory.clone(),
            tree,
            tree_kind: spec.tree.clone(),
            outcome,
            sandbox: convert_sandbox_level(self.sandbox_level()),
            reason: self.reason,
            exit_code: self.exit_code,
            duration_ms: self.duration_ms,
            tests: self.tests.map(TestReport::from),
            output_tail: self.output_tail,
            truncated: self.truncated,
            tampered: self.tampered,
            setup_hint: self.setup_hint.map(SetupHint::from),
        })
    }
}

impl From<SetupHint> for wire::SetupHint {
    fn from(hint: SetupHint) -> Self {
        Self {
            missing: hint.missing,
            commands: hint.commands,
            registry: hint.registry,
        }
    }
}

impl From<wire::SetupHint> for SetupHint {
    fn from(hint: wire::SetupHint) -> Self {
        Self {
            missing: hint.missing,
            commands: hint.commands,
            registry: hint.registry,
        }
    }
}

const fn convert_sandbox_level(level: wire::SandboxLevel) -> SandboxLevel {
    match level {
        wire::SandboxLevel::L3 => SandboxLevel::L3,
        wire::SandboxLevel::L2 => SandboxLevel::L2,
        wire::SandboxLevel::L1 => SandboxLevel::L1,
        // A level that this release does not know counts as no isolation.
        wire::SandboxLevel::L0 | wire::SandboxLevel::Unspecified => SandboxLevel::L0,
    }
}

impl From<CheckCandidate> for wire::CheckCandidate {
    fn from(found: CheckCandidate) -> Self {
        Self {
            command: found.command,
            directory: found.directory,
            why: found.why,
            known_at_base: found.known_at_base,
        }
    }
}

impl From<wire::CheckCandidate> for CheckCandidate {
    fn from(found: wire::CheckCandidate) -> Self {
        Self {
            command: found.command,
            directory: found.directory,
            why: found.why,
            known_at_base: found.known_at_base,
        }
    }
}

impl From<ChangeFinding> for wire::Finding {
    fn from(finding: ChangeFinding) -> Self {
        let severity = match finding.severity {
            FindingSeverity::Flag => wire::Severity::Flag,
            FindingSeverity::Block => wire::Severity::Block,
        };
        Self {
            path: finding.path,
            line: finding.line,
            kind: finding.kind,
            severity: severity.into(),
            words: finding.words,
            ticket_words: finding.ticket_words,
        }
    }
}

impl From<wire::Finding> for ChangeFinding {
    fn from(finding: wire::Finding) -> Self {
        let severity = match finding.severity() {
            wire::Severity::Flag => FindingSeverity::Flag,
            // A maintainer must approve a finding of a severity that this release does not know.
            wire::Severity::Block | wire::Severity::Unspecified => FindingSeverity::Block,
        };
        Self {
            path: finding.path,
            line: finding.line,
            kind: finding.kind,
            severity,
            words: finding.words,
            ticket_words: finding.ticket_words,
        }
    }
}

impl From<ChangedFileSize> for wire::FileChange {
    fn from(file: ChangedFileSize) -> Self {
        let role = match file.role {
            FileRole::Product => wire::FileRole::Product,
            FileRole::Test => wire::FileRole::Test,
            FileRole::Config => wire::FileRole::Config,
            FileRole::Docs => wire::FileRole::Docs,
            FileRole::Pinned => wire::FileRole::Pinned,
        };
        Self {
            path: file.path,
            added: file.added,
            removed: file.removed,
            role: role.into(),
        }
    }
}

impl From<wire::FileChange> for ChangedFileSize {
    fn from(file: wire::FileChange) -> Self {
        let role = match file.role() {
            wire::FileRole::Test => FileRole::Test,
            wire::FileRole::Config => FileRole::Config,
            wire::FileRole::Docs => FileRole::Docs,
            wire::FileRole::Pinned => FileRole::Pinned,
            wire::FileRole::Product | wire::FileRole::Unspecified => FileRole::Product,
        };
        Self {
            path: file.path,
            added: file.added,
            removed: file.removed,
            role,
        }
    }
}

impl From<ChangeReport> for wire::InspectChangeResponse {
    fn from(report: ChangeReport) -> Self {
        let hunk = |hunk: ChangeHunk| wire::Hunk {
            path: hunk.path,
            line: hunk.line,
            lines: hunk.lines,
            is_test: hunk.is_test,
        };
        let removed = |test: RemovedTest| wire::RemovedTest {
            path: test.path,
            name: test.name,
            now: test.now,
        };
        Self {
            tree: report.tree.to_string(),
            files: report.files,
            product_lines: report.product_lines,
            test_lines: report.test_lines,
            modules: report.modules,
            test_files: report.test_files,
            findings: report.findings.into_iter().map(wire::Finding::from).collect(),
            hunks: report.hunks.into_iter().map(hunk).collect(),
            changed: report.changed.into_iter().map(wire::FileChange::from).collect(),
            support_files: report.support_files,
            removed_test_files: report.removed_test_files,
            removed_tests: report.removed_tests.into_iter().map(removed).collect(),
            code_lines: report.code_lines,
            lost_hunks: report.lost_hunks.into_iter().map(Into::into).collect(),
            marked_files: report.marked_files,
            truncated: report.truncated,
        }
    }
}

impl TryFrom<wire::InspectChangeResponse> for ChangeReport {
    type Error = String;

    fn try_from(report: wire::InspectChangeResponse) -> Result<Self, Self::Error> {
        let hunk = |hunk: wire::Hunk| ChangeHunk {
            path: hunk.path,
            line: hunk.line,
            lines: hunk.lines,
            is_test: hunk.is_test,
        };
        let removed = |test: wire::RemovedTest| RemovedTest {
            path: test.path,
            name: test.name,
            now: test.now,
        };
        Ok(Self {
            tree: report
                .tree
                .parse()
                .map_err(|error: domain::InvalidId| error.to_string())?,
            files: report.files,
            product_lines: report.product_lines,
            test_lines: report.test_lines,
            modules: report.modules,
            test_files: report.test_files,
            findings: report.findings.into_iter().map(ChangeFinding::from).collect(),
            hunks: report.hunks.into_iter().map(hunk).collect(),
            changed: report.changed.into_iter().map(ChangedFileSize::from).collect(),
            support_files: report.support_files,
            removed_test_files: report.removed_test_files,
            removed_tests: report.removed_tests.into_iter().map(removed).collect(),
            code_lines: report.code_lines,
            lost_hunks: report.lost_hunks.into_iter().map(Into::into).collect(),
            marked_files: report.marked_files,
            truncated: report.truncated,
        })
    }
}

#[cfg(test)]
mod tests {
    use domain::{LostHunk, MergeSide};

    use super::*;

    fn build_test_report() -> TestReport {
        TestReport {
            runner: "pytest".to_owned(),
            passed: 1,
            failed: 2,
            skipped: 3,
            collection_error: true,
            failing: vec![FailedTest {
                id: "a".to_owned(),
                message: "b".to_owned(),
            }],
            passing: vec!["c".to_owned()],
            skipping: vec!["d".to_owned()],
            truncated: true,
        }
    }

    #[test]
    fn whatever_is_asked_for_arrives() {
        let head: domain::TreeId = "a".repeat(40).parse().unwrap();
        for kind in [
            TreeKind::Base,
            TreeKind::Head,
            TreeKind::BaseWith {
                paths: vec!["tests".to_owned()],
            },
            TreeKind::HeadWithout {
                head: head.clone(),
                hunk: 3,
            },
            TreeKind::HeadWithBase {
                head,
                paths: vec!["tests".to_owned(), "pytest.ini".to_owned()],
                hunks: vec![0, 4],
            },
        ] {
            assert_eq!(TreeKind::try_from(wire::CheckTree::from(&kind)), Ok(kind));
        }
        assert!(TreeKind::try_from(wire::CheckTree { kind: None }).is_err());
    }

    #[test]
    fn result_without_tree_is_refused() {
        let spec = CheckSpec {
            command: "pytest".to_owned(),
            directory: "api".to_owned(),
            tree: TreeKind::Base,
            again: 0,
            limit_s: None,
            reports: Vec::new(),
        };
        let hint = SetupHint {
            missing: "express".to_owned(),
            commands: vec!["npm ci".to_owned()],
            registry: "npm".to_owned(),
        };
        let result = wire::CheckResult {
            outcome: wire::CheckOutcome::Red.into(),
            tree: "b".repeat(40),
            exit_code: Some(1),
            tests: Some(build_test_report().into()),
            sandbox_level: wire::SandboxLevel::L2.into(),
            setup_hint: Some(hint.clone().into()),
            ..wire::CheckResult::default()
        };
        let run = result.clone().of(&spec).unwrap();
        assert_eq!((run.outcome, run.sandbox), (CheckOutcome::Red, SandboxLevel::L2));
        assert_eq!(run.setup_hint, Some(hint));
        assert_eq!(
            (run.tests, run.directory.as_str()),
            (Some(build_test_report()), "api")
        );
        let nothing = wire::CheckResult {
            tree: String::new(),
            ..result.clone()
        };
        assert!(nothing.clone().of(&spec).is_err());
        let cut = wire::CheckResult {
            outcome: wire::CheckOutcome::Infra.into(),
            ..nothing
        };
        assert_eq!(cut.of(&spec).unwrap().tree, None);
        let unknown = wire::CheckResult {
            outcome: 99,
            ..result
        };
        assert_eq!(unknown.of(&spec).unwrap().outcome, CheckOutcome::Infra);
    }

    #[test]
    fn unknown_severity_of_change_blocks() {
        let change = ChangeReport {
            tree: "c".repeat(40).parse().unwrap(),
            files: 2,
            product_lines: 3,
            test_lines: 4,
            modules: vec!["api".to_owned()],
            test_files: vec!["api/test_a.py".to_owned()],
            findings: vec![ChangeFinding {
                path: "api/test_a.py".to_owned(),
                line: 7,
                kind: "test_removed".to_owned(),
                severity: FindingSeverity::Flag,
                words: "test_b is gone".to_owned(),
                ticket_words: "Remove b.".to_owned(),
            }],
            hunks: vec![ChangeHunk {
                path: "api/a.py".to_owned(),
                line: 1,
                lines: 2,
                is_test: false,
            }],
            changed: vec![ChangedFileSize {
                path: "api/a.py".to_owned(),
                added: 2,
                removed: 1,
                role: FileRole::Docs,
            }],
            support_files: vec!["pytest.ini".to_owned()],
            removed_test_files: vec!["api/test_c.py".to_owned()],
            removed_tests: vec![RemovedTest {
                path: "api/test_a.py".to_owned(),
                name: "test_b".to_owned(),
                now: "test_d".to_owned(),
            }],
            code_lines: Some(0),
            lost_hunks: vec![LostHunk {
                side: MergeSide::Base,
                path: "api/a.py".to_owned(),
                lines: vec!["x = 1".to_owned()],
                is_removal: true,
            }],
            marked_files: vec!["api/b.py".to_owned()],
            truncated: true,
        };
        let sent = wire::InspectChangeResponse::from(change.clone());
        assert_eq!(ChangeReport::try_from(sent), Ok(change));
        let unknown = wire::Finding {
            severity: 9,
            ..wire::Finding::default()
        };
        assert_eq!(ChangeFinding::from(unknown).severity, FindingSeverity::Block);
    }
}
