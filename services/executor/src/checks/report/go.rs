//! Parser of `go test`, plain and with `-json`.

use std::collections::{BTreeMap, BTreeSet};

use domain::check::TestReport;
use serde::Deserialize;

use super::{failed_test, first_message_lines, new_report};
use crate::pattern::LazyPattern;

static TEST: LazyPattern = LazyPattern::new(r"^\s*--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)$");
static PACKAGE: LazyPattern = LazyPattern::new(r"^(ok  |FAIL|---|\?   )\t(\S+)(?:\t(.*)| (\[.*\]))?$");
static EMPTY: LazyPattern = LazyPattern::new(r"\[no (?:test files|tests to run|statements)\]");
static UNBUILT: LazyPattern = LazyPattern::new(r"\[(?:build|setup) failed\]");

/// Limit of the lines of running tests that are kept.
const MAX_PRINTED: usize = 20_000;

/// Event in one line of `-json` output.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoTestEvent {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    test: Option<String>,
    #[serde(default)]
    output: Option<String>,
    #[serde(default)]
    failed_build: Option<String>,
}

pub(super) fn parse_go(output: &str) -> Option<TestReport> {
    parse_json_output(output).or_else(|| parse_plain_output(output))
}

fn parse_plain_output(output: &str) -> Option<TestReport> {
    let lines: Vec<&str> = output.lines().collect();
    let (mut report, mut packages, mut named) = (new_report("go"), 0, 0);
    // Number of failing tests in the packages before.
    let mut failed = 0;
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = TEST.captures(line) {
            let id = found[2].to_owned();
            match &found[1] {
                "PASS" => {
                    report.passed += 1;
                    named += 1;
                    report.passing.push(id);
                }
                "SKIP" => {
                    report.skipped += 1;
                    report.skipping.push(id);
                }
                _ => {
                    report.failed += 1;
                    let rest = lines.get(at + 1..).unwrap_or_default().iter().copied();
                    let message =
                        first_message_lines(rest, |line| !line.starts_with(' ') || TEST.is_match(line));
                    report.failing.push(failed_test(id, message));
                }
            }
        } else if let Some(found) = PACKAGE.captures(line) {
            packages += 1;
            let note = found.get(3).or(found.get(4)).map_or("", |note| note.as_str());
            // A package that fails without a failing test ended early: a crash, a timeout or `os.Exit`.
            let has_crashed = &found[1] == "FAIL" && report.failed == failed;
            report.collection_error |= has_crashed || UNBUILT.is_match(note);
            // Without `-v` a package that passed names no test, so the package counts as one.
            let has_passed = &found[1] == "ok  " && !EMPTY.is_match(note);
            report.passed += u32::from(has_passed && named == 0);
            named = 0;
            failed = report.failed;
        }
    }
    pass_messages_up(&mut report);
    (packages > 0).then_some(report)
}

/// Output of the running tests.
#[derive(Default)]
struct PrintedLines {
    by_test: BTreeMap<String, Vec<String>>,
    count: usize,
}

impl PrintedLines {
    fn add(&mut self, test: String, line: String) {
        if self.count < MAX_PRINTED {
            self.count += 1;
            self.by_test.entry(test).or_default().push(line);
        }
    }

    /// Takes the lines of a test that has ended, so that later tests have room.
    fn take(&mut self, test: &str) -> Vec<String> {
        let lines = self.by_test.remove(test).unwrap_or_default();
        self.count -= lines.len();
        lines
    }
}

