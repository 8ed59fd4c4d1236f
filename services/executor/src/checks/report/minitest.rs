//! Parser of Ruby's Minitest (also in Rails) and test-unit.

use domain::check::TestReport;

use super::{failed_test, first_message_lines, new_report, parse_group};
use crate::pattern::LazyPattern;

static SUMMARY: LazyPattern = LazyPattern::new(
    r"^(\d+) (?:runs|tests), \d+ assertions, (\d+) failures, (\d+) errors(?:, (\d+) skips)?(?:, (\d+) pendings, (\d+) omissions, \d+ notifications)?$",
);
static VERBOSE: LazyPattern = LazyPattern::new(r"^(\S.*?#\S.*?) = [\d.]+ s = (\.|F|E|S)$");
/// Heading of a problem, such as `  1) Failure:`. The next line is `CartTest#test_total [t.rb:4]:`.
static HEADING: LazyPattern = LazyPattern::new(r"^\s*\d+\) (Failure|Error|Skipped):$");
static NAME: LazyPattern = LazyPattern::new(r"^(\S.*?#.+?)(?: \[.*\])?:$");
/// Problem line: `Failure: test_total(CartTest)` in test-unit; in Rails `Failure:` alone, with the name in
/// the next line.
static UNIT: LazyPattern = LazyPattern::new(r"^(Failure|Error): (\S.*\(\S+\))(?::.*)?$");
static RAILS: LazyPattern = LazyPattern::new(r"^(Failure|Error):$");
static OMITTED: LazyPattern = LazyPattern::new(r"^(?:Omission|Pending): .*\[(\S.*\(\S+\))\]$");

pub(super) fn parse_minitest(output: &str) -> Option<TestReport> {
    let lines: Vec<&str> = output.lines().collect();
    let mut report = new_report("minitest");
    let mut sums = 0;
    for sum in lines.iter().filter_map(|line| SUMMARY.captures(line)) {
        let count = |group| parse_group(&sum, group);
        sums += 1;
        let bad = count(2).saturating_add(count(3));
        let left_out = count(4).saturating_add(count(5)).saturating_add(count(6));
        report.failed = report.failed.saturating_add(bad);
        report.skipped = report.skipped.saturating_add(left_out);
        let passed = count(1).saturating_sub(bad).saturating_sub(left_out);
        report.passed = report.passed.saturating_add(passed);
    }
    if sums == 0 {
        return None;
    }
    for (at, line) in lines.iter().enumerate() {
        let rest = lines.get(at + 1..).unwrap_or_default();
        if let Some(found) = VERBOSE.captures(line) {
            match &found[2] {
                "." => report.passing.push(stable_name(&found[1])),
                "S" => report.skipping.push(stable_name(&found[1])),
                _ => {}
            }
        } else if HEADING.first(line).is_some_and(|what| what != "Skipped") || RAILS.is_match(line) {
            let name = rest.first().and_then(|line| NAME.first(line));
            report.failing.extend(
                name.map(|name| {
                    failed_test(stable_name(name), find_message(rest.get(1..).unwrap_or_default()))
                }),
            );
        } else if let Some(found) = UNIT.captures(line) {
            let message = rest
                .iter()
                .copied()
                .filter(|line| !line.starts_with(' ') && !is_frame(line) && !line.starts_with('='));
            report.failing.push(failed_test(
                &found[2],
                first_message_lines(message, |line| line.starts_with("diff:")),
            ));
        } else if let Some(name) = OMITTED.first(line) {
            report.skipping.push(name.to_owned());
        }
    }
    Some(report)
}

/// Returns a name without the number that `it` puts into it. It counts the tests before, so a new test would
/// rename all that follow.
fn stable_name(name: &str) -> String {
    let numbered = name.split_once("#test_").and_then(|(class, test)| {
        let (number, own) = test.split_once('_')?;
        let is_number = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| format!("{class}#test_{own}"))
    });
    numbered.unwrap_or_else(|| name.to_owned())
}

fn find_message(lines: &[&str]) -> String {
    let own = lines.iter().copied().take_while(|line| !line.is_empty());
    first_message_lines(own, is_frame)
}

fn is_frame(line: &str) -> bool {
    line.contains(":in `") || line.contains(":in '")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_names_and_messages_are_read() {
        for (name, passing) in [("minitest_failed.txt", 0), ("minitest_verbose_failed.txt", 1)] {
            let report = parse_minitest(&read_fixture(name)).unwrap();
            assert_eq!(count_results(&report), (1, 2, 1), "{name}");
            let mut names = list_failing_tests(&report);
            names.sort_unstable();
            assert_eq!(names, ["CartTest#test_error", "CartTest#test_total"], "{name}");
            assert!(
                report
                    .failing
                    .iter()
                    .any(|test| test.message == "Expected: 30\nActual: 0"),
                "{report:?}"
            );
            assert_eq!(report.passing.len(), passing, "{name}");
        }
        let report = parse_minitest(&read_fixture("testunit_failed.txt")).unwrap();
        assert_eq!(
            (count_results(&report), list_failing_tests(&report)),
            ((1, 1, 1), vec!["test_total(CartTest)"])
        );
        assert_eq!(report.failing[0].message, "<30> expected but was\n<0>");
    }
}
