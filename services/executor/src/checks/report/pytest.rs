//! Parser of pytest, also with `-q`.

use domain::check::TestReport;

use super::{failed_test, new_report, parse_number};
use crate::pattern::LazyPattern;

/// Sum line, such as `==== 1 failed, 2 passed in 0.12s ====`, with or without the `=`.
static SUMMARY: LazyPattern = LazyPattern::new(
    r"^=* ?((?:\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?|rerun|subtests passed)(?:, )?)+|no tests ran) in [\d.]+ ?s(?:econds)?\b.*$",
);
static COUNT: LazyPattern =
    LazyPattern::new(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?|rerun)");
/// Line of the short summary, such as `FAILED tests/test_a.py::test_b - assert 1 == 2`.
static LINE: LazyPattern = LazyPattern::new(r"^(FAILED|ERROR|PASSED|XFAIL|XPASS|SKIPPED) (\S.*)$");
/// Messages of a run that stopped while it collected tests, or before it ran all of them.
static STOPPED: LazyPattern = LazyPattern::new(
    r"(?m)^!+ Interrupted: \d+ errors? during collection !+$|^!+ (?:KeyboardInterrupt|_pytest\.outcomes\.Exit: .*) !+$|^INTERNALERROR> |^ERROR: (?:not found|file or directory not found|usage)|^ImportError while loading conftest|^E +(?:ImportError|ModuleNotFoundError|SyntaxError)\b.*\n(?:.*\n)*?!+ ",
);

pub(super) fn parse_pytest(output: &str) -> Option<TestReport> {
    // A command may run pytest several times, and its exit code may be that of the last run alone.
    let summaries: Vec<&str> = output.lines().filter_map(|line| SUMMARY.first(line)).collect();
    let mut report = new_report("pytest");
    if summaries.is_empty() {
        // A broken `conftest.py` stops pytest before it prints a sum.
        report.collection_error = output.contains("ImportError while loading conftest");
        return report.collection_error.then_some(report);
    }
    let mut errors = 0_u32;
    for count in summaries.into_iter().flat_map(|summary| COUNT.all(summary)) {
        let (count, what) = (parse_number(&count[1]), &count[2]);
        match what {
            "passed" => report.passed = report.passed.saturating_add(count),
            "failed" => report.failed = report.failed.saturating_add(count),
            "error" | "errors" => errors = errors.saturating_add(count),
            "skipped" | "xfailed" => report.skipped = report.skipped.saturating_add(count),
            // A test that passes although a failure was expected is neither a pass nor a failure.
            _ => {}
        }
    }
    let uncollected = read_short_summary(output, &mut report);
    report.failed = report.failed.saturating_add(errors.saturating_sub(uncollected));
    report.collection_error = uncollected > 0 || STOPPED.is_match(output);
    Some(report)
}

/// Reads the short summary. Returns the number of errors that belong to no test.
fn read_short_summary(output: &str, report: &mut TestReport) -> u32 {
    let mut uncollected = 0;
    for line in output.lines() {
        let Some(found) = LINE.captures(line) else {
            continue;
        };
        let (what, rest) = (&found[1], found.get(2).map_or("", |rest| rest.as_str()));
        let (id, message) = split_message(rest);
        match what {
            "FAILED" => report.failing.push(failed_test(id, message)),
            "ERROR" if id.contains("::") => report.failing.push(failed_test(id, message)),
            "ERROR" => uncollected += u32::from(!id.starts_with("at ")),
            "PASSED" if id.contains("::") => report.passing.push(id.to_owned()),
            "XFAIL" if id.contains("::") => report.skipping.push(id.to_owned()),
            _ => {}
        }
    }
    uncollected
}

/// Splits a line of the short summary into the test and the message. Parameters may contain the mark between them.
fn split_message(rest: &str) -> (&str, &str) {
    let mark = rest.find(" - ").unwrap_or(rest.len());
    if !rest.get(..mark).is_some_and(|test| test.contains('[')) {
        return rest.split_once(" - ").unwrap_or((rest, ""));
    }
    match rest.split_once("] - ") {
        Some((test, message)) => (rest.get(..=test.len()).unwrap_or(test), message),
        None if rest.ends_with(']') => (rest, ""),
        None => rest.split_once(" - ").unwrap_or((rest, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_ids_and_first_lines_are_read() {
        let report = parse_pytest(&read_fixture("pytest_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (3, 2, 2));
        assert_eq!(
            list_failing_tests(&report),
            [
                "tests/test_cart.py::test_empty_cart",
                "tests/test_cart.py::test_total[two items-30]"
            ]
        );
        assert_eq!(report.failing[0].message, "KeyError: 'items'");
        assert_eq!(report.passing.len(), 3);
        assert_eq!(report.skipping, ["tests/test_cart.py::test_later"]);
        assert!(!report.collection_error);
    }

    #[test]
    fn parameters_may_contain_a_dash() {
        for (line, id, message) in [
            (
                "a.py::test_x[1 - 2] - assert 1 == 2",
                "a.py::test_x[1 - 2]",
                "assert 1 == 2",
            ),
            ("a.py::test_x[1 - 2]", "a.py::test_x[1 - 2]", ""),
            ("a.py::test_x[1]", "a.py::test_x[1]", ""),
            (
                "a.py::test_x - assert a[1] - b",
                "a.py::test_x",
                "assert a[1] - b",
            ),
            ("a.py::test_x", "a.py::test_x", ""),
        ] {
            assert_eq!(split_message(line), (id, message), "{line}");
        }
    }

    #[test]
    fn quiet_output_counts_too() {
        let report = parse_pytest("..s\n2 passed, 1 skipped in 0.03s\n").unwrap();
        assert_eq!(count_results(&report), (2, 0, 1));
    }

    #[test]
    fn unimportable_pytest_file_is_collection_error() {
        let report = parse_pytest(&read_fixture("pytest_collection_error.txt")).unwrap();
        assert_eq!(count_results(&report), (0, 0, 0));
        assert!(report.collection_error && report.failing.is_empty());
    }

    #[test]
    fn failing_fixture_is_failing_test() {
        let report = parse_pytest(&read_fixture("pytest_fixture_error.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 1, 0));
        assert_eq!(list_failing_tests(&report), ["tests/test_db.py::test_query"]);
        assert!(!report.collection_error);
    }

    #[test]
    fn no_tests_are_no_tests() {
        let report = parse_pytest("\n========= no tests ran in 0.00s =========\n").unwrap();
        assert_eq!(report.ran(), 0);
    }

    #[test]
    fn unloadable_conftest_is_collection_error() {
        let output = "ImportError while loading conftest '/w/conftest.py'.\nconftest.py:1: in <module>\n    import nope\n";
        assert!(parse_pytest(output).unwrap().collection_error);
    }
}
