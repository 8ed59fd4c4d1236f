//! Parser of `dotnet test`.

use domain::check::TestReport;

use super::{failed, message, number};
use crate::pattern::Pattern;

/// Sum of one assembly; a run prints one line per assembly.
static SUMMARY: Pattern = Pattern::new(
    r"^\s*(?:Passed|Failed|Skipped)!\s+- Failed:\s+(\d+), Passed:\s+(\d+), Skipped:\s+(\d+), Total:\s+\d+",
);
static FAILED: Pattern = Pattern::new(r"^\s+Failed (\S.*?) \[[\d,.<> ]+ m?s\]$");
static UNCOMPILED: Pattern = Pattern::new(r"(?m)\): error [A-Z]+\d+: ");
static EMPTY: Pattern = Pattern::new(r"(?m)^No test (?:is available in|matches the given testcase filter)");

pub(super) fn parse(output: &str) -> Option<TestReport> {
    let mut report = TestReport {
        runner: "dotnet".to_owned(),
        collection_error: UNCOMPILED.is_match(output) && output.contains("error CS"),
        ..TestReport::default()
    };
    let mut sums = 0;
    let lines: Vec<&str> = output.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(sum) = SUMMARY.captures(line) {
            sums += 1;
            report.failed = report.failed.saturating_add(number(&sum[1]));
            report.passed = report.passed.saturating_add(number(&sum[2]));
            report.skipped = report.skipped.saturating_add(number(&sum[3]));
        } else if let Some(id) = FAILED.first(line) {
            let rest = lines.get(at + 1..).unwrap_or_default().iter().copied();
            let rest = rest.filter(|line| line.trim() != "Error Message:");
            let words = message(rest, |line| {
                line.trim() == "Stack Trace:" || FAILED.is_match(line)
            });
            report.failing.push(failed(id, words));
        }
    }
    (sums > 0 || report.collection_error || EMPTY.is_match(output)).then_some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{counts, failing, fixture};

    #[test]
    fn counts_ids_and_first_lines_are_read() {
        let report = parse(&fixture("dotnet_failed.txt")).unwrap();
        assert_eq!(counts(&report), (2, 1, 1));
        assert_eq!(failing(&report), ["Shop.Tests.CartTests.EmptyCart"]);
        assert!(report.failing[0].message.starts_with("Assert.Equal() Failure"));
    }

    #[test]
    fn uncompiled_dotnet_tests_are_collection_error() {
        let report = parse(&fixture("dotnet_collection_error.txt")).unwrap();
        assert!(report.collection_error && report.ran() == 0);
    }
}
