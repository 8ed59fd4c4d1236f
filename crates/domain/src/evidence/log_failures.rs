//! Failures in a log, normalized for comparison with another log: names of tests, and error lines without
//! numbers.

use std::collections::{BTreeMap, BTreeSet};

// Maximum number of distinct test names or lines per log.
const MOST: usize = 2_000;
// Signs that test runners put before the name of a failed test.
const SIGNS: [&str; 12] = [
    "--- FAIL: ",
    "● ",
    "✕ ",
    "✗ ",
    "✖ ",
    "× ",
    "⨯ ",
    "(fail) ",
    "✘ [fail]: ",
    "FAIL: ",
    "ERROR: ",
    "[  FAILED  ] ",
];
// Signs that other programs print too.
const COMMON_SIGNS: [&str; 4] = ["✗ ", "✖ ", "× ", "ERROR: "];
// Parts of error messages of compilers and interpreters that identify an error anywhere in a line.
const ERRORS: [&str; 7] = [
    "error ts",
    "error cs",
    "syntaxerror",
    "importerror",
    "modulenotfounderror",
    "referenceerror",
    "cannot find symbol",
];
// Words after the number of failures in a summary.
const COUNTED: [&str; 5] = ["error", "fail", "problem", "warning", "violation"];
// Mark between the titles in a whole name.
const SEPARATOR: &str = " › ";

// Lines of source between Python's name of a file and its error.
const MAX_SOURCE_LINES: usize = 4;

/// Failures of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFailures {
    /// Names of failed tests.
    tests: BTreeSet<String>,
    /// Lines that report an error, with their numbers of occurrences. In a log without errors and names of
    /// tests, these are the lines that mention an error or name a line of a file.
    lines: BTreeMap<String, usize>,
    /// The largest number of failures in a summary; 0 in a log with errors or names of tests.
    counted: u64,
}

impl LogFailures {
    /// Returns true when the log shows no failure.
    pub fn is_empty(&self) -> bool {
        self.tests.is_empty() && self.lines.is_empty()
    }

    /// Returns true when `base` shows every failure of this log.
    ///
    /// A log without a failure is not known: it does not show why its check failed. Lines count as often as
    /// they occur, because two tests may fail with one message, and two files with one error.
    pub fn are_known_in(&self, base: &Self) -> bool {
        let is_known = |line: &str, count: usize| base.lines.get(line).is_some_and(|known| *known >= count);
        !self.is_empty()
            && self.tests.len() < MOST
            && self.lines.len() < MOST
            && self.counted <= base.counted
            && self.tests.is_subset(&base.tests)
            && self.lines.iter().all(|(line, count)| is_known(line, *count))
    }
}

/// Lists the failures of a log: names of failed tests, and errors that prevented tests from running.
///
/// In a log without either, every line counts that mentions an error or names a line of a file. Numbers in
/// such lines are removed, because line numbers shift between commits.
pub fn list_failures(log: &str) -> LogFailures {
    let plain: Vec<String> = log.lines().map(strip_prefixes).collect();
    let lines = || {
        plain
            .iter()
            .map(|line| line.trim())
            .filter(|line| !line.is_empty())
    };
    let mut found = LogFailures {
        tests: find_tests(&plain).collect(),
        ..LogFailures::default()
    };
    for (at, line) in plain.iter().enumerate() {
        let line = line.trim();
        // The line of a failed test may end in its message, which may differ between two runs.
        if find_test(line).is_none()
            && let Some(error) = find_error(line)
        {
            let place = find_error_place(&plain, at).unwrap_or_default();
            *found.lines.entry(format!("{error}{place}")).or_default() += 1;
        }
    }
    if found.is_empty() {
        // Lines that only mention an error also occur in logs of passing tests, so they count only without a
        // certain failure.
        for line in lines().filter(|line| mentions_error(line) || begins_with_place(line)) {
            *found.lines.entry(remove_numbers(line)).or_default() += 1;
        }
        found.counted = lines().map(count_failures).max().unwrap_or_default();
    }
    while found.tests.len() > MOST {
        found.tests.pop_last();
    }
    while found.lines.len() > MOST {
        found.lines.pop_last();
    }
    found
}

/// Returns true when a log names a failed test in the format of a test runner.
pub(crate) fn has_failed_test(log: &str) -> bool {
    let mut plain: Vec<String> = log.lines().map(strip_prefixes).collect();
    plain.retain(|line| !is_ambiguous(line.trim()));
    find_tests(&plain).next().is_some()
}

