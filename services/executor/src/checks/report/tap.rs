//! Parser of the Test Anything Protocol, which tape, bats, AVA, Deno, Mocha, Vitest, Perl and many others
//! write. Node's runner adds counts and has its own parser.

use std::collections::BTreeSet;

use domain::check::TestReport;

use super::{
    SEPARATOR, TitleStack, failed_test, first_message_lines, join_titles, measure_indentation, new_report,
    node,
};
use crate::pattern::LazyPattern;

static VERSION: LazyPattern = LazyPattern::new(r"(?m)^TAP version \d+\s*$");
static PLAN: LazyPattern = LazyPattern::new(r"^1\.\.(\d+)(?:\s+#.*)?\s*$");
/// Test point: indentation, result, and description with directive. A dash may precede the description.
static POINT: LazyPattern = LazyPattern::new(r"^(\s*)(not ok|ok) \d+\b(?:\s+-)?\s*(.*?)\s*$");
static DIRECTIVE: LazyPattern = LazyPattern::new(r"(?i)(?:^|\s)#\s*(?:skip|todo)\b");
static NOTE: LazyPattern = LazyPattern::new(r"\s*#\s*time=\S+\s*$");
static COMMENT: LazyPattern = LazyPattern::new(r"^# (\S.*)$");
// A test point for a group follows its points (after `# Subtest: x`) or precedes them (with `{`).
const OPENS: char = '{';
const CLOSES: &str = "}";
static SUMMARY: LazyPattern =
    LazyPattern::new(r"^# (?:tests|pass|fail|skip|todo|ok|cancelled|suites|Subtest|SKIP)\b");
/// Title of a group before its points.
static SUBTEST: LazyPattern = LazyPattern::new(r"^(\s*)# Subtest: (.+?)\s*$");
static BAIL: LazyPattern = LazyPattern::new(r"(?m)^\s*Bail out!");
/// First message of a diagnostic block.
static MESSAGE: LazyPattern = LazyPattern::new(r#"^\s*(?:message|error):\s*['"]?(.*?)['"]?\s*$"#);

/// Test point of one line.
struct TestPoint<'t> {
    indentation: usize,
    is_ok: bool,
    is_left_out: bool,
    opens_group: bool,
    name: &'t str,
}

pub(super) fn parse_tap(output: &str) -> Option<TestReport> {
    let lines: Vec<&str> = output.lines().collect();
    let plans: Vec<u32> = lines
        .iter()
        .filter_map(|line| PLAN.first(line)?.parse().ok())
        .collect();
    // Other output contains lines that begin with `ok` too; only a version or a plan proves TAP.
    let is_tap = VERSION.is_match(output) || !plans.is_empty();
    let points = lines.iter().filter_map(|line| read_point(line));
    let top_level = points.filter(|point| point.indentation == 0).count();
    if !is_tap || (top_level == 0 && !VERSION.is_match(output)) || node::has_node_counts(output) {
        return None;
    }
    let mut report = new_report("tap");
    count_points(&lines, &mut report);
    // A stream that ends before its plan is fulfilled was interrupted.
    let planned: u32 = plans.iter().fold(0, |sum, plan| sum.saturating_add(*plan));
    let is_whole = !plans.is_empty() && usize::try_from(planned).is_ok_and(|planned| planned == top_level);
    report.collection_error |= !is_whole || BAIL.is_match(output);
    Some(report)
}

fn read_point(line: &str) -> Option<TestPoint<'_>> {
    let found = POINT.captures(line)?;
    let text = found.get(3).map_or("", |text| text.as_str());
    let (text, opens_group) = match text.strip_suffix(OPENS) {
        Some(text) => (text.trim_end(), true),
        None => (text, false),
    };
    let directive = DIRECTIVE.find(text).map(|found| found.start());
    let name = directive.and_then(|at| text.get(..at)).unwrap_or(text);
    let name = NOTE
        .find(name)
        .and_then(|note| name.get(..note.start()))
        .unwrap_or(name);
    Some(TestPoint {
        indentation: found.get(1).map_or(0, |indentation| indentation.as_str().len()),
        is_ok: &found[2] == "ok",
        is_left_out: directive.is_some(),
        opens_group,
        name: name.trim(),
    })
}

