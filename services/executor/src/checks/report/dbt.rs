//! Parser of `dbt test` and `dbt build`.

use domain::check::TestReport;

use super::{failed_test, index_lines, new_report, parse_number};
use crate::pattern::LazyPattern;

static DONE: LazyPattern =
    LazyPattern::new(r"Done\. PASS=(\d+) WARN=(\d+) ERROR=(\d+) SKIP=(\d+)(?: NO-OP=\d+)? TOTAL=\d+");
/// Result line, such as `12:00:01  2 of 3 FAIL 4 not_null_orders_id ........ [FAIL 4 in 0.05s]`.
static NODE: LazyPattern = LazyPattern::new(
    r"\d+ of \d+ (FAIL|ERROR|PASS|SKIP|WARN)(?: \d+)? (?:relation |creating \S+ \S+ model )?(\S+) \.*",
);
/// Heading of a problem, such as `Failure in test not_null_orders_id (models/schema.yml)`.
static PROBLEM: LazyPattern = LazyPattern::new(
    r"(?:Failure|Database Error|Compilation Error|Runtime Error) in (?:test|model|snapshot|seed) (\S+)",
);
static UNPARSED: LazyPattern = LazyPattern::new(
    r"(?m)Encountered an error:\s*(?:\n.*)?(?:Compilation|Parsing|Runtime) Error|^\S*\s*Parsing Error",
);

pub(super) fn parse_dbt(output: &str) -> Option<TestReport> {
    let mut report = new_report("dbt");
    let Some(done) = output.lines().rev().find_map(|line| DONE.captures(line)) else {
        report.collection_error = output.contains("Running with dbt=") && UNPARSED.is_match(output);
        return report.collection_error.then_some(report);
    };
    report.passed = parse_number(&done[1]);
    // Of several commands only the last one runs the tests, but each one may fail.
    let sums = output.lines().filter_map(|line| DONE.captures(line));
    report.failed = sums.fold(0_u32, |failed, sum| failed.saturating_add(parse_number(&sum[3])));
    // A test that only warns proves nothing, so it counts as skipped.
    report.skipped = parse_number(&done[2]).saturating_add(parse_number(&done[4]));
    let lines: Vec<&str> = output.lines().collect();
    let problems = index_lines(&lines, |line| PROBLEM.first(line));
    for found in lines.iter().filter_map(|line| NODE.captures(line)) {
        let id = found[2].to_owned();
        match &found[1] {
            "PASS" => report.passing.push(id),
            "SKIP" | "WARN" => report.skipping.push(id),
            _ => {
                let message = find_problem_message(&lines, problems.get(id.as_str()).copied());
                report.failing.push(failed_test(id, message));
            }
        }
    }
    Some(report)
}

/// Returns the line after the heading of the problem; empty without a heading.
fn find_problem_message(lines: &[&str], heading: Option<usize>) -> String {
    let line = heading
        .and_then(|at| lines.get(at + 1))
        .copied()
        .unwrap_or_default();
    // The time before the text changes with each run, so it is removed.
    line.split_once("  ")
        .map_or(line, |(_, rest)| rest)
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_ids_and_first_lines_are_read() {
        let report = parse_dbt(&read_fixture("dbt_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 1, 1));
        assert_eq!(list_failing_tests(&report), ["not_null_orders_id"]);
        assert_eq!(
            report.failing[0].message,
            "Got 4 results, configured to fail if != 0"
        );
        assert_eq!(report.passing, ["unique_orders_id"]);
    }

    #[test]
    fn unparsed_dbt_project_is_collection_error() {
        let report = parse_dbt(&read_fixture("dbt_collection_error.txt")).unwrap();
        assert!(report.collection_error && report.ran() == 0);
    }
}
