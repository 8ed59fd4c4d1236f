//! What a line may say that weakens a check, by language.

use super::paths::Language;
use crate::pattern::Pattern;

/// Where a pattern counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// In tests alone.
    Tests,
    /// In tests and in the product.
    Code,
}

/// One thing that a line may say.
pub(super) struct Rule {
    pub(super) kind: &'static str,
    pub(super) languages: &'static [Language],
    pub(super) place: Where,
    pub(super) pattern: Pattern,
}

const fn rule(
    kind: &'static str,
    languages: &'static [Language],
    place: Where,
    pattern: &'static str,
) -> Rule {
    Rule {
        kind,
        languages,
        place,
        pattern: Pattern::new(pattern),
    }
}

use Language::{CSharp, Cpp, Go, Jvm, Php, Python, Ruby, Rust, Script, Sql, Yaml};
use Where::{Code, Tests};

pub(super) static RULES: [Rule; 38] = [
    rule(
        "test_skipped",
        &[Python],
        Tests,
        r"@(?:unittest\.)?skip(?:If|Unless)?\b|@pytest\.mark\.(?:skip|skipif|xfail)\b|\bpytest\.(?:skip|xfail|importorskip)\(|\bself\.skipTest\(|\bpytestmark\s*=.*\b(?:skip|xfail)",
    ),
    rule(
        "assertion_empty",
        &[Python],
        Tests,
        r"^\s*assert\s+(?:True|1)\b\s*(?:$|,|#)|\bassertTrue\(\s*True\s*\)",
    ),
    rule(
        "exception_hidden",
        &[Python],
        Code,
        r"^\s*except(?:\s+(?:Base)?Exception)?\s*(?:as\s+\w+\s*)?:\s*(?:pass|\.\.\.)?\s*$",
    ),
    rule(
        "exception_widened",
        &[Python],
        Tests,
        r"\b(?:pytest\.raises|assertRaises)\(\s*(?:Base)?Exception\b",
    ),
    rule(
        "runner_hooked",
        &[Python],
        Tests,
        r"\bdef\s+pytest_(?:runtest_makereport|collection_modifyitems|ignore_collect|runtest_setup|runtest_call|sessionfinish|exception_interact)\b|\bcollect_ignore(?:_glob)?\s*=",
    ),
    rule(
        "test_retried",
        &[Python],
        Tests,
        r"@(?:pytest\.mark\.)?flaky\b|\breruns\s*=",
    ),
    rule(
        "checker_silenced",
        &[Python],
        Code,
        r"#\s*noqa\b|#\s*type:\s*ignore|#\s*pragma:\s*no\s*cover|#\s*pylint:\s*disable|#\s*pyright:\s*ignore|#\s*nosec\b",
    ),
    rule(
        "unit_patched",
        &[Python],
        Tests,
        r"\bfreeze_time\(|\bmonkeypatch\.setattr\(|\bmock\.patch(?:\.object)?\(",
    ),
    rule(
        "test_skipped",
        &[Script],
        Tests,
        r"\b(?:it|test|describe|context|suite|specify)\.(?:skip|todo|failing|fails|fixme)\b|^\s*x(?:it|test|describe|context|specify)\s*\(",
    ),
    rule(
        "test_focused",
        &[Script],
        Tests,
        r"\b(?:it|test|describe|context|suite|specify)\.only\b|^\s*f(?:it|describe)\s*\(",
    ),
    rule(
        "assertion_empty",
        &[Script],
        Tests,
        r"\bexpect\(\s*(?:true|1)\s*\)\.(?:toBe|toEqual)\(\s*(?:true|1)\s*\)|\bexpect\.(?:anything|any)\(|\bassert(?:\.ok)?\(\s*true\s*\)",
    ),
    rule(
        "test_retried",
        &[Script],
        Tests,
        r"\bjest\.retryTimes\(|\bthis\.retries\(|\bretry:\s*\d",
    ),
    rule(
        "checker_silenced",
        &[Script],
        Code,
        r"eslint-disable|@ts-(?:ignore|expect-error|nocheck)\b|\bas\s+any\b|\b(?:istanbul|c8|v8)\s+ignore\b|biome-ignore",
    ),
    rule("test_skipped", &[Go], Tests, r"\bt\.Skip(?:f|Now)?\("),
    rule("test_left_out", &[Go], Tests, r"^//(?:go:build|\s*\+build)\s"),
    rule("checker_silenced", &[Go], Code, r"//\s*nolint\b|#nosec\b"),
    rule(
        "test_skipped",
        &[Rust],
        Code,
        r"#\[ignore\b|#\[cfg_attr\([^\]]*\bignore\b",
    ),
    rule("assertion_empty", &[Rust], Code, r"\bassert!\(\s*true\s*[,)]"),
    rule("panic_expected", &[Rust], Code, r"#\[should_panic\b"),
    rule("checker_silenced", &[Rust], Code, r"#!?\[allow\(|#!?\[expect\("),
    rule("result_dropped", &[Rust], Tests, r"^\s*let\s+_\s*=\s*\w.*\("),
    rule(
        "test_skipped",
        &[Jvm],
        Tests,
        r"@(?:Disabled|Ignore)\b|\bassume(?:True|False|That)\(|\bAssumptions\.\w+\(",
    ),
    rule(
        "exception_widened",
        &[Jvm],
        Tests,
        r"\bassertThrows(?:<\w+>)?\(\s*(?:Exception|Throwable|RuntimeException)(?:\.class|::class)|\bassertThrows<(?:Exception|Throwable)>",
    ),
    rule("assertion_empty", &[Jvm], Tests, r"\bassertTrue\(\s*true\s*\)"),
    rule(
        "checker_silenced",
        &[Jvm],
        Code,
        r"@SuppressWarnings\b|@Suppress\(|//\s*NOPMD|//\s*noinspection|CHECKSTYLE:OFF",
    ),
    rule(
        "test_left_out",
        &[Jvm],
        Code,
        r"-DskipTests|maven\.test\.skip|testFailureIgnore|\bignoreFailures\s*=\s*true|\bexclude(?:TestsMatching)?\s*[('].*[Tt]est|\bonlyIf\s*\{\s*false",
    ),
    rule(
        "test_skipped",
        &[Ruby],
        Tests,
        r"^\s*(?:skip|pending)\b|^\s*x(?:it|describe|context|specify)\b|,\s*(?:skip|pending):\s",
    ),
    rule(
        "test_focused",
        &[Ruby],
        Tests,
        r"^\s*f(?:it|describe|context)\b|,\s*:?focus\b",
    ),
    rule(
        "checker_silenced",
        &[Ruby],
        Code,
        r"#\s*rubocop:(?:disable|todo)|:nocov:",
    ),
    rule(
        "test_skipped",
        &[Php],
        Tests,
        r"\bmarkTest(?:Skipped|Incomplete)\(",
    ),
    rule(
        "assertion_empty",
        &[Php],
        Tests,
        r"\bassertTrue\(\s*true\s*\)|\bexpectNotToPerformAssertions\(",
    ),
    rule(
        "checker_silenced",
        &[Php],
        Code,
        r"@phpstan-ignore|@psalm-suppress|@codeCoverageIgnore|phpcs:(?:disable|ignore)",
    ),
    rule(
        "test_skipped",
        &[CSharp],
        Tests,
        r"\[Ignore\b|\bSkip\s*=\s*\x22|\bAssert\.(?:Ignore|Inconclusive)\(",
    ),
    rule(
        "checker_silenced",
        &[CSharp],
        Code,
        r"#pragma\s+warning\s+disable|\[SuppressMessage\b|\[ExcludeFromCodeCoverage\b",
    ),
    rule("test_skipped", &[Cpp], Tests, r"\bDISABLED_\w+|\bGTEST_SKIP\("),
    rule(
        "checker_silenced",
        &[Cpp],
        Code,
        r"\bNOLINT|#pragma\s+(?:GCC|clang)\s+diagnostic\s+ignored|LCOV_EXCL",
    ),
    rule(
        "severity_lowered",
        &[Yaml, Sql],
        Code,
        r"\bseverity\s*[:=]\s*['\x22]?warn\b|\b(?:warn_if|error_if)\s*[:=]|\bstore_failures_as\b",
    ),
    rule("rows_left_out", &[Yaml], Code, r"^\s*where:\s"),
];

