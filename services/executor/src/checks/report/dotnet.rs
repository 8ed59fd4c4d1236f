//! Parser of `dotnet test`.

use domain::check::TestReport;

use super::{failed_test, first_message_lines, new_report, parse_number};
use crate::pattern::LazyPattern;

/// Sum of one assembly; a run prints one line per assembly.
static SUMMARY: LazyPattern = LazyPattern::new(
    r"^\s*(?:Passed|Failed|Skipped)!\s+- Failed:\s+(\d+), Passed:\s+(\d+), Skipped:\s+(\d+), Total:\s+\d+",
);
static FAILED: LazyPattern = LazyPattern::new(r"^\s+Failed (\S.*?) \[[\d,.<> ]+ m?s\]$");
static UNCOMPILED: LazyPattern = LazyPattern::new(r"(?m)\): error [A-Z]+\d+: ");
/// Message about a test host that crashed. Its assembly has no sum.
static ABORTED: LazyPattern =
    LazyPattern::new(r"(?m)^\s*(?:The active test run was aborted|Test Run Aborted)\b");
static EMPTY: LazyPattern =
    LazyPattern::new(r"(?m)^No test (?:is available in|matches the given testcase filter)");

pub(super) fn parse_dotnet(output: &str) -> Option<TestReport> {
    let mut report = new_report("dotnet");
    let is_uncompiled = UNCOMPILED.is_match(output) && output.contains("error CS");
    report.collection_error = is_uncompiled || ABORTED.is_match(output);
    let mut sums = 0;
    let lines: Vec<&str> = output.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(sum) = SUMMARY.captures(line) {
            sums += 1;
            report.failed = report.failed.saturating_add(parse_number(&sum[1]));
            report.passed = report.passed.saturating_add(parse_number(&sum[2]));
            report.skipped = report.skipped.saturating_add(parse_number(&sum[3]));
        } else if let Some(id) = FAILED.first(line) {
            let rest = lines.get(at + 1..).unwrap_or_default().iter().copied();
            let rest = rest.filter(|line| line.trim() != "Error Message:");
            let message = first_message_lines(rest, |line| {
                line.trim() == "Stack Trace:" || FAILED.is_match(line)
            });
            report.failing.push(failed_test(id, message));
        }
    }
    (sums > 0 || report.collection_error || EMPTY.is_match(output)).then_some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_ids_and_first_lines_are_read() {
        let report = parse_dotnet(&read_fixture("dotnet_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (2, 1, 1));
        assert_eq!(list_failing_tests(&report), ["Shop.Tests.CartTests.EmptyCart"]);
        assert!(report.failing[0].message.starts_with("Assert.Equal() Failure"));
    }

    #[test]
    fn uncompiled_dotnet_tests_are_collection_error() {
        let report = parse_dotnet(&read_fixture("dotnet_collection_error.txt")).unwrap();
        assert!(report.collection_error && report.ran() == 0);
    }
}
