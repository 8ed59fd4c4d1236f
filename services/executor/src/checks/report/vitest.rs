//! Parser of Vitest's default and verbose reporters.

use domain::check::TestReport;

use super::{failed_test, first_message_lines, parse_number};
use crate::pattern::LazyPattern;

/// Sum line, such as `      Tests  1 failed | 2 passed (3)`.
static SUMMARY: LazyPattern = LazyPattern::new(r"^\s*Tests  (.*)$");
static FILES: LazyPattern = LazyPattern::new(r"(?m)^\s*Test Files  ");
static COUNT: LazyPattern = LazyPattern::new(r"(\d+) (failed|passed|skipped|todo|expected fail)");
/// Heading of a failure, such as ` FAIL  src/cart.test.ts > cart > is empty`.
static FAILURE: LazyPattern = LazyPattern::new(r"^\s*FAIL  (\S+)( >.*| \[.*\])?\s*$");
static VERBOSE: LazyPattern = LazyPattern::new(r"^\s+(✓|↓) (.+? > .+?)(?: \d+m?s)?$");

pub(super) fn parse_vitest(output: &str) -> Option<TestReport> {
    let files = FILES.is_match(output);
    if !files && !output.contains("No test files found, exiting with code") {
        return None;
    }
    let summary = output.lines().rev().find_map(|line| SUMMARY.first(line));
    let mut report = TestReport {
        runner: "vitest".to_owned(),
        ..TestReport::default()
    };
    for count in COUNT.all(summary.unwrap_or_default()) {
        let number = parse_number(&count[1]);
        match &count[2] {
            "failed" => report.failed = number,
            "passed" => report.passed = number,
            _ => report.skipped = report.skipped.saturating_add(number),
        }
    }
    let lines: Vec<&str> = output.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = FAILURE.captures(line) {
            let rest = found.get(2).map_or("", |rest| rest.as_str());
            let Some(name) = rest.strip_prefix(" > ") else {
                // A file without a test's name failed as a whole: it could not be loaded.
                report.collection_error |= rest.starts_with(" [");
                continue;
            };
            let id = format!("{} > {}", &found[1], name.trim());
            let is_end = |line: &str| line.trim_start().starts_with('❯') || line.contains("⎯⎯⎯⎯");
            let words = first_message_lines(lines.get(at + 1..).unwrap_or_default().iter().copied(), is_end);
            report.failing.push(failed_test(id, words));
        } else if let Some(found) = VERBOSE.captures(line) {
            let named = match &found[1] {
                "↓" => &mut report.skipping,
                _ => &mut report.passing,
            };
            named.push(found[2].to_owned());
        }
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_ids_and_first_lines_are_read() {
        let report = parse_vitest(&read_fixture("vitest_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 1));
        assert_eq!(
            list_failing_tests(&report),
            [
                "cart.vitest.mjs > cart > empty cart",
                "cart.vitest.mjs > cart > total"
            ]
        );
        assert!(
            report.failing[1]
                .message
                .starts_with("AssertionError: expected +0 to be 30")
        );
        assert!(!report.collection_error);
    }

    #[test]
    fn unloaded_vitest_file_is_collection_error() {
        let report = parse_vitest(&read_fixture("vitest_collection_error.txt")).unwrap();
        assert_eq!(count_results(&report), (0, 0, 0));
        assert!(report.collection_error && report.failing.is_empty());
    }

    #[test]
    fn no_files_are_no_tests() {
        assert_eq!(
            parse_vitest("No test files found, exiting with code 1\n")
                .unwrap()
                .ran(),
            0
        );
    }
}
