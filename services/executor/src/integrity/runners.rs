//! Detects code that lets a change decide the results of the tests for it: hooks of runners, code that starts
//! before them, modules that replace their parts, and patches.
//!
//! New files count like changed ones; a reviewer decides at the approval gate.

use domain::check::{Finding, Severity};

use super::{
    finding,
    inventory::is_comment,
    lines::lines,
    paths::{Language, Role, language, role},
    shown,
};
use crate::{pattern::Pattern, workspace::ChangedFile};

/// Python files that an import finds instead of a runner or a part of it.
static PYTHON_SHADOW: Pattern = Pattern::new(
    r"(?x)^(?:src/|lib/|tests?/|test/)?(?:
      (?:_?pytest|pytest_\w+|unittest|unittest2|doctest|nose2?|pluggy|iniconfig|hypothesis|mock|xdist|coverage|assertpy|tox|nox|_pytest)
      (?:\.py|/__init__\.py|/__main__\.py|/.*\.py)
    )$",
);
/// Python files that hide a module of the standard library. An import searches the project's folder first.
static PYTHON_STANDARD: Pattern = Pattern::new(
    r"^(?:src/)?(?:argparse|ast|atexit|bdb|builtins|collections|contextlib|copy|dataclasses|difflib|dis|enum|fnmatch|functools|gc|importlib|inspect|io|itertools|json|linecache|locale|logging|operator|os|pathlib|pdb|pickle|platform|posixpath|pprint|re|reprlib|runpy|shlex|shutil|signal|site|string|struct|subprocess|sys|sysconfig|tempfile|textwrap|threading|time|tokenize|traceback|types|typing|uuid|warnings|weakref)(?:\.py|/__init__\.py)$",
);
static OTHER_SHADOW: Pattern = Pattern::new(
    r"(?x)(?:^|/)node_modules/(?:@jest/|jest|vitest|@vitest/|mocha|chai|expect|ava|tape|tap|@babel/|babel-|@swc/|ts-jest|ts-node|tsx|@playwright/|jasmine|karma|node:)
    | (?:^|/)(?:org/junit|junit/framework|org/testng|org/assertj|org/hamcrest|org/mockito|kotlin/test|io/kotest|org/spockframework|org/scalatest)/[^/]*.*\.(?:java|kt|groovy|scala|class)$
    | (?:^|/)(?:rspec|minitest|test/unit)(?:/[\w/]+)?\.rb$ | (?:^|/)PHPUnit/.*\.php$ | (?:^|/)vendor/(?:phpunit|pestphp|bin)/
    | (?:^|/)vendor/github\.com/stretchr/ | (?:^|/)META-INF/services/org\.junit",
);
/// Scripts with the name of a program that runs tests. A `PATH` or working directory may find them first.
static PROGRAM_SHADOW: Pattern = Pattern::new(
    r"(?:^|/)(?:pytest|py\.test|python[\d.]*|node|npm|npx|pnpm|yarn|jest|vitest|mocha|go|cargo|rustc|mvn|gradle|java|javac|ruby|rspec|bundle|rake|php|phpunit|dotnet|mix|tox|nox|make|bash|sh)$",
);
/// Code that an interpreter runs before the program.
static STARTUP: Pattern = Pattern::new(
    r"(?:^|/)(?:sitecustomize|usercustomize)(?:\.py|/__init__\.py)$|\.pth$|(?:^|/)\.(?:pythonrc|pystartup)$",
);
/// Settings files that programs read on their own from the working directory or its parents.
static AMBIENT: Pattern = Pattern::new(
    r"(?:^|/)(?:\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.cjs|\.envrc|\.env(?:\.test\w*)?|\.cargo/config(?:\.toml)?|\.mvn/(?:jvm|maven)\.config|\.mvn/extensions\.xml|gradle\.properties|init\.gradle(?:\.kts)?|\.bundle/config|\.ruby-version|\.rspec|\.taprc|bunfig\.toml|deno\.jsonc?|go\.work|CTestCustom\.cmake)$",
);