/// Returns true for a line that may come from another program than a test runner, or from a suite that could
/// not begin.
fn is_ambiguous(line: &str) -> bool {
    // pytest-cov and nyc report a missed threshold with the sign of a failed test.
    let misses_coverage = line.starts_with("FAIL Required test coverage of ")
        || (line.starts_with("ERROR: Coverage for ") && line.contains(" does not meet "));
    if misses_coverage || line.ends_with("Test suite failed to run") {
        return true;
    }
    let Some(name) = COMMON_SIGNS.iter().find_map(|sign| line.strip_prefix(sign)) else {
        return false;
    };
    let is_unittest = line.starts_with("ERROR: ") && (name.starts_with("test") || name.starts_with("setUp"));
    !is_unittest && strip_duration(name).len() == name.trim_end().len()
}

/// Finds the names of failed tests, in the order of the lines.
fn find_tests(plain: &[String]) -> impl Iterator<Item = String> {
    // Numbered headings are common in other texts, so Mocha's count of failures has to be in the log.
    let is_mocha = plain.iter().any(|line| {
        let count = line.trim().strip_suffix(" failing");
        count.is_some_and(is_number)
    });
    plain.iter().enumerate().filter_map(move |(at, line)| {
        find_test(line.trim())
            .or_else(|| find_numbered_test(plain, at, is_mocha))
            .or_else(|| find_ruby_test(plain, at))
    })
}

/// Returns a line without terminal colors, and without the time and the marks that GitHub Actions adds.
fn strip_prefixes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(&rest[..at]);
        let after = rest[at..].trim_start_matches(['\u{1b}', '[']);
        let end = after
            .find(|c: char| c.is_ascii_alphabetic())
            .map_or(after.len(), |end| end + 1);
        rest = &after[end..];
    }
    plain.push_str(rest);
    let line = match plain.split_once(' ') {
        Some((time, line)) if is_time(time) => line,
        _ => &plain,
    };
    // The indentation stays: it orders the titles of a test.
    match line.trim_start().strip_prefix("##[error]") {
        Some(error) => error.trim().to_owned(),
        None => line.trim_end().to_owned(),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn measure_indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the test of a numbered heading of Playwright, Jasmine, Mocha or Cypress.
fn find_numbered_test(plain: &[String], at: usize, is_mocha: bool) -> Option<String> {
    let line = plain.get(at)?;
    let (_, title) = line
        .trim_start()
        .split_once(") ")
        .filter(|(number, _)| is_number(number))?;
    let title = title.trim_end_matches(['─', ' ']).trim_start();
    let rest = plain.get(at + 1..).unwrap_or_default();
    // Playwright names the place of the test: `1) [chromium] › cart.spec.js:3:31 › cart › total`.
    let parts: Vec<&str> = title.split(SEPARATOR).collect();
    let bare: Vec<&str> = parts.iter().map(|part| strip_place(part)).collect();
    if parts.len() > 1 && parts != bare {
        return Some(format!("test {}", bare.join(SEPARATOR)));
    }
    // Jasmine prints the whole name, and the message below it.
    if rest.first().is_some_and(|next| next.trim() == "Message:") {
        return Some(format!("test {title}"));
    }
    // minitest numbers the kinds of problems.
    if !is_mocha || matches!(title, "Failure:" | "Error:" | "Skipped:") {
        return None;
    }
    // Mocha indents the second title by five more spaces, and each further one by two more. The last title ends
    // in a colon.
    let start = measure_indentation(line) + 5;
    let mut titles = vec![title];
    for next in rest {
        let expected = start + 2 * (titles.len() - 1);
        if next.trim().is_empty() || measure_indentation(next) != expected {
            break;
        }
        titles.push(next.trim());
    }
    while titles.last().is_some_and(|last| !last.ends_with(':')) {
        titles.pop();
    }
    let name = titles.join(SEPARATOR);
    Some(format!("test {}", name.strip_suffix(':')?))
}

/// Returns the test below a heading of minitest, Rails or test-unit, such as `CartTest#test_total [x.rb:5]:`.
fn find_ruby_test(plain: &[String], at: usize) -> Option<String> {
    let heading = plain.get(at.checked_sub(1)?)?.trim();
    let heading = heading.split_once(") ").map_or(heading, |(_, heading)| heading);
    if !matches!(heading, "Failure:" | "Error:") {
        return None;
    }
    let name = plain.get(at)?.trim().strip_suffix(':')?;
    let name = match name.rsplit_once(" [") {
        Some((name, place)) if place.ends_with(']') => name,
        _ => name,
    };
    let (class, test) = name.split_once('#')?;
    // The number that `it` puts into a name counts the tests before it.
    let numbered = test.strip_prefix("test_").and_then(|test| test.split_once('_'));
    let title = numbered.filter(|(number, _)| number.len() == 4 && is_number(number));
    Some(match title {
        Some((_, title)) => format!("test {class}#test_{title}"),
        None => format!("test {name}"),
    })
}

/// Removes line and column from the file of a test.
fn strip_place(part: &str) -> &str {
    let bare = part.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':');
    match part.strip_prefix(bare) {
        Some(place) if place.starts_with(':') && bare.contains('.') => bare,
        _ => part,
    }
}

