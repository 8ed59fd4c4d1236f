//! Parser of gotestsum in its own formats. Formats that repeat the output of `go test` are left to the parser
//! of Go.

use std::collections::HashMap;

use domain::check::TestReport;

use super::{count_items, failed_test, first_message_lines, go, new_report, parse_group};
use crate::pattern::LazyPattern;

static DONE: LazyPattern = LazyPattern::new(
    r"(?m)^DONE (?:\d+ runs, )?(\d+) tests?(?:, (\d+) skipped)?(?:, (\d+) failures?)?(?:, (\d+) errors?)? in [\d.]+s$",
);
static LINE: LazyPattern = LazyPattern::new(r"^(PASS|FAIL|SKIP) (\S+) \([\d.]+s\)$");
static SECTION: LazyPattern = LazyPattern::new(r"^=== (FAIL|SKIP): (\S+) (\S+) \([\d.]+s\)$");

/// Limit of the tests around a failing one. Each name contains the one before, so many would exhaust the memory.
const MAX_GROUPS: usize = 16;

pub(super) fn parse_gotestsum(output: &str) -> Option<TestReport> {
    // The parser of Go has already counted these tests.
    if !DONE.is_match(output) || go::parse_go(output).is_some() {
        return None;
    }
    let mut report = new_report("gotestsum");
    for done in DONE.all(output) {
        let count = |group| parse_group(&done, group);
        let passed = count(1).saturating_sub(count(2)).saturating_sub(count(3));
        report.passed = report.passed.saturating_add(passed);
        report.failed = report.failed.saturating_add(count(3));
        report.skipped = report.skipped.saturating_add(count(2));
        report.collection_error |= count(4) > 0;
    }
    let lines: Vec<&str> = output.lines().collect();
    let mut places = HashMap::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = SECTION.captures(line) {
            if &found[1] == "SKIP" {
                report.skipping.push(format!("{}.{}", &found[2], &found[3]));
            } else {
                let rest = lines.get(at + 1..).unwrap_or_default().iter().copied();
                let message = first_message_lines(rest, |line| !line.starts_with(' '));
                add_failure((&mut report, &mut places), &found[2], &found[3], &message);
            }
        } else if let Some(found) = LINE.captures(line)
            && &found[1] == "PASS"
        {
            report.passing.push(found[2].to_owned());
        }
    }
    if report.failed > 0 {
        report.failed = report.failed.max(count_items(&report.failing));
    }
    Some(report)
}

/// Adds a failing test and the tests around it, which fail with it. gotestsum lists those only when they pass. `places`
/// has the place of each failing test in the report.
fn add_failure(
    (report, places): (&mut TestReport, &mut HashMap<String, usize>),
    package: &str,
    test: &str,
    message: &str,
) {
    let groups = test.match_indices('/').map(|(end, _)| end).take(MAX_GROUPS);
    let ends = groups.chain([test.len()]);
    for name in ends.filter_map(|end| test.get(..end)) {
        let id = format!("{package}.{name}");
        match places.get(&id).and_then(|place| report.failing.get_mut(*place)) {
            Some(known) if known.message.is_empty() => known.message = message.to_owned(),
            Some(_) => {}
            None => {
                places.insert(id.clone(), report.failing.len());
                report.failing.push(failed_test(id, message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests};

    #[test]
    fn sum_and_failures_are_read() {
        let output = "✖  acme/shop (3ms)\n\n=== Skipped\n=== SKIP: acme/shop TestLater (0.00s)\n    cart_test.go:5: no\n\n=== Failed\n=== FAIL: acme/shop TestTotal (0.00s)\n    cart_test.go:4: total = 0, want 30\n\nDONE 3 tests, 1 skipped, 1 failure in 0.312s\n";
        let report = parse_gotestsum(output).unwrap();
        assert_eq!(
            (count_results(&report), list_failing_tests(&report)),
            ((1, 1, 1), vec!["acme/shop.TestTotal"])
        );
        assert_eq!(report.failing[0].message, "cart_test.go:4: total = 0, want 30");
        assert_eq!(
            count_results(&parse_gotestsum("✓  acme/shop (cached)\n\nDONE 2 tests in 0.101s\n").unwrap()),
            (2, 0, 0)
        );
        assert!(
            parse_gotestsum("DONE 0 tests, 1 error in 0.1s\n")
                .unwrap()
                .collection_error
        );
    }
}