/// A pattern of lines with the kind of finding that it produces.
struct Rule {
    kind: &'static str,
    languages: &'static [Language],
    place: Place,
    pattern: Pattern,
}

/// Files in which a pattern counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Test files, and files that only tests need.
    Tests,
    /// Product files.
    Product,
    /// Every file except documentation, lock files and golden files.
    Code,
    /// `conftest.py`, which pytest loads before the tests of its folder.
    Conftest,
}

use Language::{CSharp, Cpp, Go, Jvm, Php, Python, Ruby, Rust, Script, Shell, Sql, Yaml};

const fn rule(
    kind: &'static str,
    languages: &'static [Language],
    place: Place,
    pattern: &'static str,
) -> Rule {
    Rule {
        kind,
        languages,
        place,
        pattern: Pattern::new(pattern),
    }
}

static RULES: [Rule; 35] = [
    rule(
        "name_disguised",
        &[Python, Script, Ruby, Php],
        Place::Code,
        r#"\b(?:getattr|setattr|delattr|hasattr|import_module|__import__|eval|exec|require|import|send|public_send|const_get|instance_variable_set|call_user_func)\s*\(?[^()\n]*['"][\w.]*['"]\s*(?:\+|\.)\s*['"][\w.]*['"]|\[\s*['"]\w*['"]\s*\+\s*['"]\w*['"]\s*\]"#,
    ),
    rule(
        "module_loaded_by_name",
        &[Python],
        Place::Product,
        r"\bimport_module\(|\b__import__\(|\bexec\(|\beval\(",
    ),
    rule(
        "runner_hooked",
        &[Python],
        Place::Code,
        r"\bdef\s+pytest_\w+\s*\(|@(?:pytest\.)?hookimpl\b|^\s*pytest_plugins\s*[=:]|\bdef\s+load_tests\s*\(|\bcollect_ignore(?:_glob)?\s*=|\bpytest_(?:runtest|collect|pyfunc|configure|report|session|terminal|assertrepr|generate|unconfigure|cmdline|itemcollected|deselected|make|ignore)\w*\s*=[^=]|\.pluginmanager\b|\bconfig\.hook\b",
    ),
    rule(
        "fixture_forced",
        &[Python],
        Place::Conftest,
        r"\bautouse\s*=\s*True\b|@(?:pytest\.)?fixture\(.*\bscope\s*=.*\bautouse",
    ),
    rule(
        "runner_patched",
        &[Python],
        Place::Code,
        r"(?:\bfrom|\bimport)\s+_pytest\b|\b_pytest\.\w|\bunittest\.(?:case|result|runner|suite|loader|main)\b\.?\w*\s*(?:\.\w+\s*=[^=]|=[^=])|\b(?:TestCase|TestResult|TextTestRunner|TestSuite|TestLoader)\.\w+\s*=[^=]|\bsetattr\(\s*(?:pytest|unittest|TestCase|_pytest|builtins|sys\.modules)\b|\bclass\s+\w+\((?:unittest\.)?(?:TestResult|TextTestResult|TextTestRunner|TestLoader)\)|\bsys\.modules\[[^\]]*\]\s*=|\bsys\.modules\.(?:update|setdefault|__setitem__)|\bsys\.meta_path\b|\bbuiltins\.\w+\s*=[^=]|\b__builtins__\b|\bAssertionError\s*=[^=]|\bsys\.(?:settrace|setprofile|excepthook\s*=)|\bpytest\.\w+\s*=[^=]|\.node\.(?:obj|runtest|funcargs)\b|\bitem\.(?:obj|runtest)\s*=|\brequest\.node\b",
    ),
    rule(
        "exit_called",
        &[Python],
        Place::Tests,
        r"\bos\._exit\(|\bos\.kill\(\s*os\.getpid|\batexit\.register\(",
    ),
    rule(
        "product_inspects_callers",
        &[Python],
        Place::Product,
        r"\binspect\.(?:stack|currentframe|getouterframes)\(|\bsys\._getframe\(|\bgc\.get_(?:objects|referrers)\(|\btraceback\.extract_stack\(",
    ),
    rule(
        "assertion_shadowed",
        &[Python],
        Place::Code,
        r"\bdef\s+(?:assert(?:Equal|True|False|Raises|In|Is|IsNone|AlmostEqual|DictEqual|ListEqual|Regex)|failureException)\b|\bself\.assert\w+\s*=|\bassert(?:Equal|True|Raises)\s*=|\bfailureException\s*=",
    ),
    rule(
        "runner_patched",
        &[Script],
        Place::Code,
        r#"\b(?:global|globalThis|window|self)(?:\.|\[\s*['"])(?:expect|it|test|describe|assert|before\w*|after\w*|jest|vi|suite|specify)\b['"\]]*\s*=[^=>]|\bObject\.(?:defineProperty|assign)\(\s*(?:global|globalThis|window|expect|assert)\b|^\s*(?:expect|assert|it|test|describe)\s*=[^=>]|\bassert\.\w+\s*=[^=>]|\bexpect\.\w+\s*=[^=>]|\brequire\.(?:cache|extensions)\b|\bModule\.(?:_load|_resolveFilename|_extensions|prototype\.\w+|register)\b|\bmodule\.register\(|\bregisterHooks\(|\b(?:jest|vi)\.(?:mock|doMock|setMock)\(\s*['"](?:expect|@jest|vitest|@vitest|chai|assert|node:assert|node:test|jest)|\bchai\.(?:use|util)\b|\bAssertion\.(?:overwrite|add)\w+|\bexpect\.extend\("#,
    ),
    rule(
        "runner_patched",
        &[Script],
        Place::Code,
        r"\b(?:Object|Function|Error|Promise|Array|String|Number|Map|Set|Symbol)\.(?:prototype\.\w+|is|defineProperty|entries|keys)\s*=[^=>]|\bReflect\.\w+\s*=[^=>]|\butil\.isDeepStrictEqual\s*=|\basymmetricMatch\b|\$\$typeof\b.*asymmetric|\bprocess\.exitCode\s*=|\bprocess\.(?:on|once|addListener)\(\s*['\x22](?:exit|beforeExit|uncaughtException|unhandledRejection)|\bprocess\.reallyExit\b|\bprocess\.exit\s*=[^=]",
    ),
    rule(
        "exit_called",
        &[Script],
        Place::Tests,
        r"\bprocess\.(?:exit|kill|abort|reallyExit)\(",
    ),
    rule(
        "product_inspects_callers",
        &[Script],
        Place::Product,
        r"\bnew Error\(\)\.stack\b|\bError\.(?:captureStackTrace|prepareStackTrace)\b|\brequire\.main\b.*\b(?:jest|vitest|mocha|test)|\bexpect\.getState\(|\bmodule\.parent\b",
    ),
    rule(
        "assertion_shadowed",
        &[Script],
        Place::Tests,
        r"^\s*(?:async\s+)?function\s+(?:expect|assert|it|test|describe)\s*\(|^\s*(?:const|let|var)\s+(?:expect|assert|it|test|describe)\s*=\s*(?:\(|async|function|\w+\s*=>)",
    ),
    rule(
        "runner_hooked",
        &[Go],
        Place::Code,
        r"\bfunc\s+TestMain\s*\(|\btesting\.(?:MainStart|Init|RunTests)\b|\bflag\.Set\(\s*\x22test\.",
    ),
    rule(
        "exit_called",
        &[Go],
        Place::Tests,
        r"\bos\.Exit\(|\bsyscall\.(?:Exit|Kill)\(|\bruntime\.Goexit\(",
    ),
    rule(
        "runner_patched",
        &[Go],
        Place::Code,
        r"//go:linkname\b|\bmonkey\.Patch|\bgomonkey\.",
    ),
    rule(
        "product_inspects_callers",
        &[Go],
        Place::Product,
        r"\bruntime\.(?:Caller|Callers|Stack)\(|\bdebug\.Stack\(|\bflag\.Lookup\(\s*\x22test\.|\bos\.Args\[0\].*test",
    ),
    rule(
        "assertion_shadowed",
        &[Rust],
        Place::Code,
        r"\bmacro_rules!\s*(?:debug_)?(?:assert\w*|panic|matches|unreachable|todo)\b|\buse\s+.*\bas\s+(?:debug_)?(?:assert\w*|panic)\b|#\[macro_use\(.*assert",
    ),
    rule(
        "runner_hooked",
        &[Rust],
        Place::Code,
        r"#!\[(?:test_runner|feature\(\s*custom_test_frameworks|reexport_test_harness_main)|#\[test_case\s*\]|\bpanic::set_hook\(|\bpanic::always_abort|\bresume_unwind\(|\bcargo:rustc-(?:cfg|env)=.*test",
    ),
    rule(
        "exit_called",
        &[Rust],
        Place::Tests,
        r"\bprocess::(?:exit|abort)\(",
    ),
    rule("exception_hidden", &[Rust], Place::Tests, r"\bcatch_unwind\("),
    rule(
        "runner_hooked",
        &[Jvm],
        Place::Code,
        r"\b(?:InvocationInterceptor|TestExecutionExceptionHandler|LifecycleMethodExecutionExceptionHandler|ExecutionCondition|TestExecutionListener|LauncherSessionListener|TestEngine|PostDiscoveryFilter|IInvokedMethodListener|ITestListener|IAnnotationTransformer|IMethodInterceptor|IRetryAnalyzer)\b|\bclass\s+\w+\s+(?:extends\s+(?:BlockJUnit4ClassRunner|Runner|TestWatcher)|implements\s+(?:TestRule|MethodRule))\b|@(?:RunWith|RegisterExtension|AutoService)\(",
    ),
    rule(
        "exit_called",
        &[Jvm],
        Place::Tests,
        r"\bSystem\.exit\(|\bRuntime\.getRuntime\(\)\.(?:halt|exit|addShutdownHook)|\bexitProcess\(",
    ),
    rule(
        "product_inspects_callers",
        &[Jvm],
        Place::Product,
        r"\bgetStackTrace\(\)|\bStackWalker\b|\bClass\.forName\(\s*\x22org\.junit",
    ),
    rule(
        "runner_hooked",
        &[Ruby],
        Place::Code,
        r"\b(?:config|c)\.(?:around|filter_run\w*|filter_gems\w*|exclusion_filter|inclusion_filter|failure_exit_code|error_exit_code|reporter|add_formatter|default_formatter|register_\w+|on_example\w*|dry_run|fail_if_no_examples|alias_\w+|raise_errors\w*)\b|\bMinitest\.(?:after_run|extensions|reporter|seed)\b|\bprepend_(?:before|after)\b|^\s*at_exit\b",
    ),
    rule(
        "runner_patched",
        &[Ruby],
        Place::Code,
        r"\b(?:class|module)\s+(?:::)?(?:RSpec|Minitest|Test::Unit|MiniTest)\b|\bRSpec::(?:Core|Expectations|Matchers)::?\w*(?:\.\w+|::\w+)*\.(?:class_eval|prepend|send|define_method|singleton_class|instance_eval)|\bMinitest::\w+(?:\.\w+)*\.(?:class_eval|prepend|send|define_method)|\bdef\s+(?:assert\w*|expect|refute\w*|fail_with|must_\w+|should)\b|\balias(?:_method)?\s+:?assert",
    ),
    rule(
        "exit_called",
        &[Ruby],
        Place::Tests,
        r"^\s*(?:exit!?|abort|Kernel\.exit!?)\b|\bProcess\.(?:exit!?|kill)",
    ),
    rule(
        "runner_patched",
        &[Php],
        Place::Code,
        r"^\s*namespace\s+(?:PHPUnit|Pest|Mockery)\b|\bfunction\s+assert(?:Same|Equals|True|That|Count|Null)\s*\(|\brunkit\w*_|\buopz_",
    ),
    rule(
        "exit_called",
        &[Php],
        Place::Tests,
        r"\bregister_shutdown_function\(|\b(?:exit|die)\s*[(;]|\bset_error_handler\(",
    ),
    rule(
        "runner_patched",
        &[CSharp],
        Place::Code,
        r"^\s*namespace\s+(?:Xunit|NUnit\.Framework|Microsoft\.VisualStudio\.TestTools)\b|\[assembly:\s*(?:Xunit\.)?TestFramework\b|\b(?:ITestFramework|XunitTestFramework|XunitTestCaseRunner)\b|\bclass\s+Assert\b",
    ),
    rule(
        "exit_called",
        &[CSharp],
        Place::Tests,
        r"\bEnvironment\.(?:Exit|FailFast)\(",
    ),
    rule(
        "assertion_shadowed",
        &[Cpp],
        Place::Code,
        r"^\s*#\s*(?:define|undef)\s+(?:EXPECT|ASSERT|TEST|CHECK|REQUIRE|SUCCEED|FAIL|assert)\w*\b|^\s*#\s*define\s+NDEBUG\b",
    ),
    rule(
        "exit_called",
        &[Cpp],
        Place::Tests,
        r"\b(?:_exit|quick_exit|_Exit|abort)\s*\(",
    ),
    rule(
        "command_shadowed",
        &[Shell],
        Place::Code,
        r"^\s*(?:function\s+)?(?:pytest|python3?|npm|npx|node|go|cargo|make|mvn|gradle|rspec|bundle|php|phpunit|dotnet|test|set|exit|false)\s*\(\)|^\s*alias\s+\w+=",
    ),
    rule(
        "test_shadowed",
        &[Sql, Yaml],
        Place::Code,
        r"\{%-?\s*(?:macro\s+(?:default__)?test_|test\s+|data_test\s+)(?:not_null|unique|accepted_values|relationships)\b|\{%-?\s*macro\s+(?:default__)?(?:get_test_sql|should_store_failures)",
    ),
];