/// Returns the largest number before a word such as `errors` in a line.
fn count_failures(line: &str) -> u64 {
    let words: Vec<&str> = line.split_whitespace().collect();
    let counts = words.windows(2).filter_map(|pair| match pair {
        [number, word] => {
            let word = word.to_lowercase();
            let is_counted = COUNTED.iter().any(|counted| word.starts_with(counted));
            let number = number.trim_matches(|c: char| !c.is_ascii_digit());
            number.parse::<u64>().ok().filter(|_| is_counted)
        }
        _ => None,
    });
    counts.max().unwrap_or_default()
}

/// Returns true for `file.ext::name`. The target of a log line, such as `shop::client: lost`, has no extension.
fn begins_with_file(test: &str) -> bool {
    test.split_once("::")
        .is_some_and(|(file, _)| file.contains('.') && !file.contains(' '))
}

fn is_time(word: &str) -> bool {
    // The shortest time of RFC 3339 in UTC, `2026-01-01T00:00:00Z`, has 20 bytes.
    word.len() >= 20
        && word.ends_with('Z')
        && word.starts_with(|c: char| c.is_ascii_digit())
        && word.contains('T')
}

/// Returns the name of the test whose failure a line reports.
fn find_test(line: &str) -> Option<String> {
    let named =
        // Five bytes are the prefix alone: a sign without a name identifies no test.
        |name: &str| Some(format!("test {}", strip_duration(name.trim()))).filter(|name| name.len() > 5);
    // The formats of pytest: the summary, and the line of each test.
    for sign in ["FAILED ", "ERROR "] {
        if let Some(rest) = line.strip_prefix(sign)
            && let Some(test) = rest
                // pytest appends the message of the failure, which may differ between two runs.
                .split(" - ")
                .next()
                .filter(|test| test.contains(".py") || begins_with_file(test))
        {
            return named(test);
        }
    }
    // The format of Rust's test harness.
    if let Some(test) = line
        .strip_prefix("test ")
        .and_then(|rest| rest.strip_suffix(" ... FAILED"))
    {
        return named(test);
    }
    // The formats of Deno and of sbt.
    if let Some((test, time)) = line.split_once(" ... FAILED (")
        && time.ends_with("s)")
    {
        return named(test);
    }
    if let Some((test, _)) = line.split_once(" *** FAILED ***") {
        return named(test.trim_start_matches("[info] - "));
    }
    // The format of test-unit.
    for sign in ["Failure: test", "Error: test"] {
        if let Some(test) = line.strip_prefix(sign).map(|test| test.trim_end_matches(':'))
            && test.starts_with(['_', ':'])
            && test.ends_with(')')
        {
            return named(&format!("test{test}"));
        }
    }
    // The formats of XCTest and of Swift Testing.
    if let Some((test, _)) = line
        .strip_prefix("Test Case '")
        .and_then(|rest| rest.split_once("' failed ("))
    {
        return named(test);
    }
    if let Some((test, _)) = line
        .strip_prefix("✘ Test ")
        .and_then(|rest| rest.split_once(" failed after "))
        .filter(|(test, _)| !test.starts_with("run with "))
    {
        return named(test);
    }
    // The formats of pytest's verbose lines and of Gradle.
    if let Some((test, _)) = line.split_once(" FAILED").or_else(|| line.split_once(" ERROR "))
        && (test.contains("::") || test.contains(" > "))
    {
        return named(test);
    }
    // The Test Anything Protocol: `# TODO` and `# SKIP` mark expected failures.
    if let Some(rest) = line.strip_prefix("not ok ") {
        let name = rest
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_start()
            .trim_start_matches("- ");
        let is_expected = ["# todo", "# skip"]
            .iter()
            .any(|mark| name.to_lowercase().contains(mark));
        return if is_expected { None } else { named(name) };
    }
    // The format of RSpec: the command that repeats an example, with its description as a comment.
    if let Some((_, name)) = line
        .strip_prefix("rspec ")
        .and_then(|rest| rest.split_once(" # "))
    {
        return named(name);
    }
    // The formats of Jest and Vitest. `FAIL` alone is too common a word, so a path or a group has to follow.
    if let Some(name) = line
        .strip_prefix("FAIL ")
        .filter(|name| name.contains(['/', '.', '>']))
    {
        // nextest puts the duration before the name.
        let name = name.trim_start();
        let timed = name.strip_prefix('[').and_then(|name| name.split_once("s] "));
        return named(timed.map_or(name, |(_, name)| name));
    }
    // The format of `dotnet test`.
    if let Some(name) = line
        .strip_prefix("Failed ")
        .filter(|name| name.contains('.') && name.ends_with(']'))
    {
        return named(name.split(" [").next().unwrap_or(name));
    }
    // The format of Maven Surefire.
    if let Some(name) = line.split(" <<< ").next().filter(|name| name.len() < line.len()) {
        return named(
            name.trim_start_matches("[ERROR] ")
                .split(" -- ")
                .next()
                .unwrap_or(name),
        );
    }
    // The format of `CTest`.
    if let Some(name) = line.strip_suffix("(Failed)") {
        return named(name.trim_start_matches(|c: char| c.is_ascii_digit() || " -".contains(c)));
    }
    // PHPUnit and `ExUnit` number failed tests.
    if let Some((number, name)) = line.split_once(") ")
        && is_number(number)
        && (name.contains("::") || name.starts_with("test "))
    {
        return named(name);
    }
    SIGNS.iter().find_map(|sign| named(line.strip_prefix(sign)?))
}

