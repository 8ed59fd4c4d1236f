//! Parser of Deno's own runner.

use std::collections::HashMap;

use domain::check::TestReport;

use super::{count_items, failed_test, first_message_lines, new_report, parse_group};
use crate::pattern::LazyPattern;

static SUMMARY: LazyPattern = LazyPattern::new(
    r"(?m)^(?:ok|FAILED) \| (\d+) passed(?: \(\d+ steps?\))? \| (\d+) failed(?: \(\d+ steps?\))?(?: \| (\d+) ignored(?: \(\d+ steps?\))?)?(?: \| \d+ measured)?(?: \| \d+ filtered out)? \(",
);
static TEST: LazyPattern = LazyPattern::new(r"^(\s*)(\S.*?) \.\.\. (ok|FAILED|ignored)(?: \(.*\))?$");
static ERROR: LazyPattern = LazyPattern::new(r"^(.+?) => \S+:\d+:\d+$");
/// Messages about a module that cannot be found, parsed or type-checked.
static UNLOADED: LazyPattern = LazyPattern::new(
    r"(?m)^error: (?:Module not found|Type checking failed|The module's source code could not be parsed|.*Uncaught)|^TS\d+ \[ERROR\]:|^.+ \(uncaught error\)$",
);
static RUNNING: LazyPattern =
    LazyPattern::new(r"(?m)^(?:running \d+ tests? from |Check file:|\s+at file://.*\.tsx?:|Task test )");

/// Mark between the titles of a test and of its step.
const STEP: &str = " ... ";
/// Limit of the steps around a failing one.
const MAX_STEPS: usize = 16;

pub(super) fn parse_deno(output: &str) -> Option<TestReport> {
    let mut report = new_report("deno");
    report.collection_error = UNLOADED.is_match(output) && RUNNING.is_match(output);
    let mut sums = 0;
    for sum in SUMMARY.all(output) {
        let count = |group| parse_group(&sum, group);
        sums += 1;
        report.passed = report.passed.saturating_add(count(1));
        report.failed = report.failed.saturating_add(count(2));
        report.skipped = report.skipped.saturating_add(count(3));
    }
    if sums == 0 && !report.collection_error {
        return None;
    }
    let lines: Vec<&str> = output.lines().collect();
    let errors = index_errors(&lines);
    for found in lines.iter().filter_map(|line| TEST.captures(line)) {
        // Indented lines are steps of a test; the line of the test has the result of all of them.
        match (found[1].is_empty(), &found[3]) {
            (true, "ok") => report.passing.push(found[2].to_owned()),
            (true, "ignored") => report.skipping.push(found[2].to_owned()),
            (true, _) => {
                let id = &found[2];
                let message = find_error(&lines, errors.get(id).copied());
                report.failing.push(failed_test(id, message));
            }
            _ => {}
        }
    }
    // Deno lists an error outside of a test like a failing test, under the name of its module.
    report.collection_error |= report
        .failing
        .iter()
        .any(|test| test.id.ends_with("(uncaught error)"));
    report
        .failing
        .retain(|test| !test.id.ends_with("(uncaught error)"));
    // Deno's sum counts a failing test and each of its failing steps, so the named tests are counted instead.
    let named = count_items(&report.failing);
    report.failed = if named > 0 { named } else { report.failed };
    Some(report)
}

/// Returns the number of the first line that heads an error of each test. The error of a step is headed by the titles
/// of its test and of the step.
fn index_errors<'t>(lines: &[&'t str]) -> HashMap<&'t str, usize> {
    let mut places = HashMap::new();
    for (at, line) in lines.iter().copied().enumerate() {
        let Some(head) = ERROR.first(line) else {
            continue;
        };
        let tests = head.match_indices(STEP).map(|(end, _)| end).take(MAX_STEPS);
        for end in tests.chain([head.len()]) {
            places.entry(head.get(..end).unwrap_or(head)).or_insert(at);
        }
    }
    places
}

/// Returns the first line below the heading of an error; empty without a heading.
fn find_error(lines: &[&str], heading: Option<usize>) -> String {
    let rest = heading.and_then(|at| lines.get(at + 1..)).unwrap_or_default();
    first_message_lines(rest.iter().copied().take(1), |_| false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_names_and_messages_are_read() {
        let report = parse_deno(&read_fixture("deno_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 1));
        assert_eq!(list_failing_tests(&report), ["total", "steps"]);
        assert_eq!(report.failing[0].message, "error: Error: 0 is not 30");
        assert_eq!(report.passing, ["empty cart"]);
    }

    #[test]
    fn missing_deno_module_is_collection_error() {
        let report = parse_deno(&read_fixture("deno_collection_error.txt")).unwrap();
        assert!(report.collection_error && report.ran() == 0);
    }
}
