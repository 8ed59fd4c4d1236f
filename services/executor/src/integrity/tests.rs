//! Tests of each finding with two versions of a file: one that has it, and a similar one that has not.

use domain::check::FindingSeverity::{Block, Flag};

use super::*;

/// Builds a changed file; an empty text is a missing file.
pub(super) fn build_changed_file(path: &str, before: &str, after: &str) -> ChangedFile {
    let [before, after] = [before, after].map(|text| Some(text).filter(|text| !text.is_empty()));
    ChangedFile::sample(path, before, after)
}

fn list_findings(files: &[ChangedFile]) -> Vec<(String, FindingSeverity)> {
    find_weakened_checks(files, "")
        .into_iter()
        .map(|finding| (finding.kind, finding.severity))
        .collect()
}

/// Path, text before, text after, expected findings.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, FindingSeverity)],
);

fn assert_findings(rows: &[Row]) {
    for (path, before, after, expected) in rows {
        let expected: Vec<_> = expected
            .iter()
            .map(|(kind, severity)| ((*kind).to_owned(), *severity))
            .collect();
        assert_eq!(
            list_findings(&[build_changed_file(path, before, after)]),
            expected,
            "{path}\n--\n{before}\n++\n{after}"
        );
    }
}

#[test]
fn removed_test_blocks_in_every_language() {
    for (path, one, two) in [
        (
            "tests/test_a.py",
            "def test_one():\n    assert f() == 1\n",
            "def test_two():\n    assert g(5) == {}\n    assert h()\n",
        ),
        (
            "a.test.js",
            "test('one', () => {\n  expect(f()).toBe(1);\n});\n",
            "it('two', () => {\n  expect(g(5)).toEqual({});\n  expect(h()).toBe(2);\n});\n",
        ),
        (
            "a_test.go",
            "func TestOne(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Error()\n\t}\n}\n",
            "func TestTwo(t *testing.T) {\n\trequire.Equal(t, 5, g())\n}\n",
        ),
        (
            "src/a.rs",
            "#[test]\nfn one() {\n    assert_eq!(f(), 1);\n}\n",
            "#[tokio::test]\nasync fn two() {\n    assert!(g().await);\n}\n",
        ),
        (
            "src/test/java/ATest.java",
            "  @Test\n  void one() {\n    assertEquals(1, f());\n  }\n",
            "  @Test\n  public void two() throws Exception {\n    assertThat(g()).isEqualTo(2);\n  }\n",
        ),
        (
            "src/test/kotlin/ATest.kt",
            "  @Test\n  fun `one works`() {\n    assertEquals(1, f())\n  }\n",
            "  @Test\n  fun two() {\n    assertTrue(g())\n  }\n",
        ),
        (
            "spec/a_spec.rb",
            "it 'one' do\n  expect(f).to eq(1)\nend\n",
            "it 'two' do\n  expect(g).to eq(5)\n  expect(h).to eq(6)\nend\n",
        ),
        (
            "tests/ATest.php",
            "public function testOne() {\n  $this->assertSame(1, f());\n}\n",
            "public function testTwo() {\n  $this->assertSame(5, g());\n}\n",
        ),
        (
            "Shop.Tests/ATests.cs",
            "[Fact]\npublic void One() {\n  Assert.Equal(1, F());\n}\n",
            "[Fact]\npublic async Task Two() {\n  Assert.Equal(5, await G());\n}\n",
        ),
        (
            "tests/a_test.cc",
            "TEST(A, One) {\n  EXPECT_EQ(1, f());\n}\n",
            "TEST(A, Two) {\n  ASSERT_EQ(5, g());\n}\n",
        ),
    ] {
        let both = format!("{one}\n{two}");
        assert_eq!(
            list_findings(&[build_changed_file(path, &both, one)]),
            [("test_removed".to_owned(), Block)],
            "{path}"
        );
        assert_eq!(
            list_findings(&[build_changed_file(path, one, &both)]),
            [],
            "{path}"
        );
        assert_eq!(
            list_findings(&[build_changed_file(path, one, "")]),
            [("test_removed".to_owned(), Block)],
            "{path}"
        );
    }
}

