//! Evidence for a change in words for people, who do not know the names of its levels.

use crate::{
    evidence::check::{ChangeFinding, CheckOutcome, EvidenceLevel, FindingSeverity},
    work::handover::{ChangeDescription, ChangeProof, CheckRow, ShownBy},
};

/// Facts that decide the sentence about the evidence for a change.
#[derive(Clone, Copy, Debug)]
pub struct EvidenceFacts<'a> {
    /// Strength of the evidence; absent: no check was attempted.
    pub level: Option<EvidenceLevel>,
    /// Results of the checks.
    pub rows: &'a [CheckRow],
    /// Findings that weaken the checks.
    pub findings: &'a [ChangeFinding],
    /// Origin of the tests that support the change.
    pub shown_by: Option<ShownBy>,
}

impl<'a> From<&'a ChangeProof> for EvidenceFacts<'a> {
    fn from(proof: &'a ChangeProof) -> Self {
        Self {
            level: Some(proof.level),
            rows: &proof.rows,
            findings: &proof.findings,
            shown_by: proof.shown_by,
        }
    }
}

impl<'a> From<&'a ChangeDescription> for EvidenceFacts<'a> {
    fn from(description: &'a ChangeDescription) -> Self {
        Self {
            level: description.level,
            rows: &description.checks,
            findings: &description.findings,
            shown_by: description.shown_by,
        }
    }
}

/// Describes in a sentence what the checks of a change show. It claims no more than their results.
pub fn describe_evidence<'a>(facts: impl Into<EvidenceFacts<'a>>) -> &'static str {
    let facts: EvidenceFacts<'a> = facts.into();
    // The order of the arms below matters: a warning takes precedence over the level's plain sentence.
    let any = |is_it: fn(&CheckRow) -> bool| facts.rows.iter().any(is_it);
    let is_weakened = (facts.findings.iter()).any(|finding| finding.severity == FindingSeverity::Block);
    match facts.level {
        Some(EvidenceLevel::E3) => match facts.shown_by {
            Some(ShownBy::OwnTests) => {
                "A test that failed before passes with the change, and the others are no worse. Shown by the repository's \
                 own tests."
            }
            Some(ShownBy::ChangedTests) => {
                "A test that failed before passes with the change, and the others are no worse. Shown by tests or support \
                 files that this change also changes."
            }
            None => "A test that failed before passes with the change, and the others are no worse.",
        },
        Some(EvidenceLevel::E0 | EvidenceLevel::E1)
            if any(|row| row.missing_count > 0 && row.head != CheckOutcome::Green) =>
        {
            "Tests that ran before do not run any more with the change; nothing shows that the change is right."
        }
        Some(EvidenceLevel::E2) => {
            "A command prints what the change is for, and did not before; no test shows it."
        }
        Some(EvidenceLevel::E1)
            if any(|row| !row.broken.is_empty() && row.base == Some(CheckOutcome::Green)) =>
        {
            "What passed before fails with the change; no test shows that the change is right."
        }
        Some(EvidenceLevel::E1) if any(|row| !row.broken.is_empty() && row.has_base_result()) => {
            "The checks fail with the change in a way in which they did not before; no test shows that the change is \
             right."
        }
        Some(EvidenceLevel::E1) if any(|row| !row.broken.is_empty()) => {
            "The checks fail with the change. Before it they gave no result to compare with; no test shows that the \
             change is right."
        }
        Some(EvidenceLevel::E1) if is_weakened => {
            "The change weakens tests or checks; nothing shows that it is right."
        }
        Some(EvidenceLevel::E1) if any(|row| row.head == CheckOutcome::Red) => {
            "The existing checks fail as they did before; no test shows the change itself."
        }
        Some(EvidenceLevel::E1) => "The existing checks pass; no test shows the change itself.",
        Some(EvidenceLevel::E0) => "No check could be run here, so nothing was verified.",
        None => "No check was run, so nothing was verified.",
    }
}

