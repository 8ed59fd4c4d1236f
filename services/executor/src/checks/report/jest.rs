//! Parser of Jest's default and verbose reporters.

use std::collections::HashSet;

use domain::check::TestReport;

use super::{
    SEPARATOR, TitleStack, failed_test, find_group_titles, first_message_lines, measure_indentation,
    new_report, parse_number,
};
use crate::pattern::LazyPattern;

/// Sum line, such as `Tests:       1 failed, 2 passed, 3 total`.
static SUMMARY: LazyPattern = LazyPattern::new(r"^Tests:\s+(.*\b\d+ total)\s*$");
static COUNT: LazyPattern = LazyPattern::new(r"(\d+) (failed|passed|skipped|pending|todo|total)");
/// Heading of a failure, such as `  ● Cart › is empty`.
static HEADING: LazyPattern = LazyPattern::new(r"^  ● (.+)$");
static SUITES: LazyPattern = LazyPattern::new(r"(?m)^Test Suites: ");
/// Line of a test in the verbose reporter: its indentation, its mark and its own title.
static VERBOSE: LazyPattern =
    LazyPattern::new(r"^(\s+)(✓|✔|✕|○ skipped|○|✎ todo|✎) (.+?)(?: \(\d+(?:\.\d+)? m?s\))?$");
const UNLOADED: &str = "Test suite failed to run";

pub(super) fn parse_jest(output: &str) -> Option<TestReport> {
    if !SUITES.is_match(output) {
        return None;
    }
    // Each package of a repository may run Jest on its own.
    let summaries = output.lines().filter_map(|line| SUMMARY.first(line));
    let mut report = new_report("jest");
    for count in summaries.flat_map(|summary| COUNT.all(summary)) {
        let number = parse_number(&count[1]);
        match &count[2] {
            "failed" => report.failed = report.failed.saturating_add(number),
            "passed" => report.passed = report.passed.saturating_add(number),
            "skipped" | "pending" | "todo" => report.skipped = report.skipped.saturating_add(number),
            _ => {}
        }
    }
    let lines: Vec<&str> = output.lines().collect();
    let is_title = find_group_titles(&lines, |line| VERBOSE.is_match(line));
    let (mut titles, mut known) = (TitleStack::default(), HashSet::new());
    for (at, line) in lines.iter().enumerate() {
        if let Some(heading) = HEADING.first(line) {
            let id = heading.trim();
            // Jest repeats its failures at the end of a long output.
            if known.insert(id) {
                add_failure(&mut report, id, lines.get(at + 1..).unwrap_or_default());
            }
        } else if let Some(found) = VERBOSE.captures(line) {
            let name = titles.name(found[1].len(), &found[3], SEPARATOR);
            match &found[2] {
                "✓" | "✔" => report.passing.push(name),
                // The heading of the failure names it, with its message.
                "✕" => {}
                _ => report.skipping.push(name),
            }
        } else if is_title.get(at) == Some(&true) {
            titles.open(measure_indentation(line), line.trim());
        }
    }
    Some(report)
}

fn add_failure(report: &mut TestReport, id: &str, rest: &[&str]) {
    if id.ends_with(UNLOADED) {
        report.collection_error = true;
    } else if (id.contains(" › ") || !id.ends_with(':')) && id != "Console" {
        let is_end = |line: &str| line.starts_with("  ● ") || line.trim_start().starts_with("at ");
        let message = first_message_lines(rest.iter().copied(), is_end);
        report.failing.push(failed_test(id, message));
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
        assert_eq!(
            (report.passing, report.skipping),
            (vec!["cart › count".to_owned()], vec!["cart › later".to_owned()])
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
