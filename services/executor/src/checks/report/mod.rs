//! Parsers of test runners' output, one for each runner. A parser returns `None` for the output of another
//! runner.

mod ava;
mod bats;
mod bun;
mod cargo;
mod ctest;
mod dbt;
mod deno;
mod dotnet;
mod exunit;
mod go;
mod gotestsum;
mod jest;
mod junit;
mod maven;
mod minitest;
mod mocha;
#[cfg(test)]
mod name_tests;
mod node;
mod pest;
mod phpunit;
mod playwright;
mod pytest;
mod rspec;
mod summaries;
mod swift;
mod tap;
mod unittest;
mod vitest;

use std::collections::HashMap;

use domain::{
    check::{FailedTest, MAX_TEST_ID, MAX_TEST_MESSAGE, TestReport},
    text::truncate_bytes,
};
use regex::Captures;

use crate::pattern::LazyPattern;

pub(super) use junit::{ReportFile, read_file};

/// Largest number of lines in the message of a failing test.
const MESSAGE_LINES: usize = 3;
/// Limit of the lines that are searched for a message.
const SEARCHED_LINES: usize = 200;
// A report keeps fewer characters, and a character has up to four bytes.
/// Limit in bytes of a name that contains the titles of groups.
const MAX_NAME_BYTES: usize = 4 * (MAX_TEST_ID + 1);
/// Limit in bytes of a message.
const MAX_MESSAGE_BYTES: usize = 4 * (MAX_TEST_MESSAGE + 1);

const PARSERS: [fn(&str) -> Option<TestReport>; 26] = [
    ava::parse_ava,
    bats::parse_bats,
    bun::parse_bun,
    cargo::parse_cargo,
    ctest::parse_native_tests,
    dbt::parse_dbt,
    deno::parse_deno,
    dotnet::parse_dotnet,
    exunit::parse_exunit,
    go::parse_go,
    gotestsum::parse_gotestsum,
    jest::parse_jest,
    maven::parse_maven,
    minitest::parse_minitest,
    mocha::parse_mocha,
    node::parse_node,
    pest::parse_pest,
    phpunit::parse_phpunit,
    playwright::parse_playwright,
    pytest::parse_pytest,
    rspec::parse_rspec,
    summaries::parse_summaries,
    swift::parse_swift,
    tap::parse_tap,
    unittest::parse_unittest,
    vitest::parse_vitest,
];

/// Returns the sum of all runners that this output contains; `None` when it contains none.
pub(super) fn parse_output(output: &str) -> Option<TestReport> {
    parse_lines(output).or_else(|| parse_lines(&without_package_names(output)?))
}

fn parse_lines(output: &str) -> Option<TestReport> {
    let found = PARSERS.into_iter().filter_map(|parse| parse(output));
    found.reduce(TestReport::with)
}

/// Package name before each line, which `pnpm -r`, Turborepo and Lerna print when several packages run in
/// parallel.
static PACKAGE_NAME: LazyPattern =
    LazyPattern::new(r"^(?:[@\w./-]+ test[\w:-]*: |[@\w./#-]+:test[\w:-]*: |@?[\w./-]+: )(.*)$");

/// Returns the lines grouped by package, because parallel packages mix their lines; `None` when no line has a
/// package name.
fn without_package_names(output: &str) -> Option<String> {
    let (mut packages, mut places) = (Vec::<String>::new(), HashMap::new());
    for line in output.lines() {
        let Some(rest) = PACKAGE_NAME.first(line) else {
            continue;
        };
        let name = line.strip_suffix(rest).unwrap_or_default();
        let at = *places.entry(name).or_insert_with(|| {
            packages.push(String::new());
            packages.len() - 1
        });
        if let Some(text) = packages.get_mut(at) {
            text.push_str(rest);
            text.push('\n');
        }
    }
    let text = packages.concat();
    (!text.is_empty()).then_some(text)
}