/// Environment variables that change the behavior of runners and interpreters.
static ENVIRONMENT: Pattern = Pattern::new(
    r"\b(?:NODE_OPTIONS|PYTHONSTARTUP|PYTHONINSPECT|PYTHONOPTIMIZE|PYTEST_ADDOPTS|PYTEST_PLUGINS|PYTEST_DISABLE_PLUGIN_AUTOLOAD|COVERAGE_PROCESS_START|MOCHA_OPTIONS|RUSTFLAGS|RUSTDOCFLAGS|RUSTC_WRAPPER|RUSTC_WORKSPACE_WRAPPER|CARGO_TARGET_\w+_RUNNER|RUST_TEST_\w+|GOFLAGS|GOTESTFLAGS|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|MAVEN_OPTS|MAVEN_ARGS|GRADLE_OPTS|RUBYOPT|RSPEC_OPTS|SPEC_OPTS|PERL5OPT|PHP_INI_SCAN_DIR|LD_PRELOAD|LD_LIBRARY_PATH|BASH_ENV|DOTNET_STARTUP_HOOKS|GTEST_(?:FILTER|SHARD_INDEX|TOTAL_SHARDS|ALSO_RUN_DISABLED_TESTS))\b\s*(?:\+?[:=]|\x22?\])",
);
/// Code that sets an environment variable.
static SETS_VARIABLE: Pattern =
    Pattern::new(r"(?i)\benv(?:iron)?\b|\bsetenv|\bputenv|\bset_var\b|\bmonkeypatch\b");
