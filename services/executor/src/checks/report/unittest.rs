//! Parser of Python's unittest and of runners based on it, such as Django's test command.

use std::collections::BTreeSet;

use domain::check::TestReport;

use super::{failed_test, first_message_lines, parse_number};
use crate::pattern::LazyPattern;

static RAN: LazyPattern = LazyPattern::new(r"^Ran (\d+) tests? in [\d.]+s$");
static VERDICT: LazyPattern = LazyPattern::new(r"^(OK|FAILED|NO TESTS RAN)(?: \((.*)\))?$");
static COUNT: LazyPattern =
    LazyPattern::new(r"(failures|errors|skipped|expected failures|unexpected successes)=(\d+)");
static HEADING: LazyPattern = LazyPattern::new(r"^(?:FAIL|ERROR): (\S+) \(([^)]*)\)");
static VERBOSE: LazyPattern =
    LazyPattern::new(r"^(\w+) \(([\w.<>]+)\) \.\.\. (ok|skipped|expected failure)\b");
static NAMED: LazyPattern = LazyPattern::new(r"^(\w+) \(([\w.<>]+)\)$");
static DESCRIBED: LazyPattern = LazyPattern::new(r" \.\.\. (ok|skipped|expected failure)\b");
/// Class under which unittest lists a module that could not be imported.
const UNLOADED: &str = "unittest.loader._FailedTest";
/// Fixtures whose errors unittest lists like tests, and does not count as such.
const FIXTURES: [&str; 4] = ["setUpClass", "setUpModule", "tearDownClass", "tearDownModule"];

pub(super) fn parse_unittest(output: &str) -> Option<TestReport> {
    let lines: Vec<&str> = output.lines().collect();
    let (mut runs, mut ran, mut failures, mut left_out) = (0, 0_u32, 0_u32, 0_u32);
    for (at, line) in lines.iter().enumerate() {
        let Some(number) = RAN.first(line) else { continue };
        let mut rest = lines.iter().skip(at + 1).take_while(|line| !RAN.is_match(line));
        let Some(verdict) = rest.find_map(|line| VERDICT.captures(line)) else {
            continue;
        };
        runs += 1;
        ran = ran.saturating_add(parse_number(number));
        for count in COUNT.all(verdict.get(2).map_or("", |counts| counts.as_str())) {
            let number = parse_number(&count[2]);
            match &count[1] {
                "skipped" | "expected failures" => left_out = left_out.saturating_add(number),
                _ => failures = failures.saturating_add(number),
            }
        }
    }
    if runs == 0 {
        return None;
    }
    let mut report = TestReport {
        runner: "unittest".to_owned(),
        skipped: left_out,
        ..TestReport::default()
    };
    let headings = read_failure_headings(&lines, &mut report);
    report.collection_error = headings.unloaded > 0;
    let failed = failures.saturating_sub(headings.repeated);
    report.failed = failed.saturating_sub(headings.unloaded);
    let failed_tests = failed.saturating_sub(headings.fixtures);
    report.passed = ran.saturating_sub(failed_tests).saturating_sub(left_out);
    // A test with a description prints it, with the result, in the next line.
    let pairs = lines.iter().zip(lines.iter().skip(1).chain([&""]));
    let verbose = pairs.filter_map(|(line, next)| {
        let own = VERBOSE.captures(line);
        let described = || {
            NAMED
                .captures(line)
                .filter(|_| !NAMED.is_match(next) && !VERBOSE.is_match(next))
                .and_then(|name| {
                    let result = DESCRIBED.captures(next)?;
                    Some((test_identifier(&name[1], &name[2]), result[1].to_owned()))
                })
        };
        own.map(|found| (test_identifier(&found[1], &found[2]), found[3].to_owned()))
            .or_else(described)
    });
    for (id, result) in verbose.collect::<Vec<_>>() {
        match result.as_str() {
            "ok" => report.passing.push(id),
            _ => report.skipping.push(id),
        }
    }
    Some(report)
}

/// Numbers of headings that are not another failing test.
#[derive(Default)]
struct HeadingCounts {
    /// Modules that could not be imported.
    unloaded: u32,
    /// Further failures of a test: of its subtests, or of its cleanup.
    repeated: u32,
    /// Failing fixtures of a class or a module.
    fixtures: u32,
}

/// Reads the failing tests.
fn read_failure_headings(lines: &[&str], report: &mut TestReport) -> HeadingCounts {
    let (mut counts, mut known) = (HeadingCounts::default(), BTreeSet::new());
    for (at, line) in lines.iter().enumerate() {
        let Some(found) = HEADING.captures(line) else {
            continue;
        };
        if found[2].starts_with(UNLOADED) {
            counts.unloaded += 1;
            continue;
        }
        let id = test_identifier(&found[1], &found[2]);
        if !known.insert(id.clone()) {
            counts.repeated += 1;
            continue;
        }
        counts.fixtures += u32::from(FIXTURES.contains(&&found[1]));
        // The description of a test may precede the line.
        let rule = lines.iter().skip(at + 1).take(2).position(is_rule).unwrap_or(0);
        let rest = lines.iter().skip(at + 2 + rule);
        let is_end = |line: &&&str| line.starts_with("======") || is_rule(line) || HEADING.is_match(line);
        let traceback: Vec<&str> = rest.take_while(|line| !is_end(line)).copied().collect();
        let message = first_message_lines(find_error(&traceback).iter().copied(), |_| false);
        report.failing.push(failed_test(id, message));
    }
    counts
}