/// Removes the duration or the progress at the end of a name.
fn strip_duration(name: &str) -> &str {
    let name = name.trim_end();
    let Some((before, last)) = name.rsplit_once(['(', '[']) else {
        let short = name.rsplit_once(' ').filter(|(_, last)| is_duration(last));
        return short.map_or(name, |(before, _)| before.trim_end());
    };
    if is_duration(last.trim_end_matches([')', ']'])) {
        before.trim_end()
    } else {
        name
    }
}

fn is_duration(text: &str) -> bool {
    let text = text.trim();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || ".,< ".contains(c));
    unit.len() < text.len()
        && ["ms", "s", "m", "µs", "%", "sec", "secs", "total)", "ms total"].contains(&unit)
}

/// Returns the error without numbers if a line reports an error that prevents tests from running.
fn find_error(line: &str) -> Option<String> {
    let lower = line.to_lowercase();
    let starts = lower
        .strip_prefix("error")
        .is_some_and(|rest| rest.starts_with(['[', ':']) && rest.len() > 1);
    let is_error = starts || ERRORS.iter().any(|error| lower.contains(error));
    is_error.then(|| remove_numbers(line))
}

/// Returns the file of an error where another line names it: rustc's next one, or the line above Python's source.
fn find_error_place(plain: &[String], at: usize) -> Option<String> {
    let arrow = plain
        .get(at + 1)
        .and_then(|next| next.trim().strip_prefix("--> "));
    let file = match arrow {
        Some(place) => place.split(':').next(),
        None => {
            let mut above = plain.iter().take(at).rev().take(MAX_SOURCE_LINES);
            let frame = above.find_map(|line| line.trim().strip_prefix("File \""));
            frame.and_then(|frame| frame.split('"').next())
        }
    };
    file.map(|file| format!(" in {file}"))
}

fn mentions_error(line: &str) -> bool {
    let lower = line.to_lowercase();
    [
        "error",
        "fail",
        "panicked",
        "exception",
        "warning",
        "not found",
        "expected",
    ]
    .iter()
    .any(|word| lower.contains(word))
}

