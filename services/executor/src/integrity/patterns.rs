//! Patterns of lines that weaken a check, by language.

use super::paths::SourceLanguage;
use crate::pattern::LazyPattern;

/// Files in which a pattern counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleScope {
    /// Test files, and tests inside product files.
    Tests,
    /// Test files and product files.
    Code,
}

/// A pattern of lines with the kind of finding that it produces.
pub(super) struct LineRule {
    pub(super) kind: &'static str,
    pub(super) languages: &'static [SourceLanguage],
    pub(super) place: RuleScope,
    pub(super) pattern: LazyPattern,
}

const fn line_rule(
    kind: &'static str,
    languages: &'static [SourceLanguage],
    place: RuleScope,
    pattern: &'static str,
) -> LineRule {
    LineRule {
        kind,
        languages,
        place,
        pattern: LazyPattern::new(pattern),
    }
}

use RuleScope::{Code, Tests};
use SourceLanguage::{CSharp, Cpp, Go, Jvm, Php, Python, Ruby, Rust, Script, Sql, Yaml};

pub(super) static RULES: [LineRule; 54] = [
    line_rule(
        "test_skipped",
        &[Python],
        Tests,
        r"@(?:unittest\.)?skip(?:If|Unless)?\b|\bpytest\.mark\.(?:skip|skipif|xfail)\b|\bmark\.(?:skip|skipif|xfail)\b|\b(?:from|import)\b.*\b(?:skip|skipIf|skipUnless|SkipTest|xfail|importorskip)\b|\braise\s+(?:unittest\.)?SkipTest\b|=\s*(?:unittest\.)?(?:skip|skipIf|expectedFailure)\b|@(?:unittest\.)?expectedFailure\b|\bpytest\.(?:skip|xfail|importorskip)\(|\bself\.skipTest\(|\bpytestmark\s*=.*\b(?:skip|xfail)",
    ),
    line_rule(
        "assertion_empty",
        &[Python],
        Tests,
        r"^\s*assert\s+(?:True|1|not\s+(?:False|None|0))\b\s*(?:$|,|#)|^\s*assert\s+(?:True|1)\s+or\b|^\s*assert\b.*\bor\s+(?:True|1|not\s+(?:False|None))\b|\bassert(?:True|IsNotNone)\(.*\bor\s+(?:True|1|not\s+(?:False|None))\s*[,)]|\bassertFalse\(.*\band\s+(?:False|0|None)\s*[,)]|\bassert(?:True|IsNotNone)\(\s*(?:True|1)\s*[,)]|\bassertFalse\(\s*(?:False|0|None)\s*[,)]|\bassertTrue\([^,()]+,\s*[\d\[{]|^\s*(?:\w+\.)*(?:called_once|called_with|called_once_with|has_calls|not_called)\s*(?:\(.*)?$|^\s*assert\s+(?:lambda\b|\[.+\]\s*$|['\x22][^'\x22]*['\x22]\s*(?:$|#))",
    ),
    line_rule(
        "exception_hidden",
        &[Python],
        Code,
        r"^\s*except(?:\s+(?:Base)?Exception)?\s*(?:as\s+\w+\s*)?:\s*(?:pass|\.\.\.)?\s*$",
    ),
    line_rule(
        "exception_hidden",
        &[Python],
        Tests,
        r"^\s*except\b.*\b(?:AssertionError|BaseException|Exception)\b|\bsuppress\(.*\b(?:AssertionError|BaseException|Exception)\b|^\s*finally:\s*return\b",
    ),
    line_rule(
        "tolerance_widened",
        &[Python],
        Tests,
        r"\b(?:abs|rel|abs_tol|rel_tol|atol|rtol|delta)\s*=\s*(?:[1-9]\d*(?:\.\d+)?|[1-9](?:\.\d+)?e\d+|0?\.[3-9]\d*|1e\d+|float\(|math\.inf|sys\.maxsize)|\bplaces\s*=\s*(?:0|-)",
    ),
    line_rule(
        "test_left_out",
        &[Python],
        Tests,
        r"\b__test__\s*=\s*False|\bdel\s+test_\w+|^\s*test_\w+\s*=\s*None\b",
    ),
    line_rule(
        "exception_widened",
        &[Python],
        Tests,
        r"\b(?:raises|assertRaises|assertRaisesRegex)\(\s*\(?\s*(?:(?:Base)?Exception|AssertionError)\b",
    ),
    line_rule(
        "runner_hooked",
        &[Python],
        Tests,
        r"\bdef\s+pytest_(?:runtest_makereport|collection_modifyitems|ignore_collect|runtest_setup|runtest_call|sessionfinish|exception_interact)\b|\bcollect_ignore(?:_glob)?\s*=",
    ),
    line_rule(
        "test_retried",
        &[Ruby],
        Tests,
        r",\s*retry:\s*[1-9]|\bretry_on_failure\b",
    ),
    line_rule(
        "test_retried",
        &[Python],
        Tests,
        r"@(?:pytest\.mark\.)?flaky\b|\breruns\s*=",
    ),
    line_rule(
        "checker_silenced",
        &[Python],
        Code,
        r"#\s*noqa\b|#\s*type:\s*ignore|#\s*pragma:\s*no\s*cover|#\s*pylint:\s*disable|#\s*pyright:\s*ignore|#\s*nosec\b",
    ),
    line_rule(
        "unit_patched",
        &[Python],
        Tests,
        r"\bfreeze_time\(|\bmonkeypatch\.setattr\(|\bmock\.patch(?:\.object)?\(",
    ),
    line_rule(
        "test_skipped",
        &[Script],
        Tests,
        r"\b(?:it|test|describe|context|suite|specify)\.(?:skip\w*|todo|failing|fails|fixme|runIf)\b|\{\s*(?:skip|todo)\s*:\s*(?:true|['\x22])|\b(?:t|this|ctx)\.(?:skip|todo)\(|^\s*x(?:it|test|describe|context|specify)\s*\(",
    ),
    line_rule(
        "test_focused",
        &[Script],
        Tests,
        r"\b(?:it|test|describe|context|suite|specify)\.only\b|^\s*f(?:it|describe)\s*\(",
    ),
    line_rule(
        "assertion_empty",
        &[Script],
        Tests,
        r"\bexpect\(\s*(?:true|1)\s*\)\.(?:toBe|toEqual)\(\s*(?:true|1)\s*\)|\bexpect\.(?:anything|any)\(|\bassert(?:\.ok)?\(\s*true\s*\)|\bexpect\([^)]*\|\|\s*true\b|\|\|\s*true\s*\)\s*\.to|\bexpect\(.*\);?\s*//\s*\.to|^\s*expect\((?:[^()]|\([^()]*\))*\);?\s*$|\bexpect\(\s*!?!?\[?\]?\s*\)\.toBeTruthy",
    ),
    line_rule(
        "exception_hidden",
        &[Script],
        Tests,
        r"\bcatch\s*(?:\(\s*\w*\s*\))?\s*\{\s*(?:/[/*].*)?\}?\s*$|\.catch\(\s*(?:\(\s*\w*\s*\)|\w+)\s*=>\s*(?:\{\s*\}|null|undefined|void 0)\s*\)|\.catch\(\s*(?:noop|\(\)\s*=>\s*\{)|\.finally\(\s*done\b",
    ),
    line_rule(
        "tolerance_widened",
        &[Script],
        Tests,
        r"\.toBeCloseTo\(.*,\s*(?:0|-\d+)\s*\)",
    ),
    line_rule(
        "test_retried",
        &[Script],
        Tests,
        r"\bjest\.retryTimes\(|\bthis\.retries\(|\bretry:\s*\d",
    ),
    line_rule(
        "checker_silenced",
        &[Script],
        Code,
        r"eslint-disable|@ts-(?:ignore|expect-error|nocheck)\b|\bas\s+any\b|\b(?:istanbul|c8|v8)\s+ignore\b|biome-ignore",
    ),
    line_rule("test_skipped", &[Go], Tests, r"\bt\.Skip(?:f|Now)?\("),
    line_rule(
        "test_left_out",
        &[Go],
        Tests,
        r"^//(?:go:build|\s*\+build)\s|\bif\s+false\b|\bif\s+testing\.Short\(\)",
    ),
    line_rule(
        "exception_hidden",
        &[Go],
        Tests,
        r"\brecover\(\)|^\s*_\s*=\s*(?:err|got|want|t)\b",
    ),
    line_rule(
        "tolerance_widened",
        &[Go],
        Tests,
        r"\bInDelta\(.*,\s*(?:[1-9]\d+|1e\d+|math\.(?:Max|Inf))|\bInEpsilon\(.*,\s*(?:[1-9]|0?\.[3-9])",
    ),
    line_rule("checker_silenced", &[Go], Code, r"//\s*nolint\b|#nosec\b"),
    line_rule(
        "test_skipped",
        &[Rust],
        Code,
        r"#\[ignore\b|#\[cfg_attr\([^\]]*\bignore\b",
    ),
    line_rule(
        "test_left_out",
        &[Rust],
        Code,
        r"#!?\[cfg\(\s*(?:all\(\s*)?test\s*,\s*\w|#!?\[cfg\(\s*any\(\s*\)|```\s*(?:ignore|no_run|text|compile_fail|should_panic)\b|\btest\s*=\s*false|\bdoctest\s*=\s*false",
    ),
    line_rule(
        "test_left_out",
        &[Rust],
        Tests,
        r"#!?\[cfg\(\s*(?:feature|not|any|target_\w+|windows|unix|all|debug_assertions)\b",
    ),
    line_rule(
        "assertion_empty",
        &[Rust],
        Code,
        r"\b(?:debug_)?assert!\(\s*true\s*[,)]|\b(?:debug_)?assert!\(.*\|\|\s*true\s*[,)]|\bassert!\(\s*matches!\(.*,\s*_\s*\)",
    ),
    line_rule("panic_expected", &[Rust], Code, r"#\[should_panic\b"),
    line_rule("checker_silenced", &[Rust], Code, r"#!?\[allow\(|#!?\[expect\("),
    line_rule("result_dropped", &[Rust], Tests, r"^\s*let\s+_\s*=\s*\w.*\("),
    line_rule(
        "test_skipped",
        &[Jvm],
        Tests,
        r"@(?:[\w.]+\.)?(?:Disabled\w*|Ignore\w*|EnabledOn\w*|EnabledIf\w*|EnabledFor\w*|Flaky)\b|@(?:[\w.]+\.)?Test\(.*\benabled\s*=\s*false|\bassume(?:True|False|That|NotNull)\(|\bthrow\s+new\s+(?:[\w.]+\.)?(?:SkipException|TestAbortedException)\b|\bAssumptions\.\w+\(",
    ),
    line_rule(
        "exception_widened",
        &[Jvm],
        Tests,
        r"\bassertThrows(?:<\w+>)?\(\s*(?:Exception|Throwable|RuntimeException)(?:\.class|::class)|\bassertThrows<(?:Exception|Throwable)>",
    ),
    line_rule(
        "assertion_empty",
        &[Jvm],
        Tests,
        r"\bassertTrue\(\s*true\s*[,)]|\bassertFalse\(\s*false\s*[,)]|\bassert(?:True|That)\(.*\|\|\s*true\s*[,)]",
    ),
    line_rule(
        "exception_hidden",
        &[Jvm, CSharp, Php],
        Tests,
        r"\bcatch\s*\(\s*(?:final\s+)?(?:\w+\s*:\s*)?\\?(?:[\w.\\]+[.\\])?(?:AssertionError|AssertionFailedError|AssertionFailedException|Throwable|Exception|Error|RuntimeException|XunitException|AssertionException)\b|\bcatch\s*\{|\brunCatching\b|\bfinally\s*\{\s*return\b",
    ),
    line_rule(
        "tolerance_widened",
        &[Jvm, CSharp],
        Tests,
        r"\bassertEquals\(.*,\s*(?:1e\d+|\d{3,}(?:\.\d+)?[dDfF]?|Double\.(?:MAX_VALUE|POSITIVE_INFINITY)|Float\.MAX_VALUE)\s*\)\s*;?\s*$|\bwithin\(\s*(?:\d{3,}|1e\d+)",
    ),
    line_rule(
        "checker_silenced",
        &[Jvm],
        Code,
        r"@SuppressWarnings\b|@Suppress\(|//\s*NOPMD|//\s*noinspection|CHECKSTYLE:OFF",
    ),
    line_rule(
        "test_left_out",
        &[Jvm],
        Code,
        r"-DskipTests|maven\.test\.skip|testFailureIgnore|\bignoreFailures\s*=\s*true|\bexclude(?:TestsMatching)?\s*[('].*[Tt]est|\bonlyIf\s*\{\s*false",
    ),
    line_rule(
        "test_skipped",
        &[Ruby],
        Tests,
        r"^\s*(?:skip|pending|omit)\b|^\s*x(?:it|describe|context|specify|example|scenario)\b|,\s*:?(?:skip|pending|broken)\b|,\s*(?:skip|pending|if|unless):\s",
    ),
    line_rule(
        "exception_hidden",
        &[Ruby],
        Code,
        r"\brescue\s+nil\b|\brescue\s+(?:RSpec::|Minitest::|Exception\b|Test::Unit)|\brescue\s*=>|^\s*rescue\s*$",
    ),
    line_rule(
        "assertion_empty",
        &[Ruby],
        Tests,
        r"\bexpect\(\s*(?:true|1)\s*\)\.to\b|^\s*assert\s+true\b|\|\|\s*true\s*\)?(?:\.to\b|$)|^\s*assert\b.*\bor\s+true\b|\bto\s+be_(?:within)\(\s*(?:\d{3,}|Float)",
    ),
    line_rule(
        "test_focused",
        &[Ruby],
        Tests,
        r"^\s*f(?:it|describe|context)\b|,\s*:?focus\b",
    ),
    line_rule(
        "checker_silenced",
        &[Ruby],
        Code,
        r"#\s*rubocop:(?:disable|todo)|:nocov:",
    ),
    line_rule(
        "test_skipped",
        &[Php],
        Tests,
        r"\bmarkTest(?:Skipped|Incomplete)\(|->(?:skip|todo)\(|@(?:group|requires)\b.*\bskip",
    ),
    line_rule(
        "assertion_empty",
        &[Php],
        Tests,
        r"\bassertTrue\(\s*true\s*\)|\bexpectNotToPerformAssertions\(|@doesNotPerformAssertions\b|\bassertTrue\(.*\|\|\s*true\s*\)|\bexpect\(true\)->toBeTrue",
    ),
    line_rule(
        "checker_silenced",
        &[Php],
        Code,
        r"@phpstan-ignore|@psalm-suppress|@codeCoverageIgnore|phpcs:(?:disable|ignore)",
    ),
    line_rule(
        "test_skipped",
        &[CSharp],
        Tests,
        r"\[Ignore\b|\[Explicit\b|\bSkip\s*=|\bAssert\.(?:Ignore|Inconclusive)\(",
    ),
    line_rule(
        "checker_silenced",
        &[CSharp],
        Code,
        r"#pragma\s+warning\s+disable|\[SuppressMessage\b|\[ExcludeFromCodeCoverage\b",
    ),
    line_rule("test_skipped", &[Cpp], Tests, r"\bDISABLED_\w+|\bGTEST_SKIP\("),
    line_rule(
        "checker_silenced",
        &[Cpp],
        Code,
        r"\bNOLINT|#pragma\s+(?:GCC|clang)\s+diagnostic\s+ignored|LCOV_EXCL",
    ),
    line_rule(
        "severity_lowered",
        &[Yaml, Sql],
        Code,
        r"\bseverity\s*[:=]\s*['\x22]?warn\b|\b(?:warn_if|error_if)\s*[:=]|\bstore_failures_as\b",
    ),
    line_rule("rows_left_out", &[Yaml], Code, r"^\s*(?:where|limit):\s"),
    line_rule(
        "rows_left_out",
        &[Sql],
        Tests,
        r"(?i)\blimit\s+0\b|\bwhere\s+(?:false|not\s+true|1\s*=\s*0|0\s*=\s*1|1\s*<>\s*1)\b|\band\s+(?:false|1\s*=\s*0|0\s*=\s*1)\b|\bhaving\s+false\b",
    ),
    line_rule(
        "test_left_out",
        &[Yaml, Sql],
        Code,
        r"^\s*\+?enabled:\s*(?:false|no)\b|\bconfig\(.*\benabled\s*=\s*(?:false|False)",
    ),
];

