//! Detects product code that depends on tests: variables that runners set, values of tests, and equality or
//! exits that replace a result.

use std::collections::BTreeSet;

use domain::check::{Finding, Severity};

use super::{
    finding,
    inventory::is_comment,
    lines::{Line, lines},
    paths::{Language, Role, language, role},
    shown,
};
use crate::{pattern::Pattern, workspace::ChangedFile};

// Shorter values occur in many places by chance.
const MIN_VALUE: usize = 4;

static AWARE: Pattern = Pattern::new(
    r#"(?x)\bPYTEST_CURRENT_TEST\b | \bJEST_WORKER_ID\b | \bVITEST\b | NODE_ENV['"\])]*\s*===?\s*['"]test | ['"]test['"]\s*===?\s*process\.env\.NODE_ENV | \btesting\.Testing\(\)
    | \bcfg!?\(\s*(?:not\(\s*)?test\b | ['"]pytest['"]\s+in\s+sys\.modules | \bsys\.modules\b.*['"](?:pytest|unittest)['"] | \bRAILS_ENV\b.*\btest\b | Rails\.env\.test\? | \bTEST_MODE\b
    | (?:getenv|environ(?:\.get)?|env)\s*[(\[.]\s*['"]?CI\b | \bprocess\.env\.CI\b | \bPHPUNIT_\w+ | \bDOTNET_RUNNING_IN_TEST\b"#,
);
/// The usual attribute of a Rust test module, which is not a finding.
static RUST_TESTS: Pattern = Pattern::new(r"^\s*#\[cfg\(\s*(?:all\(\s*)?test\b");
static EQUALITY: Pattern = Pattern::new(
    r"\bdef\s+__(?:eq|ne|hash|bool)__\b|\boperator\s*==|\bboolean\s+equals\s*\(|\bbool\s+Equals\s*\(|\boverride\s+fun\s+equals\b|\bimpl(?:<[^>]*>)?\s+PartialEq\b|\bdef\s+==\s*\(",
);
static EXIT: Pattern = Pattern::new(
    r"\bsys\.exit\(|\bos\._exit\(|\bprocess\.exit\(|\bos\.Exit\(|\bSystem\.exit\(|\b(?:std::)?process::exit\(|\bEnvironment\.Exit\(|^\s*exit\s*\(\s*0\s*\)",
);
/// Stand-ins and matchers of test libraries. A product that returns one compares equal to any expectation of
/// a test.
static TEST_DOUBLE: Pattern = Pattern::new(
    r"\bunittest\.mock\b|\bfrom\s+unittest\s+import\b.*\bmock\b|\b(?:from\s+mock\s+import|import\s+mock\b)|\bmock\.ANY\b|\b(?:Magic|Async)Mock\(|\b(?:jest|vi)\.fn\(|\bexpect\.(?:anything|any)\(|\basymmetricMatch|\bsinon\.(?:stub|match|mock)|\bgomock\.Any\(|\bMockito\.|\bArgumentMatchers\.|\bIt\.IsAny<",
);
/// Folders and files of test helpers that a product publishes for its users.
static TEST_HELPERS: Pattern = Pattern::new(
    r"(?i)(?:^|[/_.-])(?:testing|test_?utils?|testkit|mocks?|fakes?|stubs?|fixtures?)(?:[/_.-]|$)",
);
/// Condition on one whole collection, as an example in a test has it.
static SPECIAL_CASE: Pattern = Pattern::new(
    r#"\b(?:if|elif|case|when)\b.*===?\s*(?:\[[^\]]+\]|\([^()]*,[^()]*\)|\{[^}]+\}|['"`][\[{])|\bequal[s?]*\(\s*\w+\s*,\s*\[[^\]]+\]"#,
);
static BRANCH: Pattern = Pattern::new(r"\b(?:if|elif|case|when|match|switch|unless)\b|==|=>|\?");
static VALUE: Pattern =
    Pattern::new(r#""((?:[^"\\]|\\.){4,80})"|'((?:[^'\\]|\\.){4,80})'|`([^`]{4,80})`|\b(\d{4,})\b"#);

pub(super) fn findings(files: &[ChangedFile]) -> Vec<Finding> {
    let values = test_values(files);
    let product = files.iter().filter(|file| role(&file.path) == Role::Product);
    product.flat_map(|file| of(file, &values)).collect()
}

fn is_code(path: &str) -> bool {
    !matches!(
        language(path),
        Language::Other | Language::Yaml | Language::Shell | Language::Sql
    )
}

fn of(file: &ChangedFile, values: &BTreeSet<String>) -> Vec<Finding> {
    if !is_code(&file.path) {
        return Vec::new();
    }
    let added = lines(file).added;
    let mut found = Vec::new();
    for (number, line) in added.iter().filter(|(_, line)| !is_comment(line)) {
        let one = if AWARE.is_match(line) && !RUST_TESTS.is_match(line) {
            Some(("product_knows_tests", Severity::Flag))
        } else if TEST_DOUBLE.is_match(line) {
            let severity = match TEST_HELPERS.is_match(&file.path) {
                true => Severity::Flag,
                false => Severity::Block,
            };
            Some(("product_uses_test_double", severity))
        } else if EQUALITY.is_match(line) {
            // An object that equals anything passes every comparison of a test.
            Some(("equality_defined", Severity::Block))
        } else if EXIT.is_match(line) {
            // A product that exits with 0 ends the runner before a test can fail.
            Some(("exit_called", Severity::Block))
        } else if SPECIAL_CASE.is_match(line) {
            Some(("special_case_added", Severity::Flag))
        } else if BRANCH.is_match(line) && value(line, values) {
            Some(("test_value_in_product", Severity::Flag))
        } else {
            None
        };
        found.extend(one.map(|(kind, severity)| finding(&file.path, *number, kind, severity, shown(line))));
    }
    found
}

/// Returns the values in lines that the change adds to tests, such as the inputs of new tests. Values that
/// the product contained before are excluded.
fn test_values(files: &[ChangedFile]) -> BTreeSet<String> {
    let tests = files.iter().filter(|file| role(&file.path) == Role::Test);
    let known: BTreeSet<String> = files
        .iter()
        .filter(|file| role(&file.path) == Role::Product)
        .flat_map(|file| {
            file.before
                .as_deref()
                .unwrap_or_default()
                .lines()
                .flat_map(values_in)
                .collect::<Vec<_>>()
        })
        .collect();
    let added = tests.flat_map(|file| {
        let added: Vec<Line<'_>> = lines(file).added;
        added
            .iter()
            .flat_map(|(_, line)| values_in(line))
            .collect::<Vec<_>>()
    });
    // A value that the product already contains does not come from the tests.
    added.filter(|value| !known.contains(value)).collect()
}

fn values_in(line: &str) -> Vec<String> {
    let found = VALUE.all(line).filter_map(|value| {
        value
            .iter()
            .skip(1)
            .flatten()
            .next()
            .map(|value| value.as_str().to_owned())
    });
    found.filter(|value| value.chars().count() >= MIN_VALUE).collect()
}

fn value(line: &str, values: &BTreeSet<String>) -> bool {
    values_in(line).iter().any(|value| values.contains(value))
}
