//! Parser of Pest, and of `PHPUnit` behind Laravel's `artisan test`.

use std::collections::BTreeMap;

use domain::check::TestReport;

use super::{failed_test, first_message_lines, join_titles, new_report, parse_number};
use crate::pattern::LazyPattern;

static SUMMARY: LazyPattern =
    LazyPattern::new(r"^\s*Tests:\s+((?:\d+ \w+(?:, )?)+)(?: \(\d+ assertions\))?\s*$");
static DURATION: LazyPattern = LazyPattern::new(r"(?m)^\s*(?:Duration|Time):\s+[\d.]+m?s");
static COUNT: LazyPattern = LazyPattern::new(r"(\d+) (\w+)");
static FILE: LazyPattern = LazyPattern::new(r"^\s+(?:PASS|FAIL|WARN)\s+(\S+)$");
static TEST: LazyPattern = LazyPattern::new(r"^\s+(✓|⨯|-|…|!) (\S.*?)(?:\s+[\d.]+m?s)?\s*$");
/// Mark between the name of a file and that of a test.
const JOINT: &str = " > ";
/// Mark after the title of a group, which is in backquotes: `` `cart` → it adds up ``.
const GROUP_END: &str = "` → ";
static FAILED: LazyPattern = LazyPattern::new(r"^\s+FAILED\s+(\S+ > .+?)(?:\s{2,}\S*)?\s*$");

pub(super) fn parse_pest(output: &str) -> Option<TestReport> {
    let lines: Vec<&str> = output.lines().collect();
    let sums: Vec<&str> = lines.iter().filter_map(|line| SUMMARY.first(line)).collect();
    if sums.is_empty() || !DURATION.is_match(output) {
        return None;
    }
    let mut report = new_report("pest");
    for count in sums.into_iter().flat_map(|sum| COUNT.all(sum)) {
        let number = parse_number(&count[1]);
        match &count[2] {
            "passed" => report.passed = report.passed.saturating_add(number),
            "failed" | "errors" | "error" => report.failed = report.failed.saturating_add(number),
            // Tests with warnings, risky and deprecated tests ran but assert nothing or too little, so they
            // count as skipped.
            _ => report.skipped = report.skipped.saturating_add(number),
        }
    }
    let mut file = "";
    // Place of each failing test in the report, by name.
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(name) = FILE.first(line) {
            file = name;
        } else if let Some(id) = FAILED.first(line) {
            let rest = lines.get(at + 1..).unwrap_or_default().iter().copied();
            let message = first_message_lines(rest, |line| {
                line.trim_start().starts_with("at ") || FAILED.is_match(line)
            });
            // The list of results names a failing test without a message. The details below repeat the name,
            // truncated when it is long.
            let place = match id.strip_suffix('…') {
                Some(start) => places
                    .range(start.to_owned()..)
                    .next()
                    .filter(|(known, _)| known.starts_with(start))
                    .map(|(_, place)| *place),
                None => places.get(id).copied(),
            };
            match place.and_then(|place| report.failing.get_mut(place)) {
                Some(test) => test.message = message,
                None => {
                    places.entry(id.to_owned()).or_insert(report.failing.len());
                    report.failing.push(failed_test(id, message));
                }
            }
        } else if let Some(found) = TEST.captures(line).filter(|_| !file.is_empty()) {
            let name = &found[2];
            match &found[1] {
                "✓" => report.passing.push(join_titles(file, JOINT, name)),
                "⨯" => {
                    let id = join_titles(file, JOINT, name);
                    places.entry(id.clone()).or_insert(report.failing.len());
                    report.failing.push(failed_test(id, ""));
                }
                _ => report
                    .skipping
                    .push(join_titles(file, JOINT, without_reason(name))),
            }
        }
    }
    Some(report)
}

/// Returns the name of a skipped test without the reason after it. The titles of groups before it have arrows
/// too.
fn without_reason(name: &str) -> &str {
    let mut groups = 0;
    while let Some(rest) = name.get(groups..).filter(|rest| rest.starts_with('`'))
        && let Some(at) = rest.find(GROUP_END)
    {
        groups += at + GROUP_END.len();
    }
    let own = name.get(groups..).unwrap_or_default();
    let end = own.find(" → ").map_or(name.len(), |at| groups + at);
    name.get(..end).unwrap_or(name).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests};

    #[test]
    fn counts_names_and_messages_are_read() {
        let output = "\n   FAIL  Tests\\Unit\\CartTest\n  ✓ it is empty                              0.02s\n  ⨯ it adds up                               0.01s\n  - it waits → no\n  ──────────────────────\n   FAILED  Tests\\Unit\\CartTest > it adds up\n  Failed asserting that 0 is identical to 30.\n\n  at tests/Unit/CartTest.php:4\n\n  Tests:    1 failed, 1 skipped, 1 passed (2 assertions)\n  Duration: 0.05s\n";
        let report = parse_pest(output).unwrap();
        assert_eq!(
            (count_results(&report), list_failing_tests(&report)),
            ((1, 1, 1), vec!["Tests\\Unit\\CartTest > it adds up"])
        );
        assert_eq!(
            report.failing[0].message,
            "Failed asserting that 0 is identical to 30."
        );
        assert_eq!(report.passing, ["Tests\\Unit\\CartTest > it is empty"]);
        assert_eq!(parse_pest("Tests:  3 passed\n"), None);
    }
}
