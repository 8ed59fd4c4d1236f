//! Parser of Playwright's own runner with its line reporters.

use std::collections::HashSet;

use domain::check::TestReport;

use super::{failed_test, first_message_lines, new_report, parse_number};
use crate::pattern::LazyPattern;

static STARTED: LazyPattern = LazyPattern::new(r"(?m)^Running \d+ tests? using \d+ workers?");
static COUNT: LazyPattern =
    LazyPattern::new(r"^  (\d+) (passed|failed|flaky|skipped|interrupted|did not run)(?: \([\d.]+\w+\))?$");
static HEADING: LazyPattern = LazyPattern::new(r"^  \d+\) (\S.*?)(?: ─+)?\s*$");
static TEST: LazyPattern =
    LazyPattern::new(r"^\s+(✓|ok|-|°)\s+\d+ (\S.*?)( \(retry #\d+\))?(?: \(\d[\d.]*m?s\))?$");
static PLACE: LazyPattern = LazyPattern::new(r"(\S+\.[cm]?[jt]sx?):\d+:\d+");
/// Message when nothing was loaded, or about an error outside of any test.
static UNLOADED: LazyPattern =
    LazyPattern::new(r"(?m)^Error: No tests found|^  \d+ errors? (?:was|were) not a part of any test");

pub(super) fn parse_playwright(output: &str) -> Option<TestReport> {
    let has_started = STARTED.is_match(output);
    if !has_started && !UNLOADED.is_match(output) {
        return None;
    }
    let mut report = new_report("playwright");
    // Files that cannot be loaded leave no test, so their errors are the only trace.
    report.collection_error = UNLOADED.is_match(output) && output.matches("Error: ").count() > 1;
    for sum in output.lines().filter_map(|line| COUNT.captures(line)) {
        let count = parse_number(&sum[1]);
        match &sum[2] {
            "passed" => report.passed = report.passed.saturating_add(count),
            "failed" | "interrupted" => report.failed = report.failed.saturating_add(count),
            _ => report.skipped = report.skipped.saturating_add(count),
        }
    }
    let lines: Vec<&str> = output.lines().collect();
    let mut known = HashSet::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(id) = HEADING.first(line).map(without_place) {
            if !known.insert(id.clone()) {
                continue;
            }
            let rest = lines.get(at + 1..).unwrap_or_default().iter().copied();
            let message = first_message_lines(rest, |line| {
                HEADING.is_match(line) || line.trim_start().starts_with("at ")
            });
            report.failing.push(failed_test(id, message));
        } else if let Some(found) = TEST.captures(line) {
            match &found[1] {
                "✓" | "ok" if found.get(3).is_none() => report.passing.push(without_place(&found[2])),
                // A test that passes only when it runs again is flaky, which Playwright does not count as passed.
                _ => report.skipping.push(without_place(&found[2])),
            }
        }
    }
    // Playwright always prints sums at the end; a run without them was interrupted.
    report.collection_error |= has_started && report.ran() == 0 && report.skipped == 0;
    Some(report)
}

/// Removes line and column from a test's name, because lines move with each change of the file.
fn without_place(id: &str) -> String {
    match PLACE.captures(id) {
        Some(place) => id.replacen(&place[0], &place[1], 1),
        None => id.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn each_line_reporter_is_read() {
        for name in [
            "playwright_list_failed.txt",
            "playwright_line_failed.txt",
            "playwright_dot_failed.txt",
        ] {
            let report = parse_playwright(&read_fixture(name)).unwrap();
            assert_eq!(count_results(&report), (1, 1, 1), "{name}");
            assert_eq!(
                list_failing_tests(&report),
                ["cart.spec.js › cart › total"],
                "{name}"
            );
            assert!(
                report.failing[0].message.starts_with("Error: expect(received)"),
                "{name}"
            );
        }
        let list = parse_playwright(&read_fixture("playwright_list_failed.txt")).unwrap();
        assert_eq!(list.passing, ["cart.spec.js › empty cart"]);
    }

    #[test]
    fn unloaded_playwright_file_is_collection_error() {
        let report = parse_playwright(&read_fixture("playwright_collection_error.txt")).unwrap();
        assert!(report.collection_error && report.ran() == 0);
    }
}
