//! Evidence for a change in one sentence for people, without the names of levels.

use domain::{
    ChangeProof, CheckRow, ShownBy,
    check::{CheckOutcome, EvidenceLevel, FindingSeverity},
};

/// Describes the evidence for a change in one sentence. A warning takes precedence over the level.
pub fn describe_evidence(proof: &ChangeProof) -> String {
    let any = |is_it: fn(&CheckRow) -> bool| proof.rows.iter().any(is_it);
    let is_weakened = (proof.findings.iter()).any(|finding| finding.severity == FindingSeverity::Block);
    let sentence = match proof.level {
        EvidenceLevel::E3 => return describe_passing_tests(proof),
        EvidenceLevel::E2 => {
            "A command prints what the change is for, and did not before; no test shows the change."
        }
        EvidenceLevel::E0 | EvidenceLevel::E1
            if any(|row| row.missing_count > 0 && row.head != CheckOutcome::Green) =>
        {
            "Tests that ran before do not run with the change; nothing shows that the change is right."
        }
        EvidenceLevel::E1 if any(|row| !row.broken.is_empty() && row.base == Some(CheckOutcome::Green)) => {
            "Checks that passed before fail with the change; no test shows that the change is right."
        }
        EvidenceLevel::E1 if any(|row| !row.broken.is_empty() && row.has_base_result()) => {
            "Checks fail with the change in a way that was not seen before; no test shows that the change is right."
        }
        EvidenceLevel::E1 if any(|row| !row.broken.is_empty()) => {
            "Checks fail with the change, and gave no result before it; no test shows that the change is right."
        }
        EvidenceLevel::E1 if is_weakened => {
            "The change weakens tests or checks; nothing shows that the change is right."
        }
        EvidenceLevel::E1 if any(|row| row.head == CheckOutcome::Red) => {
            "The existing checks fail as they did before; no test shows the change."
        }
        EvidenceLevel::E1 => "The existing checks pass; no test shows the change.",
        EvidenceLevel::E0 if proof.rows.is_empty() => {
            "No command was found that checks the change, so nothing was verified."
        }
        EvidenceLevel::E0 => "No check could be run here, so nothing was verified.",
    };
    sentence.to_owned()
}

/// Describes tests that failed before the change and pass with it.
fn describe_passing_tests(proof: &ChangeProof) -> String {
    let mended: usize = proof.rows.iter().map(|row| row.mended.len()).sum();
    let tests = match mended {
        0 | 1 => "A test that failed before passes with the change".to_owned(),
        mended => format!("{mended} tests that failed before pass with the change"),
    };
    let origin = match proof.shown_by {
        Some(ShownBy::OwnTests) => "; the repository's own tests show it",
        Some(ShownBy::ChangedTests) => "; the change also edits these tests or their support files",
        None => "",
    };
    format!("{tests}, and the others are no worse{origin}.")
}

#[cfg(test)]
mod tests {
    use domain::check::ChangeFinding;

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

    fn build_proof(level: EvidenceLevel, rows: Vec<CheckRow>) -> ChangeProof {
        ChangeProof {
            level,
            rows,
            demonstrations: Vec::new(),
            findings: Vec::new(),
            outside: Vec::new(),
            unnoticed: Vec::new(),
            shown_by: None,
            unrepaired: Vec::new(),
        }
    }

    #[test]
    fn passing_tests_are_counted_with_origin() {
        let green = build_row(Some(CheckOutcome::Red), CheckOutcome::Green);
        let mut proof = build_proof(
            EvidenceLevel::E3,
            vec![CheckRow {
                mended: vec!["a".to_owned(), "b".to_owned()],
                ..green
            }],
        );
        proof.shown_by = Some(ShownBy::OwnTests);
        assert_eq!(
            describe_evidence(&proof),
            "2 tests that failed before pass with the change, and the others are no worse; the repository's own tests show it."
        );
        proof.rows[0].mended.truncate(1);
        proof.shown_by = Some(ShownBy::ChangedTests);
        assert_eq!(
            describe_evidence(&proof),
            "A test that failed before passes with the change, and the others are no worse; the change also edits these \
             tests or their support files."
        );
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
        let weakened = |mut proof: ChangeProof| {
            proof.findings.push(ChangeFinding {
                path: "tests/test_cart.py".to_owned(),
                line: 1,
                kind: "test_removed".to_owned(),
                severity: FindingSeverity::Block,
                words: "a test is gone".to_owned(),
                ticket_words: String::new(),
            });
            proof
        };
        let e1 = |row| build_proof(EvidenceLevel::E1, vec![row]);
        let passing = build_row(green, CheckOutcome::Green);
        for (proof, begins) in [
            (e1(passing.clone()), "The existing checks pass;"),
            (weakened(e1(passing)), "The change weakens tests"),
            (
                e1(build_row(Some(red), red)),
                "The existing checks fail as they did",
            ),
            (e1(broken.clone()), "Checks that passed before fail"),
            (
                e1(CheckRow {
                    base: Some(red),
                    ..broken.clone()
                }),
                "Checks fail with the change in a way",
            ),
            (
                e1(CheckRow { base: None, ..broken }),
                "Checks fail with the change, and gave no result before it",
            ),
            (e1(missing.clone()), "Tests that ran before do not run"),
            (
                build_proof(EvidenceLevel::E0, vec![missing]),
                "Tests that ran before do not run",
            ),
        ] {
            let sentence = describe_evidence(&proof);
            assert!(sentence.starts_with(begins), "{sentence}");
        }
    }

    #[test]
    fn missing_checks_differ_from_checks_that_cannot_run() {
        let none = build_proof(EvidenceLevel::E0, Vec::new());
        assert!(describe_evidence(&none).starts_with("No command was found"));
        let inert = build_proof(EvidenceLevel::E0, vec![build_row(None, CheckOutcome::Inert)]);
        assert!(describe_evidence(&inert).starts_with("No check could be run here"));
    }
}
