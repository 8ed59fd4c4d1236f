//! Patterns of lines that weaken a check, by language.

use super::paths::Language;
use crate::pattern::Pattern;

/// Files in which a pattern counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// Test files, and tests inside product files.
    Tests,
    /// Test files and product files.
    Code,
}

/// A pattern of lines with the kind of finding that it produces.
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

pub(super) static RULES: [Rule; 54] = [
    rule(
        "test_skipped",
        &[Python],
        Tests,
        r"@(?:unittest\.)?skip(?:If|Unless)?\b|\bpytest\.mark\.(?:skip|skipif|xfail)\b|\bmark\.(?:skip|skipif|xfail)\b|\b(?:from|import)\b.*\b(?:skip|skipIf|skipUnless|SkipTest|xfail|importorskip)\b|\braise\s+(?:unittest\.)?SkipTest\b|=\s*(?:unittest\.)?(?:skip|skipIf|expectedFailure)\b|@(?:unittest\.)?expectedFailure\b|\bpytest\.(?:skip|xfail|importorskip)\(|\bself\.skipTest\(|\bpytestmark\s*=.*\b(?:skip|xfail)",
    ),
    rule(
        "assertion_empty",
        &[Python],
        Tests,
        r"^\s*assert\s+(?:True|1|not\s+(?:False|None|0))\b\s*(?:$|,|#)|^\s*assert\s+(?:True|1)\s+or\b|^\s*assert\b.*\bor\s+(?:True|1|not\s+(?:False|None))\b|\bassert(?:True|IsNotNone)\(\s*(?:True|1)\s*[,)]|\bassertFalse\(\s*(?:False|0|None)\s*[,)]|\bassertTrue\([^,()]+,\s*[\d\[{]|^\s*(?:\w+\.)*(?:called_once|called_with|called_once_with|has_calls|not_called)\s*(?:\(.*)?$|^\s*assert\s+(?:lambda\b|\[.+\]\s*$|['\x22][^'\x22]*['\x22]\s*(?:$|#))",
    ),
    rule(
        "exception_hidden",
        &[Python],
        Code,
        r"^\s*except(?:\s+(?:Base)?Exception)?\s*(?:as\s+\w+\s*)?:\s*(?:pass|\.\.\.)?\s*$",
    ),
    rule(
        "exception_hidden",
        &[Python],
        Tests,
        r"^\s*except\b.*\b(?:AssertionError|BaseException|Exception)\b|\bsuppress\(.*\b(?:AssertionError|BaseException|Exception)\b|^\s*finally:\s*return\b",
    ),
    rule(
        "tolerance_widened",
        &[Python],
        Tests,
        r"\b(?:abs|rel|abs_tol|rel_tol|atol|rtol|delta)\s*=\s*(?:[1-9]\d*(?:\.\d+)?|[1-9](?:\.\d+)?e\d+|0?\.[3-9]\d*|1e\d+|float\(|math\.inf|sys\.maxsize)|\bplaces\s*=\s*(?:0|-)",
    ),
    rule(
        "test_left_out",
        &[Python],
        Tests,
        r"\b__test__\s*=\s*False|\bdel\s+test_\w+|^\s*test_\w+\s*=\s*None\b",
    ),
    rule(
        "exception_widened",
        &[Python],
        Tests,
        r"\b(?:raises|assertRaises|assertRaisesRegex)\(\s*\(?\s*(?:(?:Base)?Exception|AssertionError)\b",
    ),
    rule(
        "runner_hooked",
        &[Python],
        Tests,
        r"\bdef\s+pytest_(?:runtest_makereport|collection_modifyitems|ignore_collect|runtest_setup|runtest_call|sessionfinish|exception_interact)\b|\bcollect_ignore(?:_glob)?\s*=",
    ),
    rule(
        "test_retried",
        &[Ruby],
        Tests,
        r",\s*retry:\s*[1-9]|\bretry_on_failure\b",
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
        r"\b(?:it|test|describe|context|suite|specify)\.(?:skip\w*|todo|failing|fails|fixme|runIf)\b|\{\s*(?:skip|todo)\s*:\s*(?:true|['\x22])|\b(?:t|this|ctx)\.(?:skip|todo)\(|^\s*x(?:it|test|describe|context|specify)\s*\(",
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
        r"\bexpect\(\s*(?:true|1)\s*\)\.(?:toBe|toEqual)\(\s*(?:true|1)\s*\)|\bexpect\.(?:anything|any)\(|\bassert(?:\.ok)?\(\s*true\s*\)|\bexpect\([^)]*\|\|\s*true\b|\|\|\s*true\s*\)\s*\.to|\bexpect\(.*\);?\s*//\s*\.to|^\s*expect\((?:[^()]|\([^()]*\))*\);?\s*$|\bexpect\(\s*!?!?\[?\]?\s*\)\.toBeTruthy",
    ),
    rule(
        "exception_hidden",
        &[Script],
        Tests,
        r"\bcatch\s*(?:\(\s*\w*\s*\))?\s*\{\s*(?:/[/*].*)?\}?\s*$|\.catch\(\s*(?:\(\s*\w*\s*\)|\w+)\s*=>\s*(?:\{\s*\}|null|undefined|void 0)\s*\)|\.catch\(\s*(?:noop|\(\)\s*=>\s*\{)|\.finally\(\s*done\b",
    ),
    rule(
        "tolerance_widened",
        &[Script],
        Tests,
        r"\.toBeCloseTo\(.*,\s*(?:0|-\d+)\s*\)",
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
    rule(
        "test_left_out",
        &[Go],
        Tests,
        r"^//(?:go:build|\s*\+build)\s|\bif\s+false\b|\bif\s+testing\.Short\(\)",
    ),
    rule(
        "exception_hidden",
        &[Go],
        Tests,
        r"\brecover\(\)|^\s*_\s*=\s*(?:err|got|want|t)\b",
    ),
    rule(
        "tolerance_widened",
        &[Go],
        Tests,
        r"\bInDelta\(.*,\s*(?:[1-9]\d+|1e\d+|math\.(?:Max|Inf))|\bInEpsilon\(.*,\s*(?:[1-9]|0?\.[3-9])",
    ),
    rule("checker_silenced", &[Go], Code, r"//\s*nolint\b|#nosec\b"),
    rule(
        "test_skipped",
        &[Rust],
        Code,
        r"#\[ignore\b|#\[cfg_attr\([^\]]*\bignore\b",
    ),
    rule(
        "test_left_out",
        &[Rust],
        Code,
        r"#!?\[cfg\(\s*(?:all\(\s*)?test\s*,\s*\w|#!?\[cfg\(\s*any\(\s*\)|```\s*(?:ignore|no_run|text|compile_fail|should_panic)\b|\btest\s*=\s*false|\bdoctest\s*=\s*false",
    ),
    rule(
        "test_left_out",
        &[Rust],
        Tests,
        r"#!?\[cfg\(\s*(?:feature|not|any|target_\w+|windows|unix|all|debug_assertions)\b",
    ),
    rule(
        "assertion_empty",
        &[Rust],
        Code,
        r"\b(?:debug_)?assert!\(\s*true\s*[,)]|\b(?:debug_)?assert!\(.*\|\|\s*true\s*[,)]|\bassert!\(\s*matches!\(.*,\s*_\s*\)",
    ),
    rule("panic_expected", &[Rust], Code, r"#\[should_panic\b"),
    rule("checker_silenced", &[Rust], Code, r"#!?\[allow\(|#!?\[expect\("),
    rule("result_dropped", &[Rust], Tests, r"^\s*let\s+_\s*=\s*\w.*\("),
    rule(
        "test_skipped",
        &[Jvm],
        Tests,
        r"@(?:[\w.]+\.)?(?:Disabled\w*|Ignore\w*|EnabledOn\w*|EnabledIf\w*|EnabledFor\w*|Flaky)\b|@(?:[\w.]+\.)?Test\(.*\benabled\s*=\s*false|\bassume(?:True|False|That|NotNull)\(|\bthrow\s+new\s+(?:[\w.]+\.)?(?:SkipException|TestAbortedException)\b|\bAssumptions\.\w+\(",
    ),
    rule(
        "exception_widened",
        &[Jvm],
        Tests,
        r"\bassertThrows(?:<\w+>)?\(\s*(?:Exception|Throwable|RuntimeException)(?:\.class|::class)|\bassertThrows<(?:Exception|Throwable)>",
    ),
    rule(
        "assertion_empty",
        &[Jvm],
        Tests,
        r"\bassertTrue\(\s*true\s*[,)]|\bassertFalse\(\s*false\s*[,)]|\bassert(?:True|That)\(.*\|\|\s*true\s*[,)]",
    ),
    rule(
        "exception_hidden",
        &[Jvm, CSharp, Php],
        Tests,
        r"\bcatch\s*\(\s*(?:final\s+)?(?:\w+\s*:\s*)?\\?(?:[\w.\\]+[.\\])?(?:AssertionError|AssertionFailedError|AssertionFailedException|Throwable|Exception|Error|RuntimeException|XunitException|AssertionException)\b|\bcatch\s*\{|\brunCatching\b|\bfinally\s*\{\s*return\b",
    ),
    rule(
        "tolerance_widened",
        &[Jvm, CSharp],
        Tests,
        r"\bassertEquals\(.*,\s*(?:1e\d+|\d{3,}(?:\.\d+)?[dDfF]?|Double\.(?:MAX_VALUE|POSITIVE_INFINITY)|Float\.MAX_VALUE)\s*\)\s*;?\s*$|\bwithin\(\s*(?:\d{3,}|1e\d+)",
    ),
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
        r"^\s*(?:skip|pending|omit)\b|^\s*x(?:it|describe|context|specify|example|scenario)\b|,\s*:?(?:skip|pending|broken)\b|,\s*(?:skip|pending|if|unless):\s",
    ),
    rule(
        "exception_hidden",
        &[Ruby],
        Code,
        r"\brescue\s+nil\b|\brescue\s+(?:RSpec::|Minitest::|Exception\b|Test::Unit)|\brescue\s*=>|^\s*rescue\s*$",
    ),
    rule(
        "assertion_empty",
        &[Ruby],
        Tests,
        r"\bexpect\(\s*(?:true|1)\s*\)\.to\b|^\s*assert\s+true\b|\|\|\s*true\s*\)?(?:\.to\b|$)|^\s*assert\b.*\bor\s+true\b|\bto\s+be_(?:within)\(\s*(?:\d{3,}|Float)",
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
        r"\bmarkTest(?:Skipped|Incomplete)\(|->(?:skip|todo)\(|@(?:group|requires)\b.*\bskip",
    ),
    rule(
        "assertion_empty",
        &[Php],
        Tests,
        r"\bassertTrue\(\s*true\s*\)|\bexpectNotToPerformAssertions\(|@doesNotPerformAssertions\b|\bassertTrue\(.*\|\|\s*true\s*\)|\bexpect\(true\)->toBeTrue",
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
        r"\[Ignore\b|\[Explicit\b|\bSkip\s*=|\bAssert\.(?:Ignore|Inconclusive)\(",
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
    rule("rows_left_out", &[Yaml], Code, r"^\s*(?:where|limit):\s"),
    rule(
        "rows_left_out",
        &[Sql],
        Tests,
        r"(?i)\blimit\s+0\b|\bwhere\s+(?:false|not\s+true|1\s*=\s*0|0\s*=\s*1|1\s*<>\s*1)\b|\band\s+(?:false|1\s*=\s*0|0\s*=\s*1)\b|\bhaving\s+false\b",
    ),
    rule(
        "test_left_out",
        &[Yaml, Sql],
        Code,
        r"^\s*\+?enabled:\s*(?:false|no)\b|\bconfig\(.*\benabled\s*=\s*(?:false|False)",
    ),
];

/// Commands that run tests, linters, type checkers or other checks.
pub(super) static CHECK_COMMAND: Pattern = Pattern::new(
    r"\b(?:pytest|py\.test|unittest|tox|nox|jest|vitest|mocha|ava|tap|karma|cypress|playwright|eslint|tsc|mypy|pyright|ruff|flake8|pylint|clippy|nextest|golangci-lint|staticcheck|rspec|rubocop|minitest|phpunit|pest|phpstan|psalm|ctest|bats|shellcheck)\b|\b(?:npm|pnpm|yarn|bun|deno)\s+(?:run\s+)?(?:test|lint|check|ci|verify|typecheck)\b|\b(?:cargo|go|mix|dotnet|swift|dart|flutter|zig)\s+(?:test|vet|clippy|check)\b|\bnode\s+--test\b|\b(?:mvnw?|gradlew?|sbt|bazel)\b.*\b(?:test|check|verify)\b|\b(?:rake|rails)\s+(?:test|spec)\b|\bdbt\s+(?:test|build)\b|\bmake\s+[\w-]*(?:test|check|lint)",
);

/// Patterns for scripts, build files and configuration of continuous integration.
pub(super) static COMMANDS: [(&str, Pattern); 10] = [
    (
        "failure_hidden",
        Pattern::new(
            r"\|\|\s*(?:true\b|:(?:\s|$|;)|exit\s+0\b|return\s+0\b|echo\b|printf\b)|\bset\s+\+e\b|\bset\s+\+o\s+(?:errexit|pipefail)\b|^\s*exit\s+0\s*$|;\s*(?:true|:)\s*$|;\s*exit\s+0\b|&&\s*true\s*$|\btrap\s+.*\bexit\s+0|--exit-zero\b|--fail-never\b|\bmvn\b.*\s-fn\b|--no-fail\b|\|\|\s*\(\s*exit\s+0|--continue-on-collection-errors\b|--suppress-no-test-exit-code\b",
        ),
    ),
    (
        "failure_hidden",
        Pattern::new(
            r"\bcontinue-on-error:\s*(?:true|\$\{\{|'true')|\ballow_failure:|\bcontinueOnError:\s*true|\bignore_errors:\s*true|\bsoft_fail:|\bfail_ci_if_error:\s*false|^-\w+.*\btest|^\t\s*@?-\s*@?\S|\bignore_error\s*=\s*true",
        ),
    ),
    (
        "tests_left_out",
        Pattern::new(
            r"--passWithNoTests\b|(?:pytest|py\.test)\b.*\s(?:-k\s|--deselect\b|--ignore(?:-glob)?\b|-m\s+.?not\b|--co\b|--collect-only\b|--lf\b|--last-failed\b|--maxfail\b|-p\s+\S)|--no-cov\b|\bgo\s+test\b.*\s-(?:run|skip|short|list|c)\b|\bcargo\s+test\b.*\s(?:--skip|--no-run|--list)\b|-DskipTests\b|-DskipITs\b|maven\.test\.(?:skip|failure\.ignore)|--exclude-task\s+test|\s-x\s+test\b|--testPathIgnorePatterns\b|--exclude-tag\b|--exclude-group\b|--testNamePattern\b|\bjest\b.*\s-t\s|--onlyChanged\b|--findRelatedTests\b|--shard\b|--dry-run\b|--listTests\b|--tag\s+~|--exclude\s+\S*test",
        ),
    ),
    (
        "snapshots_rewritten",
        Pattern::new(
            r"\b(?:jest|vitest)\b.*\s(?:-u|--update(?:Snapshot)?)\b|--snapshot-update\b|\bINSTA_UPDATE=|\bUPDATE_(?:GOLDEN|EXPECT|SNAPSHOTS?)=|--update-snapshots\b|--inline-snapshot=",
        ),
    ),
    (
        "tests_retried",
        Pattern::new(
            r"--reruns\b|--retries\b|\bretry:\s*[1-9]|--flaky\b|--retry\b|\bnick-fields/retry\b|\brerunFailingTestsCount\b",
        ),
    ),
    (
        "job_narrowed",
        Pattern::new(
            r"^\s*(?:-\s+)?if:\s*(?:false|'false'|\$\{\{\s*(?:false|'false'|!\s*true))|^\s*(?:paths-ignore|branches-ignore|tags-ignore|except):|^\s*when:\s*(?:never|manual)\b",
        ),
    ),
    (
        "permissions_widened",
        Pattern::new(
            r"^\s*permissions:\s*write-all|^\s+(?:actions|attestations|checks|contents|deployments|discussions|id-token|issues|packages|pages|pull-requests|repository-projects|security-events|statuses):\s*write\b|\bpull_request_target\b|^\s*secrets:\s*inherit\b|\bpersist-credentials:\s*true",
        ),
    ),
    (
        "review_hidden",
        Pattern::new(r"\blinguist-(?:generated|vendored)\b|\s-diff\b|\bdiff=\S|\sbinary\b"),
    ),
    (
        "failure_hidden",
        Pattern::new(r"^\s*rescue\b|\bfail_on_error\s*[:=]\s*false|\bverbose:\s*false.*\|\|"),
    ),
    (
        "command_replaced",
        Pattern::new(r"^\s*@?(?:echo|printf|true|:)\b.*\b(?:passed|ok|success|green)\b"),
    ),
];

// A check in the background always succeeds, and a pipe returns the exit code of its last command, unless the
// shell has `pipefail`.
pub(super) static BACKGROUND: Pattern = Pattern::new(r"[^&>|]&\s*(?:#.*|;.*)?$");
pub(super) static PIPED: Pattern =
    Pattern::new(r"\|\s*(?:tee|cat|grep|egrep|tail|head|sed|awk|less|ts|sort|jq|tap-\w+|xargs|column)\b");

/// Settings of runners and checkers, for manifests that are not compared as parsed documents.
pub(super) static SETTINGS: Pattern = Pattern::new(
    r"(?x)\baddopts\b | \btestpaths\b | \bfilterwarnings\b | \bfail_under\b | \[tool\.(?:pytest|ruff|mypy|coverage|pylint|black|isort|pyright)\b | \bper-file-ignores\b | \bignore_missing_imports\b
    | \bcoverageThreshold\b | \btestPathIgnorePatterns\b | \btestMatch\b | \x22(?:pre|post)?test(?::[\w-]+)?\x22\s*: | \x22lint(?::[\w-]+)?\x22\s*:
    | \[(?:workspace\.)?lints\b | ^\s*(?:harness|test|doctest)\s*=\s*false | \bmaxWarnings\b | \bskipTests\b | \btestFailureIgnore\b | <excludes?> | \bminimumCoverage\b | \bjacoco\w*Verification\b",
);

/// Pairs of a stronger and a weaker form of an assertion. Only the first pair that matches is reported.
pub(super) static LOOSER: [(Option<Language>, Pattern, Pattern); 23] = [
    (
        Some(Script),
        Pattern::new(r"\.(?:toThrow\w*|rejectedWith)\(\s*[^)\s]"),
        Pattern::new(r"\.(?:toThrow\w*|rejectedWith)\(\s*\)"),
    ),
    (
        Some(Script),
        Pattern::new(
            r"\.(?:toHaveBeenCalledWith|toHaveBeenNthCalledWith|toHaveBeenLastCalledWith|toHaveBeenCalledTimes|toHaveBeenCalledOnceWith)\(",
        ),
        Pattern::new(r"\.(?:toHaveBeenCalled|toBeCalled|toHaveReturned)\(\s*\)"),
    ),
    (
        Some(Script),
        Pattern::new(r"\bexpect\(.*\)\.to(?:Be|Equal|StrictEqual|Contain|Match|Have|Throw)"),
        Pattern::new(r"\bexpect\(.*\)\.not\.to"),
    ),
    (
        Some(Python),
        Pattern::new(r"\b(?:raises|assertRaises\w*)\(.*\bmatch\s*=|\bassertRaisesRegex\("),
        Pattern::new(r"\b(?:raises|assertRaises)\(\s*[\w.]+\s*\)"),
    ),
    (
        Some(Python),
        Pattern::new(r"\.assert_(?:called_once_with|called_with|has_calls|any_call)\("),
        Pattern::new(r"\.assert_(?:called|called_once)\(\s*\)|\.called\b"),
    ),
    (
        Some(Ruby),
        Pattern::new(r"\braise_error\s*\(?\s*[A-Z]|\.to\s"),
        Pattern::new(r"\braise_error\s*(?:$|\}|do\b)|\.(?:not_to|to_not)\s"),
    ),
    (
        Some(Jvm),
        Pattern::new(r"\bassert(?:Equals|True|False|Same|That)\("),
        Pattern::new(r"\bassert(?:DoesNotThrow|NotNull|All)\("),
    ),
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
