//! Parser of Node's own runner (`node --test`), for its TAP and its terminal output.

use domain::check::TestReport;

use super::{failed_test, first_message_lines, parse_number};
use crate::pattern::LazyPattern;

static COUNT: LazyPattern = LazyPattern::new(r"^(?:#|ℹ) (tests|pass|fail|cancelled|skipped|todo) (\d+)$");
static TAP: LazyPattern = LazyPattern::new(r"^(\s*)(not ok|ok) \d+ - (.+?)(?: # (SKIP|TODO).*)?$");
// Package managers and make print lines before the version, so it may be on any line.
static TAP_VERSION: LazyPattern = LazyPattern::new(r"(?m)^TAP version \d+$");
static SPEC: LazyPattern = LazyPattern::new(r"^(\s*)(✔|✖|﹣) (.+?) \([\d.]+ms\)(?: # .*)?$");
/// Name of a test file. Node reports a file that cannot be loaded as a test with the file's name.
static FILE: LazyPattern = LazyPattern::new(r"\.[cm]?[jt]sx?$");
const FAILURES: &str = "✖ failing tests:";

pub(super) fn parse_node(output: &str) -> Option<TestReport> {
    let mut report = TestReport {
        runner: "node".to_owned(),
        ..TestReport::default()
    };
    if !has_node_counts(output) {
        return None;
    }
    for found in output.lines().filter_map(|line| COUNT.captures(line)) {
        let number = parse_number(&found[2]);
        match &found[1] {
            "pass" => report.passed = report.passed.saturating_add(number),
            "fail" | "cancelled" => report.failed = report.failed.saturating_add(number),
            "skipped" | "todo" => report.skipped = report.skipped.saturating_add(number),
            _ => {}
        }
    }
    // Packages of one repository may use different reporters, so both parsers run.
    let mut unloaded = read_spec_lines(output, &mut report);
    if TAP_VERSION.is_match(output) {
        unloaded += read_tap_points(output, &mut report);
    }
    report.collection_error = unloaded > 0;
    report.failed = report.failed.saturating_sub(unloaded);
    Some(report)
}

/// Returns true when the output has the runner's own counts, which it always prints at the end.
pub(super) fn has_node_counts(output: &str) -> bool {
    // Six of Node's eight counts match `COUNT`: `suites` and `duration_ms` are the others.
    output.lines().filter(|line| COUNT.is_match(line)).count() >= 6
}

/// Reads TAP points and returns the number of files that could not be loaded. A suite that failed because of
/// a test in it is not counted again.
fn read_tap_points(output: &str, report: &mut TestReport) -> u32 {
    let lines: Vec<&str> = output.lines().collect();
    let mut unloaded = 0;
    for (at, line) in lines.iter().enumerate() {
        let Some(found) = TAP.captures(line) else { continue };
        let (id, directive) = (&found[3], found.get(4));
        let detail = || lines.get(at + 1..).unwrap_or_default().iter().copied();
        let is_end = |line: &str| line.trim() == "...";
        let of = |key: &str| {
            let mut detail = detail().take_while(|line| !is_end(line));
            detail.find_map(|line| line.trim().strip_prefix(key))
        };
        match (&found[2], directive.is_some()) {
            (_, true) => report.skipping.push(id.to_owned()),
            ("ok", false) if of("type: ") != Some("'suite'") => report.passing.push(id.to_owned()),
            ("ok", false) => {}
            _ if FILE.is_match(id) => unloaded += 1,
            _ if of("failureType: ") == Some("'subtestsFailed'") => {}
            _ => {
                let error = of("error: ").map(|error| error.trim_matches(['\'', '"']));
                let words = match error {
                    Some("|-" | "|") => {
                        let rest = detail()
                            .skip_while(|line| !line.trim().starts_with("error: "))
                            .skip(1);
                        first_message_lines(rest, |line| {
                            is_end(line) || line.trim_start().starts_with("code: ")
                        })
                    }
                    error => error.unwrap_or_default().to_owned(),
                };
                report.failing.push(failed_test(id, words));
            }
        }
    }
    unloaded
}

fn read_spec_lines(output: &str, report: &mut TestReport) -> u32 {
    let (tests, failures) = output.split_once(FAILURES).unwrap_or((output, ""));
    for found in tests.lines().filter_map(|line| SPEC.captures(line)) {
        match &found[2] {
            "✔" => report.passing.push(found[3].to_owned()),
            "﹣" => report.skipping.push(found[3].to_owned()),
            _ => {}
        }
    }
    let lines: Vec<&str> = failures.lines().collect();
    let mut unloaded = 0;
    for (at, line) in lines.iter().enumerate() {
        let Some(found) = SPEC.captures(line) else {
            continue;
        };
        if FILE.is_match(&found[3]) {
            unloaded += 1;
            continue;
        }
        let rest = lines.get(at + 1..).unwrap_or_default().iter().copied();
        let words = first_message_lines(rest, |line| {
            SPEC.is_match(line) || line.trim_start().starts_with("at ")
        });
        report.failing.push(failed_test(&found[3], words));
    }
    unloaded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn node_tap_and_spec_forms_parse() {
        for name in ["node_tap_failed.txt", "node_spec_failed.txt"] {
            let report = parse_node(&read_fixture(name)).unwrap();
            assert_eq!(count_results(&report), (1, 2, 1), "{name}");
            assert_eq!(list_failing_tests(&report), ["empty cart", "total"], "{name}");
            assert!(
                report.failing[0].message.contains("Cannot read properties"),
                "{name}: {:?}",
                report.failing
            );
            assert!(report.passing.contains(&"count".to_owned()) && !report.collection_error);
        }
    }

    #[test]
    fn package_manager_lines_before_tap_are_ignored() {
        for name in ["npm", "pnpm", "yarn", "make"] {
            let report = parse_node(&read_fixture(&format!("{name}_node_tap_failed.txt"))).unwrap();
            assert_eq!(count_results(&report), (2, 2, 2), "{name}");
            assert_eq!(list_failing_tests(&report), ["empty cart", "total"], "{name}");
            assert_eq!(report.passing, ["count", "inner"], "{name}");
            assert_eq!(report.skipping, ["later", "some day"], "{name}");
        }
    }

    #[test]
    fn unloaded_node_file_is_collection_error() {
        for name in ["node_tap_collection_error.txt", "node_spec_collection_error.txt"] {
            let report = parse_node(&read_fixture(name)).unwrap();
            assert_eq!(count_results(&report), (0, 0, 0), "{name}");
            assert!(report.collection_error && report.failing.is_empty(), "{name}");
        }
    }
}
