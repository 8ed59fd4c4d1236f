//! Product code of a change: code that depends on tests, and the names that it defines.
//!
//! Code depends on tests through variables that runners set, values of tests, and equality or exits that
//! replace a result.

use std::collections::BTreeSet;

use domain::check::{ChangeFinding, FindingSeverity};

use super::{
    equality::find_equalities,
    inventory::is_comment_in,
    new_finding,
    paths::{FilePurpose, SourceLanguage, classify_path, detect_language},
    size::{NumberedLine, compare_lines},
    take_worst, truncate_line,
};
use crate::{pattern::LazyPattern, workspace::ChangedFile};

// Shorter values occur in many places by chance.
const MIN_VALUE: usize = 4;
// Limit of findings in generated files and copies of third-party code.
const MOST_GENERATED: usize = 10;

static DEFINITION: LazyPattern = LazyPattern::new(
    r"(?m)^\s*(?:export\s+|default\s+|pub(?:\([^)]*\))?\s+|public\s+|private\s+|protected\s+|internal\s+|static\s+|async\s+|abstract\s+|final\s+)*(?:def|class|fn|func(?:\s+\([^)]*\))?|function|struct|enum|trait|interface|type|module|object|fun)\s+(\w+)",
);
static WORD: LazyPattern = LazyPattern::new(r"[A-Za-z_]\w+");

