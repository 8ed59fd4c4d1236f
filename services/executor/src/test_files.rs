//! Test files by their paths: names by which test runners collect them, and files that only tests need.
//!
//! A name counts when it is a documented default of a runner. Honest product files with similar names, such as
//! `latest.py`, stay product.

use crate::pattern::LazyPattern;

// pytest, https://docs.pytest.org/en/stable/explanation/goodpractices.html
static PYTEST: LazyPattern = LazyPattern::new(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$");
// unittest, https://docs.python.org/3/library/unittest.html#test-discovery: the default pattern is `test*.py`.
// Django's runner uses it, https://docs.djangoproject.com/en/stable/topics/testing/overview/#running-tests
static UNITTEST: LazyPattern = LazyPattern::new(r"(?:^|/)test[^/]*\.py$");
// Words of their own that unittest's pattern covers by chance. Modules with these names belong to products
// (`testimonials.py`) or help with tests (`testing_utils.py`), and contain no test.
static UNITTEST_WORD: LazyPattern = LazyPattern::new(
    r"(?:^|/)test(?:able|aments?|ator|bed|bench|ed|ers?|ify|imon(?:y|ies|ials?)|ing|kit|osterone)(?:_[^/]*)?\.py$",
);
// Node.js, https://nodejs.org/api/test.html#running-tests-from-the-command-line
static NODE: LazyPattern =
    LazyPattern::new(r"(?:^|/)(?:[^/]*[._-]test|test-[^/]*|test)\.[cm]?js$|(?:^|/)test/.*\.[cm]?js$");
// Node.js runs TypeScript files under the same names.
// Deno, https://docs.deno.com/runtime/reference/cli/test/: `{*_,*.,}test.{ts,tsx,mts,js,mjs,jsx}`.
// Bun, https://bun.sh/docs/cli/test: `*.test`, `*_test`, `*.spec` and `*_spec`.
// Jest, https://jestjs.io/docs/configuration#testmatch-arraystring: `__tests__`, `?(*.)+(spec|test).[jt]s?(x)`.
// Vitest, https://vitest.dev/config/#include, and Playwright, https://playwright.dev/docs/test-configuration: a part of these.
// Jasmine, https://jasmine.github.io/setup/nodejs.html: `*[sS]pec.?(m)js`, in lower case within `spec/` only.
// Cypress, https://docs.cypress.io/app/references/configuration#e2e: `*.cy`. Angular: `*.e2e-spec.ts`.
static SCRIPT: LazyPattern = LazyPattern::new(
    r"(?x)(?:^|/)(?:[^/]*[._])?(?:test|spec)\.[cm]?[jt]sx?$ | (?:^|/)(?:[^/]*-test|test-[^/]*)\.[cm]?ts$
    | \.(?:cy|e2e)\.[cm]?[jt]sx?$ | \.e2e-spec\.[jt]s$ | [a-z0-9_]Spec\.m?js$ | (?:^|/)(?:__tests__|tests?|spec)/.*\.[cm]?[jt]sx?$",
);
// Surefire, https://maven.apache.org/surefire/maven-surefire-plugin/examples/inclusion-exclusion.html: `Test*`, `*Test`,
// `*Tests`, `*TestCase`. Failsafe: `IT*`, `*IT`, `*ITCase`. Spock, Kotest and ScalaTest: `*Spec`. MUnit: `*Suite`.
static JVM: LazyPattern = LazyPattern::new(
    r"(?x)(?:^|/)(?:Test[A-Z0-9_]\w*|\w*(?:Tests?|TestCase|Spec)|(?:\w*[a-z0-9_])?IT(?:Case)?|IT[A-Z][a-z]\w*)\.(?:java|kts?|groovy|scala)$
    | (?:^|/)\w*Suite\.scala$",
);
// Maven and Gradle, https://maven.apache.org/guides/introduction/introduction-to-the-standard-directory-layout.html: the
// product's classes, in which no runner collects tests, whatever their names.
static JVM_PRODUCT: LazyPattern = LazyPattern::new(r"(?:^|/)src/main/(?:java|kotlin|groovy|scala)/");
static GO: LazyPattern = LazyPattern::new(r"_test\.go$");
// RSpec: `*_spec.rb`. Minitest, https://docs.seattlerb.org/minitest/: `test_*.rb`, `*_test.rb`.
static RUBY: LazyPattern = LazyPattern::new(r"_(?:spec|test)\.rb$|(?:^|/)test_[^/]*\.rb$");
// PHPUnit, `--test-suffix`: `Test.php` and `.phpt`. phpspec: `*Spec.php`. Codeception: `*Cest.php`.
static PHP: LazyPattern = LazyPattern::new(r"(?:Test|Spec|Cest)\.php$|\.phpt$");
static BATS: LazyPattern = LazyPattern::new(r"\.bats$");
// ExUnit `*_test.exs`, `dart test` `*_test.dart`, busted `_spec`, prove `*.t`, hspec-discover `*Spec.hs`, clojure.test
// `*_test.clj`, Common Test `*_SUITE.erl` and EUnit `*_tests.erl`, Crystal `*_spec.cr`, Pester `*.Tests.ps1`, ShellSpec
// `*_spec.sh`, testthat `test*.R`, Julia `runtests.jl`, Cucumber `*.feature`, Robot Framework `*.robot`.
static OTHER: LazyPattern = LazyPattern::new(
    r"(?x)_test\.(?:exs|dart|clj[cs]?)$ | _spec\.(?:exs|lua|cr|sh)$ | \.t$ | Spec\.hs$ | _(?:SUITE|tests)\.erl$ | \.Tests\.ps1$
    | (?:^|/)test[_-][^/]*\.[rR]$ | (?:^|/)runtests\.jl$ | \.(?:feature|robot)$",
);
// Languages whose runners collect tests by their code. The names are those of the guides: GoogleTest and Bazel `*_test.cc`
// (https://google.github.io/styleguide/cppguide.html#File_Names, `_unittest` in older code), XCTest and `dotnet test`
// `*Tests`, Rust `tests.rs`.
static CONVENTION: LazyPattern = LazyPattern::new(
    r"(?x)(?:^|/)(?:tests?|test_[^/]*|[^/]*_(?:unit)?tests?|[^/]*_spec)\.(?:c|cc|cpp|cxx|mm?)$ | (?:Tests?|Spec)\.(?:swift|cs|fs|vb)$ | Tests\.php$
    | (?:^|/)tests?\.rs$ | _tests?\.rs$ | [._-]tests?\.(?:sh|sql)$",
);
// Folders of tests and of what tests need. Gradle's source sets have the test kind in their name, `src/<set>/<language>/`, as
// Android's `src/androidTest/` (https://developer.android.com/studio/test#create_a_test). SwiftPM, Xcode and .NET keep tests in
// folders that end with `Tests`.
static FOLDER: LazyPattern = LazyPattern::new(
    r"(?x)(?:^|/)(?:tests?|__tests__|__mocks__|spec|specs|testdata|e2e|fixtures|test_helpers?|integration_test|test_driver)/
    | (?:^|/)src/(?:test|androidTest)/ | (?:^|/)src/(?:(?:test|androidTest)[A-Z]\w*|[a-z]\w*Test)/(?:java|kotlin|groovy|scala|resources)/
    | (?:^|/)[\w.-]*Tests/.*\.(?:swift|mm?|cs|fs|vb|php)$ | (?:^|/)x?t/(?:.*/)?[^/]*\.(?:pl|pm)$ | (?:^|/)conftest\.py$",
);

/// Returns true when pytest, unittest or Django's runner collects a file of this name.
pub(crate) fn is_python_test(path: &str) -> bool {
    PYTEST.is_match(path) || (UNITTEST.is_match(path) && !UNITTEST_WORD.is_match(path))
}

/// Returns true when `node --test` collects a JavaScript file of this name.
pub(crate) fn is_node_test(path: &str) -> bool {
    NODE.is_match(path)
}

/// Returns true when bats runs a file of this name.
pub(crate) fn is_bats_test(path: &str) -> bool {
    BATS.is_match(path)
}

/// Returns true when a runner collects tests from a file of this name by its defaults.
pub(crate) fn is_collected(path: &str) -> bool {
    let patterns = [&NODE, &SCRIPT, &JVM, &GO, &RUBY, &PHP, &BATS, &OTHER];
    !JVM_PRODUCT.is_match(path)
        && (is_python_test(path) || patterns.iter().any(|pattern| pattern.is_match(path)))
}

/// Returns true for a file with tests, and for one that only tests need.
pub(crate) fn is_test_file(path: &str) -> bool {
    let is_needed = CONVENTION.is_match(path) || FOLDER.is_match(path);
    is_collected(path) || (is_needed && !JVM_PRODUCT.is_match(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_names_of_runners_are_test_files() {
        for path in [
            "shop/tests.py",
            "shop/test.py",
            "testcart.py",
            "test_cart.py",
            "shop/cart_test.py",
            "shop/tests_cart.py",
            "testing_test.py",
            "cart_test.ts",
            "cart.test.tsx",
            "cart-test.js",
            "test.js",
            "test.tsx",
            "test-cart.mjs",
            "src/cart.spec.ts",
            "cart_spec.ts",
            "test/helpers/prices.cjs",
            "__tests__/cart.js",
            "web/cart.cy.ts",
            "e2e/app.e2e-spec.ts",
            "src/cartSpec.js",
            "spec/openspec.js",
            "t/cart.t",
            "t/lib/Shop/Prices.pm",
            "cart_unittest.cc",
            "cart_test.cc",
            "cart_tests.cpp",
            "test_cart.c",
            "app/src/androidTest/java/CartCheck.kt",
            "app/src/testDebug/kotlin/Prices.kt",
            "src/integrationTest/java/Prices.java",
            "core/src/commonTest/kotlin/Prices.kt",
            "src/test/java/CartTest.java",
            "TestCart.java",
            "CartTestCase.kt",
            "CartIT.java",
            "CartSpec.scala",
            "CartSuite.scala",
            "cart_spec.lua",
            "test_cart.rb",
            "cart_test.rb",
            "cart_spec.rb",
            "CartTests.swift",
            "Tests/ShopTests/Prices.swift",
            "CartTest.php",
            "cart.phpt",
            "CartTests.cs",
            "Shop.Tests/Prices.cs",
            "cart_test.exs",
            "cart_test.dart",
            "cart_test.go",
            "CartSpec.hs",
            "cart_test.clj",
            "cart_SUITE.erl",
            "Cart.Tests.ps1",
            "tests/testthat/test-cart.R",
            "features/cart.feature",
            "cart.bats",
            "scripts/cart_test.sh",
            "src/cart_tests.rs",
            "src/cart/tests.rs",
            "conftest.py",
        ] {
            assert!(is_test_file(path), "{path}");
        }
    }

    #[test]
    fn product_files_with_similar_names_stay_product() {
        for path in [
            "latest.py",
            "contest.py",
            "shop/testimonials.py",
            "shop/testimonial_view.py",
            "shop/testing.py",
            "shop/testing_utils.py",
            "shop/tester.py",
            "shop/attestation.py",
            "contest.js",
            "latest.ts",
            "src/testimonials.js",
            "src/pages/test-drive.tsx",
            "src/ab-test.tsx",
            "src/openapi-spec.ts",
            "src/jobSpec.ts",
            "src/inspect.js",
            "src/openspec.js",
            "src/main/java/shop/TestDrive.java",
            "src/main/kotlin/shop/ColumnSpec.kt",
            "src/main/java/shop/spec/Column.java",
            "Testimonial.java",
            "AUDIT.java",
            "src/latest/java/Cart.java",
            "latest.go",
            "latest.rb",
            "Contest.php",
            "Latest.cs",
            "Latest.swift",
            "contest.cc",
            "latest.rs",
            "src/contests/Cart.swift",
            "latest.exs",
            "Inspec.hs",
            "cart.tt",
            "src/t/cart.ts",
        ] {
            assert!(!is_test_file(path), "{path}");
        }
    }

    #[test]
    fn bare_test_files_are_found_by_runner() {
        assert!(is_python_test("shop/tests.py") && !is_node_test("shop/tests.py"));
        assert!(
            is_node_test("test-cart.mjs") && !is_node_test("cart.spec.mjs") && !is_node_test("cart_test.ts")
        );
        assert!(is_bats_test("test/cart.bats"));
        assert!(is_collected("cart_test.ts") && !is_collected("tests/cart_checks.py"));
        for pattern in [
            &PYTEST,
            &UNITTEST,
            &UNITTEST_WORD,
            &NODE,
            &SCRIPT,
            &JVM,
            &JVM_PRODUCT,
            &GO,
            &RUBY,
            &PHP,
            &BATS,
            &OTHER,
            &CONVENTION,
            &FOLDER,
        ] {
            assert!(pattern.is_sound());
        }
    }
}
