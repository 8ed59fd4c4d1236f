//! Purpose and language of a file, derived from its path.

use crate::pattern::Pattern;

/// Purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Tests, and files that only tests need.
    Test,
    /// Snapshots and golden files that tests compare with.
    Expected,
    /// Settings of test runners, linters, type checkers, coverage and code ownership.
    Config,
    /// Configuration of continuous integration.
    Ci,
    /// Lock files with pinned versions.
    Lock,
    /// Files that a program generates, or copies of third-party code.
    Generated,
    /// Documentation for people.
    Docs,
    /// Every other file; it counts as part of the product.
    Product,
}

/// Language of a file, grouped by the syntax of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Script,
    Go,
    Rust,
    Jvm,
    Ruby,
    Php,
    CSharp,
    Cpp,
    Sql,
    Shell,
    Yaml,
    Other,
}

static TEST: Pattern = Pattern::new(
    r"(?x)(?:^|/)(?:tests?|__tests__|__mocks__|spec|specs|testdata|e2e|fixtures|test_helpers?)/ | (?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$
    | \.(?:test|spec|cy|e2e)\.[cm]?[jt]sx?$ | _test\.go$ | (?:Test|Tests|IT|Spec)\.(?:java|kt|kts|groovy|scala|cs|php|swift)$
    | _(?:spec|test)\.(?:rb|exs|cc|cpp|c|dart)$ | (?:^|/)test_[^/]*\.(?:c|cc|cpp)$ | (?:^|/)src/test/ | [._-]tests?\.(?:sh|bats|sql)$ | \.bats$ | (?:^|/)tests?\.rs$ | _tests?\.rs$",
);
static EXPECTED: Pattern = Pattern::new(
    r"(?:^|/)(?:__snapshots__|snapshots|golden|goldens|approvals)/|\.(?:snap|golden|approved)(?:\.\w+)?$",
);
static CONFIG: Pattern = Pattern::new(
    r"(?x)(?:^|/)(?:pytest\.ini|tox\.ini|noxfile\.py|\.coveragerc|\.flake8|\.pylintrc|mypy\.ini|\.mypy\.ini|ruff\.toml|\.ruff\.toml|pyrightconfig\.json
    | (?:jest|vitest|vite|karma|cypress|playwright)\.config\.[cm]?[jt]s(?:on)? | jest\.setup\.[cm]?[jt]s | \.mocharc\.\w+ | \.nycrc(?:\.json)? | \.c8rc\.json
    | \.eslintrc(?:\.\w+)? | eslint\.config\.[cm]?[jt]s | \.eslintignore | biome\.json | tsconfig[\w.-]*\.json | \.golangci\.ya?ml | clippy\.toml | \.clippy\.toml | rustfmt\.toml
    | nextest\.toml | \.rspec | \.rubocop\.yml | phpunit\.xml(?:\.dist)? | phpstan\.neon(?:\.dist)? | psalm\.xml | \.editorconfig | codecov\.ya?ml | \.codecov\.ya?ml
    | sonar-project\.properties | \.babelrc(?:\.\w+)? | babel\.config\.\w+ | \.swcrc | junit-platform\.properties | testng\.xml | \.taprc | ava\.config\.\w+ | wtr?\.config\.\w+
    | web-test-runner\.config\.\w+ | jest\.(?:preset|transform|resolver|environment)\.\w+ | (?:vitest|jest|mocha)[.-](?:setup|workspace|global[\w-]*)\.\w+ | global[sS]etup\.[cm]?[jt]s | setupTests\.[cm]?[jt]sx?
    | ts-jest\.config\.\w+ | karma\.conf\.\w+ | bunfig\.toml | CTestCustom\.cmake | \.pre-commit-config\.yaml | CODEOWNERS | \.runsettings | checkstyle\.xml | detekt\.yml | setup\.cfg)$",
);
static CI: Pattern = Pattern::new(
    r"(?:^|/)\.github/workflows/[^/]+\.ya?ml$|(?:^|/)\.gitlab-ci\.ya?ml$|^\.circleci/|(?:^|/)Jenkinsfile|^\.travis\.yml$|^azure-pipelines\.ya?ml$|^\.buildkite/|^bitbucket-pipelines\.yml$",
);
static LOCK: Pattern = Pattern::new(
    r"(?:^|/)(?:Cargo\.lock|Gemfile\.lock|Pipfile\.lock|Podfile\.lock|bun\.lockb?|composer\.lock|go\.sum|gradle\.lockfile|mix\.lock|npm-shrinkwrap\.json|package-lock\.json|packages\.lock\.json|pdm\.lock|pnpm-lock\.yaml|poetry\.lock|uv\.lock|yarn\.lock)$",
);
static GENERATED: Pattern = Pattern::new(
    r"(?:^|/)(?:dist|generated|vendor|node_modules|third_party)/|\.(?:pb\.go|min\.js|min\.css|map|g\.dart|Designer\.cs)$|_pb2(?:_grpc)?\.pyi?$|(?:^|/)[^/]*\.generated\.\w+$",
);
static DOCS: Pattern =
    Pattern::new(r"(?i)\.(?:md|rst|adoc|txt)$|(?:^|/)docs?/|(?:^|/)(?:license|changelog|notice)[^/]*$");