static AWARE: LazyPattern = LazyPattern::new(
    r#"(?x)\bPYTEST_CURRENT_TEST\b | \bJEST_WORKER_ID\b | \bVITEST\b | NODE_ENV['"\])]*\s*===?\s*['"]test | ['"]test['"]\s*===?\s*process\.env\.NODE_ENV | \btesting\.Testing\(\)
    | \bcfg!?\(\s*(?:not\(\s*)?test\b | ['"]pytest['"]\s+in\s+sys\.modules | \bsys\.modules\b.*['"](?:pytest|unittest)['"] | \bRAILS_ENV\b.*\btest\b | Rails\.env\.test\? | \bTEST_MODE\b
    | (?:getenv|environ(?:\.get)?|env)\s*[(\[.]\s*['"]?CI\b | \bprocess\.env\.CI\b | \bPHPUNIT_\w+ | \bDOTNET_RUNNING_IN_TEST\b"#,
);
/// The usual attribute of a Rust test module, which is not a finding.
static RUST_TESTS: LazyPattern = LazyPattern::new(r"^\s*#!?\[cfg\(\s*(?:all\(\s*)?test\b");
static EXIT: LazyPattern = LazyPattern::new(
    r"\bsys\.exit\(|\bos\._exit\(|\bprocess\.exit\(|\bos\.Exit\(|\bSystem\.exit\(|\b(?:std::)?process::exit\(|\bEnvironment\.Exit\(|^\s*exit\s*\(\s*0\s*\)",
);
/// Stand-ins and matchers of test libraries. A product that returns one compares equal to any expectation of
/// a test.
static TEST_DOUBLE: LazyPattern = LazyPattern::new(
    r"\bunittest\.mock\b|\bfrom\s+unittest\s+import\b.*\bmock\b|\b(?:from\s+mock\s+import|import\s+mock\b)|\bmock\.ANY\b|\b(?:Magic|Async)Mock\(|\b(?:jest|vi)\.fn\(|\bexpect\.(?:anything|any)\(|\basymmetricMatch|\bsinon\.(?:stub|match|mock)|\bgomock\.Any\(|\bMockito\.|\bArgumentMatchers\.|\bIt\.IsAny<",
);
/// Folders and files of test helpers that a product publishes for its users.
static TEST_HELPERS: LazyPattern = LazyPattern::new(
    r"(?i)(?:^|[/_.-])(?:testing|test_?utils?|testkit|mocks?|fakes?|stubs?|fixtures?)(?:[/_.-]|$)",
);
/// Condition on one whole collection, as an example in a test has it.
static SPECIAL_CASE: LazyPattern = LazyPattern::new(
    r#"\b(?:if|elif|case|when)\b.*===?\s*(?:\[[^\]]+\]|\([^()]*,[^()]*\)|\{[^}]+\}|['"`][\[{])|\bequal[s?]*\(\s*\w+\s*,\s*\[[^\]]+\]"#,
);
static BRANCH: LazyPattern = LazyPattern::new(r"\b(?:if|elif|case|when|match|switch|unless)\b|==|=>|\?");
static VALUE: LazyPattern =
    LazyPattern::new(r#""((?:[^"\\]|\\.){4,80})"|'((?:[^'\\]|\\.){4,80})'|`([^`]{4,80})`|\b(\d{4,})\b"#);

pub(super) fn find_test_awareness(files: &[ChangedFile]) -> Vec<ChangeFinding> {
    let values = test_values(files);
    // Programs write generated files, often many and with equality, so the first findings are shown and none
    // of them blocks. Nothing checks that a program wrote a file in such a folder.
    let generated = check_files(files, FilePurpose::Generated, &values).take(MOST_GENERATED);
    let generated = generated.map(|finding| ChangeFinding {
        severity: FindingSeverity::Flag,
        ..finding
    });
    check_files(files, FilePurpose::Product, &values)
        .chain(generated)
        .collect()
}

fn check_files<'f>(
    files: &'f [ChangedFile],
    purpose: FilePurpose,
    values: &'f BTreeSet<String>,
) -> impl Iterator<Item = ChangeFinding> {
    files
        .iter()
        .filter(move |file| classify_path(&file.path) == purpose)
        .flat_map(move |file| check_product_file(file, values))
}

fn is_code(path: &str) -> bool {
    !matches!(
        detect_language(path),
        SourceLanguage::Other | SourceLanguage::Yaml | SourceLanguage::Shell | SourceLanguage::Sql
    )
}

fn check_product_file(file: &ChangedFile, values: &BTreeSet<String>) -> Vec<ChangeFinding> {
    if !is_code(&file.path) {
        return Vec::new();
    }
    let language = detect_language(&file.path);
    let mut added = compare_lines(file).added;
    added.retain(|(_, line)| !is_comment_in(language, line));
    let text = file.after.as_deref().unwrap_or_default();
    let equalities = find_equalities(language, text, &added);
    let of_double = if TEST_HELPERS.is_match(&file.path) {
        FindingSeverity::Flag
    } else {
        FindingSeverity::Block
    };
    let mut found = Vec::new();
    for (number, line) in &added {
        let is_aware = AWARE.is_match(line) && !RUST_TESTS.is_match(line);
        let has_test_value = BRANCH.is_match(line) && contains_test_value(line, values);
        let kinds = [
            is_aware.then_some(("product_knows_tests", FindingSeverity::Flag)),
            TEST_DOUBLE
                .is_match(line)
                .then_some(("product_uses_test_double", of_double)),
            equalities
                .get(number)
                .map(|severity| ("equality_defined", *severity)),
            // A product that exits with 0 ends the runner before a test can fail.
            EXIT.is_match(line)
                .then_some(("exit_called", FindingSeverity::Block)),
            SPECIAL_CASE
                .is_match(line)
                .then_some(("special_case_added", FindingSeverity::Flag)),
            has_test_value.then_some(("test_value_in_product", FindingSeverity::Flag)),
        ];
        found.extend(
            take_worst(kinds.into_iter().flatten()).map(|(kind, severity)| {
                new_finding(&file.path, *number, kind, severity, truncate_line(line))
            }),
        );
    }
    found
}

/// Returns the values in lines that the change adds to tests, such as the inputs of new tests. Values that
/// the product contained before are excluded.
fn test_values(files: &[ChangedFile]) -> BTreeSet<String> {
    let tests = files
        .iter()
        .filter(|file| classify_path(&file.path) == FilePurpose::Test);
    let known: BTreeSet<String> = files
        .iter()
        .filter(|file| classify_path(&file.path) == FilePurpose::Product)
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
        let added: Vec<NumberedLine<'_>> = compare_lines(file).added;
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

fn contains_test_value(line: &str, values: &BTreeSet<String>) -> bool {
    values_in(line).iter().any(|value| values.contains(value))
}

/// Names that the product's files define before the change, and those that the change removes.
pub(super) struct ProductDefinitions {
    before: BTreeSet<String>,
    gone: BTreeSet<String>,
    /// True when the change adds no name. If it does, a removed name may be renamed instead of a removed
    /// feature.
    has_shrunk: bool,
}

impl ProductDefinitions {
    pub(super) fn of(files: &[ChangedFile]) -> Self {
        let product = || {
            files
                .iter()
                .filter(|file| classify_path(&file.path) == FilePurpose::Product)
        };
        let names = |texts: Vec<&str>| -> BTreeSet<String> {
            let found = texts.iter().flat_map(|text| DEFINITION.all(text));
            found.map(|name| name[1].to_owned()).collect()
        };
        let before = names(product().filter_map(|file| file.before.as_deref()).collect());
        let after = names(product().filter_map(|file| file.after.as_deref()).collect());
        Self {
            gone: before.difference(&after).cloned().collect(),
            has_shrunk: after.difference(&before).next().is_none(),
            before,
        }
    }

    /// Returns true when the change removes everything that a test used of the changed product. If the change
    /// only removes names, one removed name is enough. Such a test is removed with its feature.
    pub(super) fn are_gone(&self, body: &[String]) -> bool {
        let words = body
            .iter()
            .flat_map(|line| WORD.all(line).map(|word| word[0].to_owned()).collect::<Vec<_>>());
        let used: BTreeSet<String> = words.filter(|word| self.before.contains(word)).collect();
        let is_all = !used.is_empty() && used.is_subset(&self.gone);
        is_all || (self.has_shrunk && used.intersection(&self.gone).next().is_some())
    }
}
