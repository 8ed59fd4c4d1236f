//! Parser of `swift test`: `XCTest` and Swift Testing.

use std::collections::HashMap;

use domain::check::TestReport;

use super::{count_items, failed_test, new_report, parse_group, parse_number};
use crate::pattern::LazyPattern;

/// Sum line. Each suite prints one; the last one covers all.
static EXECUTED: LazyPattern = LazyPattern::new(
    r"^\s+Executed (\d+) tests?, with (?:(\d+) tests? skipped and )?(\d+) failures? \(\d+ unexpected\) in ",
);
static CASE: LazyPattern = LazyPattern::new(r"^Test Case '(?:-\[)?(.+?)\]?' (passed|failed|skipped) \(");
static XCT_ERROR: LazyPattern = LazyPattern::new(r"^\S+:\d+: error: (?:-\[)?(.+?)\]? : (.*)$");
static RUN: LazyPattern =
    LazyPattern::new(r"^\S+\s+Test run with (\d+) tests?(?: in \d+ suites?)? (?:passed|failed) after ");
static TEST: LazyPattern =
    LazyPattern::new(r#"^\S+\s+Test (".+?"|\S+\(.*?\))(?: with \d+ test cases?)? (passed|failed|skipped)\b"#);
static ISSUE: LazyPattern =
    LazyPattern::new(r#"^\S+\s+Test (".+?"|\S+\(.*?\)) recorded an issue (?:with .+? )?at \S+: (.*)$"#);
static UNCOMPILED: LazyPattern =
    LazyPattern::new(r"(?m)^error: (?:fatalError|emit-module command failed)|^\S+\.swift:\d+:\d+: error: ");
static BUILDING: LazyPattern = LazyPattern::new(r"(?m)^Building for (?:debugging|testing)|^\[\d+/\d+\] ");

pub(super) fn parse_swift(output: &str) -> Option<TestReport> {
    let mut report = new_report("swift");
    let lines: Vec<&str> = output.lines().collect();
    let sum = lines.iter().rev().find_map(|line| EXECUTED.captures(line));
    if let Some(sum) = &sum {
        let count = |group| parse_group(sum, group);
        report.skipped = count(2);
        // `XCTest` counts failures, not failing tests: a test with two failures counts twice. The named tests
        // replace this figure below.
        report.failed = count(3);
        report.passed = count(1).saturating_sub(count(2)).saturating_sub(count(3));
    }
    let (mut xctest, errors) = (TestReport::default(), list_messages(&lines, &XCT_ERROR));
    for found in lines.iter().filter_map(|line| CASE.captures(line)) {
        let id = found[1].to_owned();
        match &found[2] {
            "passed" => xctest.passing.push(id),
            "skipped" => xctest.skipping.push(id),
            _ => {
                let message = errors.get(id.as_str()).copied().unwrap_or_default();
                xctest.failing.push(failed_test(id, message));
            }
        }
    }
    if !xctest.passing.is_empty() || !xctest.failing.is_empty() {
        report.passed = count_items(&xctest.passing);
        // A failing test whose line follows other output on the same line has no name.
        if !xctest.failing.is_empty() {
            report.failed = count_items(&xctest.failing);
        }
    }
    (report.passing, report.failing, report.skipping) = (xctest.passing, xctest.failing, xctest.skipping);
    let run = lines.iter().rev().find_map(|line| RUN.first(line));
    if let Some(run) = run {
        let (mut bad, mut left_out) = (0_u32, 0_u32);
        let issues = list_messages(&lines, &ISSUE);
        for found in lines.iter().filter_map(|line| TEST.captures(line)) {
            let id = found[1].trim_matches('"').to_owned();
            match &found[2] {
                "passed" => report.passing.push(id),
                "skipped" => {
                    left_out += 1;
                    report.skipping.push(id);
                }
                _ => {
                    bad += 1;
                    let message = issues.get(id.as_str()).copied().unwrap_or_default();
                    report.failing.push(failed_test(id, message));
                }
            }
        }
        report.failed = report.failed.saturating_add(bad);
        report.skipped = report.skipped.saturating_add(left_out);
        report.passed = report
            .passed
            .saturating_add(parse_number(run).saturating_sub(bad).saturating_sub(left_out));
    }
    let is_uncompiled =
        BUILDING.is_match(output) && UNCOMPILED.is_match(output) && sum.is_none() && run.is_none();
    report.collection_error = is_uncompiled;
    (sum.is_some() || run.is_some() || is_uncompiled).then_some(report)
}

/// Returns the message of the first line that matches `pattern` for each test.
fn list_messages<'t>(lines: &[&'t str], pattern: &LazyPattern) -> HashMap<&'t str, &'t str> {
    let mut messages = HashMap::new();
    for found in lines.iter().copied().filter_map(|line| pattern.captures(line)) {
        if let (Some(test), Some(message)) = (found.get(1), found.get(2)) {
            let name = test.as_str().trim_matches('"');
            messages.entry(name).or_insert(message.as_str());
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests};

    #[test]
    fn both_libraries_are_read() {
        let xctest = "Test Case '-[ShopTests.CartTests testEmpty]' started.\nTest Case '-[ShopTests.CartTests testEmpty]' passed (0.077 seconds).\n/w/CartTests.swift:9: error: -[ShopTests.CartTests testTotal] : XCTAssertEqual failed: (\"0\") is not equal to (\"30\")\nTest Case '-[ShopTests.CartTests testTotal]' failed (0.1 seconds).\nTest Suite 'All tests' failed at 2026-10-09 13:50:42.915.\n\t Executed 2 tests, with 1 failure (0 unexpected) in 0.077 (0.077) seconds\n";
        let report = parse_swift(xctest).unwrap();
        assert_eq!(
            (count_results(&report), list_failing_tests(&report)),
            ((1, 1, 0), vec!["ShopTests.CartTests testTotal"])
        );
        assert!(report.failing[0].message.starts_with("XCTAssertEqual failed"));
        let failing = "Test Case '-[ShopTests.CartTests testTotal]'";
        let joined = xctest.replace(failing, &format!("out of stock {failing}"));
        assert_eq!(count_results(&parse_swift(&joined).unwrap()), (1, 1, 0));
        let testing = "◇ Test run started.\n✔ Test empty() passed after 0.001 seconds.\n✘ Test \"adds up\" recorded an issue at CartTests.swift:9:5: Expectation failed: (total → 0) == 30\n✘ Test \"adds up\" failed after 0.001 seconds with 1 issue.\n✘ Test run with 2 tests failed after 0.002 seconds with 1 issue.\n";
        let report = parse_swift(testing).unwrap();
        assert_eq!(
            (count_results(&report), list_failing_tests(&report)),
            ((1, 1, 0), vec!["adds up"])
        );
        assert!(report.failing[0].message.starts_with("Expectation failed"));
        let broken = "Building for debugging...\n/w/Cart.swift:3:5: error: cannot find 'x' in scope\n";
        assert!(parse_swift(broken).unwrap().collection_error);
    }
}