/// Ambient settings that reach an interpreter or a shell. Other ambient settings are only flagged.
static AMBIENT_DECIDES: Pattern = Pattern::new(
    r"(?i)node-options|script-shell|ignore-scripts|yarnPath|plugins:|hooks\s*=|runner\s*=|rustflags|rustdocflags|rustc-wrapper|build-?target|javaagent|-D\w+|skip|exclude|systemProp|org\.gradle\.(?:jvmargs|test)|preload|BUNDLE_\w+|\breplace\b|--(?:require|import|loader|tag|pattern|exclude)",
);

pub(super) fn findings(files: &[ChangedFile]) -> Vec<Finding> {
    let present = files.iter().filter(|file| file.after.is_some());
    present
        .flat_map(|file| {
            placed(file)
                .into_iter()
                .chain(said(file))
                .chain(environment(file))
        })
        .collect()
}

/// Finds a file that is suspicious for its path alone.
fn placed(file: &ChangedFile) -> Option<Finding> {
    let path = file.path.as_str();
    let is_new = file.before.is_none();
    let is_script =
        |text: &str| text.starts_with("#!") || !path.rsplit('/').next().unwrap_or(path).contains('.');
    let found = |kind, words: &str| Some(finding(path, 0, kind, Severity::Block, words));
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
        let changed = lines(file);
        let decides = changed
            .added
            .iter()
            .chain(&changed.removed)
            .find(|(_, line)| AMBIENT_DECIDES.is_match(line));
        let (line, severity, words) = match decides {
            Some((number, line)) => (*number, Severity::Block, shown(line)),
            None => (
                0,
                Severity::Flag,
                "settings that programs read by themselves".to_owned(),
            ),
        };
        return Some(finding(path, line, "ambient_settings_changed", severity, words));
    }
    None
}

