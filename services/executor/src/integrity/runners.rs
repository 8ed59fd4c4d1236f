//! Detects code that lets a change decide the results of the tests for it: hooks of runners, code that starts
//! before them, modules that replace their parts, and patches.
//!
//! New files count like changed ones; a reviewer decides at the approval gate.

use domain::check::{ChangeFinding, FindingSeverity};

use super::{
    inventory::is_comment_in,
    new_finding,
    paths::{FilePurpose, SourceLanguage, classify_path, detect_language},
    runner_names::RunnerNames,
    size::{ChangedLines, NumberedLine, compare_lines},
    take_worst, truncate_line,
};
use crate::{pattern::LazyPattern, workspace::ChangedFile};

/// Python files that an import finds instead of a runner or a part of it.
static PYTHON_SHADOW: LazyPattern = LazyPattern::new(
    r"(?x)^(?:src/|lib/|tests?/|test/)?(?:
      (?:_?pytest|pytest_\w+|unittest|unittest2|doctest|nose2?|pluggy|iniconfig|hypothesis|mock|xdist|coverage|assertpy|tox|nox|_pytest)
      (?:\.py|/__init__\.py|/__main__\.py|/.*\.py)
    )$",
);
/// Python files that hide a module of the standard library. An import searches the project's folder first.
static PYTHON_STANDARD: LazyPattern = LazyPattern::new(
    r"^(?:src/)?(?:argparse|ast|atexit|bdb|builtins|collections|contextlib|copy|dataclasses|difflib|dis|enum|fnmatch|functools|gc|importlib|inspect|io|itertools|json|linecache|locale|logging|operator|os|pathlib|pdb|pickle|platform|posixpath|pprint|re|reprlib|runpy|shlex|shutil|signal|site|string|struct|subprocess|sys|sysconfig|tempfile|textwrap|threading|time|tokenize|traceback|types|typing|uuid|warnings|weakref)(?:\.py|/__init__\.py)$",
);
static OTHER_SHADOW: LazyPattern = LazyPattern::new(
    r"(?x)(?:^|/)node_modules/(?:@jest/|jest|vitest|@vitest/|mocha|chai|expect|ava|tape|tap|@babel/|babel-|@swc/|ts-jest|ts-node|tsx|@playwright/|jasmine|karma|node:)
    | (?:^|/)(?:org/junit|junit/framework|org/testng|org/assertj|org/hamcrest|org/mockito|kotlin/test|io/kotest|org/spockframework|org/scalatest)/[^/]*.*\.(?:java|kt|groovy|scala|class)$
    | (?:^|/)(?:rspec|minitest|test/unit)(?:/[\w/]+)?\.rb$ | (?:^|/)PHPUnit/.*\.php$ | (?:^|/)vendor/(?:phpunit|pestphp|bin)/
    | (?:^|/)vendor/github\.com/stretchr/ | (?:^|/)META-INF/services/org\.junit",
);
/// Scripts with the name of a program that runs tests. A `PATH` or working directory may find them first.
static PROGRAM_SHADOW: LazyPattern = LazyPattern::new(
    r"(?:^|/)(?:pytest|py\.test|python[\d.]*|node|npm|npx|pnpm|yarn|jest|vitest|mocha|go|cargo|rustc|mvn|gradle|java|javac|ruby|rspec|bundle|rake|php|phpunit|dotnet|mix|tox|nox|make|bash|sh)$",
);
/// Code that an interpreter runs before the program.
static STARTUP: LazyPattern = LazyPattern::new(
    r"(?:^|/)(?:sitecustomize|usercustomize)(?:\.py|/__init__\.py)$|\.pth$|(?:^|/)\.(?:pythonrc|pystartup)$",
);
/// Settings files that programs read on their own from the working directory or its parents.
static AMBIENT: LazyPattern = LazyPattern::new(
    r"(?:^|/)(?:\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.cjs|\.envrc|\.env(?:\.test\w*)?|\.cargo/config(?:\.toml)?|\.mvn/(?:jvm|maven)\.config|\.mvn/extensions\.xml|gradle\.properties|init\.gradle(?:\.kts)?|\.bundle/config|\.ruby-version|\.rspec|\.taprc|bunfig\.toml|deno\.jsonc?|go\.work|CTestCustom\.cmake)$",
);

