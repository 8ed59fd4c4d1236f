//! Parser of Node's own runner (`node --test`), for its TAP and its terminal output.

use std::collections::{HashMap, HashSet, VecDeque};

use domain::check::TestReport;

use super::{SEPARATOR, TitleStack, count_items, failed_test, first_message_lines, new_report, parse_number};
use crate::pattern::LazyPattern;

static COUNT: LazyPattern = LazyPattern::new(r"^(?:#|ℹ) (tests|pass|fail|cancelled|skipped|todo) (\d+)$");
static TAP: LazyPattern = LazyPattern::new(r"^(\s*)(not ok|ok) \d+ - (.+?)(?: # (SKIP|TODO).*)?$");
// Package managers and make print lines before the version, so it may be on any line.
static TAP_VERSION: LazyPattern = LazyPattern::new(r"(?m)^TAP version \d+$");
static SUBTEST: LazyPattern = LazyPattern::new(r"^(\s*)# Subtest: (.+)$");
static SPEC: LazyPattern = LazyPattern::new(r"^(\s*)(✔|✖|﹣) (.+?) \([\d.]+ms\)( # .*)?$");
/// Title of a group. Some versions repeat it at the end of the group, with its duration.
static GROUP: LazyPattern = LazyPattern::new(r"^(\s*)▶ (.+?)( \([\d.]+ms\))?$");
/// Name of a test file. Node reports a file that cannot be loaded as a test with the file's name.
static FILE: LazyPattern = LazyPattern::new(r"\.[cm]?[jt]sx?$");
const FAILURES: &str = "✖ failing tests:";
/// Limit of the failures that are searched for one of a group.
const MAX_INNER: usize = 1000;

pub(super) fn parse_node(output: &str) -> Option<TestReport> {
    let mut report = new_report("node");
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
    let (mut unloaded, mut titles) = (0, TitleStack::default());
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = SUBTEST.captures(line) {
            let title = found.get(2).map_or("", |title| title.as_str());
            // Early versions list each file as a group. Its path differs between two trees of files.
            if !FILE.is_match(title) {
                titles.open(found[1].len(), title);
            }
            continue;
        }
        let Some(found) = TAP.captures(line) else { continue };
        let (own, directive) = (&found[3], found.get(4));
        let id = titles.name(found[1].len(), own, SEPARATOR);
        let detail = || lines.get(at + 1..).unwrap_or_default().iter().copied();
        let is_end = |line: &str| line.trim() == "...";
        let of = |key: &str| {
            let mut detail = detail().take_while(|line| !is_end(line));
            detail.find_map(|line| line.trim().strip_prefix(key))
        };
        let is_suite = of("type: ") == Some("'suite'");
        let has_failing_subtest = of("failureType: ") == Some("'subtestsFailed'");
        match (&found[2], directive.is_some()) {
            (_, true) => report.skipping.push(id),
            ("ok", false) if is_suite => {}
            ("ok", false) => report.passing.push(id),
            _ if FILE.is_match(own) => unloaded += 1,
            _ if has_failing_subtest && is_suite => {}
            _ if has_failing_subtest => {
                let message = find_inner_message(report, &id);
                report.failing.push(failed_test(id, message));
            }
            _ => {
                let error = of("error: ").map(|error| error.trim_matches(['\'', '"']));
                let message = match error {
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
                report.failing.push(failed_test(id, message));
            }
        }
    }
    unloaded
}

/// Returns the message of the last failure in a group.
fn find_inner_message(report: &TestReport, group: &str) -> String {
    let inner = format!("{group}{SEPARATOR}");
    let mut failing = report.failing.iter().rev().take(MAX_INNER);
    let found = failing.find(|test| test.id.starts_with(&inner));
    found.map_or_else(String::new, |test| test.message.clone())
}

/// Line of the terminal output for a test, or for the end of a group.
struct SpecLine<'t> {
    mark: &'t str,
    own: &'t str,
    id: String,
    is_left_out: bool,
    ends_group: bool,
}

fn list_spec_lines(text: &str) -> Vec<SpecLine<'_>> {
    let (mut found, mut titles) = (Vec::new(), TitleStack::default());
    for line in text.lines() {
        if let Some(group) = GROUP.captures(line) {
            if group.get(3).is_none() {
                titles.open(group[1].len(), group.get(2).map_or("", |title| title.as_str()));
            }
        } else if let Some(test) = SPEC.captures(line) {
            let part = |group| test.get(group).map_or("", |part| part.as_str());
            let (indentation, mark, own) = (test[1].len(), part(2), part(3));
            let ends_group = titles.close(indentation, own);
            found.push(SpecLine {
                mark,
                own,
                id: titles.name(indentation, own, SEPARATOR),
                is_left_out: mark == "﹣" || test.get(4).is_some(),
                ends_group,
            });
        }
    }
    found
}

fn read_spec_lines(output: &str, report: &mut TestReport) -> u32 {
    let (tests, failures) = output.split_once(FAILURES).unwrap_or((output, ""));
    let listed = list_spec_lines(tests);
    for test in listed.iter().filter(|test| !test.ends_group) {
        if test.is_left_out {
            report.skipping.push(test.id.clone());
        } else if test.mark == "✔" {
            report.passing.push(test.id.clone());
        }
    }
    // The list of failures names each test by its own title, in the order of the listing.
    let mut open: HashMap<&str, VecDeque<&SpecLine<'_>>> = HashMap::new();
    for test in listed.iter().filter(|test| test.mark == "✖") {
        open.entry(test.own).or_default().push_back(test);
    }
    let lines: Vec<&str> = failures.lines().collect();
    let mut unloaded = 0;
    for (at, line) in lines.iter().enumerate() {
        // The listing of a further run may follow.
        let Some(found) = SPEC.captures(line).filter(|found| &found[2] == "✖") else {
            continue;
        };
        let own = &found[3];
        let known = open.get_mut(own).and_then(VecDeque::pop_front);
        let id = known.map_or_else(|| own.to_owned(), |known| known.id.clone());
        if FILE.is_match(own) {
            unloaded += 1;
            continue;
        }
        let rest = lines.get(at + 1..).unwrap_or_default().iter().copied();
        let message = first_message_lines(rest, |line| {
            SPEC.is_match(line) || line.trim_start().starts_with("at ")
        });
        report.failing.push(failed_test(id, message));
    }
    let is_named = count_items(&report.passing) >= report.passed
        && count_items(&report.failing).saturating_add(unloaded) >= report.failed;
    // Node counts a test with subtests, but not a suite. Only the counts distinguish them.
    let mut known: HashSet<String> = report.failing.iter().map(|test| test.id.clone()).collect();
    for group in listed.iter().filter(|test| test.ends_group && !is_named) {
        if group.mark == "✔" && !group.is_left_out {
            report.passing.push(group.id.clone());
        } else if group.mark == "✖" && known.insert(group.id.clone()) {
            let message = find_inner_message(report, &group.id);
            report.failing.push(failed_test(group.id.clone(), message));
        }
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
            assert_eq!(report.passing, ["count", "group › inner"], "{name}");
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