/// Finds new lines that match a rule.
fn said(file: &ChangedFile) -> Vec<Finding> {
    let (language, role) = (language(&file.path), role(&file.path));
    if matches!(role, Role::Docs | Role::Lock | Role::Expected) {
        return Vec::new();
    }
    let is_conftest = file.path.rsplit('/').next() == Some("conftest.py");
    let mut found = Vec::new();
    let is_code = |line: &str| {
        let line = line.trim_start();
        !is_comment(line) || line.starts_with("//go:") || (language == Cpp && line.starts_with('#'))
    };
    for (number, line) in lines(file).added.iter().filter(|(_, line)| is_code(line)) {
        let counts = |rule: &&Rule| {
            let is_here = match rule.place {
                Place::Tests => role == Role::Test,
                Place::Product => role == Role::Product,
                Place::Code => true,
                Place::Conftest => is_conftest,
            };
            is_here && rule.languages.contains(&language) && rule.pattern.is_match(line)
        };
        if let Some(rule) = RULES.iter().find(counts) {
            found.push(finding(
                &file.path,
                *number,
                rule.kind,
                severity(rule, role, line),
                shown(line),
            ));
        }
    }
    found
}

/// Returns the severity of a match. Hooks decide results and block; constructs with common honest uses are
/// flagged, so that reviewers see them in the pull request.
fn severity(rule: &Rule, role: Role, line: &str) -> Severity {
    static HONEST: Pattern = Pattern::new(
        r"\bexpect\.extend\(|\brequest\.node\b|\batexit\.register\(|\bprocess\.(?:on|once)\(|\bset_error_handler\(|\bmodule\.parent\b|\bdebug\.Stack\(|\bcatch_unwind\(|\bpanic::set_hook|\bprocess\.exitCode\b|\bresume_unwind\(|\bsys\.(?:excepthook|settrace|setprofile)|\bchai\.use\b|@RegisterExtension\(|@RunWith\(\s*(?:Mockito|Spring|Parameterized|Suite)",
    );
    let is_told =
        matches!(rule.kind, "product_inspects_callers" | "module_loaded_by_name") || HONEST.is_match(line);
    // Product code may exit for its own reasons. It has no honest reason to patch a runner.
    let is_products_own = role == Role::Product && rule.kind == "exit_called";
    if is_told || is_products_own {
        Severity::Flag
    } else {
        Severity::Block
    }
}

fn environment(file: &ChangedFile) -> Vec<Finding> {
    let role = role(&file.path);
    if matches!(role, Role::Docs | Role::Lock | Role::Expected) {
        return Vec::new();
    }
    let is_code = !matches!(language(&file.path), Shell | Yaml | Language::Other);
    let set = |(number, line): &(usize, &str)| {
        let is_set = !is_code || SETS_VARIABLE.is_match(line);
        (is_set && !is_comment(line) && ENVIRONMENT.is_match(line)).then(|| {
            finding(
                &file.path,
                *number,
                "runner_environment_set",
                Severity::Block,
                shown(line),
            )
        })
    };
    lines(file).added.iter().filter_map(set).collect()
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