#[test]
fn removed_test_is_finding_wherever_listed() {
    let dbt = "models:\n  - name: orders\n    tests:\n      - unique\n";
    for (path, before, after) in [
        ("models/schema.yml", dbt, "models:\n  - name: orders\n"),
        ("tests/test_a.py", "def test_a():\n    assert f()\n", "x = 1\n"),
        (
            "src/a.rs",
            "#[test]\nfn a() {\n    assert!(f());\n}\n",
            "fn b() {}\n",
        ),
        ("shop/a.py", "def test_a():\n    assert f()\n", "x = 1\n"),
        (".github/workflows/a.yml", "a:\n  - unique\n", "a:\n"),
        (
            "a_test.go",
            "func TestA(t *testing.T) {\n\tt.Error()\n}\n",
            "package a\n",
        ),
    ] {
        let files = [build_changed_file(path, before, after)];
        let is_finding = list_findings(&files)
            .iter()
            .any(|(kind, _)| kind == "test_removed");
        let is_listed = !removed_tests(&files).is_empty();
        assert_eq!(is_finding, is_listed, "{path}");
        assert_eq!(is_listed, paths::can_contain_tests(path), "{path}");
    }
}

#[test]
fn moved_or_renamed_test_is_kept() {
    let test = "def test_one():\n    x = f(1)\n    y = f(2)\n    assert x == 1\n    assert y == 2\n";
    let moved = [
        build_changed_file("tests/test_a.py", test, ""),
        build_changed_file("tests/sub/test_b.py", "", test),
    ];
    assert_eq!(list_findings(&moved), []);
    let renamed = test.replace("test_one", "test_first").replace("f(2)", "f(3)");
    assert_eq!(
        list_findings(&[build_changed_file("tests/test_a.py", test, &renamed)]),
        [("test_renamed".to_owned(), Flag)]
    );
    let less = test
        .replace("test_one", "test_first")
        .replace("    assert y == 2\n", "");
    assert_eq!(
        list_findings(&[build_changed_file("tests/test_a.py", test, &less)]),
        [
            ("assertions_removed".to_owned(), Block),
            ("test_renamed".to_owned(), Flag)
        ]
    );
    // A test at a path that no runner collects is a removed test.
    let hidden = [
        build_changed_file("tests/test_a.py", test, ""),
        build_changed_file("shop/helpers.py", "", test),
    ];
    assert_eq!(list_findings(&hidden), [("test_removed".to_owned(), Block)]);
}

#[test]
fn removed_test_of_removed_feature_is_flag() {
    let test = "def test_discount():\n    assert discount(3) == 2\n";
    let product = "def total(x):\n    return x\n\ndef discount(x):\n    return x - 1\n";
    let without = "def total(x):\n    return x\n";
    let files = |after: &str| {
        [
            build_changed_file("tests/test_a.py", test, ""),
            build_changed_file("shop/cart.py", product, after),
        ]
    };
    assert_eq!(
        list_findings(&files(without)),
        [("test_removed".to_owned(), Flag)]
    );
    assert_eq!(
        list_findings(&files(&format!("{product}\n"))),
        [("test_removed".to_owned(), Block)]
    );
}