impl EvidenceLevel {
    /// Returns the level with this name, e.g. `E3`.
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::E0, Self::E1, Self::E2, Self::E3];
        all.into_iter().find(|level| level.to_string() == name)
    }

    /// Meaning of the level, where the results of the checks are unknown.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::E3 => "a test fails without the change and passes with it",
            Self::E2 => "a command prints something else with the change, and no test shows it",
            Self::E1 => "checks ran, and none shows the change itself",
            Self::E0 => "no check could be run",
        }
    }

    /// Meaning of the level in the two to five words of a list.
    pub const fn label(self) -> &'static str {
        match self {
            Self::E3 => "a test shows it",
            Self::E2 => "a command shows it",
            Self::E1 => "checked, no test shows it",
            Self::E0 => "not checked",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_row(base: Option<CheckOutcome>, head: CheckOutcome) -> CheckRow {
        CheckRow {
            command: "pytest".to_owned(),
            base,
            head,
            passed: 1,
            broken: Vec::new(),
            missing_count: 0,
            missing: Vec::new(),
            mended: Vec::new(),
            still_failing: Vec::new(),
            flaky: Vec::new(),
            reason: String::new(),
            setup_hint: None,
        }
    }

    fn build_facts(level: EvidenceLevel, rows: &[CheckRow]) -> EvidenceFacts<'_> {
        EvidenceFacts {
            level: Some(level),
            rows,
            findings: &[],
            shown_by: None,
        }
    }

    #[test]
    fn passing_test_is_described_with_origin() {
        let rows = [build_row(Some(CheckOutcome::Red), CheckOutcome::Green)];
        for (shown_by, ends) in [
            (None, "the others are no worse."),
            (
                Some(ShownBy::OwnTests),
                "no worse. Shown by the repository's own tests.",
            ),
            (
                Some(ShownBy::ChangedTests),
                "Shown by tests or support files that this change also changes.",
            ),
        ] {
            let facts = EvidenceFacts {
                shown_by,
                ..build_facts(EvidenceLevel::E3, &rows)
            };
            let sentence = describe_evidence(facts);
            assert!(
                sentence.starts_with("A test that failed before passes with the change")
                    && sentence.ends_with(ends),
                "{sentence}"
            );
        }
    }

    #[test]
    fn warning_takes_precedence_over_passing_level() {
        let (green, red) = (Some(CheckOutcome::Green), CheckOutcome::Red);
        let broken = CheckRow {
            broken: vec!["a".to_owned()],
            ..build_row(green, red)
        };
        let missing = CheckRow {
            missing_count: 2,
            ..build_row(green, red)
        };
        let e1 = EvidenceLevel::E1;
        for (level, row, begins) in [
            (
                e1,
                build_row(green, CheckOutcome::Green),
                "The existing checks pass;",
            ),
            (
                e1,
                build_row(Some(red), red),
                "The existing checks fail as they did",
            ),
            (e1, broken.clone(), "What passed before fails"),
            (
                e1,
                CheckRow {
                    base: Some(red),
                    ..broken.clone()
                },
                "The checks fail with the change in a way",
            ),
            (
                e1,
                CheckRow { base: None, ..broken },
                "The checks fail with the change. Before it they gave no result",
            ),
            (e1, missing.clone(), "Tests that ran before do not run"),
            (EvidenceLevel::E0, missing, "Tests that ran before do not run"),
            (
                EvidenceLevel::E0,
                build_row(None, CheckOutcome::Inert),
                "No check could be run here",
            ),
        ] {
            let sentence = describe_evidence(build_facts(level, &[row]));
            assert!(sentence.starts_with(begins), "{sentence}");
        }
    }

    #[test]
    fn weakened_checks_are_named_before_passing_ones() {
        let findings = [ChangeFinding {
            path: "tests/test_cart.py".to_owned(),
            line: 1,
            kind: "test_removed".to_owned(),
            severity: FindingSeverity::Block,
            words: "a test is gone".to_owned(),
            ticket_words: String::new(),
        }];
        let rows = [build_row(Some(CheckOutcome::Green), CheckOutcome::Green)];
        let facts = EvidenceFacts {
            findings: &findings,
            ..build_facts(EvidenceLevel::E1, &rows)
        };
        let sentence = describe_evidence(facts);
        assert!(sentence.starts_with("The change weakens tests"), "{sentence}");
    }

    #[test]
    fn missing_level_differs_from_checks_that_cannot_run() {
        let none = describe_evidence(&ChangeDescription::default());
        assert!(none.starts_with("No check was run"), "{none}");
    }

    #[test]
    fn level_is_parsed_from_shown_name() {
        for level in [
            EvidenceLevel::E0,
            EvidenceLevel::E1,
            EvidenceLevel::E2,
            EvidenceLevel::E3,
        ] {
            assert_eq!(EvidenceLevel::parse(&level.to_string()), Some(level));
        }
        assert_eq!(EvidenceLevel::parse("E4"), None);
    }
}
