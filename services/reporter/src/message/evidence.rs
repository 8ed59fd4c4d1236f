//! Evidence of a change: what its checks showed, before and after.

use domain::check::{ChangeFinding, CheckOutcome, EvidenceLevel, FindingSeverity};
use domain::{ChangeDescription, CheckRow, DemonstrationResult, describe_evidence};

use super::words::{format_code, format_count, group_digits, one_line};

/// Number of points that a list shows.
pub(super) const LIST: usize = 20;

/// Renders the checks that ran, with their outcomes before and after. It claims no more than these show.
pub(super) fn render_evidence(description: &ChangeDescription) -> String {
    let mut lines = vec![format!("### Evidence\n\n{}", describe_evidence(description))];
    let rows: Vec<String> = description
        .checks
        .iter()
        .take(LIST)
        .map(render_check_row)
        .collect();
    if !rows.is_empty() {
        lines.push(format!(
            "| check | before | with the change |\n|---|---|---|\n{}",
            rows.join("\n")
        ));
    }
    lines.extend(render_demonstrations(&description.demonstrations));
    lines.extend(list_missing_tests(&description.checks));
    let (compared, uncompared): (Vec<&CheckRow>, Vec<&CheckRow>) =
        description.checks.iter().partition(|row| row.has_base_result());
    for (heading, rows) in [
        ("Fails with the change and not before", compared),
        (
            "Fails with the change, and the check gave no result before",
            uncompared,
        ),
    ] {
        let broken = rows.into_iter().flat_map(|row| &row.broken);
        lines.extend(render_list(heading, format_tests(broken)));
    }
    let mended = description.checks.iter().flat_map(|row| &row.mended);
    lines.extend(render_list("Failed before and passes now", format_tests(mended)));
    let still = description.checks.iter().flat_map(|row| &row.still_failing);
    lines.extend(render_list("Fails without the change too", format_tests(still)));
    let flaky = description.checks.iter().flat_map(|row| &row.flaky);
    lines.extend(render_list(
        "Fails in some runs of the same files only, so it shows nothing",
        format_tests(flaky),
    ));
    let unrepaired = description.unrepaired.iter();
    lines.extend(render_list("Failed before the commit", format_tests(unrepaired)));
    let findings = description.findings.iter().map(format_finding);
    lines.extend(render_list("Changes that weaken checks", findings.collect()));
    lines.join("\n\n")
}

/// Builds a table of commands with their output before and after. Outputs that differ from the author's claim are
/// listed as such.
fn render_demonstrations(seen: &[DemonstrationResult]) -> Vec<String> {
    let cell = |text: &str| {
        if text.is_empty() {
            "nothing".to_owned()
        } else {
            format_code(text).replace('|', "\\|")
        }
    };
    let shown = seen.iter().filter(|seen| seen.is_shown);
    let rows: Vec<String> = shown
        .map(|seen| {
            format!(
                "| {} | {} | {} |",
                cell(&seen.command),
                cell(&seen.before),
                cell(&seen.after)
            )
        })
        .collect();
    let table = format!(
        "| command | printed before | prints with the change |\n|---|---|---|\n{}",
        rows.join("\n")
    );
    let others = seen.iter().filter(|seen| !seen.is_shown);
    let others = others.map(|seen| {
        format!(
            "{} prints {}",
            format_code(&seen.command),
            format_code(&seen.prints)
        )
    });
    let others = render_list(
        "Said by the author, and not seen when it was run with and without the change",
        others.collect(),
    );
    (!rows.is_empty())
        .then_some(table)
        .into_iter()
        .chain(others)
        .collect()
}

fn format_tests<'a>(tests: impl Iterator<Item = &'a String>) -> Vec<String> {
    tests.map(|test| format_code(test)).collect()
}

/// Lists tests that passed before and have no result with the change.
fn list_missing_tests(rows: &[CheckRow]) -> Vec<String> {
    let rows = rows.iter().filter(|row| row.missing_count > 0);
    let rows = rows.filter_map(|row| {
        let heading = format!(
            "Ran before and does not run with the change: {} of {}",
            format_count(row.missing_count.into(), "test"),
            format_code(&row.command)
        );
        if row.missing.is_empty() {
            Some(format!("**{heading}**"))
        } else {
            render_list(&heading, format_tests(row.missing.iter()))
        }
    });
    rows.collect()
}