/// In scripts, build files and what continuous integration runs.
pub(super) static COMMANDS: [(&str, Pattern); 6] = [
    (
        "failure_hidden",
        Pattern::new(
            r"\|\|\s*(?:true\b|:(?:\s|$|;)|exit\s+0\b)|\bset\s+\+e\b|^\s*exit\s+0\s*$|;\s*true\s*$|;\s*exit\s+0\b",
        ),
    ),
    (
        "failure_hidden",
        Pattern::new(
            r"\bcontinue-on-error:\s*true|\ballow_failure:\s*true|\bcontinueOnError:\s*true|\bignore_errors:\s*true|^-\w+.*\btest",
        ),
    ),
    (
        "tests_left_out",
        Pattern::new(
            r"--passWithNoTests\b|(?:pytest|py\.test)\b.*\s(?:-k\s|--deselect\b|--ignore(?:-glob)?\b|-m\s+.?not\b)|--no-cov\b|\bgo\s+test\b.*\s-(?:run|skip|short)\b|\bcargo\s+test\b.*\s--skip\b|-DskipTests\b|maven\.test\.skip|--exclude-task\s+test|\s-x\s+test\b|--testPathIgnorePatterns\b|--exclude-tag\b",
        ),
    ),
    (
        "snapshots_rewritten",
        Pattern::new(
            r"\b(?:jest|vitest)\b.*\s(?:-u|--update(?:Snapshot)?)\b|--snapshot-update\b|\bINSTA_UPDATE=|\bUPDATE_(?:GOLDEN|EXPECT|SNAPSHOTS?)=",
        ),
    ),
    (
        "tests_retried",
        Pattern::new(r"--reruns\b|--retries\b|\bretry:\s*[1-9]|--flaky\b"),
    ),
    (
        "job_narrowed",
        Pattern::new(
            r"^\s*if:\s*(?:false|\$\{\{\s*false)|^\s*(?:paths-ignore|branches-ignore):|^\s*when:\s*(?:never|manual)\b",
        ),
    ),
];