/// A pattern of lines with the kind of finding that it produces.
struct RunnerRule {
    kind: &'static str,
    languages: &'static [SourceLanguage],
    place: RunnerRuleScope,
    pattern: LazyPattern,
}

/// Files in which a pattern counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RunnerRuleScope {
    /// Test files, and files that only tests need.
    Tests,
    /// Product files.
    Product,
    /// Every file except documentation, lock files and golden files.
    Code,
    /// `conftest.py`, which pytest loads before the tests of its folder.
    Conftest,
}

use SourceLanguage::{CSharp, Cpp, Go, Jvm, Php, Python, Ruby, Rust, Script, Shell, Sql, Yaml};

const fn runner_rule(
    kind: &'static str,
    languages: &'static [SourceLanguage],
    place: RunnerRuleScope,
    pattern: &'static str,
) -> RunnerRule {
    RunnerRule {
        kind,
        languages,
        place,
        pattern: LazyPattern::new(pattern),
    }
}

static RULES: [RunnerRule; 37] = [
    runner_rule(
        "name_disguised",
        &[Python, Script, Ruby, Php],
        RunnerRuleScope::Code,
        r#"\b(?:getattr|setattr|delattr|hasattr|import_module|__import__|eval|exec|require|import|send|public_send|const_get|instance_variable_set|call_user_func)\s*\(?[^()\n]*['"][\w.]*['"]\s*(?:\+|\.)\s*['"][\w.]*['"]|\[\s*['"]\w*['"]\s*\+\s*['"]\w*['"]\s*\]"#,
    ),
    runner_rule(
        "module_loaded_by_name",
        &[Python],
        RunnerRuleScope::Product,
        r"\bimport_module\(|\b__import__\(|\bexec\(|\beval\(",
    ),
    runner_rule(
        "runner_hooked",
        &[Python],
        RunnerRuleScope::Code,
        r"\bdef\s+pytest_\w+\s*\(|@(?:pytest\.)?hookimpl\b|^\s*pytest_plugins\s*[=:]|\bdef\s+load_tests\s*\(|\bcollect_ignore(?:_glob)?\s*=|\bpytest_(?:runtest|collect|pyfunc|configure|report|session|terminal|assertrepr|generate|unconfigure|cmdline|itemcollected|deselected|make|ignore)\w*\s*=[^=]|\.pluginmanager\b|\bconfig\.hook\b",
    ),
    // A hook under its name in a string, an import or an alias, https://docs.pytest.org/en/stable/reference/reference.html#hooks
    runner_rule(
        "runner_hooked",
        &[Python],
        RunnerRuleScope::Code,
        r"(?:['\x22]|\bas\s+|\bimport\s(?:[^\n]*\W)?|^\s*)pytest_(?:addhooks|addoption|assertion_pass|assertrepr_compare|cmdline_(?:main|parse|preparse)|collect_(?:directory|file)|collection(?:_finish|_modifyitems)?|collectreport|collectstart|configure|deselected|enter_pdb|exception_interact|fixture_(?:post_finalizer|setup)|generate_tests|ignore_collect|internalerror|itemcollected|keyboard_interrupt|leave_pdb|load_initial_conftests|make_collect_report|make_parametrize_id|markeval_namespace|plugin_registered|pycollect_(?:makeitem|makemodule)|pyfunc_call|report_(?:collectionfinish|from_serializable|header|teststatus|to_serializable)|runtest_\w+|runtestloop|sessionfinish|sessionstart|terminal_summary|unconfigure|warning_recorded)\s*(?:['\x22,);#]|$|\bas\b)",
    ),
    // pytest takes hooks and fixtures from the names of this module, however they got there.
    runner_rule(
        "runner_hooked",
        &[Python],
        RunnerRuleScope::Conftest,
        r"\b(?:globals|vars|locals)\(\)\s*(?:\[|\.(?:update|setdefault|__setitem__)\b)|\bsys\.modules\[\s*__name__\s*\]",
    ),
    runner_rule(
        "fixture_forced",
        &[Python],
        RunnerRuleScope::Conftest,
        r"\bautouse\s*=\s*True\b|@(?:pytest\.)?fixture\(.*\bscope\s*=.*\bautouse",
    ),
    runner_rule(
        "runner_patched",
        &[Python],
        RunnerRuleScope::Code,
        r"(?:\bfrom|\bimport)\s+_pytest\b|\b_pytest\.\w|['\x22]_pytest\b|\.runtest\s*=(?:[^=]|$)|\bsetattr\([^\n]*['\x22]runtest['\x22]|\bunittest\.(?:case|result|runner|suite|loader|main)\b\.?\w*\s*(?:\.\w+\s*=[^=]|=[^=])|\b(?:TestCase|TestResult|TextTestRunner|TestSuite|TestLoader)\.\w+\s*=[^=]|\bsetattr\(\s*(?:pytest|unittest|TestCase|_pytest|builtins|sys\.modules)\b|\bclass\s+\w+\((?:unittest\.)?(?:TestResult|TextTestResult|TextTestRunner|TestLoader)\)|\bsys\.modules\[[^\]]*\]\s*=|\bsys\.modules\.(?:update|setdefault|__setitem__)|\bsys\.meta_path\b|\bbuiltins\.\w+\s*=[^=]|\b__builtins__\b|\bAssertionError\s*=[^=]|\bsys\.(?:settrace|setprofile|excepthook\s*=)|\bpytest(?:\.\w+)+\s*=(?:[^=]|$)|\.node\.(?:obj|runtest|funcargs)\b|\bitem\.(?:obj|runtest)\s*=|\brequest\.node\b",
    ),
    runner_rule(
        "exit_called",
        &[Python],
        RunnerRuleScope::Tests,
        r"\bos\._exit\(|\bos\.kill\(\s*os\.getpid|\batexit\.register\(",
    ),
    runner_rule(
        "product_inspects_callers",
        &[Python],
        RunnerRuleScope::Product,
        r"\binspect\.(?:stack|currentframe|getouterframes)\(|\bsys\._getframe\(|\bgc\.get_(?:objects|referrers)\(|\btraceback\.extract_stack\(",
    ),
    runner_rule(
        "assertion_shadowed",
        &[Python],
        RunnerRuleScope::Code,
        r"\bdef\s+(?:assert(?:Equal|True|False|Raises|In|Is|IsNone|AlmostEqual|DictEqual|ListEqual|Regex)|failureException)\b|\bself\.assert\w+\s*=|\bassert(?:Equal|True|Raises)\s*=|\bfailureException\s*=",
    ),
    runner_rule(
        "runner_patched",
        &[Script],
        RunnerRuleScope::Code,
        r#"\b(?:global|globalThis|window|self)(?:\s+as\s[^)]*\))?(?:\.|\[\s*['"`])(?:expect|it|test|describe|assert|before(?:All|Each)?|after(?:All|Each)?|jest|vi|suite|specify)\b['"`\]]*\s*(?:\|\||&&|\?\?)?=(?:[^=>]|$)|\bObject\.(?:defineProperty|defineProperties|assign|setPrototypeOf)\(\s*(?:expect|assert)\b|\bReflect\.(?:set|defineProperty|deleteProperty|setPrototypeOf)\(\s*(?:expect|assert)\b|\b(?:module(?:\.parent)?|require\.main)\.constructor\b|\.constructor\._(?:load|resolveFilename|extensions|findPath|nodeModulePaths|resolveLookupPaths|initPaths|pathCache|preloadModules)\s*=(?:[^=>]|$)|\brequire\(\s*['"](?:node:)?module['"]\s*\)\.\w+\s*=(?:[^=>]|$)|^\s*(?:expect|assert|it|test|describe)\s*=[^=>]|\bassert\.\w+\s*=[^=>]|\bexpect\.\w+\s*=[^=>]|\brequire\.(?:cache|extensions)\b|\bModule\.(?:_load|_resolveFilename|_extensions|prototype\.\w+|register)\b|\bmodule\.register\(|\bregisterHooks\(|\b(?:jest|vi)\.(?:mock|doMock|setMock)\(\s*['"](?:expect|@jest|vitest|@vitest|chai|assert|node:assert|node:test|jest)|\bchai\.(?:use|util)\b|\bAssertion\.(?:overwrite|add)\w+|\bexpect\.extend\("#,
    ),
    runner_rule(
        "runner_patched",
        &[Script],
        RunnerRuleScope::Code,
        r"\b(?:Object|Function|Error|Promise|Array|String|Number|Map|Set|Symbol)\.(?:prototype\.\w+|is|defineProperty|entries|keys)\s*=[^=>]|\bReflect\.\w+\s*=[^=>]|\butil\.isDeepStrictEqual\s*=|\basymmetricMatch\b|\$\$typeof\b.*asymmetric|\bprocess\.exitCode\s*=|\bprocess\.(?:on|once|addListener)\(\s*['\x22](?:exit|beforeExit|uncaughtException|unhandledRejection)|\bprocess\.reallyExit\b|\bprocess\.exit\s*=[^=]",
    ),
    runner_rule(
        "exit_called",
        &[Script],
        RunnerRuleScope::Tests,
        r"\bprocess\.(?:exit|kill|abort|reallyExit)\(",
    ),
    runner_rule(
        "product_inspects_callers",
        &[Script],
        RunnerRuleScope::Product,
        r"\bnew Error\(\)\.stack\b|\bError\.(?:captureStackTrace|prepareStackTrace)\b|\brequire\.main\b.*\b(?:jest|vitest|mocha|test)|\bexpect\.getState\(|\bmodule\.parent\b",
    ),
    runner_rule(
        "assertion_shadowed",
        &[Script],
        RunnerRuleScope::Tests,
        r"^\s*(?:async\s+)?function\s+(?:expect|assert|it|test|describe)\s*\(|^\s*(?:const|let|var)\s+(?:expect|assert|it|test|describe)\s*=\s*(?:\(|async|function|\w+\s*=>)",
    ),
    runner_rule(
        "runner_hooked",
        &[Go],
        RunnerRuleScope::Code,
        r"\bfunc\s+TestMain\s*\(|\btesting\.(?:MainStart|Init|RunTests)\b|\bflag\.Set\(\s*\x22test\.",
    ),
    runner_rule(
        "exit_called",
        &[Go],
        RunnerRuleScope::Tests,
        r"\bos\.Exit\(|\bsyscall\.(?:Exit|Kill)\(|\bruntime\.Goexit\(",
    ),
    runner_rule(
        "runner_patched",
        &[Go],
        RunnerRuleScope::Code,
        r"//go:linkname\b|\bmonkey\.Patch|\bgomonkey\.",
    ),
    runner_rule(
        "product_inspects_callers",
        &[Go],
        RunnerRuleScope::Product,
        r"\bruntime\.(?:Caller|Callers|Stack)\(|\bdebug\.Stack\(|\bflag\.Lookup\(\s*\x22test\.|\bos\.Args\[0\].*test",
    ),
    runner_rule(
        "assertion_shadowed",
        &[Rust],
        RunnerRuleScope::Code,
        r"\bmacro_rules!\s*(?:debug_)?(?:assert\w*|panic|matches|unreachable|todo)\b|\buse\s+.*\bas\s+(?:debug_)?(?:assert\w*|panic)\b|#\[macro_use\(.*assert",
    ),
    runner_rule(
        "runner_hooked",
        &[Rust],
        RunnerRuleScope::Code,
        r"#!\[(?:test_runner|feature\(\s*custom_test_frameworks|reexport_test_harness_main)|#\[test_case\s*\]|\bpanic::set_hook\(|\bpanic::always_abort|\bresume_unwind\(|\bcargo:rustc-(?:cfg|env)=.*test",
    ),
    runner_rule(
        "exit_called",
        &[Rust],
        RunnerRuleScope::Tests,
        r"\bprocess::(?:exit|abort)\(",
    ),
    runner_rule(
        "exception_hidden",
        &[Rust],
        RunnerRuleScope::Tests,
        r"\bcatch_unwind\(",
    ),
    runner_rule(
        "runner_hooked",
        &[Jvm],
        RunnerRuleScope::Code,
        r"\b(?:InvocationInterceptor|TestExecutionExceptionHandler|LifecycleMethodExecutionExceptionHandler|ExecutionCondition|TestExecutionListener|LauncherSessionListener|TestEngine|PostDiscoveryFilter|IInvokedMethodListener|ITestListener|IAnnotationTransformer|IMethodInterceptor|IRetryAnalyzer)\b|\bclass\s+\w+\s+(?:extends\s+(?:BlockJUnit4ClassRunner|Runner|TestWatcher)|implements\s+(?:TestRule|MethodRule))\b|@(?:RunWith|RegisterExtension|AutoService)\(",
    ),
    runner_rule(
        "exit_called",
        &[Jvm],
        RunnerRuleScope::Tests,
        r"\bSystem\.exit\(|\bRuntime\.getRuntime\(\)\.(?:halt|exit|addShutdownHook)|\bexitProcess\(",
    ),
    runner_rule(
        "product_inspects_callers",
        &[Jvm],
        RunnerRuleScope::Product,
        r"\bgetStackTrace\(\)|\bStackWalker\b|\bClass\.forName\(\s*\x22org\.junit",
    ),
    runner_rule(
        "runner_hooked",
        &[Ruby],
        RunnerRuleScope::Code,
        r"\b(?:config|c)\.(?:around|filter_run\w*|filter_gems\w*|exclusion_filter|inclusion_filter|failure_exit_code|error_exit_code|reporter|add_formatter|default_formatter|register_\w+|on_example\w*|dry_run|fail_if_no_examples|alias_\w+|raise_errors\w*)\b|\bMinitest\.(?:after_run|extensions|reporter|seed)\b|\bprepend_(?:before|after)\b|^\s*at_exit\b",
    ),
    runner_rule(
        "runner_patched",
        &[Ruby],
        RunnerRuleScope::Code,
        r"\b(?:class|module)\s+(?:::)?(?:RSpec|Minitest|Test::Unit|MiniTest)\b|\bRSpec::(?:Core|Expectations|Matchers)::?\w*(?:\.\w+|::\w+)*\.(?:class_eval|prepend|send|define_method|singleton_class|instance_eval)|\bMinitest::\w+(?:\.\w+)*\.(?:class_eval|prepend|send|define_method)|\bdef\s+(?:assert\w*|expect|refute\w*|fail_with|must_\w+|should)\b|\balias(?:_method)?\s+:?assert",
    ),
    runner_rule(
        "exit_called",
        &[Ruby],
        RunnerRuleScope::Tests,
        r"^\s*(?:exit!?|abort|Kernel\.exit!?)\b|\bProcess\.(?:exit!?|kill)",
    ),
    runner_rule(
        "runner_patched",
        &[Php],
        RunnerRuleScope::Code,
        r"^\s*namespace\s+(?:PHPUnit|Pest|Mockery)\b|\bfunction\s+assert(?:Same|Equals|True|That|Count|Null)\s*\(|\brunkit\w*_|\buopz_",
    ),
    runner_rule(
        "exit_called",
        &[Php],
        RunnerRuleScope::Tests,
        r"\bregister_shutdown_function\(|\b(?:exit|die)\s*[(;]|\bset_error_handler\(",
    ),
    runner_rule(
        "runner_patched",
        &[CSharp],
        RunnerRuleScope::Code,
        r"^\s*namespace\s+(?:Xunit|NUnit\.Framework|Microsoft\.VisualStudio\.TestTools)\b|\[assembly:\s*(?:Xunit\.)?TestFramework\b|\b(?:ITestFramework|XunitTestFramework|XunitTestCaseRunner)\b|\bclass\s+Assert\b",
    ),
    runner_rule(
        "exit_called",
        &[CSharp],
        RunnerRuleScope::Tests,
        r"\bEnvironment\.(?:Exit|FailFast)\(",
    ),
    runner_rule(
        "assertion_shadowed",
        &[Cpp],
        RunnerRuleScope::Code,
        r"^\s*#\s*(?:define|undef)\s+(?:EXPECT|ASSERT|TEST|CHECK|REQUIRE|SUCCEED|FAIL|assert)\w*\b|^\s*#\s*define\s+NDEBUG\b",
    ),
    runner_rule(
        "exit_called",
        &[Cpp],
        RunnerRuleScope::Tests,
        r"\b(?:_exit|quick_exit|_Exit|abort)\s*\(",
    ),
    runner_rule(
        "command_shadowed",
        &[Shell],
        RunnerRuleScope::Code,
        r"^\s*(?:function\s+)?(?:pytest|python3?|npm|npx|node|go|cargo|make|mvn|gradle|rspec|bundle|php|phpunit|dotnet|test|set|exit|false)\s*\(\)|^\s*alias\s+\w+=",
    ),
    runner_rule(
        "test_shadowed",
        &[Sql, Yaml],
        RunnerRuleScope::Code,
        r"\{%-?\s*(?:macro\s+(?:default__)?test_|test\s+|data_test\s+)(?:not_null|unique|accepted_values|relationships)\b|\{%-?\s*macro\s+(?:default__)?(?:get_test_sql|should_store_failures)",
    ),
];

