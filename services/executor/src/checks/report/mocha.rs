//! Parser of Mocha's default reporter.

use domain::check::TestReport;

use super::{failed_test, first_message_lines, parse_number};
use crate::pattern::LazyPattern;

static PASSING: LazyPattern = LazyPattern::new(r"^\s+(\d+) passing(?: \(\d+m?s\))?$");
static FAILING: LazyPattern = LazyPattern::new(r"^\s+(\d+) failing$");
static PENDING: LazyPattern = LazyPattern::new(r"^\s+(\d+) pending$");
/// First line of a failure. The title continues until a line that ends in a colon.
static HEADING: LazyPattern = LazyPattern::new(r"^  (\d+)\) (.+)$");
static PASSED: LazyPattern = LazyPattern::new(r"^\s+(?:✔|✓) (.+?)(?: \(\d+ms\))?$");

pub(super) fn parse_mocha(output: &str) -> Option<TestReport> {
    let lines: Vec<&str> = output.lines().collect();
    let at = lines.iter().rposition(|line| PASSING.is_match(line))?;
    let (before, after) = lines.split_at_checked(at)?;
    let count = |pattern: &LazyPattern| {
        after
            .iter()
            .find_map(|line| pattern.first(line))
            .map_or(0, parse_number)
    };
    let mut report = TestReport {
        runner: "mocha".to_owned(),
        passed: count(&PASSING),
        failed: count(&FAILING),
        skipped: count(&PENDING),
        ..TestReport::default()
    };
    report.passing = before
        .iter()
        .filter_map(|line| PASSED.first(line))
        .map(str::to_owned)
        .collect();
    for (at, line) in after.iter().enumerate() {
        if HEADING.is_match(line) {
            report
                .failing
                .extend(parse_failure(after.get(at..).unwrap_or_default()));
        }
    }
    Some(report)
}

fn parse_failure(lines: &[&str]) -> Option<domain::check::FailedTest> {
    let first = HEADING.captures(lines.first()?)?.get(2)?.as_str();
    let title = lines.iter().skip(1).map(|line| line.trim());
    let mut parts = vec![first.trim()];
    let mut used = 1;
    for part in title.take(8).take_while(|part| !part.is_empty()) {
        if parts.last().is_some_and(|last| last.ends_with(':')) {
            break;
        }
        parts.push(part);
        used += 1;
    }
    let id = parts.join(" › ");
    let is_end = |line: &str| HEADING.is_match(line) || line.trim_start().starts_with("at ");
    let words = first_message_lines(lines.get(used..)?.iter().copied(), is_end);
    Some(failed_test(id.trim_end_matches(':'), words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_ids_and_first_lines_are_read() {
        let report = parse_mocha(&read_fixture("mocha_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 1));
        assert_eq!(list_failing_tests(&report), ["cart › empty cart", "cart › total"]);
        assert!(
            report.failing[0]
                .message
                .contains("Cannot read properties of undefined")
        );
        assert_eq!(report.passing, ["count"]);
    }
}