/// In manifests that settings of runners and checkers stand in beside other things.
pub(super) static SETTINGS: Pattern = Pattern::new(
    r"(?x)\baddopts\b | \btestpaths\b | \bfilterwarnings\b | \bfail_under\b | \[tool\.(?:pytest|ruff|mypy|coverage|pylint|black|isort|pyright)\b | \bper-file-ignores\b | \bignore_missing_imports\b
    | \bcoverageThreshold\b | \btestPathIgnorePatterns\b | \btestMatch\b | \x22(?:pre|post)?test(?::[\w-]+)?\x22\s*: | \x22lint(?::[\w-]+)?\x22\s*:
    | \[(?:workspace\.)?lints\b | ^\s*(?:harness|test|doctest)\s*=\s*false | \bmaxWarnings\b | \bskipTests\b | \btestFailureIgnore\b | <excludes?> | \bminimumCoverage\b | \bjacoco\w*Verification\b",
);

/// A stronger and a weaker way to say something; the first of two that fit.
pub(super) static LOOSER: [(Option<Language>, Pattern, Pattern); 16] = [
    (
        Some(Python),
        Pattern::new(r"\bassert\b.*(?:==|\bis\b)"),
        Pattern::new(r"\bassert\b(?:.*\b(?:in|>=|<=|is not None|isinstance)\b|\s+[\w.\[\]()'\x22]+\s*$)"),
    ),
    (
        Some(Python),
        Pattern::new(r"\bassert\b.*=="),
        Pattern::new(r"\bassert\b.*(?:>=?|<=?|!=)"),
    ),
    (
        Some(Python),
        Pattern::new(r"\bassert\b.*=="),
        Pattern::new(r"\bassert\b.*\bapprox\("),
    ),
    (
        Some(Python),
        Pattern::new(r"\bassert(?:Equal|Is|DictEqual|ListEqual|Count\w*)\("),
        Pattern::new(r"\bassert(?:True|IsNotNone|In|IsInstance|AlmostEqual|Greater\w*|NotEqual)\("),
    ),
    (
        Some(Python),
        Pattern::new(r"\b(?:raises|assertRaises)\(\s*(?:[A-Z]\w*Error|[\w.]+\.\w+)"),
        Pattern::new(r"\b(?:raises|assertRaises)\(\s*(?:Base)?Exception\b"),
    ),
    (
        Some(Script),
        Pattern::new(r"\.(?:toEqual|toBe|toStrictEqual|toThrow\w*|toHaveBeenCalledWith)\("),
        Pattern::new(
            r"\.(?:toBeDefined|toBeTruthy|toMatchObject|toBeGreaterThan\w*|toBeLessThan\w*|toContain)\(|\bexpect\.(?:anything|any|objectContaining)|\.not\.toBe(?:Null|Undefined)\(",
        ),
    ),
    (
        Some(Script),
        Pattern::new(r"\bassert\.(?:strictEqual|deepStrictEqual|deepEqual|equal)\("),
        Pattern::new(r"\bassert(?:\.ok)?\(|\bassert\.(?:notStrictEqual|match|doesNotThrow)\("),
    ),
    (
        Some(Go),
        Pattern::new(r"\bt\.(?:Error|Errorf|Fatal|Fatalf)\("),
        Pattern::new(r"\bt\.(?:Log|Logf)\("),
    ),
    (
        Some(Go),
        Pattern::new(r"\b(?:require|assert)\.(?:Equal|ErrorIs|ErrorAs|EqualError|Len|JSONEq)\("),
        Pattern::new(r"\b(?:require|assert)\.(?:NotNil|NotEmpty|Contains|True|Error|NoError|Greater\w*)\("),
    ),
    (
        Some(Rust),
        Pattern::new(r"\bassert_eq!\("),
        Pattern::new(
            r"\bassert!\(.*\b(?:is_ok|is_some|is_err|contains|is_empty|matches)|\bassert_ne!\(|\bassert!\(.*[<>]",
        ),
    ),
    (
        Some(Jvm),
        Pattern::new(r"\bassert(?:Equals|Same|ArrayEquals|Iterable\w*)\(|\.isEqualTo\("),
        Pattern::new(r"\bassert(?:True|NotNull|NotEquals|DoesNotThrow)\(|\.is(?:NotNull|NotEmpty|True)\("),
    ),
    (
        Some(Jvm),
        Pattern::new(r"\bassertThrows\(\s*\w{3,}Exception\.class"),
        Pattern::new(r"\bassertThrows\(\s*(?:Exception|Throwable|RuntimeException)\.class"),
    ),
    (
        Some(Ruby),
        Pattern::new(r"\bto\s+(?:eq|eql|equal|match_array)\b|\bassert_equal\b"),
        Pattern::new(
            r"\bto\s+(?:be_truthy|be\b|include|be_a|be_present)|\bnot_to\s+be_nil|\bassert(?:_not_nil|_includes)?\s",
        ),
    ),
    (
        Some(Php),
        Pattern::new(r"\bassert(?:Same|Equals)\("),
        Pattern::new(r"\bassert(?:True|NotNull|NotEmpty|Contains|IsArray)\("),
    ),
    (
        Some(CSharp),
        Pattern::new(r"\bAssert\.(?:Equal|AreEqual|Same|Throws<\w{10,})\b"),
        Pattern::new(r"\bAssert\.(?:True|NotNull|IsNotNull|IsTrue|NotEmpty|Contains|ThrowsAny)\b"),
    ),
    (
        Some(Cpp),
        Pattern::new(r"\b(?:EXPECT|ASSERT)_(?:EQ|STREQ|DOUBLE_EQ)\("),
        Pattern::new(r"\b(?:EXPECT|ASSERT)_(?:TRUE|NE|GE|LE|GT|LT|NEAR|NO_THROW)\("),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_can_be_read() {
        for rule in &RULES {
            assert!(rule.pattern.is_sound(), "{} {:?}", rule.kind, rule.languages);
        }
        assert!(SETTINGS.is_sound() && COMMANDS.iter().all(|(_, pattern)| pattern.is_sound()));
        for (number, (_, strong, weak)) in LOOSER.iter().enumerate() {
            assert!(strong.is_sound() && weak.is_sound(), "{number}");
        }
    }
}
