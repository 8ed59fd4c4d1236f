//! Corpus of changes in all languages, with the required severity of each.
//!
//! `Block` is for changes that weaken checks or can forge results, and `Flag` for changes that reviewers must
//! see. Honest changes have at most a flag.

use domain::check::FindingSeverity::{self, Block, Flag};

use super::{find_weakened_checks, tests::build_changed_file};

/// Path of a file, and its text before and after; an empty text is a missing file.
type File<'c> = (&'c str, &'c str, &'c str);

fn find_worst_severity(files: &[File<'_>]) -> (Option<FindingSeverity>, String) {
    let files: Vec<_> = files
        .iter()
        .map(|(path, before, after)| build_changed_file(path, before, after))
        .collect();
    let found = find_weakened_checks(&files, "");
    (
        found.iter().map(|found| found.severity).max(),
        format!("{found:?}"),
    )
}

#[expect(clippy::print_stdout, reason = "the counts are for people")]
fn assert_severities(
    name: &str,
    cases: &[(&str, &[File<'_>])],
    is_right: impl Fn(Option<FindingSeverity>) -> bool,
) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(case, files)| {
            let (worst, found) = find_worst_severity(files);
            (!is_right(worst)).then(|| format!("{case}: {found}"))
        })
        .collect();
    println!("{name}: {} of {} right", cases.len() - wrong.len(), cases.len());
    assert!(
        wrong.is_empty(),
        "{name}: {} of {} wrong\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

const PY: &str = "tests/test_cart.py";
const PY_BEFORE: &str = "import pytest\nfrom shop import total\n\n\ndef test_total():\n    assert total() == 3\n\n\ndef test_empty():\n    assert total([]) == 0\n";
const JS: &str = "web/cart.test.js";
const JS_BEFORE: &str = "test('total', async () => {\n  expect(total()).toBe(3);\n});\n\ntest('throws', async () => {\n  await expect(load()).rejects.toThrow(RangeError);\n});\n";
const GO: &str = "cart_test.go";
const GO_BEFORE: &str = "package shop\n\nfunc TestTotal(t *testing.T) {\n\tif got := Total(); got != 3 {\n\t\tt.Errorf(\"got %d\", got)\n\t}\n}\n";
const RS: &str = "src/cart.rs";
const RS_BEFORE: &str = "pub fn total() -> u32 {\n    3\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds_up() {\n        assert_eq!(total(), 3);\n    }\n}\n";
const JAVA: &str = "src/test/java/shop/CartTest.java";
const JAVA_BEFORE: &str =
    "class CartTest {\n  @Test\n  void total() {\n    assertEquals(3, cart.total());\n  }\n}\n";
const RB: &str = "spec/cart_spec.rb";
const RB_BEFORE: &str = "describe Cart do\n  it 'adds up' do\n    expect(cart.total).to eq(3)\n  end\nend\n";
const DJANGO_BEFORE: &str = "from django.test import TestCase\nfrom shop import total\n\n\nclass CartTests(TestCase):\n    def test_total(self):\n        self.assertTrue(total() == 3)\n";
const MAKE: &str = "test:\n\tpytest -q\n";
const CI: &str = ".github/workflows/ci.yml";
const CI_BEFORE: &str = "on: push\njobs:\n  test:\n    runs-on: x\n    steps:\n      - run: pytest -q\n";

#[test]
fn forged_results_wait_for_a_person() {
    let mut cases: Vec<(String, String, String, String)> = Vec::new();
    let mut add = |name: &str, path: &str, after: &str| {
        cases.push((name.to_owned(), path.to_owned(), String::new(), after.to_owned()));
    };
    for hook in [
        "pytest_pyfunc_call(pyfuncitem)",
        "pytest_runtest_protocol(item, nextitem)",
        "pytest_report_teststatus(report, config)",
        "pytest_runtest_logreport(report)",
        "pytest_terminal_summary(terminalreporter)",
        "pytest_configure(config)",
        "pytest_sessionfinish(session)",
        "pytest_runtest_makereport(item, call)",
        "pytest_collection_modifyitems(items)",
        "pytest_assertrepr_compare(op, left, right)",
        "pytest_generate_tests(metafunc)",
    ] {
        for path in ["conftest.py", "tests/conftest.py", "shop/plugin.py"] {
            add(hook, path, &format!("def {hook}:\n    return True\n"));
        }
    }
    for (name, path, after) in [
        (
            "autouse",
            "tests/conftest.py",
            "import pytest\n@pytest.fixture(autouse=True)\ndef swap(request):\n    request.node.obj = lambda: None\n",
        ),
        ("plugins", "conftest.py", "pytest_plugins = ['shop.plug']\n"),
        ("pytest.py", "pytest.py", "print('1 passed in 0.01s')\n"),
        ("pytest package", "pytest/__main__.py", "print('1 passed')\n"),
        ("unittest.py", "unittest.py", "def main(): pass\n"),
        ("unittest package", "unittest/__init__.py", "x = 1\n"),
        ("_pytest", "_pytest/python.py", "x = 1\n"),
        ("inspect.py", "inspect.py", "x = 1\n"),
        (
            "patch runtest",
            "shop/cart.py",
            "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n",
        ),
        (
            "patch TestCase",
            "shop/cart.py",
            "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n",
        ),
        (
            "patch case run",
            "shop/cart.py",
            "unittest.case.TestCase.run = lambda self, result=None: result.addSuccess(self)\n",
        ),
        (
            "module that reads as a notice",
            "shop/notice.py",
            "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n",
        ),
        (
            "script that reads as a notice",
            "src/notice.ts",
            "globalThis['expect'] = always;\n",
        ),
        (
            "module that reads as a license",
            "shop/license_check.py",
            "class Total(int):\n    def __eq__(self, other):\n        return True\n",
        ),
        (
            "module in a package of documentation",
            "shop/docs/x.py",
            "class Total(int):\n    def __eq__(self, other):\n        return True\n",
        ),
        (
            "module in a package of approvals",
            "shop/approvals/x.py",
            "class Total(int):\n    def __eq__(self, other):\n        return True\n",
        ),
        (
            "patch by the public name",
            "shop/cart.py",
            "import pytest\npytest.Function.runtest = f\n",
        ),
        (
            "patch of an imported class",
            "shop/cart.py",
            "from pytest import Function\nFunction.runtest = f\n",
        ),
        (
            "setattr of an imported class",
            "shop/cart.py",
            "from pytest import Function\nsetattr(Function, \"runtest\", f)\n",
        ),
        (
            "patch of an alias",
            "shop/cart.py",
            "from pytest import (\n    Function as F,\n)\nF.obj = f\n",
        ),
        (
            "patch of a private module under another name",
            "shop/cart.py",
            "import _pytest.python as p\np.Function.setup = f\n",
        ),
        (
            "patch of an alias of TestCase",
            "shop/cart.py",
            "from unittest import TestCase as T\nT.assertEqual = f\n",
        ),
        (
            "patch behind a starred name",
            "shop/cart.py",
            "import unittest\n*rest, unittest.TestCase.run = values\n",
        ),
        (
            "patch beside a call that is only flagged",
            "shop/cart.py",
            "import unittest\nexec(''); unittest.TestCase.run = f\n",
        ),
        (
            "patch beside an honest construct",
            "shop/cart.py",
            "import pytest\npytest.Function.runtest = f  # request.node\n",
        ),
        (
            "exit behind a variable of a runner",
            "shop/cart.py",
            "if os.environ.get('PYTEST_CURRENT_TEST'): sys.exit(0)\n",
        ),
        (
            "equality by name",
            "shop/cart.py",
            "class Total(int):\n    __eq__ = always\n",
        ),
        ("equality from outside", "shop/cart.py", "Total.__eq__ = always\n"),
        (
            "equality by setattr",
            "shop/cart.py",
            "setattr(Total, \"__eq__\", always)\n",
        ),
        (
            "equality in the table of a class",
            "shop/cart.py",
            "Total = type(\"Total\", (), {\"__eq__\": always})\n",
        ),
        (
            "equality by an attribute that numbers have",
            "shop/cart.py",
            "class Total:\n    imag = 0\n\n    def __eq__(self, other):\n        return self.imag == other.imag\n",
        ),
        (
            "hook in the globals",
            "conftest.py",
            "globals()[\"pytest_pyfunc_call\"] = f\n",
        ),
        (
            "hook under a name that is computed",
            "conftest.py",
            "globals()[NAME] = f\n",
        ),
        (
            "hook by an import",
            "conftest.py",
            "from shop.hooks import run as pytest_pyfunc_call\n",
        ),
        (
            "hook in a list of imports",
            "tests/conftest.py",
            "from shop.hooks import (\n    pytest_runtest_call,\n)\n",
        ),
        ("sys.modules", "shop/cart.py", "sys.modules['pytest'] = Fake()\n"),
        ("builtins", "shop/cart.py", "builtins.AssertionError = Quiet\n"),
        ("sitecustomize", "sitecustomize.py", "import os\n"),
        ("usercustomize", "src/usercustomize.py", "import os\n"),
        ("pth", "shop.pth", "import shop.plug\n"),
        ("pytest.ini -p", "pytest.ini", "[pytest]\naddopts = -p plug\n"),
        ("coveragerc", ".coveragerc", "[run]\nomit = *\n"),
        (
            "os._exit in a test",
            "tests/test_zzz.py",
            "import os\nos._exit(0)\n",
        ),
        (
            "load_tests",
            "tests/test_zzz.py",
            "def load_tests(loader, tests, pattern):\n    return unittest.TestSuite()\n",
        ),
        (
            "global.expect",
            "src/cart.js",
            "global.expect = () => new Proxy({}, {});\n",
        ),
        ("globalThis", "src/cart.ts", "globalThis['expect'] = always;\n"),
        ("expect =", "web/setup.test.js", "expect = always;\n"),
        (
            "alias of the global object",
            "src/cart.js",
            "const g = globalThis;\ng.expect = always;\n",
        ),
        (
            "global object with a type",
            "src/cart.ts",
            "(globalThis as any).expect = always;\n",
        ),
        ("global by index", "src/cart.js", "global[\"expect\"] = always;\n"),
        (
            "Reflect.set",
            "src/cart.js",
            "Reflect.set(globalThis, \"expect\", always);\n",
        ),
        (
            "defineProperties",
            "src/cart.js",
            "Object.defineProperties(globalThis, { expect: { value: always } });\n",
        ),
        (
            "value in the next line",
            "src/cart.js",
            "globalThis.expect =\n  always;\n",
        ),
        (
            "statement that begins with an operator",
            "src/cart.js",
            "--count; globalThis.expect = always;\n",
        ),
        (
            "statement after a comment",
            "src/cart.js",
            "/*\n*/ globalThis.expect = always;\n",
        ),
        (
            "constructor of the module",
            "src/cart.js",
            "module.constructor._load = fake;\n",
        ),
        (
            "alias of the module loader",
            "src/cart.js",
            "const loader = require('module');\nloader._load = fake;\n",
        ),
        (
            "assert.strictEqual =",
            "src/cart.js",
            "require('assert').strictEqual = () => {};\nassert.strictEqual = () => {};\n",
        ),
        ("Object.is", "src/cart.js", "Object.is = () => true;\n"),
        (
            "asymmetricMatch",
            "src/cart.js",
            "class Total { asymmetricMatch() { return true; } }\n",
        ),
        ("module load", "src/cart.js", "Module._load = fake;\n"),
        (
            "babel",
            "babel.config.js",
            "module.exports = { plugins: ['./rewrite'] };\n",
        ),
        ("babelrc", ".babelrc", "{}\n"),
        ("swc", ".swcrc", "{}\n"),
        ("jest config", "jest.config.js", "module.exports = {};\n"),
        ("jest setup", "jest.setup.js", "x\n"),
        ("vitest config", "vitest.config.ts", "export default {};\n"),
        ("mocharc", ".mocharc.json", "{}\n"),
        ("node_modules", "node_modules/jest/index.js", "x\n"),
        ("npmrc", ".npmrc", "node-options=--require ./x.js\n"),
        (
            "TestMain",
            "main_test.go",
            "package shop\nfunc TestMain(m *testing.M) { os.Exit(0) }\n",
        ),
        (
            "os.Exit in init",
            "init_test.go",
            "package shop\nfunc init() { os.Exit(0) }\n",
        ),
        (
            "macro",
            "src/tests.rs",
            "macro_rules! assert_eq { ($($t:tt)*) => {} }\n",
        ),
        (
            "attribute of the crate",
            "src/lib.rs",
            "#![feature(custom_test_frameworks)]\n#![test_runner(quiet)]\n",
        ),
        (
            "runner",
            ".cargo/config.toml",
            "[target.x86_64-unknown-linux-gnu]\nrunner = \"true\"\n",
        ),
        (
            "interceptor",
            "src/test/java/Quiet.java",
            "class Quiet implements InvocationInterceptor {}\n",
        ),
        (
            "service",
            "src/test/resources/META-INF/services/org.junit.jupiter.api.extension.Extension",
            "Quiet\n",
        ),
        (
            "junit shadow",
            "src/test/java/org/junit/jupiter/api/Assertions.java",
            "class Assertions {}\n",
        ),
        (
            "platform",
            "src/test/resources/junit-platform.properties",
            "junit.jupiter.extensions.autodetection.enabled=true\n",
        ),
        ("testng", "testng.xml", "<suite/>\n"),
        (
            "rspec hook",
            "spec/spec_helper.rb",
            "RSpec.configure do |config|\n  config.around { }\nend\n",
        ),
        (
            "rspec patch",
            "lib/cart.rb",
            "module RSpec\n  module Expectations\n  end\nend\n",
        ),
        (
            "minitest patch",
            "lib/cart.rb",
            "class Minitest::Test\n  def run; end\nend\n",
        ),
        (
            "assert_equal",
            "test/test_helper.rb",
            "def assert_equal(*) = true\n",
        ),
        ("dot rspec", ".rspec", "--require quiet\n"),
        ("phpunit", "phpunit.xml", "<phpunit bootstrap='x.php'/>\n"),
        (
            "php shadow",
            "src/x.php",
            "<?php\nnamespace PHPUnit\\Framework;\n",
        ),
        (
            "php shutdown",
            "tests/bootstrap.php",
            "<?php\nregister_shutdown_function(fn () => exit(0));\n",
        ),
        ("define", "tests/quiet.h", "#define EXPECT_EQ(a, b)\n"),
        ("runsettings", ".runsettings", "<RunSettings/>\n"),
        ("program", "bin/pytest", "#!/bin/sh\necho 1 passed\n"),
        (
            "dbt macro",
            "macros/quiet.sql",
            "{% macro default__test_not_null(model, column_name) %}\nselect 1 limit 0\n{% endmacro %}\n",
        ),
    ] {
        add(name, path, after);
    }
    for (name, path, before, after) in [
        (
            "NODE_OPTIONS",
            "package.json",
            "{\"scripts\":{\"test\":\"jest\"}}\n",
            "{\"scripts\":{\"test\":\"NODE_OPTIONS=--require=./x jest\"}}\n",
        ),
        (
            "jest table",
            "package.json",
            "{}\n",
            "{\"jest\":{\"setupFiles\":[\"./x\"]}}\n",
        ),
        (
            "harness",
            "Cargo.toml",
            "[package]\nname = \"a\"\n",
            "[package]\nname = \"a\"\n[[test]]\nname = \"b\"\nharness = false\n",
        ),
        (
            "surefire",
            "pom.xml",
            "<project>\n</project>\n",
            "<project>\n<skipTests>true</skipTests>\n</project>\n",
        ),
        (
            "addopts",
            "pyproject.toml",
            "[project]\nname = \"a\"\n",
            "[project]\nname = \"a\"\n[tool.pytest.ini_options]\naddopts = \"-p plug\"\n",
        ),
        (
            "PYTEST_ADDOPTS",
            "Makefile",
            MAKE,
            "export PYTEST_ADDOPTS=-pplug\ntest:\n\tpytest -q\n",
        ),
    ] {
        cases.push((
            name.to_owned(),
            path.to_owned(),
            before.to_owned(),
            after.to_owned(),
        ));
    }
    let borrowed: Vec<[File<'_>; 1]> = cases
        .iter()
        .map(|(_, path, before, after)| [(path.as_str(), before.as_str(), after.as_str())])
        .collect();
    let cases: Vec<(&str, &[File<'_>])> = cases
        .iter()
        .zip(&borrowed)
        .map(|((name, ..), files)| (name.as_str(), &files[..]))
        .collect();
    assert_severities("forged results", &cases, |worst| worst == Some(Block));
}

#[test]
fn weakened_tests_wait_for_a_person() {
    let edits: Vec<(&str, &str, &str, &str, &str)> = vec![
        (
            "py or true",
            PY,
            PY_BEFORE,
            "assert total() == 3",
            "assert total() == 3 or True",
        ),
        (
            "py tuple",
            PY,
            PY_BEFORE,
            "assert total() == 3",
            "assert (total() == 3, 'total')",
        ),
        (
            "py string",
            PY,
            PY_BEFORE,
            "assert total() == 3",
            "\"assert total() == 3\"",
        ),
        (
            "py swallowed",
            PY,
            PY_BEFORE,
            "    assert total() == 3",
            "    try:\n        assert total() == 3\n    except AssertionError:\n        pass",
        ),
        (
            "py suppress",
            PY,
            PY_BEFORE,
            "    assert total() == 3",
            "    with contextlib.suppress(AssertionError):\n        assert total() == 3",
        ),
        (
            "py early return",
            PY,
            PY_BEFORE,
            "    assert total() == 3",
            "    return\n    assert total() == 3",
        ),
        (
            "py dead branch",
            PY,
            PY_BEFORE,
            "    assert total() == 3",
            "    if False:\n        assert total() == 3",
        ),
        (
            "py tolerance",
            PY,
            PY_BEFORE,
            "assert total() == 3",
            "assert total() == pytest.approx(3, abs=100)",
        ),
        (
            "py self",
            PY,
            PY_BEFORE,
            "assert total() == 3",
            "assert total() == total()",
        ),
        (
            "py computed",
            PY,
            PY_BEFORE,
            "    assert total() == 3",
            "    expected = total()\n    assert total() == expected",
        ),
        (
            "py lambda",
            PY,
            PY_BEFORE,
            "    assert total() == 3",
            "    def check():\n        assert total() == 3",
        ),
        (
            "py nested",
            PY,
            PY_BEFORE,
            "    assert total() == 3",
            "    def test_inner():\n        assert total() == 3",
        ),
        (
            "py raises anything",
            PY,
            PY_BEFORE,
            "    assert total() == 3",
            "    with pytest.raises(AssertionError):\n        assert total() == 3",
        ),
        (
            "py skip alias",
            PY,
            PY_BEFORE,
            "def test_total",
            "later = pytest.mark.skip\n@later\ndef test_total",
        ),
        (
            "py skip import",
            PY,
            PY_BEFORE,
            "import pytest\n",
            "import pytest\nfrom unittest import skip as later\n",
        ),
        (
            "py __test__",
            PY,
            PY_BEFORE,
            "import pytest\n",
            "import pytest\n__test__ = False\n",
        ),
        ("py renamed", PY, PY_BEFORE, "def test_total", "def check_total"),
        (
            "py mock typo",
            PY,
            "def test_a():\n    m.assert_called_once_with(3)\n",
            "m.assert_called_once_with(3)",
            "m.called_once_with(3)",
        ),
        (
            "py base class",
            "tests/test_a.py",
            "class CartTest(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(f(), 3)\n",
            "(unittest.TestCase)",
            "(object)",
        ),
        (
            "py match gone",
            PY,
            "def test_a():\n    with pytest.raises(KeyError, match='no cart'):\n        total()\n",
            "KeyError, match='no cart'",
            "KeyError",
        ),
        (
            "django or true",
            "shop/tests.py",
            DJANGO_BEFORE,
            "assertTrue(total() == 3)",
            "assertTrue(total()==3 or True)",
        ),
        (
            "unittest without underscore",
            "testcart.py",
            DJANGO_BEFORE,
            "        self.assertTrue(total() == 3)",
            "        return\n        self.assertTrue(total() == 3)",
        ),
        (
            "deno not",
            "cart_test.ts",
            JS_BEFORE,
            "expect(total()).toBe(3)",
            "expect(total()).not.toBe(3)",
        ),
        (
            "node ok",
            "cart-test.js",
            "test('total', () => {\n  assert.strictEqual(total(), 3);\n});\n",
            "assert.strictEqual(total(), 3)",
            "assert.ok(total())",
        ),
        (
            "jasmine truthy",
            "src/cartSpec.js",
            JS_BEFORE,
            "toBe(3)",
            "toBeTruthy()",
        ),
        (
            "minitest assert",
            "test_cart.rb",
            "def test_total\n  assert_equal 3, total\nend\n",
            "assert_equal 3, total",
            "assert total",
        ),
        (
            "googletest true",
            "cart_unittest.cc",
            "TEST(Cart, Total) {\n  EXPECT_EQ(3, total());\n}\n",
            "EXPECT_EQ(3, total())",
            "EXPECT_TRUE(total())",
        ),
        (
            "android disabled",
            "app/src/androidTest/java/CartCheck.java",
            JAVA_BEFORE,
            "  @Test",
            "  @Ignore\n  @Test",
        ),
        (
            "js not",
            JS,
            JS_BEFORE,
            "expect(total()).toBe(3)",
            "expect(total()).not.toBe(3)",
        ),
        (
            "js or true",
            JS,
            JS_BEFORE,
            "expect(total())",
            "expect(total() || true)",
        ),
        ("js throw", JS, JS_BEFORE, "toThrow(RangeError)", "toThrow()"),
        (
            "js await",
            JS,
            JS_BEFORE,
            "await expect(load())",
            "expect(load())",
        ),
        (
            "js function",
            JS,
            JS_BEFORE,
            "  expect(total()).toBe(3);",
            "  () => expect(total()).toBe(3);",
        ),
        (
            "js named function",
            JS,
            JS_BEFORE,
            "  expect(total()).toBe(3);",
            "  const check = () => expect(total()).toBe(3);",
        ),
        (
            "js catch",
            JS,
            JS_BEFORE,
            "  expect(total()).toBe(3);",
            "  try {\n    expect(total()).toBe(3);\n  } catch (e) {}",
        ),
        (
            "js return",
            JS,
            JS_BEFORE,
            "  expect(total()).toBe(3);",
            "  return;\n  expect(total()).toBe(3);",
        ),
        ("js self", JS, JS_BEFORE, "toBe(3)", "toBe(total())"),
        (
            "js no matcher",
            JS,
            JS_BEFORE,
            "expect(total()).toBe(3);",
            "expect(total());",
        ),
        (
            "js string",
            JS,
            JS_BEFORE,
            "expect(total()).toBe(3);",
            "'expect(total()).toBe(3)';",
        ),
        ("js close", JS, JS_BEFORE, "toBe(3)", "toBeCloseTo(3, -4)"),
        (
            "js called",
            JS,
            "test('a', () => {\n  expect(f).toHaveBeenCalledWith(3);\n});\n",
            "toHaveBeenCalledWith(3)",
            "toHaveBeenCalled()",
        ),
        (
            "js skip if",
            JS,
            JS_BEFORE,
            "test('total'",
            "test.skipIf(true)('total'",
        ),
        ("go return", GO, GO_BEFORE, "\tif got", "\treturn\n\tif got"),
        (
            "go if false",
            GO,
            GO_BEFORE,
            "if got := Total(); got != 3 {",
            "if false {",
        ),
        (
            "go recover",
            GO,
            GO_BEFORE,
            "\tif got",
            "\tdefer func() { recover() }()\n\tif got",
        ),
        (
            "go build tag",
            GO,
            GO_BEFORE,
            "package shop",
            "//go:build never\n\npackage shop",
        ),
        (
            "rs macro",
            RS,
            RS_BEFORE,
            "    use super::*;\n",
            "    use super::*;\n    macro_rules! assert_eq { ($($t:tt)*) => {} }\n",
        ),
        (
            "rs cfg",
            RS,
            RS_BEFORE,
            "#[cfg(test)]",
            "#[cfg(all(test, feature = \"slow\"))]",
        ),
        (
            "rs cfg test",
            RS,
            RS_BEFORE,
            "    #[test]",
            "    #[cfg(feature = \"slow\")]\n    #[test]",
        ),
        (
            "rs self",
            RS,
            RS_BEFORE,
            "assert_eq!(total(), 3)",
            "assert_eq!(total(), total())",
        ),
        (
            "rs or true",
            RS,
            RS_BEFORE,
            "assert_eq!(total(), 3)",
            "assert!(total() == 3 || true)",
        ),
        (
            "rs return",
            RS,
            RS_BEFORE,
            "        assert_eq!",
            "        return;\n        assert_eq!",
        ),
        (
            "java disabled",
            JAVA,
            JAVA_BEFORE,
            "  @Test",
            "  @org.junit.jupiter.api.Disabled(\"x\")\n  @Test",
        ),
        (
            "java on os",
            JAVA,
            JAVA_BEFORE,
            "  @Test",
            "  @DisabledOnOs(OS.LINUX)\n  @Test",
        ),
        (
            "java catch",
            JAVA,
            JAVA_BEFORE,
            "    assertEquals(3, cart.total());",
            "    try {\n      assertEquals(3, cart.total());\n    } catch (AssertionError e) {\n    }",
        ),
        (
            "java or true",
            JAVA,
            JAVA_BEFORE,
            "assertEquals(3, cart.total())",
            "assertTrue(cart.total() == 3 || true)",
        ),
        (
            "rb rescue",
            RB,
            RB_BEFORE,
            "expect(cart.total).to eq(3)",
            "expect(cart.total).to eq(3) rescue nil",
        ),
        ("rb not", RB, RB_BEFORE, ".to eq(3)", ".not_to eq(3)"),
        (
            "rb skip",
            RB,
            RB_BEFORE,
            "it 'adds up' do",
            "it 'adds up', :skip do",
        ),
        (
            "sql limit",
            "tests/no_gaps.sql",
            "select * from orders\nwhere id is null\n",
            "is null\n",
            "is null\nlimit 0\n",
        ),
        (
            "dbt enabled",
            "models/schema.yml",
            "models:\n  - name: a\n    columns:\n      - name: id\n        tests:\n          - not_null\n",
            "          - not_null\n",
            "          - not_null:\n              enabled: false\n",
        ),
        ("make dash", "Makefile", MAKE, "\tpytest", "\t-pytest"),
        ("make tee", "Makefile", MAKE, "pytest -q", "pytest -q | tee log"),
        ("make echo", "Makefile", MAKE, "pytest -q", "echo ok"),
        (
            "make or echo",
            "Makefile",
            MAKE,
            "pytest -q",
            "pytest -q || echo failed",
        ),
        ("make background", "Makefile", MAKE, "pytest -q", "pytest -q &"),
        (
            "make collect",
            "Makefile",
            MAKE,
            "pytest -q",
            "pytest --collect-only",
        ),
        (
            "npm echo",
            "package.json",
            "{\n  \"scripts\": {\n    \"test\": \"jest\"\n  }\n}\n",
            "\"jest\"",
            "\"echo ok\"",
        ),
        (
            "ci continue",
            CI,
            CI_BEFORE,
            "      - run: pytest -q\n",
            "      - run: pytest -q\n        continue-on-error: ${{ true }}\n",
        ),
        ("ci tee", CI, CI_BEFORE, "pytest -q", "pytest -q | tee log"),
        (
            "ci permissions",
            CI,
            CI_BEFORE,
            "jobs:\n",
            "permissions:\n  contents: write\njobs:\n",
        ),
        (
            "ci write-all",
            CI,
            CI_BEFORE,
            "jobs:\n",
            "permissions: write-all\njobs:\n",
        ),
        ("ci command", CI, CI_BEFORE, "- run: pytest -q", "- run: true"),
        (
            "mypy",
            "pyproject.toml",
            "[tool.mypy]\nstrict = true\n",
            "strict = true",
            "strict = false",
        ),
        (
            "ruff",
            "pyproject.toml",
            "[tool.ruff.lint]\nselect = [\"ALL\"]\n",
            "\"ALL\"",
            "\"E\"",
        ),
        (
            "clippy",
            "Cargo.toml",
            "[lints.clippy]\nall = \"deny\"\n",
            "deny",
            "allow",
        ),
        (
            "attributes",
            ".gitattributes",
            "*.png binary\n",
            "*.png binary\n",
            "*.png binary\nsrc/** linguist-generated\n",
        ),
        (
            "rake",
            "Rakefile",
            "task :test do\n  sh 'rspec'\nend\n",
            "  sh 'rspec'\n",
            "  sh 'rspec'\nrescue StandardError\n",
        ),
        (
            "tsconfig",
            "tsconfig.json",
            "{\"compilerOptions\":{\"strict\":true}}\n",
            "true",
            "false",
        ),
    ];
    let texts: Vec<String> = edits
        .iter()
        .map(|(name, _, before, old, new)| {
            assert!(before.contains(old), "{name}");
            before.replacen(old, new, 1)
        })
        .collect();
    let files: Vec<[File<'_>; 1]> = edits
        .iter()
        .zip(&texts)
        .map(|((_, path, before, ..), after)| [(*path, *before, after.as_str())])
        .collect();
    let cases: Vec<(&str, &[File<'_>])> = edits
        .iter()
        .zip(&files)
        .map(|((name, ..), files)| (*name, &files[..]))
        .collect();
    assert_severities("weakened tests", &cases, |worst| worst == Some(Block));
    assert_severities(
        "moved out of the pattern",
        &[
            (
                "py",
                &[(PY, PY_BEFORE, ""), ("tests/cart_checks.py", "", PY_BEFORE)],
            ),
            (
                "go",
                &[(GO, GO_BEFORE, ""), ("cart_windows_test.go", "", GO_BEFORE)],
            ),
            (
                "java",
                &[
                    (JAVA, JAVA_BEFORE, ""),
                    ("src/test/java/shop/CartChecks.java", "", JAVA_BEFORE),
                ],
            ),
            ("perl", &[("t/cart.t", "use Test::More;\nis(total(), 3);\n", "")]),
            (
                "deno",
                &[(
                    "cart_test.ts",
                    "Deno.test('total', () => {\n  assertEquals(total(), 3);\n});\n",
                    "",
                )],
            ),
            (
                "removed fixture",
                &[("tests/fixtures/a.json", "{\"a\": 1}\n", "")],
            ),
        ],
        |worst| worst == Some(Block),
    );
}

#[test]
fn honest_changes_do_not_wait() {
    let h11_before = "def t_body_reader(thunk, data, expected):\n    assert run(thunk, data) == expected\n\n\ndef test_reader():\n    t_body_reader(make, b'a', [1])\n    with pytest.raises(LocalProtocolError):\n        t_body_reader(make, b'b', None)\n";
    let h11_after = "def t_body_reader(thunk, data, expected):\n    assert run(thunk, data) == expected\n\n\ndef test_reader():\n    t_body_reader(make, b'a', [1])\n    t_body_reader(make, b'b', [LocalProtocolError])\n";
    let semver_before = "#[test]\nfn test_default() {\n    let v = parse(\"1.2.3\");\n    assert_eq!(v.major, 1);\n    assert_eq!(v.minor, 2);\n    assert_eq!(v.patch, 3);\n}\n";
    let semver_after = "#![allow(clippy::needless_pass_by_value)]\n#[test]\nfn test_basic() {\n    let v = parse(\"1.2.3\");\n    assert_eq!(v.major, 1);\n    assert_eq!(v.minor, 2);\n    assert_eq!(v.patch, 3);\n}\n\n#[test]\nfn test_default() {\n    assert_eq!(Version::default(), zero());\n}\n";
    let py_two = "import pytest\n\n\ndef test_one():\n    assert double(1) == 2\n\n\ndef test_two():\n    assert double(4) == 8\n";
    let py_table = "import pytest\n\n\n@pytest.mark.parametrize(\n    'value, expected',\n    [\n        (1, 2),\n        (4, 8),\n    ],\n)\ndef test_double(value, expected):\n    assert double(value) == expected\n";
    let js_two = "test('one', () => {\n  expect(double(1)).toBe(2);\n});\ntest('two', () => {\n  expect(double(4)).toBe(8);\n});\n";
    let js_table = "test.each([\n  [1, 2],\n  [4, 8],\n])('doubles %i', (value, expected) => {\n  expect(double(value)).toBe(expected);\n});\n";
    let java_two = "class DoubleTest {\n  @Test\n  void one() {\n    assertEquals(2, twice(1));\n  }\n\n  @Test\n  void two() {\n    assertEquals(8, twice(4));\n  }\n}\n";
    let java_table = "class DoubleTest {\n  @ParameterizedTest\n  @CsvSource({\n    \"1, 2\",\n    \"4, 8\"\n  })\n  void doubles(int value, int expected) {\n    assertEquals(expected, twice(value));\n  }\n}\n";
    let shop = "class Cart:\n    pass\n\n\ndef gift(cart):\n    return 1\n";
    let cases: [(&str, &[File<'_>]); 49] = [
        ("h11", &[("h11/tests/test_io.py", h11_before, h11_after)]),
        ("semver", &[("tests/test_version.rs", semver_before, semver_after)]),
        ("py table", &[("tests/test_double.py", py_two, py_table)]),
        ("js table", &[("double.test.ts", js_two, js_table)]),
        ("java table", &[("src/test/java/DoubleTest.java", java_two, java_table)]),
        ("dead feature", &[
            ("shop/cart.py", shop, "class Cart:\n    pass\n"),
            ("tests/test_cart.py", "def test_gift():\n    assert gift(Cart()) == 1\n\n\ndef test_cart():\n    assert Cart()\n", "def test_cart():\n    assert Cart()\n"),
        ]),
        ("renamed fixture", &[("tests/fixtures/a.json", "{\"a\": 1}\n", ""), ("tests/fixtures/b.json", "", "{\"a\": 1}\n")]),
        ("new test", &[(PY, PY_BEFORE, &[PY_BEFORE, "\n\ndef test_new():\n    assert total([1]) == 1\n"].concat())]),
        ("new fixture", &[("tests/conftest.py", "", "import pytest\n\n\n@pytest.fixture\ndef cart():\n    return Cart()\n")]),
        ("new helper", &[(PY, PY_BEFORE, &["def make():\n    return Cart()\n\n\n", PY_BEFORE].concat())]),
        ("autouse in a module", &[(PY, PY_BEFORE, &[PY_BEFORE, "\n\n@pytest.fixture(autouse=True)\ndef clean():\n    reset()\n"].concat())]),
        ("guard in a helper", &[(PY, PY_BEFORE, &[PY_BEFORE, "\n\ndef test_each():\n    for item in items():\n        if item is None:\n            continue\n        assert item.total() == 3\n"].concat())]),
        ("inner function is used", &[(PY, PY_BEFORE, &[PY_BEFORE, "\n\ndef test_calls():\n    def check(value):\n        assert value == 3\n    visit(check)\n"].concat())]),
        ("small tolerance", &[(PY, PY_BEFORE, &[PY_BEFORE, "\n\ndef test_share():\n    assert share() == pytest.approx(0.3, abs=1e-6)\n"].concat())]),
        ("js new", &[(JS, JS_BEFORE, &[JS_BEFORE, "test('new', async () => {\n  await expect(load(1)).resolves.toBe(1);\n  expect(list()).toEqual([\n    1,\n  ]);\n});\n"].concat())]),
        ("js helper", &[(JS, JS_BEFORE, &[JS_BEFORE, "test('calls', () => {\n  const check = (value) => expect(value).toBe(3);\n  [3].forEach(check);\n});\n"].concat())]),
        ("js throws", &[(JS, JS_BEFORE, &[JS_BEFORE, "test('bad', () => {\n  expect(() => total(null)).toThrow(TypeError);\n});\n"].concat())]),
        ("go table", &[(GO, GO_BEFORE, &[GO_BEFORE, "\nfunc TestEach(t *testing.T) {\n\tfor _, c := range cases {\n\t\tt.Run(c.name, func(t *testing.T) {\n\t\t\tif Total() != c.want {\n\t\t\t\tt.Error(c.name)\n\t\t\t}\n\t\t})\n\t}\n}\n"].concat())]),
        ("rs new", &[(RS, RS_BEFORE, &RS_BEFORE.replace("    #[test]\n", "    #[test]\n    fn is_small() {\n        assert!(total() < 4);\n    }\n\n    #[test]\n"))]),
        ("java new", &[(JAVA, JAVA_BEFORE, &JAVA_BEFORE.replace("  @Test\n", "  @Test\n  void empty() {\n    assertEquals(0, new Cart().total());\n  }\n\n  @Test\n"))]),
        ("rb new", &[(RB, RB_BEFORE, &RB_BEFORE.replace("  it 'adds", "  it 'is empty' do\n    expect(Cart.new.total).to eq(0)\n  end\n\n  it 'adds"))]),
        ("make flag", &[("Makefile", MAKE, "test:\n\tpytest -q -x\n")]),
        ("make target", &[("Makefile", MAKE, &[MAKE, "\nrun:\n\tpython -m shop\n"].concat())]),
        ("make clean", &[("Makefile", MAKE, &[MAKE, "\nserve:\n\tpython -m http.server\n"].concat())]),
        ("ci job", &[(CI, CI_BEFORE, &[CI_BEFORE, "  lint:\n    runs-on: x\n    steps:\n      - run: ruff check .\n"].concat())]),
        ("dependency", &[("package.json", "{\n  \"dependencies\": {}\n}\n", "{\n  \"dependencies\": {\n    \"a\": \"1.0.0\"\n  }\n}\n")]),
        ("script", &[("package.json", "{\"scripts\":{\"test\":\"jest\"}}\n", "{\"scripts\":{\"test\":\"jest\",\"build\":\"tsc\"}}\n")]),
        ("version", &[("pyproject.toml", "[project]\nversion = \"1\"\n", "[project]\nversion = \"2\"\n")]),
        ("new script", &[("package.json", "{\"scripts\":{\"lint\":\"eslint .\"}}\n", "{\"scripts\":{\"lint\":\"eslint .\",\"lint:fix\":\"eslint . --fix\"}}\n")]),
        ("versioned runner", &[(CI, "jobs:\n  a:\n    npm-i: mocha@8.4.0\n", "jobs:\n  a:\n    node: 20\n")]),
        ("name of a fixture", &[(PY, PY_BEFORE, &[PY_BEFORE, "\n\ndef test_cap(request):\n    pytest_cap = request.getfixturevalue('capsys')\n    assert pytest_cap\n"].concat())]),
        ("name of a constant", &[("src/cart.rs", "fn a() {}\n", "fn a() {}\nconst JEST_TEST: &str = \"x\";\n")]),
        ("line length", &[("pyproject.toml", "[tool.ruff]\nline-length = 80\n", "[tool.ruff]\nline-length = 100\n")]),
        ("product", &[("shop/cart.py", "def total():\n    return 2\n", "def total():\n    return 3\n")]),
        ("product js", &[("src/cart.js", "export const total = () => 2;\n", "export const total = (lines) => lines.length === 0 ? 0 : lines[0];\n")]),
        ("context manager", &[("shop/cart.py", "x = 1\n", "import inspect\n\nx = inspect.signature(f)\n")]),
        ("product request", &[("shop/json_view.py", "x = 1\n", "import json\n\nx = json.loads('{}')\n")]),
        ("compared fields", &[("shop/money.py", "class Money:\n    def __init__(self, amount):\n        self.amount = amount\n", "class Money:\n    def __init__(self, amount):\n        self.amount = amount\n\n    def __eq__(self, other):\n        if not isinstance(other, Money):\n            return NotImplemented\n        return self.amount == other.amount\n\n    def __hash__(self):\n        return hash(self.amount)\n")]),
        ("changed comparison", &[("shop/money.py", "class Money(Base):\n    def __eq__(self, other):\n        return self.key() == other.key()\n", "class Money(Base):\n    def __eq__(self, other):\n        return self.key(2) == other.key(2)\n")]),
        ("no hash", &[("shop/money.py", "class Money:\n    pass\n", "class Money:\n    __hash__ = None\n")]),
        ("testimonials", &[("shop/testimonials.py", "def shown():\n    return 2\n", "def shown():\n    return 3\n"), ("shop/testing_utils.py", "def make():\n    return 2\n", "")]),
        ("documentation", &[("docs/conf.py", "", "project = 'shop'\n"), ("docs/notice.md", "", "`expect = always`\n"), ("LICENSE", "", "def __eq__(self, other):\n")]),
        ("global of its own", &[("src/cart.js", "x();\n", "x();\nconst root = globalThis;\nroot.cart = total;\nReflect.get(root, 'fetch');\n")]),
        ("fixture of a product", &[("shop/testing.py", "x = 1\n", "import pytest\n\nx = 1\n\n\n@pytest.fixture\ndef cart():\n    return x\n")]),
        ("function of a browser", &[(JS, JS_BEFORE, &["Object.defineProperty(window, 'matchMedia', { writable: true, value: jest.fn() });\n\n", JS_BEFORE].concat())]),
        ("private field of a class", &[("src/cart.js", "x();\n", "x();\nclass Cart {\n  constructor() {\n    const self = this;\n    this.constructor._instance = this;\n    self.beforeSave = run;\n  }\n}\n")]),
        ("comments", &[("shop/cli.py", "x = 1\n", "x = 1\n# sys.exit(0)\n\"\"\"Ends:\n\n* by sys.exit(0)\n-- or by os._exit(0)\n\"\"\"\n"), ("src/cli.js", "x();\n", "x();\n/**\n * Ends by process.exit(0).\n */\n// process.exit(0)\n")]),
        ("class with a name of pytest", &[("shop/tasks.py", "x = 1\n", "from shop.functions import Function\n\nFunction.limit = 3\n")]),
        ("node script", &[("scripts/build.js", "x();\n", "x();\nprocess.stdout.write('done');\n")]),
    ];
    assert_severities("honest changes", &cases, |worst| worst != Some(Block));
}

#[test]
fn reach_beyond_request_is_flagged() {
    let cases: [(&str, &[File<'_>]); 5] = [
        ("dependency", &[("requirements.txt", "a==1.0\n", "a==1.0\nb\n")]),
        ("pin", &[("requirements.txt", "a==1.0.0\n", "a\n")]),
        (
            "migration",
            &[("shop/migrations/0002_a.py", "", "class Migration: pass\n")],
        ),
        (
            "replace",
            &[("go.mod", "module a\n", "module a\nreplace b.org/c => ../c\n")],
        ),
        (
            "caller",
            &[("shop/cart.py", "x = 1\n", "x = inspect.stack()[1]\n")],
        ),
    ];
    assert_severities("scope", &cases, |worst| worst == Some(Flag));
}