/// Variables that make runners name their tests and print without colors.
pub(super) fn runner_environment() -> [(String, String); 2] {
    [("NO_COLOR", "1"), ("PYTEST_ADDOPTS", "-rfEsxXp")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// Returns a terminal's text without colors and other escapes. A line that is overwritten becomes several
/// lines.
pub(super) fn strip_escapes(output: &str) -> String {
    let mut text = String::with_capacity(output.len());
    let mut rest = output.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\r' if rest.peek() == Some(&'\n') => {}
            // Progress bars rewrite their line after a carriage return.
            '\r' => text.push('\n'),
            c if c.is_control() && c != '\n' && c != '\t' => {}
            c => text.push(c),
        }
    }
    text
}

fn skip_escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.next() {
        // A control sequence (CSI) ends with a byte in 0x40–0x7E (ECMA-48).
        Some('[') => while rest.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
        // An operating system command (OSC) ends with BEL or with the ESC of the string terminator.
        Some(']') => while rest.next().is_some_and(|c| c != '\u{7}' && c != '\u{1b}') {},
        _ => {}
    }
}

/// Mark between the titles of groups and the title of a test in a whole name.
const SEPARATOR: &str = " › ";

/// Groups around the current line of a listing that shows them by indentation.
///
/// Runners name a failing test with its groups and a passing one without them. Only the whole name identifies the
/// test in both results.
#[derive(Default)]
struct TitleStack<'t> {
    open: Vec<OpenTitle<'t>>,
}

struct OpenTitle<'t> {
    indentation: usize,
    title: &'t str,
}

impl<'t> TitleStack<'t> {
    /// Opens a group, which closes all groups that are not around it.
    fn open(&mut self, indentation: usize, title: &'t str) {
        self.open.retain(|open| open.indentation < indentation);
        self.open.push(OpenTitle { indentation, title });
    }

    /// Closes a group that prints its title a second time at its end. Returns false for any other line.
    fn close(&mut self, indentation: usize, title: &str) -> bool {
        self.open.retain(|open| open.indentation <= indentation);
        let last = self.open.last();
        let is_open = last.is_some_and(|last| last.indentation == indentation && last.title == title);
        if is_open {
            self.open.pop();
        }
        is_open
    }

    /// Returns the whole name of a test: the titles of its groups, then its own.
    fn name(&mut self, indentation: usize, own: &str, separator: &str) -> String {
        self.open.retain(|open| open.indentation < indentation);
        let mut name = String::new();
        for text in self.open.iter().flat_map(|open| [open.title, separator]) {
            append_title(&mut name, text);
        }
        append_title(&mut name, own);
        name
    }
}

/// Appends to a name up to its limit. The title of a group is in the name of each of its tests, so a long title would
/// exhaust the memory.
fn append_title(name: &mut String, text: &str) {
    let room = MAX_NAME_BYTES.saturating_sub(name.len());
    name.push_str(truncate_bytes(text, room));
}

/// Joins the title of a group and that of a test.
fn join_titles(group: &str, separator: &str, own: &str) -> String {
    let mut name = String::new();
    for text in [group, separator, own] {
        append_title(&mut name, text);
    }
    name
}

fn measure_indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Line of a listing that shows groups by indentation.
struct ListedLine {
    indentation: usize,
    is_blank: bool,
    is_test: bool,
}

/// Returns for each line whether it is the title of a group: below further titles at most, a test follows.
///
/// Each level has two more spaces than the one around it. Lines without indentation are output of the tests, and so
/// are the indented ones after them, up to the next test.
fn find_group_titles(lines: &[&str], is_test: impl Fn(&str) -> bool) -> Vec<bool> {
    let listed: Vec<ListedLine> = lines
        .iter()
        .map(|line| ListedLine {
            indentation: measure_indentation(line),
            is_blank: line.trim().is_empty(),
            is_test: is_test(line),
        })
        .collect();
    let mut is_output = false;
    let mut next_tests = listed
        .iter()
        .enumerate()
        .filter(|(_, line)| line.is_test)
        .peekable();
    let mut found = Vec::with_capacity(lines.len());
    for (at, (text, line)) in lines.iter().zip(&listed).enumerate() {
        let is_title = if line.is_blank || line.is_test {
            is_output = false;
            false
        } else if text.starts_with(' ') {
            while next_tests.next_if(|(test, _)| *test < at).is_some() {}
            let next_test = next_tests.peek().map(|(_, test)| *test);
            let rest = listed.get(at + 1..).unwrap_or_default();
            leads_to_test(rest, line.indentation, is_output, next_test)
        } else {
            is_output = true;
            false
        };
        found.push(is_title);
    }
    found
}

