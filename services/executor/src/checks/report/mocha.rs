//! Parser of Mocha's spec and list reporters, which Cypress uses too.

use std::collections::HashSet;

use domain::check::{FailedTest, TestReport};

use super::{
    SEPARATOR, TitleStack, failed_test, find_group_titles, first_message_lines, measure_indentation,
    parse_number,
};
use crate::pattern::LazyPattern;

static PASSING: LazyPattern = LazyPattern::new(r"^\s+(\d+) passing(?: \(\d+(?:ms|s|m|h)\))?$");
static FAILING: LazyPattern = LazyPattern::new(r"^\s+(\d+) failing$");
static PENDING: LazyPattern = LazyPattern::new(r"^\s+(\d+) pending$");
/// First line of a failure below the counts. Further titles follow, and the last one ends in a colon.
static HEADING: LazyPattern = LazyPattern::new(r"^  \d+\) (.+)$");
/// Line of a test: its indentation, its mark and its own title.
static TEST: LazyPattern = LazyPattern::new(r"^(\s+)(✔|✓|-|\d+\)) (.+?)(?: \(\d+ms\))?$");
/// Line of the list reporter, with the whole name and the duration: `cart total: 2ms`.
static LISTED: LazyPattern = LazyPattern::new(r"^(.+): \d+ms$");
/// Indentation of the second title of a failure. Each further one has two more spaces.
const TITLES: usize = 7;

pub(super) fn parse_mocha(output: &str) -> Option<TestReport> {
    let lines: Vec<&str> = output.lines().collect();
    // Cypress prints counts for each file.
    let counts = lines.iter().position(|line| PASSING.is_match(line))?;
    let after = lines.get(counts..).unwrap_or_default();
    let count = |pattern: &LazyPattern| {
        let found = after.iter().filter_map(|line| pattern.first(line));
        found.fold(0_u32, |sum, count| sum.saturating_add(parse_number(count)))
    };
    let mut report = TestReport {
        runner: "mocha".to_owned(),
        passed: count(&PASSING),
        failed: count(&FAILING),
        skipped: count(&PENDING),
        ..TestReport::default()
    };
    let is_title = find_group_titles(&lines, |line| TEST.is_match(line));
    let mut titles = TitleStack::default();
    // Failures in the listing, by their own titles.
    let mut numbered: Vec<&str> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if at > counts
            && let Some(failure) = parse_failure(lines.get(at..).unwrap_or_default())
        {
            report.failing.push(failure);
        } else if let Some(found) = TEST.captures(line) {
            let own = found.get(3).map_or("", |own| own.as_str());
            let name = titles.name(found[1].len(), own, SEPARATOR);
            match &found[2] {
                "✔" | "✓" => report.passing.push(name),
                // Below the counts, a dash may begin a line of a message.
                "-" if at < counts => report.skipping.push(name),
                "-" => {}
                _ => numbered.push(own),
            }
        } else if is_title.get(at) == Some(&true) {
            titles.open(measure_indentation(line), line.trim());
        }
    }
    use_listed_names(&mut report, &numbered);
    Some(report)
}

/// Uses the names of the list reporter, where it ran: it joins the titles of a test by spaces.
fn use_listed_names(report: &mut TestReport, numbered: &[&str]) {
    let flat = |id: &str| id.replace(SEPARATOR, " ");
    let numbered: HashSet<&str> = numbered.iter().copied().collect();
    let is_listed = report.passing.iter().all(|name| LISTED.is_match(name))
        && report
            .failing
            .iter()
            .all(|test| numbered.contains(&flat(&test.id).as_str()));
    if !is_listed {
        return;
    }
    for name in &mut report.passing {
        let bare = LISTED.first(name).map(str::to_owned);
        *name = bare.unwrap_or_default();
    }
    for test in &mut report.failing {
        test.id = flat(&test.id);
    }
}

fn parse_failure(lines: &[&str]) -> Option<FailedTest> {
    let first = HEADING.first(lines.first()?)?;
    let mut parts = vec![first.trim()];
    for line in lines.iter().skip(1) {
        let expected = TITLES + 2 * (parts.len() - 1);
        if line.trim().is_empty() || measure_indentation(line) != expected {
            break;
        }
        parts.push(line.trim());
    }
    // A message may have the indentation of a title, but it follows the line that ends in a colon.
    while parts.last().is_some_and(|last| !last.ends_with(':')) {
        parts.pop();
    }
    let id = parts.join(SEPARATOR);
    let id = id.strip_suffix(':')?;
    let is_end = |line: &str| HEADING.is_match(line) || line.trim_start().starts_with("at ");
    let message = first_message_lines(lines.iter().skip(parts.len()).copied(), is_end);
    Some(failed_test(id, message))
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
        assert_eq!(report.passing, ["cart › count"]);
        assert_eq!(report.skipping, ["cart › later"]);
    }

    #[test]
    fn counts_of_all_cypress_files_add_up() {
        let file = |name: &str| {
            format!(
                "\n  Running:  {name}.cy.js\n\n\n  {name}\n    1) total\n    ✓ count (12ms)\n\n\n  1 passing (1s)\n  1 failing\n\n  1) {name}\n       total:\n     AssertionError: expected 0 to equal 30\n"
            )
        };
        let report = parse_mocha(&format!("{}{}", file("cart"), file("stock"))).unwrap();
        assert_eq!(count_results(&report), (2, 2, 0));
        assert_eq!(list_failing_tests(&report), ["cart › total", "stock › total"]);
        assert_eq!(report.passing, ["cart › count", "stock › count"]);
    }

    #[test]
    fn output_between_tests_is_no_group() {
        let output = "\n  cart\nhello\n{\n  a: {\n    b: 1\n  }\n}\n    ✔ count\n    nested: deep\n      1) total\n\n\n  1 passing (5ms)\n  1 failing\n\n  1) cart\n       nested: deep\n         total:\n     Error: x\n";
        let report = parse_mocha(output).unwrap();
        assert_eq!(report.passing, ["cart › count"]);
        assert_eq!(list_failing_tests(&report), ["cart › nested: deep › total"]);
    }
}