fn count_points(lines: &[&str], report: &mut TestReport) {
    let mut group = None::<&str>;
    let groups_come_first = has_leading_comment(lines);
    // `failed_at` has the indentation of each failure in the open groups. `depth` is the indentation of the previous
    // point: a smaller one closes the group.
    let (mut failed_at, mut depth) = (BTreeSet::<usize>::new(), 0);
    let mut titles = TitleStack::default();
    for (at, line) in lines.iter().enumerate() {
        if line.trim() == CLOSES {
            depth = measure_indentation(line);
            continue;
        }
        if let Some(comment) = COMMENT.first(line).filter(|_| !SUMMARY.is_match(line)) {
            group = Some(comment);
            continue;
        }
        if let Some(found) = SUBTEST.captures(line) {
            titles.open(found[1].len(), found.get(2).map_or("", |title| title.as_str()));
            continue;
        }
        let Some(point) = read_point(line) else { continue };
        let closes_group = depth > point.indentation;
        depth = point.indentation;
        let own = titles.name(point.indentation, point.name, SEPARATOR);
        let name = match group.filter(|_| groups_come_first) {
            Some(group) if own.is_empty() => join_titles(group, "", ""),
            Some(group) => join_titles(group, SEPARATOR, &own),
            None => own,
        };
        if point.opens_group || closes_group {
            // A group fails with each test in it. A group that fails without a failing test could not be
            // loaded.
            let inner_failures = failed_at.split_off(&(point.indentation + 1));
            if !point.is_ok && !point.opens_group && inner_failures.is_empty() && !point.is_left_out {
                add_failure(report, &name, lines.get(at + 1..).unwrap_or_default());
            }
            // A failing group is a failure of the group around it.
            failed_at.extend((!point.is_ok && !point.is_left_out).then_some(point.indentation));
            if point.opens_group {
                titles.open(point.indentation, point.name);
                report.collection_error |= !point.is_ok && !has_inner_failure(lines, at);
            }
            continue;
        }
        if point.is_left_out {
            report.skipped = report.skipped.saturating_add(1);
            report.skipping.push(name);
        } else if point.is_ok {
            report.passed = report.passed.saturating_add(1);
            report.passing.push(name);
        } else {
            failed_at.insert(point.indentation);
            add_failure(report, &name, lines.get(at + 1..).unwrap_or_default());
        }
    }
}

/// Returns true when comments name the tests, as in tape and Deno: a comment precedes the first point.
fn has_leading_comment(lines: &[&str]) -> bool {
    let before = lines.iter().take_while(|line| read_point(line).is_none());
    before
        .filter(|line| COMMENT.is_match(line))
        .any(|line| !SUMMARY.is_match(line))
}

fn has_inner_failure(lines: &[&str], at: usize) -> bool {
    let own = lines
        .get(at)
        .and_then(|line| read_point(line))
        .map_or(0, |point| point.indentation);
    let inner = lines
        .iter()
        .skip(at + 1)
        .map_while(|line| match read_point(line) {
            Some(point) if point.indentation <= own => None,
            point => Some(point),
        });
    inner.flatten().any(|point| !point.is_ok && !point.is_left_out)
}

fn add_failure(report: &mut TestReport, name: &str, rest: &[&str]) {
    report.failed = report.failed.saturating_add(1);
    let detail = || {
        rest.iter()
            .copied()
            .take_while(|line| read_point(line).is_none() && line.trim() != "...")
    };
    let named = detail()
        .filter_map(|line| MESSAGE.first(line))
        .find(|named| named.len() > 2 && !named.starts_with('|'));
    let message = match named {
        Some(named) => named.to_owned(),
        None => first_message_lines(
            detail()
                .map(|line| line.trim().trim_start_matches('#'))
                .filter(|line| *line != "---"),
            |_| false,
        ),
    };
    report.failing.push(failed_test(name, message));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::report::tests::{count_results, list_failing_tests, read_fixture};

    #[test]
    fn streams_of_many_writers_are_read() {
        for (name, expected, failures) in [
            ("tape_failed.txt", (2, 1, 1), vec!["total › adds up"]),
            ("ava_tap_failed.txt", (2, 2, 1), vec!["total", "throws"]),
            ("bats_tap_failed.txt", (1, 1, 1), vec!["total"]),
            ("bats_tap13_failed.txt", (1, 1, 1), vec!["total"]),
            (
                "deno_tap_failed.txt",
                (2, 2, 1),
                vec!["./cart_test.ts › total", "./cart_test.ts › steps › two"],
            ),
            (
                "mocha_tap_failed.txt",
                (1, 2, 1),
                vec!["cart empty cart", "cart total"],
            ),
            (
                "vitest_tap_failed.txt",
                (1, 2, 1),
                vec!["cart.test.js › cart › empty cart", "cart.test.js › cart › total"],
            ),
        ] {
            let report = parse_tap(&read_fixture(name)).unwrap();
            assert_eq!(count_results(&report), expected, "{name}: {report:?}");
            assert_eq!(list_failing_tests(&report), failures, "{name}");
            assert!(!report.collection_error, "{name}");
        }
    }

    #[test]
    fn stream_without_its_plan_is_no_pass() {
        for cut in [
            "TAP version 13\nok 1 - a\nok 2 - b\n",
            "1..3\nok 1 - a\nok 2 - b\n",
            "TAP version 13\n1..2\nok 1 - a\nBail out! no database\n",
            "TAP version 13\n",
        ] {
            assert!(parse_tap(cut).unwrap().collection_error, "{cut}");
        }
        assert!(!parse_tap("1..1\nok 1 - a\n").unwrap().collection_error);
        assert_eq!(
            parse_tap("TAP version 13\n1..0 # SKIP no tests\n").unwrap().ran(),
            0
        );
    }

    #[test]
    fn words_that_resemble_points_are_nothing() {
        for output in ["ok 1 - a\n", "ok\nnot ok\n", "1..3\n", "step 1..3 of 5\nok 2\n"] {
            assert_eq!(parse_tap(output), None, "{output}");
        }
    }

    #[test]
    fn tap_group_failing_alone_is_failure() {
        let report =
            parse_tap("TAP version 14\n# Subtest: a\n    ok 1 - b\n    1..1\nnot ok 1 - a\n1..1\n").unwrap();
        assert_eq!(
            (count_results(&report), list_failing_tests(&report)),
            ((1, 1, 0), vec!["a"])
        );
    }
}