/// Returns true when titles of deeper groups and then a test follow. `is_strict`: without any output between them.
/// `next_test` is the first test in `rest`.
fn leads_to_test(rest: &[ListedLine], depth: usize, is_strict: bool, next_test: Option<&ListedLine>) -> bool {
    let mut depth = depth;
    for line in rest {
        if line.is_test {
            return line.indentation == depth + 2;
        }
        let is_text = !line.is_blank && line.indentation > 0;
        if !is_text && is_strict {
            return false;
        }
        if is_text && line.indentation != depth + 2 {
            return false;
        }
        if is_text {
            depth = line.indentation;
        } else if !line.is_blank {
            // All lines up to the test are output. They are not read here: each title before them would read them
            // again.
            return next_test.is_some_and(|test| test.indentation > depth);
        }
    }
    false
}

fn new_report(runner: &str) -> TestReport {
    TestReport {
        runner: runner.to_owned(),
        ..TestReport::default()
    }
}

fn count_items<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

/// Parses the number of a group; 0 for a group without a match.
fn parse_group(sum: &Captures<'_>, group: usize) -> u32 {
    sum.get(group).map_or(0, |found| parse_number(found.as_str()))
}

/// Parses a number. A number that does not fit becomes the largest one.
fn parse_number(text: &str) -> u32 {
    text.parse().unwrap_or(if text.is_empty() { 0 } else { u32::MAX })
}

fn failed_test(id: impl Into<String>, message: impl Into<String>) -> FailedTest {
    let mut message = message.into();
    if message.len() > MAX_MESSAGE_BYTES {
        // Several tests may have the same message.
        message = truncate_bytes(&message, MAX_MESSAGE_BYTES).to_owned();
    }
    FailedTest {
        id: id.into(),
        message,
    }
}

/// Returns the number of the first line with each name. A search for each test of a long output would read all of its
/// lines for each.
fn index_lines<'t>(
    lines: &[&'t str],
    find_name: impl Fn(&'t str) -> Option<&'t str>,
) -> HashMap<&'t str, usize> {
    let mut places = HashMap::new();
    for (at, line) in lines.iter().copied().enumerate() {
        if let Some(name) = find_name(line) {
            places.entry(name).or_insert(at);
        }
    }
    places
}