/// Environment variables that change the behavior of runners and interpreters.
static ENVIRONMENT: LazyPattern = LazyPattern::new(
    r"\b(?:NODE_OPTIONS|PYTHONSTARTUP|PYTHONINSPECT|PYTHONOPTIMIZE|PYTEST_ADDOPTS|PYTEST_PLUGINS|PYTEST_DISABLE_PLUGIN_AUTOLOAD|COVERAGE_PROCESS_START|MOCHA_OPTIONS|RUSTFLAGS|RUSTDOCFLAGS|RUSTC_WRAPPER|RUSTC_WORKSPACE_WRAPPER|CARGO_TARGET_\w+_RUNNER|RUST_TEST_\w+|GOFLAGS|GOTESTFLAGS|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|MAVEN_OPTS|MAVEN_ARGS|GRADLE_OPTS|RUBYOPT|RSPEC_OPTS|SPEC_OPTS|PERL5OPT|PHP_INI_SCAN_DIR|LD_PRELOAD|LD_LIBRARY_PATH|BASH_ENV|DOTNET_STARTUP_HOOKS|GTEST_(?:FILTER|SHARD_INDEX|TOTAL_SHARDS|ALSO_RUN_DISABLED_TESTS))\b\s*(?:\+?[:=]|\x22?\])",
);
/// Code that sets an environment variable.
static SETS_VARIABLE: LazyPattern =
    LazyPattern::new(r"(?i)\benv(?:iron)?\b|\bsetenv|\bputenv|\bset_var\b|\bmonkeypatch\b");