fn is_rule(line: &&str) -> bool {
    line.starts_with("------")
}

/// Returns a traceback from its error on, which follows the last frame. Compared values may come after the error.
fn find_error<'l, 't>(traceback: &'l [&'t str]) -> &'l [&'t str] {
    let is_error =
        |line: &&str| !line.starts_with(' ') && !line.trim().is_empty() && !line.starts_with("Traceback");
    let is_frame = |line: &&str| line.starts_with("  File \"");
    // The text of an error may end in a frame, like that of a doctest.
    let last_error = traceback.iter().rposition(is_error).unwrap_or(0);
    let before = traceback.get(..last_error).unwrap_or_default();
    let frame = before.iter().rposition(is_frame).unwrap_or(0);
    let rest = traceback.get(frame..).unwrap_or_default();
    let error = rest.iter().position(is_error);
    error.and_then(|at| rest.get(at..)).unwrap_or_default()
}

/// Builds the identifier of a test. Since Python 3.11 the printed location already ends in the test's name.
fn test_identifier(test: &str, place: &str) -> String {
    if place.ends_with(&format!(".{test}")) {
        place.to_owned()
    } else {
        format!("{place}.{test}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_ids_and_first_lines_are_read() {
        let report = parse_unittest(&read_fixture("unittest_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 1));
        assert_eq!(
            list_failing_tests(&report),
            ["test_cart.Cart.test_empty", "test_cart.Cart.test_total"]
        );
        assert_eq!(report.failing[0].message, "KeyError: 'items'");
        assert_eq!(report.failing[1].message, "AssertionError: 0 != 30");
        assert_eq!(report.passing, ["test_cart.Cart.test_count"]);
    }

    #[test]
    fn message_begins_with_error_of_traceback() {
        let report = parse_unittest(&read_fixture("unittest_values_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (0, 4, 0));
        let first_lines: Vec<&str> = report
            .failing
            .iter()
            .map(|test| test.message.lines().next().unwrap())
            .collect();
        assert_eq!(
            first_lines,
            [
                "ValueError: bad",
                "AssertionError: 1 != 2",
                "AssertionError: Lists differ: [1, 2] != [1, 3]",
                r"AssertionError: 'a\nb\n' != 'a\nc\n'",
            ]
        );
    }

    #[test]
    fn subtests_and_fixtures_change_no_other_count() {
        let report = parse_unittest(&read_fixture("unittest_subtests_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 0));
        assert_eq!(
            list_failing_tests(&report),
            ["test_cart.Shop.setUpClass", "test_cart.Cart.test_totals"]
        );
        assert_eq!(report.failing[1].message, "AssertionError: 0 != 1");
    }

    #[test]
    fn error_may_end_in_frame_or_lack_one() {
        let doctest = [
            "Traceback (most recent call last):",
            "  File \"doctest.py\", line 1, in runTest",
            "AssertionError: Failed doctest test for shop",
            "  File \"shop.py\", line 0, in shop",
        ];
        assert_eq!(find_error(&doctest), &doctest[2..]);
        assert_eq!(
            find_error(&["Traceback (most recent call last):", "KeyError: 'a'"]),
            ["KeyError: 'a'"]
        );
        assert!(find_error(&["", " a"]).is_empty());
    }

    #[test]
    fn described_tests_are_named_too() {
        let output = "test_a (t.A.test_a) ... ok\ntest_b (t.A.test_b)\nAdds up. ... ok\ntest_c (t.A.test_c)\nLater. ... skipped 'no'\ntest_d (t.A.test_d)\nWrong. ... FAIL\n\n----\nRan 4 tests in 0.001s\n\nFAILED (failures=1, skipped=1)\n";
        let report = parse_unittest(output).unwrap();
        assert_eq!(report.passing, ["t.A.test_a", "t.A.test_b"]);
        assert_eq!(report.skipping, ["t.A.test_c"]);
    }

    #[test]
    fn unimportable_unittest_module_is_collection_error() {
        let report = parse_unittest(&read_fixture("unittest_collection_error.txt")).unwrap();
        assert_eq!(count_results(&report), (0, 0, 0));
        assert!(report.collection_error);
    }

    #[test]
    fn no_tests_are_no_tests() {
        let report = parse_unittest("\n------\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n").unwrap();
        assert_eq!(report.ran(), 0);
    }
}