/// Returns the first nonempty lines up to a line for which `is_end` is true.
fn first_message_lines<'t>(lines: impl Iterator<Item = &'t str>, is_end: impl Fn(&str) -> bool) -> String {
    let lines = lines.take(SEARCHED_LINES).take_while(|line| !is_end(line));
    let message: Vec<&str> = lines
        .map(|line| truncate_bytes(line.trim(), MAX_MESSAGE_BYTES))
        .filter(|line| !line.is_empty())
        .take(MESSAGE_LINES)
        .collect();
    message.join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a recorded output of a runner from `fixtures`.
    pub(super) fn read_fixture(name: &str) -> String {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/checks/report/fixtures");
        std::fs::read_to_string(format!("{folder}/{name}")).unwrap()
    }

    pub(super) fn count_results(report: &TestReport) -> (u32, u32, u32) {
        (report.passed, report.failed, report.skipped)
    }

    pub(super) fn list_failing_tests(report: &TestReport) -> Vec<&str> {
        report.failing.iter().map(|test| test.id.as_str()).collect()
    }

    #[test]
    fn each_output_matches_one_parser() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/checks/report/fixtures");
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".xml") {
                continue;
            }
            let output = strip_escapes(&read_fixture(&name));
            let takers = PARSERS.iter().filter(|parse| parse(&output).is_some()).count();
            assert_eq!(
                takers,
                1,
                "{name}: {:?}",
                parse_output(&output).map(|report| report.runner)
            );
            seen += 1;
        }
        assert!(seen >= 50, "{seen} fixtures");
    }

    #[test]
    fn group_titles_precede_tests_of_next_level() {
        let is_test = |line: &str| line.trim_start().starts_with("ok");
        for (text, expected) in [
            ("  a\n    ok", [true, false].as_slice()),
            ("  a\n      ok", &[false, false]),
            ("  a\n    b\n      ok", &[true, true, false]),
            ("  a\n   b\n      ok", &[false, false, false]),
            // Output between a title and its test.
            ("  a\n\nout\n  out\n      ok", &[true, false, false, false, false]),
            ("  a\nout\n  ok", &[false, false, false]),
            ("  a\nout", &[false, false]),
            ("out\n  a\n\n    ok", &[false, false, false, false]),
        ] {
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(find_group_titles(&lines, is_test), expected, "{text:?}");
        }
        // A reader that reads the rest for each line would not end.
        let long = "  a\n\nout\n\n".repeat(200_000);
        let lines: Vec<&str> = long.lines().collect();
        assert!(!find_group_titles(&lines, is_test).contains(&true));
    }

    #[test]
    fn prefixed_lines_are_grouped_by_package() {
        let tap = |name: &str| {
            read_fixture("npm_node_tap_failed.txt")
                .lines()
                .map(|line| format!("{name}{line}"))
                .collect::<Vec<_>>()
        };
        for names in [
            ["packages/a test: ", "packages/b test: "],
            ["@acme/a:test: ", "@acme/b:test: "],
            ["@acme/a: ", "@acme/b: "],
        ] {
            let (one, other) = (tap(names[0]), tap(names[1]));
            let mixed: Vec<&str> = one
                .iter()
                .zip(&other)
                .flat_map(|(one, other)| [one.as_str(), other.as_str()])
                .collect();
            let report = parse_output(&mixed.join("\n")).unwrap();
            assert_eq!(
                (report.runner.as_str(), count_results(&report)),
                ("node", (4, 4, 4)),
                "{names:?}"
            );
        }
    }

    #[test]
    fn two_runner_outputs_add_up() {
        let both = format!(
            "{}\n{}",
            read_fixture("cargo_passed.txt"),
            read_fixture("pytest_failed.txt")
        );
        let report = parse_output(&both).unwrap();
        assert_eq!(report.runner, "cargo, pytest");
        assert!(report.failed > 0 && report.passed > 3);
    }

    #[test]
    fn many_names_are_read_in_one_pass() {
        type OutputParser = fn(&str) -> Option<TestReport>;
        const COUNT: usize = 30_000;
        let list = |line: &dyn Fn(usize) -> String| (0..COUNT).map(line).collect::<String>();
        let node_tests = list(&|n| format!("✖ t{n} (1ms)\n"));
        let counts = ["tests", "pass", "fail", "cancelled", "skipped", "todo"];
        let node_counts = counts.map(|count| format!("ℹ {count} {}\n", u8::from(count == "fail")));
        let cases: [(OutputParser, String); 12] = [
            (
                jest::parse_jest,
                list(&|n| format!("  ● t{n}\n")) + "Test Suites: 1 failed\n",
            ),
            (
                playwright::parse_playwright,
                format!(
                    "Running 9 tests using 1 worker\n{}",
                    list(&|n| format!("  {n}) t{n}\n"))
                ),
            ),
            (
                cargo::parse_cargo,
                list(&|n| format!("        FAIL [   0.005s] shop t{n}\n"))
                    + "     Summary [   0.006s] 9 tests run: 0 passed, 9 failed, 0 skipped\n",
            ),
            (
                cargo::parse_cargo,
                list(&|n| format!("test a.rs - f{n} (line {n}) ... FAILED\n"))
                    + "test result: FAILED. 0 passed; 9 failed; 0 ignored; 0 measured; 0 filtered out\n",
            ),
            (
                pest::parse_pest,
                format!("   FAIL  A\n{}", list(&|n| format!("  ⨯ t{n}  0.01s\n")))
                    + &list(&|n| format!("   FAILED  A > t{n}\n"))
                    + "  Tests:    9 failed\n  Duration: 0.05s\n",
            ),
            (
                gotestsum::parse_gotestsum,
                list(&|n| format!("=== FAIL: p t{n} (0.00s)\n")) + "DONE 9 tests, 9 failures in 0.1s\n",
            ),
            (
                exunit::parse_exunit,
                list(&|n| format!("  1) test t{n} (M)\n  * test u{n} (0.01ms)\n"))
                    + "Finished in 0.03 seconds\n9 tests, 9 failures\n",
            ),
            (
                unittest::parse_unittest,
                list(&|n| format!("FAIL: t{n} (m.C)\n")) + "Ran 9 tests in 1s\n\nFAILED (failures=9)\n",
            ),
            (
                deno::parse_deno,
                list(&|n| format!("t{n} ... FAILED (0ms)\nt{n} => ./a.ts:1:1\n"))
                    + "FAILED | 0 passed | 9 failed (37ms)\n",
            ),
            (
                ava::parse_ava,
                list(&|n| format!("  ✘ [fail]: t{n}\n")) + "  ─\n\n  9 tests failed\n",
            ),
            (
                ctest::parse_native_tests,
                list(&|n| format!("[  FAILED  ] A.t{n}\n")) + "[==========] 9 tests from 1 test suite ran.\n",
            ),
            (
                node::parse_node,
                format!(
                    "{node_tests}{}\n✖ failing tests:\n\n{node_tests}",
                    node_counts.concat()
                ),
            ),
        ];
        // A parser that compares each name with all others would not end.
        for (parse, output) in cases {
            let report = parse(&output).unwrap();
            assert_eq!(report.failing.len(), COUNT, "{}", report.runner);
        }
        let packages = list(&|n| format!("p{n}: 1 passed in 0.1s\n"));
        let passed = parse_output(&packages).unwrap().passed;
        assert_eq!(usize::try_from(passed).unwrap(), COUNT);
    }

    #[test]
    fn long_title_is_not_in_each_name() {
        let title = "t".repeat(1 << 16);
        let repeat = |line: &str| line.repeat(1000);
        for output in [
            format!("TAP version 13\n# {title}\n{}1..1000\n", repeat("ok 1\n")),
            format!(
                "TAP version 14\n# Subtest: {title}\n{}ok 1 - a\n1..1\n",
                repeat("    ok 1 - b\n")
            ),
            format!(
                "\n  {title}\n{}\n\n  1000 passing (5ms)\n",
                repeat("    ✔ count\n")
            ),
            format!(
                "{title} [a.exs]\n{}\nFinished in 0.03 seconds\n1000 tests, 0 failures\n",
                repeat("  * test a (0.01ms)\n")
            ),
            format!(
                "\n   PASS  {title}\n{}\n  Tests:    1000 passed\n  Duration: 0.05s\n",
                repeat("  ✓ adds up   0.02s\n")
            ),
            format!(
                "=== FAIL: p {} (0.00s)\nDONE 1 test, 1 failure in 0.1s\n",
                "a/".repeat(1 << 12)
            ),
            format!(
                "{}---- a stdout ----\na panicked at {title}\ntest result: FAILED. 0 passed; 1000 failed; 0 ignored; 0 measured; 0 filtered out\n",
                repeat("test a ... FAILED\n")
            ),
        ] {
            let report = parse_output(&output).unwrap();
            let failing = report.failing.iter().flat_map(|test| [&test.id, &test.message]);
            let bytes: usize = report.passing.iter().chain(failing).map(String::len).sum();
            assert!(bytes < 2 << 20, "{}: {bytes} bytes", report.runner);
        }
        let message = failed_test("a", "é".repeat(9000)).message;
        assert_eq!(message.chars().count(), 2 * (MAX_TEST_MESSAGE + 1));
    }

    #[test]
    fn run_that_ended_early_is_incomplete() {
        for output in [
            // A failing test of another package does not explain the crash.
            "--- FAIL: TestTotal (0.00s)\n    cart_test.go:4: 0 is not 30\nFAIL\nFAIL\tacme/cart\t0.004s\nFAIL\tacme/shop\t0.002s\nok  \tacme/price\t0.003s\nFAIL\n",
            "panic: test timed out after 1s\nrunning tests:\n\tTestTotal (1s)\nFAIL\tacme/shop\t1.0s\nok  \tacme/price\t0.003s\nFAIL\n",
            "{\"Action\":\"fail\",\"Package\":\"acme/cart\",\"Test\":\"TestTotal\"}\n{\"Action\":\"fail\",\"Package\":\"acme/cart\"}\n{\"Action\":\"fail\",\"Package\":\"acme/shop\"}\n",
            "test a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\nrunning 1 test\nerror: test failed, to rerun pass `--test shop`\n\nCaused by:\n  process didn't exit successfully: `/w/target/debug/deps/shop-1` (signal: 6, SIGABRT: process abort signal)\n",
            "Passed!  - Failed:     0, Passed:     1, Skipped:     0, Total:     1\nThe active test run was aborted. Reason: Test host process crashed\n",
            "[INFO] Tests run: 1, Failures: 0, Errors: 0, Skipped: 0\n[ERROR] Failed to execute goal x: ExecutionException The forked VM terminated without properly saying goodbye.\n",
            "!!!!! _pytest.outcomes.Exit: no database !!!!!\n===== 1 passed in 0.01s =====\n",
            "INTERNALERROR> KeyError: 'x'\n\n===== 1 passed in 0.01s =====\n",
            "[error] Error: Total 1, Failed 0, Errors 0, Passed 1\n",
        ] {
            let report = parse_output(output).unwrap();
            assert!(report.collection_error, "{output}: {report:?}");
        }
    }

    #[test]
    fn words_about_tests_are_no_tests() {
        for output in [
            "",
            "All tests passed!\n",
            "PASSED\n",
            "3 passed\n",
            "ok\n",
            "Tests: all of them\n",
            "Build succeeded.\n    0 Warning(s)\n    0 Error(s)\n",
            "> tsc --noEmit\n\n",
        ] {
            assert_eq!(parse_output(output), None, "{output}");
        }
    }

    #[test]
    fn colours_and_overwritten_lines_go() {
        assert_eq!(
            strip_escapes("\u{1b}[1;32mok\u{1b}[0m\r\n50%\r100%\n\u{1b}]0;title\u{7}x"),
            "ok\n50%\n100%\nx"
        );
    }

    proptest! {
        #[test]
        fn no_output_stops_a_parser(
            start in "[ -~\n]{0,200}",
            name in proptest::sample::select(vec![
                "pytest_failed.txt", "jest_failed.txt", "go_failed.txt", "go_json.txt", "cargo_failed.txt",
                "unittest_failed.txt", "tape_failed.txt", "ava_failed.txt", "bats_pretty_failed.txt", "deno_failed.txt", "bun_failed.txt",
                "playwright_list_failed.txt", "minitest_verbose_failed.txt", "testunit_failed.txt", "ctest_failed.txt",
                "vitest_tap_failed.txt", "node_tap_failed.txt", "mocha_failed.txt", "vitest_failed.txt", "rspec_failed.txt",
            ]),
            cut in 0usize..4000,
            end in "\\PC{0,200}",
        ) {
            let whole = read_fixture(name);
            let at = (0..=cut.min(whole.len())).rev().find(|at| whole.is_char_boundary(*at)).unwrap();
            let output = format!("{start}{}{end}", &whole[..at]);
            let report = parse_output(&strip_escapes(&output)).unwrap_or_default().bounded();
            prop_assert!(report.failing.len() <= domain::check::MAX_TESTS);
        }
    }
}
