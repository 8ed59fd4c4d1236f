//! Parser of `cargo test` and `cargo nextest`.

use std::collections::{BTreeSet, HashMap, HashSet};

use domain::check::TestReport;

use super::{failed_test, first_message_lines, index_lines, new_report, parse_group, parse_number};
use crate::pattern::LazyPattern;

static RESULT: LazyPattern = LazyPattern::new(
    r"(?m)^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; \d+ measured; \d+ filtered out",
);
static TEST: LazyPattern =
    LazyPattern::new(r"^test (\S.*?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:,.*)?$");
/// Name of a documentation test, such as `src/lib.rs - add (line 12)`, with how far it is compiled.
static DOC_TEST: LazyPattern = LazyPattern::new(r"^(\S+ - .*?)\s*\(line (\d+)\)(?: - compile(?: fail)?)?$");
static SECTION: LazyPattern = LazyPattern::new(r"^---- (\S.*) stdout ----$");
static UNCOMPILED: LazyPattern =
    LazyPattern::new(r"(?m)^error: could not compile `[^`]+`|^error(?:\[E\d+\])?: .*\n +--> ");
/// Message of `cargo test` about a failing test program.
static FAILED_PROGRAM: LazyPattern = LazyPattern::new(r"(?m)^error: (?:doc)?test failed, to rerun pass ");
/// End of a test program that crashed or ended itself. Cargo shows how only then.
static CRASHED: LazyPattern = LazyPattern::new(
    r"(?m)^error: (?:doc)?test failed, to rerun pass .*\n+Caused by:\n +process didn't exit successfully: ",
);
static NEXTEST: LazyPattern = LazyPattern::new(
    r"(?m)^ +Summary \[ *[\d.]+s\] (\d+)(?:/\d+)? tests? run: (\d+) passed(?: \([^)]*\))?(?:, (\d+) failed)?(?:, \d+ timed out)?(?:, (\d+) skipped)?",
);
static NEXTEST_LINE: LazyPattern =
    LazyPattern::new(r"^ +(PASS|FAIL|SIGABRT|TIMEOUT) \[ *[\d.>]+s\] (?:\( *\d+/\d+\) )?(\S.*)$");

/// Limit of the documentation tests of one item that are numbered.
const MAX_DOC_TESTS: usize = 1000;

pub(super) fn parse_cargo(output: &str) -> Option<TestReport> {
    let mut report = new_report("cargo");
    report.collection_error = UNCOMPILED.is_match(output) || CRASHED.is_match(output);
    if NEXTEST.is_match(output) {
        count_nextest(output, &mut report);
        return Some(report);
    }
    let mut results = 0;
    for result in RESULT.all(output) {
        results += 1;
        report.passed = report.passed.saturating_add(parse_number(&result[1]));
        report.failed = report.failed.saturating_add(parse_number(&result[2]));
        report.skipped = report.skipped.saturating_add(parse_number(&result[3]));
    }
    if results == 0 && !report.collection_error {
        return None;
    }
    let lines: Vec<&str> = output.lines().collect();
    let named: Vec<(&str, String)> = lines
        .iter()
        .filter_map(|line| TEST.captures(line))
        .map(|found| {
            let printed = found.get(1).map_or("", |name| name.as_str());
            (printed, found[2].to_owned())
        })
        .collect();
    let sections = index_lines(&lines, |line| SECTION.first(line));
    let doc_lines = list_doc_lines(named.iter().map(|(name, _)| *name));
    // Tests of several programs may have one name, and then share its section.
    let mut messages: HashMap<&str, String> = HashMap::new();
    for (name, result) in &named {
        let id = stable_name(name, &doc_lines);
        match result.as_str() {
            "ok" => report.passing.push(id),
            "ignored" => report.skipping.push(id),
            _ => {
                let message = messages
                    .entry(*name)
                    .or_insert_with(|| find_panic_message(&lines, sections.get(name).copied()));
                report.failing.push(failed_test(id, message.as_str()));
            }
        }
    }
    Some(report)
}

/// Lists the lines of the documentation tests of each item.
fn list_doc_lines<'t>(names: impl Iterator<Item = &'t str>) -> HashMap<&'t str, BTreeSet<u32>> {
    let mut lines: HashMap<&str, BTreeSet<u32>> = HashMap::new();
    for found in names.filter_map(|name| DOC_TEST.captures(name)) {
        let item = found.get(1).map_or("", |item| item.as_str());
        lines.entry(item).or_default().insert(parse_number(&found[2]));
    }
    lines
}

