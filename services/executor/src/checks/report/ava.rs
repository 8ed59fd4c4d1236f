//! Parser of AVA's terminal output. AVA's TAP output is read by the TAP parser.

use std::collections::HashMap;

use domain::{check::TestReport, text::truncate_bytes};

use super::{
    MAX_NAME_BYTES, SEARCHED_LINES, count_items, failed_test, first_message_lines, index_lines, new_report,
    parse_number,
};
use crate::pattern::LazyPattern;

static COUNT: LazyPattern =
    LazyPattern::new(r"^\s+(\d+) (tests? passed|tests? failed|known failures?|tests? skipped|tests? todo)$");
/// Exceptions and rejections outside of a test, and files without tests.
static UNCAUGHT: LazyPattern = LazyPattern::new(
    r"(?m)^\s+\d+ (?:uncaught exceptions?|unhandled rejections?)$|^\s+✘ (?:No tests found in |.* exited with a non-zero exit code)",
);
static TEST: LazyPattern = LazyPattern::new(
    r"^\s+(✔|✘|-) (\[fail\]: |\[skip\] |\[expected fail\] |\[todo\] )?(.+?)(?: \(\d[\d.]*m?s\))?$",
);

pub(super) fn parse_ava(output: &str) -> Option<TestReport> {
    let lines: Vec<&str> = output.lines().collect();
    // AVA prints its counts below a separator line of one `─`, and further runs may follow.
    let at = lines.iter().position(|line| line.trim() == "─")?;
    let sums = || {
        lines
            .get(at..)
            .unwrap_or_default()
            .iter()
            .filter_map(|line| COUNT.captures(line))
    };
    sums().next()?;
    let mut report = new_report("ava");
    report.collection_error = UNCAUGHT.is_match(output);
    for sum in sums() {
        let count = parse_number(&sum[1]);
        match &sum[2] {
            "test passed" | "tests passed" => report.passed = report.passed.saturating_add(count),
            "test failed" | "tests failed" => report.failed = report.failed.saturating_add(count),
            // An expected failure proves nothing, so it counts as skipped, as with every runner.
            _ => report.skipped = report.skipped.saturating_add(count),
        }
    }
    let titles = index_lines(&lines, |line| Some(line.trim()).filter(|title| !title.is_empty()));
    let details = index_lines(&lines, |line| line.starts_with("  ").then(|| line.trim()));
    for line in &lines {
        let Some(found) = TEST.captures(line) else {
            continue;
        };
        let name = found.get(3).map_or("", |name| name.as_str());
        match (&found[1], found.get(2).map_or("", |mark| mark.as_str())) {
            ("✔", "") => report.passing.push(name.to_owned()),
            ("✘", "[fail]: ") => {
                let id = failing_title(&titles, name);
                let message = find_message(&lines, details.get(id).copied());
                report.failing.push(failed_test(id, message));
            }
            (_, "") => {}
            _ => report.skipping.push(name.to_owned()),
        }
    }
    // AVA omits the count of passed tests when tests failed.
    let named = count_items(&report.passing);
    report.passed = report.passed.max(named);
    Some(report)
}

/// Returns the title of a failing test. The printed line ends in the first words of the error; only the title
/// heads the details.
fn failing_title<'t>(titles: &HashMap<&str, usize>, name: &'t str) -> &'t str {
    if titles.contains_key(name) {
        return name;
    }
    let start = truncate_bytes(name, MAX_NAME_BYTES);
    let ends = start.match_indices(' ').map(|(end, _)| end).rev();
    let mut starts = ends.filter_map(|end| name.get(..end));
    starts.find(|title| titles.contains_key(title)).unwrap_or(name)
}

/// Returns the message below a heading; empty without a heading.
fn find_message(lines: &[&str], heading: Option<usize>) -> String {
    let rest = heading.and_then(|at| lines.get(at + 1..)).unwrap_or_default();
    let is_source = |line: &&str| {
        let line = line.trim();
        line.split(':')
            .next()
            .is_some_and(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
    };
    let place = rest
        .iter()
        .copied()
        .take(SEARCHED_LINES)
        .filter(|line| !is_source(line))
        .skip_while(|line| {
            let line = line.trim();
            line.is_empty() || (!line.contains(' ') && line.contains(':'))
        });
    first_message_lines(place, |line| {
        line.trim() == "─" || line.trim_start().starts_with("at ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_names_and_messages_are_read() {
        let report = parse_ava(&read_fixture("ava_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 2));
        assert_eq!(list_failing_tests(&report), ["total", "throws"]);
        assert!(report.failing[0].message.starts_with("Difference"), "{report:?}");
        assert_eq!(report.passing, ["empty cart"]);
    }
}
