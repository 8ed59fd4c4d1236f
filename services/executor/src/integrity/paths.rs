//! Purpose and language of a file, derived from its path.

use crate::{pattern::LazyPattern, test_files::is_test_file};

/// Purpose of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FilePurpose {
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
pub(super) enum SourceLanguage {
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

static EXPECTED: LazyPattern = LazyPattern::new(
    r"(?:^|/)(?:__snapshots__|snapshots|golden|goldens|approvals)/|\.(?:snap|golden|approved)(?:\.\w+)?$",
);
static CONFIG: LazyPattern = LazyPattern::new(
    r"(?x)(?:^|/)(?:pytest\.ini|tox\.ini|noxfile\.py|\.coveragerc|\.flake8|\.pylintrc|mypy\.ini|\.mypy\.ini|ruff\.toml|\.ruff\.toml|pyrightconfig\.json
    | (?:jest|vitest|vite|karma|cypress|playwright)\.config\.[cm]?[jt]s(?:on)? | jest\.setup\.[cm]?[jt]s | \.mocharc\.\w+ | \.nycrc(?:\.json)? | \.c8rc\.json
    | \.eslintrc(?:\.\w+)? | eslint\.config\.[cm]?[jt]s | \.eslintignore | biome\.json | tsconfig[\w.-]*\.json | \.golangci\.ya?ml | clippy\.toml | \.clippy\.toml | rustfmt\.toml
    | nextest\.toml | \.rspec | \.rubocop\.yml | phpunit\.xml(?:\.dist)? | phpstan\.neon(?:\.dist)? | psalm\.xml | \.editorconfig | codecov\.ya?ml | \.codecov\.ya?ml
    | sonar-project\.properties | \.babelrc(?:\.\w+)? | babel\.config\.\w+ | \.swcrc | junit-platform\.properties | testng\.xml | \.taprc | ava\.config\.\w+ | wtr?\.config\.\w+
    | web-test-runner\.config\.\w+ | jest\.(?:preset|transform|resolver|environment)\.\w+ | (?:vitest|jest|mocha)[.-](?:setup|workspace|global[\w-]*)\.\w+ | global[sS]etup\.[cm]?[jt]s | setupTests\.[cm]?[jt]sx?
    | ts-jest\.config\.\w+ | karma\.conf\.\w+ | bunfig\.toml | CTestCustom\.cmake | \.pre-commit-config\.yaml | CODEOWNERS | \.runsettings | checkstyle\.xml | detekt\.yml | setup\.cfg)$",
);
static CI: LazyPattern = LazyPattern::new(
    r"(?:^|/)\.github/workflows/[^/]+\.ya?ml$|(?:^|/)\.gitlab-ci\.ya?ml$|^\.circleci/|(?:^|/)Jenkinsfile|^\.travis\.yml$|^azure-pipelines\.ya?ml$|^\.buildkite/|^bitbucket-pipelines\.yml$",
);
static LOCK: LazyPattern = LazyPattern::new(
    r"(?:^|/)(?:Cargo\.lock|Gemfile\.lock|Pipfile\.lock|Podfile\.lock|bun\.lockb?|composer\.lock|go\.sum|gradle\.lockfile|mix\.lock|npm-shrinkwrap\.json|package-lock\.json|packages\.lock\.json|pdm\.lock|pnpm-lock\.yaml|poetry\.lock|uv\.lock|yarn\.lock)$",
);
static GENERATED: LazyPattern = LazyPattern::new(
    r"(?:^|/)(?:dist|generated|vendor|node_modules|third_party)/|\.(?:pb\.go|min\.js|min\.css|map|g\.dart|Designer\.cs)$|_pb2(?:_grpc)?\.pyi?$|(?:^|/)[^/]*\.generated\.\w+$",
);
static DOCS: LazyPattern =
    LazyPattern::new(r"(?i)\.(?:md|rst|adoc|txt)$|(?:^|/)docs?/|(?:^|/)(?:license|changelog|notice)[^/]*$");
/// Files that a program loads or a build runs. Their names and folders make them neither documentation nor golden
/// files: `notice.py` and `docs/x.py` can be imported like any other module.
static CODE: LazyPattern = LazyPattern::new(
    r"(?x)\.(?:py[ix]?|[cm]?[jt]sx?|vue|svelte|go|rs|java|kts?|groovy|scala|gradle|rb|rake|php|cs|fsx?|vb|c|cc|cpp|cxx|hh?|hpp|hxx|mm?|swift|dart|exs?|[eh]rl
    | hs|lua|p[lm]|r|R|jl|clj[cs]?|mli?|nim|zig|cr|sql|sh|bash|zsh|bats|psm?1|sol|elm)$ | (?:^|/)CMakeLists\.txt$",
);