/// Returns the purpose of the file at this path.
pub(crate) fn role(path: &str) -> Role {
    if LOCK.is_match(path) {
        Role::Lock
    // A golden file may be below a folder of tests, and a setup file of a runner too, so the more specific
    // roles precede `Test`.
    } else if EXPECTED.is_match(path) {
        Role::Expected
    } else if CONFIG.is_match(path) {
        Role::Config
    } else if CI.is_match(path) {
        Role::Ci
    } else if GENERATED.is_match(path) {
        Role::Generated
    } else if TEST.is_match(path) {
        Role::Test
    } else if DOCS.is_match(path) {
        Role::Docs
    } else {
        Role::Product
    }
}

pub(super) fn language(path: &str) -> Language {
    let name = path.rsplit('/').next().unwrap_or(path);
    if matches!(
        name,
        "Makefile" | "makefile" | "GNUmakefile" | "Justfile" | "justfile" | "Jenkinsfile"
    ) {
        return Language::Shell;
    }
    if matches!(name, "Rakefile" | "Gemfile" | "Guardfile") {
        return Language::Ruby;
    }
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "py" | "pyi" => Language::Python,
        "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" | "vue" | "svelte" => Language::Script,
        "go" => Language::Go,
        "rs" => Language::Rust,
        "java" | "kt" | "kts" | "groovy" | "scala" | "gradle" => Language::Jvm,
        "rb" | "rake" => Language::Ruby,
        "php" => Language::Php,
        "cs" => Language::CSharp,
        "c" | "cc" | "cpp" | "cxx" | "h" | "hpp" => Language::Cpp,
        "sql" => Language::Sql,
        "sh" | "bash" | "bats" | "zsh" => Language::Shell,
        "yml" | "yaml" => Language::Yaml,
        _ => Language::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_purpose_follows_from_path() {
        for (path, expected) in [
            ("tests/test_cart.py", Role::Test),
            ("shop/cart_test.go", Role::Test),
            ("web/cart.spec.tsx", Role::Test),
            ("src/test/java/com/acme/CartTest.java", Role::Test),
            ("spec/cart_spec.rb", Role::Test),
            ("conftest.py", Role::Test),
            ("crates/shop/src/tests.rs", Role::Test),
            ("web/__snapshots__/cart.test.js.snap", Role::Expected),
            ("jest.config.js", Role::Config),
            ("web/tsconfig.build.json", Role::Config),
            (".github/CODEOWNERS", Role::Config),
            (".github/workflows/ci.yml", Role::Ci),
            ("Cargo.lock", Role::Lock),
            ("api/shop.pb.go", Role::Generated),
            ("README.md", Role::Docs),
            ("shop/contest.py", Role::Product),
            ("shop/latest.go", Role::Product),
            ("src/cart.rs", Role::Product),
            ("package.json", Role::Product),
        ] {
            assert_eq!(role(path), expected, "{path}");
        }
        for pattern in [&TEST, &EXPECTED, &CONFIG, &CI, &LOCK, &GENERATED, &DOCS] {
            assert!(pattern.is_sound());
        }
    }
}