#[test]
fn kept_test_must_not_assert_less() {
    assert_findings(&[
        (
            "tests/test_a.py",
            "def test_a():\n    assert f() == 1\n    assert g() == 2\n",
            "def test_a():\n    assert f() == 1\n",
            &[("assertions_removed", Block)],
        ),
        (
            "tests/test_a.py",
            "def test_a():\n    assert f() == 1\n",
            "def test_a():\n    assert f() == 1\n    assert g() == 2\n",
            &[],
        ),
        (
            "tests/test_a.py",
            "def test_a():\n    assert f() == {'a': 1}\n",
            "def test_a():\n    assert 'a' in f()\n",
            &[("assertion_loosened", Block)],
        ),
        (
            "tests/test_a.py",
            "class A(TestCase):\n    def test_a(self):\n        self.assertEqual(f(), g())\n",
            "class A(TestCase):\n    def test_a(self):\n        self.assertTrue(f())\n",
            &[("assertion_loosened", Block)],
        ),
        (
            "a.test.ts",
            "it('a', () => {\n  expect(f()).toEqual(g());\n});\n",
            "it('a', () => {\n  expect(f()).toBeDefined();\n});\n",
            &[("assertion_loosened", Block)],
        ),
        (
            "a_test.go",
            "func TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Errorf(\"no\")\n\t}\n\tt.Error()\n}\n",
            "func TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Logf(\"no\")\n\t}\n\tt.Error()\n}\n",
            &[("assertion_loosened", Block), ("assertions_removed", Block)],
        ),
        (
            "src/a.rs",
            "#[test]\nfn a() {\n    assert_eq!(f(), Ok(g()));\n}\n",
            "#[test]\nfn a() {\n    assert!(f().is_ok());\n}\n",
            &[("assertion_loosened", Block)],
        ),
        (
            "src/test/java/ATest.java",
            "  @Test\n  void a() {\n    assertEquals(g(), f());\n  }\n",
            "  @Test\n  void a() {\n    assertNotNull(f());\n  }\n",
            &[("assertion_loosened", Block)],
        ),
        (
            "spec/a_spec.rb",
            "it 'a' do\n  expect(f).to eq(g)\nend\n",
            "it 'a' do\n  expect(f).to be_truthy\nend\n",
            &[("assertion_loosened", Block)],
        ),
        (
            "tests/test_a.py",
            "def test_a():\n    assert f() == 1\n",
            "def test_a():\n    assert f() == 2\n",
            &[("expectation_changed", Flag)],
        ),
        (
            "tests/test_a.py",
            "def test_a():\n    x = f()\n    assert x == 1\n",
            "def test_a():\n    x = f(3)\n    assert x == 1\n",
            &[],
        ),
    ]);
}

#[test]
fn skipped_old_test_blocks_new_flags() {
    for (path, plain, skipped) in [
        (
            "tests/test_a.py",
            "def test_a():\n    assert f()\n",
            "@pytest.mark.skip\ndef test_a():\n    assert f()\n",
        ),
        (
            "tests/test_a.py",
            "def test_a():\n    assert f()\n",
            "def test_a():\n    pytest.skip('no')\n    assert f()\n",
        ),
        (
            "a.test.js",
            "it('a', () => {\n  expect(f()).toBe(1);\n});\n",
            "it.skip('a', () => {\n  expect(f()).toBe(1);\n});\n",
        ),
        (
            "a_test.go",
            "func TestA(t *testing.T) {\n\tt.Error()\n}\n",
            "func TestA(t *testing.T) {\n\tt.Skip()\n\tt.Error()\n}\n",
        ),
        (
            "src/a.rs",
            "#[test]\nfn a() {\n    assert!(f());\n}\n",
            "#[test]\n#[ignore]\nfn a() {\n    assert!(f());\n}\n",
        ),
        (
            "src/test/java/ATest.java",
            "  @Test\n  void a() {\n    assertTrue(f());\n  }\n",
            "  @Disabled\n  @Test\n  void a() {\n    assertTrue(f());\n  }\n",
        ),
        (
            "spec/a_spec.rb",
            "it 'a' do\n  expect(f).to eq(g)\nend\n",
            "it 'a' do\n  skip 'no'\n  expect(f).to eq(g)\nend\n",
        ),
        (
            "tests/ATest.php",
            "public function testA() {\n  $this->assertSame(1, f());\n}\n",
            "public function testA() {\n  $this->markTestSkipped('no');\n  $this->assertSame(1, f());\n}\n",
        ),
        (
            "T/ATests.cs",
            "[Fact]\npublic void A() {\n  Assert.Equal(1, F());\n}\n",
            "[Fact(Skip = \"no\")]\npublic void A() {\n  Assert.Equal(1, F());\n}\n",
        ),
        (
            "tests/a_test.cc",
            "TEST(A, B) {\n  EXPECT_EQ(1, f());\n}\n",
            "TEST(A, B) {\n  GTEST_SKIP();\n  EXPECT_EQ(1, f());\n}\n",
        ),
    ] {
        let kinds = list_findings(&[build_changed_file(path, plain, skipped)]);
        assert!(
            !kinds.is_empty()
                && kinds
                    .iter()
                    .all(|(kind, severity)| kind == "test_skipped" && *severity == Block),
            "{path}: {kinds:?}"
        );
        // All new tests are skipped.
        let kinds = list_findings(&[build_changed_file(path, "", skipped)]);
        assert_eq!(
            kinds,
            [
                ("new_tests_skipped".to_owned(), Block),
                ("test_skipped".to_owned(), Flag)
            ],
            "{path}"
        );
        assert_eq!(
            list_findings(&[build_changed_file(path, skipped, plain)]),
            [],
            "{path}"
        );
    }
}

