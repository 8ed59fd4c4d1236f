//! Parser of `ExUnit` (`mix test`).

use std::collections::HashSet;

use domain::check::TestReport;

use super::{failed_test, first_message_lines, join_titles, new_report, parse_group};
use crate::pattern::LazyPattern;

static SUMMARY: LazyPattern = LazyPattern::new(
    r"^(?:(\d+) doctests?, )?(?:(\d+) propert(?:y|ies), )?(\d+) tests?, (\d+) failures?(?:, (\d+) excluded)?(?:, (\d+) invalid)?(?:, (\d+) skipped)?$",
);
static FINISHED: LazyPattern = LazyPattern::new(r"(?m)^Finished in [\d.]+ seconds(?: \(.*\))?$");
/// Heading of a failure, such as `  1) test adds up (CartTest)`.
static FAILED: LazyPattern = LazyPattern::new(r"^\s+\d+\) ((?:test|doctest|property) .+ \(\S+\))$");
/// Heading of a module with `--trace`, such as `CartTest [test/cart_test.exs]`.
static MODULE: LazyPattern = LazyPattern::new(r"^(\S+) \[.+\.exs?\]$");
static TRACE: LazyPattern = LazyPattern::new(
    r"^\s+\* ((?:test|doctest|property) .+?) \(([\d.]+ms|excluded|skipped)\)(?: \[L#\d+\])?$",
);
static UNCOMPILED: LazyPattern = LazyPattern::new(
    r"(?m)^== Compilation error in file |^\*\* \((?:CompileError|SyntaxError|TokenMissingError)\)",
);

pub(super) fn parse_exunit(output: &str) -> Option<TestReport> {
    let mut report = new_report("exunit");
    report.collection_error = UNCOMPILED.is_match(output);
    let lines: Vec<&str> = output.lines().collect();
    let mut sums = 0;
    if FINISHED.is_match(output) {
        for sum in lines.iter().filter_map(|line| SUMMARY.captures(line)) {
            let count = |group| parse_group(&sum, group);
            sums += 1;
            let all = count(1).saturating_add(count(2)).saturating_add(count(3));
            let bad = count(4).saturating_add(count(6));
            let left_out = count(5).saturating_add(count(7));
            report.failed = report.failed.saturating_add(bad);
            report.skipped = report.skipped.saturating_add(left_out);
            report.passed = report
                .passed
                .saturating_add(all.saturating_sub(bad).saturating_sub(left_out));
        }
    }
    if sums == 0 && !report.collection_error {
        return None;
    }
    for (at, line) in lines.iter().enumerate() {
        if let Some(id) = FAILED.first(line) {
            // The line after the heading is the location of the test, not its message.
            let rest = lines.get(at + 2..).unwrap_or_default().iter().copied();
            report.failing.push(failed_test(
                id,
                first_message_lines(rest, |line| line.trim() == "stacktrace:" || FAILED.is_match(line)),
            ));
        }
    }
    // With `--trace` each test has a line below its module. The heading of a failing test has both.
    let failing: HashSet<&str> = report
        .failing
        .iter()
        .flat_map(|test| list_traced_names(&test.id))
        .collect();
    let mut module = "";
    for line in &lines {
        if let Some(name) = MODULE.first(line) {
            module = name;
        } else if let Some(found) = TRACE.captures(line) {
            let id = match module {
                "" => found[1].to_owned(),
                module => join_titles(&found[1], " (", module) + ")",
            };
            match &found[2] {
                "excluded" | "skipped" => report.skipping.push(id),
                _ if failing.contains(id.as_str()) => {}
                _ => report.passing.push(id),
            }
        }
    }
    Some(report)
}

/// Returns the names under which the trace may list a failing test: its own, and that without its module.
fn list_traced_names(failing: &str) -> impl Iterator<Item = &str> {
    let bare = failing.rsplit_once(" (").map(|(bare, _)| bare);
    [Some(failing), bare].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests};

    #[test]
    fn counts_names_and_messages_are_read() {
        let output = "Running ExUnit with seed: 0, max_cases: 4\n\n\n  1) test adds up (CartTest)\n     test/cart_test.exs:4\n     Assertion with == failed\n     code:  assert total() == 30\n     left:  0\n     right: 30\n     stacktrace:\n       test/cart_test.exs:5: (test)\n\n..\nFinished in 0.03 seconds (0.00s async, 0.03s sync)\n1 doctest, 3 tests, 1 failure, 1 skipped\n";
        let report = parse_exunit(output).unwrap();
        assert_eq!(
            (count_results(&report), list_failing_tests(&report)),
            ((2, 1, 1), vec!["test adds up (CartTest)"])
        );
        assert!(report.failing[0].message.starts_with("Assertion with == failed"));
        let trace = "CartTest [test/cart_test.exs]\n  * test is empty (0.01ms) [L#3]\n  * test later (skipped) [L#9]\n\nFinished in 0.03 seconds\n2 tests, 0 failures, 1 skipped\n";
        let report = parse_exunit(trace).unwrap();
        assert_eq!(
            (report.passing, report.skipping),
            (
                vec!["test is empty (CartTest)".to_owned()],
                vec!["test later (CartTest)".to_owned()]
            )
        );
        let broken = "== Compilation error in file test/cart_test.exs ==\n** (CompileError) test/cart_test.exs:3: undefined\n";
        assert!(parse_exunit(broken).unwrap().collection_error);
    }
}