/// Commands that run tests, linters, type checkers or other checks.
pub(super) static CHECK_COMMAND: LazyPattern = LazyPattern::new(
    r"\b(?:pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|ava|tap|karma|cypress|playwright|eslint|tsc|mypy|pyright|ruff|flake8|pylint|clippy|nextest|golangci-lint|staticcheck|rspec|rubocop|minitest|phpunit|pest|phpstan|psalm|ctest|bats|shellcheck)\b|\b(?:npm|pnpm|yarn|bun|deno)\s+(?:run\s+)?(?:test|lint|check|ci|verify|typecheck)\b|\b(?:cargo|go|mix|dotnet|swift|dart|flutter|zig)\s+(?:test|vet|clippy|check)\b|\bnode\s+--test\b|\b(?:mvnw?|gradlew?|sbt|bazel)\b.*\b(?:test|check|verify)\b|\b(?:rake|rails)\s+(?:test|spec)\b|\bdbt\s+(?:test|build)\b|\bmake\s+[\w-]*(?:test|check|lint)",
);

/// Patterns for scripts, build files and configuration of continuous integration.
pub(super) static COMMANDS: [(&str, LazyPattern); 10] = [
    (
        "failure_hidden",
        LazyPattern::new(
            r"\|\|\s*(?:true\b|:(?:\s|$|;)|exit\s+0\b|return\s+0\b|echo\b|printf\b)|\bset\s+\+e\b|\bset\s+\+o\s+(?:errexit|pipefail)\b|^\s*exit\s+0\s*$|;\s*(?:true|:)\s*$|;\s*exit\s+0\b|&&\s*true\s*$|\btrap\s+.*\bexit\s+0|--exit-zero\b|--fail-never\b|\bmvn\b.*\s-fn\b|--no-fail\b|\|\|\s*\(\s*exit\s+0|--continue-on-collection-errors\b|--suppress-no-test-exit-code\b",
        ),
    ),
    (
        "failure_hidden",
        LazyPattern::new(
            r"\bcontinue-on-error:\s*(?:true|\$\{\{|'true')|\ballow_failure:|\bcontinueOnError:\s*true|\bignore_errors:\s*true|\bsoft_fail:|\bfail_ci_if_error:\s*false|^-\w+.*\btest|^\t\s*@?-\s*@?\S|\bignore_error\s*=\s*true",
        ),
    ),
    (
        "tests_left_out",
        LazyPattern::new(
            r"--passWithNoTests\b|(?:pytest|py\.test)\b.*\s(?:-k\s|--deselect\b|--ignore(?:-glob)?\b|-m\s+.?not\b|--co\b|--collect-only\b|--lf\b|--last-failed\b|--maxfail\b|-p\s+\S)|--no-cov\b|\bgo\s+test\b.*\s-(?:run|skip|short|list|c)\b|\bcargo\s+test\b.*\s(?:--skip|--no-run|--list)\b|-DskipTests\b|-DskipITs\b|maven\.test\.(?:skip|failure\.ignore)|--exclude-task\s+test|\s-x\s+test\b|--testPathIgnorePatterns\b|--exclude-tag\b|--exclude-group\b|--testNamePattern\b|\bjest\b.*\s-t\s|--onlyChanged\b|--findRelatedTests\b|--shard\b|--dry-run\b|--listTests\b|--tag\s+~|--exclude\s+\S*test",
        ),
    ),
    (
        "snapshots_rewritten",
        LazyPattern::new(
            r"\b(?:jest|vitest)\b.*\s(?:-u|--update(?:Snapshot)?)\b|--snapshot-update\b|\bINSTA_UPDATE=|\bUPDATE_(?:GOLDEN|EXPECT|SNAPSHOTS?)=|--update-snapshots\b|--inline-snapshot=",
        ),
    ),
    (
        "tests_retried",
        LazyPattern::new(
            r"--reruns\b|--retries\b|\bretry:\s*[1-9]|--flaky\b|--retry\b|\bnick-fields/retry\b|\brerunFailingTestsCount\b",
        ),
    ),
    (
        "job_narrowed",
        LazyPattern::new(
            r"^\s*(?:-\s+)?if:\s*(?:false|'false'|\$\{\{\s*(?:false|'false'|!\s*true))|^\s*(?:paths-ignore|branches-ignore|tags-ignore|except):|^\s*when:\s*(?:never|manual)\b",
        ),
    ),
    (
        "permissions_widened",
        LazyPattern::new(
            r"^\s*permissions:\s*write-all|^\s+(?:actions|attestations|checks|contents|deployments|discussions|id-token|issues|packages|pages|pull-requests|repository-projects|security-events|statuses):\s*write\b|\bpull_request_target\b|^\s*secrets:\s*inherit\b|\bpersist-credentials:\s*true",
        ),
    ),
    (
        "review_hidden",
        LazyPattern::new(r"\blinguist-(?:generated|vendored)\b|\s-diff\b|\bdiff=\S|\sbinary\b"),
    ),
    (
        "failure_hidden",
        LazyPattern::new(r"^\s*rescue\b|\bfail_on_error\s*[:=]\s*false|\bverbose:\s*false.*\|\|"),
    ),
    (
        "command_replaced",
        LazyPattern::new(r"^\s*@?(?:echo|printf|true|:)\b.*\b(?:passed|ok|success|green)\b"),
    ),
];