/// Ambient settings that reach an interpreter or a shell. Other ambient settings are only flagged.
static AMBIENT_DECIDES: LazyPattern = LazyPattern::new(
    r"(?i)node-options|script-shell|ignore-scripts|yarnPath|plugins:|hooks\s*=|runner\s*=|rustflags|rustdocflags|rustc-wrapper|build-?target|javaagent|-D\w+|skip|exclude|systemProp|org\.gradle\.(?:jvmargs|test)|preload|BUNDLE_\w+|\breplace\b|--(?:require|import|loader|tag|pattern|exclude)",
);

pub(super) fn find_runner_tampering(files: &[ChangedFile]) -> Vec<ChangeFinding> {
    let present = files.iter().filter(|file| file.after.is_some());
    present
        .flat_map(|file| {
            let changed = compare_lines(file);
            check_path(file, &changed)
                .into_iter()
                .chain(check_new_lines(file, &changed.added))
                .chain(check_environment_lines(file, &changed.added))
        })
        .collect()
}

/// Finds a file that is suspicious for its path alone.
fn check_path(file: &ChangedFile, changed: &ChangedLines<'_>) -> Option<ChangeFinding> {
    let path = file.path.as_str();
    let is_new = file.before.is_none();
    let is_script =
        |text: &str| text.starts_with("#!") || !path.rsplit('/').next().unwrap_or(path).contains('.');
    let found = |kind, words: &str| Some(new_finding(path, 0, kind, FindingSeverity::Block, words));
    if STARTUP.is_match(path) {
        return found(
            "startup_code_changed",
            "an interpreter runs this file before any test",
        );
    }
    if PYTHON_SHADOW.is_match(path) || OTHER_SHADOW.is_match(path) {
        return found(
            "runner_shadowed",
            "a file that tests may load in place of their runner or its parts",
        );
    }
    if is_new && PYTHON_STANDARD.is_match(path) {
        return found(
            "runner_shadowed",
            "a module that hides one of the standard library from the runner",
        );
    }
    let after = file.after.as_deref().unwrap_or_default();
    if is_new && PROGRAM_SHADOW.is_match(path) && is_script(after) && !after.is_empty() {
        return found(
            "program_shadowed",
            "a program with the name of one that runs tests",
        );
    }
    if AMBIENT.is_match(path) {
        let decides = changed
            .added
            .iter()
            .chain(&changed.removed)
            .find(|(_, line)| AMBIENT_DECIDES.is_match(line));
        let (line, severity, words) = match decides {
            Some((number, line)) => (*number, FindingSeverity::Block, truncate_line(line)),
            None => (
                0,
                FindingSeverity::Flag,
                "settings that programs read by themselves".to_owned(),
            ),
        };
        return Some(new_finding(
            path,
            line,
            "ambient_settings_changed",
            severity,
            words,
        ));
    }
    None
}

