//! Parser of the terminal output of bats. Its TAP output is read by the TAP parser.

use domain::check::TestReport;

use super::{failed_test, first_message_lines, new_report, parse_group};
use crate::pattern::LazyPattern;

static SUMMARY: LazyPattern = LazyPattern::new(
    r"^(\d+) tests?, (\d+) failures?(?:, (\d+) skipped)?(?:, (\d+) not run)?(?: in [\d.]+ seconds)?$",
);
static TEST: LazyPattern = LazyPattern::new(r"^\s(✓|✗|-) (.+?)(?: \[\d+\])?(?: \(skipped(?:: .*)?\))?$");

pub(super) fn parse_bats(output: &str) -> Option<TestReport> {
    // bats overwrites the line of a running test. Without a terminal, progress and result share one line.
    let text = output.replace('\u{b}', "\n");
    let lines: Vec<&str> = text.lines().map(after_progress).collect();
    if !lines.iter().any(|line| TEST.is_match(line)) {
        return None;
    }
    let mut report = new_report("bats");
    for sum in lines.iter().filter_map(|line| SUMMARY.captures(line)) {
        let count = |group| parse_group(&sum, group);
        let ran = count(1)
            .saturating_sub(count(2))
            .saturating_sub(count(3))
            .saturating_sub(count(4));
        report.passed = report.passed.saturating_add(ran);
        report.failed = report.failed.saturating_add(count(2));
        report.skipped = report.skipped.saturating_add(count(3)).saturating_add(count(4));
    }
    if report.ran() == 0 && report.skipped == 0 {
        return None;
    }
    for (at, line) in lines.iter().enumerate() {
        let Some(found) = TEST.captures(line) else {
            continue;
        };
        let id = found[2].to_owned();
        match &found[1] {
            "✓" => report.passing.push(id),
            "-" => report.skipping.push(id),
            _ => {
                let rest = lines.get(at + 1..).unwrap_or_default().iter().copied();
                let message =
                    first_message_lines(rest, |line| !line.starts_with("   ") || TEST.is_match(line));
                report.failing.push(failed_test(id, message));
            }
        }
    }
    Some(report)
}

/// Returns the result after `   name1/3`, the progress of the running test.
fn after_progress(line: &str) -> &str {
    let at = [" ✓ ", " ✗ ", " - "]
        .iter()
        .filter_map(|mark| line.find(mark))
        .min();
    match at {
        Some(at) if line.starts_with("   ") => line.get(at..).unwrap_or(line),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::{
        strip_escapes,
        tests::{count_results, list_failing_tests, read_fixture},
    };

    #[test]
    fn terminal_output_is_read_with_names() {
        let report = parse_bats(&strip_escapes(&read_fixture("bats_pretty_failed.txt"))).unwrap();
        assert_eq!(count_results(&report), (1, 1, 1));
        assert_eq!(list_failing_tests(&report), ["total"]);
        assert_eq!(
            (report.passing, report.skipping),
            (vec!["empty cart".to_owned()], vec!["later".to_owned()])
        );
    }
}