fn parse_json_output(output: &str) -> Option<TestReport> {
    let (mut report, mut seen, mut printed) = (new_report("go"), 0, PrintedLines::default());
    let mut packages_with_failure = BTreeSet::new();
    for line in output
        .lines()
        .filter(|line| line.starts_with('{') && line.contains("\"Action\""))
    {
        let Ok(event) = serde_json::from_str::<GoTestEvent>(line) else {
            continue;
        };
        seen += 1;
        report.collection_error |= event.failed_build.is_some() || event.action == "build-fail";
        let Some(test) = event.test else {
            // As in the plain output, such a package ended early.
            report.collection_error |=
                event.action == "fail" && !packages_with_failure.contains(&event.package);
            continue;
        };
        let id = format!("{}.{test}", event.package);
        match event.action.as_str() {
            "pass" => {
                report.passed += 1;
                printed.take(&id);
                report.passing.push(id);
            }
            "skip" => {
                report.skipped += 1;
                printed.take(&id);
                report.skipping.push(id);
            }
            "fail" => {
                report.failed += 1;
                let lines = printed.take(&id);
                let is_message =
                    |line: &&str| !line.starts_with("=== ") && !line.trim_start().starts_with("--- ");
                let message =
                    first_message_lines(lines.iter().map(String::as_str).filter(is_message), |_| false);
                report.failing.push(failed_test(id, message));
                packages_with_failure.insert(event.package);
            }
            "output" => printed.add(id, event.output.unwrap_or_default()),
            _ => {}
        }
    }
    pass_messages_up(&mut report);
    (seen > 0).then_some(report)
}

/// Gives a test with failing subtests the message of one of them: Go prints it only there.
///
/// The test itself stays in the list. It is listed when it passes, so without it there the same test would have no
/// result.
fn pass_messages_up(report: &mut TestReport) {
    let messages: BTreeMap<String, String> = report
        .failing
        .iter()
        .filter(|test| !test.message.is_empty())
        .map(|test| (test.id.clone(), test.message.clone()))
        .collect();
    for test in report.failing.iter_mut().filter(|test| test.message.is_empty()) {
        let inner = format!("{}/", test.id);
        let next = messages.range(inner.clone()..).next();
        if let Some((_, message)) = next.filter(|(id, _)| id.starts_with(&inner)) {
            test.message.clone_from(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn late_failure_keeps_its_message() {
        let event = |test: usize, rest: &str| format!(r#"{{"Package":"p","Test":"T{test}",{rest}}}"#) + "\n";
        let mut output = String::new();
        for test in 0..=MAX_PRINTED {
            let text = format!(r#""Action":"output","Output":"T{test} is wrong""#);
            output += &event(test, &text);
            output += &event(test, r#""Action":"fail""#);
        }
        let report = parse_go(&output).unwrap();
        assert_eq!(report.failing.len(), MAX_PRINTED + 1);
        assert_eq!(report.failing.last().unwrap().message, "T20000 is wrong");
    }

    #[test]
    fn counts_ids_and_first_lines_are_read() {
        let report = parse_go(&read_fixture("go_failed.txt")).unwrap();
        assert_eq!(count_results(&report), (2, 3, 1));
        assert_eq!(
            list_failing_tests(&report),
            ["TestEmptyCart", "TestTotal", "TestTotal/two_items"]
        );
        assert_eq!(report.failing[0].message, "cart_test.go:12: total = 1, want 0");
        assert!(!report.collection_error);
    }

    #[test]
    fn silent_go_package_counts_once() {
        let report = parse_go(&read_fixture("go_passed.txt")).unwrap();
        assert_eq!(count_results(&report), (2, 0, 0));
        let empty =
            parse_go("?   \tacme/shop/cmd\t[no test files]\nok  \tacme/shop\t0.002s [no tests to run]\n");
        assert_eq!(empty.unwrap().ran(), 0);
    }

    #[test]
    fn unbuilt_go_package_is_collection_error() {
        for name in ["go_collection_error.txt", "go_json_collection_error.txt"] {
            let report = parse_go(&read_fixture(name)).unwrap();
            assert_eq!(count_results(&report), (0, 0, 0), "{name}");
            assert!(report.collection_error, "{name}");
        }
    }

    #[test]
    fn events_are_read_too() {
        let report = parse_go(&read_fixture("go_json.txt")).unwrap();
        assert_eq!(count_results(&report), (1, 1, 1));
        assert_eq!(list_failing_tests(&report), ["acme/shop.TestEmptyCart"]);
        assert_eq!(report.failing[0].message, "cart_test.go:12: total = 1, want 0");
        assert_eq!(report.passing, ["acme/shop.TestCount"]);
    }
}