/// Returns the name of a documentation test without its line, which moves with every change above it. Several
/// tests of one item are numbered in the order of their lines.
fn stable_name(name: &str, doc_lines: &HashMap<&str, BTreeSet<u32>>) -> String {
    let Some(found) = DOC_TEST.captures(name) else {
        return name.to_owned();
    };
    let (item, line) = (&found[1], parse_number(&found[2]));
    let before = doc_lines
        .get(item)
        .map_or(0, |lines| lines.range(..line).take(MAX_DOC_TESTS).count());
    match before {
        0 => item.trim_end().to_owned(),
        before => format!("{} #{}", item.trim_end(), before + 1),
    }
}

/// Returns what a failing test printed, from the line of its panic on. `section`: line at which that begins.
fn find_panic_message(lines: &[&str], section: Option<usize>) -> String {
    let Some(at) = section else {
        return String::new();
    };
    let rest = lines.get(at + 1..).unwrap_or_default();
    let section: Vec<&str> = rest
        .iter()
        .copied()
        .take_while(|line| !line.starts_with("---- ") && *line != "failures:")
        .collect();
    let panic = section
        .iter()
        .position(|line| line.contains(" panicked at "))
        .unwrap_or(0);
    let message = section.get(panic..).unwrap_or_default().iter().copied();
    first_message_lines(message, |line| line.starts_with("note: "))
}

fn count_nextest(output: &str, report: &mut TestReport) {
    for summary in NEXTEST.all(output) {
        let count = |group| parse_group(&summary, group);
        report.passed = report.passed.saturating_add(count(2));
        report.failed = report.failed.saturating_add(count(1).saturating_sub(count(2)));
        report.skipped = report.skipped.saturating_add(count(4));
    }
    // nextest prints the results of single tests too, so those of `cargo test` beside it cannot be counted.
    report.collection_error |= FAILED_PROGRAM.is_match(output);
    let mut failing = HashSet::new();
    for found in output.lines().filter_map(|line| NEXTEST_LINE.captures(line)) {
        let id = found[2].split_whitespace().collect::<Vec<_>>().join(" ");
        if &found[1] == "PASS" {
            report.passing.push(id);
        } else if failing.insert(id.clone()) {
            report.failing.push(failed_test(id, String::new()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn each_of_many_failures_has_its_message() {
        let count = 10_000;
        let mut output = String::new();
        for number in 0..count {
            output += &format!("test t{number} ... FAILED\n");
        }
        for number in 0..count {
            output += &format!("---- t{number} stdout ----\nt{number} panicked at x\n");
        }
        output += "\nfailures:\n    t0\n\n";
        output += "test result: FAILED. 0 passed; 10000 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let report = parse_cargo(&output).unwrap();
        assert_eq!(report.failing.len(), count);
        assert_eq!(report.failing.last().unwrap().message, "t9999 panicked at x");
    }

    #[test]
    fn counts_ids_and_first_lines_are_read() {
        let report = parse_cargo(&read_fixture("cargo_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 2, 1));
        assert_eq!(list_failing_tests(&report), ["tests::empty_cart", "tests::total"]);
        assert!(
            report.failing[1]
                .message
                .contains("assertion `left == right` failed"),
            "{report:?}"
        );
        assert_eq!(
            (report.passing, report.skipping),
            (vec!["tests::count".to_owned()], vec!["tests::later".to_owned()])
        );
    }

    #[test]
    fn the_results_of_all_targets_add_up() {
        let report = parse_cargo(&read_fixture("cargo_passed.txt")).unwrap();
        assert_eq!(count_results(&report), (3, 0, 0));
    }

    #[test]
    fn doc_test_name_ignores_moved_lines() {
        let output = |lines: [u32; 3]| {
            format!(
                "test src/lib.rs - add (line {}) ... FAILED\ntest src/lib.rs - add (line {}) - compile fail ... ok\ntest src/lib.rs - (line {}) ... ok\n\n---- src/lib.rs - add (line {}) stdout ----\nTest executable failed (exit status: 101).\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.3s\n",
                lines[1], lines[2], lines[0], lines[1]
            )
        };
        let (before, after) = (
            parse_cargo(&output([3, 12, 20])).unwrap(),
            parse_cargo(&output([4, 22, 30])).unwrap(),
        );
        assert_eq!(before, after);
        assert_eq!(list_failing_tests(&before), ["src/lib.rs - add"]);
        assert!(before.failing[0].message.starts_with("Test executable failed"));
        assert_eq!(before.passing, ["src/lib.rs - add #2", "src/lib.rs -"]);
    }

    #[test]
    fn uncompiled_cargo_tests_are_collection_error() {
        let report = parse_cargo(&read_fixture("cargo_collection_error.txt")).unwrap();
        assert_eq!(count_results(&report), (0, 0, 0));
        assert!(report.collection_error);
    }

    #[test]
    fn nextest_is_read_too() {
        let report = parse_cargo(&read_fixture("nextest_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (2, 1, 1));
        assert_eq!(list_failing_tests(&report), ["shop cart::tests::empty_cart"]);
    }
}
