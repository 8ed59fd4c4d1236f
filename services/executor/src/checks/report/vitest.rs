//! Parser of Vitest's default and verbose reporters.

use domain::check::TestReport;

use super::{TitleStack, failed_test, first_message_lines, measure_indentation, new_report, parse_number};
use crate::pattern::LazyPattern;

/// Sum line, such as `      Tests  1 failed | 2 passed (3)`.
static SUMMARY: LazyPattern = LazyPattern::new(r"^\s*Tests  (.*)$");
static FILES: LazyPattern = LazyPattern::new(r"(?m)^\s*Test Files  ");
static COUNT: LazyPattern = LazyPattern::new(r"(\d+) (failed|passed|skipped|todo|expected fail)");
/// Heading of a failure, such as ` FAIL  src/cart.test.ts > cart > is empty`.
static FAILURE: LazyPattern = LazyPattern::new(r"^\s*FAIL  ((?:\|[^|]+\| )?\S+)( >.*| \[.*\])?\s*$");
/// Line of a test, a group or a file: its indentation, its mark and its title, and the number of tests in it.
static LISTED: LazyPattern = LazyPattern::new(
    r"^(\s+)(✓|✔|×|✗|❯|↓) (.+?)(?:\s+\((\d+)( tests?)?(?: \|[^)]*)?\))?(?: \((?:retry|repeat) x\d+\))*(?: \d+(?:\.\d+)?m?s)?(?: \((?:retry|repeat) x\d+\))*$",
);
/// Mark between the titles in Vitest's own whole names.
const JOINT: &str = " > ";

pub(super) fn parse_vitest(output: &str) -> Option<TestReport> {
    let files = FILES.is_match(output);
    if !files && !output.contains("No test files found, exiting with code") {
        return None;
    }
    let summaries = output.lines().filter_map(|line| SUMMARY.first(line));
    let mut report = new_report("vitest");
    for count in summaries.flat_map(|summary| COUNT.all(summary)) {
        let number = parse_number(&count[1]);
        match &count[2] {
            "failed" => report.failed = report.failed.saturating_add(number),
            "passed" => report.passed = report.passed.saturating_add(number),
            _ => report.skipped = report.skipped.saturating_add(number),
        }
    }
    let lines: Vec<&str> = output.lines().collect();
    let mut titles = TitleStack::default();
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = FAILURE.captures(line) {
            let rest = found.get(2).map_or("", |rest| rest.as_str());
            let Some(name) = rest.strip_prefix(JOINT) else {
                // A file without a test's name failed as a whole: it could not be loaded.
                report.collection_error |= rest.starts_with(" [");
                continue;
            };
            let id = format!("{}{JOINT}{}", &found[1], name.trim());
            let is_end = |line: &str| line.trim_start().starts_with('❯') || line.contains("⎯⎯⎯⎯");
            let message =
                first_message_lines(lines.get(at + 1..).unwrap_or_default().iter().copied(), is_end);
            report.failing.push(failed_test(id, message));
        } else if let Some(found) = LISTED.captures(line) {
            let (indentation, mark) = (found[1].len(), &found[2]);
            let own = found.get(3).map_or("", |own| own.as_str());
            let next = lines.get(at + 1).copied().unwrap_or_default();
            let is_group = match (found.get(4), found.get(5)) {
                (Some(_), Some(_)) => true,
                (Some(_), None) => measure_indentation(next) > indentation,
                (None, _) => false,
            };
            if is_group {
                titles.open(indentation, own);
                continue;
            }
            let number = found.get(4).map(|number| format!(" ({})", number.as_str()));
            let id = titles.name(indentation, own, JOINT) + &number.unwrap_or_default();
            // A name without its file is a line of something else.
            match mark {
                _ if !id.contains(JOINT) => {}
                "✓" | "✔" => report.passing.push(id),
                "↓" => report.skipping.push(id),
                // The heading of the failure names it, with its message.
                _ => {}
            }
        }
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_ids_and_first_lines_are_read() {
        let report = parse_vitest(&read_fixture("vitest_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 1));
        assert_eq!(
            list_failing_tests(&report),
            [
                "cart.vitest.mjs > cart > empty cart",
                "cart.vitest.mjs > cart > total"
            ]
        );
        assert!(
            report.failing[1]
                .message
                .starts_with("AssertionError: expected +0 to be 30")
        );
        assert!(!report.collection_error);
    }

    #[test]
    fn unloaded_vitest_file_is_collection_error() {
        let report = parse_vitest(&read_fixture("vitest_collection_error.txt")).unwrap();
        assert_eq!(count_results(&report), (0, 0, 0));
        assert!(report.collection_error && report.failing.is_empty());
    }

    #[test]
    fn no_files_are_no_tests() {
        assert_eq!(
            parse_vitest("No test files found, exiting with code 1\n")
                .unwrap()
                .ran(),
            0
        );
    }
}