#[test]
fn disabled_checks_are_found_outside_prose() {
    assert_findings(&[
        (
            "a.test.js",
            "it('a', () => {\n});\n",
            "it.only('a', () => {\n});\n",
            &[("test_focused", Block)],
        ),
        (
            "tests/test_a.py",
            "x = 1\n",
            "x = 1\n# we used to skip: pytest.skip('x')\n",
            &[],
        ),
        (
            "tests/conftest.py",
            "x = 1\n",
            "x = 1\ndef pytest_collection_modifyitems(items):\n    items.clear()\n",
            &[("runner_hooked", Block)],
        ),
        (
            "shop/a.py",
            "x = f()\n",
            "x = f()  # noqa\n",
            &[("checker_silenced", Flag)],
        ),
        (
            "src/a.ts",
            "f(x);\n",
            "f(x as any);\n",
            &[("checker_silenced", Flag)],
        ),
        (
            "src/a.ts",
            "f(x);\n",
            "f(x); // as many as any shop has\n",
            &[("checker_silenced", Flag)],
        ),
        (
            "shop/a.go",
            "f()\n",
            "f() //nolint\n",
            &[("checker_silenced", Flag)],
        ),
        (
            "src/a.rs",
            "fn f() {}\n",
            "#[allow(dead_code)]\nfn f() {}\n",
            &[("checker_silenced", Flag)],
        ),
        (
            "shop/a.py",
            "f()\n",
            "try:\n    f()\nexcept Exception:\n    pass\n",
            &[("exception_hidden", Flag)],
        ),
        (
            "shop/a.py",
            "f()\n",
            "try:\n    f()\nexcept KeyError:\n    pass\n",
            &[],
        ),
        (
            "models/schema.yml",
            "x:\n  - not_null\n  - unique\n",
            "x:\n  - not_null\n",
            &[("test_removed", Block)],
        ),
        (
            "models/schema.yml",
            "x:\n  - not_null\n",
            "x:\n  - not_null:\n      severity: warn\n",
            &[("severity_lowered", Block)],
        ),
    ]);
}