/// Renders the level of the evidence with its meaning, for readers who compare changes.
pub(super) fn describe_evidence_level(level: EvidenceLevel) -> String {
    format!("Level of evidence: {level} ({}).", level.meaning())
}

fn render_check_row(row: &CheckRow) -> String {
    let base = row.base.map_or("not run", describe_outcome);
    let passed = match row.passed {
        0 => String::new(),
        passed => format!(", {} passed", group_digits(passed.into())),
    };
    let command = format_code(&row.command).replace('|', "\\|");
    format!("| {command} | {base} | {}{passed} |", describe_outcome(row.head))
}

pub(super) const fn describe_outcome(outcome: CheckOutcome) -> &'static str {
    match outcome {
        CheckOutcome::Green => "passes",
        CheckOutcome::Red => "fails",
        CheckOutcome::Inert => "cannot be run here",
        CheckOutcome::Timeout => "did not end in time",
        CheckOutcome::Infra => "failed for want of memory, disk or network",
        CheckOutcome::NoTests => "ran no test",
    }
}

pub(super) fn format_place(path: &str, line: u32) -> String {
    match line {
        0 => format_code(path),
        line => format!("{} line {line}", format_code(path)),
    }
}

fn format_finding(finding: &ChangeFinding) -> String {
    let place = format_place(&finding.path, finding.line);
    let severity = match finding.severity {
        FindingSeverity::Block => " (needs a person's approval)",
        FindingSeverity::Flag => "",
    };
    let asked = if finding.ticket_words.is_empty() {
        String::new()
    } else {
        format!(
            " (the ticket says: \u{201c}{}\u{201d})",
            one_line(&finding.ticket_words)
        )
    };
    format!("{place}: {}{severity}{asked}", one_line(&finding.words))
}

/// Builds a bold heading with its points; `None` without points.
pub(super) fn render_list(heading: &str, points: Vec<String>) -> Option<String> {
    format_points(points).map(|points| format!("**{heading}**\n\n{points}"))
}

/// Builds a section with its points; `None` without points.
pub(super) fn render_section(heading: &str, points: Vec<String>) -> Option<String> {
    format_points(points).map(|points| format!("### {heading}\n\n{points}"))
}

fn format_points(points: Vec<String>) -> Option<String> {
    let more = points.len().saturating_sub(LIST);
    let mut lines: Vec<String> = points
        .into_iter()
        .take(LIST)
        .map(|point| format!("- {point}"))
        .collect();
    if more > 0 {
        lines.push(format!("- and {} more", group_digits(more as u64)));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render_failing_check(base: Option<CheckOutcome>, broken: &[&str]) -> String {
        let row = CheckRow {
            command: "pytest".to_owned(),
            base,
            head: CheckOutcome::Red,
            passed: 3,
            broken: broken.iter().map(ToString::to_string).collect(),
            missing_count: 0,
            missing: Vec::new(),
            mended: Vec::new(),
            still_failing: Vec::new(),
            flaky: Vec::new(),
            reason: String::new(),
            setup_hint: None,
        };
        render_evidence(&ChangeDescription {
            checks: vec![row],
            level: Some(EvidenceLevel::E1),
            ..ChangeDescription::default()
        })
    }

    #[test]
    fn failing_check_is_compared_with_results_only() {
        let not_before = "**Fails with the change and not before**\n\n- `test_total`";
        let no_result = "**Fails with the change, and the check gave no result before**\n\n- `test_total`";
        for (base, sentence, heading) in [
            (
                Some(CheckOutcome::Green),
                "What passed before fails with the change",
                not_before,
            ),
            (
                Some(CheckOutcome::Red),
                "in a way in which they did not before",
                not_before,
            ),
            (
                Some(CheckOutcome::Timeout),
                "Before it they gave no result to compare with",
                no_result,
            ),
            (
                Some(CheckOutcome::Inert),
                "Before it they gave no result to compare with",
                no_result,
            ),
            (None, "Before it they gave no result to compare with", no_result),
        ] {
            let text = render_failing_check(base, &["test_total"]);
            assert!(text.contains(sentence) && text.contains(heading), "{text}");
            assert!(!text.contains("as they did before"), "{text}");
        }
        let same = render_failing_check(Some(CheckOutcome::Red), &[]);
        assert!(
            same.contains("The existing checks fail as they did before"),
            "{same}"
        );
    }
}
