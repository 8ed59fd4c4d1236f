//! Parsers of `CTest`, Meson, `GoogleTest` and Catch2, the runners of C and C++.

use std::collections::HashSet;

use domain::check::TestReport;

use super::{count_items, failed_test, first_message_lines, new_report, parse_group, parse_number};
use crate::pattern::LazyPattern;

static CTEST: LazyPattern = LazyPattern::new(r"(?m)^\d+% tests passed, (\d+) tests? failed out of (\d+)$");
static CTEST_LINE: LazyPattern = LazyPattern::new(
    r"^\s*\d+/\d+ Test +#\d+: (\S.*?) \.*\s*(\*{3})?(Passed|Failed|Exception|Timeout|Not Run|Skipped|Subprocess|Required|Bad)\b(.*)$",
);
static CTEST_EMPTY: LazyPattern = LazyPattern::new(r"(?m)^No tests were found!!!$");
static MESON: LazyPattern =
    LazyPattern::new(r"^(Ok|Expected Fail|Fail|Unexpected Pass|Skipped|Timeout): +(\d+)\s*$");
static MESON_LINE: LazyPattern = LazyPattern::new(
    r"^ *\d+/\d+ (\S.*?) +(OK|FAIL|SKIP|TIMEOUT|ERROR|EXPECTEDFAIL|UNEXPECTEDPASS) +[\d.]+s\b",
);
static GOOGLE: LazyPattern =
    LazyPattern::new(r"(?m)^\[==========\] \d+ tests? from \d+ test (?:suites?|cases?) ran\.");
static GOOGLE_LINE: LazyPattern =
    LazyPattern::new(r"^\[ +(OK|FAILED|SKIPPED|PASSED) +\] (\S+)(?:, where .*)?(?: \(\d+ ms\))?$");
static CATCH: LazyPattern = LazyPattern::new(
    r"^test cases: +(\d+)(?: \| +(\d+) passed)?(?: \| +(\d+) failed)?(?: \| +(\d+) (?:skipped|failed as expected))?$",
);
static CATCH_ALL: LazyPattern =
    LazyPattern::new(r"^All tests passed \(\d+ assertions? in (\d+) test cases?\)$");

pub(super) fn parse_native_tests(output: &str) -> Option<TestReport> {
    read_ctest(output)
        .or_else(|| read_meson(output))
        .or_else(|| read_google(output))
        .or_else(|| read_catch(output))
}

fn read_ctest(output: &str) -> Option<TestReport> {
    let mut report = new_report("ctest");
    let mut sums = 0;
    for sum in CTEST.all(output) {
        let (failed, all) = (parse_number(&sum[1]), parse_number(&sum[2]));
        sums += 1;
        report.failed = report.failed.saturating_add(failed);
        report.passed = report.passed.saturating_add(all.saturating_sub(failed));
    }
    if sums == 0 {
        return CTEST_EMPTY.is_match(output).then_some(report);
    }
    for found in output.lines().filter_map(|line| CTEST_LINE.captures(line)) {
        let name = found[1].to_owned();
        match &found[3] {
            "Passed" => report.passing.push(name),
            "Skipped" => report.skipping.push(name),
            "Not Run" if found[4].contains("Disabled") => report.skipping.push(name),
            what => {
                let message = format!("{what}{}", found[4].split("  ").next().unwrap_or_default());
                report.failing.push(failed_test(name, message));
            }
        }
    }
    // The sum of `CTest` counts skipped tests as passed and omits disabled ones.
    let named = count_items(&report.passing);
    report.passed = if named > 0 {
        report.passed.min(named)
    } else {
        report.passed
    };
    report.skipped = count_items(&report.skipping);
    Some(report)
}

fn read_meson(output: &str) -> Option<TestReport> {
    let mut report = new_report("meson");
    let mut sums = 0;
    for sum in output.lines().filter_map(|line| MESON.captures(line)) {
        sums += 1;
        let count = parse_number(&sum[2]);
        let counter = match &sum[1] {
            "Ok" => &mut report.passed,
            "Fail" | "Timeout" | "Unexpected Pass" => &mut report.failed,
            _ => &mut report.skipped,
        };
        *counter = counter.saturating_add(count);
    }
    for found in output.lines().filter_map(|line| MESON_LINE.captures(line)) {
        match &found[2] {
            "OK" => report.passing.push(found[1].to_owned()),
            "SKIP" | "EXPECTEDFAIL" => report.skipping.push(found[1].to_owned()),
            what => report.failing.push(failed_test(&found[1], what)),
        }
    }
    // A single sum line may be output of another program; Meson always prints several.
    (sums >= 2).then_some(report)
}