#[test]
fn weaker_existing_pipeline_blocks() {
    assert_findings(&[
        (
            "Makefile",
            "test:\n\tpytest\n",
            "test:\n\tpytest || true\n",
            &[("failure_hidden", Block)],
        ),
        ("Makefile", "test:\n\tpytest\n", "test:\n\tpytest -q\n", &[]),
        (
            "scripts/test.sh",
            "set -e\npytest\n",
            "set +e\npytest\n",
            &[("failure_hidden", Block)],
        ),
        (
            "scripts/test.sh",
            "",
            "set -e\npytest -k cart\n",
            &[("tests_left_out", Flag)],
        ),
        (
            "package.json",
            "{\n  \"scripts\": {\n    \"test\": \"jest\"\n  }\n}\n",
            "{\n  \"scripts\": {\n    \"test\": \"jest --passWithNoTests\"\n  }\n}\n",
            &[("config_changed", Block), ("tests_left_out", Block)],
        ),
        (
            "package.json",
            "{\n  \"version\": \"1\"\n}\n",
            "{\n  \"version\": \"2\"\n}\n",
            &[],
        ),
        (
            "pyproject.toml",
            "[project]\nname = \"a\"\n",
            "[project]\nname = \"a\"\n[tool.pytest.ini_options]\naddopts = \"-x\"\n",
            &[("config_changed", Block)],
        ),
        ("jest.config.js", "a\n", "b\n", &[("config_changed", Block)]),
        ("jest.config.js", "", "b\n", &[("config_changed", Block)]),
        ("eslint.config.js", "", "b\n", &[("config_changed", Flag)]),
        (
            ".github/CODEOWNERS",
            "* @a\n",
            "* @b\n",
            &[("config_changed", Block)],
        ),
        ("Cargo.lock", "a\n", "b\n", &[("lockfile_changed", Block)]),
        (
            ".github/workflows/ci.yml",
            "jobs:\n  test:\n    run: make test\n  lint:\n    run: make lint\n",
            "jobs:\n  test:\n    run: make test\n",
            &[("job_removed", Block), ("job_removed", Block)],
        ),
        (
            ".github/workflows/ci.yml",
            "jobs:\n  test:\n    run: make test\n",
            "jobs:\n  test:\n    continue-on-error: true\n    run: make test\n",
            &[("failure_hidden", Block)],
        ),
        (
            ".github/workflows/ci.yml",
            "jobs:\n  test:\n    run: make test\n",
            "jobs:\n  test:\n    run: make test\n  lint:\n    run: make lint\n",
            &[],
        ),
        (
            "tests/__snapshots__/a.snap",
            "a\n",
            "b\n",
            &[("snapshots_changed", Flag)],
        ),
        ("README.md", "a\n", "`pytest || true`\n", &[]),
    ]);
}

#[test]
fn product_code_aware_of_tests_is_found() {
    assert_findings(&[
        (
            "shop/a.py",
            "f()\n",
            "from unittest import mock\nf()\n",
            &[("product_uses_test_double", Block)],
        ),
        (
            "shop/testing.py",
            "f()\n",
            "from unittest import mock\nf()\n",
            &[("product_uses_test_double", Flag)],
        ),
        (
            "src/a.js",
            "f();\n",
            "f();\nmodule.exports = expect.anything();\n",
            &[("product_uses_test_double", Block)],
        ),
        (
            "shop/a.py",
            "f()\n",
            "if prices == [1, 2]:\n    f()\n",
            &[("special_case_added", Flag)],
        ),
        ("shop/a.py", "f()\n", "if prices == []:\n    f()\n", &[]),
        (
            "src/a.js",
            "f();\n",
            "if (JSON.stringify(prices) === '[1,2]') f();\n",
            &[("special_case_added", Flag)],
        ),
        (
            "shop/a.py",
            "f()\n",
            "setattr(a, \"run\" + \"test\", b)\n",
            &[("name_disguised", Block)],
        ),
        ("shop/a.py", "f()\n", "getattr(self, \"get_\" + name)()\n", &[]),
        (
            "shop/a.py",
            "f()\n",
            "importlib.import_module(name)\n",
            &[("module_loaded_by_name", Flag)],
        ),
        (
            "src/a.js",
            "f();\n",
            "global[\"ex\" + \"pect\"] = f;\n",
            &[("name_disguised", Block)],
        ),
    ]);
}

#[test]
fn product_code_that_knows_tests_is_found() {
    assert_findings(&[
        (
            "shop/a.py",
            "f()\n",
            "if os.environ.get('PYTEST_CURRENT_TEST'):\n    f()\n",
            &[("product_knows_tests", Flag)],
        ),
        (
            "src/a.js",
            "f();\n",
            "if (process.env.NODE_ENV === 'test') f();\n",
            &[("product_knows_tests", Flag)],
        ),
        (
            "src/a.js",
            "f();\n",
            "if (process.env.NODE_ENV === 'production') f();\n",
            &[],
        ),
        (
            "src/a.rs",
            "fn f() {}\n",
            "#[cfg(not(test))]\nfn f() {}\n",
            &[("product_knows_tests", Flag)],
        ),
        (
            "src/a.rs",
            "fn f() {}\n",
            "fn f() {}\n#[cfg(test)]\nmod tests {}\n",
            &[],
        ),
        (
            "shop/a.py",
            "class A:\n    pass\n",
            "class A:\n    def __eq__(self, other):\n        return True\n",
            &[("equality_defined", Block)],
        ),
        (
            "shop/a.py",
            "f()\n",
            "f()\nsys.exit(0)\n",
            &[("exit_called", Block)],
        ),
        ("tests/test_a.py", "x = 1\n", "x = 1\nsys.exit(0)\n", &[]),
    ]);
}

