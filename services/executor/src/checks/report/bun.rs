//! Parser of Bun's own runner.

use domain::check::TestReport;

use super::{count_items, failed_test, new_report, parse_number};
use crate::pattern::LazyPattern;

static RAN: LazyPattern = LazyPattern::new(r"(?m)^Ran (\d+) tests? across (\d+) files?\.");
static COUNT: LazyPattern = LazyPattern::new(r"^ (\d+) (pass|fail|skip|todo|errors?)$");
static TEST: LazyPattern =
    LazyPattern::new(r"^(?:\((pass|fail|skip|todo)\)|(✓|✗|»|✎)) (.+?)(?: \[[\d.]+m?s\])?$");
/// Message of a file that cannot be loaded. Bun counts such a file as a failed test.
static UNLOADED: LazyPattern = LazyPattern::new(r"(?m)^# Unhandled error between tests$");

pub(super) fn parse_bun(output: &str) -> Option<TestReport> {
    if !RAN.is_match(output) {
        return None;
    }
    let mut report = new_report("bun");
    for count in output.lines().filter_map(|line| COUNT.captures(line)) {
        let number = parse_number(&count[1]);
        match &count[2] {
            "pass" => report.passed = report.passed.saturating_add(number),
            "fail" => report.failed = report.failed.saturating_add(number),
            "skip" | "todo" => report.skipped = report.skipped.saturating_add(number),
            _ => report.collection_error |= number > 0,
        }
    }
    let lines: Vec<&str> = output.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let Some(found) = TEST.captures(line) else {
            continue;
        };
        let name = found.get(3).map_or("", |name| name.as_str()).to_owned();
        match found.get(1).or(found.get(2)).map_or("", |mark| mark.as_str()) {
            "pass" | "✓" => report.passing.push(name),
            "fail" | "✗" => report
                .failing
                .push(failed_test(name, find_error(lines.get(..at).unwrap_or_default()))),
            _ => report.skipping.push(name),
        }
    }
    let unloaded = u32::try_from(UNLOADED.all(output).count()).unwrap_or(u32::MAX);
    report.collection_error |= unloaded > 0;
    let named = count_items(&report.failing);
    // Bun's sum counts an unloaded file as a failed test, but it has no named test.
    if unloaded > 0 {
        report.failed = named;
    }
    Some(report)
}

/// Returns the error of a test. Bun prints it before the line of the test.
fn find_error(before: &[&str]) -> String {
    let own = before.iter().rev().take_while(|line| !TEST.is_match(line));
    let errors = own.filter(|line| line.starts_with("error: ") || line.contains("Error: "));
    errors.last().map_or(String::new(), |line| (*line).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_names_and_messages_are_read() {
        let report = parse_bun(&read_fixture("bun_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 1, 2));
        assert_eq!(list_failing_tests(&report), ["cart > total"]);
        assert_eq!(
            report.failing[0].message,
            "error: expect(received).toBe(expected)"
        );
        assert_eq!(report.passing, ["empty cart"]);
    }

    #[test]
    fn unloaded_bun_file_is_collection_error() {
        let report = parse_bun(&read_fixture("bun_collection_error.txt")).unwrap();
        assert!(report.collection_error && report.ran() == 0);
    }
}