fn read_google(output: &str) -> Option<TestReport> {
    if !GOOGLE.is_match(output) {
        return None;
    }
    let mut report = new_report("googletest");
    let lines: Vec<&str> = output.lines().collect();
    let (mut failing, mut skipping) = (HashSet::new(), HashSet::new());
    // Line after the start of the present test.
    let mut start = 0;
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("[ RUN") {
            start = at + 1;
        }
        let Some(found) = GOOGLE_LINE.captures(line).filter(|found| found[2].contains('.')) else {
            continue;
        };
        let id = found[2].trim_end_matches(',').to_owned();
        match &found[1] {
            "OK" => report.passing.push(id),
            "SKIPPED" if skipping.insert(id.clone()) => report.skipping.push(id),
            "FAILED" if failing.insert(id.clone()) => {
                let own = lines.get(start..at).unwrap_or_default().iter().copied();
                report
                    .failing
                    .push(failed_test(id, first_message_lines(own, |_| false)));
            }
            _ => {}
        }
    }
    report.passed = count_items(&report.passing);
    report.failed = count_items(&report.failing);
    report.skipped = count_items(&report.skipping);
    Some(report)
}

fn read_catch(output: &str) -> Option<TestReport> {
    let mut report = new_report("catch2");
    let mut sums = 0;
    for line in output.lines() {
        if let Some(all) = CATCH_ALL.first(line) {
            report.passed = report.passed.saturating_add(parse_number(all));
            sums += 1;
        } else if let Some(sum) = CATCH.captures(line) {
            let count = |group| parse_group(&sum, group);
            report.passed = report.passed.saturating_add(count(2));
            report.failed = report.failed.saturating_add(count(3));
            report.skipped = report.skipped.saturating_add(count(4));
            sums += 1;
        }
    }
    (sums > 0).then_some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn ctest_is_read_with_names() {
        let report = parse_native_tests(&read_fixture("ctest_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 1));
        assert_eq!(list_failing_tests(&report), ["total", "gone"]);
        assert_eq!(report.failing[1].message, "Not Run");
        assert_eq!(report.passing, ["empty_cart"]);
        assert_eq!(parse_native_tests("No tests were found!!!\n").unwrap().ran(), 0);
    }

    #[test]
    fn meson_and_libraries_of_tests_are_read() {
        let meson = "1/3 empty cart OK 0.01s\n2/3 total     FAIL 0.02s exit status 1\n3/3 later     SKIP 0.00s\n\nOk:                 1\nFail:               1\nSkipped:            1\n";
        let report = parse_native_tests(meson).unwrap();
        assert_eq!(
            (count_results(&report), list_failing_tests(&report)),
            ((1, 1, 1), vec!["total"])
        );
        let google = "[ RUN      ] Cart.Total\ncart_test.cc:4: Failure\nExpected equality\n[  FAILED  ] Cart.Total (0 ms)\n[ RUN      ] Cart.Empty\n[       OK ] Cart.Empty (0 ms)\n[==========] 2 tests from 1 test suite ran. (0 ms total)\n[  PASSED  ] 1 test.\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] Cart.Total\n";
        let report = parse_native_tests(google).unwrap();
        assert_eq!(
            (count_results(&report), list_failing_tests(&report)),
            ((1, 1, 0), vec!["Cart.Total"])
        );
        assert!(report.failing[0].message.starts_with("cart_test.cc:4: Failure"));
        assert_eq!(
            count_results(
                &parse_native_tests(
                    "test cases: 3 | 2 passed | 1 failed\nassertions: 3 | 2 passed | 1 failed\n"
                )
                .unwrap()
            ),
            (2, 1, 0)
        );
        assert_eq!(
            count_results(&parse_native_tests("All tests passed (3 assertions in 2 test cases)\n").unwrap()),
            (2, 0, 0)
        );
    }
}
