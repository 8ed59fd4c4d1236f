//! Parser of Maven Surefire's printed output, for runs whose XML reports are not found.

use domain::check::TestReport;

use super::{failed_test, new_report, parse_number};
use crate::pattern::LazyPattern;

/// Sum of a module. Lines of single classes end in the class name and do not match.
static SUM: LazyPattern = LazyPattern::new(
    r"^(?:\[(?:INFO|ERROR|WARNING)\] )?Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)$",
);
static FAILURE: LazyPattern =
    LazyPattern::new(r"^\[ERROR\]   (\S+?)(?::\d+)?(?: (?:»|->|[Ee]xpected)? ?(.*))?$");
/// Messages about tests that could not be compiled, and about a test process that crashed.
static INCOMPLETE: LazyPattern =
    LazyPattern::new(r"(?m)^\[ERROR\] (?:COMPILATION ERROR :|.*\bThe forked VM terminated without )");

pub(super) fn parse_maven(output: &str) -> Option<TestReport> {
    let mut report = new_report("maven");
    report.collection_error = INCOMPLETE.is_match(output);
    let mut sums = 0;
    for sum in output.lines().filter_map(|line| SUM.captures(line)) {
        sums += 1;
        let (ran, failures, errors, skipped) = (
            parse_number(&sum[1]),
            parse_number(&sum[2]),
            parse_number(&sum[3]),
            parse_number(&sum[4]),
        );
        let bad = failures.saturating_add(errors);
        report.failed = report.failed.saturating_add(bad);
        report.skipped = report.skipped.saturating_add(skipped);
        report.passed = report
            .passed
            .saturating_add(ran.saturating_sub(bad).saturating_sub(skipped));
    }
    if report.failed > 0 {
        let found = output.lines().filter_map(|line| FAILURE.captures(line));
        let named =
            found.map(|found| failed_test(&found[1], found.get(2).map_or("", |message| message.as_str())));
        report.failing = named.filter(|test| test.id.contains('.')).collect();
    }
    (sums > 0 || report.collection_error).then_some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_and_ids_are_read() {
        let report = parse_maven(&read_fixture("maven_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 0));
        assert_eq!(
            list_failing_tests(&report),
            ["CartTest.total", "CartTest.emptyCart"]
        );
    }

    #[test]
    fn uncompiled_maven_tests_are_collection_error() {
        let report = parse_maven(&read_fixture("maven_collection_error.txt")).unwrap();
        assert!(report.collection_error && report.ran() == 0);
    }
}
