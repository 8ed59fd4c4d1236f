//! Parser of Jest's default and verbose reporters.

use domain::check::TestReport;

use super::{failed_test, first_message_lines, parse_number};
use crate::pattern::LazyPattern;

/// Sum line, such as `Tests:       1 failed, 2 passed, 3 total`.
static SUMMARY: LazyPattern = LazyPattern::new(r"^Tests:\s+(.*\b\d+ total)\s*$");
static COUNT: LazyPattern = LazyPattern::new(r"(\d+) (failed|passed|skipped|pending|todo|total)");
/// Heading of a failure, such as `  ● Cart › is empty`.
static HEADING: LazyPattern = LazyPattern::new(r"^  ● (.+)$");
static SUITES: LazyPattern = LazyPattern::new(r"(?m)^Test Suites: ");
static VERBOSE: LazyPattern = LazyPattern::new(r"^\s+(✓|✔|○) (?:skipped )?(.+?)(?: \(\d+(?:\.\d+)? m?s\))?$");
const UNLOADED: &str = "Test suite failed to run";

pub(super) fn parse_jest(output: &str) -> Option<TestReport> {
    if !SUITES.is_match(output) {
        return None;
    }
    let summary = output.lines().rev().find_map(|line| SUMMARY.first(line));
    let mut report = TestReport {
        runner: "jest".to_owned(),
        ..TestReport::default()
    };
    for count in COUNT.all(summary.unwrap_or_default()) {
        let number = parse_number(&count[1]);
        match &count[2] {
            "failed" => report.failed = number,
            "passed" => report.passed = number,
            "skipped" | "pending" | "todo" => report.skipped = report.skipped.saturating_add(number),
            _ => {}
        }
    }
    let lines: Vec<&str> = output.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(heading) = HEADING.first(line) {
            add_failure(&mut report, heading, lines.get(at + 1..).unwrap_or_default());
        } else if let Some(found) = VERBOSE.captures(line) {
            let named = match &found[1] {
                "○" => &mut report.skipping,
                _ => &mut report.passing,
            };
            named.push(found[2].to_owned());
        }
    }
    Some(report)
}

/// Adds a failure unless it is known: Jest repeats its failures at the end of a long output.
fn add_failure(report: &mut TestReport, heading: &str, rest: &[&str]) {
    let id = heading.trim();
    if id.ends_with(UNLOADED) {
        report.collection_error = true;
    } else if (id.contains(" › ") || !id.ends_with(':')) && id != "Console" {
        let is_known = report.failing.iter().any(|test| test.id == id);
        let is_end = |line: &str| line.starts_with("  ● ") || line.trim_start().starts_with("at ");
        let words = first_message_lines(rest.iter().copied(), is_end);
        report.failing.extend((!is_known).then(|| failed_test(id, words)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_ids_and_first_lines_are_read() {
        let report = parse_jest(&read_fixture("jest_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 1));
        assert_eq!(list_failing_tests(&report), ["cart › empty cart", "cart › total"]);
        assert!(
            report.failing[0]
                .message
                .starts_with("expect(received).toBe(expected)")
        );
        assert!(!report.collection_error);
    }

    #[test]
    fn unloaded_jest_suite_is_collection_error() {
        let report = parse_jest(&read_fixture("jest_collection_error.txt")).unwrap();
        assert_eq!(count_results(&report), (0, 0, 0));
        assert!(report.collection_error && report.failing.is_empty());
    }
}