#[test]
fn ticket_answer_in_product_is_found() {
    let test = build_changed_file(
        "tests/test_a.py",
        "x = 1\n",
        "x = 1\n\ndef test_a():\n    assert total('blue shirt') == 30\n",
    );
    let branch = "def total(item):\n    if item == 'blue shirt':\n        return 30\n    return 0\n";
    let answer = build_changed_file("shop/a.py", "def total(item):\n    return 0\n", branch);
    assert_eq!(
        list_findings(&[test.clone(), answer]),
        [("test_value_in_product".to_owned(), Flag)]
    );
    // A value that the product contained before does not come from the tests.
    let known = build_changed_file(
        "shop/a.py",
        "KINDS = ['blue shirt']\n",
        &format!("KINDS = ['blue shirt']\n{branch}"),
    );
    assert_eq!(list_findings(&[test, known]), []);
}

#[test]
fn honest_fix_has_no_findings() {
    let files = [
        build_changed_file(
            "shop/cart.py",
            "def total(items):\n    return sum(item['price'] for item in items['lines'])\n",
            "def total(items):\n    return sum(item['price'] for item in items.get('lines', []))\n",
        ),
        build_changed_file(
            "tests/test_cart.py",
            "def test_total():\n    assert total({'lines': [{'price': 3}]}) == 3\n",
            "def test_total():\n    assert total({'lines': [{'price': 3}]}) == 3\n\n\ndef test_empty():\n    assert total({}) == 0\n",
        ),
    ];
    assert_eq!(list_findings(&files), []);
}

#[test]
fn findings_are_located_and_sorted() {
    let files = [
        build_changed_file("shop/a.py", "x = f()\n", "x = f()  # noqa\n"),
        build_changed_file(
            "tests/test_a.py",
            "import a\n\ndef test_a():\n    assert f() == 1\n",
            "import a\n",
        ),
    ];
    let found = find_weakened_checks(&files, "");
    assert_eq!((found[0].path.as_str(), found[0].line), ("tests/test_a.py", 3));
    assert_eq!(found[0].words, "test_a is gone");
    assert_eq!((found[1].line, found[1].words.as_str()), (1, "x = f()  # noqa"));
}

mod hostile {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_stops_the_search(
            before in "(def test_a\\(\\):\n|    assert x\n|it\\('a', \\(\\) => \\{\n|\\}\\);\n|#\\[test\\]\n|fn a\\(\\) \\{\n|\\PC{0,20}\n){0,30}",
            after in "(def test_b\\(\\):\n|    assert y\n|it\\('b', \\(\\) => \\{\n|\\}\\);\n|#\\[ignore\\]\n|\\}\n|\\PC{0,20}\n){0,30}",
            path in proptest::sample::select(vec!["tests/test_a.py", "a.test.js", "src/a.rs", "a_test.go", "models/a.yml", "Makefile"]),
        ) {
            for finding in find_weakened_checks(&[build_changed_file(path, &before, &after)], "") {
                prop_assert!(finding.words.chars().count() < 1000);
            }
        }

        #[test]
        fn unchanged_file_has_no_findings(
            text in "(def test_a\\(\\):\n|    assert x\n|@skip\n|\\PC{0,20}\n){1,30}",
            path in proptest::sample::select(vec!["tests/test_a.py", "a.test.js", "src/a.rs"]),
        ) {
            let kinds: Vec<_> = list_findings(&[build_changed_file(path, &text, &text)]);
            prop_assert!(kinds.is_empty(), "{kinds:?}");
        }
    }
}