/// Finds new lines that match a rule.
fn check_new_lines(file: &ChangedFile, added: &[NumberedLine<'_>]) -> Vec<ChangeFinding> {
    let (language, role) = (detect_language(&file.path), classify_path(&file.path));
    if matches!(
        role,
        FilePurpose::Docs | FilePurpose::Lock | FilePurpose::Expected
    ) {
        return Vec::new();
    }
    let is_conftest = file.path.rsplit('/').next() == Some("conftest.py");
    let applies = |rule: &&RunnerRule| {
        let is_here = match rule.place {
            RunnerRuleScope::Tests => role == FilePurpose::Test,
            RunnerRuleScope::Product => role == FilePurpose::Product,
            RunnerRuleScope::Code => true,
            RunnerRuleScope::Conftest => is_conftest,
        };
        is_here && rule.languages.contains(&language)
    };
    let rules: Vec<&RunnerRule> = RULES.iter().filter(applies).collect();
    let mut found = Vec::new();
    // Go reads directives from comments.
    let is_code = |line: &str| !is_comment_in(language, line) || line.trim_start().starts_with("//go:");
    let names = RunnerNames::read(language, file.after.as_deref().unwrap_or_default());
    for (number, line) in added.iter().filter(|(_, line)| is_code(line)) {
        let of_rules = rules
            .iter()
            .filter(|rule| rule.pattern.is_match(line))
            .map(|rule| (rule.kind, judge_match(rule, line)));
        let of_names = names
            .are_patched_by(line)
            .then_some(("runner_patched", FindingSeverity::Block));
        found.extend(
            take_worst(of_rules.chain(of_names)).map(|(kind, severity)| {
                new_finding(&file.path, *number, kind, severity, truncate_line(line))
            }),
        );
    }
    found
}

/// Returns the severity of a rule that a line matches.
///
/// Hooks decide results and block; constructs with common honest uses are flagged, so that reviewers see them in the
/// pull request.
fn judge_match(rule: &RunnerRule, line: &str) -> FindingSeverity {
    static HONEST: LazyPattern = LazyPattern::new(
        r"\bexpect\.extend\(|\brequest\.node\b|\batexit\.register\(|\bprocess\.(?:on|once)\(|\bset_error_handler\(|\bmodule\.parent\b|\bdebug\.Stack\(|\bcatch_unwind\(|\bpanic::set_hook|\bprocess\.exitCode\b|\bresume_unwind\(|\bsys\.(?:excepthook|settrace|setprofile)|\bchai\.use\b|@RegisterExtension\(|@RunWith\(\s*(?:Mockito|Spring|Parameterized|Suite)",
    );
    let starts = |pattern: &LazyPattern| -> Vec<usize> {
        let matches = pattern.all(line).filter_map(|found| found.get(0));
        matches.map(|found| found.start()).collect()
    };
    // Another match of the rule in the same line is judged without regard to an honest construct.
    let honest = starts(&HONEST);
    let is_honest = starts(&rule.pattern).iter().all(|start| honest.contains(start));
    if is_honest || matches!(rule.kind, "product_inspects_callers" | "module_loaded_by_name") {
        FindingSeverity::Flag
    } else {
        FindingSeverity::Block
    }
}

fn check_environment_lines(file: &ChangedFile, added: &[NumberedLine<'_>]) -> Vec<ChangeFinding> {
    let role = classify_path(&file.path);
    if matches!(
        role,
        FilePurpose::Docs | FilePurpose::Lock | FilePurpose::Expected
    ) {
        return Vec::new();
    }
    let language = detect_language(&file.path);
    let is_code = !matches!(language, Shell | Yaml | SourceLanguage::Other);
    let set = |(number, line): &(usize, &str)| {
        let is_set = !is_code || SETS_VARIABLE.is_match(line);
        (is_set && !is_comment_in(language, line) && ENVIRONMENT.is_match(line)).then(|| {
            new_finding(
                &file.path,
                *number,
                "runner_environment_set",
                FindingSeverity::Block,
                truncate_line(line),
            )
        })
    };
    added.iter().filter_map(set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_can_be_read() {
        for rule in &RULES {
            assert!(rule.pattern.is_sound(), "{}", rule.kind);
        }
        for pattern in [
            &PYTHON_SHADOW,
            &PYTHON_STANDARD,
            &OTHER_SHADOW,
            &PROGRAM_SHADOW,
            &STARTUP,
            &AMBIENT,
            &ENVIRONMENT,
            &AMBIENT_DECIDES,
            &SETS_VARIABLE,
        ] {
            assert!(pattern.is_sound());
        }
    }
}
