//! Parsers of runners whose sums are read, with the names of failing tests where one line has them: Perl's
//! prove, sbt, Bazel, and those of Dart and Flutter.

use domain::check::TestReport;

use super::{count_items, failed_test, new_report, parse_group, parse_number};
use crate::pattern::LazyPattern;

static PROVE: LazyPattern =
    LazyPattern::new(r"(?m)^Files=\d+, Tests=(\d+), .*\nResult: (PASS|FAIL|NOTESTS)$");
static PROVE_FAILED: LazyPattern =
    LazyPattern::new(r"^(\S+\.t)\s+\(Wstat: .*?(?:Tests: (\d+) Failed: (\d+))\)$");
static SBT: LazyPattern = LazyPattern::new(
    r"\[(?:info|error)\] (?:Passed|Failed|Error): Total (\d+), Failed (\d+), Errors (\d+), Passed (\d+)(?:, Skipped (\d+))?",
);
static SBT_FAILED: LazyPattern = LazyPattern::new(r"^\[info\] - (.+?) \*\*\* FAILED \*\*\*");
static BAZEL: LazyPattern = LazyPattern::new(r"(?m)^Executed (\d+) out of (\d+) tests?: ");
static BAZEL_LINE: LazyPattern = LazyPattern::new(
    r"^(//\S+|@\S+)\s+(?:\(cached\) )?(PASSED|FAILED TO BUILD|FAILED|TIMEOUT|FLAKY|NO STATUS|SKIPPED)\b",
);
static DART: LazyPattern = LazyPattern::new(
    r"^\d+:\d+ \+(\d+)(?: ~(\d+))?(?: -(\d+))?: (All tests passed!|Some tests failed\.|All tests skipped\.)$",
);
static DART_FAILED: LazyPattern = LazyPattern::new(r"^\d+:\d+ \+\d+(?: ~\d+)? -\d+: (.+?) \[E\]$");

pub(super) fn parse_summaries(output: &str) -> Option<TestReport> {
    let found = [read_prove, read_sbt, read_bazel, read_dart];
    found.into_iter().find_map(|read| read(output))
}

fn read_prove(output: &str) -> Option<TestReport> {
    let mut report = new_report("prove");
    let (mut sums, mut has_failed) = (0, false);
    for sum in PROVE.all(output) {
        sums += 1;
        report.passed = report.passed.saturating_add(parse_number(&sum[1]));
        has_failed |= &sum[2] == "FAIL";
    }
    for found in output.lines().filter_map(|line| PROVE_FAILED.captures(line)) {
        let bad = parse_number(&found[3]);
        report.failed = report.failed.saturating_add(bad);
        report
            .failing
            .push(failed_test(&found[1], format!("{bad} failed")));
    }
    // The sum of prove counts all tests, including failed ones.
    report.passed = report.passed.saturating_sub(report.failed);
    // A script that died before its plan names no test, so only the verdict shows the failure.
    report.collection_error = has_failed && report.failed == 0;
    (sums > 0).then_some(report)
}

fn read_sbt(output: &str) -> Option<TestReport> {
    let mut report = new_report("sbt");
    let mut sums = 0;
    for sum in SBT.all(output) {
        let count = |group| parse_group(&sum, group);
        sums += 1;
        let bad = count(2).saturating_add(count(3));
        // A suite that was aborted shows only in the verdict.
        report.collection_error |= bad == 0 && !sum[0].contains("] Passed: ");
        report.failed = report.failed.saturating_add(bad);
        report.passed = report.passed.saturating_add(count(4));
        report.skipped = report.skipped.saturating_add(count(5));
    }
    let names = output.lines().filter_map(|line| SBT_FAILED.first(line));
    report.failing = names.map(|name| failed_test(name, "")).collect();
    (sums > 0).then_some(report)
}

fn read_bazel(output: &str) -> Option<TestReport> {
    if !BAZEL.is_match(output) {
        return None;
    }
    let mut report = new_report("bazel");
    for found in output.lines().filter_map(|line| BAZEL_LINE.captures(line)) {
        let id = found[1].to_owned();
        match &found[2] {
            "PASSED" => report.passing.push(id),
            "SKIPPED" | "NO STATUS" => report.skipping.push(id),
            "FAILED TO BUILD" => report.collection_error = true,
            what => report.failing.push(failed_test(id, what)),
        }
    }
    report.passed = count_items(&report.passing);
    report.failed = count_items(&report.failing);
    report.skipped = count_items(&report.skipping);
    Some(report)
}

fn read_dart(output: &str) -> Option<TestReport> {
    let mut report = new_report("dart");
    let mut sums = 0;
    for sum in output.lines().filter_map(|line| DART.captures(line)) {
        let count = |group| parse_group(&sum, group);
        sums += 1;
        report.passed = report.passed.saturating_add(count(1));
        report.skipped = report.skipped.saturating_add(count(2));
        report.failed = report.failed.saturating_add(count(3));
    }
    if sums == 0 {
        return None;
    }
    for name in output.lines().filter_map(|line| DART_FAILED.first(line)) {
        report.collection_error |= name.starts_with("loading ");
        report.failing.push(failed_test(name, ""));
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests};

    #[test]
    fn sums_and_names_of_failures_are_read() {
        for (output, expected, failures) in [
            (
                "t/cart.t .. ok\nAll tests successful.\nFiles=1, Tests=3,  0 wallclock secs ( 0.02 usr )\nResult: PASS\n",
                (3, 0, 0),
                vec![],
            ),
            (
                "t/cart.t .. Dubious\n\nTest Summary Report\n-------------------\nt/cart.t (Wstat: 256 (exited 1) Tests: 3 Failed: 1)\n  Failed test:  2\nFiles=1, Tests=3,  0 wallclock secs\nResult: FAIL\n",
                (2, 1, 0),
                vec!["t/cart.t"],
            ),
            (
                "[info] - adds up *** FAILED ***\n[error] Failed: Total 3, Failed 1, Errors 0, Passed 2\n",
                (2, 1, 0),
                vec!["adds up"],
            ),
            (
                "//shop:cart_test                        PASSED in 0.1s\n//shop:total_test                       FAILED in 0.1s\n  /x/test.log\n\nExecuted 2 out of 2 tests: 1 test passes and 1 fails locally.\n",
                (1, 1, 0),
                vec!["//shop:total_test"],
            ),
            (
                "00:00 +1: cart is empty\n00:00 +1 -1: cart adds up [E]\n  Expected: <30>\n00:00 +1 -1: Some tests failed.\n",
                (1, 1, 0),
                vec!["cart adds up"],
            ),
        ] {
            let report = parse_summaries(output).unwrap();
            assert_eq!(
                (count_results(&report), list_failing_tests(&report)),
                (expected, failures),
                "{output}"
            );
        }
        let died =
            "t/cart.t .. Dubious, test returned 255\nFiles=1, Tests=0,  0 wallclock secs\nResult: FAIL\n";
        assert!(parse_summaries(died).unwrap().collection_error);
    }
}