/// Returns the purpose of the file at this path.
pub(crate) fn classify_path(path: &str) -> FilePurpose {
    if LOCK.is_match(path) {
        FilePurpose::Lock
    // A golden file may be below a folder of tests, and a setup file of a runner too, so the more specific
    // roles precede `Test`. Code that is not in such a folder is no golden file, whatever its name.
    } else if EXPECTED.is_match(path) && (!CODE.is_match(path) || is_test_file(path)) {
        FilePurpose::Expected
    } else if CONFIG.is_match(path) {
        FilePurpose::Config
    } else if CI.is_match(path) {
        FilePurpose::Ci
    } else if GENERATED.is_match(path) {
        FilePurpose::Generated
    } else if is_test_file(path) {
        FilePurpose::Test
    } else if DOCS.is_match(path) && !CODE.is_match(path) {
        FilePurpose::Docs
    } else {
        FilePurpose::Product
    }
}

/// Returns true for a file that may contain tests. Rust's unit tests are in the product's files, and dbt's in
/// YAML properties.
pub(super) fn can_contain_tests(path: &str) -> bool {
    let purpose = classify_path(path);
    purpose == FilePurpose::Test
        || match detect_language(path) {
            SourceLanguage::Rust => true,
            SourceLanguage::Yaml => purpose == FilePurpose::Product,
            SourceLanguage::Python
            | SourceLanguage::Script
            | SourceLanguage::Go
            | SourceLanguage::Jvm
            | SourceLanguage::Ruby
            | SourceLanguage::Php
            | SourceLanguage::CSharp
            | SourceLanguage::Cpp
            | SourceLanguage::Sql
            | SourceLanguage::Shell
            | SourceLanguage::Other => false,
        }
}

pub(super) fn detect_language(path: &str) -> SourceLanguage {
    let name = path.rsplit('/').next().unwrap_or(path);
    if matches!(
        name,
        "Makefile" | "makefile" | "GNUmakefile" | "Justfile" | "justfile" | "Jenkinsfile"
    ) {
        return SourceLanguage::Shell;
    }
    if matches!(name, "Rakefile" | "Gemfile" | "Guardfile") {
        return SourceLanguage::Ruby;
    }
    match name.rsplit_once('.').map_or("", |(_, end)| end) {
        "py" | "pyi" => SourceLanguage::Python,
        "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" | "vue" | "svelte" => {
            SourceLanguage::Script
        }
        "go" => SourceLanguage::Go,
        "rs" => SourceLanguage::Rust,
        "java" | "kt" | "kts" | "groovy" | "scala" | "gradle" => SourceLanguage::Jvm,
        "rb" | "rake" => SourceLanguage::Ruby,
        "php" => SourceLanguage::Php,
        "cs" => SourceLanguage::CSharp,
        "c" | "cc" | "cpp" | "cxx" | "h" | "hpp" => SourceLanguage::Cpp,
        "sql" => SourceLanguage::Sql,
        "sh" | "bash" | "bats" | "zsh" => SourceLanguage::Shell,
        "yml" | "yaml" => SourceLanguage::Yaml,
        _ => SourceLanguage::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_purpose_follows_from_path() {
        for (path, expected) in [
            ("tests/test_cart.py", FilePurpose::Test),
            ("shop/cart_test.go", FilePurpose::Test),
            ("web/cart.spec.tsx", FilePurpose::Test),
            ("src/test/java/com/acme/CartTest.java", FilePurpose::Test),
            ("spec/cart_spec.rb", FilePurpose::Test),
            ("conftest.py", FilePurpose::Test),
            ("crates/shop/src/tests.rs", FilePurpose::Test),
            ("web/__snapshots__/cart.test.js.snap", FilePurpose::Expected),
            ("jest.config.js", FilePurpose::Config),
            ("web/tsconfig.build.json", FilePurpose::Config),
            (".github/CODEOWNERS", FilePurpose::Config),
            (".github/workflows/ci.yml", FilePurpose::Ci),
            ("Cargo.lock", FilePurpose::Lock),
            ("api/shop.pb.go", FilePurpose::Generated),
            ("README.md", FilePurpose::Docs),
            ("shop/tests.py", FilePurpose::Test),
            ("cart_test.ts", FilePurpose::Test),
            ("tests/golden/cart.go", FilePurpose::Expected),
            ("LICENSE", FilePurpose::Docs),
            ("docs/cart.html", FilePurpose::Docs),
            ("docs/Makefile", FilePurpose::Docs),
            ("NOTICE.txt", FilePurpose::Docs),
            ("shop/notice.py", FilePurpose::Product),
            ("src/notice.ts", FilePurpose::Product),
            ("shop/license_check.py", FilePurpose::Product),
            ("shop/docs/x.py", FilePurpose::Product),
            ("docs/conf.py", FilePurpose::Product),
            ("shop/approvals/cart.py", FilePurpose::Product),
            ("src/cart.golden.js", FilePurpose::Product),
            ("CMakeLists.txt", FilePurpose::Product),
            ("shop/contest.py", FilePurpose::Product),
            ("shop/latest.go", FilePurpose::Product),
            ("src/cart.rs", FilePurpose::Product),
            ("package.json", FilePurpose::Product),
        ] {
            assert_eq!(classify_path(path), expected, "{path}");
        }
        for pattern in [&EXPECTED, &CONFIG, &CI, &LOCK, &GENERATED, &DOCS, &CODE] {
            assert!(pattern.is_sound());
        }
    }
}