// A check in the background always succeeds, and a pipe returns the exit code of its last command, unless the
// shell has `pipefail`.
pub(super) static BACKGROUND: LazyPattern = LazyPattern::new(r"[^&>|]&\s*(?:#.*|;.*)?$");
pub(super) static PIPED: LazyPattern =
    LazyPattern::new(r"\|\s*(?:tee|cat|grep|egrep|tail|head|sed|awk|less|ts|sort|jq|tap-\w+|xargs|column)\b");

/// Settings of runners and checkers, for manifests that are not compared as parsed documents.
pub(super) static SETTINGS: LazyPattern = LazyPattern::new(
    r"(?x)\baddopts\b | \btestpaths\b | \bfilterwarnings\b | \bfail_under\b | \[tool\.(?:pytest|ruff|mypy|coverage|pylint|black|isort|pyright)\b | \bper-file-ignores\b | \bignore_missing_imports\b
    | \bcoverageThreshold\b | \btestPathIgnorePatterns\b | \btestMatch\b | \x22(?:pre|post)?test(?::[\w-]+)?\x22\s*: | \x22lint(?::[\w-]+)?\x22\s*:
    | \[(?:workspace\.)?lints\b | ^\s*(?:harness|test|doctest)\s*=\s*false | \bmaxWarnings\b | \bskipTests\b | \btestFailureIgnore\b | <excludes?> | \bminimumCoverage\b | \bjacoco\w*Verification\b",
);

/// Pairs of a stronger and a weaker form of an assertion. Only the first pair that matches is reported.
pub(super) static LOOSER: [(Option<SourceLanguage>, LazyPattern, LazyPattern); 23] = [
    (
        Some(Script),
        LazyPattern::new(r"\.(?:toThrow\w*|rejectedWith)\(\s*[^)\s]"),
        LazyPattern::new(r"\.(?:toThrow\w*|rejectedWith)\(\s*\)"),
    ),
    (
        Some(Script),
        LazyPattern::new(
            r"\.(?:toHaveBeenCalledWith|toHaveBeenNthCalledWith|toHaveBeenLastCalledWith|toHaveBeenCalledTimes|toHaveBeenCalledOnceWith)\(",
        ),
        LazyPattern::new(r"\.(?:toHaveBeenCalled|toBeCalled|toHaveReturned)\(\s*\)"),
    ),
    (
        Some(Script),
        LazyPattern::new(r"\bexpect\(.*\)\.to(?:Be|Equal|StrictEqual|Contain|Match|Have|Throw)"),
        LazyPattern::new(r"\bexpect\(.*\)\.not\.to"),
    ),
    (
        Some(Python),
        LazyPattern::new(r"\b(?:raises|assertRaises\w*)\(.*\bmatch\s*=|\bassertRaisesRegex\("),
        LazyPattern::new(r"\b(?:raises|assertRaises)\(\s*[\w.]+\s*\)"),
    ),
    (
        Some(Python),
        LazyPattern::new(r"\.assert_(?:called_once_with|called_with|has_calls|any_call)\("),
        LazyPattern::new(r"\.assert_(?:called|called_once)\(\s*\)|\.called\b"),
    ),
    (
        Some(Ruby),
        LazyPattern::new(r"\braise_error\s*\(?\s*[A-Z]|\.to\s"),
        LazyPattern::new(r"\braise_error\s*(?:$|\}|do\b)|\.(?:not_to|to_not)\s"),
    ),
    (
        Some(Jvm),
        LazyPattern::new(r"\bassert(?:Equals|True|False|Same|That)\("),
        LazyPattern::new(r"\bassert(?:DoesNotThrow|NotNull|All)\("),
    ),
    (
        Some(Python),
        LazyPattern::new(r"\bassert\b.*(?:==|\bis\b)"),
        LazyPattern::new(r"\bassert\b(?:.*\b(?:in|>=|<=|is not None|isinstance)\b|\s+[\w.\[\]()'\x22]+\s*$)"),
    ),
    (
        Some(Python),
        LazyPattern::new(r"\bassert\b.*=="),
        LazyPattern::new(r"\bassert\b.*(?:>=?|<=?|!=)"),
    ),
    (
        Some(Python),
        LazyPattern::new(r"\bassert\b.*=="),
        LazyPattern::new(r"\bassert\b.*\bapprox\("),
    ),
    (
        Some(Python),
        LazyPattern::new(r"\bassert(?:Equal|Is|DictEqual|ListEqual|Count\w*)\("),
        LazyPattern::new(r"\bassert(?:True|IsNotNone|In|IsInstance|AlmostEqual|Greater\w*|NotEqual)\("),
    ),
    (
        Some(Python),
        LazyPattern::new(r"\b(?:raises|assertRaises)\(\s*(?:[A-Z]\w*Error|[\w.]+\.\w+)"),
        LazyPattern::new(r"\b(?:raises|assertRaises)\(\s*(?:Base)?Exception\b"),
    ),
    (
        Some(Script),
        LazyPattern::new(r"\.(?:toEqual|toBe|toStrictEqual|toThrow\w*|toHaveBeenCalledWith)\("),
        LazyPattern::new(
            r"\.(?:toBeDefined|toBeTruthy|toMatchObject|toBeGreaterThan\w*|toBeLessThan\w*|toContain)\(|\bexpect\.(?:anything|any|objectContaining)|\.not\.toBe(?:Null|Undefined)\(",
        ),
    ),
    (
        Some(Script),
        LazyPattern::new(r"\bassert\.(?:strictEqual|deepStrictEqual|deepEqual|equal)\("),
        LazyPattern::new(r"\bassert(?:\.ok)?\(|\bassert\.(?:notStrictEqual|match|doesNotThrow)\("),
    ),
    (
        Some(Go),
        LazyPattern::new(r"\bt\.(?:Error|Errorf|Fatal|Fatalf)\("),
        LazyPattern::new(r"\bt\.(?:Log|Logf)\("),
    ),
    (
        Some(Go),
        LazyPattern::new(r"\b(?:require|assert)\.(?:Equal|ErrorIs|ErrorAs|EqualError|Len|JSONEq)\("),
        LazyPattern::new(
            r"\b(?:require|assert)\.(?:NotNil|NotEmpty|Contains|True|Error|NoError|Greater\w*)\(",
        ),
    ),
    (
        Some(Rust),
        LazyPattern::new(r"\bassert_eq!\("),
        LazyPattern::new(
            r"\bassert!\(.*\b(?:is_ok|is_some|is_err|contains|is_empty|matches)|\bassert_ne!\(|\bassert!\(.*[<>]",
        ),
    ),
    (
        Some(Jvm),
        LazyPattern::new(r"\bassert(?:Equals|Same|ArrayEquals|Iterable\w*)\(|\.isEqualTo\("),
        LazyPattern::new(
            r"\bassert(?:True|NotNull|NotEquals|DoesNotThrow)\(|\.is(?:NotNull|NotEmpty|True)\(",
        ),
    ),
    (
        Some(Jvm),
        LazyPattern::new(r"\bassertThrows\(\s*\w{3,}Exception\.class"),
        LazyPattern::new(r"\bassertThrows\(\s*(?:Exception|Throwable|RuntimeException)\.class"),
    ),
    (
        Some(Ruby),
        LazyPattern::new(r"\bto\s+(?:eq|eql|equal|match_array)\b|\bassert_equal\b"),
        LazyPattern::new(
            r"\bto\s+(?:be_truthy|be\b|include|be_a|be_present)|\bnot_to\s+be_nil|\bassert(?:_not_nil|_includes)?\s",
        ),
    ),
    (
        Some(Php),
        LazyPattern::new(r"\bassert(?:Same|Equals)\("),
        LazyPattern::new(r"\bassert(?:True|NotNull|NotEmpty|Contains|IsArray)\("),
    ),
    (
        Some(CSharp),
        LazyPattern::new(r"\bAssert\.(?:Equal|AreEqual|Same|Throws<\w{10,})\b"),
        LazyPattern::new(r"\bAssert\.(?:True|NotNull|IsNotNull|IsTrue|NotEmpty|Contains|ThrowsAny)\b"),
    ),
    (
        Some(Cpp),
        LazyPattern::new(r"\b(?:EXPECT|ASSERT)_(?:EQ|STREQ|DOUBLE_EQ)\("),
        LazyPattern::new(r"\b(?:EXPECT|ASSERT)_(?:TRUE|NE|GE|LE|GT|LT|NEAR|NO_THROW)\("),
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
