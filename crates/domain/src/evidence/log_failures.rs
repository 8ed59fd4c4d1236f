//! Failures in a log, normalized for comparison with another log: names of tests, and error lines without
//! numbers.

use std::collections::BTreeSet;

// Maximum number of distinct failures per log.
const MOST: usize = 2_000;
// Signs that test runners put before the name of a failed test.
const SIGNS: [&str; 9] = [
    "--- FAIL: ",
    "● ",
    "✕ ",
    "✗ ",
    "✖ ",
    "× ",
    "FAIL: ",
    "ERROR: ",
    "[  FAILED  ] ",
];
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

/// Lists the failures of a log: names of failed tests, and errors that prevented tests from running.
///
/// In a log without either, every line counts that mentions an error or names a line of a file. Numbers in
/// such lines are removed, because line numbers shift between commits.
pub fn list_failures(log: &str) -> BTreeSet<String> {
    let lines = || log.lines().map(strip_prefixes).filter(|line| !line.is_empty());
    let certain: BTreeSet<String> = lines()
        .filter_map(|line| find_test(&line).or_else(|| find_error(&line)))
        .take(MOST)
        .collect();
    // Lines that only mention an error also occur in logs of passing tests, so they count only without a
    // certain match.
    if !certain.is_empty() {
        return certain;
    }
    lines()
        .filter(|line| speaks_of_error(line) || names_place(line))
        .map(|line| without_numbers(&line))
        .take(MOST)
        .collect()
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
    line.trim().trim_start_matches("##[error]").trim().to_owned()
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
        |name: &str| Some(format!("test {}", without_duration(name.trim()))).filter(|name| name.len() > 5);
    // The formats of pytest: the summary, and the line of each test.
    for sign in ["FAILED ", "ERROR "] {
        if let Some(rest) = line.strip_prefix(sign)
            && let Some(test) = rest
                // pytest appends the message of the failure, which may differ between two runs.
                .split(" - ")
                .next()
                .filter(|test| test.contains("::") || test.contains(".py"))
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
        return named(name);
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
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && (name.contains("::") || name.starts_with("test "))
    {
        return named(name);
    }
    SIGNS.iter().find_map(|sign| named(line.strip_prefix(sign)?))
}

/// Removes the duration or the progress at the end of a name.
fn without_duration(name: &str) -> &str {
    let name = name.trim_end();
    let Some((before, last)) = name.rsplit_once(['(', '[']) else {
        let short = name.rsplit_once(' ').filter(|(_, last)| is_duration(last));
        return short.map_or(name, |(before, _)| before.trim_end());
    };
    match is_duration(last.trim_end_matches([')', ']'])) {
        true => before.trim_end(),
        false => name,
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
        .is_some_and(|rest| rest.starts_with(['[', ':']));
    let is_error = starts || ERRORS.iter().any(|error| lower.contains(error));
    is_error.then(|| without_numbers(line))
}

fn speaks_of_error(line: &str) -> bool {
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
fn names_place(line: &str) -> bool {
    let Some((path, rest)) = line.split_once(':') else {
        return false;
    };
    path.contains(['.', '/']) && !path.contains(' ') && rest.starts_with(|c: char| c.is_ascii_digit())
}

fn without_numbers(line: &str) -> String {
    let letters: String = line.chars().filter(|c| !c.is_ascii_digit()).collect();
    letters.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_failure_names(log: &str) -> Vec<String> {
        list_failures(log).into_iter().collect()
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
    }

    #[test]
    fn errors_and_findings_are_compared_without_numbers() {
        let old =
            "src/a.py:10:5: E501 line too long\nsrc/b.py:3:1: F401 'os' imported but unused\nFound 2 errors.";
        let moved =
            "src/a.py:14:5: E501 line too long\nsrc/b.py:3:1: F401 'os' imported but unused\nFound 2 errors.";
        let more = format!("{moved}\nsrc/c.py:1:1: F401 're' imported but unused");
        assert_eq!(list_failures(old), list_failures(moved));
        assert!(!list_failures(&more).is_subset(&list_failures(old)));
        let compile = "test a ... FAILED\nerror[E0425]: cannot find value `x`";
        assert!(!list_failures(compile).is_subset(&list_failures("test a ... FAILED")));
        assert!(list_failure_names("all good\n12 passed").is_empty());
    }
}