/// Returns true when a line begins with `path:12`, the format of linters.
fn begins_with_place(line: &str) -> bool {
    let Some((path, rest)) = line.split_once(':') else {
        return false;
    };
    path.contains(['.', '/']) && !path.contains(' ') && rest.starts_with(|c: char| c.is_ascii_digit())
}

fn remove_numbers(line: &str) -> String {
    let letters: String = line.chars().filter(|c| !c.is_ascii_digit()).collect();
    letters.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_failure_names(log: &str) -> Vec<String> {
        let found = list_failures(log);
        found.tests.into_iter().chain(found.lines.into_keys()).collect()
    }

    fn is_known(head: &str, base: &str) -> bool {
        list_failures(head).are_known_in(&list_failures(base))
    }

    #[test]
    fn failed_tests_are_found_for_each_runner() {
        for (line, name) in [
            (
                "FAILED tests/test_cart.py::test_total[2] - assert 1 == 2",
                "tests/test_cart.py::test_total[2]",
            ),
            ("ERROR tests/test_cart.py - ImportError: x", "tests/test_cart.py"),
            (
                "tests/test_cart.py::test_total FAILED   [ 50%]",
                "tests/test_cart.py::test_total",
            ),
            (
                "FAIL: test_total (test_cart.CartTest)",
                "test_total (test_cart.CartTest)",
            ),
            ("--- FAIL: TestTotal (0.01s)", "TestTotal"),
            (
                "    --- FAIL: TestTotal/two_pieces (0.00s)",
                "TestTotal/two_pieces",
            ),
            ("test cart::total_counts ... FAILED", "cart::total_counts"),
            ("  ● cart › counts pieces", "cart › counts pieces"),
            ("    ✕ counts pieces (12 ms)", "counts pieces"),
            (
                " FAIL  src/cart.test.ts > cart > counts 14ms",
                "src/cart.test.ts > cart > counts",
            ),
            ("not ok 12 - counts pieces", "counts pieces"),
            ("rspec ./spec/cart_spec.rb:12 # Cart counts", "Cart counts"),
            ("  Failed Shop.CartTests.Counts [5 ms]", "Shop.CartTests.Counts"),
            (
                "[ERROR] CartTest.counts -- Time elapsed: 0.03 s <<< FAILURE!",
                "CartTest.counts",
            ),
            ("CartTest > counts() FAILED", "CartTest > counts()"),
            ("1) Tests\\CartTest::testCounts", "Tests\\CartTest::testCounts"),
            (
                "  2) test counts pieces (CartTest)",
                "test counts pieces (CartTest)",
            ),
            ("[  FAILED  ] Cart.Counts (3 ms)", "Cart.Counts"),
            ("cart counts ... FAILED (2ms)", "cart counts"),
            ("[info] - counts pieces *** FAILED ***", "counts pieces"),
            ("Failure: test_total(CartTest)", "test_total(CartTest)"),
            (
                "Test Case '-[ShopTests.CartTests testTotal]' failed (0.1 seconds).",
                "-[ShopTests.CartTests testTotal]",
            ),
            (
                "✘ Test \"adds up\" failed after 0.001 seconds with 1 issue.",
                "\"adds up\"",
            ),
            ("(fail) cart > total [0.16ms]", "cart > total"),
            (
                "        FAIL [   0.005s] shop cart::tests::total",
                "shop cart::tests::total",
            ),
            ("\t 3 - cart_counts (Failed)", "cart_counts"),
            (
                "2026-11-20T10:00:00.1234567Z \u{1b}[31m--- FAIL: TestTotal (0.01s)\u{1b}[0m",
                "TestTotal",
            ),
        ] {
            assert_eq!(
                list_failure_names(&format!("begin\n{line}\nend 3")),
                [format!("test {name}")],
                "{line}"
            );
        }
        assert!(list_failure_names("not ok 3 - later # TODO\nok 4 - x").is_empty());
        assert!(!has_failed_test("ERROR shop::client: connection reset by peer"));
    }

    #[test]
    fn errors_and_findings_are_compared_without_numbers() {
        let old =
            "src/a.py:10:5: E501 line too long\nsrc/b.py:3:1: F401 'os' imported but unused\nFound 2 errors.";
        let moved =
            "src/a.py:14:5: E501 line too long\nsrc/b.py:3:1: F401 'os' imported but unused\nFound 2 errors.";
        let more = format!("{moved}\nsrc/c.py:1:1: F401 're' imported but unused");
        assert_eq!(list_failures(old), list_failures(moved));
        assert!(is_known(moved, old) && !is_known(&more, old));
        let compile = "test a ... FAILED\nerror[E0425]: cannot find value `x`";
        assert!(!is_known(compile, "test a ... FAILED"));
        let in_file = format!("{compile}\n --> src/a.rs:3:1");
        let in_two = format!("{in_file}\nerror[E0425]: cannot find value `x`\n --> src/b.rs:9:1");
        assert!(is_known(&in_file, &in_two) && !is_known(&in_two, &in_file));
        let syntax = |file: &str| {
            format!("  File \"{file}\", line 3\n    x = (\n        ^\nSyntaxError: '(' was never closed")
        };
        assert!(is_known(&syntax("a.py"), &syntax("a.py")) && !is_known(&syntax("b.py"), &syntax("a.py")));
        assert!(list_failure_names("all good\n12 passed").is_empty());
    }

    /// Logs in which the name of a test spans several lines or follows other text, each with that name.
    const NESTED: [(&str, &str); 8] = [
        (
            "  cart\n    1) total\n\n  1 passing (5ms)\n  1 failing\n\n  1) cart\n       nested\n         NAME:\n     AssertionError: expected 0 to equal 30\n",
            "cart › nested › NAME",
        ),
        ("  1 failing\n\n  1) NAME:\n     AssertionError: no\n", "NAME"),
        (
            "2026-11-20T10:00:00.1234567Z   1 failing\n2026-11-20T10:00:00.1234567Z\n2026-11-20T10:00:00.1234567Z   1) cart\n2026-11-20T10:00:00.1234567Z        NAME:\n2026-11-20T10:00:00.1234567Z      CypressError: Timed out retrying\n",
            "cart › NAME",
        ),
        (
            "  1) Failure:\nCartTest#test_NAME [test/cart_test.rb:5]:\nExpected: 30\n  Actual: 0\n",
            "CartTest#test_NAME",
        ),
        (
            "Error:\nCart::when empty#test_0001_NAME:\nNoMethodError: undefined method\n",
            "Cart::when empty#test_NAME",
        ),
        (
            "  1) [chromium] › cart.spec.js:3:31 › cart › NAME ────────\n\n    Expected: 30\n    Received: 0\n",
            "[chromium] › cart.spec.js › cart › NAME",
        ),
        (
            "  1) cart.spec.ts:3:31 › NAME ────────\n\n    Test timeout of 30000ms exceeded.\n",
            "cart.spec.ts › NAME",
        ),
        (
            "Failures:\n1) cart NAME\n  Message:\n    Expected 0 to be 30.\n  Stack:\n    at <Jasmine>\n\n3 specs, 1 failure\n",
            "cart NAME",
        ),
    ];

    #[test]
    fn new_failure_of_nested_suite_is_not_known() {
        for (log, name) in NESTED {
            let (old, new) = (log.replace("NAME", "old"), log.replace("NAME", "new"));
            assert_eq!(
                list_failure_names(&new),
                [format!("test {}", name.replace("NAME", "new"))],
                "{log}"
            );
            assert!(has_failed_test(&new), "{log}");
            assert!(is_known(&old, &format!("{old}{new}")), "{log}");
            // The messages are the same, and only the names differ.
            assert!(!is_known(&new, &old), "{log}");
            assert!(!is_known(&format!("{old}{new}"), &old), "{log}");
        }
    }

    #[test]
    fn log_without_names_needs_the_same_lines() {
        let old = "3 checks failed\ncart: expected 30, got 0\ncart: expected 30, got 0";
        for (head, base, expected) in [
            (old, old, true),
            ("", old, false),
            ("", "", false),
            ("all good", "all good", false),
            (old, "all good", false),
            ("cart: expected 30, got 0", old, true),
            ("cart: expected 30, got 0\nstock: expected 1, got 2", old, false),
            // One more of the same lines, and a higher count.
            (
                "3 checks failed\ncart: expected 30, got 0\ncart: expected 30, got 0\ncart: expected 30, got 0",
                old,
                false,
            ),
            (
                "12 problems\ncart: expected 1",
                "9 problems\ncart: expected 1",
                false,
            ),
            (
                "9 problems\ncart: expected 1",
                "12 problems\ncart: expected 1",
                true,
            ),
        ] {
            assert_eq!(is_known(head, base), expected, "{head:?} {base:?}");
        }
    }
}
