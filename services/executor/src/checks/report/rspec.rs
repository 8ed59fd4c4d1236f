//! Parser of `RSpec`.

use domain::check::TestReport;

use super::{failed_test, first_message_lines, index_lines, parse_group};
use crate::pattern::LazyPattern;

static SUMMARY: LazyPattern = LazyPattern::new(
    r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) errors? occurred outside of examples)?$",
);
/// Summary line of a failed example, such as `rspec ./spec/cart_spec.rb:4 # Cart is empty`. The pattern omits
/// the line or the number of the example, because both move.
static FAILED: LazyPattern = LazyPattern::new(r"^rspec '?(\S+?)(?::\d+|(?:\[[\d:]+\])'?)? # (.+)$");
static HEADING: LazyPattern = LazyPattern::new(r"^  \d+\) (.+)$");

pub(super) fn parse_rspec(output: &str) -> Option<TestReport> {
    let lines: Vec<&str> = output.lines().collect();
    let summaries = lines.iter().filter_map(|line| SUMMARY.captures(line));
    let sums: Vec<[u32; 4]> = summaries
        .map(|summary| [1, 2, 3, 4].map(|group| parse_group(&summary, group)))
        .collect();
    let (last, before) = sums.split_last()?;
    let before = add_sums(before);
    // `parallel_rspec` prints the sum of its processes after theirs.
    let [all, bad, pending, outside] = if before == *last {
        before
    } else {
        add_sums(&[before, *last])
    };
    let mut report = TestReport {
        runner: "rspec".to_owned(),
        passed: all.saturating_sub(bad).saturating_sub(pending),
        failed: bad,
        skipped: pending,
        collection_error: outside > 0,
        ..TestReport::default()
    };
    let headings = index_lines(&lines, |line| HEADING.first(line));
    for found in lines.iter().filter_map(|line| FAILED.captures(line)) {
        report.failing.push(failed_test(
            format!("{} # {}", &found[1], &found[2]),
            find_failure_message(&lines, headings.get(&found[2]).copied()),
        ));
    }
    Some(report)
}

/// Adds the sums of several runs.
fn add_sums(sums: &[[u32; 4]]) -> [u32; 4] {
    let mut added = [0_u32; 4];
    for sum in sums {
        for (number, further) in added.iter_mut().zip(sum) {
            *number = number.saturating_add(*further);
        }
    }
    added
}

/// Returns the message below a heading; empty without a heading.
fn find_failure_message(lines: &[&str], heading: Option<usize>) -> String {
    let rest = heading.and_then(|at| lines.get(at + 1..)).unwrap_or_default();
    first_message_lines(rest.iter().copied(), |line| {
        line.trim_start().starts_with("# ") || HEADING.is_match(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn counts_ids_and_first_lines_are_read() {
        let report = parse_rspec(&read_fixture("rspec_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 1));
        assert_eq!(
            list_failing_tests(&report),
            [
                "./spec/cart_spec.rb # Cart when empty does not fail",
                "./spec/cart_spec.rb # Cart adds up"
            ]
        );
        assert!(report.failing[1].message.contains("expected: 30"), "{report:?}");
    }

    #[test]
    fn unloaded_rspec_file_is_collection_error() {
        let report = parse_rspec(&read_fixture("rspec_collection_error.txt")).unwrap();
        assert_eq!(count_results(&report), (0, 0, 0));
        assert!(report.collection_error);
    }
}
