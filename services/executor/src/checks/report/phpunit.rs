//! Parser of `PHPUnit`'s printed output.

use domain::check::TestReport;

use super::{failed_test, first_message_lines, new_report, parse_number};
use crate::pattern::LazyPattern;

static OK: LazyPattern = LazyPattern::new(r"^OK \((\d+) tests?, \d+ assertions?\)$");
static COUNTS: LazyPattern = LazyPattern::new(r"^Tests: (\d+), Assertions: \d+(.*)\.$");
static COUNT: LazyPattern = LazyPattern::new(r"(Errors|Failures|Skipped|Incomplete|Warnings): (\d+)");
static HEADING: LazyPattern = LazyPattern::new(r"^\d+\) (\S+::.+)$");
const NONE: &str = "No tests executed!";

pub(super) fn parse_phpunit(output: &str) -> Option<TestReport> {
    let lines: Vec<&str> = output.lines().collect();
    let mut report = new_report("phpunit");
    let (mut sums, mut all) = (0, 0_u32);
    for line in &lines {
        if let Some(passed) = OK.first(line) {
            sums += 1;
            all = all.saturating_add(parse_number(passed));
            continue;
        }
        let Some(counts) = COUNTS.captures(line) else {
            continue;
        };
        sums += 1;
        all = all.saturating_add(parse_number(&counts[1]));
        for count in COUNT.all(counts.get(2).map_or("", |rest| rest.as_str())) {
            let number = parse_number(&count[2]);
            match &count[1] {
                "Errors" | "Failures" => report.failed = report.failed.saturating_add(number),
                "Skipped" | "Incomplete" => report.skipped = report.skipped.saturating_add(number),
                _ => {}
            }
        }
    }
    if sums == 0 {
        return lines.contains(&NONE).then_some(report);
    }
    report.passed = all.saturating_sub(report.failed).saturating_sub(report.skipped);
    // `PHPUnit` lists warnings, risky and skipped tests in the same format after the failures.
    let is_over = |line: &&&str| line.ends_with("skipped tests:") || line.ends_with("skipped test:");
    let failures: Vec<&str> = lines.iter().take_while(|line| !is_over(line)).copied().collect();
    for (at, line) in failures.iter().enumerate() {
        if let Some(id) = HEADING.first(line)
            && (report.failing.len() as u64) < u64::from(report.failed)
        {
            let rest = failures.get(at + 1..).unwrap_or_default().iter().copied();
            let message = first_message_lines(rest, |line| HEADING.is_match(line) || line.starts_with('/'));
            report.failing.push(failed_test(id, message));
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
        let report = parse_phpunit(&read_fixture("phpunit_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 1));
        assert_eq!(
            list_failing_tests(&report),
            ["CartTest::testEmptyCart", "CartTest::testTotal"]
        );
        assert_eq!(
            report.failing[1].message,
            "Failed asserting that 0 matches expected 30."
        );
    }

    #[test]
    fn phpunit_success_differs_from_no_tests() {
        assert_eq!(
            count_results(&parse_phpunit(&read_fixture("phpunit_passed.txt")).unwrap()),
            (3, 0, 0)
        );
        assert_eq!(
            parse_phpunit("PHPUnit 10.5.2\n\nNo tests executed!\n")
                .unwrap()
                .ran(),
            0
        );
    }
}
